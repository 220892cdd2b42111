// cumsum, cumprod, cummax, cummin, logcumsumexp along any dimension.
#include "reduce/scan.h"

#include "base/vecmath.h"

namespace fw {
namespace {

template <class Number> struct Plain {
    using T = Number;
    struct State {
        Vec<T> v;
    };
    static constexpr bool places = false;
    static constexpr int cost = 1;
    static FW_INLINE State start(Vec<T> x, Mask<T>) { return {x}; }
    static FW_INLINE Vec<T> value(State s) { return s.v; }
    template <bool Backward> static FW_INLINE State last(State s) {
        return {scan::last_lane<T, Backward>(s.v)};
    }
};

template <class T> struct RunningSum : Plain<T> {
    using State = typename Plain<T>::State;
    static T fill() { return T(-0.0); }  // -0 + x = x, also for x = -0
    static FW_INLINE State neutral() { return {splat(fill())}; }
    static FW_INLINE State join(State a, State b) { return {a.v + b.v}; }
    template <int W, bool Backward> static FW_INLINE State shift(State s) {
        return {scan::shifted<T, W, Backward>(s.v, splat(fill()))};
    }
};

template <class T> struct RunningProduct : Plain<T> {
    using State = typename Plain<T>::State;
    static T fill() { return T(1); }
    static FW_INLINE State neutral() { return {splat(fill())}; }
    static FW_INLINE State join(State a, State b) { return {a.v * b.v}; }
    template <int W, bool Backward> static FW_INLINE State shift(State s) {
        return {scan::shifted<T, W, Backward>(s.v, splat(fill()))};
    }
};

// Of equal elements the last; from the first nan on, nan, at the place of the last one.
template <class Number, bool Largest> struct RunningExtreme {
    using T = Number;
    using N = std::numeric_limits<T>;
    struct State {
        Vec<T> v;
        Mask<T> place;
    };
    static constexpr bool places = true;
    static constexpr int cost = 2;
    static T fill() {
        if (N::has_infinity) return Largest ? -N::infinity() : N::infinity();
        return Largest ? N::lowest() : N::max();
    }
    static FW_INLINE State neutral() { return {splat(fill()), Mask<T>{}}; }
    static FW_INLINE State start(Vec<T> x, Mask<T> index) { return {x, index}; }
    static FW_INLINE Vec<T> value(State s) { return s.v; }
    static FW_INLINE State join(State a, State b) {
        Mask<T> later = (Largest ? b.v >= a.v : b.v <= a.v) | (b.v != b.v);
        return {select<T>(later, b.v, a.v), later ? b.place : a.place};
    }
    template <int W, bool Backward> static FW_INLINE State shift(State s) {  // joined with itself: itself
        return {scan::shifted<T, W, Backward>(s.v, s.v),
                scan::shifted<Int<T>, W, Backward>(s.place, s.place)};
    }
    template <bool Backward> static FW_INLINE State last(State s) {
        return {scan::last_lane<T, Backward>(s.v), scan::last_lane<Int<T>, Backward>(s.place)};
    }
};

// sum = the sum of exp(x - top), top the largest x so far
template <class Number> struct RunningLogSum {
    using T = Number;
    struct State {
        Vec<T> top, sum;
    };
    static constexpr bool places = false;
    static constexpr int cost = 8;
    static T fill() { return -std::numeric_limits<T>::infinity(); }
    static FW_INLINE State neutral() { return {splat(fill()), Vec<T>{}}; }
    static FW_INLINE State start(Vec<T> x, Mask<T>) { return {x, splat(T(1))}; }
    static FW_INLINE Vec<T> value(State s) { return s.top + math::log<Vec<T>>(s.sum); }
    static FW_INLINE State join(State a, State b) {
        Vec<T> d = a.top == b.top ? Vec<T>{} : a.top - b.top;  // of two infinities 0
        Vec<T> e = math::exp<Vec<T>>(-abs<T>(d));
        Vec<T> sum = d > Vec<T>{} ? a.sum + b.sum * e : a.sum * e + b.sum;
        return {maximum<T>(a.top, b.top), sum};
    }
    template <int W, bool Backward> static FW_INLINE State shift(State s) {
        return {scan::shifted<T, W, Backward>(s.top, splat(fill())),
                scan::shifted<T, W, Backward>(s.sum, Vec<T>{})};
    }
    template <bool Backward> static FW_INLINE State last(State s) {
        return {scan::last_lane<T, Backward>(s.top), scan::last_lane<T, Backward>(s.sum)};
    }
};

template <class R> nb::object either_way(const Array& x, int dim, bool reverse) {
    return reverse ? scan::run<R, true>(x, dim, x.type()) : scan::run<R>(x, dim, x.type());
}

nb::object cumsum(Array x, int dim, bool reverse) {
    if (x.is<float>()) return either_way<RunningSum<float>>(x, dim, reverse);
    if (x.is<double>()) return either_way<RunningSum<double>>(x, dim, reverse);
    if (x.is<int64_t>()) return either_way<RunningSum<uint64_t>>(x, dim, reverse);  // overflow wraps
    return not_implemented();
}

nb::object cumprod(Array x, int dim) {
    if (x.is<float>()) return scan::run<RunningProduct<float>>(x, dim, x.type());
    if (x.is<double>()) return scan::run<RunningProduct<double>>(x, dim, x.type());
    return not_implemented();
}

template <bool Largest> nb::object extreme(Array x, int dim) {
    if (x.is<float>()) return scan::run<RunningExtreme<float, Largest>>(x, dim, x.type());
    if (x.is<double>()) return scan::run<RunningExtreme<double, Largest>>(x, dim, x.type());
    if (x.is<int64_t>()) return scan::run<RunningExtreme<int64_t, Largest>>(x, dim, x.type());
    return not_implemented();
}

nb::object logcumsumexp(Array x, int dim) {
    if (x.is<float>()) return scan::run<RunningLogSum<float>>(x, dim, x.type());
    if (x.is<double>()) return scan::run<RunningLogSum<double>>(x, dim, x.type());
    return not_implemented();
}

}  // namespace

FW_BIND(m) {
    nb::arg x("x"), dim("dim");
    m.def("cumsum", &cumsum, x, dim, nb::arg("reverse"));
    m.def("cumprod", &cumprod, x, dim);
    m.def("cummax", &extreme<true>, x, dim);
    m.def("cummin", &extreme<false>, x, dim);
    m.def("logcumsumexp", &logcumsumexp, x, dim);
}

}  // namespace fw
