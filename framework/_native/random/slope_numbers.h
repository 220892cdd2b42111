// How samples of the gamma and the Dirichlet distribution move with their parameters: numbers that carry derivatives. One text
// for the processor (slopes.cpp) and for GPUs (framework/ops/random/slopes.cu), in NumPy, by complex steps, in
// framework/ops/random/draw_kernels.py. `rest`: the relative size of what may be left out.
#if !defined(__CUDACC_RTC__) && !defined(CUDA_ON_CPU)
#pragma once
#include "program/special_numbers.h"

namespace fw::slopes {
using ::fabs, ::log, ::pow;  // fw has those of vectors
}
#endif

namespace fw::slopes {

constexpr int most_terms = 20000;
constexpr double doubles = 2e-16;

struct Dual { double v, d; };
SPECIAL_SHORT Dual operator+(Dual a, Dual b) { return {a.v + b.v, a.d + b.d}; }
SPECIAL_SHORT Dual operator-(Dual a, Dual b) { return {a.v - b.v, a.d - b.d}; }
SPECIAL_SHORT Dual operator*(Dual a, Dual b) { return {a.v * b.v, a.d * b.v + a.v * b.d}; }
SPECIAL_SHORT Dual operator/(Dual a, Dual b) {
  const double q = a.v / b.v;
  return {q, (a.d - q * b.d) / b.v};
}
SPECIAL_SHORT Dual number(double v) { return {v, 0}; }
// Whether a factor of a continued fraction is 1, and its derivative 0, but for `rest`.
SPECIAL_SHORT bool settled(Dual step, double rest) { return fabs(step.v - 1) <= 2 * rest && fabs(step.d) <= 500 * rest; }
SPECIAL_SHORT double safe_log(double x) { return log(x > 1e-300 ? x : 1e-300); }

SPECIAL_SHORT Dual gamma_series(Dual a, double z, double rest) {
  Dual term = number(1) / a, total = term;
  for (int k = 1; k < most_terms; ++k) {
    term = term * number(z) / (a + number(k));
    total = total + term;
    if (!(fabs(term.v) > 0.05 * rest * fabs(total.v))) break;
  }
  return total;
}
SPECIAL_SHORT Dual gamma_fraction(Dual a, double z, double rest) {
  Dual b = number(z + 1) - a, c = number(1e300), d = number(1) / b, fraction = d;
  for (int k = 1; k < most_terms; ++k) {
    const Dual factor = number(k) * (a - number(k));
    b = b + number(2);
    d = number(1) / (factor * d + b), c = b + factor / c;
    const Dual step = c * d;
    fraction = fraction * step;
    if (settled(step, rest)) break;
  }
  return fraction;
}
SPECIAL_SHORT double gamma_slope_of(double a, double z, double rest) {
  if (!(a > 0)) return special::nan();
  if (!(a < 1e5 && z >= 0 && z < special::inf())) {  // Wilson and Hilferty's formula
    const double cube = pow(z <= 0 ? 0.0 : z / a, 1.0 / 3), far = 1 / (9 * a);
    return cube * cube * cube + 3 * a * cube * cube * (far / a - (cube - 1 + far) / (2 * a));
  }
  const double turn = safe_log(z) - special::digamma_right(a);
  const Dual moved = {a, 1};
  if (z < a + 1) {
    const Dual total = gamma_series(moved, z, rest);
    return -z * (total.v * turn + total.d);
  }
  const Dual fraction = gamma_fraction(moved, z, rest);
  return z * (fraction.v * turn + fraction.d);
}
SPECIAL_SHORT Dual beta_fraction(Dual a, Dual b, double at, double rest) {
  const Dual one = number(1), x = number(at);
  Dual c = one, d = one / (one - (a + b) * x / (a + one)), fraction = d;
  for (int k = 1; k < most_terms; ++k) {
    const Dual m = number(k), twice = number(2 * k);
    const Dual even = m * (b - m) * x / ((a + twice - one) * (a + twice));
    d = one / (one + even * d), c = one + even / c;
    fraction = fraction * c * d;
    const Dual odd = number(0) - (a + m) * (a + b + m) * x / ((a + twice) * (a + twice + one));
    d = one / (one + odd * d), c = one + odd / c;
    const Dual step = c * d;
    fraction = fraction * step;
    if (settled(step, rest)) break;
  }
  return fraction;
}
SPECIAL_SHORT double dirichlet_slope_of(double x, double a, double total, double rest) {
  const double other = total - a > 1e-300 ? total - a : 1e-300;
  const double turn = safe_log(x) - special::digamma_right(a) + special::digamma_right(total);
  const Dual moved = {a, 1}, b = number(other);
  if (x < (a + 1) / (a + other + 2)) {
    const Dual left = number(x) / moved * beta_fraction(moved, b, x, rest);
    return -(left.v * turn + left.d);
  }
  const Dual right = number(x / other) * beta_fraction(b, moved, 1 - x, rest);
  return right.v * turn + right.d;
}

}  // namespace fw::slopes
