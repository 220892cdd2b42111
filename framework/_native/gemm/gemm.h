// Matrix products C = A B (+ C), finished by a bias and an activation, of float and double; and of bfloat16, which
// take a bias for the columns only, sum up in float32 and round once.
//
// A and B may lie at any strides (transposed or sliced operands need no copies); the columns of C are side
// by side. The work is shared by the pool; a number of C is the same whatever the number of threads.
// No Python, no exceptions.
#pragma once

#include <cstdint>

#include "base/bf16.h"
#include "gemm/gemm_kernel.h"

namespace fw {

// What is done to a part of C (c points to it) when its sums are complete and still in the cache.
template <class T> struct Finish {
    using Function = void (*)(const Finish&, T* c, int64_t c_row, int64_t row, int64_t rows, int64_t col,
                              int64_t cols);
    Function run = nullptr;
    const T* row_bias = nullptr;  // a number for each row, side by side
    const T* col_bias = nullptr;
    const void* more = nullptr;
};

template <class T> struct Gemm {
    int64_t m, n, k;
    const T* a;
    int64_t a_row, a_col;  // a[i, p] lies at a + i * a_row + p * a_col
    const T* b;
    int64_t b_row, b_col;
    T* c;
    int64_t c_row;
    bool add = false;
    Finish<T> finish = {};
    int64_t row = 0, col = 0;  // where this part of C begins in the whole
    // B once more as `pack_panels` writes it, or nullptr; of the whole product, from this part's first step on. It saves
    // packing, and changes no number.
    const T* panels = nullptr;
    int64_t panel_steps = 0;   // of the whole product
    bool row_by_row = false;   // the numbers of a row are the same however many rows there are
};

// A product for every place of `shape`; the strides say how far the operands move (0: broadcast).
struct Batch {
    static constexpr int most = 8;
    int ndim = 0;
    int64_t shape[most], a[most], b[most], c[most];

    int64_t size() const {
        int64_t n = 1;
        for (int d = 0; d < ndim; ++d) n *= shape[d];
        return n;
    }
};

// Whether a product of these sizes packs its B at every call; how many numbers the panels of B are; and the panels, for
// many products with one B.
template <class T> bool packs_b(const Gemm<T>& g);
template <class T> int64_t panels_size(const Gemm<T>& g);  // which can be counted if 16 times B can
template <class T> void pack_panels(const Gemm<T>& g, T* to);

void gemm(const Gemm<float>& g, const Batch& batch = {});
void gemm(const Gemm<double>& g, const Batch& batch = {});
void gemm(const Gemm<Bf16>& g, const Batch& batch = {});

// -- finishes -------------------------------------------------------------------------------------

struct Identity {
    template <class V> FW_INLINE V operator()(V v) const { return v; }
};
struct Relu {
    template <class V> FW_INLINE V operator()(V v) const { return V{} >= v ? V{} : v; }  // nan stays
};

template <class T, class F>
void finish_with(const Finish<T>& f, T* c, int64_t c_row, int64_t row, int64_t rows, int64_t col,
                 int64_t cols) {
    constexpr int n = lanes<T>;
    const T *of_rows = f.row_bias, *bias = f.col_bias ? f.col_bias + col : nullptr;
    const int64_t whole = cols / n * n, rest = cols - whole;
    for (int64_t i = 0; i < rows; ++i, c += c_row) {
        const Vec<T> shift = splat(of_rows ? of_rows[row + i] : T(0));
        auto finished = [=](Vec<T> v, auto&& more) __attribute__((always_inline)) {
            if (of_rows) v += shift;
            return F{}(bias ? v + more() : v);
        };
        for (int64_t j = 0; j < whole; j += n) store(c + j, finished(load(c + j), [=] { return load(bias + j); }));
        if (rest)
            store_first(c + whole, finished(load_first(c + whole, rest), [=] { return load_first(bias + whole, rest); }), rest);
    }
}

// Numbers that lie as C does, wherever that is, and decide where it stays: where they are not above 0 (nor nan) it is 0.
template <class T> struct Gate {
    const T *c, *numbers;
};

template <class T>
void finish_by_gate(const Finish<T>& f, T* c, int64_t c_row, int64_t, int64_t rows, int64_t, int64_t cols) {
    const auto& gate = *static_cast<const Gate<T>*>(f.more);
    const T* by = gate.numbers + (c - gate.c);
    auto passed = [](Vec<T> v, Vec<T> by) __attribute__((always_inline)) { return by <= Vec<T>{} ? Vec<T>{} : v; };
    const int64_t whole = cols / lanes<T> * lanes<T>, rest = cols - whole;
    for (int64_t i = 0; i < rows; ++i, c += c_row, by += c_row) {
        for (int64_t j = 0; j < whole; j += lanes<T>) store(c + j, passed(load(c + j), load(by + j)));
        if (rest) store_first(c + whole, passed(load_first(c + whole, rest), load_first(by + whole, rest)), rest);
    }
}

// C + bias, then the elementwise F on vectors: Finish<T> f = finish<T, Relu>(nullptr, bias);
template <class T, class F> Finish<T> finish(const T* row_bias, const T* col_bias) {
    return {finish_with<T, F>, row_bias, col_bias, nullptr};
}

}  // namespace fw
