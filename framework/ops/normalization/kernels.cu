// Norms: y = (x - mean) * rstd * weight + bias, with the moments of each of ``rows`` sets of n elements. A block makes a
// set. Element i of row r lies at r * row_step + i / inner * outer + i % inner, and the number of its weight is
// (r % weight_rows) * weight_step + i / weight_inner. T: elements; W: what is computed in, and moments are; weights and
// their gradients are W's where ``wide``, else T's.

struct Norm { i64 rows, n, inner, outer, row_step, weight_rows, weight_step, weight_inner; };

__device__ __forceinline__ i64 place(const Norm& s, i64 r, i64 i) {
  return s.inner == s.n ? r * s.row_step + i : r * s.row_step + i / s.inner * s.outer + i % s.inner;
}
__device__ __forceinline__ i64 weight_of(const Norm& s, i64 r, i64 i) {
  return r % s.weight_rows * s.weight_step + i / s.weight_inner;
}

__device__ __forceinline__ W weight_at(const void* weights, i64 k, i64 wide) {
  return wide ? static_cast<const W*>(weights)[k] : up(static_cast<const T*>(weights)[k]);
}
__device__ __forceinline__ void put_weight(void* weights, i64 k, i64 wide, W value) {
  if (wide) static_cast<W*>(weights)[k] = value;
  else static_cast<T*>(weights)[k] = Of<T>::down(value);
}

#define FAR_FLOAT 7.888609052210118e-31  // 2^-100
#define FAR_DOUBLE 2.409919865102884e-181  // 2^-600

// not `norm`: CUDA's mathematical functions have one
extern "C" __global__ void __launch_bounds__(1024)
norm_rows(T* y, W* means, W* vars, const T* x, const void* weight, const void* bias, i64 wide, Norm s, double eps,
          i64 centred) {
  for (i64 r = blockIdx.x; r < s.rows; r += gridDim.x) {
    // where sums are beyond W's range, once more of elements that are scaled down, by a power of two
    W mean, var, scale = 1, far = sizeof(W) == 4 ? W(FAR_FLOAT) : W(FAR_DOUBLE);
    for (;;) {
      mean = var = 0;
      if (centred) {
        for (i64 i = threadIdx.x; i < s.n; i += blockDim.x) mean += up(x[place(s, r, i)]) * scale;
        mean = block_total<Sum>(mean) / W(s.n);
      }
      for (i64 i = threadIdx.x; i < s.n; i += blockDim.x) {
        W d = up(x[place(s, r, i)]) * scale - mean;
        var += d * d;
      }
      var = block_total<Sum>(var) / W(s.n);
      if (isfinite(var) || scale == far) break;
      scale = far;
    }
    W rstd = scale != far ? rsqrt(var + W(eps)) : var > 0 ? rsqrt(var) : var;  // eps is nothing beside such elements
    for (i64 i = threadIdx.x; i < s.n; i += blockDim.x) {
      i64 at = place(s, r, i), k = weight_of(s, r, i);
      W out = (up(x[at]) * scale - mean) * rstd;
      if (weight) out *= weight_at(weight, k, wide);
      if (bias) out += weight_at(bias, k, wide);
      y[at] = Of<T>::down(out);
    }
    if (threadIdx.x == 0) {
      if (centred) means[r] = mean / scale;
      vars[r] = var / scale / scale;
    }
  }
}

// gx (or none), and where a row has one weight, the gradients of weight and bias
extern "C" __global__ void __launch_bounds__(1024)
norm_grad(T* gx, void* gw, void* gb, const T* g, const T* x, const void* weight, i64 wide, const W* means, const W* vars,
          Norm s, double eps) {
  for (i64 r = blockIdx.x; r < s.rows; r += gridDim.x) {
    W mean = means ? means[r] : W(0), rstd = rsqrt(vars[r] + W(eps)), sum = 0, product = 0;
    for (i64 i = threadIdx.x; i < s.n; i += blockDim.x) {
      i64 at = place(s, r, i);
      W a = up(g[at]);
      if (weight && !gw) a *= weight_at(weight, weight_of(s, r, i), wide);
      sum += a;
      product += a * (up(x[at]) - mean) * rstd;
    }
    sum = block_total<Sum>(sum);
    product = block_total<Sum>(product);
    W own = 1;
    if (gw) {  // one weight for the row: g's sums are the gradients
      if (threadIdx.x == 0) {
        put_weight(gw, r, wide, product);
        if (gb) put_weight(gb, r, wide, sum);
      }
      if (weight) own = weight_at(weight, weight_of(s, r, 0), wide);
    }
    if (!gx) continue;
    W mean_sum = means ? sum / W(s.n) : W(0), mean_product = product / W(s.n);
    for (i64 i = threadIdx.x; i < s.n; i += blockDim.x) {
      i64 at = place(s, r, i);
      W a = up(g[at]);
      if (weight && !gw) a *= weight_at(weight, weight_of(s, r, i), wide);
      gx[at] = Of<T>::down((a - mean_sum - (up(x[at]) - mean) * rstd * mean_product) * rstd * own);
    }
  }
}

// y = (x - mean) * rsqrt(var + eps) * weight + bias by numbers that are given for each of the channels
extern "C" __global__ void norm_fixed(T* y, const T* x, const void* means, const void* vars, const void* weight,
                                      const void* bias, i64 wide, i64 channels, i64 area, i64 n, double eps) {
  for (i64 i = i64(blockIdx.x) * blockDim.x + threadIdx.x; i < n; i += i64(gridDim.x) * blockDim.x) {
    const i64 c = i / area % channels;
    W out = (up(x[i]) - weight_at(means, c, wide)) * rsqrt(weight_at(vars, c, wide) + W(eps));
    if (weight) out *= weight_at(weight, c, wide);
    if (bias) out += weight_at(bias, c, wide);
    y[i] = Of<T>::down(out);
  }
}
