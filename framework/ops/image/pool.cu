// Max-pooling in up to 3 dimensions: a thread makes one result. ``area`` elements of an image lie together.
struct Pool { i64 rows, area, out_area; i64 size[3], out[3], kernel[3], stride[3], padding[3], dilation[3]; };

// windows are small: the compiler need not make four rounds of a loop into one
#define EACH_TAP(a, n) _Pragma("unroll 1") for (i64 a = 0; a < (n); ++a)

// the largest element of window ``o`` and the tap that holds it: the first such, or a nan
__device__ __forceinline__ W largest(const Pool& p, const T* x, i64 o, i64& found) {
  i64 w2 = o % p.out[2], w1 = o / p.out[2] % p.out[1], w0 = o / p.out[2] / p.out[1];
  W best = -infinity<W>();
  found = -1;
  EACH_TAP(a, p.kernel[0])
    EACH_TAP(b, p.kernel[1])
      EACH_TAP(c, p.kernel[2]) {
        const i64 tap = (a * p.kernel[1] + b) * p.kernel[2] + c;
        i64 i = w0 * p.stride[0] - p.padding[0] + a * p.dilation[0], j = w1 * p.stride[1] - p.padding[1] + b * p.dilation[1];
        i64 k = w2 * p.stride[2] - p.padding[2] + c * p.dilation[2];
        bool inside = i >= 0 && i < p.size[0] && j >= 0 && j < p.size[1] && k >= 0 && k < p.size[2];
        W value = inside ? W(up(x[(i * p.size[1] + j) * p.size[2] + k])) : -infinity<W>();
        if (found < 0 || value > best || (value != value && best == best)) { best = value; found = tap; }
      }
  i64 first = 0;  // the tap of the first element in the image: what is around it is as low as a window of -inf
  const i64 at[3] = {w0, w1, w2};
#pragma unroll
  for (int d = 0; d < 3; ++d) {
    const i64 ahead = p.padding[d] - at[d] * p.stride[d], taps = (ahead + p.dilation[d] - 1) / p.dilation[d];
    first = first * p.kernel[d] + (ahead <= 0 ? 0 : taps < p.kernel[d] ? taps : p.kernel[d] - 1);
  }
  if (found < first) found = first;
  return best;
}

