#include "conv/conv_depthwise.h"

#include "conv/conv_edges.h"
#include "gemm/gemm_kernel.h"
#include "base/pool.h"

namespace fw::windows {
namespace {

constexpr int most_kernel = 7;

// A plane that is read: its sizes, and how far windows begin before it.
struct PlaneSource {
    int64_t high, wide, before_high, before_wide;
};

// What the vectors of a line of windows read: window l of a vector begins at Step * (first + l) - before.
template <int K, int Step> struct WindowColumns {
    Inside read[Step == 1 ? K : K + 1][Step];  // of number k of the windows; of pairs, both halves
    int64_t left;

    WindowColumns(const PlaneSource& s, int64_t first) : left(Step * first - s.before_wide) {
        for (int k = 0; k < (Step == 1 ? K : K + 1); ++k)
            for (int half = 0; half < Step; ++half) {
                const int64_t at = left + k + half * n_lanes;
                read[k][half].set(std::clamp<int64_t>(-at, 0, n_lanes),
                                  std::clamp<int64_t>(s.wide - at, 0, n_lanes));
            }
    }

    // Numbers 0 to K - 1 of the windows from a line.
    FW_INLINE void load(const float* line, V (&v)[K + 1]) const {
        line += left;
        if constexpr (Step == 1) {
#pragma GCC unroll 7
            for (int k = 0; k < K; ++k) v[k] = read[k][0].of(line + k);
        } else {
#pragma GCC unroll 4
            for (int k = 0; k < K; k += 2) {
                const V a = read[k][0].of(line + k), b = read[k][1].of(line + k + n_lanes);
                v[k] = evens<float>(a, b);
                v[k + 1] = odds<float>(a, b);
            }
        }
    }
};

// -- forward --------------------------------------------------------------------------------------

// R lines of the result, from line `first` on: R + K - 1 lines are read once each, if Step is 1.
template <int K, int Step, int R>
FW_INLINE void some_lines(const PlaneSource& s, const WindowColumns<K, Step>& at, const float* from, const V (&w)[K * K],
                          V shift, int64_t first, V (&sum)[R]) {
#pragma GCC unroll 4
    for (int r = 0; r < R; ++r) sum[r] = shift;
    const int64_t top = Step * first - s.before_high;
#pragma GCC unroll 13
    for (int i = 0; i < Step * (R - 1) + K; ++i) {
        const int64_t line = top + i;
        if (line < 0 || line >= s.high) continue;
        V v[K + 1];
        at.load(from + line * s.wide, v);
#pragma GCC unroll 4
        for (int r = 0; r < R; ++r) {
            if (i < Step * r || i >= Step * r + K) continue;
#pragma GCC unroll 7
            for (int k = 0; k < K; ++k) sum[r] = fma<float>(w[(i - Step * r) * K + k], v[k], sum[r]);
        }
    }
}

template <int K, int Step>
void plane(const PlaneSource& s, const float* from, const float* kernel, bool turned, const Epilogue<float>& end,
           int64_t row, float* to, int64_t high, int64_t wide) {
    constexpr int R = K == 3 ? 4 : 2;
    V w[K * K];
    for (int t = 0; t < K * K; ++t) w[t] = splat(kernel[turned ? K * K - 1 - t : t]);
    const V shift = splat(end.start(row));
    for (int64_t column = 0; column < wide; column += n_lanes) {
        const WindowColumns<K, Step> at(s, column);
        const int64_t count = std::min<int64_t>(n_lanes, wide - column);
        int64_t line = 0;
        for (; line + R <= high; line += R) {
            V sum[R];
            some_lines<K, Step, R>(s, at, from, w, shift, line, sum);
            for (int r = 0; r < R; ++r)
                store_first(to + (line + r) * wide + column, end(sum[r], row), count);
        }
        for (; line < high; ++line) {
            V sum[1];
            some_lines<K, Step, 1>(s, at, from, w, shift, line, sum);
            store_first(to + line * wide + column, end(sum[0], row), count);
        }
    }
}

// -- gradient of the input, two windows apart -----------------------------------------------------

// The inputs 2 * q + r of a line, for a vector of q: what they read of a line of y begins at q + first.
template <int K> struct SpreadColumns {
    Inside read[(K + 1) / 2 + 1];
    int64_t low, left;

    SpreadColumns(const PlaneSource& s, int64_t padding, int64_t column) {
        low = -((K - 1 - padding) / 2 + 1);
        left = column + low;
        for (int i = 0; i < (K + 1) / 2 + 1; ++i) read[i].set(inside(-left - i), inside(s.wide - left - i));
    }
    static int64_t inside(int64_t lane) { return std::clamp<int64_t>(lane, 0, n_lanes); }
};

template <int K>
void spread_plane(const PlaneSource& s, const ConvShape& shape, const float* from, const float* kernel, float* to) {
    const ConvAxis &y = shape.axis[1], &x = shape.axis[2];
    for (int64_t column = 0; 2 * column < x.in; column += n_lanes) {
        const SpreadColumns<K> at(s, x.padding, column);
        const int64_t count = std::min<int64_t>(2 * n_lanes, x.in - 2 * column);
        for (int64_t line = 0; line < y.in; ++line) {
            V sum[2] = {};
            for (int64_t i = (line + y.padding) % 2; i < K; i += 2) {
                const int64_t row = (line + y.padding - i) / 2;
                if (line + y.padding < i || row >= s.high) continue;
                const float* values = from + row * s.wide + at.left;
                for (int r = 0; r < 2; ++r) {
                    for (int64_t k = (r + x.padding) % 2; k < K; k += 2) {
                        // (2 q + r + padding - k) / 2 = q + low + place
                        const int64_t place = (r + x.padding - k - 2 * at.low) / 2;
                        sum[r] = fma<float>(splat(kernel[i * K + k]), at.read[place].of(values + place), sum[r]);
                    }
                }
            }
            V low, up;
            zip<float>(sum[0], sum[1], low, up, std::make_index_sequence<n_lanes>{});
            float* out = to + line * x.in + 2 * column;
            store_first(out, low, std::min<int64_t>(count, n_lanes));
            if (count > n_lanes) store_first(out + n_lanes, up, count - n_lanes);
        }
    }
}

// -- gradient of the kernels ----------------------------------------------------------------------

template <int K, int Step>
void add_products(const PlaneSource& s, const float* from, const float* y, int64_t high, int64_t wide,
                  V (&sum)[K * K]) {
    for (int64_t column = 0; column < wide; column += n_lanes) {
        const WindowColumns<K, Step> at(s, column);
        const int64_t count = std::min<int64_t>(n_lanes, wide - column);
        for (int64_t line = 0; line < high; ++line) {
            const V g = load_first(y + line * wide + column, count);
#pragma GCC unroll 7
            for (int i = 0; i < K; ++i) {
                const int64_t row = Step * line - s.before_high + i;
                if (row < 0 || row >= s.high) continue;
                V v[K + 1];
                at.load(from + row * s.wide, v);
#pragma GCC unroll 7
                for (int k = 0; k < K; ++k) sum[i * K + k] = fma<float>(g, v[k], sum[i * K + k]);
            }
        }
    }
}

// body(kernel size, step) with both as constants
template <class F> void by_kernel(const ConvShape& s, F&& body) {
    auto with = [&](auto step) {
        switch (s.axis[1].kernel) {
            case 3: return body(std::integral_constant<int, 3>{}, step);
            case 5: return body(std::integral_constant<int, 5>{}, step);
            default: return body(std::integral_constant<int, 7>{}, step);
        }
    };
    s.axis[1].stride == 1 ? with(std::integral_constant<int, 1>{}) : with(std::integral_constant<int, 2>{});
}

// body(plane) for every channel of every image
template <class F> void each_plane(const ConvShape& s, F&& body) {
    const int64_t work = 1 + (s.in_pixels() + s.pixels() * s.taps()) / 4;
    parallel(s.n * s.channels, 1 + (1 << 14) / work, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) body(i);
    });
}

