// Sums into places that repeat, whose terms are added in their order. T: elements; W: what is computed in.

// out[place] += its values: ``places`` (n) in order, ``order`` says where their values stand. Who meets a place first
// adds all of them.
extern "C" __global__ void add_in_order(T* out, const T* values, const i64* places, const i64* order, i64 n) {
  EACH_ELEMENT(i, n) {
    const i64 place = places[i];
    if (i && places[i - 1] == place) continue;
    W sum = up(out[place]);
    for (i64 k = i; k < n && places[k] == place; ++k) sum += up(values[order[k]]);
    out[place] = Of<T>::down(sum);
  }
}
