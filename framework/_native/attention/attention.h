// Scaled dot-product attention in blocks: what forward and backward share.
//
// The table of scores is never kept (Rabe and Staats, arXiv:2112.05682; Dao et al., arXiv:2205.14135): a block
// of it, KEYS rows by QUERIES columns, is made of a few rows of the operands, used, and forgotten. It stands
// with the queries side by side, so that sums over keys are sums of vectors, and so that as a left operand it
// is a panel already; keys and values are read where they lie.
#pragma once

#include "base/view.h"
#include "random/coins.h"
#include "gemm/gemm_kernel.h"
#include "base/rows.h"
#include "base/scratch.h"
#include "base/vecmath.h"

namespace fw {
namespace attention {

constexpr int64_t QUERIES = 32, KEYS = 112 / tile_rows * tile_rows, BLOCK_SIZE = KEYS * QUERIES;
constexpr int64_t GRAIN = 100 * 1000;  // multiplications that are worth a thread's attention
constexpr int MOST_AXES = 8;

enum class Masking { none, causal, closed, added };  // what becomes of scores

inline int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }
template <class T> int64_t padded(int64_t n) { return ceil_div(n, lanes<T>) * lanes<T>; }

// The dimensions before the last two of all operands, broadcast; a head is one place in them.
struct Heads {
    int ndim = 0;
    int64_t shape[MOST_AXES];
    int64_t count = 1;

    bool join(const int64_t* dims, int n) {
        if (n > MOST_AXES) return false;
        if (n > ndim) {
            std::move_backward(shape, shape + ndim, shape + n);
            std::fill(shape, shape + (n - ndim), 1);
            ndim = n;
        }
        for (int d = 0; d < n; ++d) {
            int64_t& s = shape[ndim - n + d];
            if (s == 1) s = dims[d];
            else if (dims[d] != 1 && dims[d] != s) return false;
        }
        return true;
    }

