// Whole rows by their positions: x[index], embedding, index_put, and the sums that are their derivatives.
#include "index/index.h"

#include <algorithm>

namespace fw::moving {
namespace {

template <class I> bool read_one(const I* from, int64_t count, int64_t n, bool first, int64_t* to) {
    std::atomic<bool> bad{false};
    parallel(count, 16384, [&](int64_t begin, int64_t end) {
        uint64_t wrong = 0;  // its highest bit
        for (int64_t i = begin; i < end; ++i) {
            int64_t p = from[i];
            p += p < 0 ? n : 0;
            wrong |= uint64_t(p) | (uint64_t(n - 1) - uint64_t(p));
            to[i] = first ? p : to[i] * n + p;
        }
        if (wrong >> 63) bad = true;
    });
    return !bad;
}

}  // namespace

Places read_places(const Array& index, int dims, const npy_intp* sizes) {
    Places found;
    if (!index.usable() || !(index.is<int64_t>() || index.is<int32_t>())) return found;
    InRows rows(index);
    int64_t count = index.size() / dims;
    found.at.resize(size_t(count));
    for (int k = 0; k < dims; ++k) {
        bool good = index.is<int64_t>()
                        ? read_one(rows.a.data<int64_t>() + k * count, count, sizes[k], !k, found.at.data())
                        : read_one(rows.a.data<int32_t>() + k * count, count, sizes[k], !k, found.at.data());
        if (!good) return found;
    }
    found.good = true;
    return found;
}

namespace {

constexpr int AHEAD = 8;  // rows that are asked for before they are needed

FW_INLINE void prefetch(const char* p, int64_t bytes) {
    for (int64_t b = 0; b < bytes; b += 64) __builtin_prefetch(p + b);
}

// to (outer, places, inner) = from (outer, n, inner) at the places
void take_rows(const Layout& l, const Places& places, int bytes, const char* from, char* to) {
    int64_t m = places.count(), row = l.inner * bytes, near = std::min<int64_t>(row, 512);
    const int64_t* at = places.begin();
    parallel(l.outer * m, grain_of(row), [&](int64_t begin, int64_t end) {
        while (begin < end) {
            int64_t o = begin / m, i = begin - o * m, stop = std::min(m, i + end - begin);
            begin += stop - i;
            const char* table = from + o * l.n * row;
            char* out = to + o * m * row;
            if (l.inner == 1) {
                by_bytes(bytes, [&](auto x) {
                    using T = decltype(x);
                    for (; i < stop; ++i)
                        reinterpret_cast<T*>(out)[i] = reinterpret_cast<const T*>(table)[at[i]];
                });
                continue;
            }
            for (; i < stop; ++i) {
                if (i + AHEAD < m) prefetch(table + at[i + AHEAD] * row, near);
                memcpy(out + i * row, table + at[i] * row, size_t(row));
            }
        }
    });
}

// For each of n targets the sources that have it, in order: those of t are order[start[t] .. start[t + 1]].
struct Sorted {
    std::vector<uint32_t> start, order;

