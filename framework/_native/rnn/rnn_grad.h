// Backward of recurrent sequences.
#pragma once

#include "rnn/sequences.h"

namespace fw {
namespace rnn {

// The gradients of a sequence's arguments, with their shapes, and what backward works in.
template <class T> struct Gradients {
    T *x, *w_ih, *w_hh;        // may be missing
    T *h0, *c0, *b_ih, *b_hh;  // always there, but for c0, which only LSTMs have
    bool wants_state;          // whether h0 and c0 are to be right in the end
    T *d, *d_state;            // of the gates of all steps, towards the inputs and the state: the same but for GRUs
    T* before;                 // the states before each step: missing for one step, and without w_hh
};

// gy: of the outputs, rows of all steps; gh and gc: of the last states; each may be missing. y, gates and cells: as
// forward left them.
template <class T>
void rnn_backward(const Sequence<T>& s, bool rectified, const T* gy, const T* gh, const T* y, const Gradients<T>& to);
template <class T>
void lstm_backward(const Sequence<T>& s, const T* gy, const T* gh, const T* gc, const T* c0, const T* y, const T* gates,
                   const T* cells, const Gradients<T>& to);
template <class T>
void gru_backward(const Sequence<T>& s, const T* gy, const T* gh, const T* y, const T* gates, const Gradients<T>& to);

}  // namespace rnn
}  // namespace fw
