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
  W sign = N(0) != 0 ? W(-1) : W(1), decay = N(1), lr = N(2), momentum = N(3), share = N(5);
  bool first = N(6) != 0, dampened = N(7) != 0, nesterov = N(8) != 0;
  T* const at[] = {TENSOR(0), TENSOR(1), N(4) != 0 ? TENSOR(2) : nullptr};
  each_of<3, 0b101>(span, at, [&](W (&x)[3]) {
    W g = sign * x[1];
    if (decay != 0) g += decay * x[0];
    if (at[2]) {
      const W b = momentum * (first ? W(0) : x[2]) + (dampened ? share * g : g);
      x[2] = b;
      g = nesterov ? g + momentum * b : b;
    }
    x[0] -= lr * g;
  });
}

extern "C" __global__ void adam_step(const i64* table, i64 tensors, i64 width, Numbers numbers, const float* skip) {
  if (skip && *skip != 0) return;
  Span span = span_of(table, tensors, width);
  W sign = N(0) != 0 ? W(-1) : W(1), decay = N(1), eps = N(2), correction = N(4), root = N(5);
  bool inside = N(3) != 0, corrected = N(6) != 0, decoupled = N(13) != 0;
  W lr = N(7), shrink = N(8), b1 = N(9), rest1 = N(10), b2 = N(11), rest2 = N(12);
  T* const at[] = {TENSOR(0), TENSOR(1), TENSOR(2), TENSOR(3), N(14) != 0 ? TENSOR(4) : nullptr};
  each_of<5, 0b11101>(span, at, [&](W (&x)[5]) {
    W p = x[0], g = sign * x[1];
    if (decoupled) p *= shrink;
    else if (decay != 0) g += decay * p;
    const W m = b1 * x[2] + rest1 * g;
    W v = b2 * x[3] + rest2 * g * g;
    x[2] = m;
    x[3] = v;
    if (at[4]) v = x[4] = maximum(x[4], v);
    const W d = inside ? sqrt(v / correction + eps) : (corrected ? sqrt(v) / root : sqrt(v)) + eps;
    x[0] = p - lr * (m / d);
  });
}

extern "C" __global__ void rmsprop_step(const i64* table, i64 tensors, i64 width, Numbers numbers, const float* skip) {
  if (skip && *skip != 0) return;
  Span span = span_of(table, tensors, width);
  W sign = N(0) != 0 ? W(-1) : W(1), decay = N(1), eps = N(2), lr = N(4), alpha = N(5), rest = N(6), momentum = N(7);
  bool inside = N(3) != 0, centered = N(8) != 0, moving = N(9) != 0;
  T* const at[] = {TENSOR(0), TENSOR(1), TENSOR(2), centered ? TENSOR(3) : nullptr,
                 moving ? TENSOR(centered ? 4 : 3) : nullptr};
  each_of<5, 0b11101>(span, at, [&](W (&x)[5]) {
    W g = sign * x[1];
    if (decay != 0) g += decay * x[0];
    W v = x[2] = alpha * x[2] + rest * g * g;
    if (centered) {
      const W mean = x[3] = alpha * x[3] + rest * g;
      v = maximum(W(v - mean * mean), W(0));
    }
    g /= inside ? sqrt(v + eps) : sqrt(v) + eps;
    if (moving) g = x[4] = g + momentum * x[4];
    x[0] -= lr * g;
  });
}

extern "C" __global__ void adagrad_step(const i64* table, i64 tensors, i64 width, Numbers numbers, const float* skip) {
  if (skip && *skip != 0) return;
  Span span = span_of(table, tensors, width);
  W sign = N(0) != 0 ? W(-1) : W(1), decay = N(1), eps = N(2), lr = N(4);
  bool inside = N(3) != 0;
  T* const at[] = {TENSOR(0), TENSOR(1), TENSOR(2)};
  each_of<3, 0b101>(span, at, [&](W (&x)[3]) {
    W g = sign * x[1];
    if (decay != 0) g += decay * x[0];
    const W v = x[2] += g * g;
    x[0] -= lr * (g / (inside ? sqrt(v + eps) : sqrt(v) + eps));
  });
}

extern "C" __global__ void adadelta_step(const i64* table, i64 tensors, i64 width, Numbers numbers, const float* skip) {
  if (skip && *skip != 0) return;
  Span span = span_of(table, tensors, width);
  W sign = N(0) != 0 ? W(-1) : W(1), decay = N(1), lr = N(2), rho = N(3), rest = N(4), eps = N(5);
  T* const at[] = {TENSOR(0), TENSOR(1), TENSOR(2), TENSOR(3)};
  each_of<4, 0b1101>(span, at, [&](W (&x)[4]) {
    W g = sign * x[1];
    if (decay != 0) g += decay * x[0];
    const W v = x[2] = rho * x[2] + rest * g * g, d = x[3];
    const W step = sqrt((d + eps) / (v + eps)) * g;
    x[3] = rho * d + rest * step * step;
    x[0] -= lr * step;
  });
}

