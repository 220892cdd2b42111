// Steps of optimizers for all parameters in one launch. A row of the table (``tensor_lists.cuh``) has the addresses of
// parameter, gradient and states. T: elements; W: computed in.
// The operations are those of ``Optimizer.update`` in their order. skip: not 0 where nothing is to be done. N(i): the numbers
// that ``cuda.py`` lists.

// the numbers of a step whose learning rate is in memory: those for a rate of 0, and how they grow with it
extern "C" __global__ void numbers_of_rate(double* out, Numbers start, Numbers slopes, const T* rate, i64 count) {
  i64 i = threadIdx.x;
  if (i >= count) return;
  const double from = start.there ? start.there[i] : start.at[i], slope = slopes.there ? slopes.there[i] : slopes.at[i];
  out[i] = from + slope * double(up(*rate));
}

__device__ __forceinline__ W sign_of(W x) { return x > 0 ? W(1) : x < 0 ? W(-1) : x; }

extern "C" __global__ void sgd_step(const i64* table, i64 tensors, i64 width, Numbers numbers, const float* skip) {
  if (skip && *skip != 0) return;
  Span span = span_of(table, tensors, width);
  T *ps = TENSOR(0), *gs = TENSOR(1), *bs = N(4) != 0 ? TENSOR(2) : nullptr;
  W sign = N(0) != 0 ? W(-1) : W(1), decay = N(1), lr = N(2), momentum = N(3), share = N(5);
  bool first = N(6) != 0, dampened = N(7) != 0, nesterov = N(8) != 0;
  EACH(i) {
    W p = up(ps[i]), g = sign * up(gs[i]);
    if (decay != 0) g += decay * p;
    if (bs) {
      W b = momentum * (first ? W(0) : W(up(bs[i])));
      b += dampened ? share * g : g;
      bs[i] = Of<T>::down(b);
      g = nesterov ? g + momentum * b : b;
    }
    ps[i] = Of<T>::down(p - lr * g);
  }
}

extern "C" __global__ void adam_step(const i64* table, i64 tensors, i64 width, Numbers numbers, const float* skip) {
  if (skip && *skip != 0) return;
  Span span = span_of(table, tensors, width);
  T *ps = TENSOR(0), *gs = TENSOR(1), *ms = TENSOR(2), *vs = TENSOR(3), *tops = N(14) != 0 ? TENSOR(4) : nullptr;
  W sign = N(0) != 0 ? W(-1) : W(1), decay = N(1), eps = N(2), correction = N(4), root = N(5);
  bool inside = N(3) != 0, corrected = N(6) != 0, decoupled = N(13) != 0;
  W lr = N(7), shrink = N(8), b1 = N(9), rest1 = N(10), b2 = N(11), rest2 = N(12);
  EACH(i) {
    W p = up(ps[i]), g = sign * up(gs[i]);
    if (decoupled) p *= shrink;
    else if (decay != 0) g += decay * p;
    W m = b1 * up(ms[i]) + rest1 * g, v = b2 * up(vs[i]) + rest2 * g * g;
    ms[i] = Of<T>::down(m);
    vs[i] = Of<T>::down(v);
    if (tops) {
      v = maximum(W(up(tops[i])), v);
      tops[i] = Of<T>::down(v);
    }
    W d = inside ? sqrt(v / correction + eps) : (corrected ? sqrt(v) / root : sqrt(v)) + eps;
    ps[i] = Of<T>::down(p - lr * (m / d));
  }
}

