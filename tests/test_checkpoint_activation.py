"""utils.checkpoint: the same numbers with less memory, in every way of going backward."""

import gc
import inspect
import weakref
from contextlib import contextmanager

import pytest

import framework as fw
from framework.autograd import gradcheck, gradgradcheck
from framework.errors import AutogradError
from framework.utils import checkpoint as C
from framework.utils.checkpoint import CheckpointError, checkpoint, checkpoint_sequential


@pytest.fixture
def net():
    fw.manual_seed(0)
    return fw.nn.Sequential(
        fw.nn.Linear(4, 8),
        fw.nn.Tanh(),
        fw.nn.Dropout(0.5),
        fw.nn.Linear(8, 8),
        fw.nn.GELU(),
        fw.nn.Linear(8, 3),
    )


def directly(function, *args, **kwargs):
    return function(*args, **kwargs)


def assert_same(a, b):
    assert len(a) == len(b)
    for x, y in zip(a, b):
        assert (x is None) == (y is None)
        assert x is None or fw.allclose(x, y, rtol=1e-5, atol=1e-7), (x, y)


@pytest.mark.parametrize("how", [checkpoint, lambda net, x: checkpoint_sequential(net, 3, x)])
def test_gradients_of_arguments_and_parameters(net, how):
    x = fw.randn(5, 4, requires_grad=True)
    results = []
    for call in (directly, how):
        fw.manual_seed(1)  # dropout drops the same elements in both, and in both calls of one
        net.zero_grad()
        x.grad = None
        y = call(net, x)
        after = fw.rand(1)
        y.square().sum().backward()
        results.append([y.detach(), after, fw.rand(1), x.grad, *[p.grad for p in net.parameters()]])
    assert_same(*results)


def test_random_numbers_need_not_be_kept():
    x = fw.ones(1000, requires_grad=True)
    for keep in (True, False):
        y = checkpoint(lambda x: fw.nn.functional.dropout(x, 0.5), x, preserve_rng_state=keep)
        y.sum().backward()
        assert bool(((x.grad != 0) == (y != 0)).all()) == keep
        x.grad = None


def test_second_derivatives(net):
    net.eval()
    x = fw.randn(5, 4, requires_grad=True)
    results = []
    for call in (directly, checkpoint):
        (g,) = fw.autograd.grad(call(net, x).square().sum(), x, create_graph=True)
        results.append(fw.autograd.grad(g.square().sum(), [x, *net.parameters()], allow_unused=True))
    assert_same(*results)

    def nested(x, y):
        return checkpoint(lambda a: checkpoint(fw.sin, a * y) * a, x)

    a, b = [fw.randn(3, dtype=fw.float64, requires_grad=True) for _ in range(2)]
    assert gradcheck(nested, (a, b), check_forward_ad=True)
    assert gradgradcheck(nested, (a, b), check_fwd_over_rev=True)


def test_what_the_function_closes_over():
    """Values computed outside, one from the other, get their gradients once."""
    w, x = fw.randn(4, requires_grad=True), fw.randn(4, requires_grad=True)
    calls, results = [], []
    for call in (directly, checkpoint):
        a = w * 2
        b = a.tanh()
        b.register_hook(calls.append)
        y = call(lambda x, a=a, b=b: (x * a + b).sin(), x)
        results.append(fw.autograd.grad(y.sum() + a.sum(), [x, w]))
    assert_same(*results)
    assert len(calls) == 2
    assert w.grad is None


def test_activations_are_dead_after_forward():
    alive = []

    def function(x):
        h = x.exp()
        alive.append(weakref.ref(h._array))
        return h.sin() * h

    x = fw.ones(10, requires_grad=True)
    gc.disable()
    try:
        function(x)
        y = function(x)
        assert alive[-1]() is not None
        y = checkpoint(function, x)
        assert alive[-1]() is None
        y.sum().backward()
        assert all(ref() is None for ref in alive[2:])
        node = weakref.ref(y._node)
        del y
        assert node() is None
    finally:
        gc.enable()


