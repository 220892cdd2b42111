"""Native elementary functions are within 4 units in the last place of the true value, everywhere."""

import math

import numpy as np
import pytest

from framework import _native
from framework.ops.language.expression import array_function
from framework.ops.language.program import native_kernel

mpmath = pytest.importorskip("mpmath", reason="needs mpmath (in the extra 'dev')")
pytestmark = pytest.mark.skipif(_native.module is None, reason=f"no native extension: {_native.isa}")
ULP = 4.0
TINY = {np.float32: 1e-45, np.float64: 5e-324}
EDGES = [0.0, 1e-30, 1e-8, 1e-4, 0.1, 0.25, 0.5, 0.7, 1.0, 1.5, 2.0, 3.0, 10.0, 20.0, 50.0, 80.0, 87.3, 88.5,
         100.0, 103.0]
FUNCTIONS = {
    "exp": mpmath.exp, "exp2": lambda x: mpmath.power(2, x), "expm1": mpmath.expm1, "log": mpmath.log,
    "log2": lambda x: mpmath.log(x, 2), "log10": mpmath.log10, "log1p": mpmath.log1p,
    "softplus_rest": lambda x: mpmath.log1p(mpmath.exp(-abs(x))), "tanh": mpmath.tanh,
    "sigmoid": lambda x: 1 / (1 + mpmath.exp(-x)), "erf": mpmath.erf, "sin": mpmath.sin,
    "erfc": lambda x: mpmath.erfc(x) if abs(x) < 1e4 else mpmath.mpf(0 if x > 0 else 2),
    "ndtr": lambda x: mpmath.ncdf(x) if abs(x) < 1e4 else mpmath.mpf(0 if x < 0 else 1),
    "cos": mpmath.cos, "tan": mpmath.tan, "asin": mpmath.asin, "acos": mpmath.acos, "atan": mpmath.atan,
    "sinh": mpmath.sinh, "cosh": mpmath.cosh, "asinh": mpmath.asinh, "acosh": mpmath.acosh,
    "atanh": mpmath.atanh, "sqrt": mpmath.sqrt, "rsqrt": lambda x: 1 / mpmath.sqrt(x),
}
PAIRS = {"pow": mpmath.power, "atan2": mpmath.atan2, "hypot": mpmath.hypot}
DOMAIN = {"log": (0, np.inf), "log2": (0, np.inf), "log10": (0, np.inf), "log1p": (-1, np.inf),
          "asin": (-1, 1), "acos": (-1, 1), "acosh": (1, np.inf), "atanh": (-1, 1),
          "sqrt": (0, np.inf), "rsqrt": (0, np.inf)}


