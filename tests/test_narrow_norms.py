"""Norms of float16 and bfloat16: float32's results rounded once, and statistics that are not rounded."""

import numpy as np
import pytest

import framework as fw
from framework.ops.normalization import moments
from framework.ops.record.planned import have_kernels

pytest.importorskip("ml_dtypes", reason="bfloat16 needs the lowprecision extra")
NARROW = pytest.mark.parametrize("dtype", [fw.float16, fw.bfloat16], ids=str)
F = fw.nn.functional
# names, the norm of (x, weight, bias), and of which shape weight and bias are
NORMS = {
    "layer": (lambda x, w, b: F.layer_norm(x, x.shape[2:], w, b), lambda shape: shape[2:]),
    "rms": (lambda x, w, b: F.rms_norm(x, x.shape[2:], w, 1e-5), lambda shape: shape[2:]),
    "group": (lambda x, w, b: F.group_norm(x, 2, w, b), lambda shape: shape[1:2]),
    "batch": (lambda x, w, b: F.batch_norm(x, None, None, w, b, training=True), lambda shape: shape[1:2]),
    "instance": (lambda x, w, b: F.instance_norm(x, None, None, w, b), lambda shape: shape[1:2]),
}
NATIVE = {
    "layer": lambda x, w, b: fw.native_layer_norm(x, x.shape[2:], w, b, 1e-5),
    "group": lambda x, w, b: fw.native_group_norm(x, w, b, len(x), x.shape[1], x[0, 0].numel(), 2, 1e-5),
    "batch": lambda x, w, b: fw.native_batch_norm(x, w, b, None, None, True, 0.1, 1e-5),
}
SHAPES = pytest.mark.parametrize("shape", [(3, 4, 5), (2, 6, 3, 7), (5, 8, 41)], ids=str)


def numbers(dtype, shape, seed=0, gaps=False):
    wide = np.random.default_rng(seed).standard_normal((*shape[:-1], shape[-1] * (1 + gaps))) * 3 + 1
    return fw.tensor(wide).to(dtype)[..., ::1 + gaps]


def same(got, want):
    assert got.dtype == want.dtype and got.shape == want.shape
    assert np.array_equal(got.detach()._array.view(np.uint16), want.detach()._array.view(np.uint16))


def operands(dtype, shape, name, gaps=False):
    return [numbers(dtype, s, i, gaps) for i, s in enumerate([shape, *[NORMS[name][1](shape)] * 2])]


def normed(name, given):
    return NORMS[name][0](*given, *[None] * (3 - len(given)))


@NARROW
@SHAPES
@pytest.mark.parametrize("name", NORMS)
@pytest.mark.parametrize("gaps", [False, True], ids=["rows", "gaps"])
def test_results_and_gradients_are_those_of_float32(name, shape, dtype, gaps):
    given = operands(dtype, shape, name, gaps)[:2 + (name != "rms")]
    wide = [t.float() for t in given]
    same(normed(name, given), normed(name, wide).to(dtype))
    for t in (*given, *wide):
        t.requires_grad_()
    g = numbers(dtype, shape, 7)
    y = normed(name, given)
    same(y, normed(name, wide).to(dtype))
    found = fw.autograd.grad(y, given, g, create_graph=True)
    wanted = fw.autograd.grad(normed(name, wide), wide, g.float(), create_graph=True)
    for a, b in zip(found, wanted):
        same(a, b.to(dtype))
    again = fw.autograd.grad(normed(name, given), given, g)  # on arrays
    for a, b in zip(again, found):
        same(a, b)
    second = fw.autograd.grad(found[0], given[0], numbers(dtype, shape, 8))[0]
    assert second.dtype == dtype and bool(second.isfinite().all())


@NARROW
@SHAPES
@pytest.mark.parametrize("name", NATIVE)
def test_statistics_are_those_of_float32_rounded_once(name, shape, dtype):
    given = operands(dtype, shape, name)
    found, wanted = NATIVE[name](*given), NATIVE[name](*[t.float() for t in given])
    assert len(found) == len(wanted) == 3
    for a, b in zip(found, wanted):
        same(a, b.to(dtype))


@NARROW
def test_averages_follow_moments_that_are_not_rounded(dtype):
    x = numbers(dtype, (6, 4, 9))
    averages = [(fw.zeros(4), fw.ones(4)) for _ in range(2)]
    F.batch_norm(x, *averages[0], training=True)
    F.batch_norm(x.float(), *averages[1], training=True)
    for a, b in zip(*averages):
        assert fw.equal(a, b)


@NARROW
def test_formulas_keep_statistics_too(dtype):
    """What stands behind the native functions gives the same kinds of results."""
    x, w, b = operands(dtype, (3, 4, 5), "layer")
    settings = {"dims": (2,), "per": (5,), "eps": 1e-5}
    arrays = (x._array, w._array, b._array)
    y, mean, var = moments._beside_float32(moments.layer_norm_op.plain)(*arrays, **settings)
    assert y.dtype == dtype.numpy and mean.dtype == var.dtype == np.float32
    if have_kernels(x, w, b):
        found = moments.layer_norm_op.narrow(*arrays, **settings)
        for a, c in zip(found, (y, mean, var)):
            assert a.dtype == c.dtype and a.shape == c.shape
            np.testing.assert_allclose(a.astype(np.float64), c.astype(np.float64), 1e-2, 1e-2)
