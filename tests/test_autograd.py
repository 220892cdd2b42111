"""The engine: backward and grad, accumulation, hooks, modes, and gradients behind masks."""

import copy
import pickle
import threading

import numpy as np
import pytest

import framework as fw
from framework import autograd
from framework.errors import AutogradError, DTypeError, ShapeError


def leaf(*values, dtype=fw.float64):
    return fw.tensor(values, dtype=dtype, requires_grad=True)


def close(x, values, **tolerance):
    np.testing.assert_allclose(x.detach().numpy(), values, **({"rtol": 1e-12} | tolerance))


# -- backward and grad -----------------------------------------------------------------------------


def test_second_backward_says_what_to_do():
    y = leaf(1.0).exp()
    y.backward()
    with pytest.raises(AutogradError, match="backward through exp a second time.*retain_graph=True"):
        y.backward()


def test_retain_graph_accumulates():
    x = leaf(2.0)
    y = x * x
    y.backward(retain_graph=True)
    y.backward()
    close(x.grad, [8.0])


def test_create_graph_and_sixth_derivative():
    x = leaf(3.0, 4.0)
    y = (x * x).sum().sqrt()
    close(autograd.grad(y, x, create_graph=True)[0], [0.6, 0.8])
    z = leaf(0.7)
    y = z.exp() * z.sin()
    for _ in range(6):
        (y,) = autograd.grad(y, z, create_graph=True)
    # the nth derivative of exp(x) sin(x) is 2^(n/2) exp(x) sin(x + n pi / 4)
    close(y, 8 * np.exp([0.7]) * np.sin(0.7 + 6 * np.pi / 4), rtol=1e-10)


def test_sixth_derivative_of_the_norm():
    """Along one direction, |x + t u|: compared with the closed form by Taylor coefficients."""
    x0, u = np.array([1.0, 2.0, -0.5]), np.array([0.3, -0.2, 0.9])
    t = fw.tensor(0.0, dtype=fw.float64, requires_grad=True)
    point = fw.from_numpy(x0) + t * fw.from_numpy(u)
    y = point.norm() if hasattr(point, "norm") else (point * point).sum().sqrt()
    for _ in range(6):
        (y,) = autograd.grad(y, t, create_graph=True)
    a, b, c = u @ u, 2 * u @ x0, x0 @ x0  # sqrt(c + b t + a t^2) as a power series
    series = [np.sqrt(c)]
    for n in range(1, 7):
        known = sum(series[k] * series[n - k] for k in range(1, n))
        series.append(({1: b, 2: a}.get(n, 0.0) - known) / (2 * series[0]))
    close(y, series[6] * 720, rtol=1e-8)


def test_inputs_limits_what_is_filled():
    x, w = leaf(2.0), leaf(3.0)
    (x * w).backward(inputs=[x])
    close(x.grad, [3.0])
    assert w.grad is None
    y = x * w
    (y * y).backward(inputs=y)
    close(y.grad, [12.0])
    with pytest.raises(ValueError, match="inputs is empty"):
        (x * w).backward(inputs=[])


def test_grad_leaves_dot_grad_alone():
    x, w, unused = leaf(2.0), leaf(3.0), leaf(1.0)
    y = x * w
    gx, gw = autograd.grad(y, [x, w], retain_graph=True)
    close(gx, [3.0])
    close(gw, [2.0])
    assert x.grad is None and w.grad is None
    with pytest.raises(AutogradError, match="allow_unused=True"):
        autograd.grad(y, [x, unused], retain_graph=True)
    assert autograd.grad(y, [x, unused], allow_unused=True, retain_graph=True)[1] is None
    close(autograd.grad(y, [x, unused], materialize_grads=True)[1], [0.0])
    with pytest.raises(AutogradError, match="does not require grad"):
        autograd.grad(x * 2, fw.ones(1))


def test_grad_of_an_intermediate_and_of_itself():
    x = leaf(2.0)
    y = x * 3
    z = y * y
    close(autograd.grad(z, y, retain_graph=True)[0], [12.0])
    close(autograd.grad(z, z)[0], [1.0])


def test_several_roots_and_gradients():
    x = leaf(1.0, 2.0)
    autograd.backward([x.sum(), (x * x).sum()])
    close(x.grad, [3.0, 5.0])
    x.grad = None
    y = x * 2
    y.backward(fw.tensor([1.0, 10.0], dtype=fw.float64))
    close(x.grad, [2.0, 20.0])