def points(name, dtype, count=160):
    """Small, ordinary and large numbers of both signs, and denormals, inside the function's domain."""
    rng = np.random.default_rng(len(name))
    span = np.exp(rng.uniform(np.log(TINY[dtype]) + 1, np.log(np.finfo(dtype).max) - 1, count // 2))
    x = np.concatenate([span, rng.normal(size=count), rng.uniform(0, 110, count // 2), EDGES]).astype(dtype)
    x = np.concatenate([x, -x])
    low, high = DOMAIN.get(name, (-np.inf, np.inf))
    return x[(x > low) & (x < high)]


def true_value(function, *numbers):
    with mpmath.workdps(60):
        return function(*[mpmath.mpf(float(n)) for n in numbers])


def worst(got, numbers, function, dtype):
    """The largest distance from the true value, in units in the last place of the result's magnitude."""
    result = (0.0, None)
    largest = mpmath.mpf(float(np.finfo(dtype).max))
    for y, *xs in zip(got, *numbers):
        want = true_value(function, *xs)
        if abs(want) > largest * (1 + mpmath.mpf(2) ** -24):
            assert np.isinf(y) and (y > 0) == (want > 0), (xs, y, want)
            continue
        with mpmath.workdps(60):
            unit = float(np.spacing(np.abs(dtype(float(min(abs(want), largest))))))
            distance = float(abs(mpmath.mpf(float(y)) - want) / unit) if np.isfinite(y) else np.inf
        result = max(result, (distance, xs), key=lambda r: r[0])
    return result


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_one_argument(name, dtype):
    x = points(name, dtype)
    got = native_kernel(f"{name}(x)", ("x",), len)(x)
    distance, where = worst(got, [x], FUNCTIONS[name], dtype)
    assert distance <= ULP, f"{distance:.2f} ulp at {where}"


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", PAIRS)
def test_two_arguments(name, dtype):
    x = points(name, dtype)
    y = np.random.default_rng(9).permutation(x)
    if name == "pow":
        x, y = np.abs(x), y[: len(x)] % 40 - 20
        with np.errstate(all="ignore"):
            small = x ** y.astype(np.longdouble)
        keep = (x > 0) & (small > np.finfo(dtype).tiny) & (small < np.finfo(dtype).max)
        x, y = x[keep], y[keep]
    got = native_kernel(f"{name}(x, y)", ("x", "y"), len)(x, y)
    distance, where = worst(got, [x, y], PAIRS[name], dtype)
    assert distance <= ULP, f"{distance:.2f} ulp at {where}"


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", [*FUNCTIONS, "floor", "ceil", "trunc", "round", "sign"])
def test_special_values_are_numpys(name, dtype):
    x = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1, -1, 2, -2, 1e30, -1e30, 0.5, 2.5, -1.5], dtype)
    own = {"softplus_rest": lambda x: np.log1p(np.exp(-np.abs(x))),
           "sigmoid": lambda x: 1 / (1 + np.exp(-x)), "rsqrt": lambda x: 1 / np.sqrt(x), "asin": np.arcsin,
           "acos": np.arccos, "atan": np.arctan, "asinh": np.arcsinh, "acosh": np.arccosh,
           "atanh": np.arctanh, "erf": np.vectorize(math.erf, otypes=[dtype]),
           "erfc": np.vectorize(math.erfc, otypes=[dtype]),
           "ndtr": np.vectorize(lambda x: 0.5 * math.erfc(-x / math.sqrt(2)), otypes=[dtype])}
    with np.errstate(all="ignore"):
        want = own.get(name, getattr(np, name, None))(x)
    got = native_kernel(f"{name}(x)", ("x",), len)(x)
    np.testing.assert_allclose(got, want, rtol=4 * np.finfo(dtype).eps, atol=np.finfo(dtype).tiny)
    signs = np.isfinite(want) & (want == 0)
    np.testing.assert_array_equal(np.signbit(got[signs]), np.signbit(want[signs]))


# where results are the smallest there are, then 0, for arguments of float32 and float64: (from, to)
LAST = {"exp": [(-106, -102), (-747, -744)], "exp2": [(-152, -148), (-1077, -1073)],
        "sigmoid": [(-106, -102), (-747, -744)], "erfc": [(10, 10.3), (26.5, 28.5)],
        "ndtr": [(-14.6, -14), (-38.7, -38)]}


@pytest.mark.parametrize("at, dtype", [(0, np.float32), (1, np.float64)], ids=["float32", "float64"])
@pytest.mark.parametrize("name", LAST)
def test_the_last_numbers_before_0(name, at, dtype):
    """What kernels leave out because it is 0 is 0, and nothing else is left out."""
    x = np.linspace(*LAST[name][at], 203).astype(dtype)
    kernel = native_kernel(f"{name}(x)", ("x",), len)
    got = kernel(x)
    distance, where = worst(got, [x], FUNCTIONS[name], dtype)
    assert distance <= ULP, f"{distance:.2f} ulp at {where}"
    assert (got == 0).any() and (got > 0).any()
    far = np.array([x[np.argmin(got)], np.copysign(np.inf, x[np.argmin(got)]), np.nan] * 9, dtype)
    np.testing.assert_array_equal(kernel(far), [0, 0, np.nan] * 9)


# functions x f(x), of whose derivative f(x) + x f'(x) the two terms are given, and where they are not tiny
SLOPES = {
    "gelu_slope": (mpmath.ncdf, lambda v: v * mpmath.npdf(v), (-45, 10)),
    "silu_slope": (lambda v: 1 / (1 + mpmath.exp(-v)),
                   lambda v: v / (1 + mpmath.exp(-v)) / (1 + mpmath.exp(v)), (-80, 20)),
}


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", SLOPES)
def test_slopes(name, dtype):
    """Right to 4 ulp of the larger term; far below 0 that is the whole of it, to 1 part in 9."""
    *terms, span = SLOPES[name]
    rng = np.random.default_rng(0)
    x = np.concatenate([rng.normal(size=300), rng.uniform(*span, 300)]).astype(dtype)
    slope = native_kernel(f"{name}(x)", ("x",), len)
    for value, y in zip(x, slope(x)):
        exact = [true_value(term, value) for term in terms]
        unit = float(np.spacing(dtype(float(max(map(abs, exact))))))
        assert abs(mpmath.mpf(float(y)) - sum(exact)) <= ULP * unit, (value, y)
    edges = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1e30, -1e30], dtype)
    for function in (slope, array_function(f"{name}(x)", "x", np)):
        np.testing.assert_array_equal(function(edges), [0.5, 0.5, 1, 0, np.nan, 1, 0])


def test_roots_are_rounded_as_ieee_754_wants():
    """Bit by bit NumPy's, beside the middles between two numbers, and where there is no ordinary number."""
    rng, root = np.random.default_rng(4), native_kernel("sqrt(x)", ("x",), len)
    halves = rng.integers(1 << 52, 1 << 53, 4000).astype(np.float64)
    middle = (halves + 0.5) ** 2
    powers = 4.0 ** np.arange(-500, 500)
    edges = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, -1.0, 5e-324, 1e-310, 1e-290, 1e290, 1.7e308])
    bits = rng.integers(0, (1 << 63) - (1 << 53), 4000).view(np.float64)
    x = np.concatenate([middle, halves * halves, powers, bits, edges])
    x = np.concatenate([x, np.nextafter(x, 0), np.nextafter(x, np.inf)])
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(root(x), np.sqrt(x))
    assert np.signbit(root(np.array([-0.0] * 9))).all()


