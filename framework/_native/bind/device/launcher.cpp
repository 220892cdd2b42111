// A module of its own, for any processor: kernels of NVIDIA's GPUs are launched through the driver, which is loaded
// when it is there (no header or library of CUDA's is needed to build this).
//
// `Kernel` stands for a kernel of CuPy's and takes what that takes; it asks CuPy for the driver's handle once per
// device. `Quick` is an elementwise kernel over operands that lie alike: it looks at them, makes the result and
// launches, without a line of Python. What either does not know goes to the callable it was given. Making an array
// costs more than all else, so small results are kept, and handed out again once nobody else has them (`Kept`).
#define NPY_NO_DEPRECATED_API NPY_2_0_API_VERSION
#define NPY_TARGET_VERSION NPY_2_0_API_VERSION
#include <Python.h>
#include <numpy/arrayobject.h>
#include <numpy/arrayscalars.h>
#include <structmember.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "bind/collected.h"
#if !defined(_WIN32)
#include <dlfcn.h>
#endif

namespace {

constexpr int MOST_ARGUMENTS = 40, MOST_OPERANDS = 8;
constexpr int64_t THREADS = 256, MOST_BLOCKS = 4096;  // as device_code.py has them

using LaunchKernel = int (*)(void*, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void*, void**,
                             void**);
using CurrentDevice = int (*)(int*);
using StreamOf = intptr_t (*)();
using ExchangeMode = int (*)(int*);

// An attribute of the objects of one type; those of Cython's classes are read without a look into dictionaries.
struct Attribute {
    PyObject* name = nullptr;
    PyTypeObject* type = nullptr;
    PyGetSetDef* quick = nullptr;

