// Depthwise convolutions of float images: every channel has a kernel of its own, of 3 columns or more than 4.
//
// A few lines of as many channels as a vector has lanes are brought together, channel beside channel, whichever way images lie:
// then every load is of a whole vector in one line of the cache, and taps outside an image cost nothing.
#pragma once

#include "conv/conv_last.h"

namespace fw::windows {

bool depthwise_suits(const ConvShape& s);

// All run on the pool; they are called without Python's lock. last: whether the channels of images lie side by side.
void depthwise(const ConvShape& s, const float* x, const TapKernels& w, const Epilogue<float>& end, float* y, bool last);
void depthwise_input(const ConvShape& s, const float* y, const TapKernels& w, float* x, bool last);
void depthwise_weights(const ConvShape& s, const float* x, const float* y, float* w, bool last);  // w: row by row

}  // namespace fw::windows
