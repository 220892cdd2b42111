// Numbers drawn under a key, as NumPy arrays.
#include "bind/random/state.h"
#include "random/slopes.h"
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

// By a key that is one word of the state.
nb::object philox_permutation(Array words, int64_t n) {
    State state(words);
    if (!state.usable || n < 1 || n >= int64_t(1) << 31) return not_implemented();
    nb::object made = keyed_permutation(n, random::draw_word(state.words));
    state.store();
    return made;
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

nb::object gamma_slopes(Array a, Array z) {
    if (!z.usable() || !a.usable() || a.type() != z.type() || !a.same_shape(z)) return not_implemented();
    InRows samples(z);
    return of_one(a, [&](const auto* from, auto* to, int64_t n) {
        using T = typename std::remove_pointer<decltype(to)>::type;
        random::gamma_slopes(from, samples.data<T>(), to, n);
        return true;
    });
}

// x and a (*, parts), their sums (*, 1)
nb::object dirichlet_slopes(Array x, Array a, Array total) {
    if (!x.usable() || !a.usable() || !total.usable() || a.type() != x.type() || total.type() != x.type() || !a.same_shape(x) ||
        !x.ndim() || total.ndim() != x.ndim() || total.shape(x.ndim() - 1) != 1 || !x.size() ||
        !std::equal(x.shape(), x.shape() + x.ndim() - 1, total.shape()))
        return not_implemented();
    InRows own(a), sums(total);
    const int64_t parts = x.shape(x.ndim() - 1);
    return of_one(x, [&](const auto* from, auto* to, int64_t n) {
        using T = typename std::remove_pointer<decltype(to)>::type;
        random::dirichlet_slopes(from, own.data<T>(), sums.data<T>(), to, n / parts, parts);
        return true;
    });
}

// The same by a key that is one word of the state; no word is drawn where a parameter is none.
template <class F> nb::object by_state(Array given, F&& draw) {
    State state(given);
    if (!state.usable) return not_implemented();
    nb::object made = draw(random::draw_word(state.words));
    if (made.ptr() != Py_NotImplemented) state.store();
    return made;
}

nb::object philox_poisson(Array state, Array x, double most) {
    return x.usable() && x.size() ? by_state(state, [&](uint64_t key) { return poisson_numbers(x, key, most); }) : not_implemented();
}

nb::object philox_binomial(Array state, Array counts, Array chances) {
    if (!counts.usable() || !counts.size()) return not_implemented();
    return by_state(state, [&](uint64_t key) { return binomial_numbers(counts, chances, key); });
}

}  // namespace

FW_BIND(m) {
    m.def("gamma_slopes", &gamma_slopes, nb::arg("x"), nb::arg("y"));
    m.def("dirichlet_slopes", &dirichlet_slopes, nb::arg("x"), nb::arg("y"), nb::arg("w"));
    m.def("philox_poisson", &philox_poisson);
    m.def("philox_binomial", &philox_binomial);
    m.def("keyed_integers", &keyed_integers);
    m.def("keyed_permutation", &keyed_permutation);
    m.def("philox_permutation", &philox_permutation);
    m.def("within", &within);
    m.def("gamma_numbers", &gamma_numbers);
    m.def("dirichlet_rows", &dirichlet_rows);
    m.def("poisson_numbers", &poisson_numbers);
    m.def("angles", &angles);
    m.def("binomial_numbers", &binomial_numbers);
}

}  // namespace fw
