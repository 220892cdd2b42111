// Blocks of sums of products of bfloat16 by the tiles of a matrix unit: packing, and 32 x 32 sums in four tiles.
#pragma once

#include <algorithm>

#include "gemm/amx.h"
#include "gemm/bf16_tile.h"

namespace fw {
namespace amx {

constexpr int64_t BLOCK = 2 * ROWS, SUMS = BLOCK * BLOCK;  // rows and columns of sums that are worked on at a time
constexpr int64_t TILE = ROWS * STEPS;                     // numbers of a tile of an operand

// -- operands -------------------------------------------------------------------------------------

struct Operand {
    const Bf16* p;
    int64_t line, step;  // step s of line i, which is a row of A or a column of B, lies at p + i * line + s * step

    const Bf16* at(int64_t i, int64_t s) const { return p + i * line + s * step; }
};

inline int64_t whole_tiles(int64_t k) { return (k + STEPS - 1) / STEPS; }

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
inline void pack_tile(Bf16* to, const Operand& x, int64_t count, int64_t k) {
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
inline void pack_rows(Bf16* to, const Operand& x, int64_t count, int64_t k, int64_t tiles) {
    for (int64_t i = 0; i < count; i += ROWS)
        for (int64_t t = 0; t < whole_tiles(k); ++t)
            pack_tile(to + (i / ROWS * tiles + t) * TILE, {x.at(i, t * STEPS), x.line, x.step},
                      std::min<int64_t>(ROWS, count - i), k - t * STEPS);
}

// For each pair of steps the two numbers of each of `width` columns, of which `count` are there; whole tiles.
inline void pack_columns(Bf16* to, int width, const Operand& x, int64_t count, int64_t k) {
#if FW_DOT_BF16
    pairs::pack(reinterpret_cast<uint32_t*>(to), width, x.p, int(count), x.line, x.step, k);
#else
    for (int64_t s = 0; s < k + k % 2; ++s)
        for (int64_t j = 0; j < width; ++j)
            to[(s / 2 * width + j) * 2 + s % 2] = j < count && s < k ? *x.at(j, s) : Bf16{0};
#endif
    std::fill(to + (k + 1) / 2 * 2 * width, to + whole_tiles(k) * STEPS * width, Bf16{0});
}

inline int width_of(int64_t cols) { return cols > ROWS ? int(BLOCK) : ROWS; }

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

// -- blocks of sums in the other order ------------------------------------------------------------

inline void turn_block(Twin&, const float* sums, float* to) {
    for (int64_t i = 0; i < SUMS; ++i) to[i] = sums[i % BLOCK * BLOCK + i / BLOCK];
}

#if FW_AMX
inline void turn_block(Unit&, const float* sums, float* to) {
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

}  // namespace amx
}  // namespace fw
