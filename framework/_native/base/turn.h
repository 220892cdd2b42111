// Squares of 32 x 32 numbers of 16 bits whose rows become columns, and rows two by two as pairs.
#pragma once

#include <algorithm>

#include "base/bf16.h"
#include "base/shuffles.h"

namespace fw::turned {

constexpr int64_t SQUARE = 32;

using Square = Bf16[SQUARE][SQUARE];

#if defined(FW_AVX512)

FW_INLINE __mmask32 first(int64_t n) { return n >= 32 ? ~__mmask32(0) : (__mmask32(1) << n) - 1; }

// (low[0], high[0], low[1], ...): the first and the last 16 pairs.
FW_INLINE void pair(__m512i low, __m512i high, __m512i& front, __m512i& back) {
    alignas(64) static constexpr uint16_t places[32] = {0, 32, 1, 33, 2,  34, 3,  35, 4,  36, 5,  37, 6,  38, 7,  39,
                                                        8, 40, 9, 41, 10, 42, 11, 43, 12, 44, 13, 45, 14, 46, 15, 47};
    const __m512i index = _mm512_load_si512(places);
    front = _mm512_permutex2var_epi16(low, index, high);
    back = _mm512_permutex2var_epi16(low, _mm512_add_epi16(index, _mm512_set1_epi16(16)), high);
}

// to[j][i] = from[i * step + j] for i < rows and j < cols, up to 32 each; rows that are not there are 0.
inline void turn(Square& to, const Bf16* from, int64_t step, int64_t rows, int64_t cols) {
    const __mmask32 mask = first(cols);
    Vec<float> front[16], back[16];
#pragma GCC unroll 16
    for (int i = 0; i < 16; ++i) {
        const __m512i low = 2 * i < rows ? _mm512_maskz_loadu_epi16(mask, from + 2 * i * step) : __m512i{};
        const __m512i high = 2 * i + 1 < rows ? _mm512_maskz_loadu_epi16(mask, from + (2 * i + 1) * step) : __m512i{};
        __m512i a, b;
        pair(low, high, a, b);
        front[i] = (Vec<float>)a, back[i] = (Vec<float>)b;
    }
    fw::transpose<float>(front);
#pragma GCC unroll 16
    for (int i = 0; i < 16; ++i) _mm512_storeu_si512(to[i], (__m512i)front[i]);
    if (cols <= 16) return;
    fw::transpose<float>(back);
#pragma GCC unroll 16
    for (int i = 0; i < 16; ++i) _mm512_storeu_si512(to[16 + i], (__m512i)back[i]);
}

// to[0 .. 31]: the pairs of 16 numbers of two rows; to[next ...]: those of 16 others. What is null is 0.
FW_INLINE void pairs_of(Bf16* to, int64_t next, const Bf16* low, const Bf16* low_other, const Bf16* high,
                        const Bf16* high_other) {
    auto row = [](const Bf16* p, const Bf16* other) {
        const __m256i a = p ? _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)) : __m256i{};
        const __m256i b = other ? _mm256_loadu_si256(reinterpret_cast<const __m256i*>(other)) : __m256i{};
        return _mm512_inserti64x4(_mm512_castsi256_si512(a), b, 1);
    };
    __m512i a, b;
    pair(row(low, low_other), row(high, high_other), a, b);
    _mm512_storeu_si512(to, a);
    _mm512_storeu_si512(to + next, b);
}

// to[q][j] = the pair q of row j, for 16 pairs of 16 rows; numbers from `count` on and rows from `rows` on are 0.
inline void pairs_down(Bf16* to, const Bf16* from, int64_t step, int64_t rows, int64_t count) {
    Vec<float> v[16];
#pragma GCC unroll 16
    for (int j = 0; j < 16; ++j)
        v[j] = j < rows ? (Vec<float>)_mm512_maskz_loadu_epi16(first(count), from + j * step) : Vec<float>{};
    fw::transpose<float>(v);
#pragma GCC unroll 16
    for (int q = 0; q < 16; ++q) _mm512_storeu_si512(to + q * SQUARE, (__m512i)v[q]);
}

FW_INLINE void copy(Bf16* to, const Bf16* from, int64_t n) {
    int64_t i = 0;
    for (; i + 32 <= n; i += 32) _mm512_storeu_si512(to + i, _mm512_loadu_si512(from + i));
    if (i < n) _mm512_mask_storeu_epi16(to + i, first(n - i), _mm512_maskz_loadu_epi16(first(n - i), from + i));
}

#else

inline void turn(Square& to, const Bf16* from, int64_t step, int64_t rows, int64_t cols) {
    for (int64_t j = 0; j < cols; ++j)
        for (int64_t i = 0; i < SQUARE; ++i) to[j][i] = i < rows ? from[i * step + j] : Bf16{0};
}

inline void pairs_of(Bf16* to, int64_t next, const Bf16* low, const Bf16* low_other, const Bf16* high,
                     const Bf16* high_other) {
    for (int64_t i = 0; i < SQUARE / 2; ++i, to += 2) {
        to[0] = low ? low[i] : Bf16{0}, to[1] = high ? high[i] : Bf16{0};
        to[next] = low_other ? low_other[i] : Bf16{0}, to[next + 1] = high_other ? high_other[i] : Bf16{0};
    }
}

inline void pairs_down(Bf16* to, const Bf16* from, int64_t step, int64_t rows, int64_t count) {
    for (int64_t q = 0; q < 16; ++q)
        for (int64_t i = 0; i < SQUARE; ++i) {
            const int64_t j = i / 2, k = 2 * q + i % 2;
            to[q * SQUARE + i] = j < rows && k < count ? from[j * step + k] : Bf16{0};
        }
}

FW_INLINE void copy(Bf16* to, const Bf16* from, int64_t n) { std::memcpy(to, from, size_t(n) * sizeof(Bf16)); }

#endif

// The matrix of rows x cols, turned: to(j, i) says where the number of column j and row i goes, from where on up to 32
// numbers of further rows follow.
template <class To>
void turn_matrix(const Bf16* from, int64_t step, int64_t rows, int64_t cols, To&& to) {
    alignas(64) Square square;
    for (int64_t j = 0; j < cols; j += SQUARE)
        for (int64_t i = 0; i < rows; i += SQUARE) {
            const int64_t many = std::min(SQUARE, cols - j), deep = std::min(SQUARE, rows - i);
            turn(square, from + i * step + j, step, deep, many);
            for (int64_t c = 0; c < many; ++c)
                if (Bf16* at = to(j + c, i)) copy(at, square[c], deep);
        }
}

}  // namespace fw::turned
