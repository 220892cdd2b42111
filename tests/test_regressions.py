"""Bugs that were found once: each test failed before its fix."""

import asyncio
import math
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


def test_the_result_of_a_norm_or_activation_may_be_changed_in_place():
    """As in ``x = norm(conv(x)); relu_(x)``: what backward needs is not the result."""
    F = fw.nn.functional
    for call in (F.instance_norm, lambda x: F.layer_norm(x, (4,)), lambda x: F.rms_norm(x, (4,)),
                 lambda x: F.group_norm(x, 1), lambda x: F.batch_norm(x, None, None, training=True),
                 F.silu, F.elu, F.selu, F.celu, lambda x: F.gelu(x, approximate="tanh")):
        values = np.random.default_rng(0).normal(size=(2, 3, 4))
        x, twin = (fw.tensor(values, requires_grad=True) for _ in range(2))
        y = call(x)
        y.mul_(2).relu_()
        y.sum().backward()
        fw.relu(call(twin) * 2).sum().backward()
        assert np.allclose(x.grad.numpy(), twin.grad.numpy())


def test_pairs_seen_as_a_complex_number_of_no_dimensions():
    """The gradient was a NumPy scalar, whose parts are copies: foreign memory was read after them."""
    x = fw.tensor(-0.7 + 1.1j, dtype=fw.complex128, requires_grad=True)
    (g,) = fw.autograd.grad((fw.view_as_real(x) ** 3).sum(), x, create_graph=True)
    (h,) = fw.autograd.grad(g.real + 0.5 * g.imag, x)
    assert np.allclose([g.item(), h.item()], [3 * 0.49 + 3.63j, -4.2 + 3.3j])


