#include "pooling/grid_sample.h"

#include <algorithm>
#include <cmath>

#include "base/pool.h"
#include "base/vecmath.h"

namespace fw::sampling {
namespace {

constexpr int64_t BLOCK = 64;  // places whose neighbours are found together
constexpr int MOST_TAPS = 16;
constexpr int64_t CHANNELS = 8;  // that share the neighbours on the way back

// The neighbours along one dimension: -1 where there is none, what they count for, and how that changes.
template <class T> struct Neighbours {
    int64_t at[4];
    T weight[4], slope[4];
};

// The coordinate folded back into the image, and its slope there.
template <class T> T fold(const Shape& s, int64_t size, T x, T& slope) {
    slope = 1;
    if (s.padding == Padding::zeros) return x;
    if (s.padding == Padding::reflection) {
        const T low = s.align ? T(0) : T(-0.5), span = s.align ? T(size - 1) : T(size);
        if (!(span > 0)) return slope = 0, T(0);
        const T away = std::fabs(x - low), turns = std::floor(away / span), inside = away - turns * span;
        const bool odd = std::fmod(turns, T(2)) == 1;
        slope = (odd ? T(-1) : T(1)) * (x < low ? T(-1) : T(1));
        x = (odd ? span - inside : inside) + low;
    }
    if (x <= 0 || x >= T(size - 1)) slope = 0;
    return x < 0 ? T(0) : x > T(size - 1) ? T(size - 1) : x;  // nan stays
}

template <class T> void place(Neighbours<T>& line, int k, T at, int64_t size, T weight, T slope) {
    const bool inside = at >= 0 && at <= T(size - 1);
    line.at[k] = inside ? std::min(int64_t(at), size - 1) : -1;
    line.weight[k] = inside ? weight : T(0);
    line.slope[k] = inside ? slope : T(0);
}

template <class T> T near(T s) { return ((T(1.25) * s - T(2.25)) * s) * s + 1; }
template <class T> T near_slope(T s) { return (T(3.75) * s - T(4.5)) * s; }
template <class T> T far(T s) { return ((T(-0.75) * s + T(3.75)) * s - T(6)) * s + T(3); }
template <class T> T far_slope(T s) { return (T(-2.25) * s + T(7.5)) * s - T(6); }

template <class T> void neighbours(const Shape& s, int64_t size, T given, Neighbours<T>& line) {
    const T half = s.align ? T(size - 1) / 2 : T(size) / 2;
    T at = s.align ? (given + 1) * half : ((given + 1) * T(size) - 1) * T(0.5), slope;
    if (s.mode == Mode::cubic) {
        const T low = std::floor(at), t = at - low;
        const T weight[4] = {far(t + 1), near(t), near(1 - t), far(2 - t)};
        const T turn[4] = {far_slope(t + 1), near_slope(t), -near_slope(1 - t), -far_slope(2 - t)};
        for (int k = 0; k < 4; ++k)
            place(line, k, std::rint(fold(s, size, low - 1 + T(k), slope)), size, weight[k], turn[k] * half);
        return;
    }
    at = fold(s, size, at, slope);
    if (s.mode == Mode::nearest) return place(line, 0, std::rint(at), size, T(1), T(0));
    const T low = std::floor(at), part = at - low;
    place(line, 0, low, size, 1 - part, -slope * half);
    place(line, 1, low + 1, size, part, slope * half);
}

// The same of a vector of coordinates.
template <class T> FW_INLINE Vec<T> fold(const Shape& s, int64_t size, Vec<T> x, Vec<T>& slope) {
    const Vec<T> none{}, one = splat(T(1)), top = splat(T(size - 1));
    slope = one;
    if (s.padding == Padding::zeros) return x;
    if (s.padding == Padding::reflection) {
        const Vec<T> low = splat(s.align ? T(0) : T(-0.5)), span = splat(s.align ? T(size - 1) : T(size));
        if (s.align && size == 1) return slope = none, none;
        const Vec<T> away = abs<T>(x - low), turns = math::floor<Vec<T>>(away / span), inside = away - turns * span;
        const Mask<T> odd = turns - math::floor<Vec<T>>(turns * T(0.5)) * T(2) == one;
        slope = select<T>(odd, -one, one) * select<T>(x < low, -one, one);
        x = select<T>(odd, span - inside, inside) + low;
    }
    slope = select<T>((x <= none) | (x >= top), none, slope);
    return select<T>(x < none, none, select<T>(x > top, top, x));  // nan stays
}

// The neighbours of up to BLOCK places: where in a plane (-1: nowhere), what they count for, and by dimension how that
// changes with the place.
template <class T> struct GridTaps {
    Int<T> at[MOST_TAPS][BLOCK];
    T weight[MOST_TAPS][BLOCK], slope[MOST_DIMS][MOST_TAPS][BLOCK];
    bool whole;  // none is missing

    // A whole number from -2 to its size; nan is -2.
    static FW_INLINE Mask<T> counted(Vec<T> x, int64_t size) {
        const Vec<T> low = splat(T(-2)), high = splat(T(size));
        return __builtin_convertvector(select<T>(x >= low, select<T>(x <= high, x, high), low), Mask<T>);
    }

    // The usual case, four neighbours in a plane, by vectors.
    void find_four(const Shape& s, const T* places, int64_t n, bool slopes) {
        using I = Int<T>;
        const int64_t height = s.size[0], width = s.size[1];
        const T h = T(height), w = T(width), high = (s.align ? h - 1 : h) / 2, wide = (s.align ? w - 1 : w) / 2;
        T across[BLOCK], along[BLOCK];
        for (int64_t i = 0; i < BLOCK; ++i) {  // those that are not there are the last one
            const T* place = places + 2 * std::min(i, n - 1);
            across[i] = place[0] + 1, along[i] = place[1] + 1;
        }
        const Mask<T> rows = splat<I>(I(height)), cols = splat<I>(I(width)), one = splat<I>(1), no = splat<I>(-1), zero{};
        Mask<T> every = no;
        for (int64_t i = 0; i < n; i += lanes<T>) {
            const Vec<T> gx = load(across + i), gy = load(along + i);
            Vec<T> sx, sy;
            const Vec<T> x = fold<T>(s, width, s.align ? gx * wide : (gx * w - T(1)) * T(0.5), sx);
            const Vec<T> y = fold<T>(s, height, s.align ? gy * high : (gy * h - T(1)) * T(0.5), sy);
            const Vec<T> x0 = math::floor<Vec<T>>(x), y0 = math::floor<Vec<T>>(y);
            const Vec<T> right = x - x0, down = y - y0, left = T(1) - right, up = T(1) - down;
            const Mask<T> c = counted(x0, width), r = counted(y0, height), to = r * cols + c;
            const Mask<T> l = (c >= zero) & (c < cols), t = (r >= zero) & (r < rows);
            const Mask<T> m = (c >= no) & (c + one < cols), b = (r >= no) & (r + one < rows);
            const Mask<T> in[4] = {t & l, t & m, b & l, b & m}, where[4] = {to, to + one, to + cols, to + cols + one};
            const Vec<T> weights[4] = {up * left, up * right, down * left, down * right};
            every &= in[0] & in[3];
            for (int k = 0; k < 4; ++k) {
                store<I>(at[k] + i, select<I>(in[k], where[k], no));
                store<T>(weight[k] + i, select<T>(in[k], weights[k], Vec<T>{}));
            }
            if (!slopes) continue;
            sx *= wide, sy *= high;
            const Vec<T> by_y[4] = {-left * sy, -right * sy, left * sy, right * sy};
            const Vec<T> by_x[4] = {-up * sx, up * sx, -down * sx, down * sx};
            for (int k = 0; k < 4; ++k) {
                store<T>(slope[0][k] + i, select<T>(in[k], by_y[k], Vec<T>{}));
                store<T>(slope[1][k] + i, select<T>(in[k], by_x[k], Vec<T>{}));
            }
        }
        whole = !math::any(every == zero);
    }

    void find(const Shape& s, const T* places, int64_t n, bool slopes) {
        if (s.dims == 2 && s.mode == Mode::linear) return find_four(s, places, n, slopes);
        whole = true;
        const int along = s.along(), taps = s.taps();
        for (int64_t i = 0; i < n; ++i) {
            Neighbours<T> line[MOST_DIMS];
            for (int d = 0; d < s.dims; ++d)
                neighbours(s, s.size[d], places[i * s.dims + (s.dims - 1 - d)], line[d]);
            for (int k = 0; k < taps; ++k) {
                int64_t to = 0;
                T w = 1, turn[MOST_DIMS] = {1, 1, 1};
                for (int d = 0, rest = taps / along, of = k; d < s.dims; ++d) {
                    const int j = of / rest;
                    of %= rest;
                    rest = std::max(rest / along, 1);
                    to = to < 0 || line[d].at[j] < 0 ? -1 : to * s.size[d] + line[d].at[j];
                    w *= line[d].weight[j];
                    for (int e = 0; e < s.dims; ++e) turn[e] *= e == d ? line[d].slope[j] : line[d].weight[j];
                }
                at[k][i] = Int<T>(to);
                weight[k][i] = w;
                whole &= to >= 0;
                if (slopes)
                    for (int e = 0; e < s.dims; ++e) slope[e][k][i] = to < 0 ? T(0) : turn[e];
            }
        }
    }
};

template <class T> void read_plane(const GridTaps<T>& t, int taps, const T* x, T* y, int64_t n) {
    T sum[BLOCK];
    for (int k = 0; k < taps; ++k) {
        const Int<T>* at = t.at[k];
        const T* w = t.weight[k];
        if (!t.whole) {
            if (!k) std::fill(sum, sum + n, T(0));
            for (int64_t i = 0; i < n; ++i) {
                const T v = x[std::max<Int<T>>(at[i], 0)];
                sum[i] += at[i] < 0 ? T(0) : w[i] * v;
            }
        } else if (k) {
            for (int64_t i = 0; i < n; ++i) sum[i] += w[i] * x[at[i]];
        } else {
            for (int64_t i = 0; i < n; ++i) sum[i] = w[i] * x[at[i]];
        }
    }
    std::copy(sum, sum + n, y);
}

}  // namespace

template <class T> void Sampling<T>::read(const Shape& s, const T* x, const T* grid, T* y) {
    const int64_t blocks = (s.count + BLOCK - 1) / BLOCK;
    const int taps = s.taps();
    parallel(s.n * blocks, std::max<int64_t>(1, 4096 / (BLOCK * s.channels)), [&](int64_t begin, int64_t end) {
        GridTaps<T> t;
        for (int64_t b = begin; b < end; ++b) {
            const int64_t image = b / blocks, i = b % blocks * BLOCK, n = std::min(BLOCK, s.count - i);
            t.find(s, grid + (image * s.count + i) * s.dims, n, false);
            for (int64_t c = image * s.channels; c < (image + 1) * s.channels; ++c)
                read_plane(t, taps, x + c * s.plane, y + c * s.count + i, n);
        }
    });
}

// To the image: planes are written by one thread each.
template <class T> void Sampling<T>::spread(const Shape& s, const T* g, const T* grid, T* gx) {
    const int64_t groups = (s.channels + CHANNELS - 1) / CHANNELS;
    const int taps = s.taps();
    parallel(s.n * groups, 1, [&](int64_t begin, int64_t end) {
        GridTaps<T> t;
        for (int64_t p = begin; p < end; ++p) {
            const int64_t image = p / groups, first = p % groups * CHANNELS;
            const int64_t last = std::min(first + CHANNELS, s.channels);
            T* to = gx + image * s.channels * s.plane;
            const T* from = g + image * s.channels * s.count;
            std::fill(to + first * s.plane, to + last * s.plane, T(0));
            for (int64_t i = 0; i < s.count; i += BLOCK) {
                const int64_t n = std::min(BLOCK, s.count - i);
                t.find(s, grid + (image * s.count + i) * s.dims, n, false);
                for (int64_t c = first; c < last; ++c)
                    for (int64_t j = 0; j < n; ++j) {
                        const T v = from[c * s.count + i + j];
                        for (int k = 0; k < taps; ++k)
                            if (t.at[k][j] >= 0) to[c * s.plane + t.at[k][j]] += t.weight[k][j] * v;
                    }
            }
        }
    });
}

// To the places: a sum over channels for each neighbour, then over neighbours.
template <class T> void Sampling<T>::turn(const Shape& s, const T* g, const T* x, const T* grid, T* out) {
    const int64_t blocks = (s.count + BLOCK - 1) / BLOCK;
    const int taps = s.taps();
    parallel(s.n * blocks, std::max<int64_t>(1, 2048 / (BLOCK * s.channels)), [&](int64_t begin, int64_t end) {
        GridTaps<T> t;
        for (int64_t b = begin; b < end; ++b) {
            const int64_t image = b / blocks, i = b % blocks * BLOCK, n = std::min(BLOCK, s.count - i);
            t.find(s, grid + (image * s.count + i) * s.dims, n, true);
            T sum[MOST_DIMS][BLOCK] = {};
            for (int k = 0; k < taps; ++k) {
                T dot[BLOCK] = {};
                for (int64_t c = image * s.channels; c < (image + 1) * s.channels; ++c) {
                    const T *from = x + c * s.plane, *v = g + c * s.count + i;
                    for (int64_t j = 0; j < n; ++j)
                        if (t.at[k][j] >= 0) dot[j] += from[t.at[k][j]] * v[j];
                }
                for (int e = 0; e < s.dims; ++e)
                    for (int64_t j = 0; j < n; ++j) sum[e][j] += dot[j] * t.slope[e][k][j];
            }
            T* to = out + (image * s.count + i) * s.dims;
            for (int64_t j = 0; j < n; ++j)
                for (int e = 0; e < s.dims; ++e) to[j * s.dims + (s.dims - 1 - e)] = sum[e][j];
        }
    });
}

template struct Sampling<float>;
template struct Sampling<double>;

bool Shape::read(int ndim, const int64_t* x, const int64_t* grid, const std::string& mode_name,
                 const std::string& padding_name, bool align_corners) {
    if ((ndim != 4 && ndim != 5) || !countable(x, ndim) || !countable(grid, ndim)) return false;
    dims = ndim - 2, n = x[0], channels = x[1], align = align_corners;
    if (grid[0] != n || grid[ndim - 1] != dims || n < 1 || channels < 1) return false;
    for (int k = 0; k < dims; ++k) {
        if (x[k + 2] < 1 || grid[k + 1] < 1) return false;
        plane *= size[k] = x[k + 2];
        count *= grid[k + 1];
    }
    if (plane > MOST_PLANE) return false;
    if (mode_name == "bilinear") mode = Mode::linear;
    else if (mode_name == "nearest") mode = Mode::nearest;
    else if (mode_name == "bicubic" && ndim == 4) mode = Mode::cubic;
    else return false;
    if (padding_name == "zeros") padding = Padding::zeros;
    else if (padding_name == "border") padding = Padding::border;
    else if (padding_name == "reflection") padding = Padding::reflection;
    else return false;
    return true;
}

}  // namespace fw::sampling
