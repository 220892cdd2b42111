// Numbers of distributions whose parameters are tensors, each from its own sequence of words. T: parameters and results;
// everything is computed in double, by the text of the CPU (`_native/random/variate_numbers.h`).

extern "C" __global__ void gamma_numbers(T* out, const T* shapes, i64 n, Key key, double lowest) {
  EACH_ELEMENT(i, n) {
    Sequence drawn(key_of(key), i);
    out[i] = Of<T>::down(W(maximum(fw::variates::value_of(fw::variates::gamma_number(drawn, double(up(shapes[i])))), lowest)));
  }
}

// rows (rows, n) that sum to 1: gamma numbers over their sum. logs (rows, n): room. A block takes a row.
extern "C" __global__ void dirichlet_rows(T* out, double* logs, const T* shapes, i64 rows, i64 n, Key key, double lowest) {
  for (i64 row = blockIdx.x; row < rows; row += gridDim.x) {
    double most = -infinity<double>(), sum = 0;
    for (i64 i = row * n + threadIdx.x; i < (row + 1) * n; i += blockDim.x) {
      Sequence drawn(key_of(key), i);
      most = maximum(most, logs[i] = fw::variates::log_of(fw::variates::gamma_number(drawn, double(up(shapes[i])))));
    }
    most = block_total<Max>(most);
    for (i64 i = row * n + threadIdx.x; i < (row + 1) * n; i += blockDim.x) logs[i] = fw::variates::exponential(logs[i] - most);
    __syncthreads();
    for (i64 i = row * n; i < (row + 1) * n; ++i) sum += logs[i];  // in the CPU's order
    for (i64 i = row * n + threadIdx.x; i < (row + 1) * n; i += blockDim.x)
      out[i] = Of<T>::down(W(maximum(logs[i] / sum, lowest)));
  }
}

extern "C" __global__ void poisson_numbers(T* out, const T* rates, i64 n, Key key, double most, Flag* flag, i64 below,
                                           i64 above) {
  EACH_ELEMENT(i, n) {
    const double rate = up(rates[i]);
    double k = 0;
    if (rate >= 0 && rate <= most) {
      Sequence drawn(key_of(key), i);
      k = fw::variates::Poisson(rate).number(drawn);
    } else {
      raise_flag(flag, int(rate > most ? above : below), __double_as_longlong(rate), 0);
    }
    out[i] = Of<T>::down(W(k));
  }
}

// counts and chances of one size
extern "C" __global__ void binomial_numbers(T* out, const T* counts, const T* chances, i64 size, Key key, Flag* flag, i64 uneven,
                                            i64 wrong) {
  EACH_ELEMENT(i, size) {
    const double n = up(counts[i]), p = up(chances[i]);
    double k = 0;
    if (!(n >= 0 && n == rint(n) && n < infinity<double>())) {
      raise_flag(flag, int(uneven), __double_as_longlong(n), 0);
    } else if (!(p >= 0 && p <= 1)) {
      raise_flag(flag, int(wrong), __double_as_longlong(p), 0);
    } else {
      Sequence drawn(key_of(key), i);
      k = fw::variates::Binomial(n, p).number(drawn);
    }
    out[i] = Of<T>::down(W(k));
  }
}

extern "C" __global__ void angles(T* out, const T* spreads, i64 n, Key key, Flag* flag, i64 wrong) {
  EACH_ELEMENT(i, n) {
    const double spread = up(spreads[i]);
    const bool fits = spread >= 0;
    if (!fits) raise_flag(flag, int(wrong), __double_as_longlong(spread), 0);
    Sequence drawn(key_of(key), i);
    out[i] = Of<T>::down(W(fits ? fw::variates::Angles(spread).number(drawn) : 0.0));
  }
}