@pytest.mark.parametrize("step", [fw.floor, fw.ceil, fw.trunc, fw.round, fw.sign, fw.angle,
                                  lambda x: x // 2, lambda x: fw.div(x, 2, rounding_mode="trunc")])
def test_the_derivative_of_a_step_is_zero_whatever_comes_in(step):
    x = leaf(-0.3, 0.2, 2.5)
    y = step(x)
    assert y.requires_grad
    (g,) = fw.autograd.grad(y, x, fw.tensor([float("nan"), float("inf"), 1.0], dtype=fw.float64))
    assert g.tolist() == [0, 0, 0]


def test_limits_of_clamp():
    nan = float("nan")
    x = fw.tensor([1.0, 2.0])
    assert np.isnan(x.clamp(min=fw.tensor([nan, 0.0])).numpy()).tolist() == [True, False]
    assert np.isnan(x.clamp(max=fw.tensor([nan, 0.0])).numpy()).tolist() == [True, False]
    small = fw.tensor([1, 200], dtype=fw.uint8)
    assert small.clamp(-1, 100).tolist() == [1, 100] and small.clamp_(-5, 1000).tolist() == [1, 200]
    with pytest.raises(ValueError, match="min=300 does not fit"):
        small.clamp(min=300)


def test_tensors_of_no_dimensions_and_no_elements():
    x = fw.tensor(2.0)
    assert x.index_fill(0, fw.tensor([0]), 5.0).tolist() == 5 and x.movedim(-1, 0).tolist() == 2
    assert x.scatter_add(0, fw.tensor(0), fw.tensor([1.0, 7.0])).tolist() == 3 and x.roll(1, 0).tolist() == 2
    assert fw.nn.functional.cosine_similarity(x, -x, dim=0).tolist() == pytest.approx(-1)
    assert fw.linalg.lu_factor(fw.zeros(2, 0, 0)).LU.shape == (2, 0, 0)
    assert fw.view_as_complex(fw.stack([fw.zeros(2, 0)] * 2, -1)).shape == (2, 0)
    assert fw.angle(fw.tensor([-0.0, -1.0])).tolist() == [0, pytest.approx(np.pi)]
    z = fw.zeros(2, dtype=fw.complex64)
    z[1] = fw.ones(1, dtype=fw.complex64)
    assert z.tolist() == [0, 1]


def test_least_squares_of_a_vector():
    A, b = np.random.default_rng(0).normal(size=(2, 4, 2)), np.ones((2, 4))
    for a, y in ((A[0], b[0]), (A, b)):
        found = fw.linalg.lstsq(fw.tensor(a), fw.tensor(y)).solution
        assert np.allclose(found.numpy(), (np.linalg.pinv(a) @ y[..., None])[..., 0])


def test_shuffling_by_one_shares_no_memory():
    x = fw.arange(4).view(1, 1, 2, 2)
    for shuffle in (fw.nn.functional.pixel_shuffle, fw.nn.functional.pixel_unshuffle):
        shuffle(x, 1).zero_()
    assert x.sum() == 6


def test_a_function_may_differentiate_by_what_it_saved():
    """The adjoint method: backward computes anew, by the saved parameters themselves."""
    class Cube(fw.autograd.Function):
        @staticmethod
        def forward(ctx, x, w):
            ctx.save_for_backward(x, w)
            return w * x ** 3

        @staticmethod
        def backward(ctx, g):
            x, w = ctx.saved_tensors
            with fw.enable_grad():
                y = w * x.detach() ** 3
            return None, fw.autograd.grad(y, w, g)[0]

    w = leaf(2.0)
    Cube.apply(leaf(3.0), w).sum().backward()
    assert w.grad.tolist() == [27]


@pytest.mark.parametrize("function", [fw.erf, fw.erfc])
@pytest.mark.parametrize("dtype", [fw.float32, fw.float64])
def test_error_functions_of_large_arrays_are_those_of_small_ones(function, dtype):
    x = fw.linspace(-6, 6, 3 * 10_007, dtype=dtype).reshape(3, 10_007)
    rows = [[function(part) for part in row.split(1000)] for row in x]
    expected = fw.stack([fw.cat(row) for row in rows])
    assert expected.dtype is dtype and fw.equal(function(x), expected)
    assert fw.equal(function(x.t()), expected.t())


def test_dir_shows_public_names_only():
    """Sub-packages, also those that wait to be imported; no module of the inside, whatever is imported."""
    shown = dir(fw)
    assert {"nn", "optim", "func", "vmap", "tensor", "float32", "errors"} <= set(shown)
    assert all(hasattr(fw, name) for name in shown)
    single = {name for name in shown if name.startswith("_") and not name.startswith("__")}
    assert not single and not {"ops", "node", "quiet", "philox", "protocols", "creation"} & set(shown)


UNDEFINED = {
    "heaviside": lambda x: fw.heaviside(x, x),
    "bincount": lambda x: fw.bincount(fw.tensor([0, 2, 2]), x),
    "histc": lambda x: fw.histc(x, 4),
    "histogram": lambda x: fw.histogram(x, 4, density=True).hist,
    "unique": lambda x: fw.unique(x, return_counts=True)[0],
    "unique_consecutive": lambda x: fw.unique_consecutive(x),
}


@pytest.mark.parametrize("name", UNDEFINED)
def test_what_has_no_derivative_says_so_by_name(name):
    """A floating result taken as constant without a word would be a silently wrong gradient."""
    x = fw.tensor([1.0, 0.5, -2.0], requires_grad=True)
    with pytest.raises(fw.errors.AutogradError, match=f"^{name} has no derivative"):
        (UNDEFINED[name](x).sum() * x.sum()).backward()
    with pytest.raises(fw.errors.AutogradError, match=f"^{name} has no derivative"):
        fw.func.jvp(UNDEFINED[name], (x.detach(),), (fw.ones(3),))
    assert not UNDEFINED[name](x.detach()).requires_grad


HALF = {
    "layer_norm": lambda F, x: F.layer_norm(x, (3,)),
    "rms_norm": lambda F, x: F.rms_norm(x, (3,), eps=1e-5),
    "group_norm": lambda F, x: F.group_norm(x, 1),
    "batch_norm": lambda F, x: F.batch_norm(x.t(), fw.zeros(2), fw.ones(2), training=True),
    "normalize": lambda F, x: F.normalize(x),
    "cosine_similarity": lambda F, x: F.cosine_similarity(x, x.flip(0)),
    "std": lambda F, x: x.std(1),
}


@pytest.mark.parametrize("name", HALF)
def test_squares_of_float16_do_not_overflow_on_the_way(name):
    """They did from 256 on: the results were all 0."""
    x = fw.tensor([[300.0, -500.0, 1.0], [1000.0, 3.0, -40.0]])
    half = x.half().requires_grad_()
    y = HALF[name](fw.nn.functional, half)
    assert y.dtype is fw.float16
    wide = x.clone().requires_grad_()
    expected = HALF[name](fw.nn.functional, wide)
    assert fw.allclose(y.float(), expected, rtol=2e-3, atol=1e-3)
    y.sum().backward(), expected.sum().backward()
    assert fw.allclose(half.grad.float(), wide.grad, rtol=1e-2, atol=1e-3)


@pytest.mark.parametrize("x", [fw.ones(3), fw.tensor(2.0), fw.ones(2, 3).t(), fw.ones(0, 2)], ids=str)
def test_a_view_in_its_own_dtype_stays_in_the_graph(x):
    x = x.detach().requires_grad_()
    y = x * 2
    v = y.view(y.dtype)
    assert v.shape == y.shape and (not y.numel() or np.shares_memory(v.detach().numpy(), y.detach().numpy()))
    v.sum().backward()
    assert x.grad.tolist() == (fw.ones(*x.shape) * 2).tolist()


def test_positions_of_triangles_are_everyones_own():
    """Those of small matrices are remembered: what one call gave may be written."""
    fw.triu_indices(3, 4).zero_()
    np.testing.assert_array_equal(fw.triu_indices(3, 4).numpy(), np.stack(np.triu_indices(3, 0, 4)))
    assert fw.tril_indices(3, 3, dtype=fw.int32).dtype is fw.int32


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "bool", "complex64", "int64"])
def test_all_elements_that_are_not_0_are_counted_in_every_dtype(dtype):
    x = fw.tensor([[0, 1, 2], [3, 0, 0]]).to(getattr(fw, dtype))
    assert fw.count_nonzero(x).item() == fw.count_nonzero(x.T).item() == 3 and fw.count_nonzero(x).shape == ()
    assert fw.count_nonzero(fw.tensor(float("nan"))).item() == 1


