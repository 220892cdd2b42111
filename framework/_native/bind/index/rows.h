// Whole rows by positions, which stand in an array (number of dims, their shape): for bindings of keys. Each gives not_implemented()
// where a position is not there, or anything is unusual.
#pragma once

#include "bind/array.h"

namespace fw::moving {

nb::object index(Array x, Array index, nb::handle dims);                            // x[index]
nb::object unindex(Array x, Array index, nb::handle dims, nb::handle shape);        // zeros of this shape, with x added at the positions
nb::object index_assign(Array x, nb::handle value, Array index, nb::handle dims);   // x[index] = value in the memory of x

}  // namespace fw::moving
