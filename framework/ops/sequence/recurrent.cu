// All steps of a recurrent layer in one launch: each block keeps the recurrent weights of ``units`` units in shared
// memory, and the blocks, all of which run at once, wait for each other after each step. The rows of step t begin at
// starts[t]. A cell says what a unit makes of its gates, which are GATES numbers a row, each gate's side by side.

struct Steps { i64 batch, size, steps, reverse, units; };

__device__ __forceinline__ T sigmoid(T x) { return x < 0 ? exp(x) / (1 + exp(x)) : 1 / (1 + exp(-x)); }
__device__ __forceinline__ i64 step_at(const Steps& s, i64 i) { return s.reverse ? s.steps - 1 - i : i; }
__device__ __forceinline__ i64 first_unit(const Steps& s) { return blockIdx.x * s.units; }
__device__ __forceinline__ i64 own_units(const Steps& s) {
  i64 left = s.size - first_unit(s);
  return s.units < left ? s.units : left;
}

// buffer: two states of all sequences, of which the next step reads one
template <class Cell>
__device__ __forceinline__ void walk(Cell cell, T* y, T* h, T* buffer, const T* w_hh, const T* h0, const i64* starts,
                                     const Steps& s, int* arrived) {
  constexpr int G = Cell::GATES;
  SHARED_MEMORY(T, weights);
  i64 size = s.size, first = first_unit(s), count = own_units(s);
  for (i64 i = threadIdx.x; i < count * G * size; i += blockDim.x)
    weights[i] = w_hh[(i / size % G * size + first + i / (G * size)) * size + i % size];
  for (i64 p = threadIdx.x; p < s.batch * count; p += blockDim.x) {
    i64 at = p / count * size + first + p % count;
    buffer[at] = buffer[s.batch * size + at] = h[at] = h0[at];
    cell.begin(at);
  }
  meet(arrived, 1);
  for (i64 i = 0; i < s.steps; ++i) {
    i64 t = step_at(s, i), row0 = starts[t], n = starts[t + 1] - row0;
    const T* from = buffer + i % 2 * s.batch * size;
    T* to = buffer + (i + 1) % 2 * s.batch * size;
    for (i64 p = threadIdx.x; p < n * count; p += blockDim.x) {  // a thread keeps its sequences and units
      i64 b = p / count, u = p % count, unit = first + u, at = b * size + unit, row = row0 + b;
      const T* w = weights + u * G * size;
      T a[G];
      for (int g = 0; g < G; ++g) a[g] = cell.enters(g, row, unit);
      for (i64 j = 0; j < size; ++j) {
        T value = __ldcg(from + b * size + j);
        for (int g = 0; g < G; ++g) a[g] += value * w[g * size + j];
      }
      h[at] = to[at] = y[row * size + unit] = cell.state(a, row, unit, at, __ldcg(from + at));
    }
    meet(arrived, int(i) + 2);
  }
}

// ``before``: for the weights, the state before each row. A cell's ``back`` gives what the gradient of a state hands to
// the state before it by ways without weights; ``slopes`` are the gradients of what the state has put into the gates.
template <class Cell>
__device__ __forceinline__ void walk_back(Cell cell, const T* slopes, T* before, T* dh, const T* gy, const T* gh,
                                          const T* w_hh, const T* h0, const T* y, const i64* starts, const Steps& s,
                                          int* arrived) {
  constexpr int G = Cell::GATES;
  SHARED_MEMORY(T, weights);
  i64 size = s.size, first = first_unit(s), count = own_units(s);
  for (i64 i = threadIdx.x; i < count * G * size; i += blockDim.x)
    weights[i] = w_hh[i % (G * size) * size + first + i / (G * size)];
  for (i64 p = threadIdx.x; p < s.batch * count; p += blockDim.x) {
    i64 at = p / count * size + first + p % count;
    dh[at] = gh ? gh[at] : T(0);
    cell.begin(at);
  }
  int round = 0;
  for (i64 i = s.steps - 1; i >= 0; --i) {
    i64 t = step_at(s, i), row0 = starts[t], n = starts[t + 1] - row0;
    i64 earlier = i ? step_at(s, i - 1) : 0, earlier0 = starts[earlier], there = i ? starts[earlier + 1] - earlier0 : 0;
    for (i64 p = threadIdx.x; p < n * count; p += blockDim.x) {
      i64 b = p / count, unit = first + p % count, at = b * size + unit, row = row0 + b;
      i64 last = b < there ? (earlier0 + b) * size + unit : -1;
      T state = before[row * size + unit] = last < 0 ? h0[at] : y[last];
      dh[at] = cell.back(dh[at] + (gy ? gy[row * size + unit] : T(0)), row, unit, at, last, state);
    }
    meet(arrived, ++round);
    for (i64 p = threadIdx.x; p < n * count; p += blockDim.x) {
      i64 b = p / count, u = p % count;
      T sum = 0;
      for (i64 r = 0; r < G * size; ++r) sum += __ldcg(slopes + (row0 + b) * G * size + r) * weights[u * G * size + r];
      dh[b * size + first + u] += sum;
    }
  }
}

