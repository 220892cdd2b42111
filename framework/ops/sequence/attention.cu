// Attention without its table of weights (Dao et al., arXiv:2205.14135), for heads of up to 128 features. A warp makes
// a row of queries (forward, dq) or of keys (dk, dv); the warps of a block share tiles of 32 rows of the other side.
// T: elements; W: what is computed in.

#define LANES 32
#define PARTS 4     // features of a lane: 128 / 32
#define DIMS 4
enum Operand { Q, K, V, MASK, G, OUT, DQ, DK, DV, OPERANDS };
// lead: the dimensions before the last two, with the strides of each operand; then strides of rows and of features
struct Attention {
  i64 lead, lead_dims, queries, keys, features, values, causal, mask_kind;  // mask_kind: 0 none, 1 bool, 2 added
  i64 size[DIMS], stride[OPERANDS][DIMS], row[OPERANDS], column[OPERANDS];
  double scale, factor;
};

__device__ __forceinline__ i64 base_of(const Attention& a, int operand, i64 lead) {
  return offset(lead, int(a.lead_dims), a.size, a.stride[operand]);
}
template <class F> __device__ __forceinline__ W warp_total(W x) {
  for (int by = 16; by; by >>= 1) x = F::of(x, __shfl_xor_sync(0xffffffffu, x, by));
  return x;
}
// rows first ... first + 31 of an operand (0 behind its end) into shared memory, a step of columns + 1 apart
__device__ __forceinline__ void load_tile(W* tile, const T* x, i64 first, i64 rows, i64 columns, i64 row, i64 column) {
  const int width = int(columns);  // at most 128
  for (int i = threadIdx.x; i < LANES * width; i += blockDim.x) {
    const int r = i / width, c = i % width;
    tile[r * (width + 1) + c] = first + r < rows ? W(up(x[(first + r) * row + c * column])) : W(0);
  }
}
__device__ __forceinline__ W dot(const W* x, const W* y, i64 n) {
  W sum = 0;
  for (i64 i = 0; i < n; ++i) sum += x[i] * y[i];
  return sum;
}
// the score of a query and a key behind mask and causality; open: whether the mask lets it through
__device__ __forceinline__ W masked(const Attention& a, W score, i64 query, i64 key, const void* mask, i64 base, bool& open) {
  open = query < a.queries && key < a.keys;
  if (!open) return -infinity<W>();
  if (a.causal && key > query) return open = false, -infinity<W>();
  i64 at = base + query * a.row[MASK] + key * a.column[MASK];
  if (a.mask_kind == 1 && !static_cast<const bool*>(mask)[at]) return open = false, -infinity<W>();
  if (a.mask_kind == 2) {
    W added = up(static_cast<const T*>(mask)[at]);
    if (added == -infinity<W>()) open = false;
    score += added;
  }
  return score;
}

extern "C" __global__ void attention(T* out, W* lse, const T* q, const T* k, const T* v, const void* mask, Attention a,
                                     Coins coins) {
  SHARED_MEMORY(W, memory);
  W* keys = memory;
  W* values = keys + LANES * (a.features + 1);
  int lane = threadIdx.x % LANES, warp = threadIdx.x / LANES, warps = blockDim.x / LANES;
  W* own = values + LANES * (a.values + 1) + warp * a.features;
  i64 tiles = (a.queries + warps - 1) / warps;
  for (i64 job = blockIdx.x; job < a.lead * tiles; job += gridDim.x) {
    i64 lead = job / tiles, query = job % tiles * warps + warp;
    const T *qs = q + base_of(a, Q, lead), *ks = k + base_of(a, K, lead), *vs = v + base_of(a, V, lead);
    i64 mask_base = a.mask_kind ? base_of(a, MASK, lead) : 0;
#pragma unroll 1
    for (i64 c = lane; c < a.features; c += LANES)
      own[c] = query < a.queries ? W(up(qs[query * a.row[Q] + c * a.column[Q]])) * W(a.scale) : W(0);
    W top = -infinity<W>(), total = 0, sums[PARTS] = {0, 0, 0, 0};
    bool any = false;
    for (i64 first = 0; first < a.keys; first += LANES) {
      __syncthreads();
      load_tile(keys, ks, first, a.keys, a.features, a.row[K], a.column[K]);
      load_tile(values, vs, first, a.keys, a.values, a.row[V], a.column[V]);
      __syncthreads();
      i64 key = first + lane;
      bool open;
      W score = masked(a, dot(own, keys + lane * (a.features + 1), a.features), query, key, mask, mask_base, open);
      any = any || open;
      W higher = maximum(top, warp_total<Max>(score));
      W shrink = top == higher ? W(1) : exp(top - higher);
      W weight = score == -infinity<W>() ? W(0) : exp(score - higher);
      total = total * shrink + warp_total<Sum>(weight);
      if (a.factor != 1 && query < a.queries && key < a.keys)
        weight *= coin(coins, (lead * a.queries + query) * a.keys + key) ? W(a.factor) : W(0);
      for (int p = 0; p < PARTS; ++p) sums[p] *= shrink;
#pragma unroll 4
      for (int j = 0; j < LANES; ++j) {
        W w = __shfl_sync(0xffffffffu, weight, j);
        for (int p = 0; p < PARTS; ++p)
          if (lane + p * LANES < a.values) sums[p] += w * values[j * (a.values + 1) + lane + p * LANES];
      }
      top = higher;
    }
    bool shut = a.mask_kind && !int(warp_total<Max>(W(any ? 1 : 0)));
    if (query < a.queries) {
      T* to = out + base_of(a, OUT, lead) + query * a.row[OUT];
      for (int p = 0; p < PARTS; ++p) {
        i64 c = lane + p * LANES;
        if (c < a.values) to[c * a.column[OUT]] = Of<T>::down(shut ? W(0) : sums[p] / total);
      }
      if (lane == 0) lse[lead * a.queries + query] = shut ? infinity<W>() : top + log(total);
    }
  }
}

