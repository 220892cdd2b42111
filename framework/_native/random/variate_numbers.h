// Numbers of distributions, each of as many blocks of four words as it happens to need, in double precision. One text for the
// processor (variates.cpp) and for GPUs (framework/ops/random/cuda.py), in NumPy in framework/ops/random/variates.py: the same
// operations, rounded correctly each, in the same order, so that all three have the same numbers. A `Drawn` has next(), which
// makes the next block, and word(k) of it.
#if !defined(__CUDACC_RTC__) && !defined(CUDA_ON_CPU)
#pragma once
#include <cmath>

#include "random/normal.h"

#define VARIATE_TABLE inline constexpr double
#define VARIATE_FUNCTION template <class Drawn> inline
#define VARIATE_SHORT FW_INLINE

namespace fw::variates {
using ::atan, ::fabs, ::floor, ::sqrt, ::tan;  // fw has those of vectors
using i64 = int64_t;
using u64 = uint64_t;
using Normal = normal::Numbers<double>;
inline constexpr const auto &NORMAL_0 = Normal::A, &NORMAL_1 = Normal::B, &NORMAL_2 = Normal::C, &NORMAL_3 = Normal::D,
                            &NORMAL_4 = Normal::E, &NORMAL_5 = Normal::F;
FW_INLINE i64 bits_of(double x) { return bits<i64>(x); }
FW_INLINE double of_bits(i64 x) { return bits<double>(x); }
FW_INLINE double number_of(i64 x) { return double(x); }
FW_INLINE i64 plus_exponent(i64 raw, i64 n) { return i64(u64(raw) + (u64(n) << 52)); }
FW_INLINE double pick(bool yes, double a, double b) { return yes ? a : b; }
FW_INLINE Mask<double> bits_of(Vec<double> x) { return bits<Mask<double>>(x); }
FW_INLINE Vec<double> of_bits(Mask<double> x) { return bits<Vec<double>>(x); }
FW_INLINE Vec<double> number_of(Mask<double> x) { return __builtin_convertvector(x, Vec<double>); }
FW_INLINE Mask<double> plus_exponent(Mask<double> raw, Mask<double> n) {
    return bits<Mask<double>>(bits<Vec<u64>>(raw) + (bits<Vec<u64>>(n) << 52));
}
FW_INLINE Vec<double> pick(Mask<double> yes, Vec<double> a, Vec<double> b) { return select<double>(yes, a, b); }
inline double inf() { return HUGE_VAL; }
}  // namespace fw::variates
#else
#define VARIATE_TABLE __device__ const double
#define VARIATE_FUNCTION template <class Drawn> __device__
#define VARIATE_SHORT __device__ __forceinline__

namespace fw::variates {
VARIATE_SHORT i64 bits_of(double x) { return __double_as_longlong(x); }
VARIATE_SHORT double of_bits(i64 x) { return __longlong_as_double(x); }
VARIATE_SHORT double number_of(i64 x) { return double(x); }
VARIATE_SHORT i64 plus_exponent(i64 raw, i64 n) { return i64(u64(raw) + (u64(n) << 52)); }
VARIATE_SHORT double pick(bool yes, double a, double b) { return yes ? a : b; }
VARIATE_SHORT double inf() { return infinity<double>(); }
}  // namespace fw::variates
#endif

