// Rows of a table by index, and rows added up at their indices. T: elements; W: what is computed in.

// out (n, width) = table (rows, width)[indices]; an index outside raises the flag and gives 0
extern "C" __global__ void take_rows(T* out, const T* table, const i64* indices, i64 n, i64 width, i64 rows, Flag* flag,
                                     i64 where) {
  i64 total = n * width;
  EACH_ELEMENT(i, total) {
    i64 row = i / width, index = indices[row];
    if (index < 0 || index >= rows) {
      if (i == row * width) raise_flag(flag, int(where), index, rows);
      T nothing = {};
      out[i] = nothing;
    } else {
      out[i] = table[index * width + i % width];
    }
  }
}

// sums (rows, width), zeros before, += x (n, width) at indices, in any order; rows of ``padding`` are left out
extern "C" __global__ void add_rows(W* sums, const T* x, const i64* indices, i64 n, i64 width, i64 rows, i64 padding) {
  i64 total = n * width;
  EACH_ELEMENT(i, total) {
    i64 index = indices[i / width];
    if (index >= 0 && index < rows && index != padding) atomicAdd(&sums[index * width + i % width], W(up(x[i])));
  }
}

// the same with the terms of each sum in their order: a block makes 32 columns of a row of the table
extern "C" __global__ void add_rows_in_order(T* sums, const T* x, const i64* indices, i64 n, i64 width, i64 rows,
                                             i64 padding) {
  i64 column = i64(blockIdx.y) * blockDim.x + threadIdx.x;
  for (i64 row = blockIdx.x; row < rows; row += gridDim.x) {
    if (column >= width) continue;
    W sum = 0;
    if (row != padding)
      for (i64 k = 0; k < n; ++k)
        if (indices[k] == row) sum += up(x[k * width + column]);
    sums[row * width + column] = Of<T>::down(sum);
  }
}

// 1 in marks (rows), zeros before, for the rows that are looked up
extern "C" __global__ void mark_rows(unsigned char* marks, const i64* indices, i64 n, i64 rows) {
  EACH_ELEMENT(i, n)
    if (indices[i] >= 0 && indices[i] < rows) marks[indices[i]] = 1;
}

// rows of a table that are marked, and whose p-norm is above ``most``, times what brings it down to that; a block makes a row
extern "C" __global__ void shrink_rows(T* table, const unsigned char* marks, i64 rows, i64 width, double most, double p) {
  for (i64 row = blockIdx.x; row < rows; row += gridDim.x) {
    if (!marks[row]) continue;
    T* xs = table + row * width;
    W norm = 0;
    if (isinf(p)) {
      for (i64 i = threadIdx.x; i < width; i += blockDim.x) norm = maximum(norm, W(fabs(up(xs[i]))));
      norm = block_total<Max>(norm);
    } else {
      for (i64 i = threadIdx.x; i < width; i += blockDim.x) {
        const W size = fabs(up(xs[i]));
        norm += p == 2 ? size * size : pow(size, W(p));
      }
      norm = pow(block_total<Sum>(norm), W(1 / p));
    }
    if (norm > W(most))
      for (i64 i = threadIdx.x; i < width; i += blockDim.x)
        xs[i] = Of<T>::down(up(xs[i]) * (W(most) / (norm + W(1e-7))));
  }
}
