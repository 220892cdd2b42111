// Distances of all rows of NumPy arrays to all rows of others, and both gradients.
#include <algorithm>

#include "bind/array.h"
#include "gemm/pairwise.h"

namespace fw::pairs {
namespace {

bool read_shape(PairsShape& s, const Array& x, const Array& y, double p) {
    const int d = x.usable() ? x.ndim() : 0;
    if ((p != 1 && p != 2) || !x.is_float() || !y.usable() || y.type() != x.type() || d < 2 || y.ndim() != d ||
        !x.size() || !y.size() || x.shape(d - 1) != y.shape(d - 1) ||
        !std::equal(x.shape(), x.shape() + d - 2, y.shape()))
        return false;
    s.m = x.shape(d - 2), s.n = y.shape(d - 2), s.k = x.shape(d - 1);
    s.batch = x.size() / (s.m * s.k);
    const int64_t sizes[] = {s.batch, s.m, s.n};
    return countable(sizes, 3);
}

nb::object cdist(Array x, Array y, double p) {
    PairsShape s;
    if (!read_shape(s, x, y, p)) return not_implemented();
    std::vector<npy_intp> shape(x.shape(), x.shape() + x.ndim());
    shape.back() = s.n;
    InRows a(x), b(y);
    NewArray out = new_array(x.ndim(), shape.data(), x.type());
    {
        Release release((x.size() + y.size() + out.size()) * 8);
        if (x.is<float>()) distances(s, p == 2, a.data<float>(), b.data<float>(), out.data<float>());
        else distances(s, p == 2, a.data<double>(), b.data<double>(), out.data<double>());
    }
    return give(out);
}

// Both gradients; of what is not wanted an empty array.
nb::object cdist_grad(Array g, Array x, Array y, Array out, double p, const std::vector<bool>& wanted) {
    PairsShape s;
    if (wanted.size() != 2 || !read_shape(s, x, y, p) || !g.usable() || !out.usable() || g.type() != x.type() ||
        out.type() != x.type() || g.ndim() != x.ndim() || !g.same_shape(out) || g.size() != s.batch * s.m * s.n ||
        g.shape(g.ndim() - 1) != s.n)
        return not_implemented();
    const npy_intp none = 0;
    InRows a(x), b(y), slopes(g), found(out);
    NewArray gx = wanted[0] ? like(x) : new_array(1, &none, x.type());
    NewArray gy = wanted[1] ? like(y) : new_array(1, &none, x.type());
    {
        Release release((x.size() + y.size() + out.size()) * 8);
        auto run = [&](auto t) {
            using T = decltype(t);
            distances_grad(s, p == 2, slopes.data<T>(), a.data<T>(), b.data<T>(), found.data<T>(),
                           wanted[0] ? gx.data<T>() : nullptr, wanted[1] ? gy.data<T>() : nullptr);
        };
        if (x.is<float>()) run(float{});
        else run(double{});
    }
    return nb::make_tuple(give(gx), give(gy));
}

// Whether these are rows whose distances to each other are computed here.
bool are_rows(const Array& x, double p) {
    const int64_t n = x.is_float() && x.ndim() == 2 ? x.shape(0) : 0;
    return (p == 1 || p == 2) && n > 1 && x.shape(1) > 0 && n < (int64_t(1) << 31);
}

nb::object pdist(Array x, double p) {
    if (!are_rows(x, p)) return not_implemented();
    const InRows rows(x);
    const int64_t n = x.shape(0), k = x.shape(1);
    const npy_intp count = n * (n - 1) / 2;
    NewArray out = new_array(1, &count, x.type());
    {
        Release release(count * k * 4);
        if (x.is<float>()) distances_within(n, k, p == 2, rows.data<float>(), out.data<float>());
        else distances_within(n, k, p == 2, rows.data<double>(), out.data<double>());
    }
    return give(out);
}

nb::object pdist_grad(Array g, Array x, Array out, double p) {
    if (!are_rows(x, p) || !g.usable() || !out.usable() || g.type() != x.type() || out.type() != x.type() ||
        g.ndim() != 1 || out.ndim() != 1 || g.size() != x.shape(0) * (x.shape(0) - 1) / 2 || out.size() != g.size())
        return not_implemented();
    const InRows rows(x), slopes(g), found(out);
    const int64_t n = x.shape(0), k = x.shape(1);
    NewArray gx = like(x);
    {
        Release release(g.size() * k * 4);
        auto run = [&](auto t) {
            using T = decltype(t);
            distances_within_grad(n, k, p == 2, slopes.data<T>(), rows.data<T>(), found.data<T>(), gx.data<T>());
        };
        if (x.is<float>()) run(float{});
        else run(double{});
    }
    return give(gx);
}

}  // namespace

FW_BIND(m) {
    m.def("pdist", &pdist, nb::arg("x"), nb::arg("p"));
    m.def("pdist_grad", &pdist_grad, nb::arg("g"), nb::arg("x"), nb::arg("out"), nb::arg("p"));
    m.def("cdist", &cdist, nb::arg("x"), nb::arg("y"), nb::arg("p"));
    m.def("cdist_grad", &cdist_grad, nb::arg("g"), nb::arg("x"), nb::arg("y"), nb::arg("out"), nb::arg("p"), nb::arg("wanted"));
}

}  // namespace fw::pairs
