#include "reduce/counts.h"

#include <type_traits>
#include <vector>

#include "base/scratch.h"

namespace fw::reduce {
namespace {

// What a lane can count to
template <class T> constexpr int64_t MOST_COUNTED = sizeof(T) == 1 ? 255 : 1 << 30;

template <class T> FW_INLINE Mask<T> nonzero(Vec<T> v) { return Mask<T>(v != Vec<T>{}); }

// The bytes of a word that are not 0
FW_INLINE int64_t nonzero_bytes(uint64_t w) {
    constexpr uint64_t low = 0x7f7f7f7f7f7f7f7fu;
    return __builtin_popcountll((((w & low) + low) | w) & ~low);
}

template <class T> int64_t added_up(Mask<T> lanes_of) {
    std::make_unsigned_t<Int<T>> of[lanes<T>];
    std::memcpy(of, &lanes_of, sizeof of);
    int64_t sum = 0;
    if constexpr (sizeof(T) == 1) {
        constexpr uint64_t even = 0x00ff00ff00ff00ffu;
        for (int i = 0; i < FW_BYTES; i += 8) {
            uint64_t w;
            std::memcpy(&w, of + i, 8);
            sum += int64_t(((w & even) + (w >> 8 & even)) * 0x0001000100010001u >> 48);
        }
    } else {
        for (auto n : of) sum += n;
    }
    return sum;
}

template <class T> FW_INLINE int64_t of_line(const T* p, int64_t n) {
    constexpr int64_t L = lanes<T>;
    int64_t sum = 0, i = 0;
    while (n - i >= 2 * L) {
        const int64_t stop = std::min(n - L, i + (MOST_COUNTED<T> - 1) * L);
        Mask<T> counts{};
        for (; i <= stop; i += L) counts -= nonzero<T>(load(p + i));
        sum += added_up<T>(counts);
    }
    if constexpr (sizeof(T) == 1) {
        for (; n - i >= 8; i += 8) {
            uint64_t w;
            std::memcpy(&w, p + i, 8);
            sum += nonzero_bytes(w);
        }
        if (n - i >= 4) {
            uint32_t w;
            std::memcpy(&w, p + i, 4);
            sum += nonzero_bytes(w), i += 4;
        }
    }
    for (; i < n; ++i) sum += p[i] != 0;
    return sum;
}

// Columns [0, width) of all lines from x on, into `out`, whose elements lie `step` apart.
template <class T> void of_columns(const Plan& plan, const char* x, int64_t width, int64_t* out, int64_t step) {
    constexpr int64_t L = lanes<T>;
    auto* counts = scratch<Int<T>>(0, width + L);
    for (int64_t j = 0; j < width; ++j) out[j * step] = 0;
    Walk at(plan.folded, plan.nfolded, 0);
    for (int64_t l = 0; l < plan.lines;) {
        const int64_t stop = std::min(plan.lines, l + MOST_COUNTED<T>);
        std::fill_n(counts, width, Int<T>(0));
        for (; l < stop; ++l, at.next()) {
            const T* p = reinterpret_cast<const T*>(x + at.x);
            int64_t j = 0;
            for (; j + L <= width; j += L) store<Int<T>>(counts + j, load(counts + j) - nonzero<T>(load(p + j)));
            for (; j < width; ++j) counts[j] = Int<T>(counts[j] + (p[j] != 0));
        }
        for (int64_t j = 0; j < width; ++j) out[j * step] += std::make_unsigned_t<Int<T>>(counts[j]);
    }
}

// The same of `lines` short lines that are `line` bytes apart, number by number.
template <class T> void of_few(const char* x, int64_t width, int64_t lines, int64_t line, int64_t* out, int64_t step) {
    for (int64_t j = 0; j < width; ++j) {
        int64_t sum = 0;
        for (int64_t l = 0; l < lines; ++l) sum += reinterpret_cast<const T*>(x + l * line)[j] != 0;
        out[j * step] = sum;
    }
}

constexpr int64_t COLUMNS = 4096;  // gone along together
constexpr int64_t FEW = 64;        // elements of short lines

template <class T> void rows(const Plan& plan, const char* x, int64_t* out) {
    const int64_t n = plan.inner.size, pieces = pieces_of(plan.outer, plan.count());
    if (pieces == 1 && plan.nkept == 1 && !plan.nfolded) {
        const Loop& row = plan.kept[0];
        return parallel(plan.outer, std::max<int64_t>(1, GRAIN / n), [&](int64_t begin, int64_t end) {
            for (int64_t u = begin; u < end; ++u)
                out[u * row.out] = of_line(reinterpret_cast<const T*>(x + u * row.step), n);
        });
    }
    std::vector<int64_t> parts(size_t(pieces > 1 ? plan.outer * pieces : 0));
    parallel(plan.outer * pieces, std::max<int64_t>(1, GRAIN * pieces / plan.count()), [&](int64_t begin, int64_t end) {
        Walk at(plan.kept, plan.nkept, begin / pieces);
        for (int64_t u = begin; u < end; ++u) {
            const int64_t p = u % pieces, first = n * p / pieces, last = n * (p + 1) / pieces;
            int64_t sum = plan.nfolded ? 0 : of_line(reinterpret_cast<const T*>(x + at.x) + first, last - first);
            if (plan.nfolded) {
                Walk line(plan.folded, plan.nfolded, 0);
                for (int64_t l = 0; l < plan.lines; ++l, line.next())
                    sum += of_line(reinterpret_cast<const T*>(x + at.x + line.x) + first, last - first);
            }
            (pieces > 1 ? parts[size_t(u)] : out[at.out]) = sum;
            if (p + 1 == pieces) at.next();
        }
    });
    if (pieces == 1) return;
    Walk at(plan.kept, plan.nkept, 0);
    for (int64_t r = 0; r < plan.outer; ++r, at.next()) {
        out[at.out] = 0;
        for (int64_t p = 0; p < pieces; ++p) out[at.out] += parts[size_t(r * pieces + p)];
    }
}

template <class T> void columns(const Plan& plan, const char* x, int64_t* out) {
    const int64_t n = plan.inner.size, across = (n + COLUMNS - 1) / COLUMNS, each = plan.lines * std::min(n, COLUMNS);
    parallel(plan.outer * across, std::max<int64_t>(1, GRAIN / each), [&](int64_t begin, int64_t end) {
        Walk at(plan.kept, plan.nkept, begin / across);
        for (int64_t u = begin; u < end; ++u) {
            const int64_t j = u % across * COLUMNS, width = std::min(COLUMNS, n - j), step = plan.inner.out;
            int64_t* to = out + at.out + j * step;
            const char* from = x + at.x + j * int64_t(sizeof(T));
            if (plan.nfolded == 1 && each <= FEW) of_few<T>(from, width, plan.lines, plan.folded[0].step, to, step);
            else of_columns<T>(plan, from, width, to, step);
            if (u % across + 1 == across) at.next();
        }
    });
}

}  // namespace

template <class T> void count_nonzero(const Plan& plan, const char* x, int64_t* out) {
    (plan.rows ? rows<T> : columns<T>)(plan, x, out);
}

template <class T> void truth_by_counts(const Plan& plan, const char* x, uint8_t* out, bool all) {
    const int64_t results = plan.outer * (plan.rows ? 1 : plan.inner.size), least = all ? plan.count() : 1;
    const Borrowed room(results, sizeof(int64_t));
    auto* counts = static_cast<int64_t*>(room.start);
    count_nonzero<T>(plan, x, counts);
    for (int64_t i = 0; i < results; ++i) out[i] = counts[i] >= least;
}

template <class T> int64_t nonzero_in_line(const T* p, int64_t n) { return of_line(p, n); }

#define FW_OF(T)                                                        \
    template int64_t nonzero_in_line(const T*, int64_t);                \
    template void count_nonzero<T>(const Plan&, const char*, int64_t*); \
    template void truth_by_counts<T>(const Plan&, const char*, uint8_t*, bool);
FW_OF(uint8_t)
FW_OF(int32_t)
FW_OF(int64_t)
FW_OF(float)
FW_OF(double)
#undef FW_OF

}  // namespace fw::reduce
