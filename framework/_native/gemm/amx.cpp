// Products of bfloat16 by the tiles of a matrix unit: blocks of 32 x 32 numbers of C in four tiles.
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
constexpr int64_t TILE = ROWS * STEPS;      // numbers of a tile of A or B
constexpr int64_t A_BYTES = 512 << 10;      // of A, stays in the level 2 cache (2 MB where there is such a unit)
constexpr int64_t STRIDE = amx::ROW_BYTES;  // between the rows of a packed tile

FW_INLINE Bf16 at(const Bf16* p, bool there) { return there ? *p : Bf16{0}; }

// Both packings write the tiles of 32 rows or columns; what is not there is 0. Of A: for each 16 rows, for each 32
// steps, 16 rows of 32 numbers.
void pack_rows(Bf16* to, const Bf16* a, int64_t count, int64_t row, int64_t k, int64_t step) {
    for (int64_t i = 0; i < BLOCK; i += ROWS)
        for (int64_t p = 0; p < std::max<int64_t>(k, 1); p += STEPS)
            for (int64_t r = i; r < i + ROWS; ++r, to += STEPS) {
                if (step == 1 && r < count && p + STEPS <= k) {
                    std::memcpy(to, a + r * row + p, STEPS * sizeof(Bf16));
                    continue;
                }
                for (int64_t s = 0; s < STEPS; ++s) to[s] = at(a + r * row + (p + s) * step, r < count && p + s < k);
            }
}

// Of B: for each 16 columns, for each 32 steps, 16 rows of 16 pairs of neighbouring steps.
void pack_columns(Bf16* to, const Bf16* b, int64_t count, int64_t col, int64_t k, int64_t step) {
    const int64_t tiles = std::max<int64_t>(1, ceil_div(k, STEPS));
    for (int64_t j = 0; j < BLOCK; j += ROWS, to += tiles * TILE) {
#if FW_DOT_BF16
        const int64_t words = (k + 1) / 2;
        const int here = int(std::clamp<int64_t>(count - j, 0, ROWS));
        if (here) pairs::pack(reinterpret_cast<uint32_t*>(to), ROWS, b + j * col, here, col, step, k);
        const int64_t packed = here ? words * 2 * ROWS : 0;
        std::memset(static_cast<void*>(to + packed), 0, size_t(tiles * TILE - packed) * sizeof(Bf16));
#else
        for (int64_t i = 0; i < tiles * TILE; ++i) {
            const int64_t p = i / (2 * ROWS) * 2 + i % 2, c = j + i / 2 % ROWS;
            to[i] = at(b + c * col + p * step, c < count && p < k);
        }
#endif
    }
}

template <class U> void block(U& unit, const Bf16* a, const Bf16* b, int64_t tiles, float (&sums)[BLOCK][BLOCK]) {
    unit.template zero<0>(), unit.template zero<1>(), unit.template zero<2>(), unit.template zero<3>();
    const int64_t next = tiles * TILE;  // from the tiles of 16 rows or columns to those of the next 16
    for (int64_t t = 0; t < tiles; ++t, a += TILE, b += TILE) {
        unit.template load<4>(a, STRIDE), unit.template load<6>(b, STRIDE);
        unit.template load<5>(a + next, STRIDE), unit.template load<7>(b + next, STRIDE);
        unit.template dot<0, 4, 6>(), unit.template dot<1, 4, 7>();
        unit.template dot<2, 5, 6>(), unit.template dot<3, 5, 7>();
    }
    constexpr int64_t row = sizeof sums[0];
    unit.template store<0>(&sums[0][0], row), unit.template store<1>(&sums[0][ROWS], row);
    unit.template store<2>(&sums[ROWS][0], row), unit.template store<3>(&sums[ROWS][ROWS], row);
}

// The product in the calling thread alone.
template <class U> void multiply(const Gemm<Bf16>& g) {
    const int64_t tiles = std::max<int64_t>(1, ceil_div(g.k, STEPS)), panel = 2 * tiles * TILE;
    const int64_t height = even_part(g.m, std::max<int64_t>(1, A_BYTES / (panel * int64_t(sizeof(Bf16)))) * BLOCK, BLOCK);
    Bf16* columns = scratch<Bf16>(0, panel);
    Bf16* rows = scratch<Bf16>(1, ceil_div(height, BLOCK) * panel);
    U unit;
    for (int64_t top = 0; top < g.m; top += height) {
        const int64_t m = std::min(height, g.m - top);
        for (int64_t i = 0; i < m; i += BLOCK)
            pack_rows(rows + i / BLOCK * panel, g.a + (top + i) * g.a_row, std::min(BLOCK, m - i), g.a_row, g.k, g.a_col);
        for (int64_t j = 0; j < g.n; j += BLOCK) {
            const int64_t n = std::min(BLOCK, g.n - j);
            pack_columns(columns, g.b + j * g.b_col, n, g.b_col, g.k, g.b_row);
            const Bf16* bias = g.finish.col_bias ? g.finish.col_bias + g.col + j : nullptr;
            for (int64_t i = 0; i < m; i += BLOCK) {
                alignas(64) float sums[BLOCK][BLOCK];
                block(unit, rows + i / BLOCK * panel, columns, tiles, sums);
                for (int64_t r = 0; r < std::min(BLOCK, m - i); ++r) {
                    if (bias)
                        for (int64_t c = 0; c < n; ++c) sums[r][c] += widen(bias[c]);
                    narrow(g.c + (top + i + r) * g.c_row + j, sums[r], n);
                }
            }
        }
    }
}

template <class U> void one(const Gemm<Bf16>& g) {
    if (g.m && g.n) share(g, BLOCK, BLOCK, multiply<U>);
}

}  // namespace

void gemm_by_tiles(const Gemm<Bf16>& g, const Batch& batch, bool plain) {
    share_batch(g, batch, plain ? one<amx::Twin> : one<amx::Unit>);
}

}  // namespace fw