def test_wrong_gradients_and_roots():
    x = leaf(1.0, 2.0)
    with pytest.raises(AutogradError, match="a gradient is implied only for a tensor of one element"):
        (x * 2).backward()
    with pytest.raises(ShapeError, match=r"gradient of shape \[3\]"):
        (x * 2).backward(fw.ones(3, dtype=fw.float64))
    with pytest.raises(DTypeError, match="gradient of framework.float32"):
        (x * 2).backward(fw.ones(2))
    with pytest.raises(AutogradError, match="does not require grad and has no graph"):
        fw.ones(1).backward()
    with pytest.raises(ValueError, match="2 tensors but 1 gradients"):
        autograd.backward([x.sum(), x.sum()], [fw.tensor(1.0, dtype=fw.float64)])
    with pytest.raises(TypeError):
        autograd.backward(3.0)


# -- accumulation ----------------------------------------------------------------------------------


def test_accumulation_keeps_the_tensor():
    x = leaf(1.0)
    (x * 2).backward()
    first = x.grad
    (x * 3).backward()
    assert x.grad is first
    close(first, [5.0])


@pytest.mark.parametrize("create_graph", [False, True])
def test_gradients_are_never_shared(create_graph):
    x, y = leaf(1.0, 2.0), leaf(3.0, 4.0)
    seed = fw.ones(2, dtype=fw.float64)
    (x + y).backward(seed, create_graph=create_graph)
    assert x.grad is not y.grad and x.grad is not seed
    (x * 2).sum().backward()
    close(x.grad, [3.0, 3.0])
    close(y.grad, [1.0, 1.0])
    close(seed, [1.0, 1.0])


def test_backward_of_a_leaf_itself():
    x = leaf(1.0)
    seed = fw.tensor([2.0], dtype=fw.float64)
    x.backward(seed)
    x.backward(seed)
    close(x.grad, [4.0])
    close(seed, [2.0])


def test_gradients_of_views_are_own_memory():
    x = leaf(1.0, 2.0)
    x.reshape(2, 1).sum().backward()
    x.grad.add_(1.0)
    close(x.grad, [2.0, 2.0])


def test_setting_grad_is_checked():
    x = leaf(1.0, 2.0)
    with pytest.raises(ShapeError):
        x.grad = fw.ones(3, dtype=fw.float64)
    with pytest.raises(DTypeError):
        x.grad = fw.ones(2)
    with pytest.raises(TypeError):
        x.grad = np.ones(2)
    x.grad = fw.ones(2, dtype=fw.float64)
    x.grad = None
    assert x.grad is None


# -- hooks -----------------------------------------------------------------------------------------


def test_hooks_run_in_order_replace_and_are_removed():
    x = leaf(1.0)
    y = x * 2
    seen = []
    y.register_hook(lambda g: seen.append(("first", g.item())))
    handle = y.register_hook(lambda g: g * 10)
    y.register_hook(lambda g: seen.append(("last", g.item())))
    (y * 3).backward(retain_graph=True)
    assert seen == [("first", 3.0), ("last", 30.0)]
    close(x.grad, [60.0])
    handle.remove()
    handle.remove()
    x.grad = None
    (y * 3).backward()
    close(x.grad, [6.0])


def test_hooks_on_leaves_see_the_whole_gradient_once():
    x = leaf(1.0)
    seen = []
    x.register_hook(lambda g: seen.append(g.item()))
    after = []
    x.register_post_accumulate_grad_hook(lambda t: after.append(t.grad.item()))
    (x * 2 + x * 3).backward()
    (x * 1).backward()
    assert seen == [5.0, 1.0] and after == [5.0, 6.0]


def test_wrong_hooks():
    x = leaf(1.0)
    y = x * 2
    y.register_hook(lambda g: 3)
    with pytest.raises(TypeError, match="hook must return a Tensor or None"):
        y.backward()
    z = x * 2
    z.register_hook(lambda g: fw.ones(2))
    with pytest.raises(ShapeError, match="hook turned a gradient"):
        z.backward()
    with pytest.raises(AutogradError):
        fw.ones(1).register_hook(print)


def test_retain_grad():
    x = leaf(1.0)
    y = x * 2
    y.retain_grad()
    assert y.retains_grad and not x.retains_grad
    (y * y).backward()
    close(y.grad, [4.0])
    with pytest.raises(AutogradError):
        fw.ones(1).retain_grad()


# -- modes -----------------------------------------------------------------------------------------


def test_modes_as_context_managers_nest():
    x = leaf(1.0)
    with fw.no_grad():
        assert not (x * 2).requires_grad
        with fw.enable_grad():
            assert (x * 2).requires_grad
        assert not fw.is_grad_enabled()
    with fw.set_grad_enabled(False):
        assert not (x * 2).requires_grad
    with fw.inference_mode():
        assert fw.is_inference_mode_enabled() and not (x * 2).requires_grad
    assert fw.is_grad_enabled() and not fw.is_inference_mode_enabled()
    fw.set_grad_enabled(False)
    assert not fw.is_grad_enabled()
    fw.set_grad_enabled(True)


