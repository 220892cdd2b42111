"""Backward writes gradients into the memory of those that nobody needs any more, and never into another's."""

import numpy as np
import pytest

import framework as fw
from framework import _native
from framework.autograd import engine

SHAPE = (40, 50)


@pytest.fixture(params=[1, 1 << 40], ids=["reused", "new"])
def reuse(request, monkeypatch):
    """Arrays of any size are reused, or none."""
    monkeypatch.setattr(engine, "LARGE", request.param)


def leaf(seed):
    return fw.from_numpy(np.random.default_rng(seed).normal(size=SHAPE)).requires_grad_()


def gradients(program, *extra):
    xs = [leaf(i) for i in range(3)]
    kept = program(*xs, *extra)
    return [x.grad.numpy() for x in xs], kept


def both(program, monkeypatch):
    """The gradients without reuse, which those with it must equal bit by bit."""
    monkeypatch.setattr(engine, "LARGE", 1 << 40)
    plain = gradients(program)
    monkeypatch.setattr(engine, "LARGE", 1)
    reused = gradients(program)
    for a, b in zip(plain[0], reused[0], strict=True):
        np.testing.assert_array_equal(a, b)
    return plain, reused


def tangle(a, b, c):
    y = (a * b + c).tanh() * a.sigmoid() + c * c.exp() - (a + b) + (a / (b * b + 1)).sin()
    return y + y.relu() * b + fw.where(y > 0, c, y) + y.sum(0) * y.max()


def test_the_same_gradients(monkeypatch):
    def program(a, b, c):
        seed = fw.ones(SHAPE, dtype=fw.float64)
        tangle(a, b, c).backward(seed)
        assert (seed == 1).all()
        tangle(a, b, c).square().mean().backward()  # into gradients that are there

    both(program, monkeypatch)


def test_a_graph_that_is_kept_gives_the_same_again(monkeypatch):
    def program(a, b, c):
        y = tangle(a, b, c).sum()
        y.backward(retain_graph=True)
        y.backward()

    both(program, monkeypatch)


def test_what_hooks_and_users_hold_stays(monkeypatch):
    def program(a, b, c):
        seen = []
        inner = a.tanh()
        inner.retain_grad()
        middle = inner.exp()
        middle.register_hook(lambda g: seen.append(g))
        y = (middle * b).sigmoid()
        y.grad_fn.register_hook(lambda into, out: seen.extend([*into, *out]))
        (y + c).backward(fw.ones(SHAPE, dtype=fw.float64))
        return [inner.grad.numpy(), *[g.numpy() for g in seen]]

    plain, reused = both(program, monkeypatch)
    for x, y in zip(plain[1], reused[1], strict=True):
        np.testing.assert_array_equal(x, y)


def test_gradients_for_inputs_in_the_middle(monkeypatch):
    def program(a, b, c):
        inner = (a * b).tanh()
        outer = (inner + c).exp()
        found = fw.autograd.grad(outer.sum(), [inner, c, a], retain_graph=True)
        outer.sum().backward()
        return [g.numpy() for g in found]

    plain, reused = both(program, monkeypatch)
    for x, y in zip(plain[1], reused[1], strict=True):
        np.testing.assert_array_equal(x, y)


def test_leaves_of_one_sum_do_not_share(reuse):
    a, b, c = leaf(0), leaf(1), leaf(2)
    (a + b + c).tanh().exp().sum().backward()
    wanted = a.grad.numpy().copy()
    for x in (a, b, c):
        np.testing.assert_array_equal(x.grad.numpy(), wanted)
        x.grad.zero_()


def test_a_hook_may_change_the_gradient_of_its_leaf(monkeypatch):
    def program(a, b, c):
        c.register_post_accumulate_grad_hook(lambda leaf: leaf.grad.zero_())
        ((a * b).exp() + c).tanh().sum().backward()

    both(program, monkeypatch)


def test_a_younger_leaf_is_filled_too(monkeypatch):
    def program(a, b, c):
        y = (a * b).exp()
        late = leaf(5)
        (y + late).tanh().sum().backward()
        c.grad = late.grad

    both(program, monkeypatch)


@pytest.mark.skipif(_native.module is None, reason="no native extension")
@pytest.mark.parametrize("threads", [1, 2])
def test_a_long_chain_needs_one_gradient(threads, monkeypatch):
    monkeypatch.setattr(engine, "LARGE", 1)
    before = fw.get_num_threads()
    fw.set_num_threads(threads)
    try:
        x = fw.rand(200_000, requires_grad=True)
        y, ran = x, []
        for _ in range(5):
            y = y.tanh()
        ran = []
        rule = y.grad_fn.op.rules[0]
        monkeypatch.setattr(rule, "_numpy", Watched(rule.on(y.detach().numpy()), ran))
        y.backward(fw.ones(200_000))
        places = {into for into in ran if into is not None}
        assert len(ran) == 5 and ran[0] is None and len(places) == 1
        assert x.grad.numpy().ctypes.data in places
    finally:
        fw.set_num_threads(before)


class Watched:
    """A kernel; ``ran`` gets the place that each call was told to write to."""

    def __init__(self, kernel, ran):
        self.kernel, self.ran, self.fold = kernel, ran, kernel.fold

    def __call__(self, *arguments, **out):
        self.ran.append(out["out"].ctypes.data if out else None)
        return self.kernel(*arguments, **out)


@pytest.fixture(params=["native", "python"])
def walk(request, monkeypatch):
    """The engine's walk in C++ and in Python."""
    if request.param == "python":
        monkeypatch.setattr(engine, "_walk_back", None)


