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

nb::object within(Array x, double low, double high, bool whole) {
    if (!x.is_float()) return not_implemented();
    InRows rows(x);
    return nb::bool_(x.is<float>() ? random::within(rows.data<float>(), x.size(), low, high, whole)
                                   : random::within(rows.data<double>(), x.size(), low, high, whole));
}

// draw(parameters, results, size) for an array of float or double; false: a parameter is none
template <class F> nb::object of_one(Array& x, F&& draw) {
    if (!x.is_float()) return not_implemented();
    InRows rows(x);
    NewArray out = like(x);
    bool good;
    {
        Release release(x.size() * 64);
        if (x.is<float>()) good = draw(rows.data<float>(), out.data<float>(), x.size());
        else good = draw(rows.data<double>(), out.data<double>(), x.size());
    }
    return good ? give(out) : not_implemented();
}

nb::object gamma_numbers(Array x, uint64_t key, double lowest) {
    return of_one(x, [=](const auto* from, auto* to, int64_t n) {
        random::gamma_numbers(key, from, to, n, lowest);
        return true;
    });
}

nb::object dirichlet_rows(Array x, uint64_t key, double lowest) {
    if (!x.is_float() || x.ndim() == 0) return not_implemented();
    const int64_t parts = x.shape(x.ndim() - 1);
    return of_one(x, [=](const auto* from, auto* to, int64_t n) {
        random::dirichlet_rows(key, from, to, parts ? n / parts : 0, parts, lowest);
        return true;
    });
}

nb::object poisson_numbers(Array x, uint64_t key, double most) {
    return of_one(x, [=](const auto* from, auto* to, int64_t n) { return random::poisson_numbers(key, from, to, n, most); });
}

nb::object angles(Array x, uint64_t key) {
    return of_one(x, [=](const auto* from, auto* to, int64_t n) { return random::angles(key, from, to, n); });
}

// counts and chances of one shape and dtype
nb::object binomial_numbers(Array counts, Array chances, uint64_t key) {
    if (!chances.usable() || !counts.usable() || counts.type() != chances.type() || !counts.same_shape(chances))
        return not_implemented();
    InRows others(chances);
    return of_one(counts, [&](const auto* from, auto* to, int64_t n) {
        using T = typename std::remove_pointer<decltype(to)>::type;
        return random::binomial_numbers(key, from, others.data<T>(), to, n);
    });
}

}  // namespace

FW_BIND(m) {
    m.def("keyed_integers", &keyed_integers);
    m.def("keyed_permutation", &keyed_permutation);
    m.def("within", &within);
    m.def("gamma_numbers", &gamma_numbers);
    m.def("dirichlet_rows", &dirichlet_rows);
    m.def("poisson_numbers", &poisson_numbers);
    m.def("angles", &angles);
    m.def("binomial_numbers", &binomial_numbers);
}

}  // namespace fw