    bool of(PyTypeObject* owner, const char* text) {
        PyObject* text_object = PyUnicode_InternFromString(text);
        PyObject* found = text_object ? PyObject_GetAttr(reinterpret_cast<PyObject*>(owner), text_object) : nullptr;
        if (!found) {
            Py_XDECREF(text_object);
            return false;
        }
        Py_XDECREF(name);
        name = text_object;
        type = owner;
        quick = Py_TYPE(found) == &PyGetSetDescr_Type ? reinterpret_cast<PyGetSetDescrObject*>(found)->d_getset : nullptr;
        Py_DECREF(found);
        return true;
    }
    PyObject* get(PyObject* object) const {
        return quick && Py_TYPE(object) == type ? quick->get(object, quick->closure) : PyObject_GetAttr(object, name);
    }
    bool number(PyObject* object, uint64_t& value) const {
        PyObject* found = get(object);
        if (!found) return false;
        value = PyLong_AsUnsignedLongLongMask(found);
        Py_DECREF(found);
        return !PyErr_Occurred();
    }
};

// What is known of the driver and of CuPy: set once, under Python's lock.
struct {
    LaunchKernel launch = nullptr;
    CurrentDevice device = nullptr;
    ExchangeMode exchange = nullptr;
    PyTypeObject* array = nullptr;
    StreamOf stream = nullptr;
    PyObject* stream_of = nullptr;  // instead of `stream`
    PyObject* fail = nullptr;       // raises for a status of the driver
    Attribute data, dtype, shape, in_rows, bytes, pointer, memory, device_id;
} known;

bool stream_now(void*& stream) {
    if (known.stream) {
        stream = reinterpret_cast<void*>(known.stream());
        return !PyErr_Occurred();
    }
    PyObject* found = PyObject_CallNoArgs(known.stream_of);
    if (!found) return false;
    stream = PyLong_AsVoidPtr(found);
    Py_DECREF(found);
    return !PyErr_Occurred();
}

// The memory of an array; false, with or without an error, where it is of another device.
bool pointer_of(PyObject* array, int device, uint64_t& pointer) {
    PyObject* data = known.data.get(array);
    if (!data) return false;
    uint64_t number = 0;
    const bool found = known.device_id.number(data, number) && int(number) == device && known.pointer.number(data, pointer);
    Py_DECREF(data);
    return found;
}

bool launched(void* function, const unsigned* grid, const unsigned* block, unsigned shared, void* stream, void** values) {
    int status;
    Py_BEGIN_ALLOW_THREADS  // the queue may be full, and what empties it may want to run Python
    status = known.launch(function, grid[0], grid[1], grid[2], block[0], block[1], block[2], shared, stream, values, nullptr);
    Py_END_ALLOW_THREADS
    if (status == 0) return true;
    PyObject* said = PyObject_CallFunction(known.fail, "i", status);
    Py_XDECREF(said);
    if (said) PyErr_Format(PyExc_RuntimeError, "the driver refuses a launch: status %d", status);
    return false;
}

// -- Kernel ------------------------------------------------------------------------------------------

struct Kernel {
    PyObject_HEAD
    vectorcallfunc call;
    PyObject* otherwise;          // CuPy's kernel
    PyObject* find;               // of that: the driver's handle on the current device, 0 for none
    std::vector<void*>* handles;  // of each device
    void close() { delete handles; }
};

PyTypeObject* kernel_type = nullptr;

// The handle on the current device, or null, without an error, where CuPy is to launch.
void* handle_of(Kernel* k, int& device) {
    if (!known.launch || known.device(&device) != 0 || device < 0) return nullptr;
    return size_t(device) < k->handles->size() ? (*k->handles)[device] : nullptr;
}

PyObject* by_cupy(Kernel* k, PyObject* const* given, size_t count, PyObject* keywords) {
    PyObject* done = PyObject_Vectorcall(k->otherwise, given, count, keywords);
    if (!done) return nullptr;
    int device = 0;
    if (known.launch && known.device(&device) == 0 && device >= 0 && device < 1024) {  // it is loaded there now
        if (k->handles->size() <= size_t(device)) k->handles->resize(device + 1, nullptr);
        if (!(*k->handles)[device]) {
            PyObject* found = PyObject_CallOneArg(k->find, k->otherwise);
            if (!found) {
                Py_DECREF(done);
                return nullptr;
            }
            (*k->handles)[device] = PyLong_AsVoidPtr(found);
            Py_DECREF(found);
            if (PyErr_Occurred()) {
                Py_DECREF(done);
                return nullptr;
            }
        }
    }
    return done;
}

bool three(PyObject* given, unsigned* sizes) {
    sizes[0] = sizes[1] = sizes[2] = 1;
    if (!PyTuple_CheckExact(given) || PyTuple_GET_SIZE(given) < 1 || PyTuple_GET_SIZE(given) > 3) return false;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(given); ++i) {
        PyObject* one = PyTuple_GET_ITEM(given, i);
        if (!PyLong_CheckExact(one)) return false;
        const long size = PyLong_AsLong(one);
        if (size < 1 || size > 0x7fffffffL) {
            PyErr_Clear();
            return false;
        }
        sizes[i] = unsigned(size);
    }
    return true;
}

union Value {
    uint64_t pointer;
    int64_t integer;
    double number;
    bool truth;
    char bytes[16];
};

