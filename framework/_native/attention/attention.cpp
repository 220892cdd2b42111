// Scaled dot-product attention: the softmax over blocks of keys, one after the other.
#include "attention/attention_few.h"

namespace fw {
namespace {

using namespace attention;

// The queries of one block: the softmax over the keys so far, and the values weighted by it.
template <class T> class ScoreBlock {
  public:
    ScoreBlock(const Problem<T>& a, const Coins& coins)
        : a(a), coins(coins), wide(padded<T>(a.out_width)), room(size(a)), turned(room.take(a.width * QUERIES)),
          q(room.take(padded<T>(a.width) * FEW)), scores(room.take(BLOCK_SIZE)), added(room.take(BLOCK_SIZE)),
          drop(room.take(BLOCK_SIZE)), rows(room.take(BLOCK_SIZE)), keys(room.take(KEYS * padded<T>(a.width))),
          values(room.take(KEYS * wide)), sums(room.take(QUERIES * wide)) {}

    void run(int64_t head, int64_t first, bool skips, Matrix<T> out, T* lse) {
        const int64_t count = std::min(QUERIES, a.queries - first), end = a.last_key(first + count, skips);
        width = padded<T>(count);
        pack_queries(turned, a.q.at(head).from(first), count, a.width);
        scale_by(a.scale, turned, a.width * QUERIES);
        if (count <= FEW) {
            pack_rows(q, a.q.at(head).from(first), count, a.width);
            scale_by(a.scale, q, count * padded<T>(a.width));
        }
        for (int64_t i = 0; i < QUERIES; ++i) top[i] = LEAST<T>, sum[i] = 0, open[i] = 0;
        const Matrix<const T> k = a.k.at(head), v = a.v.at(head);
        for (int64_t key = 0; key < end; key += KEYS) {
            Place<T> at{head, first, count, key, std::min(KEYS, end - key)};
            Matrix<const T> left = k.from(key), right = v.from(key);
            if (count > FEW) left = as_left(left, at.keys, a.width, keys);
            find_scores(left, at.keys, a.width, q, turned, count, scores);
            take_mask(a, at, added, rows);
            const bool all_open = a.masking == Masking::causal && key + at.keys <= first + 1;
            choosing_masking(all_open ? Masking::none : a.masking, [&](auto m) { find_weights<m.value>(at); });
            if (a.p > 0) drop_some(at);
            if (count > FEW || !readable(right, a.out_width)) right = as_right(right, at.keys, a.out_width, values);
            product<T>(count, a.out_width, at.keys, {scores, 1, QUERIES}, right.p, right.row, sums, wide, key > 0);
        }
        finish(count, out.from(first), lse + first);
    }

  private:
    const Problem<T>& a;
    const Coins& coins;
    const int64_t wide;
    int64_t width = 0;
    Room<T> room;
    T *turned, *q, *scores, *added, *drop, *rows, *keys, *values, *sums;
    T top[QUERIES], sum[QUERIES];
    Int<T> open[QUERIES];  // not 0 where some key may be attended to

    static int64_t size(const Problem<T>& a) {
        const int64_t wide = padded<T>(a.out_width);
        return a.width * QUERIES + padded<T>(a.width) * (FEW + KEYS) + 4 * BLOCK_SIZE + (KEYS + QUERIES) * wide;
    }

    // exp(score - largest so far) in place of the scores; what was summed before is brought to the new largest.
    template <Masking Here> [[gnu::noinline]] void find_weights(const Place<T>& at) {
        alignas(64) T change[QUERIES];
        bool changes = false;
        for (int64_t i = 0; i < width; i += lanes<T>) {
            Vec<T> before = load(top + i), largest = before;
            Mask<T> some = bits<Mask<T>>(load(open + i));
            const Int<T> lead = Int<T>(at.query + i - at.key);
            for (int64_t j = 0; j < at.keys; ++j) {
                T* s = scores + j * QUERIES + i;
                auto [v, closed] = masked<Here>(load(s), added + j * QUERIES + i, Int<T>(lead - j));
                if constexpr (Here != Masking::none) store<T>(s, v);
                if constexpr (Here == Masking::closed || Here == Masking::added) some |= ~closed;
                largest = math::greater(v, largest);
            }
            Vec<T> base = select<T>(largest == splat(LEAST<T>), Vec<T>{}, largest), total{};
            for (int64_t j = 0; j < at.keys; ++j) {
                T* s = scores + j * QUERIES + i;
                Vec<T> e = decay<T>(load(s) - base);
                total += e;
                store<T>(s, e);
            }
            Vec<T> factor = decay<T>(before - base);
            changes = changes || math::any(factor != splat(T(1)));
            store<T>(change + i, factor);
            store<T>(sum + i, fma<T>(load(sum + i), factor, total));
            store<T>(top + i, largest);
            store(open + i, bits<Vec<Int<T>>>(some));
        }
        if (changes && at.key > 0) rescale(at.queries, change);
    }

    void rescale(int64_t count, const T* change) {
        for (int64_t i = 0; i < count; ++i) {
            if (change[i] == T(1)) continue;
            Vec<T> factor = splat(change[i]);
            for (int64_t f = 0; f < wide; f += lanes<T>) {
                T* s = sums + i * wide + f;
                store<T>(s, load(s) * factor);
            }
        }
    }

    void drop_some(const Place<T>& at) {
        take_coins(a, coins, at, drop, rows);
        for (int64_t i = 0; i < at.keys * QUERIES; i += lanes<T>)
            store<T>(scores + i, load(scores + i) * load(drop + i));
    }

    void finish(int64_t count, Matrix<T> out, T* lse) {
        const bool closes = a.masking == Masking::closed || a.masking == Masking::added;
        T shares[QUERIES];
        for (int64_t i = 0; i < width; i += lanes<T>) {
            const Vec<T> all = load(sum + i);
            store<T>(shares + i, splat(T(1)) / all);
            store<T>(top + i, load(top + i) + math::log<Vec<T>>(all));
        }
        for (int64_t i = 0; i < count; ++i) {
            const bool empty = closes && !open[i];
            lse[i] = empty ? -LEAST<T> : top[i];
            const Vec<T> share = splat(shares[i]);
            vectors<T>(0, a.out_width, [&](int64_t f, auto part, int) {
                put(out.p + i * out.row + f, empty ? Vec<T>{} : load(sums + i * wide + f) * share, part);
            });
        }
    }
};

}  // namespace

namespace attention {

template <class T> void attend(const Problem<T>& a, const Operand<T>& out, T* lse) {
    const int64_t blocks = ceil_div(a.queries, QUERIES);
    const int64_t work = std::min(QUERIES, a.queries) * a.keys * (a.width + a.out_width);
    const Coins coins(a.key, a.p);
    const int64_t grain = std::max<int64_t>(1, worth(GRAIN) / work);
    if (few_suit(a)) {
        parallel(a.heads.count, grain, [&](int64_t begin, int64_t end) {
            FewQueries<T> few(a);
            for (int64_t head = begin; head < end; ++head) {
                const bool skips = a.may_skip() && finite<T>(a.v.at(head), a.keys, a.out_width);
                few.run(head, skips, out.at(head), lse + head * a.queries);
            }
        });
        return;
    }
    parallel(a.heads.count * blocks, grain, [&](int64_t begin, int64_t end) {
        ScoreBlock<T> block(a, coins);
        int64_t known = -1;
        bool skips = false;  // closed weights are 0, but 0 times inf is nan
        for (int64_t i = begin; i < end; ++i) {
            const int64_t head = i / blocks;
            if (a.may_skip() && head != known) skips = finite<T>(a.v.at(head), a.keys, a.out_width);
            known = head;
            block.run(head, i % blocks * QUERIES, skips, out.at(head), lse + head * a.queries);
        }
    });
}

template void attend(const Problem<float>&, const Operand<float>&, float*);
template void attend(const Problem<double>&, const Operand<double>&, double*);

}  // namespace attention
}  // namespace fw
