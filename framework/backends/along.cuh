// An index that names positions along one dimension: its element i belongs to the place of i with index[i] there.
// size: of the index (n elements); stride: of the array that it points into, which is ``length`` long there.
struct Along { i64 dims, dim, n, length; i64 size[8], stride[8]; };

// the place of element i in the array; -1 where the index points outside, of which others have told
__device__ __forceinline__ i64 place_along(const Along& a, const i64* index, i64 i) {
  const i64 position = index[i];
  if (position < 0 || position >= a.length) return -1;
  i64 place = position * a.stride[a.dim];
#pragma unroll 1
  for (i64 d = a.dims - 1; d >= 0; --d) {
    if (d != a.dim) place += i % a.size[d] * a.stride[d];
    i /= a.size[d];
  }
  return place;
}
