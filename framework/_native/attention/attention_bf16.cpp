// Scaled dot-product attention of bfloat16 by the matrix unit: scores and weighted values are sums of float32 in tiles.
//
// Scores are those of keys in rows, which are read in place, with queries in columns; the weights, rounded, are the columns
// of the next product, whose rows are the values' features. Those are turned once for all queries of a head.
#include "attention/weights.h"
#include "gemm/amx_tiles.h"

namespace fw {
namespace attention {

#if FW_AMX
namespace {

using amx::BLOCK;
using amx::STEPS;

static_assert(BLOCK == QUERIES, "a block of scores has its queries side by side");

constexpr int64_t KEY_STEPS = (KEYS + STEPS - 1) / STEPS * STEPS;  // of a block of keys, in whole tiles
constexpr int64_t MOST_ROOM = BLOCK * MOST_NARROW;

int64_t in_blocks(int64_t n) { return ceil_div(n, BLOCK) * BLOCK; }

class NarrowBlock {
  public:
    NarrowBlock(const Problem<float, Bf16>& a, const Coins& coins)
        : a(a), wide(in_blocks(a.out_width)), blocks(ceil_div(a.keys, KEYS)), room(size(a)), weights(a, coins, room),
          sums(room.take(wide * QUERIES)), queries(narrow(in_blocks(a.width) * BLOCK)), shares(narrow(KEY_STEPS * BLOCK)),
          rows(narrow(MOST_ROOM)), values(narrow(blocks * wide * KEY_STEPS)) {}

    void run(int64_t head, int64_t first, bool skips, Matrix<Bf16> out, float* lse) {
        const int64_t count = std::min(QUERIES, a.queries - first), end = a.last_key(first + count, skips);
        const Matrix<const Bf16> q = a.q.at(head).from(first), k = a.k.at(head);
        if (head != known) turn_values(a.v.at(head));
        known = head;
        amx::pack_columns(queries, amx::width_of(count), {q.p, q.row, q.col}, count, a.width);
        weights.begin(count);
        for (int64_t key = 0; key < end; key += KEYS) {
            const Place<float> at{head, first, count, key, std::min(KEYS, end - key)};
            find_scores(k.from(key), at.keys, count);
            const bool changes = weights.find(at);
            round_weights(at.keys, count);
            for (int64_t f = 0; f < a.out_width; f += BLOCK) {
                const amx::Rows v = amx::Rows::packed(values + (key / KEYS * wide + f) * KEY_STEPS, KEY_STEPS);
                if (changes) rescale(sums + f * QUERIES);
                amx::block(unit, v, {}, shares, sums + f * QUERIES, key > 0, std::min(BLOCK, a.out_width - f), count);
            }
        }
        finish(count, out.from(first), lse + first);
    }

  private:
    const Problem<float, Bf16>& a;
    const int64_t wide, blocks;
    Room<float> room;
    BlockOfWeights<float, Bf16> weights;
    float* const sums;  // for each feature those of all queries
    Bf16 *const queries, *const shares, *const rows, *const values;
    int64_t known = -1;
    amx::Unit unit;

    static int64_t size(const Problem<float, Bf16>& a) {
        const int64_t wide = in_blocks(a.out_width);
        return BlockOfWeights<float, Bf16>::NUMBERS + wide * QUERIES +
               (in_blocks(a.width) * BLOCK + KEY_STEPS * BLOCK + MOST_ROOM + ceil_div(a.keys, KEYS) * wide * KEY_STEPS) / 2;
    }
    Bf16* narrow(int64_t count) { return reinterpret_cast<Bf16*>(room.take(count / 2)); }

    // For each block of keys the features in rows, as tiles.
    void turn_values(const Matrix<const Bf16>& v) {
        for (int64_t key = 0; key < a.keys; key += KEYS)
            for (int64_t f = 0; f < a.out_width; f += BLOCK) {
                Bf16* to = values + (key / KEYS * wide + f) * KEY_STEPS;
                const int64_t count = std::min(KEYS, a.keys - key);
                if (count < KEYS) std::fill(to, to + BLOCK * KEY_STEPS, Bf16{0});
                amx::pack_rows(to, {v.p + key * v.row + f * v.col, v.col, v.row}, std::min(BLOCK, a.out_width - f), count,
                               KEY_STEPS / STEPS);
            }
    }

