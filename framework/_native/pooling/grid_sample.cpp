#include "pooling/grid_sample.h"

#include <algorithm>
#include <cmath>

#include "base/pool.h"
#include "base/shuffles.h"
#include "base/vecmath.h"

namespace fw::sampling {
namespace {

constexpr int64_t BLOCK = 64;  // places whose neighbours are found together
constexpr int MOST_TAPS = 16, MOST_ROWS = 4;
constexpr int64_t FEW = 8;  // places of an image for which vectors do not pay
constexpr int64_t CHANNELS = 8;  // that share the neighbours on the way back

// Coordinates folded back into the image, and the slope there.
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

// A whole number from -2 to the size; nan is -2.
template <class T> FW_INLINE Mask<T> counted(Vec<T> x, int64_t size) {
    const Vec<T> low = splat(T(-2)), high = splat(T(size));
    return __builtin_convertvector(select<T>(x >= low, select<T>(x <= high, x, high), low), Mask<T>);
}

template <class V> FW_INLINE V near(V s) { return ((1.25f * s - 2.25f) * s) * s + 1.0f; }
template <class V> FW_INLINE V near_slope(V s) { return (3.75f * s - 4.5f) * s; }
template <class V> FW_INLINE V far(V s) { return ((-0.75f * s + 3.75f) * s - 6.0f) * s + 3.0f; }
template <class V> FW_INLINE V far_slope(V s) { return (-2.25f * s + 7.5f) * s - 6.0f; }

// The K neighbours along one dimension: where each is, whether it is inside the image, what it counts for, and how that changes.
// Where they are, in their order, among K pixels side by side inside the image, of which `first` is the first one, what is known is
// by pixel; so it is unless folding makes two of them one, or turns them. `apart` says where it does: then it is by neighbour.
template <class T, int K> struct Window {
    Mask<T> first, at[K], in[K];  // at: 0 or the window's first one of what is not inside
    Vec<T> part[K], turn[K];
    bool apart = false;

    Window() = default;
    FW_INLINE Window(const Shape& s, int d, Vec<T> given, bool slopes) {
        const int64_t size = s.size[d];
        const T half = (s.align ? T(size) - 1 : T(size)) / 2;
        const Vec<T> pixel = s.align ? given * half : (given * T(size) - T(1)) * T(0.5);
        Mask<T> place[K];
        Vec<T> weight[K], change[K], slope;
        if constexpr (K == 1) {
            place[0] = counted<T>(math::rint<Vec<T>>(fold<T>(s, size, pixel, slope)), size);
            weight[0] = splat(T(1)), change[0] = Vec<T>{};
        } else if constexpr (K == 2) {
            const Vec<T> inside = fold<T>(s, size, pixel, slope), low = math::floor<Vec<T>>(inside);
            place[0] = counted<T>(low, size), place[1] = place[0] + splat<Int<T>>(1);
            weight[1] = inside - low, weight[0] = T(1) - weight[1];
            change[1] = slope * half, change[0] = -change[1];
        } else {
            const Vec<T> low = math::floor<Vec<T>>(pixel), t = pixel - low, u = T(1) - t;
            for (int k = 0; k < K; ++k)
                place[k] = counted<T>(math::rint<Vec<T>>(fold<T>(s, size, low + T(k - 1), slope)), size);
            weight[0] = far(t + T(1)), weight[1] = near(t), weight[2] = near(u), weight[3] = far(u + T(1));
            change[0] = far_slope(t + T(1)) * half, change[1] = near_slope(t) * half;
            change[2] = -near_slope(u) * half, change[3] = -far_slope(u + T(1)) * half;
        }
        const Mask<T> none{}, end = splat<Int<T>>(Int<T>(size));
        first = splat<Int<T>>(Int<T>(std::max<int64_t>(size - K, 0)));
        for (int k = 0; k < K; ++k) {
            place[k] = select<Int<T>>((place[k] >= none) & (place[k] < end), place[k], splat<Int<T>>(-1));
            first = select<Int<T>>((place[k] >= none) & (place[k] < first), place[k], first);
        }
        if constexpr (K == 4) {
            Mask<T> turned{};
            for (int k = 1; k < K; ++k)
                for (int j = 0; j < k; ++j) turned |= (place[j] >= place[k]) & (place[k] >= none);
            apart = math::any(turned);
        }
        for (int j = 0; j < K; ++j) {
            in[j] = apart ? place[j] >= none : none, part[j] = apart ? weight[j] : Vec<T>{}, turn[j] = apart ? change[j] : Vec<T>{};
            for (int k = 0; k < K && !apart; ++k) {
                const Mask<T> here = place[k] == first + splat<Int<T>>(Int<T>(j));
                in[j] |= here;
                part[j] += select<T>(here, weight[k], Vec<T>{});
                if (slopes) turn[j] += select<T>(here, change[k], Vec<T>{});
            }
            at[j] = apart ? place[j] & in[j] : first + (in[j] & splat<Int<T>>(Int<T>(j)));
        }
    }
};

// The neighbours of up to BLOCK places: where in a plane (-1: nowhere), what they count for, and by dimension how that
// changes with the place. Room for one more vector, so that one may begin at any place.
template <class T> struct GridTaps {
    static constexpr int64_t ROOM = BLOCK + lanes<T>;
    Int<T> at[MOST_TAPS][ROOM], start[MOST_ROWS][ROOM];  // start: of each row of neighbours
    T weight[MOST_TAPS][ROOM], slope[MOST_DIMS][MOST_TAPS][ROOM];
    bool whole;  // none is missing
    bool side_by_side;  // whether rows of neighbours begin at `start`

    // The coordinates of up to BLOCK places by dimension, the image's from -1 to 1 being 0 to 2; a vector is filled up by the last.
    template <int DIMS> static void read(const T* places, int64_t n, T (&given)[DIMS][BLOCK]) {
        int64_t i = 0;
        if constexpr (DIMS == 2)
            for (; i + lanes<T> <= n; i += lanes<T>) {
                const Vec<T> a = load(places + 2 * i), b = load(places + 2 * i + lanes<T>);
                store<T>(given[1] + i, evens<T>(a, b) + T(1)), store<T>(given[0] + i, odds<T>(a, b) + T(1));
            }
        for (; i < (n + lanes<T> - 1) / lanes<T> * lanes<T>; ++i) {
            const T* place = places + DIMS * std::min(i, n - 1);
            for (int d = 0; d < DIMS; ++d) given[d][i] = place[DIMS - 1 - d] + 1;
        }
    }

    template <int DIMS, int K> void find(const Shape& s, const T* places, int64_t n, bool slopes) {
        using I = Int<T>;
        constexpr int ROWS = DIMS == 2 ? K : K * K;
        T given[DIMS][BLOCK];
        read(places, n, given);
        const Mask<T> no = splat<I>(-1), zero{};
        Mask<T> every = no;
        side_by_side = s.size[DIMS - 1] >= K;
        for (int64_t i = 0; i < n; i += lanes<T>) {
            Window<T, K> line[DIMS];
            for (int d = 0; d < DIMS; ++d) line[d] = {s, d, load(given[d] + i), slopes}, side_by_side &= !line[d].apart;
#pragma GCC unroll 4
            for (int row = 0; row < ROWS; ++row) {
                const int of[MOST_DIMS] = {DIMS == 2 ? row : row / K, row % K, 0};
                Mask<T> inside = no, to{};
#pragma GCC unroll 2
                for (int d = 0; d < DIMS - 1; ++d) {
                    inside &= line[d].in[of[d]];
                    to = to * splat<I>(I(s.size[d])) + line[d].at[of[d]];
                }
                to *= splat<I>(I(s.size[DIMS - 1]));
                store<I>(start[row] + i, to + line[DIMS - 1].first);
#pragma GCC unroll 4
                for (int j = 0; j < K; ++j) {
                    const Window<T, K>& last = line[DIMS - 1];
                    const Mask<T> here = inside & last.in[j];
                    const int k = row * K + j;
                    every &= here;
                    const auto product = [&](int turned) {
                        Vec<T> w = turned ? line[0].part[of[0]] : line[0].turn[of[0]];
                        if constexpr (DIMS == 3) w *= turned == 1 ? line[1].turn[of[1]] : line[1].part[of[1]];
                        w *= turned == DIMS - 1 ? last.turn[j] : last.part[j];
                        return select<T>(here, w, Vec<T>{});
                    };
                    store<I>(at[k] + i, select<I>(here, to + (last.apart ? last.at[j] : last.first + splat<I>(I(j))), no));
                    store<T>(weight[k] + i, product(-1));
                    for (int e = 0; slopes && e < DIMS; ++e) store<T>(slope[e][k] + i, product(e));
                }
            }
        }
        whole = !math::any(every == zero);
    }

    void find(const Shape& s, const T* places, int64_t n, bool slopes) {
        if (s.mode == Mode::cubic) return find<2, 4>(s, places, n, slopes);
        if (s.mode == Mode::linear) return s.dims == 2 ? find<2, 2>(s, places, n, slopes) : find<3, 2>(s, places, n, slopes);
        return s.dims == 2 ? find<2, 1>(s, places, n, slopes) : find<3, 1>(s, places, n, slopes);
    }

    // What stands at the neighbours of places [j, j + n) of the block: f(i, k, v) of neighbour k of places from j + i on.
    template <int K, class F> FW_INLINE void each_vector(int rows, const T* x, int64_t j, int64_t n, F&& f) const {
        T lines[MOST_ROWS][K * ROOM];
        for (int row = 0; row < rows; ++row) {
            const Int<T>* from = start[row] + j;
#pragma GCC unroll 8
            for (int64_t i = 0; i < n; ++i) std::memcpy(lines[row] + i * K, x + from[i], K * sizeof(T));
        }
        for (int64_t i = 0; i < n; i += lanes<T>)
            for (int row = 0; row < rows; ++row) {
                Vec<T> v[K];
                for (int k = 0; k < K; ++k) v[k] = load(lines[row] + i * K + k * lanes<T>);
                if constexpr (K == 2) {
                    const Vec<T> a = v[0], b = v[1];
                    v[0] = evens<T>(a, b), v[1] = odds<T>(a, b);
                }
                if constexpr (K == 4) {
                    const Vec<T> a = evens<T>(v[0], v[1]), b = evens<T>(v[2], v[3]), c = odds<T>(v[0], v[1]), d = odds<T>(v[2], v[3]);
                    v[0] = evens<T>(a, b), v[1] = evens<T>(c, d), v[2] = odds<T>(a, b), v[3] = odds<T>(c, d);
                }
#pragma GCC unroll 4
                for (int k = 0; k < K; ++k)
                    f(i, row * K + k, whole ? v[k] : select<T>(load(at[row * K + k] + j + i) >= Mask<T>{}, v[k], Vec<T>{}));
            }
    }
};

// Of places [j, j + n) of the block.
template <int K, class T> void read_lines(const GridTaps<T>& t, int rows, const T* x, T* y, int64_t j, int64_t n) {
    Vec<T> sum{};
    t.template each_vector<K>(rows, x, j, n, [&](int64_t i, int k, Vec<T> v) {
        const Vec<T> w = load(t.weight[k] + j + i);
        sum = k ? sum + w * v : w * v;  // rounded twice, as where neighbours are gathered
        if (k < rows * K - 1) return;
        if (n - i >= lanes<T>) store<T>(y + i, sum);
        else store_part<T>(y + i, sum, n - i);
    });
}

// The same of single neighbours, which count for one.
template <class T> void read_nearest(const GridTaps<T>& t, int, const T* x, T* y, int64_t j, int64_t n) {
    const Int<T>* from = t.start[0] + j;
#pragma GCC unroll 8
    for (int64_t i = 0; i < n; ++i) y[i] = x[from[i]];
    if (t.whole) return;
    for (int64_t i = 0; i < n; i += lanes<T>) {
        const Mask<T> there = load(t.at[0] + j + i) >= Mask<T>{};
        if (n - i >= lanes<T>) store<T>(y + i, select<T>(there, load(y + i), Vec<T>{}));
        else store_part<T>(y + i, select<T>(there, load_part(y + i, n - i), Vec<T>{}), n - i);
    }
}

// The same, place by place: few of an image, or neighbours that do not lie side by side.
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

// dot[k][i] += what stands at neighbour k times g[i], of places [j, j + n) of the block.
template <int K, class T>
void add_lines(const GridTaps<T>& t, int rows, const T* x, const T* g, int64_t j, int64_t n, T (&dot)[MOST_TAPS][BLOCK + lanes<T>]) {
    t.template each_vector<K>(rows, x, j, n, [&](int64_t i, int k, Vec<T> v) {
        T* to = dot[k] + j + i;
        if (n - i >= lanes<T>) store<T>(to, fma<T>(v, load(g + i), load(to)));
        else store_part<T>(to, fma<T>(v, load_part(g + i, n - i), load(to)), n - i);
    });
}
template <class T>
void add_few(const GridTaps<T>& t, int taps, const T* x, const T* g, int64_t j, int64_t n, T (&dot)[MOST_TAPS][BLOCK + lanes<T>]) {
    for (int k = 0; k < taps; ++k)
        for (int64_t i = j; i < j + n; ++i)
            if (t.at[k][i] >= 0) dot[k][i] += x[t.at[k][i]] * g[i - j];
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
    const int taps = s.taps();
    const auto lines = s.along() == 1 ? read_nearest<T> : s.along() == 2 ? read_lines<2, T> : read_lines<4, T>;
    each_block(s, 4096, [&](int64_t begin, int64_t end) {
        GridTaps<T> t;
        for (int64_t first = begin; first < end; first += BLOCK) {
            const int64_t n = std::min(BLOCK, end - first);
            t.find(s, grid + first * s.dims, n, false);
            each_image(s, first, n, [&](int64_t image, int64_t i, int64_t j, int64_t m) {
                const bool few = m < FEW || !t.side_by_side;
                for (int64_t c = image * s.channels; c < (image + 1) * s.channels; ++c)
                    (few ? read_few<T> : lines)(t, few ? taps : s.rows(), x + c * s.plane, y + c * s.count + i, j, m);
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
    if (s.mode == Mode::nearest) return std::fill_n(out, s.n * s.count * s.dims, T(0)), void();
    const int taps = s.taps();
    const auto lines = s.along() == 2 ? add_lines<2, T> : add_lines<4, T>;
    each_block(s, 2048, [&](int64_t begin, int64_t end) {
        GridTaps<T> t;
        for (int64_t first = begin; first < end; first += BLOCK) {
            const int64_t n = std::min(BLOCK, end - first);
            t.find(s, grid + first * s.dims, n, true);
            T sum[MOST_DIMS][BLOCK] = {}, dot[MOST_TAPS][BLOCK + lanes<T>];
            for (int k = 0; k < taps; ++k) std::fill(dot[k], dot[k] + n, T(0));
            each_image(s, first, n, [&](int64_t image, int64_t i, int64_t j, int64_t m) {
                const bool few = m < FEW || !t.side_by_side;
                for (int64_t c = image * s.channels; c < (image + 1) * s.channels; ++c)
                    (few ? add_few<T> : lines)(t, few ? taps : s.rows(), x + c * s.plane, g + c * s.count + i, j, m, dot);
            });
            for (int k = 0; k < taps; ++k)
                for (int e = 0; e < s.dims; ++e)
                    for (int64_t j = 0; j < n; ++j) sum[e][j] += dot[k][j] * t.slope[e][k][j];
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
