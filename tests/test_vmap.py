"""vmap: rules against the loop, borders, randomness, what is refused."""

import warnings

import numpy as np
import pytest
import vmap_rows
from table import ROWS

import framework as fw
from framework import func as F
from framework.ops.record.batched import DataDependentError

# rows of each family; ``python tests/vmap_rows.py`` takes them all
CHOSEN = [
    "add", "mul", "where", "clamp", "tanh", "pow", "sum", "amax", "var", "norm", "softmax", "logsumexp",
    "sort", "topk", "gather", "scatter", "index_select", "__getitem__", "__setitem__", "embedding",
    "matmul", "linear", "einsum", "solve", "inv", "cholesky", "qr", "eigh", "conv1d", "conv2d",
    "conv_transpose2d", "max_pool2d", "avg_pool2d", "layer_norm", "batch_norm", "group_norm",
    "cross_entropy", "mse_loss", "cat", "stack", "permute", "reshape", "expand", "diagonal", "unfold",
    "flip", "roll", "pad", "scaled_dot_product_attention", "cumsum", "median", "masked_select", "fft",
    "one_hot"]


@pytest.mark.parametrize("name", CHOSEN)
def test_rows(name):
    rows = [row for row in ROWS if row.name == name]
    assert rows
    compared = set()
    for row in rows:
        for sample in row.samples[:6]:
            try:
                compared.add(vmap_rows.check(sample))
            except DataDependentError:
                compared.add("by value")
    assert compared & {"values", "derivatives"} or name in ("masked_select", "one_hot")


def test_second_derivatives():
    for name in ("tanh", "matmul", "softmax", "conv1d", "cumsum"):
        (row, *_) = [row for row in ROWS if row.name == name]
        assert vmap_rows.check(row.samples[0], order=2) == "derivatives"


@pytest.mark.parametrize("f, shapes", [
    (lambda x, y: (x * y).sin() + x, [(3,), (3,)]),
    (lambda x, y: fw.linalg.solve(x + 5 * fw.eye(3, dtype=x.dtype), y), [(3, 3), (3, 2)]),
    (lambda x, y: fw.nn.functional.conv1d(x, y), [(2, 3, 6), (4, 3, 2)]),
    (lambda x, y: x @ y, [(3,), (3, 2)]),
    (lambda x, y: fw.gather(x, 0, y.argsort(0)), [(3,), (3,)]),
])
def test_nested_twice(f, shapes):
    x, y = (fw.randn(2, *shapes[0], dtype=fw.float64), fw.randn(4, *shapes[1], dtype=fw.float64))
    found = F.vmap(F.vmap(f, (None, 0)), (0, None))(x, y)
    expected = fw.stack([fw.stack([f(a, b) for b in y]) for a in x])
    np.testing.assert_allclose(found.numpy(), expected.numpy(), rtol=1e-8, atol=1e-12)
    both = F.vmap(F.vmap(F.grad(lambda a, b: f(a, b).sum(), (0, 1)), (None, 0)), (0, None))(x, y)
    for k in (0, 1):
        slope = F.grad(lambda a, b: f(a, b).sum(), (0, 1))
        each = fw.stack([fw.stack([slope(a, b)[k] for b in y]) for a in x])
        np.testing.assert_allclose(both[k].numpy(), each.numpy(), rtol=1e-8, atol=1e-12)


def test_one_call_of_each_op():
    calls = []

    def seen(event, proceed):
        calls.append(event.name)
        return proceed(*event.inputs, **event.settings)

    x = fw.randn(50, 3)
    with fw.seam.intercept(seen):
        F.vmap(lambda x: x.sin().sum())(x)
    assert calls == ["batch_in", "sin", "sum", "batch_out"]


def test_reads_are_refused_with_the_line():
    for read in (lambda x: x.sum().item(), lambda x: float(x.sum()), lambda x: bool(x.sum() > 0)):
        with pytest.raises(DataDependentError, match="line .* of .*test_vmap.py"):
            F.vmap(lambda x: x * read(x))(fw.ones(2, 3))
    with pytest.raises(DataDependentError, match="all examples share"):
        shared = fw.zeros(3)
        F.vmap(lambda x: shared.add_(x))(fw.ones(2, 3))
    assert shared.tolist() == [0, 0, 0]


def test_in_place_inside():
    x = fw.randn(4, 3)

    def f(a):
        y = a.clone()
        y[0] = y[1] * 2
        y.mul_(3).add_(a)
        y[1:].neg_()
        return y.sum()
    expected = fw.stack([f(a) for a in x])
    assert fw.allclose(F.vmap(f)(x), expected)
    assert fw.allclose(F.vmap(F.grad(f))(x), fw.stack([F.grad(f)(a) for a in x]))


def test_copies_in_any_order_are_copies():
    def f(a):
        b = a * 1
        last = b[None, None].clone(memory_format=fw.channels_last)
        copies = b.t().clone(), last, b.t().contiguous()
        b.mul_(0)
        return copies
    x = fw.randn(2, 3, 4)
    for found, expected in zip(F.vmap(f)(x), (x.mT, x[:, None, None], x.mT)):
        assert fw.equal(found, expected)