extern "C" __global__ void adamax_step(const i64* table, i64 tensors, i64 width, Numbers numbers, const float* skip) {
  if (skip && *skip != 0) return;
  Span span = span_of(table, tensors, width);
  W sign = N(0) != 0 ? W(-1) : W(1), decay = N(1), lr = N(2), b1 = N(3), rest1 = N(4), b2 = N(5), eps = N(6);
  T* const at[] = {TENSOR(0), TENSOR(1), TENSOR(2), TENSOR(3)};
  each_of<4, 0b1101>(span, at, [&](W (&x)[4]) {
    W g = sign * x[1];
    if (decay != 0) g += decay * x[0];
    x[2] = b1 * x[2] + rest1 * g;
    x[3] = maximum(b2 * x[3], W(fabs(g) + eps));
    x[0] -= lr * (x[2] / x[3]);
  });
}

extern "C" __global__ void nadam_step(const i64* table, i64 tensors, i64 width, Numbers numbers, const float* skip) {
  if (skip && *skip != 0) return;
  Span span = span_of(table, tensors, width);
  W sign = N(0) != 0 ? W(-1) : W(1), decay = N(1), shrink = N(2), b1 = N(3), rest1 = N(4), b2 = N(5), rest2 = N(6);
  W correction = N(7), eps = N(8), by_gradient = N(9), by_mean = N(10);
  T* const at[] = {TENSOR(0), TENSOR(1), TENSOR(2), TENSOR(3)};
  each_of<4, 0b1101>(span, at, [&](W (&x)[4]) {
    W p = x[0] * shrink, g = sign * x[1];
    if (decay != 0) g += decay * p;
    const W m = x[2] = b1 * x[2] + rest1 * g, v = x[3] = b2 * x[3] + rest2 * g * g;
    const W d = sqrt(v / correction) + eps;
    p -= by_gradient * g / d;
    x[0] = p - by_mean * m / d;
  });
}

extern "C" __global__ void radam_step(const i64* table, i64 tensors, i64 width, Numbers numbers, const float* skip) {
  if (skip && *skip != 0) return;
  Span span = span_of(table, tensors, width);
  W sign = N(0) != 0 ? W(-1) : W(1), decay = N(1), shrink = N(2), b1 = N(3), rest1 = N(4), b2 = N(5), rest2 = N(6);
  W eps = N(7), lr = N(8), rectified = N(9);  // 0: the mean of squares rests on too few gradients
  T* const at[] = {TENSOR(0), TENSOR(1), TENSOR(2), TENSOR(3)};
  each_of<4, 0b1101>(span, at, [&](W (&x)[4]) {
    W p = x[0] * shrink, g = sign * x[1];
    if (decay != 0) g += decay * p;
    const W m = x[2] = b1 * x[2] + rest1 * g, v = x[3] = b2 * x[3] + rest2 * g * g;
    W u = m * lr;
    if (rectified != 0) u = u * rectified / (sqrt(v) + eps);
    x[0] = p - u;
  });
}

extern "C" __global__ void rprop_step(const i64* table, i64 tensors, i64 width, Numbers numbers, const float* skip) {
  if (skip && *skip != 0) return;
  Span span = span_of(table, tensors, width);
  W sign = N(0) != 0 ? W(-1) : W(1), shorter = N(1), longer = N(2), least = N(3), most = N(4);
  T* const at[] = {TENSOR(0), TENSOR(1), TENSOR(2), TENSOR(3)};
  each_of<4, 0b1101>(span, at, [&](W (&x)[4]) {
    W g = sign * x[1];
    const W same = g * x[2];
    const W size = x[3] * (same > 0 ? longer : same < 0 ? shorter : W(1));
    x[3] = minimum(maximum(size, least), most);
    x[2] = g = same < 0 ? W(0) : g;
    x[0] -= sign_of(g) * x[3];
  });
}

extern "C" __global__ void asgd_step(const i64* table, i64 tensors, i64 width, Numbers numbers, const float* skip) {
  if (skip && *skip != 0) return;
  Span span = span_of(table, tensors, width);
  W sign = N(0) != 0 ? W(-1) : W(1), decay = N(1), shrink = N(2), lr = N(3), share = N(4);
  T* const at[] = {TENSOR(0), TENSOR(1), TENSOR(2)};
  each_of<3, 0b101>(span, at, [&](W (&x)[3]) {
    const W p = x[0];
    W g = sign * x[1];
    if (decay != 0) g += decay * p;
    x[0] = p * shrink - lr * g;
    const W now = up(Of<T>::down(x[0])), mean = x[2];
    x[2] = share == 1 ? now : mean + (now - mean) * share;
  });
}

extern "C" __global__ void lion_step(const i64* table, i64 tensors, i64 width, Numbers numbers, const float* skip) {
  if (skip && *skip != 0) return;
  Span span = span_of(table, tensors, width);
  W sign = N(0) != 0 ? W(-1) : W(1), shrink = N(1), lr = N(2), b1 = N(3), rest1 = N(4), b2 = N(5), rest2 = N(6);
  T* const at[] = {TENSOR(0), TENSOR(1), TENSOR(2)};
  each_of<3, 0b101>(span, at, [&](W (&x)[3]) {
    const W g = sign * x[1], m = x[2];
    x[0] = x[0] * shrink - lr * sign_of(b1 * m + rest1 * g);
    x[2] = b2 * m + rest2 * g;
  });
}
