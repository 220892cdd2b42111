// Random NumPy arrays, and dropout.
#include <algorithm>

#include "bind/random/state.h"
#include "random/variates.h"

namespace fw {
namespace {

// An array that draw(words, data, size) fills.
template <class T, class F> nb::object drawn(Array& given, const std::vector<npy_intp>& shape, F&& draw) {
    State state(given);
    if (!state.usable) return not_implemented();
    NewArray out = new_array(int(shape.size()), shape.data(), type_number<T>);
    {
        Release release(out.size() * int64_t(sizeof(T)));
        draw(state.words, out.data<T>(), out.size());
    }
    state.store();
    return give(out);
}

nb::object philox_word(Array given) {
    State state(given);
    if (!state.usable) return not_implemented();
    const uint64_t word = random::draw_word(state.words);
    state.store();
    return nb::int_(word);
}

nb::object philox_uniform(Array state, std::vector<npy_intp> shape, bool wide) {
    return wide ? drawn<double>(state, shape, random::draw_uniform<double>)
                : drawn<float>(state, shape, random::draw_uniform<float>);
}

nb::object philox_normal(Array state, std::vector<npy_intp> shape, bool wide) {
    return wide ? drawn<double>(state, shape, random::draw_normal<double>)
                : drawn<float>(state, shape, random::draw_normal<float>);
}

// int64 numbers uniform in [low, low + range).
nb::object philox_integers(Array state, std::vector<npy_intp> shape, int64_t low, uint64_t range) {
    double n = 1;
    for (npy_intp d : shape) n *= double(d);
    if (!random::takes_range(low, range, n)) return not_implemented();
    return drawn<int64_t>(state, shape, [&](uint64_t* words, int64_t* out, int64_t size) {
        random::draw_integers(words, out, size, low, range);
    });
}

// The same by a key, which is one word of the state; range 0 stands for 2**64.
nb::object philox_keyed(Array state, std::vector<npy_intp> shape, int64_t low, uint64_t range) {
    return drawn<int64_t>(state, shape, [&](uint64_t* words, int64_t* out, int64_t size) {
        random::keyed_integers(random::draw_word(words), out, size, low, range);
    });
}

template <class T> nb::object picked(State& state, const Array& weights, const T* w, int64_t k, bool again) {
    const int last = weights.ndim() - 1;
    const int64_t n = weights.shape(last), rows = n ? weights.size() / n : 0;
    if (!rows || k < 1 || k > n + (again ? INT32_MAX : 0) || !random::can_pick(w, rows, n, k, again)) return not_implemented();
    npy_intp shape[2] = {weights.shape(0), weights.shape(0)}, of_draws[2] = {npy_intp(rows), npy_intp(again ? k : n)};
    shape[last] = k;
    if (!countable(of_draws, 2)) return not_implemented();
    NewArray out = new_array(last + 1, shape, NPY_INT64), draws = new_array(2, of_draws, NPY_DOUBLE);
    nb::object result = give(out), held = give(draws);
    {
        Release release(weights.size() * 16);
        random::draw_uniform<double>(state.words, draws.data<double>(), draws.size());
        random::pick(w, rows, n, draws.data<double>(), out.data<int64_t>(), k, again);
    }
    state.store();
    return result;
}

// k positions of each row of weights, again: each as often as it comes.
nb::object philox_picks(Array given, Array weights, int64_t k, bool again) {
    State state(given);
    if (!state.usable || !weights.is_float() || (weights.ndim() != 1 && weights.ndim() != 2)) return not_implemented();
    const InRows rows(weights);
    return weights.is<float>() ? picked(state, weights, rows.data<float>(), k, again)
                               : picked(state, weights, rows.data<double>(), k, again);
}

// 1 with these probabilities, else 0.
template <class T> nb::object tossed(State& state, const Array& chances, const T* p) {
    if (!random::within(p, chances.size(), 0.0, 1.0, false)) return not_implemented();
    NewArray out = like(chances);
    nb::object result = give(out);
    {
        Release release(out.size() * int64_t(sizeof(T)));
        random::draw_coins(state.words, p, out.data<T>(), out.size());
    }
    state.store();
    return result;
}

nb::object philox_coins(Array given, Array chances) {
    State state(given);
    if (!state.usable || !chances.is_float() || !chances.size() || chances.size() >= 1 << 18) return not_implemented();
    const InRows rows(chances);
    return chances.is<float>() ? tossed(state, chances, rows.data<float>()) : tossed(state, chances, rows.data<double>());
}

nb::object dropout(Array x, double p, uint64_t key) {
    if (!x.is_float() || !(p >= 0 && p <= 1)) return not_implemented();
    InRows rows(x);
    NewArray out = like(x);
    {
        Release release(x.size() * 4);
        if (x.is<float>()) random::drop(rows.data<float>(), out.data<float>(), x.size(), p, key);
        else random::drop(rows.data<double>(), out.data<double>(), x.size(), p, key);
    }
    return give(out);
}

}  // namespace

FW_BIND(m) {
    m.def("philox_word", &philox_word);
    m.def("philox_uniform", &philox_uniform);
    m.def("philox_normal", &philox_normal);
    m.def("philox_integers", &philox_integers);
    m.def("philox_keyed", &philox_keyed);
    m.def("philox_picks", &philox_picks);
    m.def("philox_coins", &philox_coins);
    m.def("dropout", &dropout, nb::arg("x"), nb::kw_only(), nb::arg("p"), nb::arg("key"));
}

}  // namespace fw
