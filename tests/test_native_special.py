"""The extension's special functions beside the formulas without it."""

import numpy as np
import pytest

import framework as fw
from framework import _native
from framework.ops.special import numbers

NAMES = ("lgamma", "polygamma", "erfinv", "ndtri", "bessel_ie", "bessel_i")
pytestmark = pytest.mark.skipif(not hasattr(_native.module, "special_lgamma"),
                                reason=f"no extension: {_native.isa}")
EDGES = [0.0, -0.0, 1.0, -1.0, 2.0, -2.0, -2.5, 0.5, -0.5, 1e-30, 1e30, np.inf, -np.inf, np.nan, 8.0, -8.0]


def _plain(name, x, n):
    compute = getattr(numbers, f"_{name}")
    with np.errstate(all="ignore"):
        return compute(np, x.astype(np.float64)) if n is None else compute(np, x.astype(np.float64), n)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", NAMES)
def test_the_same_numbers(name, dtype):
    rng = np.random.default_rng(0)
    spread = 1.0 if name in ("erfinv", "ndtri") else 12.0
    x = np.concatenate([EDGES, rng.uniform(-spread, spread, 3000), rng.uniform(0, 1, 100)]).astype(dtype)
    for n in (0, 1, 2, 5) if name == "polygamma" else (0, 1) if name.startswith("bessel") else (None,):
        found = getattr(_native.module, f"special_{name}")(x, *([] if n is None else [n]))
        assert found.dtype == dtype and found.shape == x.shape
        with np.errstate(over="ignore"):
            exact = _plain(name, x, n).astype(dtype)
        tolerance = 1e-12 if dtype is np.float64 else 2e-7
        # where two large numbers nearly cancel, what is left of either is as good as the other
        np.testing.assert_allclose(found, exact, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("name", NAMES)
def test_what_it_leaves_to_the_formulas(name):
    function = getattr(_native.module, f"special_{name}")
    x = np.ones((4, 6))
    for bad in (x.astype(np.int64), x.astype(np.float16), x[:, ::2], x.T, [1.0]):
        assert function(bad) is NotImplemented
    assert function(x, -1) is NotImplemented and function(x, 1000) is NotImplemented
    assert function(np.ones((3, 0))).shape == (3, 0)


def test_any_layout():
    x = 0.9 * fw.rand(5, 7, dtype=fw.float64)
    for f in (fw.lgamma, fw.digamma, fw.special.i0e, lambda x: fw.polygamma(30, x), fw.erfinv):
        for y in (x.t(), x[:, ::2], x[0, 0], x[:0]):
            fw.testing.assert_close(f(y), fw.stack([f(v) for v in y.reshape(-1)]).reshape(y.shape)
                                    if y.numel() else y.clone(), rtol=1e-12, atol=0)
