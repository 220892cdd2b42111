// Systems of triangular matrices, some rows at a time: those from ``from`` to ``to`` of x (count, n, k), from which what the
// rows done before give has been taken. A thread makes a column. a: (count, n, n) with these steps between matrices, rows and
// columns; of a lower triangle the first row comes first, of an upper one the last. unit: the diagonal counts as ones.
extern "C" __global__ void solve_rows(T* x, const T* a, i64 count, i64 n, i64 k, i64 from, i64 to, i64 matrices, i64 rows,
                                      i64 columns, i64 upper, i64 unit, Flag* flag, i64 where) {
  EACH_ELEMENT(j, count * k) {
    T* out = x + j / k * n * k + j % k;
    const T* of = a + j / k * matrices;
    for (i64 i = 0; i < to - from; ++i) {
      const i64 r = upper ? to - 1 - i : from + i;
      T left = out[r * k];
      for (i64 d = 0; d < i; ++d) {
        const i64 s = upper ? to - 1 - d : from + d;
        left -= of[r * rows + s * columns] * out[s * k];
      }
      const T divisor = unit ? T(1) : of[r * rows + r * columns];
      if (divisor == 0) raise_flag(flag, int(where), r, n);
      out[r * k] = left / divisor;
    }
  }
}
