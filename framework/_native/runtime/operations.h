// What models are made of: each looks at a step's operands, refuses what does not fit, makes its results. See
// runtime/README.md for their operands and numbers.
#pragma once

#include "runtime/plan.h"

namespace fw::runtime {

void matmul(Call&), linear(Call&), softmax(Call&);                           // products.cpp
void program(Call&);                                                         // programs.cpp
void reshape(Call&), permute(Call&), slice(Call&), expand(Call&), windows(Call&); // views.cpp
void conv(Call&), transposed(Call&), max_pool(Call&), mean_pool(Call&);      // images.cpp
void resample(Call&), grid_sample(Call&), adaptive_max(Call&);               // sampling.cpp
void int8_linear(Call&), int8_conv(Call&);                                   // quantized.cpp
void rnn_tanh(Call&), rnn_relu(Call&), lstm(Call&), gru(Call&);              // sequences.cpp
void layer_norm(Call&), rms_norm(Call&), attention_of(Call&);
void sum(Call&), mean(Call&), largest(Call&), smallest(Call&);               // statistics.cpp
void batch_norm(Call&), group_norm(Call&), cast(Call&);
void embedding(Call&), join(Call&), contiguous(Call&), arange(Call&);        // moves.cpp
void sorted(Call&), topk(Call&), cumulated(Call&), gathered(Call&);          // orders.cpp
void scatter(Call&), take(Call&), pad(Call&);                                // elements.cpp
void triangle(Call&), one_hot(Call&), max_along(Call&), min_along(Call&), logic(Call&), measure(Call&);

}  // namespace fw::runtime
