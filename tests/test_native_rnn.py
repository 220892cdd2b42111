"""The native kernels of recurrent sequences beside their NumPy formulas."""

from typing import Any

import numpy as np
import pytest

import framework as fw
from framework import _native
from framework.ops.sequence import rnn as records

pytestmark = pytest.mark.skipif(_native.module is None, reason=f"no native extension: {_native.isa}")


def data(*shape: int, seed: int) -> np.ndarray:
    return np.random.default_rng(seed + sum(shape)).normal(size=shape)


def kernels(kind: str) -> tuple:
    """(native function, the formula) forward, and the same backward."""
    ops = getattr(records, f"{kind}_op"), getattr(records, f"{kind}_grad")
    return tuple((getattr(_native.module, op.name), op.plain) for op in ops)


def same(native: Any, formula: Any, tolerance: float) -> None:
    assert native is not NotImplemented
    for a, b in zip(native, formula, strict=True):
        assert a.shape == b.shape and a.dtype == b.dtype
        largest = np.nan_to_num(abs(b)).max(initial=1.0)
        np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance * largest)


def operands(kind: str, sizes: tuple, width: int, inner: int, dtype: type, bias: bool) -> tuple:
    """(x, states, weights), none too large."""
    gates = {"rnn": 1, "gru": 3, "lstm": 4}[kind] * width
    states = 2 if kind == "lstm" else 1
    shapes = [(sum(sizes), inner), *[(max(sizes), width)] * states, (gates, inner), (gates, width)]
    shapes += [(gates,)] * 2 if bias else []
    x, *others = [(data(*s, seed=k) / s[-1] ** 0.5).astype(dtype) for k, s in enumerate(shapes)]
    return x, others[:states], [*others[states:], *([] if bias else [None, None])]


@pytest.mark.parametrize("kind,settings", [
    ("rnn", {"relu": False}), ("rnn", {"relu": True}), ("lstm", {}), ("gru", {})])
@pytest.mark.parametrize("sizes,width,inner,reverse,bias", [
    ((1,), 1, 1, False, True), ((3, 3, 3), 5, 7, False, True), ((5, 3, 3, 1), 33, 2, True, False),
    ((20, 16, 2), 17, 40, False, True), ((40,) * 3, 130, 8, True, True), ((17,), 64, 3, False, False)])
@pytest.mark.parametrize("dtype,tolerance", [(np.float32, 2e-5), (np.float64, 1e-12)])
def test_native_is_the_formula(kind: str, settings: dict, sizes: tuple, width: int, inner: int, reverse: bool,
                               bias: bool, dtype: type, tolerance: float) -> None:
    forward, backward = kernels(kind)
    x, states, weights = operands(kind, sizes, width, inner, dtype, bias)
    settings = {**settings, "sizes": sizes, "reverse": reverse}
    threads = fw.get_num_threads()
    try:
        for count in (1, 2):
            fw.set_num_threads(count)
            found = [f(x, *states, *weights, **settings) for f in forward]
            same(*found, tolerance)
            y, *ends = found[1][:1 + len(states)]
            kept, gy = found[1][1 + len(states):], data(*y.shape, seed=9).astype(dtype)
            gaps = np.repeat(gy, 2, axis=1)[:, ::2]
            expanded = np.broadcast_to(gy[:1], gy.shape)
            for seeds in ([gy, *ends], [gaps, *[None] * len(ends)], [expanded, *ends], [None, *ends]):
                for x_and_weights in (True, False):
                    wanted = (x_and_weights, *[True] * len(states), *[x_and_weights] * 2, bias, bias)
                    same(*[f(*seeds, x, *states, *weights, y, *kept, **settings, wanted=wanted)
                           for f in backward], 10 * tolerance)
    finally:
        fw.set_num_threads(threads)


