// Losses by margins: a block takes a row of scores. T: elements, float or double. ``wanted`` has room for a byte of each
// score: whether its class is a target.

struct Margins { i64 rows, classes, places, squares, single; double margin; };

// How many targets the row has; marks them.
__device__ __forceinline__ i64 targets_of(const Margins& m, const i64* target, unsigned char* wanted, Flag* flag, i64 where) {
  __shared__ int end;
  __syncthreads();
  if (threadIdx.x == 0) end = int(m.places);
  for (i64 c = threadIdx.x; c < m.classes; c += blockDim.x) wanted[c] = 0;
  __syncthreads();
  if (!m.single)
    for (i64 k = threadIdx.x; k < m.places; k += blockDim.x)
      if (target[k] < 0) atomicMin(&end, int(k));
  __syncthreads();
  for (i64 k = threadIdx.x; k < end; k += blockDim.x) {
    if (target[k] >= 0 && target[k] < m.classes) wanted[target[k]] = 1;
    else if (flag) raise_flag(flag, int(where), target[k], m.classes);
  }
  __syncthreads();
  return end;
}

extern "C" __global__ void margin_losses(T* loss, unsigned char* wanted, const T* x, const i64* target, Margins m, Flag* flag,
                                         i64 where) {
  for (i64 row = blockIdx.x; row < m.rows; row += gridDim.x) {
    const T* scores = x + row * m.classes;
    const i64* classes = target + row * m.places;
    unsigned char* own = wanted + row * m.classes;
    i64 n = targets_of(m, classes, own, flag, where);
    T sum = 0;
    for (i64 k = 0; k < n; ++k) {
      if (classes[k] < 0 || classes[k] >= m.classes) continue;
      T ahead = T(m.margin) - scores[classes[k]];
      for (i64 c = threadIdx.x; c < m.classes; c += blockDim.x) {
        T gap = ahead + scores[c];
        if (!own[c] && !(gap <= 0)) sum += m.squares ? gap * gap : gap;
      }
    }
    sum = block_total<Sum>(sum);
    if (threadIdx.x == 0) loss[row] = sum / T(m.classes);
  }
}

// g: one number for each row, or for all (each = 0), which is divided by ``share``
extern "C" __global__ void margin_grads(T* out, unsigned char* wanted, const T* g, const T* x, const i64* target, Margins m,
                                        i64 each, double share) {
  for (i64 row = blockIdx.x; row < m.rows; row += gridDim.x) {
    const T* scores = x + row * m.classes;
    const i64* classes = target + row * m.places;
    unsigned char* own = wanted + row * m.classes;
    T *to = out + row * m.classes, scale = g[each ? row : 0] / T(share) / T(m.classes);
    for (i64 c = threadIdx.x; c < m.classes; c += blockDim.x) to[c] = 0;
    i64 n = targets_of(m, classes, own, nullptr, 0);
    for (i64 k = 0; k < n; ++k) {
      i64 t = classes[k];
      if (t < 0 || t >= m.classes) continue;
      T ahead = T(m.margin) - scores[t], sum = 0;
      for (i64 c = threadIdx.x; c < m.classes; c += blockDim.x) {
        T gap = ahead + scores[c];
        if (own[c] || !(gap >= 0)) continue;
        T slope = m.squares ? 2 * gap * scale : scale;
        to[c] += slope;
        sum += slope;
      }
      sum = block_total<Sum>(sum);
      if (threadIdx.x == 0) to[t] -= sum;
    }
  }
}
