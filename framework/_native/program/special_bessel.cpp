// Bessel functions of order 0 and 1 (special.h): as many terms as the numbers have digits for.
#include "program/special.h"
#include "program/special_vectors.h"
#include "program/special_tables.h"

namespace fw::special {
namespace {

// -- of the first and second kind: up to 8 polynomials in x^2 / 32 - 1, beyond size and phase in (8 / x)^2 --------

// J0(x) and J1(x) / x: 2^-55
constexpr double J0_NEAR[] = {0.045829664859813754, 0.9303012472958572, -0.6484692830871821, -0.8080888076696872,
    1.0383794611436883, -0.5074680458471, 0.14598884856785538, -0.028472718610882047, 0.004058078988108771,
    -0.0004435459224311503, 3.847320005801417e-05, -2.717749223632098e-06, 1.5955848859935914e-07, -7.91532308295207e-09,
    3.3794626319436793e-10, -1.243301171273326e-11};
constexpr double J1_NEAR[] = {-0.05814382795599107, 0.08105866038589796, 0.15151665143806636, -0.2595948652859303,
    0.15858376432721838, -0.05474581821284722, 0.012456814392263375, -0.0020290394945705996, 0.0002494945813597261,
    -2.404574865968694e-05, 1.8684526037206013e-06, -1.196708186787801e-07, 6.431190177265836e-09, -2.943013798001659e-10,
    1.1658972367678622e-11, -4.0045728425886457e-13};
// Y0(x) - 2 / pi log(x) J0(x) and (Y1(x) - 2 / pi (log(x) J1(x) - 1 / x)) / x: 2^-54
constexpr double Y0_NEAR[] = {-0.38225065445942497, -0.8284358903604587, 1.6470964788745432, 0.14412632369302475,
    -1.077547733821527, 0.6721770783431679, -0.21895747096229642, 0.046367047681375125, -0.0070257410549918785,
    0.000806158605961636, -7.279542368660281e-05, 5.3213188103997145e-06, -3.218450383864968e-07, 1.6390875014077404e-08,
    -7.165821913752182e-10, 2.6926938054524057e-11};
constexpr double Y1_NEAR[] = {0.07075985882118005, -0.24337743079193114, 0.02336757172099348, 0.23507209206669755,
    -0.19639839859930203, 0.07854786922242532, -0.01962875683311711, 0.0034224907399188495, -0.0004438173434420147,
    4.467433012646365e-05, -3.601000022590458e-06, 2.3804930420514178e-07, -1.3153147367094951e-08, 6.169688029066965e-10,
    -2.499531546171249e-11, 8.760001143977853e-13};
// sqrt(x (J^2 + Y^2)), 2^-57 and 2^-41; x / 8 times what the angle is beyond x - pi / 4, of order 1 x - 3 pi / 4, 2^-55
constexpr double SHORT_SIZE_0[] = {0.7978845608024919, -0.0007791841034748904, 2.0163795523900318e-05,
    -1.6481401349659132e-06, 2.649520956868583e-07, -5.5685647344118196e-08, 8.209329451225019e-09};
constexpr double SHORT_SIZE_1[] = {0.7978845608033145, 0.0023375523786422336, -3.766487398071221e-05,
    2.446142323182984e-06, -3.5231434388710776e-07, 7.039512963800702e-08, -1.0156003574530015e-08};
constexpr double SIZE_0[] = {0.7978845608028654, -0.0007791841414079129, 2.0164433282238493e-05,
    -1.6522544779339938e-06, 2.781324677823035e-07, -7.929521777816283e-08, 3.381997774461586e-08,
    -1.891224842672429e-08, 1.1630619598355394e-08, -6.519114245847974e-09, 2.8165885643825397e-09,
    -7.87247956372922e-10, 1.037918780283508e-10};
constexpr double SIZE_1[] = {0.7978845608028654, 0.0023375524242258707, -3.7665639575513975e-05, 2.451073794531949e-06,
    -3.6807388054265873e-07, 9.85068491613518e-08, -4.0421347209664686e-08, 2.2070629451295932e-08,
    -1.338636784434103e-08, 7.4461098610977425e-09, -3.2034212139011834e-09, 8.931366858435249e-10,
    -1.1756925156394817e-10};
constexpr double PHASE_0[] = {-0.01562499999999998, 0.00012715657551475414, -6.395578079452381e-06, 7.810846101103399e-07,
    -1.7483970561502883e-07, 6.195201296784168e-08, -3.0739633297699174e-08, 1.811969873924465e-08, -1.0353378084248344e-08,
    4.716651369607716e-09, -1.408982005108536e-09, 1.9911456336019857e-10};
constexpr double PHASE_1[] = {0.04687499999999998, -0.0003204345703056349, 1.1318921698617598e-05, -1.1298100859817197e-06,
    2.2809493697148772e-07, -7.628339052468281e-08, 3.656420483682138e-08, -2.112405339944716e-08, 1.1937953879723142e-08,
    -5.406205631787811e-09, 1.6095259673813771e-09, -2.2699064772650813e-10};

V near_first(V x, int n) {
    const V t = x * x * (1.0 / 32) - 1.0;
    return n ? x * math::poly<V>(t, J1_NEAR) : math::poly<V>(t, J0_NEAR);
}
V near_second(V x, int n) {
    const V t = x * x * (1.0 / 32) - 1.0, turns = 2 / PI * math::log_positive<V>(x) * near_first(x, n);
    return n ? turns + (x * math::poly<V>(t, Y1_NEAR) - 2 / PI / x) : turns + math::poly<V>(t, Y0_NEAR);
}

// The size times the sine of x + turn and of what is beyond, x > 8. Of more than sin() is for `exact` is asked.
template <class T> V wave(V x, int n, double turn) {
    const V inverse = 8.0 / x, square = inverse * inverse;
    V size;
    if constexpr (short_digits<T>) size = n ? math::poly<V>(square, SHORT_SIZE_1) : math::poly<V>(square, SHORT_SIZE_0);
    else size = n ? math::poly<V>(square, SIZE_1) : math::poly<V>(square, SIZE_0);
    size /= sqrt(x);
    const V more = turn + inverse * (n ? math::poly<V>(square, PHASE_1) : math::poly<V>(square, PHASE_0));
    const V m = math::round_small<V>((x + more) * (1 / PI)), rest = math::minus_quarters<V>(x, m + m) + more;
    return size * math::flip_sign<V>(math::sin_poly<V>(rest), math::odd_sign<V>(m));
}
template <class F> V with_huge(V x, V y, F&& exact) {
    const auto huge = (math::abs<V>(x) > math::Trig<double>::limit) & (math::abs<V>(x) < INF);
    return math::any(huge) ? (huge ? math::by_lane(exact, x) : y) : y;
}

template <class T> V bessel_j(V x, int order) {
    const int n = order != 0;
    const V y = math::abs<V>(x);
    V r = near_first(x, n);
    if (math::any_above<V>(y, 8.0)) {
        const V far = wave<T>(y, n, PI / 4 - n * (PI / 2));
        r = y > 8.0 ? (n ? math::copysign<V>(V{} + 1.0, x) * far : far) : r;
    }
    return y == INF ? V{} : order < 0 ? -r : r;
}

template <class T> V bessel_y(V x, int order) {
    const int n = order != 0;
    V r = near_second(x, n);
    if (math::any_above<V>(x, 8.0)) r = x > 8.0 ? wave<T>(x, n, -PI / 4 - n * (PI / 2)) : r;
    r = x == 0.0 ? V{} - INF : r;
    return x == INF ? V{} : x >= 0.0 ? (order < 0 ? -r : r) : V{} + NOT;
}

// -- modified: as polynomials of the series' first terms ------------------------------------------------------------

// of N coefficients of a table as many as T has digits for
template <class T, int floats, size_t N> constexpr auto digits(const double (&table)[N]) {
    return powers<short_digits<T> ? floats : int(N)>(table);
}
template <class T> constexpr auto I0_EARLY = digits<T, 20>(I0_NEAR);
template <class T> constexpr auto I1_EARLY = digits<T, 20>(I1_NEAR);
template <class T> constexpr auto I0_LATE = digits<T, 8>(I0_FAR);
template <class T> constexpr auto I1_LATE = digits<T, 8>(I1_FAR);
template <class T> constexpr auto K0_LATE = digits<T, 13>(K0_FAR);
template <class T> constexpr auto K1_LATE = digits<T, 13>(K1_FAR);

template <int terms> V series(V t, const Powers<terms>& of) { return math::poly<V>(t, of.c); }

template <class T> V bessel_ie(V x, int n) {
    const V y = math::abs<V>(x), near = 0.25 * y - 1.0;
    V r = n ? x * series(near, I1_EARLY<T>) : series(near, I0_EARLY<T>);
    if (math::any_above<V>(y, 8.0)) {
        const V t = 16.0 / y - 1.0, far = (n ? series(t, I1_LATE<T>) : series(t, I0_LATE<T>)) / sqrt(y);
        r = y > 8.0 ? (n ? math::copysign<V>(far, x) : far) : r;
    }
    return r;
}

template <class T> V bessel_i(V x, int n) {
    const V y = math::abs<V>(x), half = math::exp<V>(0.5 * y), r = half * bessel_ie<T>(x, n) * half;
    return y == INF ? (n ? x : y) : r;
}

template <class T> V bessel_ke(V x, int n) {
    V r = (n ? series(4.0 / x - 1.0, K1_LATE<T>) : series(4.0 / x - 1.0, K0_LATE<T>)) / sqrt(x);
    const auto near = x <= 2.0;
    if (math::any(near)) {
        const V z = near ? x : V{} + 1.0, square = 0.25 * z * z, log = math::log_positive<V>(0.5 * z);
        V term = V{} + 1.0, i = {}, s = {};
        double harmonic = 0;
        for (int k = 0; k < (short_digits<T> ? 10 : 16); ++k) {  // the series at 0 (NIST DLMF 10.31)
            const double next = 1.0 / (k + 1);
            i += n ? term * next : term;
            s += term * (n ? next * (2 * (harmonic - EULER) + next) : harmonic);
            harmonic += next;
            term *= square * (next * next);
        }
        const V small = n ? 1.0 / z + 0.5 * z * (log * i - 0.5 * s) : s - (log + EULER) * i;
        r = near ? math::exp<V>(z) * small : r;
    }
    r = x == INF ? V{} : x == 0.0 ? V{} + INF : r;
    return x >= 0.0 ? r : V{} + NOT;
}

template <class T> V bessel_k(V x, int n) { return x > 2000.0 ? V{} : math::exp<V>(-x) * bessel_ke<T>(x, n); }

}  // namespace

template <class T> void many_bessel_j(const T* x, int64_t n, T* to, int order, double (*exact)(double, int)) {
    each(x, n, to, [=](V v) {
        return with_huge(v, bessel_j<T>(v, order), [=](double one) { return exact(one, order); });
    });
}
template <class T> void many_bessel_y(const T* x, int64_t n, T* to, int order, double (*exact)(double, int)) {
    each(x, n, to, [=](V v) {
        return with_huge(v, bessel_y<T>(v, order), [=](double one) { return exact(one, order); });
    });
}
template <class T> void many_bessel_i(const T* x, int64_t n, T* to, int order, double (*)(double, int)) {
    each(x, n, to, [order](V v) { return bessel_i<T>(v, order); });
}
template <class T> void many_bessel_ie(const T* x, int64_t n, T* to, int order, double (*)(double, int)) {
    each(x, n, to, [order](V v) { return bessel_ie<T>(v, order); });
}
template <class T> void many_bessel_k(const T* x, int64_t n, T* to, int order, double (*)(double, int)) {
    each(x, n, to, [order](V v) { return bessel_k<T>(v, order); });
}
template <class T> void many_bessel_ke(const T* x, int64_t n, T* to, int order, double (*)(double, int)) {
    each(x, n, to, [order](V v) { return bessel_ke<T>(v, order); });
}

#define FW_MANY(name)                                                                                        \
    template void many_##name<float>(const float*, int64_t, float*, int, double (*)(double, int)); \
    template void many_##name<double>(const double*, int64_t, double*, int, double (*)(double, int));
FW_MANY(bessel_j) FW_MANY(bessel_y) FW_MANY(bessel_i) FW_MANY(bessel_ie) FW_MANY(bessel_k) FW_MANY(bessel_ke)
#undef FW_MANY

}  // namespace fw::special
