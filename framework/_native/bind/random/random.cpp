// Random NumPy arrays, and dropout.
#include <algorithm>

#include "bind/array.h"
#include "random/draws.h"

namespace fw {
namespace {

// The state that an array holds, copied and checked as such: others may write into the array.
struct State {
    Array array;
    uint64_t words[random::STATE_WORDS];
    bool usable;
    explicit State(Array& a) : array(a) {
        usable = a.usable() && a.type() == NPY_UINT64 && a.contiguous() && a.writeable() && a.size() == random::STATE_WORDS;
        if (!usable) return;
        std::copy_n(a.data<uint64_t>(), random::STATE_WORDS, words);
        usable = random::is_state(words);
    }
    void store() { std::copy_n(words, random::STATE_WORDS, array.data<uint64_t>()); }
};

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
    m.def("philox_picks", &philox_picks);
    m.def("dropout", &dropout, nb::arg("x"), nb::kw_only(), nb::arg("p"), nb::arg("key"));
}

}  // namespace fw
