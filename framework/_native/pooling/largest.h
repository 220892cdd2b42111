// The largest of the elements looked at so far, in every lane, and its number: the first of the largest, or the first nan.
#pragma once

#include <cstring>
#include <limits>

#include "base/vecmath_core.h"
#include "pooling/pool2d.h"

namespace fw::windows {

template <class T> constexpr T lowest = -std::numeric_limits<T>::infinity();

template <class T, class P> FW_INLINE void store_places(P* to, Mask<T> place, int64_t n) {
    typedef P Places __attribute__((vector_size(sizeof(P) * lanes<T>)));
    Places p = __builtin_convertvector(place, Places);
    if (n == lanes<T>) std::memcpy(to, &p, sizeof p);
    else std::memcpy(to, &p, size_t(n) * sizeof(P));
}

#if defined(FW_AVX512)  // GCC takes numbers for bytes out of the vector one by one
template <> FW_INLINE void store_places<float, uint8_t>(uint8_t* to, Mask<float> place, int64_t n) {
    const __m128i bytes = _mm512_cvtepi32_epi8(__m512i(place));
    if (n == lanes<float>) _mm_storeu_si128(reinterpret_cast<__m128i*>(to), bytes);
    else _mm_mask_storeu_epi8(to, __mmask16(_bzhi_u32(0xffff, unsigned(n))), bytes);
}
template <> FW_INLINE void store_places<double, uint8_t>(uint8_t* to, Mask<double> place, int64_t n) {
    const __m128i bytes = _mm512_cvtepi64_epi8(__m512i(place));
    _mm_mask_storeu_epi8(to, __mmask16(_bzhi_u32(0xff, unsigned(n))), bytes);
}
#elif defined(FW_AVX2)
template <> FW_INLINE void store_places<float, uint8_t>(uint8_t* to, Mask<float> place, int64_t n) {
    const __m128i words = _mm_packs_epi32(_mm256_castsi256_si128(__m256i(place)), _mm256_extracti128_si256(__m256i(place), 1));
    const __m128i bytes = _mm_packus_epi16(words, words);
    if (n == lanes<float>) _mm_storel_epi64(reinterpret_cast<__m128i*>(to), bytes);
    else std::memcpy(to, &bytes, size_t(n));
}
#endif

// Whether a number comes before the best one so far, lane by lane, and the first of two where it does.
#if defined(FW_AVX512)
FW_INLINE __mmask16 is_better(Vec<float> v, Vec<float> best) {
    return _mm512_mask_cmp_ps_mask(_mm512_cmp_ps_mask(__m512(best), __m512(best), _CMP_ORD_Q), __m512(v), __m512(best), _CMP_NLE_UQ);
}
FW_INLINE __mmask8 is_better(Vec<double> v, Vec<double> best) {
    return _mm512_mask_cmp_pd_mask(_mm512_cmp_pd_mask(__m512d(best), __m512d(best), _CMP_ORD_Q), __m512d(v), __m512d(best), _CMP_NLE_UQ);
}
FW_INLINE Vec<float> first_where(__mmask16 m, Vec<float> yes, Vec<float> no) { return Vec<float>(_mm512_mask_mov_ps(__m512(no), m, __m512(yes))); }
FW_INLINE Vec<double> first_where(__mmask8 m, Vec<double> yes, Vec<double> no) { return Vec<double>(_mm512_mask_mov_pd(__m512d(no), m, __m512d(yes))); }
FW_INLINE Mask<float> first_where(__mmask16 m, Mask<float> yes, Mask<float> no) {
    return Mask<float>(_mm512_mask_mov_epi32(__m512i(no), m, __m512i(yes)));
}
FW_INLINE Mask<double> first_where(__mmask8 m, Mask<double> yes, Mask<double> no) {
    return Mask<double>(_mm512_mask_mov_epi64(__m512i(no), m, __m512i(yes)));
}
#else
FW_INLINE Mask<float> is_better(Vec<float> v, Vec<float> best) { return ~(v <= best) & (best == best); }
FW_INLINE Mask<double> is_better(Vec<double> v, Vec<double> best) { return ~(v <= best) & (best == best); }
template <class M, class V> FW_INLINE V first_where(M m, V yes, V no) { return m ? yes : no; }
#endif

template <class T> FW_INLINE void store_places(WindowPlaces to, Mask<T> place, int64_t n) {
    if (to.bytes == 1) store_places<T>(static_cast<uint8_t*>(to.to), place, n);
    else store_places<T>(static_cast<int32_t*>(to.to), place, n);
}

template <class T, bool Places> struct Best {
    Vec<T> value;
    Mask<T> place;

    FW_INLINE void look(Vec<T> v, Int<T> k) {
        const auto better = is_better(v, value);
        value = first_where(better, v, value);
        if (Places) place = first_where(better, Mask<T>{} + k, place);
    }
    // What was found further on, from position k of the window.
    FW_INLINE void join(const Best& o, Int<T> k) {
        const auto better = is_better(o.value, value);
        value = first_where(better, o.value, value);
        if (Places) place = first_where(better, o.place + k, place);
    }
    // The first n; `largest` may be missing.
    FW_INLINE void give(T* largest, WindowPlaces where, int64_t n) const {
        if (largest) n == lanes<T> ? store(largest, value) : store_first(largest, value, n);
        if constexpr (Places) store_places<T>(where, place, n);
    }
};

// The same of four numbers in this order, without their places.
template <class T> FW_INLINE Vec<T> largest_of(Vec<T> a, Vec<T> b, Vec<T> c, Vec<T> d) {
    const Vec<T> sum = (a + b) + (c + d);  // nan where one of them is, or inf meets -inf
    if (math::any(sum != sum)) {
        Best<T, false> best{a, {}};
        best.look(b, 1), best.look(c, 2), best.look(d, 3);
        return best.value;
    }
    const Vec<T> up = math::greater(b, a), low = math::greater(d, c);  // the first where they are equal
    return math::greater(low, up);
}

}  // namespace fw::windows
