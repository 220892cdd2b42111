// Lists of tensors: the norm of all elements, their product with what brings it down to ``most``, limits of their values,
// averages with another list, copies of one.

// the norm as callers want it, whatever the elements are; kind: the letter of its dtype
__device__ __forceinline__ void put_number(void* at, i64 kind, double x) {
  if (kind == 'd') *static_cast<double*>(at) = x;
  else if (kind == 'f') *static_cast<float*>(at) = float(x);
  else if (kind == 'e') *static_cast<f16*>(at) = Of<f16>::down(float(x));
  else *static_cast<bf16*>(at) = Of<bf16>::down(float(x));
}
__device__ __forceinline__ double number_at(const void* at, i64 kind) {
  if (kind == 'd') return *static_cast<const double*>(at);
  if (kind == 'f') return *static_cast<const float*>(at);
  if (kind == 'e') return up(*static_cast<const f16*>(at));
  return up(*static_cast<const bf16*>(at));
}

// kind of norm: the exponent; infinity, the greatest. parts: of the blocks of all lists together, those of this one from
// ``first`` on.
extern "C" __global__ void norm_of_all(void* total, const i64* table, i64 tensors, i64 width, double* parts, int* tickets,
                                       i64 first, i64 all, double exponent, i64 kind) {
  __shared__ int last;
  Span span = span_of(table, tensors, width);
  T* const at[] = {TENSOR(0)};
  const T* xs = at[0];
  bool greatest = exponent > 1e300;
  W sum = 0;
  if (exponent == 2) {
    each_of<1, 0>(span, at, [&](W (&x)[1]) { sum += x[0] * x[0]; });
  } else if (greatest) {
    each_of<1, 0>(span, at, [&](W (&x)[1]) { sum = maximum(W(fabs(x[0])), sum); });
  } else {
    EACH(i) { W x = fabs(W(up(xs[i]))); sum += exponent == 1 ? x : W(pow(x, W(exponent))); }
  }
  sum = greatest ? block_total<Max>(sum) : block_total<Sum>(sum);
  if (threadIdx.x == 0) parts[first + blockIdx.x] = sum;
  __threadfence();
  __syncthreads();
  if (threadIdx.x == 0) last = atomicAdd(tickets, 1) == int(all) - 1;
  __syncthreads();
  if (!last) return;
  __threadfence();
  double whole = 0;  // the block that ends last adds up, always in the same order
  for (i64 i = threadIdx.x; i < all; i += blockDim.x) whole = greatest ? maximum(parts[i], whole) : whole + parts[i];
  whole = greatest ? block_total<Max>(whole) : block_total<Sum>(whole);
  if (threadIdx.x == 0) {
    put_number(total, kind, greatest || exponent == 1 ? whole : exponent == 2 ? sqrt(whole) : pow(whole, 1 / exponent));
    tickets[0] = 0;
  }
}

extern "C" __global__ void scale_all(const i64* table, i64 tensors, i64 width, const void* total, i64 kind, double most) {
  Span span = span_of(table, tensors, width);
  T* const at[] = {TENSOR(0)};
  const W factor = minimum(W(W(most) / (W(number_at(total, kind)) + W(1e-6))), W(1));
  each_of<1, 1>(span, at, [&](W (&x)[1]) { x[0] *= factor; });
}

extern "C" __global__ void clip_all(const i64* table, i64 tensors, i64 width, double low, double high) {
  Span span = span_of(table, tensors, width);
  T* const at[] = {TENSOR(0)};
  each_of<1, 1>(span, at, [&](W (&x)[1]) { x[0] = x[0] < W(low) ? W(low) : x[0] > W(high) ? W(high) : x[0]; });
}

extern "C" __global__ void lerp_all(const i64* table, i64 tensors, i64 width, double weight) {
  Span span = span_of(table, tensors, width);
  T* const at[] = {TENSOR(0), TENSOR(1)};
  const W share = weight;
  each_of<2, 1>(span, at, [&](W (&x)[2]) { x[0] += share * (x[1] - x[0]); });
}

extern "C" __global__ void copy_all(const i64* table, i64 tensors, i64 width) {  // T is of the size of the elements
  Span span = span_of(table, tensors, width);
  const i64 n = span.to - span.from;
  T *xs = TENSOR(0) + span.from, *ys = TENSOR(1) + span.from;
  each_pack<T>(n, lead_of<T>(n, xs, ys), threadIdx.x, blockDim.x, [&](i64 i, auto width) {
    constexpr int N = decltype(width)::is;
    put_pack<T, N>(xs + i, pack_at<T, N>(ys + i));
  });
}