// dq, the gradient of each score in ``slopes`` (lead, queries, keys) where that is wanted, and for the other kernel
// ``delta``, the sum of g * out over the features of each row
extern "C" __global__ void attention_dq(T* dq, W* delta, W* slopes, const T* g, const T* q, const T* k, const T* v,
                                        const void* mask, const T* out, const W* lse, Attention a, Coins coins) {
  SHARED_MEMORY(W, memory);
  W* keys = memory;
  W* values = keys + LANES * (a.features + 1);
  int lane = threadIdx.x % LANES, warp = threadIdx.x / LANES, warps = blockDim.x / LANES;
  W* own = values + LANES * (a.values + 1) + warp * (a.features + a.values);
  W* got = own + a.features;
  i64 tiles = (a.queries + warps - 1) / warps;
  for (i64 job = blockIdx.x; job < a.lead * tiles; job += gridDim.x) {
    i64 lead = job / tiles, query = job % tiles * warps + warp;
    bool here = query < a.queries;
    const T *qs = q + base_of(a, Q, lead), *ks = k + base_of(a, K, lead), *vs = v + base_of(a, V, lead);
    const T *gs = g + base_of(a, G, lead), *os = out + base_of(a, OUT, lead);
    i64 mask_base = a.mask_kind ? base_of(a, MASK, lead) : 0;
#pragma unroll 1
    for (i64 c = lane; c < a.features; c += LANES)
      own[c] = here ? W(up(qs[query * a.row[Q] + c * a.column[Q]])) * W(a.scale) : W(0);
    W product = 0, log_total = here ? lse[lead * a.queries + query] : W(0);
#pragma unroll 1
    for (i64 c = lane; c < a.values; c += LANES) {
      got[c] = here ? W(up(gs[query * a.row[G] + c * a.column[G]])) : W(0);
      if (here) product += got[c] * up(os[query * a.row[OUT] + c * a.column[OUT]]);
    }
    product = warp_total<Sum>(product);
    if (here && lane == 0) delta[lead * a.queries + query] = product;
    W sums[PARTS] = {0, 0, 0, 0};
    for (i64 first = 0; first < a.keys; first += LANES) {
      __syncthreads();
      load_tile(keys, ks, first, a.keys, a.features, a.row[K], a.column[K]);
      load_tile(values, vs, first, a.keys, a.values, a.row[V], a.column[V]);
      __syncthreads();
      i64 key = first + lane;
      bool open;
      W score = masked(a, dot(own, keys + lane * (a.features + 1), a.features), query, key, mask, mask_base, open);
      W through = dot(got, values + lane * (a.values + 1), a.values), slope = 0;
      if (score != -infinity<W>() && log_total != infinity<W>()) {
        if (a.factor != 1) through *= coin(coins, (lead * a.queries + query) * a.keys + key) ? W(a.factor) : W(0);
        slope = exp(score - log_total) * (through - product);
      }
      if (slopes && here && key < a.keys) slopes[(lead * a.queries + query) * a.keys + key] = slope;
#pragma unroll 4
      for (int j = 0; j < LANES; ++j) {
        W s = __shfl_sync(0xffffffffu, slope, j);
        for (int p = 0; p < PARTS; ++p)
          if (lane + p * LANES < a.features) sums[p] += s * keys[j * (a.features + 1) + lane + p * LANES];
      }
    }
    if (here && dq)
      for (int p = 0; p < PARTS; ++p) {
        i64 c = lane + p * LANES;
        if (c < a.features)
          dq[base_of(a, DQ, lead) + query * a.row[DQ] + c * a.column[DQ]] = Of<T>::down(sums[p] * W(a.scale));
      }
  }
}

