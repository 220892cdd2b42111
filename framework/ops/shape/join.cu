// Up to 8 arrays one after another along a dimension. T: elements, of which only the size counts. The result is rows of p.row
// units, in which part k has the columns from p.begin[k] on.
struct Parts { i64 count, row, n; i64 begin[9]; };

template <class U> __device__ __forceinline__ void join_all(U* out, const U* const (&parts)[8], const Parts& p) {
  EACH_ELEMENT(i, p.n) {
    const i64 r = i / p.row, c = i - r * p.row;
    const U* from = parts[0];
    i64 start = 0, end = p.begin[1];
#pragma unroll
    for (int k = 1; k < 8; ++k)
      if (k < p.count && c >= p.begin[k]) from = parts[k], start = p.begin[k], end = p.begin[k + 1];
    out[i] = from[r * (end - start) + c - start];
  }
}

extern "C" __global__ void join(T* out, const T* a, const T* b, const T* c, const T* d, const T* e, const T* f, const T* g,
                                      const T* h, Parts p) {
  const T* const parts[8] = {a, b, c, d, e, f, g, h};
  join_all<T>(out, parts, p);
}
extern "C" __global__ void join_packs(T* out, const T* a, const T* b, const T* c, const T* d, const T* e, const T* f, const T* g,
                                            const T* h, Parts p) {  // units of 16 bytes
  typedef Pack<T, 16 / sizeof(T)> U;
  const U* const parts[8] = {reinterpret_cast<const U*>(a), reinterpret_cast<const U*>(b), reinterpret_cast<const U*>(c),
                             reinterpret_cast<const U*>(d), reinterpret_cast<const U*>(e), reinterpret_cast<const U*>(f),
                             reinterpret_cast<const U*>(g), reinterpret_cast<const U*>(h)};
  join_all<U>(reinterpret_cast<U*>(out), parts, p);
}
