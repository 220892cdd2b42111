// Products of 8-bit numbers by the tiles of the matrix unit (gemm/amx.h): rows of weights, read as they lie, times
// activations in fours. The sums are whole numbers, so they are those of every other way.
#pragma once

#include "base/scratch.h"
#include "base/shuffles.h"
#include "gemm/amx.h"

namespace fw::int8 {

constexpr int64_t STEP = amx::ROW_BYTES;         // bytes that a step of products takes of a row
constexpr int64_t SIDE = 2 * amx::ROWS;          // rows and columns of sums at a time
constexpr int64_t FOURS = amx::ROWS * STEP;      // bytes of a tile

// Up to 16 rows of bytes, `chunks` steps long, as tiles of fours: for each step, four bytes of each row, side by side.
inline void pack_fours(uint8_t* to, const uint8_t* const* rows, int64_t count, int64_t chunks) {
    for (int64_t p = 0; p < chunks; ++p, to += FOURS) {
#if defined(FW_AVX512)
        Vec<float> v[16];
#pragma GCC unroll 16
        for (int i = 0; i < 16; ++i) v[i] = i < count ? (Vec<float>)_mm512_loadu_si512(rows[i] + p * STEP) : Vec<float>{};
        fw::transpose<float>(v);
#pragma GCC unroll 16
        for (int q = 0; q < 16; ++q) _mm512_storeu_si512(to + q * STEP, (__m512i)v[q]);
#else
        std::memset(to, 0, size_t(FOURS));
        for (int64_t i = 0; i < count; ++i)
            for (int64_t q = 0; q < amx::ROWS; ++q) std::memcpy(to + q * STEP + 4 * i, rows[i] + p * STEP + 4 * q, 4);
#endif
    }
}

// 32 rows of weights from one on, of which whole steps can be read: as they lie, else as copies with zeros behind.
struct WeightRows {
    const int8_t* at[2];  // 16 each
    int64_t step[2];
    int64_t count;

    WeightRows(const int8_t* w, int64_t rows, int64_t k, int64_t row, int64_t end, int64_t length)
        : count(std::min(SIDE, end - row)) {
        int8_t* copies = nullptr;
        for (int64_t half = 0; half < 2; ++half, row += amx::ROWS) {
            at[half] = w + row * k, step[half] = k;
            if (row + amx::ROWS <= end && (row + amx::ROWS - 1) * k + length <= rows * k) continue;
            if (!copies) copies = scratch<int8_t>(1, SIDE * length);
            int8_t* to = copies + half * amx::ROWS * length;
            std::memset(to, 0, size_t(amx::ROWS * length));
            for (int64_t i = 0; i < std::min<int64_t>(amx::ROWS, end - row); ++i)
                std::memcpy(to + i * length, w + (row + i) * k, size_t(k));
            at[half] = to, step[half] = length;
        }
    }
    const int8_t* row(int64_t i) const { return at[i / amx::ROWS] + i % amx::ROWS * step[i / amx::ROWS]; }
};

using ByteSums = int32_t[SIDE][SIDE];

// The sums of 16 R rows with the columns of C tiles, `next` bytes apart.
template <class U, int R, int C>
void byte_block(U& unit, const WeightRows& w, const uint8_t* fours, int64_t next, int64_t chunks, ByteSums& sums) {
    unit.template zero<0>();
    if constexpr (C > 1) unit.template zero<1>();
    if constexpr (R > 1) unit.template zero<2>();
    if constexpr (R * C > 2) unit.template zero<3>();
    for (int64_t p = 0; p < chunks; ++p, fours += FOURS) {
        unit.template load<4>(w.at[0] + p * STEP, w.step[0]);
        unit.template load<6>(fours, STEP);
        unit.template dot_bytes<0, 4, 6>();
        if constexpr (C > 1) unit.template load<7>(fours + next, STEP), unit.template dot_bytes<1, 4, 7>();
        if constexpr (R > 1) unit.template load<5>(w.at[1] + p * STEP, w.step[1]), unit.template dot_bytes<2, 5, 6>();
        if constexpr (R * C > 2) unit.template dot_bytes<3, 5, 7>();
    }
    constexpr int64_t row = sizeof sums[0];
    auto* to = reinterpret_cast<int32_t*>(&sums);
    unit.template store<0>(to, row);
    if constexpr (C > 1) unit.template store<1>(to + amx::ROWS, row);
    if constexpr (R > 1) unit.template store<2>(to + amx::ROWS * SIDE, row);
    if constexpr (R * C > 2) unit.template store<3>(to + amx::ROWS * SIDE + amx::ROWS, row);
}

// The same of as many as there are.
template <class U>
void byte_sums(U& unit, const WeightRows& w, const uint8_t* fours, int64_t columns, int64_t chunks, ByteSums& sums) {
    const bool low = w.count <= amx::ROWS, narrow = columns <= amx::ROWS;
    const auto way = low ? narrow ? byte_block<U, 1, 1> : byte_block<U, 1, 2>
                         : narrow ? byte_block<U, 2, 1> : byte_block<U, 2, 2>;
    way(unit, w, fours, chunks * FOURS, chunks, sums);
}

// The results of rows as columns: to[c * row + r] = float(sums[r][c] - share[r]) * factor[r] + bias[r].
inline void put_turned(float* to, int64_t row, const ByteSums& sums, int64_t rows, int64_t cols, const int32_t* share,
                       const float* factor, const float* bias) {
#if defined(FW_AVX512)
    for (int64_t r = 0; r < rows; r += 16) {
        const __mmask16 there = rows - r >= 16 ? 0xffff : __mmask16((1u << (rows - r)) - 1);
        const __m512i taken = _mm512_loadu_si512(share + r);
        const __m512 by = _mm512_loadu_ps(factor + r), shift = bias ? _mm512_loadu_ps(bias + r) : __m512{};
        for (int64_t c = 0; c < cols; c += 16) {
            Vec<float> v[16];
#pragma GCC unroll 16
            for (int i = 0; i < 16; ++i) v[i] = (Vec<float>)_mm512_loadu_si512(&sums[r + i][c]);
            fw::transpose<float>(v);
            for (int i = 0; i < std::min<int64_t>(16, cols - c); ++i) {
                __m512 y = _mm512_mul_ps(_mm512_cvtepi32_ps(_mm512_sub_epi32((__m512i)v[i], taken)), by);
                if (bias) y = _mm512_add_ps(y, shift);
                _mm512_mask_storeu_ps(to + (c + i) * row + r, there, y);
            }
        }
    }
#else
    for (int64_t c = 0; c < cols; ++c)
        for (int64_t r = 0; r < rows; ++r) {
            const float y = float(sums[r][c] - share[r]) * factor[r];
            to[c * row + r] = bias ? y + bias[r] : y;
        }
#endif
}

}  // namespace fw::int8
