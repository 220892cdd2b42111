// The steps from the last to the first, then a product for each gradient.
#include "rnn/rnn_grad.h"

#include "rnn/rnn_cells.h"
#include "rnn/rounded_panels.h"

namespace fw {
namespace rnn {
namespace {

template <class T> struct Back {
    const Sequence<T>& s;
    int64_t gates;
    const Gradients<T>& to;

    static void set(T* to, const T* from, int64_t n) {
        const size_t size = size_t(n) * sizeof(T);
        from ? std::memcpy(to, from, size) : std::memset(to, 0, size);
    }

    // The gradients of final states (or 0) and sums of 0, to go on with.
    void start(const T* gh, const T* gc) const {
        const int64_t states = s.steps.most * s.width;
        set(to.h0, gh, states);
        if (to.c0) set(to.c0, gc, states);
        set(to.b_ih, nullptr, gates * s.width), set(to.b_hh, nullptr, gates * s.width);
    }

    Panels<T> weights() const {
        const int64_t k = gates * s.width;
        if (s.steps.count() == 1 && Panels<T>::serves_in_place(s.width, k))
            return Panels<T>::in_place(s.w_hh, s.width, k, s.width);
        return Panels<T>(s.w_hh, 1, s.width, k, 1, s.width);
    }

    // All steps from the last, towards the states.
    template <class Cell> void walk(const Cell& cell, const T* d) const {
#if FW_AMX
        if constexpr (sizeof(T) == sizeof(float))
            if (s.rounded) {
                const int64_t k = gates * s.width;
                return backward(s.steps, RoundedPanels(s.w_hh, 1, s.width, k, 1, s.width, s.steps.most), cell, d, cell.dh,
                                to.wants_state);
            }
#endif
        backward(s.steps, weights(), cell, d, cell.dh, to.wants_state);
    }

    // c = d^T b, a gradient of weights
    void by_rows(const T* d, const T* b, int64_t cols, T* c) const {
        Gemm<T> g = {};
        g.m = gates * s.width, g.n = cols, g.k = s.steps.rows;
        g.a = d, g.a_row = 1, g.a_col = g.m;
        g.b = b, g.b_row = cols, g.b_col = 1;
        g.c = c, g.c_row = cols;
        s.multiply(g);
    }

    void finish_with(const T* y) const {
        if (to.x) {
            Gemm<T> g = {};
            g.m = s.steps.rows, g.n = s.in, g.k = gates * s.width;
            g.a = to.d, g.a_row = g.k, g.a_col = 1;
            g.b = s.w_ih, g.b_row = s.in, g.b_col = 1;
            g.c = to.x, g.c_row = s.in;
            s.multiply(g);
        }
        if (to.w_ih) by_rows(to.d, s.x, s.in, to.w_ih);
        if (to.w_hh) {
            if (to.before) first_states(s.steps, s.h0, y, to.before, s.width);
            by_rows(to.d_state, to.before ? to.before : s.h0, s.width, to.w_hh);
        }
    }

    void same_biases() const { set(to.b_hh, to.b_ih, gates * s.width); }
};

template <bool Rectified, class T>
void plain(const Sequence<T>& s, const T* gy, const T* gh, const T* y, const Gradients<T>& to) {
    const Back<T> back{s, 1, to};
    back.start(gh, nullptr);
    PlainBack<T, Rectified> cell{s.steps, gy, y, to.h0, to.d, to.b_ih, s.width};
    back.walk(cell, to.d);
    back.same_biases();
    back.finish_with(y);
}

}  // namespace

template <class T>
void rnn_backward(const Sequence<T>& s, bool rectified, const T* gy, const T* gh, const T* y, const Gradients<T>& to) {
    rectified ? plain<true>(s, gy, gh, y, to) : plain<false>(s, gy, gh, y, to);
}

template <class T>
void lstm_backward(const Sequence<T>& s, const T* gy, const T* gh, const T* gc, const T* c0, const T* y, const T* gates,
                   const T* cells, const Gradients<T>& to) {
    const Back<T> back{s, 4, to};
    back.start(gh, gc);
    LstmBack<T> cell{s.steps, gy, gates, cells, c0, to.h0, to.c0, to.d, to.b_ih, s.width};
    back.walk(cell, to.d);
    back.same_biases();
    back.finish_with(y);
}

template <class T>
void gru_backward(const Sequence<T>& s, const T* gy, const T* gh, const T* y, const T* gates, const Gradients<T>& to) {
    const Back<T> back{s, 3, to};
    back.start(gh, nullptr);
    GruBack<T> cell{s.steps, gy, gates, y, s.h0, to.h0, to.d, to.d_state, to.b_ih, to.b_hh, s.width};
    back.walk(cell, to.d_state);
    back.finish_with(y);
}

#define FW_OF(T)                                                                                                    \
    template void rnn_backward(const Sequence<T>&, bool, const T*, const T*, const T*, const Gradients<T>&);        \
    template void lstm_backward(const Sequence<T>&, const T*, const T*, const T*, const T*, const T*, const T*,     \
                                const T*, const Gradients<T>&);                                                     \
    template void gru_backward(const Sequence<T>&, const T*, const T*, const T*, const T*, const Gradients<T>&);
FW_OF(float)
FW_OF(double)
#undef FW_OF

}  // namespace rnn
}  // namespace fw