def test_gradients_from_outside():
    x, w = fw.randn(4, 3, dtype=fw.float64), fw.randn(5, 3, dtype=fw.float64, requires_grad=True)

    def f(x, w):
        return ((w @ x).tanh() ** 2).sum()
    y = F.vmap(lambda a: f(a, w))(x).sum()
    (found,) = fw.autograd.grad(y, w, create_graph=True)
    total = sum(f(a, w) for a in x)
    (expected,) = fw.autograd.grad(total, w, create_graph=True)
    assert fw.allclose(found, expected)
    assert fw.allclose(*[fw.autograd.grad((g ** 2).sum(), w)[0] for g in (found, expected)])
    push = F.jvp(lambda w: F.vmap(lambda a: f(a, w))(x), (w.detach(),), (fw.ones(5, 3, dtype=fw.float64),))[1]
    each = [F.jvp(lambda w, a=a: f(a, w), (w.detach(),), (fw.ones(5, 3, dtype=fw.float64),))[1] for a in x]
    assert fw.allclose(push, fw.stack(each))


def test_randomness():
    x = fw.ones(4, 8)
    with pytest.raises(RuntimeError, match="drew random"):
        F.vmap(lambda a: fw.nn.functional.dropout(a))(x)
    same = F.vmap(lambda a: fw.nn.functional.dropout(a) + fw.randn(8), randomness="same")(x)
    assert (same == same[0]).all()
    different = F.vmap(lambda a: fw.nn.functional.dropout(a) + fw.randn(8), randomness="different")(x)
    assert not (different[0] == different[1]).any()


def test_chunks_and_dims():
    x = fw.randn(3, 7)
    f = F.vmap(lambda d: (d["x"].cumsum(0), fw.ones(2)), in_dims=({"x": 1},), out_dims=(1, None),
               chunk_size=3)
    found = f({"x": x})
    assert fw.allclose(found[0], x.cumsum(0)) and found[1].shape == (2,)


def test_leftover_ops_warn_once():
    x = fw.rand(3, 4)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        from framework.ops.record import batched
        batched._warned.discard("histc")
        for _ in range(2):
            F.vmap(lambda a: fw.histc(a, 4, 0, 1))(x)
    assert ["histc" in str(w.message) for w in caught] == [True]


def test_gradients_of_a_batch_in_one_backward():
    x, w = [fw.randn(3, dtype=fw.float64, requires_grad=True) for _ in range(2)]
    y, z = (x * w).tanh(), (x**2).sum()
    many, numbers = fw.randn(5, 3, dtype=fw.float64), fw.randn(5, dtype=fw.float64)
    found = fw.autograd.grad([y, z], [x, w], [many, numbers], create_graph=True, is_grads_batched=True)
    each = [fw.autograd.grad([y, z], [x, w], [g, h], create_graph=True) for g, h in zip(many, numbers)]
    for k, g in enumerate(found):
        assert fw.allclose(g, fw.stack([one[k] for one in each]))
    again = [
        fw.autograd.grad(sum((g**2).sum() for g in gs), w, retain_graph=True)[0]
        for gs in (found, [g for one in each for g in one])
    ]
    assert fw.allclose(*again)
    unused = fw.ones(2, requires_grad=True)
    batch = {"is_grads_batched": True, "materialize_grads": True}
    (zeros,) = fw.autograd.grad(x * 2, [unused], fw.eye(3).double(), **batch)
    assert zeros.shape == (3, 2)
    with pytest.raises(ValueError, match="same number"):
        fw.autograd.grad(x * 2, x, is_grads_batched=True)


def test_a_function_with_a_rule_of_its_own():
    calls = []

    class Scaled(fw.autograd.Function):
        @staticmethod
        def forward(x, k):
            return x * x * k

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.save_for_backward(inputs[0])
            ctx.k = inputs[1]

        @staticmethod
        def backward(ctx, g):
            return 2 * ctx.saved_tensors[0] * g * ctx.k, None

        @staticmethod
        def vmap(info, in_dims, x, k):
            calls.append((info.batch_size, info.randomness, in_dims, tuple(x.shape)))
            return Scaled.apply(x, k), 0

    w = fw.randn(3, dtype=fw.float64, requires_grad=True)
    x = fw.randn(4, 3, dtype=fw.float64, requires_grad=True)

    def f(t):
        return Scaled.apply(t.sin() * w, 3.0).sum()
    found, expected = F.vmap(f)(x), fw.stack([f(t) for t in x])
    assert fw.allclose(found, expected) and calls == [(4, "error", (0, None), (4, 3))]
    first = [fw.autograd.grad(y.sum(), [x, w], create_graph=True) for y in (found, expected)]
    second = [fw.autograd.grad((a**2).sum() + (b**3).sum(), [x, w]) for a, b in first]
    for pair in (first, second):
        assert all(fw.allclose(a, b) for a, b in zip(*pair))
    assert fw.allclose(F.vmap(F.grad(f))(x), fw.stack([F.grad(f)(t) for t in x]))
    assert fw.allclose(F.vmap(F.vmap(f))(fw.stack([x, x])), fw.stack([expected, expected]))
    Scaled.generate_vmap_rule = True
    with pytest.raises(RuntimeError, match="not both"):
        F.vmap(f)(x)
    del Scaled.vmap
    assert fw.allclose(F.vmap(f)(x), expected)


@pytest.mark.parametrize("kind", ["RNN", "LSTM", "GRU"])
def test_recurrent_layers(kind):
    module = getattr(fw.nn, kind)(3, 4, bidirectional=True).double()
    x, weights = fw.randn(3, 5, 2, 3, dtype=fw.float64), dict(module.named_parameters())

    def f(weights, t):
        return F.functional_call(module, weights, (t,))[0].sin().sum()
    for argnum in (0, 1):
        slope = F.grad(f, argnum)
        found, each = F.vmap(slope, (None, 0))(weights, x), [slope(weights, t) for t in x]
        for name in weights if argnum == 0 else [None]:
            pick = (lambda g, name=name: g[name]) if name else (lambda g: g)
            assert fw.allclose(pick(found), fw.stack([pick(g) for g in each]))
