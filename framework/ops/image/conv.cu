// Convolutions in up to 3 dimensions as products of matrices whose operands are read where they lie: no columns of
// windows are stored. A block makes 32 x 32 results in steps of 16 of the sum. T: elements; W: what is computed in.

#define TILE 32
#define DEEP 16
struct Conv {
  i64 images, groups, channels, outs;  // channels and outs: of a group
  i64 size[3], out[3], kernel[3], stride[3], padding[3], dilation[3];
  i64 area, out_area, taps;            // products of size, out and kernel
};

__device__ __forceinline__ void three(i64 i, const i64* size, i64* at) {
  at[2] = i % size[2];
  i /= size[2];
  at[1] = i % size[1];
  at[0] = i / size[1];
}
// the place in the image that tap ``t`` of window ``o`` sees, or -1 outside
__device__ __forceinline__ i64 seen(const Conv& c, i64 o, i64 t) {
  i64 window[3], tap[3], place = 0;
  three(o, c.out, window);
  three(t, c.kernel, tap);
  for (int d = 0; d < 3; ++d) {
    i64 at = window[d] * c.stride[d] - c.padding[d] + tap[d] * c.dilation[d];
    if (at < 0 || at >= c.size[d]) return -1;
    place = place * c.size[d] + at;
  }
  return place;
}
// the window that sees place ``s`` by tap ``t``, or -1
__device__ __forceinline__ i64 seeing(const Conv& c, i64 s, i64 t) {
  i64 place[3], tap[3], window = 0;
  three(s, c.size, place);
  three(t, c.kernel, tap);
  for (int d = 0; d < 3; ++d) {
    i64 at = place[d] + c.padding[d] - tap[d] * c.dilation[d];
    if (at < 0 || at % c.stride[d]) return -1;
    at /= c.stride[d];
    if (at >= c.out[d]) return -1;
    window = window * c.out[d] + at;
  }
  return window;
}
__device__ __forceinline__ W read(const T* x, i64 base, i64 at) { return at < 0 ? W(0) : W(up(x[base + at])); }

// what is multiplied and where results go, of group g
struct Forward {
  const T *x, *w, *b; T* y;
  static __device__ __forceinline__ void sizes(const Conv& c, i64& m, i64& n, i64& k) {
    m = c.outs; n = c.images * c.out_area; k = c.channels * c.taps;
  }
  __device__ __forceinline__ W left(const Conv& c, i64 g, i64 m, i64 k) const {
    return up(w[(g * c.outs + m) * c.channels * c.taps + k]);
  }
  __device__ __forceinline__ W right(const Conv& c, i64 g, i64 k, i64 n) const {
    i64 image = n / c.out_area, channel = g * c.channels + k / c.taps;
    return read(x, (image * c.groups * c.channels + channel) * c.area, seen(c, n % c.out_area, k % c.taps));
  }
  __device__ __forceinline__ void put(const Conv& c, i64 g, i64 m, i64 n, W value) const {
    i64 o = g * c.outs + m;
    if (b) value += up(b[o]);
    y[(n / c.out_area * c.groups * c.outs + o) * c.out_area + n % c.out_area] = Of<T>::down(value);
  }
};
struct ToInput {
  const T *y, *w; T* x;
  static __device__ __forceinline__ void sizes(const Conv& c, i64& m, i64& n, i64& k) {
    m = c.channels; n = c.images * c.area; k = c.outs * c.taps;
  }
  __device__ __forceinline__ W left(const Conv& c, i64 g, i64 m, i64 k) const {
    return up(w[((g * c.outs + k / c.taps) * c.channels + m) * c.taps + k % c.taps]);
  }
  __device__ __forceinline__ W right(const Conv& c, i64 g, i64 k, i64 n) const {
    i64 image = n / c.area, o = g * c.outs + k / c.taps;
    return read(y, (image * c.groups * c.outs + o) * c.out_area, seeing(c, n % c.area, k % c.taps));
  }
  __device__ __forceinline__ void put(const Conv& c, i64 g, i64 m, i64 n, W value) const {
    x[(n / c.area * c.groups * c.channels + g * c.channels + m) * c.area + n % c.area] = Of<T>::down(value);
  }
};
struct ToWeight {
  const T *x, *y; W* parts; T* w; i64 shares;
  static __device__ __forceinline__ void sizes(const Conv& c, i64& m, i64& n, i64& k) {
    m = c.outs; n = c.channels * c.taps; k = c.images * c.out_area;
  }
  __device__ __forceinline__ W left(const Conv& c, i64 g, i64 m, i64 k) const {
    return up(y[(k / c.out_area * c.groups * c.outs + g * c.outs + m) * c.out_area + k % c.out_area]);
  }
  __device__ __forceinline__ W right(const Conv& c, i64 g, i64 k, i64 n) const {
    i64 image = k / c.out_area, channel = g * c.channels + n / c.taps;
    return read(x, (image * c.groups * c.channels + channel) * c.area, seen(c, k % c.out_area, n % c.taps));
  }
  __device__ __forceinline__ void put(const Conv& c, i64 g, i64 m, i64 n, W value) const {
    i64 at = (g * c.outs + m) * c.channels * c.taps + n;
    if (parts) parts[i64(blockIdx.y) * c.groups * c.outs * c.channels * c.taps + at] = value;
    else w[at] = Of<T>::down(value);
  }
};

