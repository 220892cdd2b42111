// Adafactor's step of matrices, or of batches of them, for all parameters in a few launches. A row of the table has the
// addresses of parameter, gradient, means over rows and over columns (of vectors: the mean of squares, 0), how many rows and
// columns a matrix has, the first row, column and matrix of all, the number of elements, the first block.

struct Matrices { i64 rows, columns, first_row, first_column, first_matrix; };
#define MATRICES(row) (*reinterpret_cast<const Matrices*>((row) + 4))
#define FIRST_ROW 6
#define FIRST_COLUMN 7
#define FIRST_MATRIX 8
#define IS_VECTOR(row) ((row)[3] == 0)

template <class F> __device__ __forceinline__ W warp_total(W x) {
  for (int by = 16; by; by >>= 1) x = F::of(x, __shfl_xor_sync(0xffffffffu, x, by));
  return x;
}

// r = r + weight (mean(g ** 2) - r), a warp for each row
extern "C" __global__ void adafactor_rows(const i64* table, i64 tensors, i64 width, Numbers numbers, const float* skip, i64 all) {
  i64 at = i64(blockIdx.x) * (blockDim.x / 32) + threadIdx.x / 32;
  if (at >= all || (skip && *skip != 0)) return;
  const i64* row = row_of(table, tensors, width, FIRST_ROW, at);
  Matrices m = MATRICES(row);
  at -= m.first_row;
  const T* gs = reinterpret_cast<const T*>(row[1]) + at * m.columns;
  W sum = 0;
  for (i64 i = threadIdx.x & 31; i < m.columns; i += 32) { W g = up(gs[i]); sum += g * g; }
  sum = warp_total<Sum>(sum);
  if ((threadIdx.x & 31) == 0) {
    T* r = reinterpret_cast<T*>(row[2]) + at;
    W before = up(*r);
    *r = Of<T>::down(before + N(1) * (sum / W(m.columns) - before));
  }
}

// c = c + weight (mean(g ** 2) - c): 32 columns a block, whose rows its warps share
extern "C" __global__ void adafactor_columns(const i64* table, i64 tensors, i64 width, Numbers numbers, const float* skip, i64 all) {
  __shared__ W parts[32][33];
  if (skip && *skip != 0) return;
  int lane = threadIdx.x & 31, warp = threadIdx.x >> 5, warps = blockDim.x >> 5;
  i64 at = i64(blockIdx.x) * 32 + lane;
  bool there = at < all;
  const i64* row = row_of(table, tensors, width, FIRST_COLUMN, there ? at : all - 1);
  Matrices m = MATRICES(row);
  at -= m.first_column;
  W sum = 0;
  if (there) {
    i64 matrix = at / m.columns;
    const T* gs = reinterpret_cast<const T*>(row[1]) + matrix * m.rows * m.columns + (at - matrix * m.columns);
    for (i64 i = warp; i < m.rows; i += warps) { W g = up(gs[i * m.columns]); sum += g * g; }
  }
  parts[warp][lane] = sum;
  __syncthreads();
  if (warp || !there) return;
  for (int i = 1; i < warps; ++i) sum += parts[i][lane];
  T* c = reinterpret_cast<T*>(row[3]) + at;
  W before = up(*c);
  *c = Of<T>::down(before + N(1) * (sum / W(m.rows) - before));
}

// the mean of r of each matrix, a warp for each
extern "C" __global__ void adafactor_means(const i64* table, i64 tensors, i64 width, W* means, const float* skip, i64 all) {
  i64 at = i64(blockIdx.x) * (blockDim.x / 32) + threadIdx.x / 32;
  if (at >= all || (skip && *skip != 0)) return;
  const i64* row = row_of(table, tensors, width, FIRST_MATRIX, at);
  Matrices m = MATRICES(row);
  const T* rs = reinterpret_cast<const T*>(row[2]) + (at - m.first_matrix) * m.rows;
  W sum = 0;
  for (i64 i = threadIdx.x & 31; i < m.rows; i += 32) sum += up(rs[i]);
  sum = warp_total<Sum>(sum);
  if ((threadIdx.x & 31) == 0) means[at] = sum / W(m.rows);
}