PlaneSource input_of(const ConvShape& s) {
    return {s.axis[1].in, s.axis[2].in, s.axis[1].padding, s.axis[2].padding};
}

}  // namespace

bool depthwise_suits(const ConvShape& s) {
#if !defined(FW_AVX512) && !defined(FW_AVX2)
    return false;  // loads under masks are slow
#endif
    const ConvAxis &depth = s.axis[0], &y = s.axis[1], &x = s.axis[2];
    if (s.groups != s.channels || s.rows != s.channels || depth.in != 1 || depth.kernel != 1 ||
        depth.padding != 0)
        return false;
    const bool fits = y.kernel == x.kernel && y.stride == x.stride && y.dilation == 1 && x.dilation == 1;
    return fits && y.kernel % 2 == 1 && y.kernel > 1 && y.kernel <= most_kernel && y.stride <= 2 &&
           y.padding < y.kernel && x.padding < x.kernel;
}

void depthwise(const ConvShape& s, const float* x, const float* w, const Epilogue<float>& end, float* y) {
    by_kernel(s, [&](auto kernel, auto step) {
        each_plane(s, [&](int64_t i) {
            const int64_t c = i % s.channels;
            plane<kernel.value, step.value>(input_of(s), x + i * s.in_pixels(), w + c * s.taps(), false, end, c,
                                            y + i * s.pixels(), s.axis[1].out, s.axis[2].out);
        });
    });
}

void depthwise_input(const ConvShape& s, const float* y, const float* w, float* x) {
    const ConvAxis &h = s.axis[1], &v = s.axis[2];
    by_kernel(s, [&](auto kernel, auto step) {
        constexpr int K = kernel.value;
        const PlaneSource source{h.out, v.out, K - 1 - h.padding, K - 1 - v.padding};
        each_plane(s, [&](int64_t i) {
            const float *from = y + i * s.pixels(), *weights = w + i % s.channels * s.taps();
            float* to = x + i * s.in_pixels();
            if constexpr (step.value == 1) plane<K, 1>(source, from, weights, true, {}, 0, to, h.in, v.in);
            else spread_plane<K>(source, s, from, weights, to);
        });
    });
}

void depthwise_weights(const ConvShape& s, const float* x, const float* y, float* w) {
    by_kernel(s, [&](auto kernel, auto step) {
        constexpr int K = kernel.value;
        const int64_t work = 1 + s.n * s.pixels() * s.taps() / 4;
        parallel(s.channels, 1 + (1 << 14) / work, [&](int64_t begin, int64_t end) {
            for (int64_t c = begin; c < end; ++c) {
                float total[K * K] = {};
                for (int64_t n = 0; n < s.n; ++n) {
                    V sum[K * K] = {};
                    const int64_t i = n * s.channels + c;
                    add_products<K, step.value>(input_of(s), x + i * s.in_pixels(), y + i * s.pixels(),
                                                s.axis[1].out, s.axis[2].out, sum);
                    for (int t = 0; t < K * K; ++t) total[t] += sum_lanes<float>(sum[t]);
                }
                std::copy(total, total + K * K, w + c * K * K);
            }
        });
    });
}

}  // namespace fw::windows
