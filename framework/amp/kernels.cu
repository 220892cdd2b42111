// What the scaler of losses does on a GPU. state: the factor, and after how many iterations in a row without an overflow.

extern "C" __global__ void unscale_all(const i64* table, i64 tensors, i64 width, const float* state, float* found) {
  Span span = span_of(table, tensors, width);
  T* const at[] = {TENSOR(0)};
  W inverse = W(float(1.0 / double(state[0])));
  bool bad = false;
  each_of<1, 1>(span, at, [&](W (&x)[1]) {
    bad = bad || !isfinite(x[0]);
    x[0] *= inverse;
  });
  if (bad) *found = 1;  // whoever comes, all write the same
}

extern "C" __global__ void adapt(float* next, const float* state, const float* found, double growth, double backoff,
                                 i64 interval) {
  if (threadIdx.x || blockIdx.x) return;
  float factor = state[0], count = state[1] + 1;
  if (*found != 0) {
    factor = float(double(factor) * backoff);
    count = 0;
  } else if (i64(count) == interval) {
    float grown = float(double(factor) * growth);
    if (isfinite(grown)) factor = grown;
    count = 0;
  }
  next[0] = factor;
  next[1] = count;
}
