// Places drawn by weights (rows, n), a block for each row. T: weights; everything is computed in double.

__device__ __forceinline__ double weight_at(const T* weights, i64 i, Flag* flag, i64 wrong) {
  const double w = up(weights[i]);
  if (w >= 0 && w < infinity<double>()) return w;
  raise_flag(flag, int(wrong), __double_as_longlong(w), 0);
  return 0;
}

// out (rows, k): the first place where the running sum of the weights exceeds draws (rows, k) of the whole. heights: room for
// the sums. A thread adds up what stands together, then the threads' sums are added up.
extern "C" __global__ void __launch_bounds__(512)
pick_by_height(i64* out, double* heights, const T* weights, const double* draws, i64 rows, i64 n, i64 k, Flag* flag, i64 wrong,
               i64 nothing) {
  __shared__ double sums[2][1024];
  const i64 t = threadIdx.x, each = (n + blockDim.x - 1) / blockDim.x;
  const i64 from = t * each < n ? t * each : n, to = from + each < n ? from + each : n;
  for (i64 row = blockIdx.x; row < rows; row += gridDim.x) {
    const T* ws = weights + row * n;
    double* high = heights + row * n;
    double most = 0;
    for (i64 i = from; i < to; ++i) most = maximum(most, weight_at(ws, i, flag, wrong));
    most = block_total<Max>(most);
    if (most == 0 && t == 0) raise_flag(flag, int(nothing), row, n);
    const double factor = most > 1e-290 && most < 1e290 ? 1.0 : 1 / most;  // sums that neither vanish nor overflow
    double sum = 0;
    for (i64 i = from; i < to; ++i) high[i] = sum += factor == 1 ? weight_at(ws, i, flag, wrong) : up(ws[i]) / most;
    int side = 0;
    sums[0][t] = sum;
    __syncthreads();
    for (int by = 1; by < int(blockDim.x); by *= 2, side = 1 - side) {
      sums[1 - side][t] = sums[side][t] + (t >= by ? sums[side][t - by] : 0.0);
      __syncthreads();
    }
    const double before = t ? sums[side][t - 1] : 0.0, whole = sums[side][blockDim.x - 1];
    for (i64 i = from; i < to; ++i) high[i] += before;
    __syncthreads();
    const double below = __longlong_as_double(__double_as_longlong(whole) - (whole > 0));
    for (i64 j = t; j < k; j += blockDim.x) {
      const double found = minimum(draws[row * k + j] * whole, below);  // which rounding may reach
      i64 low = 0, top = n - 1;
      while (low < top) {
        const i64 middle = (low + top) / 2;
        if (high[middle] > found) top = middle; else low = middle + 1;
      }
      out[row * k + j] = low;
    }
    __syncthreads();
  }
}

// keys (rows, n) of which the k smallest of a row are drawn without replacement: Exp(1) / weight
extern "C" __global__ void __launch_bounds__(512)
weighted_keys(double* keys, const T* weights, const double* draws, i64 rows, i64 n, i64 k, Flag* flag, i64 wrong, i64 nothing,
              i64 few) {
  for (i64 row = blockIdx.x; row < rows; row += gridDim.x) {
    double positive = 0;
    for (i64 i = row * n + threadIdx.x; i < (row + 1) * n; i += blockDim.x) {
      const double w = weight_at(weights, i, flag, wrong);
      keys[i] = w == 0 ? infinity<double>() : -log1p(-draws[i]) / w;
      positive += w > 0;
    }
    positive = block_total<Sum>(positive);
    if (threadIdx.x == 0 && positive < double(k)) raise_flag(flag, int(positive == 0 ? nothing : few), row, i64(positive));
  }
}
