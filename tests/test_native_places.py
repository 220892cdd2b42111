"""Images read at places of all kinds, and both gradients, natively against the composite."""

import numpy as np
import pytest

from framework import _native
from framework.ops.image.grid_sample import sample_grad, sample_op

pytestmark = [pytest.mark.usefixtures("each_threads"),
              pytest.mark.skipif(_native.module is None, reason=f"no native extension: {_native.isa}")]
FAR = (1, -1, 0.0, -0.0, 1 - 1e-7, 1e8, -1e30, np.inf, -np.inf, np.nan)
SIZES = [(1, 1), (1, 9), (17, 1), (5, 7), (3, 4), (6, 2), (32, 32)]


@pytest.mark.parametrize("dtype, exact", [(np.float32, 2e-5), (np.float64, 1e-12)])
@pytest.mark.parametrize("align", [False, True])
@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
@pytest.mark.parametrize("mode", ["bilinear", "nearest", "bicubic"])
@pytest.mark.parametrize("size", SIZES)
def test_places_near_and_far(size, mode, padding, align, dtype, exact):
    """From one place to more than a block of them."""
    random = np.random.default_rng(0)
    for count in (1, 7, 16, 63, 64, 65, 130):
        x = random.standard_normal((2, 3, *size)).astype(dtype)
        grid = random.uniform(-1.6, 1.6, (2, 1, count, 2)).astype(dtype)
        far = grid.reshape(-1)[:len(FAR)]
        far[:] = FAR[:far.size]
        given = {"mode": mode, "padding": padding, "align": align}
        with np.errstate(all="ignore"):
            found, wanted = _native.module.grid_sample(x, grid, **given), sample_op.plain(x, grid, **given)
            near = np.abs(grid).max(-1)[:, None] < 2
            compare(found, wanted, near | np.isfinite(wanted) & np.isfinite(found), exact)
            g = random.standard_normal(wanted.shape).astype(dtype) * near
            places = np.where(np.abs(grid) < 2, grid, dtype(0.3))
            given["wanted"] = (True, True)
            for a, b in zip(_native.module.grid_sample_grad(g, x, places, **given),
                            sample_grad.plain(g, x, places, **given)):
                compare(a, b, True, exact)


@pytest.mark.parametrize("place", [np.nan, np.inf, -np.inf])
def test_places_that_are_nowhere_have_no_gradient(place):
    x, grid = np.ones((1, 1, 4, 4), np.float32), np.array([[[[0.3, place]]]], np.float32)
    _, found = _native.module.grid_sample_grad(np.ones((1, 1, 1, 1), np.float32), x, grid, mode="bilinear",
                                               padding="zeros", align=False, wanted=(True, True))
    assert found.tolist() == [[[[0, 0]]]]


def compare(found, wanted, where, exact):
    assert found.shape == wanted.shape and found.dtype == wanted.dtype
    where = np.broadcast_to(where, found.shape)
    np.testing.assert_allclose(found[where], wanted[where], rtol=exact,
                               atol=exact * np.abs(wanted[where]).max(initial=1))


def test_planes_beyond_32_bits_are_left_to_the_composite():
    try:
        x = np.zeros((1, 1, 1 << 15, (1 << 14) + 1), np.float32)  # two GB that nobody touches
    except MemoryError:
        pytest.skip("there is not so much memory to be reserved")
    grid, given = np.zeros((1, 1, 1, 2), np.float32), {"mode": "bilinear", "padding": "zeros", "align": False}
    assert _native.module.grid_sample(x, grid, **given) is NotImplemented
    assert _native.module.grid_sample(x[:, :, :1 << 14], grid, **given) is not NotImplemented
