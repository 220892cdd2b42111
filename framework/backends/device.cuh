// What every kernel of ours begins with: types of elements, packs of 16 bytes, sums over a block. No header of CUDA's is
// needed, so that NVRTC alone compiles it. In the tests the same text is compiled for the CPU (CUDA_ON_CPU).
typedef long long i64;
typedef unsigned long long u64;
typedef unsigned int u32;
struct bf16 { unsigned short bits; };
struct f16 { unsigned short bits; };

__device__ __forceinline__ float up(bf16 x) { return __int_as_float(int(u32(x.bits) << 16)); }
#ifdef CUDA_ON_CPU
inline float up(f16 x) { _Float16 h; __builtin_memcpy(&h, &x, 2); return float(h); }
inline void half_of(float x, f16& y) { _Float16 h = _Float16(x); __builtin_memcpy(&y, &h, 2); }
#define SHARED_MEMORY(type, name) type* name = reinterpret_cast<type*>(cuda_on_cpu_shared())
#else
__device__ __forceinline__ float up(f16 x) { float y; asm("cvt.f32.f16 %0, %1;" : "=f"(y) : "h"(x.bits)); return y; }
__device__ __forceinline__ void half_of(float x, f16& y) { asm("cvt.rn.f16.f32 %0, %1;" : "=h"(y.bits) : "f"(x)); }
#define SHARED_MEMORY(type, name) extern __shared__ __align__(16) unsigned char name##_bytes[]; type* name = reinterpret_cast<type*>(name##_bytes)
#endif
template <class T> __device__ __forceinline__ T up(T x) { return x; }
template <class T> struct Of { typedef T Wide; static __device__ __forceinline__ T down(T x) { return x; } };
template <> struct Of<f16> {
  typedef float Wide;
  static __device__ __forceinline__ f16 down(float x) { f16 y; half_of(x, y); return y; }
};
template <> struct Of<bf16> {
  typedef float Wide;
  static __device__ __forceinline__ bf16 down(float x) {  // to the nearest, ties to even
    u32 u = u32(__float_as_int(x));
    bf16 y;
    y.bits = x != x ? 0x7fff : (unsigned short)((u + 0x7fff + (u >> 16 & 1)) >> 16);
    return y;
  }
};

template <class T, int N> struct __align__(sizeof(T) * N) Pack { T at[N]; };
template <class T, int N> __device__ __forceinline__ bool aligned(const T* p) { return u64(p) % (sizeof(T) * N) == 0; }
template <class T, int N> __device__ __forceinline__ Pack<T, N> pack_at(const T* p) { return *reinterpret_cast<const Pack<T, N>*>(p); }
template <class T, int N> __device__ __forceinline__ void put_pack(T* p, Pack<T, N> x) { *reinterpret_cast<Pack<T, N>*>(p) = x; }

// Each of n things, by the threads of the whole grid. The compiler would make four rounds of the loop into one, and take twice
// as long; most threads go through it once.
#define EACH_ELEMENT(i, n) \
  _Pragma("unroll 1") for (i64 i = i64(blockIdx.x) * blockDim.x + threadIdx.x; i < (n); i += i64(gridDim.x) * blockDim.x)

// Neighbours in memory, 16 bytes at a time: f(i, Width<N>()) is called for N elements from i on, of n that ``step`` threads
// share. lead: how many come before the first that begins 16 bytes; n where that is no use.
template <int n> struct Width { static const int is = n; };
template <class T, class F> __device__ __forceinline__ void each_pack(i64 n, i64 lead, i64 first, i64 step, F f) {
  constexpr int V = 16 / sizeof(T);
  const i64 packs = (n - lead) / V, rest = n - packs * V;
#pragma unroll 1
  for (i64 p = first; p < packs; p += step) f(lead + p * V, Width<V>());
#pragma unroll 1
  for (i64 i = first; i < rest; i += step) f(i < lead ? i : i + packs * V, Width<1>());
}
template <class T> __device__ __forceinline__ i64 lead_of(i64 n, const T* a) {
  const i64 lead = i64((16 - u64(a) % 16) % 16 / sizeof(T));
  return lead < n ? lead : n;
}
template <class T> __device__ __forceinline__ i64 lead_of(i64 n, const T* a, const T* b) {
  return (u64(a) ^ u64(b)) % 16 ? n : lead_of(n, a);
}
template <class T> __device__ __forceinline__ i64 lead_of(i64 n, const T* a, const T* b, const T* c) {
  return (u64(a) ^ u64(c)) % 16 ? n : lead_of(n, a, b);
}