PyObject* kernel_call(PyObject* self, PyObject* const* given, size_t flags, PyObject* keywords) {
    auto* k = reinterpret_cast<Kernel*>(self);
    const Py_ssize_t count = PyVectorcall_NARGS(flags);
    const Py_ssize_t named = keywords ? PyTuple_GET_SIZE(keywords) : 0;
    int device = 0;
    void* function = handle_of(k, device);
    unsigned grid[3], block[3];
    unsigned shared = 0;
    bool plain = function && count == 3 && named <= 1 && three(given[0], grid) && three(given[1], block) &&
                 PyTuple_CheckExact(given[2]) && PyTuple_GET_SIZE(given[2]) <= MOST_ARGUMENTS;
    if (plain && named) {
        plain = PyUnicode_CompareWithASCIIString(PyTuple_GET_ITEM(keywords, 0), "shared_mem") == 0 &&
                PyLong_CheckExact(given[3]);
        if (plain) shared = unsigned(PyLong_AsUnsignedLongMask(given[3]));
    }
    if (!plain) return by_cupy(k, given, flags, keywords);
    Value values[MOST_ARGUMENTS];
    void* pointers[MOST_ARGUMENTS];
    const Py_ssize_t n = PyTuple_GET_SIZE(given[2]);
    for (Py_ssize_t i = 0; i < n; ++i) {
        PyObject* a = PyTuple_GET_ITEM(given[2], i);
        pointers[i] = &values[i];
        if (Py_TYPE(a) == known.array) {
            if (!pointer_of(a, device, values[i].pointer)) {
                if (PyErr_Occurred()) return nullptr;
                return by_cupy(k, given, flags, keywords);
            }
        } else if (PyLong_CheckExact(a)) {
            values[i].integer = PyLong_AsLongLong(a);
            if (PyErr_Occurred()) return nullptr;
        } else if (PyFloat_CheckExact(a)) {
            values[i].number = PyFloat_AS_DOUBLE(a);
        } else if (PyBool_Check(a)) {
            values[i].truth = a == Py_True;
        } else if (a == Py_None) {
            values[i].pointer = 0;
        } else if (PyArray_CheckExact(a) && PyArray_SIZE(reinterpret_cast<PyArrayObject*>(a)) == 1) {
            pointers[i] = PyArray_DATA(reinterpret_cast<PyArrayObject*>(a));
        } else if (PyArray_IsScalar(a, Number) && !PyArray_IsScalar(a, LongDouble) && !PyArray_IsScalar(a, CLongDouble)) {
            PyArray_ScalarAsCtype(a, values[i].bytes);
        } else {
            return by_cupy(k, given, flags, keywords);
        }
    }
    void* stream = nullptr;
    if (!stream_now(stream) || !launched(function, grid, block, shared, stream, pointers)) return nullptr;
    Py_RETURN_NONE;
}

using KernelOwns = fw::Collected<Kernel, &Kernel::otherwise, &Kernel::find>;

PyMemberDef kernel_members[] = {
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(Kernel, call), READONLY, nullptr},
    {"otherwise", T_OBJECT, offsetof(Kernel, otherwise), READONLY, "CuPy's kernel"},
    {nullptr, 0, 0, 0, nullptr}};
PyType_Slot kernel_slots[] = {{Py_tp_call, reinterpret_cast<void*>(PyVectorcall_Call)},
                              {Py_tp_traverse, reinterpret_cast<void*>(KernelOwns::traverse)},
                              {Py_tp_clear, reinterpret_cast<void*>(KernelOwns::clear)},
                              {Py_tp_dealloc, reinterpret_cast<void*>(KernelOwns::free)},
                              {Py_tp_members, kernel_members},
                              {0, nullptr}};
PyType_Spec kernel_spec = {"framework._native.launcher.Kernel", sizeof(Kernel), 0,
                           Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL, kernel_slots};

PyObject* kernel_new(PyObject*, PyObject* arguments) {
    PyObject *otherwise, *find;
    if (!PyArg_ParseTuple(arguments, "OO:kernel", &otherwise, &find)) return nullptr;
    auto* k = PyObject_GC_New(Kernel, kernel_type);
    if (!k) return nullptr;
    k->call = kernel_call;
    Py_INCREF(k->otherwise = otherwise);
    Py_INCREF(k->find = find);
    k->handles = new std::vector<void*>;
    PyObject_GC_Track(reinterpret_cast<PyObject*>(k));
    return reinterpret_cast<PyObject*>(k);
}

// -- results that are handed out again ---------------------------------------------------------------

constexpr int SETS = 512, WAYS = 4;
constexpr uint64_t MOST_BYTES = 1 << 20, MOST_KEPT = 32 << 20;  // of one result, of all

// A result of before. It may be used again, in the stream that it was made for, when this is all that has it: then the
// array, its pointer and the memory behind that have no owners but each other and this, and nobody waits for its end.
struct Kept {
    PyObject *array, *data, *memory, *shape, *dtype;
    uint64_t pointer, bytes;
    void* stream;
    int device;

    bool idle() const {
        return Py_REFCNT(array) == 1 && Py_REFCNT(data) == 2 && Py_REFCNT(memory) == 2 &&
               !*reinterpret_cast<PyObject**>(reinterpret_cast<char*>(array) + Py_TYPE(array)->tp_weaklistoffset);
    }
};
Kept kept[SETS][WAYS];
unsigned next_way = 0;
uint64_t kept_bytes = 0;
bool keeping = true;

