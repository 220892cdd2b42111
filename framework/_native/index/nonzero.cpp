#include "index/nonzero.h"

#include <algorithm>
#include <cstring>

#include "base/pool.h"
#include "reduce/counts.h"

namespace fw::moving {
namespace {

constexpr int64_t LONG = 1 << 14;  // elements of a piece
constexpr int MOST_DIMS = 64;      // of NumPy's arrays

// Those of the elements [begin, end), written from `to` up to `stop`.
template <class T> void found(const T* x, int64_t begin, int64_t end, int ndim, const int64_t* shape, int64_t* to, int64_t* stop) {
    int64_t at[MOST_DIMS];
    for (int64_t d = ndim - 1, rest = begin; d >= 0; --d) at[d] = rest % shape[d], rest /= shape[d];
    const int last = ndim - 1;
    for (int64_t i = begin; i < end && to < stop;) {
        const int64_t first = at[last], until = std::min(shape[last], first + end - i);
        const T* line = x + i - first;
        auto each = [&](auto put) {  // put(position in the line), which writes, and moves on where there is something
            for (int64_t j = first; j < until && to < stop;) {
                const int64_t some = std::min<int64_t>(8, until - j);
                if (sizeof(T) == 1 && some == 8) {
                    uint64_t word;
                    std::memcpy(&word, line + j, 8);
                    if (!word) {
                        j += 8;
                        continue;
                    }
                }
                for (const int64_t end_of_some = j + some; j < end_of_some && to < stop; ++j) put(j);
            }
        };
        auto moved = [&](int64_t j, int64_t by) { return by & -int64_t(line[j] != 0); };
        if (ndim == 1) each([&](int64_t j) { *to = j, to += moved(j, 1); });
        else if (ndim == 2) each([&](int64_t j) { to[0] = at[0], to[1] = j, to += moved(j, 2); });
        else if (ndim == 3) each([&](int64_t j) { to[0] = at[0], to[1] = at[1], to[2] = j, to += moved(j, 3); });
        else
            each([&](int64_t j) {
                for (int d = 0; d < last; ++d) to[d] = at[d];
                to[last] = j, to += moved(j, ndim);
            });
        i += until - first;
        at[last] = 0;
        for (int d = last - 1; d >= 0 && ++at[d] == shape[d]; --d) at[d] = 0;
    }
    std::fill(to, stop, 0);
}

}  // namespace

template <class T> Nonzero<T>::Nonzero(const T* x, int64_t n) : x(x), n(n), before(size_t((n + LONG - 1) / LONG + 1)) {
    parallel(int64_t(before.size()) - 1, 1, [&](int64_t begin, int64_t end) {
        for (int64_t p = begin; p < end; ++p)
            before[size_t(p + 1)] = reduce::nonzero_in_line(x + p * LONG, std::min(LONG, n - p * LONG));
    });
    for (size_t p = 1; p < before.size(); ++p) before[p] += before[p - 1];
}

template <class T> void Nonzero<T>::positions(int ndim, const int64_t* shape, int64_t* out) const {
    parallel(int64_t(before.size()) - 1, 1, [&](int64_t begin, int64_t end) {
        for (int64_t p = begin; p < end; ++p)
            found(x, p * LONG, std::min(n, (p + 1) * LONG), ndim, shape, out + before[size_t(p)] * ndim,
                  out + before[size_t(p + 1)] * ndim);
    });
}

template struct Nonzero<uint8_t>;
template struct Nonzero<int32_t>;
template struct Nonzero<int64_t>;
template struct Nonzero<float>;
template struct Nonzero<double>;

}  // namespace fw::moving