    Sorted(const Places& places, int64_t n) : start(size_t(n) + 2), order(size_t(places.count())) {
        uint32_t* next = start.data() + 1;  // shifted by one: after the second pass it is where each ends
        for (int64_t p : places.at) ++start[size_t(p) + 2];
        for (int64_t t = 0; t < n; ++t) next[t + 1] += next[t];
        for (size_t i = 0; i < order.size(); ++i) order[next[places.at[i]]++] = uint32_t(i);
    }
};

template <class T> void add_sorted(const Layout& l, const Places& places, const T* from, T* to) {
    Sorted sorted(places, l.n);
    int64_t m = places.count(), inner = l.inner;
    const uint32_t *start = sorted.start.data(), *order = sorted.order.data();
    parallel(l.outer * l.n, grain_of(inner * int64_t(sizeof(T))), [&](int64_t begin, int64_t end) {
        for (int64_t r = begin; r < end; ++r) {
            int64_t o = r / l.n, t = r - o * l.n;
            const T* rows = from + o * m * inner;
            T* sum = to + r * inner;
            const uint32_t *i = order + start[t], *stop = order + start[t + 1];
            if (i == stop) {
                memset(sum, 0, size_t(inner) * sizeof(T));
                continue;
            }
            if (stop + AHEAD < order + m)
                prefetch(reinterpret_cast<const char*>(rows + stop[AHEAD / 2] * inner),
                         std::min<int64_t>(inner * int64_t(sizeof(T)), 512));
            const T* row = rows + *i * inner;
            for (int64_t j = 0; j < inner; ++j) sum[j] = T(0) + row[j];
            while (++i < stop) {
                row = rows + *i * inner;
                for (int64_t j = 0; j < inner; ++j) sum[j] = sum_of(sum[j], row[j]);
            }
        }
    });
}

constexpr int64_t WIDE = 8;            // rows of fewer elements are not worth sorting
constexpr int64_t SORTED_FROM = 8192;  // elements

// Zeros of (outer, n, inner), with the rows of (outer, places, inner) added in order.
template <class T> void add_rows(const Layout& l, const Places& places, const T* from, T* to) {
    int64_t m = places.count(), inner = l.inner;
    if (inner >= WIDE && l.outer * m * inner >= SORTED_FROM && std::max(m, l.n) < UINT32_MAX)
        return add_sorted(l, places, from, to);
    const int64_t* at = places.begin();
    parallel(l.outer, grain_of((l.n + m) * inner * int64_t(sizeof(T))), [&](int64_t begin, int64_t end) {
        for (int64_t o = begin; o < end; ++o) {
            T* sums = to + o * l.n * inner;
            const T* rows = from + o * m * inner;
            memset(static_cast<void*>(sums), 0, size_t(l.n * inner) * sizeof(T));
            if (inner == 1) {
                for (int64_t i = 0; i < m; ++i) sums[at[i]] = sum_of(sums[at[i]], rows[i]);
            } else {
                for (int64_t i = 0; i < m; ++i)
                    for (int64_t j = 0; j < inner; ++j) {
                        T& sum = sums[at[i] * inner + j];
                        sum = sum_of(sum, rows[i * inner + j]);
                    }
            }
        }
    });
}

// `dims` as they stand in an array of that shape: next to each other, ascending
bool read_layout(int ndim, const npy_intp* shape, const Ints& dims, Layout& l) {
    if (!dims.good || dims.n < 1 || dims[0] < 0 || dims[0] >= ndim) return false;
    for (int k = 1; k < dims.n; ++k)
        if (dims[k] != dims[0] + k) return false;
    int first = int(dims[0]), stop = first + dims.n;
    if (stop > ndim) return false;
    l.outer = product(shape, 0, first), l.n = product(shape, first, stop), l.inner = product(shape, stop, ndim);
    return l.outer * l.n * l.inner > 0;
}

// The shape of a choice: x's, with the dimensions of `index` (from its own dimension `skip` on) at `dims`.
int chosen_shape(int ndim, const npy_intp* x, const Array& index, int skip, int first, int dims, npy_intp* shape) {
    int n = 0;
    if (ndim - dims + index.ndim() - skip > NPY_MAXDIMS) return -1;
    for (int d = 0; d < first; ++d) shape[n++] = x[d];
    for (int d = skip; d < index.ndim(); ++d) shape[n++] = index.shape(d);
    for (int d = first + dims; d < ndim; ++d) shape[n++] = x[d];
    return n;
}

bool has_shape(const Array& a, int ndim, const npy_intp* shape) {
    return a.ndim() == ndim && std::equal(shape, shape + ndim, a.shape());
}

// A choice from, or a place in, an array of shape `of`: what all of the ops here begin with.
struct Choice {
    Layout l;
    Places places;
    npy_intp shape[NPY_MAXDIMS];  // of what is chosen
    int ndim = 0;
    bool good = false;

