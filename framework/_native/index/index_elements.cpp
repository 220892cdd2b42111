// Single elements by their positions along one dimension: gather, scatter, and scattering that combines.
#include <algorithm>

#include "index/index.h"

namespace fw::moving {
namespace {

constexpr int64_t LINE = 64;
constexpr int64_t CHUNK = 256;  // positions that are read and checked at once

// An index and what it runs along. `far` is the array that positions point into, `near` has the index's shape.
// Dimensions: `outer` (all but dim and the last), then `steps` along dim, then `width` along the last one.
// Where dim is the last one, steps is 1 and positions vary along the width.
struct Plan {
    const char* index = nullptr;
    Block outer;  // from: strides of the index, to: of near
    int64_t far_outer[NPY_MAXDIMS];
    int64_t steps = 1, width = 1, n = 1;
    int64_t index_step = 0, near_step = 0;                 // along dim, in bytes
    int64_t index_next = 0, near_next = 0, far_next = 0;   // along the last dimension, in bytes
    int64_t far_jump = 0;                                  // of one position
    int64_t band = 1, bands = 1;                           // columns that belong to one thread
    bool good = false;

    int64_t units() const { return product(outer.shape, 0, outer.ndim) * bands; }
    int64_t unit_bytes(int bytes) const { return steps * band * bytes; }
};

// shared: what is written is the far array.
Plan plan(const Array& index, int ndim, const npy_intp* far_shape, const npy_intp* far_strides,
          const npy_intp* near_strides, int64_t dim, int bytes, bool shared) {
    Plan p;
    if (!index.is<int64_t>() || index.ndim() != ndim || ndim < 1 || dim < 0 || dim >= ndim || !index.size()) return p;
    for (int d = 0; d < ndim; ++d)
        if (d != dim && index.shape(d) > far_shape[d]) return p;
    int last = ndim - 1, k = int(dim);
    p.index = index.data<char>();
    for (int d = 0; d < last; ++d) {
        if (d == k) continue;
        p.far_outer[p.outer.ndim] = far_strides[d];
        p.outer.add(index.shape(d), index.stride(d), near_strides[d]);
    }
    p.n = far_shape[k], p.width = p.band = index.shape(last);
    p.index_next = index.stride(last), p.near_next = near_strides[last], p.far_jump = far_strides[k];
    if (k != last) {
        p.steps = index.shape(k), p.index_step = index.stride(k), p.near_step = near_strides[k];
        p.far_next = far_strides[last];
        if (shared && p.units() < threads()) {  // threads get columns of their own, and do not meet in a cache line
            int64_t line = LINE / bytes, most = (p.width + line - 1) / line;
            p.band = std::min(p.width, (most + threads() - 1) / threads() * line);
            p.bands = (p.width + p.band - 1) / p.band;
        }
    }
    p.good = true;
    return p;
}

// Where a unit begins: offsets in index, near and far; and how many columns it has.
struct Line {
    const Plan& p;
    Walk outer;
    int64_t unit, index = 0, near = 0, far = 0, width = 0;

