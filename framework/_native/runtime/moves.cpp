// Elements moved: rows by their positions, tensors one after another, counted numbers.
#include <cstring>

#include "move/block.h"
#include "runtime/operations.h"

namespace fw::runtime {
namespace {

// The place of a row in a table of n; negative positions count from the end.
int64_t place_of(int64_t position, int64_t n) {
    if (position < -n || position >= n)
        refuse(FW_INVALID, "the position " + std::to_string(position) + " in a table of " + std::to_string(n) + " rows");
    return position < 0 ? position + n : position;
}

// Rows of a table at positions, which are checked as they are read.
template <class I> void take_rows(const Tensor& table, const Tensor& index, char* to) {
    const int64_t n = table.shape[0], row = table.bytes() / n, count = index.size();
    const I* at = index.at<I>();
    for (int64_t i = 0; i < count; ++i) place_of(at[i], n);
    parallel(count, moving::grain_of(row), [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i)
            std::memcpy(to + i * row, table.data + (at[i] < 0 ? at[i] + n : at[i]) * row, size_t(row));
    });
}

}  // namespace

int64_t RowsOf::count() const {
    int64_t n = 1;
    for (int d = 0; d < ndim; ++d) n *= shape[d];
    return n;
}

void RowsOf::places(int64_t* to) const {
    const bool wide = positions->type == Type::int64;
    int64_t at[MOST_AXES] = {};
    const char* p = positions->data;
    for (int64_t left = count(); left > 0; --left) {
        *to++ = place_of(wide ? *reinterpret_cast<const int64_t*>(p) : *reinterpret_cast<const int32_t*>(p), table->shape[0]);
        for (int d = ndim - 1; d >= 0; --d) {
            p += strides[d];
            if (++at[d] < shape[d]) break;
            p -= strides[d] * shape[d], at[d] = 0;
        }
    }
}

void embedding(Call& c) {
    c.expect(2, 0, 0, 1);
    const Tensor &table = c.rows(0), &index = c.rows(1);
    c.must(table.ndim > 0 && index.ndim + table.ndim - 1 <= MOST_AXES, "a table without rows");
    c.must(index.type == Type::int64 || index.type == Type::int32, "positions of another type");
    int64_t shape[MOST_AXES];
    std::copy(index.shape, index.shape + index.ndim, shape);
    std::copy(table.shape + 1, table.shape + table.ndim, shape + index.ndim);
    Tensor& y = c.make(0, table.type, index.ndim + table.ndim - 1, shape);
    if (table.ndim == 2 && table.constant()) {
        RowsOf of{&table, &index, index.ndim};
        std::copy(index.shape, index.shape + index.ndim, of.shape);
        std::copy(index.strides, index.strides + index.ndim, of.strides);
        of.read = std::make_shared<bool>(false);
        y.of = std::make_shared<RowsOf>(of);
    }
    c.then([&table, &index, &y]() -> Run {
        if (y.of && !*y.of->read) return [] {};
        if (index.type == Type::int64) return [&table, &index, &y] { take_rows<int64_t>(table, index, y.data); };
        return [&table, &index, &y] { take_rows<int32_t>(table, index, y.data); };
    });
}

// numbers: the dimension, whether it is a new one
void join(Call& c) {
    const size_t count = c.step.inputs.size();
    c.must(count > 0, "nothing to join");
    c.expect(count, 2, 0, 1);
    const Tensor& first = c.in(0);
    const bool fresh = c.number(1) != 0;
    const int64_t dim = c.number(0);
    c.must(dim >= 0 && dim < first.ndim + fresh && first.ndim + fresh <= MOST_AXES, "no such dimension");
    int64_t shape[MOST_AXES], length = 0;
    std::vector<const Tensor*> parts;
    for (size_t i = 0; i < count; ++i) {
        const Tensor& t = c.in(i);
        c.must(t.type == first.type && t.ndim == first.ndim, "parts of several types or numbers of dimensions");
        for (int d = 0; d < t.ndim; ++d)
            c.must((!fresh && d == dim) || t.shape[d] == first.shape[d], "parts of other sizes");
        length += fresh ? 1 : t.shape[dim];
        parts.push_back(&t);
    }
    for (int d = 0, from = 0; d < first.ndim + fresh; ++d)
        shape[d] = d == dim ? length : first.shape[fresh ? from : d], from += d != dim;
    const Tensor& y = c.make(0, first.type, first.ndim + fresh, shape);
    c.then([parts, &y, dim, fresh]() -> Run {
        return [parts, &y, dim, fresh] {
            char* to = y.data;
            for (const Tensor* t : parts) {
                moving::Block b;
                for (int d = 0; d < t->ndim; ++d) b.add(t->shape[d], t->strides[d], y.strides[fresh && d >= dim ? d + 1 : d]);
                moving::copy_block(b, int(bytes_of(t->type)), t->data, to);
                to += (fresh ? 1 : t->shape[dim]) * y.strides[dim];
            }
        };
    });
}

void contiguous(Call& c) {
    c.expect(1, 0, 0, 1);
    const Tensor& x = c.in(0);
    const Tensor& y = c.make(0, x.type, x.ndim, x.shape);
    c.then([&x, &y]() -> Run { return [&x, &y] { copy(x, y.data); }; });
}

// numbers: how many; 0, 1, 2, ...
void arange(Call& c) {
    c.expect(0, 1, 0, 1);
    const int64_t n = c.number(0);
    const Tensor& y = c.make(0, Type::int64, 1, &n);
    c.then([&y, n]() -> Run {
        return [&y, n] {
            for (int64_t i = 0; i < n; ++i) y.at<int64_t>()[i] = i;
        };
    });
}

}  // namespace fw::runtime