extern "C" __global__ void rmsprop_step(const i64* table, i64 tensors, i64 width, Numbers numbers, const float* skip) {
  if (skip && *skip != 0) return;
  Span span = span_of(table, tensors, width);
  T *ps = TENSOR(0), *gs = TENSOR(1), *vs = TENSOR(2);
  W sign = N(0) != 0 ? W(-1) : W(1), decay = N(1), eps = N(2), lr = N(4), alpha = N(5), rest = N(6), momentum = N(7);
  bool inside = N(3) != 0, centered = N(8) != 0, moving = N(9) != 0;
  T* means = centered ? TENSOR(3) : nullptr;
  T* bs = moving ? TENSOR(centered ? 4 : 3) : nullptr;
  EACH(i) {
    W p = up(ps[i]), g = sign * up(gs[i]);
    if (decay != 0) g += decay * p;
    W v = alpha * up(vs[i]) + rest * g * g;
    vs[i] = Of<T>::down(v);
    if (means) {
      W mean = alpha * up(means[i]) + rest * g;
      means[i] = Of<T>::down(mean);
      v = maximum(W(v - mean * mean), W(0));
    }
    g /= inside ? sqrt(v + eps) : sqrt(v) + eps;
    if (bs) {
      g += momentum * up(bs[i]);
      bs[i] = Of<T>::down(g);
    }
    ps[i] = Of<T>::down(p - lr * g);
  }
}

extern "C" __global__ void adagrad_step(const i64* table, i64 tensors, i64 width, Numbers numbers, const float* skip) {
  if (skip && *skip != 0) return;
  Span span = span_of(table, tensors, width);
  T *ps = TENSOR(0), *gs = TENSOR(1), *sums = TENSOR(2);
  W sign = N(0) != 0 ? W(-1) : W(1), decay = N(1), eps = N(2), lr = N(4);
  bool inside = N(3) != 0;
  EACH(i) {
    W p = up(ps[i]), g = sign * up(gs[i]);
    if (decay != 0) g += decay * p;
    W v = up(sums[i]) + g * g;
    sums[i] = Of<T>::down(v);
    ps[i] = Of<T>::down(p - lr * (g / (inside ? sqrt(v + eps) : sqrt(v) + eps)));
  }
}

extern "C" __global__ void adadelta_step(const i64* table, i64 tensors, i64 width, Numbers numbers, const float* skip) {
  if (skip && *skip != 0) return;
  Span span = span_of(table, tensors, width);
  T *ps = TENSOR(0), *gs = TENSOR(1), *vs = TENSOR(2), *ds = TENSOR(3);
  W sign = N(0) != 0 ? W(-1) : W(1), decay = N(1), lr = N(2), rho = N(3), rest = N(4), eps = N(5);
  EACH(i) {
    W p = up(ps[i]), g = sign * up(gs[i]);
    if (decay != 0) g += decay * p;
    W v = rho * up(vs[i]) + rest * g * g, d = up(ds[i]);
    vs[i] = Of<T>::down(v);
    W step = sqrt((d + eps) / (v + eps)) * g;
    ds[i] = Of<T>::down(rho * d + rest * step * step);
    ps[i] = Of<T>::down(p - lr * step);
  }
}

extern "C" __global__ void adamax_step(const i64* table, i64 tensors, i64 width, Numbers numbers, const float* skip) {
  if (skip && *skip != 0) return;
  Span span = span_of(table, tensors, width);
  T *ps = TENSOR(0), *gs = TENSOR(1), *ms = TENSOR(2), *us = TENSOR(3);
  W sign = N(0) != 0 ? W(-1) : W(1), decay = N(1), lr = N(2), b1 = N(3), rest1 = N(4), b2 = N(5), eps = N(6);
  EACH(i) {
    W p = up(ps[i]), g = sign * up(gs[i]);
    if (decay != 0) g += decay * p;
    W m = b1 * up(ms[i]) + rest1 * g, u = maximum(b2 * up(us[i]), W(fabs(g) + eps));
    ms[i] = Of<T>::down(m);
    us[i] = Of<T>::down(u);
    ps[i] = Of<T>::down(p - lr * (m / u));
  }
}

extern "C" __global__ void nadam_step(const i64* table, i64 tensors, i64 width, Numbers numbers, const float* skip) {
  if (skip && *skip != 0) return;
  Span span = span_of(table, tensors, width);
  T *ps = TENSOR(0), *gs = TENSOR(1), *ms = TENSOR(2), *vs = TENSOR(3);
  W sign = N(0) != 0 ? W(-1) : W(1), decay = N(1), shrink = N(2), b1 = N(3), rest1 = N(4), b2 = N(5), rest2 = N(6);
  W correction = N(7), eps = N(8), by_gradient = N(9), by_mean = N(10);
  EACH(i) {
    W p = up(ps[i]) * shrink, g = sign * up(gs[i]);
    if (decay != 0) g += decay * p;
    W m = b1 * up(ms[i]) + rest1 * g, v = b2 * up(vs[i]) + rest2 * g * g;
    ms[i] = Of<T>::down(m);
    vs[i] = Of<T>::down(v);
    W d = sqrt(v / correction) + eps;
    p -= by_gradient * g / d;
    ps[i] = Of<T>::down(p - by_mean * m / d);
  }
}

