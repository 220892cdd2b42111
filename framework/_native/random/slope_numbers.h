// How samples of the gamma and the Dirichlet distribution move with their parameters: numbers that carry derivatives. One text
// for the processor (slopes.cpp) and for GPUs (framework/ops/random/slopes.cu), in NumPy, by complex steps, in
// framework/ops/random/draw_kernels.py. `rest`: the relative size of what may be left out.
#if !defined(__CUDACC_RTC__) && !defined(CUDA_ON_CPU)
#pragma once
#include "base/vecmath.h"
#include "program/special_numbers.h"

namespace fw::slopes {
using ::fabs, ::log, ::pow;  // fw has those of vectors
using V = Vec<double>;
FW_INLINE V size_of(V x) { return abs<double>(x); }
FW_INLINE bool some(Mask<double> lanes) { return math::any(lanes); }
FW_INLINE V pick(Mask<double> lanes, V x, V y) { return select<double>(lanes, x, y); }
}
#endif

namespace fw::slopes {

constexpr int most_terms = 20000;
constexpr double doubles = 2e-16;

template <class D> struct Dual { D v, d; };  // D: double, or vectors of them
template <class D> SPECIAL_SHORT Dual<D> operator+(Dual<D> a, Dual<D> b) { return {a.v + b.v, a.d + b.d}; }
template <class D> SPECIAL_SHORT Dual<D> operator-(Dual<D> a, Dual<D> b) { return {a.v - b.v, a.d - b.d}; }
template <class D> SPECIAL_SHORT Dual<D> operator*(Dual<D> a, Dual<D> b) { return {a.v * b.v, a.d * b.v + a.v * b.d}; }
template <class D> SPECIAL_SHORT Dual<D> operator/(Dual<D> a, Dual<D> b) {
  const D one = 1 / b.v, q = a.v * one;
  return {q, (a.d - q * b.d) * one};
}
SPECIAL_SHORT Dual<double> number(double v) { return {v, 0}; }
SPECIAL_SHORT double size_of(double x) { return fabs(x); }
SPECIAL_SHORT bool some(bool lanes) { return lanes; }
SPECIAL_SHORT double pick(bool lanes, double x, double y) { return lanes ? x : y; }
// Whether a factor of a continued fraction is not 1 yet, or its derivative not 0, but for `rest`.
template <class D> SPECIAL_SHORT auto matters(Dual<D> step, double rest) { return (size_of(step.v - 1) > 2 * rest) | (size_of(step.d) > 500 * rest); }
SPECIAL_SHORT double safe_log(double x) { return log(x > 1e-300 ? x : 1e-300); }

// Each lane ends where it would end alone.
template <class D> SPECIAL_SHORT Dual<D> gamma_series(D a, D z, double rest) {
  Dual<D> term = Dual<D>{z * 0 + 1, z * 0} / Dual<D>{a, z * 0 + 1}, total = term;
  auto open = z >= 0;
  for (int k = 1; k < most_terms; ++k) {
    const D one = 1 / (a + double(k));
    term.v = term.v * z * one;
    term.d = (term.d * z - term.v) * one;
    total = {pick(open, total.v + term.v, total.v), pick(open, total.d + term.d, total.d)};
    open = open & (size_of(term.v) > 0.05 * rest * size_of(total.v));
    if (!some(open)) break;
  }
  return total;
}
template <class D> SPECIAL_SHORT Dual<D> gamma_fraction(D a, D z, double rest) {
  const D nothing = z * 0;
  Dual<D> b = {z + 1 - a, nothing - 1}, c = {nothing + 1e300, nothing}, d = Dual<D>{nothing + 1, nothing} / b, fraction = d;
  auto open = z >= 0;
  for (int k = 1; k < most_terms; ++k) {
    const Dual<D> factor = {(a - double(k)) * double(k), nothing + double(k)};
    b.v = b.v + 2;
    d = Dual<D>{nothing + 1, nothing} / (factor * d + b), c = b + factor / c;
    const Dual<D> step = c * d, next = fraction * step;
    fraction = {pick(open, next.v, fraction.v), pick(open, next.d, fraction.d)};
    open = open & matters(step, rest);
    if (!some(open)) break;
  }
  return fraction;
}
// The slope of a sample z of the gamma distribution of shape a by what these two give: which of them says `by_series`.
SPECIAL_SHORT bool by_series(double a, double z) { return z < a + 1; }
SPECIAL_SHORT double gamma_slope_from(double a, double z, Dual<double> part) {
  const double turn = safe_log(z) - special::digamma_right(a), slope = z * (part.v * turn + part.d);
  return by_series(a, z) ? -slope : slope;
}
SPECIAL_SHORT bool near_enough(double a, double z) { return a > 0 && a < 1e5 && z >= 0 && z < special::inf(); }
SPECIAL_SHORT double gamma_slope_far(double a, double z) {  // Wilson and Hilferty's formula
  if (!(a > 0)) return special::nan();
  const double cube = pow(z <= 0 ? 0.0 : z / a, 1.0 / 3), far = 1 / (9 * a);
  return cube * cube * cube + 3 * a * cube * cube * (far / a - (cube - 1 + far) / (2 * a));
}
SPECIAL_SHORT double gamma_slope_of(double a, double z, double rest) {
  if (!near_enough(a, z)) return gamma_slope_far(a, z);
  return gamma_slope_from(a, z, by_series(a, z) ? gamma_series(a, z, rest) : gamma_fraction(a, z, rest));
}
SPECIAL_SHORT Dual<double> beta_fraction(Dual<double> a, Dual<double> b, double at, double rest) {
  const Dual<double> one = number(1), x = number(at);
  Dual<double> c = one, d = one / (one - (a + b) * x / (a + one)), fraction = d;
  for (int k = 1; k < most_terms; ++k) {
    const Dual<double> m = number(k), twice = number(2 * k);
    const Dual<double> even = m * (b - m) * x / ((a + twice - one) * (a + twice));
    d = one / (one + even * d), c = one + even / c;
    fraction = fraction * c * d;
    const Dual<double> odd = number(0) - (a + m) * (a + b + m) * x / ((a + twice) * (a + twice + one));
    d = one / (one + odd * d), c = one + odd / c;
    const Dual<double> step = c * d;
    fraction = fraction * step;
    if (!matters(step, rest)) break;
  }
  return fraction;
}
SPECIAL_SHORT double dirichlet_slope_of(double x, double a, double total, double rest) {
  const double other = total - a > 1e-300 ? total - a : 1e-300;
  const double turn = safe_log(x) - special::digamma_right(a) + special::digamma_right(total);
  const Dual<double> moved = {a, 1}, b = number(other);
  if (x < (a + 1) / (a + other + 2)) {
    const Dual<double> left = number(x) / moved * beta_fraction(moved, b, x, rest);
    return -(left.v * turn + left.d);
  }
  const Dual<double> right = number(x / other) * beta_fraction(b, moved, 1 - x, rest);
  return right.v * turn + right.d;
}

}  // namespace fw::slopes
