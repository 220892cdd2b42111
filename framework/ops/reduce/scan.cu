// Running sums, products, extremes and log-sums of exponentials along one dimension of (outer, n, inner) in memory.
// T: elements; W: what is computed in. With inner == 1 a block makes a row, PER_THREAD neighbours a thread; else a
// thread makes a row. The order of additions depends on n alone.
#define PER_THREAD 8
#define SCAN_THREADS 128

struct RunningSum {
  typedef W State;
  static __device__ __forceinline__ W of(W x, i64) { return x; }
  static __device__ __forceinline__ W joined(W a, W b) { return a + b; }
  static __device__ __forceinline__ W value(W a) { return a; }
  static __device__ __forceinline__ i64 place(W) { return 0; }
};
struct RunningProduct : RunningSum {
  static __device__ __forceinline__ W joined(W a, W b) { return a * b; }
};
template <class A> struct Real { typedef double Is; };  // whole numbers compile, though nobody asks for them
template <> struct Real<float> { typedef float Is; };
struct RunningLogSum : RunningSum {
  static __device__ __forceinline__ W joined(W a, W b) {
    if (a == b) return a + W(0.6931471805599453);  // also where both are -inf, or inf
    W top = a > b || a != a ? a : b, rest = a > b || a != a ? b : a;
    return top + W(log1p(exp(Real<W>::Is(rest - top))));
  }
};
struct Extreme { W value; i64 place; };
// of equal ones the last; the first nan stays, at the place of the last nan
struct RunningMax {
  typedef Extreme State;
  static __device__ __forceinline__ Extreme of(W x, i64 i) { Extreme e = {x, i}; return e; }
  static __device__ __forceinline__ Extreme joined(Extreme a, Extreme b) {
    return b.value != b.value || (a.value == a.value && b.value >= a.value) ? b : a;
  }
  static __device__ __forceinline__ W value(Extreme a) { return a.value; }
  static __device__ __forceinline__ i64 place(Extreme a) { return a.place; }
};
struct RunningMin : RunningMax {
  static __device__ __forceinline__ Extreme joined(Extreme a, Extreme b) {
    return b.value != b.value || (a.value == a.value && b.value <= a.value) ? b : a;
  }
};

// what a scan goes over: the state of one element, and where the state up to there goes. ``at`` counts elements of all rows,
// ``i`` those of one.
template <class F> struct Running {
  typedef typename F::State State;
  T* out;
  i64* places;
  const T* x;
  static __device__ __forceinline__ State joined(State a, State b) { return F::joined(a, b); }
  __device__ __forceinline__ State read(i64 at, i64 i) const { return F::of(up(x[at]), i); }
  __device__ __forceinline__ void put(i64 at, i64, State state) const {
    out[at] = Of<T>::down(F::value(state));
    if (places) places[at] = F::place(state);
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

// one row by a block; ``kept`` has room for a state of each thread
template <class F> __device__ __forceinline__ void row_by_block(const F& f, i64 start, i64 n, bool reverse,
                                                               typename F::State* kept) {
  typedef typename F::State State;
  const int t = threadIdx.x;
  State before = {};  // of all that came before this round
  for (i64 base = 0; base < n; base += PER_THREAD * SCAN_THREADS) {
    const i64 first = base + i64(t) * PER_THREAD;
    const int mine = first >= n ? 0 : n - first < PER_THREAD ? int(n - first) : PER_THREAD;
    State own[PER_THREAD];
#pragma unroll
    for (int k = 0; k < PER_THREAD; ++k) {
      if (k >= mine) continue;
      const i64 i = reverse ? n - 1 - first - k : first + k;
      State one = f.read(start + i, i);
      own[k] = k ? F::joined(own[k ? k - 1 : 0], one) : one;
    }
    const int with = n - base >= PER_THREAD * SCAN_THREADS ? SCAN_THREADS : int((n - base + PER_THREAD - 1) / PER_THREAD);
#pragma unroll
    for (int k = 0; k < PER_THREAD; ++k)
      if (k == mine - 1) kept[t] = own[k];
    __syncthreads();
    for (int by = 1; by < with; by *= 2) {
      State joined = {};
      if (t >= by && t < with) joined = F::joined(kept[t - by], kept[t]);
      __syncthreads();
      if (t >= by && t < with) kept[t] = joined;
      __syncthreads();
    }
#pragma unroll
    for (int k = 0; k < PER_THREAD; ++k) {
      if (k >= mine) continue;
      State all = t ? F::joined(kept[t - 1], own[k]) : own[k];
      if (base) all = F::joined(before, all);
      const i64 i = reverse ? n - 1 - first - k : first + k;
      f.put(start + i, i, all);
    }
    before = base ? F::joined(before, kept[with - 1]) : kept[with - 1];
    __syncthreads();  // before the next round overwrites
  }
}

template <class F> __device__ __forceinline__ void scan_of(const F& f, i64 n, i64 inner, i64 rows, bool reverse) {
  __shared__ typename F::State kept[SCAN_THREADS];
  if (inner == 1) {
    for (i64 row = blockIdx.x; row < rows; row += gridDim.x) row_by_block(f, row * n, n, reverse, kept);
    return;
  }
  for (i64 row = i64(blockIdx.x) * blockDim.x + threadIdx.x; row < rows; row += i64(gridDim.x) * blockDim.x) {
    const i64 start = row / inner * n * inner + row % inner;
    typename F::State state = {};
    for (i64 k = 0; k < n; ++k) {
      const i64 i = reverse ? n - 1 - k : k, at = start + i * inner;
      typename F::State one = f.read(at, i);
      state = k ? F::joined(state, one) : one;
      f.put(at, i, state);
    }
  }
}

extern "C" __global__ void cumsum(T* out, i64* places, const T* x, i64 n, i64 inner, i64 rows, i64 reverse) {
  const Running<RunningSum> running = {out, places, x};
  scan_of(running, n, inner, rows, reverse != 0);
}
extern "C" __global__ void cumprod(T* out, i64* places, const T* x, i64 n, i64 inner, i64 rows, i64 reverse) {
  const Running<RunningProduct> running = {out, places, x};
  scan_of(running, n, inner, rows, reverse != 0);
}
extern "C" __global__ void logcumsumexp(T* out, i64* places, const T* x, i64 n, i64 inner, i64 rows, i64 reverse) {
  const Running<RunningLogSum> running = {out, places, x};
  scan_of(running, n, inner, rows, reverse != 0);
}
extern "C" __global__ void cummax(T* out, i64* places, const T* x, i64 n, i64 inner, i64 rows, i64 reverse) {
  const Running<RunningMax> running = {out, places, x};
  scan_of(running, n, inner, rows, reverse != 0);
}
extern "C" __global__ void cummin(T* out, i64* places, const T* x, i64 n, i64 inner, i64 rows, i64 reverse) {
  const Running<RunningMin> running = {out, places, x};
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
