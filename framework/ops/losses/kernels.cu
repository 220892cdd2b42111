// Cross entropy of scores (N, C, M) and classes (N, M): a block makes a row of C scores. T: elements; W: computed in.

struct Row { i64 at, target; W share; bool counts; };

__device__ __forceinline__ Row row_of(i64 row, const i64* target, const T* weight, i64 classes, i64 inner, i64 ignore,
                                      Flag* flag, i64 where) {
  Row r;
  r.at = row / inner * classes * inner + row % inner;
  r.target = target[row];
  bool inside = r.target >= 0 && r.target < classes;
  r.counts = r.target != ignore && inside;
  if (r.target != ignore && !inside && threadIdx.x == 0) raise_flag(flag, int(where), r.target, classes);
  r.share = r.counts ? (weight ? up(weight[r.target]) : W(1)) : W(0);
  return r;
}

// f(c, Width<N>()) for N classes from c on, whose scores lie side by side: 16 bytes at a time where each row's do so
template <class F> __device__ __forceinline__ void each_class(i64 classes, i64 inner, i64 lead, F f) {
  if (inner == 1) each_pack<T>(classes, lead, threadIdx.x, blockDim.x, f);
  else
#pragma unroll 1
    for (i64 c = threadIdx.x; c < classes; c += blockDim.x) f(c, Width<1>());
}
__device__ __forceinline__ W weight_of(const T* weight, i64 c) { return weight ? up(weight[c]) : W(1); }

// loss, and the largest score and the sum of exponentials of each row, for backward
extern "C" __global__ void cross_entropy(T* loss, T* tops, T* totals, const T* x, const i64* target, const T* weight,
                                         i64 classes, i64 inner, i64 rows, i64 ignore, double smoothing, i64 reduction,
                                         W* parts, int* tickets, Flag* flag, i64 where) {
  __shared__ int last;
  for (i64 row = blockIdx.x; row < rows; row += gridDim.x) {
    Row r = row_of(row, target, weight, classes, inner, ignore, flag, where);
    const T* scores = x + r.at;
    const i64 lead = lead_of<T>(classes, scores);
    W top = -infinity<W>();
    each_class(classes, inner, lead, [&](i64 c, auto width) {
      constexpr int N = decltype(width)::is;
      const Pack<T, N> some = pack_at<T, N>(scores + c * inner);
#pragma unroll
      for (int k = 0; k < N; ++k) top = maximum(top, W(up(some.at[k])));
    });
    top = block_total<Max>(top);
    W sum = 0, weights = 0, weighted = 0;
    each_class(classes, inner, lead, [&](i64 c, auto width) {
      constexpr int N = decltype(width)::is;
      const Pack<T, N> some = pack_at<T, N>(scores + c * inner);
#pragma unroll
      for (int k = 0; k < N; ++k) {
        const W shifted = up(some.at[k]) - top;
        sum += exp(shifted);
        if (smoothing != 0) {
          const W w = weight_of(weight, c + k);
          weights += w;
          weighted += shifted * w;
        }
      }
    });
    sum = block_total<Sum>(sum);
    if (smoothing != 0) { weights = block_total<Sum>(weights); weighted = block_total<Sum>(weighted); }
    if (threadIdx.x == 0) {
      W log_sum = log(sum), one = 0;
      if (r.counts) {
        one = (log_sum - (up(scores[r.target * inner]) - top)) * r.share;
        if (smoothing != 0)
          one = one * W(1 - smoothing) + (log_sum * weights - weighted) * W(smoothing / double(classes));
      }
      tops[row] = Of<T>::down(top);
      totals[row] = Of<T>::down(sum);
      if (reduction == 0) loss[row] = Of<T>::down(one);
      else { parts[row] = one; parts[rows + row] = r.share; }
    }
  }
  if (reduction == 0) return;
  __threadfence();
  __syncthreads();
  if (threadIdx.x == 0) last = atomicAdd(tickets, 1) == int(gridDim.x) - 1;
  __syncthreads();
  if (!last) return;
  __threadfence();
  W sum = 0, shares = 0;  // the block that ends last adds up, always in the same order
  for (i64 row = threadIdx.x; row < rows; row += blockDim.x) { sum += parts[row]; shares += parts[rows + row]; }
  sum = block_total<Sum>(sum);
  shares = block_total<Sum>(shares);
  if (threadIdx.x == 0) {
    loss[0] = Of<T>::down(reduction == 2 ? sum / shares : sum);
    tickets[0] = 0;
  }
}

