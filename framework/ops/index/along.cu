// What lands on the places that an index names along a dimension is added up, or the greatest or least of it kept.
// T: elements; W: what is computed in, and what the results are.

template <class U> __device__ __forceinline__ void add_to(U* at, U value) { atomicAdd(at, value); }
__device__ __forceinline__ void add_to(i64* at, i64 value) { atomicAdd(reinterpret_cast<u64*>(at), u64(value)); }

// sums, zeros before, += x, in any order
extern "C" __global__ void add_along(W* sums, const T* x, const i64* index, Along a) {
  EACH_ELEMENT(i, a.n) {
    const i64 place = place_along(a, index, i);
    if (place >= 0) add_to(sums + place, W(up(x[i])));
  }
}

template <int bytes> struct Whole { typedef u32 Bits; };
template <> struct Whole<8> { typedef u64 Bits; };

// best = the greatest (or least) of itself and x, an nan if there is one: the same in every order
extern "C" __global__ void extreme_along(W* best, const T* x, const i64* index, i64 largest, Along a) {
  typedef Whole<sizeof(W)>::Bits Bits;
  EACH_ELEMENT(i, a.n) {
    const i64 place = place_along(a, index, i);
    if (place < 0) continue;
    const W value = up(x[i]);
    Bits* at = reinterpret_cast<Bits*>(best + place);
    Bits old = *at;
    while (true) {
      const W now = *reinterpret_cast<const W*>(&old);
      const bool better = (largest ? value > now : value < now) || value != value;
      if (!better || now != now) break;
      const Bits found = atomicCAS(at, old, *reinterpret_cast<const Bits*>(&value));
      if (found == old) break;
      old = found;
    }
  }
}

// counts, zeros before, of how often each number from 0 to length - 1 is among ``x``
extern "C" __global__ void count_places(i64* counts, const i64* x, i64 n, i64 length) {
  EACH_ELEMENT(i, n)
    if (x[i] >= 0 && x[i] < length) add_to(counts + x[i], i64(1));
}