    void find_scores(const Matrix<const Bf16>& k, int64_t keys, int64_t count) {
        for (int64_t j = 0; j < keys; j += BLOCK) {
            const amx::Operand left{k.p + j * k.row, k.row, k.col};
            const int64_t high = std::min(BLOCK, keys - j);
            amx::Rows in_rows = amx::Rows::packed(rows, a.width);
            if (k.col == 1) in_rows = amx::Rows::in_place(left, high, a.width, rows);
            else amx::pack_rows(rows, left, high, a.width, amx::whole_tiles(a.width));
            amx::block(unit, in_rows, {}, queries, weights.scores + j * QUERIES, false, high, count);
        }
        scale_by(a.scale, weights.scores, keys * QUERIES);
    }

    // The weights of each two keys side by side for each query, 0 for keys that are not there.
    FW_WITH_BF16 void round_weights(int64_t keys, int64_t count) {
        const __m512i order = _mm512_set_epi16(31, 15, 30, 14, 29, 13, 28, 12, 27, 11, 26, 10, 25, 9, 24, 8, 23, 7, 22, 6, 21,
                                               5, 20, 4, 19, 3, 18, 2, 17, 1, 16, 0);
        const int64_t width = amx::width_of(count);
        for (int64_t j = 0; j < KEY_STEPS; j += 2)
            for (int64_t i = 0; i < width; i += lanes<float>) {
                const float* from = weights.scores + j * QUERIES + i;
                const __m512 even = j < keys ? _mm512_loadu_ps(from) : _mm512_setzero_ps();
                const __m512 odd = j + 1 < keys ? _mm512_loadu_ps(from + QUERIES) : _mm512_setzero_ps();
                const __m512i both = (__m512i)_mm512_cvtne2ps_pbh(odd, even);
                _mm512_storeu_si512(shares + (j / 2 * width + i) * 2, _mm512_permutexvar_epi16(order, both));
            }
    }

    void rescale(float* block) {
        const Vec<float> low = load(weights.change), high = load(weights.change + lanes<float>);
        for (int64_t f = 0; f < BLOCK; ++f, block += QUERIES) {
            store<float>(block, load(block) * low);
            store<float>(block + lanes<float>, load(block + lanes<float>) * high);
        }
    }

    FW_WITH_BF16 void finish(int64_t count, Matrix<Bf16> out, float* lse) {
        alignas(64) float turned[amx::SUMS], parts[QUERIES];
        weights.finish(count, parts, lse);
        for (int64_t f = 0; f < a.out_width; f += BLOCK) {
            amx::turn_block(unit, sums + f * QUERIES, turned);
            const int64_t left = std::min(BLOCK, a.out_width - f);
            const __mmask32 mask = left == BLOCK ? ~__mmask32(0) : (__mmask32(1) << left) - 1;
            for (int64_t i = 0; i < count; ++i) {
                const __m512 part = _mm512_set1_ps(parts[i]);
                const float* from = turned + i * BLOCK;
                __m512i v = (__m512i)_mm512_cvtne2ps_pbh(_mm512_load_ps(from + lanes<float>) * part, _mm512_load_ps(from) * part);
                if (parts[i] == 0) v = _mm512_setzero_si512();  // whose sums may be nan
                _mm512_mask_storeu_epi16(out.p + i * out.row + f, mask, v);
            }
        }
    }
};

}  // namespace

void attend(const Problem<float, Bf16>& a, const Operand<Bf16>& out, float* lse) { each_block<NarrowBlock>(a, out, lse); }
#else
void attend(const Problem<float, Bf16>&, const Operand<Bf16>&, float*) {}  // nobody gets here without a unit
#endif

}  // namespace attention
}  // namespace fw
