// Scaled dot-product attention: the softmax over blocks of keys, one after the other.
#include "attention/attention_few.h"
#include "attention/weights.h"

namespace fw {
namespace {

using namespace attention;

// The queries of one block: the softmax over the keys so far, and the values weighted by it.
template <class T> class ScoreBlock {
  public:
    ScoreBlock(const Problem<T>& a, const Coins& coins)
        : a(a), wide(padded<T>(a.out_width)), room(size(a)), turned(room.take(a.width * QUERIES)),
          q(room.take(padded<T>(a.width) * FEW)), k(a.k, a.keys, a.width, a.queries, room),
          v(a.v, a.keys, a.out_width, a.queries, room), sums(room.take(QUERIES * wide)), weights(a, coins, room) {}

    void run(int64_t head, int64_t first, bool skips, Matrix<T> out, T* lse) {
        const int64_t count = std::min(QUERIES, a.queries - first), end = a.last_key(first + count, skips);
        pack_queries(turned, a.q.at(head).from(first), count, a.width);
        scale_by(a.scale, turned, a.width * QUERIES);
        if (count <= FEW) {
            pack_rows(q, a.q.at(head).from(first), count, a.width);
            scale_by(a.scale, q, count * padded<T>(a.width));
        }
        weights.begin(count);
        k.begin(head), v.begin(head);
        for (int64_t key = 0; key < end; key += KEYS) {
            Place<T> at{head, first, count, key, std::min(KEYS, end - key)};
            const Matrix<const T> left = count > FEW ? k.left(key, at.keys) : k.in_place(key);
            find_scores(left, at.keys, a.width, q, turned, count, weights.scores);
            if (weights.find(at)) rescale(at.queries, weights.change);
            const bool there = count <= FEW && readable(v.in_place(key), a.out_width);
            const Matrix<const T> right = there ? v.in_place(key) : v.right(key, at.keys);
            product<T>(count, a.out_width, at.keys, {weights.scores, 1, QUERIES}, right.p, right.row, sums, wide, key > 0);
        }
        finish(count, out.from(first), lse + first);
    }

  private:
    const Problem<T>& a;
    const int64_t wide;
    Room<T> room;
    T *turned, *q;
    RowsOfHead<T> k, v;
    T* sums;
    BlockOfWeights<T, T> weights;

    static int64_t size(const Problem<T>& a) {
        return a.width * QUERIES + padded<T>(a.width) * FEW + RowsOfHead<T>::numbers(a.keys, a.width, a.queries) +
               RowsOfHead<T>::numbers(a.keys, a.out_width, a.queries) + QUERIES * padded<T>(a.out_width) +
               BlockOfWeights<T, T>::NUMBERS;
    }

    void rescale(int64_t count, const T* change) {
        for (int64_t i = 0; i < count; ++i) {
            if (change[i] == T(1)) continue;
            const Vec<T> factor = splat(change[i]);
            vectors<T>(0, a.out_width, [&](int64_t f, auto part, int) {  // what lies beside may be no normal number
                T* s = sums + i * wide + f;
                put(s, take(s, part) * factor, part);
            });
        }
    }

    void finish(int64_t count, Matrix<T> out, T* lse) {
        T shares[QUERIES];
        weights.finish(count, shares, lse);
        for (int64_t i = 0; i < count; ++i) {
            const bool empty = shares[i] == 0;  // whose sums may be nan
            const Vec<T> share = splat(shares[i]);
            vectors<T>(0, a.out_width, [&](int64_t f, auto part, int) {
                put(out.p + i * out.row + f, empty ? Vec<T>{} : take(sums + i * wide + f, part) * share, part);
            });
        }
    }
};

}  // namespace

namespace attention {

template <class T> void attend(const Problem<T>& a, const Operand<T>& out, T* lse) {
    if (!few_suit(a)) return each_block<ScoreBlock<T>>(a, out, lse);
    parallel(a.heads.count, a.grain(), [&](int64_t begin, int64_t end) {
        FewQueries<T> few(a);
        for (int64_t head = begin; head < end; ++head) {
            const bool skips = a.may_skip() && finite<T>(a.v.at(head), a.keys, a.out_width);
            few.run(head, skips, out.at(head), lse + head * a.queries);
        }
    });
}

template void attend(const Problem<float>&, const Operand<float>&, float*);
template void attend(const Problem<double>&, const Operand<double>&, double*);

}  // namespace attention
}  // namespace fw
