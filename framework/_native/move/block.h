// Moving elements of plain memory: whatever their type, they are so many bytes.
#pragma once

#include <cstdint>
#include <cstring>

#include "base/pool.h"
#include "base/simd.h"

namespace fw::moving {

constexpr int MOST_BLOCK_DIMS = 128;

struct Pair {
    uint64_t a, b;
};

constexpr int64_t GRAIN_BYTES = 64 << 10;  // what one piece of a parallel copy moves at least

inline int64_t grain_of(int64_t bytes) { return bytes >= GRAIN_BYTES ? 1 : GRAIN_BYTES / (bytes > 0 ? bytes : 1); }

// Calls f with a number of that many bytes.
template <class F> void by_bytes(int bytes, F&& f) {
    switch (bytes) {
        case 1: return f(uint8_t{});
        case 2: return f(uint16_t{});
        case 4: return f(uint32_t{});
        case 8: return f(uint64_t{});
        default: return f(Pair{});
    }
}

// A strided block of elements; strides are in bytes.
struct Block {
    int ndim = 0;
    int64_t shape[MOST_BLOCK_DIMS], from[MOST_BLOCK_DIMS], to[MOST_BLOCK_DIMS];

    void add(int64_t size, int64_t from_stride, int64_t to_stride) {
        shape[ndim] = size, from[ndim] = from_stride, to[ndim++] = to_stride;
    }
    // The dimensions in the order in which they lie in `to`, those merged that are one in both places, without those of
    // size 1; false if it is empty.
    bool simplify();
    int64_t rows() const;  // the product of all sizes but the last
};

// Where the rows of a block lie, one after the other.
struct Walk {
    const Block& block;
    int dims;  // the leading ones
    int64_t at[MOST_BLOCK_DIMS];
    int64_t from = 0, to = 0;

    Walk(const Block& b, int leading, int64_t row);
    void next(int64_t rows = 1) {  // not beyond the end of the last of those dimensions
        for (int d = dims - 1; d >= 0; --d, rows = 1) {
            from += rows * block.from[d], to += rows * block.to[d];
            if ((at[d] += rows) < block.shape[d]) return;
            from -= block.from[d] * block.shape[d], to -= block.to[d] * block.shape[d];
            at[d] = 0;
        }
    }
};

// to[...] = from[...], on all threads; the memory of the two must not overlap.
void copy_block(Block block, int bytes, const char* from, char* to);
void copy_bytes(const char* from, char* to, int64_t n);
void fill_bytes(char* to, int64_t n, int value);
void fill_elements(char* to, int64_t n, int bytes, const Pair& bits);  // n elements, each the first `bytes` of `bits`
// Matrices of `height` rows, `rows` in all, one after another: each row keeps its elements up to the k-th diagonal, or from there
// on, the others are 0.
void copy_triangles(const char* from, char* to, int64_t rows, int64_t height, int64_t width, int bytes, int64_t k, bool lower);
// The same where the matrices lie: `matrices` says how far they are apart (as `to`), rows and columns are `down` and `across` bytes apart.
void clear_triangles(const Block& matrices, int64_t height, int64_t width, int64_t down, int64_t across, int bytes, int64_t k, bool lower,
                     char* to);

// The product of some sizes.
template <class T> int64_t product(const T* sizes, int begin, int end) {
    int64_t n = 1;
    for (int d = begin; d < end; ++d) n *= sizes[d];
    return n;
}

}  // namespace fw::moving
