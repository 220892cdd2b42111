// Lines of elements with gaps between them: brought together, and put back.
#pragma once

#include <cstring>
#include <type_traits>

#include "base/shuffles.h"

namespace fw {

// Elements that are moved whatever their type.
template <class T> using Moved = std::make_unsigned_t<Int<T>>;

#if defined(FW_AVX512)
// Every second number of a vector's worth of memory that begins at an even one, so that lines of the cache are met once:
// the even ones, or the odd ones. What lies between them is neither read nor written.
template <class T> struct EverySecond {
    static constexpr bool wide = sizeof(T) == 8;
    int64_t odd;
    __mmask16 mask;
    __m512i chosen, spread;

    explicit EverySecond(const char* first) : odd(int64_t(reinterpret_cast<uintptr_t>(first) / sizeof(T) & 1)) {
        using E = Int<T>;
        const Mask<T> at = lane_numbers<T>();
        mask = __mmask16((wide ? 0x55 : 0x5555) << odd);
        chosen = bits<__m512i>(at + at + splat<E>(E(odd)));
        spread = bits<__m512i>(at >> 1);
    }
    __m512i take(const char* p) const {
        const T* from = reinterpret_cast<const T*>(p) - odd;
        if constexpr (wide)
            return _mm512_permutex2var_epi64(_mm512_maskz_loadu_epi64(__mmask8(mask), from), chosen,
                                             _mm512_maskz_loadu_epi64(__mmask8(mask), from + 8));
        else
            return _mm512_permutex2var_epi32(_mm512_maskz_loadu_epi32(mask, from), chosen,
                                             _mm512_maskz_loadu_epi32(mask, from + 16));
    }
    void put(char* p, __m512i v) const {
        T* to = reinterpret_cast<T*>(p) - odd;
        const __m512i upper = bits<__m512i>(bits<Vec<T>>(spread) + splat<T>(T(lanes<T> / 2)));
        if constexpr (wide) {
            _mm512_mask_storeu_epi64(to, __mmask8(mask), _mm512_permutexvar_epi64(spread, v));
            _mm512_mask_storeu_epi64(to + 8, __mmask8(mask), _mm512_permutexvar_epi64(upper, v));
        } else {
            _mm512_mask_storeu_epi32(to, mask, _mm512_permutexvar_epi32(spread, v));
            _mm512_mask_storeu_epi32(to + 16, mask, _mm512_permutexvar_epi32(upper, v));
        }
    }
};
#endif

// Bytes from what is read to what is asked for: a block is brought together and computed in turns, and while it is computed the
// processor asks for nothing.
constexpr int64_t GATHERED_AHEAD = 2048;

// to[i] = the i-th of n elements that lie `stride` bytes apart.
template <class T> FW_INLINE void take_line(T* to, const char* from, int64_t stride, int64_t n) {
    int64_t i = 0;
#if defined(FW_AVX512)
    if constexpr (sizeof(T) == 4 || sizeof(T) == 8)
        if (stride == 2 * int64_t(sizeof(T)) && n >= lanes<T>) {
            const EverySecond<Moved<T>> line(from);
            for (; i + lanes<T> <= n; i += lanes<T>) {
                __builtin_prefetch(from + i * stride + GATHERED_AHEAD), __builtin_prefetch(from + i * stride + GATHERED_AHEAD + 64);
                _mm512_storeu_si512(to + i, line.take(from + i * stride));
            }
        }
    if constexpr (sizeof(T) == 2)
        if (stride == 4)  // the lower halves of numbers twice as wide, of which the last one reaches further
            for (; i + 16 < n; i += 16)
                _mm256_storeu_si256(reinterpret_cast<__m256i*>(to + i),
                                    _mm512_cvtepi32_epi16(_mm512_loadu_si512(from + i * 4)));
    if constexpr (sizeof(T) == 1)
        if (stride == 2)
            for (; i + 32 < n; i += 32)
                _mm256_storeu_si256(reinterpret_cast<__m256i*>(to + i),
                                    _mm512_cvtepi16_epi8(_mm512_loadu_si512(from + i * 2)));
#else
    if constexpr (sizeof(T) == 4 || sizeof(T) == 8) {
        constexpr int64_t L = lanes<T>;
        using E = Moved<T>;
        if (stride == 2 * int64_t(sizeof(T)))  // two vectors that end with the last element wanted
            for (; i + L <= n; i += L) {
                const E* p = reinterpret_cast<const E*>(from) + 2 * i;
                __builtin_prefetch(reinterpret_cast<const char*>(p) + GATHERED_AHEAD);
                const Vec<E> some = evens_of_overlapping<E>(load(p), load(p + L - 1));
                std::memcpy(to + i, &some, sizeof some);
            }
    }
#endif
    for (; i < n; ++i) std::memcpy(to + i, from + i * stride, sizeof(T));
}

// The i-th of n elements that lie `stride` bytes apart = from[i]; what lies between them is not touched.
template <class T> FW_INLINE void put_line(char* to, int64_t stride, const T* from, int64_t n) {
    int64_t i = 0;
#if defined(FW_AVX512)
    if constexpr (sizeof(T) == 4 || sizeof(T) == 8)
        if (stride == 2 * int64_t(sizeof(T)) && n >= lanes<T>) {
            const EverySecond<Moved<T>> line(to);
            for (; i + lanes<T> <= n; i += lanes<T>) line.put(to + i * stride, _mm512_loadu_si512(from + i));
        }
    if constexpr (sizeof(T) == 2)
        if (stride == 4)
            for (; i + 16 <= n; i += 16)
                _mm512_mask_storeu_epi16(to + i * 4, 0x55555555, _mm512_cvtepu16_epi32(_mm256_loadu_si256(
                    reinterpret_cast<const __m256i*>(from + i))));
    if constexpr (sizeof(T) == 1)
        if (stride == 2)
            for (; i + 32 <= n; i += 32)
                _mm512_mask_storeu_epi8(to + i * 2, 0x5555555555555555, _mm512_cvtepu8_epi16(_mm256_loadu_si256(
                    reinterpret_cast<const __m256i*>(from + i))));
#endif
    for (; i < n; ++i) std::memcpy(to + i * stride, from + i, sizeof(T));
}

// Short lines whose elements lie side by side, in both places: of B to 2 B bytes, which are a piece from the start and one to the
// end.
template <int B> void copy_short_lines(char* to, int64_t next, const char* from, int64_t apart, int64_t lines, int64_t bytes) {
    struct Piece { char bytes[B]; } first, last;
    if (bytes == B && apart == 0)
        for (std::memcpy(&first, from, B); lines > 0; --lines, to += next) std::memcpy(to, &first, B);
    if (bytes == B)
        for (; lines > 0; --lines, from += apart, to += next) std::memcpy(&first, from, B), std::memcpy(to, &first, B);
    for (; lines > 0; --lines, from += apart, to += next) {
        std::memcpy(&first, from, B), std::memcpy(&last, from + bytes - B, B);
        std::memcpy(to, &first, B), std::memcpy(to + bytes - B, &last, B);
    }
}
// Lines of more bytes, 64 at a time, and the last 64.
inline void copy_lines_by_64(char* to, int64_t next, const char* from, int64_t apart, int64_t lines, int64_t bytes) {
    struct Piece { char bytes[64]; } piece;
    for (; lines > 0; --lines, from += apart, to += next) {
#pragma GCC unroll 4
        for (int64_t i = 0; i < bytes - 64; i += 64) std::memcpy(&piece, from + i, 64), std::memcpy(to + i, &piece, 64);
        std::memcpy(&piece, from + bytes - 64, 64), std::memcpy(to + bytes - 64, &piece, 64);
    }
}
inline void copy_short_lines(char* to, int64_t next, const char* from, int64_t apart, int64_t lines, int64_t bytes) {
    if (bytes > 128) copy_lines_by_64(to, next, from, apart, lines, bytes);
    else if (bytes >= 64) copy_short_lines<64>(to, next, from, apart, lines, bytes);
    else if (bytes >= 32) copy_short_lines<32>(to, next, from, apart, lines, bytes);
    else if (bytes >= 16) copy_short_lines<16>(to, next, from, apart, lines, bytes);
    else if (bytes >= 8) copy_short_lines<8>(to, next, from, apart, lines, bytes);
    else if (bytes >= 4) copy_short_lines<4>(to, next, from, apart, lines, bytes);
    else if (bytes >= 2) copy_short_lines<2>(to, next, from, apart, lines, bytes);
    else if (bytes == 1) copy_short_lines<1>(to, next, from, apart, lines, bytes);
}

}  // namespace fw