@pytest.mark.parametrize("dtype", [fw.float32, fw.float64, fw.float16, fw.bfloat16, fw.int32, fw.int64])
def test_quotients_rounded_towards_zero_round_the_quotient(dtype):
    """1 / 0.1 is 10, though ten times the number nearest to 0.1 is more than 1."""
    x, y = [1.0, 6.0, 7.0, -7.0, -7.0, 5.0, -0.0], [0.1, 0.2, -2.0, 2.0, -2.0, 3.0, 4.0]
    if dtype in (fw.int32, fw.int64):
        x, y = [7, 7, -7, -7, 9, 0], [2, -2, 2, -2, 3, 5]
    a, b = fw.tensor(x, dtype=dtype), fw.tensor(y, dtype=dtype)
    wide = fw.float32 if dtype.itemsize == 2 else dtype  # 16 bits are computed in 32 and rounded once
    wanted = [math.trunc(fw.div(p.double(), q.double()).to(wide).item()) for p, q in zip(a, b)]
    for times in (1, 40):
        found = fw.div(a.repeat(times), b.repeat(times), rounding_mode="trunc")
        assert found.dtype is dtype and found.tolist() == wanted * times
    if dtype.is_floating_point:
        signs = fw.tensor([5.0, -5.0], dtype=dtype)
        assert fw.div(signs, 0.0, rounding_mode="trunc").tolist() == [np.inf, -np.inf]
    assert fw.compile(lambda p, q: fw.div(p, q, rounding_mode="trunc") * 1)(a, b).tolist() == wanted
