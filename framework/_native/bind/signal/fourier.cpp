// Fourier transforms of NumPy arrays.
#include <cmath>
#include <string>

#include "bind/bf16_array.h"
#include "signal/fourier.h"

namespace fw::fourier {
namespace {

static_assert(NPY_MAXDIMS <= MOST_DIMS, "all arrays have few enough dimensions");

template <class S> nb::object transformed(const Array& x, const Transform& t, int real_type, int complex_type) {
    const bool halving = t.kind == TransformKind::forward_real, whole = t.kind == TransformKind::backward_real;
    if (halving != t.real_input && (halving || whole)) return not_implemented();
    const size_t last = size_t(t.dims.back());
    std::vector<npy_intp> shape(x.shape(), x.shape() + x.ndim());
    if (halving) shape[last] = t.size / 2 + 1;
    NewArray out = new_array(x.ndim(), shape.data(), complex_type), real;
    if (whole) {
        shape[last] = t.size;
        real = new_array(x.ndim(), shape.data(), real_type);
    }
    NewArray& result = whole ? real : out;
    const std::vector<TransformJob> jobs = t.jobs(view_of(x), view_of(out), view_of(result));
    {
        Release release(out.size() * int64_t(sizeof(S)) * 8);
        for (const TransformJob& job : jobs) run<S>(job);
    }
    return give(result);
}

// kind: fft, ifft, rfft or irfft. size: of the last of dims. norm: None, "backward", "ortho" or "forward".
nb::object fft(Array x, const std::string& kind, std::vector<int64_t> dims, int64_t size, nb::object norm) {
    if (!x.usable() || !x.size() || dims.empty() || size < 1) return not_implemented();
    const int type = x.type();
    const bool single = type == NPY_FLOAT || type == NPY_CFLOAT;
    if (!single && type != NPY_DOUBLE && type != NPY_CDOUBLE) return not_implemented();
    double total = 1;
    uint64_t seen = 0;
    for (size_t i = 0; i < dims.size(); ++i) {
        const int64_t d = dims[i];
        if (d < 0 || d >= x.ndim() || seen >> d & 1) return not_implemented();
        seen |= uint64_t(1) << d;
        const bool last = i + 1 == dims.size();
        const int64_t n = last ? size : x.shape(int(d)), had = kind == "irfft" && last ? n / 2 + 1 : n;
        if (!is_quick(n) || x.shape(int(d)) != had) return not_implemented();
        total *= double(n);
    }
    const std::string by = norm.is_none() ? "backward" : nb::cast<std::string>(norm);
    const bool inverse = kind[0] == 'i', real_input = type == NPY_FLOAT || type == NPY_DOUBLE;
    const double factor = by == "ortho" ? 1 / std::sqrt(total) : (by == "forward") != inverse ? 1 / total : 1;
    const Transform t{kind == "rfft" ? TransformKind::forward_real
                      : kind == "irfft" ? TransformKind::backward_real : TransformKind::complex,
                      inverse, real_input, std::move(dims), size, factor};
    if (single) return transformed<float>(x, t, NPY_FLOAT, NPY_CFLOAT);
    return transformed<double>(x, t, NPY_DOUBLE, NPY_CDOUBLE);
}

}  // namespace

FW_BIND(m) {
    m.def("fft", &fft, nb::arg("x"), nb::arg("kind"), nb::arg("dims"), nb::arg("size"), nb::arg("norm").none());
}

}  // namespace fw::fourier
