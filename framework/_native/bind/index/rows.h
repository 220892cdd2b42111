// Whole rows by positions, which stand in an array (number of dims, their shape): for bindings of keys. Each gives not_implemented()
// where a position is not there, or anything is unusual.
#pragma once

#include "bind/move/copy.h"

namespace fw::moving {

// The elements of an array that are to be written to, in rows: its own memory, or that of a copy, which is put back. Only few are
// copied: what is written may be less.
struct RowsOf {
    static constexpr int64_t FEW = 1 << 14;
    Array to;
    bool good;
    InRows rows;

    explicit RowsOf(Array x) : to(x), good(x.writeable() && (x.contiguous() || x.size() <= FEW)), rows(x, good) {}
    bool put_back() { return to.contiguous() || copy_over(rows.a, to); }
};

nb::object index(Array x, Array index, nb::handle dims);                            // x[index]
nb::object unindex(Array x, Array index, nb::handle dims, nb::handle shape);        // zeros of this shape, with x added at the positions
nb::object index_add(Array x, Array source, Array index, nb::handle dims);          // x with `source` added at the positions
bool is_line(const Array& x, const Array& index, int64_t dim);  // whether positions along `dim` are alike in all lines, and of whole rows of x
nb::object index_assign(Array x, nb::handle value, Array index, nb::handle dims);   // x[index] = value in the memory of x

}  // namespace fw::moving
