// All steps of an LSTM in one launch: each block keeps the recurrent weights of ``units`` units in shared memory, and
// the blocks, all of which run at once, wait for each other after each step. The rows of step t begin at starts[t].

struct Steps { i64 batch, size, steps, reverse, units; };

// all blocks of the grid meet; ``round`` counts from 1, ``arrived`` begins at 0
__device__ __forceinline__ void meet(int* arrived, int round) {
#ifdef CUDA_ON_CPU
  cuda_on_cpu_grid_barrier();
#else
  __syncthreads();
  if (threadIdx.x == 0) {
    __threadfence();
    atomicAdd(arrived, 1);
    while (*static_cast<volatile int*>(arrived) < round * int(gridDim.x)) {}
    __threadfence();
  }
  __syncthreads();
#endif
}
__device__ __forceinline__ T sigmoid(T x) { return x < 0 ? exp(x) / (1 + exp(x)) : 1 / (1 + exp(-x)); }
__device__ __forceinline__ i64 step_at(const Steps& s, i64 i) { return s.reverse ? s.steps - 1 - i : i; }

// gates hold what enters from outside, and become the gates; buffer: two states of all sequences
extern "C" __global__ void lstm(T* y, T* h, T* c, T* gates, T* cells, T* buffer, const T* w_hh, const T* h0, const T* c0,
                                const i64* starts, Steps s, int* arrived) {
  SHARED_MEMORY(T, weights);
  i64 size = s.size, first = blockIdx.x * s.units, count = s.units < size - first ? s.units : size - first;
  for (i64 i = threadIdx.x; i < count * 4 * size; i += blockDim.x)
    weights[i] = w_hh[(i / size % 4 * size + first + i / (4 * size)) * size + i % size];
  for (i64 p = threadIdx.x; p < s.batch * count; p += blockDim.x) {
    i64 at = p / count * size + first + p % count;
    buffer[at] = buffer[s.batch * size + at] = h[at] = h0[at];
    c[at] = c0[at];
  }
  meet(arrived, 1);
  for (i64 i = 0; i < s.steps; ++i) {
    i64 t = step_at(s, i), row0 = starts[t], n = starts[t + 1] - row0;
    const T* from = buffer + i % 2 * s.batch * size;
    T* to = buffer + (i + 1) % 2 * s.batch * size;
    for (i64 p = threadIdx.x; p < n * count; p += blockDim.x) {  // a thread keeps its sequences and units
      i64 b = p / count, u = p % count, at = b * size + first + u, row = row0 + b;
      T* gate = gates + row * 4 * size + first + u;
      const T* w = weights + u * 4 * size;
      T a0 = gate[0], a1 = gate[size], a2 = gate[2 * size], a3 = gate[3 * size];
      for (i64 j = 0; j < size; ++j) {
        T value = __ldcg(from + b * size + j);
        a0 += value * w[j];
        a1 += value * w[size + j];
        a2 += value * w[2 * size + j];
        a3 += value * w[3 * size + j];
      }
      a0 = sigmoid(a0); a1 = sigmoid(a1); a2 = tanh(a2); a3 = sigmoid(a3);
      T cell = a1 * c[at] + a0 * a2, state = a3 * tanh(cell);
      gate[0] = a0; gate[size] = a1; gate[2 * size] = a2; gate[3 * size] = a3;
      c[at] = cells[row * size + first + u] = cell;
      h[at] = to[at] = y[row * size + first + u] = state;
    }
    meet(arrived, int(i) + 2);
  }
}

// gradients of the gates' inputs, of the first states, and for the weights the state before each row
extern "C" __global__ void lstm_grad(T* d, T* before, T* dh, T* dc, const T* gy, const T* gh, const T* gc, const T* w_hh,
                                     const T* h0, const T* c0, const T* y, const T* gates, const T* cells,
                                     const i64* starts, Steps s, int* arrived) {
  SHARED_MEMORY(T, weights);
  i64 size = s.size, first = blockIdx.x * s.units, count = s.units < size - first ? s.units : size - first;
  for (i64 i = threadIdx.x; i < count * 4 * size; i += blockDim.x)
    weights[i] = w_hh[i % (4 * size) * size + first + i / (4 * size)];
  for (i64 p = threadIdx.x; p < s.batch * count; p += blockDim.x) {
    i64 at = p / count * size + first + p % count;
    dh[at] = gh ? gh[at] : T(0);
    dc[at] = gc ? gc[at] : T(0);
  }
  int round = 0;
  for (i64 i = s.steps - 1; i >= 0; --i) {
    i64 t = step_at(s, i), row0 = starts[t], n = starts[t + 1] - row0;
    i64 earlier = i ? step_at(s, i - 1) : 0, earlier0 = starts[earlier], there = i ? starts[earlier + 1] - earlier0 : 0;
    for (i64 p = threadIdx.x; p < n * count; p += blockDim.x) {
      i64 b = p / count, unit = first + p % count, at = b * size + unit, row = row0 + b;
      const T* gate = gates + row * 4 * size + unit;
      T in = gate[0], forget = gate[size], fresh = gate[2 * size], out = gate[3 * size];
      T through = tanh(cells[row * size + unit]), to_state = dh[at] + (gy ? gy[row * size + unit] : T(0));
      T to_cell = dc[at] + to_state * out * (1 - through * through);
      i64 last = (earlier0 + b) * size + unit;
      T* slope = d + row * 4 * size + unit;
      slope[0] = to_cell * fresh * in * (1 - in);
      slope[size] = to_cell * (b < there ? cells[last] : c0[at]) * forget * (1 - forget);
      slope[2 * size] = to_cell * in * (1 - fresh * fresh);
      slope[3 * size] = to_state * through * out * (1 - out);
      before[row * size + unit] = b < there ? y[last] : h0[at];
      dc[at] = to_cell * forget;
    }
    __syncthreads();
    meet(arrived, ++round);
    for (i64 p = threadIdx.x; p < n * count; p += blockDim.x) {
      i64 b = p / count, u = p % count;
      T sum = 0;
      for (i64 r = 0; r < 4 * size; ++r) sum += __ldcg(d + (row0 + b) * 4 * size + r) * weights[u * 4 * size + r];
      dh[b * size + first + u] = sum;
    }
  }
}
