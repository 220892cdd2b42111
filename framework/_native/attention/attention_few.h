// Attention of a few queries, as when a sequence grows by one token at a time: a query's scores lie side by side, so that
// vectors are of keys, then of values, and every key and value is read once, where it lies.
#pragma once

#include "attention/attention.h"

namespace fw {
namespace attention {

// Whether keys and values can be read in vectors, and nothing is drawn.
template <class T> bool few_suit(const Problem<T>& a) {
    return a.queries <= FEW && a.p == 0 && a.k.first.col == 1 && a.v.first.col == 1;
}

// Lane i is the sum of v[i].
template <class T> FW_INLINE Vec<T> sums_of(Vec<T> (&v)[lanes<T>]) {
#pragma GCC unroll 4
    for (int count = lanes<T> / 2; count > 0; count /= 2)
#pragma GCC unroll 8
        for (int i = 0; i < count; ++i) {
            Vec<T> low, high;
            zip<T>(v[i], v[i + count], low, high, std::make_index_sequence<lanes<T>>{});
            v[i] = low + high;
        }
    return v[0];
}

// The products of q with so many keys as a vector has lanes; lanes beyond `last` repeat it.
template <class T> FW_INLINE Vec<T> some_scores(const T* keys, int64_t row, int64_t last, int64_t width, const T* q) {
    constexpr int64_t n = lanes<T>;
    Vec<T> sum[lanes<T>] = {};
    const T* key[lanes<T>];
#pragma GCC unroll 16
    for (int64_t i = 0; i < n; ++i) key[i] = keys + std::min(i, last) * row;
    long_vectors<T>(0, width, [&](int64_t e, auto part, int) {
        const Vec<T> own = load(q + e);
#pragma GCC unroll 16
        for (int64_t i = 0; i < n; ++i) {
            __builtin_prefetch(key[i] + n * row + e);
            sum[i] = fma<T>(take(key[i] + e, part), own, sum[i]);
        }
    });
    return sums_of<T>(sum);
}

// to[j] = the product of q with key j; `to` has room for whole vectors.
template <class T> void query_scores(Matrix<const T> k, int64_t keys, int64_t width, const T* q, T* to) {
    constexpr int64_t n = lanes<T>;
    int64_t j = 0;
    for (; j + n <= keys; j += n) store<T>(to + j, some_scores(k.p + j * k.row, k.row, n - 1, width, q));
    if (j < keys) store<T>(to + j, some_scores(k.p + j * k.row, k.row, keys - j - 1, width, q));
}

// to (+)= the sum of values, weighted: two chains for each of up to Wide vectors.
template <int Wide, class T, class Part>
FW_INLINE void add_values(Matrix<const T> v, int64_t keys, const T* weights, T* to, Part part) {
    constexpr int64_t n = lanes<T>;
    Vec<T> sum[2][Wide] = {};
    auto value = [&](int64_t j, int f) {
        if (f + 1 == Wide) return take(v.p + j * v.row + f * n, part);
        return load(v.p + j * v.row + f * n);
    };
    int64_t j = 0;
    for (; j + 2 <= keys; j += 2)
#pragma GCC unroll 2
        for (int c = 0; c < 2; ++c) {
            const Vec<T> w = splat(weights[j + c]);
#pragma GCC unroll 4
            for (int f = 0; f < Wide; ++f) {
                __builtin_prefetch(v.p + (j + c + 2 * AHEAD) * v.row + f * n);
                sum[c][f] = fma<T>(w, value(j + c, f), sum[c][f]);
            }
        }
    if (j < keys)
        for (int f = 0; f < Wide; ++f) sum[0][f] = fma<T>(splat(weights[j]), value(j, f), sum[0][f]);
    for (int f = 0; f < Wide; ++f) store(to + f * n, load(to + f * n) + (sum[0][f] + sum[1][f]));
}

template <class T> void add_values(Matrix<const T> v, int64_t keys, int64_t width, const T* weights, T* to) {
    constexpr int64_t n = lanes<T>;
    for (; width > 0; width -= 4 * n, v.p += 4 * n, to += 4 * n) {
        if (width >= 4 * n) {
            add_values<4>(v, keys, weights, to, Whole{});
            continue;
        }
        T* at = to;
        Matrix<const T> rest = v;
        for (int64_t f = 0; f < width; f += n, rest.p += n, at += n) {
            if (width - f >= n) add_values<1>(rest, keys, weights, at, Whole{});
            else add_values<1>(rest, keys, weights, at, Part{width - f});
        }
    }
}

// The queries of one head.
template <class T> class FewQueries {
  public:
    explicit FewQueries(const Problem<T>& a)
        : a(a), wide(padded<T>(a.out_width)), room(FEW * padded<T>(a.width) + SCORES + FEW * wide),
          q(room.take(FEW * padded<T>(a.width))), scores(room.take(SCORES)), sums(room.take(FEW * wide)) {}

    void run(int64_t head, bool skips, Matrix<T> out, T* lse) {
        const int64_t count = a.queries, end = a.last_key(count, skips);
        pack_rows(q, a.q.at(head), count, a.width);
        scale_by(a.scale, q, count * padded<T>(a.width));
        std::fill(sums, sums + count * wide, T(0));
        for (int64_t i = 0; i < count; ++i) top[i] = LEAST<T>, sum[i] = 0, open[i] = false;
        const Matrix<const T> k = a.k.at(head), v = a.v.at(head);
        for (int64_t key = 0; key < end; key += KEYS)
            for (int64_t i = 0; i < count; ++i) {
                const int64_t keys = std::min(KEYS, end - key);
                query_scores(k.from(key), keys, a.width, q + i * padded<T>(a.width), scores);
                mask(head, i, key, keys);
                find_weights(i, keys);
                add_values(v.from(key), keys, a.out_width, scores, sums + i * wide);
            }
        for (int64_t i = 0; i < count; ++i) finish(i, out.from(i), lse + i);
    }

  private:
    static constexpr int64_t SCORES = (KEYS + lanes<T> - 1) / lanes<T> * lanes<T>;
    const Problem<T>& a;
    const int64_t wide;
    Room<T> room;
    T *q, *scores, *sums;
    T top[FEW], sum[FEW];
    bool open[FEW];  // where some key may be attended to

    void mask(int64_t head, int64_t i, int64_t key, int64_t keys) {
        if (a.masking == Masking::causal) {
            for (int64_t j = std::max<int64_t>(0, i + 1 - key); j < keys; ++j) scores[j] = LEAST<T>;
        } else if (a.masking == Masking::closed) {
            const Matrix<const uint8_t> m = a.closed.at(head);
            const uint8_t* from = m.p + i * m.row + key * m.col;
            for (int64_t j = 0; j < keys; ++j) {
                if (from[j * m.col]) open[i] = true;
                else scores[j] = LEAST<T>;
            }
        } else if (a.masking == Masking::added) {
            const Matrix<const T> m = a.added.at(head);
            const T* from = m.p + i * m.row + key * m.col;
            for (int64_t j = 0; j < keys; ++j) {
                const T more = from[j * m.col];
                scores[j] += more;
                if (more != LEAST<T>) open[i] = true;
            }
        }
        std::fill(scores + keys, scores + padded<T>(keys), LEAST<T>);
    }

    // exp(score - largest so far) in place of the scores; what was summed before is brought to the new largest.
    void find_weights(int64_t i, int64_t keys) {
        Vec<T> most = splat(top[i]), total{};
        for (int64_t j = 0; j < keys; j += lanes<T>) most = math::greater(load(scores + j), most);
        const T largest = top_of<T>(most);
        const T base = largest == LEAST<T> ? T(0) : largest;
        for (int64_t j = 0; j < keys; j += lanes<T>) {
            const Vec<T> e = decay<T>(load(scores + j) - splat(base));
            store<T>(scores + j, e);
            total += e;
        }
        const T factor = decay<T>(splat(top[i] - base))[0];
        if (factor != T(1)) scale_by(factor, sums + i * wide, wide);
        sum[i] = sum[i] * factor + fw::total<T>(total);
        top[i] = largest;
    }

    void finish(int64_t i, Matrix<T> out, T* lse) {
        const bool closes = a.masking == Masking::closed || a.masking == Masking::added, empty = closes && !open[i];
        *lse = empty ? -LEAST<T> : top[i] + std::log(sum[i]);
        const Vec<T> share = splat(T(1) / sum[i]);
        vectors<T>(0, a.out_width, [&](int64_t f, auto part, int) {
            put(out.p + f, empty ? Vec<T>{} : take(sums + i * wide + f, part) * share, part);
        });
    }
};

}  // namespace attention
}  // namespace fw
