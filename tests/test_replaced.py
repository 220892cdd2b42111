"""What users replace is called, and what goes wrong in their code is what they see."""

import dataclasses
from pathlib import Path

import pytest

import framework as fw

nn, F = fw.nn, fw.nn.functional
MODEL, X = nn.Sequential(nn.Linear(4, 5), nn.ReLU()), fw.randn(3, 4)
IMAGES = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU()).eval(), fw.randn(2, 3, 6, 6)
REPLACED = {
    "Linear.forward": (nn.Linear, "forward", MODEL, X), "ReLU.forward": (nn.ReLU, "forward", MODEL, X),
    "F.linear": (F, "linear", MODEL, X), "F.relu": (F, "relu", MODEL, X),
    "Module.__call__": (nn.Module, "__call__", MODEL, X),
    "Conv2d._conv_forward": (nn.Conv2d, "_conv_forward", *IMAGES),
    "Conv2d.forward": (nn.Conv2d, "forward", *IMAGES), "F.conv2d": (F, "conv2d", *IMAGES),
    "BatchNorm2d.forward": (nn.BatchNorm2d, "forward", *IMAGES), "F.batch_norm": (F, "batch_norm", *IMAGES),
}


@pytest.mark.parametrize("name", REPLACED)
def test_replaced_methods_and_functions_are_called(name, monkeypatch):
    """Joining layers is not to go around them."""
    home, attribute, model, x = REPLACED[name]
    own, calls = getattr(home, attribute), []

    def mine(*args, **settings):
        calls.append(args[0])
        return own(*args, **settings)
    with fw.no_grad():
        wanted = model(x)
        monkeypatch.setattr(home, attribute, mine)
        got = model(x)
    assert len(calls) == 1 if home is not nn.Module else calls == [model, *model]
    assert fw.allclose(got, wanted, atol=1e-5)


@dataclasses.dataclass(frozen=True)
class Frozen(Exception):
    code: int


def fail(*arguments):
    raise Frozen(3)


class Failing(nn.Module):
    forward = fail


class FailingBackward(fw.autograd.Function):
    forward = staticmethod(lambda ctx, x: x * 1)
    backward = staticmethod(fail)


class Noteless(Exception):
    code = 3

    def add_note(self, text):
        raise TypeError(text)


def refuse(*arguments):  # Python's own context managers set __traceback__, which no frozen dataclass survives
    raise Noteless


class FailingData(fw.utils.data.Dataset):
    __getitem__ = refuse

    def __len__(self):
        return 4


def backward_watched():
    with fw.autograd.detect_anomaly():
        FailingBackward.apply(fw.ones(2, requires_grad=True)).sum().backward()


@pytest.mark.parametrize("call", [
    lambda: nn.Sequential(nn.Sequential(Failing()))(X),
    lambda: nn.parallel.parallel_apply([Failing(), Failing()], [(X,), (X,)]),
    backward_watched,
    lambda: next(iter(fw.utils.data.DataLoader(FailingData()))),
    lambda: next(iter(fw.utils.data.DataLoader(range(4), collate_fn=refuse))),
    lambda: next(iter(fw.utils.data.DataLoader(FailingData(), num_workers=1, worker_type="thread"))),
    lambda: next(iter(fw.utils.data.DataLoader(FailingData(), num_workers=1))),
], ids=["module", "replicas", "anomaly mode", "data", "collate_fn", "worker threads", "workers"])
def test_an_error_that_takes_no_notes_comes_as_it_is(call):
    """What would be said of an error must not be raised in its place."""
    with pytest.raises((Frozen, Noteless)) as caught:
        call()
    assert caught.value.code == 3


def test_nobody_adds_notes_to_errors_that_may_take_none():
    package = Path(fw.__file__).parent
    found = [path for path in package.rglob("*.py") if ".add_note(" in path.read_text()]
    assert sorted(path.relative_to(package).as_posix() for path in found) == ["errors.py", "nn/module.py"]


@pytest.mark.parametrize("kind", [KeyboardInterrupt, SystemExit])
def test_a_graph_whose_backward_was_interrupted_says_so(kind):
    x = fw.ones(2, requires_grad=True)
    y = x * 2

    def interrupt(g):
        raise kind
    y.register_hook(interrupt)
    loss = (y + 1).sum()
    with pytest.raises(kind):
        loss.backward()
    with pytest.raises(fw.errors.AutogradError, match=f"interrupted by {kind.__name__}"):
        loss.backward()


def test_a_view_that_became_a_leaf_stays_one_and_a_retained_gradient_goes_along():
    class Double(fw.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            x.mul_(2)
            ctx.mark_dirty(x)
            return x

        @staticmethod
        def backward(ctx, g):
            return g * 2
    base = fw.ones(4)
    leaf, kept = base[:2], base[2:]
    leaf.requires_grad_()
    w = fw.ones(4, requires_grad=True)
    y = w * 1
    part = y[2:]
    part.retain_grad()
    Double.apply(y)
    (part * 3).sum().backward()
    assert part.grad is not None and fw.equal(part.grad, fw.full((2,), 3.0))
    assert leaf.is_leaf and not kept.requires_grad
