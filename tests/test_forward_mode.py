"""Forward mode: every row's tangents, the dual levels, in-place writes, Functions, and mixtures of modes."""

import gc
import inspect
import threading
import weakref

import numpy as np
import pytest
from table import (
    ROWS,
    cast_inputs,
    changes_inputs,
    cotangents,
    flat,
    floating_leaves,
    is_floating,
    row_id,
    tensors,
)

import framework as fw
import framework.autograd.forward_ad as fwAD
from framework.autograd import gradcheck, gradgradcheck
from framework.errors import AutogradError, DTypeError, ShapeError

X, T = [1.0, 2.0], [3.0, 4.0]


def dual(requires_grad=False):
    return fwAD.make_dual(fw.tensor(X, requires_grad=requires_grad), fw.tensor(T))


def tangent(y):
    return fwAD.unpack_dual(y).tangent


@pytest.fixture(autouse=True)
def no_level_left():
    yield
    with pytest.raises(RuntimeError, match="no dual level is open"):
        fwAD.make_dual(fw.ones(1), fw.ones(1))


# -- every differentiable row --------------------------------------------------------------------

CASES = [(row, s) for row in ROWS for s in row.samples if s.grad and any(map(is_floating, s.inputs))]


@pytest.mark.parametrize(
    "row", {row_id(row): row for row, _ in CASES}.values(), ids=lambda row: row_id(row)
)
def test_tangents_are_the_transpose_of_gradients(row):
    """v . (J t) by forward mode is (v J) . t by reverse mode, which test_gradient compares with numbers."""
    for sample in [s for r, s in CASES if r is row]:
        recorded, ts = tensors(cast_inputs(sample, np.float64), grad=True), []
        leaves = floating_leaves(called(row, sample, recorded))
        wanted = [x for x in recorded if isinstance(x, fw.Tensor) and x.requires_grad]
        seeds = cotangents(leaves)
        gs = [None] * len(wanted)
        if leaves:
            vs = [fw.tensor(v, dtype=y.dtype) for v, y in zip(seeds, leaves)]
            gs = fw.autograd.grad(leaves, wanted, vs, allow_unused=True)
        for dtype in (np.float32, np.float64):
            ts.clear()
            with fwAD.dual_level():
                xs = tensors(cast_inputs(sample, dtype))
                for i, x in enumerate(xs):
                    if isinstance(x, fw.Tensor) and recorded[i].requires_grad:
                        ts.append(fw.tensor(cotangents([x], seed=len(ts))[0], dtype=x.dtype))
                        xs[i] = fwAD.make_dual(x, ts[-1])
                outputs = [y for y in flat(called(row, sample, xs)) if isinstance(y, fw.Tensor)]
                assert not any(y.requires_grad for y in outputs)
                found = [tangent(y) for y in outputs]
                for y, t in zip(outputs, found):
                    assert t is None or (t.dtype is y.dtype and t.shape == y.shape), sample.label
        again = [y for y in flat(called(row, sample, recorded)) if isinstance(y, fw.Tensor)]
        found = [t for t, y in zip(found, again) if y.requires_grad]
        pushed = sum(np.vdot(v, t.numpy()).real for v, t in zip(seeds, found) if t is not None)
        pulled = sum(np.vdot(g.numpy(), t.numpy()).real for g, t in zip(gs, ts) if g is not None)
        np.testing.assert_allclose(
            pushed, pulled, rtol=1e-8 * sample.tol, atol=1e-9 * sample.tol, err_msg=sample.label
        )


def called(row, sample, xs):
    return sample.call(fw, *[x * 1 if isinstance(x, fw.Tensor) and changes_inputs(row) else x for x in xs])


# -- levels and duals ----------------------------------------------------------------------------


def test_a_dual_is_not_recorded():
    with fwAD.dual_level():
        d = dual()
        y = (d * d).tanh() + 1
        assert not d.requires_grad and d.is_leaf and d.grad_fn is None
        assert not y.requires_grad and y.is_leaf and y.grad_fn is None
        with pytest.raises(AutogradError, match="does not require grad"):
            y.sum().backward()
        with pytest.raises(AutogradError, match="has a tangent"):
            y.numpy()
        assert repr(d) == "tensor([1., 2.], tangent=tensor([3., 4.]))"


def test_unpack():
    with fwAD.dual_level():
        primal, t = fwAD.unpack_dual(dual() * 2)
        assert primal.tolist() == [2, 4] and t.tolist() == [6, 8]
        assert tangent(primal) is None and tangent(fw.ones(1)) is None and tangent(primal + 1) is None
        assert tangent(dual().detach()) is None
        assert tangent(dual() > 1) is None and tangent(dual().argmax()) is None
    assert fwAD.unpack_dual(primal) == (primal, None)


