// Rows in order with the places that elements come from: short ones by a block in shared memory (K. Batcher's bitonic
// network, 1968), longer ones in tiles that are merged, or of which only the first elements are kept. Equal elements keep
// their order, so the result is one; nan is the largest.
#define MOST_IN_ROW 2048

template <class U> __device__ __forceinline__ u64 ordered_whole(U x) { return u64(i64(x)) ^ (U(-1) < U(0) ? 1ull << 63 : 0); }
__device__ __forceinline__ u64 ordered(double x) {  // as numbers without a sign, in the same order
  if (x != x) return ~0ull;
  u64 bits;
  x = x == 0 ? 0.0 : x;  // -0 is 0
  bits = u64(__double_as_longlong(x));
  return bits >> 63 ? ~bits : bits | 1ull << 63;
}
__device__ __forceinline__ u64 ordered(float x) { return ordered(double(x)); }
template <class U> __device__ __forceinline__ u64 ordered(U x) { return ordered_whole(x); }


// element i of row r of x (outer, n, inner)
__device__ __forceinline__ i64 row_of(i64 r, i64 n, i64 inner) { return r / inner * n * inner + r % inner; }
__device__ __forceinline__ u64 key_of(T x, i64 descending) {
  const u64 key = ordered(up(x));
  return descending ? ~key : key;
}

// keys with their places in order, by a block; behind the end they are the largest
__device__ __forceinline__ void order_tile(u64* keys, u32* where, int size) {
  __syncthreads();
  for (int length = 2; length <= size; length *= 2)
    for (int step = length / 2; step; step /= 2) {
      for (int pair = threadIdx.x; pair < size / 2; pair += blockDim.x) {
        const int i = pair / step * 2 * step + pair % step, j = i + step;
        const bool rises = (i & length) == 0, later = keys[i] > keys[j] || (keys[i] == keys[j] && where[i] > where[j]);
        if (later == rises) {
          const u64 key = keys[i];
          const u32 place = where[i];
          keys[i] = keys[j], where[i] = where[j];
          keys[j] = key, where[j] = place;
        }
      }
      __syncthreads();
    }
}

// from which place of the order on elements are wanted: where a nan has to win the first one's, if there is one
__device__ __forceinline__ i64 wanted_from(const u64* keys, i64 n, i64 from, i64 nan_wins) {
  if (!nan_wins || keys[n - 1] != ~0ull) return from;
  i64 low = 0, high = n - 1;
  while (low < high) {
    const i64 middle = (low + high) / 2;
    if (keys[middle] == ~0ull) high = middle;
    else low = middle + 1;
  }
  return low;
}

// values and places (rows, take) of x (outer, n, inner): from place ``from`` of the order on; nan_wins: of floats, rising
extern "C" __global__ void order_rows(T* values, i64* places, const T* x, i64 n, i64 inner, i64 rows, i64 from, i64 take,
                                      i64 descending, i64 nan_wins) {
  __shared__ u64 keys[MOST_IN_ROW];
  __shared__ u32 where[MOST_IN_ROW];
  int size = 1;
  while (size < n) size *= 2;
  for (i64 row = blockIdx.x; row < rows; row += gridDim.x) {
    const i64 start = row_of(row, n, inner);
    for (int i = threadIdx.x; i < size; i += blockDim.x) {
      keys[i] = i < n ? key_of(x[start + i * inner], descending) : ~0ull;
      where[i] = i;
    }
    order_tile(keys, where, size);
    const i64 first = wanted_from(keys, n, from, nan_wins);
    for (i64 k = threadIdx.x; k < take; k += blockDim.x) {
      const i64 at = row_of(row, take, inner) + k * inner, place = where[first + k];
      values[at] = x[start + place * inner];
      places[at] = place;
    }
    __syncthreads();
  }
}

// Of each tile of MOST_IN_ROW elements the first ``keep`` in order: of x, or of candidates (rows, m) from an earlier round, into
// rows of tiles * keep. Where fewer are there, the largest key and place stand behind.
extern "C" __global__ void order_tiles(u64* to_keys, u32* to_where, const u64* from_keys, const u32* from_where, const T* x,
                                       i64 m, i64 inner, i64 rows, i64 tiles, i64 keep, i64 descending) {
  __shared__ u64 keys[MOST_IN_ROW];
  __shared__ u32 where[MOST_IN_ROW];
  for (i64 tile = blockIdx.x; tile < rows * tiles; tile += gridDim.x) {
    const i64 row = tile / tiles, first = tile % tiles * MOST_IN_ROW, start = row_of(row, m, inner);
    for (int k = threadIdx.x; k < MOST_IN_ROW; k += blockDim.x) {
      const i64 i = first + k;
      const bool there = i < m;
      keys[k] = !there ? ~0ull : from_keys ? from_keys[row * m + i] : key_of(x[start + i * inner], descending);
      where[k] = !there ? ~0u : from_keys ? from_where[row * m + i] : u32(i);
    }
    order_tile(keys, where, MOST_IN_ROW);
    for (i64 k = threadIdx.x; k < keep; k += blockDim.x) {
      to_keys[tile * keep + k] = keys[k];
      to_where[tile * keep + k] = where[k];
    }
    __syncthreads();
  }
}

