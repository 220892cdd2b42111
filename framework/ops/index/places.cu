// Elements at places that index arrays name. T: elements, moved as they are, by their size.

// x is (outer, the sizes of the dimensions that are indexed, inner); index (dims, n); negative positions count from the end
struct Places { i64 outer, n, inner, dims; i64 size[4]; };

// the number of place j among those of the indexed dimensions; -1 behind a position outside, which raises the flag
__device__ __forceinline__ i64 place_of(const Places& p, const i64* index, i64 j, Flag* flag, i64 where) {
  i64 place = 0;
  for (i64 k = 0; k < p.dims; ++k) {
    i64 given = index[k * p.n + j], at = given < 0 ? given + p.size[k] : given;
    if (at < 0 || at >= p.size[k]) {
      raise_flag(flag, int(where + k), given, p.size[k]);
      return -1;
    }
    place = place * p.size[k] + at;
  }
  return place;
}
__device__ __forceinline__ i64 all_places(const Places& p) {
  i64 n = 1;
  for (i64 k = 0; k < p.dims; ++k) n *= p.size[k];
  return n;
}

// out (outer, n, inner) = x at the places; 0 where a position is outside
extern "C" __global__ void take_at(T* out, const T* x, const i64* index, Places p, Flag* flag, i64 where) {
  i64 total = p.outer * p.n * p.inner, all = all_places(p);
  EACH_ELEMENT(i, total) {
    i64 j = i / p.inner % p.n, place = place_of(p, index, j, flag, where);
    out[i] = place < 0 ? T(0) : x[(i / p.inner / p.n * all + place) * p.inner + i % p.inner];
  }
}

// x at the places = value (outer, n, inner), or one element for all; nothing is written where a position is outside
extern "C" __global__ void put_at(T* x, const T* value, i64 one, const i64* index, Places p, Flag* flag, i64 where) {
  i64 total = p.outer * p.n * p.inner, all = all_places(p);
  EACH_ELEMENT(i, total) {
    i64 j = i / p.inner % p.n, place = place_of(p, index, j, flag, where);
    if (place >= 0) x[(i / p.inner / p.n * all + place) * p.inner + i % p.inner] = value[one ? 0 : i];
  }
}

// out = x at the places that an index names along a dimension; 0 where it points outside
extern "C" __global__ void gather_along(T* out, const T* x, const i64* index, Along a) {
  EACH_ELEMENT(i, a.n) {
    const i64 place = place_along(a, index, i);
    out[i] = place < 0 ? T(0) : x[place];
  }
}

// x at these places = src, or where that is null ``one``
extern "C" __global__ void scatter_along(T* x, const T* src, T one, const i64* index, Along a) {
  EACH_ELEMENT(i, a.n) {
    const i64 place = place_along(a, index, i);
    if (place >= 0) x[place] = src ? src[i] : one;
  }
}