    Line(const Plan& plan, int64_t u) : p(plan), outer(plan.outer, plan.outer.ndim, u / plan.bands), unit(u) { set(); }
    void next() {
        if (++unit % p.bands == 0) outer.next();
        set();
    }

private:
    void set() {
        int64_t first = p.bands == 1 ? 0 : unit % p.bands * p.band;
        width = std::min(p.band, p.width - first);
        index = outer.from + first * p.index_next;
        near = outer.to + first * p.near_next;
        far = first * p.far_next;
        for (int d = 0; d < outer.dims; ++d) far += outer.at[d] * p.far_outer[d];
    }
};

// The offsets of `width` positions in the far array, those of further columns `far_next` apart; false if one is
// out of range. Last: dim is the last dimension, and they are elements instead of bytes.
template <bool Last> FW_INLINE bool read_offsets(const Plan& p, const char* index, int64_t width, int64_t* offsets) {
    bool wrong = false;
    int64_t n = p.n, step = p.index_next, jump = p.far_jump, next = p.far_next;
    int64_t j = 0;
    if (step == 8) {
        using V = Vec<int64_t>;
        constexpr int L = lanes<int64_t>;
        V column{}, bad{}, size = splat(n), by = splat(jump);
        for (int i = 0; i < L; ++i) column[i] = i * next;
        for (; j + L <= width; j += L, column += L * next) {
            V k = load(reinterpret_cast<const int64_t*>(index) + j);
            k += (k < 0) & size;
            bad |= (k < 0) | (k >= size);
            store(offsets + j, Last ? k : k * by + column);
        }
        for (int i = 0; i < L; ++i) wrong |= bad[i] != 0;
    }
    for (; j < width; ++j) {
        int64_t k = *reinterpret_cast<const int64_t*>(index + j * step);
        k += k < 0 ? n : 0;
        wrong |= uint64_t(k) >= uint64_t(n);
        offsets[j] = Last ? k : int64_t(uint64_t(k) * uint64_t(jump) + uint64_t(j * next));  // k may be wrong
    }
    return !wrong;
}

template <class T> FW_INLINE T& at(char* p, int64_t offset) { return *reinterpret_cast<T*>(p + offset); }
template <class T> FW_INLINE const T& at(const char* p, int64_t offset) {
    return *reinterpret_cast<const T*>(p + offset);
}

// Calls f(near offset, far offset) for each pair of some steps of a unit; false if a position is out of range.
template <int64_t B, bool Last, class F>
bool each_pair(const Plan& p, const Line& l, int64_t from_step, int64_t to_step, F&& f) {
    int64_t offsets[CHUNK];
    for (int64_t s = from_step; s < to_step; ++s) {
        for (int64_t c = 0; c < l.width; c += CHUNK) {
            int64_t m = std::min(CHUNK, l.width - c), near = l.near + s * p.near_step + c * p.near_next;
            int64_t far = l.far + c * p.far_next;
            const char* index = p.index + l.index + s * p.index_step + c * p.index_next;
            if (!read_offsets<Last>(p, index, m, offsets)) return false;
            if (p.near_next == B)
                for (int64_t j = 0; j < m; ++j) f(near + j * B, far + offsets[j] * (Last ? B : 1));
            else
                for (int64_t j = 0; j < m; ++j) f(near + j * p.near_next, far + offsets[j] * (Last ? B : 1));
        }
    }
    return true;
}

// The same for whole and parts of units: `begin` and `end` count steps.
template <int64_t B, class F> bool each_pair(const Plan& p, int64_t begin, int64_t end, F&& f) {
    int64_t step = begin % p.steps;
    bool last = p.far_next == 0 && p.far_jump == B;
    for (Line l(p, begin / p.steps);; l.next()) {
        int64_t stop = std::min(p.steps, step + end - begin);
        if (!(last ? each_pair<B, true>(p, l, step, stop, f) : each_pair<B, false>(p, l, step, stop, f))) return false;
        begin += stop - step, step = 0;
        if (begin == end) return true;
    }
}

// -- gather ---------------------------------------------------------------------------------------

template <class T> bool gather_all(const Plan& p, const char* x, char* out) {
    std::atomic<bool> bad{false};
    parallel(p.units() * p.steps, grain_of(p.band * int64_t(sizeof(T))), [&](int64_t begin, int64_t end) {
        bool good = each_pair<sizeof(T)>(p, begin, end, [=](int64_t a, int64_t b) { at<T>(out, a) = at<T>(x, b); });
        if (!good) bad = true;
    });
    return !bad;
}

nb::object gather(Array x, Array index, int64_t dim) {
    int bytes = item_bytes(x);
    if (!bytes || !index.usable() || !x.size()) return not_implemented();
    NewArray out = new_array(index.ndim(), index.shape(), x.type());
    nb::object result = give(out);
    Plan p = plan(index, x.ndim(), x.shape(), x.strides(), out.strides(), dim, bytes, false);
    if (!p.good) return not_implemented();
    bool good = false;
    {
        Release release(out.size() * bytes);
        by_bytes(bytes, [&](auto t) {
            good = gather_all<decltype(t)>(p, x.data<char>(), out.data<char>());
        });
    }
    return good ? result : not_implemented();
}

// -- scatter --------------------------------------------------------------------------------------

// Puts src (strides in the plan) into `out`: combine(place, value). Each place belongs to one unit, and the
// steps of a unit are taken in order, so the result does not depend on the threads.
template <class T, class C> bool scatter_all(const Plan& p, const char* src, char* out, C&& combine) {
    constexpr int64_t B = sizeof(T);
    std::atomic<bool> bad{false};
    parallel(p.units(), grain_of(p.unit_bytes(B)), [&](int64_t begin, int64_t end) {
        bool good = each_pair<B>(p, begin * p.steps, end * p.steps,
                                 [=](int64_t a, int64_t b) { combine(at<T>(out, b), at<T>(src, a)); });
        if (!good) bad = true;
    });
    return !bad;
}

// The strides of values in the index's shape: an array's, or all 0 for one number.
struct Source {
    const char* data = nullptr;
    npy_intp strides[NPY_MAXDIMS] = {};
    Pair bits{};

