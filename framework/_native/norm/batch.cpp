// Statistics per channel over the samples and places, and the backward.
//
// A sample is C stretches of `length` numbers. The samples are worked on in chunks, in the order of memory, and
// what the chunks found is put together in order; chunks depend on the shape alone. Where stretches are short,
// all columns of a sample are worked on side by side instead, so that vectors are full.
#include "norm/batch.h"

#include <memory>
#include <vector>

namespace fw {
namespace {

// -- sums of columns ------------------------------------------------------------------------------

// Sums[k][j] of term(j, j + r * n, part, sums) over some rows, Wide vectors of columns at a time in registers, in so many
// chains that none waits for itself.
template <class T, int Sums, int Wide, class Part, class F>
FW_INLINE void sum_columns(T* const (&out)[Sums], int64_t rows, int64_t n, int64_t j, Part part, F&& term) {
    constexpr int chains = Wide * Sums >= 4 ? 2 : 4;
    Vec<T> s[chains][Wide][Sums] = {};
    int64_t r = 0;
    for (; r + chains <= rows; r += chains)
#pragma GCC unroll 4
        for (int c = 0; c < chains; ++c)
#pragma GCC unroll 4
            for (int w = 0; w < Wide; ++w) term(j + w * lanes<T>, (r + c) * n + j + w * lanes<T>, part, s[c][w]);
    for (; r < rows; ++r)
#pragma GCC unroll 4
        for (int w = 0; w < Wide; ++w) term(j + w * lanes<T>, r * n + j + w * lanes<T>, part, s[0][w]);
#pragma GCC unroll 4
    for (int w = 0; w < Wide; ++w)
#pragma GCC unroll 2
        for (int k = 0; k < Sums; ++k) {
            Vec<T> sum = s[0][w][k] + s[1][w][k];
            if constexpr (chains > 2) sum += s[2][w][k] + s[3][w][k];
            put(out[k] + j + w * lanes<T>, sum, part);
        }
}

template <class T, int Sums, class F> FW_INLINE void sum_columns(T* const (&out)[Sums], int64_t rows, int64_t n, F&& term) {
    constexpr int wide = 4 / Sums;
    int64_t j = 0;
    for (; j + wide * lanes<T> <= n; j += wide * lanes<T>) sum_columns<T, Sums, wide>(out, rows, n, j, Whole{}, term);
    for (; j + lanes<T> <= n; j += lanes<T>) sum_columns<T, Sums, 1>(out, rows, n, j, Whole{}, term);
    if (j < n) sum_columns<T, Sums, 1>(out, rows, n, j, Part{n - j}, term);
}

// -- statistics -----------------------------------------------------------------------------------

template <class T> struct Statistics {
    const BatchForm& f;
    const T* x;
    std::vector<Spread> found = std::vector<Spread>(size_t(f.chunks() * f.channels));  // by chunk and channel

    void stretches(Spread* own, int64_t begin, int64_t end, int64_t first, int64_t last) const {
        for (int64_t s = begin; s < end; ++s)
            for (int64_t c = first; c < last; ++c) add(own[c], spread_of(x + f.at(s, c), f.length));
    }

    static void add(Spread& all, const Spread& more) {
        if (all.n == 0) all = more;
        else all.add(more);
    }

    void columns(Spread* own, int64_t begin, int64_t end) const {
        const int64_t n = f.columns();
        std::unique_ptr<T[]> room(new T[size_t(2 * n)]);
        std::unique_ptr<double[]> all(new double[size_t(3 * n)]());
        T *centre = room.get(), *squares = centre + n;
        double *mean = all.get(), *spread = mean + n, *now = spread + n, seen = 0;
        for (int64_t first = begin; first < end; first += BLOCK_ROWS) {
            const int64_t rows = std::min(BLOCK_ROWS, end - first);
            const T* from = x + f.at(first, 0);
            // from the first row: near 0, so that few digits are rounded away
            sum_columns<T, 1>({centre}, rows, n, [&](int64_t j, int64_t at, auto part, Vec<T>* s) {
                s[0] += take(from + at, part) - take(from + j, part);
            });
            const double each = 1 / double(rows);
            for (int64_t j = 0; j < n; ++j) {
                now[j] = double(from[j]) + double(centre[j]) * each;
                centre[j] = T(now[j]);
            }
            sum_columns<T, 1>({squares}, rows, n, [&](int64_t j, int64_t at, auto part, Vec<T>* s) {
                Vec<T> d = take(from + at, part) - take(centre + j, part);
                s[0] = fma<T>(d, d, s[0]);
            });
            const double share = double(rows) / (seen + double(rows)), cross = seen * share;
            for (int64_t j = 0; j < n; ++j) {  // as Spread::add, for all columns
                double d = now[j] - mean[j], off = now[j] - double(centre[j]);
                mean[j] += d * share;
                spread[j] += double(squares[j]) - double(rows) * off * off + d * d * cross;
            }
            seen += double(rows);
        }
        for (int64_t j = 0; j < n; ++j) add(own[j / f.length], {seen, mean[j], spread[j]});
    }

    void run() {
        f.each_unit([&](int64_t k, int64_t begin, int64_t end, int64_t first, int64_t last) {
            Spread* own = found.data() + k * f.channels;
            if (f.as_columns()) columns(own, begin, end);
            else stretches(own, begin, end, first, last);
        });
    }

    Moments of(int64_t channel) const {
        Spread all = found[size_t(channel)];
        for (int64_t k = 1; k < f.chunks(); ++k) all.add(found[size_t(k * f.channels + channel)]);
        return all.moments();
    }
};

template <class T> struct BatchForward {
    const T *x, *weight, *bias;
    T *y, *mean, *var;
    BatchForm f;

    void run() const {
        Statistics<T> found{f, x};
        found.run();
        std::unique_ptr<T[]> scale(new T[size_t(f.channels)]);
        for (int64_t c = 0; c < f.channels; ++c) {
            Moments m = found.of(c);
            mean[c] = T(m.mean);
            var[c] = T(m.var);
            scale[c] = rstd_of<T>(m.var, f.eps) * (weight ? weight[c] : T(1));
        }
        map_channels(f, x, y, mean, scale.get(), bias);
    }
};

// -- backward -------------------------------------------------------------------------------------
//
// With h = (x - mean) * rstd: weight gets sum(g * h), bias sum(g), and x gets
// weight * rstd * (g - mean(g) - h * mean(g * h)).

// gx = (g - mean_g - (x - centre) * slope) * scale
template <class T> struct ChannelLine { T centre, slope, mean_g, scale; };

template <class T> struct BatchBackward {
    const T *g, *x, *weight, *mean, *var;
    T *gx, *gw, *gb;  // gx, or gw and gb, may be missing
    BatchForm f;

    struct GradSums { double g = 0, gd = 0; };  // the sums of g and g * (x - mean)

    void stretches(GradSums* own, int64_t begin, int64_t end, int64_t first, int64_t last) const {
        for (int64_t s = begin; s < end; ++s)
            for (int64_t c = first; c < last; ++c) {
                const int64_t at = f.at(s, c);
                Vec<T> centre = splat(mean[c]);
                auto found = sums<T, 2>(f.length, [&](int64_t i, auto part, Vec<T>* v) {
                    Vec<T> a = take(g + at + i, part);
                    v[0] += a;
                    v[1] = fma<T>(a, take(x + at + i, part) - centre, v[1]);
                });
                own[c].g += found.of[0];
                own[c].gd += found.of[1];
            }
    }

    void columns(GradSums* own, int64_t begin, int64_t end, const T* centre) const {
        const int64_t n = f.columns();
        std::unique_ptr<T[]> room(new T[size_t(2 * n)]);
        T *to_g = room.get(), *to_gd = to_g + n;
        for (int64_t first = begin; first < end; first += LEAST_ROWS) {
            const int64_t rows = std::min(LEAST_ROWS, end - first), start = f.at(first, 0);
            sum_columns<T, 2>({to_g, to_gd}, rows, n, [&](int64_t j, int64_t at, auto part, Vec<T>* s) {
                Vec<T> a = take(g + start + at, part), d = take(x + start + at, part) - take(centre + j, part);
                s[0] += a;
                s[1] = fma<T>(a, d, s[1]);
            });
            for (int64_t j = 0; j < n; ++j) {
                own[j / f.length].g += double(to_g[j]);
                own[j / f.length].gd += double(to_gd[j]);
            }
        }
    }

    std::vector<ChannelLine<T>> lines() const {
        std::vector<GradSums> found(size_t(f.chunks() * f.channels));
        auto centre = f.as_columns() ? spread_out(f, mean) : nullptr;
        f.each_unit([&](int64_t k, int64_t begin, int64_t end, int64_t first, int64_t last) {
            GradSums* own = found.data() + k * f.channels;
            if (f.as_columns()) columns(own, begin, end, centre.get());
            else stretches(own, begin, end, first, last);
        });
        std::vector<ChannelLine<T>> all;
        for (int64_t c = 0; c < f.channels; ++c) {
            GradSums sum;
            for (int64_t k = 0; k < f.chunks(); ++k) {
                sum.g += found[size_t(k * f.channels + c)].g;
                sum.gd += found[size_t(k * f.channels + c)].gd;
            }
            all.push_back(line(c, sum));
        }
        return all;
    }

    ChannelLine<T> line(int64_t c, const GradSums& sum) const {
        const double rstd = 1 / std::sqrt(double(var[c]) + f.eps), n = double(f.count());
        if (gw) {
            gw[c] = T(sum.gd * rstd);
            gb[c] = T(sum.g);
        }
        return {mean[c], T(sum.gd * rstd * rstd / n), T(sum.g / n), T(weight ? double(weight[c]) * rstd : rstd)};
    }

    void apply_columns(const std::vector<ChannelLine<T>>& all) const {
        const int64_t n = f.columns();
        std::unique_ptr<T[]> room(new T[size_t(4 * n)]);
        T *centre = room.get(), *slope = centre + n, *mean_g = slope + n, *scale = mean_g + n;
        for (int64_t j = 0; j < n; ++j) {
            const ChannelLine<T>& l = all[size_t(j / f.length)];
            centre[j] = l.centre;
            slope[j] = -l.slope;
            mean_g[j] = l.mean_g;
            scale[j] = l.scale;
        }
        parallel(f.samples, grain_of(n), [&](int64_t begin, int64_t end) {
            for (int64_t at = begin * n; at < end * n; at += n)
                vectors<T>(0, n, [&](int64_t j, auto part, int) {
                    Vec<T> d = take(x + at + j, part) - take(centre + j, part);
                    Vec<T> v = take(g + at + j, part) - take(mean_g + j, part);
                    put(gx + at + j, fma<T>(d, take(slope + j, part), v) * take(scale + j, part), part);
                });
        });
    }

    void apply_stretches(const std::vector<ChannelLine<T>>& all) const {
        choosing_caches(gx, f.samples * f.columns(), f.length, [&](auto past) {
            parallel(f.samples * f.channels, grain_of(f.length), [&](int64_t begin, int64_t end) {
                for (int64_t i = begin; i < end; ++i) {
                    const ChannelLine<T>& l = all[size_t(i % f.channels)];
                    Vec<T> c = splat(l.centre), k = splat(-l.slope), a = splat(l.mean_g), w = splat(l.scale);
                    vectors<T>(i * f.length, (i + 1) * f.length, [&](int64_t j, auto part, int) {
                        Vec<T> d = take(x + j, part) - c, v = take(g + j, part) - a;
                        put_as<past.value>(gx + j, fma<T>(d, k, v) * w, part);
                    });
                }
                if (past.value) settle();
            });
        });
    }

    void run() const {
        std::vector<ChannelLine<T>> all = lines();
        if (!gx) return;
        if (f.as_columns()) apply_columns(all);
        else apply_stretches(all);
    }
};

}  // namespace

template <class T>
void batch_forward(const BatchForm& f, const T* x, const T* weight, const T* bias, T* y, T* mean, T* var) {
    BatchForward<T>{x, weight, bias, y, mean, var, f}.run();
}

template <class T>
void batch_grad(const BatchForm& f, const T* g, const T* x, const T* weight, const T* mean, const T* var, T* gx, T* gw, T* gb) {
    BatchBackward<T>{g, x, weight, mean, var, gx, gw, gb, f}.run();
}

template <class T>
void batch_fixed_grad(const BatchForm& f, const T* g, const T* x, const T* weight, const T* mean, const T* var, T* gx, T* gw,
                      T* gb) {
    if (gw) BatchBackward<T>{g, x, weight, mean, var, nullptr, gw, gb, f}.lines();
    if (!gx) return;
    std::vector<T> nothing(size_t(f.channels)), scale(size_t(f.channels));
    for (int64_t c = 0; c < f.channels; ++c) scale[size_t(c)] = rstd_of<T>(double(var[c]), f.eps) * (weight ? weight[c] : T(1));
    map_channels<T>(f, g, gx, nothing.data(), scale.data(), nullptr);
}

#define FW_OF(T)                                                                                            \
    template void batch_forward(const BatchForm&, const T*, const T*, const T*, T*, T*, T*);                \
    template void batch_grad(const BatchForm&, const T*, const T*, const T*, const T*, const T*, T*, T*, T*); \
    template void batch_fixed_grad(const BatchForm&, const T*, const T*, const T*, const T*, const T*, T*, T*, T*);
FW_OF(float)
FW_OF(double)
#undef FW_OF

}  // namespace fw
