// The bag of each of n elements, by where the ``count`` bags begin; ``given``: how many offsets there are, with ``ends`` the last
// is where the last bag ends. Wrong offsets raise the flag, and name no bag beyond.
extern "C" __global__ void bags_of(i64* bags, const i64* starts, i64 given, i64 count, i64 n, i64 ends, Flag* flag, i64 first,
                                   i64 last, i64 falls) {
  const i64 step = i64(gridDim.x) * blockDim.x, from = i64(blockIdx.x) * blockDim.x + threadIdx.x;
  for (i64 i = from; i < given; i += step) {
    const i64 start = starts[i];
    if (i == 0 && start != 0) raise_flag(flag, int(first), start, n);
    if (i == given - 1 && (start > n || start < (ends ? n : 0))) raise_flag(flag, int(last), start, n);
    if (i && start < starts[i - 1]) raise_flag(flag, int(falls), start - starts[i - 1], n);
  }
  for (i64 i = from; i < n; i += step) {
    i64 low = 0, high = given;  // how many begin at i or before
    while (low < high) {
      const i64 middle = (low + high) / 2;
      if (starts[middle] <= i) low = middle + 1; else high = middle;
    }
    bags[i] = low < 1 ? 0 : low > count ? count - 1 : low - 1;
  }
}
