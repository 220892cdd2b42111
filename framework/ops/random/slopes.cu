// How samples of the gamma and the Dirichlet distribution move with their parameters, by the formulas of
// _native/random/slope_numbers.h. T: elements; everything is computed in double.

extern "C" __global__ void gamma_slope(T* out, const T* a, const T* z, i64 n) {
  EACH_ELEMENT(i, n)
    out[i] = Of<T>::down(W(fw::slopes::gamma_slope_of(up(a[i]), up(z[i]), fw::slopes::doubles)));
}

// x and a (rows, parts), total (rows)
extern "C" __global__ void dirichlet_slope(T* out, const T* x, const T* a, const T* total, i64 parts, i64 n) {
  EACH_ELEMENT(i, n)
    out[i] = Of<T>::down(W(fw::slopes::dirichlet_slope_of(up(x[i]), up(a[i]), up(total[i / parts]), fw::slopes::doubles)));
}
