// Dropout: each element 0, or times ``factor``, by the coins of a key. A thread takes the 16 elements of four words, 16 bytes
// at a time where all lie so.
extern "C" __global__ void dropout(T* out, const T* x, i64 n, Coins coins, double factor) {
  constexpr int V = 16 / sizeof(T);
  const i64 groups = (n + 15) / 16;
  const bool packs = aligned<T, V>(out) && aligned<T, V>(x);
  EACH_ELEMENT(group, groups) {
    const Words words = words_of(coins, group * 16);
    const i64 end = group * 16 + 16;
    auto made = [&](T value, i64 i) { return Of<T>::down(up(value) * (coin_of(words, coins, u64(i)) ? W(factor) : W(0))); };
    if (packs && end <= n) {
#pragma unroll
      for (int j = 0; j < 16; j += V) {
        const i64 i = group * 16 + j;
        Pack<T, V> xs = pack_at<T, V>(x + i);
#pragma unroll
        for (int k = 0; k < V; ++k) xs.at[k] = made(xs.at[k], i + k);
        put_pack<T, V>(out + i, xs);
      }
    } else {
#pragma unroll
      for (int k = 0; k < 16; ++k)
        if (group * 16 + k < n) out[group * 16 + k] = made(x[group * 16 + k], group * 16 + k);
    }
  }
}