def test_the_end_of_a_level_drops_tangents():
    with fwAD.dual_level():
        d = dual()
        y = d * 2
        z = fw.zeros(2)
        z.copy_(y)
        t = weakref.ref(tangent(z))
    assert d._node is None and y._node is None and z._node is None and t() is None
    assert not (y + d + z).requires_grad
    with fwAD.dual_level():
        assert tangent(y) is None


def test_recorded_tangents_go_too():
    """Of a recorded tensor the tangents form circles with its node; the end of the level breaks them."""
    x = fw.tensor(X, requires_grad=True)
    gc.disable()
    try:
        with fwAD.dual_level():
            y = fwAD.make_dual(x, fw.tensor(T)).tanh()
            assert tangent(y).requires_grad
            node = weakref.ref(y._node)
        del y
        assert node() is None
    finally:
        gc.enable()


def test_grad_mode_does_not_matter():
    with fwAD.dual_level(), fw.no_grad():
        y = dual(requires_grad=True).exp() + dual()[1:]
        assert not y.requires_grad and not tangent(y).requires_grad
        np.testing.assert_allclose(tangent(y).numpy(), np.exp(X) * T + T[1], rtol=1e-6)
    assert fw.is_grad_enabled()


def test_grad_mode_survives_levels():
    with fw.no_grad():
        with fwAD.dual_level():
            assert not fw.is_grad_enabled()
            with fw.enable_grad():
                assert fw.is_grad_enabled()
            assert not fw.is_grad_enabled()
        assert not fw.is_grad_enabled()
    assert (fw.ones(1, requires_grad=True) * 2).requires_grad


def test_a_level_is_that_of_its_thread():
    caught = []

    def other():
        try:
            fwAD.make_dual(fw.ones(1), fw.ones(1))
        except RuntimeError as error:
            caught.append(str(error))
        caught.append((fw.ones(1, requires_grad=True) * 2).requires_grad)

    with fwAD.dual_level():
        thread = threading.Thread(target=other)
        thread.start()
        thread.join()
        assert tangent(dual() * 2).tolist() == [6, 8]
    assert "no dual level" in caught[0] and caught[1]


def test_errors():
    with pytest.raises(RuntimeError, match="no dual level"):
        fwAD.exit_dual_level()
    with fwAD.dual_level() as level:
        assert level == 0
        with pytest.raises(RuntimeError, match="open already"):
            fwAD.enter_dual_level()
        with pytest.raises(RuntimeError, match="a tangent already"):
            fwAD.make_dual(dual(), fw.ones(2))
        with pytest.raises(ShapeError, match=r"\[1\] does not fit a tensor of shape \[2\]"):
            fwAD.make_dual(fw.ones(2), fw.ones(1))
        with pytest.raises(DTypeError, match="float64"):
            fwAD.make_dual(fw.ones(2), fw.ones(2, dtype=fw.float64))
        with pytest.raises(DTypeError, match="int64"):
            fwAD.make_dual(fw.tensor([1]), fw.tensor([1]))
        with pytest.raises(TypeError, match="got float"):
            fwAD.make_dual(fw.ones(2), 1.0)
        with pytest.raises(ValueError, match="got 1"):
            fwAD.make_dual(fw.ones(2), fw.ones(2), level=1)
        with pytest.raises(TypeError, match="wanted a Tensor"):
            fwAD.unpack_dual(1.0)


def test_signatures():
    theirs = pytest.importorskip("torch.autograd.forward_ad", reason="compares with PyTorch's arguments")
    for name in ("make_dual", "unpack_dual", "enter_dual_level", "exit_dual_level"):
        a, b = [inspect.signature(getattr(m, name)).parameters for m in (fwAD, theirs)]
        assert [(p.name, p.kind, p.default) for p in a.values()] == [
            (p.name, p.kind, p.default) for p in b.values()
        ]


# -- writing in place ----------------------------------------------------------------------------


def test_in_place():
    with fwAD.dual_level():
        y = fw.zeros(3)
        y[1:] = dual()
        assert tangent(y).tolist() == [0, 3, 4]
        y[:2].mul_(2).add_(y[1:])  # the right side is read as it was
        assert y.tolist() == [2, 4, 2] and tangent(y).tolist() == [6, 10, 4]
        y.zero_()
        assert tangent(y) is None or not tangent(y).any()
        base = fw.zeros(2, 2)
        row = base[0]
        base.add_(dual())
        assert tangent(row).tolist() == T  # views made before follow
        row.copy_(fw.ones(2))
        assert tangent(base).tolist() == [[0, 0], T]


