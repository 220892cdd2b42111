// Symmetric matrices as P L D L' P' by Bunch and Kaufman's pivots, and their systems, a block for each matrix. T: elements,
// computed in themselves. As in ldl.py, step by step.

struct Largest { double size; i64 place; };

// the first of the largest |a[i]|, i from ``from`` to ``to`` in steps of ``step``; nan counts as infinity
__device__ __forceinline__ Largest largest(const T* a, i64 from, i64 to, i64 step, i64 leave) {
  __shared__ double sizes[256];
  __shared__ i64 places[256];
  const i64 t = threadIdx.x;
  double most = -1;
  i64 best = from;
  for (i64 i = from + t; i < to; i += blockDim.x) {
    double size = i == leave ? 0.0 : fabs(double(a[i * step]));
    if (size != size) size = infinity<double>();
    if (size > most) most = size, best = i;
  }
  __syncthreads();
  sizes[t] = most, places[t] = best;
  __syncthreads();
  for (i64 by = blockDim.x / 2; by; by /= 2) {
    if (t < by && (sizes[t + by] > sizes[t] || (sizes[t + by] == sizes[t] && places[t + by] < places[t])))
      sizes[t] = sizes[t + by], places[t] = places[t + by];
    __syncthreads();
  }
  Largest found = {sizes[0] < 0 ? 0 : sizes[0], places[0]};
  return found;
}

__device__ __forceinline__ void exchange(T* a, T* b) {
  const T kept = *a;
  *a = *b, *b = kept;
}

extern "C" __global__ void ldl_factor(T* packed, int* pivots, int* infos, const T* given, T* room, i64 n) {
  const double alpha = (1 + sqrt(17.0)) / 8;  // keeps the growth of elements smallest
  T *a = packed + blockIdx.x * n * n, *kept = room + blockIdx.x * 2 * n;
  given += blockIdx.x * n * n, pivots += blockIdx.x * n;
  const i64 t = threadIdx.x, threads = blockDim.x;
  for (i64 e = t; e < n * n; e += threads) a[e] = e % n <= e / n ? given[e] : given[e % n * n + e / n];
  __syncthreads();
  int info = 0;
  for (i64 k = 0; k < n;) {
    const double own = fabs(double(a[k * n + k]));
    const Largest below = largest(a + k, k + 1, n, n, -1);
    i64 found = k, size = 1;
    if (maximum(own, below.size) == 0 || own != own) size = 0;
    else if (own < alpha * below.size) {
      const i64 far = below.place;
      const double across = largest(a + far * n, k, n, 1, far).size;
      if (own < alpha * below.size * (below.size / across))
        found = far, size = fabs(double(a[far * n + far])) >= alpha * across ? 1 : 2;
    }
    const i64 end = k + (size ? size : 1);
    __syncthreads();
    if (found != end - 1) {
      for (i64 c = k + t; c < n; c += threads) exchange(a + (end - 1) * n + c, a + found * n + c);
      __syncthreads();
      for (i64 r = k + t; r < n; r += threads) exchange(a + r * n + end - 1, a + r * n + found);
      __syncthreads();
    }
    if (size == 1) {
      const T pivot = a[k * n + k];
      for (i64 r = end + t; r < n; r += threads) kept[r] = a[r * n + k], a[r * n + k] /= pivot;
    } else if (size == 2) {
      const T p = a[k * n + k], q = a[(k + 1) * n + k], s = a[(k + 1) * n + k + 1], u = p / q, v = s / q;
      const T by = T(1) / (u * v - T(1));
      for (i64 r = end + t; r < n; r += threads) {
        const T x = a[r * n + k], y = a[r * n + k + 1];
        kept[2 * r] = x, kept[2 * r + 1] = y;
        a[r * n + k] = by * (v * (x / q) - y / q);
        a[r * n + k + 1] = by * (u * (y / q) - x / q);
      }
    } else if (!info) {
      info = int(k + 1);
    }
    __syncthreads();
    const i64 left = n - end;
    for (i64 e = t; size && e < left * left; e += threads) {
      const i64 r = end + e / left, c = end + e % left;
      T sum = a[r * n + k] * kept[size == 2 ? 2 * c : c];
      if (size == 2) sum += a[r * n + k + 1] * kept[2 * c + 1];
      a[r * n + c] -= sum;
    }
    if (t == 0)
      for (i64 i = k; i < end; ++i) pivots[i] = size == 2 ? -int(found + 1) : int(found + 1);
    __syncthreads();
    k = end;
  }
  for (i64 e = t; e < n * n; e += threads)
    if (e % n > e / n) a[e] = 0;
  if (t == 0) infos[blockIdx.x] = info;
}

// x (n, k) of each matrix in place: L, then D, then L', with the exchanges between
extern "C" __global__ void ldl_solve(T* x, const T* packed, const int* pivots, i64 n, i64 k, Flag* flag, i64 where) {
  const T* a = packed + blockIdx.x * n * n;
  x += blockIdx.x * n * k, pivots += blockIdx.x * n;
  for (i64 j = threadIdx.x; j < k; j += blockDim.x) {
    T* b = x + j;
    for (i64 i = 0; i < n;) {
      const i64 size = pivots[i] > 0 ? 1 : 2, end = i + size < n ? i + size : n;
      i64 found = (pivots[i] > 0 ? pivots[i] : -i64(pivots[i])) - 1;
      if (found < i || found >= n) found = end - 1;  // no pivot: somebody's own numbers
      exchange(b + (end - 1) * k, b + found * k);
      for (i64 r = end; r < n; ++r)
        for (i64 c = i; c < end; ++c) b[r * k] -= a[r * n + c] * b[c * k];
      const T p = a[i * n + i];
      if (end - i == 1) {
        if (p == 0) raise_flag(flag, int(where), i, n);
        b[i * k] /= p;
      } else {
        const T q = a[(i + 1) * n + i], s = a[(i + 1) * n + i + 1], d = p * s - q * q;
        if (d == 0) raise_flag(flag, int(where), i, n);
        const T y = b[i * k], z = b[(i + 1) * k], u = p / q, v = s / q, by = T(1) / (u * v - T(1));
        b[i * k] = q == 0 ? y / p : by * (v * (y / q) - z / q);
        b[(i + 1) * k] = q == 0 ? z / s : by * (u * (z / q) - y / q);
      }
      i = end;
    }
    for (i64 i = n; i > 0;) {
      const i64 size = i > 1 && pivots[i - 1] < 0 ? 2 : 1, from = i - size;
      i64 found = (pivots[from] > 0 ? pivots[from] : -i64(pivots[from])) - 1;
      if (found < from || found >= n) found = i - 1;
      for (i64 c = from; c < i; ++c)
        for (i64 r = i; r < n; ++r) b[c * k] -= a[r * n + c] * b[r * k];
      exchange(b + (i - 1) * k, b + found * k);
      i = from;
    }
  }
}
