// Sums and means of bags of rows of a table.
#pragma once

#include <cstdint>

namespace fw {

struct Bags {
    int64_t bags, indices, rows, width;
    bool mean, last;  // last: the last offset is where the last bag ends
};

// out (bags, width): of the rows of `table` (rows, width) at the indices from one offset to the next; zeros of none. False
// where an index is none, or offsets do not start with 0, fall, or do not end with the indices. Both are read once each, as
// others may write into them meanwhile.
template <class T>
bool bag_rows(const Bags& b, const T* table, const int64_t* index, const int64_t* offset, T* out);

}  // namespace fw
