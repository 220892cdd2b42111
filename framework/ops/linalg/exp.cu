// Exponentials of matrices (n, n), a block for each, computed in T: scaled to a norm of at most 1/2, Taylor's polynomial,
// squared. room: two matrices more for each.

// out = c I + factor * (x y)
__device__ __forceinline__ void multiply(T* out, const T* x, const T* y, i64 n, T factor, T c) {
  __syncthreads();
  for (i64 e = threadIdx.x; e < n * n; e += blockDim.x) {
    const i64 r = e / n, j = e % n;
    T sum = 0;
    for (i64 k = 0; k < n; ++k) sum += x[r * n + k] * y[k * n + j];
    out[e] = sum * factor + (r == j ? c : T(0));
  }
  __syncthreads();
}

extern "C" __global__ void matrix_exp(T* out, T* room, const T* x, i64 n, i64 degree) {
  x += blockIdx.x * n * n, out += blockIdx.x * n * n;
  T *scaled = room + blockIdx.x * 2 * n * n, *now = out, *other = scaled + n * n;
  T most = 0;
  for (i64 j = threadIdx.x; j < n; j += blockDim.x) {
    T sum = 0;
    for (i64 r = 0; r < n; ++r) sum += fabs(x[r * n + j]);
    most = maximum(most, sum);
  }
  most = block_total<Max>(most);
  int squarings = 0;
  T factor = 1;
  if (most < infinity<T>())
    for (; most * factor > T(0.5); ++squarings) factor *= T(0.5);
  for (i64 e = threadIdx.x; e < n * n; e += blockDim.x) {
    scaled[e] = x[e] * factor;
    now[e] = e / n == e % n ? T(1) : T(0);
  }
  for (i64 k = degree; k > 0; --k) {
    multiply(other, scaled, now, n, T(1) / T(k), T(1));
    T* kept = now;
    now = other, other = kept;
  }
  for (int s = 0; s < squarings; ++s) {
    multiply(other, now, now, n, T(1), T(0));
    T* kept = now;
    now = other, other = kept;
  }
  if (now != out)
    for (i64 e = threadIdx.x; e < n * n; e += blockDim.x) out[e] = now[e];
}
