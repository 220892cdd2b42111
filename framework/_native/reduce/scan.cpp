// cumsum, cumprod, cummax, cummin, logcumsumexp along any dimension.
#include "reduce/scan.h"

#include "base/vecmath.h"
#include "reduce/cumulate.h"

namespace fw {
namespace {

template <class Number> struct PlainScan {
    using T = Number;
    struct State {
        Vec<T> v;
    };
    static constexpr bool places = false, sums = false, alone = true;
    static constexpr int cost = 1;
    static FW_INLINE State start(Vec<T> x, Mask<T>) { return {x}; }
    static FW_INLINE Vec<T> value(State s) { return s.v; }
    template <bool Backward> static FW_INLINE State last(State s) {
        return {scan::last_lane<T, Backward>(s.v)};
    }
};

template <class T> struct RunningSum : PlainScan<T> {
    using State = typename PlainScan<T>::State;
    static constexpr bool sums = true;  // which run backwards, too
    static T fill() { return T(-0.0); }  // -0 + x = x, also for x = -0
    static FW_INLINE State neutral() { return {splat(fill())}; }
    static FW_INLINE State join(State a, State b) { return {a.v + b.v}; }
    static FW_INLINE T after(T a, T b) { return a + b; }
    template <int W, bool Backward> static FW_INLINE State shift(State s) {
        return {scan::shifted<T, W, Backward>(s.v, splat(fill()))};
    }
};

template <class T> struct RunningProduct : PlainScan<T> {
    using State = typename PlainScan<T>::State;
    static T fill() { return T(1); }
    static FW_INLINE State neutral() { return {splat(fill())}; }
    static FW_INLINE State join(State a, State b) { return {a.v * b.v}; }
    static FW_INLINE T after(T a, T b) { return a * b; }
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
    static constexpr bool places = true, sums = false, alone = false;
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
    static constexpr bool places = false, sums = false, alone = false;
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

// Calls f with the running combination; false for a type that it does not have.
template <class F> bool of_kind(Cumulate kind, Type type, F&& f) {
    const bool narrow = type == Type::float32, whole = type == Type::int64;
    if (!narrow && !whole && type != Type::float64) return false;
    switch (kind) {
        case Cumulate::sum:
            return narrow ? f(RunningSum<float>()) : whole ? f(RunningSum<uint64_t>())  // overflow wraps
                                                           : f(RunningSum<double>());
        case Cumulate::product:
            return narrow ? f(RunningProduct<float>()) : whole ? f(RunningProduct<uint64_t>()) : f(RunningProduct<double>());
        case Cumulate::largest:
            return narrow ? f(RunningExtreme<float, true>()) : whole ? f(RunningExtreme<int64_t, true>())
                                                                     : f(RunningExtreme<double, true>());
        case Cumulate::smallest:
            return narrow ? f(RunningExtreme<float, false>()) : whole ? f(RunningExtreme<int64_t, false>())
                                                                      : f(RunningExtreme<double, false>());
        case Cumulate::log_sum: return !whole && (narrow ? f(RunningLogSum<float>()) : f(RunningLogSum<double>()));
    }
    return false;
}

}  // namespace

bool cumulates(Cumulate kind, const View& x, int dim) {
    return dim >= 0 && dim < x.ndim() && x.size() > 0 &&
           of_kind(kind, x.type(), [&](auto r) { return scan::fits<decltype(r)>(x, dim); });
}

void cumulate(Cumulate kind, bool reverse, const View& x, int dim, void* out, int64_t* places) {
    of_kind(kind, x.type(), [&](auto r) {
        using R = decltype(r);
        if constexpr (R::sums)
            if (reverse) return scan::run<R, true>(x, dim, out, places), true;
        return scan::run<R>(x, dim, out, places), true;
    });
}

}  // namespace fw
