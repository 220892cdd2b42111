// NumPy arrays in native functions, and what every binding file includes.
//
// A binding takes `Array` parameters: any Python object is accepted, and `usable` says whether it is an
// array that kernels can read. A function that does not take a case returns `not_implemented()`; the op's
// plain NumPy formula runs then.
#pragma once

#define NPY_NO_DEPRECATED_API NPY_2_0_API_VERSION
#define NPY_TARGET_VERSION NPY_2_0_API_VERSION
#define PY_ARRAY_UNIQUE_SYMBOL framework_array_api
#ifndef FW_IMPORTS_NUMPY
#define NO_IMPORT_ARRAY
#endif

#include <nanobind/nanobind.h>
#include <numpy/arrayobject.h>

#include <utility>
#include <vector>

#include "base/scratch.h"
#include "base/view.h"
#include "bind/casters.h"

namespace nb = nanobind;

namespace fw {

// Registers what a file binds: `FW_BIND(m) { m.def(...); }` at namespace scope.
struct Binder {
    void (*bind)(nb::module_&);
    Binder* next;
    static Binder*& first() {
        static Binder* head = nullptr;
        return head;
    }
    explicit Binder(void (*f)(nb::module_&)) : bind(f), next(first()) { first() = this; }
};
#define FW_BIND(m) FW_BIND_COUNTED(m, __COUNTER__)  // several sources may be one unit (CMakeLists.txt)
#define FW_BIND_COUNTED(m, n) FW_BIND_NUMBER(m, n)
#define FW_BIND_NUMBER(m, n)                    \
    static void bind_##n(nb::module_& m);       \
    static fw::Binder binder_##n(bind_##n);     \
    static void bind_##n(nb::module_& m)

inline nb::object not_implemented() { return nb::borrow(Py_NotImplemented); }

template <class T> constexpr int type_number = -1;
template <> constexpr int type_number<float> = NPY_FLOAT;
template <> constexpr int type_number<double> = NPY_DOUBLE;
template <> constexpr int type_number<int64_t> = NPY_INT64;
template <> constexpr int type_number<int32_t> = NPY_INT32;
template <> constexpr int type_number<bool> = NPY_BOOL;
template <> constexpr int type_number<uint8_t> = NPY_UINT8;
template <> constexpr int type_number<int8_t> = NPY_INT8;
template <> constexpr int type_number<int16_t> = NPY_INT16;

struct Array {
    PyArrayObject* p = nullptr;

    // a NumPy array of aligned numbers in this machine's byte order
    bool usable() const { return p != nullptr; }
    int type() const { return PyArray_TYPE(p); }
    template <class T> bool is() const { return p && PyArray_TYPE(p) == type_number<T>; }
    bool is_float() const { return is<float>() || is<double>(); }
    bool contiguous() const { return PyArray_IS_C_CONTIGUOUS(p); }
    bool writeable() const { return PyArray_ISWRITEABLE(p); }
    int ndim() const { return PyArray_NDIM(p); }
    int64_t size() const { return PyArray_SIZE(p); }
    int64_t shape(int d) const { return PyArray_DIM(p, d); }
    int64_t stride(int d) const { return PyArray_STRIDE(p, d); }  // in bytes
    const npy_intp* shape() const { return PyArray_DIMS(p); }
    const npy_intp* strides() const { return PyArray_STRIDES(p); }
    template <class T> T* data() const { return static_cast<T*>(PyArray_DATA(p)); }
    bool same_shape(const Array& o) const { return PyArray_SAMESHAPE(p, o.p); }
    nb::object object() const { return nb::borrow(reinterpret_cast<PyObject*>(p)); }
};

// An array that was made here: until it is given to Python it goes when this does, as after an exception.
struct NewArray : Array {
    nb::object owner;

    NewArray() = default;
    explicit NewArray(PyObject* made) : Array{reinterpret_cast<PyArrayObject*>(made)}, owner(nb::steal(made)) {}
    NewArray(NewArray&&) = default;
    NewArray& operator=(NewArray&&) = default;
};
inline nb::object give(NewArray& a) { return std::move(a.owner); }  // to Python, once; it can still be written
inline nb::object give(NewArray&& a) { return std::move(a.owner); }

// A new row-major array; large ones come from the cache of `memory.cpp`. `data<T>()` of the result is uninitialised.
// Raises MemoryError, and ValueError for sizes that are negative or whose product is too large.
NewArray new_array(int ndim, const npy_intp* shape, int type);
// Arrays that nobody has any more, in row-major order, that new ones of their shape and type may be: those that are taken
// are no longer there.
struct Offer {
    static constexpr int MOST = 4;
    PyObject* arrays[MOST];
    int count = 0;
};
Offer* offered_now(Offer* arrays);  // to this thread; gives what was offered before

NewArray new_like(Array prototype, int type);  // of its shape, its dimensions in the same order in memory
// One whose dimensions lie in memory in the order of `axes`, the last of them finest.
NewArray new_in_order(int ndim, const npy_intp* shape, int type, const int* axes);
inline NewArray like(const Array& a) { return new_array(a.ndim(), a.shape(), a.type()); }

// The dimensions from the one with the largest steps in memory to the one with the smallest.
void axes_in_memory(const Array& a, int* axes);
bool dense_in_order(const Array& a, const int* axes);  // whether it has no gaps and repeats nothing

// An array in row-major order: itself, or a copy (made by all threads, while others run Python) that goes with this.
struct InRows {
    nb::object owner;
    Array a;
    explicit InRows(const Array& given, bool wanted = true) : a(given) {
        if (wanted && !given.contiguous()) copy();
    }
    template <class T> const T* data() const { return a.data<T>(); }

  private:
    void copy();
};

// Work on more than so many bytes is worth letting other Python threads run. While the lock is away, whoever waits
// for a long kernel may interrupt it between two pieces (`pool.h`), except where it writes into memory that was there
// before, which must not be left half done.
constexpr int64_t RELEASE_BYTES = 1 << 16;
enum class Writes { results, memory };
struct Release {
    PyThreadState* state = nullptr;

    explicit Release(int64_t bytes, Writes into = Writes::results) {
        if (bytes >= RELEASE_BYTES) let_go(into);
    }
    ~Release() {
        ThreadScratch::drop_large();
        if (state) take_back();
    }
    Release(const Release&) = delete;

  private:
    void let_go(Writes into);
    void take_back();
};

}  // namespace fw

namespace nanobind::detail {
template <> struct type_caster<fw::Array> {
    NB_TYPE_CASTER(fw::Array, const_name("numpy.ndarray"))
    bool from_python(handle src, uint8_t, cleanup_list*) noexcept {
        PyObject* o = src.ptr();
        bool good = PyArray_CheckExact(o) && PyArray_ISBEHAVED_RO(reinterpret_cast<PyArrayObject*>(o));
        value.p = good ? reinterpret_cast<PyArrayObject*>(o) : nullptr;
        return true;
    }
    static handle from_cpp(fw::Array a, rv_policy, cleanup_list*) noexcept {
        return handle(reinterpret_cast<PyObject*>(a.p));
    }
};
}  // namespace nanobind::detail

namespace fw {

// An argument that may be None.
struct Given {
    Array a;
    bool none;
    explicit Given(nb::handle h) : a(nb::cast<Array>(h)), none(h.is_none()) {}
    // None, or n numbers of x's dtype in a row
    bool fits(const Array& x, int64_t n) const {
        return none || (a.usable() && a.type() == x.type() && a.size() == n && a.contiguous());
    }
    template <class T> const T* data() const { return none ? nullptr : a.data<T>(); }
};

}  // namespace fw
