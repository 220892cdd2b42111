// Matrices (rows, columns), many of them, written column by column. Tiles go through shared memory, so that neighbours are read
// and neighbours are written. T: elements, of which only the size counts. Blocks of whole warps, a tile of 32 x 32 at a time.
extern "C" __global__ void turn(T* out, const T* x, i64 rows, i64 columns, i64 tiles) {
  __shared__ T tile[32][33];  // a column more: neighbours in a column lie in different banks
  const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5, warps = blockDim.x >> 5;
  const i64 across = (columns + 31) / 32, down = (rows + 31) / 32;
  for (i64 t = blockIdx.x; t < tiles; t += gridDim.x) {
    const i64 matrix = t / (across * down) * rows * columns, row = t / across % down * 32, column = t % across * 32;
    for (int i = warp; i < 32; i += warps)
      if (row + i < rows && column + lane < columns) tile[i][lane] = x[matrix + (row + i) * columns + column + lane];
    __syncthreads();
    for (int i = warp; i < 32; i += warps)
      if (column + i < columns && row + lane < rows) out[matrix + (column + i) * rows + row + lane] = tile[lane][i];
    __syncthreads();  // the tile has been read
  }
}
