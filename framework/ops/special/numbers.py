"""The numbers of the special functions for the array modules, to double precision, without SciPy.

Each maker takes the array module and gives a function of arrays; they join the language of
``language/expression.py`` at the end. Narrow floats are computed in float64.
"""

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from ... import _native
from ...backends import device_code
from ...backends.device_random import normal_tables
from ..language import erf as erf_
from ..language.words import CUDA_TEXTS, Word, add_words

# Lanczos' coefficients for g = 607 / 128 (P. Godfrey, "A note on the computation of the convergent
# Lanczos complex Gamma approximation", 2001)
_G = 607 / 128
_LANCZOS = (0.99999999999999709182, 57.156235665862923517, -59.597960355475491248,
            14.136097974741747174, -0.49191381609762019978, 0.33994649984811888699e-4,
            0.46523628927048575665e-4, -0.98374475304879564677e-4, 0.15808870322491248884e-3,
            -0.21026444172410488319e-3, 0.21743961811521264320e-3, -0.16431810653676389022e-3,
            0.84418223983852743293e-4, -0.26190838401581408670e-4, 0.36899182659531622704e-5)
_BERNOULLI = (1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6, -3617 / 510, 43867 / 798,
              -174611 / 330)
_TERMS = 12  # of a sum, before the Euler-Maclaurin formula takes over
# starting values of erfinv: M. Giles, "Approximating the erfinv function", 2012
_CENTRAL = (2.81022636e-08, 3.43273939e-07, -3.5233877e-06, -4.39150654e-06, 0.00021858087,
            -0.00125372503, -0.00417768164, 0.246640727, 1.50140941)
_TAIL = (-0.000200214257, 0.000100950558, 0.00134934322, -0.00367342844, 0.00573950773,
         -0.0076224613, 0.00943887047, 1.00167406, 2.83297682)


def wide(compute: Callable, native: str | None = None) -> Callable:
    """A maker of a function of one array from ``compute(xp, x, ...)``, which gets float64.

    native: the extension's function that is asked first, for arrays of NumPy.
    """
    def maker(xp: Any) -> Callable:
        def function(x: Any, n: int | None = None) -> Any:
            x = xp.asarray(x)
            w = x.astype(xp.float64)
            return (compute(xp, w) if n is None else compute(xp, w, n)).astype(x.dtype)
        plain = erf_.in_blocks(xp, function)
        quick = getattr(_native.module, native, None) if native and xp is np else None
        if quick is None:
            return plain

        def asked(x: Any, *more: Any, **settings: Any) -> Any:
            if type(x) is not np.ndarray:
                x = np.asarray(x)
            elif not x.flags.c_contiguous:
                x = np.ascontiguousarray(x)
            out = quick(x, *more, **settings)
            return plain(x, *more, **settings) if out is NotImplemented else out
        return asked
    maker.native = native  # type: ignore[attr-defined]
    return maker


def of_two(maker: Callable, native: str) -> Callable:
    """``maker`` of a function of two arrays, before which the extension's function is asked."""
    def made(xp: Any) -> Callable:
        plain = maker(xp)
        quick = getattr(_native.module, native, None) if xp is np else None
        if quick is None:
            return plain

        def asked(x: Any, y: Any) -> Any:
            out = quick(x, y)
            if out is NotImplemented and type(x) is type(y) is np.ndarray:  # of two shapes, or not in rows
                out = quick(*map(np.ascontiguousarray, np.broadcast_arrays(x, y)))
            return plain(x, y) if out is NotImplemented else out
        return asked
    made.native = native  # type: ignore[attr-defined]
    return made


def _polynomial(x: Any, coefficients: Any) -> Any:
    total = 0.0 * x
    for c in coefficients:
        total = total * x + c
    return total


# -- gamma ---------------------------------------------------------------------------------------


def _turn(xp: Any, x: Any) -> Any:
    """x less the nearest integer: sin and tan of pi times it are as exact as x is."""
    return x - xp.rint(x)