// Neighbouring runs of rows of n (a multiple of MOST_IN_ROW) merged, EACH elements by a thread: where they begin in the two runs
// is found by halving (O. Green et al., "GPU merge path", 2012); of equal ones the earlier run's come first.
#define EACH 8
extern "C" __global__ void merge_runs(u64* to_keys, u32* to_where, const u64* keys, const u32* where, i64 n, i64 rows,
                                      i64 run) {
  const i64 all = rows * n / EACH;
  EACH_ELEMENT(t, all) {
    const i64 row = t * EACH / n * n, o = t * EACH - row, pair = o / (2 * run) * (2 * run), along = o - pair;
    const i64 left = row + pair, lefts = n - pair < run ? n - pair : run;
    const i64 right = left + lefts, rights = n - pair - lefts < run ? n - pair - lefts : run;
    i64 low = along > rights ? along - rights : 0, high = along < lefts ? along : lefts;
    while (low < high) {
      const i64 middle = (low + high) / 2;
      if (keys[left + middle] <= keys[right + along - 1 - middle]) low = middle + 1;
      else high = middle;
    }
    i64 i = low, j = along - low;
    for (int k = 0; k < EACH; ++k) {
      const bool first = j >= rights || (i < lefts && keys[left + i] <= keys[right + j]);
      const i64 at = first ? left + i++ : right + j++;
      to_keys[row + o + k] = keys[at];
      to_where[row + o + k] = where[at];
    }
  }
}

// values and places (rows, take) of x (outer, n, inner) by rows of m keys and places in order
extern "C" __global__ void take_ordered(T* values, i64* places, const T* x, const u64* keys, const u32* where, i64 m, i64 n,
                                        i64 inner, i64 rows, i64 from, i64 take, i64 nan_wins) {
  EACH_ELEMENT(i, rows * take) {
    const i64 row = i / take, k = i % take;
    const i64 place = where[row * m + wanted_from(keys + row * m, n < m ? n : m, from, nan_wins) + k];
    const i64 at = row_of(row, take, inner) + k * inner;
    values[at] = x[row_of(row, n, inner) + place * inner];
    places[at] = place;
  }
}

// values and places (rows) of the most frequent element of rows of m keys and places in order, of which n are there: of
// several the smallest, at its last place; a block makes a row. floats: there each nan stands alone.
extern "C" __global__ void mode_rows(T* values, i64* places, const T* x, const u64* keys, const u32* where, i64 m, i64 n,
                                     i64 inner, i64 rows, i64 floats) {
  for (i64 row = blockIdx.x; row < rows; row += gridDim.x) {
    const u64* own = keys + row * m;
    u64 best = 0;  // the length of a run, and before it how far its start is from the end
    for (i64 i = threadIdx.x; i < n; i += blockDim.x) {
      if (i + 1 < n && own[i] == own[i + 1] && !(floats && own[i] == ~0ull)) continue;
      i64 low = 0, high = i;  // where the run begins that ends here
      while (low < high) {
        const i64 middle = (low + high) / 2;
        if (own[middle] < own[i]) low = middle + 1;
        else high = middle;
      }
      if (floats && own[i] == ~0ull) low = i;
      best = maximum(best, u64(i + 1 - low) << 32 | u64(0xffffffffu - u32(low)));
    }
    best = block_total<Max>(best);
    if (threadIdx.x == 0) {
      const i64 first = 0xffffffffu - u32(best), last = first + i64(best >> 32) - 1;
      const bool missing = floats && own[first] == ~0ull;
      values[row] = x[row_of(row, n, inner) + where[row * m + first] * inner];
      places[row] = where[row * m + (missing ? n - 1 : last)];
    }
    __syncthreads();
  }
}

// how many of the sequence's elements (of each of the rows of keys, or of one for all) are before a key
extern "C" __global__ void search_sorted(i64* out, const T* sequence, const T* keys, i64 n, i64 per_row, i64 shared, i64 size,
                                         i64 right) {
  EACH_ELEMENT(i, size) {
    const T* row = sequence + (shared ? 0 : i / per_row * n);
    const u64 key = ordered(up(keys[i]));
    i64 low = 0, high = n;
    while (low < high) {
      const i64 middle = (low + high) / 2;
      const u64 there = ordered(up(row[middle]));
      if (there < key || (right && there == key)) low = middle + 1;
      else high = middle;
    }
    out[i] = low;
  }
}
