// Sorting with indices: keys whose order as unsigned integers is that of the numbers, beside their places.
//
// Equal numbers (0 and -0, all nan) have one key, and nan the largest, so entries in order are in the order
// that a stable sort gives, whatever the method. Long rows: least significant digit first (Knuth 5.2.5);
// digits that all keys share are skipped.
#pragma once

#include <algorithm>
#include <limits>
#include <utility>

#include "base/pool.h"
#include "base/rows.h"
#include "base/scratch.h"
#include "base/shuffles.h"
#include "base/simd.h"
#include "sort/sorting.h"

namespace fw {
namespace sort {

template <class T> struct Entry;

struct Short {  // key and place in one word
    uint64_t both;
    static Short of(uint32_t key, int64_t place) { return {uint64_t(key) << 32 | uint64_t(place)}; }
    int64_t place() const { return int64_t(both & 0xffffffff); }
    uint32_t key() const { return uint32_t(both >> 32); }
    bool operator<(Short o) const { return both < o.both; }
};
struct Long {
    uint64_t word, at;
    static Long of(uint64_t key, int64_t place) { return {key, uint64_t(place)}; }
    int64_t place() const { return int64_t(at); }
    uint64_t key() const { return word; }
    bool operator<(Long o) const { return word < o.word || (word == o.word && at < o.at); }
};
template <> struct Entry<float> { using type = Short; };
template <> struct Entry<int32_t> { using type = Short; };
template <> struct Entry<double> { using type = Long; };
template <> struct Entry<int64_t> { using type = Long; };
template <class T> using EntryOf = typename Entry<T>::type;
template <class T> using KeyOf = decltype(EntryOf<T>().key());

template <class T> FW_INLINE KeyOf<T> key_of(T v) {
    using K = KeyOf<T>;
    constexpr K sign = K(1) << (8 * sizeof(K) - 1);
    K b = bits<K>(v);
    if constexpr (std::numeric_limits<T>::is_integer) return b ^ sign;
    K turned = b & sign ? ~b : b | sign;
    return v != v ? ~K(0) : v == 0 ? sign : turned;
}

template <class T> void make_entries(const T* x, int64_t n, bool descending, EntryOf<T>* e) {
    KeyOf<T> flip = descending ? ~KeyOf<T>(0) : 0;
    for (int64_t i = 0; i < n; ++i) e[i] = EntryOf<T>::of(key_of(x[i]) ^ flip, i);
}

// `key_of` as signed integers, of a vector.
template <class T> FW_INLINE Mask<T> ordered(Vec<T> v) {
    using S = Int<T>;
    if constexpr (std::numeric_limits<T>::is_integer) {
        return v;
    } else {
        constexpr S most = std::numeric_limits<S>::max();
        const Vec<S> b = bits<Vec<S>>(v), turned = b ^ ((b >> (8 * int(sizeof(S)) - 1)) & splat(most));
        return v != v ? splat(most) : v == splat(T(0)) ? Vec<S>{} : turned;
    }
}

// The keys of n elements; there is room for whole vectors.
template <class T> void make_keys(const T* x, int64_t n, Int<T>* keys) {
    constexpr int L = lanes<T>;
    for (int64_t i = 0; i < n; i += L) store(keys + i, ordered<T>(n - i < L ? load_part(x + i, n - i) : load(x + i)));
}

// Short rows: the place of each element in order is the number of those before it, counted by vectors. Ranks are those of
// a stable sort, whatever other threads do with x meanwhile.
constexpr int64_t SHORT = 64;  // elements: up to here comparing all pairs takes less than any other way

template <class T> struct Ranks {
    using S = Int<T>;
    static constexpr int L = lanes<S>;
    S of[SHORT];

    Ranks(const T* x, int64_t n, bool descending) {
        S keys[SHORT];
        make_keys(x, n, keys);
        const Vec<S> turn = splat(S(descending ? -1 : 0)), lane = lane_numbers<S>();
        for (int64_t i = 0; i < n; i += L) store(keys + i, load(keys + i) ^ turn);
        for (int64_t first = 0; first < n; first += L) {
            const Vec<S> own = load(keys + first);
            const int64_t stop = std::min(first + L, n);
            Vec<S> rank{};
            int64_t j = 0;
            for (; j < first; ++j) rank -= splat(keys[j]) <= own;
            for (; j < stop; ++j) {
                const Vec<S> other = splat(keys[j]);
                rank -= (other < own) | ((other == own) & (splat(S(j - first)) < lane));
            }
            for (; j < n; ++j) rank -= splat(keys[j]) < own;
            store(of + first, rank);
        }
    }
};

// Rows that are shorter still are taken a vector of them at once: element i of row r is lane r of number i.
constexpr int64_t BESIDE = 16;

#define FW_ONCE __attribute__((noinline))  // compiled once for all that call it

template <class S> struct RowsBeside {
    Vec<S> keys[BESIDE], rank[BESIDE];
    bool floating;  // the largest key is nan's

    Vec<S> is_nan(int64_t i) const {
        return keys[i] == splat(std::numeric_limits<S>::max()) ? splat(S(-floating)) : Vec<S>{};
    }

    // The place of each element of its row in order, as a stable sort has it.
    FW_ONCE void find_ranks(int64_t n) {
        for (int64_t i = 0; i < n; ++i) rank[i] = splat(S(n - 1 - i));
        for (int64_t i = 1; i < n; ++i)
            for (int64_t j = 0; j < i; ++j) {
                const Vec<S> before = keys[j] <= keys[i];
                rank[i] -= before, rank[j] += before;
            }
    }
    // The number of the element that is number k in order; with `nan_wins` that of the first nan where there is one.
    FW_ONCE Vec<S> at_rank(int64_t n, Vec<S> k, bool nan_wins) {
        find_ranks(n);
        Vec<S> at{};
        for (int64_t i = 1; i < n; ++i) at = rank[i] == k ? splat(S(i)) : at;
        for (int64_t i = n - 1; nan_wins && i >= 0; --i) at = is_nan(i) ? splat(S(i)) : at;
        return at;
    }
    // The middle one of the numbers that are not nan, of two the lower.
    FW_ONCE Vec<S> middle(int64_t n) {
        Vec<S> numbers = splat(S(n));
        for (int64_t i = 0; i < n; ++i) numbers += is_nan(i);
        return at_rank(n, (numbers + (numbers != 0)) >> 1, false);
    }
    // The last one of the numbers that come most often, the smallest of several; each nan counts for itself.
    FW_ONCE Vec<S> most_often(int64_t n) {
        Vec<S> at = splat(S(n - 1)), most{}, best{};
        for (int64_t i = 0; i < n; ++i) {
            Vec<S> count{};
            for (int64_t j = 0; j < n; ++j) count -= keys[j] == keys[i];
            count &= ~is_nan(i);
            const Vec<S> better = (count > most) | ((count == most) & (count > 0) & (keys[i] <= best));
            at = better ? splat(S(i)) : at, most = better ? count : most, best = better ? keys[i] : best;
        }
        return at;
    }
};
#undef FW_ONCE

constexpr int64_t FEW = 64;  // below, counting digits costs more than comparing
constexpr int DIGIT = 8, VALUES = 1 << DIGIT;

// Sorts e with `other` of the same size as its second place; returns the one in which the result is.
template <class E> E* sort_entries(E* e, E* other, int64_t n) {
    if (n < FEW) {
        std::sort(e, e + n);
        return e;
    }
    using Key = decltype(e->key());
    constexpr int digits = int(sizeof(Key));
    const Key first = e[0].key();
    Key varied = 0;  // the bits that are not the same in all keys
    for (int64_t i = 0; i < n; ++i) varied |= e[i].key() ^ first;
    uint32_t count[digits][VALUES] = {};
    const auto digit = [](Key key, int d) { return key >> d * DIGIT & (VALUES - 1); };
    bool all = true;
    for (int d = 0; d < digits; ++d) all = all && digit(varied, d);
    for (int64_t i = 0; all && i < n; ++i)
        for (int d = 0; d < digits; ++d) ++count[d][digit(e[i].key(), d)];
    for (int d = 0; d < digits; ++d) {
        if (!digit(varied, d)) continue;
        uint32_t* c = count[d];
        for (int64_t i = 0; !all && i < n; ++i) ++c[digit(e[i].key(), d)];
        uint32_t start = 0;
        for (int v = 0; v < VALUES; ++v) start += std::exchange(c[v], start);
        for (int64_t i = 0; i < n; ++i) other[c[digit(e[i].key(), d)]++] = e[i];
        std::swap(e, other);
    }
    return e;
}

// The rows of x along a dimension: one after another in memory where it is the last, else with gaps, and then
// TILE neighbours are gathered at once.
constexpr int64_t TILE = 16;

struct Rows {
    int64_t n, inner, outer, across;

