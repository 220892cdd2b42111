// Running sums, products and extremes (`scan.cuh`).
struct RunningProduct : RunningSum {
  static __device__ __forceinline__ W joined(W a, W b) { return a * b; }
};
struct Extreme { W value; i64 place; };
// of equal ones the last; the first nan stays, at the place of the last nan
struct RunningMax {
  typedef Extreme State;
  static __device__ __forceinline__ Extreme of(W x, i64 i) { Extreme e = {x, i}; return e; }
  static __device__ __forceinline__ Extreme joined(Extreme a, Extreme b) {
    return b.value != b.value || (a.value == a.value && b.value >= a.value) ? b : a;
  }
  static __device__ __forceinline__ W value(Extreme a) { return a.value; }
  static __device__ __forceinline__ i64 place(Extreme a) { return a.place; }
};
struct RunningMin : RunningMax {
  static __device__ __forceinline__ Extreme joined(Extreme a, Extreme b) {
    return b.value != b.value || (a.value == a.value && b.value <= a.value) ? b : a;
  }
};

extern "C" __global__ void cumsum(T* out, i64* places, const T* x, i64 n, i64 inner, i64 rows, i64 reverse) {
  const Running<RunningSum> running = {out, places, x};
  scan_of(running, n, inner, rows, reverse != 0);
}
extern "C" __global__ void cumprod(T* out, i64* places, const T* x, i64 n, i64 inner, i64 rows, i64 reverse) {
  const Running<RunningProduct> running = {out, places, x};
  scan_of(running, n, inner, rows, reverse != 0);
}
extern "C" __global__ void cummax(T* out, i64* places, const T* x, i64 n, i64 inner, i64 rows, i64 reverse) {
  const Running<RunningMax> running = {out, places, x};
  scan_of(running, n, inner, rows, reverse != 0);
}
extern "C" __global__ void cummin(T* out, i64* places, const T* x, i64 n, i64 inner, i64 rows, i64 reverse) {
  const Running<RunningMin> running = {out, places, x};
  scan_of(running, n, inner, rows, reverse != 0);
}