// A number that others of less than 2**63 are divided by, by a product with what ``device_code.divisor`` makes of it: divisions
// of 64 bits take a GPU a hundred instructions, and the compiler long.
struct Divisor { u64 by; i64 shift, size; };
__device__ __forceinline__ i64 divided(i64 i, const Divisor& d) { return i64(__umul64hi(u64(i), d.by) >> d.shift); }

// the offsets of element i of N operands whose dimensions, slowest first, have these sizes and strides (in elements); the
// divisions are made once for all of them
template <int N, int M, int D>
__device__ __forceinline__ void offsets(i64 i, int dims, const Divisor (&size)[D], const i64 (&stride)[M][D], i64 (&to)[N]) {
#pragma unroll
  for (int j = 0; j < N; ++j) to[j] = 0;
#pragma unroll 1
  for (int d = dims - 1; d >= 0; --d) {
    i64 rest = d ? divided(i, size[d]) : 0, here = i - rest * size[d].size;
#pragma unroll
    for (int j = 0; j < N; ++j) to[j] += here * stride[j][d];
    i = rest;
  }
}
// the same of one of them
__device__ __forceinline__ i64 offset(i64 i, int dims, const i64* size, const i64* stride) {
  i64 at = 0;
#pragma unroll 1
  for (int d = dims - 1; d > 0; --d) {
    i64 rest = i / size[d];
    at += (i - rest * size[d]) * stride[d];
    i = rest;
  }
  return dims ? at + i * stride[0] : 0;
}

template <class W> __device__ __forceinline__ W infinity();
template <> __device__ __forceinline__ float infinity<float>() { return __int_as_float(0x7f800000); }
template <> __device__ __forceinline__ double infinity<double>() { return double(infinity<float>()); }

// an nan among the operands is the result, as NumPy has it
template <class W> __device__ __forceinline__ W maximum(W a, W b) { return a > b || a != a ? a : b; }
template <class W> __device__ __forceinline__ W minimum(W a, W b) { return a < b || a != a ? a : b; }

struct Sum { template <class W> static __device__ __forceinline__ W of(W a, W b) { return a + b; } };
struct Max { template <class W> static __device__ __forceinline__ W of(W a, W b) { return maximum(a, b); } };
struct Min { template <class W> static __device__ __forceinline__ W of(W a, W b) { return minimum(a, b); } };
struct Prod { template <class W> static __device__ __forceinline__ W of(W a, W b) { return a * b; } };

// the values of all threads of a block of up to 1024 (whole warps) in one; every thread gets it
template <class F, class W> __device__ __forceinline__ W block_total(W x) {
  __shared__ W parts[32];
  for (int by = 16; by; by >>= 1) x = F::of(x, __shfl_xor_sync(0xffffffffu, x, by));
  int warp = threadIdx.x >> 5, warps = blockDim.x >> 5;
  if (warps == 1) return x;
  __syncthreads();  // the last round's parts have been read
  if ((threadIdx.x & 31) == 0) parts[warp] = x;
  __syncthreads();
  x = parts[0];
  for (int i = 1; i < warps; ++i) x = F::of(x, parts[i]);
  return x;
}

// where a kernel found a value that it cannot take (an index, a class): kept until somebody waits for the device
struct Flag { int code; int where; i64 value; i64 size; };
__device__ __forceinline__ void raise_flag(Flag* flag, int code, i64 value, i64 size) {
  if (flag && atomicCAS(&flag->code, 0, code) == 0) { flag->value = value; flag->size = size; }
}
