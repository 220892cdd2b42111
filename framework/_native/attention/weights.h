// A block of scores of some queries on its way to their weights: masks, the softmax over the keys so far, dropout.
#pragma once

#include "attention/attention.h"

namespace fw {
namespace attention {

template <class T, class S> class BlockOfWeights {
  public:
    static constexpr int64_t NUMBERS = 4 * BLOCK_SIZE;  // of the room that one takes

    BlockOfWeights(const Problem<T, S>& a, const Coins& coins, Room<T>& room)
        : scores(room.take(BLOCK_SIZE)), a(a), coins(coins), added(room.take(BLOCK_SIZE)), drop(room.take(BLOCK_SIZE)),
          rows(room.take(BLOCK_SIZE)) {}

    T* const scores;  // in the order of a block, then the weights
    alignas(64) T change[QUERIES];  // what sums of before are to be multiplied by

    void begin(int64_t count) {
        width = padded<T>(count);
        for (int64_t i = 0; i < QUERIES; ++i) top[i] = LEAST<T>, sum[i] = 0, open[i] = 0;
    }

    // Whether what was summed before is to be brought to the new largest.
    bool find(const Place<T>& at) {
        take_mask(a, at, added, rows);
        const bool all_open = a.masking == Masking::causal && at.key + at.keys <= at.query + 1;
        bool changes = false;
        choosing_masking(all_open ? Masking::none : a.masking, [&](auto m) { changes = find_weights<m.value>(at); });
        if (a.p > 0) drop_some(at);
        return changes && at.key > 0;
    }

    // What each query's sums are multiplied by in the end, 0 if it attends to nothing; and the logarithm of its sum.
    void finish(int64_t count, T* shares, T* lse) {
        const bool closes = a.masking == Masking::closed || a.masking == Masking::added;
        for (int64_t i = 0; i < width; i += lanes<T>) {
            const Vec<T> all = load(sum + i);
            store<T>(shares + i, splat(T(1)) / all);
            store<T>(top + i, load(top + i) + math::log<Vec<T>>(all));
        }
        for (int64_t i = 0; i < count; ++i) {
            const bool empty = closes && !open[i];
            lse[i] = empty ? -LEAST<T> : top[i];
            if (empty) shares[i] = 0;
        }
    }

  private:
    const Problem<T, S>& a;
    const Coins& coins;
    int64_t width = 0;
    T *const added, *const drop, *const rows;
    T top[QUERIES], sum[QUERIES];
    Int<T> open[QUERIES];  // not 0 where some key may be attended to

    // exp(score - largest so far) in place of the scores
    template <Masking Here> [[gnu::noinline]] bool find_weights(const Place<T>& at) {
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
        return changes;
    }

    void drop_some(const Place<T>& at) {
        take_coins(a, coins, at, drop, rows);
        for (int64_t i = 0; i < at.keys * QUERIES; i += lanes<T>)
            store<T>(scores + i, load(scores + i) * load(drop + i));
    }
};

// All heads by blocks of queries, of which a `Block` computes one after the other.
template <class Block, class T, class S> void each_block(const Problem<T, S>& a, const Operand<S>& out, T* lse) {
    const int64_t blocks = ceil_div(a.queries, QUERIES);
    const Coins coins(a.key, a.p);
    parallel(a.heads.count * blocks, a.grain(), [&](int64_t begin, int64_t end) {
        Block block(a, coins);
        int64_t known = -1;
        bool skips = false;  // closed weights are 0, but 0 times inf is nan
        for (int64_t i = begin; i < end; ++i) {
            const int64_t head = i / blocks;
            if (a.may_skip() && head != known) skips = finite<S>(a.v.at(head), a.keys, a.out_width);
            known = head;
            block.run(head, i % blocks * QUERIES, skips, out.at(head), lse + head * a.queries);
        }
    });
}

}  // namespace attention
}  // namespace fw
