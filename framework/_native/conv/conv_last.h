// Convolutions of float images whose channels lie side by side (n, high, wide, c in memory), and their gradients, as they
// lie: vectors are of channels, and nothing is turned. Of two dimensions; others go by rows.
#pragma once

#include "conv/conv_shape.h"

namespace fw::windows {

// Where a kernel's numbers lie: tap t of row i and channel c at data[i * row + c * channel + t * tap].
struct TapKernels {
    const float* data;
    int64_t row, channel, tap;
};
inline TapKernels kernels_in_rows(const ConvShape& s, const float* w) { return {w, s.k(), s.taps(), 1}; }
inline TapKernels kernels_of_channels(const ConvShape& s, const float* w) { return {w, s.k(), 1, s.group_channels()}; }

bool last_suits(const ConvShape& s);

// All run on the pool; they are called without Python's lock.
void last_forward(const ConvShape& s, const float* x, const TapKernels& w, const Epilogue<float>& end, float* y);
void last_input(const ConvShape& s, const float* y, const TapKernels& w, float* x);
void last_weights(const ConvShape& s, const float* x, const float* y, float* w);  // w: row by row, tap by tap

// The convolution of images in rows, where it is quicker to turn them some lines at a time, by packed kernels.
bool turned_suits(const ConvShape& s);
int64_t turned_packed(const ConvShape& s);  // how many numbers
void turned_pack(const ConvShape& s, const float* w, float* to);
void turned_forward(const ConvShape& s, const float* x, const float* packed, const Epilogue<float>& end, float* y);
bool turned_input_suits(const ConvShape& s);  // and its input's gradient
void turned_input(const ConvShape& s, const float* y, const float* w, float* x);

// The way that these choose where it suits: by minimal filtering.
void winograd_last(const ConvShape& s, const float* x, const TapKernels& w, bool turned, const Epilogue<float>& end, float* y);
void winograd_last_weights(const ConvShape& s, const float* x, const float* y, float* w);

// As products of matrices: of pixels, if tiles of what is made are full (`wide`), or of windows that are so few for a channel of
// the results; w: tap by tap.
bool last_unfolds(const ConvShape& s, const TapKernels& w, bool wide, double share);
void unfolded_last_forward(const ConvShape& s, const float* x, const float* w, const Epilogue<float>& end, float* y);
void unfolded_last_input(const ConvShape& s, const float* y, const float* w, float* x);
void unfolded_last_weights(const ConvShape& s, const float* x, const float* y, float* w);

// What an epilogue has for each row, with room to read whole vectors.
struct PaddedEnd {
    std::vector<float> room;
    Epilogue<float> end;
    PaddedEnd(const Epilogue<float>& given, int64_t rows);
};

}  // namespace fw::windows
