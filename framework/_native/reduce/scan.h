// Running combinations along a dimension, of whole vectors at once.
//
// A running combination R has a State of vectors, made of elements and their indices by `start`.
// `join(a, b)`, a before b, is associative: the lanes of one vector are combined in log2(lanes) steps (Hillis
// and Steele 1986), and only the joining of vectors is serial. `value` gives the results; `places`: they have
// an index; `alone`: `after(a, b)` joins two numbers as well.
#pragma once

#include <algorithm>

#include "base/pool.h"
#include "base/view.h"
#include "base/shuffles.h"
#include "base/rows.h"
#include "base/scratch.h"

namespace fw {
namespace scan {

// Lane i takes lane i - W (or i + W, going backward), from another vector where there is none.
template <int W, int L, bool Backward> struct Shifted {
    static constexpr int at(int i) {
        int j = Backward ? i + W : i - W;
        return j >= 0 && j < L ? L + j : i;
    }
};
template <class T, int W, bool Backward> FW_INLINE Vec<T> shifted(Vec<T> v, Vec<T> fill) {
    return permute<T, Shifted<W, lanes<T>, Backward>>(fill, v);
}
template <int I> struct Only {
    static constexpr int at(int) { return I; }
};
template <class T, bool Backward> FW_INLINE Vec<T> last_lane(Vec<T> v) {
    return permute<T, Only<Backward ? 0 : lanes<T> - 1>>(v, v);
}

template <class R, bool Backward, int W = 1> FW_INLINE typename R::State within(typename R::State s) {
    if constexpr (W == lanes<typename R::T>) {
        return s;
    } else {
        return within<R, Backward, 2 * W>(R::join(R::template shift<W, Backward>(s), s));
    }
}

template <class T> FW_INLINE void store_places(int64_t* p, Mask<T> v, int64_t n) {
    typedef int64_t Wide __attribute__((vector_size(8 * lanes<T>)));
    const Wide places = __builtin_convertvector(v, Wide);
    if (n >= lanes<T>) std::memcpy(p, &places, sizeof places);
    else std::memcpy(p, &places, size_t(n) * 8);
}

template <class R> FW_INLINE void emit(typename R::State s, typename R::T* out, int64_t* places, int64_t n) {
    using T = typename R::T;
    if (n >= lanes<T>) store<T>(out, R::value(s));
    else store_part<T>(out, R::value(s), n);
    if constexpr (R::places) store_places<T>(places, s.place, n);
}

template <class R, bool Backward>
void along_row(const typename R::T* x, typename R::T* out, int64_t* places, int64_t n) {
    using T = typename R::T;
    constexpr int64_t L = lanes<T>;
    auto carry = R::neutral();
    int64_t whole = n / L * L;
    auto step = [&](int64_t i, Vec<T> v) {
        auto s = within<R, Backward>(R::start(v, lane_numbers<T>() + splat(Int<T>(i))));
        emit<R>(R::join(carry, s), out + i, places + i, n - i);
        carry = R::join(carry, R::template last<Backward>(s));
    };
    auto rest = [&] {
        if (whole < n) step(whole, load_part(x + whole, n - whole, R::fill()));
    };
    if (Backward) rest();
    for (int64_t i = 0; i < whole; i += L) {
        int64_t at = Backward ? whole - L - i : i;
        step(at, load(x + at));
    }
    if (!Backward) rest();
}

// Rows that fill no vector, number by number: those of several rows go side by side.
template <class R, bool Backward>
void along_short(const typename R::T* x, typename R::T* out, int64_t n, int64_t rows) {
    for (int64_t r = 0; r < rows; ++r, x += n, out += n) {
        int64_t i = Backward ? n - 1 : 0;
        auto now = out[i] = x[i];
        for (int64_t k = 1; k < n; ++k) {
            i += Backward ? -1 : 1;
            out[i] = now = R::after(now, x[i]);
        }
    }
}

constexpr int64_t STRIP = 1024;  // bytes: columns gone along together

template <class R, bool Backward>
void along_columns(const typename R::T* x, typename R::T* out, int64_t* places, int64_t n, int64_t inner,
                   int64_t width) {
    using T = typename R::T;
    constexpr int64_t L = lanes<T>;
    if (width <= L) {  // what is summed so far stays in a register
        auto now = R::neutral();
        for (int64_t i = 0; i < n; ++i) {
            const int64_t at = (Backward ? n - 1 - i : i) * inner;
            const Vec<T> v = width == L ? load(x + at) : load_part(x + at, width, R::fill());
            now = R::join(now, R::start(v, splat(Int<T>(i))));
            emit<R>(now, out + at, places + at, width);
        }
        return;
    }
    auto* now = scratch<typename R::State>(0, width / L + 1);
    for (int64_t k = 0; k * L < width; ++k) now[k] = R::neutral();
    for (int64_t i = 0; i < n; ++i) {
        int64_t row = (Backward ? n - 1 - i : i) * inner;
        Mask<T> index = splat(Int<T>(i));
        for (int64_t j = 0, k = 0; j < width; j += L, ++k) {
            int64_t at = row + j, left = width - j;
            Vec<T> v = left >= L ? load(x + at) : load_part(x + at, left, R::fill());
            now[k] = R::join(now[k], R::start(v, index));
            emit<R>(now[k], out + at, places + at, left);
        }
    }
}

constexpr int64_t GRAIN = 16 << 10;

// x, row by row with elements, along a dimension whose size `fits`; so are the results.
template <class R> bool fits(const View& x, int dim) {
    return x.shape(dim) <= std::numeric_limits<Int<typename R::T>>::max();
}

template <class R, bool Backward = false> void run(const View& x, int dim, void* out, int64_t* places) {
    using T = typename R::T;
    const Around a(x, dim, dim);
    const int64_t n = a.n, inner = a.inner;
    const T* from = x.data<const T>();
    T* to = static_cast<T*>(out);
    if constexpr (R::alone)
        if (inner == 1 && 2 * n <= lanes<T>)
            return parallel(a.outer, GRAIN / n, [&](int64_t begin, int64_t end) {
                along_short<R, Backward>(from + begin * n, to + begin * n, n, end - begin);
            });
    const int64_t most = STRIP / int64_t(sizeof(T)), across = inner == 1 ? 1 : (inner + most - 1) / most;
    const int64_t each = n * std::min(inner, most) * R::cost;
    parallel(a.outer * across, std::max<int64_t>(1, GRAIN / each), [&](int64_t begin, int64_t end) {
        for (int64_t u = begin; u < end; ++u) {
            int64_t j = u % across * most, width = std::min(most, inner - j);
            int64_t at = u / across * n * inner + j;
            if (inner == 1) along_row<R, Backward>(from + at, to + at, places + at, n);
            else along_columns<R, Backward>(from + at, to + at, places + at, n, inner, width);
        }
    });
}

}  // namespace scan
}  // namespace fw
