// Orthogonal polynomials (polynomials.py), derived `order` times: P_(k+1) = (a x + b) P_k - c P_(k-1) from P_0 = 1 and
// P_1 = p x + q, and D_(k+1) = (a x + b) D_k + m a E_k - c D_(k-1) of the m-th derivatives D, E those before.
#define MOST_DERIVED 8

struct Family { double p, q, a, b, c, kind; };  // kind 0: a, b and c of every k
__device__ __forceinline__ void step_of(const Family& f, double k, double& a, double& b, double& c) {
  a = f.a, b = f.b, c = f.c;
  if (f.kind == 1) c = f.c * k;  // Hermite's
  if (f.kind == 2) a = -1 / (k + 1), b = (2 * k + 1) / (k + 1), c = k / (k + 1);  // Laguerre's
  if (f.kind == 3) a = (2 * k + 1) / (k + 1), b = 0, c = k / (k + 1);  // Legendre's
}

__device__ __forceinline__ double value_of(const Family& f, double x, double n, int order) {
  if (n != n) return n;
  n = trunc(n);
  if (n < order) return 0;
  double before[MOST_DERIVED + 1] = {1}, now[MOST_DERIVED + 1] = {f.p * x + f.q, f.p};
  if (n == 0) return 1;
  for (double k = 1; k < n; ++k) {
    double a, b, c;
    step_of(f, k, a, b, c);
#pragma unroll
    for (int m = MOST_DERIVED; m >= 0; --m) {
      if (m > order) continue;
      const double after = (a * x + b) * now[m] - c * before[m] + (m ? m * a * now[m ? m - 1 : 0] : 0.0);
      before[m] = now[m];
      now[m] = after;
    }
  }
  double found = 0;
#pragma unroll
  for (int m = 0; m <= MOST_DERIVED; ++m) found = m == order ? now[m] : found;
  return found;
}

// x or n may be one number for all
extern "C" __global__ void polynomial(T* out, const T* x, const T* n, i64 one_x, i64 one_n, i64 size, Family f, i64 order) {
  EACH_ELEMENT(i, size)
    out[i] = Of<T>::down(W(value_of(f, up(x[one_x ? 0 : i]), up(n[one_n ? 0 : i]), int(order))));
}
