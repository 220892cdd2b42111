// The way back of largest elements, by their numbers in the windows.
#include <atomic>
#include <cstring>
#include <vector>

#include "pooling/pool2d.h"

namespace fw::windows {
namespace {

// The kernel's positions as steps from a window's first element.
struct WindowSteps {
    std::vector<int64_t> x, y, z, flat;
    bool checks;  // whether some windows reach over the edge

    explicit WindowSteps(const PoolShape& s) : checks(s.overhangs()) {
        for (std::vector<int64_t>* each : {&x, &y, &z, &flat}) each->reserve(size_t(s.window()));
        for (int64_t i = 0; i < s.axis[0].kernel; ++i)
            for (int64_t j = 0; j < s.axis[1].kernel; ++j)
                for (int64_t l = 0; l < s.axis[2].kernel; ++l) {
                    x.push_back(i * s.axis[0].dilation);
                    y.push_back(j * s.axis[1].dilation);
                    z.push_back(l * s.axis[2].dilation);
                    flat.push_back((x.back() * s.axis[1].in + y.back()) * s.axis[2].in + z.back());
                }
    }
};

// Calls f(output's place, input's place or -1 for padding) for every window of a plane; false if one of them names
// no element of its window.
template <class P, class F> bool each_place(const PoolShape& s, const WindowSteps& steps, const P* where, F&& f) {
    const PoolAxis &x = s.axis[0], &y = s.axis[1], &z = s.axis[2];
    int64_t out = 0;
    for (int64_t i = 0; i < x.out; ++i) {
        for (int64_t j = 0; j < y.out; ++j) {
            const int64_t in_x = x.start(i), in_y = y.start(j);
            const int64_t line = (in_x * y.in + in_y) * z.in - z.padding;
            for (int64_t l = 0; l < z.out; ++l, ++out) {
                const size_t k = where[out];
                if (k >= steps.flat.size()) return false;
                bool inside = true;
                if (steps.checks)
                    inside = uint64_t(in_x + steps.x[k]) < uint64_t(x.in) &&
                             uint64_t(in_y + steps.y[k]) < uint64_t(y.in) &&
                             uint64_t(z.start(l) + steps.z[k]) < uint64_t(z.in);
                f(out, inside ? line + l * z.stride + steps.flat[k] : -1);
            }
        }
    }
    return true;
}

// The first n places, the others 0.
template <class T> FW_INLINE Mask<T> some_places(const uint8_t* where, int64_t n) {
#if defined(FW_AVX512)
    const __m128i bytes = _mm_maskz_loadu_epi8(__mmask16(_bzhi_u32(0xffff, unsigned(n))), where);
    return Mask<T>(sizeof(T) == 4 ? _mm512_cvtepu8_epi32(bytes) : _mm512_cvtepu8_epi64(bytes));
#else
    typedef uint8_t Places __attribute__((vector_size(lanes<T>)));
    Places places{};
    std::memcpy(&places, where, size_t(n));
    return __builtin_convertvector(places, Mask<T>);
#endif
}

// Windows of 2 x 2 side by side: whole lines at once. Numbers behind the last window stay 0.
template <class T> void spread_pairs(const PoolShape& s, const T* y, const uint8_t* where, T* x) {
    constexpr int n = lanes<T>;
    const PoolAxis& z = s.axis[2];
    for (int64_t j = 0; j < s.axis[1].out; ++j, y += z.out, where += z.out) {
        T* to = x + 2 * j * z.in;
        for (int64_t p = 0; p < z.out; p += n) {
            const int64_t count = std::min<int64_t>(n, z.out - p);
            const Mask<T> place = some_places<T>(where + p, count);
            const Vec<T> v = count == n ? load(y + p) : load_first(y + p, count);
            for (int i = 0; i < 2; ++i) {
                Vec<T> low, high;
                zip<T>(select<T>(place == 2 * i, v, Vec<T>{}), select<T>(place == 2 * i + 1, v, Vec<T>{}),
                       low, high, std::make_index_sequence<n>{});
                T* line = to + i * z.in + 2 * p;
                store_first(line, low, std::min<int64_t>(2 * count, n));
                if (2 * count > n) store_first(line + n, high, 2 * count - n);
            }
        }
    }
}

bool in_pairs(const PoolShape& s) {
    const PoolAxis &x = s.axis[0], &y = s.axis[1], &z = s.axis[2];
    auto pair = [](const PoolAxis& a) {
        return a.kernel == 2 && a.stride == 2 && a.dilation == 1 && !a.overhangs();
    };
    return pair(y) && pair(z) && x.kernel == 1 && x.in == 1 && x.out == 1 && x.padding == 0;
}

}  // namespace

template <class T, class P> bool spread(const PoolShape& given, const T* y, const P* where, T* x) {
    const PoolShape s = stacked(given);
    const WindowSteps steps(s);
    const bool pairs = sizeof(P) == 1 && in_pairs(s);
    const bool covered = pairs && s.axis[1].in == 2 * s.axis[1].out && s.axis[2].in == 2 * s.axis[2].out;
    std::atomic<bool> good{true};
    parallel(s.planes, s.grain(), [&](int64_t begin, int64_t end) {
        for (int64_t plane = begin; plane < end; ++plane) {
            T* to = x + plane * s.in_size();
            const T* from = y + plane * s.out_size();
            const P* places = where + plane * s.out_size();
            if (!covered) std::fill(to, to + s.in_size(), T(0));
            if constexpr (sizeof(P) == 1)
                if (pairs) {
                    spread_pairs(s, from, places, to);
                    continue;
                }
            if (!each_place(s, steps, places, [=](int64_t out, int64_t in) {
                    if (in >= 0) to[in] += from[out];
                }))
                good = false;
        }
    });
    return good;
}

template <class T, class P> bool collect(const PoolShape& given, const T* x, const P* where, T* y) {
    const PoolShape s = stacked(given);
    const WindowSteps steps(s);
    std::atomic<bool> good{true};
    parallel(s.planes, s.grain(), [&](int64_t begin, int64_t end) {
        for (int64_t plane = begin; plane < end; ++plane) {
            const T* from = x + plane * s.in_size();
            T* to = y + plane * s.out_size();
            if (!each_place(s, steps, where + plane * s.out_size(),
                            [=](int64_t out, int64_t in) { to[out] = in >= 0 ? from[in] : T(0); }))
                good = false;
        }
    });
    return good;
}

template <class P> bool flat_places(const PoolShape& s, int64_t channels, const P* where, int64_t* to) {
    const PoolAxis &x = s.axis[0], &y = s.axis[1], &z = s.axis[2];
    const WindowSteps steps(s);
    auto inside = [](int64_t i, int64_t n) { return std::clamp<int64_t>(i, 0, n - 1); };
    std::atomic<bool> good{true};
    parallel(s.planes / channels, 1 + (s.grain() - 1) / channels, [&](int64_t begin, int64_t end) {
        const P* from = where + begin * s.out_size() * channels;
        int64_t* next = to + begin * s.out_size() * channels;
        for (int64_t line = begin * x.out * y.out; line < end * x.out * y.out; ++line) {
            const int64_t in_x = x.start(line / y.out % x.out), in_y = y.start(line % y.out);
            const int64_t first = (in_x * y.in + in_y) * z.in;
            for (int64_t l = 0; l < z.out; ++l) {
                const int64_t in_z = z.start(l);
                for (int64_t c = 0; c < channels; ++c) {
                    const size_t k = *from++;
                    if (k >= steps.flat.size()) {
                        good = false;
                        return;
                    }
                    *next++ = !steps.checks ? first + in_z + steps.flat[k]
                                            : (inside(in_x + steps.x[k], x.in) * y.in + inside(in_y + steps.y[k], y.in)) * z.in +
                                                  inside(in_z + steps.z[k], z.in);
                }
            }
        }
    });
    return good;
}

#define FW_OF(T, P)                                                        \
    template bool spread(const PoolShape&, const T*, const P*, T*);        \
    template bool collect(const PoolShape&, const T*, const P*, T*);
FW_OF(float, uint8_t)
FW_OF(float, int32_t)
FW_OF(double, uint8_t)
FW_OF(double, int32_t)
#undef FW_OF
template bool flat_places(const PoolShape&, int64_t, const uint8_t*, int64_t*);
template bool flat_places(const PoolShape&, int64_t, const int32_t*, int64_t*);

}  // namespace fw::windows