    Source(nb::handle given, const Array& x, const Array& index) {
        PyObject* o = given.ptr();
        if (!PyArray_CheckExact(o) || !PyArray_ISBEHAVED_RO(reinterpret_cast<PyArrayObject*>(o))) {
            if (element(given, x, bits)) data = reinterpret_cast<const char*>(&bits);
            return;
        }
        Array a;
        a.p = reinterpret_cast<PyArrayObject*>(o);
        if (a.type() != x.type() || (a.ndim() && !a.same_shape(index))) return;
        data = a.data<char>();
        std::copy(a.strides(), a.strides() + a.ndim(), strides);
    }
};

// x with `src` combined into it by f(plan, src, out).
template <class F> nb::object scattered(const Array& x, nb::handle src, const Array& index, int64_t dim, F&& f) {
    int bytes = item_bytes(x);
    if (!bytes || !index.usable() || !x.size()) return not_implemented();
    Source source(src, x, index);
    if (!source.data) return not_implemented();
    NewArray out = like(x);
    nb::object result = give(out);
    Plan p = plan(index, x.ndim(), x.shape(), out.strides(), source.strides, dim, bytes, true);
    if (!p.good) return not_implemented();
    bool good = false;
    {
        Release release((x.size() + index.size()) * bytes);
        copy_array(x, out.data<char>());
        good = f(p, source.data, out.data<char>());
    }
    return good ? result : not_implemented();
}

nb::object scatter(Array x, nb::handle src, Array index, int64_t dim) {
    return scattered(x, src, index, dim, [&](const Plan& p, const char* from, char* to) {
        bool good = false;
        by_bytes(item_bytes(x), [&](auto t) {
            using T = decltype(t);
            good = scatter_all<T>(p, from, to, [](T& place, T value) { place = value; });
        });
        return good;
    });
}

template <class C> nb::object combined(const Array& x, nb::handle src, const Array& index, int64_t dim, C&& combine) {
    return scattered(x, src, index, dim, [&](const Plan& p, const char* from, char* to) {
        bool good = false;
        return by_number(x.type(), [&](auto t) {
            using T = decltype(t);
            good = scatter_all<T>(p, from, to, [=](T& place, T value) { combine(place, value); });
        }) && good;
    });
}

nb::object scatter_multiply(Array x, nb::handle src, Array index, int64_t dim) {
    return combined(x, src, index, dim, [](auto& place, auto value) {
        using T = std::decay_t<decltype(place)>;
        if constexpr (std::is_integral<T>::value) {
            using U = std::make_unsigned_t<T>;  // integers wrap around
            place = T(U(place) * U(value));
        } else {
            place *= value;
        }
    });
}

nb::object scatter_extreme(Array x, nb::handle src, Array index, int64_t dim, bool largest) {
    return combined(x, src, index, dim, [largest](auto& place, auto value) {
        bool better = largest ? value > place : value < place;
        if (better || value != value) place = place != place ? place : value;  // nan stays
    });
}

nb::object ungather(Array x, Array index, int64_t dim, nb::handle shape) {
    Ints sizes(shape);
    if (!x.usable() || !index.usable() || !sizes.is_shape() || !x.same_shape(index)) return not_implemented();
    npy_intp whole[NPY_MAXDIMS];
    std::copy(sizes.at, sizes.at + sizes.n, whole);
    nb::object result;
    bool good = false;
    by_number(x.type(), [&](auto t) {
        using T = decltype(t);
        NewArray out = new_array(sizes.n, whole, x.type());
        result = give(out);
        Plan p = plan(index, sizes.n, whole, out.strides(), x.strides(), dim, sizeof(T), true);
        if (!p.good || !out.size()) return;
        Release release((out.size() + x.size()) * int64_t(sizeof(T)));
        fill_bytes(out.data<char>(), out.size() * int64_t(sizeof(T)), 0);
        good = scatter_all<T>(p, x.data<char>(), out.data<char>(),
                              [](T& place, T value) { place = sum_of(place, value); });
    });
    return good ? result : not_implemented();
}

// -- one_hot --------------------------------------------------------------------------------------

nb::object one_hot(Array classes, int64_t count) {
    if (!classes.is<int64_t>() || !classes.size() || count < 1 || classes.ndim() + 1 > NPY_MAXDIMS)
        return not_implemented();
    InRows rows(classes);
    npy_intp shape[NPY_MAXDIMS];
    std::copy(classes.shape(), classes.shape() + classes.ndim(), shape);
    shape[classes.ndim()] = count;
    if (!countable(shape, classes.ndim() + 1)) return not_implemented();
    NewArray out = new_array(classes.ndim() + 1, shape, NPY_INT64);
    nb::object result = give(out);
    std::atomic<bool> bad{false};
    {
        Release release(out.size() * 8);
        const int64_t* at = rows.a.data<int64_t>();
        parallel(classes.size(), grain_of(count * 8), [&](int64_t begin, int64_t end) {
            int64_t* to = out.data<int64_t>();
            memset(to + begin * count, 0, size_t((end - begin) * count) * 8);
            for (int64_t i = begin; i < end; ++i) {
                int64_t k = at[i];
                if (uint64_t(k) < uint64_t(count))
                    to[i * count + k] = 1;
                else
                    bad = true;
            }
        });
    }
    return bad ? not_implemented() : result;
}

}  // namespace

FW_BIND(m) {
    m.def("gather", &gather, nb::arg("x"), nb::arg("index"), nb::arg("dim"));
    m.def("ungather", &ungather, nb::arg("x"), nb::arg("index"), nb::arg("dim"), nb::arg("shape"));
    m.def("scatter", &scatter, nb::arg("x"), nb::arg("src").none(), nb::arg("index"), nb::arg("dim"));
    m.def("scatter_multiply", &scatter_multiply, nb::arg("x"), nb::arg("src").none(), nb::arg("index"),
          nb::arg("dim"));
    m.def("scatter_extreme", &scatter_extreme, nb::arg("x"), nb::arg("src").none(), nb::arg("index"),
          nb::arg("dim"), nb::arg("largest"));
    m.def("one_hot", &one_hot, nb::arg("classes"), nb::arg("count"));
}

}  // namespace fw::moving
