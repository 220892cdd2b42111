// Norms: y = (x - mean) * rstd * weight + bias, with the moments of each of ``rows`` sets of n elements. A block makes a
// set. Element i of row r lies at r * row_step + i / inner * outer + i % inner, and the number of its weight is
// (r % weight_rows) * weight_step + i / weight_inner. T: elements; W: what is computed in.

struct Norm { i64 rows, n, inner, outer, row_step, weight_rows, weight_step, weight_inner; };

__device__ __forceinline__ i64 place(const Norm& s, i64 r, i64 i) {
  return s.inner == s.n ? r * s.row_step + i : r * s.row_step + i / s.inner * s.outer + i % s.inner;
}
__device__ __forceinline__ i64 weight_of(const Norm& s, i64 r, i64 i) {
  return r % s.weight_rows * s.weight_step + i / s.weight_inner;
}

extern "C" __global__ void norm(T* y, T* means, T* vars, const T* x, const T* weight, const T* bias, Norm s, double eps,
                                i64 centred) {
  for (i64 r = blockIdx.x; r < s.rows; r += gridDim.x) {
    W mean = 0, var = 0;
    if (centred) {
      for (i64 i = threadIdx.x; i < s.n; i += blockDim.x) mean += up(x[place(s, r, i)]);
      mean = block_total<Sum>(mean) / W(s.n);
    }
    for (i64 i = threadIdx.x; i < s.n; i += blockDim.x) {
      W d = up(x[place(s, r, i)]) - mean;
      var += d * d;
    }
    var = block_total<Sum>(var) / W(s.n);
    W rstd = rsqrt(var + W(eps));
    for (i64 i = threadIdx.x; i < s.n; i += blockDim.x) {
      i64 at = place(s, r, i), k = weight_of(s, r, i);
      W out = (up(x[at]) - mean) * rstd;
      if (weight) out *= up(weight[k]);
      if (bias) out += up(bias[k]);
      y[at] = Of<T>::down(out);
    }
    if (threadIdx.x == 0) {
      if (centred) means[r] = Of<T>::down(mean);
      vars[r] = Of<T>::down(var);
    }
  }
}

// gx (or none), and where a row has one weight, the gradients of weight and bias
extern "C" __global__ void norm_grad(T* gx, T* gw, T* gb, const T* g, const T* x, const T* weight, const T* means,
                                     const T* vars, Norm s, double eps) {
  for (i64 r = blockIdx.x; r < s.rows; r += gridDim.x) {
    W mean = means ? up(means[r]) : W(0), rstd = rsqrt(up(vars[r]) + W(eps)), sum = 0, product = 0;
    for (i64 i = threadIdx.x; i < s.n; i += blockDim.x) {
      i64 at = place(s, r, i);
      W a = up(g[at]);
      if (weight && !gw) a *= up(weight[weight_of(s, r, i)]);
      sum += a;
      product += a * (up(x[at]) - mean) * rstd;
    }
    sum = block_total<Sum>(sum);
    product = block_total<Sum>(product);
    W own = 1;
    if (gw) {  // one weight for the row: g's sums are the gradients
      if (threadIdx.x == 0) { gw[r] = Of<T>::down(product); if (gb) gb[r] = Of<T>::down(sum); }
      if (weight) own = up(weight[weight_of(s, r, 0)]);
    }
    if (!gx) continue;
    W mean_sum = means ? sum / W(s.n) : W(0), mean_product = product / W(s.n);
    for (i64 i = threadIdx.x; i < s.n; i += blockDim.x) {
      i64 at = place(s, r, i);
      W a = up(g[at]);
      if (weight && !gw) a *= up(weight[weight_of(s, r, i)]);
      gx[at] = Of<T>::down((a - mean_sum - (up(x[at]) - mean) * rstd * mean_product) * rstd * own);
    }
  }
}
