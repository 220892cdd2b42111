// Special functions on GPUs, in double precision one number at a time: the formulas of _native/program/special*.cpp.
__device__ __forceinline__ double special_inf() { return infinity<double>(); }
__device__ __forceinline__ double special_nan() { return infinity<double>() - infinity<double>(); }
__device__ __forceinline__ double special_bernoulli(int j) {
  const double at[10] = {1.0 / 6, -1.0 / 30, 1.0 / 42, -1.0 / 30, 5.0 / 66, -691.0 / 2730, 7.0 / 6, -3617.0 / 510,
                         43867.0 / 798, -174611.0 / 330};
  return at[j];
}

// the lower (part 0) or upper (1) regularized incomplete gamma function: the series where it converges fast, else the
// continued fraction (W. Gautschi, 1979)
__device__ __noinline__ double special_incomplete(double a, double x, int part) {
  const bool finite = isfinite(a) && isfinite(x);
  if (!(a > 0 && x > 0 && finite)) {
    if ((a > 0 && x == 0) || (isinf(a) && x >= 0 && isfinite(x))) return part;
    if ((a == 0 && x > 0) || (isinf(x) && x > 0 && a >= 0 && isfinite(a))) return 1 - part;
    return special_nan();
  }
  const double lead = exp(a * log(x) - x - lgamma(a));
  if (x < a + 1) {
    double term = 1 / a, total = term;
    for (int k = 1; k < 10000 && term > 1e-17 * total; ++k) total += term *= x / (a + k);
    return part ? 1 - lead * total : lead * total;
  }
  double b = x + 1 - a, c = 1e300, d = 1 / b, fraction = d, step = 2;
  for (int k = 1; k < 10000 && fabs(step - 1) > 1e-16; ++k) {
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
__device__ __noinline__ double special_zeta(double s, double q) {
  const bool whole = q == rint(q);
  if (s == 1 || (s > 1 && q <= 0 && whole)) return special_inf();
  if (!(s > 1 && (q > 0 || s == rint(s))) || q != q || q < -1e5) return special_nan();
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
    total += special_bernoulli(j - 1) / factorial * factor * power;
    factor *= (s + 2 * j - 1) * (s + 2 * j);
    factorial *= (2 * j + 1) * (2 * j + 2);
  }
  return total;
}

__device__ __forceinline__ double special_power(double y, int n) {  // y^-(n + 1)
  double p = 1 / y;
  for (int k = 0; k < n; ++k) p /= y;
  return p;
}
// for z > 0: digamma (n 0), or (-1)^(n+1) n! zeta(n + 1, z)
__device__ __noinline__ double special_polygamma_right(double z, int n) {
  if (!n) {
    if (isinf(z)) return z;
    double total = 0;
    for (; z < 12; ++z) total -= 1 / z;
    double square = 1 / (z * z), power = square, tail = 0;
    for (int j = 0; j < 10; ++j, power *= square) tail += special_bernoulli(j) / (2 * j + 2) * power;
    return total + (log(z) - 0.5 / z - tail);
  }
  double s = n + 1, total = 0, factor = s, factorial = 2, n_factorial = 1;
  for (int k = 0; k < 12 + n; ++k, ++z) total += special_power(z, n);
  if (isinf(z)) return n % 2 ? 0.0 : -0.0;
  const double last = special_power(z, n);
  total += last * z / (s - 1) + 0.5 * last;
  double power = last / z, square = 1 / (z * z);
  for (int j = 1; j <= 10; ++j, power *= square) {
    total += special_bernoulli(j - 1) / factorial * factor * power;
    factor *= (s + 2 * j - 1) * (s + 2 * j);
    factorial *= (2 * j + 1) * (2 * j + 2);
  }
  for (int k = 2; k <= n; ++k) n_factorial *= k;
  return (n % 2 ? 1 : -1) * n_factorial * total;
}
// reflected by derivatives of the cotangent, of order up to 30: of higher order left of 0 nan
__device__ __noinline__ double special_polygamma(double x, int n) {
  if (x > 0 || x != x) return special_polygamma_right(x, n);
  if (x == rint(x)) {
    if (n) return n % 2 ? special_inf() : -special_inf();
    return x == 0 ? -copysign(special_inf(), x) : special_nan();
  }
  if (n > 30) return special_nan();
  const double right = special_polygamma_right(1 - x, n), pi = 3.14159265358979323846;
  double p[32] = {0, 1}, next[32], cot = 1 / tan(pi * (x - rint(x)));  // a polynomial in cot, from the lowest power
  for (int d = 0; d < n; ++d) {
    for (int k = 0; k < 32; ++k) next[k] = 0;
    for (int k = 1; k <= d + 1; ++k) {  // (cot^k)' = -k (cot^(k-1) + cot^(k+1))
      next[k - 1] -= k * p[k];
      if (k < 31) next[k + 1] -= k * p[k];
    }
    for (int k = 0; k < 32; ++k) p[k] = next[k];
  }
  double y = 0;
  for (int k = n + 1 < 31 ? n + 1 : 31; k >= 0; --k) y = y * cot + p[k];
  return (n % 2 ? -right : right) - y * pow(pi, double(n + 1));
}

// exp(x * x) erfc(x), the square in two parts; far out its asymptotic series
__device__ __noinline__ double special_erfcx(double x) {
  if (x >= 25) {
    const double t = 0.5 / (x * x);
    return (1 - t * (1 - 3 * t * (1 - 5 * t * (1 - 7 * t * (1 - 9 * t * (1 - 11 * t)))))) / (x * 1.77245385090551602730);
  }
  const double square = x * x, rest = fma(x, x, -square), e = exp(square);
  return isinf(e) ? e : (e + e * rest) * erfc(x);
}
__device__ __noinline__ double special_log_ndtr(double x) {
  if (x < -1) return log(0.5 * special_erfcx(x * -0.70710678118654752440)) - 0.5 * x * x;
  return log1p(-0.5 * erfc(x * 0.70710678118654752440));
}
