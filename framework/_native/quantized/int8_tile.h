// Inner products of bytes: R x 4 sums at once, in one of three ways.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "base/simd.h"

#if defined(__x86_64__)
#include <cpuid.h>
#elif defined(FW_NEON) && defined(__linux__)
#include <asm/hwcap.h>
#include <sys/auxv.h>
#endif

namespace fw::int8 {

constexpr int ACROSS = 4;  // rows of the second operand that a tile takes

using Four = int32_t __attribute__((vector_size(16)));
using FourFloats = float __attribute__((vector_size(16)));

// sums[r] = the inner products of row r of A with the four rows of B, of `chunks` steps of `chunk` bytes.
// One of A and B is uint8_t, the other int8_t.
template <class A, class B>
using Tile = void (*)(const A* a, int64_t a_row, const B* const* b, int64_t chunks, Four* sums);

// A way: tiles of 1 to `rows` rows for both orders of operands, how many bytes a step reads, and what it takes off
// activations, sums and all: that byte counts as nothing, and lies behind the end of a row.
struct Way {
    const char* name;
    int rows, chunk;
    uint8_t shift;
    const Tile<uint8_t, int8_t>* activations_first;
    const Tile<int8_t, uint8_t>* weights_first;
    enum { none, unit, twin } tiles = none;  // larger products by the matrix unit, or by its twin
};

// -- plain ------------------------------------------------------------------------------------------

template <int Chunk> struct Loops {
    static constexpr int rows = 3, chunk = Chunk;
    static constexpr uint8_t shift = 0;

    template <int R, class A, class B>
    static void tile(const A* a, int64_t a_row, const B* const* b, int64_t chunks, Four* sums) {
        int32_t s[R][ACROSS] = {};
        for (int64_t p = 0; p < chunks * chunk; ++p)
            for (int r = 0; r < R; ++r)
                for (int j = 0; j < ACROSS; ++j) s[r][j] += int32_t(a[r * a_row + p]) * b[j][p];
        std::memcpy(sums, s, sizeof s);
    }
};

// -- words ------------------------------------------------------------------------------------------

#if defined(FW_AVX512) || defined(FW_AVX2)

FW_INLINE __m256i words(const uint8_t* p) {
    return _mm256_cvtepu8_epi16(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
}
FW_INLINE __m256i words(const int8_t* p) {
    return _mm256_cvtepi8_epi16(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
}

// The sums over the lanes of four vectors, side by side.
FW_INLINE Four sums_of(__m256i a, __m256i b, __m256i c, __m256i d) {
    const __m256i all = _mm256_hadd_epi32(_mm256_hadd_epi32(a, b), _mm256_hadd_epi32(c, d));
    return (Four)_mm_add_epi32(_mm256_castsi256_si128(all), _mm256_extracti128_si256(all, 1));
}

// pmaddwd of widened numbers: pmaddubsw on bytes would saturate at 2^15.
struct Words {
    static constexpr int rows = 2, chunk = 16;  // 8 sums: with 12 the registers do not hold what they are made of
    static constexpr uint8_t shift = 0;

    template <int R, class A, class B>
    static void tile(const A* a, int64_t a_row, const B* const* b, int64_t chunks, Four* sums) {
        __m256i s[R][ACROSS];
#pragma GCC unroll 4
        for (int r = 0; r < R; ++r)
#pragma GCC unroll 4
            for (int j = 0; j < ACROSS; ++j) s[r][j] = _mm256_setzero_si256();
        const B *b0 = b[0], *b1 = b[1], *b2 = b[2], *b3 = b[3];
        for (int64_t p = 0; p < chunks * chunk; p += chunk) {
            __m256i x[R];
#pragma GCC unroll 4
            for (int r = 0; r < R; ++r) x[r] = words(a + r * a_row + p);
            const B* const at[ACROSS] = {b0 + p, b1 + p, b2 + p, b3 + p};
#pragma GCC unroll 4
            for (int j = 0; j < ACROSS; ++j) {
                const __m256i y = words(at[j]);
#pragma GCC unroll 4
                for (int r = 0; r < R; ++r) s[r][j] = _mm256_add_epi32(s[r][j], _mm256_madd_epi16(x[r], y));
            }
        }
#pragma GCC unroll 4
        for (int r = 0; r < R; ++r) sums[r] = sums_of(s[r][0], s[r][1], s[r][2], s[r][3]);
    }
};

#elif defined(FW_NEON)

FW_INLINE int16x8_t low_words(const uint8_t* p) { return vreinterpretq_s16_u16(vmovl_u8(vld1_u8(p))); }
FW_INLINE int16x8_t low_words(const int8_t* p) { return vmovl_s8(vld1_s8(p)); }

struct Words {
    static constexpr int rows = 4, chunk = 8;
    static constexpr uint8_t shift = 0;

    template <int R, class A, class B>
    static void tile(const A* a, int64_t a_row, const B* const* b, int64_t chunks, Four* sums) {
        int32x4_t s[R][ACROSS];
#pragma GCC unroll 4
        for (int r = 0; r < R; ++r)
#pragma GCC unroll 4
            for (int j = 0; j < ACROSS; ++j) s[r][j] = vdupq_n_s32(0);
        for (int64_t p = 0; p < chunks * chunk; p += chunk) {
            int16x8_t y[ACROSS];
#pragma GCC unroll 4
            for (int j = 0; j < ACROSS; ++j) y[j] = low_words(b[j] + p);
#pragma GCC unroll 4
            for (int r = 0; r < R; ++r) {
                const int16x8_t x = low_words(a + r * a_row + p);
#pragma GCC unroll 4
                for (int j = 0; j < ACROSS; ++j) {
                    s[r][j] = vmlal_s16(s[r][j], vget_low_s16(x), vget_low_s16(y[j]));
                    s[r][j] = vmlal_high_s16(s[r][j], x, y[j]);
                }
            }
        }
#pragma GCC unroll 4
        for (int r = 0; r < R; ++r)
            sums[r] = (Four)vpaddq_s32(vpaddq_s32(s[r][0], s[r][1]), vpaddq_s32(s[r][2], s[r][3]));
    }
};

#else
using Words = Loops<16>;
#endif

// -- bytes ------------------------------------------------------------------------------------------

#if defined(FW_AVX512)
#define FW_DOT_BYTES 1
#define FW_WITH_DOT __attribute__((target("avx512vnni")))
inline bool has_dot() {
    unsigned a = 0, b = 0, c = 0, d = 0;
    return __get_cpuid_count(7, 0, &a, &b, &c, &d) && (c >> 11 & 1);
}
using Bits = __m512i;
using Sums = Bits;
FW_WITH_DOT FW_INLINE Sums dot(Sums sum, Bits u, Bits s) { return _mm512_dpbusd_epi32(sum, u, s); }
FW_INLINE Four sums_of(const Sums (&s)[ACROSS]) {
    auto half = [](Sums v) {
        return _mm256_add_epi32(_mm512_castsi512_si256(v), _mm512_extracti64x4_epi64(v, 1));
    };
    return sums_of(half(s[0]), half(s[1]), half(s[2]), half(s[3]));
}
#elif defined(FW_AVX2) && (defined(__clang__) ? __clang_major__ >= 12 : __GNUC__ >= 11)
#define FW_DOT_BYTES 1
#define FW_WITH_DOT __attribute__((target("avxvnni")))
inline bool has_dot() {
    unsigned a = 0, b = 0, c = 0, d = 0;
    return __get_cpuid_count(7, 1, &a, &b, &c, &d) && (a >> 4 & 1);
}
using Bits = __m256i;
using Sums = Bits;
FW_WITH_DOT FW_INLINE Sums dot(Sums sum, Bits u, Bits s) { return _mm256_dpbusd_avx_epi32(sum, u, s); }
FW_INLINE Four sums_of(const Sums (&s)[ACROSS]) { return sums_of(s[0], s[1], s[2], s[3]); }
#elif defined(FW_NEON) && defined(__linux__) && defined(HWCAP_ASIMDDP)
#define FW_DOT_BYTES 1
#define FW_DOT_SIGNED 1
#if defined(__clang__)
#define FW_WITH_DOT __attribute__((target("dotprod")))
#else
#define FW_WITH_DOT __attribute__((target("arch=armv8.2-a+dotprod")))
#endif
inline bool has_dot() { return getauxval(AT_HWCAP) & HWCAP_ASIMDDP; }
using Bits = int8x16_t;
using Sums = int32x4_t;
FW_WITH_DOT FW_INLINE Sums dot(Sums sum, Bits u, Bits s) { return vdotq_s32(sum, u, s); }
FW_INLINE Four sums_of(const Sums (&s)[ACROSS]) {
    return (Four)vpaddq_s32(vpaddq_s32(s[0], s[1]), vpaddq_s32(s[2], s[3]));
}
#else
#define FW_DOT_BYTES 0
inline bool has_dot() { return false; }
#endif

#if FW_DOT_BYTES
// Each lane of 32 bits gets four products of its bytes: unsigned by signed ones (vpdpbusd), or signed ones (sdot), for
// which activations are taken as 128 less.
struct Dot {
    static constexpr int rows = 3, chunk = sizeof(Bits);
    static FW_INLINE Bits bytes(const int8_t* p) { return bits<Bits>(load(p)); }
#if defined(FW_DOT_SIGNED)
    static constexpr uint8_t shift = 128;
    static FW_INLINE Bits bytes(const uint8_t* p) { return bits<Bits>(load(p) ^ splat<uint8_t>(0x80)); }
#else
    static constexpr uint8_t shift = 0;
    static FW_INLINE Bits bytes(const uint8_t* p) { return bits<Bits>(load(p)); }
#endif

    template <int R, class A, class B>
    FW_WITH_DOT static void tile(const A* a, int64_t a_row, const B* const* b, int64_t chunks, Four* sums) {
        Sums s[R][ACROSS] = {};
        const B *b0 = b[0], *b1 = b[1], *b2 = b[2], *b3 = b[3];
        for (int64_t p = 0; p < chunks * chunk; p += chunk) {
            Bits x[R];
#pragma GCC unroll 4
            for (int r = 0; r < R; ++r) x[r] = bytes(a + r * a_row + p);
            const B* const at[ACROSS] = {b0 + p, b1 + p, b2 + p, b3 + p};
#pragma GCC unroll 4
            for (int j = 0; j < ACROSS; ++j) {
                const Bits y = bytes(at[j]);
#pragma GCC unroll 4
                for (int r = 0; r < R; ++r) {
                    if constexpr (std::is_same_v<A, uint8_t>) s[r][j] = dot(s[r][j], x[r], y);
                    else s[r][j] = dot(s[r][j], y, x[r]);
                }
            }
        }
#pragma GCC unroll 4
        for (int r = 0; r < R; ++r) sums[r] = sums_of(s[r]);
    }
};
#else
using Dot = Loops<FW_BYTES>;
#endif

// -- tables -----------------------------------------------------------------------------------------

template <class W> const Way& way_of(const char* name) {
    static constexpr Tile<uint8_t, int8_t> activations_first[] = {
        W::template tile<1, uint8_t, int8_t>, W::template tile<2, uint8_t, int8_t>,
        W::template tile<std::min(3, W::rows), uint8_t, int8_t>, W::template tile<W::rows, uint8_t, int8_t>};
    static constexpr Tile<int8_t, uint8_t> weights_first[] = {
        W::template tile<1, int8_t, uint8_t>, W::template tile<2, int8_t, uint8_t>,
        W::template tile<std::min(3, W::rows), int8_t, uint8_t>, W::template tile<W::rows, int8_t, uint8_t>};
    static const Way way{name, W::rows, W::chunk, W::shift, activations_first, weights_first};
    return way;
}

}  // namespace fw::int8
