"""Backward's walk in C++ beside the engine's own in Python: the same bits, errors and graphs afterwards."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import framework as fw
from framework import _native
from framework.autograd import engine

F = fw.nn.functional
native = pytest.mark.skipif(engine._walk_back is None, reason="no native kernels here")


def rand(*shape: int, seed: int = 0, dtype: Any = fw.float32) -> fw.Tensor:
    return fw.randn(*shape, generator=fw.Generator().manual_seed(seed), dtype=dtype).requires_grad_()


def both(monkeypatch: pytest.MonkeyPatch, run: Callable) -> list:
    """What a run gives by the one walk and by the other."""
    found = [run()]
    with monkeypatch.context() as m:
        m.setattr(engine, "_walk_back", None)
        m.setattr(engine, "_needed_nodes", None)
        found.append(run())
    return found


def same(a: Any, b: Any) -> None:
    assert type(a) is type(b)
    if isinstance(a, (tuple, list)):
        assert len(a) == len(b)
        for x, y in zip(a, b):
            same(x, y)
    elif isinstance(a, fw.Tensor):
        assert a.dtype is b.dtype and a.shape == b.shape and a.requires_grad == b.requires_grad
        x, y = a.detach().to_dense(), b.detach().to_dense()
        x, y = (t.float() if t.dtype is fw.bfloat16 else t for t in (x, y))
        np.testing.assert_array_equal(x.numpy(), y.numpy())
    else:
        assert a == b


def elementwise(x: fw.Tensor, y: fw.Tensor) -> fw.Tensor:
    z = x * y + x.exp() / (y * y + 1) - 3 * x
    return (z.tanh() * z).sum() + (x - y[0]).square().mean()


def several_outputs(x: fw.Tensor, y: fw.Tensor) -> fw.Tensor:
    a, _, c = x.split(1)
    var, mean = fw.var_mean(y, dim=1)
    values, _ = y.sort(dim=0)
    return (a * c).sum() + (var * mean).sum() + (values[0] * x[0]).sum() + y.max(dim=1).values.sum()


def layers(x: fw.Tensor, y: fw.Tensor) -> fw.Tensor:
    h = F.relu(F.linear(x, y, y[:, 0]))
    h = F.layer_norm(h, (h.shape[-1],))
    return F.cross_entropy(h @ y, fw.tensor([0, 1, 2])) + F.softmax(h, dim=0).square().sum()


def masked(x: fw.Tensor, y: fw.Tensor) -> fw.Tensor:
    z = fw.where(x > 0, x, fw.zeros_like(x))
    return (z.sqrt() * y).sum() + fw.clamp(y, -0.5, 0.5).sum() + (x * 0).abs().sqrt().sum()


def views(x: fw.Tensor, y: fw.Tensor) -> fw.Tensor:
    z = x.t().reshape(-1)[1:].unsqueeze(0).expand(2, -1)
    w = y.clone()
    w[0] = x[1] * 2
    w.mul_(3)
    return (z * z).sum() + (w * w).sum() + fw.cat([x, y]).cumsum(0).sum() + x.sum()


def broadcast(x: fw.Tensor, y: fw.Tensor) -> fw.Tensor:
    column, one, number = y[:, :1].contiguous(), x[:1, :1] * 1, (x * y).sum()
    z = x * y[0] + column / (x * x + 1) - one * y + x / number
    front, empty = y.expand(2, 3, 3) * x[None], (x[:0] * y[:1] + y[0]).sum()
    return (z * column.t()).sum() + (front ** 2 * one[0]).sum() + (x[None, :, :1] - y).abs().sum() + empty


FUNCTIONS = [elementwise, several_outputs, layers, masked, views, broadcast]


@native
@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize("dtype", [fw.float32, fw.float64, fw.bfloat16, fw.float16])
def test_leaves_get_the_same_gradients(function: Callable, dtype: fw.dtype,
                                       monkeypatch: pytest.MonkeyPatch) -> None:
    def run() -> list:
        x, y = rand(3, 3, dtype=dtype), rand(3, 3, seed=1, dtype=dtype)
        loss = function(x, y)
        loss.backward(retain_graph=True)
        first = [x.grad.clone(), y.grad.clone()]
        loss.backward(gradient=fw.full_like(loss, 0.5))
        with pytest.raises(fw.errors.AutogradError, match="second time") as error:
            loss.backward()
        return [*first, x.grad, y.grad, str(error.value)]
    same(*both(monkeypatch, run))


@native
@pytest.mark.parametrize("function", FUNCTIONS)
def test_live_gradients_and_chosen_inputs(function: Callable, monkeypatch: pytest.MonkeyPatch) -> None:
    def run() -> list:
        x, y = rand(3, 3, dtype=fw.float64), rand(3, 3, seed=1, dtype=fw.float64)
        between = x * 2
        loss = function(between, y)
        gx, gb, gy = fw.autograd.grad(loss, (x, between, y), create_graph=True)
        second = fw.autograd.grad((gx * gb).sum() + gy.square().sum(), (x, y), retain_graph=True)
        only, = fw.autograd.grad(gx.sum(), [y], allow_unused=True, retain_graph=True)
        (gb * gy).sum().backward(inputs=[y])
        return [gx, gb, gy, *second, only, x.grad, y.grad]
    same(*both(monkeypatch, run))


@native
def test_complex_gradients_and_functions_of_the_user(monkeypatch: pytest.MonkeyPatch) -> None:
    class Twice(fw.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: fw.Tensor) -> tuple:
            ctx.save_for_backward(x)
            return x * 2, x * 3

        @staticmethod
        def backward(ctx: Any, g: fw.Tensor, h: fw.Tensor) -> fw.Tensor:
            x, = ctx.saved_tensors
            return 2 * g + 3 * h + 0 * x

    def run() -> list:
        x = rand(4, dtype=fw.complex128)
        (x * x.conj() * x.exp()).real.sum().backward()
        y = rand(4)
        a, b = Twice.apply(y)
        (a * b).sum().backward()
        return [x.grad, y.grad]
    same(*both(monkeypatch, run))


@native
def test_hooks_and_sparse_gradients(monkeypatch: pytest.MonkeyPatch) -> None:
    def run() -> list:
        seen: list = []
        x, table = rand(3, 2), rand(5, 2, seed=1)
        z = x * 3
        z.register_hook(lambda g: g * 2)
        z.register_hook(lambda g: seen.append(g.clone()))
        x.register_hook(lambda g: g + 1)
        x.register_post_accumulate_grad_hook(lambda t: seen.append(t.grad.clone()))
        rows = F.embedding(fw.tensor([1, 1, 4]), table, sparse=True)
        (z * rows).sum().backward()
        return [x.grad, table.grad, *seen]
    same(*both(monkeypatch, run))


@native
def test_changed_values_are_told_of_in_the_same_words(monkeypatch: pytest.MonkeyPatch) -> None:
    def run() -> str:
        x = rand(3)
        y = x.exp()
        loss = (y * y).sum()
        y.add_(1)
        with pytest.raises(fw.errors.AutogradError) as error:
            loss.backward()
        return str(error.value)
    one, other = both(monkeypatch, run)
    assert one == other and "changed in place by add_" in one


@native
def test_gradients_of_leaves_are_nobody_elses(monkeypatch: pytest.MonkeyPatch) -> None:
    def run() -> list:
        x, y = rand(3), rand(3, seed=1)
        given = fw.ones(3)
        (x + y).backward(given)
        x.grad.add_(5)
        return [given, x.grad, y.grad]
    one, other = both(monkeypatch, run)
    same(one, other)
    assert one[0].tolist() == [1, 1, 1] and one[2].tolist() == [1, 1, 1]


@native
def test_long_chains_and_wide_graphs(monkeypatch: pytest.MonkeyPatch) -> None:
    def run() -> list:
        x = rand(2)
        y = x
        for i in range(5000):
            y = y * 1.0001 if i % 3 else y + x
        return [fw.autograd.grad(y.sum(), x)[0]]
    same(*both(monkeypatch, run))


@native
def test_a_node_made_afterwards_has_a_number_between() -> None:
    """So are nodes of compiled functions that somebody asks for later."""
    x = rand(3)
    y = x.exp()
    z = y * 2 + y
    y.grad_fn.seq += 0.5
    z.sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), 3 * np.exp(x.detach().numpy()), 1e-6)


@native
def test_ctrl_c_ends_a_walk() -> None:
    import signal

    x = rand(2)
    y = x
    for _ in range(3000):
        y = y * 1.0001

    def strike(g: fw.Tensor) -> None:
        signal.raise_signal(signal.SIGINT)
    y.register_hook(strike)
    z = y * 2
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            z.sum().backward()
    finally:
        signal.signal(signal.SIGINT, before)
    assert x.grad is None


class _Odd:
    """What looks like a node, and is none."""

    edges: Any = ()
    seq: Any = 1
    hooks = None
    kept = versions = shapes = None
    settings: dict = {}
    op: Any = None


def odd(**parts: Any) -> _Odd:
    made = _Odd()
    for name, value in parts.items():
        setattr(made, name, value)
    return made


@native
@pytest.mark.parametrize("node", [
    1, "node", odd(seq="x"), odd(seq=None), odd(edges=5), odd(edges=(1,)), odd(edges=(odd(),), op=7),
    odd(edges=(None,)), odd(seq=2**80), odd(hooks=3),
    fw.node.Node(None, (1, 2), None, None, {}, None), fw.node.Node(F.relu, (None, None), 3, 4, 5, 6),
    fw.node.Node(fw.ops.OPS[0], ("a",), {}, [(1,)], None, None),
    fw.node.Node(fw.ops.OPS[0], ("a",), {}, [([], 0)], None, None)])
def test_what_is_no_node_is_an_error(node: Any) -> None:
    g = np.ones(3, np.float32)
    for needed in (None, {node}):
        try:
            engine._walk_back({node: g}, False, False, needed, set(), {})
        except Exception as error:
            assert not isinstance(error, SystemError)
    try:
        engine._needed_nodes([node, node], {node})
    except Exception as error:
        assert not isinstance(error, SystemError)


@native
def test_arguments_of_other_types_are_errors() -> None:
    for args in [(1, True, True, None, set(), {}), ({}, True, True, 5, set(), {}),
                 ({}, True, True, None, [], {}), ({}, True, True, None, set(), None)]:
        with pytest.raises(TypeError):
            engine._walk_back(*args)
    with pytest.raises(TypeError):
        engine._needed_nodes(5, set())
    assert engine._walk_back({}, True, False, None, set(), {}) is None
    assert _native.module is not None
