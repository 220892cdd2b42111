// An image read at the places of a grid: a thread takes a place and all channels. T: elements, computed in themselves.

// of n images of c channels and of d-dimensional places, ``count`` of each; padding: zeros, border, reflection
struct Grid { i64 n, c, dims, count, mode, padding, align; i64 size[3]; };

// a coordinate of the grid among ``size`` pixels
__device__ __forceinline__ T pixel_of(T x, i64 size, i64 align) {
  return align ? (x + 1) * (T(size - 1) / 2) : ((x + 1) * T(size) - 1) * T(0.5);
}

// the coordinate brought into the image, as the padding says, and its slope
__device__ __forceinline__ T folded(T x, const Grid& at, i64 size, T& slope) {
  slope = 1;
  if (at.padding == 0) return x;
  if (at.padding == 2) {
    const T low = at.align ? T(0) : T(-0.5), span = at.align ? T(size - 1) : T(size);
    if (span <= 0) {
      x = slope = 0;
    } else {
      const T away = fabs(x - low), turns = floor(away / span), inside = away - turns * span;
      const bool odd = fmod(turns, T(2)) == 1;
      slope = (odd ? T(-1) : T(1)) * (x < low ? T(-1) : T(1));
      x = (odd ? span - inside : inside) + low;
    }
  }
  const T top = T(size - 1);
  if (x <= 0 || x >= top) slope = 0;
  return minimum(maximum(x, T(0)), top);
}

__device__ __forceinline__ T near_weight(T s) { return (T(1.25) * s - T(2.25)) * s * s + 1; }
__device__ __forceinline__ T near_slope(T s) { return (T(3.75) * s - T(4.5)) * s; }
__device__ __forceinline__ T far_weight(T s) { return ((T(-0.75) * s + T(3.75)) * s - 6) * s + 3; }
__device__ __forceinline__ T far_slope(T s) { return (T(-2.25) * s + T(7.5)) * s - 6; }

// the neighbours along one dimension: where they are (-1: outside), their weights, and how these move with the coordinate
template <int N> struct Taps { i64 place[N]; T weight[N], slope[N]; };
__device__ __forceinline__ i64 inside_or_none(T place, i64 size) {
  return place >= 0 && place <= T(size - 1) ? i64(place) : -1;
}
__device__ __forceinline__ void find_taps(T x, const Grid& at, i64 size, Taps<1>& taps) {
  T slope;
  taps.place[0] = inside_or_none(rint(folded(pixel_of(x, size, at.align), at, size, slope)), size);
  taps.weight[0] = 1, taps.slope[0] = 0;
}
__device__ __forceinline__ void find_taps(T x, const Grid& at, i64 size, Taps<2>& taps) {
  T slope;
  const T pixel = folded(pixel_of(x, size, at.align), at, size, slope), low = floor(pixel), part = pixel - low;
  taps.place[0] = inside_or_none(low, size), taps.place[1] = inside_or_none(low + 1, size);
  taps.weight[0] = 1 - part, taps.weight[1] = part;
  taps.slope[0] = -slope, taps.slope[1] = slope;
}
__device__ __forceinline__ void find_taps(T x, const Grid& at, i64 size, Taps<4>& taps) {
  const T pixel = pixel_of(x, size, at.align), low = floor(pixel), t = pixel - low;
  T ignored;
#pragma unroll
  for (int k = 0; k < 4; ++k) taps.place[k] = inside_or_none(folded(low + T(k - 1), at, size, ignored), size);
  taps.weight[0] = far_weight(t + 1), taps.weight[1] = near_weight(t);
  taps.weight[2] = near_weight(1 - t), taps.weight[3] = far_weight(2 - t);
  taps.slope[0] = far_slope(t + 1), taps.slope[1] = near_slope(t);
  taps.slope[2] = -near_slope(1 - t), taps.slope[3] = -far_slope(2 - t);
}

