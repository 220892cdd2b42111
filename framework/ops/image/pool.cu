// Max-pooling in up to 3 dimensions: a thread makes one result. ``area`` elements of an image lie together.
struct Pool { i64 rows, area, out_area; i64 size[3], out[3], kernel[3], stride[3], padding[3], dilation[3]; };

#define EACH(i, n) for (i64 i = i64(blockIdx.x) * blockDim.x + threadIdx.x; i < (n); i += i64(gridDim.x) * blockDim.x)

// the largest element of window ``o`` and the tap that holds it: the first such, or a nan
__device__ __forceinline__ W largest(const Pool& p, const T* x, i64 o, i64& found) {
  i64 w2 = o % p.out[2], w1 = o / p.out[2] % p.out[1], w0 = o / p.out[2] / p.out[1], tap = 0;
  W best = -infinity<W>();
  found = -1;
  for (i64 a = 0; a < p.kernel[0]; ++a)
    for (i64 b = 0; b < p.kernel[1]; ++b)
      for (i64 c = 0; c < p.kernel[2]; ++c, ++tap) {
        i64 i = w0 * p.stride[0] - p.padding[0] + a * p.dilation[0], j = w1 * p.stride[1] - p.padding[1] + b * p.dilation[1];
        i64 k = w2 * p.stride[2] - p.padding[2] + c * p.dilation[2];
        bool inside = i >= 0 && i < p.size[0] && j >= 0 && j < p.size[1] && k >= 0 && k < p.size[2];
        W value = inside ? W(up(x[(i * p.size[1] + j) * p.size[2] + k])) : -infinity<W>();
        if (found < 0 || value > best || (value != value && best == best)) { best = value; found = tap; }
      }
  return best;
}

extern "C" __global__ void max_pool(T* y, const T* x, Pool p) {
  EACH(i, p.rows * p.out_area) {
    i64 found;
    y[i] = Of<T>::down(largest(p, x + i / p.out_area * p.area, i % p.out_area, found));
  }
}
extern "C" __global__ void max_position(unsigned char* where, int* wide, const T* x, Pool p) {
  EACH(i, p.rows * p.out_area) {
    i64 found;
    largest(p, x + i / p.out_area * p.area, i % p.out_area, found);
    if (wide) wide[i] = int(found);
    else where[i] = (unsigned char)found;
  }
}
// each element of the image gets the sum of the windows that chose it
extern "C" __global__ void max_spread(T* x, const T* y, const unsigned char* where, const int* wide, Pool p) {
  EACH(i, p.rows * p.area) {
    i64 s = i % p.area, s2 = s % p.size[2], s1 = s / p.size[2] % p.size[1], s0 = s / p.size[2] / p.size[1], tap = 0;
    i64 base = i / p.area * p.out_area;
    W sum = 0;
    for (i64 a = 0; a < p.kernel[0]; ++a)
      for (i64 b = 0; b < p.kernel[1]; ++b)
        for (i64 c = 0; c < p.kernel[2]; ++c, ++tap) {
          i64 u = s0 + p.padding[0] - a * p.dilation[0], v = s1 + p.padding[1] - b * p.dilation[1];
          i64 w = s2 + p.padding[2] - c * p.dilation[2];
          if (u < 0 || v < 0 || w < 0 || u % p.stride[0] || v % p.stride[1] || w % p.stride[2]) continue;
          u /= p.stride[0]; v /= p.stride[1]; w /= p.stride[2];
          if (u >= p.out[0] || v >= p.out[1] || w >= p.out[2]) continue;
          i64 o = base + (u * p.out[1] + v) * p.out[2] + w;
          if ((wide ? i64(wide[o]) : i64(where[o])) == tap) sum += up(y[o]);
        }
    x[i] = Of<T>::down(sum);
  }
}
// the sum of each window times ``share``, and its transpose
extern "C" __global__ void sum_pool(T* y, const T* x, double share, Pool p) {
  EACH(i, p.rows * p.out_area) {
    i64 o = i % p.out_area, w2 = o % p.out[2], w1 = o / p.out[2] % p.out[1], w0 = o / p.out[2] / p.out[1];
    const T* image = x + i / p.out_area * p.area;
    W sum = 0;
    for (i64 a = 0; a < p.kernel[0]; ++a)
      for (i64 b = 0; b < p.kernel[1]; ++b)
        for (i64 c = 0; c < p.kernel[2]; ++c) {
          i64 u = w0 * p.stride[0] - p.padding[0] + a, v = w1 * p.stride[1] - p.padding[1] + b;
          i64 w = w2 * p.stride[2] - p.padding[2] + c;
          if (u >= 0 && u < p.size[0] && v >= 0 && v < p.size[1] && w >= 0 && w < p.size[2])
            sum += up(image[(u * p.size[1] + v) * p.size[2] + w]);
        }
    y[i] = Of<T>::down(sum * W(share));
  }
}
extern "C" __global__ void sum_pool_grad(T* x, const T* y, double share, Pool p) {
  EACH(i, p.rows * p.area) {
    i64 s = i % p.area, s2 = s % p.size[2], s1 = s / p.size[2] % p.size[1], s0 = s / p.size[2] / p.size[1];
    i64 base = i / p.area * p.out_area;
    W sum = 0;
    for (i64 a = 0; a < p.kernel[0]; ++a)
      for (i64 b = 0; b < p.kernel[1]; ++b)
        for (i64 c = 0; c < p.kernel[2]; ++c) {
          i64 u = s0 + p.padding[0] - a, v = s1 + p.padding[1] - b, w = s2 + p.padding[2] - c;
          if (u < 0 || v < 0 || w < 0 || u % p.stride[0] || v % p.stride[1] || w % p.stride[2]) continue;
          u /= p.stride[0]; v /= p.stride[1]; w /= p.stride[2];
          if (u >= p.out[0] || v >= p.out[1] || w >= p.out[2]) continue;
          i64 o = (u * p.out[1] + v) * p.out[2] + w;
          sum += up(y[base + o]);
        }
    x[i] = Of<T>::down(sum * W(share));
  }
}