def test_in_place_without_recording_keeps_the_graph():
    """Under no_grad a parameter stays the leaf it is, whatever is written into it."""
    p = fw.nn.Parameter(fw.tensor(X))
    leaf = p._node
    with fwAD.dual_level(), fw.no_grad():
        p.add_(fw.ones(2))
        assert p._node is leaf and tangent(p) is None
        p.mul_(dual())
        assert p._node is leaf and p.requires_grad and tangent(p).tolist() == [6, 12]
        p.copy_(fw.ones(2))
        assert not tangent(p).any()
    assert p._node is leaf and p.tolist() == [1, 1]
    q, r = fw.linalg.qr(fw.eye(2, requires_grad=True))
    node = q._node
    with fwAD.dual_level(), fw.no_grad():
        q += dual()
        assert q._node is node and tangent(q).tolist() == [T, T] and tangent(r) is None


@pytest.mark.parametrize("recorded", [False, True])
def test_hooks_on_saved_tensors(recorded):
    x = fw.tensor(X, requires_grad=recorded)
    with fwAD.dual_level():
        plain = fwAD.make_dual(x, fw.tensor(T)).tanh()
        with fw.autograd.graph.saved_tensors_hooks(lambda t: t.tolist(), fw.tensor):
            packed = fwAD.make_dual(x, fw.tensor(T)).tanh()
            assert tangent(packed).requires_grad == recorded
            assert tangent(packed).tolist() == tangent(plain).tolist()
            if recorded:
                a, b = [fw.autograd.grad(y.sum(), x)[0] for y in (plain, packed)]
                assert tangent(a).tolist() == tangent(b).tolist()


def test_requires_grad_of_a_dual():
    with fwAD.dual_level():
        d = dual().requires_grad_()
        assert d.is_leaf and tangent(d).tolist() == T
        (g,) = fw.autograd.grad((d**3).sum(), d)
        assert g.tolist() == [3, 12] and tangent(g).tolist() == [18, 48] and not g.requires_grad


# -- both modes ----------------------------------------------------------------------------------


def test_forward_over_reverse():
    x = fw.tensor(X, dtype=fw.float64, requires_grad=True)
    with fwAD.dual_level():
        d = fwAD.make_dual(x, fw.tensor(T, dtype=fw.float64))
        (g,) = fw.autograd.grad(d.tanh().prod(), x)
        got = tangent(g)
    np.testing.assert_allclose(got.numpy(), hessian_product(), rtol=1e-12)
    assert x.grad is None


def test_backward_fills_dual_gradients():
    weight = fw.nn.Parameter(fw.tensor(X))
    with fwAD.dual_level():
        (weight * dual()).sum().backward()
        assert weight.grad.tolist() == X and tangent(weight.grad).tolist() == T
    assert weight.grad._node is None


def test_reverse_over_forward():
    x = fw.tensor(X, dtype=fw.float64, requires_grad=True)
    with fwAD.dual_level():
        t = tangent(fwAD.make_dual(x, fw.tensor(T, dtype=fw.float64)).tanh().prod())
        (got,) = fw.autograd.grad(t, x)
    np.testing.assert_allclose(got.numpy(), hessian_product(), rtol=1e-12)


def hessian_product():
    x = fw.tensor(X, dtype=fw.float64)
    t = fw.tensor(T, dtype=fw.float64)
    return fw.autograd.functional.vhp(lambda x: x.tanh().prod(), x, t)[1].numpy()


def test_modules_and_their_hooks():
    seen = []
    net = fw.nn.Sequential(fw.nn.Linear(2, 3), fw.nn.BatchNorm1d(3), fw.nn.ReLU(), fw.nn.Linear(3, 1))
    net[0].register_full_backward_hook(lambda m, gi, go: seen.append(go))
    x, v = fw.randn(5, 2), fw.randn(5, 2)
    want = fw.autograd.functional.jvp(net, x, v)[1]
    seen.clear()
    with fwAD.dual_level():
        y = net(fwAD.make_dual(x, v))
        assert y.requires_grad and not seen
        np.testing.assert_allclose(tangent(y).detach().numpy(), want.detach().numpy(), atol=1e-5)
        y.sum().backward()
    assert len(seen) == 1


# -- Functions -----------------------------------------------------------------------------------


