// Numbers of distributions whose parameters are tensors, each from its own sequence of words, of which it takes as many as
// it happens to need. T: parameters and results; everything is computed in double.
#define EACH_ELEMENT(i, n) for (i64 i = i64(blockIdx.x) * blockDim.x + threadIdx.x; i < n; i += i64(gridDim.x) * blockDim.x)

// The logarithm of a gamma number of shape a, so that small shapes do not give 0. G. Marsaglia and W. Tsang, "A simple method
// for generating gamma variables", 2000; one of a shape below 1 is one of shape a + 1 times u^(1 / a).
__device__ __forceinline__ double log_gamma_number(Sequence& drawn, double a) {
  if (!(a > 0 && a < infinity<double>())) return a > 0 ? a : 0 * infinity<double>();
  const double d = (a < 1 ? a + 1 : a) - 1.0 / 3, c = 1 / sqrt(9 * d);
  for (;;) {
    const double x = drawn.normal(), v = 1 + c * x, cube = v * v * v;
    if (v <= 0 || !(log1p(-drawn.uniform()) < 0.5 * x * x + d * (1 - cube + log(cube)))) continue;
    return log(d * cube) + (a < 1 ? log1p(-drawn.uniform()) / a : 0);
  }
}
extern "C" __global__ void gamma_numbers(T* out, const T* shapes, i64 n, Key key, double lowest) {
  EACH_ELEMENT(i, n) {
    Sequence drawn(key_of(key), i);
    out[i] = Of<T>::down(W(maximum(exp(log_gamma_number(drawn, up(shapes[i]))), lowest)));
  }
}

// rows (rows, n) that sum to 1: gamma numbers over their sum. logs (rows, n): room. A block takes a row.
extern "C" __global__ void dirichlet_rows(T* out, double* logs, const T* shapes, i64 rows, i64 n, Key key, double lowest) {
  for (i64 row = blockIdx.x; row < rows; row += gridDim.x) {
    double most = -infinity<double>(), sum = 0;
    for (i64 i = row * n + threadIdx.x; i < (row + 1) * n; i += blockDim.x) {
      Sequence drawn(key_of(key), i);
      most = maximum(most, logs[i] = log_gamma_number(drawn, up(shapes[i])));
    }
    most = block_total<Max>(most);
    for (i64 i = row * n + threadIdx.x; i < (row + 1) * n; i += blockDim.x) sum += exp(logs[i] - most);
    sum = block_total<Sum>(sum);
    for (i64 i = row * n + threadIdx.x; i < (row + 1) * n; i += blockDim.x)
      out[i] = Of<T>::down(W(maximum(exp(logs[i] - most) / sum, lowest)));
  }
}

// -- whole numbers: W. Hormann, "The transformed rejection method for generating Poisson random variables", 1993, and "The
// generation of binomial random variates", 1993; probabilities as C. Loader has them, "Fast and accurate computation of binomial
// probabilities", 2000

// what Stirling's formula leaves of log k!, k >= 1
__device__ __forceinline__ double stirling_rest(double k) {
  if (k < 16) return lgamma(k + 1) - (k + 0.5) * log(k) + k - 0.91893853320467274;
  const double one = 1 / k, two = one * one;
  return one * (1.0 / 12 - two * (1.0 / 360 - two * (1.0 / 1260 - two * (1.0 / 1680))));
}
// k log(k / mean) + mean - k
__device__ __forceinline__ double deviance(double k, double mean) { return mean - k - k * log1p((mean - k) / k); }
__device__ __forceinline__ double log_poisson(double k, double mean) {
  return k == 0 ? -mean : -stirling_rest(k) - deviance(k, mean) - 0.5 * log(6.283185307179586 * k);
}
__device__ __forceinline__ double log_binomial(double k, double n, double p) {
  if (k == 0) return n * log1p(-p);
  if (k == n) return n * log(p);
  return stirling_rest(n) - stirling_rest(k) - stirling_rest(n - k) - deviance(k, n * p) - deviance(n - k, n * (1 - p))
         - 0.5 * log(6.283185307179586 * k * ((n - k) / n));
}

