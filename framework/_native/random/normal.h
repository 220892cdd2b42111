// Normal numbers as a function of random bits: the inverse of the distribution function, in the operations of
// `normal_of` in framework/philox.py and in their order, so both give the same bits.
// M. Wichura, "Algorithm AS 241: the percentage points of the normal distribution", 1988.
#pragma once

#include "base/simd.h"

namespace fw::normal {

template <class T> struct Numbers;

template <> struct Numbers<float> {
    static constexpr int FRACTION = 23, TERMS = 5;
    static constexpr int32_t ROOT_HALF = 0x3F3504F3;
    static constexpr float ONE = 0x1p-32f;  // of the integers that the bits are
    static constexpr bool FAR = false;      // whether there are bits so small that r > 5
    static constexpr float A[] = {3.3871327179f, 50.434271938f, 159.29113202f, 59.109374720f};
    static constexpr float B[] = {1.0f, 17.895169469f, 78.757757664f, 67.187563600f};
    static constexpr float C[] = {1.4234372777f, 2.7568153900f, 1.3067284816f, 0.17023821103f};
    static constexpr float D[] = {1.0f, 0.73700164250f, 0.12021132975f};
    static constexpr float E[] = {0.0f}, F[] = {1.0f};
};

template <> struct Numbers<double> {
    static constexpr int FRACTION = 52, TERMS = 11;
    static constexpr int64_t ROOT_HALF = 0x3FE6A09E667F3BCD;
    static constexpr double ONE = 0x1p-64;
    static constexpr bool FAR = true;
    static constexpr double A[] = {3.3871328727963666080e0, 1.3314166789178437745e+2, 1.9715909503065514427e+3,
                                   1.3731693765509461125e+4, 4.5921953931549871457e+4, 6.7265770927008700853e+4,
                                   3.3430575583588128105e+4, 2.5090809287301226727e+3};
    static constexpr double B[] = {1.0, 4.2313330701600911252e+1, 6.8718700749205790830e+2, 5.3941960214247511077e+3,
                                   2.1213794301586595867e+4, 3.9307895800092710610e+4, 2.8729085735721942674e+4,
                                   5.2264952788528545610e+3};
    static constexpr double C[] = {1.42343711074968357734e0, 4.63033784615654529590e0, 5.76949722146069140550e0,
                                   3.64784832476320460504e0, 1.27045825245236838258e0, 2.41780725177450611770e-1,
                                   2.27238449892691845833e-2, 7.74545014278341407640e-4};
    static constexpr double D[] = {1.0, 2.05319162663775882187e0, 1.67638483018380384940e0, 6.89767334985100004550e-1,
                                   1.48103976427480074590e-1, 1.51986665636164571966e-2, 5.47593808499534494600e-4,
                                   1.05075007164441684324e-9};
    static constexpr double E[] = {6.65790464350110377720e0, 5.46378491116411436990e0, 1.78482653991729133580e0,
                                   2.96560571828504891230e-1, 2.65321895265761230930e-2, 1.24266094738807843860e-3,
                                   2.71155556874348757815e-5, 2.01033439929228813265e-7};
    static constexpr double F[] = {1.0, 5.99832206555887937690e-1, 1.36929880922735805310e-1,
                                   1.48753612908506148525e-2, 7.86869131145613259100e-4, 1.84631831751005468180e-5,
                                   1.42151175831644588870e-7, 2.04426310338993978564e-15};
};

template <class T, size_t N> FW_INLINE Vec<T> polynomial(Vec<T> x, const T (&c)[N]) {
    Vec<T> y = splat(c[N - 1]);
    for (size_t k = N - 1; k-- > 0;) y = y * x + splat(c[k]);
    return y;
}

// Of numbers in (0, 1/2], to 2 ulp: 2 atanh((m - 1) / (m + 1)) where x = 2**e * m.
template <class T> FW_INLINE Vec<T> logarithm(Vec<T> x) {
    using N = Numbers<T>;
    constexpr T LN2 = T(0.693147180559945309417);
    Mask<T> raw = bits<Mask<T>>(x), e = (raw - N::ROOT_HALF) >> N::FRACTION;
    Vec<T> m = bits<Vec<T>>(raw - (e << N::FRACTION)), s = (m - 1) / (m + 1), square = s * s;
    Vec<T> y = splat(T(1) / T(2 * N::TERMS - 1));
    for (int k = N::TERMS - 1; k-- > 0;) y = y * square + splat(T(1) / T(2 * k + 1));
    return __builtin_convertvector(e, Vec<T>) * splat(LN2) + (s + s) * y;
}

// The integers are uniform in all of their range; those below 0 are above the median.
template <class T> FW_INLINE Vec<T> of_bits(Mask<T> drawn) {
    using N = Numbers<T>;
    Mask<T> upper = drawn < 0;
    Mask<T> tail = drawn ^ upper;  // how far from the end
    Vec<T> q = (__builtin_convertvector(std::numeric_limits<Int<T>>::max() - tail, Vec<T>) + T(0.5)) * splat(N::ONE);
    Vec<T> x = splat(T(0.180625)) - q * q;
    Vec<T> z = q * polynomial<T>(x, N::A) / polynomial<T>(x, N::B);
    Vec<T> p = (__builtin_convertvector(tail, Vec<T>) + T(0.5)) * splat(N::ONE);
    Vec<T> r = sqrt(-logarithm<T>(p)), near = r - splat(T(1.6));
    Vec<T> outer = polynomial<T>(near, N::C) / polynomial<T>(near, N::D);
    if (N::FAR) {
        Vec<T> far = r - splat(T(5));
        outer = select<T>(r > splat(T(5)), polynomial<T>(far, N::E) / polynomial<T>(far, N::F), outer);
    }
    z = select<T>(q > splat(T(0.425)), outer, z);
    return select<T>(upper, z, -z);
}

}  // namespace fw::normal
