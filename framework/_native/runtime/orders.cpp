// Elements along a dimension: in order, added up, chosen one by one.
#include "index/index.h"
#include "reduce/cumulate.h"
#include "runtime/operations.h"
#include "sort/sorting.h"

namespace fw::runtime {
namespace {

// Results for sorting x along `dim`: m values in each row, and where they were.
void ordered(Call& c, const Tensor& x, int64_t dim, int64_t m, std::function<void(const View&, void*, int64_t*)> put) {
    int64_t shape[MOST_AXES];
    std::copy(x.shape, x.shape + x.ndim, shape);
    shape[dim] = m;
    const Tensor &values = c.make(0, x.type, x.ndim, shape), &places = c.make(1, Type::int64, x.ndim, shape);
    c.then([&x, &values, &places, put]() -> Run {
        return [&x, &values, &places, put] { put(x.view(), values.data, places.at<int64_t>()); };
    });
}

}  // namespace

// numbers: the dimension, whether from the largest to the smallest; results: values, places
void sorted(Call& c) {
    c.expect(1, 2, 0, 2);
    const Tensor& x = c.rows(0);
    const int64_t dim = c.number(0);
    const bool descending = c.number(1) != 0;
    c.must(dim >= 0 && dim < x.ndim && sort::sortable(x.view(), int(dim)), "no such dimension, or another type");
    ordered(c, x, dim, x.shape[dim], [=](const View& from, void* values, int64_t* places) {
        sort::sort_along(from, int(dim), descending, values, places);
    });
}

// numbers: how many, the dimension, whether the largest
void topk(Call& c) {
    c.expect(1, 3, 0, 2);
    const Tensor& x = c.rows(0);
    const int64_t k = c.number(0), dim = c.number(1);
    const bool largest = c.number(2) != 0;
    c.must(dim >= 0 && dim < x.ndim && sort::sortable(x.view(), int(dim)), "no such dimension, or another type");
    c.must(k >= 1 && k <= x.shape[dim], "more numbers than there are");
    ordered(c, x, dim, k, [=](const View& from, void* values, int64_t* places) {
        sort::topk(from, k, int(dim), largest, values, places);
    });
}

// numbers: what (0 sum, 1 product, 2 largest, 3 smallest, 4 logarithm of the sum of exponentials), the dimension, for sums
// whether from the end; results: values, for extremes where they were
void cumulated(Call& c) {
    const int64_t what = c.number(0), dim = c.number(1);
    const bool places = what == 2 || what == 3, reverse = c.number(2) != 0;
    c.expect(1, 3, 0, places ? 2 : 1);
    const Tensor& x = c.rows(0);
    c.must(what >= 0 && what <= 4 && dim >= 0 && dim < x.ndim && (!reverse || !what), "no such dimension or kind");
    const auto kind = static_cast<Cumulate>(what);
    c.must(cumulates(kind, x.view(), int(dim)), "another type");
    const Tensor &y = c.make(0, x.type, x.ndim, x.shape), *at = places ? &c.make(1, Type::int64, x.ndim, x.shape) : nullptr;
    c.then([=, &x, &y]() -> Run {
        return [=, &x, &y] { cumulate(kind, reverse, x.view(), int(dim), y.data, at ? at->at<int64_t>() : nullptr); };
    });
}

// operands: x, positions. numbers: the dimension
void gathered(Call& c) {
    c.expect(2, 1, 0, 1);
    const Tensor &x = c.in(0), &index = c.in(1);
    const int64_t dim = c.number(0);
    c.must(index.type == Type::int64 && dim >= 0 && dim < x.ndim && index.ndim == x.ndim, "positions that do not fit");
    for (int d = 0; d < x.ndim; ++d) c.must(d == dim || index.shape[d] <= x.shape[d], "positions that do not fit");
    const Tensor& y = c.make(0, x.type, index.ndim, index.shape);
    c.then([=, &x, &index, &y]() -> Run {
        const int bytes = int(bytes_of(x.type));
        return [=, &x, &index, &y] {
            const moving::Elements along(index.view(), x.ndim, x.shape, x.strides, y.strides, dim, bytes, false);
            if (!along.good || !moving::gather(along, bytes, x.data, y.data))
                refuse(FW_INVALID, "a position that there is not");
        };
    });
}

}  // namespace fw::runtime