def _lgamma(xp: Any, x: Any) -> Any:
    left = x < 0.5
    z = xp.where(left, 1 - x, x) - 1
    total = _LANCZOS[0] + 0.0 * z
    for k in range(1, len(_LANCZOS)):
        total = total + _LANCZOS[k] / (z + k)
    t = z + (_G + 0.5)
    right = (z + 0.5) * (xp.log(t) - 1) - _G + xp.log(2.5066282746310002 * total)
    right = xp.where(xp.isinf(x), math.inf, right)
    reflected = math.log(math.pi) - xp.log(xp.abs(xp.sin(math.pi * _turn(xp, x)))) - right
    return xp.where(left & ~xp.isinf(x), reflected, right)


def _cotangent_slope(n: int) -> list[float]:
    """The n-th derivative of cot as a polynomial in cot, highest power first."""
    p = [1.0, 0.0]
    for _ in range(n):
        d = [c * (len(p) - 1 - i) for i, c in enumerate(p[:-1])]
        p = [-a - b for a, b in zip([*d, 0.0, 0.0], [0.0, 0.0, *d])]
    return p


def _polygamma(xp: Any, x: Any, n: int) -> Any:
    left = x <= 0
    z = xp.where(left, 1 - x, x)
    positive = _digamma_right(xp, z) if n == 0 else _zeta_right(xp, z, n)
    cot = 1 / xp.tan(math.pi * _turn(xp, x))
    slope = _polynomial(cot, _cotangent_slope(n)) * math.pi ** (n + 1)
    # psi_n(1 - x) - (-1)^n psi_n(x) = (-1)^n pi d^n/dx^n cot(pi x)
    sign = (-1) ** n
    reflected = sign * positive - slope
    pole = xp.where(x == 0, -xp.copysign(xp.full_like(x, math.inf), x), math.nan) if n == 0 else (
        xp.full_like(x, math.inf if n % 2 else -math.inf))
    return xp.where(left, xp.where(x == xp.rint(x), pole, reflected), positive)


def _digamma_right(xp: Any, z: Any) -> Any:
    total = 0.0 * z
    for k in range(_TERMS):
        total = total - 1 / (z + k)
    y = z + _TERMS
    total = total + xp.log(y) - 0.5 / y
    square, power = 1 / (y * y), 1 / (y * y)
    for j in range(len(_BERNOULLI)):
        total = total - _BERNOULLI[j] / (2 * j + 2) * power
        power = power * square
    return xp.where(xp.isinf(z), z, total)


def _zeta_right(xp: Any, z: Any, n: int) -> Any:
    """(-1)^(n+1) n! zeta(n + 1, z) for z > 0."""
    s, total = n + 1, xp.zeros_like(z)
    terms = _TERMS + n
    for k in range(terms):
        total = total + (z + k) ** float(-s)
    y = z + terms
    total = total + y ** float(1 - s) / (s - 1) + 0.5 * y ** float(-s)
    factor = float(s)
    for j in range(1, len(_BERNOULLI) + 1):
        total = total + _BERNOULLI[j - 1] / math.factorial(2 * j) * factor * y ** float(1 - s - 2 * j)
        factor *= (s + 2 * j - 1) * (s + 2 * j)
    return (-1) ** (n + 1) * math.factorial(n) * total


def _zeta(xp: Any, s: Any, q: Any) -> tuple[Any, Any, Any]:
    """Hurwitz' zeta, the sum of (q + k)**-s over k >= 0, by the Euler-Maclaurin formula, where it converges;
    and where that is, and where q is whole."""
    s, q = xp.broadcast_arrays(xp.asarray(s, "float64"), xp.asarray(q, "float64"))
    whole = q == xp.rint(q)
    # left of 0 as many terms as q is far; nan is neither
    right = (s > 1) & ((q > 0) | (~whole & (s == xp.rint(s)))) & (q >= -1e5)
    s, z = xp.where(right, s, 2.0), xp.where(right, q, 1.0)
    terms = _TERMS + int(xp.maximum(-z, 0.0).max()) if z.size else 0
    total = xp.zeros_like(z)
    for k in range(terms):
        total = total + (z + k) ** -s
    y = z + terms
    total = total + y ** (1 - s) / (s - 1) + 0.5 * y ** -s
    factor = s
    for j in range(1, len(_BERNOULLI) + 1):
        total = total + _BERNOULLI[j - 1] / math.factorial(2 * j) * factor * y ** (1 - s - 2 * j)
        factor = factor * (s + 2 * j - 1) * (s + 2 * j)
    return right, whole, total


