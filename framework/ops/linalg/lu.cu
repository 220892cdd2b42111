// LU factorisation with row exchanges, some columns at a time. T: elements, computed in themselves. Matrices are (m, n).

// The columns from ``from`` to ``to`` of the rows below ``from``: a block makes a matrix. Rows are exchanged as a whole.
extern "C" __global__ void lu_columns(T* packed, int* pivots, i64* order, i64 m, i64 n, i64 from, i64 to, i64 pivot) {
  __shared__ T sizes[1024];
  __shared__ i64 places[1024];
  T* a = packed + blockIdx.x * m * n;
  pivots += blockIdx.x * (m < n ? m : n), order += blockIdx.x * m;
  const i64 t = threadIdx.x, step = blockDim.x, lane = t % 32, warp = t / 32, warps = step / 32;
  if (from == 0)
    for (i64 r = t; r < m; r += step) order[r] = r;
  for (i64 i = from; i < to; ++i) {
    T most = -1;
    i64 best = i;
    for (i64 r = i + t; pivot && r < m; r += step) {
      T size = fabs(a[r * n + i]);
      if (size != size) size = infinity<T>();
      if (size > most) most = size, best = r;
    }
    sizes[t] = most, places[t] = best;
    __syncthreads();
    for (i64 by = step / 2; by; by /= 2) {  // the first of the largest
      if (t < by && (sizes[t + by] > sizes[t] || (sizes[t + by] == sizes[t] && places[t + by] < places[t])))
        sizes[t] = sizes[t + by], places[t] = places[t + by];
      __syncthreads();
    }
    best = places[0];
    if (t == 0) {
      const i64 kept = order[i];
      order[i] = order[best], order[best] = kept;
      pivots[i] = int(best + 1);
    }
    for (i64 c = t; best != i && c < n; c += step) {
      const T kept = a[i * n + c];
      a[i * n + c] = a[best * n + c], a[best * n + c] = kept;
    }
    __syncthreads();
    const T top = a[i * n + i], divisor = top == 0 ? T(1) : top;
    for (i64 r = i + 1 + warp; r < m; r += warps) {
      const T factor = a[r * n + i] / divisor;
      __syncwarp();
      if (lane == 0) a[r * n + i] = factor;
      for (i64 c = i + 1 + lane; c < to; c += 32) a[r * n + c] -= factor * a[i * n + c];
    }
    __syncthreads();
  }
}

// The rows from ``from`` to ``to`` of the columns behind: what is left of them when the rows above are taken off. A thread
// makes a column.
extern "C" __global__ void lu_rows(T* packed, i64 count, i64 m, i64 n, i64 from, i64 to) {
  const i64 behind = n - to;
  EACH_ELEMENT(j, count * behind) {
    T* a = packed + j / behind * m * n;
    const i64 c = to + j % behind;
    for (i64 r = from + 1; r < to; ++r) {
      T left = a[r * n + c];
      for (i64 s = from; s < r; ++s) left -= a[r * n + s] * a[s * n + c];
      a[r * n + c] = left;
    }
  }
}