    void finish() {
        for (int d = 0; d < ndim; ++d) count *= shape[d];
    }
};

template <class T> struct Matrix {
    T* p;
    int64_t row, col;

    Matrix from(int64_t i) const { return {p + i * row, row, col}; }
};

// An operand: a matrix for each head, strides in numbers.
template <class T> struct Operand {
    Matrix<T> first{};
    int64_t step[MOST_AXES];
    const Heads* heads = nullptr;

    Operand() = default;
    Operand(const Heads& heads, const View& x) : heads(&heads) {
        const int64_t size = sizeof(T);
        const int n = x.ndim();
        auto stride = [&](int d) { return x.shape(d) == 1 ? 0 : x.stride(d) / size; };
        first = {x.data<T>(), stride(n - 2), stride(n - 1)};
        std::fill(step, step + heads.ndim, 0);
        for (int d = 0; d < n - 2; ++d) step[heads.ndim - n + 2 + d] = stride(d);
    }

    bool wanted() const { return heads != nullptr; }

    Matrix<T> at(int64_t head) const {
        Matrix<T> m = first;
        if (!heads) return m;
        for (int d = heads->ndim - 1; d >= 0; --d) {
            m.p += head % heads->shape[d] * step[d];
            head /= heads->shape[d];
        }
        return m;
    }
};

// What is asked of both directions. The operands are of S, what is computed of T.
template <class T, class S = T> struct Problem {
    Heads heads;
    int64_t queries, keys, width, out_width;
    Operand<const S> q, k, v;
    Operand<const T> added;
    Operand<const uint8_t> closed;
    Masking masking = Masking::none;
    T scale;
    double p;  // dropout
    uint64_t key;

    // Where the keys end that queries before `end` may attend to.
    int64_t last_key(int64_t end, bool skips) const { return skips ? std::min(end, keys) : keys; }
    // How many blocks of queries are worth a thread.
    int64_t grain() const {
        return std::max<int64_t>(1, worth(GRAIN) / (std::min(QUERIES, queries) * keys * (width + out_width)));
    }
    // Whether there are keys that no query of some block may attend to.
    bool may_skip() const { return masking == Masking::causal && std::min(QUERIES, queries) < keys; }
};

// False where the arrays are not what the kernels take: numbers of float32 or float64, or else of `other`, with a mask that is
// added in float32.
inline bool takes(const View& q, const View& k, const View& v, const View& mask, bool masked, Type other = Type::float32) {
    const Type type = q.type(), computed = type == other ? Type::float32 : type;
    if ((computed != Type::float32 && type != Type::float64) || !q.size()) return false;
    for (const View* a : {&q, &k, &v}) {
        if (a->type() != type || a->ndim() < 2 || !a->size() || !a->whole_strides()) return false;
    }
    if (masked && (!(mask.type() == Type::boolean || mask.type() == computed) || mask.ndim() < 2 ||
                   !mask.size() || !mask.whole_strides()))
        return false;
    int n = q.ndim(), m = k.ndim(), o = v.ndim();
    auto fits = [](int64_t size, int64_t wanted) { return size == 1 || size == wanted; };
    return q.shape(n - 1) == k.shape(m - 1) && k.shape(m - 2) == v.shape(o - 2) &&
           (!masked || (fits(mask.shape(mask.ndim() - 2), q.shape(n - 2)) &&
                        fits(mask.shape(mask.ndim() - 1), k.shape(m - 2))));
}

template <class T, class S>
bool set_up(Problem<T, S>& a, const View& q, const View& k, const View& v, const View& mask, bool masked,
            bool causal, double scale, double p, uint64_t key) {
    for (const View* x : {&q, &k, &v, &mask})
        if ((x != &mask || masked) && !a.heads.join(x->sizes, x->ndim() - 2)) return false;
    a.heads.finish();
    a.queries = q.shape(q.ndim() - 2), a.keys = k.shape(k.ndim() - 2);
    a.width = q.shape(q.ndim() - 1), a.out_width = v.shape(v.ndim() - 1);
    a.q = {a.heads, q}, a.k = {a.heads, k}, a.v = {a.heads, v};
    if (causal) a.masking = Masking::causal;
    if (masked && mask.type() == Type::boolean) a.masking = Masking::closed, a.closed = {a.heads, mask};
    if (masked && mask.type() != Type::boolean) a.masking = Masking::added, a.added = {a.heads, mask};
    a.scale = T(scale), a.p = p, a.key = key;
    return true;
}

// The softmax of the scores, and the values weighted by it, of all heads; `lse` gets the logarithm of the sum of each row.
template <class T> void attend(const Problem<T>& a, const Operand<T>& out, T* lse);

// The same of bfloat16 by the matrix unit, for rows of up to so many numbers. Weights are rounded to bfloat16, sums are not.
constexpr int64_t MOST_NARROW = 512;
void attend(const Problem<float, Bf16>& a, const Operand<Bf16>& out, float* lse);

// body(std::integral_constant<Masking, ...>)
template <class F> void choosing_masking(Masking m, F&& body) {
    using M = Masking;
    switch (m) {
        case M::none: return body(std::integral_constant<M, M::none>{});
        case M::causal: return body(std::integral_constant<M, M::causal>{});
        case M::closed: return body(std::integral_constant<M, M::closed>{});
        case M::added: return body(std::integral_constant<M, M::added>{});
    }
}

// -- memory of a thread ----------------------------------------------------------------------------

template <class T> class Room {
  public:
    explicit Room(int64_t count) {
        static thread_local ThreadScratch memory;
        next = static_cast<T*>(memory.at_least(size_t(count) * sizeof(T)));
    }
    T* take(int64_t count) {
        T* p = next;
        next += count;
        return p;
    }

  private:
    T* next;
};

// -- matrices --------------------------------------------------------------------------------------

template <class T> bool finite(Matrix<const T> m, int64_t rows, int64_t cols) {
    if (m.col != 1) {
        for (int64_t i = 0; i < rows; ++i)
            for (int64_t j = 0; j < cols; ++j)
                if (!std::isfinite(m.p[i * m.row + j * m.col])) return false;
        return true;
    }
    Vec<T> sum[2] = {};  // x - x is 0, or nan
    for (int64_t i = 0; i < rows; ++i)
        vectors<T>(0, cols, [&](int64_t j, auto part, int w) {
            Vec<T> x = take(m.p + i * m.row + j, part);
            sum[w & 1] += x - x;
        });
    return total<T>(sum[0] + sum[1]) == 0;
}

template <> inline bool finite(Matrix<const Bf16> m, int64_t rows, int64_t cols) {
    constexpr uint16_t exponent = 0x7f80;
    unsigned odd = 0;
    for (int64_t i = 0; i < rows; ++i)
        for (int64_t j = 0; j < cols; ++j) odd |= unsigned((m.p[i * m.row + j * m.col].bits & exponent) == exponent);
    return !odd;
}

// Rows that lie so far apart drive each other out of the cache.
template <class T> bool collides(int64_t row) { return row != 0 && row * int64_t(sizeof(T)) % 2048 == 0; }

// Rows side by side, filled with 0 to whole vectors.
template <class T> void pack_rows(T* to, Matrix<const T> m, int64_t rows, int64_t cols) {
    pack_panel(to, int(padded<T>(cols)), m.p, int(cols), m.col, m.row, rows);
}

// Whether a product can read it as its right operand, in whole vectors.
template <class T> bool readable(Matrix<const T> m, int64_t cols) { return m.col == 1 && fills<T>(cols); }

// Rows as a right operand: where they lie, or packed into `room`.
template <class T> Matrix<const T> as_right(Matrix<const T> m, int64_t rows, int64_t cols, T* room) {
    if (readable(m, cols) && !collides<T>(m.row)) return m;
    pack_rows(room, m, rows, cols);
    return {room, padded<T>(cols), 1};
}

// The keys or the values of one head after the other, as a left operand and as a right one: where they lie, or packed. What one
// block of queries had packed the next ones find, unless that is too much for a thread.
template <class T> class RowsOfHead {
  public:
    RowsOfHead(const Operand<const T>& of, int64_t rows, int64_t cols, int64_t queries, Room<T>& room)
        : of(of), rows(rows), cols(cols), kept(keeps(rows, cols, queries)), often(kept && queries >= OFTEN),
          packed(room.take(numbers(rows, cols, queries))) {}

    static int64_t numbers(int64_t rows, int64_t cols, int64_t queries) {  // of the room that one takes
        return (keeps(rows, cols, queries) ? rows : KEYS) * padded<T>(cols);
    }

    void begin(int64_t next) {
        if (next != head) all = of.at(next), head = next, first = last = 0;
    }

    Matrix<const T> in_place(int64_t from) const { return all.from(from); }

    Matrix<const T> left(int64_t from, int64_t count) {
        const bool apart = collides<T>(all.row) || (often && all.row * int64_t(sizeof(T)) >= PAGE);
        return apart ? pack(from, count) : all.from(from);
    }

    Matrix<const T> right(int64_t from, int64_t count) {
        return readable(all, cols) ? left(from, count) : pack(from, count);
    }

  private:
    static constexpr int64_t MOST_KEPT = 2 << 20, PAGE = 4096;  // bytes
    static constexpr int64_t OFTEN = 16 * QUERIES;  // so many pay for packing rows that are only on a page each

    const Operand<const T>& of;
    const int64_t rows, cols;
    const bool kept, often;
    T* const packed;
    Matrix<const T> all{};
    int64_t head = -1, first = 0, last = 0;  // those of the head that are packed

    static bool keeps(int64_t rows, int64_t cols, int64_t queries) {
        return queries > QUERIES && rows <= MOST_KEPT / int64_t(sizeof(T)) / padded<T>(cols);
    }

    Matrix<const T> pack(int64_t from, int64_t count) {
        const int64_t wide = padded<T>(cols);
        if (from < first || from + count > last) {
            if (!kept || from != last) first = from;
            last = kept ? std::min(from + KEYS, rows) : from + count;
            pack_rows(packed + (from - first) * wide, all.from(from), last - from, cols);
        }
        return {packed + (from - first) * wide, wide, 1};
    }
};

// c (+)= a b; b is read in whole vectors
template <class T>
void product(int64_t m, int64_t n, int64_t k, Matrix<const T> a, const T* b, int64_t b_row, T* c, int64_t c_row,
             bool add) {
    const int64_t count = ceil_div(m, tile_rows), low = m / count, higher = m % count;
    for (int64_t j = 0; j < n; j += tile_cols<T>) {
        Tile<T> t{a.p, a.row, a.col, b + j, b_row, c + j, c_row, k, int(std::min<int64_t>(n - j, tile_cols<T>)), add};
        for (int64_t i = 0; i < count; ++i) {
            const int64_t high = low + (i < higher);
            run_tile(int(high), t);
            t.a += high * a.row;
            t.c += high * c_row;
        }
    }
}

// Some queries' rows with the queries side by side: to[e * QUERIES + i].
template <class T> void pack_queries(T* to, Matrix<const T> m, int64_t count, int64_t width) {
    pack_panel(to, int(QUERIES), m.p, int(count), m.row, m.col, width);
}

template <class T> void scale_by(T factor, T* x, int64_t n) {  // n is a multiple of lanes
    for (int64_t i = 0; i < n; i += lanes<T>) store<T>(x + i, load(x + i) * splat(factor));
}

// Scores of keys with some queries, in the order of a block. `q` are the queries' rows and `turned` the same with
// the queries side by side, both times the scale. For a few queries a vector of them would be mostly empty.
constexpr int64_t FEW = 4;

template <class T>
void find_scores(Matrix<const T> k, int64_t keys, int64_t width, const T* q, const T* turned, int64_t count, T* to) {
    const int64_t wide = padded<T>(width), filled = padded<T>(count);
    if (count > FEW || k.col != 1)
        return product<T>(keys, filled, width, k, turned, QUERIES, to, QUERIES, false);
    for (int64_t j = 0; j < keys; ++j, to += QUERIES) {
        std::fill(to, to + filled, T(0));
        for (int64_t i = 0; i < count; ++i) {
            Vec<T> sum[4] = {};
            vectors<T>(0, width, [&](int64_t e, auto part, int w) {
                __builtin_prefetch(k.p + (j + AHEAD) * k.row + e);
                sum[w] = fma<T>(take(k.p + j * k.row + e, part), load(q + i * wide + e), sum[w]);
            });
            to[i] = total<T>((sum[0] + sum[1]) + (sum[2] + sum[3]));
        }
    }
}

// -- masks and dropout of a block ------------------------------------------------------------------

template <class T> struct Place {
    int64_t head, query, queries, key, keys;  // a block: first query, how many, first key, how many
};

// What is added to the scores, in the order of the block: 0 and -inf where the mask is of bools.
template <class T, class S> void take_mask(const Problem<T, S>& a, const Place<T>& at, T* to, T* rows) {
    if (a.masking == Masking::added) {
        Matrix<const T> m = a.added.at(at.head);
        m.p += at.query * m.row + at.key * m.col;
        pack_panel(to, int(QUERIES), m.p, int(at.queries), m.row, m.col, at.keys);
    } else if (a.masking == Masking::closed) {
        Matrix<const uint8_t> m = a.closed.at(at.head);
        for (int64_t i = 0; i < at.queries; ++i) {
            const uint8_t* from = m.p + (at.query + i) * m.row + at.key * m.col;
            for (int64_t j = 0; j < at.keys; ++j) rows[i * KEYS + j] = from[j * m.col] ? T(0) : LEAST<T>;
        }
        pack_panel(to, int(QUERIES), rows, int(at.queries), KEYS, 1, at.keys);
    }
}

// What the weights are multiplied by: 0 or 1 / (1 - p), in the order of the block.
template <class T, class S> void take_coins(const Problem<T, S>& a, const Coins& coins, const Place<T>& at, T* to, T* rows) {
    constexpr int64_t BLOCKS = KEYS / PER + 2;
    const T kept = T(a.p < 1 ? 1 / (1 - a.p) : 1);
    uint16_t drawn[BLOCKS * PER];
    for (int64_t i = 0; i < at.queries; ++i) {
        const int64_t first = (at.head * a.queries + at.query + i) * a.keys + at.key, skip = first % PER;
        coins.blocks<BLOCKS>(first / PER, drawn);
        const uint16_t* own = drawn + skip;
        T* row = rows + i * KEYS;
        for (int64_t j = 0; j < at.keys; ++j) row[j] = own[j] >= coins.whole ? kept : T(0);
        if (!coins.ties(own, at.keys)) continue;
        for (int64_t j = 0; j < at.keys; ++j)
            if (own[j] == coins.whole && !coins.kept_at_tie(first + j)) row[j] = T(0);
    }
    pack_panel(to, int(QUERIES), rows, int(at.queries), KEYS, 1, at.keys);
}

// Scores of one key with some queries, masked; `lead` is by how much the first query is ahead of the key.
template <class T> struct Masked {
    Vec<T> score;
    Mask<T> closed;
};

template <Masking M, class T> FW_INLINE Masked<T> masked(Vec<T> s, const T* added, Int<T> lead) {
    if constexpr (M == Masking::causal) {
        Mask<T> closed = lane_numbers<T>() + lead < Mask<T>{};
        return {select<T>(closed, splat(LEAST<T>), s), closed};
    } else if constexpr (M == Masking::closed) {
        Mask<T> closed = load(added) == splat(LEAST<T>);
        return {select<T>(closed, splat(LEAST<T>), s), closed};
    } else if constexpr (M == Masking::added) {
        Vec<T> more = load(added);
        return {s + more, more == splat(LEAST<T>)};
    } else {
        return {s, Mask<T>{}};
    }
}

// e^x for x <= 0; nan stays nan
template <class T> FW_INLINE Vec<T> decay(Vec<T> x) {
    return math::exp_down<Vec<T>>(x);
}

}  // namespace attention
}  // namespace fw
