// Strided copies, and what is made of them: contiguous, clone, flip, roll, tile, tril, triu, pad.
#include "move/copy.h"

#include <algorithm>

namespace fw::moving {

// -- blocks ---------------------------------------------------------------------------------------

bool Block::simplify() {
    int n = 0;
    for (int d = 0; d < ndim; ++d) {
        if (shape[d] == 0) return false;
        if (shape[d] == 1) continue;
        if (n && from[n - 1] == from[d] * shape[d] && to[n - 1] == to[d] * shape[d]) {
            shape[n - 1] *= shape[d], from[n - 1] = from[d], to[n - 1] = to[d];
        } else {
            shape[n] = shape[d], from[n] = from[d], to[n++] = to[d];
        }
    }
    ndim = n;
    return true;
}

int64_t Block::rows() const { return product(shape, 0, ndim - 1); }

Walk::Walk(const Block& b, int leading, int64_t row) : block(b), dims(leading) {
    for (int d = dims - 1; d >= 0; --d) {
        at[d] = row % b.shape[d];
        row /= b.shape[d];
        from += at[d] * b.from[d], to += at[d] * b.to[d];
    }
}

namespace {

template <class T> FW_INLINE T get(const char* p) {
    T x;
    memcpy(&x, p, sizeof x);
    return x;
}
template <class T> FW_INLINE void put(char* p, T x) { memcpy(p, &x, sizeof x); }

template <class T> void copy_line(const char* from, int64_t step, char* to, int64_t to_step, int64_t n) {
    constexpr int64_t S = sizeof(T);
    if (to_step != S) {
        for (int64_t i = 0; i < n; ++i) put(to + i * to_step, get<T>(from + i * step));
    } else if (step == S) {
        for (int64_t i = 0; i < n; ++i) put(to + i * S, get<T>(from + i * S));
    } else if (step == 0) {
        T x = get<T>(from);
        for (int64_t i = 0; i < n; ++i) put(to + i * S, x);
    } else if (step == -S) {
        for (int64_t i = 0; i < n; ++i) put(to + i * S, get<T>(from - i * S));
    } else {
        for (int64_t i = 0; i < n; ++i) put(to + i * S, get<T>(from + i * step));
    }
}

template <class T> void copy_lines(const Block& b, const char* from, char* to) {
    int inner = b.ndim - 1;
    int64_t n = b.shape[inner], step = b.from[inner], to_step = b.to[inner];
    bool dense = step == sizeof(T) && to_step == sizeof(T) && n * sizeof(T) >= 128;
    parallel(b.rows(), grain_of(n * sizeof(T)), [&](int64_t begin, int64_t end) {
        Walk w(b, inner, begin);
        for (int64_t i = begin; i < end; ++i, w.next()) {
            if (dense)
                memcpy(to + w.to, from + w.from, size_t(n) * sizeof(T));
            else
                copy_line<T>(from + w.from, step, to + w.to, to_step, n);
        }
    });
}

// A tile of a transposition: rows x cols, columns side by side in `from`, rows side by side in `to`.
template <class T>
void turn_tile(const char* from, int64_t from_row, char* to, int64_t to_col, int64_t rows, int64_t cols) {
    int64_t r = 0;
#if defined(__x86_64__)
    if constexpr (sizeof(T) == 4) {
        for (; r + 4 <= rows; r += 4) {
            int64_t c = 0;
            for (; c + 4 <= cols; c += 4) {
                const char* p = from + r * from_row + c * 4;
                __m128 v0 = get<__m128>(p), v1 = get<__m128>(p + from_row), v2 = get<__m128>(p + 2 * from_row),
                       v3 = get<__m128>(p + 3 * from_row);
                _MM_TRANSPOSE4_PS(v0, v1, v2, v3);
                char* q = to + c * to_col + r * 4;
                put(q, v0), put(q + to_col, v1), put(q + 2 * to_col, v2), put(q + 3 * to_col, v3);
            }
            for (; c < cols; ++c)
                for (int64_t k = 0; k < 4; ++k)
                    put(to + c * to_col + (r + k) * 4, get<T>(from + (r + k) * from_row + c * 4));
        }
    }
#endif
    for (int64_t c = 0; c < cols; ++c)
        for (int64_t k = r; k < rows; ++k)
            put(to + c * to_col + k * int64_t(sizeof(T)), get<T>(from + k * from_row + c * int64_t(sizeof(T))));
}

// The last dimension is dense in `to`, dimension d is dense in `from`.
template <class T> void turn(const Block& b, int d, const char* from, char* to) {
    constexpr int64_t TILE = sizeof(T) <= 2 ? 32 : 16;
    int last = b.ndim - 1;
    Block outer;
    for (int i = 0; i < last; ++i)
        if (i != d) outer.add(b.shape[i], b.from[i], b.to[i]);
    int64_t rows = b.shape[last], cols = b.shape[d], bands = (cols + TILE - 1) / TILE;
    int64_t count = product(outer.shape, 0, outer.ndim);
    parallel(count * bands, grain_of(rows * TILE * int64_t(sizeof(T))), [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
            Walk w(outer, outer.ndim, i / bands);
            int64_t c = i % bands * TILE, width = std::min(TILE, cols - c);
            const char* p = from + w.from + c * int64_t(sizeof(T));
            char* q = to + w.to + c * b.to[d];
            for (int64_t r = 0; r < rows; r += TILE)
                turn_tile<T>(p + r * b.from[last], b.from[last], q + r * int64_t(sizeof(T)), b.to[d],
                             std::min(TILE, rows - r), width);
        }
    });
}

int dense_elsewhere(const Block& b, int bytes) {
    int last = b.ndim - 1;
    if (b.to[last] != bytes || b.from[last] == bytes || b.from[last] == 0 || b.shape[last] < 4) return -1;
    for (int d = 0; d < last; ++d)
        if (b.from[d] == bytes && b.shape[d] >= 4) return d;
    return -1;
}

}  // namespace

