// Recurrent layers, attention, layer norms.
#include "rnn/sequences.h"

#include <memory>

#include "attention/attention.h"
#include "norm/layer.h"
#include "runtime/operations.h"

namespace fw::runtime {
namespace {

bool is_float(const Tensor& t) { return t.type == Type::float32 || t.type == Type::float64; }

constexpr int64_t MOST_STEPS = 1 << 24;

enum class CellLayer { plain, rectified, lstm, gru };

// x, h0, c0 of an LSTM, the weights of both, their biases
struct Recurrent {
    CellLayer layer;
    int64_t gates, width, in;
    const Tensor *x, *h0, *c0, *w_ih, *w_hh, *b_ih, *b_hh;
    const Tensor *y, *h, *c, *gates_now;
    std::shared_ptr<rnn::Steps> steps;
    std::shared_ptr<const RowsOf> of;  // where the inputs are a table's rows, of which the gates' part is computed once
    const Tensor* place;
};

template <class T> rnn::Sequence<T> sequence(const Recurrent& r, const void* packed) {
    auto numbers = [](const Tensor* t) { return t ? t->at<T>() : nullptr; };
    return {*r.steps, r.x->at<T>(), r.h0->at<T>(), r.w_ih->at<T>(), r.w_hh->at<T>(), numbers(r.b_ih), numbers(r.b_hh),
            r.in, r.width, static_cast<const T*>(packed)};
}

// Whether the inputs are rows of a table of which it pays to compute what the gates get, once and for all.
template <class T> bool by_table(const Recurrent& r, const RowsOf& of) {
    constexpr int64_t most = 4;  // the table's gates, in numbers of all weights
    for (const Tensor* t : {r.w_ih, r.w_hh, r.b_ih, r.b_hh})
        if (t && !t->constant()) return false;
    const int64_t rows = of.table->shape[0];
    return rows <= most * (r.in + r.width) && of.count() == r.steps->rows &&
           rnn::same_by_table(sequence<T>(r, nullptr), r.gates, rows);
}

template <class T> const T* gates_of_table(Packed& packed, const Recurrent& r, const void* weights) {
    auto key = [](const Tensor* t) { return t ? intptr_t(t->data) : 0; };
    const int64_t rows = r.of->table->shape[0];
    return static_cast<const T*>(packed.of(r.of->table->data, {r.gates, r.width, key(r.w_ih), key(r.b_ih), key(r.b_hh)},
                                           rows * r.gates * r.width * int64_t(sizeof(T)), [&](void* to) {
        const rnn::Steps all({rows}, false);
        const rnn::Sequence<T> s = sequence<T>(r, weights);
        rnn::input_gates(rnn::Sequence<T>{all, r.of->table->at<T>(), s.h0, s.w_ih, s.w_hh, s.b_ih, s.b_hh, s.in, s.width,
                                          s.packed}, r.gates, static_cast<T*>(to));
    }));
}

template <class T> const void* packed_weights(Packed& packed, const Recurrent& r) {
    if (!r.w_ih->constant() || !r.w_hh->constant()) return nullptr;
    const rnn::Sequence<T> s = sequence<T>(r, nullptr);
    return packed.of(s.w_ih, {int64_t(r.x->type), r.gates, r.width, r.in, intptr_t(s.w_hh)},
                     s.packed_numbers(r.gates) * int64_t(sizeof(T)), [&](void* to) { s.pack(r.gates, static_cast<T*>(to)); });
}

template <class T> Run recurrent_as(const Recurrent& r, const void* packed, const void* of_table) {
    return [r, packed, of_table] {
        rnn::Sequence<T> s = sequence<T>(r, packed);
        if (of_table) {
            r.of->places(r.place->at<int64_t>());
            s.place = r.place->at<int64_t>(), s.of_table = static_cast<const T*>(of_table);
        }
        switch (r.layer) {
            case CellLayer::lstm:
                std::memcpy(r.c->data, r.c0->data, size_t(r.c0->bytes()));
                return rnn::lstm_outputs(s, r.y->at<T>(), r.h->at<T>(), r.c->at<T>(), r.gates_now->at<T>());
            case CellLayer::gru: return rnn::gru_outputs(s, r.y->at<T>(), r.h->at<T>(), r.gates_now->at<T>());
            default: return rnn::rnn_forward(s, r.layer == CellLayer::rectified, r.y->at<T>(), r.h->at<T>());
        }
    };
}

// numbers: steps, rows of each, whether from the last to the first
void recurrent(Call& c, CellLayer layer) {
    const bool cell = layer == CellLayer::lstm;
    c.expect(cell ? 7 : 6, 3, 0, cell ? 3 : 2);
    Recurrent r{};
    size_t at = 0;
    r.layer = layer, r.gates = cell ? 4 : layer == CellLayer::gru ? 3 : 1;
    r.x = &c.peek(at++), r.h0 = &c.rows(at++);
    if (cell) r.c0 = &c.rows(at++);
    r.w_ih = &c.rows(at++), r.w_hh = &c.rows(at++), r.b_ih = c.rows_or_none(at++), r.b_hh = c.rows_or_none(at++);
    const int64_t count = c.number(0), rows = c.number(1);
    c.must(is_float(*r.x) && r.x->ndim == 2 && r.h0->ndim == 2 && count > 0 && count <= MOST_STEPS && rows > 0 &&
               rows <= INT32_MAX && r.x->shape[0] == count * rows && r.h0->shape[0] == rows,
           "steps that are not those of the rows");
    r.in = r.x->shape[1], r.width = r.h0->shape[1];
    auto is = [&](const Tensor* t, int64_t n, int64_t m) {
        c.must(t->type == r.x->type && t->ndim == (m ? 2 : 1) && t->shape[0] == n && (!m || t->shape[1] == m),
               "weights or states that do not fit");
    };
    c.must(r.width < (int64_t(1) << 30) && r.in < (int64_t(1) << 40), "weights that do not fit");
    is(r.h0, rows, r.width), is(r.w_ih, r.gates * r.width, r.in), is(r.w_hh, r.gates * r.width, r.width);
    if (cell) is(r.c0, rows, r.width);
    c.must(!r.b_ih == !r.b_hh, "one bias of two");
    if (r.b_ih) is(r.b_ih, r.gates * r.width, 0), is(r.b_hh, r.gates * r.width, 0);
    r.steps = std::make_shared<rnn::Steps>(std::vector<int64_t>(size_t(count), rows), c.number(2) != 0);
    const int64_t of_y[] = {count * rows, r.width};
    const int64_t item = bytes_of(r.x->type);
    r.y = &c.make(0, r.x->type, 2, of_y), r.h = &c.make(1, r.x->type, 2, r.h0->shape);
    if (cell) r.c = &c.make(2, r.x->type, 2, r.h0->shape);
    if (cell || layer == CellLayer::gru) r.gates_now = &c.room(rnn::gates_at_once(*r.steps, r.width) * item);
    const void* packed = item == 4 ? packed_weights<float>(c.packed(), r) : packed_weights<double>(c.packed(), r);
    const void* of_table = nullptr;
    if (r.x->of && r.gates > 1 && (item == 4 ? by_table<float>(r, *r.x->of) : by_table<double>(r, *r.x->of))) {
        r.of = r.x->of, r.place = &c.room(r.steps->rows * int64_t(sizeof(int64_t)));
        c.keep(*r.of->positions);
        of_table = item == 4 ? static_cast<const void*>(gates_of_table<float>(c.packed(), r, packed))
                             : gates_of_table<double>(c.packed(), r, packed);
    } else {
        r.x = &c.rows(0);
    }
    c.then([r, packed, of_table]() -> Run {
        return r.x->type == Type::float32 ? recurrent_as<float>(r, packed, of_table)
                                          : recurrent_as<double>(r, packed, of_table);
    });
}

template <class T, bool Centred>
Run normalised(const Tensor& x, const Tensor* w, const Tensor* b, const Tensor& y, const Tensor& mean, const Tensor& var,
               LayerForm form) {
    auto numbers = [](const Tensor* t) { return t ? t->at<T>() : nullptr; };
    const LayerForward<Centred, T> ready{x.at<T>(), numbers(w), numbers(b), y.at<T>(), mean.at<T>(), var.at<T>(), form};
    return [ready] { ready.run(); };
}

// numbers: how many of the last dimensions; reals: eps
void normalise(Call& c, bool centred) {
    c.expect(3, 1, 1, 1);
    const Tensor &x = c.rows(0), *w = c.rows_or_none(1), *b = c.rows_or_none(2);
    const int64_t dims = c.number(0);
    c.must(is_float(x) && dims > 0 && dims <= x.ndim && (centred || !b), "dimensions that there are not");
    LayerForm form{1, 1, c.step.reals[0], x.ndim - int(dims)};
    for (int d = 0; d < x.ndim; ++d) (d < form.first ? form.rows : form.n) *= x.shape[d];
    for (const Tensor* t : {w, b}) c.must(!t || (t->type == x.type && t->size() == form.n), "weights that do not fit");
    const Tensor& y = c.make(0, x.type, x.ndim, x.shape);
    const int64_t item = bytes_of(x.type);
    const Tensor &mean = c.room(form.rows * item), &var = c.room(form.rows * item);
    c.then([=, &x, &y, &mean, &var]() -> Run {
        if (x.type == Type::float32)
            return centred ? normalised<float, true>(x, w, b, y, mean, var, form)
                           : normalised<float, false>(x, w, b, y, mean, var, form);
        return centred ? normalised<double, true>(x, w, b, y, mean, var, form)
                       : normalised<double, false>(x, w, b, y, mean, var, form);
    });
}

template <class T>
Run attended(const Tensor& q, const Tensor& k, const Tensor& v, const Tensor* mask, bool causal, double scale,
             const Tensor& out, const Tensor& lse) {
    struct ReadyCells {
        attention::Problem<T> problem;
        attention::Operand<T> to;
    };
    auto r = std::make_shared<ReadyCells>();
    attention::set_up(r->problem, q.view(), k.view(), v.view(), mask ? mask->view() : View(), mask != nullptr, causal,
                      scale, 0.0, 0);
    r->to = attention::Operand<T>(r->problem.heads, out.view());
    return [r, &lse] { attention::attend(r->problem, r->to, lse.at<T>()); };
}

}  // namespace

void rnn_tanh(Call& c) { recurrent(c, CellLayer::plain); }
void rnn_relu(Call& c) { recurrent(c, CellLayer::rectified); }
void lstm(Call& c) { recurrent(c, CellLayer::lstm); }
void gru(Call& c) { recurrent(c, CellLayer::gru); }
void layer_norm(Call& c) { normalise(c, true); }
void rms_norm(Call& c) { normalise(c, false); }

// operands: q, k, v, mask. numbers: whether it is causal; reals: the scale
void attention_of(Call& c) {
    c.expect(4, 1, 1, 1);
    const Tensor &q = c.in(0), &k = c.in(1), &v = c.in(2), *mask = c.has(3) ? &c.in(3) : nullptr;
    const bool causal = c.number(0) != 0;
    const double scale = c.step.reals[0];
    c.must(q.ndim >= 2 && attention::takes(q.view(), k.view(), v.view(), mask ? mask->view() : View(), mask != nullptr) &&
               !(causal && mask),
           "operands that do not fit");
    attention::Heads heads;
    for (const Tensor* t : {&q, &k, &v, mask})
        c.must(!t || heads.join(t->shape, t->ndim - 2), "heads that do not fit");
    double count = 1;
    for (int d = 0; d < heads.ndim; ++d) count *= double(heads.shape[d]);
    c.must(count < double(MOST_NUMBERS) && q.shape[q.ndim - 1] < (1 << 20) && v.shape[v.ndim - 1] < (1 << 20),
           "too many heads, or too wide");
    heads.finish();
    int64_t shape[MOST_AXES];
    const int n = heads.ndim;
    std::copy(heads.shape, heads.shape + n, shape);
    shape[n] = q.shape[q.ndim - 2], shape[n + 1] = v.shape[v.ndim - 1];
    Tensor& out = c.make(0, q.type, n + 2, shape);
    if (n + 2 >= 4) {  // where the second-last dimension lies: `new_by_length` of the binding
        const int place = q.strides[q.ndim - 2] > q.strides[0] ? 0 : 1;
        Tensor order = out;
        int64_t step = 0;
        for (int d = n + 1; d >= 0; --d) {
            const int axis = d == place ? n : d < place ? d : d <= n ? d - 1 : d;
            order.strides[axis] = ++step;
        }
        out.like(order);
    }
    const Tensor& lse = c.room(heads.count * shape[n] * bytes_of(q.type));
    c.then([=, &q, &k, &v, &out, &lse]() -> Run {
        return q.type == Type::float32 ? attended<float>(q, k, v, mask, causal, scale, out, lse)
                                       : attended<double>(q, k, v, mask, causal, scale, out, lse);
    });
}

}  // namespace fw::runtime