// what all targets count together, for the mean; one block
extern "C" __global__ void __launch_bounds__(1024)
target_shares(W* out, const i64* target, const T* weight, i64 classes, i64 inner, i64 rows, i64 ignore) {
  W sum = 0;
  for (i64 row = threadIdx.x; row < rows; row += blockDim.x) {
    i64 t = target[row];
    if (t != ignore && t >= 0 && t < classes) sum += weight ? up(weight[t]) : W(1);
  }
  sum = block_total<Sum>(sum);
  if (threadIdx.x == 0) out[0] = sum;
}

extern "C" __global__ void cross_entropy_grad(T* out, const T* g, const T* x, const i64* target, const T* weight,
                                              const T* tops, const T* totals, const W* shares, i64 classes, i64 inner,
                                              i64 rows, i64 ignore, double smoothing, i64 each) {
  for (i64 row = blockIdx.x; row < rows; row += gridDim.x) {
    Row r = row_of(row, target, weight, classes, inner, ignore, nullptr, 0);
    W scale = r.counts ? W(up(g[each ? row : 0])) : W(0), even = W(smoothing / double(classes)), weights = 0;
    if (shares && r.counts) scale /= shares[0];
    if (smoothing != 0) {
      for (i64 c = threadIdx.x; c < classes; c += blockDim.x) weights += weight_of(weight, c);
      weights = block_total<Sum>(weights);
    }
    W own = r.share * W(1 - smoothing), top = up(tops[row]);
    W factor = scale * (own + even * weights) / up(totals[row]);
    each_class(classes, inner, lead_of<T>(classes, out + r.at, x + r.at), [&](i64 c, auto width) {
      constexpr int N = decltype(width)::is;
      Pack<T, N> some = pack_at<T, N>(x + r.at + c * inner);
#pragma unroll
      for (int k = 0; k < N; ++k) {
        W got = 0;
        if (r.counts) {
          got = exp(up(some.at[k]) - top) * factor;
          if (smoothing != 0) got -= weight_of(weight, c + k) * scale * even;
          if (c + k == r.target) got -= scale * own;
        }
        some.at[k] = Of<T>::down(got);
      }
      put_pack<T, N>(out + r.at + c * inner, some);
    });
  }
}

// out (N, M) = x (N, C, M) at the classes of target, 0 where that is none or ``ignore`` (if it counts)
extern "C" __global__ void pick_class(T* out, const T* x, const i64* target, i64 classes, i64 inner, i64 rows, i64 ignores,
                                      i64 ignore) {
  EACH_ELEMENT(row, rows) {
    i64 c = target[row];
    bool counts = c >= 0 && c < classes && !(ignores && c == ignore);
    T nothing = {};
    out[row] = counts ? x[(row / inner * classes + c) * inner + row % inner] : nothing;
  }
}

// its transpose: out (N, C, M) = x (N, M) at the classes of target, 0 elsewhere
extern "C" __global__ void put_class(T* out, const T* x, const i64* target, i64 classes, i64 inner, i64 rows, i64 ignores,
                                     i64 ignore) {
  i64 total = rows * classes;
  EACH_ELEMENT(i, total) {
    i64 row = i / inner / classes * inner + i % inner, c = target[row];
    bool here = c == i / inner % classes && !(ignores && c == ignore);
    T nothing = {};
    out[i] = here ? x[row] : nothing;
  }
}

// what each target counts: the weight of its class, or 1; 0 where it is ``ignore`` (if that counts) or no class
extern "C" __global__ void class_shares(T* out, const i64* target, const T* weight, i64 classes, i64 rows, i64 ignores,
                                        i64 ignore) {
  EACH_ELEMENT(row, rows) {
    i64 c = target[row];
    bool counts = c >= 0 && c < classes && !(ignores && c == ignore);
    out[row] = Of<T>::down(!counts ? W(0) : weight ? W(up(weight[c])) : W(1));
  }
}
