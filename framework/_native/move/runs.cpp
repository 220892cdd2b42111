#include "move/runs.h"

#include <algorithm>

#include "base/simd.h"
#include "move/block.h"

namespace fw::moving {

template <class T> int64_t count_runs(const T* x, int64_t n) {
    int64_t count = 1;
    for (int64_t i = 1; i < n; ++i) count += x[i] != x[i - 1];
    return count;
}

template <class T> void take_runs(const T* x, int64_t n, T* to, int64_t most) {
    to[0] = x[0];
    int64_t last = 0, i = 1;
#if defined(FW_AVX512)
    constexpr int L = lanes<T>;
    if constexpr (sizeof(T) == 8)
        for (; i + L <= n && last + L < most; i += L) {  // a whole vector is written, whose rest the next one writes over
            const Vec<T> v = load(x + i);
            const __mmask8 m = _mm512_movepi64_mask((__m512i)(v != load(x + i - 1)));
            _mm512_storeu_si512(to + last + 1, _mm512_maskz_compress_epi64(m, (__m512i)v));
            last += __builtin_popcount(m);
        }
    if constexpr (sizeof(T) == 4)
        for (; i + L <= n && last + L < most; i += L) {
            const Vec<T> v = load(x + i);
            const __mmask16 m = _mm512_movepi32_mask((__m512i)(v != load(x + i - 1)));
            _mm512_storeu_si512(to + last + 1, _mm512_maskz_compress_epi32(m, (__m512i)v));
            last += __builtin_popcount(m);
        }
#endif
    T before = x[i - 1];
    for (; i < n && last + 1 < most; ++i) {  // an element that is none of them is overwritten by the next
        const T value = x[i];
        to[last + 1] = value;
        last += value != before;
        before = value;
    }
}

namespace {

template <class T, int TIMES> void repeat_few(const T* from, int64_t n, T* to) {
    for (int64_t i = 0; i < n; ++i)
        for (int k = 0; k < TIMES; ++k) to[i * TIMES + k] = from[i];
}

}  // namespace

void repeat_elements(const char* from, int64_t n, int bytes, int64_t times, char* to) {
    parallel(n, grain_of(bytes * times), [=](int64_t begin, int64_t end) {
        by_bytes(bytes, [&](auto unit) {
            using T = decltype(unit);
            const T* x = reinterpret_cast<const T*>(from) + begin;
            T* y = reinterpret_cast<T*>(to) + begin * times;
            if (times == 2) return repeat_few<T, 2>(x, end - begin, y);
            if (times == 3) return repeat_few<T, 3>(x, end - begin, y);
            if (times == 4) return repeat_few<T, 4>(x, end - begin, y);
            for (int64_t i = 0; i < end - begin; ++i) std::fill_n(y + i * times, times, x[i]);
        });
    });
}

#define FW_RUNS(T)                                          \
    template int64_t count_runs(const T*, int64_t);         \
    template void take_runs(const T*, int64_t, T*, int64_t);
FW_RUNS(float)
FW_RUNS(double)
FW_RUNS(int64_t)
FW_RUNS(int32_t)
FW_RUNS(uint8_t)

}  // namespace fw::moving
