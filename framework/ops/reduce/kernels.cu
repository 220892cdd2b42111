// Softmax and its logarithm, and their derivatives, along one dimension of (outer, n, inner) in memory.
// T: elements; W: what is computed in. With inner == 1 a block makes a row, 16 bytes at a time; else a thread does.

struct Alone {
  i64 n, inner;
  template <class F> static __device__ __forceinline__ W total(W x) { return x; }
  __device__ __forceinline__ i64 place(i64 i) const { return i * inner; }
  template <class F> __device__ __forceinline__ void each(F f) const {
#pragma unroll 1
    for (i64 i = 0; i < n; ++i) f(i, Width<1>());
  }
};
struct InBlock {
  i64 n, lead;
  template <class F> static __device__ __forceinline__ W total(W x) { return block_total<F>(x); }
  __device__ __forceinline__ i64 place(i64 i) const { return i; }
  template <class F> __device__ __forceinline__ void each(F f) const { each_pack<T>(n, lead, threadIdx.x, blockDim.x, f); }
};

template <class Row> __device__ __forceinline__ void softmax_row(const Row& row, T* out, const T* x, bool logarithm) {
  W top = -infinity<W>(), sum = 0;
  row.each([&](i64 i, auto width) {
    constexpr int N = decltype(width)::is;
    const Pack<T, N> xs = pack_at<T, N>(x + row.place(i));
#pragma unroll
    for (int k = 0; k < N; ++k) top = maximum(top, W(up(xs.at[k])));
  });
  top = Row::template total<Max>(top);
  row.each([&](i64 i, auto width) {
    constexpr int N = decltype(width)::is;
    const Pack<T, N> xs = pack_at<T, N>(x + row.place(i));
#pragma unroll
    for (int k = 0; k < N; ++k) sum += exp(up(xs.at[k]) - top);
  });
  sum = Row::template total<Sum>(sum);
  const W log_sum = log(sum), factor = 1 / sum;
  row.each([&](i64 i, auto width) {
    constexpr int N = decltype(width)::is;
    Pack<T, N> xs = pack_at<T, N>(x + row.place(i));
#pragma unroll
    for (int k = 0; k < N; ++k) {
      const W shifted = up(xs.at[k]) - top;
      xs.at[k] = Of<T>::down(logarithm ? shifted - log_sum : exp(shifted) * factor);
    }
    put_pack<T, N>(out + row.place(i), xs);
  });
}

template <class Row>
__device__ __forceinline__ void gradient_row(const Row& row, T* out, const T* g, const T* y, bool logarithm) {
  W sum = 0;
  row.each([&](i64 i, auto width) {
    constexpr int N = decltype(width)::is;
    const Pack<T, N> gs = pack_at<T, N>(g + row.place(i)), ys = pack_at<T, N>(y + row.place(i));
#pragma unroll
    for (int k = 0; k < N; ++k) sum += logarithm ? up(gs.at[k]) : up(gs.at[k]) * up(ys.at[k]);
  });
  sum = Row::template total<Sum>(sum);
  row.each([&](i64 i, auto width) {
    constexpr int N = decltype(width)::is;
    Pack<T, N> gs = pack_at<T, N>(g + row.place(i));
    const Pack<T, N> ys = pack_at<T, N>(y + row.place(i));
#pragma unroll
    for (int k = 0; k < N; ++k) {
      const W got = up(gs.at[k]), value = up(ys.at[k]);
      gs.at[k] = Of<T>::down(logarithm ? got - exp(value) * sum : (got - sum) * value);
    }
    put_pack<T, N>(out + row.place(i), gs);
  });
}

extern "C" __global__ void __launch_bounds__(512) softmax(T* out, const T* x, i64 n, i64 inner, i64 rows, i64 logarithm) {
  if (inner == 1) {
    for (i64 r = blockIdx.x; r < rows; r += gridDim.x) {
      const InBlock row = {n, lead_of<T>(n, out + r * n, x + r * n)};
      softmax_row(row, out + r * n, x + r * n, logarithm);
    }
    return;
  }
  EACH_ELEMENT(r, rows) {
    const i64 at = r / inner * n * inner + r % inner;
    const Alone row = {n, inner};
    softmax_row(row, out + at, x + at, logarithm);
  }
}

extern "C" __global__ void __launch_bounds__(512)
softmax_grad(T* out, const T* g, const T* y, i64 n, i64 inner, i64 rows, i64 logarithm) {
  if (inner == 1) {
    for (i64 r = blockIdx.x; r < rows; r += gridDim.x) {
      const InBlock row = {n, lead_of<T>(n, out + r * n, g + r * n, y + r * n)};
      gradient_row(row, out + r * n, g + r * n, y + r * n, logarithm);
    }
    return;
  }
  EACH_ELEMENT(r, rows) {
    const i64 at = r / inner * n * inner + r % inner;
    const Alone row = {n, inner};
    gradient_row(row, out + at, g + at, y + at, logarithm);
  }
}
