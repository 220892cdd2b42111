// Folding elements into one number, or lines into one line: the loops that all reductions share.
//
// A fold F says: `map`, what an element contributes (itself, if F is `plain`); `join`, of vectors and of the
// wide numbers in which whole blocks are joined; `neutral` and `none`, which joined with anything change
// nothing; `exact`, whether rounding never matters. What is not exact is joined in trees, whose shape depends
// on the number of elements only: float32 in vectors over a block, then in float64.
#pragma once

#include "base/pool_internal.h"
#include "reduce/reduce.h"
#include "base/shuffles.h"
#include "base/scratch.h"

namespace fw {
namespace reduce {

template <class T> struct WideOf { using type = T; };
template <> struct WideOf<float> { using type = double; };

// Values joined as a balanced tree while they come: place k holds 2^k of them.
template <class F> struct Tree {
    using W = typename F::W;
    W places[64];
    int top = 0;
    uint64_t count = 0;

    void push(W v) {
        for (uint64_t i = count++; i & 1; i >>= 1) v = F::join(places[--top], v);
        places[top++] = v;
    }
    W total() const {
        if (top == 0) return F::none();
        W v = places[top - 1];
        for (int k = top - 2; k >= 0; --k) v = F::join(places[k], v);
        return v;
    }
};

template <class F> using W = typename F::W;

constexpr int ADDS = 16;  // into one lane before it is put aside
constexpr int RUNS = 4;   // put aside before the lanes are joined
// Two chains: the prefetcher of the first cache follows the loads of one instruction, and finds it hard to
// follow eight of them that take turns. Beyond the second cache two chains are as fast as memory.
template <class T> constexpr int64_t STEP = 2 * lanes<T>;
template <class T> constexpr int64_t BLOCK = RUNS * ADDS * STEP<T>;

template <class F> FW_INLINE typename F::T joined_lanes(Vec<typename F::T> v) {
    using V = Vec<typename F::T>;
    return join_lanes<typename F::T>(v, [](V a, V b) { return F::join(a, b); });
}

// Elements may lie there in a shorter type, halves for sums of float32.
template <class T, class P> FW_INLINE Vec<T> elements(const P* p) {
    if constexpr (std::is_same<T, P>::value) return load(p);
    else return load_wide(p);
}
template <class T, class P> FW_INLINE Vec<T> elements_part(const P* p, int64_t n, T rest) {
    if constexpr (std::is_same<T, P>::value) {
        return load_part(p, n, rest);
    } else {
        T some[lanes<T>];
        widen(some, p, n);
        return load_part(some, n, rest);
    }
}

// What n < lanes elements contribute; the other lanes nothing.
template <class F, class P> FW_INLINE Vec<typename F::T> part(const P* p, int64_t n, Vec<typename F::T> shift) {
    using T = typename F::T;
    if constexpr (F::plain) return elements_part<T>(p, n, F::neutral());
    else return first_lanes<T>(F::map(elements_part<T>(p, n, T()), shift), n, F::neutral());
}

// The fold of a line of at most two vectors.
template <class F, class P> FW_INLINE W<F> fold_short(const P* p, int64_t n, typename F::T shift) {
    using T = typename F::T;
    Vec<T> c = splat(shift);
    if (n < lanes<T>) return joined_lanes<F>(part<F>(p, n, c));
    Vec<T> v = F::map(elements<T>(p), c), rest = splat(F::neutral());
    if (n == 2 * lanes<T>) rest = F::map(elements<T>(p + lanes<T>), c);
    else if (n > lanes<T>) rest = part<F>(p + lanes<T>, n - lanes<T>, c);
    return joined_lanes<F>(F::join(v, rest));
}

// The fold of the elements of one result: lines of any length are taken in.
template <class F> class Row {
    using T = typename F::T;
    static constexpr int64_t MOST_STEPS = F::exact ? std::numeric_limits<int64_t>::max() : ADDS;
    Vec<T> even = splat<T>(F::neutral()), odd = even, block = even;
    int64_t left = MOST_STEPS;  // steps of the run under way
    int runs = 0;               // in the block
    Tree<F> tree;
    Vec<T> shift;

    void put_aside() {
        block = F::join(block, F::join(even, odd));
        even = odd = splat<T>(F::neutral());
        left = MOST_STEPS;
        if (++runs < RUNS) return;
        tree.push(joined_lanes<F>(block));
        block = even;
        runs = 0;
    }

  public:
    explicit Row(T shift) : shift(splat<T>(shift)) {}

    // Whatever the order: in four chains, since what looks for nan waits longer for the step before than for the next vector.
    template <class P> FW_INLINE void whole_steps(const P*& p, int64_t& n) {
        constexpr int64_t L = lanes<T>;
        Vec<T> c = splat<T>(F::neutral()), d = c, a = even, b = odd;
#pragma GCC unroll 1
        for (; n >= 4 * L; p += 4 * L, n -= 4 * L) {
            a = F::join(a, F::map(elements<T>(p), shift));
            b = F::join(b, F::map(elements<T>(p + L), shift));
            c = F::join(c, F::map(elements<T>(p + 2 * L), shift));
            d = F::join(d, F::map(elements<T>(p + 3 * L), shift));
        }
        even = F::join(a, c), odd = F::join(b, d);
    }

    template <class P> FW_INLINE void line(const P* p, int64_t n) {
        constexpr int64_t L = lanes<T>;
        if (F::exact && n >= 16 * L) whole_steps(p, n);
        while (n >= STEP<T>) {
            int64_t steps = std::min(left, n / STEP<T>);
            Vec<T> a = even, b = odd;
#pragma GCC unroll 1
            for (const P* end = p + steps * STEP<T>; p < end; p += STEP<T>) {
                a = F::join(a, F::map(elements<T>(p), shift));
                b = F::join(b, F::map(elements<T>(p + L), shift));
            }
            even = a, odd = b;
            n -= steps * STEP<T>;
            left -= steps;
            if (left == 0) put_aside();
        }
        if (n == 0) return;
        if (n >= L) even = F::join(even, F::map(elements<T>(p), shift)), n -= L, p += L;
        if (n > 0) odd = F::join(odd, part<F>(p, n, shift));
        if (--left == 0) put_aside();
    }
    bool done() const { return F::stops && F::decides(joined_lanes<F>(F::join(even, odd))); }
    typename F::W total() {
        typename F::W last = joined_lanes<F>(F::join(block, F::join(even, odd)));
        if (tree.count == 0) return last;
        if (runs > 0 || left < MOST_STEPS) tree.push(last);
        return tree.total();
    }
};

// Blocks [begin, end) of the result whose elements begin at byte x: each line has ceil(size / BLOCK) of them.
template <class F, class Reader> [[gnu::noinline]]
W<F> fold_blocks(const Plan& plan, Reader& reader, int64_t x, int64_t begin, int64_t end, typename F::T shift) {
    using T = typename F::T;
    constexpr bool whole = std::decay_t<Reader>::stays && !F::stops;  // not block by block
    const int64_t size = plan.inner.size, each = (size + BLOCK<T> - 1) / BLOCK<T>;
    Row<F> row(shift);
    Walk line(plan.folded, plan.nfolded, begin / each);
    int64_t part = begin % each;
    Hearing hear;
    for (int64_t b = begin; b < end && !row.done();) {
        const int64_t first = part * BLOCK<T>, n = std::min((whole ? end - b : 1) * BLOCK<T>, size - first);
        row.line(reader.template at<T>(x + line.x + first * int64_t(sizeof(T)), n), n);
        const int64_t done = (n + BLOCK<T> - 1) / BLOCK<T>;
        b += done, part += done;
        if (part == each) part = 0, line.next();
        hear.after(1);
    }
    return row.total();
}

// All `blocks` of a result; one line goes without calls, block by block, and divisions.
template <class F, class Reader> FW_INLINE W<F> fold_row(const Plan& plan, Reader& reader, int64_t x, int64_t blocks,
                                                         typename F::T shift) {
    using T = typename F::T;
    const int64_t size = plan.inner.size;
    if (plan.nfolded > 0 || (blocks > 1 && (F::stops || !std::decay_t<Reader>::stays)))
        return fold_blocks<F>(plan, reader, x, 0, blocks, shift);
    if (size <= 2 * lanes<T>) return fold_short<F>(reader.template at<T>(x, size), size, shift);
    Row<F> row(shift);
    row.line(reader.template at<T>(x, size), size);
    return row.total();
}

constexpr int64_t TOGETHER = 8;  // lines added in one go
constexpr int64_t GROUPS = 16;   // of them, before the sums are put aside
constexpr int64_t SINGLES = 32;  // lines added one by one, before that
template <class T> constexpr int64_t STRIP = 4096 / sizeof(T);  // columns: their sums stay in the first cache

// Lines of up to STRIP columns joined as a tree, as `Tree` does with numbers.
template <class F> class Lines {
    using T = typename F::T;
    int64_t width;
    T *places, *now;  // places: the levels of the tree, one above the other; now: the line under way
    int top = 0;
    uint64_t count = 0;

    // lines are padded to whole vectors
    [[gnu::noinline]] static void join_into(T* a, const T* b, int64_t width) {
        for (int64_t j = 0; j < width; j += lanes<T>) store<T>(a + j, F::join(load(a + j), load(b + j)));
    }

  public:
    static int64_t padded(int64_t width) { return (width + lanes<T> - 1) / lanes<T> * lanes<T>; }

    Lines(int64_t columns, int64_t most) : width(padded(columns)) {
        int levels = 2;
        for (; most > 0; most /= 2) ++levels;
        places = now = scratch<T>(0, width * levels);
        clear();
    }
    void clear() {
        for (int64_t j = 0; j < width; j += lanes<T>) store<T>(now + j, splat<T>(F::neutral()));
    }
    T* line() { return now; }
    void put_aside() {
        for (uint64_t i = count++; i & 1; i >>= 1, now -= width, --top) join_into(now - width, now, width);
        ++top;
        now += width;
        clear();
    }
    const T* total() {
        for (; top > 0; --top, now -= width) join_into(now - width, now, width);
        return now;
    }
};

template <class F> FW_INLINE void take_line(const typename F::T* p, const typename F::T* shift, int64_t width,
                                            typename F::T* sums) {
    using T = typename F::T;
    auto step = [&](int64_t j, Vec<T> x, Vec<T> c) {
        store<T>(sums + j, F::join(load(sums + j), F::map(x, c)));
    };
    int64_t j = 0;
    for (; j + lanes<T> <= width; j += lanes<T>) step(j, load(p + j), F::shifts ? load(shift + j) : Vec<T>{});
    if (j < width)
        step(j, load_part(p + j, width - j), F::shifts ? load_part(shift + j, width - j) : Vec<T>{});
}

// Vectors leaf(i), leaf(i + W) ... below TOGETHER as a tree; written as one, since -O1 keeps arrays in memory.
template <class F, int W, class Leaf> FW_INLINE Vec<typename F::T> joined_leaves(Leaf&& leaf, int i) {
    if constexpr (W == TOGETHER) return leaf(i);
    else return F::join(joined_leaves<F, 2 * W>(leaf, i), joined_leaves<F, 2 * W>(leaf, i + W));
}

template <class F> FW_INLINE void take_lines(const typename F::T* const (&p)[TOGETHER],
                                             const typename F::T* shift, int64_t width, typename F::T* sums) {
    using T = typename F::T;
    auto step = [&](int64_t j, auto&& read) __attribute__((always_inline)) {
        const Vec<T> c = F::shifts ? read(shift + j) : Vec<T>{};
        auto leaf = [&](int i) __attribute__((always_inline)) { return Vec<T>(F::map(read(p[i] + j), c)); };
        store<T>(sums + j, F::join(load(sums + j), joined_leaves<F, 1>(leaf, 0)));
    };
    int64_t j = 0;
    for (; j + lanes<T> <= width; j += lanes<T>) step(j, [](const T* q) { return load(q); });
    if (j < width) step(j, [n = width - j](const T* q) { return load_part(q, n); });
}

template <class F, class Reader>
const typename F::T* fold_lines(const Plan& plan, Reader& reader, int64_t x, int64_t width, int64_t begin,
                                int64_t end, const typename F::T* shift) {
    using T = typename F::T;
    constexpr bool stays = std::decay_t<Reader>::stays;
    Lines<F> sums(width, (end - begin) / (stays ? TOGETHER * GROUPS : SINGLES));
    Walk line(plan.folded, plan.nfolded, begin);
    int64_t l = begin, groups = 0;
    Hearing hear;
    for (; stays && l + TOGETHER <= end; l += TOGETHER) {
        const T* p[TOGETHER];
        for (auto& q : p) q = reader.template at<T>(x + line.x, width), line.next();
        if (!F::exact && groups++ == GROUPS) sums.put_aside(), groups = 1;
        take_lines<F>(p, shift, width, sums.line());
        hear.after(TOGETHER);
    }
    for (; l < end; ++l, line.next()) {
        if (!stays && !F::exact && groups++ == SINGLES) sums.put_aside(), groups = 1;
        take_line<F>(reader.template at<T>(x + line.x, width), shift, width, sums.line());
        hear.after(1);
    }
    return sums.total();
}

// The lanes that belong to the same of `width` columns, a divisor of `lanes`, joined.
template <class F, int W = lanes<typename F::T> / 2>
FW_INLINE Vec<typename F::T> joined_to(Vec<typename F::T> v, int64_t width) {
    using T = typename F::T;
    if constexpr (W == 0) {
        return v;
    } else {
        if (width <= W) v = F::join(v, permute<T, Swapped<W>>(v, v));
        return joined_to<F, W / 2>(v, width);
    }
}

// `lines` of so few columns that a vector holds one or several: as many whole lines of it are taken at a time.
constexpr int64_t FEW_STEPS = 64;  // of four vectors: not more are added up without a tree
template <class F> [[gnu::noinline]] const typename F::T* fold_few(const typename F::T* p, int64_t lines, int64_t width) {
    using T = typename F::T;
    constexpr int64_t L = lanes<T>;
    const int64_t k = L / width * width;
    int64_t n = lines * width;
    const Vec<T> none = splat<T>(F::neutral()), c{};
    Vec<T> v[4] = {none, none, none, none};
    for (; n >= 3 * k + L; n -= 4 * k, p += 4 * k)  // the lanes from k on are rubbish
#pragma GCC unroll 4
        for (int i = 0; i < 4; ++i) v[i] = F::join(v[i], F::map(load(p + i * k), c));
    for (; n >= L; n -= k, p += k) v[0] = F::join(v[0], F::map(load(p), c));
    if (n > k) v[2] = F::join(v[2], part<F>(p + k, n - k, c)), n = k;
    if (n > 0) v[1] = F::join(v[1], part<F>(p, n, c));
    const Vec<T> all = F::join(F::join(v[0], v[2]), F::join(v[1], v[3]));
    T* sums = scratch<T>(3, L);
    store<T>(sums, L % width ? all : joined_to<F>(all, width));
    for (int64_t i = width; L % width && i < k; i += width)
        for (int64_t j = 0; j < width; ++j) sums[j] = T(F::join(W<F>(sums[j]), W<F>(sums[i + j])));
    return sums;
}

// The same of any number of lines, so many at a time; what comes of them is joined as a tree.
template <class F> const typename F::T* fold_thin(const typename F::T* p, int64_t lines, int64_t width) {
    using T = typename F::T;
    const int64_t most = 2 * FEW_STEPS * lanes<T> / width;
    if (lines <= most) return fold_few<F>(p, lines, width);
    Lines<F> sums(width, lines / most + 1);
    Hearing hear;
    for (; lines > 0; lines -= most, p += most * width) {
        const T* some = fold_few<F>(p, std::min(lines, most), width);
        std::copy_n(some, width, sums.line());
        sums.put_aside();
        hear.after(most);
    }
    return sums.total();
}

// Few lines of up to V vectors, `step` numbers apart: their sums stay in registers, four of them, which do not wait for each other.
template <class F, int V> [[gnu::noinline]]
const typename F::T* fold_held(const typename F::T* p, int64_t step, int64_t lines, int64_t width, const typename F::T* shift) {
    using T = typename F::T;
    constexpr int64_t L = lanes<T>;
    constexpr int TIMES = 4 / V;  // lines at a time
    auto take = [width](const T* q, int v) __attribute__((always_inline)) {
        return 2 * v < V - 1 ? load(q + v * lanes<T>) : load_part(q + v * lanes<T>, std::clamp<int64_t>(width - v * lanes<T>, 0, lanes<T>));
    };
    Vec<T> sum[4], c[V];
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) sum[i] = splat<T>(F::neutral());
#pragma GCC unroll 4
    for (int v = 0; v < V; ++v) c[v] = F::shifts ? take(shift, v) : Vec<T>{};
    for (; lines >= TIMES; lines -= TIMES, p += TIMES * step)
#pragma GCC unroll 4
        for (int i = 0; i < 4; ++i) sum[i] = F::join(sum[i], F::map(take(p + i / V * step, i % V), c[i % V]));
    for (; lines > 0; --lines, p += step)
#pragma GCC unroll 4
        for (int v = 0; v < V; ++v) sum[v] = F::join(sum[v], F::map(take(p, v), c[v]));
    T* sums = scratch<T>(3, 4 * L);
    if (V == 1) sum[0] = F::join(F::join(sum[0], sum[2]), F::join(sum[1], sum[3]));
    if (V == 2) sum[0] = F::join(sum[0], sum[2]), sum[1] = F::join(sum[1], sum[3]);
#pragma GCC unroll 4
    for (int v = 0; v < V; ++v) store<T>(sums + v * L, sum[v]);
    return sums;
}

template <class F>
const typename F::T* fold_held(const typename F::T* p, int64_t step, int64_t lines, int64_t width, const typename F::T* shift) {
    constexpr int64_t L = lanes<typename F::T>;
    return width <= L       ? fold_held<F, 1>(p, step, lines, width, shift)
           : width <= 2 * L ? fold_held<F, 2>(p, step, lines, width, shift)
                            : fold_held<F, 4>(p, step, lines, width, shift);
}

// Lines of few columns, one after another in memory: several are taken as one long line.
template <class F, class Reader>
const typename F::T* fold_narrow(const Plan& plan, Reader& reader, int64_t x, int64_t width, int64_t begin,
                                 int64_t end, const typename F::T* shift) {
    using T = typename F::T;
    int64_t times = 4 * lanes<T> / width, step = plan.folded[0].step, n = (end - begin) / times;
    T* shifts = nullptr;
    if (F::shifts) {
        shifts = scratch<T>(2, times * width);
        for (int64_t i = 0; i < times; ++i) std::copy_n(shift, width, shifts + i * width);
    }
    Plan wide;
    wide.nfolded = 1;
    wide.folded[0] = {n, step * times, 0};
    T* sums = scratch<T>(3, width);
    const T* all = fold_lines<F>(wide, reader, x + begin * step, times * width, 0, n, shifts);
    std::copy_n(all, width, sums);
    for (int64_t i = 1; i < times; ++i)
        for (int64_t j = 0; j < width; ++j) sums[j] = T(F::join(W<F>(sums[j]), W<F>(all[i * width + j])));
    all = fold_lines<F>(plan, reader, x, width, begin + n * times, end, shift);
    for (int64_t j = 0; j < width; ++j) sums[j] = T(F::join(W<F>(sums[j]), W<F>(all[j])));
    return sums;
}

// The bytes of lines of `width` columns, if they lie one after another, else 0.
template <class T> int64_t bytes_of_lines(const Plan& plan, int64_t width, int64_t lines) {
    const int64_t bytes = width * int64_t(sizeof(T));
    return plan.nfolded == 1 && plan.folded[0].step == bytes ? lines * bytes : 0;
}

// Lines [begin, end) of `width` columns that begin at byte x; shift: a number for each column. The result stays
// until the thread's next call.
template <class F, class Reader>
const typename F::T* fold_columns(const Plan& plan, Reader& reader, int64_t x, int64_t width, int64_t begin, int64_t end,
                                  const typename F::T* shift) {
    using T = typename F::T;
    const int64_t numbers = (end - begin) * width;
    const bool dense = bytes_of_lines<T>(plan, width, 1);
    if constexpr (!F::shifts)
        if (dense && width <= lanes<T> && (std::decay_t<Reader>::stays || numbers <= 2 * FEW_STEPS * lanes<T>))
            return fold_thin<F>(reader.template at<T>(x + begin * plan.folded[0].step, numbers), end - begin, width);
    if (plan.nfolded == 1 && width <= 4 * lanes<T> && end - begin <= 2 * FEW_STEPS && (dense || std::decay_t<Reader>::stays)) {
        const int64_t step = plan.folded[0].step;
        return fold_held<F>(reader.template at<T>(x + begin * step, numbers), step / int64_t(sizeof(T)), end - begin, width, shift);
    }
    if (dense && width <= 2 * lanes<T> && numbers >= 8 * lanes<T>) return fold_narrow<F>(plan, reader, x, width, begin, end, shift);
    return fold_lines<F>(plan, reader, x, width, begin, end, shift);
}

}  // namespace reduce
}  // namespace fw