void copy_bytes(const char* from, char* to, int64_t n) {
    parallel(n, GRAIN_BYTES,
             [&](int64_t begin, int64_t end) { memcpy(to + begin, from + begin, size_t(end - begin)); });
}

void fill_bytes(char* to, int64_t n, int value) {
    parallel(n, GRAIN_BYTES, [&](int64_t begin, int64_t end) { memset(to + begin, value, size_t(end - begin)); });
}

void copy_block(Block b, int bytes, const char* from, char* to) {
    if (!b.simplify()) return;
    if (b.ndim == 0) {
        memcpy(to, from, size_t(bytes));
        return;
    }
    int last = b.ndim - 1;
    if (last == 0 && b.from[0] == bytes && b.to[0] == bytes) return copy_bytes(from, to, b.shape[0] * bytes);
    int d = dense_elsewhere(b, bytes);
    by_bytes(bytes, [&](auto x) {
        using T = decltype(x);
        if (d >= 0)
            turn<T>(b, d, from, to);
        else
            copy_lines<T>(b, from, to);
    });
}

void copy_array(const Array& x, char* to) {
    int bytes = item_bytes(x);
    if (x.contiguous()) return copy_bytes(x.data<char>(), to, x.size() * bytes);
    Block b;
    int64_t stride = x.size() * bytes;
    for (int d = 0; d < x.ndim() && stride; ++d) b.add(x.shape(d), x.stride(d), stride /= x.shape(d));
    if (stride) copy_block(b, bytes, x.data<char>(), to);
}

bool element(nb::handle value, const Array& array, Pair& bits) {
    PyObject* o = value.ptr();
    if (!(PyFloat_CheckExact(o) || PyLong_CheckExact(o) || PyBool_Check(o))) return false;
    if (PyArray_Pack(PyArray_DESCR(array.p), &bits, o) == 0) return true;
    PyErr_Clear();
    return false;
}

// -- ops ------------------------------------------------------------------------------------------

