"""The extension's special functions beside the formulas without it."""

import itertools

import numpy as np
import pytest

import framework as fw
from framework import _native
from framework.ops.special import bessel_numbers, numbers
from framework.ops.special.polynomials import polynomial_op

ORDERS = {"lgamma": (None,), "polygamma": (0, 1, 2, 5), "erfinv": (None,), "ndtri": (None,), "erfcx": (None,),
          "log_ndtr": (None,), "sinc": (0, 1, 2, 4),
          **dict.fromkeys(("bessel_ie", "bessel_i", "bessel_j", "bessel_y", "bessel_k", "bessel_ke"),
                          (-1, 0, 1, 2, 3))}
NAMES = tuple(ORDERS)
pytestmark = pytest.mark.skipif(not hasattr(_native.module, "special_lgamma"),
                                reason=f"no extension: {_native.isa}")
EDGES = [0.0, -0.0, 1.0, -1.0, 2.0, -2.0, -2.5, 0.5, -0.5, 1e-30, 1e30, np.inf, -np.inf, np.nan, 8.0, -8.0]


def _plain(name, x, n):
    compute = getattr(numbers, f"_{name}", None) or getattr(bessel_numbers, f"_{name}", numbers._sinc_slope)
    with np.errstate(all="ignore"):
        return compute(np, x.astype(np.float64)) if n is None else compute(np, x.astype(np.float64), n)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", NAMES)