void let_go(Kept& slot) {
    const Kept gone = slot;
    slot = {};  // what follows may run Python
    if (!gone.array) return;
    kept_bytes -= gone.bytes;
    for (PyObject* o : {gone.memory, gone.data, gone.array, gone.shape, gone.dtype}) Py_DECREF(o);
}

void keep(Kept& slot, PyObject* array, PyObject* shape, PyObject* dtype, void* stream, int device, uint64_t pointer) {
    let_go(slot);
    uint64_t bytes = 0;
    PyObject* data = Py_TYPE(array)->tp_weaklistoffset && known.bytes.number(array, bytes) ? known.data.get(array) : nullptr;
    PyObject* memory = data && bytes <= MOST_BYTES && kept_bytes + bytes <= MOST_KEPT ? known.memory.get(data) : nullptr;
    PyErr_Clear();
    // in objects of another make it could not be seen when nobody has them; and Python has run since
    if (!memory || Py_REFCNT(data) != 2 || Py_REFCNT(memory) != 2 || slot.array) {
        Py_XDECREF(data);
        Py_XDECREF(memory);
        return;
    }
    for (PyObject* o : {array, shape, dtype}) Py_INCREF(o);
    slot = {array, data, memory, shape, dtype, pointer, bytes, stream, device};
    kept_bytes += bytes;
}

// An array for a result: one of before, or a new one that is kept. Its memory is at `pointer`.
PyObject* result_array(PyObject* make, PyObject* shape, PyObject* dtype, void* stream, int device, uint64_t& pointer) {
    Kept* set = nullptr;
    if (keeping) {
        const auto number = uint64_t(PyObject_Hash(shape)) ^ uint64_t(reinterpret_cast<uintptr_t>(dtype) >> 4) ^
                            uint64_t(reinterpret_cast<uintptr_t>(stream));
        set = kept[(number * 0x9E3779B97F4A7C15ull >> 40) % SETS];
        for (int w = 0; w < WAYS; ++w) {
            Kept& k = set[w];
            if (!k.array || k.dtype != dtype || k.stream != stream || k.device != device || !k.idle()) continue;
            const int alike = PyObject_RichCompareBool(k.shape, shape, Py_EQ);
            if (alike != 1) continue;
            pointer = k.pointer;
            Py_INCREF(k.array);
            return k.array;
        }
    }
    PyObject* how[] = {shape, dtype};
    PyObject* out = PyObject_Vectorcall(make, how, 2, nullptr);
    if (!out) return nullptr;
    if (Py_TYPE(out) != known.array || !pointer_of(out, device, pointer)) {
        Py_DECREF(out);
        return nullptr;
    }
    if (set && keeping) keep(set[next_way++ % WAYS], out, shape, dtype, stream, device, pointer);
    return out;
}

// -- Quick -------------------------------------------------------------------------------------------

enum class Kind : unsigned char { array, number, integer };

// The kernel for operands of certain dtypes.
struct Variant {
    Kernel* kernel;
    int64_t pack;            // elements of a thread
    PyObject* result;        // the dtype of the result
    int64_t low, high;       // what its integers may be
    int operands;
    Kind kinds[MOST_OPERANDS];
    PyObject* dtypes[MOST_OPERANDS];  // of arrays
};

struct Quick {
    PyObject_HEAD
    vectorcallfunc call;
    PyTypeObject* array;  // of what arrays this is: `known.array` as it was made
    PyObject* make;       // (shape, dtype): a new array
    PyObject* otherwise;  // takes the same operands, or None: then the answer is NotImplemented
    std::vector<Variant>* variants;
};

PyTypeObject* quick_type = nullptr;

const Variant* variant_for(const Quick* q, PyObject* const* given, Py_ssize_t n, PyObject* const* dtypes) {
    for (const Variant& v : *q->variants) {
        if (v.operands != n) continue;
        bool fits = true;
        for (Py_ssize_t i = 0; i < n && fits; ++i) {
            if (v.kinds[i] == Kind::array) fits = dtypes[i] == v.dtypes[i];
            else if (v.kinds[i] == Kind::number) fits = PyFloat_CheckExact(given[i]);
            else fits = PyLong_CheckExact(given[i]);
        }
        if (fits) return &v;
    }
    return nullptr;
}

