// Integers uniform in [low, low + range), where range 0 stands for 2**64: the upper half of a word times range, but for the few
// words that would give some of them once more than others (D. Lemire, "Fast random integer generation in an interval", 2019).
// A thread takes the four elements of a block of words.
extern "C" __global__ void integers(T* out, i64 n, i64 low, i64 range, Key key) {
  const u64 size = u64(range), drawn = key_of(key), surplus = size ? (0 - size) % size : 0;
  const i64 step = i64(gridDim.x) * blockDim.x, groups = (n + 3) / 4;
  for (i64 group = i64(blockIdx.x) * blockDim.x + threadIdx.x; group < groups; group += step) {
    const Words words = philox(drawn, VARIATES, u64(group), 0);
#pragma unroll
    for (int k = 0; k < 4; ++k) {
      const i64 i = 4 * group + k;
      if (i >= n) break;
      u64 word = words.at[k];
      if (size && word * size < surplus) {
        Sequence others(drawn, i, 1);
        do word = others.word(); while (word * size < surplus);
      }
      out[i] = Of<T>::down(W(i64(u64(low) + (size ? high_product(word, size) : word))));
    }
  }
}
