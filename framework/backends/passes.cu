// Passes over floating elements: another dtype, copies, one number everywhere, sums of two; 16 bytes of the
// wider one at a time. T: what is read. float64 does not become 16 bits here, which would round twice.

template <class To, class From> struct Cast {
  static __device__ __forceinline__ To of(From x) { return Of<To>::down(typename Of<To>::Wide(up(x))); }
};
template <class To> struct Cast<To, To> { static __device__ __forceinline__ To of(To x) { return x; } };

template <class To> __device__ __forceinline__ void cast_all(To* out, const T* x, i64 n) {
  constexpr int V = 16 / (sizeof(T) > sizeof(To) ? sizeof(T) : sizeof(To));
  const i64 first = i64(blockIdx.x) * blockDim.x + threadIdx.x, step = i64(gridDim.x) * blockDim.x;
  i64 done = 0;
  if (aligned<T, V>(x) && aligned<To, V>(out)) {
    done = n / V;
#pragma unroll 1
    for (i64 i = first; i < done; i += step) {
      const Pack<T, V> from = pack_at<T, V>(x + i * V);
      Pack<To, V> to;
#pragma unroll
      for (int k = 0; k < V; ++k) to.at[k] = Cast<To, T>::of(from.at[k]);
      put_pack<To, V>(out + i * V, to);
    }
    done *= V;
  }
#pragma unroll 1
  for (i64 i = done + first; i < n; i += step) out[i] = Cast<To, T>::of(x[i]);
}

extern "C" __global__ void cast_to_f(float* out, const T* x, i64 n) { cast_all(out, x, n); }
extern "C" __global__ void cast_to_d(double* out, const T* x, i64 n) { cast_all(out, x, n); }
extern "C" __global__ void cast_to_e(f16* out, const T* x, i64 n) { cast_all(out, x, n); }
extern "C" __global__ void cast_to_E(bf16* out, const T* x, i64 n) { cast_all(out, x, n); }
extern "C" __global__ void fill(T* out, double value, i64 n) {
  const T one = Of<T>::down(typename Of<T>::Wide(value));
  const i64 lead = lead_of(n, out);
  each_pack<T>(n, lead, i64(blockIdx.x) * blockDim.x + threadIdx.x, i64(gridDim.x) * blockDim.x, [&](i64 i, auto width) {
    Pack<T, decltype(width)::is> some;
#pragma unroll
    for (int k = 0; k < decltype(width)::is; ++k) some.at[k] = one;
    put_pack<T, decltype(width)::is>(out + i, some);
  });
}
extern "C" __global__ void add_two(T* out, const T* x, const T* y, i64 n) {
  const i64 lead = lead_of(n, const_cast<const T*>(out), x, y);
  each_pack<T>(n, lead, i64(blockIdx.x) * blockDim.x + threadIdx.x, i64(gridDim.x) * blockDim.x, [&](i64 i, auto width) {
    constexpr int N = decltype(width)::is;
    const Pack<T, N> a = pack_at<T, N>(x + i), b = pack_at<T, N>(y + i);
    Pack<T, N> sum;
#pragma unroll
    for (int k = 0; k < N; ++k) sum.at[k] = Of<T>::down(up(a.at[k]) + up(b.at[k]));
    put_pack<T, N>(out + i, sum);
  });
}
