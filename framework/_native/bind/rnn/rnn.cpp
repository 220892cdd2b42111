// Recurrent sequences of NumPy arrays: a layer in one direction, all steps (ops/sequence/rnn.py).
#include "bind/rnn/arrays.h"

namespace fw {
namespace rnn {
namespace {

template <class T> nb::object plain(const Operands& o, const Given& packed, bool rectified) {
    NewArray y = matrix(o.steps.rows, o.width, o.x.a.type()), h = like(o.h0.a);
    {
        Release release(o.bytes());
        rnn_forward(o.sequence<T>(packed.data<T>()), rectified, y.data<T>(), h.data<T>());
    }
    return nb::make_tuple(give(y), give(h));
}

template <class T> nb::object lstm_of(const Operands& o, const Given& packed, const InRows& c0) {
    int type = o.x.a.type();
    NewArray y = matrix(o.steps.rows, o.width, type), h = like(o.h0.a), c = like(o.h0.a);
    NewArray gates = matrix(o.steps.rows, 4 * o.width, type), cells = like(y);
    {
        Release release(o.bytes());
        std::memcpy(c.data<T>(), c0.data<T>(), size_t(c.size()) * sizeof(T));
        lstm_forward(o.sequence<T>(packed.data<T>()), y.data<T>(), h.data<T>(), c.data<T>(), gates.data<T>(), cells.data<T>());
    }
    return nb::make_tuple(give(y), give(h), give(c), give(gates), give(cells));
}

template <class T> nb::object gru_of(const Operands& o, const Given& packed) {
    NewArray y = matrix(o.steps.rows, o.width, o.x.a.type()), h = like(o.h0.a);
    NewArray gates = matrix(o.steps.rows, 4 * o.width, o.x.a.type());
    {
        Release release(o.bytes());
        gru_forward(o.sequence<T>(packed.data<T>()), y.data<T>(), h.data<T>(), gates.data<T>());
    }
    return nb::make_tuple(give(y), give(h), give(gates));
}

// Whether there are no panels, or as many numbers as these weights have in panels.
bool serves(const Operands& o, const Given& packed) {
    if (packed.none) return true;
    return packed.fits(o.x.a, o.x.a.is<float>() ? o.sequence<float>().packed_numbers(o.gates)
                                                : o.sequence<double>().packed_numbers(o.gates));
}

template <class T> nb::object panels_of(const Operands& o) {
    const Sequence<T> s = o.sequence<T>();
    npy_intp size = s.packed_numbers(o.gates);
    NewArray to = new_array(1, &size, o.x.a.type());
    {
        Release release(o.bytes());
        s.pack(o.gates, to.data<T>());
    }
    return give(to);
}

// The weights of one step as `packed` wants them, for many such steps.
nb::object recurrent_panels(const Array& x, const Array& h0, const Array& w_ih, const Array& w_hh) {
    if (!Operands::takes(x, {&x, &h0, &w_ih, &w_hh}) || x.shape(0) > INT32_MAX) return not_implemented();
    const int64_t gates = w_hh.shape(0) / h0.shape(1);
    if (gates != 1 && gates != 3 && gates != 4) return not_implemented();
    const Operands o(x, h0, w_ih, w_hh, nb::none(), nb::none(), nb::make_tuple(x.shape(0)), false, gates);
    if (!o.fits()) return not_implemented();
    return x.is<float>() ? panels_of<float>(o) : panels_of<double>(o);
}

nb::object rnn(const Array& x, const Array& h0, const Array& w_ih, const Array& w_hh, nb::object b_ih, nb::object b_hh,
               nb::tuple sizes, bool reverse, bool relu, nb::object packed, bool rounded) {
    if (!Operands::takes(x, {&x, &h0, &w_ih, &w_hh})) return not_implemented();
    Operands o(x, h0, w_ih, w_hh, b_ih, b_hh, sizes, reverse, 1);
    const Given ready(packed);
    if (!o.fits() || !serves(o, ready) || !o.may_round(rounded)) return not_implemented();
    return x.is<float>() ? plain<float>(o, ready, relu) : plain<double>(o, ready, relu);
}

nb::object lstm(const Array& x, const Array& h0, const Array& c0, const Array& w_ih, const Array& w_hh, nb::object b_ih,
                nb::object b_hh, nb::tuple sizes, bool reverse, nb::object packed, bool rounded) {
    if (!Operands::takes(x, {&x, &h0, &c0, &w_ih, &w_hh}) || !c0.same_shape(h0)) return not_implemented();
    Operands o(x, h0, w_ih, w_hh, b_ih, b_hh, sizes, reverse, 4);
    const Given ready(packed);
    if (!o.fits() || !serves(o, ready) || !o.may_round(rounded)) return not_implemented();
    return x.is<float>() ? lstm_of<float>(o, ready, InRows(c0)) : lstm_of<double>(o, ready, InRows(c0));
}

nb::object gru(const Array& x, const Array& h0, const Array& w_ih, const Array& w_hh, nb::object b_ih, nb::object b_hh,
               nb::tuple sizes, bool reverse, nb::object packed, bool rounded) {
    if (!Operands::takes(x, {&x, &h0, &w_ih, &w_hh})) return not_implemented();
    Operands o(x, h0, w_ih, w_hh, b_ih, b_hh, sizes, reverse, 3);
    const Given ready(packed);
    if (!o.fits() || !serves(o, ready) || !o.may_round(rounded)) return not_implemented();
    return x.is<float>() ? gru_of<float>(o, ready) : gru_of<double>(o, ready);
}

}  // namespace
}  // namespace rnn

FW_BIND(m) {
    m.def("recurrent_panels", &rnn::recurrent_panels, nb::arg("x"), nb::arg("h0"), nb::arg("w_ih"), nb::arg("w_hh"));
    m.def("rnn", &rnn::rnn, nb::arg("x"), nb::arg("h0"), nb::arg("w_ih"), nb::arg("w_hh"), nb::arg("b_ih").none(),
          nb::arg("b_hh").none(), nb::arg("sizes"), nb::arg("reverse"), nb::arg("relu"), nb::arg("packed") = nb::none(), nb::arg("rounded") = false);
    m.def("lstm", &rnn::lstm, nb::arg("x"), nb::arg("h0"), nb::arg("c0"), nb::arg("w_ih"), nb::arg("w_hh"),
          nb::arg("b_ih").none(), nb::arg("b_hh").none(), nb::arg("sizes"), nb::arg("reverse"),
          nb::arg("packed") = nb::none(), nb::arg("rounded") = false);
    m.def("gru", &rnn::gru, nb::arg("x"), nb::arg("h0"), nb::arg("w_ih"), nb::arg("w_hh"), nb::arg("b_ih").none(),
          nb::arg("b_hh").none(), nb::arg("sizes"), nb::arg("reverse"),
          nb::arg("packed") = nb::none(), nb::arg("rounded") = false);
}

}  // namespace fw