class Rough:
    """NumPy, but products round their operands to bfloat16."""

    def __getattr__(self, name: str) -> Any:
        return getattr(np, name)

    @staticmethod
    def matmul(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        narrow = fw.bfloat16.numpy
        return np.matmul(a.astype(narrow).astype(a.dtype), b.astype(narrow).astype(b.dtype))


@pytest.mark.skipif(_native.module is None or not _native.module.has_matrix_unit(),
                    reason="no matrix unit here, or not granted, or switched off")
@pytest.mark.parametrize("kind,settings", [
    ("rnn", {"relu": False}), ("rnn", {"relu": True}), ("lstm", {}), ("gru", {})])
@pytest.mark.parametrize("sizes,width,inner,reverse,bias", [
    ((1,), 1, 1, False, True), ((3, 3, 3), 5, 7, False, True), ((5, 3, 3, 1), 33, 2, True, False),
    ((50, 16, 2), 17, 40, False, True), ((40,) * 3, 130, 8, True, True), ((17,), 64, 3, False, False)])
def test_products_may_round_their_operands(kind: str, settings: dict, sizes: tuple, width: int, inner: int,
                                           reverse: bool, bias: bool) -> None:
    pytest.importorskip("ml_dtypes", reason="bfloat16 needs the lowprecision extra")
    op, grad = getattr(records, f"{kind}_op"), getattr(records, f"{kind}_grad")
    module, near = _native.module, 2.0 ** -7  # a sum near a tie may be rounded to the other side
    x, states, weights = operands(kind, sizes, width, inner, np.float32, bias)
    settings = {**settings, "sizes": sizes, "reverse": reverse}
    wanted = op.kernel(Rough(), x, *states, *weights, **settings)
    exact = op.plain(x, *states, *weights, **settings)
    threads, found = fw.get_num_threads(), []
    try:
        for count in (1, 2):
            fw.set_num_threads(count)
            found.append(getattr(module, op.name)(x, *states, *weights, **settings, rounded=True))
            same(found[-1], wanted, near)
            y, kept = wanted[0], wanted[1 + len(states):]
            seeds = [data(*a.shape, seed=9).astype(np.float32) for a in (y, *states)]
            given = (*seeds, x, *states, *weights, y, *kept)
            settings_back = {**settings, "wanted": (*[True] * (3 + len(states)), bias, bias)}
            same(getattr(module, grad.name)(*given, **settings_back, rounded=True),
                 grad.kernel(Rough(), *given, **settings_back), near)
    finally:
        fw.set_num_threads(threads)
    assert all(np.array_equal(a, b) for a, b in zip(*found))
    assert width == 1 or not np.allclose(found[0][0], exact[0], rtol=1e-5, atol=1e-6)  # rounded they are


@pytest.mark.parametrize("kind", ["rnn", "lstm", "gru"])
@pytest.mark.parametrize("learns", [False, True])
def test_layers_of_bfloat16_are_near_those_of_float32(kind: str, learns: bool) -> None:
    pytest.importorskip("ml_dtypes", reason="bfloat16 needs the lowprecision extra")
    fw.manual_seed(0)
    net = getattr(fw.nn, kind.upper())(20, 33, num_layers=2, bidirectional=True).bfloat16()
    x = fw.randn(7, 18, 20).bfloat16().requires_grad_(learns)
    results = []
    for dtype in (fw.bfloat16, fw.float32):
        inputs = x.detach().to(dtype).requires_grad_(learns)
        outs = net.to(dtype)(inputs)
        y, ends = outs[0], outs[1] if kind == "lstm" else (outs[1],)
        found = [y, *ends]
        if learns:
            found += fw.autograd.grad(y.float().square().sum(), [inputs, *net.parameters()])
        assert all(t.dtype is dtype for t in found)
        results.append([t.detach().float().numpy() for t in found])
    for a, b in zip(*results, strict=True):
        np.testing.assert_allclose(a, b, rtol=0, atol=2.0 ** -5 * abs(b).max())


@pytest.mark.parametrize("kind", ["rnn", "lstm", "gru"])
def test_native_takes_nan_and_leaves_what_it_does_not_know(kind: str) -> None:
    forward, _ = kernels(kind)
    x, states, weights = operands(kind, (3, 2), 5, 4, np.float32, True)
    settings = {"sizes": (3, 2), "reverse": False, **({"relu": True} if kind == "rnn" else {})}
    x[0, 1], x[1, 0], x[2, 3] = np.nan, np.inf, 1e-42
    with np.errstate(all="ignore"):
        same(*[f(x, *states, *weights, **settings) for f in forward], 2e-5)
    native = forward[0]
    assert native(x.astype(np.float16), *states, *weights, **settings) is NotImplemented
    assert native(x.astype(np.float64), *states, *weights, **settings) is NotImplemented
    assert native(x[:4], *states, *weights, **settings) is NotImplemented
    assert native(x[:, :3], *states, *weights, **settings) is NotImplemented
    assert native(x[:0], *states, *weights, **{**settings, "sizes": ()}) is NotImplemented
