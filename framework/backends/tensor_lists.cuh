// Lists of tensors in one launch. A row of the table is a tensor, or several of one shape: their addresses, the number of
// elements, and the first block that works on them. A block takes CHUNK elements.

#define CHUNK 4096  // elements that a block takes

struct Span { const i64* row; i64 from, to; };

// the last row whose number in a column is not above ``at``
__device__ __forceinline__ const i64* row_of(const i64* table, i64 tensors, i64 width, i64 column, i64 at) {
  i64 low = 0, high = tensors - 1;
  while (low < high) {
    i64 middle = (low + high + 1) / 2;
    if (table[middle * width + column] <= at) low = middle; else high = middle - 1;
  }
  return table + low * width;
}

__device__ __forceinline__ Span span_of(const i64* table, i64 tensors, i64 width) {
  i64 block = blockIdx.x;
  const i64* row = row_of(table, tensors, width, width - 1, block);
  i64 size = row[width - 2], from = (block - row[width - 1]) * CHUNK;
  Span span = {row, from, from + CHUNK < size ? from + CHUNK : size};
  return span;
}

#define EACH(i) for (i64 i = span.from + threadIdx.x; i < span.to; i += blockDim.x)
#define TENSOR(k) reinterpret_cast<T*>(span.row[k])

// The elements that a block takes of the K tensors of a row, 16 bytes at a time where all lie so: f(x) is given one of each in
// W, and what it leaves in those that the bits of WRITTEN name is written. A tensor may be null: its element is 0.
template <int K, int WRITTEN, class F> __device__ __forceinline__ void each_of(const Span& span, T* const (&at)[K], F f) {
  const i64 n = span.to - span.from;
  bool packs = true;
#pragma unroll
  for (int j = 0; j < K; ++j) packs = packs && aligned<T, 16 / sizeof(T)>(at[j]);
  each_pack<T>(n, packs ? 0 : n, threadIdx.x, blockDim.x, [&](i64 i, auto width) {
    constexpr int N = decltype(width)::is;
    Pack<T, N> some[K] = {};
#pragma unroll
    for (int j = 0; j < K; ++j)
      if (at[j]) some[j] = pack_at<T, N>(at[j] + span.from + i);
#pragma unroll
    for (int k = 0; k < N; ++k) {
      W x[K];
#pragma unroll
      for (int j = 0; j < K; ++j) x[j] = up(some[j].at[k]);
      f(x);
#pragma unroll
      for (int j = 0; j < K; ++j)
        if (WRITTEN >> j & 1) some[j].at[k] = Of<T>::down(x[j]);
    }
#pragma unroll
    for (int j = 0; j < K; ++j)
      if ((WRITTEN >> j & 1) && at[j]) put_pack<T, N>(at[j] + span.from + i, some[j]);
  });
}

// Numbers of a step by their place. ``there``: null, or where they lie, for steps that are recorded and done again with others.
struct Numbers { double at[24]; const double* there; };
#define N(i) W(numbers.there ? numbers.there[i] : numbers.at[i])
