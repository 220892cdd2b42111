#include "rnn/sequences.h"

#include "gemm/gemv.h"
#include "rnn/rnn_cells.h"
#include "rnn/rounded_panels.h"

namespace fw {
namespace rnn {
namespace {

// b_ih + b_hh, but for a GRU's last gate, where that of the state comes later; null without biases
template <class T> struct Bias {
    std::vector<T> sum;
    Bias(const Sequence<T>& s, int64_t gates) {
        const int64_t both = (gates == 3 ? 2 : gates) * s.width;
        if (!s.b_ih || !s.b_hh) return;
        sum.assign(s.b_ih, s.b_ih + gates * s.width);
        for (int64_t j = 0; j < both; ++j) sum[size_t(j)] += s.b_hh[j];
    }
    const T* data() const { return sum.empty() ? nullptr : sum.data(); }
};

// What the gates of all steps get from the inputs, in rows of `row` numbers.
template <class T> Gemm<T> of_inputs(const Sequence<T>& s, int64_t gates) {
    Gemm<T> g = {};
    g.m = s.steps.rows, g.n = gates * s.width, g.k = s.in;
    g.a = s.x, g.a_row = s.in, g.a_col = 1;
    g.b = s.w_ih, g.b_row = 1, g.b_col = s.in;
    g.row_by_row = true;  // steps come in parts, and rows from a table
    if (s.packed) g.panels = s.packed + Panels<T>(nullptr, s.width, s.width).numbers(gates), g.panel_steps = s.in;
    return g;
}

template <class T> void from_inputs(const Sequence<T>& s, int64_t gates, const T* bias, T* to, int64_t row) {
    Gemm<T> g = of_inputs(s, gates);
    if (s.of_table) {
        for (int64_t i = 0; i < g.m; ++i) std::memcpy(to + i * row, s.of_table + s.place[i] * g.n, size_t(g.n) * sizeof(T));
        return;
    }
    g.c = to, g.c_row = row;
    if (bias) g.finish = finish<T, Identity>(nullptr, bias);
    s.multiply(g);
}

template <class T> Panels<T> state_weights(const Sequence<T>& s, int64_t gates) {
    if (s.packed) return Panels<T>(s.packed, s.width, s.width);
    return Panels<T>(s.w_hh, gates, s.width, s.width, s.width, 1);
}

// All steps with the weights of the state.
template <class T, class Cell> void walk(const Sequence<T>& s, const Cell& cell, T* y) {
#if FW_AMX
    if constexpr (sizeof(T) == sizeof(float))
        if (s.rounded) {
            const int64_t n = s.width;
            return forward(s.steps, RoundedPanels(s.w_hh, Cell::gates, n, n, n, 1, s.steps.most), cell, s.h0, y, n);
        }
#endif
    forward(s.steps, state_weights(s, Cell::gates), cell, s.h0, y, s.width);
}

// How many parts the steps are computed in: about as many rows in each as a product needs to be a quick one, none so few
// that it would be one of vectors, whose sums are others.
int64_t parts_of(const Steps& steps) {
    constexpr int64_t rows = 128;
    return std::min((steps.rows + rows - 1) / rows, steps.count());
}

// body(the sequence of some steps, their outputs), one such part after the other
template <class T, class F> void in_parts(const Sequence<T>& s, T* y, F&& body) {
    const Steps& all = s.steps;
    const int64_t parts = parts_of(all);
    for (int64_t i = 0; i < parts; ++i) {
        const int64_t first = all.count() * i / parts, count = all.count() * (i + 1) / parts - first;
        const int64_t one = all.start[size_t(first)], last = all.start[size_t(first + count - 1)], begin = std::min(one, last);
        const Steps steps(std::vector<int64_t>(size_t(count), all.most), last < one);
        const T* state = first ? y + all.start[size_t(first - 1)] * s.width : s.h0;
        Sequence<T> part{steps, s.x + begin * s.in, state, s.w_ih, s.w_hh, s.b_ih, s.b_hh, s.in, s.width, s.packed};
        if (s.of_table) part.place = s.place + begin, part.of_table = s.of_table;
        body(part, y + begin * s.width);
    }
}

template <bool Rectified, class T> void plain(const Sequence<T>& s, T* y, T* h) {
    from_inputs(s, 1, Bias<T>(s, 1).data(), y, s.width);
    walk(s, Plain<T, Rectified>{s.steps, y, s.width}, y);
    final_states(s.steps, y, h, s.width);
}

}  // namespace

template <class T> int64_t Sequence<T>::packed_numbers(int64_t gates) const {
    return Panels<T>(nullptr, width, width).numbers(gates) + panels_size(of_inputs(*this, gates));
}

template <class T> void Sequence<T>::pack(int64_t gates, T* to) const {
    const Panels<T> state(nullptr, width, width);
    state.pack(to, w_hh, gates, width, 1);
    pack_panels(of_inputs(*this, gates), to + state.numbers(gates));
}

template <class T> void input_gates(const Sequence<T>& s, int64_t gates, T* to) {
    from_inputs(s, gates, Bias<T>(s, gates).data(), to, gates * s.width);
}

template <class T> bool same_by_table(const Sequence<T>& s, int64_t gates, int64_t table_rows) {
    auto by_tiles = [&](int64_t rows) {  // whose sums do not depend on how many rows there are
        Gemm<T> g = of_inputs(s, gates);
        g.m = rows;
        return rows > 1 && g.n > 1 && !sums_rows(g);
    };
    return by_tiles(table_rows) && by_tiles(s.steps.count() / parts_of(s.steps) * s.steps.most);
}

template <class T> void rnn_forward(const Sequence<T>& s, bool rectified, T* y, T* h) {
    rectified ? plain<true>(s, y, h) : plain<false>(s, y, h);
}

template <class T> void lstm_forward(const Sequence<T>& s, T* y, T* h, T* c, T* gates, T* cells) {
    from_inputs(s, 4, Bias<T>(s, 4).data(), gates, 4 * s.width);
    Lstm<T, true> cell{s.steps, gates, cells, y, c, s.width};
    walk(s, cell, y);
    final_states(s.steps, y, h, s.width);
}

template <class T> void lstm_outputs(const Sequence<T>& s, T* y, T* h, T* c, T* room) {
    const Bias<T> bias(s, 4);
    const Panels<T> weights = state_weights(s, 4);
    in_parts(s, y, [&](const Sequence<T>& part, T* to) {
        from_inputs(part, 4, bias.data(), room, 4 * s.width);
        forward(part.steps, weights, Lstm<T, false>{part.steps, room, nullptr, to, c, s.width}, part.h0, to, s.width);
    });
    final_states(s.steps, y, h, s.width);
}

template <class T> void gru_forward(const Sequence<T>& s, T* y, T* h, T* gates) {
    from_inputs(s, 3, Bias<T>(s, 3).data(), gates, 4 * s.width);
    Gru<T> cell{s.steps, gates, s.h0, s.b_hh ? s.b_hh + 2 * s.width : nullptr, y, s.width};
    walk(s, cell, y);
    final_states(s.steps, y, h, s.width);
}

template <class T> void gru_outputs(const Sequence<T>& s, T* y, T* h, T* room) {
    const Bias<T> bias(s, 3);
    const Panels<T> weights = state_weights(s, 3);
    const T* b_n = s.b_hh ? s.b_hh + 2 * s.width : nullptr;
    in_parts(s, y, [&](const Sequence<T>& part, T* to) {
        from_inputs(part, 3, bias.data(), room, 4 * s.width);
        forward(part.steps, weights, Gru<T>{part.steps, room, part.h0, b_n, to, s.width}, part.h0, to, s.width);
    });
    final_states(s.steps, y, h, s.width);
}

int64_t gates_at_once(const Steps& steps, int64_t width) {
    const int64_t parts = parts_of(steps);
    return (steps.count() + parts - 1) / parts * steps.most * 4 * width;
}

#define FW_OF(T)                                                             \
    template struct Sequence<T>;                                             \
    template void rnn_forward(const Sequence<T>&, bool, T*, T*);             \
    template void lstm_forward(const Sequence<T>&, T*, T*, T*, T*, T*);      \
    template void gru_forward(const Sequence<T>&, T*, T*, T*);               \
    template void lstm_outputs(const Sequence<T>&, T*, T*, T*, T*);          \
    template void input_gates(const Sequence<T>&, int64_t, T*);              \
    template bool same_by_table(const Sequence<T>&, int64_t, int64_t);       \
    template void gru_outputs(const Sequence<T>&, T*, T*, T*);
FW_OF(float)
FW_OF(double)
#undef FW_OF

}  // namespace rnn
}  // namespace fw
