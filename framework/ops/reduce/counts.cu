// How many elements fall into each of equal parts of a range. T: elements; W: what is computed in.

// counts (bins), zeros before. The range is that from ``low`` to ``high``, or where these are equal from least to most, each
// of one element, which raise the flag if they are not finite; a range of no width is widened by 1 either way
extern "C" __global__ void count_bins(u64* counts, const T* x, const T* least, const T* most, i64 n, i64 bins, double low,
                                      double high, Flag* flag, i64 where) {
  if (low == high && least) {
    low = up(least[0]), high = up(most[0]);
    if (!isfinite(low) || !isfinite(high)) {
      raise_flag(flag, int(where), __double_as_longlong(isfinite(low) ? high : low), 0);
      return;
    }
  }
  if (low == high) low -= 1, high += 1;
  const W from = W(low), to = W(high), factor = W(double(bins) / (high - low));
  for (i64 i = i64(blockIdx.x) * blockDim.x + threadIdx.x; i < n; i += i64(gridDim.x) * blockDim.x) {
    const W value = up(x[i]);
    if (!(value >= from && value <= to)) continue;
    const i64 bin = i64((value - from) * factor);
    atomicAdd(counts + (bin < bins ? bin : bins - 1), u64(1));
  }
}