def _zeta_maker(xp: Any) -> Callable:
    def zeta(s: Any, q: Any) -> Any:
        kind = xp.result_type(s, q)
        right, whole, total = _zeta(xp, s, q)
        s, q = xp.asarray(s), xp.asarray(q)
        pole = (s == 1) | ((s > 1) & (q <= 0) & whole)
        return xp.where(right, total, xp.where(pole, math.inf, math.nan)).astype(kind)
    return zeta


def _gamma_parts(xp: Any, a: Any, x: Any) -> tuple[Any, Any]:
    """The lower and the upper regularized incomplete gamma function for a > 0, x >= 0: the series where it
    converges fast, else the continued fraction (W. Gautschi, "A computational procedure for incomplete gamma
    functions", 1979)."""
    lead = xp.exp(a * xp.log(x) - x - _lgamma(xp, a))
    low = x < a + 1
    z = xp.where(low, x, 0.0)
    term, total, k = 1 / a, 1 / a, 1
    while k < 10000 and bool((term > 1e-17 * total).any()):
        term = term * z / (a + k)
        total, k = total + term, k + 1
    z = xp.where(low, a + 2, x)
    b = z + 1 - a
    c, d = 1e300 + 0 * b, 1 / b
    fraction, k = d, 1
    step = xp.full_like(b, 2.0)
    while k < 10000 and bool((xp.abs(step - 1) > 1e-16).any()):
        b, factor = b + 2, k * (a - k)
        d, c = 1 / (factor * d + b), b + factor / c
        step = c * d
        fraction, k = fraction * step, k + 1
    lower, upper = lead * total, lead * fraction
    return xp.where(low, lower, 1 - upper), xp.where(low, 1 - lower, upper)


def _incomplete(part: int) -> Callable:
    """The maker of gammainc (part 0) or gammaincc (part 1)."""
    def maker(xp: Any) -> Callable:
        def function(a: Any, x: Any) -> Any:
            dtype = xp.result_type(a, x)
            a, x = xp.broadcast_arrays(xp.asarray(a, "float64"), xp.asarray(x, "float64"))
            inside = (a > 0) & (x > 0) & xp.isfinite(a) & xp.isfinite(x)
            out = _gamma_parts(xp, xp.where(inside, a, 1.0), xp.where(inside, x, 1.0))[part]
            none = ((a > 0) & (x == 0)) | (xp.isinf(a) & (x >= 0) & xp.isfinite(x))  # nothing lies below x
            all_ = ((a == 0) & (x > 0)) | (xp.isinf(x) & (x > 0) & (a >= 0) & xp.isfinite(a))
            out = xp.where(inside, out, xp.where(none, float(part), xp.where(all_, 1.0 - part, math.nan)))
            return out.astype(dtype)
        return function
    return maker


# -- the normal distribution ---------------------------------------------------------------------


def _erfcx(xp: Any, x: Any) -> Any:
    y = xp.abs(x)
    far = xp.maximum(y, 0.46875)
    inverse = 1 / (far * far)
    middle = erf_._ratio(xp.minimum(far, 4.0), erf_._C, erf_._D)
    last = (erf_._ONE_OVER_SQRT_PI - inverse * erf_._ratio(inverse, erf_._P, erf_._Q)) / far
    right = xp.where(y <= 4, middle, last)
    near = xp.clip(x, -0.46875, 0.46875)
    small = xp.exp(near * near) * (1 - near * erf_._ratio(near * near, erf_._A, erf_._B))
    left = 2 * xp.exp(y * y) - right
    return xp.where(y <= 0.46875, small, xp.where(x < 0, left, right))


