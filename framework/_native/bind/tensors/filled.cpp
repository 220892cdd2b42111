// New tensors of a shape, or in that of another, every element one number, or uninitialised.
#include <algorithm>
#include <cfloat>
#include <cmath>
#include <complex>
#include <cstring>

#include "base/bf16.h"
#include "bind/bf16_array.h"
#include "bind/move/copy.h"
#include "bind/tensors/tensors.h"

namespace fw::tensors {
namespace {

constexpr double HALF_MAX = 65504;
constexpr npy_intp ZEROS = 1 << 20;  // bytes of which the system may have zeros already

template <class T> bool given(T value, moving::Pair& bits) {
    static_assert(sizeof value <= sizeof bits, "there is room");
    std::memcpy(&bits, &value, sizeof value);
    return true;
}

// An element of this type and its bits; none where the number is None, and memory is left as it is.
struct Filling {
    moving::Pair bits{};
    bool wanted, good;

    Filling(PyArray_Descr* type, PyObject* number)
        : wanted(number != Py_None), good(!wanted || element_of(type, number, bits)) {}
    bool zeros(int64_t bytes) const { return wanted && !bits.a && bytes >= ZEROS; }

    nb::object into(NewArray out) const {
        nb::object array = give(out);
        if (wanted) {
            const int64_t bytes = PyArray_ITEMSIZE(out.p);
            Release release(out.size() * bytes);
            moving::fill_elements(out.data<char>(), out.size(), int(bytes), bits);
        }
        return array;
    }
};

// (x, number): a tensor in the shape, dtype and order of dimensions of x, every element the number.
nb::object filled_like(PyObject* const* args) {
    PyArrayObject* of = array_of(args[0]);
    if (!of || !moving::item_bytes(Array{of}) || PyArray_ISBYTESWAPPED(of) || here_of(quiet, word_run).is_none())
        return nb::object();
    const Filling filling(PyArray_DESCR(of), args[1]);
    if (!filling.good || filling.zeros(PyArray_NBYTES(of))) return nb::object();
    const nb::object held = nb::borrow(reinterpret_cast<PyObject*>(of));
    return tensor_over(filling.into(moving::as_laid(Array{of})));
}

// (x, number): an array that lies as x does, every element the number.
nb::object filled_array(Array x, nb::handle number) {
    if (!moving::item_bytes(x) || PyArray_ISBYTESWAPPED(x.p)) return not_implemented();
    const Filling filling(PyArray_DESCR(x.p), number.ptr());
    if (!filling.wanted || !filling.good || filling.zeros(PyArray_NBYTES(x.p))) return not_implemented();
    return filling.into(moving::as_laid(x));
}

// (shape, dtype, number): a tensor; `then` works on its array.
template <class Then> nb::object filled_then(PyObject* const* args, Then&& then) {
    const moving::Ints sizes(args[0]);
    if (!sizes.is_shape() || !PyArray_DescrCheck(args[1]) || here_of(quiet, word_run).is_none()) return nb::object();
    auto* type = reinterpret_cast<PyArray_Descr*>(args[1]);
    const nb::object usual = nb::steal(reinterpret_cast<PyObject*>(PyArray_DescrFromType(type->type_num)));
    if (usual.ptr() != args[1] || PyDataType_REFCHK(type) || PyTypeNum_ISFLEXIBLE(type->type_num)) return nb::object();
    const Filling filling(type, args[2]);
    if (!filling.good || filling.zeros(moving::product(sizes.at, 0, sizes.n) * PyDataType_ELSIZE(type))) return nb::object();
    npy_intp shape[NPY_MAXDIMS];
    std::copy(sizes.at, sizes.at + sizes.n, shape);
    nb::object array = filling.into(new_array(sizes.n, shape, type->type_num));
    then(reinterpret_cast<PyArrayObject*>(array.ptr()));
    return tensor_over(array);
}

nb::object filled(PyObject* const* args) {
    return filled_then(args, [](PyArrayObject*) {});
}

// (rows and columns, dtype, 0): the identity matrix.
nb::object identity(PyObject* const* args) {
    return filled_then(args, [](PyArrayObject* matrix) {
        const nb::object number = nb::int_(1);
        const Filling one(PyArray_DESCR(matrix), number.ptr());
        const npy_intp *shape = PyArray_DIMS(matrix), bytes = PyArray_ITEMSIZE(matrix), n = std::min(shape[0], shape[1]);
        for (npy_intp i = 0; i < n; ++i) std::memcpy(PyArray_BYTES(matrix) + i * (shape[1] + 1) * bytes, &one.bits, size_t(bytes));
    });
}

// `n` numbers from `first` to `last`, each computed in float64 as `numpy.linspace` does.
template <class T> void space(T* out, npy_intp n, double first, double last) {
    const double parts = double(n - 1), way = last - first, step = way / parts;
    if (n == 1) out[0] = T(0 * way + first);
    else for (npy_intp i = 0; i < n; ++i) out[i] = T((step != 0 ? double(i) * step : double(i) / parts * way) + first);
    if (n > 1) out[n - 1] = T(last);
}

// (shape of one dimension, dtype, None, first, last): evenly spaced numbers of a float dtype.
nb::object spaced(PyObject* const* args) {
    double ends[2];
    for (int i = 0; i < 2; ++i) {
        PyObject* end = args[3 + i];
        if (!PyFloat_CheckExact(end) && !PyLong_CheckExact(end)) return nb::object();
        ends[i] = PyFloat_AsDouble(end);
        if (ends[i] == -1 && PyErr_Occurred()) return PyErr_Clear(), nb::object();
    }
    const auto* type = reinterpret_cast<PyArray_Descr*>(args[1]);
    if (!PyArray_DescrCheck(args[1]) || (type->type_num != NPY_FLOAT && type->type_num != NPY_DOUBLE)) return nb::object();
    return filled_then(args, [&](PyArrayObject* array) {
        const npy_intp n = PyArray_SIZE(array);
        void* out = PyArray_DATA(array);
        if (PyArray_TYPE(array) == NPY_FLOAT) space(static_cast<float*>(out), n, ends[0], ends[1]);
        else space(static_cast<double*>(out), n, ends[0], ends[1]);
    });
}

template <nb::object (*F)(PyObject* const*), int ARGS> PyObject* made(PyObject*, PyObject* const* args, Py_ssize_t n) {
    if (n != ARGS) return PyErr_Format(PyExc_TypeError, "wanted %d arguments, got %zd", ARGS, n);
    return guarded([&]() -> PyObject* {
        nb::object result = F(args);
        if (result.is_valid()) return result.release().ptr();
        Py_RETURN_NOTIMPLEMENTED;
    });
}

#define FW_FILLED(name, args) \
    {#name, reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(&made<name, args>)), METH_FASTCALL, nullptr}
PyMethodDef making[] = {FW_FILLED(filled_like, 2), FW_FILLED(filled, 3), FW_FILLED(identity, 3), FW_FILLED(spaced, 5),
                        {nullptr, nullptr, 0, nullptr}};

}  // namespace

bool element_of(PyArray_Descr* a, PyObject* number, moving::Pair& bits) {
    const int type = a->type_num;
    if (a->kind == 'i') {
        int overflow = 0;
        const double real = PyFloat_CheckExact(number) ? PyFloat_AS_DOUBLE(number) : 0;  // of which there may be whole ones, too
        if (!PyLong_CheckExact(number) && !(PyFloat_CheckExact(number) && std::fabs(real) < 9e18 && real == std::trunc(real))) return false;
        const long long value = PyLong_CheckExact(number) ? PyLong_AsLongLongAndOverflow(number, &overflow) : static_cast<long long>(real);
        const int width = 8 * int(PyDataType_ELSIZE(a));
        if (overflow || width > 64 || (width < 64 && (value >> (width - 1)) != (value < 0 ? -1 : 0))) return false;
        return given(value, bits);  // the low bytes come first
    }
    if (!PyFloat_CheckExact(number) && !PyLong_CheckExact(number)) return false;
    const double value = PyFloat_AsDouble(number);
    if (value == -1 && PyErr_Occurred()) return PyErr_Clear(), false;
    if (type == NPY_DOUBLE) return given(value, bits);
    if (type == NPY_CDOUBLE) return given(std::complex<double>(value), bits);
    if (std::fabs(value) > (type == NPY_HALF ? HALF_MAX : FLT_MAX) && std::isfinite(value)) return false;  // it would warn
    if (type == NPY_FLOAT) return given(float(value), bits);
    if (type == NPY_CFLOAT) return given(std::complex<float>(float(value)), bits);
    if (type == NPY_HALF) return PyArray_Pack(a, &bits, number) == 0 || (PyErr_Clear(), false);
    return is_bf16(a) && given(narrow(float(value)), bits);
}

FW_BIND(m) {
    m.def("filled_array", &filled_array, nb::arg("x"), nb::arg("number").none());
    if (PyModule_AddFunctions(m.ptr(), making) < 0) throw nb::python_error();
}

}  // namespace fw::tensors