namespace {

int64_t bytes_of(const Array& x) { return x.size() * item_bytes(x); }

nb::object copied(const Array& x) {
    NewArray out = like(x);
    nb::object result = give(out);
    Release release(bytes_of(x));
    copy_array(x, out.data<char>());
    return result;
}

nb::object clone(Array x) { return item_bytes(x) ? copied(x) : not_implemented(); }

nb::object contiguous(Array x) {
    if (!item_bytes(x)) return not_implemented();
    return x.contiguous() ? x.object() : copied(x);
}

nb::object flip(Array x, nb::handle dims) {
    Ints turned(dims);
    if (!item_bytes(x) || !turned.good || !x.size()) return not_implemented();
    bool back[NPY_MAXDIMS] = {};
    for (int i = 0; i < turned.n; ++i) {
        if (turned[i] < 0 || turned[i] >= x.ndim()) return not_implemented();
        back[turned[i]] = true;
    }
    NewArray out = like(x);
    nb::object result = give(out);
    Release release(bytes_of(x));
    Block b;
    const char* from = x.data<char>();
    for (int d = 0; d < x.ndim(); ++d) {
        if (back[d]) from += (x.shape(d) - 1) * x.stride(d);
        b.add(x.shape(d), back[d] ? -x.stride(d) : x.stride(d), out.stride(d));
    }
    copy_block(b, item_bytes(x), from, out.data<char>());
    return result;
}

// Copies all parts of a rolled array: of each dimension the part before the wrap and the one behind it.
void roll_parts(const Array& x, const int64_t* shift, int d, Block b, const char* from, char* to, const Array& out) {
    if (d == x.ndim()) return copy_block(b, item_bytes(x), from, to);
    int64_t size = x.shape(d), s = shift[d];
    for (int part = 0; part < (s ? 2 : 1); ++part) {
        Block with = b;
        with.add(part ? s : size - s, x.stride(d), out.stride(d));
        roll_parts(x, shift, d + 1, with, from + (part ? size - s : 0) * x.stride(d),
                   to + (part ? 0 : s) * out.stride(d), out);
    }
}

nb::object roll(Array x, nb::handle shifts, nb::handle dims) {
    Ints by(shifts);
    if (!item_bytes(x) || !x.size() || !by.good) return not_implemented();
    if (dims.is_none()) {
        if (!x.contiguous() || by.n != 1) return not_implemented();
        NewArray out = like(x);
        nb::object result = give(out);
        int64_t n = bytes_of(x), s = (by[0] % x.size() + x.size()) % x.size() * item_bytes(x);
        Release release(n);
        copy_bytes(x.data<char>(), out.data<char>() + s, n - s);
        copy_bytes(x.data<char>() + n - s, out.data<char>(), s);
        return result;
    }
    Ints along(dims);
    if (!along.good || along.n != by.n || along.n > 8) return not_implemented();
    int64_t shift[NPY_MAXDIMS] = {};
    for (int i = 0; i < along.n; ++i) {
        int64_t d = along[i];
        if (d < 0 || d >= x.ndim()) return not_implemented();
        shift[d] = (shift[d] + by[i] % x.shape(int(d)) + x.shape(int(d))) % x.shape(int(d));
    }
    NewArray out = like(x);
    nb::object result = give(out);
    Release release(bytes_of(x));
    roll_parts(x, shift, 0, Block(), x.data<char>(), out.data<char>(), out);
    return result;
}

nb::object tile(Array x, nb::handle reps) {
    Ints times(reps);
    const int bytes = item_bytes(x);
    if (!bytes || !times.is_shape() || !x.size() || times.n < x.ndim()) return not_implemented();
    const int front = times.n - x.ndim();
    npy_intp shape[NPY_MAXDIMS];
    for (int d = 0; d < times.n; ++d)
        if (__builtin_mul_overflow(times[d], d < front ? 1 : x.shape(d - front), &shape[d])) return not_implemented();
    if (!countable(shape, times.n)) return not_implemented();
    NewArray out = new_array(times.n, shape, x.type());
    nb::object result = give(out);
    Release release(out.size() * bytes);
    Block b;
    for (int d = 0; d < times.n; ++d) {
        int64_t size = d < front ? 1 : x.shape(d - front);
        b.add(times[d], 0, size * out.stride(d));
        b.add(size, d < front ? 0 : x.stride(d - front), out.stride(d));
    }
    copy_block(b, bytes, x.data<char>(), out.data<char>());
    return result;
}

// Each row keeps its first or last elements, the others are 0.
nb::object triangle(const Array& x, int64_t k, bool lower) {
    int bytes = item_bytes(x);
    if (!bytes || x.ndim() < 2 || !x.size()) return not_implemented();
    InRows rows(x);
    NewArray out = like(x);
    nb::object result = give(out);
    Release release(bytes_of(x));
    int64_t height = x.shape(x.ndim() - 2), width = x.shape(x.ndim() - 1);
    k = std::max(-height - 1, std::min(k, width + 1));
    parallel(x.size() / width, grain_of(width * bytes), [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
            int64_t cut = std::max<int64_t>(0, std::min(width, i % height + k + lower)) * bytes;
            const char* from = rows.a.data<char>() + i * width * bytes;
            char* to = out.data<char>() + i * width * bytes;
            memcpy(to, lower ? from : to, size_t(lower ? cut : 0));
            memset(lower ? to + cut : to, 0, size_t(lower ? width * bytes - cut : cut));
            if (!lower) memcpy(to + cut, from + cut, size_t(width * bytes - cut));
        }
    });
    return result;
}

