// Elements, or whole rows, where a mask holds: x[mask], and writing there.
#include <algorithm>

#include "index/index.h"

namespace fw::moving {
namespace {

constexpr int64_t CHUNK = 4096;  // mask elements that one thread counts, or moves, at once

#if defined(FW_AVX512)
FW_INLINE __mmask16 held16(const uint8_t* mask) {
    __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(mask));
    return _mm_test_epi8_mask(bytes, bytes);
}
FW_INLINE __mmask16 first16(int n) { return __mmask16(_bzhi_u32(0xffff, unsigned(n))); }
#endif

// to[k], to[k + 1] ... < to[stop] = from[i] where mask[i]
template <class T>
void pick(const uint8_t* mask, const T* from, T* to, int64_t i, int64_t end, int64_t k, int64_t stop) {
#if defined(FW_AVX512)
    if constexpr (sizeof(T) == 4) {
        for (; i + 16 <= end; i += 16) {
            __mmask16 m = held16(mask + i);
            int held = __builtin_popcount(m);
            if (k + held > stop) break;  // somebody changed the mask
            __m512i v = _mm512_maskz_compress_epi32(m, _mm512_loadu_si512(from + i));
            _mm512_mask_storeu_epi32(to + k, first16(held), v);
            k += held;
        }
    }
#endif
    for (; i < end && k < stop; ++i) {
        to[k] = from[i];
        k += mask[i] != 0;
    }
}

// to[i] = from[k], from[k + 1] ... where mask[i], else other[i] (0 without one)
template <class T>
void place(const uint8_t* mask, const T* from, const T* other, T* to, int64_t i, int64_t end, int64_t k,
           int64_t stop) {
#if defined(FW_AVX512)
    if constexpr (sizeof(T) == 4) {
        for (; i + 16 <= end; i += 16) {
            __mmask16 m = held16(mask + i);
            int held = __builtin_popcount(m);
            if (k + held > stop) break;
            __m512i old = other ? _mm512_loadu_si512(other + i) : _mm512_setzero_si512();
            __m512i v = _mm512_maskz_loadu_epi32(first16(held), from + k);
            _mm512_storeu_si512(to + i, _mm512_mask_expand_epi32(old, m, v));
            k += held;
        }
    }
#endif
    for (; i < end && k < stop; ++i) {
        T value = from[k], old = other ? other[i] : T{};
        to[i] = mask[i] ? value : old;
        k += mask[i] != 0;
    }
    for (; i < end; ++i) to[i] = other ? other[i] : T{};
}

// f(first mask element, the one behind, chosen before the first, chosen before the one behind), in parallel
template <class F> void each_chunk(const Chosen& c, int bytes, F&& f) {
    const int64_t grain = std::max<int64_t>(1, grain_of(CHUNK * c.inner * bytes));
    parallel(int64_t(c.before.size()) - 1, grain, [&](int64_t begin, int64_t end) {
        for (int64_t k = begin; k < end; ++k)
            f(k * CHUNK, std::min(c.n, (k + 1) * CHUNK), c.before[size_t(k)], c.before[size_t(k) + 1]);
    });
}

}  // namespace

void Chosen::count() {
    const int64_t chunks = (n + CHUNK - 1) / CHUNK;
    before.assign(size_t(chunks) + 1, 0);
    parallel(chunks, 4, [&](int64_t begin, int64_t end) {
        for (int64_t c = begin; c < end; ++c) {
            int64_t stop = std::min(n, (c + 1) * CHUNK);
            uint32_t held = 0;
            for (int64_t i = c * CHUNK; i < stop; ++i) held += mask[i] != 0;
            before[size_t(c) + 1] = held;
        }
    });
    for (int64_t c = 0; c < chunks; ++c) before[size_t(c) + 1] += before[size_t(c)];
}

void pick(const Chosen& chosen, int bytes, const char* from, char* to) {
    const int64_t row = chosen.inner * bytes;
    each_chunk(chosen, bytes, [&](int64_t i, int64_t end, int64_t k, int64_t stop) {
        if (chosen.inner > 1) {
            for (; i < end && k < stop; ++i)
                if (chosen.mask[i]) memcpy(to + row * k++, from + row * i, size_t(row));
            return;
        }
        by_bytes(bytes, [&](auto t) {
            using T = decltype(t);
            pick(chosen.mask, reinterpret_cast<const T*>(from), reinterpret_cast<T*>(to), i, end, k, stop);
        });
    });
}

void place(const Chosen& chosen, int bytes, const char* from, const char* kept, char* to) {
    const int64_t row = chosen.inner * bytes;
    each_chunk(chosen, bytes, [&](int64_t i, int64_t end, int64_t k, int64_t stop) {
        if (chosen.inner > 1) {
            for (; i < end; ++i) {
                if (chosen.mask[i] && k < stop)
                    memcpy(to + row * i, from + row * k++, size_t(row));
                else if (kept)
                    memcpy(to + row * i, kept + row * i, size_t(row));
                else
                    memset(to + row * i, 0, size_t(row));
            }
            return;
        }
        by_bytes(bytes, [&](auto t) {
            using T = decltype(t);
            place(chosen.mask, reinterpret_cast<const T*>(from), reinterpret_cast<const T*>(kept),
                  reinterpret_cast<T*>(to), i, end, k, stop);
        });
    });
}

void fill(const Chosen& chosen, int bytes, const Pair& number, const char* x, char* out) {
    by_bytes(bytes, [&](auto value) {
        using T = decltype(value);
        memcpy(&value, &number, sizeof value);
        const T* from = reinterpret_cast<const T*>(x);
        T* to = reinterpret_cast<T*>(out);
        parallel(chosen.n, grain_of(chosen.inner * bytes), [&](int64_t begin, int64_t end) {
            if (chosen.inner == 1) {
                for (int64_t i = begin; i < end; ++i) {
                    T old = from[i];
                    to[i] = chosen.mask[i] ? value : old;
                }
                return;
            }
            for (int64_t i = begin; i < end; ++i) {
                T* row = to + i * chosen.inner;
                if (chosen.mask[i])
                    std::fill_n(row, chosen.inner, value);
                else
                    memcpy(static_cast<void*>(row), from + i * chosen.inner, size_t(chosen.inner * bytes));
            }
        });
    });
}

}  // namespace fw::moving