// Whether a kernel may write into an array, at `pointer`, of a shape and dtype: operands are there from the first element
// on, or elsewhere.
bool may_write(PyObject* into, PyObject* shape, PyObject* dtype, int device, PyObject* const* given, Py_ssize_t n,
               const Value* values, uint64_t& pointer) {
    if (Py_TYPE(into) != known.array) return false;
    PyObject *rows = known.in_rows.get(into), *own_dtype = known.dtype.get(into), *own_shape = known.shape.get(into);
    uint64_t bytes = 0, other = 0;
    bool fits = rows == Py_True && own_dtype == dtype && own_shape && PyObject_RichCompareBool(shape, own_shape, Py_EQ) == 1 &&
                pointer_of(into, device, pointer) && known.bytes.number(into, bytes);
    for (PyObject* o : {rows, own_dtype, own_shape}) Py_XDECREF(o);
    for (Py_ssize_t i = 0; i < n && fits; ++i) {
        if (Py_TYPE(given[i]) != known.array) continue;
        fits = known.bytes.number(given[i], other);
        const uint64_t at = values[i + 1].pointer;
        if (fits) fits = at == pointer ? other == bytes : at + other <= pointer || pointer + bytes <= at;
    }
    return fits;
}

// The result of one launch, new or written into an array; null without an error where this is not for it.
PyObject* quick_result(const Quick* q, PyObject* const* given, Py_ssize_t n, PyObject* into) {
    int device = 0;
    if (!known.launch || q->array != known.array || n < 1 || n > MOST_OPERANDS || q->variants->empty() || known.device(&device) != 0) return nullptr;
    PyObject* dtypes[MOST_OPERANDS] = {};
    PyObject* shape = nullptr;
    Value values[MOST_OPERANDS + 2];
    void* pointers[MOST_OPERANDS + 2];
    bool fits = true;
    for (Py_ssize_t i = 0; i < n && fits; ++i) {
        pointers[i + 1] = &values[i + 1];
        if (Py_TYPE(given[i]) != known.array) continue;
        PyObject* rows = known.in_rows.get(given[i]);
        fits = rows == Py_True;
        Py_XDECREF(rows);
        if (!fits) break;
        dtypes[i] = known.dtype.get(given[i]);
        PyObject* own = known.shape.get(given[i]);
        fits = dtypes[i] && own && pointer_of(given[i], device, values[i + 1].pointer);
        if (fits && shape) fits = PyObject_RichCompareBool(shape, own, Py_EQ) == 1;
        if (shape) Py_XDECREF(own);
        else shape = own;
    }
    const Variant* v = fits && shape ? variant_for(q, given, n, dtypes) : nullptr;
    for (PyObject* d : dtypes) Py_XDECREF(d);  // the variant holds those that matter
    void* function = v ? handle_of(v->kernel, device) : nullptr;
    int64_t size = 1;
    if (function && PyTuple_CheckExact(shape)) {
        for (Py_ssize_t d = 0; d < PyTuple_GET_SIZE(shape); ++d) size *= PyLong_AsLongLong(PyTuple_GET_ITEM(shape, d));
        for (Py_ssize_t i = 0; i < n && function; ++i) {
            if (v->kinds[i] == Kind::number) values[i + 1].number = PyFloat_AS_DOUBLE(given[i]);
            if (v->kinds[i] != Kind::integer) continue;
            int over = 0;
            values[i + 1].integer = PyLong_AsLongLongAndOverflow(given[i], &over);
            if (over || values[i + 1].integer < v->low || values[i + 1].integer > v->high) function = nullptr;
        }
    }
    PyObject* out = nullptr;
    if (function && size > 0 && !PyErr_Occurred()) {
        PyObject* result = v->result;
        Py_INCREF(result);  // making the array may run Python, which may add variants
        const int64_t each = THREADS * v->pack, blocks = (size + each - 1) / each;
        void* stream = nullptr;
        if (!stream_now(stream)) {
        } else if (!into) {
            out = result_array(q->make, shape, result, stream, device, values[0].pointer);
        } else if (may_write(into, shape, result, device, given, n, values, values[0].pointer)) {
            Py_INCREF(out = into);
        }
        if (out) {
            pointers[0] = &values[0];
            values[n + 1].integer = size;
            pointers[n + 1] = &values[n + 1];
            const unsigned grid[3] = {unsigned(blocks < MOST_BLOCKS ? blocks : MOST_BLOCKS), 1, 1};
            const unsigned block[3] = {unsigned(THREADS), 1, 1};
            if (!launched(function, grid, block, 0, stream, pointers)) Py_CLEAR(out);
        }
        Py_DECREF(result);
    }
    Py_XDECREF(shape);
    return out;
}