// The elements of a contiguous block, each `bits`.
void fill_with(char* to, int64_t n, int bytes, Pair bits) {
    by_bytes(bytes, [&](auto x) {
        using T = decltype(x);
        memcpy(&x, &bits, sizeof x);
        parallel(n, grain_of(sizeof(T)), [&](int64_t begin, int64_t end) {
            std::fill(reinterpret_cast<T*>(to) + begin, reinterpret_cast<T*>(to) + end, x);
        });
    });
}

nb::object pad(Array x, nb::handle pads, nb::handle value) {
    int bytes = item_bytes(x);
    Pair bits{};
    if (!bytes || !x.size() || !PyTuple_Check(pads.ptr()) || Py_SIZE(pads.ptr()) != x.ndim() ||
        !element(value, x, bits))
        return not_implemented();
    npy_intp shape[NPY_MAXDIMS];
    int64_t before[NPY_MAXDIMS];
    for (int d = 0; d < x.ndim(); ++d) {
        Ints sides(PyTuple_GET_ITEM(pads.ptr(), d));
        if (!sides.good || sides.n != 2 || sides[0] < 0 || sides[1] < 0) return not_implemented();
        before[d] = sides[0];
        if (__builtin_add_overflow(sides[0], sides[1], &shape[d]) ||
            __builtin_add_overflow(int64_t(shape[d]), x.shape(d), &shape[d]))
            return not_implemented();
    }
    if (!countable(shape, x.ndim())) return not_implemented();
    NewArray out = new_array(x.ndim(), shape, x.type());
    nb::object result = give(out);
    Release release(out.size() * bytes);
    fill_with(out.data<char>(), out.size(), bytes, bits);
    Block b;
    char* to = out.data<char>();
    for (int d = 0; d < x.ndim(); ++d) {
        to += before[d] * out.stride(d);
        b.add(x.shape(d), x.stride(d), out.stride(d));
    }
    copy_block(b, bytes, x.data<char>(), to);
    return result;
}

}  // namespace

FW_BIND(m) {
    m.def("clone", &clone, nb::arg("x"));
    m.def("contiguous", &contiguous, nb::arg("x"));
    m.def("flip", &flip, nb::arg("x"), nb::arg("dims"));
    m.def("roll", &roll, nb::arg("x"), nb::arg("shifts"), nb::arg("dims").none());
    m.def("tile", &tile, nb::arg("x"), nb::arg("reps"));
    m.def("tril", [](Array x, int64_t k) { return triangle(x, k, true); }, nb::arg("x"), nb::arg("k"));
    m.def("triu", [](Array x, int64_t k) { return triangle(x, k, false); }, nb::arg("x"), nb::arg("k"));
    m.def("pad", &pad, nb::arg("x"), nb::arg("pads"), nb::arg("value"));
}

}  // namespace fw::moving

namespace fw {

void InRows::copy() {
    const Array given = a;
    const int bytes = moving::item_bytes(given);
    NewArray made = bytes ? like(given) : NewArray(PyArray_NewCopy(given.p, NPY_CORDER));
    if (!made.p) throw nb::python_error();
    if (bytes) {
        Release release(given.size() * bytes);
        moving::copy_array(given, made.data<char>());
    }
    a = made;
    owner = give(made);
}

}  // namespace fw