extern "C" __global__ void max_pool(T* y, const T* x, Pool p) {
  EACH_ELEMENT(i, p.rows * p.out_area) {
    i64 found;
    y[i] = Of<T>::down(largest(p, x + i / p.out_area * p.area, i % p.out_area, found));
  }
}
extern "C" __global__ void max_position(unsigned char* where, int* wide, const T* x, Pool p) {
  EACH_ELEMENT(i, p.rows * p.out_area) {
    i64 found;
    largest(p, x + i / p.out_area * p.area, i % p.out_area, found);
    if (wide) wide[i] = int(found);
    else where[i] = (unsigned char)found;
  }
}
// take(tap, window) for all windows over an element of the image, and which of their places it is
template <class F> __device__ __forceinline__ void windows_over(const Pool& p, i64 i, F take) {
  i64 s = i % p.area, s2 = s % p.size[2], s1 = s / p.size[2] % p.size[1], s0 = s / p.size[2] / p.size[1];
  EACH_TAP(a, p.kernel[0])
    EACH_TAP(b, p.kernel[1])
      EACH_TAP(c, p.kernel[2]) {
        i64 u = s0 + p.padding[0] - a * p.dilation[0], v = s1 + p.padding[1] - b * p.dilation[1];
        i64 w = s2 + p.padding[2] - c * p.dilation[2];
        if (u < 0 || v < 0 || w < 0 || u % p.stride[0] || v % p.stride[1] || w % p.stride[2]) continue;
        u /= p.stride[0]; v /= p.stride[1]; w /= p.stride[2];
        if (u >= p.out[0] || v >= p.out[1] || w >= p.out[2]) continue;
        take((a * p.kernel[1] + b) * p.kernel[2] + c, (u * p.out[1] + v) * p.out[2] + w);
      }
}
// each element of the image gets the sum of the windows that chose it
extern "C" __global__ void max_spread(T* x, const T* y, const unsigned char* where, const int* wide, Pool p) {
  EACH_ELEMENT(i, p.rows * p.area) {
    i64 base = i / p.area * p.out_area;
    W sum = 0;
    windows_over(p, i, [&](i64 tap, i64 window) {
      i64 o = base + window;
      if ((wide ? i64(wide[o]) : i64(where[o])) == tap) sum += up(y[o]);
    });
    x[i] = Of<T>::down(sum);
  }
}
// what the sum of a window is multiplied with: ``share``, or where that is 0 the inverse of how many elements it has, which
// are those of the padded image or (``inside``) of the image
__device__ __forceinline__ W share_of(const Pool& p, double share, i64 inside, i64 w0, i64 w1, i64 w2) {
  if (share != 0) return W(share);
  const i64 at[3] = {w0, w1, w2};
  i64 count = 1;
#pragma unroll
  for (int d = 0; d < 3; ++d) {
    i64 from = at[d] * p.stride[d] - p.padding[d], to = from + p.kernel[d], end = p.size[d] + (inside ? 0 : p.padding[d]);
    to = to < end ? to : end;
    count *= to - (inside && from < 0 ? 0 : from);
  }
  return W(1 / double(count));
}
// the mean of each window, and its transpose
extern "C" __global__ void sum_pool(T* y, const T* x, double share, i64 inside, Pool p) {
  EACH_ELEMENT(i, p.rows * p.out_area) {
    i64 o = i % p.out_area, w2 = o % p.out[2], w1 = o / p.out[2] % p.out[1], w0 = o / p.out[2] / p.out[1];
    const T* image = x + i / p.out_area * p.area;
    W sum = 0;
    EACH_TAP(a, p.kernel[0])
      EACH_TAP(b, p.kernel[1])
        EACH_TAP(c, p.kernel[2]) {
          i64 u = w0 * p.stride[0] - p.padding[0] + a, v = w1 * p.stride[1] - p.padding[1] + b;
          i64 w = w2 * p.stride[2] - p.padding[2] + c;
          if (u >= 0 && u < p.size[0] && v >= 0 && v < p.size[1] && w >= 0 && w < p.size[2])
            sum += up(image[(u * p.size[1] + v) * p.size[2] + w]);
        }
    y[i] = Of<T>::down(sum * share_of(p, share, inside, w0, w1, w2));
  }
}
extern "C" __global__ void sum_pool_grad(T* x, const T* y, double share, i64 inside, Pool p) {
  EACH_ELEMENT(i, p.rows * p.area) {
    i64 s = i % p.area, s2 = s % p.size[2], s1 = s / p.size[2] % p.size[1], s0 = s / p.size[2] / p.size[1];
    i64 base = i / p.area * p.out_area;
    W sum = 0;
    EACH_TAP(a, p.kernel[0])
      EACH_TAP(b, p.kernel[1])
        EACH_TAP(c, p.kernel[2]) {
          i64 u = s0 + p.padding[0] - a, v = s1 + p.padding[1] - b, w = s2 + p.padding[2] - c;
          if (u < 0 || v < 0 || w < 0 || u % p.stride[0] || v % p.stride[1] || w % p.stride[2]) continue;
          u /= p.stride[0]; v /= p.stride[1]; w /= p.stride[2];
          if (u >= p.out[0] || v >= p.out[1] || w >= p.out[2]) continue;
          i64 o = (u * p.out[1] + v) * p.out[2] + w;
          sum += up(y[base + o]) * share_of(p, share, inside, u, v, w);
        }
    x[i] = Of<T>::down(sum);
  }
}
// the place in the flattened image of the tap that each window chose
extern "C" __global__ void max_index(i64* index, const unsigned char* where, const int* wide, Pool p) {
  EACH_ELEMENT(i, p.rows * p.out_area) {
    i64 o = i % p.out_area, rest = wide ? i64(wide[i]) : i64(where[i]), step = 1, place = 0;
    for (int d = 2; d >= 0; --d) {
      i64 at = o % p.out[d] * p.stride[d] - p.padding[d] + rest % p.kernel[d] * p.dilation[d];
      place += (at < 0 ? 0 : at < p.size[d] ? at : p.size[d] - 1) * step;
      o /= p.out[d], rest /= p.kernel[d], step *= p.size[d];
    }
    index[i] = place;
  }
}

