// Connectionist temporal classification: a block takes a sequence, its threads the labels, one step after the other.
// T: elements, float or double. x (steps, n, classes); labels (n, width) with blanks between.

struct Ctc { i64 steps, n, classes, width, blank; };

__device__ __forceinline__ i64 between(i64 x, i64 most) { return x < 0 ? 0 : x > most ? most : x; }

// log(exp(a) + exp(b) + exp(c)), where -inf stands for nothing at all
__device__ __forceinline__ T log_sum(T a, T b, T c) {
  T top = maximum(a, maximum(b, c));
  if (top == -infinity<T>()) top = 0;
  return top + log(exp(a - top) + exp(b - top) + exp(c - top));
}

struct Sequence {
  const Ctc& at;
  const T* x;
  const i64* labels;
  i64 steps, size;
  __device__ __forceinline__ Sequence(const Ctc& at, i64 i, const T* x, const i64* labels, const i64* times, const i64* sizes)
      : at(at), x(x + i * at.classes), labels(labels + i * at.width), steps(between(times[i], at.steps)),
        size(between(sizes[i], (at.width - 1) / 2)) {}
  __device__ __forceinline__ i64 label(i64 s) const { return between(labels[s], at.classes - 1); }
  // the log probability of label s in step t, if s counts
  __device__ __forceinline__ T emitted(i64 t, i64 s) const {
    return s <= 2 * size ? x[t * at.n * at.classes + label(s)] : -infinity<T>();
  }
  // whether one may come to s past the blank between
  __device__ __forceinline__ bool skips(i64 s) const {
    return s >= 2 && s < at.width && labels[s] != at.blank && labels[s] != labels[s - 2];
  }
  __device__ __forceinline__ T end(i64 s) const { return s == 2 * size || s == 2 * size - 1 ? T(0) : -infinity<T>(); }
};

// labels (n, width) of targets, which are rows of ``row`` or, where that is 0, follow each other
extern "C" __global__ void ctc_labels(i64* labels, const i64* targets, const i64* sizes, i64 row, i64 all, Ctc at, Flag* flag,
                                      i64 wrong) {
  const i64 i = blockIdx.x;
  i64 from = i * row;
  for (i64 k = 0; k < i && !row; ++k) from += between(sizes[k], all);
  const i64 size = between(sizes[i], (at.width - 1) / 2);
  for (i64 s = threadIdx.x; s < at.width; s += blockDim.x) {
    i64 label = at.blank;
    if (s % 2 && s / 2 < size && from + s / 2 < all) {
      label = targets[from + s / 2];
      if (label < 0 || label >= at.classes) raise_flag(flag, int(wrong), label, at.classes);
    }
    labels[i * at.width + s] = label;
  }
}

// losses (n), and alpha (n, steps, width): the log probability of all ways that are at a label after a step
extern "C" __global__ void ctc(T* losses, T* alpha, const T* x, const i64* labels, const i64* times, const i64* sizes, Ctc at) {
  const i64 i = blockIdx.x;
  const Sequence own(at, i, x, labels, times, sizes);
  T* rows = alpha + i * at.steps * at.width;
  const T none = -infinity<T>();
  for (i64 t = 0; t < at.steps; ++t) {
    T *row = rows + t * at.width, *before = row - at.width;
    for (i64 s = threadIdx.x; s < at.width; s += blockDim.x) {
      T moved = none;
      if (t < own.steps && t == 0) moved = s < 2 ? own.emitted(0, s) : none;
      else if (t < own.steps)
        moved = own.emitted(t, s) + log_sum(before[s], s ? before[s - 1] : none, own.skips(s) ? before[s - 2] : none);
      row[s] = moved;
    }
    __syncthreads();
  }
  if (threadIdx.x == 0) {
    const T* row = rows + (own.steps - 1) * at.width;
    const i64 last = 2 * own.size;
    if (own.steps == 0) losses[i] = last == 0 ? T(0) : infinity<T>();  // before the first step all is at the first blank
    else losses[i] = -log_sum(row[last], last ? row[last - 1] : none, none);
  }
}

// out (zeros before) = the gradient of x. after (n, 2, width): the ways from a label to an end; share, next (n, width): room
extern "C" __global__ void ctc_grad(T* out, T* after, T* share, i64* next, const T* g, const T* x, const T* alpha,
                                    const T* losses, const i64* labels, const i64* times, const i64* sizes, Ctc at) {
  const i64 i = blockIdx.x;
  const Sequence own(at, i, x, labels, times, sizes);
  const T whole = losses[i], scale = g[i], none = -infinity<T>();
  if (fabs(whole) == infinity<T>()) return;
  T* ways = after + 2 * i * at.width;
  share += i * at.width, next += i * at.width;
  // where the same label comes again; below 0 where it has come before
  for (i64 s = threadIdx.x; s < at.width; s += blockDim.x) {
    i64 again = s + 2;
    bool first = s % 2;
    for (i64 k = 1; k < s && first; k += 2) first = own.labels[k] != own.labels[s];
    while (again < at.width && own.labels[again] != own.labels[s]) again += 2;
    next[s] = first ? again : -again;
  }
  __syncthreads();
  for (i64 t = own.steps - 1; t >= 0; --t) {
    const T* later = ways + (t + 1) % 2 * at.width;
    T *now = ways + t % 2 * at.width, blanks = 0;
    T* grad = out + (t * at.n + i) * at.classes;
    for (i64 s = threadIdx.x; s < at.width; s += blockDim.x) {
      T way = own.end(s);
      if (t + 1 < own.steps)
        way = log_sum(later[s] + own.emitted(t + 1, s),
                      s + 1 < at.width ? later[s + 1] + own.emitted(t + 1, s + 1) : none,
                      own.skips(s + 2) ? later[s + 2] + own.emitted(t + 1, s + 2) : none);
      now[s] = way;
      share[s] = scale * exp(alpha[(i * at.steps + t) * at.width + s] + way + whole);
      if (s % 2 == 0) blanks += share[s];
    }
    blanks = block_total<Sum>(blanks);
    __syncthreads();
    if (threadIdx.x == 0) grad[at.blank] -= blanks;
    __syncthreads();  // a target may be the blank, too
    for (i64 s = threadIdx.x; s < at.width; s += blockDim.x) {
      if (next[s] < 0) continue;
      T sum = share[s];
      for (i64 k = next[s]; k < at.width; k = next[k] < 0 ? -next[k] : next[k]) sum += share[k];
      grad[own.label(s)] -= sum;
    }
    __syncthreads();
  }
}
