// CUDA kernels on the CPU, for tests: what a kernel's own source needs in order to be compiled by a C++ compiler.
// Nothing is included, so that a kernel compiles in a twentieth of a second; engine.cpp runs the threads.
#pragma once
#define CUDA_ON_CPU 1
#define __global__
#define __device__
#define __host__
#define __forceinline__ inline
#define __noinline__
#define __restrict__ __restrict
#define __shared__ static
#define __constant__ static const
#define __launch_bounds__(...)
#define __align__(n) __attribute__((aligned(n)))

struct uint3 { unsigned x, y, z; };
struct dim3 { unsigned x, y, z; };
struct alignas(16) float4 { float x, y, z, w; };
struct alignas(8) float2 { float x, y; };
struct alignas(16) uint4 { unsigned x, y, z, w; };

extern uint3 threadIdx, blockIdx;
extern dim3 blockDim, gridDim;

// engine.cpp
extern "C" {
void cuda_on_cpu_barrier();
void cuda_on_cpu_grid_barrier();
unsigned long long cuda_on_cpu_exchange(unsigned mask, unsigned long long value, int source);
char* cuda_on_cpu_shared();
void cuda_on_cpu_fail(const char* text);
float expf(float); double exp(double); float exp2f(float); double exp2(double); float expm1f(float); double expm1(double);
float logf(float); double log(double); float log2f(float); double log2(double); float log10f(float); double log10(double);
float log1pf(float); double log1p(double); float sqrtf(float); double sqrt(double); float powf(float, float);
double pow(double, double); float sinf(float); double sin(double); float cosf(float); double cos(double);
float tanf(float); double tan(double); float tanhf(float); double tanh(double); float sinhf(float); double sinh(double);
float coshf(float); double cosh(double); float asinf(float); double asin(double); float acosf(float); double acos(double);
float atanf(float); double atan(double); float asinhf(float); double asinh(double); float acoshf(float);
double acosh(double); float atanhf(float); double atanh(double); float atan2f(float, float); double atan2(double, double);
float erff(float); double erf(double); float erfcf(float); double erfc(double); float floorf(float); double floor(double);
float ceilf(float); double ceil(double); float truncf(float); double trunc(double); float rintf(float); double rint(double);
float fabsf(float); double fabs(double); float fmodf(float, float); double fmod(double, double);
float fmaxf(float, float); double fmax(double, double); float fminf(float, float); double fmin(double, double);
float hypotf(float, float); double hypot(double, double); float copysignf(float, float); double copysign(double, double);
float nextafterf(float, float); double nextafter(double, double); float lgammaf(float); double lgamma(double);
}
#define CUDA_ON_CPU_FLOAT_1(name) inline float name(float x) { return name##f(x); }
#define CUDA_ON_CPU_FLOAT_2(name) inline float name(float x, float y) { return name##f(x, y); }
CUDA_ON_CPU_FLOAT_1(exp) CUDA_ON_CPU_FLOAT_1(exp2) CUDA_ON_CPU_FLOAT_1(expm1) CUDA_ON_CPU_FLOAT_1(log)
CUDA_ON_CPU_FLOAT_1(log2) CUDA_ON_CPU_FLOAT_1(log10) CUDA_ON_CPU_FLOAT_1(log1p) CUDA_ON_CPU_FLOAT_1(sqrt)
CUDA_ON_CPU_FLOAT_1(sin) CUDA_ON_CPU_FLOAT_1(cos) CUDA_ON_CPU_FLOAT_1(tan) CUDA_ON_CPU_FLOAT_1(tanh)
CUDA_ON_CPU_FLOAT_1(sinh) CUDA_ON_CPU_FLOAT_1(cosh) CUDA_ON_CPU_FLOAT_1(asin) CUDA_ON_CPU_FLOAT_1(acos)
CUDA_ON_CPU_FLOAT_1(atan) CUDA_ON_CPU_FLOAT_1(asinh) CUDA_ON_CPU_FLOAT_1(acosh) CUDA_ON_CPU_FLOAT_1(atanh)
CUDA_ON_CPU_FLOAT_1(erf) CUDA_ON_CPU_FLOAT_1(erfc) CUDA_ON_CPU_FLOAT_1(floor) CUDA_ON_CPU_FLOAT_1(ceil)
CUDA_ON_CPU_FLOAT_1(trunc) CUDA_ON_CPU_FLOAT_1(rint) CUDA_ON_CPU_FLOAT_1(fabs) CUDA_ON_CPU_FLOAT_1(lgamma)
CUDA_ON_CPU_FLOAT_2(pow) CUDA_ON_CPU_FLOAT_2(atan2) CUDA_ON_CPU_FLOAT_2(fmod) CUDA_ON_CPU_FLOAT_2(fmax)
CUDA_ON_CPU_FLOAT_2(fmin) CUDA_ON_CPU_FLOAT_2(hypot) CUDA_ON_CPU_FLOAT_2(copysign) CUDA_ON_CPU_FLOAT_2(nextafter)
extern "C" { double jn(int, double); double yn(int, double); }
inline float rsqrt(float x) { return 1.0f / sqrtf(x); }
inline double rsqrt(double x) { return 1.0 / sqrt(x); }
inline double cospi(double x) { return cos(3.141592653589793 * x); }
inline bool isnan(float x) { return __builtin_isnan(x); }
inline bool isnan(double x) { return __builtin_isnan(x); }
inline double fma(double x, double y, double z) { return __builtin_fma(x, y, z); }
inline bool isinf(float x) { return __builtin_isinf(x); }
inline bool isinf(double x) { return __builtin_isinf(x); }
inline bool isfinite(float x) { return __builtin_isfinite(x); }
inline bool isfinite(double x) { return __builtin_isfinite(x); }
inline bool signbit(double x) { return __builtin_signbit(x); }
inline float __int_as_float(int x) { float y; __builtin_memcpy(&y, &x, 4); return y; }
inline long long __double_as_longlong(double x) { long long y; __builtin_memcpy(&y, &x, 8); return y; }
inline double __longlong_as_double(long long x) { double y; __builtin_memcpy(&y, &x, 8); return y; }
inline int __float_as_int(float x) { int y; __builtin_memcpy(&y, &x, 4); return y; }
inline unsigned long long __umul64hi(unsigned long long a, unsigned long long b) {
  return (unsigned long long)((unsigned __int128)a * b >> 64);
}
inline unsigned __umulhi(unsigned a, unsigned b) { return unsigned((unsigned long long)a * b >> 32); }

