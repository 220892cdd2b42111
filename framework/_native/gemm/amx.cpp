// Products of bfloat16 by the tiles of a matrix unit: blocks of 32 x 32 sums in four tiles.
//
// One operand is read in rows, the left one, where its steps lie side by side even in place; the other one is packed in
// pairs of steps, and stays in the level 2 cache while all rows pass. Which is which, is chosen by what packing
// takes: the product is computed as that of the transposed operands where that is less. No bit of a result depends on it.
#include "gemm/amx.h"

#include <algorithm>

#include "base/scratch.h"
#include "gemm/bf16_tile.h"
#include "gemm/gemm_share.h"

namespace fw {
namespace {

using amx::ROWS;
using amx::STEPS;

constexpr int64_t BLOCK = 2 * ROWS;         // rows and columns of C that are worked on at a time
constexpr int64_t DEPTH = 512;              // steps of rows, 32 KB, which stay in the first cache while columns pass
constexpr int64_t MOST_STEPS = 2048;        // steps of columns that are packed at a time
constexpr int64_t COLUMN_BYTES = 1 << 20;   // of them, in the level 2 cache (2 MB where there is such a unit)
constexpr int64_t FEW_ROWS = 128, FEW_STEPS = 128, FEW_BYTES = COLUMN_BYTES / 2;  // the same where columns lie side by side and
                                            // rows are few: long lines come sooner from memory
constexpr int64_t LEAST_ROWS = 1024, ROW_BYTES = 16 << 20;  // that are packed at a time: columns are packed again for the next
constexpr int64_t SUMS = BLOCK * BLOCK;

// -- operands -------------------------------------------------------------------------------------

struct Operand {
    const Bf16* p;
    int64_t line, step;  // step s of line i, which is a row of A or a column of B, lies at p + i * line + s * step

    const Bf16* at(int64_t i, int64_t s) const { return p + i * line + s * step; }
};

constexpr int64_t TILE = ROWS * STEPS;  // numbers of a tile
int64_t whole_tiles(int64_t k) { return ceil_div(k, STEPS); }

#if FW_DOT_BF16
// A tile of numbers that lie side by side along its rows' other side: for each step, that is.
FW_INLINE void turn_tile(Bf16* to, const Operand& x, int64_t count, int64_t k) {
    Vec<float> v[ROWS];
#pragma GCC unroll 16
    for (int64_t q = 0; q < ROWS; ++q) {
        const Bf16* odd = 2 * q + 1 < k ? x.at(0, 2 * q + 1) : nullptr;
        v[q] = 2 * q < k ? bits<Vec<float>>(pairs::interleaved(x.at(0, 2 * q), odd, count)) : Vec<float>{};
    }
    transpose<float>(v);
#pragma GCC unroll 16
    for (int64_t i = 0; i < ROWS; ++i) store(reinterpret_cast<float*>(to + i * STEPS), v[i]);
}
#endif

// A tile of `count` rows of k steps; the rest is 0.
void pack_tile(Bf16* to, const Operand& x, int64_t count, int64_t k) {
    k = std::min<int64_t>(k, STEPS);
#if FW_DOT_BF16
    if (x.line == 1 && x.step != 1) return turn_tile(to, x, count, k);
#endif
    for (int64_t i = 0; i < ROWS; ++i, to += STEPS) {
        const int64_t there = i < count ? k : 0;
        if (x.step == 1) std::copy_n(x.at(i, 0), there, to);
        else
            for (int64_t s = 0; s < there; ++s) to[s] = *x.at(i, s);
        std::fill(to + there, to + STEPS, Bf16{0});
    }
}

// The tiles of 16 or 32 rows, of which `count` are there, one row of tiles after the other, `tiles` apart.
void pack_rows(Bf16* to, const Operand& x, int64_t count, int64_t k, int64_t tiles) {
    for (int64_t i = 0; i < count; i += ROWS)
        for (int64_t t = 0; t < whole_tiles(k); ++t)
            pack_tile(to + (i / ROWS * tiles + t) * TILE, {x.at(i, t * STEPS), x.line, x.step},
                      std::min<int64_t>(ROWS, count - i), k - t * STEPS);
}

// For each pair of steps the two numbers of each of `width` columns, of which `count` are there; whole tiles.
void pack_columns(Bf16* to, int width, const Operand& x, int64_t count, int64_t k) {
#if FW_DOT_BF16
    pairs::pack(reinterpret_cast<uint32_t*>(to), width, x.p, int(count), x.line, x.step, k);
#else
    for (int64_t s = 0; s < k + k % 2; ++s)
        for (int64_t j = 0; j < width; ++j)
            to[(s / 2 * width + j) * 2 + s % 2] = j < count && s < k ? *x.at(j, s) : Bf16{0};
#endif
    std::fill(to + (k + 1) / 2 * 2 * width, to + whole_tiles(k) * STEPS * width, Bf16{0});
}

int width_of(int64_t cols) { return cols > ROWS ? int(BLOCK) : ROWS; }

// All columns, 32 by 32. Where columns lie side by side, of all of them some steps at a time: their lines follow each other.
void pack_panels(Bf16* to, const Operand& x, int64_t cols, int64_t k) {
    const int64_t panel = whole_tiles(k) * STEPS, steps = x.line == 1 ? STEPS : std::max<int64_t>(k, 1);
    for (int64_t s = 0; s < k; s += steps)
        for (int64_t j = 0; j < cols; j += BLOCK) {
            const int64_t count = std::min(BLOCK, cols - j);
            pack_columns(to + j * panel + s * width_of(count), width_of(count), {x.at(j, s), x.line, x.step}, count, std::min(steps, k - s));
        }
}

// 16 or 32 rows of some steps: tiles that lie in place or packed, then one more if steps in place do not fill it.
struct Rows {
    const Bf16* first;
    int64_t row, tile, half, tiles;  // from row to row, from tile to tile, to the other 16 rows; how many
    const Bf16* last = nullptr;

