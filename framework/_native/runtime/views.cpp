// Parts of memory under other shapes. What cannot be such a part is copied.
#include <algorithm>

#include "runtime/operations.h"

namespace fw::runtime {
namespace {

// The strides of x under another shape of as many elements; false if no strides give it.
bool strides_of(const Tensor& x, int ndim, const int64_t* shape, int64_t* strides) {
    int d = 0, e = 0;  // of x, of the result
    int64_t last = bytes_of(x.type);
    while (d < x.ndim || e < ndim) {
        int64_t from = 1, to = 1;  // the sizes of the next dimensions of both that are the same elements
        const int d0 = d, e0 = e;
        if (d < x.ndim) from = x.shape[d++];
        if (e < ndim) to = shape[e++];
        while (from != to) {
            if (from < to) {
                if (d == x.ndim) return false;
                from *= x.shape[d++];
            } else {
                if (e == ndim) return false;
                to *= shape[e++];
            }
        }
        int64_t inner = 0, size = 1;  // the step of the innermost dimension that has one; all must follow from it
        bool any = false;
        for (int i = d - 1; i >= d0; --i) {
            if (x.shape[i] == 1) continue;
            if (!any) inner = x.strides[i], any = true;
            else if (x.strides[i] != inner * size) return false;
            size *= x.shape[i];
        }
        int64_t step = any ? inner : last;
        for (int i = e - 1; i >= e0; --i) {
            strides[i] = step;
            step *= shape[i];
        }
    }
    return true;
}

}  // namespace

// numbers: the new shape; one size may be -1, which follows from the others
void reshape(Call& c) {
    c.must(c.step.inputs.size() == 1 && c.step.outputs.size() == 1, "another number of operands");
    const Tensor& x = c.peek(0);
    std::vector<int64_t> shape = c.numbers(0, c.step.numbers.size());
    c.must(shape.size() <= size_t(MOST_AXES), "too many dimensions");
    int64_t count = 1;
    bool good = true;
    int64_t* open = nullptr;
    for (int64_t& n : shape) {
        if (n == -1 && !open) open = &n;
        else good = good && n > 0 && !__builtin_mul_overflow(count, n, &count);
    }
    if (open && good && x.size() % count == 0) count *= *open = x.size() / count;
    c.must(good && count == x.size(), "a shape of another number of elements");
    const bool same_rows = x.of && !shape.empty() && shape.back() == x.shape[x.ndim - 1];
    if (!same_rows) c.in(0);
    int64_t strides[MOST_AXES];
    if (strides_of(x, int(shape.size()), shape.data(), strides)) {
        Tensor& y = c.part_of(0, x);
        y.ndim = int(shape.size());
        std::copy(shape.begin(), shape.end(), y.shape);
        std::copy(strides, strides + y.ndim, y.strides);
        if (same_rows) y.of = x.of;
        return;
    }
    Tensor& y = c.make(0, x.type, int(shape.size()), shape.data());
    if (same_rows) y.of = x.of;
    c.then([&x, &y]() -> Run {
        if (y.of && !*y.of->read) return [] {};
        return [&x, &y] { copy(x, y.data); };
    });
}

// numbers: which dimension of the operand each one of the result is
void permute(Call& c) {
    const Tensor& x = c.peek(0);
    c.expect(1, size_t(x.ndim), 0, 1);
    Tensor& y = c.part_of(0, x);
    const bool same_rows = x.of && x.of->ndim == x.ndim - 1 && c.number(size_t(x.ndim - 1)) == x.ndim - 1;
    if (!same_rows) c.in(0);
    const auto of = same_rows ? std::make_shared<RowsOf>(*x.of) : nullptr;
    uint32_t seen = 0;
    for (int d = 0; d < x.ndim; ++d) {
        const int64_t from = c.number(size_t(d));
        c.must(from >= 0 && from < x.ndim && !(seen >> from & 1), "no such order of dimensions");
        seen |= 1u << from;
        y.shape[d] = x.shape[from], y.strides[d] = x.strides[from];
        if (of && d + 1 < x.ndim) of->shape[d] = x.of->shape[from], of->strides[d] = x.of->strides[from];
    }
    y.of = of;
}

// numbers: for each dimension of the operand first element, step and count; a count of -1 drops the dimension
void slice(Call& c) {
    const Tensor& x = c.in(0);
    c.expect(1, 3 * size_t(x.ndim), 0, 1);
    Tensor& y = c.part_of(0, x);
    y.ndim = 0;
    for (int d = 0; d < x.ndim; ++d) {
        const size_t at = 3 * size_t(d);
        const int64_t first = c.number(at), step = c.number(at + 1), given = c.number(at + 2), n = x.shape[d];
        const int64_t count = given == -1 ? 1 : given;
        c.must(first >= 0 && first < n && count > 0 && count <= n && step != 0 && step > -n - 1 && step <= n,
               "elements outside of the operand");
        const __int128 last = __int128(first) + __int128(step) * (count - 1);
        c.must(last >= 0 && last < n, "elements outside of the operand");
        y.offset += first * x.strides[d];
        if (x.buffer < 0) y.data += first * x.strides[d];
        if (given == -1) continue;
        y.shape[y.ndim] = count, y.strides[y.ndim++] = step * x.strides[d];
    }
}

// numbers: a dimension; the size of windows along it, the step between them, and between their elements. A dimension of the
// windows' elements comes last
void windows(Call& c) {
    c.expect(1, 4, 0, 1);
    const Tensor& x = c.in(0);
    const int64_t dim = c.number(0), size = c.number(1), step = c.number(2), within = c.number(3);
    c.must(dim >= 0 && dim < x.ndim && x.ndim < MOST_AXES, "no such dimension");
    const int64_t n = x.shape[dim];
    int64_t reach = 0;
    c.must(size > 0 && step > 0 && step <= MOST_NUMBERS && within > 0 && !__builtin_mul_overflow(size - 1, within, &reach) && reach < n,
           "windows that do not fit");
    Tensor& y = c.part_of(0, x);
    y.shape[dim] = (n - reach - 1) / step + 1, y.strides[dim] = x.strides[dim] * step;
    y.shape[y.ndim] = size, y.strides[y.ndim++] = x.strides[dim] * within;
    int64_t count = 1;
    for (int d = 0; d < y.ndim; ++d)
        c.must(!__builtin_mul_overflow(count, y.shape[d], &count) && count <= MOST_NUMBERS, "windows of too many elements");
}

// numbers: the new shape; dimensions of one element are repeated, new ones come first
void expand(Call& c) {
    const Tensor& x = c.in(0);
    c.must(c.step.inputs.size() == 1 && c.step.outputs.size() == 1, "another number of operands");
    const std::vector<int64_t> shape = c.numbers(0, c.step.numbers.size());
    const int ndim = int(shape.size()), more = ndim - x.ndim;
    c.must(more >= 0 && ndim <= MOST_AXES, "a shape that it cannot be expanded to");
    Tensor& y = c.part_of(0, x);
    y.ndim = ndim;
    int64_t count = 1;
    for (int d = 0; d < ndim; ++d) {
        const int64_t size = d < more ? 1 : x.shape[d - more], n = shape[size_t(d)];
        c.must((size == n || size == 1) && n > 0 && !__builtin_mul_overflow(count, n, &count) && count <= MOST_NUMBERS,
               "a shape that it cannot be expanded to");
        y.shape[d] = n;
        y.strides[d] = d < more || size != n ? 0 : x.strides[d - more];
    }
}

}  // namespace fw::runtime