// -- h = tanh(a) or relu(a) ----------------------------------------------------------------------

template <bool RELU> struct Plain {
  static constexpr int GATES = 1;
  const T* entered;
  i64 size;
  __device__ __forceinline__ void begin(i64) const {}
  __device__ __forceinline__ T enters(int, i64 row, i64 unit) const { return entered[row * size + unit]; }
  __device__ __forceinline__ T state(const T* a, i64, i64, i64, T) const {
    return RELU ? maximum(a[0], T(0)) : tanh(a[0]);
  }
};
template <bool RELU> struct PlainBack {
  static constexpr int GATES = 1;
  T* d;
  const T* y;
  i64 size;
  __device__ __forceinline__ void begin(i64) const {}
  __device__ __forceinline__ T back(T g, i64 row, i64 unit, i64, i64, T) const {
    T v = y[row * size + unit];
    d[row * size + unit] = RELU ? (v > 0 ? g : T(0)) : (1 - v * v) * g;
    return 0;
  }
};

extern "C" __global__ void rnn_tanh(T* y, T* h, const T* entered, T* buffer, const T* w_hh, const T* h0,
                                    const i64* starts, Steps s, int* arrived) {
  walk(Plain<false>{entered, s.size}, y, h, buffer, w_hh, h0, starts, s, arrived);
}
extern "C" __global__ void rnn_tanh_grad(T* d, T* before, T* dh, const T* gy, const T* gh, const T* w_hh, const T* h0,
                                         const T* y, const i64* starts, Steps s, int* arrived) {
  walk_back(PlainBack<false>{d, y, s.size}, d, before, dh, gy, gh, w_hh, h0, y, starts, s, arrived);
}
extern "C" __global__ void rnn_relu(T* y, T* h, const T* entered, T* buffer, const T* w_hh, const T* h0,
                                    const i64* starts, Steps s, int* arrived) {
  walk(Plain<true>{entered, s.size}, y, h, buffer, w_hh, h0, starts, s, arrived);
}
extern "C" __global__ void rnn_relu_grad(T* d, T* before, T* dh, const T* gy, const T* gh, const T* w_hh, const T* h0,
                                         const T* y, const i64* starts, Steps s, int* arrived) {
  walk_back(PlainBack<true>{d, y, s.size}, d, before, dh, gy, gh, w_hh, h0, y, starts, s, arrived);
}

// -- LSTM: gates i f g o hold what enters from outside, and become the gates ---------------------

struct Lstm {
  static constexpr int GATES = 4;
  T *gates, *cells, *c;
  const T* c0;
  i64 size;
  __device__ __forceinline__ void begin(i64 at) const { c[at] = c0[at]; }
  __device__ __forceinline__ T enters(int g, i64 row, i64 unit) const { return gates[(row * 4 + g) * size + unit]; }
  __device__ __forceinline__ T state(const T* a, i64 row, i64 unit, i64 at, T) const {
    T in = sigmoid(a[0]), forget = sigmoid(a[1]), fresh = tanh(a[2]), out = sigmoid(a[3]);
    T cell = forget * c[at] + in * fresh, *gate = gates + row * 4 * size + unit;
    gate[0] = in; gate[size] = forget; gate[2 * size] = fresh; gate[3 * size] = out;
    c[at] = cells[row * size + unit] = cell;
    return out * tanh(cell);
  }
};
struct LstmBack {
  static constexpr int GATES = 4;
  T *d, *dc;
  const T *gc, *gates, *cells, *c0;
  i64 size;
  __device__ __forceinline__ void begin(i64 at) const { dc[at] = gc ? gc[at] : T(0); }
  __device__ __forceinline__ T back(T g, i64 row, i64 unit, i64 at, i64 last, T) const {
    const T* gate = gates + row * 4 * size + unit;
    T in = gate[0], forget = gate[size], fresh = gate[2 * size], out = gate[3 * size];
    T through = tanh(cells[row * size + unit]), to_cell = dc[at] + g * out * (1 - through * through);
    T* slope = d + row * 4 * size + unit;
    slope[0] = to_cell * fresh * in * (1 - in);
    slope[size] = to_cell * (last < 0 ? c0[at] : cells[last]) * forget * (1 - forget);
    slope[2 * size] = to_cell * in * (1 - fresh * fresh);
    slope[3 * size] = g * through * out * (1 - out);
    dc[at] = to_cell * forget;
    return 0;
  }
};