@pytest.mark.parametrize("dtype, bits", [(np.float32, np.uint32), (np.float64, np.uint64)])
def test_reciprocals_are_rounded_as_ieee_754_wants(dtype, bits):
    """Bit by bit NumPy's, also of digits that are all ones, and at both ends of the range."""
    rng, info = np.random.default_rng(5), np.finfo(dtype)
    inverse = native_kernel("1 / x", ("x",), len)
    powers = dtype(2) ** np.arange(info.minexp, info.maxexp).astype(dtype)
    any_bits = rng.integers(0, np.iinfo(bits).max, 1 << 16, dtype=bits, endpoint=True).view(dtype)
    digits = rng.integers(0, 1 << info.nmant, 1 << 18).astype(bits)
    in_one_binade = (digits | dtype(1).view(bits)).view(dtype)
    edges = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, info.max, info.tiny, info.smallest_subnormal],
                     dtype)
    x = np.concatenate([powers, np.nextafter(powers, dtype(0)), any_bits, in_one_binade, edges])
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(inverse(x), 1 / x)
    assert np.signbit(inverse(np.array([-np.inf] * 40, dtype))).all()


SPECIAL = {
    "lgamma": (0, lambda x: mpmath.log(abs(mpmath.gamma(x)))), "erfinv": (0, mpmath.erfinv),
    "erfcx": (0, lambda x: mpmath.exp(x * x) * mpmath.erfc(x)), "sinc": (0, mpmath.sincpi),
    "log_ndtr": (0, lambda x: mpmath.log(mpmath.ncdf(x))),
    "ndtri": (0, lambda p: mpmath.sqrt(2) * mpmath.erfinv(2 * p - 1)),
    **{f"polygamma {n}": (n, lambda x, n=n: mpmath.psi(n, x)) for n in (0, 1, 3)},
    **{f"bessel_{kind} {n}": (n, lambda x, n=n, f=f: f(n, x)) for kind, f in (
        ("j", mpmath.besselj), ("y", mpmath.bessely), ("i", mpmath.besseli), ("k", mpmath.besselk),
        ("ie", lambda n, x: mpmath.exp(-abs(x)) * mpmath.besseli(n, x)),
        ("ke", lambda n, x: mpmath.exp(x) * mpmath.besselk(n, x))) for n in (0, 1)},
}


@pytest.mark.parametrize("name", SPECIAL)
def test_special_functions_of_64_bits(name):
    """To some units in the last place of the result or of 1, whichever is larger."""
    (n, function), rng = SPECIAL[name], np.random.default_rng(5)
    x = np.concatenate([rng.uniform(0.01, 1, 40), rng.uniform(1, 20, 40), rng.uniform(20, 60, 10)])
    x = np.concatenate([x, -x])
    domains = {"erfinv": (-1, 1), "ndtri": (0, 1), "log_ndtr": (-60, 8), "erfcx": (-26, 60),
               "bessel_y": (0, 60), "bessel_k": (0, 60), "bessel_ke": (0, 60)}
    low, high = domains.get(name.split()[0], (-60, 60))
    x = x[(x > low) & (x < high)]
    for value, y in zip(x, getattr(_native.module, f"special_{name.split()[0]}")(x, n)):
        exact = true_value(function, value)
        assert abs(mpmath.mpf(float(y)) - exact) <= 1e-14 * max(1, abs(exact)), (value, y, exact)
