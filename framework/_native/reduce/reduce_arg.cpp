#include "reduce/reduce_arg.h"

#include <limits>
#include <vector>

#include "base/short_rows.h"
#include "reduce/reduce_folds.h"
#include "reduce/reduce_run.h"

namespace fw {
namespace reduce {

namespace {

constexpr int64_t FEW_LINES = 64;

template <class T> struct Found {
    T value;
    int64_t at;
};

// Whether b, later than a, takes its place.
template <template <class> class F, class V> FW_INLINE auto beats(V b, V a) {
    if constexpr (F<float>::upwards) return ~(b <= a) & (a == a);
    else return ~(b >= a) & (a == a);
}
template <template <class> class F, class T> bool wins(T b, T a) {
    return !(F<float>::upwards ? b <= a : b >= a) && a == a;
}

// The first element that `hits` finds; the last one where another thread changed what there was to find.
template <class T, class F> FW_INLINE int64_t first_hit(const T* p, int64_t n, F hits) {
    constexpr int64_t L = lanes<T>;
    int64_t i = 0;
    for (; i + 4 * L <= n; i += 4 * L) {
        Mask<T> m = hits(load(p + i));
        for (int u = 1; u < 4; ++u) m |= hits(load(p + i + u * L));
        if (math::any(m)) break;
    }
    for (; i + L <= n; i += L) {
        Mask<T> m = hits(load(p + i));
        if (math::any(m)) return i + first_set<T>(m);
    }
    if (i == n) return n - 1;
    const Mask<T> m = hits(load_part(p + i, n - i, p[i]));
    return math::any(m) ? std::min(n - 1, i + first_set<T>(m)) : n - 1;
}

// The first element that equals v, or is nan if v is.
template <class T> int64_t place_of(const T* p, int64_t n, T v) {
    Vec<T> wanted = splat(v);
    if (v == v) return first_hit(p, n, [&](Vec<T> x) -> Mask<T> { return x == wanted; });
    return first_hit(p, n, [](Vec<T> x) -> Mask<T> { return x != x; });
}

// Of a line: the block of the best element, then the element in the block.
template <template <class> class F, class T> Found<T> best_of(const T* p, int64_t begin, int64_t end) {
    Found<T> best{p[begin], begin};
    if (end - begin <= 2 * lanes<T>) {
        best.value = T(fold_short<F<T>>(p + begin, end - begin, T()));
    } else {
        for (int64_t b = begin; b < end && best.value == best.value; b += BLOCK<T>) {
            Row<F<T>> row{T()};
            row.line(p + b, std::min(BLOCK<T>, end - b));
            T v = T(row.total());
            if (b == begin || wins<F>(v, best.value)) best = {v, b};
        }
    }
    const int64_t n = std::min(BLOCK<T>, end - best.at), at = best.at + place_of(p + best.at, n, best.value);
    return {p[at], at};  // whose sign a 0 has
}

// The best of each group of 2 W lanes, as `joined_groups`: of equal ones the first.
template <template <class> class F, class T, int M, int W> FW_INLINE void best_of_groups(Vec<T>* v, Mask<T>* at) {
    if constexpr (W > 0) {
#pragma GCC unroll 8
        for (int i = 0; i < M / 2 + M % 2; ++i) {
            const int j = 2 * i, k = std::min(2 * i + 1, M - 1);
            const Vec<T> a = permute<T, GroupHalves<T, W, false>>(v[j], v[k]), b = permute<T, GroupHalves<T, W, true>>(v[j], v[k]);
            const Mask<T> here = permute<Int<T>, GroupHalves<T, W, false>>(at[j], at[k]);
            const Mask<T> there = permute<Int<T>, GroupHalves<T, W, true>>(at[j], at[k]);
            const Mask<T> equal = (a == b) | ((a != a) & (b != b)), m = beats<F>(b, a) | (equal & (there < here));
            v[i] = select<T>(m, b, a);
            at[i] = m ? there : here;
        }
        best_of_groups<F, T, M / 2 + M % 2, W / 2>(v, at);
    }
}

constexpr int64_t SHORT = 8;  // vectors of a row that is gone over once

// The best of the lanes of a row, and where each is.
template <template <class> class F, class T> FW_INLINE void best_of_lanes(const T* row, int64_t k, Vec<T>& best, Mask<T>& where) {
    constexpr int n = lanes<T>;
    const Mask<T> lane = lane_numbers<T>();
    best = load_part(row, std::min<int64_t>(k, n), F<T>::neutral()), where = lane;
    for (int64_t p = n; p < k; p += n) {
        const Vec<T> v = load_part(row + p, std::min<int64_t>(k - p, n), F<T>::neutral());
        const Mask<T> m = beats<F>(v, best);
        best = select<T>(m, v, best);
        where = m ? lane + splat<Int<T>>(Int<T>(p)) : where;
    }
}

// Rows of few vectors that lie one after another, `lanes` of them at a time.
template <template <class> class F, class T, int W>
void best_of_short(const T* from, int64_t k, int64_t count, T* values, int64_t* places) {
    constexpr int n = lanes<T>;
    const ShortRows<T, W> whole{k};
    for (int64_t r = 0; r < count; r += n) {
        const int64_t left = std::min<int64_t>(n, count - r);
        alignas(64) T room[n * W], found[n];
        alignas(64) Int<T> where[n];
        const ShortRows<T, W> rows{left < n ? W : k};
        if (W < n && left < n) whole.copy(from + r * k, k, left, F<T>::neutral(), room);
        const T* at = W < n && left < n ? room : from + r * k;
        Vec<T> v[W];
        Mask<T> place[W];
        if constexpr (W == n) {
#pragma GCC unroll 1
            for (int64_t i = 0; i < n; ++i)
                best_of_lanes<F>(at + std::min<int64_t>(i, left - 1) * k, k, v[i], place[i]);
        } else {
#pragma GCC unroll 8
            for (int i = 0; i < W; ++i) {
                v[i] = rows.at(at + i * rows.together * rows.k, F<T>::neutral());
                place[i] = lane_numbers<T>() % W;
            }
        }
        best_of_groups<F, T, W, W / 2>(v, place);
        store<T>(found, v[0]), store<Int<T>>(where, place[0]);
        for (int64_t i = 0; i < left; ++i) values[r + i] = found[i], places[r + i] = where[i];
    }
}

template <template <class> class F, class T>
void best_of_rows(const Plan& plan, const char* x, T* values, int64_t* places) {
    const bool dense = plan.nkept == 1 && plan.kept[0].step == plan.inner.size * int64_t(sizeof(T)) && plan.kept[0].out == 1;
    if (dense && plan.inner.size > 1 && plan.inner.size <= SHORT * lanes<T> && plan.outer >= lanes<T>) {
        const int64_t k = plan.inner.size, grain = std::max<int64_t>(lanes<T>, GRAIN / k / lanes<T> * lanes<T>);
        const T* from = reinterpret_cast<const T*>(x);
        return with_short_rows<T>(k, k, [&](auto w) {
            parallel(plan.outer, grain, [&](int64_t begin, int64_t end) {
                best_of_short<F, T, w>(from + begin * k, k, end - begin, values + begin, places + begin);
            });
        });
    }
    int64_t n = plan.inner.size, pieces = pieces_of(plan.outer, n);
    std::vector<Found<T>> parts(pieces > 1 ? size_t(plan.outer * pieces) : 0);
    parallel(plan.outer * pieces, std::max<int64_t>(1, GRAIN * pieces / n), [&](int64_t begin, int64_t end) {
        Walk at(plan.kept, plan.nkept, begin / pieces);
        for (int64_t u = begin; u < end; ++u) {
            int64_t p = u % pieces;
            const T* line = reinterpret_cast<const T*>(x + at.x);
            Found<T> found = best_of<F>(line, n * p / pieces, n * (p + 1) / pieces);
            if (pieces > 1) parts[u] = found;
            else values[at.out] = found.value, places[at.out] = found.at;
            if (p + 1 == pieces) at.next();
        }
    });
    Walk at(plan.kept, plan.nkept, 0);
    for (int64_t r = 0; r < plan.outer && pieces > 1; ++r, at.next()) {
        Found<T> best = parts[r * pieces];
        for (int64_t p = 1; p < pieces; ++p)
            if (wins<F>(parts[r * pieces + p].value, best.value)) best = parts[r * pieces + p];
        values[at.out] = best.value;
        places[at.out] = best.at;
    }
}

// Lines [begin, end) of a strip of columns; values and places have room for whole vectors.
template <template <class> class F, class T>
void best_of_lines(const char* x, int64_t step, int64_t width, int64_t begin, int64_t end, T* values,
                   Int<T>* places) {
    std::copy_n(reinterpret_cast<const T*>(x + begin * step), width, values);
    std::fill_n(places, width, Int<T>(begin));
    for (int64_t l = begin + 1; l < end; ++l) {
        const T* p = reinterpret_cast<const T*>(x + l * step);
        Mask<T> here = splat(Int<T>(l));
        auto take = [&](int64_t j, Vec<T> v) {
            Vec<T> best = load(values + j);
            Mask<T> m = beats<F>(v, best);
            store<T>(values + j, select<T>(m, v, best));
            store<Int<T>>(places + j, m ? here : load(places + j));
        };
        int64_t j = 0;
        for (; j + lanes<T> <= width; j += lanes<T>) take(j, load(p + j));
        if (j < width) take(j, load_part(p + j, width - j));
    }
}

// Lines of few columns, one after another in memory: several are taken as one long line.
template <template <class> class F, class T>
void best_of_narrow(const char* x, int64_t width, int64_t begin, int64_t end, T* values, Int<T>* places) {
    int64_t step = width * int64_t(sizeof(T)), times = 4 * lanes<T> / width, n = (end - begin) / times;
    auto* found = scratch<T>(0, 5 * lanes<T>);
    auto* where = scratch<Int<T>>(1, 5 * lanes<T>);
    best_of_lines<F>(x + begin * step, step * times, times * width, 0, n, found, where);
    for (int64_t j = 0; j < width; ++j) {
        values[j] = found[j];
        places[j] = Int<T>(begin + where[j] * times);
        for (int64_t i = 1; i < times; ++i) {
            T v = found[i * width + j];
            Int<T> at = Int<T>(begin + where[i * width + j] * times + i);
            bool same = v == values[j] || (v != v && values[j] != values[j]);
            if (same ? at < places[j] : wins<F>(v, values[j])) values[j] = v, places[j] = at;
        }
    }
    if (begin + n * times == end) return;
    best_of_lines<F>(x, step, width, begin + n * times, end, found, where);
    for (int64_t j = 0; j < width; ++j)
        if (wins<F>(found[j], values[j])) values[j] = found[j], places[j] = where[j];
}

// Few lines of at most a vector's columns, many times: all goes through registers.
template <template <class> class F, class T>
void best_of_small(const Plan& plan, const char* x, T* values, int64_t* places) {
    const int64_t step = plan.nfolded ? plan.folded[0].step : 0, width = plan.inner.size, out = plan.inner.out;
    parallel(plan.outer, std::max<int64_t>(1, GRAIN / (plan.lines * lanes<T>)), [&](int64_t begin, int64_t end) {
        Walk at(plan.kept, plan.nkept, begin);
        for (int64_t u = begin; u < end; ++u, at.next()) {
            auto line = [&](int64_t l) {
                const T* p = reinterpret_cast<const T*>(x + at.x + l * step);
                return width == lanes<T> ? load(p) : load_part(p, width);
            };
            Vec<T> best = line(0);
            Mask<T> where{};
            for (int64_t l = 1; l < plan.lines; ++l) {
                const Vec<T> v = line(l);
                const Mask<T> m = beats<F>(v, best);
                best = select<T>(m, v, best);
                where = m ? splat(Int<T>(l)) : where;
            }
            T found[lanes<T>];
            Int<T> line_of[lanes<T>];
            store<T>(found, best), store<Int<T>>(line_of, where);
            for (int64_t j = 0; j < width; ++j)
                values[at.out + j * out] = found[j], places[at.out + j * out] = line_of[j];
        }
    });
}

template <template <class> class F, class T>
void best_of_columns(const Plan& plan, const char* x, T* values, int64_t* places) {
    if (plan.inner.size <= lanes<T> && plan.lines <= FEW_LINES && plan.outer > 1)
        return best_of_small<F>(plan, x, values, places);
    Strips strips(plan, STRIP<T> / 2, 4 * lanes<T>);
    int64_t each = plan.lines * std::min(strips.width, plan.inner.size);
    int64_t pieces = std::min(plan.lines, pieces_of(strips.count, each)), room = strips.width;
    int64_t step = plan.nfolded ? plan.folded[0].step : 0;
    std::vector<T> found(size_t(strips.count * pieces * room));
    std::vector<Int<T>> where(size_t(strips.count * pieces * room));
    int64_t grain = std::max<int64_t>(1, GRAIN * pieces / each);
    parallel(strips.count * pieces, grain, [&](int64_t begin, int64_t end) {
        for (int64_t u = begin; u < end; ++u) {
            Strip s = strips[u / pieces];
            int64_t p = u % pieces;
            int64_t first = plan.lines * p / pieces, last = plan.lines * (p + 1) / pieces;
            bool dense = step == s.width * int64_t(sizeof(T)) && (last - first) * step > 8 * FW_BYTES;
            if (dense && step <= 2 * FW_BYTES)
                best_of_narrow<F>(x + s.x, s.width, first, last, &found[u * room], &where[u * room]);
            else
                best_of_lines<F>(x + s.x, step, s.width, first, last, &found[u * room], &where[u * room]);
        }
    });
    for (int64_t i = 0; i < strips.count; ++i) {
        Strip s = strips[i];
        for (int64_t j = 0; j < s.width; ++j) {
            int64_t best = i * pieces * room + j;
            for (int64_t p = 1; p < pieces; ++p) {
                int64_t other = (i * pieces + p) * room + j;
                if (wins<F>(found[other], found[best])) best = other;
            }
            values[s.out + j * plan.inner.out] = found[best];
            places[s.out + j * plan.inner.out] = where[best];
        }
    }
}

}  // namespace

template <class T> bool countable_places(const Plan& plan) { return plan.lines <= std::numeric_limits<Int<T>>::max(); }

template <class T> void best_along(const Plan& plan, const char* x, bool largest, T* values, int64_t* places) {
    const auto best = largest ? (plan.rows ? best_of_rows<Largest, T> : best_of_columns<Largest, T>)
                              : (plan.rows ? best_of_rows<Smallest, T> : best_of_columns<Smallest, T>);
    best(plan, x, values, places);
}

#define FW_OF(T)                                     \
    template bool countable_places<T>(const Plan&);  \
    template void best_along(const Plan&, const char*, bool, T*, int64_t*);
FW_OF(float)
FW_OF(double)
FW_OF(int32_t)
FW_OF(int64_t)
#undef FW_OF

}  // namespace reduce
}  // namespace fw
