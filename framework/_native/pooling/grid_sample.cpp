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

// The four neighbours along one dimension: -1 where there is none, what they count for, and how that changes.
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
    const T at = s.align ? (given + 1) * half : ((given + 1) * T(size) - 1) * T(0.5);
    T slope;
    const T low = std::floor(at), t = at - low;
    const T weight[4] = {far(t + 1), near(t), near(1 - t), far(2 - t)};
    const T turn[4] = {far_slope(t + 1), near_slope(t), -near_slope(1 - t), -far_slope(2 - t)};
    for (int k = 0; k < 4; ++k) place(line, k, std::rint(fold(s, size, low - 1 + T(k), slope)), size, weight[k], turn[k] * half);
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

    // The coordinates of up to BLOCK places by dimension, the image's from -1 to 1 being 0 to 2; a vector is filled up by the last.
    template <int DIMS> static void read(const T* places, int64_t n, T (&given)[DIMS][BLOCK]) {
        for (int64_t i = 0; i < (n + lanes<T> - 1) / lanes<T> * lanes<T>; ++i) {
            const T* place = places + DIMS * std::min(i, n - 1);
            for (int d = 0; d < DIMS; ++d) given[d][i] = place[DIMS - 1 - d] + 1;
        }
    }
    // Where in the image along a dimension; how that changes with what was given.
    static FW_INLINE Vec<T> along(const Shape& s, int d, Vec<T> given, Vec<T>& slope) {
        const T size = T(s.size[d]), half = (s.align ? size - 1 : size) / 2;
        const Vec<T> at = fold<T>(s, s.size[d], s.align ? given * half : (given * size - T(1)) * T(0.5), slope);
        slope *= half;
        return at;
    }

    // The usual case by vectors: two neighbours along each dimension.
    template <int DIMS> void find_linear(const Shape& s, const T* places, int64_t n, bool slopes) {
        using I = Int<T>;
        T given[DIMS][BLOCK];
        read(places, n, given);
        const Mask<T> one = splat<I>(1), no = splat<I>(-1), zero{};
        I step[DIMS];
        step[DIMS - 1] = 1;
        for (int d = DIMS - 1; d > 0; --d) step[d - 1] = step[d] * I(s.size[d]);
        Mask<T> every = no;
        for (int64_t i = 0; i < n; i += lanes<T>) {
            Vec<T> part[DIMS][2], turn[DIMS][2];
            Mask<T> in[DIMS][2], to{};
            for (int d = 0; d < DIMS; ++d) {
                const Mask<T> size = splat<I>(I(s.size[d]));
                Vec<T> slope;
                const Vec<T> at = along(s, d, load(given[d] + i), slope), low = math::floor<Vec<T>>(at);
                const Mask<T> c = counted(low, s.size[d]);
                part[d][1] = at - low, part[d][0] = T(1) - part[d][1];
                turn[d][0] = -slope, turn[d][1] = slope;
                in[d][0] = (c >= zero) & (c < size), in[d][1] = (c >= no) & (c + one < size);
                to = to * size + c;
                every &= in[d][0] & in[d][1];
            }
#pragma GCC unroll 8
            for (int k = 0; k < 1 << DIMS; ++k) {
                const auto side = [k](int d) { return k >> (DIMS - 1 - d) & 1; };
                Mask<T> inside = in[0][side(0)];
                Vec<T> w = part[0][side(0)];
                I offset = side(0) ? step[0] : 0;
                for (int d = 1; d < DIMS; ++d)
                    inside &= in[d][side(d)], w = w * part[d][side(d)], offset += side(d) ? step[d] : 0;
                store<I>(this->at[k] + i, select<I>(inside, to + splat<I>(offset), no));
                store<T>(weight[k] + i, select<T>(inside, w, Vec<T>{}));
                for (int e = 0; slopes && e < DIMS; ++e) {
                    Vec<T> by = (e == 0 ? turn : part)[0][side(0)];
                    for (int d = 1; d < DIMS; ++d) by = by * (e == d ? turn : part)[d][side(d)];
                    store<T>(slope[e][k] + i, select<T>(inside, by, Vec<T>{}));
                }
            }
        }
        whole = !math::any(every == zero);
    }

    template <int DIMS> void find_nearest(const Shape& s, const T* places, int64_t n, bool slopes) {
        using I = Int<T>;
        T given[DIMS][BLOCK];
        read(places, n, given);
        const Mask<T> no = splat<I>(-1), zero{};
        Mask<T> every = no;
        for (int64_t i = 0; i < n; i += lanes<T>) {
            Mask<T> inside = no, to{};
            for (int d = 0; d < DIMS; ++d) {
                const Mask<T> size = splat<I>(I(s.size[d]));
                Vec<T> none;
                const Mask<T> c = counted(math::rint<Vec<T>>(along(s, d, load(given[d] + i), none)), s.size[d]);
                inside &= (c >= zero) & (c < size);
                to = to * size + c;
            }
            every &= inside;
            store<I>(at[0] + i, select<I>(inside, to, no));
            store<T>(weight[0] + i, select<T>(inside, splat(T(1)), Vec<T>{}));
            for (int e = 0; slopes && e < DIMS; ++e) store<T>(slope[e][0] + i, Vec<T>{});
        }
        whole = !math::any(every == zero);
    }

    void find(const Shape& s, const T* places, int64_t n, bool slopes) {
        if (s.mode == Mode::linear) return s.dims == 2 ? find_linear<2>(s, places, n, slopes) : find_linear<3>(s, places, n, slopes);
        if (s.mode == Mode::nearest) return s.dims == 2 ? find_nearest<2>(s, places, n, slopes) : find_nearest<3>(s, places, n, slopes);
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

// Of places [j, j + n) of the block.
template <class T> void read_plane(const GridTaps<T>& t, int taps, const T* x, T* y, int64_t j, int64_t n) {
    T sum[BLOCK];
    for (int k = 0; k < taps; ++k) {
        const Int<T>* at = t.at[k] + j;
        const T* w = t.weight[k] + j;
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

// The same, place by place: few of an image.
template <class T> void read_few(const GridTaps<T>& t, int taps, const T* x, T* y, int64_t j, int64_t n) {
    for (int64_t i = 0; i < n; ++i) {
        T sum = t.whole ? t.weight[0][j + i] * x[t.at[0][j + i]] : T(0);
        for (int k = t.whole; k < taps; ++k) {
            const Int<T> at = t.at[k][j + i];
            const T v = x[std::max<Int<T>>(at, 0)];
            sum += at < 0 ? T(0) : t.weight[k][j + i] * v;
        }
        y[i] = sum;
    }
}

// Calls f(image, i, j, m): places [j, j + m) of a block that begins at place `first` of all images are [i, i + m) of that image.
template <class F> FW_INLINE void each_image(const Shape& s, int64_t first, int64_t n, F&& f) {
    int64_t image = first / s.count, i = first % s.count;
    for (int64_t j = 0, m; j < n; j += m, i = 0, ++image) {
        m = std::min(n - j, s.count - i);
        f(image, i, j, m);
    }
}

// The places of all images, which lie one after another, in whole blocks but for the last: f(begin, end).
template <class F> void each_block(const Shape& s, int64_t work, F&& f) {
    const int64_t all = s.n * s.count;
    parallel((all + BLOCK - 1) / BLOCK, std::max<int64_t>(1, work / (BLOCK * s.channels)), [&](int64_t begin, int64_t end) {
        f(begin * BLOCK, std::min(end * BLOCK, all));
    });
}

}  // namespace

template <class T> void Sampling<T>::read(const Shape& s, const T* x, const T* grid, T* y) {
    constexpr int64_t FEW = 8;
    const int taps = s.taps();
    each_block(s, 4096, [&](int64_t begin, int64_t end) {
        GridTaps<T> t;
        for (int64_t first = begin; first < end; first += BLOCK) {
            const int64_t n = std::min(BLOCK, end - first);
            t.find(s, grid + first * s.dims, n, false);
            each_image(s, first, n, [&](int64_t image, int64_t i, int64_t j, int64_t m) {
                const auto one = m < FEW ? read_few<T> : read_plane<T>;
                for (int64_t c = image * s.channels; c < (image + 1) * s.channels; ++c)
                    one(t, taps, x + c * s.plane, y + c * s.count + i, j, m);
            });
        }
    });
}

// To the image: planes are written by one thread each.
template <class T> void Sampling<T>::spread(const Shape& s, const T* g, const T* grid, T* gx) {
    const int64_t groups = (s.channels + CHANNELS - 1) / CHANNELS;
    const int taps = s.taps();
    const auto planes = [&](int64_t image, int64_t images, int64_t from_channel, int64_t to_channel) {
        GridTaps<T> t;
        for (int64_t p = image; p < image + images; ++p)
            std::fill(gx + (p * s.channels + from_channel) * s.plane, gx + (p * s.channels + to_channel) * s.plane, T(0));
        for (int64_t first = image * s.count, end = first + images * s.count; first < end; first += BLOCK) {
            const int64_t n = std::min(BLOCK, end - first);
            t.find(s, grid + first * s.dims, n, false);
            each_image(s, first, n, [&](int64_t in, int64_t i, int64_t j, int64_t m) {
                for (int64_t c = in * s.channels + from_channel; c < in * s.channels + to_channel; ++c) {
                    const T* from = g + c * s.count + i;
                    T* to = gx + c * s.plane;
                    for (int64_t q = 0; q < m; ++q)
                        for (int k = 0; k < taps; ++k)
                            if (t.at[k][j + q] >= 0) to[t.at[k][j + q]] += t.weight[k][j + q] * from[q];
                }
            });
        }
    };
    if (groups == 1)
        return parallel(s.n, std::max<int64_t>(1, BLOCK / s.count), [&](int64_t begin, int64_t end) {
            planes(begin, end - begin, 0, s.channels);
        });
    parallel(s.n * groups, 1, [&](int64_t begin, int64_t end) {
        for (int64_t p = begin; p < end; ++p)
            planes(p / groups, 1, p % groups * CHANNELS, std::min(p % groups * CHANNELS + CHANNELS, s.channels));
    });
}

// To the places: a sum over channels for each neighbour, then over neighbours.
template <class T> void Sampling<T>::turn(const Shape& s, const T* g, const T* x, const T* grid, T* out) {
    const int taps = s.taps();
    each_block(s, 2048, [&](int64_t begin, int64_t end) {
        GridTaps<T> t;
        for (int64_t first = begin; first < end; first += BLOCK) {
            const int64_t n = std::min(BLOCK, end - first);
            t.find(s, grid + first * s.dims, n, true);
            T sum[MOST_DIMS][BLOCK] = {};
            for (int k = 0; k < taps; ++k) {
                T dot[BLOCK] = {};
                each_image(s, first, n, [&](int64_t image, int64_t i, int64_t j, int64_t m) {
                    for (int64_t c = image * s.channels; c < (image + 1) * s.channels; ++c) {
                        const T *from = x + c * s.plane, *v = g + c * s.count + i;
                        for (int64_t q = 0; q < m; ++q)
                            if (t.at[k][j + q] >= 0) dot[j + q] += from[t.at[k][j + q]] * v[q];
                    }
                });
                for (int e = 0; e < s.dims; ++e)
                    for (int64_t j = 0; j < n; ++j) sum[e][j] += dot[j] * t.slope[e][k][j];
            }
            T* to = out + first * s.dims;
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
