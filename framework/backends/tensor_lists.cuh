// Lists of tensors in one launch. A row of the table is a tensor, or several of one shape: their addresses, the number of
// elements, and the first block that works on them. A block takes CHUNK elements.

#define CHUNK 4096  // elements that a block takes

struct Span { const i64* row; i64 from, to; };

__device__ __forceinline__ Span span_of(const i64* table, i64 tensors, i64 width) {
  i64 low = 0, high = tensors - 1, block = blockIdx.x;
  while (low < high) {
    i64 middle = (low + high + 1) / 2;
    if (table[middle * width + width - 1] <= block) low = middle; else high = middle - 1;
  }
  const i64* row = table + low * width;
  i64 size = row[width - 2], from = (block - row[width - 1]) * CHUNK;
  Span span = {row, from, from + CHUNK < size ? from + CHUNK : size};
  return span;
}

#define EACH(i) for (i64 i = span.from + threadIdx.x; i < span.to; i += blockDim.x)
#define TENSOR(k) reinterpret_cast<T*>(span.row[k])
