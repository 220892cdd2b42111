// Muon's iteration ``x = a x + (b g + c g g) x`` with ``g = x x'``, of all matrices of a table in one launch: the blocks take
// tiles of all products of a step, and meet before the next. T: bfloat16; sums are float32. A row of the table is that of
// muon.cu; tiles are counted through all matrices, those of the squares (g and what is made of it) and those of x.

#define TILE 32
#define THREADS 256

struct Matrix { T* at; i64 down, right; };  // (i, j) is at[i * down + j * right]

// what another block wrote before all of them met
__device__ __forceinline__ W read(const Matrix& x, i64 i, i64 j) {
  T value;
  value.bits = __ldcg(reinterpret_cast<const unsigned short*>(x.at) + i * x.down + j * x.right);
  return up(value);
}
__device__ __forceinline__ Matrix turned(const Matrix& x) { return {x.at, x.right, x.down}; }

// TILE x TILE elements from (top, first) on of one of m x n, in the order in which they lie, and 0 outside
typedef W Panel[TILE][TILE + 1];
__device__ __forceinline__ void fetch(Panel& to, const Matrix& x, i64 m, i64 n, i64 top, i64 first) {
  for (int i = threadIdx.x; i < TILE * TILE; i += THREADS) {
    const int fast = i % TILE, slow = i / TILE, r = x.right == 1 ? slow : fast, c = x.right == 1 ? fast : slow;
    to[r][c] = top + r < m && first + c < n ? read(x, top + r, first + c) : W(0);
  }
}

// put(i, j, sum) for the elements of a tile of x y, which is m x n, and sums of k; in shared memory of two panels
template <class F>
__device__ __forceinline__ void multiply(const Matrix& x, const Matrix& y, i64 m, i64 n, i64 k, i64 tile, F put) {
  SHARED_MEMORY(Panel, panels);
  Panel &lefts = panels[0], &rights = panels[1];
  const i64 along = (n + TILE - 1) / TILE, top = tile / along * TILE, first = tile % along * TILE;
  const int row = threadIdx.x / 16, column = threadIdx.x % 16;
  W sums[2][2] = {{0, 0}, {0, 0}};
  for (i64 at = 0; at < k; at += TILE) {
    __syncthreads();
    fetch(lefts, x, m, k, top, at);
    fetch(rights, y, k, n, at, first);
    __syncthreads();
    for (int deep = 0; deep < TILE; ++deep)
      for (int i = 0; i < 2; ++i)
        for (int j = 0; j < 2; ++j) sums[i][j] += lefts[row + i * 16][deep] * rights[deep][column + j * 16];
  }
  for (int i = 0; i < 2; ++i)
    for (int j = 0; j < 2; ++j)
      if (top + row + i * 16 < m && first + column + j * 16 < n) put(top + row + i * 16, first + column + j * 16, sums[i][j]);
}

struct Work {
  Matrix x, next, gram, poly;  // x: as many rows as columns, or fewer
  i64 size, length;
};
__device__ __forceinline__ Work work_of(const i64* row, i64 step) {
  const i64 m = row[7], n = row[8];
  const bool tall = m > n, odd = step % 2;
  T *from = reinterpret_cast<T*>(row[odd ? 4 : 3]), *to = reinterpret_cast<T*>(row[odd ? 3 : 4]);
  const i64 size = tall ? n : m, down = tall ? 1 : n, right = tall ? n : 1;
  return {{from, down, right}, {to, down, right}, {reinterpret_cast<T*>(row[5]), size, 1},
          {reinterpret_cast<T*>(row[6]), size, 1}, size, tall ? m : n};
}

// squares, longs: tiles of all matrices; arrived: 0
extern "C" __global__ void __launch_bounds__(THREADS, 2) muon_iterate(const i64* table, i64 matrices, i64 width, i64 squares,
                                                                      i64 longs, Numbers numbers, const float* skip, i64 steps,
                                                                      int* arrived) {
  if (skip && *skip != 0) return;
  const W a = N(7), b = N(8), c = N(9);
  int round = 0;
  for (i64 step = 0; step < steps; ++step) {
    for (i64 i = blockIdx.x; i < squares; i += gridDim.x) {
      const i64* row = row_of(table, matrices, width, 9, i);
      const Work w = work_of(row, step);
      multiply(w.x, turned(w.x), w.size, w.size, w.length, i - row[9], [&](i64 r, i64 s, W sum) {
        w.gram.at[r * w.size + s] = Of<T>::down(sum);
      });
    }
    meet(arrived, ++round);
    for (i64 i = blockIdx.x; i < squares; i += gridDim.x) {
      const i64* row = row_of(table, matrices, width, 9, i);
      const Work w = work_of(row, step);
      multiply(w.gram, w.gram, w.size, w.size, w.size, i - row[9], [&](i64 r, i64 s, W sum) {
        w.poly.at[r * w.size + s] = Of<T>::down(b * read(w.gram, r, s) + c * sum);
      });
    }
    meet(arrived, ++round);
    for (i64 i = blockIdx.x; i < longs; i += gridDim.x) {
      const i64* row = row_of(table, matrices, width, 10, i);
      const Work w = work_of(row, step);
      multiply(w.poly, w.x, w.size, w.length, w.size, i - row[10], [&](i64 r, i64 s, W sum) {
        w.next.at[r * w.next.down + s * w.next.right] = Of<T>::down(a * read(w.x, r, s) + sum);
      });
    }
    meet(arrived, ++round);
  }
}
