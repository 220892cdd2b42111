#include "gemm/products.h"

#include <algorithm>
#include <utility>

#include "gemm/amx.h"

namespace fw {

std::atomic<bool> rounded_products{false};

namespace {

constexpr int MOST_DIMS = Product::MOST_DIMS;

// One operand as a batch of matrices; strides in numbers.
struct ProductOperand {
    int64_t rows, cols, row, col;
    int batch_ndim;
};

int64_t step_of(const View& x, int d) { return x.stride(d) / bytes_of(x.type()); }

// `left`: a vector stands for one row; otherwise for one column.
ProductOperand operand(const View& x, bool left) {
    int nd = x.ndim();
    int64_t n = x.shape(nd - 1), step = step_of(x, nd - 1);
    if (nd > 1) return {x.shape(nd - 2), n, step_of(x, nd - 2), step, nd - 2};
    return left ? ProductOperand{1, n, n, step, 0} : ProductOperand{n, 1, step, 1, 0};
}

// A dimension of the batch: its size, and how far the operands move along it (0: broadcast).
struct BatchAxis {
    int64_t n, a, b, c;
};

BatchAxis axis_of(const View& x, int dx, const View& y, int dy) {  // negative: the operand lacks it
    int64_t nx = dx < 0 ? 1 : x.shape(dx), ny = dy < 0 ? 1 : y.shape(dy);
    if (nx != ny && nx != 1 && ny != 1) return {-1, 0, 0, 0};
    return {nx == 1 ? ny : nx, nx == 1 ? 0 : step_of(x, dx), ny == 1 ? 0 : step_of(y, dy), 0};
}

// The batch in as few dimensions as strides allow, outermost last; what shares one B becomes rows of `g`.
class Folded {
  public:
    BatchAxis axes[MOST_DIMS];
    int count = 0;

    void add(const BatchAxis& d, int64_t& m, int64_t& a_row) {
        if (d.n == 1) return;
        BatchAxis* last = count ? &axes[count - 1] : nullptr;
        if (!last && d.b == 0 && (m == 1 || d.a == m * a_row)) {
            if (m == 1) a_row = d.a;
            m *= d.n;
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
            const BatchAxis& d = axes[count - 1 - i];
            batch.shape[i] = d.n, batch.a[i] = d.a, batch.b[i] = d.b, batch.c[i] = d.c;
        }
        return true;
    }
};

bool suits(const View& x) {
    return x.type() <= Type::bfloat16 && x.ndim() > 0 && x.ndim() <= MOST_DIMS && x.whole_strides();
}

// The bias of each of n columns, side by side: where it lies so, or in `room`.
template <class T> const T* spread(const View& bias, int64_t n, std::vector<T>& room) {
    int64_t step = bias.size() == 1 ? 0 : step_of(bias, 0);
    const T* from = bias.data<T>();
    if (step == 1) return from;
    room.resize(size_t(n));
    for (int64_t i = 0; i < n; ++i) room[size_t(i)] = from[i * step];
    return room.data();
}

}  // namespace

bool Product::set(const View& x, const View& y, bool turned, bool drop_row, bool drop_col) {
    if (!suits(x) || !suits(y) || x.type() != y.type()) return false;
    ProductOperand left = operand(x, true), right = operand(y, turned);
    if (turned) std::swap(right.rows, right.cols), std::swap(right.row, right.col);
    if (left.cols != right.rows) return false;
    type = x.type();
    a = x.data<void>(), b = y.data<void>();
    m = left.rows, n = right.cols, k = left.cols;
    a_row = left.row, a_col = left.col, b_row = right.row, b_col = right.col;
    ndim = std::max(left.batch_ndim, right.batch_ndim);
    Folded folded;
    int64_t c = m * n;
    for (int d = ndim - 1; d >= 0; --d) {
        BatchAxis axis = axis_of(x, d - (ndim - left.batch_ndim), y, d - (ndim - right.batch_ndim));
        if (axis.n < 0) return false;
        axis.c = c;
        shape[d] = axis.n;
        c *= axis.n;
        folded.add(axis, m, a_row);
    }
    if (!folded.give(batch)) return false;
    if (!drop_row) shape[ndim++] = left.rows;
    if (!drop_col) shape[ndim++] = right.cols;
    return true;
}

bool Product::matmul(const View& x, const View& y) { return set(x, y, false, x.ndim() == 1, y.ndim() == 1); }

bool Product::linear(const View& x, const View& w, const View* given, bool then_relu) {
    if (w.ndim() != 2 || !set(x, w, true, x.ndim() == 1, false)) return false;
    if (given && (given->type() != x.type() || given->ndim() > 1 || !given->whole_strides() ||
                  (given->size() != 1 && given->size() != w.shape(0))))
        return false;
    bias = given, relu = then_relu;
    return !(relu && type == Type::bfloat16);
}

int64_t Product::size() const {
    int64_t all = 1;
    for (int d = 0; d < ndim; ++d) all *= shape[d];
    return all;
}

template <class T> Gemm<T> Product::gemm_of(T* out) const {
    Gemm<T> g{m, n, k, static_cast<const T*>(a), a_row, a_col, static_cast<const T*>(b), b_row, b_col, out, n};
    g.panels = static_cast<const T*>(packed), g.panel_steps = k;
    return g;
}

int64_t Product::packed_bytes() const {
    for (int d = 0; d < batch.ndim; ++d)
        if (batch.b[d]) return 0;
    const bool countable = double(n) * double(k) < 1e15;
    if (!countable || !size()) return 0;
    if (type == Type::float32) return packs_b(gemm_of<float>(nullptr)) ? panels_size(gemm_of<float>(nullptr)) * 4 : 0;
    if (type == Type::float64) return packs_b(gemm_of<double>(nullptr)) ? panels_size(gemm_of<double>(nullptr)) * 8 : 0;
    return 0;
}

void Product::pack(void* to) const {
    if (type == Type::float32) pack_panels(gemm_of<float>(nullptr), static_cast<float*>(to));
    else pack_panels(gemm_of<double>(nullptr), static_cast<double*>(to));
}

template <class T> void Product::run_as(T* out) const {
    Gemm<T> g = gemm_of(out);
    std::vector<T> room;
    const Gate<T> by{out, static_cast<const T*>(gate)};
    if (bias) g.finish.col_bias = spread<T>(*bias, n, room);
    if constexpr (!std::is_same<T, Bf16>::value) {
        if (relu) g.finish = finish<T, Relu>(nullptr, g.finish.col_bias);
        else if (bias) g.finish = finish<T, Identity>(nullptr, g.finish.col_bias);
        else if (gate) g.finish = {finish_by_gate<T>, nullptr, nullptr, &by};
    }
    if constexpr (std::is_same<T, float>::value) {
        constexpr int64_t least = amx::ROWS;  // fewer are read more quickly than rounded
        if (rounded_products && std::min({m, n, k}) >= least && amx::available()) return gemm_rounded(g, batch);
    }
    gemm(g, batch);
}

void Product::run(void* out) const {
    if (!size()) return;
    if (type == Type::float32) run_as(static_cast<float*>(out));
    else if (type == Type::float64) run_as(static_cast<double*>(out));
    else run_as(static_cast<Bf16*>(out));
}

}  // namespace fw
