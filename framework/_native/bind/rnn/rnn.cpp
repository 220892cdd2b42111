// Recurrent sequences of NumPy arrays: a layer in one direction, all steps (ops/sequence/rnn.py).
#include "bind/rnn/arrays.h"

namespace fw {
namespace rnn {
namespace {

template <class T> nb::object plain(const Operands& o, bool rectified) {
    NewArray y = matrix(o.steps.rows, o.width, o.x.a.type()), h = like(o.h0.a);
    {
        Release release(o.bytes());
        rnn_forward(o.sequence<T>(), rectified, y.data<T>(), h.data<T>());
    }
    return nb::make_tuple(give(y), give(h));
}

template <class T> nb::object lstm_of(const Operands& o, const InRows& c0) {
    int type = o.x.a.type();
    NewArray y = matrix(o.steps.rows, o.width, type), h = like(o.h0.a), c = like(o.h0.a);
    NewArray gates = matrix(o.steps.rows, 4 * o.width, type), cells = like(y);
    {
        Release release(o.bytes());
        std::memcpy(c.data<T>(), c0.data<T>(), size_t(c.size()) * sizeof(T));
        lstm_forward(o.sequence<T>(), y.data<T>(), h.data<T>(), c.data<T>(), gates.data<T>(), cells.data<T>());
    }
    return nb::make_tuple(give(y), give(h), give(c), give(gates), give(cells));
}

template <class T> nb::object gru_of(const Operands& o) {
    NewArray y = matrix(o.steps.rows, o.width, o.x.a.type()), h = like(o.h0.a);
    NewArray gates = matrix(o.steps.rows, 4 * o.width, o.x.a.type());
    {
        Release release(o.bytes());
        gru_forward(o.sequence<T>(), y.data<T>(), h.data<T>(), gates.data<T>());
    }
    return nb::make_tuple(give(y), give(h), give(gates));
}

nb::object rnn(const Array& x, const Array& h0, const Array& w_ih, const Array& w_hh, nb::object b_ih, nb::object b_hh,
               nb::tuple sizes, bool reverse, bool relu) {
    if (!Operands::takes(x, {&x, &h0, &w_ih, &w_hh})) return not_implemented();
    Operands o(x, h0, w_ih, w_hh, b_ih, b_hh, sizes, reverse, 1);
    if (!o.fits()) return not_implemented();
    return x.is<float>() ? plain<float>(o, relu) : plain<double>(o, relu);
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
