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

template <class F> __device__ __forceinline__ void put(T* out, i64* places, i64 at, typename F::State state) {
  out[at] = Of<T>::down(F::value(state));
  if (places) places[at] = F::place(state);
}

// one row by a block; ``kept`` has room for a state of each thread
template <class F> __device__ __forceinline__ void row_by_block(T* out, i64* places, const T* x, i64 n, bool reverse,
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
      const i64 at = reverse ? n - 1 - first - k : first + k;
      State one = F::of(up(x[at]), at);
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
      put<F>(out, places, reverse ? n - 1 - first - k : first + k, all);
    }
    before = base ? F::joined(before, kept[with - 1]) : kept[with - 1];
    __syncthreads();  // before the next round overwrites
  }
}

template <class F> __device__ __forceinline__ void scan_of(T* out, i64* places, const T* x, i64 n, i64 inner, i64 rows,
                                                          bool reverse) {
  __shared__ typename F::State kept[SCAN_THREADS];
  if (inner == 1) {
    for (i64 row = blockIdx.x; row < rows; row += gridDim.x)
      row_by_block<F>(out + row * n, places ? places + row * n : places, x + row * n, n, reverse, kept);
    return;
  }
  for (i64 row = i64(blockIdx.x) * blockDim.x + threadIdx.x; row < rows; row += i64(gridDim.x) * blockDim.x) {
    const i64 start = row / inner * n * inner + row % inner;
    typename F::State state = {};
    for (i64 k = 0; k < n; ++k) {
      const i64 i = reverse ? n - 1 - k : k, at = start + i * inner;
      typename F::State one = F::of(up(x[at]), i);
      state = k ? F::joined(state, one) : one;
      put<F>(out, places, at, state);
    }
  }
}

extern "C" __global__ void cumsum(T* out, i64* places, const T* x, i64 n, i64 inner, i64 rows, i64 reverse) {
  scan_of<RunningSum>(out, places, x, n, inner, rows, reverse != 0);
}
extern "C" __global__ void cumprod(T* out, i64* places, const T* x, i64 n, i64 inner, i64 rows, i64 reverse) {
  scan_of<RunningProduct>(out, places, x, n, inner, rows, reverse != 0);
}
extern "C" __global__ void logcumsumexp(T* out, i64* places, const T* x, i64 n, i64 inner, i64 rows, i64 reverse) {
  scan_of<RunningLogSum>(out, places, x, n, inner, rows, reverse != 0);
}
extern "C" __global__ void cummax(T* out, i64* places, const T* x, i64 n, i64 inner, i64 rows, i64 reverse) {
  scan_of<RunningMax>(out, places, x, n, inner, rows, reverse != 0);
}
extern "C" __global__ void cummin(T* out, i64* places, const T* x, i64 n, i64 inner, i64 rows, i64 reverse) {
  scan_of<RunningMin>(out, places, x, n, inner, rows, reverse != 0);
}
