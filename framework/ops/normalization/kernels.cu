// Norms: y = (x - mean) * rstd * weight + bias, with the moments of each of ``rows`` sets of n elements. A block makes a
// set, 16 bytes at a time where its elements lie so. Element i of row r lies at r * row_step + i / inner * outer + i % inner,
// and the number of its weight is (r % weight_rows) * weight_step + i / weight_inner. T: elements; W: what is computed in,
// and moments are; weights and their gradients are W's where ``wide``, else T's.

struct Norm { i64 rows, n, inner, outer, row_step, weight_rows, weight_step, weight_inner; };

__device__ __forceinline__ i64 place(const Norm& s, i64 r, i64 i) {
  return s.inner == s.n ? r * s.row_step + i : r * s.row_step + i / s.inner * s.outer + i % s.inner;
}
// the elements before the first of a row that begins 16 bytes; all where its pieces do not lie so
__device__ __forceinline__ i64 lead_of_row(const Norm& s, i64 r, const T* a, const T* b, const T* c) {
  constexpr i64 V = 16 / sizeof(T);
  const i64 start = r * s.row_step;
  if (s.inner == s.n) return lead_of<T>(s.n, a + start, b + start, c + start);
  const bool whole = s.inner % V == 0 && s.outer % V == 0 && aligned<T, V>(a + start);
  return whole && lead_of<T>(s.n, a, b, c) < s.n ? 0 : s.n;
}

__device__ __forceinline__ W weight_at(const void* weights, i64 k, i64 wide) {
  return wide ? static_cast<const W*>(weights)[k] : up(static_cast<const T*>(weights)[k]);
}
__device__ __forceinline__ void put_weight(void* weights, i64 k, i64 wide, W value) {
  if (wide) static_cast<W*>(weights)[k] = value;
  else static_cast<T*>(weights)[k] = Of<T>::down(value);
}
template <class A, int N> __device__ __forceinline__ void neighbours(W (&to)[N], const A* weights) {
  if (aligned<A, N>(weights)) {
    const Pack<A, N> found = pack_at<A, N>(weights);
#pragma unroll
    for (int k = 0; k < N; ++k) to[k] = up(found.at[k]);
  } else {
#pragma unroll
    for (int k = 0; k < N; ++k) to[k] = up(weights[k]);
  }
}
// the weights of N neighbours from element i of row r on
template <int N> __device__ __forceinline__ void weights_at(W (&to)[N], const void* weights, const Norm& s, i64 r, i64 i, i64 wide) {
  const i64 first = r % s.weight_rows * s.weight_step;
  if (s.weight_inner == 1) {
    if (wide) neighbours(to, static_cast<const W*>(weights) + first + i);
    else neighbours(to, static_cast<const T*>(weights) + first + i);
    return;
  }
  i64 at = i / s.weight_inner, next = (at + 1) * s.weight_inner - i;
  W here = weight_at(weights, first + at, wide);
#pragma unroll
  for (int k = 0; k < N; ++k) {
    if (k == next) here = weight_at(weights, first + ++at, wide), next += s.weight_inner;
    to[k] = here;
  }
}

#define FAR_FLOAT 7.888609052210118e-31  // 2^-100
#define FAR_DOUBLE 2.409919865102884e-181  // 2^-600

// not `norm`: CUDA's mathematical functions have one
extern "C" __global__ void __launch_bounds__(512)
norm_rows(T* y, W* means, W* vars, const T* x, const void* weight, const void* bias, i64 wide, Norm s, double eps,
          i64 centred) {
  for (i64 r = blockIdx.x; r < s.rows; r += gridDim.x) {
    const i64 lead = lead_of_row(s, r, y, x, x);
    // where sums are beyond W's range, once more of elements that are scaled down, by a power of two
    W mean, var, scale = 1, far = sizeof(W) == 4 ? W(FAR_FLOAT) : W(FAR_DOUBLE);
#pragma unroll 1
    for (;;) {
      mean = var = 0;
#pragma unroll 1
      for (int moment = centred ? 1 : 2; moment <= 2; ++moment) {
        W sum = 0;
        each_pack<T>(s.n, lead, threadIdx.x, blockDim.x, [&](i64 i, auto width) {
          constexpr int N = decltype(width)::is;
          const Pack<T, N> xs = pack_at<T, N>(x + place(s, r, i));
#pragma unroll
          for (int k = 0; k < N; ++k) {
            const W d = up(xs.at[k]) * scale - mean;
            sum += moment == 1 ? d : d * d;
          }
        });
        sum = block_total<Sum>(sum) / W(s.n);
        if (moment == 1) mean = sum;
        else var = sum;
      }
      if (isfinite(var) || scale == far) break;
      scale = far;
    }
    const W rstd = scale != far ? rsqrt(var + W(eps)) : var > 0 ? rsqrt(var) : var;  // eps is nothing beside such elements
    each_pack<T>(s.n, lead, threadIdx.x, blockDim.x, [&](i64 i, auto width) {
      constexpr int N = decltype(width)::is;
      const i64 at = place(s, r, i);
      Pack<T, N> xs = pack_at<T, N>(x + at);
      W out[N], own[N];
#pragma unroll
      for (int k = 0; k < N; ++k) out[k] = (up(xs.at[k]) * scale - mean) * rstd;
      if (weight) {
        weights_at(own, weight, s, r, i, wide);
#pragma unroll
        for (int k = 0; k < N; ++k) out[k] *= own[k];
      }
      if (bias) {
        weights_at(own, bias, s, r, i, wide);
#pragma unroll
        for (int k = 0; k < N; ++k) out[k] += own[k];
      }
#pragma unroll
      for (int k = 0; k < N; ++k) xs.at[k] = Of<T>::down(out[k]);
      put_pack<T, N>(y + at, xs);
    });
    if (threadIdx.x == 0) {
      if (centred) means[r] = mean / scale;
      vars[r] = var / scale / scale;
    }
  }
}