extern "C" __global__ void lstm(T* y, T* h, T* c, T* gates, T* cells, T* buffer, const T* w_hh, const T* h0, const T* c0,
                                const i64* starts, Steps s, int* arrived) {
  walk(Lstm{gates, cells, c, c0, s.size}, y, h, buffer, w_hh, h0, starts, s, arrived);
}
extern "C" __global__ void lstm_grad(T* d, T* before, T* dh, T* dc, const T* gy, const T* gh, const T* gc, const T* w_hh,
                                     const T* h0, const T* c0, const T* y, const T* gates, const T* cells,
                                     const i64* starts, Steps s, int* arrived) {
  walk_back(LstmBack{d, dc, gc, gates, cells, c0, s.size}, d, before, dh, gy, gh, w_hh, h0, y, starts, s, arrived);
}

// -- GRU: gates r z n, and what r multiplies; ``entered`` (r z n) is what enters from outside ----

struct Gru {
  static constexpr int GATES = 3;
  const T *entered, *b_hh;
  T* gates;
  i64 size;
  __device__ __forceinline__ void begin(i64) const {}
  __device__ __forceinline__ T enters(int g, i64 row, i64 unit) const {  // what the state puts into n goes by r
    T bias = b_hh ? b_hh[g * size + unit] : T(0);
    return g == 2 ? bias : bias + entered[(row * 3 + g) * size + unit];
  }
  __device__ __forceinline__ T state(const T* a, i64 row, i64 unit, i64, T before) const {
    T r = sigmoid(a[0]), z = sigmoid(a[1]), n = tanh(entered[(row * 3 + 2) * size + unit] + r * a[2]);
    T* gate = gates + row * 4 * size + unit;
    gate[0] = r; gate[size] = z; gate[2 * size] = n; gate[3 * size] = a[2];
    return (before - n) * z + n;
  }
};
struct GruBack {
  static constexpr int GATES = 3;
  T *d, *slopes;  // of what enters from outside, and from the state
  const T* gates;
  i64 size;
  __device__ __forceinline__ void begin(i64) const {}
  __device__ __forceinline__ T back(T g, i64 row, i64 unit, i64, i64, T before) const {
    const T* gate = gates + row * 4 * size + unit;
    T r = gate[0], z = gate[size], n = gate[2 * size], inner = gate[3 * size];
    T to_n = g * (1 - z) * (1 - n * n), to_z = g * (before - n) * z * (1 - z), to_r = to_n * inner * r * (1 - r);
    i64 at = row * 3 * size + unit;
    d[at] = slopes[at] = to_r;
    d[at + size] = slopes[at + size] = to_z;
    d[at + 2 * size] = to_n;
    slopes[at + 2 * size] = to_n * r;
    return g * z;
  }
};

extern "C" __global__ void gru(T* y, T* h, T* gates, const T* entered, const T* b_hh, T* buffer, const T* w_hh, const T* h0,
                               const i64* starts, Steps s, int* arrived) {
  walk(Gru{entered, b_hh, gates, s.size}, y, h, buffer, w_hh, h0, starts, s, arrived);
}
extern "C" __global__ void gru_grad(T* d, T* slopes, T* before, T* dh, const T* gy, const T* gh, const T* w_hh,
                                    const T* h0, const T* y, const T* gates, const i64* starts, Steps s, int* arrived) {
  walk_back(GruBack{d, slopes, gates, s.size}, slopes, before, dh, gy, gh, w_hh, h0, y, starts, s, arrived);
}
