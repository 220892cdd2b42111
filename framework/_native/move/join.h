// Rows of bytes one after another. No Python.
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

}  // namespace fw::moving
