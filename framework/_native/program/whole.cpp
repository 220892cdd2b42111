#include "program/whole.h"

#include "base/pool.h"

namespace fw::whole {
namespace {

using V = Vec<double>;
using W = Vec<int64_t>;
template <class T> struct Some { typedef T type __attribute__((vector_size(sizeof(T) * lanes<double>))); };

template <Of what, class T> T one(T x, T y) {
    using U = std::make_unsigned_t<T>;
    constexpr bool quotient = what == Of::truncated || what == Of::floored;
    if (y == 0) return 0;
    if (y == -1) return quotient ? T(U(0) - U(x)) : 0;
    const T q = x / y, r = x % y;
    const bool down = r && (r < 0) != (y < 0);
    if (quotient) return what == Of::floored ? q - down : q;
    return what == Of::remainder && down ? r + y : r;
}

// Doubles hold both numbers below 2^51, and their quotient is not rounded to a whole number that it is not: it is further
// from one than 1 / y. Adding `magic` leaves a whole number in the low bits.
constexpr double magic = 0x1.8p52;
FW_INLINE V as_doubles(W i) { return bits<V>(i + bits<int64_t>(magic)) - magic; }
FW_INLINE W as_integers(V x) { return bits<W>(x + magic) - bits<int64_t>(magic); }

template <Of what> FW_INLINE W quick(W x, W y) {
    const V a = as_doubles(x), b = as_doubles(y), q = a / b;
    constexpr bool truncated = what == Of::truncated || what == Of::rest;
    const V whole = truncated ? math::trunc<V>(q) : math::floor<V>(q);
    if constexpr (what == Of::truncated || what == Of::floored) return as_integers(whole);
    return as_integers(a - whole * b);  // exact: no product is larger than |a| + |b|
}

template <class T> FW_INLINE W some_of(const T* p, int64_t step) {
    if (!step) return splat<int64_t>(*p);
    typename Some<T>::type v;
    std::memcpy(&v, p, sizeof v);
    return __builtin_convertvector(v, W);
}

template <Of what, class T> void line(const T* x, int64_t x_step, const T* y, int64_t y_step, int64_t n, T* to) {
    constexpr int64_t L = lanes<double>, LIMIT = int64_t(1) << 50;
    int64_t i = 0;
    for (; i + L <= n; i += L) {
        const W a = some_of(x + i * x_step, x_step), b = some_of(y + i * y_step, y_step);
        auto odd = b == 0;
        if constexpr (sizeof(T) == 8) {
            typedef uint64_t U __attribute__((vector_size(sizeof(W))));
            odd |= (W)((((U)a + LIMIT) | ((U)b + LIMIT)) >= uint64_t(2 * LIMIT));
        }
        if (__builtin_expect(math::any(odd), 0)) {
            for (int64_t l = i; l < i + L; ++l) to[l] = one<what>(x[l * x_step], y[l * y_step]);
            continue;
        }
        const auto found = __builtin_convertvector(quick<what>(a, b), typename Some<T>::type);
        std::memcpy(to + i, &found, sizeof found);
    }
    for (; i < n; ++i) to[i] = one<what>(x[i * x_step], y[i * y_step]);
}

// x shifted by y bits; C++ says nothing of shifts by more than there are, and of negative ones.
template <bool left, class T> FW_INLINE T shifted(T x, T y) {
    using U = std::make_unsigned_t<T>;
    constexpr U most = 8 * sizeof(T) - 1;
    if (left) return T(U(y) > most ? 0 : U(x) << (U(y) & most));
    return T(x >> (U(y) > most ? most : U(y)));
}

// By halves and differences, which are quicker than remainders.
template <class U> FW_INLINE U divisor_of(U a, U b) {
    if (!a || !b) return a | b;
    const int twos = __builtin_ctzll(a | b);
    a >>= __builtin_ctzll(a);
    while (b) {
        b >>= __builtin_ctzll(b);
        const U less = a < b ? a : b;
        b = a < b ? b - a : a - b;
        a = less;
    }
    return a << twos;
}

template <bool multiple, class T> FW_INLINE T common(T x, T y) {
    using U = std::make_unsigned_t<T>;
    const U a = x < 0 ? U(0) - U(x) : U(x), b = y < 0 ? U(0) - U(y) : U(y), most = divisor_of(a, b);
    return T(multiple ? most ? a / most * b : 0 : most);
}

template <class T> FW_INLINE T power(T x, T y) {
    using U = std::make_unsigned_t<T>;
    U result = 1, square = U(x);
    for (U left = U(y); left; left >>= 1, square *= square)
        if (left & 1) result *= square;
    return T(result);
}

template <class T, class F> void each(const T* x, int64_t x_step, const T* y, int64_t y_step, int64_t n, T* to, F f) {
    if (x_step && y_step)  // apart, so that they become vectors
        for (int64_t i = 0; i < n; ++i) to[i] = f(x[i], y[i]);
    else if (x_step)
        for (int64_t i = 0; i < n; ++i) to[i] = f(x[i], *y);
    else
        for (int64_t i = 0; i < n; ++i) to[i] = f(*x, y[i * y_step]);
}

template <Of what, class T> void part(const T* x, int64_t x_step, const T* y, int64_t y_step, int64_t n, T* to) {
    if constexpr (what == Of::larger) each(x, x_step, y, y_step, n, to, [](T a, T b) { return a > b ? a : b; });
    else if constexpr (what == Of::smaller) each(x, x_step, y, y_step, n, to, [](T a, T b) { return a < b ? a : b; });
    else if constexpr (what == Of::left || what == Of::right) each(x, x_step, y, y_step, n, to, shifted<what == Of::left, T>);
    else if constexpr (what == Of::divisor || what == Of::multiple) each(x, x_step, y, y_step, n, to, common<what == Of::multiple, T>);
    else if constexpr (what == Of::power) each(x, x_step, y, y_step, n, to, power<T>);
    else line<what>(x, x_step, y, y_step, n, to);
}

template <Of what, class T> void all(const T* x, int64_t x_step, const T* y, int64_t y_step, int64_t n, T* to) {
    constexpr int64_t grain = what == Of::divisor || what == Of::multiple ? 512 : what == Of::power ? 2048 : 16384;
    parallel(n, grain, [&](int64_t begin, int64_t end) {
        part<what>(x + begin * x_step, x_step, y + begin * y_step, y_step, end - begin, to + begin);
    });
}

}  // namespace

template <class T> void combine(Of what, const T* x, int64_t x_step, const T* y, int64_t y_step, int64_t n, T* to) {
    switch (what) {
        case Of::left: return all<Of::left>(x, x_step, y, y_step, n, to);
        case Of::right: return all<Of::right>(x, x_step, y, y_step, n, to);
        case Of::larger: return all<Of::larger>(x, x_step, y, y_step, n, to);
        case Of::smaller: return all<Of::smaller>(x, x_step, y, y_step, n, to);
        default: break;
    }
    if constexpr (sizeof(T) >= 4) {
        switch (what) {
            case Of::truncated: return all<Of::truncated>(x, x_step, y, y_step, n, to);
            case Of::floored: return all<Of::floored>(x, x_step, y, y_step, n, to);
            case Of::rest: return all<Of::rest>(x, x_step, y, y_step, n, to);
            case Of::remainder: return all<Of::remainder>(x, x_step, y, y_step, n, to);
            case Of::divisor: return all<Of::divisor>(x, x_step, y, y_step, n, to);
            case Of::multiple: return all<Of::multiple>(x, x_step, y, y_step, n, to);
            case Of::power: return all<Of::power>(x, x_step, y, y_step, n, to);
            default: break;
        }
    }
}

#define FW_OF(T) template void combine(Of, const T*, int64_t, const T*, int64_t, int64_t, T*);
FW_OF(int8_t)
FW_OF(uint8_t)
FW_OF(int16_t)
FW_OF(int32_t)
FW_OF(int64_t)
#undef FW_OF

}  // namespace fw::whole
