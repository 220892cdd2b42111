"""The kernels of losses by margins beside their plain formulas."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import framework as fw
from framework import _native
from framework.ops.losses.margins import margin_loss, margin_loss_grad

pytestmark = pytest.mark.skipif(not _native.module, reason="needs the extension")
SETTINGS = st.fixed_dictionaries({
    "p": st.integers(1, 2), "margin": st.sampled_from([1.0, 0.3, -0.5]), "single": st.booleans(),
    "reduction": st.sampled_from(["none", "mean", "sum"])})


@settings(deadline=None, max_examples=150)
@given(st.integers(1, 9), st.integers(1, 12), SETTINGS, st.booleans(),
       st.sampled_from([np.float32, np.float64]), st.integers(0, 999))
def test_losses_and_gradients(n, c, layout, alone, dtype, seed):
    draw = np.random.default_rng(seed)
    x = draw.standard_normal((n, c)).round(1).astype(dtype)
    target = draw.integers(0, c, n) if layout["single"] else draw.integers(-1, c, (n, c))
    if alone:
        x, target = x[0], target[0:1].reshape(target.shape[1:])
    close = {"rtol": 1e-5, "atol": 1e-5} if dtype is np.float32 else {"rtol": 1e-12, "atol": 1e-12}
    wanted = margin_loss.plain(x, target, **layout)
    found = margin_loss.cpu.native(x, target, **layout)
    assert found.dtype == dtype and found.shape == wanted.shape
    np.testing.assert_allclose(found, wanted, **close)
    g = np.asarray(draw.standard_normal(wanted.shape), dtype)
    np.testing.assert_allclose(margin_loss_grad.cpu.native(g, x, target, **layout),
                               margin_loss_grad.plain(g, x, target, **layout), **close)


@pytest.mark.parametrize("target", [[3], [-1], [2**62]])
def test_no_class_is_left_to_the_plain_formula(target):
    layout = {"p": 1, "margin": 1.0, "single": True, "reduction": "mean"}
    x, t = np.zeros((1, 3)), np.array(target)
    assert margin_loss.cpu.native(x, t, **layout) is NotImplemented
    assert margin_loss_grad.cpu.native(np.array(1.0), x, t, **layout) is NotImplemented
    with pytest.raises(IndexError, match="multi_margin_loss"):
        fw.nn.functional.multi_margin_loss(fw.tensor(x), fw.tensor(t))


def test_odd_arrays_are_refused():
    layout = {"p": 1, "margin": 1.0, "single": False, "reduction": "none"}
    for x, t in ((np.zeros((2, 3)), np.zeros((1, 3), int)), (np.zeros((0, 3)), np.zeros((0, 3), int)),
                 (np.zeros((2, 3)), np.zeros((2, 3), np.int32)), (np.zeros(()), np.zeros((), int)),
                 (np.zeros((2, 3, 1)), np.zeros((2, 3), int)), (np.zeros((2, 3)), np.zeros((), int)),
                 (np.zeros((2, 3)), np.zeros((2, 0), int))):
        assert margin_loss.cpu.native(x, t, **layout) is NotImplemented
        assert margin_loss_grad.cpu.native(np.zeros(2), x, t, **layout) is NotImplemented
    assert margin_loss_grad.cpu.native(np.zeros(3), np.zeros((2, 3)), np.zeros((2, 3), int),
                                       **layout) is NotImplemented