@pytest.mark.parametrize("mode, inside", [(fw.no_grad, False), (fw.no_grad(), False),
                                          (fw.inference_mode, False), (fw.inference_mode(), False)])
def test_modes_as_decorators(mode, inside):
    @mode
    def function(x):
        """Doubles."""
        return (x * 2).requires_grad

    @mode
    def steps(x):
        for _ in range(2):
            yield fw.is_grad_enabled()

    assert function(leaf(1.0)) is inside and function.__doc__ == "Doubles."
    for seen in steps(1):
        assert seen is inside and fw.is_grad_enabled()


def test_enable_grad_decorator_and_set_grad_enabled():
    @fw.enable_grad()
    def on(x):
        return (x * 2).requires_grad

    @fw.set_grad_enabled(False)
    def off(x):
        return (x * 2).requires_grad

    with fw.no_grad():
        assert on(leaf(1.0))
    assert fw.is_grad_enabled() and not off(leaf(1.0)) and fw.is_grad_enabled()


def test_mode_is_restored_after_an_exception():
    with pytest.raises(KeyError), fw.no_grad():
        raise KeyError
    assert fw.is_grad_enabled()


def test_mode_belongs_to_a_thread():
    seen = []
    with fw.no_grad():
        thread = threading.Thread(target=lambda: seen.append(fw.is_grad_enabled()))
        thread.start()
        thread.join()
    assert seen == [True]


def test_backward_in_several_threads():
    x = [leaf(float(i)) for i in range(4)]

    def work(t):
        for _ in range(20):
            (t * t).sum().backward()
    threads = [threading.Thread(target=work, args=(t,)) for t in x]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for i, t in enumerate(x):
        close(t.grad, [40.0 * i])


# -- copies ----------------------------------------------------------------------------------------


def test_deepcopy_and_pickle():
    x = leaf(1.0, 2.0)
    (x * 2).sum().backward()
    y = copy.deepcopy(x)
    assert y.requires_grad and y.is_leaf and y is not x
    close(y.grad, [2.0, 2.0])
    y.grad.add_(1.0)
    close(x.grad, [2.0, 2.0])
    pair = copy.deepcopy([x, x])
    assert pair[0] is pair[1]
    z = pickle.loads(pickle.dumps(x))
    assert z.requires_grad and z.dtype is x.dtype
    close(z, [1.0, 2.0])
    with pytest.raises(AutogradError, match=r"detach\(\).clone\(\)"):
        copy.deepcopy(x * 2)


def test_detach_shares_memory_and_version():
    x = leaf(1.0, 2.0)
    y = x.exp()
    d = y.detach()
    assert not d.requires_grad and d.data_ptr() == y.data_ptr()
    d.zero_()
    with pytest.raises(AutogradError, match="changed in place"):
        y.sum().backward()


# -- gradients behind masks ------------------------------------------------------------------------

F = fw.float64
nan_free = {
    "sqrt at 0": lambda x: fw.where(x > 0.5, x.sqrt(), 0.0 * x),
    "rsqrt at 0": lambda x: fw.where(x > 0.5, x.rsqrt(), x),
    "log at 0": lambda x: fw.where(x > 0.5, x.log(), x),
    "log2 at 0": lambda x: fw.where(x > 0.5, x.log2(), x),
    "log10 at 0": lambda x: fw.where(x > 0.5, x.log10(), x),
    "log1p at -1": lambda x: fw.where(x > 0.5, (x - 1).log1p(), x),
    "1/x at 0": lambda x: fw.where(x > 0.5, 1 / x, x),
    "reciprocal at 0": lambda x: fw.where(x > 0.5, x.reciprocal(), x),
    "x/x at 0": lambda x: fw.where(x > 0.5, x / x, x),
    "pow 0.3 at 0": lambda x: fw.where(x > 0.5, x ** 0.3, x),
    "pow -1 at 0": lambda x: fw.where(x > 0.5, x ** -1.0, x),
    "x ** x at 0": lambda x: fw.where(x > 0.5, x ** x, x),
    "2 ** (1/x)": lambda x: fw.where(x > 0.5, 2.0 ** (1 / x), x),
    "exp overflow": lambda x: fw.where(x > 0.5, (1000 * (1 - x)).exp(), x),
    "masked product": lambda x: x.sqrt() * (x > 0.5),
    "asin at 1": lambda x: fw.where(x > 0.5, x, (1 - x).asin()),
    "acos at 1": lambda x: fw.where(x > 0.5, x, (1 - x).acos()),
    "atanh at 1": lambda x: fw.where(x > 0.5, x, (1 - x).atanh()),
    "acosh at 1": lambda x: fw.where(x > 0.5, x, (1 - x).acosh()),
    "atan2 at 0, 0": lambda x: fw.where(x > 0.5, fw.atan2(x, x), x),
    "clamp then sqrt": lambda x: fw.where(x > 0.5, x.clamp(min=0.0).sqrt(), x),
    "sqrt then clamp": lambda x: x.sqrt().clamp(min=0.1),
    "norm at 0": lambda x: fw.where(x > 0.5, (x * x).sum().sqrt() + 0 * x, x),
}


