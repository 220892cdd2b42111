#include "move/copy_cast.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <type_traits>

#include "base/half.h"

namespace fw::moving {
namespace {

template <class F> void by_kind(NumberKind kind, F&& f) {
    switch (kind) {
        case NumberKind::boolean: return f(bool{});
        case NumberKind::uint8: return f(uint8_t{});
        case NumberKind::int8: return f(int8_t{});
        case NumberKind::int16: return f(int16_t{});
        case NumberKind::int32: return f(int32_t{});
        case NumberKind::int64: return f(int64_t{});
        case NumberKind::float16: return f(Half{});
        case NumberKind::float32: return f(float{});
        case NumberKind::float64: return f(double{});
        case NumberKind::bfloat16: return f(Bf16{});
    }
}

// What becomes of nan and of numbers that do not fit is the processor's choice, as in NumPy: narrow whole numbers are the low
// bits of those of 32.
template <class T> constexpr bool narrowed = std::is_same<T, Bf16>::value || std::is_same<T, Half>::value;
template <class From, class To>
constexpr bool by_32_bits = std::is_floating_point<From>::value && std::is_integral<To>::value && sizeof(To) < 4;

// Rounded to float32 so that rounding it once more, to a shorter one, gives what rounding once would: towards 0, and odd in the
// last digit where something was lost.
FW_INLINE float rounded_to_odd(double x) {
    const float near = float(x);
    const double back = near;
    uint32_t bits;
    std::memcpy(&bits, &near, sizeof bits);
    const uint32_t odd = (bits - (std::fabs(back) > std::fabs(x))) | 1;
    bits = back == x || x != x ? bits : odd;
    float y;
    std::memcpy(&y, &bits, sizeof y);
    return y;
}

// bfloat16 converts by way of float32, as in ml_dtypes, and so does float16.
template <class From, class To> FW_INLINE To converted(From x) {
    if constexpr (narrowed<From>)
        return converted<float, To>(widen(x));
    else if constexpr (std::is_same<To, Bf16>::value)
        return narrow(static_cast<float>(x));
    else if constexpr (std::is_same<To, Half>::value && std::is_same<From, double>::value)
        return narrow_half(rounded_to_odd(x));
    else if constexpr (std::is_same<To, Half>::value)
        return narrow_half(static_cast<float>(x));
    else if constexpr (std::is_same<To, bool>::value)
        return x != From(0);
    else if constexpr (by_32_bits<From, To>)
        return static_cast<To>(static_cast<int32_t>(x));
    else
        return static_cast<To>(x);
}

// Of doubles so many as whole vectors hold.
FW_INLINE int64_t narrow_vectors([[maybe_unused]] const double* x, [[maybe_unused]] Half* y, [[maybe_unused]] int64_t n) {
    int64_t i = 0;
#if defined(FW_AVX512)
    constexpr int other = 12;  // _CMP_NEQ_OQ
    for (; i + 8 <= n; i += 8) {
        const __m512d v = _mm512_loadu_pd(x + i);
        const __m256 f = _mm512_cvt_roundpd_ps(v, _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC);
        const __m256i b = _mm256_castps_si256(f);
        const __mmask8 lost = _mm512_cmp_pd_mask(_mm512_cvtps_pd(f), v, other);
        const __m256i odd = _mm256_mask_or_epi32(b, lost, b, _mm256_set1_epi32(1));
        _mm_storeu_si128(reinterpret_cast<__m128i*>(y + i), _mm256_cvtps_ph(_mm256_castsi256_ps(odd), _MM_FROUND_TO_NEAREST_INT));
    }
#endif
    return i;
}

constexpr int64_t SOME = 256;  // numbers that are converted in two steps

template <class From, class To> void convert_line(const From* x, To* y, int64_t n) {
    if constexpr (narrowed<From> && std::is_same<To, float>::value) widen(y, x, n);
    else if constexpr (std::is_same<From, float>::value && narrowed<To>) narrow(y, x, n);
    else if constexpr (narrowed<From> || narrowed<To>) {  // by float32, for which there are instructions
        float some[SOME];
        int64_t j = 0;
        if constexpr (std::is_same<To, Half>::value && std::is_same<From, double>::value) j = narrow_vectors(x, y, n);
        if constexpr (narrowed<From> && std::is_same<To, int32_t>::value)
            for (; j + lanes<float> <= n; j += lanes<float>) store(y + j, __builtin_convertvector(load_wide(x + j), Vec<int32_t>));
        for (int64_t m; j < n; j += m) {
            m = std::min(SOME, n - j);
            if constexpr (narrowed<From>) widen(some, x + j, m);
            else if constexpr (std::is_same<To, Half>::value && std::is_same<From, double>::value)
                for (int64_t k = 0; k < m; ++k) some[k] = rounded_to_odd(x[j + k]);
            else for (int64_t k = 0; k < m; ++k) some[k] = converted<From, float>(x[j + k]);
            if constexpr (narrowed<To>) narrow(y + j, some, m);
            else for (int64_t k = 0; k < m; ++k) y[j + k] = converted<float, To>(some[k]);
        }
    } else
        for (int64_t j = 0; j < n; ++j) y[j] = converted<From, To>(x[j]);
}

template <class From, class To>
void convert(const Block& b, const char* from, char* to, int64_t begin, int64_t end) {
    const int inner = b.ndim - 1;
    const int64_t n = b.shape[inner], step = b.from[inner];
    Walk w(b, inner, begin);
    for (int64_t i = begin; i < end; ++i, w.next()) {
        const char* p = from + w.from;
        To* q = reinterpret_cast<To*>(to + w.to);
        if (step == sizeof(From)) {
            convert_line(reinterpret_cast<const From*>(p), q, n);
        } else if constexpr (std::is_same<From, Half>::value || std::is_same<To, Half>::value) {
            From some[SOME];  // brought together first, for there are instructions for whole vectors
            for (int64_t j = 0, m; j < n; j += m) {
                m = std::min(SOME, n - j);
                for (int64_t k = 0; k < m; ++k) some[k] = *reinterpret_cast<const From*>(p + (j + k) * step);
                convert_line(some, q + j, m);
            }
        } else {
            for (int64_t j = 0; j < n; ++j)
                q[j] = converted<From, To>(*reinterpret_cast<const From*>(p + j * step));
        }
    }
}

// One long row as several, for the threads.
constexpr int64_t ROW = 8192;
void split(Block& b) {
    int64_t n = b.shape[0];
    if (b.ndim != 1 || n < 2 * ROW || n % ROW) return;
    int64_t from = b.from[0], to = b.to[0];
    b.ndim = 0;
    b.add(n / ROW, from * ROW, to * ROW);
    b.add(ROW, from, to);
}

void convert_all(Converter convert, const Block& b, int64_t item_bytes, const char* from, char* to) {
    const int64_t n = b.shape[b.ndim - 1];
    parallel(b.rows(), grain_of(n * item_bytes),
             [&](int64_t begin, int64_t end) { convert(b, from, to, begin, end); });
}

}  // namespace

// Bytes are the same with and without a sign.
Converter converter(NumberKind given, NumberKind wanted) {
    Converter found = nullptr;
    by_kind(given, [&](auto a) {
        using Given = decltype(a);
        using From = std::conditional_t<std::is_same<Given, bool>::value, uint8_t, Given>;
        by_kind(wanted, [&](auto b) {
            using Wanted = decltype(b);
            using To = std::conditional_t<std::is_same<Wanted, int8_t>::value, uint8_t, Wanted>;
            constexpr bool bytes = sizeof(From) == 1 && sizeof(To) == 1;
            found = convert<std::conditional_t<bytes, uint8_t, From>, To>;
        });
    });
    return found;
}

void convert_block(Converter convert, Block& block, int64_t bytes, const char* from, char* to) {
    block.simplify();
    if (!block.ndim) block.add(1, 0, 0);
    int64_t n = block.shape[0], odd = n % ROW;
    if (block.ndim == 1 && n > 2 * ROW && odd) {  // the rest by itself, last: rows begin where vectors do
        Block rest = block;
        rest.shape[0] = odd;
        block.shape[0] = n -= odd;
        convert_all(convert, rest, bytes, from + n * block.from[0], to + n * block.to[0]);
    }
    split(block);
    convert_all(convert, block, bytes, from, to);
}

}  // namespace fw::moving
