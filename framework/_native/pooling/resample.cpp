#include "pooling/resample.h"

#include <algorithm>

#include "base/pool.h"
#include "base/simd.h"

namespace fw::sampling {
namespace {

template <int taps, class T> void line_of(const Lists<T>& l, const T* x, T* y) {
    const int64_t *at = l.index.data(), n = l.out();
    const T* w = l.weight.data();
    for (int64_t i = 0; i < n; ++i, at += taps, w += taps) {
        T sum = w[0] * x[at[0]];
        for (int k = 1; k < taps; ++k) sum += w[k] * x[at[k]];
        y[i] = sum;
    }
}

// Most results are neighbours as they stand, as of what is padded.
template <class T> void copied_line(const Lists<T>& l, const T* x, T* y) {
    const auto single = [&](int64_t i) { y[i] = l.weight[size_t(i)] * x[l.index[size_t(i)]]; };
    for (int64_t i = 0; i < l.copied; ++i) single(i);
    const T* from = x + l.index[size_t(l.copied)];
    T* to = y + l.copied;
    int64_t k = 0;
    for (; k + lanes<T> <= l.count; k += lanes<T>) store(to + k, load(from + k));
    if (k < l.count) store_part<T>(to + k, load_part(from + k, l.count - k), l.count - k);
    for (int64_t i = l.copied + l.count; i < l.out(); ++i) single(i);
}

template <class T> void line(const Lists<T>& l, const T* x, T* y) {
    if (2 * l.count > l.out()) return copied_line(l, x, y);
    switch (l.each) {
        case 1: return line_of<1>(l, x, y);
        case 2: return line_of<2>(l, x, y);
        case 4: return line_of<4>(l, x, y);
    }
    for (int64_t i = 0; i < l.out(); ++i) {
        T sum = 0;
        for (int64_t k = l.starts[size_t(i)]; k < l.starts[size_t(i) + 1]; ++k)
            sum += l.weight[size_t(k)] * x[l.index[size_t(k)]];
        y[i] = sum;
    }
}

// y = weight * x, or y += weight * x
template <bool first, class T> void add(T* y, const T* x, T weight, int64_t n) {
    int64_t i = 0;
    for (; i + lanes<T> <= n; i += lanes<T>) {
        const Vec<T> v = load(x + i) * splat(weight);
        store(y + i, first ? v : load(y + i) + v);
    }
    if (i == n) return;
    const Vec<T> v = load_part(x + i, n - i) * splat(weight);
    store_part<T>(y + i, first ? v : load_part(y + i, n - i) + v, n - i);
}

// One result of `inner` numbers in a row.
template <class T> void row(const Lists<T>& l, int64_t i, const T* x, T* y, int64_t inner) {
    int64_t k = l.starts[size_t(i)];
    const int64_t end = l.starts[size_t(i) + 1];
    if (k == end) return std::fill(y, y + inner, T(0)), void();
    add<true>(y, x + l.index[size_t(k)] * inner, l.weight[size_t(k)], inner);
    while (++k < end) add<false>(y, x + l.index[size_t(k)] * inner, l.weight[size_t(k)], inner);
}

// The same of so few numbers that vectors would be mostly empty.
template <int n, class T> void few_row(const Lists<T>& l, int64_t i, const T* x, T* y) {
    T sum[n] = {};
    for (int64_t k = l.starts[size_t(i)]; k < l.starts[size_t(i) + 1]; ++k) {
        const T *from = x + l.index[size_t(k)] * n, weight = l.weight[size_t(k)];
        for (int c = 0; c < n; ++c) sum[c] += weight * from[c];
    }
    std::copy(sum, sum + n, y);
}

template <class T> void few_numbers(const Lists<T>& l, int64_t i, const T* x, T* y, int64_t inner) {
    switch (inner) {
        case 2: return few_row<2>(l, i, x, y);
        case 3: return few_row<3>(l, i, x, y);
        case 4: return few_row<4>(l, i, x, y);
    }
}

}  // namespace

template <class T> void resample(const Lists<T>& lists, const T* x, T* y, int64_t outer, int64_t size, int64_t inner) {
    constexpr int64_t GRAIN = 16384;
    const int64_t out = lists.out();
    if (inner == 1)
        parallel(outer, 1 + GRAIN / (1 + int64_t(lists.index.size())), [&](int64_t begin, int64_t end) {
            for (int64_t o = begin; o < end; ++o) line(lists, x + o * size, y + o * out);
        });
    else if (inner <= 4)
        parallel(outer * out, 1 + GRAIN / inner, [&](int64_t begin, int64_t end) {
            for (int64_t r = begin; r < end; ++r) few_numbers(lists, r % out, x + r / out * size * inner, y + r * inner, inner);
        });
    else
        parallel(outer * out, 1 + GRAIN / inner, [&](int64_t begin, int64_t end) {
            for (int64_t r = begin; r < end; ++r)
                row(lists, r % out, x + r / out * size * inner, y + r * inner, inner);
        });
}

template void resample(const Lists<float>&, const float*, float*, int64_t, int64_t, int64_t);
template void resample(const Lists<double>&, const double*, double*, int64_t, int64_t, int64_t);

}  // namespace fw::sampling