def _start(xp: Any, w: Any) -> Any:
    """erfinv of a number x > 0 with ``w = -log(1 - x * x)``, to single precision or near it."""
    central = _polynomial(xp.minimum(w, 5.0) - 2.5, _CENTRAL)
    tail = _polynomial(xp.sqrt(xp.clip(w, 5.0, 16.0)) - 3, _TAIL)
    root = xp.sqrt(xp.maximum(w - 0.5 * xp.log(xp.maximum(w, 16.0) * math.pi / 4), 1.0))
    return xp.where(w < 5, central, xp.where(w < 16, tail, root))


def _erfc_inverse(xp: Any, q: Any) -> Any:
    """y > 0 with erfc(y) = q, for 0 < q <= 0.5: Newton's method on the logarithm."""
    safe = xp.clip(q, 5e-324, 0.5)
    w = -xp.log(safe) - xp.log(2 - safe)
    y = _start(xp, w) * xp.where(w < 16, 1 - safe, 1.0)
    for _ in range(4):
        scaled = _erfcx(xp, y)
        y = y + (xp.log(scaled) - y * y - xp.log(safe)) * scaled * 0.8862269254527580
    return xp.where(q == 0, math.inf, y)


def _erf_inverse(xp: Any, x: Any) -> Any:
    """y with erf(y) = x, for |x| <= 0.5: Halley's method."""
    near = xp.clip(x, -0.5, 0.5)
    y = near * _start(xp, -xp.log1p(-near * near))
    erf = erf_.erf(xp)
    for _ in range(2):
        step = (erf(y) - near) * xp.exp(y * y) * 0.8862269254527580
        y = y - step / (1 + y * step)
    return y


def _erfinv(xp: Any, x: Any) -> Any:
    size = xp.abs(x)
    far = xp.copysign(_erfc_inverse(xp, 1 - xp.maximum(size, 0.5)), x)
    inside = xp.where(size <= 0.5, _erf_inverse(xp, x), far)
    return xp.where(size <= 1, inside, math.nan)


def _ndtri(xp: Any, p: Any) -> Any:
    q = 2 * xp.minimum(p, 1 - p)  # erfc of the distance from 0
    far = xp.where(p < 0.5, -1.0, 1.0) * _erfc_inverse(xp, xp.clip(q, 0.0, 0.5))
    y = 1.4142135623730951 * xp.where(q <= 0.5, far, _erf_inverse(xp, 2 * p - 1))
    return xp.where((p >= 0) & (p <= 1), y, math.nan)


def _log_ndtr(xp: Any, x: Any) -> Any:
    low = xp.minimum(x, -1.0)
    below = xp.log(0.5 * _erfcx(xp, low * -0.7071067811865476)) - 0.5 * low * low
    above = xp.log1p(-0.5 * erf_.erfc(xp)(x * 0.7071067811865476))
    return xp.where(x < -1, below, above)


# -- Bessel and sinc -----------------------------------------------------------------------------


def bessel_series(xp: Any, y: Any, n: int, sign: float) -> Any:
    """I_n (sign 1) or J_n (sign -1) of |y| <= 1 by the series at 0, which is exact for small y."""
    y = xp.clip(y, -1.0, 1.0)
    term = (0.5 * y) ** float(n) / math.factorial(n)
    total, square = term, sign * 0.25 * y * y
    for k in range(1, 11):
        term = term * square / (k * (n + k))
        total = total + term
    return total


def _bessel_ie(xp: Any, x: Any, n: int) -> Any:
    """exp(-abs(x)) I_n: the trapezoid rule on the circle up to 25, which converges geometrically, then a
    series."""
    y, n = xp.abs(x), abs(n)
    near = xp.minimum(y, 25.0)
    points = 64 + 2 * n
    total = xp.zeros_like(y)
    for k in range(points):
        angle = 2 * math.pi * k / points
        total = total + xp.exp(near * (math.cos(angle) - 1)) * math.cos(n * angle)
    far = xp.maximum(y, 25.0)
    term, series = xp.ones_like(y), xp.ones_like(y)
    for k in range(1, 25):
        term = term * (((2 * k - 1) ** 2 - 4 * n * n) / (8 * k)) / far
        series = series + term
    out = xp.where(y <= 25, total / points, series / xp.sqrt(2 * math.pi * far))
    out = xp.where(y <= 1, xp.exp(-y) * bessel_series(xp, y, n, 1.0), out)
    return xp.where(x < 0, -out, out) if n % 2 else out


