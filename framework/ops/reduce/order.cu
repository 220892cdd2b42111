// Rows of up to MOST elements in order, each by a block in shared memory (K. Batcher's bitonic network, 1968), with the
// places they come from. Equal elements keep their order, so the result is one; nan is the largest.
#define MOST 2048
#define ORDER_THREADS 256

template <class U> __device__ __forceinline__ u64 ordered_whole(U x) { return u64(i64(x)) ^ (U(-1) < U(0) ? 1ull << 63 : 0); }
__device__ __forceinline__ u64 ordered(double x) {  // as numbers without a sign, in the same order
  if (x != x) return ~0ull;
  u64 bits;
  x = x == 0 ? 0.0 : x;  // -0 is 0
  bits = u64(__double_as_longlong(x));
  return bits >> 63 ? ~bits : bits | 1ull << 63;
}
__device__ __forceinline__ u64 ordered(float x) { return ordered(double(x)); }
template <class U> __device__ __forceinline__ u64 ordered(U x) { return ordered_whole(x); }

// values and places (rows, take) of x (outer, n, inner): from place ``from`` of the order on
extern "C" __global__ void order_rows(T* values, i64* places, const T* x, i64 n, i64 inner, i64 rows, i64 from, i64 take,
                                      i64 descending) {
  __shared__ u64 keys[MOST];
  __shared__ unsigned short where[MOST];
  int size = 1;
  while (size < n) size *= 2;
  for (i64 row = blockIdx.x; row < rows; row += gridDim.x) {
    const i64 start = row / inner * n * inner + row % inner;
    for (int i = threadIdx.x; i < size; i += blockDim.x) {
      u64 key = ~0ull;  // what is behind the end comes last, as its place says
      if (i < n) key = ordered(up(x[start + i * inner]));
      keys[i] = i < n && descending ? ~key : key;
      where[i] = (unsigned short)i;
    }
    __syncthreads();
    for (int length = 2; length <= size; length *= 2)
      for (int step = length / 2; step; step /= 2) {
        for (int pair = threadIdx.x; pair < size / 2; pair += blockDim.x) {
          const int i = pair / step * 2 * step + pair % step, j = i + step;
          const bool rises = (i & length) == 0, later = keys[i] > keys[j] || (keys[i] == keys[j] && where[i] > where[j]);
          if (later == rises) {
            const u64 key = keys[i];
            const unsigned short place = where[i];
            keys[i] = keys[j], where[i] = where[j];
            keys[j] = key, where[j] = place;
          }
        }
        __syncthreads();
      }
    for (i64 k = threadIdx.x; k < take; k += blockDim.x) {
      const i64 at = row / inner * take * inner + k * inner + row % inner, place = where[from + k];
      values[at] = x[start + place * inner];
      places[at] = place;
    }
    __syncthreads();
  }
}
