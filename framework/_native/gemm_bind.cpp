// matmul and linear of NumPy arrays.
#include <algorithm>
#include <utility>
#include <vector>

#include "bf16_array.h"
#include "gemm.h"

namespace fw {
namespace {

// One operand as a batch of matrices; strides in numbers.
struct Operand {
    int64_t rows, cols, row, col;
    int batch_ndim;
};

bool whole_strides(const Array& x) {
    int64_t size = PyArray_ITEMSIZE(x.p);
    for (int d = 0; d < x.ndim(); ++d)
        if (x.stride(d) % size) return false;
    return true;
}

int64_t step_of(const Array& x, int d) { return x.stride(d) / PyArray_ITEMSIZE(x.p); }

// `left`: a vector stands for one row; otherwise for one column.
Operand operand(const Array& x, bool left) {
    int nd = x.ndim();
    int64_t n = x.shape(nd - 1), step = step_of(x, nd - 1);
    if (nd > 1) return {x.shape(nd - 2), n, step_of(x, nd - 2), step, nd - 2};
    return left ? Operand{1, n, n, step, 0} : Operand{n, 1, step, 1, 0};
}

// A dimension of the batch: its size, and how far the operands move along it (0: broadcast).
struct Axis {
    int64_t n, a, b, c;
};

Axis axis_of(const Array& x, int dx, const Array& y, int dy) {  // negative: the operand lacks it
    int64_t nx = dx < 0 ? 1 : x.shape(dx), ny = dy < 0 ? 1 : y.shape(dy);
    if (nx != ny && nx != 1 && ny != 1) return {-1, 0, 0, 0};
    return {nx == 1 ? ny : nx, nx == 1 ? 0 : step_of(x, dx), ny == 1 ? 0 : step_of(y, dy), 0};
}

// The batch in as few dimensions as strides allow, outermost last; what shares one B becomes rows of `g`.
class Folded {
  public:
    Axis axes[NPY_MAXDIMS];
    int count = 0;

    template <class T> void add(const Axis& d, Gemm<T>& g) {
        if (d.n == 1) return;
        Axis* last = count ? &axes[count - 1] : nullptr;
        if (!last && d.b == 0 && (g.m == 1 || d.a == g.m * g.a_row)) {
            if (g.m == 1) g.a_row = d.a;
            g.m *= d.n;
        } else if (last && d.a == last->a * last->n && d.b == last->b * last->n) {
            last->n *= d.n;
        } else {
            axes[count++] = d;
        }
    }