// the place in the flattened image of the largest element of a window: the first such, or a nan
struct Window { i64 from[3], to[3]; };
__device__ __forceinline__ i64 largest_within(const Pool& p, const T* x, const Window& w) {
  i64 found = -1;
  W best = 0;
#pragma unroll 1
  for (i64 i = w.from[0]; i < w.to[0]; ++i)
#pragma unroll 1
    for (i64 j = w.from[1]; j < w.to[1]; ++j)
#pragma unroll 1
      for (i64 k = w.from[2]; k < w.to[2]; ++k) {
        const i64 place = (i * p.size[1] + j) * p.size[2] + k;
        const W value = up(x[place]);
        if (found < 0 || value > best || (value != value && best == best)) { best = value; found = place; }
      }
  return found;
}
// windows that give a certain size: i of n runs from floor(i * size / n) to ceil((i + 1) * size / n)
extern "C" __global__ void adaptive_place(i64* place, const T* x, Pool p) {
  EACH_ELEMENT(i, p.rows * p.out_area) {
    i64 o = i % p.out_area;
    Window w;
    for (int d = 2; d >= 0; --d, o /= p.out[d + 1]) {
      const i64 at = o % p.out[d];
      w.from[d] = at * p.size[d] / p.out[d], w.to[d] = ((at + 1) * p.size[d] + p.out[d] - 1) / p.out[d];
    }
    place[i] = largest_within(p, x + i / p.out_area * p.area, w);
  }
}
// windows at random places: with u of a row's samples (``dims`` of them, in order or the last one first) and the step
// a = (size - kernel) / (out - 1), window i begins at floor((i + u) a) - floor(u a), the last one at the end
extern "C" __global__ void fractional_place(i64* place, const T* x, const W* samples, i64 dims, i64 last_first, Pool p) {
  EACH_ELEMENT(i, p.rows * p.out_area) {
    i64 o = i % p.out_area;
    const W* drawn = samples + i / p.out_area * dims;
    Window w;
    for (int d = 2; d >= 0; --d, o /= p.out[d + 1]) {
      const i64 at = o % p.out[d], k = d - (3 - dims);
      i64 from = p.size[d] - p.kernel[d];
      if (k >= 0 && at < p.out[d] - 1) {
        const W u = drawn[last_first ? dims - 1 - k : k], step = W(from) / W(p.out[d] - 1);
        const W moved = (W(at) + u) * step;
        const i64 begin = i64(moved) - i64(u * step);
        from = begin < from ? begin : from;
      }
      w.from[d] = from, w.to[d] = from + p.kernel[d];
    }
    place[i] = largest_within(p, x + i / p.out_area * p.area, w);
  }
}
// the sum of windows laid back into an image: columns (rows, taps, windows)
extern "C" __global__ void fold_image(T* x, const T* columns, Pool p) {
  const i64 taps = p.kernel[0] * p.kernel[1] * p.kernel[2];
  EACH_ELEMENT(i, p.rows * p.area) {
    W sum = 0;
    windows_over(p, i, [&](i64 tap, i64 window) {
      sum += up(columns[(i / p.area * taps + tap) * p.out_area + window]);
    });
    x[i] = Of<T>::down(sum);
  }
}