    Rows(const View& x, int dim) : n(x.shape(dim)), inner(1) {
        for (int d = dim + 1; d < x.ndim(); ++d) inner *= x.shape(d);
        outer = n ? x.size() / (n * inner) : 0;
        across = (inner + TILE - 1) / TILE;
    }

    // each(row, its elements, its number among all rows, its place in the result) for all rows, in parallel;
    // the result has m elements in each row.
    template <class T, class Each> void go(const T* x, int64_t m, int64_t cost, Each&& each) const {
        int64_t grain = std::max<int64_t>(1, (16 << 10) / (n * cost * std::min(inner, TILE)));
        parallel(outer * across, grain, [&](int64_t begin, int64_t end) {
            for (int64_t u = begin; u < end; ++u) {
                int64_t o = u / across, j = u % across * TILE, width = std::min(TILE, inner - j);
                const T* from = x + o * n * inner + j;
                if (inner > 1) {
                    T* tile = scratch<T>(0, TILE * n);
                    for (int64_t i = 0; i < n; ++i)
                        for (int64_t k = 0; k < width; ++k) tile[k * n + i] = from[i * inner + k];
                    from = tile;
                }
                for (int64_t k = 0; k < width; ++k) each(from + k * n, o * m * inner + j + k);
            }
        });
    }

