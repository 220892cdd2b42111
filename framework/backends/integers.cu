// Integers uniform in [low, low + range), where range 0 stands for 2**64: the upper half of a word times range (of half a word
// where the range has no more bits), but for the few words that would give some of them once more than others (D. Lemire, "Fast
// random integer generation in an interval", 2019), in whose place an element takes others of its own. A thread takes the
// elements of a block of words. The CPU has the same numbers (`_native/random/integers.cpp`, `philox.py`).
struct Wide {
  u64 size, surplus;
  __device__ explicit Wide(u64 size) : size(size), surplus(size ? (0 - size) % size : 0) {}
  __device__ __noinline__ u64 again(u64 key, i64 i) const {  // for so few that no kernel has it several times
    Sequence others(key, i, 1);
    do others.next(); while (others.word(0) * size < surplus);
    return high_product(others.word(0), size);
  }
  __device__ __forceinline__ u64 of(u64 word, u64 key, i64 i) const {
    if (size == 0) return word;
    return word * size < surplus ? again(key, i) : high_product(word, size);
  }
};

extern "C" __global__ void integers(T* out, i64 n, i64 low, i64 range, Key key) {
  const Wide wide{u64(range)};
  const u64 drawn = key_of(key);
  const bool narrow = wide.size && wide.size <= 0xffffffffull;
  const u32 surplus = narrow ? u32((0x100000000ull - wide.size) % wide.size) : 0;
  const int per = narrow ? 8 : 4;
  const i64 groups = (n + per - 1) / per;
  EACH_ELEMENT(group, groups) {
    const Words words = philox(drawn, VARIATES, u64(group), 0);
#pragma unroll
    for (int k = 0; k < 8; ++k) {
      const i64 i = per * group + k;
      if (k >= per || i >= n) break;
      u64 above;
      if (narrow) {
        const u64 product = u64(u32(words.at[k / 2] >> 32 * (k % 2))) * wide.size;
        above = u32(product) < surplus ? wide.again(drawn, i) : product >> 32;
      } else {
        above = wide.of(words.at[k & 3], drawn, i);
      }
      out[i] = Of<T>::down(W(i64(u64(low) + above)));
    }
  }
}
