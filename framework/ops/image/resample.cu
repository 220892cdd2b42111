// Along one dimension of (outer, n, inner) each result is a weighted sum of a few elements: interpolation, pooling into a
// given size, padding by what is there. Which ones, and their weights, stand in lists one behind another.
extern "C" __global__ void resample(T* out, const T* x, const i64* begins, const i64* index, const double* weights, i64 n,
                                    i64 outs, i64 inner, i64 size) {
  EACH_ELEMENT(i, size) {
    const i64 o = i / inner % outs;
    const T* from = x + i / inner / outs * n * inner + i % inner;
    W sum = 0;
    for (i64 k = begins[o]; k < begins[o + 1]; ++k) sum += W(weights[k]) * up(from[index[k] * inner]);
    out[i] = Of<T>::down(sum);
  }
}
