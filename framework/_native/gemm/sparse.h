// Products with sparse matrices whose places stand row by row (`framework/sparse/pattern.py`, Rows). Arrays without gaps.
// No Python, no exceptions but bad_alloc.
#pragma once

#include <algorithm>
#include <cstdint>

namespace fw::sparse {

// The places of m rows among n columns. What another thread could change meanwhile is checked where it is read.
template <class I> struct SparsePlaces {
    const I *starts, *columns;  // m + 1 and count of them
    int64_t m, n, count;

    // the places of a row; false if they are none of this array
    bool row(int64_t r, int64_t& first, int64_t& last) const {
        first = int64_t(starts[r]), last = int64_t(starts[r + 1]);
        return 0 <= first && first <= last && last <= count;
    }
    bool column(int64_t place, int64_t& c) const {
        c = int64_t(columns[place]);
        return uint64_t(c) < uint64_t(n);
    }
};

// out (m, width): the sparse matrix with these values times dense (n, width). False where a place is none of the matrix.
template <class T, class I>
bool spmm_rows(const SparsePlaces<I>& p, const T* values, const T* dense, int64_t width, T* out);

// out: at each place the product of a row of x (m, width) with one of y (n, width). False as above.
template <class T, class I>
bool sddmm_rows(const SparsePlaces<I>& p, const T* x, const T* y, int64_t width, T* out);

}  // namespace fw::sparse
