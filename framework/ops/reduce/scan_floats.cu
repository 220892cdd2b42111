// Of floating elements alone: running log-sums of exponentials, and gradients (`scan.cuh`).
struct RunningLogSum : RunningSum {
  static __device__ __forceinline__ W joined(W a, W b) {
    if (a == b) return a + W(0.6931471805599453);  // also where both are -inf, or inf
    W top = a > b || a != a ? a : b, rest = a > b || a != a ? b : a;
    return top + W(log1p(exp(rest - top)));
  }
};
// Gradients: a running sum from behind whose terms are multiplied on the way, s[i] = g[i] + factor * s[i + 1]. In double, for
// what is large here may be multiplied by something small.
struct Affine { double factor, sum; };
struct Slopes {
  typedef Affine State;
  T* out;
  const T *g, *x, *y;
  i64 n, inner;
  static __device__ __forceinline__ Affine joined(Affine behind, Affine own) {
    Affine both = {own.factor * behind.factor, own.sum + (own.factor == 0 ? 0.0 : own.factor * behind.sum)};
    return both;
  }
};
struct ProductSlopes : Slopes {  // of y[k] = x[0] ... x[k]: what comes before x[i], times the sum of what follows it
  __device__ __forceinline__ Affine read(i64 at, i64 i) const {
    Affine one = {i + 1 < n ? double(up(x[at + inner])) : 0.0, double(up(g[at]))};
    return one;
  }
  __device__ __forceinline__ void put(i64 at, i64 i, Affine state) const {
    const double before = i ? double(up(y[at - inner])) : 1.0;
    out[at] = Of<T>::down(W(before == 0 || state.sum == 0 ? 0.0 : before * state.sum));
  }
};
struct LogSumSlopes : Slopes {  // of y[k] = log(exp(x[0]) + ... + exp(x[k])): exp(x[i] - y[k]) by steps none of which is above 1
  __device__ __forceinline__ Affine read(i64 at, i64 i) const {
    const double here = up(y[at]);
    Affine one = {i + 1 < n && here != -infinity<double>() ? exp(here - double(up(y[at + inner]))) : 0.0, double(up(g[at]))};
    return one;
  }
  __device__ __forceinline__ void put(i64 at, i64, Affine state) const {
    const double here = up(y[at]);
    out[at] = Of<T>::down(W(here == -infinity<double>() ? 0.0 : exp(double(up(x[at])) - here) * state.sum));
  }
};

extern "C" __global__ void logcumsumexp(T* out, i64* places, const T* x, i64 n, i64 inner, i64 rows, i64 reverse) {
  const Running<RunningLogSum> running = {out, places, x};
  scan_of(running, n, inner, rows, reverse != 0);
}
extern "C" __global__ void cumprod_grad(T* out, const T* g, const T* x, const T* y, i64 n, i64 inner, i64 rows) {
  ProductSlopes slopes;
  slopes.out = out, slopes.g = g, slopes.x = x, slopes.y = y, slopes.n = n, slopes.inner = inner;
  scan_of(slopes, n, inner, rows, true);
}
extern "C" __global__ void logcumsumexp_grad(T* out, const T* g, const T* x, const T* y, i64 n, i64 inner, i64 rows) {
  LogSumSlopes slopes;
  slopes.out = out, slopes.g = g, slopes.x = x, slopes.y = y, slopes.n = n, slopes.inner = inner;
  scan_of(slopes, n, inner, rows, true);
}