@pytest.mark.parametrize("name", nan_free)
def test_masked_branches_give_no_nan(name):
    """Where the branch that is inf or nan was not taken, its gradient is 0 and not nan."""
    x = fw.tensor([0.0, 2.0], dtype=F, requires_grad=True)
    y = nan_free[name](x)
    chosen = np.isfinite(y.detach().numpy())
    (g,) = autograd.grad(y[1] if hasattr(y, "__getitem__") else y, x, create_graph=True,
                         grad_outputs=None if hasattr(y, "__getitem__") else fw.from_numpy(1.0 * chosen))
    assert np.isfinite(g.detach().numpy()).all(), (name, g)
    if g.requires_grad:
        (h,) = autograd.grad(g.sum(), x)
        assert np.isfinite(h.numpy()).all(), (name, "second", h)


@pytest.mark.parametrize("p", [1, 2, 3, 0.5, float("inf")])
def test_norm_of_zeros_has_a_finite_gradient(p):
    x = fw.zeros(3, dtype=F, requires_grad=True)
    (x.norm(p) * 0).backward()
    close(x.grad, [0.0] * 3)


def test_an_edge_of_the_graph_is_asked_for_its_gradient():
    x = fw.tensor([1.0, 2.0], requires_grad=True)
    y = x * 2
    edge = fw.autograd.graph.get_gradient_edge(y)
    (found,) = fw.autograd.grad((y * 3).sum(), edge, retain_graph=True)
    np.testing.assert_array_equal(found.numpy(), [3.0, 3.0])
    (found,) = fw.autograd.grad(edge, x, fw.ones(2))
    np.testing.assert_array_equal(found.numpy(), [2.0, 2.0])


PARTS = [(0,), (slice(None), 1), (slice(None), slice(1, 3)), (slice(None), slice(None, None, 2)), (..., 2),
         (None, 1, ..., 0), (1, 2, 3), (..., slice(0, 0)), (slice(None, 1), None, slice(2, None))]


@pytest.mark.parametrize("dtype", [fw.float32, fw.float64, fw.float16])
@pytest.mark.parametrize("way", ["leaf", "computed", "retained", "live", "hooked", "watched"])
def test_gradients_of_many_parts_meet_at_their_places(way, dtype):
    """Of three parts on they are added in place, where nobody looks on."""
    values = fw.arange(60.0).reshape(3, 4, 5)
    wanted = np.zeros((3, 4, 5))
    for i, key in enumerate(PARTS * 2):
        wanted[key] += i + 1
    leaf = values.to(dtype).requires_grad_()
    x = leaf * 1 if way == "computed" else leaf
    seen = []
    if way == "hooked":
        x.register_hook(lambda g: seen.append(g.clone()))
    pieces = [x[key] * (i + 1) for i, key in enumerate(PARTS * 2)]
    total = sum(piece.sum() for piece in pieces)
    if way == "watched":
        with fw.autograd.detect_anomaly(check_nan=False):
            total.backward()
    elif way == "live":
        leaf.grad = fw.autograd.grad(total, leaf, create_graph=True)[0].detach()
    else:
        for _ in range(2 if way == "retained" else 1):
            leaf.grad = None
            total.backward(retain_graph=way == "retained")
    np.testing.assert_array_equal(leaf.grad.numpy(), wanted)
    assert not seen or np.array_equal(seen[0].numpy(), wanted)


def test_parts_of_a_gradient_that_somebody_has_are_not_written():
    x = fw.ones(4, requires_grad=True)
    given = fw.ones(4)
    total = x[0] * 2 + x[1] * 3 + x[2] * 4
    grads = fw.autograd.grad([x * 1, total], [x], [given, fw.ones(())])
    assert grads[0].tolist() == [3, 4, 5, 1] and given.tolist() == [1, 1, 1, 1]
    kept = fw.autograd.grad([x[0] + x[1] + x[2] + x[2:].sum()], [x])[0]
    assert kept.tolist() == [1, 1, 2, 1]


def test_masked_parts_of_what_has_no_finite_derivative():
    x = fw.tensor([0.0, 4.0, 9.0, 16.0], requires_grad=True)
    y = x.sqrt()
    (y[1] + y[2] + y[3] + y[1:].sum()).backward()
    np.testing.assert_allclose(x.grad.numpy(), [0.0, 0.5, 1 / 3, 0.25])
