"""A 0-dim tensor wherever a number is a setting: it counts as its number, or is refused by name.

The calls are those of the sample table: each is watched, and made again with every number in it as a tensor.
"""

import inspect
import types

import numpy as np
import pytest
from table import ROWS, cast_inputs, flat, row_id, tensors

import framework as fw

# what PyTorch does with a tensor there is another function of it than with a number
OTHERS = {("max", 1): "maximum of two tensors", ("min", 1): "minimum of two tensors",
          ("histogram", 1): "the edges", ("quantile", 1): "a tensor of input's dtype",
          ("nanquantile", 1): "a tensor of input's dtype",
          ("gaussian_nll_loss", 2): "a variance, of the input's shape"}


class Spy:
    """The framework's namespaces; notes the calls that are made of their functions."""

    def __init__(self, home, calls):
        self._home, self._calls = home, calls

    def __getattr__(self, name):
        value = getattr(self._home, name)
        if isinstance(value, types.ModuleType):
            return Spy(value, self._calls)
        if not inspect.isfunction(value):
            return value

        def call(*args, **settings):
            self._calls.append((value, args, settings))
            return value(*args, **settings)
        return call


def numbers(function, args, settings):
    """The places of numbers among the arguments, and of those that have one by default."""
    for key, value in (*enumerate(args), *settings.items()):
        if type(value) in (int, float):
            yield key, value
    parameters = list(inspect.signature(function).parameters.values())
    for place, p in enumerate(parameters):
        free = p.kind is p.KEYWORD_ONLY or p.kind is p.POSITIONAL_OR_KEYWORD and place >= len(args)
        if free and p.name not in settings and type(p.default) in (int, float):
            yield p.name, p.default


def with_tensor(args, settings, key, value):
    if isinstance(key, int):
        return (*args[:key], value, *args[key + 1:]), settings
    return args, {**settings, key: value}


def outcome(function, args, settings, leaves):
    """The results, and the gradients of the leaves, as arrays."""
    fw.manual_seed(0)
    results = flat(function(*args, **settings))
    for r in results:
        assert not isinstance(r, fw.Tensor) or type(r._array) is np.ndarray, "a corrupt tensor"
    floating = [r for r in results if isinstance(r, fw.Tensor) and r.requires_grad]
    arrays = [r.detach().numpy() if isinstance(r, fw.Tensor) else r for r in results]
    if floating and leaves:
        total = sum(abs(r).sum() if r.is_complex() else r.sum() for r in floating)
        try:
            grads = fw.autograd.grad(total, leaves, allow_unused=True, retain_graph=True)
        except RuntimeError as error:
            return arrays, str(error)
        arrays += [None if g is None else g.detach().numpy() for g in grads]
    return arrays, ""


def same(got, want):
    assert got[1] == want[1], got[1]
    for g, w in zip(got[0], want[0], strict=True):
        if isinstance(w, np.ndarray):
            assert g.dtype == w.dtype, f"{g.dtype}, not {w.dtype}"
            np.testing.assert_allclose(g, w, rtol=1e-5, atol=1e-6)
        else:
            assert g == w


def calls_of(row):
    """(function, arguments, settings, leaves) of the calls that the row's samples make."""
    for sample in row.samples:
        calls = []
        given = tensors(cast_inputs(sample, np.float64), grad=sample.grad)
        fw.manual_seed(0)
        try:
            sample.call(Spy(fw, calls), *given)
        except Exception:
            continue  # needs more than functions of the namespaces: its calls are others' calls, too
        leaves = [a for a in given if isinstance(a, fw.Tensor) and a.requires_grad]
        yield from ((*call, leaves) for call in calls)


CALLED = [r for r in ROWS if r.namespace and r.samples]
CHECKED = set()


@pytest.mark.parametrize("row", CALLED, ids=row_id)
def test_numbers_as_tensors(row):
    wrong, seen = [], set()
    for function, args, settings, leaves in calls_of(row):
        if function.__name__.endswith("_") or settings.get("out") is not None:
            continue
        for key, value in numbers(function, args, settings):
            which = function, key, type(value)
            if which in seen or (function.__name__, key) in OTHERS:
                continue
            seen.add(which)
            try:
                want = outcome(function, args, settings, leaves)
            except Exception:
                continue  # a number that does not go with the other arguments
            try:
                same(outcome(function, *with_tensor(args, settings, key, fw.tensor(value)), leaves), want)
            except Exception as error:
                text = f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"
                wrong.append(f"{function.__name__}, argument {key!r}, {value!r}: {text}")
    CHECKED.update((function.__name__, key) for function, key, _ in seen)
    assert not wrong, "\n".join(wrong)


def test_known_ones_were_checked():
    """The sweep sees what it should see."""
    for call in CALLED:
        if call.name in ("leaky_relu", "huber_loss"):
            test_numbers_as_tensors(call)
    assert {("leaky_relu", "negative_slope"), ("huber_loss", "delta")} <= CHECKED


@pytest.mark.parametrize("scalar", [fw.tensor([0.1]), fw.tensor(0.1, requires_grad=True)],
                         ids=["1-dim", "recorded"])
def test_refused(scalar):
    """A tensor of one dimension is no number; a gradient that would be lost is not lost in silence."""
    F, x = fw.nn.functional, fw.tensor([-1.0, 2.0], requires_grad=True)
    for call in (F.leaky_relu, F.elu, F.celu, F.softplus, F.hardshrink, F.softshrink, fw.linalg.vector_norm,
                 lambda x, n: F.hardtanh(x, n, 2.0), lambda x, n: F.threshold(x, n, 0.0), F.rrelu,
                 lambda x, n: F.huber_loss(x, x, delta=n), lambda x, n: F.smooth_l1_loss(x, x, beta=n)):
        with pytest.raises(TypeError, match=r"must be a number, or a tensor of one without a grad.*item\(\)"):
            call(x, scalar)