class Scaled(fw.autograd.Function):
    """(a * b * k, a + b)"""

    @staticmethod
    def forward(ctx, a, b, k):
        assert tangent(a) is None
        ctx.save_for_forward(a, b)
        ctx.save_for_backward(a, b)
        ctx.k = k
        return a * b * k, a + b

    @staticmethod
    def backward(ctx, g, h):
        a, b = ctx.saved_tensors
        return g * b * ctx.k + h, g * a * ctx.k + h, None

    @staticmethod
    def jvp(ctx, ta, tb, tk):
        assert tk is None
        a, b = ctx.saved_tensors
        return (ta * b + tb * a) * ctx.k, ta + tb


@pytest.mark.parametrize("recorded", [False, True])
def test_function(recorded):
    with fwAD.dual_level():
        y, z = Scaled.apply(dual(recorded), fw.tensor([5.0, 6.0]), 2)
        assert tangent(y).tolist() == [30, 48] and tangent(z).tolist() == T
        assert y.requires_grad == recorded and z.requires_grad == recorded
    x = fw.randn(3, dtype=fw.float64, requires_grad=True)
    w = fw.randn(3, dtype=fw.float64, requires_grad=True)
    assert gradcheck(lambda x, w: Scaled.apply(x, w, 3), (x, w), check_forward_ad=True)
    assert gradgradcheck(lambda x, w: Scaled.apply(x, w, 3), (x, w), check_fwd_over_rev=True)
    second = fw.func.jvp(
        lambda x: fw.func.jvp(lambda x: Scaled.apply(x, x, 1)[0], (x,), (x,))[1], (x,), (x,)
    )
    np.testing.assert_allclose(second[1].detach().numpy(), 4 * x.detach().numpy() ** 2, rtol=1e-12)


def function(**methods):
    return type("Mine", (fw.autograd.Function,), {k: staticmethod(v) for k, v in methods.items()})


def test_function_without_jvp_is_named():
    Mine = function(forward=lambda ctx, x: x * 2, backward=lambda ctx, g: g * 2)
    with fwAD.dual_level(), pytest.raises(NotImplementedError, match="Mine has no jvp"):
        Mine.apply(dual())
    assert Mine.apply(fw.ones(1)).item() == 2  # where nothing has a tangent none is needed


def test_function_jvp_is_checked():
    for jvp, text in [
        (lambda ctx, t: (t, t), "returned 2 tangents for 1 outputs"),
        (lambda ctx, t: t.sum(), "output 0 of forward is"),
        (lambda ctx, t: 1.0, "is float"),
    ]:
        Mine = function(forward=lambda ctx, x: x * 2, jvp=jvp)
        with fwAD.dual_level(), pytest.raises(AutogradError, match=text):
            Mine.apply(dual())


def test_function_tangents_that_are_missing():
    given, wanted = [], iter([True, False])

    def forward(ctx, a, b):
        ctx.set_materialize_grads(next(wanted))
        return a + b

    Mine = function(forward=forward, jvp=lambda ctx, ta, tb: given.append((ta, tb)) or None)
    for _ in range(2):
        with fwAD.dual_level():
            assert tangent(Mine.apply(dual(), fw.ones(2))) is None
    assert given[0][1].tolist() == [0, 0] and given[1][1] is None


# -- gradcheck -----------------------------------------------------------------------------------


def test_gradcheck_finds_a_wrong_jvp():
    Wrong = function(
        forward=lambda ctx, x: x * 2, backward=lambda ctx, g: g * 2, jvp=lambda ctx, t: t * 3
    )
    x = fw.randn(2, dtype=fw.float64, requires_grad=True)
    assert gradcheck(Wrong.apply, (x,))
    for fast in (False, True):
        with pytest.raises(RuntimeError, match="in forward mode"):
            gradcheck(Wrong.apply, (x,), check_forward_ad=True, fast_mode=fast)
    with pytest.raises(ValueError, match="nothing to check"):
        gradcheck(Wrong.apply, (x,), check_backward_ad=False)
    Wrong.backward = staticmethod(lambda ctx, g: g)
    Wrong.jvp = staticmethod(lambda ctx, t: t * 2)
    assert gradcheck(Wrong.apply, (x,), check_forward_ad=True, check_backward_ad=False)
    assert not gradcheck(Wrong.apply, (x,), check_forward_ad=True, raise_exception=False)


def test_complex():
    z = fw.randn(3, dtype=fw.complex128).requires_grad_()
    for f in (lambda z: (z * z.exp()).abs(), lambda z: z * z.sin() / z.conj()):
        assert gradcheck(f, (z,), check_forward_ad=True)
        assert gradgradcheck(f, (z,), check_fwd_over_rev=True)