// of N neighbours: the gradients, times their weights if there are such, and how far the elements are from the mean
template <int N> __device__ __forceinline__ void read_both(
    W (&a)[N], W (&d)[N], const T* g, const T* x, const void* weight, const Norm& s, i64 r, i64 i, i64 wide, W mean) {
  const i64 at = place(s, r, i);
  const Pack<T, N> gs = pack_at<T, N>(g + at), xs = pack_at<T, N>(x + at);
#pragma unroll
  for (int k = 0; k < N; ++k) a[k] = up(gs.at[k]), d[k] = up(xs.at[k]) - mean;
  if (!weight) return;
  W own[N];
  weights_at(own, weight, s, r, i, wide);
#pragma unroll
  for (int k = 0; k < N; ++k) a[k] *= own[k];
}

// gx (or none), and where a row has one weight, the gradients of weight and bias
extern "C" __global__ void __launch_bounds__(512, 2)
norm_grad(T* gx, void* gw, void* gb, const T* g, const T* x, const void* weight, i64 wide, const W* means, const W* vars,
          Norm s, double eps) {
  const void* each = gw ? nullptr : weight;  // with one weight for the row g's sums are the gradients
  for (i64 r = blockIdx.x; r < s.rows; r += gridDim.x) {
    const i64 lead = lead_of_row(s, r, gx ? gx : g, g, x);
    const W mean = means ? means[r] : W(0), rstd = rsqrt(vars[r] + W(eps));
    W sum = 0, product = 0;
    each_pack<T>(s.n, lead, threadIdx.x, blockDim.x, [&](i64 i, auto width) {
      constexpr int N = decltype(width)::is;
      W a[N], d[N];
      read_both(a, d, g, x, each, s, r, i, wide, mean);
#pragma unroll
      for (int k = 0; k < N; ++k) sum += a[k], product += a[k] * d[k] * rstd;
    });
    sum = block_total<Sum>(sum);
    product = block_total<Sum>(product);
    W own = 1;
    if (gw) {
      if (threadIdx.x == 0) {
        put_weight(gw, r, wide, product);
        if (gb) put_weight(gb, r, wide, sum);
      }
      if (weight) own = weight_at(weight, r % s.weight_rows * s.weight_step, wide);
    }
    if (!gx) continue;
    const W mean_sum = means ? sum / W(s.n) : W(0), mean_product = product / W(s.n);
    each_pack<T>(s.n, lead, threadIdx.x, blockDim.x, [&](i64 i, auto width) {
      constexpr int N = decltype(width)::is;
      W a[N], d[N];
      read_both(a, d, g, x, each, s, r, i, wide, mean);
      Pack<T, N> out;
#pragma unroll
      for (int k = 0; k < N; ++k) out.at[k] = Of<T>::down((a[k] - mean_sum - d[k] * rstd * mean_product) * rstd * own);
      put_pack<T, N>(gx + place(s, r, i), out);
    });
  }
}

// y = (x - mean) * rsqrt(var + eps) * weight + bias by numbers that are given for each of the channels
extern "C" __global__ void norm_fixed(T* y, const T* x, const void* means, const void* vars, const void* weight,
                                      const void* bias, i64 wide, i64 channels, i64 area, i64 n, double eps) {
  const i64 lead = area % (16 / sizeof(T)) == 0 && lead_of<T>(n, y) == 0 ? lead_of<T>(n, y, x) : n;
  each_pack<T>(n, lead, i64(blockIdx.x) * blockDim.x + threadIdx.x, i64(gridDim.x) * blockDim.x, [&](i64 i, auto width) {
    constexpr int N = decltype(width)::is;
    const i64 c = i / area % channels;
    const W mean = weight_at(means, c, wide), rstd = rsqrt(weight_at(vars, c, wide) + W(eps));
    const W factor = weight ? weight_at(weight, c, wide) : W(1), more = bias ? weight_at(bias, c, wide) : W(0);
    Pack<T, N> xs = pack_at<T, N>(x + i);
#pragma unroll
    for (int k = 0; k < N; ++k) xs.at[k] = Of<T>::down((up(xs.at[k]) - mean) * rstd * factor + more);
    put_pack<T, N>(y + i, xs);
  });
}
