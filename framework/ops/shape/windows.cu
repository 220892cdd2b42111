// out (outer, length, inner) = the sum of windows (outer, count, inner, size) that begin ``step`` apart. T: elements; W: what
// is computed in. A thread makes an element.
extern "C" __global__ void fold_windows(T* out, const T* x, i64 outer, i64 length, i64 inner, i64 count, i64 size, i64 step) {
  const i64 total = outer * length * inner;
  EACH_ELEMENT(i, total) {
    const i64 at = i / inner % length, row = i / inner / length * count;
    const i64 first = at < size ? 0 : (at - size) / step + 1, last = at / step < count ? at / step : count - 1;
    W sum = 0;
    for (i64 w = first; w <= last; ++w) sum += up(x[((row + w) * inner + i % inner) * size + at - w * step]);
    out[i] = Of<T>::down(sum);
  }
}