    static Rows packed(const Bf16* p, int64_t k) { return {p, STEPS, TILE, whole_tiles(k) * TILE, whole_tiles(k)}; }
    static Rows in_place(const Operand& x, int64_t count, int64_t k, Bf16* room) {
        if (count % ROWS) return pack_rows(room, x, count, k, whole_tiles(k)), packed(room, k);
        const int64_t tiles = k / STEPS;
        if (k % STEPS) pack_rows(room, {x.at(0, tiles * STEPS), x.line, x.step}, count, k % STEPS, 1);
        return {x.p, x.line, STEPS, ROWS * x.line, tiles, k % STEPS ? room : nullptr};
    }
};

// The next rows, of which some come nearer with each step.
struct Ahead {
    const Bf16* p = nullptr;
    int64_t row = 0, tile = 0, begin = 0, end = 0;

    Ahead part(int64_t from, int64_t to, int64_t of) const { return {p, row, tile, end * from / of, end * to / of}; }
    FW_INLINE void fetch(int64_t t) const {
        for (int64_t i = begin; i < end; ++i) __builtin_prefetch(p + t * tile + i * row, 0, 2);
    }
};

// -- sums -----------------------------------------------------------------------------------------

// R x C tiles of sums, 32 numbers between their rows, after what they hold if `add`.
template <int R, int C, class U>
FW_INLINE void block(U& unit, const Rows& a, const Ahead& ahead, const Bf16* b, float* sums, bool add) {
    constexpr int64_t row = BLOCK * sizeof(float), half = ROWS * BLOCK, width = C * ROWS;
    constexpr int64_t b_row = width * 2 * sizeof(Bf16);
    if (add) {
        unit.template load<0>(sums, row);
        if constexpr (C > 1) unit.template load<1>(sums + ROWS, row);
        if constexpr (R > 1) unit.template load<2>(sums + half, row);
        if constexpr (R > 1 && C > 1) unit.template load<3>(sums + half + ROWS, row);
    } else {
        unit.template zero<0>(), unit.template zero<1>(), unit.template zero<2>(), unit.template zero<3>();
    }
    auto step = [&](const Bf16* p, int64_t a_row, int64_t a_half) __attribute__((always_inline)) {
        unit.template load<4>(p, a_row * int64_t(sizeof(Bf16)));
        unit.template load_passing<6>(b, b_row);
        unit.template dot<0, 4, 6>();
        if constexpr (C > 1) unit.template load_passing<7>(b + 2 * ROWS, b_row), unit.template dot<1, 4, 7>();
        if constexpr (R > 1) {
            unit.template load<5>(p + a_half, a_row * int64_t(sizeof(Bf16)));
            unit.template dot<2, 5, 6>();
            if constexpr (C > 1) unit.template dot<3, 5, 7>();
        }
        b += STEPS * width;
    };
    const Bf16* p = a.first;
    for (int64_t t = 0; t < a.tiles; ++t, p += a.tile) ahead.fetch(t), step(p, a.row, a.half);
    if (a.last) step(a.last, STEPS, TILE);
    unit.template store<0>(sums, row);
    if constexpr (C > 1) unit.template store<1>(sums + ROWS, row);
    if constexpr (R > 1) unit.template store<2>(sums + half, row);
    if constexpr (R > 1 && C > 1) unit.template store<3>(sums + half + ROWS, row);
}

template <class U>
void block(U& unit, const Rows& a, const Ahead& ahead, const Bf16* b, float* sums, bool add, int64_t rows, int64_t cols) {
    if (rows > ROWS) cols > ROWS ? block<2, 2>(unit, a, ahead, b, sums, add) : block<2, 1>(unit, a, ahead, b, sums, add);
    else cols > ROWS ? block<1, 2>(unit, a, ahead, b, sums, add) : block<1, 1>(unit, a, ahead, b, sums, add);
}

// -- results --------------------------------------------------------------------------------------

struct Results {
    Bf16* c;
    int64_t c_row;
    const Bf16* bias;  // of the columns, or nullptr