    bool give(Batch& batch) const {
        if (count > Batch::most) return false;
        batch.ndim = count;
        for (int i = 0; i < count; ++i) {
            const Axis& d = axes[count - 1 - i];
            batch.shape[i] = d.n, batch.a[i] = d.a, batch.b[i] = d.b, batch.c[i] = d.c;
        }
        return true;
    }
};

// Fills the batch part of the result's shape; false if the operands do not fit.
template <class T>
bool combine(const Array& x, int nx, const Array& y, int ny, Gemm<T>& g, Batch& batch, int ndim,
             npy_intp* shape) {
    Folded folded;
    int64_t c = g.m * g.n;
    for (int d = ndim - 1; d >= 0; --d) {
        Axis axis = axis_of(x, d - (ndim - nx), y, d - (ndim - ny));
        if (axis.n < 0) return false;
        axis.c = c;
        shape[d] = axis.n;
        c *= axis.n;
        folded.add(axis, g);
    }
    return folded.give(batch);
}

template <class T> nb::object product(const Array& x, const Operand& a, const Array& y, const Operand& b,
                                      const Finish<T>& finish, bool drop_row, bool drop_col) {
    Gemm<T> g{a.rows, b.cols, a.cols, x.data<T>(), a.row, a.col, y.data<T>(), b.row, b.col, nullptr, b.cols};
    g.finish = finish;
    Batch batch;
    npy_intp shape[NPY_MAXDIMS + 2];
    int ndim = std::max(a.batch_ndim, b.batch_ndim);
    if (a.cols != b.rows || !combine(x, a.batch_ndim, y, b.batch_ndim, g, batch, ndim, shape))
        return not_implemented();
    if (!drop_row) shape[ndim++] = a.rows;
    if (!drop_col) shape[ndim++] = b.cols;
    NewArray out = new_array(ndim, shape, x.type());
    g.c = out.data<T>();
    if (out.size()) {
        constexpr int64_t per_byte = 4;  // multiplications that take as long as work on a byte
        Release release(g.m * g.n * g.k / per_byte * batch.size());
        gemm(g, batch);
    }
    return give(out);
}

bool suits(const Array& x) { return (x.is_float() || is_bf16(x)) && x.ndim() > 0 && whole_strides(x); }

nb::object matmul(Array x, Array y) {
    if (!suits(x) || !suits(y) || x.type() != y.type()) return not_implemented();
    Operand a = operand(x, true), b = operand(y, false);
    bool row = x.ndim() == 1, col = y.ndim() == 1;
    if (x.is<float>()) return product<float>(x, a, y, b, {}, row, col);
    if (is_bf16(x)) return product<Bf16>(x, a, y, b, {}, row, col);
    return product<double>(x, a, y, b, {}, row, col);
}

// The bias of each of n columns, side by side: where it lies so, or in `room`.
template <class T> const T* spread(const Array& bias, int64_t n, std::vector<T>& room) {
    int64_t step = bias.size() == 1 ? 0 : step_of(bias, 0);
    const T* from = bias.data<T>();
    if (step == 1) return from;
    room.resize(size_t(n));
    for (int64_t i = 0; i < n; ++i) room[size_t(i)] = from[i * step];
    return room.data();
}

template <class T> nb::object linear_of(const Array& x, const Array& w, const Array& bias, bool relu) {
    Operand a = operand(x, true), b = operand(w, true);
    std::swap(b.rows, b.cols), std::swap(b.row, b.col);
    Finish<T> f;
    std::vector<T> room;
    if (bias.usable()) f.col_bias = spread<T>(bias, b.cols, room);
    if constexpr (!std::is_same<T, Bf16>::value) {
        if (relu) f = finish<T, Relu>(nullptr, f.col_bias);
        else if (f.col_bias) f = finish<T, Identity>(nullptr, f.col_bias);
    }
    return product<T>(x, a, w, b, f, x.ndim() == 1, false);
}

nb::object linear_then(Array x, Array w, nb::object b, bool relu) {
    if (!suits(x) || !suits(w) || w.ndim() != 2 || x.type() != w.type()) return not_implemented();
    Array bias;
    if (!b.is_none()) {
        if (!nb::try_cast(b, bias) || !bias.usable() || bias.type() != x.type() || bias.ndim() > 1 ||
            !whole_strides(bias) || (bias.size() != 1 && bias.size() != w.shape(0)))
            return not_implemented();
    }
    if (is_bf16(x)) return relu ? not_implemented() : linear_of<Bf16>(x, w, bias, false);
    return x.is<float>() ? linear_of<float>(x, w, bias, relu) : linear_of<double>(x, w, bias, relu);
}

nb::object linear(Array x, Array w, nb::object b) { return linear_then(x, w, std::move(b), false); }
nb::object linear_relu(Array x, Array w, nb::object b) { return linear_then(x, w, std::move(b), true); }

FW_BIND(m) {
    m.def("matmul", &matmul, nb::arg("x"), nb::arg("y"));
    m.def("linear", &linear, nb::arg("x"), nb::arg("w"), nb::arg("b").none());
    m.def("linear_relu", &linear_relu, nb::arg("x"), nb::arg("w"), nb::arg("b").none());
}

}  // namespace
}  // namespace fw
