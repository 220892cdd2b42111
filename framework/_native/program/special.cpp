// Special functions, in double precision one number at a time: the logarithm of gamma and its derivatives, the
// inverses of erf and of the normal distribution, modified Bessel functions of order 0 and 1. The formulas without
// the extension are in framework/ops/special/numbers.py.
#include "bind/array.h"
#include "program/special.h"
#include "random/normal.h"
#include "base/pool.h"

#include <cmath>
#include <cstring>
#include <limits>

namespace fw::special {
namespace {

constexpr double INF = std::numeric_limits<double>::infinity(), NAN_ = std::numeric_limits<double>::quiet_NaN();
constexpr double PI = 3.14159265358979323846;

template <size_t N> double polynomial(double x, const double (&c)[N]) {
    double y = c[N - 1];
    for (size_t k = N - 1; k-- > 0;) y = y * x + c[k];
    return y;
}

// -- gamma ----------------------------------------------------------------------------------------

constexpr double BERNOULLI[] = {1.0 / 6,  -1.0 / 30,       1.0 / 42, -1.0 / 30,        5.0 / 66,
                                -691.0 / 2730, 7.0 / 6, -3617.0 / 510, 43867.0 / 798, -174611.0 / 330};

double lgamma(double x, int) {
    int sign;
    return ::lgamma_r(x, &sign);
}

double digamma_right(double z) {
    if (std::isinf(z)) return z;
    double total = 0;
    for (; z < 12; ++z) total -= 1 / z;
    double square = 1 / (z * z), power = square, tail = 0;
    for (int j = 0; j < 10; ++j, power *= square) tail += BERNOULLI[j] / (2 * j + 2) * power;
    return total + (std::log(z) - 0.5 / z - tail);
}

// (-1)^(n+1) n! zeta(n + 1, z) for z > 0: terms of the sum, then the Euler-Maclaurin formula
double zeta_right(double z, int n) {
    double s = n + 1, total = 0, factor = s, factorial = 2, n_factorial = 1;
    auto inverse = [n](double y) {  // y^-s
        double p = 1 / y;
        for (int k = 0; k < n; ++k) p /= y;
        return p;
    };
    for (int k = 0; k < 12 + n; ++k, ++z) total += inverse(z);
    if (std::isinf(z)) return n % 2 ? 0.0 : -0.0;
    const double last = inverse(z);
    total += last * z / (s - 1) + 0.5 * last;
    double power = last / z, square = 1 / (z * z);
    for (int j = 1; j <= 10; ++j, power *= square) {
        total += BERNOULLI[j - 1] / factorial * factor * power;
        factor *= (s + 2 * j - 1) * (s + 2 * j);
        factorial *= (2 * j + 1) * (2 * j + 2);
    }
    for (int k = 2; k <= n; ++k) n_factorial *= k;
    return (n % 2 ? 1 : -1) * n_factorial * total;
}

constexpr int MOST = 24;  // derivatives, whose reflection is a polynomial in the cotangent

// pi^(n+1) times the n-th derivative of cot, at pi x
double cotangent_slope(double x, int n) {
    double p[MOST + 2] = {0, 1}, turn = x - std::rint(x), cot = 1 / std::tan(PI * turn);  // powers from the lowest
    for (int d = 0, top = 1; d < n; ++d, ++top) {
        double next[MOST + 2] = {};
        for (int k = 1; k <= top; ++k) {  // (cot^k)' = -k (cot^(k-1) + cot^(k+1))
            next[k - 1] -= k * p[k];
            next[k + 1] -= k * p[k];
        }
        std::memcpy(p, next, sizeof(p));
    }
    double y = 0;
    for (int k = n + 1; k >= 0; --k) y = y * cot + p[k];
    return y * std::pow(PI, n + 1);
}

double polygamma(double x, int n) {
    if (x > 0 || std::isnan(x)) return n ? zeta_right(x, n) : digamma_right(x);
    if (x == std::rint(x)) {
        if (n) return n % 2 ? INF : -INF;
        return x == 0 ? -std::copysign(INF, x) : NAN_;
    }
    double right = n ? zeta_right(1 - x, n) : digamma_right(1 - x);
    return (n % 2 ? -right : right) - cotangent_slope(x, n);
}

// -- inverses of distributions: AS 241 ------------------------------------------------------------

using Table = normal::Numbers<double>;

double tail(double p) {  // the distance from 0 that is exceeded with probability p, 0 < p < 1/2
    double r = std::sqrt(-std::log(p));
    return r <= 5 ? polynomial(r - 1.6, Table::C) / polynomial(r - 1.6, Table::D)
                  : polynomial(r - 5, Table::E) / polynomial(r - 5, Table::F);
}

double middle(double q) {  // of the probability 1/2 + q
    double x = 0.180625 - q * q;
    return q * (polynomial(x, Table::A) / polynomial(x, Table::B));
}

double erfinv(double x, int) {
    double size = std::fabs(x);
    if (!(size <= 1)) return NAN_;
    if (size == 1) return std::copysign(INF, x);
    double z = size <= 0.85 ? middle(0.5 * x) : std::copysign(tail(0.5 * (1 - size)), x);
    return z * 0.70710678118654752440;
}

double ndtri(double p, int) {
    if (!(p >= 0 && p <= 1)) return NAN_;
    if (p == 0 || p == 1) return p ? INF : -INF;
    double q = p - 0.5;
    return std::fabs(q) <= 0.425 ? middle(q) : std::copysign(tail(q < 0 ? p : 1 - p), q);
}

// -- modified Bessel functions --------------------------------------------------------------------
// Chebyshev series, computed by the formula for the coefficients with 40 digits: up to 8 in x / 4 - 1 of exp(-x) I0
// and exp(-x) I1 / x, beyond in 16 / x - 1 of those times sqrt(x), and of exp(-x) I1 times sqrt(x).

constexpr double NEAR_0[] = {
    0.33839763720473804, -0.3046826723431984, 0.17162090152220878, -0.094901097048047644, 0.049305284239670708,
    -0.023737414805899469, 0.010546460394594998, -0.0043243099950505759, 0.0016394756169413358,
    -0.00057637557453858237, 0.00018850288509584166, -5.7541950100821037e-5, 1.6448448070728897e-5,
    -4.4167383584587506e-6, 1.1173875391201037e-6, -2.6707938539406117e-7, 6.0469950225419189e-8,
    -1.300025009986248e-8, 2.6598237246823867e-9, -5.1897956016352629e-10, 9.6758090353732369e-11,
    -1.7268262914415557e-11, 2.9550526631296398e-12, -4.8564467831119295e-13, 7.6761854986049356e-14,
    -1.1685332877993452e-14, 1.715391285555133e-15, -2.4312798465479547e-16, 3.3307945188222381e-17,
    -4.4153416464793394e-18, 5.6691780069214962e-19};
constexpr double FAR_0[] = {
    0.40224520550705442, 0.0033691164782556941, 6.889758346916824e-5, 2.8913705208347565e-6,
    2.0489185894690637e-7, 2.2666689904981781e-8, 3.3962320257083863e-9, 4.9406023882249696e-10,
    1.1889147107846438e-11, -3.1499165279632414e-11, -1.3215811840447713e-11, -1.7941785315068061e-12,
    7.1801244513836662e-13, 3.8527783827421427e-13, 1.5400862175214098e-14, -4.1505693472872221e-14,
    -9.5548466988283076e-15, 3.8116806693526224e-15, 1.7725601330565264e-15, -3.4254856196772191e-16,
    -2.8276239805165835e-16, 3.4612228676974609e-17, 4.4656214202967624e-17, -4.8305044859442179e-18,
    -7.2331804878747736e-18, 9.9214754121753041e-19, 1.1936508908457661e-18, -2.4887098371526935e-19,
    -1.9384264541498833e-19};
constexpr double NEAR_1[] = {
    0.12629359322181683, -0.17641651835783406, 0.1026436586898471, -0.052945981208094991, 0.024726449030626517,
    -0.010564084894626198, 0.0041564229443128882, -0.0015135724506312531, 0.00051228595616857577,
    -0.00016176081582589675, 4.7815651075500542e-5, -1.3273163656039436e-5, 3.4702513081376785e-6,
    -8.5687202646954547e-7, 2.0032947535521353e-7, -4.4450591287963281e-8, 9.3815373864957718e-9,
    -1.8872497517228293e-9, 3.625590281552117e-10, -6.6634897235020277e-11, 1.1736186298890902e-11,
    -1.9839743977649437e-12, 3.2237933659455747e-13, -5.0421855047279117e-14, 7.6006842947354069e-15,
    -1.1055969477353863e-15, 1.5536319577362005e-16, -2.1114212143581661e-17, 2.7779141127610464e-18,
    -3.5415817725421362e-19};
constexpr double FAR_1[] = {
    0.38928811750914006, -0.0097610974913614684, -0.00011058893876262372, -3.8825648088776904e-6,
    -2.5122362378702089e-7, -2.6314688468895195e-8, -3.835380385964237e-9, -5.5897434621965838e-10,
    -1.8974958123505412e-11, 3.2526035830154882e-11, 1.4125807436613781e-11, 2.0356285441470895e-12,
    -7.1985517762459085e-13, -4.0835511110921973e-13, -2.1015418427726643e-14, 4.2724400167119514e-14,
    1.0420276984128803e-14, -3.8144030724370078e-15, -1.8803547755107824e-15, 3.3082023109209282e-16,
    2.9626289976459502e-16, -3.2095259219934237e-17, -4.6503053684893608e-17, 4.4143483230717448e-18,
    7.5172963108421231e-18, -9.3141788673285024e-19, -1.2421932751946678e-18, 2.4142767194566568e-19,
    2.0269443840421397e-19};

template <size_t N> double series(double t, const double (&c)[N]) {  // Clenshaw's recurrence
    double b = 0, before = 0;
    for (size_t k = N - 1; k > 0; --k) {
        double next = 2 * t * b - before + c[k];
        before = b;
        b = next;
    }
    return t * b - before + c[0];
}

double bessel_ie(double x, int n) {
    n = std::abs(n);
    double y = std::fabs(x);
    if (std::isnan(x)) return x;
    if (std::isinf(x)) return n % 2 ? std::copysign(0.0, x) : 0.0;
    if (y <= 1 && n < 2) {  // the power series, which is exact at 0
        double term = n ? 0.5 * x : 1.0, total = term;
        for (int k = 1; k <= 10; ++k) total += term *= 0.25 * x * x / (k * (n + k));
        return std::exp(-y) * total;
    }
    if (n > 1 && y <= 8) {
        double term = std::pow(0.5 * x, n) / (n == 2 ? 2 : 6), total = term;
        for (int k = 1; k <= 40 && term != 0; ++k) total += term *= 0.25 * x * x / (k * (n + k));
        return std::exp(-y) * total;
    }
    if (n > 1) return bessel_ie(x, n - 2) - 2 * (n - 1) / x * bessel_ie(x, n - 1);
    if (n == 0) return y <= 8 ? series(y / 4 - 1, NEAR_0) : series(16 / y - 1, FAR_0) / std::sqrt(y);
    return y <= 8 ? x * series(y / 4 - 1, NEAR_1) : std::copysign(series(16 / y - 1, FAR_1) / std::sqrt(y), x);
}

double bessel_i(double x, int n) {
    if (std::isinf(x)) return n % 2 ? x : INF;
    double half = std::exp(0.5 * std::fabs(x));  // in two steps, against overflow
    return half * bessel_ie(x, n) * half;
}

// -- over arrays ----------------------------------------------------------------------------------

template <double (*F)(double, int), class T> nb::object each(const Array& x, int n) {
    NewArray out = new_array(x.ndim(), x.shape(), type_number<T>);
    const T* from = x.data<T>();
    T* to = out.data<T>();
    {
        Release release(x.size() * 64);
        parallel(x.size(), 512, [&](int64_t begin, int64_t end) {
            for (int64_t i = begin; i < end; ++i) to[i] = T(F(double(from[i]), n));
        });
    }
    return give(out);
}

// F of every number of x in rows; n from `least` to `most`: the order of a derivative or function, if there is one
template <double (*F)(double, int), int most, int least = 0> nb::object over(Array x, int n) {
    if (!x.usable() || !x.contiguous() || n < least || n > most) return not_implemented();
    if (x.is<double>()) return each<F, double>(x, n);
    return x.is<float>() ? each<F, float>(x, n) : not_implemented();
}

// The same, with Floats for numbers of 32 bits where n is 0.
template <double (*F)(double, int), void (*Floats)(const float*, int64_t, float*), int most> nb::object fast(Array x, int n) {
    if (!x.is<float>() || !x.contiguous() || n) return over<F, most>(x, n);
    NewArray out = new_array(x.ndim(), x.shape(), NPY_FLOAT);
    {
        Release release(x.size() * 16);
        parallel(x.size(), 2048, [&](int64_t begin, int64_t end) {
            Floats(x.data<float>() + begin, end - begin, out.data<float>() + begin);
        });
    }
    return give(out);
}

}  // namespace

FW_BIND(m) {
    auto define = [&](const char* name, nb::object (*f)(Array, int)) {
        m.def(name, f, nb::arg("x"), nb::arg("n") = 0);
    };
    define("special_lgamma", &fast<lgamma, lgamma_of_floats, 0>);
    define("special_polygamma", &fast<polygamma, digamma_of_floats, MOST>);
    define("special_erfinv", &fast<erfinv, erfinv_of_floats, 0>);
    define("special_ndtri", &fast<ndtri, ndtri_of_floats, 0>);
    define("special_bessel_ie", &over<bessel_ie, 3, -3>);
    define("special_bessel_i", &over<bessel_i, 3, -3>);
}

}  // namespace fw::special
