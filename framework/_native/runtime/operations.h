// What models are made of: each looks at a step's operands, refuses what does not fit, makes its results. See
// runtime/README.md for their operands and numbers.
#pragma once

#include "runtime/plan.h"

namespace fw::runtime {

void matmul(Call&), linear(Call&), softmax(Call&);                           // products.cpp
void program(Call&);                                                         // programs.cpp
void reshape(Call&), permute(Call&), slice(Call&), expand(Call&);            // views.cpp
void conv(Call&), max_pool(Call&), mean_pool(Call&);                         // images.cpp
void rnn_tanh(Call&), rnn_relu(Call&), lstm(Call&), gru(Call&);              // sequences.cpp
void layer_norm(Call&), rms_norm(Call&), attention_of(Call&);
void sum(Call&), mean(Call&), largest(Call&), smallest(Call&);               // statistics.cpp
void batch_norm(Call&), cast(Call&);
void embedding(Call&), join(Call&), contiguous(Call&), arange(Call&);        // moves.cpp
void sorted(Call&), topk(Call&), cumulated(Call&), gathered(Call&);          // orders.cpp

}  // namespace fw::runtime