    Choice(int of_ndim, const npy_intp* of, const Array& index, const Ints& dims, int skip) {
        if (!index.usable() || !dims.good || !index.size() || !read_layout(of_ndim, of, dims, l)) return;
        if (skip && (index.ndim() < 1 || index.shape(0) != dims.n)) return;
        int first = int(dims[0]);
        ndim = chosen_shape(of_ndim, of, index, skip, first, dims.n, shape);
        if (ndim < 0) return;
        places = read_places(index, dims.n, of + first);
        good = places.good;
    }
    int64_t size() const { return l.outer * places.count() * l.inner; }
};

nb::object taken(const Array& x, const Array& index, const Ints& dims, int skip) {
    int bytes = item_bytes(x);
    if (!bytes) return not_implemented();
    Choice c(x.ndim(), x.shape(), index, dims, skip);
    if (!c.good) return not_implemented();
    InRows rows(x);
    NewArray out = new_array(c.ndim, c.shape, x.type());
    nb::object result = give(out);
    Release release(c.size() * bytes);
    take_rows(c.l, c.places, bytes, rows.a.data<char>(), out.data<char>());
    return result;
}

nb::object summed(const Array& x, const Array& index, const Ints& dims, int skip, int ndim, const npy_intp* shape) {
    if (!x.usable()) return not_implemented();
    Choice c(ndim, shape, index, dims, skip);
    if (!c.good || !has_shape(x, c.ndim, c.shape)) return not_implemented();
    InRows rows(x);
    nb::object result;
    bool known = by_number(x.type(), [&](auto number) {
        using T = decltype(number);
        NewArray out = new_array(ndim, shape, x.type());
        result = give(out);
        Release release((out.size() + x.size()) * int64_t(sizeof(T)));
        add_rows(c.l, c.places, rows.a.data<T>(), out.data<T>());
    });
    return known ? result : not_implemented();
}

nb::object index(Array x, Array index, nb::handle dims) {
    return x.usable() ? taken(x, index, Ints(dims), 1) : not_implemented();
}

nb::object unindex(Array x, Array index, nb::handle dims, nb::handle shape) {
    Ints sizes(shape);
    npy_intp whole[NPY_MAXDIMS];
    if (!sizes.is_shape()) return not_implemented();
    std::copy(sizes.at, sizes.at + sizes.n, whole);
    return summed(x, index, Ints(dims), 1, sizes.n, whole);
}

Ints first_dim() { return Ints(nb::int_(0)); }

nb::object embedding(Array weight, Array indices, nb::handle, nb::handle) {
    return weight.usable() ? taken(weight, indices, first_dim(), 0) : not_implemented();
}

nb::object add_rows_op(Array x, Array indices, int64_t rows) {
    if (!x.usable() || !indices.usable() || x.ndim() < indices.ndim()) return not_implemented();
    npy_intp shape[NPY_MAXDIMS + 1] = {rows};
    int ndim = 1 + x.ndim() - indices.ndim();
    std::copy(x.shape() + indices.ndim(), x.shape() + x.ndim(), shape + 1);
    if (ndim > NPY_MAXDIMS || !countable(shape, ndim)) return not_implemented();
    return summed(x, indices, first_dim(), 0, ndim, shape);
}

// -- writing --------------------------------------------------------------------------------------

// What is written: an array of the chosen shape, or one number.
struct Values {
    Pair bits{};
    const char* rows = nullptr;
    bool good = false;
    Array own;
    nb::object copy;