PyObject* quick_call(PyObject* self, PyObject* const* given, size_t flags, PyObject* keywords) {
    auto* q = reinterpret_cast<Quick*>(self);
    const Py_ssize_t n = PyVectorcall_NARGS(flags), named = keywords ? PyTuple_GET_SIZE(keywords) : 0;
    if (!named || (named == 1 && PyUnicode_CompareWithASCIIString(PyTuple_GET_ITEM(keywords, 0), "out") == 0)) {
        PyObject* into = named && given[n] != Py_None ? given[n] : nullptr;
        PyObject* out = quick_result(q, given, n, into);
        if (out || PyErr_Occurred()) return out;
    }
    if (q->otherwise == Py_None) Py_RETURN_NOTIMPLEMENTED;
    return PyObject_Vectorcall(q->otherwise, given, flags, keywords);
}

// add(kernel, pack, result, kinds, dtypes, low, high): kinds has one letter for each operand, a, n or i
PyObject* quick_add(PyObject* self, PyObject* arguments) {
    auto* q = reinterpret_cast<Quick*>(self);
    PyObject *kernel, *result, *dtypes;
    const char* kinds;
    long long pack, low, high;
    if (!PyArg_ParseTuple(arguments, "O!LOsO!LL:add", kernel_type, &kernel, &pack, &result, &kinds, &PyTuple_Type, &dtypes,
                          &low, &high))
        return nullptr;
    const size_t n = std::strlen(kinds);
    if (n < 1 || n > MOST_OPERANDS || Py_ssize_t(n) != PyTuple_GET_SIZE(dtypes) || pack < 1) {
        PyErr_SetString(PyExc_ValueError, "Quick.add: one to eight operands, each with a kind and a dtype");
        return nullptr;
    }
    Variant v{};
    v.kernel = reinterpret_cast<Kernel*>(kernel), v.pack = pack, v.result = result, v.low = low, v.high = high;
    v.operands = int(n);
    Py_INCREF(kernel);
    Py_INCREF(result);
    for (size_t i = 0; i < n; ++i) {
        v.kinds[i] = kinds[i] == 'a' ? Kind::array : kinds[i] == 'n' ? Kind::number : Kind::integer;
        Py_INCREF(v.dtypes[i] = PyTuple_GET_ITEM(dtypes, i));
    }
    q->variants->push_back(v);
    Py_RETURN_NONE;
}

int quick_traverse(PyObject* self, visitproc visit, void* arg) {
    auto* q = reinterpret_cast<Quick*>(self);
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(q->make);
    Py_VISIT(q->otherwise);
    for (const Variant& v : *q->variants) {
        Py_VISIT(v.kernel);
        Py_VISIT(v.result);
        for (PyObject* d : v.dtypes) Py_VISIT(d);
    }
    return 0;
}

int quick_clear(PyObject* self) {
    auto* q = reinterpret_cast<Quick*>(self);
    Py_CLEAR(q->make);
    Py_CLEAR(q->otherwise);
    std::vector<Variant> gone;
    gone.swap(*q->variants);
    for (Variant& v : gone) {
        Py_XDECREF(v.kernel);
        Py_XDECREF(v.result);
        for (PyObject* d : v.dtypes) Py_XDECREF(d);
    }
    return 0;
}

void quick_free(PyObject* self) {
    PyObject_GC_UnTrack(self);
    PyTypeObject* type = Py_TYPE(self);
    quick_clear(self);
    delete reinterpret_cast<Quick*>(self)->variants;
    PyObject_GC_Del(self);
    Py_DECREF(type);
}