// 256 threads make a tile, four results each; the blocks of a column of the grid share the sum
template <class Side> __device__ __forceinline__ void tiles_of(const Side& side, const Conv& c) {
  __shared__ W lefts[DEEP][TILE + 1], rights[DEEP][TILE + 1];
  i64 m, n, k;
  Side::sizes(c, m, n, k);
  i64 across = (m + TILE - 1) / TILE, along = (n + TILE - 1) / TILE;
  i64 share = ((k + gridDim.y - 1) / gridDim.y + DEEP - 1) / DEEP * DEEP, from = share * blockIdx.y;
  i64 to = from + share < k ? from + share : k;
  int row = threadIdx.x / 16, column = threadIdx.x % 16;
  for (i64 job = blockIdx.x; job < c.groups * across * along; job += gridDim.x) {
    i64 g = job / (across * along), top = job / along % across * TILE, first = job % along * TILE;
    W sums[2][2] = {{0, 0}, {0, 0}};
    for (i64 k0 = from; k0 < to; k0 += DEEP) {
      __syncthreads();
      for (int i = threadIdx.x; i < TILE * DEEP; i += blockDim.x) {
        int deep = i % DEEP, other = i / DEEP;
        lefts[deep][other] = k0 + deep < to && top + other < m ? side.left(c, g, top + other, k0 + deep) : W(0);
        deep = i / TILE;
        other = i % TILE;
        rights[deep][other] = k0 + deep < to && first + other < n ? side.right(c, g, k0 + deep, first + other) : W(0);
      }
      __syncthreads();
      for (int deep = 0; deep < DEEP; ++deep)
        for (int i = 0; i < 2; ++i)
          for (int j = 0; j < 2; ++j) sums[i][j] += lefts[deep][row + i * 16] * rights[deep][column + j * 16];
    }
    for (int i = 0; i < 2; ++i)
      for (int j = 0; j < 2; ++j)
        if (top + row + i * 16 < m && first + column + j * 16 < n)
          side.put(c, g, top + row + i * 16, first + column + j * 16, sums[i][j]);
  }
}

extern "C" __global__ void conv(T* y, const T* x, const T* w, const T* b, Conv c) {
  Forward side = {x, w, b, y};
  tiles_of(side, c);
}
extern "C" __global__ void conv_input_grad(T* x, const T* y, const T* w, Conv c) {
  ToInput side = {y, w, x};
  tiles_of(side, c);
}
extern "C" __global__ void conv_weight_grad(T* w, W* parts, const T* x, const T* y, Conv c) {
  ToWeight side = {x, y, parts, w, 0};
  tiles_of(side, c);
}