    Values(nb::handle given, const Array& x, int ndim, const npy_intp* shape) {
        PyObject* o = given.ptr();
        if (!PyArray_CheckExact(o) || !PyArray_ISBEHAVED_RO(reinterpret_cast<PyArrayObject*>(o))) {
            good = element(given, x, bits);
            return;
        }
        Array a;
        a.p = reinterpret_cast<PyArrayObject*>(o);
        if (a.type() != x.type()) return;
        if (a.ndim() == 0) {
            memcpy(&bits, a.data<char>(), size_t(item_bytes(x)));
            good = true;
        } else if (has_shape(a, ndim, shape)) {
            InRows row_major(a);
            own = row_major.a, copy = row_major.owner;
            rows = own.data<char>();
            good = true;
        }
    }
};

void fill_row(char* to, int64_t n, int bytes, const Pair& bits) {
    by_bytes(bytes, [&](auto x) {
        using T = decltype(x);
        memcpy(&x, &bits, sizeof x);
        std::fill_n(reinterpret_cast<T*>(to), n, x);
    });
}

// to (outer, n, inner) at the places = values; where a place stands twice, the last one counts
void put_rows(const Layout& l, const Places& places, int bytes, const Values& values, char* to) {
    int64_t m = places.count(), row = l.inner * bytes;
    const int64_t* at = places.begin();
    auto write = [&](int64_t o, int64_t i) {
        char* p = to + (o * l.n + at[i]) * row;
        if (values.rows)
            memcpy(p, values.rows + (o * m + i) * row, size_t(row));
        else
            fill_row(p, l.inner, bytes, values.bits);
    };
    if (l.outer > 1 || l.n * 4 > m * row || m * row < 4 * GRAIN_BYTES || m >= INT32_MAX) {
        parallel(l.outer, grain_of(m * row), [&](int64_t begin, int64_t end) {
            for (int64_t o = begin; o < end; ++o)
                for (int64_t i = 0; i < m; ++i) write(o, i);
        });
        return;
    }
    std::vector<int32_t> last(size_t(l.n), -1);
    for (int64_t i = 0; i < m; ++i) last[size_t(at[i])] = int32_t(i);
    parallel(m, grain_of(row), [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i)
            if (last[size_t(at[i])] == i) write(0, i);
    });
}

nb::object index_put(Array x, nb::handle value, Array index, nb::handle dims) {
    int bytes = item_bytes(x);
    if (!bytes) return not_implemented();
    Choice c(x.ndim(), x.shape(), index, Ints(dims), 1);
    if (!c.good) return not_implemented();
    Values values(value, x, c.ndim, c.shape);
    if (!values.good) return not_implemented();
    NewArray out = like(x);
    nb::object result = give(out);
    Release release(x.size() * bytes);
    copy_array(x, out.data<char>());
    put_rows(c.l, c.places, bytes, values, out.data<char>());
    return result;
}

bool may_overlap(const Array& a, const Array& b) {
    auto low = [](const Array& x) { return x.data<char>(); };
    auto high = [](const Array& x) { return x.data<char>() + x.size() * PyArray_ITEMSIZE(x.p); };
    return low(a) < high(b) && low(b) < high(a);
}

// x[index] = value in the memory of x
nb::object index_assign(Array x, nb::handle value, Array index, nb::handle dims) {
    int bytes = item_bytes(x);
    if (!bytes || !x.contiguous() || !x.writeable()) return not_implemented();
    Choice c(x.ndim(), x.shape(), index, Ints(dims), 1);
    if (!c.good) return not_implemented();
    Values values(value, x, c.ndim, c.shape);
    if (!values.good || (values.rows && may_overlap(values.own, x))) return not_implemented();
    Release release(c.size() * bytes, Writes::memory);
    put_rows(c.l, c.places, bytes, values, x.data<char>());
    return nb::none();
}

// -- checks ---------------------------------------------------------------------------------------

// (smallest, largest)
nb::object index_range(Array index) {
    if (!index.is<int64_t>() || !index.contiguous() || !index.size()) return not_implemented();
    const int64_t* at = index.data<int64_t>();
    std::atomic<int64_t> low{at[0]}, high{at[0]};
    {
        Release release(index.size() * 8);
        parallel(index.size(), 16384, [&](int64_t begin, int64_t end) {
            using V = Vec<int64_t>;
            constexpr int L = lanes<int64_t>;
            int64_t a = at[begin], b = a, i = begin;
            V least[2] = {splat(a), splat(a)}, most[2] = {least[0], least[0]};
            for (; i + 2 * L <= end; i += 2 * L) {
                for (int k = 0; k < 2; ++k) {
                    V v = load(at + i + k * L);
                    least[k] = v < least[k] ? v : least[k];
                    most[k] = v > most[k] ? v : most[k];
                }
            }
            for (int k = 0; k < 2 * L; ++k) a = std::min(a, least[k / L][k % L]), b = std::max(b, most[k / L][k % L]);
            for (; i < end; ++i) a = std::min(a, at[i]), b = std::max(b, at[i]);
            for (int64_t now = low; a < now && !low.compare_exchange_weak(now, a);) {}
            for (int64_t now = high; b > now && !high.compare_exchange_weak(now, b);) {}
        });
    }
    return nb::make_tuple(low.load(), high.load());
}

}  // namespace

FW_BIND(m) {
    m.def("index", &index, nb::arg("x"), nb::arg("index"), nb::arg("dims"));
    m.def("unindex", &unindex, nb::arg("x"), nb::arg("index"), nb::arg("dims"), nb::arg("shape"));
    m.def("embedding", &embedding, nb::arg("weight"), nb::arg("indices"), nb::arg("padding").none(),
          nb::arg("by_frequency").none());
    m.def("add_rows", &add_rows_op, nb::arg("x"), nb::arg("indices"), nb::arg("rows"));
    m.def("index_put", &index_put, nb::arg("x"), nb::arg("value").none(), nb::arg("index"), nb::arg("dims"));
    m.def("index_assign", &index_assign, nb::arg("x"), nb::arg("value").none(), nb::arg("index"), nb::arg("dims"));
    m.def("index_range", &index_range, nb::arg("index"));
}

}  // namespace fw::moving
