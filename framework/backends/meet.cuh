// Kernels whose blocks all run at once (a cooperative launch) and wait for each other.

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
