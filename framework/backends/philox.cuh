// Philox 4x64 with ten rounds, as NumPy counts it (Salmon et al., 2011): four words of a counter under a key.
struct Words { u64 at[4]; };

__device__ __forceinline__ u64 high_product(u64 a, u64 b) {
#ifdef CUDA_ON_CPU
  return u64((unsigned __int128)(a) * b >> 64);
#else
  return __umul64hi(a, b);
#endif
}

__device__ __forceinline__ Words philox_of(u64 k0, u64 k1, u64 x0, u64 x1, u64 x2, u64 x3) {
  for (int round = 0; round < 10; ++round) {
    if (round) { k0 += 0x9E3779B97F4A7C15ull; k1 += 0xBB67AE8584CAA73Bull; }
    u64 low0 = 0xD2E7470EE14C6C93ull * x0, low2 = 0xCA5A826395121157ull * x2;
    u64 high0 = high_product(0xD2E7470EE14C6C93ull, x0), high2 = high_product(0xCA5A826395121157ull, x2);
    x0 = high2 ^ x1 ^ k0;
    x1 = low2;
    x2 = high0 ^ x3 ^ k1;
    x3 = low0;
  }
  Words words = {{x0, x1, x2, x3}};
  return words;
}
__device__ __forceinline__ Words philox(u64 k0, u64 k1, u64 c0, u64 c1) { return philox_of(k0, k1, c0, c1, 0, 0); }

#define COINS 0x636f696e73ull  // the second word of the key of coins

// Coin ``i`` of a key, 0 with probability p: ``whole`` is the integral part of p * 2**16 and ``rest`` what is left.
// 16 bits decide; where they are ``whole``, a number of the coin's own (``philox.py`` says the same in NumPy).
// ``there``: null, or where the key lies, for work that is recorded and done again with another.
struct Coins { u64 key; i64 whole; double rest; const u64* there; };
__device__ __forceinline__ u64 key_of(const Coins& coins) { return coins.there ? *coins.there : coins.key; }
__device__ __noinline__ bool coin_between(u64 key, double rest, u64 i) {  // one of 65536 coins, so no kernel has it twice
  return double(philox(key, COINS, i + 1, 1).at[0] >> 11) * 1.1102230246251565e-16 >= rest;
}
__device__ __forceinline__ bool coin_of(const Words& words, const Coins& coins, u64 i) {
  const u64 low = i & 4 ? words.at[1] : words.at[0], high = i & 4 ? words.at[3] : words.at[2];  // no index: registers have none
  const i64 bits = i64((i & 8 ? high : low) >> (i % 4 * 16) & 0xffff);
  if (bits != coins.whole || coins.rest == 0) return bits >= coins.whole;
  return coin_between(key_of(coins), coins.rest, i);
}
__device__ __forceinline__ Words words_of(const Coins& coins, i64 i) { return philox(key_of(coins), COINS, u64(i / 16) + 1, 0); }
__device__ __forceinline__ bool coin(const Coins& coins, i64 i) { return coin_of(words_of(coins, i), coins, i); }

#define VARIATES 0x76617269617465ull  // the second word of the key of draws that take as many words as they happen to need

// The words of one element under a key: as many as it takes, whatever others take. ``there``: as for coins.
struct Key { u64 key; const u64* there; };
__device__ __forceinline__ u64 key_of(const Key& key) { return key.there ? *key.there : key.key; }
struct Sequence {
  u64 key, element, block;
  Words words;
  __device__ __forceinline__ Sequence(u64 key, i64 element, u64 block = 0) : key(key), element(u64(element)), block(block) {}
  __device__ __forceinline__ void next() { words = philox_of(key, VARIATES, element, block++, 0, 0); }
  __device__ __forceinline__ u64 word(int k) const { return words.at[k]; }
};
