// The norm of all elements of a list of tensors, and their product with what brings it down to ``most``.

extern "C" __global__ void norm_of_all(T* total, const i64* table, i64 tensors, i64 width, W* parts, int* tickets) {
  __shared__ int last;
  Span span = span_of(table, tensors, width);
  const T* xs = TENSOR(0);
  W sum = 0;
  EACH(i) { W x = up(xs[i]); sum += x * x; }
  sum = block_total<Sum>(sum);
  if (threadIdx.x == 0) parts[blockIdx.x] = sum;
  __threadfence();
  __syncthreads();
  if (threadIdx.x == 0) last = atomicAdd(tickets, 1) == int(gridDim.x) - 1;
  __syncthreads();
  if (!last) return;
  __threadfence();
  sum = 0;  // the block that ends last adds up, always in the same order
  for (i64 i = threadIdx.x; i < gridDim.x; i += blockDim.x) sum += parts[i];
  sum = block_total<Sum>(sum);
  if (threadIdx.x == 0) {
    total[0] = Of<T>::down(sqrt(sum));
    tickets[0] = 0;
  }
}

extern "C" __global__ void scale_all(const i64* table, i64 tensors, i64 width, const T* total, double most) {
  Span span = span_of(table, tensors, width);
  T* xs = TENSOR(0);
  W factor = minimum(W(W(most) / (up(total[0]) + W(1e-6))), W(1));
  EACH(i) xs[i] = Of<T>::down(up(xs[i]) * factor);
}
