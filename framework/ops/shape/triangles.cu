// Triangles of matrices (rows, columns), many of them: what is on the diagonal k, and above it (upper) or below it; 0 elsewhere.
// unit: with 1 on the main diagonal. T: elements.
extern "C" __global__ void triangle(T* out, const T* x, i64 rows, i64 columns, i64 total, i64 k, i64 upper, i64 unit) {
  EACH_ELEMENT(at, total) {
    const i64 right = at % columns - at / columns % rows;
    const bool kept = upper ? right >= k : right <= k;
    T nothing = {};
    out[at] = unit && right == 0 ? Of<T>::down(W(1)) : kept ? x[at] : nothing;
  }
}
