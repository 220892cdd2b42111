// Numbers of distributions, each element from its own words.
#include "random/variates.h"

#include "base/pool.h"
#include "base/scratch.h"
#include "random/sequence.h"
#include "random/variate_numbers.h"

namespace fw::random {
namespace {

using namespace variates;

template <class T> FW_INLINE T at_least(double x, double lowest) { return T(x > lowest || x != x ? x : lowest); }

// Calls put(i, number) for the gamma numbers of shapes i, begin <= i < end. The first tries of several elements are made
// together, by vectors of the operations that `gamma_number` does one at a time; few are not taken at once.
constexpr int64_t BATCH = 32, FRACTION = (int64_t(1) << 53) - 1;
template <class T, class F> void each_gamma(const PhiloxKey& key, const T* shapes, int64_t begin, int64_t end, F&& put) {
    using V = Vec<double>;
    double of[BATCH] = {}, number[BATCH], factor[BATCH];
    int64_t words[3][BATCH] = {}, taken[BATCH];
    for (int64_t first = begin; first < end; first += BATCH) {
        const int64_t count = std::min(BATCH, end - first);
        bool small = false;
        for (int64_t k = 0; k < count; ++k) {
            uint64_t block[BLOCK];
            philox(PhiloxCounter{{uint64_t(first + k), 0, 0, 0}}, key, block);
            for (int j = 0; j < 3; ++j) words[j][k] = int64_t(block[j]);
            of[k] = double(shapes[first + k]);
            small |= of[k] < 1;
        }
        for (int64_t k = 0; k < count; k += lanes<double>) {
            const V a = load(of + k), d = select<double>(a < 1.0, a + 1.0, a) - splat(1.0 / 3), c = 1.0 / sqrt(9.0 * d);
            const V x = normal::of_bits<double>(load(words[0] + k)), v = 1.0 + c * x, cube = v * v * v, square = x * x;
            const V u = 1.0 - __builtin_convertvector(bits<Mask<double>>(load(words[1] + k)) >> 11 & FRACTION, V)
                              * splat(0x1p-53);
            store(number + k, d * cube);
            store(taken + k, (v > 0.0) & (u < 1.0 - 0.0331 * (square * square)) & (a > 0.0) & (a < splat(HUGE_VAL)));
            if (!small) continue;
            const V more = 1.0 - __builtin_convertvector(bits<Mask<double>>(load(words[2] + k)) >> 11 & FRACTION, V)
                                 * splat(0x1p-53);
            store(factor + k, select<double>(a < 1.0, logarithm(more) / a, V{}));
        }
        for (int64_t k = 0; k < count; ++k) {
            if (taken[k]) {
                put(first + k, GammaNumber{number[k], small ? factor[k] : 0});
            } else {
                Sequence drawn(key, first + k);
                put(first + k, gamma_number(drawn, of[k]));
            }
        }
    }
}

// The laws of elements. Parameters are looked at again here: somebody may have changed them since they were found good.
template <class T, class Law> struct OfOne {
    const T* parameters;
    double most;
    FW_INLINE bool good(int64_t i) const { return (parameters[i] >= 0) & (double(parameters[i]) <= most); }
    FW_INLINE bool same(int64_t i, int64_t j) const { return parameters[i] == parameters[j]; }
    FW_INLINE bool is_sure(int64_t, T&) const { return false; }
    FW_INLINE Law law(int64_t i) const {
        const double x = double(parameters[i]);
        return Law(x >= 0 && x <= most ? x : 0);
    }
};
template <class T> struct OfTwo {
    const T *counts, *chances;
    FW_INLINE bool good(int64_t i) const {
        const T n = counts[i], p = chances[i];  // without branches
        return (n >= 0) & (n == std::floor(n)) & (n < std::numeric_limits<T>::infinity()) & (p >= 0) & (p <= 1);
    }
    FW_INLINE bool same(int64_t i, int64_t j) const { return counts[i] == counts[j] && chances[i] == chances[j]; }
    FW_INLINE bool is_sure(int64_t i, T& number) const {  // what needs no draw
        const T n = counts[i], p = chances[i];
        number = p == 1 ? n : T(0);
        return n == 0 || p == 0 || p == 1;
    }
    FW_INLINE Binomial law(int64_t i) const {
        const double n = double(counts[i]), p = double(chances[i]);
        return n >= 0 && n < HUGE_VAL && p >= 0 && p <= 1 ? Binomial(n, p) : Binomial(0, 0);
    }
};

// Draws for all elements, unless one has no law; neighbours often have one in common.
template <class T, class Laws> bool by_laws(uint64_t key, const Laws& laws, T* out, int64_t n) {
    Int<T> bad = 0;  // as wide as the numbers, so that vectors are asked
    for (int64_t i = 0; i < n; ++i) bad |= Int<T>(!laws.good(i));
    if (bad) return false;
    const PhiloxKey keys(key, VARIATES);
    parallel(n, 512, [&](int64_t begin, int64_t end) {
        int64_t of = begin;
        auto law = laws.law(begin);
        for (int64_t i = begin; i < end; ++i) {
            if (laws.is_sure(i, out[i])) continue;
            if (!laws.same(i, of)) law = laws.law(i);
            of = i;
            Sequence drawn(keys, i);
            out[i] = T(law.number(drawn));
        }
    });
    return true;
}

}  // namespace

template <class T> bool within(const T* x, int64_t n, double low, double high, bool whole) {
    bool good = true;
    for (int64_t i = 0; i < n; ++i) good &= (x[i] >= low) & (x[i] <= high);
    for (int64_t i = 0; i < n && whole; ++i) good &= x[i] == std::floor(x[i]);
    return good;
}

template <class T> void gamma_numbers(uint64_t key, const T* shapes, T* out, int64_t n, double lowest) {
    const PhiloxKey keys(key, VARIATES);
    parallel(n, 1024, [&](int64_t begin, int64_t end) {
        each_gamma(keys, shapes, begin, end, [&](int64_t i, GammaNumber g) { out[i] = at_least<T>(value_of(g), lowest); });
    });
}

template <class T>
void dirichlet_rows(uint64_t key, const T* shapes, T* out, int64_t rows, int64_t parts, double lowest) {
    const PhiloxKey keys(key, VARIATES);
    const int64_t together = std::max<int64_t>(1, 256 / std::max<int64_t>(1, parts));  // rows
    parallel(rows, 2 * together, [&](int64_t begin, int64_t end) {
        double* logs = scratch<double>(0, std::min(together, rows) * parts);
        for (int64_t first = begin; first < end; first += together) {
            const int64_t last = std::min(end, first + together), from = first * parts;
            each_gamma(keys, shapes, from, last * parts, [&](int64_t i, GammaNumber g) { logs[i - from] = log_of(g); });
            for (int64_t row = first; row < last; ++row) {
                double *log = logs + (row - first) * parts, most = -HUGE_VAL, sum = 0;
                for (int64_t i = 0; i < parts; ++i) most = log[i] > most || log[i] != log[i] ? log[i] : most;
                for (int64_t i = 0; i < parts; ++i) log[i] = exponential(log[i] - most);
                for (int64_t i = 0; i < parts; ++i) sum += log[i];
                for (int64_t i = 0; i < parts; ++i) out[row * parts + i] = at_least<T>(log[i] / sum, lowest);
            }
        }
    });
}

template <class T> bool poisson_numbers(uint64_t key, const T* rates, T* out, int64_t n, double most) {
    return by_laws(key, OfOne<T, Poisson>{rates, most}, out, n);
}

template <class T> bool binomial_numbers(uint64_t key, const T* counts, const T* chances, T* out, int64_t n) {
    return by_laws(key, OfTwo<T>{counts, chances}, out, n);
}

template <class T> bool angles(uint64_t key, const T* spreads, T* out, int64_t n) {
    return by_laws(key, OfOne<T, Angles>{spreads, HUGE_VAL}, out, n);
}

#define FW_VARIATES(T)                                                                      \
    template bool within(const T*, int64_t, double, double, bool);                          \
    template void gamma_numbers(uint64_t, const T*, T*, int64_t, double);                   \
    template void dirichlet_rows(uint64_t, const T*, T*, int64_t, int64_t, double);         \
    template bool poisson_numbers(uint64_t, const T*, T*, int64_t, double);                 \
    template bool binomial_numbers(uint64_t, const T*, const T*, T*, int64_t);              \
    template bool angles(uint64_t, const T*, T*, int64_t);
FW_VARIATES(float)
FW_VARIATES(double)

}  // namespace fw::random
