// Keys that are tuples of tensors of positions, read in one go.
#include "bind/tensors/tensors.h"

namespace fw::tensors {
namespace {

// The positions of a key of one tensor for each of the first dimensions of x, as one array (number of tensors, their shape).
// not_implemented() for other keys, positions that are not there, and none at all.
nb::object stacked_positions(nb::handle key, Array x) {
    if (!x.usable() || !PyTuple_CheckExact(key.ptr())) return not_implemented();
    const Py_ssize_t n = PyTuple_GET_SIZE(key.ptr());
    if (n < 1 || n > x.ndim()) return not_implemented();
    NewArray out;
    int64_t each = 0;
    for (Py_ssize_t i = 0; i < n; ++i) {
        PyArrayObject* given = array_of(PyTuple_GET_ITEM(key.ptr(), i));
        if (!given || !PyArray_ISBEHAVED_RO(given)) return not_implemented();
        const Array a{given};
        if (!a.is<int64_t>() || a.ndim() == 0 || a.ndim() + 1 >= NPY_MAXDIMS || !a.contiguous()) return not_implemented();
        if (i == 0) {
            npy_intp shape[NPY_MAXDIMS] = {n};
            std::copy(a.shape(), a.shape() + a.ndim(), shape + 1);
            each = a.size();
            if (!each) return not_implemented();
            out = new_array(a.ndim() + 1, shape, NPY_INT64);
        } else if (a.ndim() != out.ndim() - 1 || !std::equal(a.shape(), a.shape() + a.ndim(), out.shape() + 1)) {
            return not_implemented();
        }
        const int64_t size = x.shape(int(i)), *from = a.data<int64_t>();
        int64_t* to = out.data<int64_t>() + i * each;
        bool good = true;
        for (int64_t k = 0; k < each; ++k) {
            to[k] = from[k];
            good &= to[k] >= -size && to[k] < size;
        }
        if (!good) return not_implemented();
    }
    return give(out);
}

}  // namespace

FW_BIND(m) { m.def("stacked_positions", &stacked_positions, nb::arg("key"), nb::arg("x")); }

}  // namespace fw::tensors