    Results at(int64_t row, int64_t col) const { return {c + row * c_row + col, c_row, bias ? bias + col : nullptr}; }
};

// Complete sums, rounded with their biases; like a product's numbers, what is denormal becomes 0.
void round_block(amx::Twin&, const float* sums, int64_t rows, int64_t cols, const Results& to) {
    for (int64_t i = 0; i < rows; ++i)
        for (int64_t j = 0; j < cols; ++j) {
            const float sum = sums[i * BLOCK + j];
            to.c[i * to.c_row + j] = narrow(amx::Twin::flushed(to.bias ? sum + amx::Twin::flushed(widen(to.bias[j])) : sum));
        }
}
void turn_block(amx::Twin&, const float* sums, float* to) {
    for (int64_t i = 0; i < SUMS; ++i) to[i] = sums[i % BLOCK * BLOCK + i / BLOCK];
}

#if FW_AMX
FW_WITH_BF16 void round_block(amx::Unit&, const float* sums, int64_t rows, int64_t cols, const Results& to) {
    const __mmask32 mask = cols >= BLOCK ? ~__mmask32(0) : (__mmask32(1) << cols) - 1;
    __m512 low = _mm512_setzero_ps(), high = low;
    if (to.bias) {
        const __m512i bias = _mm512_maskz_loadu_epi16(mask, to.bias);
        low = (__m512)widen(bits<Halves>(_mm512_castsi512_si256(bias)));
        high = (__m512)widen(bits<Halves>(_mm512_extracti64x4_epi64(bias, 1)));
    }
    auto rounded = [&](const float* s) FW_WITH_BF16 __attribute__((always_inline)) {
        return (__m512i)_mm512_cvtne2ps_pbh(_mm512_add_ps(_mm512_load_ps(s + ROWS), high), _mm512_add_ps(_mm512_load_ps(s), low));
    };
    Bf16* c = to.c;
    if (cols >= BLOCK)
        for (int64_t i = 0; i < rows; ++i, c += to.c_row, sums += BLOCK) _mm512_storeu_si512(c, rounded(sums));
    else
        for (int64_t i = 0; i < rows; ++i, c += to.c_row, sums += BLOCK) _mm512_mask_storeu_epi16(c, mask, rounded(sums));
}

void turn_block(amx::Unit&, const float* sums, float* to) {
    for (int64_t i = 0; i < BLOCK; i += ROWS)
        for (int64_t j = 0; j < BLOCK; j += ROWS) {
            Vec<float> v[ROWS];
#pragma GCC unroll 16
            for (int64_t r = 0; r < ROWS; ++r) v[r] = load(sums + (i + r) * BLOCK + j);
            transpose<float>(v);
#pragma GCC unroll 16
            for (int64_t r = 0; r < ROWS; ++r) store(to + (j + r) * BLOCK + i, v[r]);
        }
}
#endif

// -- products -------------------------------------------------------------------------------------

// What packing takes, in cycles for 512 numbers.
double as_rows(const Operand& x) { return x.step == 1 ? 5 : x.line == 1 ? 100 : 700; }
double as_columns(const Operand& x) { return x.line == 1 ? 40 : x.step == 1 ? 80 : 700; }

Operand rows_of_a(const Gemm<Bf16>& g) { return {g.a, g.m == 1 ? 1 : g.a_row, g.k == 1 ? 1 : g.a_col}; }
Operand columns_of_b(const Gemm<Bf16>& g) { return {g.b, g.n == 1 ? 1 : g.b_col, g.k == 1 ? 1 : g.b_row}; }

bool better_turned(const Gemm<Bf16>& g) {
    const Operand a = rows_of_a(g), b = columns_of_b(g);
    constexpr double result = 200;
    const double m = double(g.m), n = double(g.n), k = double(g.k);
    return as_rows(b) * n * k + as_columns(a) * m * k + result * m * n < as_rows(a) * m * k + as_columns(b) * n * k;
}

// The product in the calling thread alone, as that of the transposed operands if TURNED.
template <class U, bool TURNED> class TiledProduct {
  public:
    explicit TiledProduct(const Gemm<Bf16>& g)
        : left(TURNED ? columns_of_b(g) : rows_of_a(g)), right(TURNED ? rows_of_a(g) : columns_of_b(g)),
          m(TURNED ? g.n : g.m), n(TURNED ? g.m : g.n), k(g.k), whole_k(whole_tiles(k) * STEPS),
          few(right.line == 1 && m <= FEW_ROWS), steps(std::max<int64_t>(even_part(k, few ? FEW_STEPS : MOST_STEPS, STEPS), 1)),
          depth(even_part(steps, DEPTH, STEPS)),
          columns(even_part(n, std::max(BLOCK, (few ? FEW_BYTES : COLUMN_BYTES) / 2 / steps / BLOCK * BLOCK), BLOCK)),
          height(packs ? even_part(m, std::max(LEAST_ROWS, ROW_BYTES / 2 / std::max<int64_t>(k, 1)), BLOCK) : m),
          row_sums(k <= depth ? SUMS : ceil_div(columns, BLOCK) * SUMS),
          out{g.c, g.c_row, g.finish.col_bias ? g.finish.col_bias + g.col : nullptr},
          panels(scratch<Bf16>(0, ceil_div(columns, BLOCK) * BLOCK * whole_tiles(steps) * STEPS)),
          rows(scratch<Bf16>(1, packs ? ceil_div(height, BLOCK) * BLOCK * whole_k : BLOCK * DEPTH)),
          sums(reinterpret_cast<float*>(scratch<Bf16>(2, (steps < k ? ceil_div(height, BLOCK) : 1) * row_sums * 2))) {}

    void run() {
        for (int64_t top = 0; top < m; top += height) {
            const int64_t high = std::min(height, m - top);
            if (packs) pack_left(top, high);
            for (int64_t col = 0; col < n; col += columns)
                for (int64_t step = 0; step == 0 || step < k; step += steps)
                    multiply({top, high, col, std::min(columns, n - col), step, std::min(step + steps, k)});
        }
    }

  private:
    struct Part {
        int64_t top, rows, col, cols, step, end;
    };

    const Operand left, right;
    const bool packs = left.step != 1;  // the left one, too
    const int64_t m, n, k, whole_k;
    const bool few;
    const int64_t steps, depth;         // whose columns are packed at a time; that are summed at a time
    const int64_t columns, height;      // of a part
    const int64_t row_sums;             // how many there are of 32 rows: of one block, unless they wait for other steps
    const Results out;
    Bf16 *const panels, *const rows;
    float* const sums;
    U unit;

    // For each 32 rows their tiles of the first `depth` steps, then those of the next.
    void pack_left(int64_t top, int64_t high) {
        for (int64_t step = 0; step < k; step += steps)
            for (int64_t s = step; s < std::min(step + steps, k); s += depth) {
                const int64_t end = std::min({s + depth, step + steps, k});
                for (int64_t t = s; t < end; t += STEPS)
                    for (int64_t i = 0; i < high; i += BLOCK)
                        pack_rows(rows + i * whole_k + s * BLOCK + (t - s) * ROWS, {left.at(top + i, t), left.line, left.step},
                                  std::min(BLOCK, high - i), std::min<int64_t>(STEPS, end - t), whole_tiles(end - s));
            }
    }

    void multiply(const Part& p) {
        pack_panels(panels, {right.at(p.col, p.step), right.line, right.step}, p.cols, p.end - p.step);
        for (int64_t i = 0; i < p.rows; i += BLOCK)
            for (int64_t s = p.step; s == p.step || s < p.end; s += depth)
                multiply(p, i, s, s + depth < p.end ? ahead_of(p, i, s + depth) : ahead_of(p, i + BLOCK, p.step));
    }

    // All blocks of 32 rows.
    void multiply(const Part& p, int64_t i, int64_t s, const Ahead& ahead) {
        const int64_t high = std::min(BLOCK, p.rows - i), deep = std::min(depth, p.end - s), panel = whole_tiles(p.end - p.step) * STEPS;
        const Rows a = packs ? Rows::packed(rows + i * whole_k + s * BLOCK, deep)
                             : Rows::in_place({left.at(p.top + i, s), left.line, left.step}, high, deep, rows);
        float* own = sums + (steps < k ? i / BLOCK * row_sums : 0);
        for (int64_t j = 0; j < p.cols; j += BLOCK) {
            const int64_t wide = std::min(BLOCK, p.cols - j);
            float* here = row_sums == SUMS ? own : own + j * BLOCK;
            block(unit, a, ahead.part(j, std::min(j + BLOCK, p.cols), p.cols), panels + j * panel + (s - p.step) * width_of(wide), here,
                  s > 0, high, wide);
            if (s + deep >= k) finish(here, p.top + i, high, p.col + j, wide);
        }
    }

    Ahead ahead_of(const Part& p, int64_t i, int64_t s) const {
        if (i >= p.rows) return {};
        if (!packs && p.cols <= 2 * BLOCK) return {};  // the processor sees by itself how rows go on
        if (packs) return {rows + i * whole_k + s * BLOCK, STEPS, BLOCK * STEPS, 0, BLOCK};
        return {left.at(p.top + i, s), left.line, STEPS, 0, std::min(BLOCK, p.rows - i)};
    }

    void finish(const float* from, int64_t row, int64_t high, int64_t col, int64_t wide) {
        if constexpr (TURNED) {
            alignas(64) float turned[SUMS];
            turn_block(unit, from, turned);
            round_block(unit, turned, wide, high, out.at(col, row));
        } else {
            round_block(unit, from, high, wide, out.at(row, col));
        }
    }
};

constexpr int SPEED = 8;  // beside products of float32

template <class U> void one(const Gemm<Bf16>& g) {
    if (!g.m || !g.n) return;
    if (better_turned(g)) share<SPEED>(g, BLOCK, BLOCK, [](const Gemm<Bf16>& part) { TiledProduct<U, true>(part).run(); });
    else share<SPEED>(g, BLOCK, BLOCK, [](const Gemm<Bf16>& part) { TiledProduct<U, false>(part).run(); });
}

}  // namespace

void gemm_by_tiles(const Gemm<Bf16>& g, const Batch& batch, bool plain) {
    if (plain) share_batch(g, batch, one<amx::Twin>);
    else share_batch<SPEED, amx::Unit>(g, batch, one<amx::Unit>);
}

}  // namespace fw
