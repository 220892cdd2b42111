// Matrices of cofactors, also of singular matrices, a block for each. T: elements; everything is computed in double.
//
// With rows and columns exchanged, largest element first, Gauss and Jordan's steps for all columns but the last make of a
// matrix B the product E B = [I u; 0 d]. Then adj(B) = p [d I, -u; 0, 1] E with the product p of the pivots: nothing is divided
// by d.
extern "C" __global__ void cofactors(T* out, double* room, i64* orders, const T* x, i64 n) {
  __shared__ double sizes[256];
  __shared__ i64 places[256];
  double* a = room + blockIdx.x * n * n;  // E's columns take the place of those that are done
  i64 *rows = orders + blockIdx.x * 2 * n, *columns = rows + n;
  x += blockIdx.x * n * n, out += blockIdx.x * n * n;
  const i64 t = threadIdx.x, step = blockDim.x, lane = t % 32, warp = t / 32, warps = step / 32;
  for (i64 i = t; i < n * n; i += step) a[i] = up(x[i]);
  for (i64 i = t; i < n; i += step) rows[i] = columns[i] = i;
  __syncthreads();
  double product = 1;
  for (i64 k = 0; k + 1 < n && product != 0; ++k) {
    const i64 left = n - k;
    double most = -1;
    i64 best = 0;
    for (i64 i = t; i < left * left; i += step) {
      const double size = fabs(a[(k + i / left) * n + k + i % left]);
      if (size > most || size != size) most = size != size ? infinity<double>() : size, best = i;
    }
    sizes[t] = most, places[t] = best;
    __syncthreads();
    for (i64 by = step / 2; by; by /= 2) {
      if (t < by && (sizes[t + by] > sizes[t] || (sizes[t + by] == sizes[t] && places[t + by] < places[t])))
        sizes[t] = sizes[t + by], places[t] = places[t + by];
      __syncthreads();
    }
    const i64 row = k + places[0] / left, column = k + places[0] % left;
    if (t == 0) {
      const i64 kept_row = rows[k], kept_column = columns[k];
      rows[k] = rows[row], rows[row] = kept_row;
      columns[k] = columns[column], columns[column] = kept_column;
    }
    for (i64 c = t; row != k && c < n; c += step) {
      const double kept = a[k * n + c];
      a[k * n + c] = a[row * n + c], a[row * n + c] = kept;
    }
    __syncthreads();
    for (i64 r = t; column != k && r < n; r += step) {
      const double kept = a[r * n + k];
      a[r * n + k] = a[r * n + column], a[r * n + column] = kept;
    }
    __syncthreads();
    const double pivot = a[k * n + k];
    product *= (row == k) == (column == k) ? pivot : -pivot;
    if (pivot == 0) break;  // the rank is below n - 1
    __syncthreads();
    for (i64 c = t; c < n; c += step) a[k * n + c] = c == k ? 1 / pivot : a[k * n + c] / pivot;
    __syncthreads();
    for (i64 r = warp; r < n; r += warps) {
      if (r == k) continue;
      const double factor = a[r * n + k];
      __syncwarp();
      for (i64 c = lane; c < n; c += 32) a[r * n + c] = (c == k ? 0.0 : a[r * n + c]) - factor * a[k * n + c];
    }
    __syncthreads();
  }
  const i64 end = n - 1;
  const double d = a[end * n + end];
  for (i64 at = t; at < n * n; at += step) {
    const i64 i = at / n, j = at % n;  // adj(B) at (j, i)
    const double own = i == end ? 0.0 : a[j * n + i], last = i == end ? 1.0 : a[end * n + i];
    const double found = j == end ? last : d * own - a[j * n + end] * last;
    out[rows[i] * n + columns[j]] = Of<T>::down(W(product == 0 ? 0.0 : product * found));
  }
}
