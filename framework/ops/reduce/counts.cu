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
  EACH_ELEMENT(i, n) {
    const W value = up(x[i]);
    if (!(value >= from && value <= to)) continue;
    const i64 bin = i64((value - from) * factor);
    atomicAdd(counts + (bin < bins ? bin : bins - 1), u64(1));
  }
}

// The bin of each of n elements, which lie ``stride`` apart, by rising edges (bins + 1), of which the last bin has both; ``bins``
// where there is none. joins: it is the last number of a place in a grid. Edges that fall raise the flag.
extern "C" __global__ void bins_of(i64* places, const T* x, i64 stride, const T* edges, i64 n, i64 bins, i64 joins, Flag* flag,
                                   i64 where) {
  EACH_ELEMENT(i, bins)
    if (up(edges[i + 1]) < up(edges[i])) raise_flag(flag, int(where), i, bins);
  EACH_ELEMENT(i, n) {
    const W value = up(x[i * stride]);
    i64 low = 0, high = bins + 1;  // how many edges are at the element or before
    while (low < high) {
      const i64 middle = (low + high) / 2;
      if (W(up(edges[middle])) <= value) low = middle + 1; else high = middle;
    }
    const i64 bin = value == W(up(edges[bins])) ? bins - 1 : low > 0 && low <= bins ? low - 1 : bins;
    places[i] = (joins ? places[i] * (bins + 1) : 0) + bin;
  }
}

// rows of bins + 1 equal edges, each from the least to the most of its elements, or half a one around them where they are equal;
// ends that are not finite raise the flag
extern "C" __global__ void edges_of(T* edges, const T* least, const T* most, i64 rows, i64 bins, Flag* flag, i64 where) {
  EACH_ELEMENT(i, rows * (bins + 1)) {
    const i64 row = i / (bins + 1), k = i % (bins + 1);
    double low = up(least[row]), high = up(most[row]);
    if (k == 0 && !(isfinite(low) && isfinite(high)))
      raise_flag(flag, int(where), __double_as_longlong(isfinite(low) ? high : low), 0);
    if (low == high) low -= 0.5, high += 0.5;
    edges[i] = Of<T>::down(W(k == bins ? high : low + double(k) * ((high - low) / double(bins))));
  }
}
