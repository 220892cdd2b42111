// Special functions in double precision, one number at a time: the gamma function and its kin, Hurwitz' zeta, normal
// tails and their inverses, Bessel functions, sinc and its derivatives. One text for the processor (special*.cpp) and for
// GPUs (framework/ops/special/numbers.py); the formulas of arrays, for where neither is, are in framework/ops/special.
#if !defined(__CUDACC_RTC__) && !defined(CUDA_ON_CPU)
#pragma once
#include <math.h>

#include "program/special_tables.h"
#include "random/normal.h"

namespace fw::special {
using ::fma, ::sqrt;  // fw has those of vectors
// of AS 241, as the device is given them by philox.py
using Normal = normal::Numbers<double>;
inline constexpr const auto &NORMAL_0 = Normal::A, &NORMAL_1 = Normal::B, &NORMAL_2 = Normal::C, &NORMAL_3 = Normal::D,
                            &NORMAL_4 = Normal::E, &NORMAL_5 = Normal::F;
inline double log_gamma(double x) {
    int sign;  // not the variable that threads share
    return ::lgamma_r(x, &sign);
}
inline double inf() { return HUGE_VAL; }
}  // namespace fw::special
#else
namespace fw::special {
SPECIAL_SHORT double log_gamma(double x) { return ::lgamma(x); }
SPECIAL_SHORT double inf() { return infinity<double>(); }
}  // namespace fw::special
#endif