PyMethodDef quick_methods[] = {{"add", quick_add, METH_VARARGS, "A kernel for operands of further dtypes."},
                               {nullptr, nullptr, 0, nullptr}};
PyMemberDef quick_members[] = {{"__vectorcalloffset__", T_PYSSIZET, offsetof(Quick, call), READONLY, nullptr},
                               {nullptr, 0, 0, 0, nullptr}};
PyType_Slot quick_slots[] = {{Py_tp_call, reinterpret_cast<void*>(PyVectorcall_Call)},
                             {Py_tp_traverse, reinterpret_cast<void*>(quick_traverse)},
                             {Py_tp_clear, reinterpret_cast<void*>(quick_clear)},
                             {Py_tp_dealloc, reinterpret_cast<void*>(quick_free)},
                             {Py_tp_methods, quick_methods},
                             {Py_tp_members, quick_members},
                             {0, nullptr}};
PyType_Spec quick_spec = {"framework._native.launcher.Quick", sizeof(Quick), 0,
                          Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL, quick_slots};

PyObject* quick_new(PyObject*, PyObject* arguments) {
    PyObject *make, *otherwise;
    if (!PyArg_ParseTuple(arguments, "OO:quick", &make, &otherwise)) return nullptr;
    auto* q = PyObject_GC_New(Quick, quick_type);
    if (!q) return nullptr;
    q->call = quick_call;
    q->array = known.array;
    Py_INCREF(q->make = make);
    Py_INCREF(q->otherwise = otherwise);
    q->variants = new std::vector<Variant>;
    PyObject_GC_Track(reinterpret_cast<PyObject*>(q));
    return reinterpret_cast<PyObject*>(q);
}

// -- the module --------------------------------------------------------------------------------------

// start(library, array type, memory pointer type, stream, fail): stream is CuPy's capsule, or a function
PyObject* start(PyObject*, PyObject* arguments) {
    const char* library;
    PyObject *array, *memory, *stream, *fail;
    if (!PyArg_ParseTuple(arguments, "sO!O!OO:start", &library, &PyType_Type, &array, &PyType_Type, &memory, &stream, &fail))
        return nullptr;
#if defined(_WIN32)
    Py_RETURN_FALSE;
#else
    known.launch = nullptr;  // nothing is launched by halves
    void* driver = dlopen(library, RTLD_NOW | RTLD_GLOBAL);
    if (!driver) Py_RETURN_FALSE;
    auto launch = reinterpret_cast<LaunchKernel>(dlsym(driver, "cuLaunchKernel"));
    auto device = reinterpret_cast<CurrentDevice>(dlsym(driver, "cuCtxGetDevice"));
    if (!launch || !device) Py_RETURN_FALSE;
    auto* type = reinterpret_cast<PyTypeObject*>(array);
    auto* pointer = reinterpret_cast<PyTypeObject*>(memory);
    if (!known.data.of(type, "data") || !known.dtype.of(type, "dtype") || !known.shape.of(type, "shape") ||
        !known.in_rows.of(type, "_c_contiguous") || !known.bytes.of(type, "nbytes") ||
        !known.memory.of(pointer, "mem") || !known.pointer.of(pointer, "ptr") ||
        !known.device_id.of(pointer, "device_id"))
        return nullptr;
    known.stream = nullptr;
    if (PyCapsule_CheckExact(stream)) {
        known.stream = reinterpret_cast<StreamOf>(PyCapsule_GetPointer(stream, "intptr_t (void)"));
        if (!known.stream) return nullptr;
    }
    Py_INCREF(array);
    Py_INCREF(stream);
    Py_INCREF(fail);
    known.array = type;  // what was known before is kept: others may be running on it
    known.stream_of = stream;
    known.fail = fail;
    known.device = device;
    known.exchange = reinterpret_cast<ExchangeMode>(dlsym(driver, "cuThreadExchangeStreamCaptureMode"));
    known.launch = launch;
    Py_RETURN_TRUE;
#endif
}

