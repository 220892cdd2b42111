// Whether positions are within low ... high - 1, or ``ignore`` (of no meaning where ``ignores`` is 0); else the flag.
extern "C" __global__ void check_range(const T* x, i64 n, i64 low, i64 high, i64 ignores, i64 ignore, i64 size, Flag* flag,
                                       i64 where) {
  EACH_ELEMENT(i, n) {
    const auto value = up(x[i]);
    if ((value < low || value >= high) && !(ignores && value == ignore)) raise_flag(flag, int(where), value, size);
  }
}

// Whether numbers are within low ... high; nan is where ``nan`` says so.
extern "C" __global__ void check_reals(const T* x, i64 n, double low, double high, i64 nan, Flag* flag, i64 where) {
  EACH_ELEMENT(i, n) {
    const double value = up(x[i]);
    if (value < low || value > high || (!nan && value != value)) raise_flag(flag, int(where), __double_as_longlong(value), 0);
  }
}