extern "C" __global__ void attention_dkv(T* dk, T* dv, const W* delta, const T* g, const T* q, const T* k, const T* v,
                                         const void* mask, const W* lse, Attention a, Coins coins) {
  SHARED_MEMORY(W, memory);
  W* queries = memory;
  W* gs_tile = queries + LANES * (a.features + 1);
  int lane = threadIdx.x % LANES, warp = threadIdx.x / LANES, warps = blockDim.x / LANES;
  W* own = gs_tile + LANES * (a.values + 1) + warp * (a.features + a.values);
  W* value = own + a.features;
  i64 tiles = (a.keys + warps - 1) / warps;
  for (i64 job = blockIdx.x; job < a.lead * tiles; job += gridDim.x) {
    i64 lead = job / tiles, key = job % tiles * warps + warp;
    bool here = key < a.keys;
    const T *qs = q + base_of(a, Q, lead), *ks = k + base_of(a, K, lead), *vs = v + base_of(a, V, lead);
    const T* gs = g + base_of(a, G, lead);
    i64 mask_base = a.mask_kind ? base_of(a, MASK, lead) : 0;
#pragma unroll 1
    for (i64 c = lane; c < a.features; c += LANES)
      own[c] = here ? W(up(ks[key * a.row[K] + c * a.column[K]])) * W(a.scale) : W(0);
#pragma unroll 1
    for (i64 c = lane; c < a.values; c += LANES) value[c] = here ? W(up(vs[key * a.row[V] + c * a.column[V]])) : W(0);
    W to_key[PARTS] = {0, 0, 0, 0}, to_value[PARTS] = {0, 0, 0, 0};
    for (i64 first = 0; first < a.queries; first += LANES) {
      __syncthreads();
      load_tile(queries, qs, first, a.queries, a.features, a.row[Q], a.column[Q]);
      load_tile(gs_tile, gs, first, a.queries, a.values, a.row[G], a.column[G]);
      __syncthreads();
      i64 query = first + lane;
      bool open;
      W score = masked(a, dot(own, queries + lane * (a.features + 1), a.features), query, key, mask, mask_base, open);
      W through = dot(value, gs_tile + lane * (a.values + 1), a.values), weight = 0, slope = 0;
      W log_total = query < a.queries ? lse[lead * a.queries + query] : infinity<W>();
      if (score != -infinity<W>() && log_total != infinity<W>()) {
        weight = exp(score - log_total);
        W kept = a.factor == 1 ? W(1)
                 : coin(coins, (lead * a.queries + query) * a.keys + key) ? W(a.factor) : W(0);
        slope = weight * (through * kept - delta[lead * a.queries + query]);
        weight *= kept;
      }
#pragma unroll 4
      for (int j = 0; j < LANES; ++j) {
        W s = __shfl_sync(0xffffffffu, slope, j), w = __shfl_sync(0xffffffffu, weight, j);
        for (int p = 0; p < PARTS; ++p) {
          i64 c = lane + p * LANES;
          if (c < a.features) to_key[p] += s * queries[j * (a.features + 1) + c];
          if (c < a.values) to_value[p] += w * gs_tile[j * (a.values + 1) + c];
        }
      }
    }
    if (!here) continue;
    for (int p = 0; p < PARTS; ++p) {
      i64 c = lane + p * LANES;
      if (dk && c < a.features)
        dk[base_of(a, DK, lead) + key * a.row[DK] + c * a.column[DK]] = Of<T>::down(to_key[p] * W(a.scale));
      if (dv && c < a.values)
        dv[base_of(a, DV, lead) + key * a.row[DV] + c * a.column[DV]] = Of<T>::down(to_value[p]);
    }
  }
}