def test_what_comes_through_is_the_gradient_that_was_given(walk, reuse):
    """``grad`` does not copy it, and counts its changes with the one given; what is saved is never given."""
    a, b = leaf(0), leaf(1)
    g = fw.ones(SHAPE, dtype=fw.float64)
    grad = fw.autograd.grad
    for found in (grad(a + b, [a, b], g), grad(a.reshape(-1), a, g.reshape(-1)), grad(a, a, g),
                  grad(fw.cat([a, b]), [a, b], fw.cat([g, g]))):
        assert all(fw.equal(x, g) and x._array.flags.writeable for x in found)
    (found,) = fw.autograd.grad(a + 1, a, g)
    assert found.data_ptr() == g.data_ptr()
    kept = leaf(2)
    y = (kept * g).sum()  # keeps g
    found.mul_(2)
    with pytest.raises(RuntimeError, match="in place"):
        y.backward()
    for program in (lambda: (a * b, b), lambda: (a @ b.mT, b), lambda: (a.exp(), a)):
        y, saved = program()
        before = saved.detach().clone()
        (found,) = fw.autograd.grad(y, a, fw.ones_like(y))
        found.zero_()
        assert fw.equal(saved, before)


def test_the_gradient_of_a_sum_repeats_the_one_that_was_given(walk, reuse):
    a = leaf(0)
    a.sum().backward()
    a.grad.add_(1)  # what backward writes is the leaf's own
    g = fw.full((), 3.0, dtype=fw.float64)
    (found,) = fw.autograd.grad(a.sum(), a, g)
    assert found.stride() == (0, 0) and found.data_ptr() == g.data_ptr() and (found == 3).all()
    with pytest.raises(fw.errors.AutogradError, match="clone"):
        found.zero_()
    before = found._version
    g.add_(1)
    assert found._version > before and (found == 4).all() and found.clone().add_(1).sum() == 5 * found.numel()


def test_gradients_of_leaves_are_their_own(walk, reuse):
    a, b = leaf(0), leaf(1)
    g = fw.ones(SHAPE, dtype=fw.float64)
    (a + b).backward(g)
    (a.reshape(-1)).backward(g.reshape(-1), inputs=[a])
    c = leaf(2)
    c.backward(g)
    d = leaf(3)
    (d * 1).t().t().backward(g, inputs=[d])
    for x in (a, b, c, d):
        x.grad.zero_()
    assert (g == 1).all() and a.grad.data_ptr() != b.grad.data_ptr()


def test_results_of_one_call_do_not_share_what_nobody_gave():
    a, b, w = leaf(0), leaf(1), leaf(2)
    ga, gb = fw.autograd.grad((a + b).exp().sum(), [a, b])
    wanted = gb.clone()
    z = (w * gb).sum()
    ga.mul_(100)
    z.backward()
    assert fw.equal(w.grad, wanted)


def test_gradients_of_parameters_count_with_the_one_given():
    p, w = fw.nn.Parameter(fw.ones(3)), fw.ones(3, requires_grad=True)
    for g in (fw.ones(3), fw.nn.Parameter(fw.ones(3))):
        (found,) = fw.autograd.grad(p + 1, [p], g)
        z = (w * g.detach()).sum()
        found.mul_(100)
        with pytest.raises(RuntimeError, match="in place"):
            z.backward()


def test_what_a_function_of_ones_own_saved_is_not_given_away(walk):
    class Half(fw.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return (x * x).sum() / 2

        @staticmethod
        def backward(ctx, g):
            return ctx.saved_tensors[0]

    a = fw.full((3,), 2.0, requires_grad=True)
    (found,) = fw.autograd.grad(Half.apply(a.reshape(3)), a)
    found.zero_()
    assert a.tolist() == [2, 2, 2]


def twice(program, *leaves):
    """The gradients after two backward passes, and of one."""
    for _ in range(2):
        program(*leaves).sum().backward()
    return [x.grad / 2 for x in leaves]


@pytest.mark.parametrize("reentrant", [True, False])
def test_checkpoints_and_batches_give_each_place_its_own(walk, reentrant):
    """Of a sum both operands get one gradient: it must not become the memory of both."""
    checkpoint = fw.utils.checkpoint.checkpoint
    programs = {
        "arguments": lambda a, b: checkpoint(lambda x, y: (x + y).exp(), a, b, use_reentrant=reentrant),
        "parameters": lambda a, b: checkpoint(lambda x: ((a + b) * x).exp(), a, use_reentrant=reentrant),
        "batch": lambda a, b: fw.vmap(lambda x, y: (x + y).exp())(a, b),
    }
    plain = {"arguments": lambda a, b: (a + b).exp(), "parameters": lambda a, b: ((a + b) * a).exp(),
             "batch": lambda a, b: (a + b).exp()}
    for name, program in programs.items():
        found = twice(program, leaf(0), leaf(1))
        for x, y in zip(found, twice(plain[name], leaf(0), leaf(1))):
            np.testing.assert_allclose(x.numpy(), y.numpy(), 1e-12, err_msg=name)
    a, b = leaf(0), leaf(1)
    g = [fw.ones(SHAPE, dtype=fw.float64) for _ in range(2)]
    ys = checkpoint(lambda x: (a + x, x * 2), b, use_reentrant=reentrant)
    fw.autograd.backward(list(ys), g)
    a.grad.zero_(), b.grad.zero_()
    assert all((x == 1).all() for x in g)
