// batch_norm of (N, C, ...): how samples and channels lie, and what is made of given statistics.
#pragma once

#include <algorithm>
#include <memory>

#include "norm/norm_rows.h"

namespace fw {

constexpr int64_t SHORT = 16;          // stretches below this are worked on as columns
constexpr int64_t CHUNKS = 32;         // at most
constexpr int64_t BLOCK_ROWS = 64;     // rows of columns that stay in the caches for both passes
constexpr int64_t LEAST_ROWS = 64;     // of a chunk of columns

struct BatchForm {
    int64_t samples, channels, length;
    double eps;

    int64_t statistics() const { return channels; }
    int64_t weights() const { return channels; }
    int64_t count() const { return samples * length; }
    int64_t columns() const { return channels * length; }
    int64_t at(int64_t sample, int64_t channel) const { return (sample * channels + channel) * length; }
    bool as_columns() const { return length < SHORT; }

    // Units of work: chunks of samples, each cut into groups of channels where there are few samples.
    int64_t chunk() const {
        return std::max(as_columns() ? LEAST_ROWS : int64_t(1), (samples + CHUNKS - 1) / CHUNKS);
    }
    int64_t chunks() const { return (samples + chunk() - 1) / chunk(); }
    int64_t groups() const { return as_columns() ? 1 : std::min(channels, (CHUNKS + chunks() - 1) / chunks()); }
    int64_t group() const { return (channels + groups() - 1) / groups(); }

    // work(chunk, first sample, end, first channel, end)
    template <class F> void each_unit(F work) const {
        parallel(chunks() * groups(), grain_of(chunk() * group() * length), [&](int64_t begin, int64_t end) {
            for (int64_t i = begin; i < end; ++i) {
                int64_t k = i / groups(), c = i % groups() * group(), s = k * chunk();
                work(k, s, std::min(samples, s + chunk()), c, std::min(channels, c + group()));
            }
        });
    }
};

// y = (x - centre) * scale + shift, of the columns of some samples
template <bool Past, class T>
FW_INLINE void map_columns(const T* x, T* y, int64_t n, const T* centre, const T* scale, const T* shift) {
    vectors<T>(0, n, [&](int64_t i, auto part, int) {
        Vec<T> d = take(x + i, part) - take(centre + i, part), b = shift ? take(shift + i, part) : Vec<T>{};
        put_as<Past>(y + i, fma<T>(d, take(scale + i, part), b), part);
    });
}

// A number of each channel as a number of each column.
template <class T> std::unique_ptr<T[]> spread_out(const BatchForm& f, const T* given) {
    if (!given) return nullptr;
    std::unique_ptr<T[]> all(new T[size_t(f.columns())]);
    for (int64_t j = 0; j < f.columns(); ++j) all[j] = given[j / f.length];
    return all;
}

// y = (x - centre) * scale + shift with one number of each per channel; shift may be missing.
template <class T> void map_channels(const BatchForm& f, const T* x, T* y, const T* centre, const T* scale, const T* shift) {
    if (f.as_columns()) {
        const bool spread = f.length > 1;
        auto c = spread ? spread_out(f, centre) : nullptr, k = spread ? spread_out(f, scale) : nullptr,
             b = spread ? spread_out(f, shift) : nullptr;
        const T *cs = spread ? c.get() : centre, *ks = spread ? k.get() : scale, *bs = spread ? b.get() : shift;
        parallel(f.samples, grain_of(f.columns()), [&](int64_t begin, int64_t end) {
            for (int64_t s = begin; s < end; ++s)
                map_columns<false>(x + f.at(s, 0), y + f.at(s, 0), f.columns(), cs, ks, bs);
        });
        return;
    }
    choosing_caches(y, f.samples * f.columns(), f.length, [&](auto past) {
        parallel(f.samples * f.channels, grain_of(f.length), [&](int64_t begin, int64_t end) {
            for (int64_t i = begin; i < end; ++i) {
                const int64_t channel = i % f.channels, at = i * f.length;
                Vec<T> c = splat(centre[channel]), k = splat(scale[channel]), b = splat(shift ? shift[channel] : T(0));
                vectors<T>(at, at + f.length, [&](int64_t j, auto part, int) {
                    put_as<past.value>(y + j, fma<T>(take(x + j, part) - c, k, b), part);
                });
            }
            if (past.value) settle();
        });
    });
}

// With the statistics of x, which go to mean and var; weight and bias may be missing.
template <class T>
void batch_forward(const BatchForm& f, const T* x, const T* weight, const T* bias, T* y, T* mean, T* var);

// The gradients of x, weight and bias: gx, or gw and gb, may be missing.
template <class T>
void batch_grad(const BatchForm& f, const T* g, const T* x, const T* weight, const T* mean, const T* var, T* gx, T* gw, T* gb);

// With given statistics: (x - mean) / sqrt(var + eps) * weight + bias; the last two may be missing.
template <class T>
void batch_fixed(const BatchForm& f, const T* x, const T* mean, const T* var, const T* weight, const T* bias, T* y);

// Its gradients, where mean and var are constants: of x, and of weight and bias; gx, or gw and gb, may be missing.
template <class T>
void batch_fixed_grad(const BatchForm& f, const T* g, const T* x, const T* weight, const T* mean, const T* var, T* gx, T* gw,
                      T* gb);

}  // namespace fw
