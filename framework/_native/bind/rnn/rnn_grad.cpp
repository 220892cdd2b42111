// Backward of recurrent sequences of NumPy arrays.
#include "bind/rnn/arrays.h"
#include "rnn/rnn_grad.h"

namespace fw {
namespace rnn {
namespace {

// An argument that may be None, in rows.
struct OptionalRows {
    Array given;
    nb::object owner;
    bool none;
    explicit OptionalRows(nb::handle h) : given(nb::cast<Array>(h)), none(h.is_none()) {}
    bool fits(const Array& x, int64_t rows, int64_t cols) const {
        return none || (given.usable() && given.type() == x.type() && given.ndim() == 2 && given.shape(0) == rows &&
                        given.shape(1) == cols);
    }
    template <class T> const T* data() {
        if (none) return nullptr;
        if (given.contiguous()) return given.data<T>();
        InRows copy(given);
        owner = copy.owner, given = copy.a;
        return given.data<T>();
    }
};

struct Wanted {
    bool x, h0, w_ih, w_hh, b_ih, b_hh;
    Wanted(const nb::tuple& given, int states) {
        if (int(given.size()) < 5 + states) throw nb::value_error("wanted: a truth value for each argument");
        auto at = [&](int i) { return nb::cast<bool>(given[size_t(i)]); };
        x = at(0), h0 = at(1), w_ih = at(1 + states), w_hh = at(2 + states), b_ih = at(3 + states),
        b_hh = at(4 + states);
    }
};

// What backward returns, and what it works in. Arrays are made before the work, without other threads of Python.
template <class T> struct Results {
    const Operands& o;
    Wanted wanted;
    bool with_cell;
    NewArray x, h0, c0, w_ih, w_hh, b_ih, b_hh;
    nb::object d_owner, state_owner, before_owner;
    T *d, *d_state, *before = nullptr;

    Results(const Operands& o, const Wanted& wanted, bool with_cell, bool parted)
        : o(o), wanted(wanted), with_cell(with_cell) {
        int64_t many = o.gates * o.width;
        x = wanted.x ? like(o.x.a) : none();
        h0 = like(o.h0.a), c0 = with_cell ? like(o.h0.a) : none();
        w_ih = wanted.w_ih ? like(o.w_ih.a) : none();
        w_hh = wanted.w_hh ? like(o.w_hh.a) : none();
        b_ih = vector(many), b_hh = vector(many);
        d = work(d_owner, o.steps.rows, many);
        d_state = parted ? work(state_owner, o.steps.rows, many) : d;
        if (wanted.w_hh && o.steps.count() > 1) before = work(before_owner, o.steps.rows, o.width);
    }

    NewArray none() const { return vector(0); }
    NewArray vector(int64_t n) const {
        npy_intp shape = n;
        return new_array(1, &shape, o.x.a.type());
    }
    T* work(nb::object& owner, int64_t rows, int64_t cols) const {
        NewArray a = matrix(rows, cols, o.x.a.type());
        owner = give(a);
        return a.data<T>();
    }

    Gradients<T> memory() const {
        auto where = [](bool wanted, const Array& a) { return wanted ? a.data<T>() : nullptr; };
        return {where(wanted.x, x), where(wanted.w_ih, w_ih), where(wanted.w_hh, w_hh), h0.data<T>(), where(with_cell, c0),
                b_ih.data<T>(), b_hh.data<T>(), wanted.h0, d, d_state, before};
    }

    nb::object tuple() {
        nb::object all[] = {give(x), give(h0), give(c0), give(w_ih), give(w_hh), give(b_ih), give(b_hh)};
        if (!wanted.b_ih) all[5] = give(none());
        if (!wanted.b_hh) all[6] = give(none());
        if (with_cell) return nb::make_tuple(all[0], all[1], all[2], all[3], all[4], all[5], all[6]);
        return nb::make_tuple(all[0], all[1], all[3], all[4], all[5], all[6]);
    }
};

template <class T>
nb::object plain(const Operands& o, bool rectified, const Wanted& wanted, OptionalRows& gy, OptionalRows& gh,
                 const InRows& y) {
    Results<T> r(o, wanted, false, false);
    const T *from_y = gy.data<T>(), *from_h = gh.data<T>();
    {
        Release release(o.bytes());
        rnn_backward(o.sequence<T>(), rectified, from_y, from_h, y.data<T>(), r.memory());
    }
    return r.tuple();
}

template <class T>
nb::object lstm_of(const Operands& o, const Wanted& wanted, OptionalRows& gy, OptionalRows& gh, OptionalRows& gc,
                   const InRows& c0, const InRows& y, const InRows& gates, const InRows& cells) {
    Results<T> r(o, wanted, true, false);
    const T *from_y = gy.data<T>(), *from_h = gh.data<T>(), *from_c = gc.data<T>();
    {
        Release release(o.bytes());
        lstm_backward(o.sequence<T>(), from_y, from_h, from_c, c0.data<T>(), y.data<T>(), gates.data<T>(), cells.data<T>(),
                      r.memory());
    }
    return r.tuple();
}

template <class T>
nb::object gru_of(const Operands& o, const Wanted& wanted, OptionalRows& gy, OptionalRows& gh, const InRows& y,
                  const InRows& gates) {
    Results<T> r(o, wanted, false, true);
    const T *from_y = gy.data<T>(), *from_h = gh.data<T>();
    {
        Release release(o.bytes());
        gru_backward(o.sequence<T>(), from_y, from_h, y.data<T>(), gates.data<T>(), r.memory());
    }
    return r.tuple();
}

bool kept(const Array& a, const Operands& o, int64_t cols) {
    return a.shape(0) == o.steps.rows && a.shape(1) == cols * o.width;
}

nb::object rnn_grad(nb::object gy, nb::object gh, const Array& x, const Array& h0, const Array& w_ih, const Array& w_hh,
                    nb::object b_ih, nb::object b_hh, const Array& y, nb::tuple sizes, bool reverse, bool relu,
                    nb::tuple wanted, bool rounded) {
    if (!Operands::takes(x, {&x, &h0, &w_ih, &w_hh, &y})) return not_implemented();
    Operands o(x, h0, w_ih, w_hh, b_ih, b_hh, sizes, reverse, 1);
    OptionalRows from_y(gy), from_h(gh);
    if (!o.fits() || !o.may_round(rounded) || !kept(y, o, 1) || !from_y.fits(x, o.steps.rows, o.width) ||
        !from_h.fits(x, o.steps.most, o.width))
        return not_implemented();
    Wanted w(wanted, 1);
    InRows out(y);
    return x.is<float>() ? plain<float>(o, relu, w, from_y, from_h, out) : plain<double>(o, relu, w, from_y, from_h, out);
}

nb::object lstm_grad(nb::object gy, nb::object gh, nb::object gc, const Array& x, const Array& h0, const Array& c0,
                     const Array& w_ih, const Array& w_hh, nb::object b_ih, nb::object b_hh, const Array& y,
                     const Array& gates, const Array& cells, nb::tuple sizes, bool reverse, nb::tuple wanted, bool rounded) {
    if (!Operands::takes(x, {&x, &h0, &c0, &w_ih, &w_hh, &y, &gates, &cells}) || !c0.same_shape(h0))
        return not_implemented();
    Operands o(x, h0, w_ih, w_hh, b_ih, b_hh, sizes, reverse, 4);
    OptionalRows from_y(gy), from_h(gh), from_c(gc);
    if (!o.fits() || !o.may_round(rounded) || !kept(y, o, 1) || !kept(gates, o, 4) || !kept(cells, o, 1) ||
        !from_y.fits(x, o.steps.rows, o.width) || !from_h.fits(x, o.steps.most, o.width) ||
        !from_c.fits(x, o.steps.most, o.width))
        return not_implemented();
    Wanted w(wanted, 2);
    InRows c(c0), out(y), a(gates), b(cells);
    return x.is<float>() ? lstm_of<float>(o, w, from_y, from_h, from_c, c, out, a, b)
                         : lstm_of<double>(o, w, from_y, from_h, from_c, c, out, a, b);
}

nb::object gru_grad(nb::object gy, nb::object gh, const Array& x, const Array& h0, const Array& w_ih, const Array& w_hh,
                    nb::object b_ih, nb::object b_hh, const Array& y, const Array& gates, nb::tuple sizes, bool reverse,
                    nb::tuple wanted, bool rounded) {
    if (!Operands::takes(x, {&x, &h0, &w_ih, &w_hh, &y, &gates})) return not_implemented();
    Operands o(x, h0, w_ih, w_hh, b_ih, b_hh, sizes, reverse, 3);
    OptionalRows from_y(gy), from_h(gh);
    if (!o.fits() || !o.may_round(rounded) || !kept(y, o, 1) || !kept(gates, o, 4) || !from_y.fits(x, o.steps.rows, o.width) ||
        !from_h.fits(x, o.steps.most, o.width))
        return not_implemented();
    Wanted w(wanted, 1);
    InRows out(y), a(gates);
    return x.is<float>() ? gru_of<float>(o, w, from_y, from_h, out, a) : gru_of<double>(o, w, from_y, from_h, out, a);
}

}  // namespace
}  // namespace rnn

FW_BIND(m) {
    m.def("rnn_grad", &rnn::rnn_grad, nb::arg("gy").none(), nb::arg("gh").none(), nb::arg("x"), nb::arg("h0"),
          nb::arg("w_ih"), nb::arg("w_hh"), nb::arg("b_ih").none(), nb::arg("b_hh").none(), nb::arg("y"),
          nb::arg("sizes"), nb::arg("reverse"), nb::arg("relu"), nb::arg("wanted"), nb::arg("rounded") = false);
    m.def("lstm_grad", &rnn::lstm_grad, nb::arg("gy").none(), nb::arg("gh").none(), nb::arg("gc").none(), nb::arg("x"),
          nb::arg("h0"), nb::arg("c0"), nb::arg("w_ih"), nb::arg("w_hh"), nb::arg("b_ih").none(),
          nb::arg("b_hh").none(), nb::arg("y"), nb::arg("gates"), nb::arg("cells"), nb::arg("sizes"),
          nb::arg("reverse"), nb::arg("wanted"), nb::arg("rounded") = false);
    m.def("gru_grad", &rnn::gru_grad, nb::arg("gy").none(), nb::arg("gh").none(), nb::arg("x"), nb::arg("h0"),
          nb::arg("w_ih"), nb::arg("w_hh"), nb::arg("b_ih").none(), nb::arg("b_hh").none(), nb::arg("y"),
          nb::arg("gates"), nb::arg("sizes"), nb::arg("reverse"), nb::arg("wanted"), nb::arg("rounded") = false);
}

}  // namespace fw
