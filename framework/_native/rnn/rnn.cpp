// Recurrent sequences: a layer in one direction, all steps (ops/sequence/rnn.py).

#include "rnn/rnn_cells.h"

namespace fw {
namespace rnn {
namespace {

// b_ih + b_hh in the first `both` columns and b_ih in the others; null without biases
template <class T> struct Bias {
    std::vector<T> sum;
    Bias(const Operands& o, int64_t both) {
        if (o.b_ih.none || o.b_hh.none) return;
        const T *one = o.b_ih.data<T>(), *other = o.b_hh.data<T>();
        sum.assign(one, one + o.gates * o.width);
        for (int64_t j = 0; j < both; ++j) sum[size_t(j)] += other[j];
    }
    const T* data() const { return sum.empty() ? nullptr : sum.data(); }
};

// What the gates of all steps get from the inputs, in rows of `row` numbers.
template <class T> void from_inputs(const Operands& o, const T* bias, T* to, int64_t row) {
    Gemm<T> g = {};
    g.m = o.steps.rows, g.n = o.gates * o.width, g.k = o.in;
    g.a = o.x.data<T>(), g.a_row = o.in, g.a_col = 1;
    g.b = o.w_ih.data<T>(), g.b_row = 1, g.b_col = o.in;
    g.c = to, g.c_row = row;
    if (bias) g.finish = finish<T, Identity>(nullptr, bias);
    gemm(g);
}

template <class T> Panels<T> state_weights(const Operands& o) {
    return Panels<T>(o.w_hh.data<T>(), o.gates, o.width, o.width, o.width, 1);
}

int64_t bytes(const Operands& o) { return o.steps.rows * o.gates * o.width * o.width; }  // as long as so many take

template <class T, bool Rectified> nb::object plain(const Operands& o) {
    NewArray y = matrix(o.steps.rows, o.width, o.x.a.type()), h = like(o.h0.a);
    {
        Release release(bytes(o));
        T* a = y.data<T>();
        from_inputs<T>(o, Bias<T>(o, o.width).data(), a, o.width);
        forward(o.steps, state_weights<T>(o), Plain<T, Rectified>{o.steps, a, o.width}, o.h0.data<T>(), a, o.width);
        final_states(o.steps, a, h.data<T>(), o.width);
    }
    return nb::make_tuple(give(y), give(h));
}

template <class T> nb::object lstm_of(const Operands& o, const InRows& c0) {
    int type = o.x.a.type();
    NewArray y = matrix(o.steps.rows, o.width, type), h = like(o.h0.a), c = like(o.h0.a);
    NewArray gates = matrix(o.steps.rows, 4 * o.width, type), cells = like(y);
    {
        Release release(bytes(o));
        T* a = gates.data<T>();
        std::memcpy(c.data<T>(), c0.data<T>(), size_t(c.size()) * sizeof(T));
        from_inputs<T>(o, Bias<T>(o, 4 * o.width).data(), a, 4 * o.width);
        Lstm<T> cell{o.steps, a, cells.data<T>(), y.data<T>(), c.data<T>(), o.width};
        forward(o.steps, state_weights<T>(o), cell, o.h0.data<T>(), y.data<T>(), o.width);
        final_states(o.steps, y.data<T>(), h.data<T>(), o.width);
    }
    return nb::make_tuple(give(y), give(h), give(c), give(gates), give(cells));
}

template <class T> nb::object gru_of(const Operands& o) {
    NewArray y = matrix(o.steps.rows, o.width, o.x.a.type()), h = like(o.h0.a);
    NewArray gates = matrix(o.steps.rows, 4 * o.width, o.x.a.type());
    {
        Release release(bytes(o));
        from_inputs<T>(o, Bias<T>(o, 2 * o.width).data(), gates.data<T>(), 4 * o.width);
        const T* b_n = o.b_hh.none ? nullptr : o.b_hh.data<T>() + 2 * o.width;
        Gru<T> cell{o.steps, gates.data<T>(), o.h0.data<T>(), b_n, y.data<T>(), o.width};
        forward(o.steps, state_weights<T>(o), cell, o.h0.data<T>(), y.data<T>(), o.width);
        final_states(o.steps, y.data<T>(), h.data<T>(), o.width);
    }
    return nb::make_tuple(give(y), give(h), give(gates));
}

nb::object rnn(const Array& x, const Array& h0, const Array& w_ih, const Array& w_hh, nb::object b_ih, nb::object b_hh,
               nb::tuple sizes, bool reverse, bool relu) {
    if (!Operands::takes(x, {&x, &h0, &w_ih, &w_hh})) return not_implemented();
    Operands o(x, h0, w_ih, w_hh, b_ih, b_hh, sizes, reverse, 1);
    if (!o.fits()) return not_implemented();
    if (relu) return x.is<float>() ? plain<float, true>(o) : plain<double, true>(o);
    return x.is<float>() ? plain<float, false>(o) : plain<double, false>(o);
}

nb::object lstm(const Array& x, const Array& h0, const Array& c0, const Array& w_ih, const Array& w_hh, nb::object b_ih,
                nb::object b_hh, nb::tuple sizes, bool reverse) {
    if (!Operands::takes(x, {&x, &h0, &c0, &w_ih, &w_hh}) || !c0.same_shape(h0)) return not_implemented();
    Operands o(x, h0, w_ih, w_hh, b_ih, b_hh, sizes, reverse, 4);
    if (!o.fits()) return not_implemented();
    return x.is<float>() ? lstm_of<float>(o, InRows(c0)) : lstm_of<double>(o, InRows(c0));
}

nb::object gru(const Array& x, const Array& h0, const Array& w_ih, const Array& w_hh, nb::object b_ih, nb::object b_hh,
               nb::tuple sizes, bool reverse) {
    if (!Operands::takes(x, {&x, &h0, &w_ih, &w_hh})) return not_implemented();
    Operands o(x, h0, w_ih, w_hh, b_ih, b_hh, sizes, reverse, 3);
    if (!o.fits()) return not_implemented();
    return x.is<float>() ? gru_of<float>(o) : gru_of<double>(o);
}

}  // namespace
}  // namespace rnn

FW_BIND(m) {
    m.def("rnn", &rnn::rnn, nb::arg("x"), nb::arg("h0"), nb::arg("w_ih"), nb::arg("w_hh"), nb::arg("b_ih").none(),
          nb::arg("b_hh").none(), nb::arg("sizes"), nb::arg("reverse"), nb::arg("relu"));
    m.def("lstm", &rnn::lstm, nb::arg("x"), nb::arg("h0"), nb::arg("c0"), nb::arg("w_ih"), nb::arg("w_hh"),
          nb::arg("b_ih").none(), nb::arg("b_hh").none(), nb::arg("sizes"), nb::arg("reverse"));
    m.def("gru", &rnn::gru, nb::arg("x"), nb::arg("h0"), nb::arg("w_ih"), nb::arg("w_hh"), nb::arg("b_ih").none(),
          nb::arg("b_hh").none(), nb::arg("sizes"), nb::arg("reverse"));
}

}  // namespace fw
