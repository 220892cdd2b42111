// Tiles of products of bfloat16 by vdpbf16ps, which adds two products of neighbouring steps to a float32.
//
// Operands lie as pairs: for two steps 2p and 2p + 1 the two numbers side by side, as one word of 32 bits. B is a
// panel: for each pair of steps the words of `width` columns. A is one, too, or lies in place where its steps are
// side by side. Like the processor's, the products take denormal numbers as 0.
#pragma once

#include "base/bf16.h"
#include "gemm/gemm_kernel.h"

#if defined(FW_AVX512) && (defined(__clang__) || __GNUC__ >= 10)
#define FW_DOT_BF16 1
#include <cpuid.h>
#define FW_WITH_BF16 __attribute__((target("avx512bf16")))
#else
#define FW_DOT_BF16 0
#endif

namespace fw {

#if FW_DOT_BF16
inline bool has_dot_bf16() {
    static const bool has = [] {
        unsigned a = 0, b = 0, c = 0, d = 0;
        return __get_cpuid_count(7, 1, &a, &b, &c, &d) && (a >> 5 & 1);
    }();
    return has;
}

namespace pairs {

constexpr int rows = tile_rows, width = 2 * lanes<float>;

FW_INLINE uint32_t word(const Bf16* p) {
    uint32_t w;
    std::memcpy(&w, p, sizeof w);
    return w;
}

// sums[i, j] = sum over the pairs p of a[i, p] . b[p, j], after what `sums` holds if `add`. When the sums are
// complete (`c`), they are rounded with a bias for each row or column, and stored there instead.
struct Tile {
    const Bf16* a;
    int64_t a_row, a_step;  // the pair p of row i lies at a + i * a_row + p * a_step
    const uint32_t* b;
    int64_t pairs;
    int cols;
    float* sums;
    int64_t sums_row;
    bool add;
    Bf16* c = nullptr;
    int64_t c_row = 0;
    const Bf16 *row_bias = nullptr, *col_bias = nullptr;
};

// Any tile of 1 to `rows` rows and 1 to `width` columns; `sums` has room for whole vectors.
void run(int height, const Tile& t);  // in gemm_bf16.cpp: all of them take seconds to compile

// -- packing --------------------------------------------------------------------------------------

FW_INLINE Halves load_halves(const Bf16* p, int64_t n) {  // the first n <= 16, then 0
    const __mmask16 mask = n >= 16 ? 0xffff : __mmask16((1u << n) - 1);
    return (Halves)_mm256_maskz_loadu_epi16(mask, p);
}

// The words of two rows: (low[i], high[i]) for i < n, and 0 up to 16. A row that is not there is null.
FW_INLINE Vec<uint32_t> interleaved(const Bf16* low, const Bf16* high, int64_t n) {
    using Words = Vec<uint32_t>;
    Words w = __builtin_convertvector(load_halves(low, n), Words);
    if (high) w |= __builtin_convertvector(load_halves(high, n), Words) << 16;
    return w;
}

// 16 rows of words, the first `count` of each, as columns of `to`; rows from `rows` on count as 0. row(i) gives
// where row i begins; `odd`: of the last word, only the first number is there.
template <class Row>
FW_INLINE void transposed(uint32_t* to, int to_width, int rows, int64_t count, bool odd, Row&& row) {
    Vec<float> v[16];
#pragma GCC unroll 16
    for (int i = 0; i < 16; ++i) {
        if (i >= rows) {
            v[i] = Vec<float>{};
        } else if (count >= 16 && !(odd && count == 16)) {
            v[i] = (Vec<float>)_mm512_loadu_ps(row(i));
        } else {
            const int64_t numbers = 2 * count - odd;
            const __mmask32 mask = numbers >= 32 ? ~__mmask32(0) : (__mmask32(1) << numbers) - 1;
            v[i] = (Vec<float>)_mm512_castsi512_ps(_mm512_maskz_loadu_epi16(mask, row(i)));
        }
    }
    fw::transpose<float>(v);
    const int64_t last = count < 16 ? count : 16;
    for (int64_t p = 0; p < last; ++p) _mm512_storeu_ps(to + p * to_width, (__m512)v[p]);
}

// to[p * to_width + i] = (src[i * row + 2 p * step], src[i * row + (2 p + 1) * step]) for i < rows, 0 for more, and
// 0 for a step k that is odd and not there. to_width is a multiple of 16, and `to` has room for whole panels.
inline void pack(uint32_t* to, int to_width, const Bf16* src, int rows, int64_t row, int64_t step, int64_t k) {
    const int64_t count = (k + 1) / 2;
    if (row == 1) {
        for (int64_t p = 0; p < count; ++p, to += to_width, src += 2 * step)
            for (int i = 0; i < to_width; i += 16)
                store<uint32_t>(to + i, interleaved(src + i, 2 * p + 1 < k ? src + i + step : nullptr, std::max(rows - i, 0)));
    } else if (step == 1) {
        for (int64_t p = 0; p < count; p += 16) {
            const bool odd = k % 2 && p + 16 >= count;
            for (int i = 0; i < to_width; i += 16)
                transposed(to + p * to_width + i, to_width, rows - i, count - p, odd,
                           [&](int r) { return src + (i + r) * row + 2 * p; });
        }
    } else {
        for (int64_t p = 0; p < count; ++p, to += to_width, src += 2 * step)
            for (int i = 0; i < to_width; ++i) {
                const Bf16* at = src + i * row;
                const uint32_t low = i < rows ? at->bits : 0, high = i < rows && 2 * p + 1 < k ? at[step].bits : 0;
                to[i] = low | high << 16;
            }
    }
}

}  // namespace pairs
#else
inline bool has_dot_bf16() { return false; }
#endif

}  // namespace fw
