// Histograms of NumPy arrays.
#include "reduce/bins.h"

#include <algorithm>
#include <cmath>

#include "base/pool.h"
#include "bind/array.h"

namespace fw {
namespace {

// Finite edges of this dtype that do not fall, at least two; copies, since others may write into the array.
template <class T> bool copied_edges(const Array& edges, std::vector<T>& to) {
    if (!edges.is<T>() || edges.ndim() != 1 || edges.size() < 2) return false;
    const InRows rows(edges);
    to.assign(rows.data<T>(), rows.data<T>() + edges.size());
    for (size_t i = 0; i < to.size(); ++i)
        if (!std::isfinite(to[i]) || (i && to[i] < to[i - 1])) return false;
    return true;
}

// How many of n rows of x are in each cell of a grid, or how much of their weight, in the dtype of x.
template <class T> nb::object in_grid(const Array& x, int64_t n, nb::handle weight, const std::vector<Array>& given) {
    const size_t dims = given.size();
    const Given w(weight);
    if (!w.fits(x, n)) return not_implemented();
    std::vector<std::vector<T>> kept(dims);
    std::vector<Edges<T>> edges;
    std::vector<npy_intp> shape;
    for (size_t d = 0; d < dims; ++d) {
        if (!copied_edges(given[d], kept[d])) return not_implemented();
        edges.emplace_back(kept[d].data(), int64_t(kept[d].size()) - 1);
        shape.push_back(npy_intp(kept[d].size() - 1));
    }
    if (!countable(shape.data(), int(dims))) return not_implemented();
    NewArray out = new_array(int(dims), shape.data(), x.type());
    nb::object result = give(out);
    const InRows rows(x);
    Release release(x.size() * 16);
    std::vector<double> sums(size_t(out.size()), 0.0);
    fill_bins<T>(rows.data<T>(), n, int64_t(dims), edges.data(), w.template data<T>(), sums.data());
    std::transform(sums.begin(), sums.end(), out.data<T>(), [](double sum) { return T(sum); });
    return result;
}

nb::object histogram(Array x, nb::handle weight, Array edges) {
    if (!x.is_float()) return not_implemented();
    return x.is<float>() ? in_grid<float>(x, x.size(), weight, {edges}) : in_grid<double>(x, x.size(), weight, {edges});
}

nb::object histogramdd(Array x, nb::handle weight, nb::args given) {
    std::vector<Array> edges;
    for (nb::handle each : given) edges.push_back(nb::cast<Array>(each));
    if (!x.is_float() || x.ndim() != 2 || edges.empty() || x.shape(1) != int64_t(edges.size())) return not_implemented();
    return x.is<float>() ? in_grid<float>(x, x.shape(0), weight, edges) : in_grid<double>(x, x.shape(0), weight, edges);
}

// The product of all other elements of each row: chains from both ends that meet, and then go on over each other's.
template <class T> void other_products(const T* x, int64_t rows, int64_t n, T* out) {
    parallel(rows, std::max<int64_t>(1, 8192 / std::max<int64_t>(n, 1)), [=](int64_t begin, int64_t end) {
        for (int64_t row = begin; row < end; ++row) {
            const T* from = x + row * n;
            T *to = out + row * n, left = 1, right = 1;
            const int64_t half = n / 2;
            for (int64_t i = 0, j = n - 1; i < half; ++i, --j) {
                to[i] = left, left *= from[i];
                to[j] = right, right *= from[j];
            }
            if (n % 2) to[half] = left * right, left *= from[half];
            const T middle = n % 2 ? from[half] : T(1);
            T back = right * middle;
            for (int64_t i = n - half, j = half - 1; i < n; ++i, --j) {
                to[i] *= left, left *= from[i];
                to[j] *= back, back *= from[j];
            }
        }
    });
}

nb::object prod_others(Array x) {
    if (!x.is_float() || !x.ndim() || !x.size()) return not_implemented();
    const int64_t n = x.shape(x.ndim() - 1);
    NewArray out = like(x);
    nb::object result = give(out);
    const InRows rows(x);
    Release release(x.size() * 16);
    if (x.is<float>()) other_products(rows.data<float>(), x.size() / n, n, out.data<float>());
    else other_products(rows.data<double>(), x.size() / n, n, out.data<double>());
    return result;
}

// (the least, the largest) of numbers, none of them nan; None where that is not so, or not known.
template <class T> nb::object ends_in(const T* x, int64_t n) {
    T least, most;
    if (!ends_of(x, n, least, most)) return nb::none();
    return nb::make_tuple(double(least), double(most));
}

nb::object ends(Array x) {
    if (!x.is_float() || !x.size()) return nb::none();
    const InRows rows(x);
    return x.is<float>() ? ends_in(rows.data<float>(), x.size()) : ends_in(rows.data<double>(), x.size());
}

template <class T> nb::object in_parts(const Array& x, int64_t bins, double low, double high) {
    const npy_intp shape[] = {npy_intp(bins)};
    NewArray out = new_array(1, shape, x.type());
    nb::object result = give(out);
    const InRows rows(x);
    Release release(x.size() * 8);
    std::vector<int64_t> counts(size_t(bins), 0);
    fill_parts(rows.data<T>(), x.size(), bins, low, high, counts.data());
    std::transform(counts.begin(), counts.end(), out.data<T>(), [](int64_t count) { return T(count); });
    return result;
}

nb::object histc(Array x, int64_t bins, double low, double high) {
    const npy_intp shape[] = {npy_intp(bins)};
    if (!x.is_float() || bins < 1 || !countable(shape, 1) || !(low < high) || !std::isfinite(high - low)) return not_implemented();
    return x.is<float>() ? in_parts<float>(x, bins, low, high) : in_parts<double>(x, bins, low, high);
}

nb::object bincount(Array x, nb::handle weights, int64_t size) {
    const npy_intp shape[] = {npy_intp(size)};
    if (!x.usable() || x.ndim() != 1 || !weights.is_none() || size < 0 || !countable(shape, 1)) return not_implemented();
    NewArray out = new_array(1, shape, NPY_INT64);
    nb::object result = give(out);
    const InRows rows(x);
    bool good = false;
    const auto count = [&](auto number) {
        using T = decltype(number);
        Release release(x.size() * 8);
        std::fill_n(out.data<int64_t>(), size, 0);
        good = count_numbers(rows.data<T>(), x.size(), size, out.data<int64_t>());
    };
    switch (x.type()) {
        case NPY_INT64: count(int64_t{}); break;
        case NPY_INT32: count(int32_t{}); break;
        case NPY_INT16: count(int16_t{}); break;
        case NPY_INT8: count(int8_t{}); break;
        case NPY_UINT8: count(uint8_t{}); break;
        default: break;
    }
    return good ? result : not_implemented();
}

}  // namespace

FW_BIND(m) {
    m.def("histogram", &histogram, nb::arg("x"), nb::arg("weight").none(), nb::arg("edges"));
    m.def("histogramdd", &histogramdd, nb::arg("x"), nb::arg("weight").none(), nb::arg("edges"));
    m.def("ends", &ends);
    m.def("prod_others", &prod_others, nb::arg("x"));
    m.def("histc", &histc, nb::arg("x"), nb::kw_only(), nb::arg("bins"), nb::arg("low"), nb::arg("high"));
    m.def("bincount", &bincount, nb::arg("x"), nb::arg("weights").none(), nb::kw_only(), nb::arg("size"));
}

}  // namespace fw