// empty(shape, dtype): memory for a result, on the current device; NotImplemented where CuPy is to make it
PyObject* empty(PyObject*, PyObject* const* given, Py_ssize_t count) {
    if (count != 2 || !PyTuple_CheckExact(given[0]) || !PyArray_DescrCheck(given[1])) {
        PyErr_SetString(PyExc_TypeError, "empty: wanted a tuple of sizes and a dtype");
        return nullptr;
    }
    int device = 0;
    void* stream = nullptr;
    if (!known.launch || known.device(&device) != 0 || device < 0) Py_RETURN_NOTIMPLEMENTED;
    if (!stream_now(stream)) return nullptr;
    uint64_t pointer = 0;
    PyObject* out = result_array(reinterpret_cast<PyObject*>(known.array), given[0], given[1], stream, device, pointer);
    if (!out && !PyErr_Occurred()) Py_RETURN_NOTIMPLEMENTED;
    return out;
}

PyObject* current_stream(PyObject*, PyObject*) {
    void* stream = nullptr;
    if (!known.launch) Py_RETURN_NONE;
    return stream_now(stream) ? PyLong_FromVoidPtr(stream) : nullptr;
}

PyObject* forget(PyObject*, PyObject*) {
    for (auto& set : kept)
        for (Kept& slot : set) let_go(slot);
    Py_RETURN_NONE;
}

PyObject* set_keeping(PyObject*, PyObject* on) {
    const bool before = keeping;
    keeping = PyObject_IsTrue(on) == 1;
    return PyBool_FromLong(before);
}

PyObject* idle_bytes(PyObject*, PyObject* device) {
    const long number = PyLong_AsLong(device);
    if (PyErr_Occurred()) return nullptr;
    uint64_t bytes = 0;
    for (const auto& set : kept)
        for (const Kept& slot : set)
            if (slot.array && slot.device == number && slot.idle()) bytes += slot.bytes;
    return PyLong_FromUnsignedLongLong(bytes);
}

// What this thread may do while a stream is captured (0: what is safe, 2: anything); returns what held before.
PyObject* exchange_capture_mode(PyObject*, PyObject* mode) {
    int number = int(PyLong_AsLong(mode));
    if (PyErr_Occurred()) return nullptr;
    if (known.launch && known.exchange) known.exchange(&number);
    return PyLong_FromLong(number);
}

PyObject* stop(PyObject*, PyObject*) {
    known.launch = nullptr;
    return forget(nullptr, nullptr);
}

PyMethodDef functions[] = {
    {"start", start, METH_VARARGS,
     "start(library, array_type, pointer_type, stream, fail): load the driver; whether kernels can be launched by it."},
    {"stop", stop, METH_NOARGS, "Leave all launches to CuPy again."},
    {"empty", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(empty)), METH_FASTCALL,
     "empty(shape, dtype): an array of the current device without values: one of before that nobody has, or a new one."},
    {"current_stream", current_stream, METH_NOARGS, "The handle of the stream that work goes into; None where CuPy launches."},
    {"forget", forget, METH_NOARGS, "Give back the results that are kept to be handed out again."},
    {"set_keeping", set_keeping, METH_O, "Whether results are kept from here on; returns what held before."},
    {"idle_bytes", idle_bytes, METH_O, "Bytes of a device in results that are kept and that nobody has."},
    {"exchange_capture_mode", exchange_capture_mode, METH_O,
     "What this thread may do while a stream is captured; returns what held before."},
    {"kernel", kernel_new, METH_VARARGS, "kernel(otherwise, find): a kernel of CuPy's, launched by the driver."},
    {"quick", quick_new, METH_VARARGS, "quick(make, otherwise): an elementwise kernel over operands that lie alike."},
    {nullptr, nullptr, 0, nullptr}};
PyModuleDef definition = {PyModuleDef_HEAD_INIT, "launcher", "Kernels launched through NVIDIA's driver.", -1, functions,
                          nullptr, nullptr, nullptr, nullptr};

}  // namespace

PyMODINIT_FUNC PyInit_launcher() {
    import_array();
    kernel_type = reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&kernel_spec));
    quick_type = reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&quick_spec));
    if (!kernel_type || !quick_type) return nullptr;
    return PyModule_Create(&definition);
}