    // each(RowsBeside, where element 0 of its first row is, the way to the next row and to the next element, how many rows there
    // are, where the result of the first begins, the way to the next one's) for all rows, of n <= BESIDE elements, in parallel.
    // Elements are bits of numbers, of floating ones if that is said.
    template <class S, class Each> void beside(const S* x, bool floating, int64_t m, Each&& each) const {
        using F = std::conditional_t<sizeof(S) == 4, float, double>;
        constexpr int64_t L = lanes<S>;
        const int64_t lines = inner == 1 ? 1 : outer, length = inner == 1 ? outer : inner, blocks = (length + L - 1) / L;
        const int64_t row = inner == 1 ? n : 1;
        parallel(lines * blocks, std::max<int64_t>(1, (4 << 10) / (n * L)), [&](int64_t begin, int64_t end) {
            for (int64_t u = begin; u < end; ++u) {
                const int64_t line = u / blocks, first = u % blocks * L, width = std::min(L, length - first);
                const S* from = x + line * n * inner + first * row;
                S tile[BESIDE * L];
                if (inner == 1) {
                    for (int64_t i = 0; width < L && i < n; ++i) store(tile + i * L, Vec<S>{});
                    for (int64_t r = 0; r < width; ++r)
                        for (int64_t i = 0; i < n; ++i) tile[i * L + r] = from[r * n + i];
                }
                RowsBeside<S> rows;
                rows.floating = floating;
                for (int64_t i = 0; i < n; ++i) {
                    const S* at = from + i * inner;
                    const Vec<S> v = inner == 1 ? load(tile + i * L) : width < L ? load_part(at, width) : load(at);
                    rows.keys[i] = floating ? ordered<F>(bits<Vec<F>>(v)) : v;
                }
                each(rows, from, row, inner, width, line * m * inner + first * (inner == 1 ? m : 1), inner == 1 ? m : 1);
            }
        });
    }
};

// Calls f(T()) for the type of x, one of those that `sortable` takes.
template <class F> void by_type(const View& x, F&& f) {
    switch (x.type()) {
        case Type::float32: return f(float());
        case Type::float64: return f(double());
        case Type::int64: return f(int64_t());
        default: return f(int32_t());
    }
}

// Calls f(S(), whether they are of floating numbers) for the bits of such a type.
template <class F> void by_bits(const View& x, F&& f) {
    const bool floating = x.type() == Type::float32 || x.type() == Type::float64;
    if (bytes_of(x.type()) == 4) f(int32_t(), floating);
    else f(int64_t(), floating);
}

}  // namespace sort
}  // namespace fw