extern "C" __global__ void radam_step(const i64* table, i64 tensors, i64 width, Numbers numbers, const float* skip) {
  if (skip && *skip != 0) return;
  Span span = span_of(table, tensors, width);
  T *ps = TENSOR(0), *gs = TENSOR(1), *ms = TENSOR(2), *vs = TENSOR(3);
  W sign = N(0) != 0 ? W(-1) : W(1), decay = N(1), shrink = N(2), b1 = N(3), rest1 = N(4), b2 = N(5), rest2 = N(6);
  W eps = N(7), lr = N(8), rectified = N(9);  // 0: the mean of squares rests on too few gradients
  EACH(i) {
    W p = up(ps[i]) * shrink, g = sign * up(gs[i]);
    if (decay != 0) g += decay * p;
    W m = b1 * up(ms[i]) + rest1 * g, v = b2 * up(vs[i]) + rest2 * g * g, u = m * lr;
    ms[i] = Of<T>::down(m);
    vs[i] = Of<T>::down(v);
    if (rectified != 0) u = u * rectified / (sqrt(v) + eps);
    ps[i] = Of<T>::down(p - u);
  }
}

extern "C" __global__ void rprop_step(const i64* table, i64 tensors, i64 width, Numbers numbers, const float* skip) {
  if (skip && *skip != 0) return;
  Span span = span_of(table, tensors, width);
  T *ps = TENSOR(0), *gs = TENSOR(1), *before = TENSOR(2), *sizes = TENSOR(3);
  W sign = N(0) != 0 ? W(-1) : W(1), shorter = N(1), longer = N(2), least = N(3), most = N(4);
  EACH(i) {
    W g = sign * up(gs[i]), same = g * up(before[i]);
    W size = up(sizes[i]) * (same > 0 ? longer : same < 0 ? shorter : W(1));
    size = minimum(maximum(size, least), most);
    g = same < 0 ? W(0) : g;
    sizes[i] = Of<T>::down(size);
    before[i] = Of<T>::down(g);
    ps[i] = Of<T>::down(up(ps[i]) - sign_of(g) * size);
  }
}

extern "C" __global__ void asgd_step(const i64* table, i64 tensors, i64 width, Numbers numbers, const float* skip) {
  if (skip && *skip != 0) return;
  Span span = span_of(table, tensors, width);
  T *ps = TENSOR(0), *gs = TENSOR(1), *means = TENSOR(2);
  W sign = N(0) != 0 ? W(-1) : W(1), decay = N(1), shrink = N(2), lr = N(3), share = N(4);
  EACH(i) {
    W p = up(ps[i]), g = sign * up(gs[i]);
    if (decay != 0) g += decay * p;
    ps[i] = Of<T>::down(p * shrink - lr * g);
    W now = up(ps[i]), mean = up(means[i]);
    means[i] = Of<T>::down(share == 1 ? now : mean + (now - mean) * share);
  }
}

extern "C" __global__ void lion_step(const i64* table, i64 tensors, i64 width, Numbers numbers, const float* skip) {
  if (skip && *skip != 0) return;
  Span span = span_of(table, tensors, width);
  T *ps = TENSOR(0), *gs = TENSOR(1), *ms = TENSOR(2);
  W sign = N(0) != 0 ? W(-1) : W(1), shrink = N(1), lr = N(2), b1 = N(3), rest1 = N(4), b2 = N(5), rest2 = N(6);
  EACH(i) {
    W g = sign * up(gs[i]), m = up(ms[i]);
    ps[i] = Of<T>::down(up(ps[i]) * shrink - lr * sign_of(b1 * m + rest1 * g));
    ms[i] = Of<T>::down(b2 * m + rest2 * g);
  }
}