inline void __syncthreads() { cuda_on_cpu_barrier(); }
inline void __syncwarp(unsigned mask = 0xffffffffu) { cuda_on_cpu_exchange(mask, 0, 0); }
inline void __threadfence() {}
template <class T> T __ldcg(const T* p) { return *p; }
inline int cuda_on_cpu_lane() { return int((threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x) & 31; }
template <class T> T cuda_on_cpu_shuffle(unsigned mask, T value, int source) {
  static_assert(sizeof(T) <= 8, "a shuffle moves 8 bytes at most");
  unsigned long long bits = 0;
  __builtin_memcpy(&bits, &value, sizeof(T));
  bits = cuda_on_cpu_exchange(mask, bits, source & 31);
  __builtin_memcpy(&value, &bits, sizeof(T));
  return value;
}
template <class T> T __shfl_sync(unsigned m, T v, int lane, int = 32) { return cuda_on_cpu_shuffle(m, v, lane); }
template <class T> T __shfl_xor_sync(unsigned m, T v, int bits, int = 32) {
  return cuda_on_cpu_shuffle(m, v, cuda_on_cpu_lane() ^ bits);
}
template <class T> T __shfl_down_sync(unsigned m, T v, unsigned by, int = 32) {
  int lane = cuda_on_cpu_lane();
  return cuda_on_cpu_shuffle(m, v, lane + int(by) < 32 ? lane + int(by) : lane);
}
template <class T> T atomicAdd(T* at, T by) { T old = *at; *at = T(old + by); return old; }
template <class T> T atomicMax(T* at, T by) { T old = *at; *at = old < by ? by : old; return old; }
template <class T> T atomicMin(T* at, T by) { T old = *at; *at = by < old ? by : old; return old; }
template <class T> T atomicExch(T* at, T v) { T old = *at; *at = v; return old; }
template <class T> T atomicCAS(T* at, T want, T v) { T old = *at; if (old == want) *at = v; return old; }

// a kernel called with its arguments behind pointers, as a driver is given them
template <int... I> struct CudaOnCpuInts {};
template <int N, int... I> struct CudaOnCpuUpTo : CudaOnCpuUpTo<N - 1, N - 1, I...> {};
template <int... I> struct CudaOnCpuUpTo<0, I...> { typedef CudaOnCpuInts<I...> Ints; };
template <class F> struct CudaOnCpuTakes;
template <class... A> struct CudaOnCpuTakes<void (*)(A...)> : CudaOnCpuUpTo<sizeof...(A)> {};
template <auto kernel, class F = decltype(kernel), class I = typename CudaOnCpuTakes<F>::Ints> struct CudaOnCpuCalled;
template <auto kernel, class... A, int... I> struct CudaOnCpuCalled<kernel, void (*)(A...), CudaOnCpuInts<I...>> {
  static void run(void** args) { kernel(*static_cast<A*>(args[I])...); }
  static constexpr int sizes[] = {int(sizeof...(A)), int(sizeof(A))...};
};
struct CudaOnCpuKernel { void (*run)(void**); const int* sizes; };
#define CUDA_ON_CPU_EXPORT(shown, name) \
  extern "C" { CudaOnCpuKernel cuda_on_cpu_##shown = {CudaOnCpuCalled<&name>::run, CudaOnCpuCalled<&name>::sizes}; }