namespace fw::variates {

VARIATE_TABLE ODD_PARTS[] = {1.0,      1.0 / 3,  1.0 / 5,  1.0 / 7,  1.0 / 9, 1.0 / 11,
                             1.0 / 13, 1.0 / 15, 1.0 / 17, 1.0 / 19, 1.0 / 21};
VARIATE_TABLE FACTORIAL_PARTS[] = {1.0,        1.0,         1.0 / 2,      1.0 / 6,       1.0 / 24,       1.0 / 120,
                                   1.0 / 720,  1.0 / 5040, 1.0 / 40320, 1.0 / 362880, 1.0 / 3628800, 1.0 / 39916800, 1.0 / 479001600,
                                   1.0 / 6227020800.0};
// what Stirling's formula leaves of log k!, k = 1 to 15
VARIATE_TABLE STIRLING[] = {0.0,
                            0.08106146679532726, 0.0413406959554093, 0.02767792568499834, 0.020790672103765093,
                            0.016644691189821193, 0.013876128823070748, 0.01189670994589177, 0.010411265261972096,
                            0.009255462182712733, 0.00833056343336287, 0.007573675487951841, 0.00694284010720953,
                            0.006408994188004207, 0.0059513701127588475, 0.005554733551962801};

template <class D, int N> VARIATE_SHORT D horner(D x, const double (&c)[N]) {
    D y = x * c[N - 1] + c[N - 2];
    for (int k = N - 3; k >= 0; --k) y = y * x + c[k];
    return y;
}
template <class D> VARIATE_SHORT D logarithm(D x) {  // of normal numbers: 2 atanh((m - 1) / (m + 1)) where x = 2**e * m
    const auto raw = bits_of(x), e = (raw - i64(0x3FE6A09E667F3BCD)) >> 52;
    const D m = of_bits(plus_exponent(raw, -e)), s = (m - 1.0) / (m + 1.0);
    return number_of(e) * 0.693147180559945309417 + (s + s) * horner(s * s, ODD_PARTS);
}
template <class D> VARIATE_SHORT D exponential(D x) {  // of numbers up to 0
    const D shifted = x * 1.4426950408889634 + 6755399441055744.0, n = shifted - 6755399441055744.0;
    const D y = horner((x - n * 0.6931471803691238) - n * 1.9082149292705877e-10, FACTORIAL_PARTS);
    return pick(x < -708.0, D{}, of_bits(plus_exponent(bits_of(y), bits_of(shifted))));
}
VARIATE_SHORT double log_of_more(double x) {  // log(1 + x)
    const double sum = 1 + x;
    return logarithm(sum) - ((sum - 1) - x) / sum;
}

VARIATE_SHORT double uniform(u64 word) { return double(i64(word >> 11)) * 1.1102230246251565e-16; }  // in [0, 1)

// the inverse of the normal distribution (M. Wichura, AS 241): the word is an integer with a sign
VARIATE_SHORT double normal(u64 word) {
    const bool upper = word >> 63;
    const i64 tail = i64(upper ? ~word : word);
    const double one = 5.421010862427522e-20, q = (double(i64(0x7fffffffffffffff) - tail) + 0.5) * one;
    double z;
    if (q > 0.425) {
        const double r = sqrt(-logarithm((double(tail) + 0.5) * one));
        z = r > 5 ? horner(r - 5, NORMAL_4) / horner(r - 5, NORMAL_5) : horner(r - 1.6, NORMAL_2) / horner(r - 1.6, NORMAL_3);
    } else {
        const double x = 0.180625 - q * q;
        z = q * horner(x, NORMAL_0) / horner(x, NORMAL_1);
    }
    return upper ? z : -z;
}

// -- gamma ----------------------------------------------------------------------------------------

// G. Marsaglia and W. Tsang, "A simple method for generating gamma variables", 2000; one of a shape a below 1 is one of shape
// a + 1 times u^(1 / a), whose logarithm is kept, so that small shapes do not give 0.
struct GammaNumber { double number, log_factor; };
VARIATE_FUNCTION GammaNumber gamma_number(Drawn& drawn, double a) {
    if (!(a > 0 && a < inf())) return {a > 0 ? a : 0 * inf(), 0};
    const double d = (a < 1 ? a + 1 : a) - 1.0 / 3, c = 1 / sqrt(9 * d);
    for (;;) {
        drawn.next();
        const double x = normal(drawn.word(0)), v = 1 + c * x, cube = v * v * v, square = x * x;
        if (!(v > 0)) continue;
        const double u = 1 - uniform(drawn.word(1));
        if (u < 1 - 0.0331 * (square * square) || logarithm(u) < 0.5 * square + d * (1 - cube + logarithm(cube)))
            return {d * cube, a < 1 ? logarithm(1 - uniform(drawn.word(2))) / a : 0};
    }
}
VARIATE_SHORT double value_of(GammaNumber g) { return g.log_factor < 0 ? g.number * exponential(g.log_factor) : g.number; }
VARIATE_SHORT double log_of(GammaNumber g) { return g.number < inf() ? logarithm(g.number) + g.log_factor : g.number; }

// -- whole numbers: one uniform number against the sums of probabilities where few are wanted, else W. Hormann, "The
// transformed rejection method for generating Poisson random variables", 1993, and "The generation of binomial random variates",
// 1993; probabilities as C. Loader has them, "Fast and accurate computation of binomial probabilities", 2000

VARIATE_SHORT double stirling_rest(double k) {
    if (k < 16) return STIRLING[int(k)];
    const double one = 1 / k, two = one * one;
    return one * (1.0 / 12 - two * (1.0 / 360 - two * (1.0 / 1260 - two * (1.0 / 1680))));
}
// k log(k / mean) + mean - k
VARIATE_SHORT double deviance(double k, double mean) { return mean - k - k * log_of_more((mean - k) / k); }

struct Hat { double b, a, sure, height, middle, edge; };
struct Tried { double k, limit; bool sure; };
VARIATE_SHORT Tried tried(const Hat& hat, u64 first, u64 second) {
    const double u = uniform(first) - 0.5, v = 1 - uniform(second), us = 0.5 - fabs(u);
    const double k = floor((2 * hat.a / us + hat.b) * u + hat.middle);
    return {us < hat.edge && v > us ? -1 : k, v * hat.height / (hat.a / (us * us) + hat.b), us >= 0.07 && v <= hat.sure};
}
// Two tries of each block.
template <class Law, class Drawn> VARIATE_SHORT double by_hat(Drawn& drawn, const Law& law) {
    for (;;) {
        drawn.next();
        for (int i = 0; i < 4; i += 2) {
            const Tried t = tried(law.hat, drawn.word(i), drawn.word(i + 1));
            if (t.sure || (t.k >= 0 && t.k <= law.most && logarithm(t.limit) <= law.log_share(t.k))) return t.k;
        }
    }
}

struct Poisson {
    double mean, most, first;
    Hat hat;
    VARIATE_SHORT explicit Poisson(double given) : mean(given), most(inf()), first(0), hat{} {
        if (mean < 10) {
            first = exponential(-mean);
        } else {
            const double b = 0.931 + 2.53 * sqrt(mean), a = -0.059 + 0.02483 * b;
            hat = {b, a, 0.9277 - 3.6224 / (b - 2), 1.1239 + 1.1328 / (b - 3.4), mean + 0.43, 0.013};
        }
    }
    VARIATE_SHORT double log_share(double k) const {
        return k == 0 ? -mean : -stirling_rest(k) - deviance(k, mean) - 0.5 * logarithm(6.283185307179586 * k);
    }
    VARIATE_FUNCTION double number(Drawn& drawn) const {
        if (mean >= 10) return by_hat(drawn, *this);
        if (mean == 0) return 0;
        drawn.next();
        const double u = uniform(drawn.word(0));
        double k = 0, part = first, sum = part;
        while (u >= sum) {
            part *= mean / (k + 1);
            if (sum + part == sum) break;
            sum += part, k += 1;
        }
        return k;
    }
};

struct Binomial {
    double n, p, most, first;  // p: of what is rarer, success or failure
    bool failures;
    Hat hat;
    double mode;
    VARIATE_SHORT Binomial(double n, double chance)
        : n(n), p(chance > 0.5 ? 1 - chance : chance), most(n), first(0), failures(chance > 0.5), hat{}, mode(0) {
        if (n * p == 0) {
            first = 1;
        } else if (n * p < 10) {
            first = exponential(n * log_of_more(-p));
        } else {
            const double spread = sqrt(n * p * (1 - p)), b = 1.15 + 2.53 * spread, a = -0.0873 + 0.0248 * b + 0.01 * p;
            hat = {b, a, 0.92 - 4.2 / b, (2.83 + 5.1 / b) * spread, n * p + 0.5, 0};
            mode = log_probability(floor((n + 1) * p));
        }
    }
    VARIATE_SHORT double log_probability(double k) const {
        if (k == 0) return n * log_of_more(-p);
        if (k == n) return n * logarithm(p);
        return stirling_rest(n) - stirling_rest(k) - stirling_rest(n - k) - deviance(k, n * p) - deviance(n - k, n * (1 - p))
               - 0.5 * logarithm(6.283185307179586 * k * ((n - k) / n));
    }
    VARIATE_SHORT double log_share(double k) const { return log_probability(k) - mode; }
    VARIATE_FUNCTION double number(Drawn& drawn) const {
        const double k = n * p < 10 ? few(drawn) : by_hat(drawn, *this);
        return failures ? n - k : k;
    }
    VARIATE_FUNCTION double few(Drawn& drawn) const {
        if (first == 1) return 0;
        drawn.next();
        const double u = uniform(drawn.word(0)), odds = p / (1 - p);
        double k = 0, part = first, sum = part;
        while (u >= sum) {
            part *= odds * ((n - k) / (k + 1));
            if (sum + part == sum) break;
            sum += part, k += 1;
        }
        return k;
    }
};

// -- angles ---------------------------------------------------------------------------------------

// Around 0, of von Mises' distribution. D. Best and N. Fisher, "Efficient simulation of the von Mises distribution", 1979; by
// tangents of half the angles, which lose nothing of small ones.
struct Angles {
    double spread, shrink, lift;
    VARIATE_SHORT explicit Angles(double given) : spread(given < 1e150 ? given : 1e150), shrink(0), lift(0) {
        const double root = sqrt(1 + sqrt(1 + 4 * spread * spread)), sum = root + 1.4142135623730951;
        const double rho = 2 * spread / (root * sum), rest = 2.8284271247461903 / sum / (1 + rho);  // 1 - rho
        shrink = rest / (1 + rho), lift = rest * rest * (root * sum) / 4;
    }
    VARIATE_FUNCTION double number(Drawn& drawn) const {
        for (;;) {
            drawn.next();
            const double half = shrink * tan(1.5707963267948966 * uniform(drawn.word(0))), square = half * half;
            const double y = lift + 2 * spread * (square / (1 + square)), v = 1 - uniform(drawn.word(1));
            if (y * (2 - y) - v < 0 && logarithm(y / v) + 1 - y < 0) continue;
            return drawn.word(2) >> 63 ? -2 * atan(half) : 2 * atan(half);
        }
    }
};

}  // namespace fw::variates
