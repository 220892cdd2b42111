// All sizes of tiles take seconds to compile: once here instead of in every file that uses some.
#include "tiles.h"

namespace fw {

template <class T> void run_any_tile(int rows, const Tile<T>& t) { run_tile(rows, t); }

template <class T> void pack_any_panel(T* to, int width, const T* src, int rows, int64_t row, int64_t step, int64_t k) {
    pack_panel(to, width, src, rows, row, step, k);
}

template void run_any_tile(int, const Tile<float>&);
template void run_any_tile(int, const Tile<double>&);
template void pack_any_panel(float*, int, const float*, int, int64_t, int64_t, int64_t);
template void pack_any_panel(double*, int, const double*, int, int64_t, int64_t, int64_t);

}  // namespace fw
