// What Muon does around its products, for all parameters in one launch each. A row of the table has the addresses of parameter,
// gradient and momentum; those of the matrix in bfloat16 and of another, which iterations write in turn (or the same twice);
// those of two squares; its rows and columns; its first tiles (newton_schulz.cu); the number of elements, the first block.

#define MATRIX(k) (reinterpret_cast<bf16*>(span.row[3 + (k)]))

// the momentum, and the matrix that is to become orthogonal; parts: the sum of its squares, for each block
extern "C" __global__ void muon_momentum(const i64* table, i64 tensors, i64 width, Numbers numbers, const float* skip,
                                         float* parts) {
  if (skip && *skip != 0) return;
  Span span = span_of(table, tensors, width);
  T *gs = TENSOR(1), *ms = TENSOR(2);
  bf16* xs = MATRIX(0);
  W momentum = N(0), rest = N(1);
  bool nesterov = N(2) != 0;
  float sum = 0;
  EACH(i) {
    W g = up(gs[i]), m = up(ms[i]);
    ms[i] = Of<T>::down(m + rest * (g - m));
    m = up(ms[i]);
    xs[i] = Of<bf16>::down(float(up(Of<T>::down(nesterov ? g + momentum * (m - g) : m))));
    float x = up(xs[i]);
    sum += x * x;
  }
  sum = block_total<Sum>(sum);
  if (threadIdx.x == 0) parts[blockIdx.x] = sum;
}

// arrived: a counter that iterations find at 0
extern "C" __global__ void muon_scale(const i64* table, i64 tensors, i64 width, Numbers numbers, const float* skip,
                                      const float* parts, int* arrived) {
  if (skip && *skip != 0) return;
  if (blockIdx.x == 0 && threadIdx.x == 0) *arrived = 0;
  Span span = span_of(table, tensors, width);
  bf16* xs = MATRIX(0);
  i64 first = span.row[width - 1], count = (span.row[width - 2] + CHUNK - 1) / CHUNK;
  float sum = 0;
  for (i64 i = threadIdx.x; i < count; i += blockDim.x) sum += parts[first + i];
  float norm = up(Of<bf16>::down(sqrt(block_total<Sum>(sum)))), least = N(6);
  norm = maximum(norm, least);
  EACH(i) xs[i] = Of<bf16>::down(up(xs[i]) / norm);
}

extern "C" __global__ void muon_step(const i64* table, i64 tensors, i64 width, Numbers numbers, const float* skip) {
  if (skip && *skip != 0) return;
  Span span = span_of(table, tensors, width);
  T* ps = TENSOR(0);
  bf16* xs = MATRIX(i64(N(10)) % 2);
  double rows = double(span.row[7]), columns = double(span.row[8]);
  double ratio = N(5) != 0 ? 0.2 * sqrt(maximum(rows, columns)) : sqrt(maximum(1.0, rows / columns));
  W lr = W(double(N(3)) * ratio), shrink = N(4);
  EACH(i) ps[i] = Of<T>::down(up(ps[i]) * shrink - lr * W(up(xs[i])));
}
