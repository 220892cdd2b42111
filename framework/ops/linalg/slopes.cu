// What stands in the middle of the gradients of factors: matrices (n, n), many of them, of which ``i`` is row and ``j`` column.
// T: elements, computed in themselves. What may be null is left out.
#define PLACE(at) const i64 i = at / n % n, j = at % n, row = at / n / n * n, turned = (row + j) * n + i

__device__ __forceinline__ T over(T x, T y) { return x == 0 ? T(0) : x / y; }

// what is below the diagonals of x - y, mirrored above them, times factor
extern "C" __global__ void mirrored(T* out, const T* x, const T* y, i64 n, i64 total, double factor) {
  EACH_ELEMENT(at, total) {
    PLACE(at);
    const i64 from = i < j ? turned : at;
    out[at] = T(factor) * ((x ? x[from] : T(0)) - (y ? y[from] : T(0)));
  }
}

// of singular values s (n): their gradients gs on the diagonal, and beside it (a - a^T) s[j] + (b - b^T) s[i] over the
// difference of their squares, where a = U^T gu and b = Vh gvh^T
extern "C" __global__ void singular_middle(T* out, const T* gs, const T* a, const T* b, const T* s, i64 n, i64 total) {
  EACH_ELEMENT(at, total) {
    PLACE(at);
    const T left = s[row + i], right = s[row + j], gap = (right - left) * (right + left);
    T found = 0;
    if (i == j) {
      if (gs) found = gs[row + i];
    } else {
      if (a) found = over(a[at] - a[turned], gap) * right;
      if (b) found += over(b[at] - b[turned], gap) * left;
    }
    out[at] = found;
  }
}

// of eigenvalues l (n) of symmetric matrices: their gradients gl on the diagonal, and beside it inner = V^T gv over the
// differences of eigenvalues
extern "C" __global__ void eigen_middle(T* out, const T* gl, const T* inner, const T* l, i64 n, i64 total) {
  EACH_ELEMENT(at, total) {
    PLACE(at);
    out[at] = i != j ? over(inner[at], l[row + j] - l[row + i]) : gl ? gl[row + i] : T(0);
  }
}