// LAYERS: neighbours along the first of three dimensions; images have one, which is 0
template <int N, int LAYERS> struct Near { Taps<LAYERS> z; Taps<N> y, x; };
template <int N, int LAYERS> __device__ __forceinline__ Near<N, LAYERS> near_of(const T* places, const Grid& at) {
  Near<N, LAYERS> near;
  find_taps(places[0], at, at.size[2], near.x);
  find_taps(places[1], at, at.size[1], near.y);
  if (at.dims == 3) find_taps(places[2], at, at.size[0], near.z);
  else near.z.place[0] = 0, near.z.weight[0] = 1, near.z.slope[0] = 0;
  return near;
}
#define NEAR_PIXELS(near, plane)                                                       \
  _Pragma("unroll") for (int a = 0; a < LAYERS; ++a)                                        \
    _Pragma("unroll") for (int b = 0; b < N; ++b)                                         \
      _Pragma("unroll") for (int c = 0; c < N; ++c)                                       \
        if (const i64 at_##plane = (near.z.place[a] * at.size[1] + near.y.place[b]) * at.size[2] + near.x.place[c]; \
            near.z.place[a] >= 0 && near.y.place[b] >= 0 && near.x.place[c] >= 0)

template <int N, int LAYERS> __device__ __forceinline__ void sample(T* out, const T* image, const T* places, const Grid& at) {
  const Near<N, LAYERS> near = near_of<N, LAYERS>(places, at);
  const i64 area = at.size[0] * at.size[1] * at.size[2];
#pragma unroll 1
  for (i64 channel = 0; channel < at.c; ++channel, image += area, out += at.count) {
    T sum = 0;
    NEAR_PIXELS(near, pixel) sum += image[at_pixel] * (near.z.weight[a] * near.y.weight[b] * near.x.weight[c]);
    out[0] = sum;
  }
}

extern "C" __global__ void grid_sample(T* out, const T* image, const T* grid, Grid at) {
  const i64 area = at.size[0] * at.size[1] * at.size[2];
  EACH_ELEMENT(i, at.n * at.count) {
    const i64 n = i / at.count;
    T* to = out + n * at.c * at.count + i % at.count;
    const T *from = image + n * at.c * area, *places = grid + i * at.dims;
    if (at.mode == 0) sample<1, 1>(to, from, places, at);
    else if (at.mode == 2) sample<4, 1>(to, from, places, at);
    else if (at.dims == 3) sample<2, 2>(to, from, places, at);
    else sample<2, 1>(to, from, places, at);
  }
}

template <int N, int LAYERS> __device__ __forceinline__ void sample_grad(T* pixels, T* slopes, const T* g, const T* image,
                                                                      const T* places, const Grid& at) {
  const Near<N, LAYERS> near = near_of<N, LAYERS>(places, at);
  const i64 area = at.size[0] * at.size[1] * at.size[2];
  T by_x = 0, by_y = 0, by_z = 0;
#pragma unroll 1
  for (i64 channel = 0; channel < at.c; ++channel, image += area, g += at.count) {
    NEAR_PIXELS(near, pixel) {
      const T value = g[0] * image[at_pixel], flat = near.y.weight[b] * near.x.weight[c];
      if (pixels) atomicAdd(pixels + channel * area + at_pixel, g[0] * (near.z.weight[a] * flat));
      by_x += value * (near.z.weight[a] * near.y.weight[b] * near.x.slope[c]);
      by_y += value * (near.z.weight[a] * near.y.slope[b] * near.x.weight[c]);
      by_z += value * (near.z.slope[a] * flat);
    }
  }
  if (!slopes) return;
  const T half = T(0.5);
  slopes[0] = by_x * (T(at.size[2] - (at.align ? 1 : 0)) * half);
  slopes[1] = by_y * (T(at.size[1] - (at.align ? 1 : 0)) * half);
  if (at.dims == 3) slopes[2] = by_z * (T(at.size[0] - (at.align ? 1 : 0)) * half);
}

// pixels (zeros before) += the gradient of the image, in any order; slopes = that of the grid; either may be null
extern "C" __global__ void grid_sample_grad(T* pixels, T* slopes, const T* g, const T* image, const T* grid, Grid at) {
  const i64 area = at.size[0] * at.size[1] * at.size[2];
  EACH_ELEMENT(i, at.n * at.count) {
    const i64 n = i / at.count;
    T* to = pixels ? pixels + n * at.c * area : nullptr;
    T* slope = slopes ? slopes + i * at.dims : nullptr;
    const T *given = g + n * at.c * at.count + i % at.count, *from = image + n * at.c * area, *places = grid + i * at.dims;
    if (at.mode == 0) sample_grad<1, 1>(to, slope, given, from, places, at);
    else if (at.mode == 2) sample_grad<4, 1>(to, slope, given, from, places, at);
    else if (at.dims == 3) sample_grad<2, 2>(to, slope, given, from, places, at);
    else sample_grad<2, 1>(to, slope, given, from, places, at);
  }
}