def test_arguments_and_outputs_of_every_kind():
    x, n = fw.ones(2, requires_grad=True), fw.tensor([1, 2])

    def function(d, flag, k=1, **more):
        assert flag == "yes" and more["t"].requires_grad
        return {"y": d["x"][0] * k + more["t"], "n": n, "s": "text", "same": d["x"][0], "none": None}

    t = fw.ones(2, requires_grad=True)
    out = checkpoint(function, {"x": (x,)}, "yes", k=3, t=t)
    assert out["n"] is n and out["s"] == "text" and out["none"] is None
    (out["y"] + out["same"]).sum().backward()
    assert x.grad.tolist() == [4, 4] and t.grad.tolist() == [1, 1]
    y = checkpoint(lambda a, b: a * b, x, x)
    assert fw.autograd.grad(y.sum(), x)[0].tolist() == [2, 2]
    a, b = checkpoint(lambda x: (x * 2, x * 3), x)
    assert fw.autograd.grad(b.sum(), x)[0].tolist() == [3, 3]
    outside = x * 5
    assert checkpoint(lambda: outside) is outside


def test_nothing_to_record():
    x, calls = fw.ones(2, requires_grad=True), []

    def function(x):
        calls.append(1)
        return x * 2

    with fw.no_grad():
        assert not checkpoint(function, x).requires_grad
    assert not checkpoint(function, x.detach()).requires_grad
    y = checkpoint(function, x).sum()
    with fw.no_grad():
        y.backward()
    assert x.grad.tolist() == [2, 2] and len(calls) == 4


def test_backward_twice():
    x = fw.ones(2, requires_grad=True)
    y = checkpoint(fw.exp, x).sum()
    y.backward(retain_graph=True)
    y.backward()
    assert fw.allclose(x.grad, 2 * x.exp())
    with pytest.raises(AutogradError, match="second time"):
        y.backward()


def test_changes_in_between_are_noticed():
    x = fw.ones(2, requires_grad=True)
    layer = fw.nn.Linear(2, 2)
    y = x * 1
    z = checkpoint(fw.sin, y)
    y.add_(1)
    with pytest.raises(AutogradError, match=r"checkpoint\(sin\).*in place by add_"):
        z.sum().backward()
    with pytest.raises(AutogradError, match="changed an argument in place"):
        checkpoint(lambda x: x.mul_(2).sin(), x * 1)
    z = checkpoint(lambda x: layer(x), x)
    with fw.no_grad():
        layer.weight.mul_(2)
    with pytest.raises(AutogradError, match="in place by mul_"):
        z.sum().backward()


def test_determinism_check():
    x = fw.ones(2, requires_grad=True)

    def make():
        calls = []

        def wavering(x):
            calls.append(1)
            return x.sin() if len(calls) == 1 else x.exp().sin()
        return wavering

    with pytest.raises(CheckpointError, match=r"checkpoint\(wavering\).*pass debug=True"):
        checkpoint(make(), x).sum().backward()
    with pytest.raises(CheckpointError, match="first: sin, output.*now: exp, sin, output"):
        checkpoint(make(), x, debug=True).sum().backward()
    checkpoint(make(), x, determinism_check="none").sum().backward()
    with pytest.raises(ValueError, match="got 'all'"):
        checkpoint(fw.sin, x, determinism_check="all")


def test_contexts_and_errors():
    x, log = fw.ones(2, requires_grad=True), []

    @contextmanager
    def noted(name):
        log.append(name)
        yield

    y = checkpoint(fw.sin, x, context_fn=lambda: (noted("first"), noted("again")))
    assert log == ["first"]
    y.sum().backward()
    assert log == ["first", "again"]
    with pytest.raises(ZeroDivisionError):
        checkpoint(lambda x: 1 / 0, x)
    for segments in (0, 4, 1.0):
        with pytest.raises(ValueError, match="segments"):
            checkpoint_sequential([fw.sin] * 3, segments, x)


def test_only_what_is_asked_for(net):
    net.eval()
    x = fw.randn(5, 4, requires_grad=True)
    y = checkpoint(net, x).sum()
    y.backward(inputs=[x])
    assert x.grad is not None and all(p.grad is None for p in net.parameters())


def test_signatures():
    theirs = pytest.importorskip("torch.utils.checkpoint", reason="compares with PyTorch's arguments")
    for name in ("checkpoint", "checkpoint_sequential"):
        ours, yours = [
            [(p.name, p.kind) for p in inspect.signature(getattr(m, name)).parameters.values()]
            for m in (C, theirs)
        ]
        ours = [p for p in ours if p[0] != "preserve_rng_state"]  # PyTorch's is among **kwargs
        assert ours == yours