def _bessel_i(xp: Any, x: Any, n: int) -> Any:
    half = xp.exp(0.5 * xp.abs(x))  # in two steps, against overflow
    out = half * _bessel_ie(xp, x, n) * half
    return xp.where(xp.isinf(x), xp.sign(x) ** (n % 2) * math.inf, out)


def _sinc_slope(xp: Any, x: Any, n: int) -> Any:
    """The n-th derivative of sin(pi x) / (pi x): a series near 0, the recurrence farther out."""
    t = math.pi * x
    reach = 1.5 + 0.5 * n
    near = xp.clip(t, -reach, reach)
    series, square, power = 0.0 * t, near * near, near if n % 2 else near ** 0
    for k in range((n + 1) // 2, 16 + 2 * n):
        series = series + (-1) ** k / (math.factorial(2 * k - n) * (2 * k + 1)) * power
        power = power * square
    far = xp.where(xp.abs(t) > reach, t, reach)
    whole = xp.rint(x)
    sign = xp.where(whole == 2 * xp.rint(0.5 * whole), 1.0, -1.0)
    sine, cosine = (sign * wave(math.pi * (x - whole)) for wave in (xp.sin, xp.cos))
    waves = (sine, cosine, -sine, -cosine)
    slope = waves[0] / far
    for k in range(1, n + 1):
        slope = (waves[k % 4] - k * slope) / far
    return xp.where(xp.abs(t) <= reach, series, slope) * math.pi ** n


def cuda_text() -> str:
    """The formulas in C++ that the extension is compiled from, with their tables."""
    folder = Path(_native.__file__).parent / "program"
    tables, numbers = (device_code.text_of(str(folder / f"special_{n}.h")) for n in ("tables", "numbers"))
    return f"{tables}namespace fw::special {{\n{normal_tables('double', True)}}}\n{numbers}"


CUDA_TEXTS["fw::special::"] = cuda_text
# called, for a device's text of it is long: a kernel would have it once for each element of a pack
CUDA_TEXTS["log_gamma("] = lambda: (
    "__device__ __noinline__ double log_gamma(double x) { return lgamma(x); }\n")


def in_cuda(name: str, *operands: str) -> str:
    """The call of one of those formulas."""
    return f"C(fw::special::{name}({', '.join(operands or ['{}'])}))"


_OF_ORDER = "{}", "int({})"
add_words(
    lgamma=Word(wide(_lgamma, "special_lgamma"), cuda="C(log_gamma({}))"),
    polygamma=Word(wide(_polygamma, "special_polygamma"), cuda=in_cuda("polygamma", *_OF_ORDER)),
    erfcx=Word(wide(_erfcx, "special_erfcx"), cuda=in_cuda("erfcx")),
    erfinv=Word(wide(_erfinv, "special_erfinv"), cuda=in_cuda("erfinv")),
    ndtri=Word(wide(_ndtri, "special_ndtri"), cuda=in_cuda("ndtri")),
    log_ndtr=Word(wide(_log_ndtr, "special_log_ndtr"), cuda=in_cuda("log_ndtr")),
    zeta=Word(of_two(_zeta_maker, "special_zeta"), cuda=in_cuda("zeta", "{}", "{}")),
    gammainc=Word(of_two(_incomplete(0), "special_gammainc"), cuda=in_cuda("incomplete", "{}", "{}", "0")),
    gammaincc=Word(of_two(_incomplete(1), "special_gammaincc"), cuda=in_cuda("incomplete", "{}", "{}", "1")),
    bessel_i=Word(wide(_bessel_i, "special_bessel_i"), cuda=in_cuda("bessel_i", *_OF_ORDER)),
    bessel_ie=Word(wide(_bessel_ie, "special_bessel_ie"), cuda=in_cuda("bessel_ie", *_OF_ORDER)),
    sinc_slope=Word(wide(_sinc_slope, "special_sinc"), cuda=in_cuda("sinc", *_OF_ORDER)),
    sinc=Word(wide(_sinc_slope, "special_sinc"), cuda=in_cuda("sinc", *_OF_ORDER)))
