// Sums that other bindings give, too.
#pragma once

#include "bind/array.h"

namespace fw {

// The sum that undoes broadcasting to x's shape from `size`, a tuple.
nb::object sum_to_size(Array x, nb::handle size);

}  // namespace fw
