// Which elements of an array go into which result of a reduction, and how the work is divided.
//
// Dimensions are sorted by stride and merged, so that the innermost one is contiguous in memory. Either it is
// folded (`rows`: a line in memory becomes one number) or it is kept (lines are added to a line of results).
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/pool.h"
#include "base/simd.h"

namespace fw {
namespace reduce {

constexpr int MOST = 12;                 // dimensions
constexpr int64_t PIECE = 32 << 10;      // elements: what is longer is divided, if there are few results
constexpr int64_t GRAIN = 16 << 10;      // elements: less is not worth another thread
constexpr int64_t MANY = 32;             // results that keep all threads busy
constexpr int64_t MOST_PIECES = 64;

struct Loop {
    int64_t size, step, out;  // bytes between elements of x, elements between results
};

// The places of a nest of loops, one after another from any of them.
struct Walk {
    const Loop* loops;
    int n;
    int64_t x = 0, out = 0, at[MOST];

    Walk(const Loop* loops, int n, int64_t index) : loops(loops), n(n) {
        for (int d = n - 1; d >= 0; --d) {
            at[d] = index % loops[d].size;
            index /= loops[d].size;
            x += at[d] * loops[d].step;
            out += at[d] * loops[d].out;
        }
    }

    void next() {
        for (int d = n - 1; d >= 0; --d) {
            x += loops[d].step;
            out += loops[d].out;
            if (++at[d] < loops[d].size) return;
            at[d] = 0;
            x -= loops[d].size * loops[d].step;
            out -= loops[d].size * loops[d].out;
        }
    }
};

struct Plan {
    Loop kept[MOST], folded[MOST], inner{1, 0, 1};
    int nkept = 0, nfolded = 0;
    bool rows = true;
    int64_t outer = 1, lines = 1;  // results (of columns: lines of results); lines in memory for each

    int64_t count() const { return rows ? lines * inner.size : lines; }

    // False where no dimension is contiguous, or the array has none at all to go over. Strides in bytes.
    bool make(int ndim, const int64_t* shape, const int64_t* strides, int64_t item, uint32_t dims) {
        struct Dim : Loop {
            bool fold;
        } all[MOST];
        int n = 0;
        if (ndim > MOST) return false;
        int64_t out = 1;
        for (int d = ndim - 1; d >= 0; --d) {
            bool fold = dims >> d & 1;
            if (shape[d] == 0) return false;
            if (shape[d] > 1) {
                int at = n++;  // sorted as it comes in, innermost first; of windows that overlap, the longer dimension
                auto behind = [&](const Dim& a) { return a.step > strides[d] || (a.step == strides[d] && a.size < shape[d]); };
                for (; at > 0 && behind(all[at - 1]); --at) all[at] = all[at - 1];
                all[at].size = shape[d], all[at].step = strides[d], all[at].out = out, all[at].fold = fold;
            }
            if (!fold) out *= shape[d];
        }
        if (n == 0) return true;
        if (all[0].step != item) return false;
        int m = 0;
        for (int d = 1; d < n; ++d) {
            Dim &a = all[m], &b = all[d];
            bool joins = a.fold == b.fold && b.step == a.size * a.step && (a.fold || b.out == a.size * a.out);
            if (joins) a.size *= b.size;
            else all[++m] = b;
        }
        inner = all[0];
        rows = all[0].fold;
        for (int d = m; d > 0; --d) {
            (all[d].fold ? folded[nfolded++] : kept[nkept++]) = all[d];
            (all[d].fold ? lines : outer) *= all[d].size;
        }
        return true;
    }
};

// How many pieces one result is made of: it depends on the shape only, so the sum does, too.
inline int64_t pieces_of(int64_t results, int64_t elements) {
    if (results >= MANY || elements <= PIECE) return 1;
    return std::min<int64_t>(MOST_PIECES, (elements + PIECE - 1) / PIECE);
}

// Elements that lie in memory. Other sources compute them: `reader(ahead)` is for one thread, which will want, in
// order, all of the `ahead` bytes from the first one on (0 says nothing); what it reads does not stay.
struct InMemory {
    static constexpr bool stays = true, rows_only = false;
    using Reading = const InMemory;  // what `reader` gives
    const char* data;
    const InMemory& reader(int64_t) const { return *this; }
    template <class T> FW_INLINE const T* at(int64_t place, int64_t) const {  // elements from this byte on
        return reinterpret_cast<const T*>(data + place);
    }
};

}  // namespace reduce
}  // namespace fw
