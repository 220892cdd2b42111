// How samples of the gamma and the Dirichlet distribution move with their parameters (draw_kernels.py says the same in NumPy,
// by complex steps; here numbers carry their derivatives). T: elements; everything is computed in double.

struct Dual { double v, d; };
__device__ __forceinline__ Dual operator+(Dual a, Dual b) { return {a.v + b.v, a.d + b.d}; }
__device__ __forceinline__ Dual operator-(Dual a, Dual b) { return {a.v - b.v, a.d - b.d}; }
__device__ __forceinline__ Dual operator*(Dual a, Dual b) { return {a.v * b.v, a.d * b.v + a.v * b.d}; }
__device__ __forceinline__ Dual operator/(Dual a, Dual b) {
  const double q = a.v / b.v;
  return {q, (a.d - q * b.d) / b.v};
}
__device__ __forceinline__ Dual number(double v) { return {v, 0}; }
// whether a factor of a continued fraction is 1, and its derivative 0
__device__ __forceinline__ bool settled(Dual step) { return fabs(step.v - 1) <= 4e-16 && fabs(step.d) <= 1e-13; }
__device__ __forceinline__ double safe_log(double x) { return log(x > 1e-300 ? x : 1e-300); }
#define MOST_TERMS 20000

__device__ __forceinline__ Dual gamma_series(Dual a, double z) {
  Dual term = number(1) / a, total = term;
  for (int k = 1; k < MOST_TERMS; ++k) {
    term = term * number(z) / (a + number(k));
    total = total + term;
    if (!(fabs(term.v) > 1e-17 * fabs(total.v))) break;
  }
  return total;
}
__device__ __forceinline__ Dual gamma_fraction(Dual a, double z) {
  Dual b = number(z + 1) - a, c = number(1e300), d = number(1) / b, fraction = d;
  for (int k = 1; k < MOST_TERMS; ++k) {
    const Dual factor = number(k) * (a - number(k));
    b = b + number(2);
    d = number(1) / (factor * d + b), c = b + factor / c;
    const Dual step = c * d;
    fraction = fraction * step;
    if (settled(step)) break;
  }
  return fraction;
}
__device__ __forceinline__ double gamma_slope_of(double a, double z) {
  if (!(a > 0)) return fw::special::nan();
  if (!(a < 1e5 && z >= 0 && z < infinity<double>())) {  // Wilson and Hilferty's formula
    const double cube = pow(maximum(z / a, 0.0), 1.0 / 3), far = 1 / (9 * a);
    return cube * cube * cube + 3 * a * cube * cube * (far / a - (cube - 1 + far) / (2 * a));
  }
  const double turn = safe_log(z) - fw::special::digamma_right(a);
  const Dual moved = {a, 1};
  if (z < a + 1) {
    const Dual total = gamma_series(moved, z);
    return -z * (total.v * turn + total.d);
  }
  const Dual fraction = gamma_fraction(moved, z);
  return z * (fraction.v * turn + fraction.d);
}
extern "C" __global__ void gamma_slope(T* out, const T* a, const T* z, i64 n) {
  for (i64 i = i64(blockIdx.x) * blockDim.x + threadIdx.x; i < n; i += i64(gridDim.x) * blockDim.x)
    out[i] = Of<T>::down(W(gamma_slope_of(up(a[i]), up(z[i]))));
}

__device__ __forceinline__ Dual beta_fraction(Dual a, Dual b, double at) {
  const Dual one = number(1), x = number(at);
  Dual c = one, d = one / (one - (a + b) * x / (a + one)), fraction = d;
  for (int k = 1; k < MOST_TERMS; ++k) {
    const Dual m = number(k), twice = number(2 * k);
    const Dual even = m * (b - m) * x / ((a + twice - one) * (a + twice));
    d = one / (one + even * d), c = one + even / c;
    fraction = fraction * c * d;
    const Dual odd = number(0) - (a + m) * (a + b + m) * x / ((a + twice) * (a + twice + one));
    d = one / (one + odd * d), c = one + odd / c;
    const Dual step = c * d;
    fraction = fraction * step;
    if (settled(step)) break;
  }
  return fraction;
}
__device__ __forceinline__ double dirichlet_slope_of(double x, double a, double total) {
  const double rest = total - a > 1e-300 ? total - a : 1e-300;
  const double turn = safe_log(x) - fw::special::digamma_right(a) + fw::special::digamma_right(total);
  const Dual moved = {a, 1}, b = number(rest);
  if (x < (a + 1) / (a + rest + 2)) {
    const Dual left = number(x) / moved * beta_fraction(moved, b, x);
    return -(left.v * turn + left.d);
  }
  const Dual right = number(x / rest) * beta_fraction(b, moved, 1 - x);
  return right.v * turn + right.d;
}
// x and a (rows, parts), total (rows)
extern "C" __global__ void dirichlet_slope(T* out, const T* x, const T* a, const T* total, i64 parts, i64 n) {
  for (i64 i = i64(blockIdx.x) * blockDim.x + threadIdx.x; i < n; i += i64(gridDim.x) * blockDim.x)
    out[i] = Of<T>::down(W(dirichlet_slope_of(up(x[i]), up(a[i]), up(total[i / parts]))));
}
