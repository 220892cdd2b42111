// Images (n, c, h, w) and volumes (n, c, d, h, w) read at given places, and both gradients. The formulas without the
// extension are in framework/ops/image/grid_sample.py.
#pragma once

#include <string>

#include "base/view.h"

namespace fw::sampling {

enum class Mode { linear, nearest, cubic };
enum class Padding { zeros, border, reflection };

constexpr int MOST_DIMS = 3;
constexpr int64_t MOST_PLANE = int64_t(1) << 29;  // so that places in it are 32 bits

struct Shape {
    int64_t n = 1, channels = 1, plane = 1, count = 1, size[MOST_DIMS] = {1, 1, 1};
    int dims = 2;
    Mode mode = Mode::linear;
    Padding padding = Padding::zeros;
    bool align = false;

    int along() const { return mode == Mode::linear ? 2 : mode == Mode::nearest ? 1 : 4; }
    int taps() const {
        int t = 1;
        for (int d = 0; d < dims; ++d) t *= along();
        return t;
    }
    int rows() const { return taps() / along(); }  // of neighbours that lie side by side

    // Of images x at the places `grid`; false where they do not fit, or for a mode or padding that there is not.
    bool read(int ndim, const int64_t* x, const int64_t* grid, const std::string& mode_name,
              const std::string& padding_name, bool align_corners);
};

// Images and places row by row. All run on the pool, without Python's lock.
template <class T> struct Sampling {
    static void read(const Shape& s, const T* x, const T* grid, T* y);
    static void spread(const Shape& s, const T* g, const T* grid, T* gx);            // the gradient of the images
    static void turn(const Shape& s, const T* g, const T* x, const T* grid, T* out); // and of the places
};

}  // namespace fw::sampling
