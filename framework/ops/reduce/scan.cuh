// Running sums and the like along one dimension of (outer, n, inner) in memory.
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

// one row by a block; ``kept`` has room for a state of each thread
template <class F> __device__ __forceinline__ void row_by_block(const F& f, i64 start, i64 n, bool reverse,
                                                               typename F::State* kept) {
  typedef typename F::State State;
  const int t = threadIdx.x;
  State before = {};  // of all that came before this round
#pragma unroll 1
  for (i64 base = 0; base < n; base += PER_THREAD * SCAN_THREADS) {
    const i64 first = base + i64(t) * PER_THREAD;
    const int mine = first >= n ? 0 : n - first < PER_THREAD ? int(n - first) : PER_THREAD;
    State own[PER_THREAD], last = {};
#pragma unroll
    for (int k = 0; k < PER_THREAD; ++k) {
      if (k >= mine) continue;
      const i64 i = reverse ? n - 1 - first - k : first + k;
      State one = f.read(start + i, i);
      own[k] = last = k ? F::joined(last, one) : one;
    }
    const int with = n - base >= PER_THREAD * SCAN_THREADS ? SCAN_THREADS : int((n - base + PER_THREAD - 1) / PER_THREAD);
    if (mine) kept[t] = last;
    __syncthreads();
#pragma unroll 1
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
#pragma unroll 1
    for (i64 row = blockIdx.x; row < rows; row += gridDim.x) row_by_block(f, row * n, n, reverse, kept);
    return;
  }
  EACH_ELEMENT(row, rows) {
    const i64 start = row / inner * n * inner + row % inner, step = reverse ? -1 : 1;
    typename F::State state = {};
#pragma unroll 1
    for (i64 k = 0, i = reverse ? n - 1 : 0; k < n; ++k, i += step) {
      const i64 at = start + i * inner;
      typename F::State one = f.read(at, i);
      state = k ? F::joined(state, one) : one;
      f.put(at, i, state);
    }
  }
}

