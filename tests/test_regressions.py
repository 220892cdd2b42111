"""Bugs that were found once: each test failed before its fix."""

import asyncio
import signal
import time
import warnings

import numpy as np
import pytest

import framework as fw
from framework.backends import move
from framework.device import CPU
from framework.errors import AutogradError, DTypeError


def leaf(*values, dtype=fw.float64):
    return fw.tensor(values, dtype=dtype, requires_grad=True)


MASKED = {
    "exp": (fw.exp, 1000.0), "exp2": (fw.exp2, 1e5), "expm1": (fw.expm1, 1000.0),
    "sinh": (fw.sinh, -1000.0), "cosh": (fw.cosh, 1000.0), "log": (fw.log, 0.0),
    "sqrt": (fw.sqrt, 0.0), "sqrt of a negative": (fw.sqrt, -1.0), "rsqrt": (fw.rsqrt, 0.0),
    "reciprocal": (fw.reciprocal, 0.0), "one over": (lambda x: 1 / x, 0.0),
    "quotient": (lambda x: x / x, 0.0), "power of itself": (lambda x: x ** x, 0.0),
    "power": (lambda x: x ** -0.5, 0.0), "log over x": (lambda x: fw.log(x) / x, 0.0),
    "asin": (fw.asin, 1.0),
}


@pytest.mark.parametrize("name", MASKED)
def test_masked_branch_gives_zero_to_second_order(name):
    function, point = MASKED[name]
    x = leaf(point, 0.5)
    y = fw.where(fw.tensor([False, True]), function(x), 0.0).sum()
    for _ in range(2):
        (g,) = fw.autograd.grad(y, x, create_graph=True)
        assert g.tolist()[0] == 0 and np.isfinite(g.tolist()[1])
        y = g.sum()


def test_a_gradient_caught_on_the_way_frees_nothing_below():
    x = leaf(1.0, 2.0)
    y = x.exp()
    fw.autograd.grad((y * y).sum(), y)
    y.sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), y.detach().numpy())


def test_grad_shares_no_memory_with_what_a_hook_saw_or_gave():
    x, seen = leaf(1.0, 2.0), []
    x.register_hook(seen.append)
    (x * 2).sum().backward()
    (x * 2).sum().backward()
    assert seen[0].tolist() == [2.0, 2.0] and x.grad.tolist() == [4.0, 4.0]
    x, own = leaf(1.0, 2.0), fw.tensor([5.0, 5.0], dtype=fw.float64)
    x.register_hook(lambda g: own)
    (x * 2).sum().backward()
    x.grad.zero_()
    assert own.tolist() == [5.0, 5.0]


def test_retained_gradients_have_memory_of_their_own_and_come_after_hooks():
    y = leaf(1.0, 2.0) * 2
    y.retain_grad()
    z = y + 1
    z.retain_grad()
    y.register_hook(lambda g: g * 3)
    g = fw.ones(2, dtype=fw.float64)
    z.backward(g)
    z.grad.zero_()
    assert g.tolist() == [1.0, 1.0] and y.grad.tolist() == [3.0, 3.0]


def test_a_hook_may_not_change_the_dtype():
    x = leaf(1.0, dtype=fw.float32)
    x.register_hook(lambda g: g.double())
    with pytest.raises(DTypeError, match="hook"):
        (x * 2).backward()
    assert x.grad is None and fw.is_grad_enabled()


def test_removing_a_handle_twice_leaves_the_other_hook():
    x, calls = leaf(1.0), []
    hook = calls.append
    first, _ = x.register_hook(hook), x.register_hook(hook)
    first.remove()
    first.remove()
    (x * 2).backward()
    assert len(calls) == 1


def test_backward_to_inputs_runs_post_accumulate_hooks():
    x, seen = leaf(1.0), []
    x.register_post_accumulate_grad_hook(lambda p: seen.append(p.grad.tolist()))
    (x * 2).backward(inputs=[x])
    assert seen == [[2.0]]


@pytest.mark.parametrize("gradient", [3.0, np.ones(1)])
def test_a_gradient_must_be_a_tensor(gradient):
    with pytest.raises(TypeError, match="must be a Tensor"):
        (leaf(1.0) * 2).backward(gradient)


def test_no_grad_around_generators_and_coroutines():
    seen = []

    @fw.no_grad()
    def steps():
        try:
            yield 1
        except KeyError:
            seen.append(fw.is_grad_enabled())
            yield 2
        finally:
            seen.append(fw.is_grad_enabled())

    it = steps()
    next(it)
    assert it.throw(KeyError()) == 2 and fw.is_grad_enabled()
    it.close()

    @fw.no_grad()
    async def task():
        seen.append(fw.is_grad_enabled())
        await asyncio.sleep(0)
        seen.append(fw.is_grad_enabled())

    async def other():
        await asyncio.sleep(0)
        assert fw.is_grad_enabled()

    async def both():
        await asyncio.gather(task(), other())

    asyncio.run(both())
    assert seen == [False] * 4 and fw.is_grad_enabled()


def test_set_grad_enabled_can_be_used_again():
    mode = fw.set_grad_enabled(False)
    for _ in range(2):
        with mode:
            assert not fw.is_grad_enabled()
        assert fw.is_grad_enabled()
    f, g = mode(fw.is_grad_enabled), mode(fw.is_grad_enabled)
    assert not f() and not g() and fw.is_grad_enabled()


def test_the_tensor_itself_as_a_named_argument_in_place():
    x = leaf(1.0, 2.0)
    y = x * 1
    y.mul_(other=y)
    y.sum().backward()
    assert x.grad.tolist() == [2.0, 4.0]


def test_a_leaf_is_not_copied_onto_itself():
    x = leaf(1.0)
    with pytest.raises(AutogradError, match="leaf"):
        x.copy_(x)


def test_no_warning_where_a_number_overflows():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        x = fw.zeros(2, dtype=fw.float16)
        x[0] = 1e6
        x.fill_(1e6)
        assert fw.full((1,), 1e6, dtype=fw.float16).tolist() == [float("inf")]
        assert fw.tensor([1e300]).tolist() == [float("inf")]
        fw.zeros(1)[:1] = 1e300


def test_a_signal_handler_may_run_in_place_ops_inside_a_kernel():
    failures = []

    def handler(number, frame):
        try:
            with fw.no_grad():
                fw.ones(50).add_(1.0).zero_()[0] = 2.0
        except Exception as error:
            failures.append(error)

    before = signal.signal(signal.SIGALRM, handler)
    signal.setitimer(signal.ITIMER_REAL, 0.001, 0.001)
    try:
        end, x = time.monotonic() + 0.3, fw.ones(60, 60)
        while time.monotonic() < end:
            (x @ x).tanh()
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert not failures


def test_notes_on_failures_before_the_kernel_and_in_place():
    for call in (lambda: fw.add("text", fw.ones(2)), lambda: fw.ones(2) & fw.ones(2),
                 lambda: fw.tensor([True]).sub_(fw.tensor([True]))):
        with pytest.raises(TypeError) as caught:
            call()
        assert any("while running" in note for note in caught.value.__notes__)


def test_moving_a_numpy_scalar_needs_no_cupy():
    moved = move(np.float32(2.0), CPU)
    assert type(moved) is np.ndarray and moved.shape == () and moved == 2


@pytest.mark.parametrize("function", [fw.floor, fw.ceil, fw.trunc])
def test_rounding_keeps_integers(function):
    x = fw.tensor([1, -2])
    y = function(x)
    assert y.dtype is fw.int64 and y.tolist() == [1, -2] and y.data_ptr() != x.data_ptr()