def test_the_same_numbers(name, dtype):
    rng = np.random.default_rng(0)
    spread = 1.0 if name in ("erfinv", "ndtri") else 12.0
    x = np.concatenate([EDGES, rng.uniform(-spread, spread, 3000), rng.uniform(0, 1, 100)]).astype(dtype)
    for n in ORDERS[name]:
        found = getattr(_native.module, f"special_{name}")(x, *([] if n is None else [n]))
        assert found.dtype == dtype and found.shape == x.shape
        with np.errstate(over="ignore"):
            exact = _plain(name, x, n).astype(dtype)
        tolerance = 2e-12 if dtype is np.float64 else 2e-7
        # where two large numbers nearly cancel, what is left of either is as good as the other
        np.testing.assert_allclose(found, exact, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize(("name", "order"), [
    *[(name, 0) for name in ("lgamma", "erfinv", "ndtri", "erfcx", "log_ndtr")],
    *[("polygamma", n) for n in (0, 1, 2, 8)], ("sinc", 0), ("sinc", 1),
    *itertools.product([f"bessel_{kind}" for kind in ("i", "ie", "j", "k", "ke", "y")], (-1, 0, 1))])
def test_numbers_of_32_bits_are_those_of_64_rounded(name, order):
    """By vectors of double precision, to the last digit, also where the function is nearly 0."""
    function, rng = getattr(_native.module, f"special_{name}"), np.random.default_rng(2)
    near = [c + rng.standard_normal(500) * 10.0 ** -k for c in (1, 2, 1.4616, -2.457) for k in (2, 4, 6)]
    points = np.concatenate([*near, rng.standard_normal(8000), rng.uniform(-60, 60, 8000), EDGES,
                             np.exp(rng.uniform(-80, 80, 8000))]).astype(np.float32)
    for x in (points, points[:1], points[:7]):
        found, wanted = function(x, order), function(x.astype(np.float64), order)
        with np.errstate(over="ignore"):
            np.testing.assert_array_max_ulp(found, wanted.astype(np.float32), 1)
        np.testing.assert_array_equal(np.isnan(found), np.isnan(wanted))
        np.testing.assert_array_equal(np.signbit(found[wanted == 0]), np.signbit(wanted[wanted == 0]))


@pytest.mark.parametrize("name", NAMES)
def test_what_it_leaves_to_the_formulas(name):
    function = getattr(_native.module, f"special_{name}")
    x = np.ones((4, 6))
    for bad in (x.astype(np.int64), np.ones(2000, np.float16), [1.0]):
        assert function(bad) is NotImplemented
    numbers = np.linspace(0.1, 0.9, 24).reshape(4, 6)
    for strided in (numbers[:, ::2], numbers.T, numbers[::-1]):
        np.testing.assert_array_equal(function(strided), function(strided.copy("C")))
    assert function(x, -20) is NotImplemented and function(x, 1000) is NotImplemented
    assert function(np.ones((3, 0))).shape == (3, 0)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_same_numbers_of_pairs(dtype):
    rng = np.random.default_rng(1)
    a = np.concatenate([np.repeat([0.0, 0.5, 3.0, 40.0, np.inf], 6), rng.uniform(0.1, 30, 500)]).astype(dtype)
    edges = np.tile([0.0, 0.3, 5.0, 60.0, np.inf, np.nan], 5)
    x = np.concatenate([edges, rng.uniform(0, 40, 500)]).astype(dtype)
    tolerance = 1e-11 if dtype is np.float64 else 2e-7
    with np.errstate(all="ignore"):
        for name, plain in (("gammainc", numbers._incomplete(0)), ("gammaincc", numbers._incomplete(1))):
            found = getattr(_native.module, f"special_{name}")(a, x)
            np.testing.assert_allclose(found, plain(np)(a, x), rtol=tolerance, atol=tolerance)
        s, q = 1 + a[30:] / 5, x[30:] - 8
        for order in (s, np.rint(s)):
            found, exact = _native.module.special_zeta(order, q), numbers._zeta_maker(np)(order, q)
            np.testing.assert_allclose(found, exact, rtol=tolerance, atol=tolerance)
    assert _native.module.special_zeta(a, x[:5]) is NotImplemented


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_polynomials_of_any_degrees(dtype):
    """As many numbers as vectors have lanes, and more; each with its own degree, or one for all."""
    function, rng = _native.module.polynomial, np.random.default_rng(3)
    for family in ("chebyshev_polynomial_v", "hermite_polynomial_he", "legendre_polynomial_p"):
        for size in (3, 8, 21):
            x = rng.uniform(-1.5, 1.5, size).astype(dtype)
            n = np.resize([2.0, 0.0, 5.7, -1.0, np.nan, 1.0, 11.0], size).astype(dtype)
            with np.errstate(all="ignore"):
                exact = polynomial_op.plain(x, n, family=family, order=0)
                for_one = polynomial_op.plain(x, np.array(6.0, dtype), family=family, order=0)
            tolerance = 1e-12 if dtype is np.float64 else 3e-7
            found, one = function(x, n, family, 0), function(x, np.array([6.0], dtype), family, 0)
            np.testing.assert_allclose(found, exact, rtol=tolerance, atol=tolerance)
            np.testing.assert_allclose(one, for_one, rtol=tolerance, atol=tolerance)


def test_many_small_matrices():
    rng, native = np.random.default_rng(2), _native.module
    for n in (1, 2, 5, 17, 32):
        A, B = rng.normal(size=(7, n, n)), rng.normal(size=(7, n, 3))
        S = A @ A.swapaxes(1, 2) + np.eye(n)
        for found, exact in ((native.small_inv(S), np.linalg.inv(S)),
                             (native.small_solve(S, B), np.linalg.solve(S, B)),
                             (native.small_det(A), np.linalg.det(A)),
                             (native.small_slogdet(A)[0], np.linalg.slogdet(A)[1]),
                             (native.small_slogdet(A)[1], np.linalg.slogdet(A)[0]),
                             (native.small_cholesky(S), np.linalg.cholesky(S))):
            np.testing.assert_allclose(found, exact, rtol=1e-9, atol=1e-10)
    singular = np.zeros((3, 2, 2))
    assert native.small_inv(singular) is NotImplemented
    assert native.small_solve(singular, singular) is NotImplemented
    assert native.small_cholesky(-np.eye(2)) is NotImplemented and not native.small_det(singular).any()
    assert native.small_inv(np.eye(33)) is NotImplemented


def test_any_layout():
    x = 0.9 * fw.rand(5, 7, dtype=fw.float64)
    for f in (fw.lgamma, fw.digamma, fw.special.i0e, lambda x: fw.polygamma(30, x), fw.erfinv):
        for y in (x.t(), x[:, ::2], x[0, 0], x[:0]):
            fw.testing.assert_close(f(y), fw.stack([f(v) for v in y.reshape(-1)]).reshape(y.shape)
                                    if y.numel() else y.clone(), rtol=1e-12, atol=0)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_scaled_tails_far_out(dtype):
    """exp(x^2) erfc(x) where erfc itself is 0, and at infinity; of vectors whole and broken."""
    kind = np.dtype(dtype)
    x = np.array([26.0, 100.0, 1e9, 1e20, float(np.finfo(kind).max) / 2, np.inf] * 7, kind)
    with np.errstate(all="ignore"):
        wide = x.astype("d")
        s = 0.5 / (wide * wide)
        want = 0.5641895835477563 / wide * (1 - s * (1 - 3 * s * (1 - 5 * s * (1 - 7 * s * (1 - 9 * s)))))
        want = want.astype(kind)
    for n in (len(x), 5, 1):
        got = fw.special.erfcx(fw.tensor(x[:n])).numpy()
        np.testing.assert_allclose(got, want[:n], 1e-14 if dtype == "float64" else 1e-6)
        assert (fw.special.log_ndtr(fw.tensor(-x[:n])).numpy()[x[:n] == np.inf] == -np.inf).all()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("shapes", [((4, 5), (5,)), ((4, 1), (1, 5)), ((5,), (4, 1)), ((1, 1), (5,)),
                                    ((2, 1, 3), (4, 1)), ((0, 3), (1, 3)), ((3, 1), (2, 3))])
def test_two_operands_broadcast(shapes, dtype):
    rng = np.random.default_rng(1)
    x, y = (rng.uniform(1.5, 4.0, shape).astype(dtype) for shape in shapes)
    whole = [np.ascontiguousarray(a) for a in np.broadcast_arrays(x, y)] if shapes[0][0] != 3 else None
    calls = [lambda a, b: _native.module.polynomial(a, b, family="legendre_polynomial_p", order=0),
             _native.module.special_gammainc, _native.module.special_gammaincc, _native.module.special_zeta]
    for call in calls:
        found = call(x, y)
        if whole is None or not x.size:  # shapes that do not broadcast, or nothing beside something
            assert found is NotImplemented
        else:
            assert found.flags.c_contiguous and found.dtype == dtype
            np.testing.assert_array_equal(found, call(*whole))
            turned = call(x[..., ::-1], np.repeat(y, 2, -1)[..., ::2])
            np.testing.assert_array_equal(turned, call(*map(np.ascontiguousarray, np.broadcast_arrays(
                x[..., ::-1], y))))


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("dtype", [np.dtype(np.float16), fw.bfloat16.numpy], ids=str)
def test_few_numbers_of_16_bits(name, dtype):
    """As float32, rounded once; over the operand, too."""
    function = getattr(_native.module, f"special_{name}")
    for n in (0, 1, 5, 16, 33, 1000):
        x = (np.random.default_rng(n).standard_normal(n) * 2).astype(dtype)
        with np.errstate(over="ignore"):  # some are larger than 16 bits hold
            want = function(x.astype(np.float32)).astype(dtype)
        got = function(x)
        assert got.dtype == dtype and np.array_equal(got.view(np.uint16), want.view(np.uint16))
        assert function(x, out=x) is x and np.array_equal(x.view(np.uint16), want.view(np.uint16))
    x = np.ones(40, dtype)
    assert function(x[::2]) is NotImplemented
    assert function(x[:20], out=x[10:30]) is NotImplemented  # they overlap
