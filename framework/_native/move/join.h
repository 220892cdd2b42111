// Rows of bytes one after another, and numbers of two arrays in turns. No Python.
#pragma once

#include <cstdint>
#include <vector>

namespace fw::moving {

// The bytes of `parts` after one another in each of the outer rows, all of them dense.
struct JoinedBytes {
    std::vector<const char*> from;
    std::vector<int64_t> ends;  // of each part in a row

    int64_t row() const { return ends.back(); }
    void copy(int64_t outer, char* to) const;  // of at least one part
};

// to = a[0], b[0], a[1], b[1] ..., n of each
template <class T> void join_pairs(const T* a, const T* b, T* to, int64_t n);

}  // namespace fw::moving
