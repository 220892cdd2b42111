// Softmax and its logarithm, and their derivatives, along one dimension of (outer, n, inner) in memory.
// T: elements; W: what is computed in. With inner == 1 a block makes a row, else a thread does.

struct Alone { template <class F> static __device__ __forceinline__ W total(W x) { return x; } };
struct InBlock { template <class F> static __device__ __forceinline__ W total(W x) { return block_total<F>(x); } };

template <class Together> __device__ __forceinline__ void softmax_row(
    T* out, const T* x, i64 n, i64 inner, int first, int step, bool logarithm) {
  W top = -infinity<W>();
  for (i64 i = first; i < n; i += step) top = maximum(top, W(up(x[i * inner])));
  top = Together::template total<Max>(top);
  W sum = 0;
  for (i64 i = first; i < n; i += step) sum += exp(up(x[i * inner]) - top);
  sum = Together::template total<Sum>(sum);
  W log_sum = log(sum), factor = 1 / sum;
  for (i64 i = first; i < n; i += step) {
    W shifted = up(x[i * inner]) - top;
    out[i * inner] = Of<T>::down(logarithm ? shifted - log_sum : exp(shifted) * factor);
  }
}

template <class Together> __device__ __forceinline__ void gradient_row(
    T* out, const T* g, const T* y, i64 n, i64 inner, int first, int step, bool logarithm) {
  W sum = 0;
  for (i64 i = first; i < n; i += step) {
    W got = up(g[i * inner]);
    sum += logarithm ? got : got * up(y[i * inner]);
  }
  sum = Together::template total<Sum>(sum);
  for (i64 i = first; i < n; i += step) {
    W got = up(g[i * inner]), value = up(y[i * inner]);
    out[i * inner] = Of<T>::down(logarithm ? got - exp(value) * sum : (got - sum) * value);
  }
}

extern "C" __global__ void __launch_bounds__(512) softmax(T* out, const T* x, i64 n, i64 inner, i64 rows, i64 logarithm) {
  if (inner == 1) {
    for (i64 row = blockIdx.x; row < rows; row += gridDim.x)
      softmax_row<InBlock>(out + row * n, x + row * n, n, 1, threadIdx.x, blockDim.x, logarithm);
    return;
  }
  for (i64 row = i64(blockIdx.x) * blockDim.x + threadIdx.x; row < rows; row += i64(gridDim.x) * blockDim.x) {
    i64 at = row / inner * n * inner + row % inner;
    softmax_row<Alone>(out + at, x + at, n, inner, 0, 1, logarithm);
  }
}

extern "C" __global__ void __launch_bounds__(512)
softmax_grad(T* out, const T* g, const T* y, i64 n, i64 inner, i64 rows, i64 logarithm) {
  if (inner == 1) {
    for (i64 row = blockIdx.x; row < rows; row += gridDim.x)
      gradient_row<InBlock>(out + row * n, g + row * n, y + row * n, n, 1, threadIdx.x, blockDim.x, logarithm);
    return;
  }
  for (i64 row = i64(blockIdx.x) * blockDim.x + threadIdx.x; row < rows; row += i64(gridDim.x) * blockDim.x) {
    i64 at = row / inner * n * inner + row % inner;
    gradient_row<Alone>(out + at, g + at, y + at, n, inner, 0, 1, logarithm);
  }
}
