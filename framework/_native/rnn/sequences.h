// A recurrent layer in one direction, all steps.
#pragma once

#include "gemm/amx.h"
#include "rnn/rnn.h"

namespace fw {
namespace rnn {

// Rows of all steps (x), states (h0, of the first step's rows), weights as PyTorch's layers have them; biases may be
// missing, both or none.
template <class T> struct Sequence {
    const Steps& steps;
    const T *x, *h0, *w_ih, *w_hh, *b_ih, *b_hh;
    int64_t in, width;
    const T* packed = nullptr;  // the weights as `pack` writes them, for many sequences
    // Rows of x are rows of a table: where each is, and what `input_gates` makes of all of that table.
    const int64_t* place = nullptr;
    const T* of_table = nullptr;
    bool rounded = false;  // whether products round their operands to bfloat16, for the matrix unit, which must be available

    void multiply(const Gemm<T>& g) const {
        if constexpr (sizeof(T) == sizeof(float))
            if (rounded) return gemm_rounded(g);
        gemm(g);
    }
    int64_t packed_numbers(int64_t gates) const;
    void pack(int64_t gates, T* to) const;
};

// y: rows of all steps; h: the last states. gates: 4 width numbers of each row, for backward; cells: width. c: the first cell
// states, which become the last ones.
template <class T> void rnn_forward(const Sequence<T>& s, bool rectified, T* y, T* h);
template <class T> void lstm_forward(const Sequence<T>& s, T* y, T* h, T* c, T* gates, T* cells);
template <class T> void gru_forward(const Sequence<T>& s, T* y, T* h, T* gates);

// What the gates get from the inputs, gates * width numbers for each row. Whether they are the same bits, row by row, as those
// that the sequence gets, if the rows of x are rows of a table of so many.
template <class T> void input_gates(const Sequence<T>& s, int64_t gates, T* to);
template <class T> bool same_by_table(const Sequence<T>& s, int64_t gates, int64_t table_rows);

// The same where nothing is kept for backward, of steps of one size: some steps after the other, so that their gates stay in
// the cache. room: `gates_at_once` numbers.
int64_t gates_at_once(const Steps& steps, int64_t width);
template <class T> void lstm_outputs(const Sequence<T>& s, T* y, T* h, T* c, T* room);
template <class T> void gru_outputs(const Sequence<T>& s, T* y, T* h, T* room);

}  // namespace rnn
}  // namespace fw
