// Dropout: each element 0, or times ``factor``, by the coins of a key. A thread takes the 16 elements of four words.
extern "C" __global__ void dropout(T* out, const T* x, i64 n, Coins coins, double factor) {
  i64 step = i64(gridDim.x) * blockDim.x, groups = (n + 15) / 16;
  for (i64 group = i64(blockIdx.x) * blockDim.x + threadIdx.x; group < groups; group += step) {
    Words words = words_of(coins, group * 16);
    for (int k = 0; k < 16; ++k) {
      i64 i = group * 16 + k;
      if (i < n) out[i] = Of<T>::down(up(x[i]) * (coin_of(words, coins, i) ? W(factor) : W(0)));
    }
  }
}
