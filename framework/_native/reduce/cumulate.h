// Running sums, products and extremes along a dimension, of plain memory. No Python.
#pragma once

#include "base/view.h"

namespace fw {

enum class Cumulate { sum, product, largest, smallest, log_sum };

// Whether that is known of the numbers of x, which has elements, along a dimension that there is.
bool cumulates(Cumulate kind, const View& x, int dim);

// Of such x, row by row without gaps, into `out` of the same shape and type; of extremes their places in the dimension, too.
// Only sums go backwards.
void cumulate(Cumulate kind, bool reverse, const View& x, int dim, void* out, int64_t* places);

}  // namespace fw
