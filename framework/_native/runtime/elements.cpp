// Elements chosen by position, written into parts, counted, compared: whatever moves numbers and computes none.
#include <algorithm>
#include <cstring>

#include "move/block.h"
#include "runtime/operations.h"

namespace fw::runtime {
namespace {

// Positions as they come from inputs: checked as they are read; negative ones count from the end.
int64_t position(int64_t at, int64_t size) {
    if (at < -size || at >= size)
        refuse(FW_INVALID, "the position " + std::to_string(at) + " in a dimension of size " + std::to_string(size));
    return at < 0 ? at + size : at;
}

// Goes through the elements of a shape in order, and through memory with some strides.
class ElementWalk {
  public:
    explicit ElementWalk(const Tensor& t) : t(t) {}
    int64_t at[MOST_AXES] = {}, place = 0;
    void next(const int64_t* strides) {
        for (int d = t.ndim - 1; d >= 0; --d) {
            place += strides[d];
            if (++at[d] < t.shape[d]) return;
            place -= strides[d] * t.shape[d], at[d] = 0;
        }
    }

  private:
    const Tensor& t;
};

// each(place in `whole` without that of the dimension, place in the index, that position) for each element of an index
template <class F> void along(const Tensor& index, const Tensor& whole, int64_t dim, F&& each) {
    int64_t strides[MOST_AXES];
    std::copy(whole.strides, whole.strides + whole.ndim, strides);
    strides[dim] = 0;
    ElementWalk walk(index);
    const int64_t* at = index.at<int64_t>();
    for (int64_t i = 0, n = index.size(); i < n; ++i, walk.next(strides))
        each(walk.place + position(at[i], whole.shape[dim]) * whole.strides[dim], i);
}

// An index whose elements stand for those of `whole` at another place along a dimension.
int64_t dimension_of(Call& c, const Tensor& whole, const Tensor& index) {
    const int64_t dim = c.number(0);
    c.must(dim >= 0 && dim < whole.ndim && index.type == Type::int64 && index.ndim == whole.ndim, "positions that do not fit");
    for (int d = 0; d < whole.ndim; ++d) c.must(d == dim || index.shape[d] <= whole.shape[d], "positions that do not fit");
    return dim;
}

}  // namespace

// operands: x, what is written, positions; the last two of one shape. numbers: the dimension that they are of
void scatter(Call& c) {
    c.expect(3, 1, 0, 1);
    const Tensor &x = c.in(0), &src = c.rows(1), &index = c.rows(2);
    const int64_t dim = dimension_of(c, x, index);
    c.must(src.type == x.type && src.same_shape(index), "elements that do not fit the positions");
    const Tensor& y = c.make(0, x.type, x.ndim, x.shape);
    c.then([&x, &src, &index, &y, dim]() -> Run {
        return [&x, &src, &index, &y, dim] {
            copy(x, y.data);
            moving::by_bytes(int(bytes_of(x.type)), [&](auto t) {
                using T = decltype(t);
                if constexpr (sizeof(T) <= 8)
                    along(index, y, dim, [&](int64_t place, int64_t i) { std::memcpy(y.data + place, src.at<T>() + i, sizeof(T)); });
            });
        };
    });
}

// operands: x, positions (k, ...) along k dimensions. numbers: those, ascending. The positions' shape replaces them where
// they are neighbours, and comes first otherwise.
void take(Call& c) {
    const size_t k = c.step.numbers.size();
    c.expect(2, k, 0, 1);
    const Tensor &x = c.in(0), &index = c.rows(1);
    const std::vector<int64_t> dims = c.numbers(0, k);
    c.must(k > 0 && index.type == Type::int64 && index.ndim > 0 && index.shape[0] == int64_t(k), "positions that do not fit");
    for (size_t i = 0; i < k; ++i)
        c.must(dims[i] >= 0 && dims[i] < x.ndim && (!i || dims[i] > dims[i - 1]), "no such dimensions");
    const bool together = dims[k - 1] - dims[0] == int64_t(k) - 1;
    Tensor before, after;  // the other dimensions, around the positions
    for (int d = 0; d < x.ndim; ++d) {
        if (std::find(dims.begin(), dims.end(), d) != dims.end()) continue;
        Tensor& side = together && d < dims[0] ? before : after;
        side.shape[side.ndim] = x.shape[d], side.strides[side.ndim++] = x.strides[d];
    }
    c.must(before.ndim + after.ndim + index.ndim - 1 <= MOST_AXES, "too many dimensions");
    int64_t shape[MOST_AXES];
    int n = 0;
    for (int d = 0; d < before.ndim; ++d) shape[n++] = before.shape[d];
    for (int d = 1; d < index.ndim; ++d) shape[n++] = index.shape[d];
    for (int d = 0; d < after.ndim; ++d) shape[n++] = after.shape[d];
    const Tensor& y = c.make(0, x.type, n, shape);
    c.then([=, &x, &index, &y]() -> Run {
        return [=, &x, &index, &y] {
            const int64_t count = index.size() / int64_t(k), rows = before.size(), bytes = y.bytes() / rows / count;
            std::vector<int64_t> places(size_t(count), 0);
            for (size_t i = 0; i < k; ++i)
                for (int64_t j = 0; j < count; ++j)
                    places[size_t(j)] += position(index.at<int64_t>()[int64_t(i) * count + j], x.shape[dims[i]]) * x.strides[dims[i]];
            moving::Block block;
            int64_t step = bytes;
            for (int d = 0; d < after.ndim; ++d) block.add(after.shape[d], after.strides[d], step /= after.shape[d]);
            ElementWalk walk(before);
            char* to = y.data;
            for (int64_t r = 0; r < rows; ++r, walk.next(before.strides))
                for (int64_t j = 0; j < count; ++j, to += bytes)
                    moving::copy_block(block, int(bytes_of(x.type)), x.data + walk.place + places[size_t(j)], to);
        };
    });
}

namespace {

template <class T> void fill(const Tensor& y, double value) {
    const T v = T(value);
    std::fill(y.at<T>(), y.at<T>() + y.size(), v);
}

void fill_with(const Tensor& y, double value) {
    switch (y.type) {
        case Type::float32: return fill<float>(y, value);
        case Type::float64: return fill<double>(y, value);
        case Type::int64: return fill<int64_t>(y, value);
        case Type::int32: return fill<int32_t>(y, value);
        case Type::int8: return fill<int8_t>(y, value);
        default: return fill<uint8_t>(y, value);
    }
}

// Copies `part` to places of y that begin at `start`, `strides` bytes apart.
void put(const Tensor& part, char* start, const int64_t* strides) {
    moving::Block block;
    for (int d = 0; d < part.ndim; ++d) block.add(part.shape[d], part.strides[d], strides[d]);
    moving::copy_block(block, int(bytes_of(part.type)), part.data, start);
}

}  // namespace

// numbers: for each dimension how many elements come before (-1: all that are added, -2: half of them, -3: the other half, which
// is the larger one if one is), and its size afterwards. reals: which
void pad(Call& c) {
    const Tensor& x = c.in(0);
    c.expect(1, 2 * size_t(x.ndim), 1, 1);
    const double value = c.step.reals[0];
    const bool whole = x.type == Type::float32 || x.type == Type::float64 ||
                       (value >= (x.type == Type::boolean || x.type == Type::uint8 ? 0 : -128) && value <= 127 && value == double(int(value)));
    c.must(x.type != Type::bfloat16 && whole, "a number that the type does not have");
    int64_t shape[MOST_AXES], first[MOST_AXES];
    for (int d = 0; d < x.ndim; ++d) {
        const int64_t given = c.number(size_t(2 * d));
        shape[d] = c.number(size_t(2 * d + 1));
        c.must(given >= -3 && given <= MOST_NUMBERS && shape[d] >= x.shape[d], "a negative number of elements");
        const int64_t more = shape[d] - x.shape[d];
        first[d] = given == -1 ? more : given == -2 ? more / 2 : given == -3 ? more - more / 2 : given;
        c.must(first[d] <= more, "a negative number of elements");
    }
    const Tensor& y = c.make(0, x.type, x.ndim, shape);
    int64_t begin = 0;
    for (int d = 0; d < x.ndim; ++d) begin += first[d] * y.strides[d];
    c.then([&x, &y, begin, value]() -> Run {
        return [&x, &y, begin, value] {
            fill_with(y, value);
            put(x, y.data + begin, y.strides);
        };
    });
}

// numbers: the number of the diagonal; whether what is below it becomes 0 (otherwise what is above)
void triangle(Call& c) {
    c.expect(1, 2, 0, 1);
    const Tensor& x = c.in(0);
    const int64_t k = c.number(0);
    const bool upper = c.number(1) != 0;
    c.must(x.ndim >= 2 && k >= -MOST_NUMBERS && k <= MOST_NUMBERS, "no matrices");
    const Tensor& y = c.make(0, x.type, x.ndim, x.shape);
    c.then([&x, &y, k, upper]() -> Run {
        return [&x, &y, k, upper] {
            copy(x, y.data);
            const int64_t rows = y.shape[y.ndim - 2], cols = y.shape[y.ndim - 1], item = bytes_of(y.type);
            char* row = y.data;
            for (int64_t i = 0, n = y.size() / cols; i < n; ++i, row += cols * item) {
                const int64_t edge = i % rows + k;  // the last column up to the diagonal
                const int64_t begin = upper ? 0 : std::clamp<int64_t>(edge + 1, 0, cols);
                const int64_t end = upper ? std::clamp<int64_t>(edge, 0, cols) : cols;
                std::memset(row + begin * item, 0, size_t((end - begin) * item));
            }
        };
    });
}

// numbers: how many classes
void one_hot(Call& c) {
    c.expect(1, 1, 0, 1);
    const Tensor& x = c.rows(0);
    const int64_t count = c.number(0);
    c.must(x.type == Type::int64 && x.ndim < MOST_AXES && count > 0, "no classes");
    int64_t shape[MOST_AXES];
    std::copy(x.shape, x.shape + x.ndim, shape);
    shape[x.ndim] = count;
    const Tensor& y = c.make(0, Type::int64, x.ndim + 1, shape);
    c.then([&x, &y, count]() -> Run {
        return [&x, &y, count] {
            std::fill(y.at<int64_t>(), y.at<int64_t>() + y.size(), 0);
            for (int64_t i = 0, n = x.size(); i < n; ++i) {
                const int64_t at = x.at<int64_t>()[i];
                if (at < 0 || at >= count) refuse(FW_INVALID, "the class " + std::to_string(at) + " of " + std::to_string(count));
                y.at<int64_t>()[i * count + at] = 1;
            }
        };
    });
}

namespace {

template <class T> void find_best(const Tensor& x, int64_t outer, int64_t n, int64_t inner, bool largest, const Tensor* values,
                                  const Tensor* places) {
    parallel(outer, 1 + (1 << 14) / (n * inner), [&](int64_t begin, int64_t end) {
        for (int64_t o = begin; o < end; ++o)
            for (int64_t i = 0; i < inner; ++i) {
                const T* p = x.at<T>() + o * n * inner + i;
                T best = *p;
                int64_t at = 0;
                for (int64_t k = 1; k < n && best == best; ++k) {  // the first of equals, and the first nan
                    const T v = p[k * inner];
                    if (largest ? !(v <= best) : !(v >= best)) best = v, at = k;
                }
                if (values) values->at<T>()[o * inner + i] = best;
                if (places) places->at<int64_t>()[o * inner + i] = at;
            }
    });
}

void best(Call& c, bool largest) {
    c.expect(1, 2, 0, 2);
    const Tensor& x = c.rows(0);
    const int64_t dim = c.number(0);
    const bool keep = c.number(1) != 0;
    c.must(x.type != Type::bfloat16 && dim >= 0 && dim < x.ndim, "no such dimension, or another type");
    int64_t shape[MOST_AXES], outer = 1, inner = 1;
    int n = 0;
    for (int d = 0; d < x.ndim; ++d) {
        if (d < dim) outer *= x.shape[d];
        if (d > dim) inner *= x.shape[d];
        if (d != dim) shape[n++] = x.shape[d];
        else if (keep) shape[n++] = 1;
    }
    const Tensor* values = c.wants(0) ? &c.make(0, x.type, n, shape) : nullptr;
    const Tensor* places = c.wants(1) ? &c.make(1, Type::int64, n, shape) : nullptr;
    c.then([=, &x, size = x.shape[dim]]() -> Run {
        return [=, &x] {
            switch (x.type) {
                case Type::float32: return find_best<float>(x, outer, size, inner, largest, values, places);
                case Type::float64: return find_best<double>(x, outer, size, inner, largest, values, places);
                case Type::int64: return find_best<int64_t>(x, outer, size, inner, largest, values, places);
                case Type::int32: return find_best<int32_t>(x, outer, size, inner, largest, values, places);
                case Type::int8: return find_best<int8_t>(x, outer, size, inner, largest, values, places);
                default: return find_best<uint8_t>(x, outer, size, inner, largest, values, places);
            }
        };
    });
}

}  // namespace

// numbers: the dimension, whether it stays as a size of 1. results: the elements, their positions
void max_along(Call& c) { best(c, true); }
void min_along(Call& c) { best(c, false); }

// operands: one or two of truth values, of one shape. words: and, or, xor, not
void logic(Call& c) {
    const size_t n = c.step.inputs.size();
    c.must((n == 1 || n == 2) && c.step.words.size() == 1, "another number of operands");
    c.expect(n, 0, 0, 1);
    const std::string& word = c.step.words[0];
    const int way = word == "and" ? 0 : word == "or" ? 1 : word == "xor" ? 2 : word == "not" ? 3 : -1;
    const Tensor &x = c.rows(0), &y = n == 2 ? c.rows(1) : x;
    c.must(way >= 0 && (way == 3) == (n == 1) && x.type == Type::boolean && y.type == Type::boolean && x.same_shape(y),
           "operands that do not fit");
    const Tensor& to = c.make(0, Type::boolean, x.ndim, x.shape);
    c.then([&x, &y, &to, way]() -> Run {
        return [&x, &y, &to, way] {
            const uint8_t *a = x.at<uint8_t>(), *b = y.at<uint8_t>();
            uint8_t* out = to.at<uint8_t>();
            for (int64_t i = 0, n = x.size(); i < n; ++i) {
                const bool p = a[i] != 0, q = b[i] != 0;
                out[i] = uint8_t(way == 0 ? p && q : way == 1 ? p || q : way == 2 ? p != q : !p);
            }
        };
    });
}

// numbers: a dimension of the operand, and the symbol that stands for its size from here on
void measure(Call& c) {
    c.expect(1, 2, 0, 0);
    const Tensor& x = c.in(0);
    const int64_t dim = c.number(0);
    c.must(dim >= 0 && dim < x.ndim, "no such dimension");
    c.must(c.name_size(c.number(1), x.shape[dim]), "no such symbol, or one of an input");
}

}  // namespace fw::runtime