// the gradient divided by the root of the estimate of its square
__device__ __forceinline__ W scaled(const i64* row, const Matrices& m, const W* means, i64 i, W least) {
  W v;
  if (IS_VECTOR(row)) {
    v = up(reinterpret_cast<const T*>(row[2])[i]);
  } else {
    i64 line, matrix;
    if (row[9] >> 31) { line = i / m.columns; matrix = line / m.rows; }
    else { line = u32(i) / u32(m.columns); matrix = u32(line) / u32(m.rows); }  // division in 32 bits takes a third
    W r = up(reinterpret_cast<const T*>(row[2])[line]);
    W c = up(reinterpret_cast<const T*>(row[3])[i - line * m.columns + matrix * m.columns]);
    v = r * c / maximum(means[m.first_matrix + matrix], least);
  }
  return W(up(reinterpret_cast<const T*>(row[1])[i])) / sqrt(maximum(v, least * least));
}

// sums of squares of the parameter and of the scaled gradient, for each block
extern "C" __global__ void adafactor_squares(const i64* table, i64 tensors, i64 width, Numbers numbers, const float* skip,
                                             double least, const W* means, W* parts) {
  if (skip && *skip != 0) return;
  Span span = span_of(table, tensors, width);
  Matrices m = MATRICES(span.row);
  T *ps = TENSOR(0), *gs = TENSOR(1), *vs = TENSOR(2);
  W of_p = 0, of_u = 0;
  EACH(i) {
    if (IS_VECTOR(span.row)) {
      W g = up(gs[i]), v = up(vs[i]);
      vs[i] = Of<T>::down(v + N(1) * (g * g - v));
    }
    W p = up(ps[i]), u = scaled(span.row, m, means, i, W(least));
    of_p += p * p;
    of_u += u * u;
  }
  of_p = block_total<Sum>(of_p);
  of_u = block_total<Sum>(of_u);
  if (threadIdx.x == 0) {
    parts[2 * i64(blockIdx.x)] = of_p;
    parts[2 * i64(blockIdx.x) + 1] = of_u;
  }
}

// the step length of each tensor, a block for each: max(e2, rms(p)) * rate / max(1, rms(u) / d)
extern "C" __global__ void adafactor_lengths(const i64* table, i64 tensors, i64 width, Numbers numbers, const float* skip,
                                             const W* parts, i64 blocks, W* lengths) {
  if (skip && *skip != 0) return;
  const i64* row = table + blockIdx.x * width;
  i64 end = i64(blockIdx.x) + 1 < tensors ? row[2 * width - 1] : blocks;
  W of_p = 0, of_u = 0;
  for (i64 i = row[width - 1] + threadIdx.x; i < end; i += blockDim.x) {
    of_p += parts[2 * i];
    of_u += parts[2 * i + 1];
  }
  of_p = block_total<Sum>(of_p);
  of_u = block_total<Sum>(of_u);
  if (threadIdx.x == 0) {
    W n = W(row[width - 2]), size = sqrt(of_p / n), change = sqrt(of_u / n) / N(5);  // nan counts as the least
    lengths[blockIdx.x] = (size > N(2) ? size : N(2)) * N(3) / (change > 1 ? change : W(1));
  }
}

extern "C" __global__ void adafactor_step(const i64* table, i64 tensors, i64 width, Numbers numbers, const float* skip,
                                          double least, const W* means, const W* lengths) {
  if (skip && *skip != 0) return;
  Span span = span_of(table, tensors, width);
  Matrices m = MATRICES(span.row);
  T* ps = TENSOR(0);
  W length = lengths[(span.row - table) / width], shrink = N(4);
  if (N(0) != 0) length = -length;
  EACH(i) ps[i] = Of<T>::down(up(ps[i]) * shrink - length * scaled(span.row, m, means, i, W(least)));
}