__device__ __forceinline__ double poisson_number(Sequence& drawn, double mean) {
  if (mean < 10) {  // as many waiting times as come before the mean
    double k = -1;
    for (double time = 0; time <= mean; time -= log1p(-drawn.uniform())) ++k;
    return k;
  }
  const double b = 0.931 + 2.53 * sqrt(mean), a = -0.059 + 0.02483 * b, height = 1.1239 + 1.1328 / (b - 3.4);
  const double sure = 0.9277 - 3.6224 / (b - 2);
  for (;;) {
    const double u = drawn.uniform() - 0.5, v = 1 - drawn.uniform(), us = 0.5 - fabs(u);
    const double k = floor((2 * a / us + b) * u + mean + 0.43);
    if (us >= 0.07 && v <= sure) return k;
    if (k < 0 || (us < 0.013 && v > us)) continue;
    if (log(v * height / (a / (us * us) + b)) <= log_poisson(k, mean)) return k;
  }
}
extern "C" __global__ void poisson_numbers(T* out, const T* rates, i64 n, Key key, double most, Flag* flag, i64 below,
                                           i64 above) {
  EACH_ELEMENT(i, n) {
    const double rate = up(rates[i]);
    double k = 0;
    if (rate >= 0 && rate <= most) {
      Sequence drawn(key_of(key), i);
      k = rate > 0 ? poisson_number(drawn, rate) : 0;
    } else {
      raise_flag(flag, int(rate > most ? above : below), __double_as_longlong(rate), 0);
    }
    out[i] = Of<T>::down(W(k));
  }
}

__device__ __forceinline__ double binomial_number(Sequence& drawn, double n, double p) {  // p <= 0.5
  if (n * p < 10) {  // waiting times between successes
    const double rest = log1p(-p);
    double k = -1;
    for (double trial = 0; trial <= n && k < n; trial += maximum(ceil(log1p(-drawn.uniform()) / rest), 1.0)) ++k;
    return k;
  }
  const double spread = sqrt(n * p * (1 - p)), b = 1.15 + 2.53 * spread, a = -0.0873 + 0.0248 * b + 0.01 * p;
  const double sure = 0.92 - 4.2 / b, height = (2.83 + 5.1 / b) * spread, mode = log_binomial(floor((n + 1) * p), n, p);
  for (;;) {
    const double u = drawn.uniform() - 0.5, v = 1 - drawn.uniform(), us = 0.5 - fabs(u);
    const double k = floor((2 * a / us + b) * u + n * p + 0.5);
    if (us >= 0.07 && v <= sure) return k;
    if (k < 0 || k > n) continue;
    if (log(v * height / (a / (us * us) + b)) <= log_binomial(k, n, p) - mode) return k;
  }
}
// counts and chances of one size
extern "C" __global__ void binomial_numbers(T* out, const T* counts, const T* chances, i64 size, Key key, Flag* flag, i64 uneven,
                                            i64 wrong) {
  EACH_ELEMENT(i, size) {
    const double n = up(counts[i]), p = up(chances[i]);
    double k = 0;
    if (!(n >= 0 && n == rint(n) && n < infinity<double>())) {
      raise_flag(flag, int(uneven), __double_as_longlong(n), 0);
    } else if (!(p >= 0 && p <= 1)) {
      raise_flag(flag, int(wrong), __double_as_longlong(p), 0);
    } else if (n > 0 && p > 0) {
      Sequence drawn(key_of(key), i);
      k = p > 0.5 ? (p < 1 ? n - binomial_number(drawn, n, 1 - p) : n) : binomial_number(drawn, n, p);
    }
    out[i] = Of<T>::down(W(k));
  }
}

// Angles around 0 of von Mises' distribution. D. Best and N. Fisher, "Efficient simulation of the von Mises distribution", 1979.
__device__ __forceinline__ double angle(Sequence& drawn, double spread) {
  const double pi = 3.141592653589793;
  if (spread < 1e-8) return pi * (2 * drawn.uniform() - 1);
  if (spread > 1e6) {
    const double x = drawn.normal() / sqrt(spread);
    return maximum(minimum(x, pi), -pi);
  }
  const double r = 1 + sqrt(1 + 4 * spread * spread), rho = (r - sqrt(2 * r)) / (2 * spread);
  const double s = spread < 1e-5 ? 1 / spread + spread : (1 + rho * rho) / (2 * rho);
  for (;;) {
    const double z = cospi(drawn.uniform()), w = (1 + s * z) / (s + z), y = spread * (s - w), v = 1 - drawn.uniform();
    if (y * (2 - y) - v < 0 && log(y / v) + 1 - y < 0) continue;
    const double found = acos(maximum(minimum(w, 1.0), -1.0));
    return drawn.uniform() < 0.5 ? -found : found;
  }
}
extern "C" __global__ void angles(T* out, const T* spreads, i64 n, Key key, Flag* flag, i64 wrong) {
  EACH_ELEMENT(i, n) {
    const double spread = up(spreads[i]);
    const bool fits = spread >= 0;
    if (!fits) raise_flag(flag, int(wrong), __double_as_longlong(spread), 0);
    Sequence drawn(key_of(key), i);
    out[i] = Of<T>::down(W(fits ? angle(drawn, spread) : 0.0));
  }
}
