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
constexpr int64_t SUMS = BLOCK * BLOCK;

// -- operands -------------------------------------------------------------------------------------

struct Operand {
    const Bf16* p;
    int64_t line, step;  // step s of line i, which is a row of A or a column of B, lies at p + i * line + s * step

    const Bf16* at(int64_t i, int64_t s) const { return p + i * line + s * step; }
};

int64_t whole_tiles(int64_t k) { return ceil_div(k, STEPS); }

// The 16 rows of a tile whose numbers lie side by side along the rows: for each step, that is.
#if FW_DOT_BF16
FW_INLINE void turn_tile(Bf16* to, int64_t to_row, const Operand& x, int64_t count, int64_t k) {
    Vec<float> v[ROWS];
    for (int64_t q = 0; q < ROWS; ++q)
        v[q] = 2 * q < k ? bits<Vec<float>>(pairs::interleaved(x.at(0, 2 * q), 2 * q + 1 < k ? x.at(0, 2 * q + 1) : nullptr, count))
                         : Vec<float>{};
    transpose<float>(v);
#pragma GCC unroll 16
    for (int64_t i = 0; i < ROWS; ++i) store(reinterpret_cast<float*>(to + i * to_row), v[i]);
}
#endif

// `height` rows of whole tiles, of which `count` rows of k steps are there; the rest is 0.
void pack_rows(Bf16* to, int64_t height, const Operand& x, int64_t count, int64_t k) {
    const int64_t row = whole_tiles(k) * STEPS;
#if FW_DOT_BF16
    if (x.line == 1 && x.step != 1) {
        for (int64_t i = 0; i < height; i += ROWS)
            for (int64_t s = 0; s < k; s += STEPS)
                turn_tile(to + i * row + s, row, {x.at(i, s), x.line, x.step}, std::clamp<int64_t>(count - i, 0, ROWS), k - s);
        return;
    }
#endif
    for (int64_t i = 0; i < height; ++i, to += row) {
        const int64_t there = i < count ? k : 0;
        if (x.step == 1) std::copy_n(x.at(i, 0), there, to);
        else
            for (int64_t s = 0; s < there; ++s) to[s] = *x.at(i, s);
        std::fill(to + there, to + row, Bf16{0});
    }
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

// 16 or 32 rows of some steps: tiles in place, then one that is packed if the steps do not fill it; or all of them packed.
struct Rows {
    const Bf16* first;
    int64_t row, tiles;
    const Bf16* last = nullptr;

    Rows(const Operand& x, int64_t count, int64_t k, bool in_place, Bf16* room) {
        const int64_t height = ceil_div(count, ROWS) * ROWS;
        if (in_place && count == height) {
            first = x.p, row = x.line, tiles = k / STEPS;
            if (k % STEPS == 0) return;
            pack_rows(room, height, {x.at(0, tiles * STEPS), x.line, x.step}, count, k % STEPS);
            last = room;
        } else {
            pack_rows(room, height, x, count, k);
            first = room, tiles = whole_tiles(k), row = tiles * STEPS;
        }
    }
};

// -- sums -----------------------------------------------------------------------------------------

// R x C tiles of sums, 32 numbers between their rows, after what they hold if `add`.
template <int R, int C, class U> FW_INLINE void block(U& unit, const Rows& a, const Bf16* b, float* sums, bool add) {
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
    auto step = [&](const Bf16* p, int64_t a_row) __attribute__((always_inline)) {
        unit.template load<4>(p, a_row * int64_t(sizeof(Bf16)));
        unit.template load_passing<6>(b, b_row);
        unit.template dot<0, 4, 6>();
        if constexpr (C > 1) unit.template load_passing<7>(b + 2 * ROWS, b_row), unit.template dot<1, 4, 7>();
        if constexpr (R > 1) {
            unit.template load<5>(p + ROWS * a_row, a_row * int64_t(sizeof(Bf16)));
            unit.template dot<2, 5, 6>();
            if constexpr (C > 1) unit.template dot<3, 5, 7>();
        }
        b += STEPS * width;
    };
    const Bf16* p = a.first;
    for (int64_t t = 0; t < a.tiles; ++t, p += STEPS) step(p, a.row);
    if (a.last) step(a.last, STEPS);
    unit.template store<0>(sums, row);
    if constexpr (C > 1) unit.template store<1>(sums + ROWS, row);
    if constexpr (R > 1) unit.template store<2>(sums + half, row);
    if constexpr (R > 1 && C > 1) unit.template store<3>(sums + half + ROWS, row);
}

template <class U> void block(U& unit, const Rows& a, const Bf16* b, float* sums, bool add, int64_t rows, int64_t cols) {
    if (rows > ROWS) cols > ROWS ? block<2, 2>(unit, a, b, sums, add) : block<2, 1>(unit, a, b, sums, add);
    else cols > ROWS ? block<1, 2>(unit, a, b, sums, add) : block<1, 1>(unit, a, b, sums, add);
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
          m(TURNED ? g.n : g.m), n(TURNED ? g.m : g.n), k(g.k), steps(std::max<int64_t>(even_part(k, MOST_STEPS, STEPS), 1)),
          columns(even_part(n, std::max(BLOCK, COLUMN_BYTES / 2 / steps / BLOCK * BLOCK), BLOCK)),
          out{g.c, g.c_row, g.finish.col_bias ? g.finish.col_bias + g.col : nullptr} {
        const int64_t kept = steps < k ? ceil_div(m, BLOCK) : 1;  // rows whose sums are not complete
        row_sums = steps <= DEPTH && steps >= k ? SUMS : ceil_div(columns, BLOCK) * SUMS;
        panels = scratch<Bf16>(0, ceil_div(columns, BLOCK) * BLOCK * whole_tiles(steps) * STEPS);
        room = scratch<Bf16>(1, BLOCK * DEPTH);
        sums = reinterpret_cast<float*>(scratch<Bf16>(2, kept * row_sums * 2));
        in_place = left.step == 1;
        for (int64_t col = 0; col < n; col += columns)
            for (int64_t step = 0; step == 0 || step < k; step += steps) multiply(col, std::min(columns, n - col), step);
    }

  private:
    const Operand left, right;
    const int64_t m, n, k, steps, columns;
    const Results out;
    int64_t row_sums;
    Bf16 *panels, *room;
    float* sums;
    bool in_place;
    U unit;

    static int width(int64_t cols) { return cols > ROWS ? int(BLOCK) : ROWS; }

    void multiply(int64_t col, int64_t cols, int64_t step) {
        const int64_t depth = std::min(steps, k - step), panel = whole_tiles(depth) * STEPS * BLOCK;
        for (int64_t j = 0; j < cols; j += BLOCK) {
            const int64_t count = std::min(BLOCK, cols - j);
            pack_columns(panels + j / BLOCK * panel, width(count), {right.at(col + j, step), right.line, right.step}, count, depth);
        }
        for (int64_t row = 0; row < m; row += BLOCK) {
            float* own = sums + (steps < k ? row / BLOCK * row_sums : 0);
            for (int64_t s = 0; s == 0 || s < depth; s += DEPTH) multiply(row, std::min(BLOCK, m - row), col, cols, step, s, depth, own);
        }
    }

    // Some steps of a block of rows, with all columns.
    void multiply(int64_t row, int64_t rows, int64_t col, int64_t cols, int64_t step, int64_t s, int64_t depth, float* own) {
        const int64_t part = std::min(DEPTH, depth - s), panel = whole_tiles(depth) * STEPS;
        const Rows a({left.at(row, step + s), left.line, left.step}, rows, part, in_place, room);
        const bool whole = step + s + part >= k;
        for (int64_t j = 0; j < cols; j += BLOCK) {
            const int64_t count = std::min(BLOCK, cols - j);
            float* here = row_sums == SUMS ? own : own + j * BLOCK;
            block(unit, a, panels + j * panel + s * width(count), here, step + s > 0, rows, count);
            if (whole) finish(here, row, rows, col + j, count);
        }
    }

    void finish(const float* from, int64_t row, int64_t rows, int64_t col, int64_t cols) {
        if constexpr (TURNED) {
            alignas(64) float turned[SUMS];
            turn_block(unit, from, turned);
            round_block(unit, turned, cols, rows, out.at(col, row));
        } else {
            round_block(unit, from, rows, cols, out.at(row, col));
        }
    }
};

template <class U> void one(const Gemm<Bf16>& g) {
    if (!g.m || !g.n) return;
    if (better_turned(g)) share(g, BLOCK, BLOCK, [](const Gemm<Bf16>& part) { TiledProduct<U, true> product(part); });
    else share(g, BLOCK, BLOCK, [](const Gemm<Bf16>& part) { TiledProduct<U, false> product(part); });
}

}  // namespace

void gemm_by_tiles(const Gemm<Bf16>& g, const Batch& batch, bool plain) {
    share_batch(g, batch, plain ? one<amx::Twin> : one<amx::Unit>);
}

}  // namespace fw
