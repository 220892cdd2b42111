// Sums of few elements along one dimension, by a list for each element of the result: interpolation of images and
// padding by reflection, and their gradients, which are the lists turned around. See framework/ops/image/resample.py.
#include <algorithm>

#include "base/pool.h"
#include "base/simd.h"
#include "bind/array.h"

namespace fw::sampling {
namespace {

// Result i is the sum of weight[k] * x[index[k]] for k from starts[i] to starts[i + 1]; without weights of x[index[k]].
template <class T> struct Lists {
    std::vector<int64_t> starts, index;  // copies: nobody changes them while they are read
    std::vector<T> weight;
    int64_t each = -1;  // how long all lists are, if they are alike

    int64_t out() const { return int64_t(starts.size()) - 1; }
    bool read(const Array& s, const Array& i, const Array& w, int64_t size) {
        starts.assign(s.data<int64_t>(), s.data<int64_t>() + s.size());
        index.assign(i.data<int64_t>(), i.data<int64_t>() + i.size());
        weight.assign(w.data<double>(), w.data<double>() + w.size());
        if (starts.empty() || starts[0] != 0 || starts.back() != int64_t(index.size())) return false;
        each = out() ? starts[1] - starts[0] : 0;
        for (int64_t k = 0; k < out(); ++k) {
            const int64_t n = starts[size_t(k) + 1] - starts[size_t(k)];
            if (n < 0) return false;
            if (n != each) each = -1;
        }
        for (int64_t at : index)
            if (at < 0 || at >= size) return false;
        return true;
    }
};

template <int taps, class T> void line_of(const Lists<T>& l, const T* x, T* y) {
    const int64_t *at = l.index.data(), n = l.out();
    const T* w = l.weight.data();
    for (int64_t i = 0; i < n; ++i, at += taps, w += taps) {
        T sum = w[0] * x[at[0]];
        for (int k = 1; k < taps; ++k) sum += w[k] * x[at[k]];
        y[i] = sum;
    }
}

template <class T> void line(const Lists<T>& l, const T* x, T* y) {
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
    for (; i < n; ++i) y[i] = first ? x[i] * weight : y[i] + x[i] * weight;
}

// One result of `inner` numbers in a row.
template <class T> void row(const Lists<T>& l, int64_t i, const T* x, T* y, int64_t inner) {
    int64_t k = l.starts[size_t(i)];
    const int64_t end = l.starts[size_t(i) + 1];
    if (k == end) return std::fill(y, y + inner, T(0)), void();
    add<true>(y, x + l.index[size_t(k)] * inner, l.weight[size_t(k)], inner);
    while (++k < end) add<false>(y, x + l.index[size_t(k)] * inner, l.weight[size_t(k)], inner);
}

template <class T> nb::object run(const Array& x, int dim, const Array& starts, const Array& index, const Array& weight) {
    constexpr int64_t GRAIN = 16384;
    const int64_t size = x.shape(dim);
    Lists<T> lists;
    if (!lists.read(starts, index, weight, size)) return not_implemented();
    int64_t outer = 1, inner = 1;
    for (int d = 0; d < dim; ++d) outer *= x.shape(d);
    for (int d = dim + 1; d < x.ndim(); ++d) inner *= x.shape(d);
    std::vector<npy_intp> shape(x.shape(), x.shape() + x.ndim());
    const int64_t out = shape[size_t(dim)] = lists.out();
    if (!countable(shape.data(), x.ndim())) return not_implemented();
    InRows rows(x);
    NewArray y = new_array(x.ndim(), shape.data(), x.type());
    {
        const T* from = rows.data<T>();
        T* to = y.data<T>();
        Release release((x.size() + y.size()) * int64_t(sizeof(T)));
        if (inner == 1)
            parallel(outer, 1 + GRAIN / (1 + int64_t(lists.index.size())), [&](int64_t begin, int64_t end) {
                for (int64_t o = begin; o < end; ++o) line(lists, from + o * size, to + o * out);
            });
        else
            parallel(outer * out, 1 + GRAIN / inner, [&](int64_t begin, int64_t end) {
                for (int64_t r = begin; r < end; ++r)
                    row(lists, r % out, from + r / out * size * inner, to + r * inner, inner);
            });
    }
    return give(y);
}

nb::object resample(Array x, int dim, Array starts, Array index, Array weight) {
    if (!x.is_float() || dim < 0 || dim >= x.ndim() || !x.size() || !starts.is<int64_t>() || !index.is<int64_t>() ||
        !weight.is<double>() || starts.ndim() != 1 || index.ndim() != 1 || weight.ndim() != 1 ||
        !starts.contiguous() || !index.contiguous() || !weight.contiguous() || index.size() != weight.size() ||
        starts.size() < 2)
        return not_implemented();
    return x.is<float>() ? run<float>(x, dim, starts, index, weight) : run<double>(x, dim, starts, index, weight);
}

FW_BIND(m) {
    m.def("resample", &resample, nb::arg("x"), nb::arg("dim"), nb::arg("starts"), nb::arg("index"), nb::arg("weight"));
}

}  // namespace
}  // namespace fw::sampling
