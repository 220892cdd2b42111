// Uniform and standard normal numbers that NumPy's Philox draws on the CPU. T: elements (of 8 bytes: a word for each, else
// half a word); W: what is computed in. A thread takes the four words of a block. The tables are those of philox.py.
template <bool wide> struct Bits { typedef u32 Is; static const int n = 32; };
template <> struct Bits<true> { typedef u64 Is; static const int n = 64; };
typedef Bits<sizeof(W) == 8> Drawn;

template <int N> __device__ __forceinline__ W polynomial(const W (&c)[N], W x) {
  W y = x * c[N - 1] + c[N - 2];
#pragma unroll
  for (int k = N - 3; k >= 0; --k) y = y * x + c[k];
  return y;
}
// 2 atanh((m - 1) / (m + 1)) where x = 2**e * m: the same bits as on the CPU but for products and sums in one
__device__ __forceinline__ float log_of(float x) {
  int raw = __float_as_int(x), e = (raw - 0x3F3504F3) >> 23;
  float m = __int_as_float(raw - (e << 23)), s = (m - 1) / (m + 1), t = s * s;
  float y = t * (1.0f / 9) + 1.0f / 7;
  y = y * t + 1.0f / 5, y = y * t + 1.0f / 3, y = y * t + 1.0f;
  return float(e) * 0.693147180559945309417f + (s + s) * y;
}
__device__ __forceinline__ double log_of(double x) {
  i64 raw = __double_as_longlong(x), e = (raw - 0x3FE6A09E667F3BCDll) >> 52;
  double m = __longlong_as_double(raw - (e << 52)), s = (m - 1) / (m + 1), t = s * s, y = 1.0 / 21;
  for (int k = 9; k >= 0; --k) y = y * t + 1.0 / (2 * k + 1);
  return double(e) * 0.693147180559945309417 + (s + s) * y;
}
// the inverse of the normal distribution (M. Wichura, AS 241): the bits are an integer with a sign
__device__ __forceinline__ W normal_of(Drawn::Is bits) {
  const Drawn::Is top = Drawn::Is(1) << (Drawn::n - 1);
  const bool upper = bits & top;  // not above the median: the sign is turned
  const Drawn::Is tail = upper ? ~bits : bits;
  const W one = W(1) / (W(top) * 2), q = (W((top - 1) - tail) + W(0.5)) * one;
  W z;
  if (q > W(0.425)) {
    const W p = (W(tail) + W(0.5)) * one, r = sqrt(-log_of(p));
    z = FAR_NORMAL(r);
  } else {
    const W x = W(0.180625) - q * q;
    z = polynomial(NORMAL_0, x) * q / polynomial(NORMAL_1, x);
  }
  return upper ? z : -z;
}
__device__ __forceinline__ W uniform_of(Drawn::Is bits) {
  if (sizeof(T) == 2) return W(u32(bits) >> 21) * W(4.8828125e-4);  // 11 bits: rounding more could give 1
  return sizeof(W) == 8 ? W(u64(bits) >> 11) * W(1.1102230246251565e-16) : W(u32(bits) >> 8) * W(5.9604644775390625e-8);
}

// the state of the source: the first ``left`` words are there (at the end of ``ready``), the others come after ``counter``;
// with ``spare`` the first half word is there, too
struct State { u64 key[2], counter[4], ready[4]; i64 left, spare; u64 half; };
__device__ __forceinline__ Words block_at(const State& state, u64 n) {
  u64 c[4] = {state.counter[0] + n, state.counter[1], state.counter[2], state.counter[3]};
  if (c[0] < n && ++c[1] == 0 && ++c[2] == 0) ++c[3];
  return philox_of(state.key[0], state.key[1], c[0], c[1], c[2], c[3]);
}
__device__ __forceinline__ void put_number(T* out, i64 at, i64 n, Drawn::Is bits, i64 normal) {
  if (at >= 0 && at < n) out[at] = Of<T>::down(normal ? normal_of(bits) : uniform_of(bits));
}
__device__ __forceinline__ void put_word(T* out, i64 word, i64 n, i64 spare, u64 bits, i64 normal) {
  if (sizeof(W) == 8) {
    put_number(out, word, n, Drawn::Is(bits), normal);
  } else {
    put_number(out, 2 * word + spare, n, Drawn::Is(u32(bits)), normal);
    put_number(out, 2 * word + spare + 1, n, Drawn::Is(u32(bits >> 32)), normal);
  }
}

extern "C" __global__ void draw(T* out, i64 n, State state, i64 normal) {
  const i64 per = sizeof(W) == 8 ? 1 : 2, words = (n - state.spare + per - 1) / per;
  const i64 blocks = words > state.left ? (words - state.left + 3) / 4 : 0, step = i64(gridDim.x) * blockDim.x;
  const i64 first = i64(blockIdx.x) * blockDim.x + threadIdx.x;
  if (first == 0) {
    if (state.spare && sizeof(W) == 4) put_number(out, 0, n, Drawn::Is(u32(state.half)), normal);
#pragma unroll 1
    for (int k = 0; k < 4; ++k)
      if (k < state.left) put_word(out, k, n, state.spare, state.ready[k], normal);
  }
#pragma unroll 1
  for (i64 b = first; b < blocks; b += step) {
    const Words drawn = block_at(state, u64(b) + 1);
    for (int k = 0; k < 4; ++k) put_word(out, state.left + 4 * b + k, n, state.spare, drawn.at[k], normal);
  }
}