namespace fw::special {

SPECIAL_SHORT double nan() { return inf() - inf(); }

template <int N> SPECIAL_SHORT double horner(double x, const double (&c)[N]) {
    double y = c[N - 1];
    for (int k = N - 2; k >= 0; --k) y = y * x + c[k];
    return y;
}
template <int N> SPECIAL_SHORT double series(double t, const double (&c)[N]) {  // Clenshaw's recurrence
    double b = 0, before = 0;
    for (int k = N - 1; k > 0; --k) {
        const double next = 2 * t * b - before + c[k];
        before = b;
        b = next;
    }
    return t * b - before + c[0];
}

// -- gamma ----------------------------------------------------------------------------------------

SPECIAL_FUNCTION double digamma_right(double z) {
    if (isinf(z)) return z;
    double total = 0;
    for (; z < 12; ++z) total -= 1 / z;
    double square = 1 / (z * z), power = square, tail = 0;
    for (int j = 0; j < 10; ++j, power *= square) tail += BERNOULLI[j] / (2 * j + 2) * power;
    return total + (log(z) - 0.5 / z - tail);
}

SPECIAL_SHORT double inverse_power(double y, int n) {  // y^-(n + 1)
    double p = 1 / y;
    for (int k = 0; k < n; ++k) p /= y;
    return p;
}
// (-1)^(n+1) n! zeta(n + 1, z) for z > 0: terms of the sum, then the Euler-Maclaurin formula
SPECIAL_FUNCTION double zeta_right(double z, int n) {
    double s = n + 1, total = 0, factor = s, factorial = 2, n_factorial = 1;
    for (int k = 0; k < 12 + n; ++k, ++z) total += inverse_power(z, n);
    if (isinf(z)) return n % 2 ? 0.0 : -0.0;
    const double last = inverse_power(z, n);
    total += last * z / (s - 1) + 0.5 * last;
    double power = last / z, square = 1 / (z * z);
    for (int j = 1; j <= 10; ++j, power *= square) {
        total += BERNOULLI[j - 1] / factorial * factor * power;
        factor *= (s + 2 * j - 1) * (s + 2 * j);
        factorial *= (2 * j + 1) * (2 * j + 2);
    }
    for (int k = 2; k <= n; ++k) n_factorial *= k;
    return (n % 2 ? 1 : -1) * n_factorial * total;
}

constexpr int MOST = 24;  // derivatives, whose reflection is a polynomial in the cotangent

// pi^(n+1) times the n-th derivative of cot, at pi x
SPECIAL_FUNCTION double cotangent_slope(double x, int n) {
    const double pi = 3.14159265358979323846;
    double p[MOST + 2] = {0, 1}, turn = x - rint(x), cot = 1 / tan(pi * turn);  // powers from the lowest
    for (int d = 0, top = 1; d < n; ++d, ++top) {
        double next[MOST + 2] = {};
        for (int k = 1; k <= top; ++k) {  // (cot^k)' = -k (cot^(k-1) + cot^(k+1))
            next[k - 1] -= k * p[k];
            next[k + 1] -= k * p[k];
        }
        for (int k = 0; k < MOST + 2; ++k) p[k] = next[k];
    }
    double y = 0;
    for (int k = n + 1; k >= 0; --k) y = y * cot + p[k];
    return y * pow(pi, double(n + 1));
}

// of more than MOST derivatives left of 0 nan
SPECIAL_FUNCTION double polygamma(double x, int n) {
    if (x > 0 || x != x) return n ? zeta_right(x, n) : digamma_right(x);
    if (x == rint(x)) {
        if (n) return n % 2 ? inf() : -inf();
        return x == 0 ? -copysign(inf(), x) : nan();
    }
    if (n > MOST) return nan();
    const double right = n ? zeta_right(1 - x, n) : digamma_right(1 - x);
    return (n % 2 ? -right : right) - cotangent_slope(x, n);
}

// The lower (part 0) or upper (1) regularized incomplete gamma function: the series where it converges fast, else the
// continued fraction (W. Gautschi, 1979).
SPECIAL_FUNCTION double incomplete(double a, double x, int part) {
    const int most = 10000;
    const bool finite = isfinite(a) && isfinite(x);
    if (!(a > 0 && x > 0 && finite)) {
        if ((a > 0 && x == 0) || (isinf(a) && x >= 0 && isfinite(x))) return part;
        if ((a == 0 && x > 0) || (isinf(x) && x > 0 && a >= 0 && isfinite(a))) return 1 - part;
        return nan();
    }
    const double lead = exp(a * log(x) - x - log_gamma(a));
    if (x < a + 1) {
        double term = 1 / a, total = term;
        for (int k = 1; k < most && term > 1e-17 * total; ++k) total += term *= x / (a + k);
        return part ? 1 - lead * total : lead * total;
    }
    double b = x + 1 - a, c = 1e300, d = 1 / b, fraction = d, step = 2;
    for (int k = 1; k < most && fabs(step - 1) > 1e-16; ++k) {
        const double factor = k * (a - k);
        b += 2;
        d = 1 / (factor * d + b);
        c = b + factor / c;
        step = c * d;
        fraction *= step;
    }
    return part ? lead * fraction : 1 - lead * fraction;
}

// Hurwitz' zeta by the Euler-Maclaurin formula
SPECIAL_FUNCTION double zeta(double s, double q) {
    const double most = 1e5;  // terms left of 0
    const bool whole = q == rint(q);
    if (s == 1 || (s > 1 && q <= 0 && whole)) return inf();
    if (!(s > 1 && (q > 0 || s == rint(s))) || q != q || q < -most) return nan();
    double total = 0;
    for (int k = 0; k < 9 || q < 9; ++k, ++q) {
        const double term = pow(q, -s);
        total += term;
        if (q > 0 && term <= 1e-18 * total) return total;
    }
    const double first = pow(q, -s), square = 1 / (q * q);
    total += first * q / (s - 1) + 0.5 * first;
    double factor = s, power = first / q, factorial = 2;
    for (int j = 1; j <= 10; ++j, power *= square) {
        total += BERNOULLI[j - 1] / factorial * factor * power;
        factor *= (s + 2 * j - 1) * (s + 2 * j);
        factorial *= (2 * j + 1) * (2 * j + 2);
    }
    return total;
}

// -- the normal distribution ------------------------------------------------------------------------

// exp(x * x) erfc(x), the square in two parts; far out its asymptotic series
SPECIAL_FUNCTION double erfcx(double x) {
    if (x >= 25) {
        const double t = 0.5 / (x * x);
        return (1 - t * (1 - 3 * t * (1 - 5 * t * (1 - 7 * t * (1 - 9 * t * (1 - 11 * t)))))) / (x * 1.77245385090551602730);
    }
    const double square = x * x, rest = fma(x, x, -square), e = exp(square);
    return isinf(e) ? e : (e + e * rest) * erfc(x);
}

SPECIAL_FUNCTION double log_ndtr(double x) {
    if (x < -1) return log(0.5 * erfcx(x * -0.70710678118654752440)) - 0.5 * x * x;
    return log1p(-0.5 * erfc(x * 0.70710678118654752440));
}

// the inverse by AS 241: the distance from 0 that is exceeded with probability p, 0 < p < 1/2
SPECIAL_FUNCTION double normal_tail(double p) {
    const double r = sqrt(-log(p));
    return r <= 5 ? horner(r - 1.6, NORMAL_2) / horner(r - 1.6, NORMAL_3)
                  : horner(r - 5, NORMAL_4) / horner(r - 5, NORMAL_5);
}
SPECIAL_FUNCTION double normal_middle(double q) {  // of the probability 1/2 + q
    const double x = 0.180625 - q * q;
    return q * (horner(x, NORMAL_0) / horner(x, NORMAL_1));
}

SPECIAL_SHORT double erfinv(double x) {
    const double size = fabs(x);
    if (!(size <= 1)) return nan();
    if (size == 1) return copysign(inf(), x);
    const double z = size <= 0.85 ? normal_middle(0.5 * x) : copysign(normal_tail(0.5 * (1 - size)), x);
    return z * 0.70710678118654752440;
}

SPECIAL_SHORT double ndtri(double p) {
    if (!(p >= 0 && p <= 1)) return nan();
    if (p == 0 || p == 1) return p != 0 ? inf() : -inf();
    const double q = p - 0.5;
    return fabs(q) <= 0.425 ? normal_middle(q) : copysign(normal_tail(q < 0 ? p : 1 - p), q);
}

// -- Bessel functions of whole order ------------------------------------------------------------------

SPECIAL_SHORT int size_of(int n) { return n < 0 ? -n : n; }
SPECIAL_SHORT int sign_of(int n) { return n < 0 && n % 2 ? -1 : 1; }  // J, Y of order -n are those of n times (-1)^n

SPECIAL_FUNCTION double bessel_j(double x, int n) { return isinf(x) ? 0 : sign_of(n) * ::jn(size_of(n), x); }

SPECIAL_FUNCTION double bessel_y(double x, int n) {
    if (!(x >= 0)) return nan();
    return isinf(x) ? 0 : sign_of(n) * (x == 0 ? -inf() : ::yn(size_of(n), x));
}

// the power series of I_n over exp(|x|), whose terms have one sign
SPECIAL_FUNCTION double bessel_ie_series(double x, int n) {
    double term = 1, last = 1e300;
    for (int k = 1; k <= n; ++k) term *= 0.5 * x / k;
    double total = term;
    for (int k = 1; k < 10000 && total != last; ++k) {
        last = total;
        total += term *= 0.25 * x * x / (double(k) * (n + k));
    }
    return exp(-fabs(x)) * total;
}

// exp(-|x|) I_n: of higher order the series, or far out the recurrence
SPECIAL_FUNCTION double bessel_ie(double x, int n) {
    n = size_of(n);
    const double y = fabs(x);
    if (x != x) return x;
    if (isinf(x)) return n % 2 ? copysign(0.0, x) : 0.0;
    if (y <= 1 || (n > 1 && y <= 8 + 2 * n)) return bessel_ie_series(x, n);
    double before = y <= 8 ? series(y / 4 - 1, I0_NEAR) : series(16 / y - 1, I0_FAR) / sqrt(y);
    if (n == 0) return before;
    double now = y <= 8 ? x * series(y / 4 - 1, I1_NEAR) : copysign(series(16 / y - 1, I1_FAR) / sqrt(y), x);
    for (int k = 1; k < n; ++k) {
        const double after = before - 2 * k / x * now;
        before = now;
        now = after;
    }
    return now;
}

SPECIAL_SHORT double bessel_i(double x, int n) {
    if (isinf(x)) return n % 2 ? x : inf();
    const double half = exp(0.5 * fabs(x));  // in two steps, against overflow
    return half * bessel_ie(x, n) * half;
}

// exp(x) K0 and exp(x) K1: the series at 0 (NIST DLMF 10.31) up to 2
SPECIAL_FUNCTION void bessel_ke_first(double x, double& k0, double& k1) {
    if (x > 2) {
        const double root = sqrt(x);
        k0 = series(4 / x - 1, K0_FAR) / root;
        k1 = series(4 / x - 1, K1_FAR) / root;
        return;
    }
    const double euler = 0.57721566490153286061, square = 0.25 * x * x, half = log(0.5 * x);
    double term = 1, harmonic = 0, i0 = 0, i1 = 0, s0 = 0, s1 = 0;  // term: square^k / k!^2
    for (int k = 0; k < 16; ++k) {
        i0 += term;
        i1 += term / (k + 1);
        s0 += term * harmonic;
        s1 += term / (k + 1) * (2 * (harmonic - euler) + 1.0 / (k + 1));
        harmonic += 1.0 / (k + 1);
        term *= square / ((k + 1.0) * (k + 1));
    }
    const double scale = exp(x);
    k0 = scale * (s0 - (half + euler) * i0);
    k1 = scale * (1 / x + 0.5 * x * (half * i1 - 0.5 * s1));
}

SPECIAL_FUNCTION double bessel_ke(double x, int n) {
    if (!(x >= 0)) return nan();
    if (x == 0) return inf();
    if (isinf(x)) return 0;
    double before, now;
    bessel_ke_first(x, before, now);
    n = size_of(n);
    if (n == 0) return before;
    for (int k = 1; k < n; ++k) {
        const double after = before + 2 * k / x * now;
        before = now;
        now = after;
    }
    return now;
}

SPECIAL_SHORT double bessel_k(double x, int n) { return x > 2000 ? 0 : exp(-x) * bessel_ke(x, n); }

// -- sinc ---------------------------------------------------------------------------------------------

// The n-th derivative of sin(pi x) / (pi x): a series near 0, the recurrence farther out.
SPECIAL_FUNCTION double sinc(double x, int n) {
    const double pi = 3.14159265358979323846, t = pi * x, scale = pow(pi, double(n));
    if (fabs(t) <= (n ? 1.5 + 0.5 * n : 0.1)) {
        const int first = (n + 1) / 2;
        double factorial = 1, power = n % 2 ? t : 1, total = 0;  // (2k - n)! and t^(2k - n)
        for (int k = first; k < 16 + 2 * n; ++k) {
            const int m = 2 * k - n;
            if (k > first) factorial *= m * (m - 1.0), power *= t * t;
            total += (k % 2 ? -power : power) / (factorial * (2 * k + 1));
        }
        return total * scale;
    }
    const double whole = rint(x), turn = pi * (x - whole), sign = whole == 2 * rint(0.5 * whole) ? 1 : -1;
    const double sine = sign * sin(turn), cosine = n ? sign * cos(turn) : 0;
    double slope = sine / t;
    for (int k = 1; k <= n; ++k) {
        const double wave = k % 2 ? cosine : sine;
        slope = ((k % 4 < 2 ? wave : -wave) - k * slope) / t;
    }
    return slope * scale;
}

}  // namespace fw::special
