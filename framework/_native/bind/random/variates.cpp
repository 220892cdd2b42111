// Numbers drawn under a key, as NumPy arrays.
#include "bind/array.h"
#include "random/variates.h"

namespace fw {
namespace {

// int64 numbers uniform in [low, low + range), where range 0 stands for 2**64
nb::object keyed_integers(std::vector<npy_intp> shape, uint64_t key, int64_t low, uint64_t range) {
    NewArray out = new_array(int(shape.size()), shape.data(), NPY_INT64);
    {
        Release release(out.size() * 8);
        random::keyed_integers(key, out.data<int64_t>(), out.size(), low, range);
    }
    return give(out);
}

nb::object keyed_permutation(int64_t n, uint64_t key) {
    if (n >= int64_t(1) << 31) return not_implemented();
    const npy_intp shape[] = {npy_intp(n)};
    NewArray out = new_array(1, shape, NPY_INT64);
    {
        Release release(n * 16);
        random::keyed_permutation(key, out.data<int64_t>(), n);
    }
    return give(out);
}

}  // namespace

FW_BIND(m) {
    m.def("keyed_integers", &keyed_integers);
    m.def("keyed_permutation", &keyed_permutation);
}

}  // namespace fw
