"""Custom functions: context, marks, several outputs, derivatives, errors, and no leaks."""

import gc
import threading
import weakref

import numpy as np
import pytest

import framework as fw
from framework.autograd import Function, grad, gradcheck, gradgradcheck
from framework.autograd.function import once_differentiable
from framework.errors import AutogradError, ShapeError


class Exp(Function):
    """Saves its output."""

    @staticmethod
    def forward(ctx, x):
        y = x.exp()
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx, g):
        return g * ctx.saved_tensors[0]


class Product(Function):
    """The new style: forward without ctx."""

    @staticmethod
    def forward(x, y, scale=1.0):
        return x * y * scale

    @staticmethod
    def setup_context(ctx, inputs, output):
        x, y, ctx.scale = inputs
        ctx.save_for_backward(x, y)

    @staticmethod
    def backward(ctx, g):
        x, y = ctx.saved_tensors
        return g * y * ctx.scale, g * x * ctx.scale, None


class Split(Function):
    """Two differentiable outputs and one of whole numbers."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        places = fw.tensor([1, 2])
        ctx.mark_non_differentiable(places)
        return x * x, x * 3, places

    @staticmethod
    def backward(ctx, g, h, nothing):
        (x,) = ctx.saved_tensors
        return 2 * x * g + 3 * h


def leaf(*values):
    return fw.tensor(values, dtype=fw.float64, requires_grad=True)


def test_saved_output_first_to_third_derivative():
    x = leaf(0.5, 1.0)
    y = Exp.apply(x)
    for _ in range(3):
        (y,) = grad(y.sum(), x, create_graph=True)
        np.testing.assert_allclose(y.detach().numpy(), np.exp(x.detach().numpy()))


@pytest.mark.parametrize("fast", [False, True])
def test_checks_pass(fast):
    x, y = leaf(0.5, 1.0), leaf(2.0, -1.0)
    assert gradcheck(Exp.apply, (x,), fast_mode=fast)
    assert gradgradcheck(Exp.apply, (x,), fast_mode=fast)
    assert gradgradcheck(lambda a, b: Product.apply(a, b, 2.0), (x, y), fast_mode=fast)
    assert gradgradcheck(Split.apply, (x,), fast_mode=fast)


def test_new_style_takes_keywords_and_defaults():
    x, y = leaf(1.0), leaf(5.0)
    assert Product.apply(x, y=y, scale=2.0).item() == 10
    Product.apply(x, y).backward()
    assert x.grad.item() == 5 and y.grad.item() == 1


def test_old_style_refuses_keywords():
    with pytest.raises(TypeError, match="Exp.apply takes keyword arguments only if setup_context"):
        Exp.apply(x=leaf(1.0))


def test_several_outputs_and_non_differentiable():
    x = leaf(1.0, 2.0)
    a, b, places = Split.apply(x)
    assert a.requires_grad and b.requires_grad and not places.requires_grad
    (a.sum() + b.sum()).backward()
    np.testing.assert_allclose(x.grad.numpy(), [5.0, 7.0])
    x.grad = None
    Split.apply(x)[1].sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), [3.0, 3.0])


def test_without_materialize_unused_outputs_are_none():
    seen = []

    class Two(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.set_materialize_grads(False)
            return x * 1, x * 2

        @staticmethod
        def backward(ctx, g, h):
            seen.append((g, h))
            return h * 2

    x = leaf(1.0)
    Two.apply(x)[1].backward()
    assert seen[0][0] is None and x.grad.item() == 2


def test_needs_input_grad_and_none():
    seen = []

    class Times(Function):
        @staticmethod
        def forward(ctx, x, y, name):
            seen.append(ctx.needs_input_grad)
            return x * y

        @staticmethod
        def backward(ctx, g):
            seen.append(ctx.needs_input_grad)
            return g, None, None

    x, y = leaf(1.0), fw.tensor([2.0], dtype=fw.float64)
    Times.apply(x, y, "name").backward()
    assert seen == [(True, False, False)] * 2 and y.grad is None
    assert not Times.apply(y, y, "name").requires_grad
    with fw.no_grad():
        assert not Times.apply(x, y, "name").requires_grad


def test_forward_runs_without_recording_and_backward_under_the_engines_mode():
    modes = []

    class Mode(Function):
        @staticmethod
        def forward(ctx, x):
            modes.append(fw.is_grad_enabled())
            return x * 1

        @staticmethod
        def backward(ctx, g):
            modes.append(fw.is_grad_enabled())
            return g

    x = leaf(1.0)
    Mode.apply(x).backward()
    Mode.apply(x).backward(create_graph=True)
    assert modes == [False, False, False, True]


def test_mark_dirty_returns_the_same_tensor_and_bumps_its_version():
    class Double(Function):
        @staticmethod
        def forward(ctx, x):
            x.mul_(2.0)
            ctx.mark_dirty(x)
            return x

        @staticmethod
        def backward(ctx, g):
            return g * 2

    x = leaf(1.0, 2.0)
    y = x * 1
    before = y._version
    assert Double.apply(y) is y and y._version > before
    y.sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), [2.0, 2.0])
    with pytest.raises(AutogradError, match="Double: a leaf tensor that requires grad"):
        Double.apply(leaf(1.0))


def test_changed_saved_value_is_noticed():
    x = leaf(1.0)
    y = x * 1
    z = Product.apply(y, leaf(3.0))
    y.add_(1.0)
    with pytest.raises(AutogradError, match="backward of Product: .*changed in place by add_"):
        z.backward()
    z = Exp.apply(x)
    with fw.no_grad():
        z.add_(1.0)
    with pytest.raises(AutogradError, match="backward of Exp"):
        z.backward()


def test_second_backward_says_what_to_do():
    y = Exp.apply(leaf(1.0))
    y.backward()
    with pytest.raises(AutogradError, match="backward through Exp a second time.*retain_graph=True"):
        y.backward()
    y = Exp.apply(leaf(1.0))
    y.backward(retain_graph=True)
    y.backward()


def made(returned):
    """A function of two arguments whose backward returns ``returned``."""
    class Odd(Function):
        @staticmethod
        def forward(ctx, x, k):
            return x * k

        @staticmethod
        def backward(ctx, g):
            return returned
    return Odd


@pytest.mark.parametrize("returned, kind, text", [
    (fw.ones(2, dtype=fw.float64), AutogradError, "Odd.backward returned 1 gradients for 2 arguments"),
    ((None, None, fw.ones(2)), AutogradError, "Odd.backward returned 3 gradients for 2"),
    ((fw.ones(3, dtype=fw.float64), None), ShapeError, r"Odd.backward: gradient 0 has shape \[3\]"),
    ((np.ones(2), None), TypeError, "Odd.backward: gradient 0 must be a Tensor or None, got ndarray"),
    ((fw.ones(2, dtype=fw.float64), fw.ones(2)), AutogradError, "gradient 1 must be None"),
])
def test_wrong_gradients_are_named(returned, kind, text):
    with pytest.raises(kind, match=text):
        made(returned).apply(leaf(1.0, 2.0), 3.0).sum().backward()


def test_gradients_are_brought_to_the_inputs_shape_and_dtype():
    x = leaf(1.0, 2.0)
    made((fw.ones(3, 2), None)).apply(x, 3.0).sum().backward()
    assert x.grad.dtype is fw.float64
    np.testing.assert_allclose(x.grad.numpy(), [3.0, 3.0])
    x.grad = None
    made((None, None, None)).apply(x, 3.0).sum().backward()
    assert x.grad is None


def test_wrong_forward_results_and_misuse():
    class NoTensor(Function):
        @staticmethod
        def forward(ctx, x):
            return 3.0

    with pytest.raises(TypeError, match="NoTensor.forward must return a Tensor or a tuple, got float"):
        NoTensor.apply(leaf(1.0))
    with pytest.raises(TypeError, match="call Exp.apply"):
        Exp()
    with pytest.raises(NotImplementedError, match="static method forward"):
        Function.apply(leaf(1.0))
    with pytest.raises(TypeError, match="save_for_backward: wanted Tensors or None, got int"):
        class Saves(Function):
            @staticmethod
            def forward(ctx, x):
                ctx.save_for_backward(3)
        Saves.apply(leaf(1.0))


def test_once_differentiable():
    class Cube(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x ** 3

        @staticmethod
        @once_differentiable
        def backward(ctx, g):
            assert not fw.is_grad_enabled()
            return g * 3 * ctx.saved_tensors[0] ** 2

    x = leaf(2.0)
    (g,) = grad(Cube.apply(x), x, create_graph=True)
    assert g.item() == 12
    with pytest.raises(AutogradError, match="Cube.backward is marked once_differentiable"):
        g.sum().backward()


def test_saved_intermediates_and_none():
    class Square(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(None, x * 2)
            return x * x

        @staticmethod
        def backward(ctx, g):
            nothing, double = ctx.saved_tensors
            assert nothing is None
            return g * double

    x = leaf(3.0)
    Square.apply(x).backward()
    assert x.grad.item() == 6


def test_returned_saved_tensor_is_not_the_gradient_itself():
    class Own(Function):
        @staticmethod
        def forward(ctx, x, y):
            ctx.save_for_backward(x)
            return x + y

        @staticmethod
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            return x, x

    x, y = leaf(1.0), leaf(2.0)
    for _ in range(2):
        Own.apply(x, y).backward()
    assert x.item() == 1 and x.grad.item() == 2 and y.grad.item() == 2 and x.grad is not y.grad


@pytest.mark.parametrize("where", ["saved", "attribute", "both", "input"])
@pytest.mark.parametrize("create_graph", [False, True])
def test_outputs_on_ctx_leak_nothing(where, create_graph):
    class Keeps(Function):
        @staticmethod
        def forward(ctx, x):
            y = x.exp()
            if where in ("saved", "both"):
                ctx.save_for_backward(y)
            if where == "input":
                ctx.save_for_backward(x)
                ctx.x = x
            ctx.y = y if where in ("attribute", "both") else None
            return y

        @staticmethod
        def backward(ctx, g):
            if where == "input":
                return g * ctx.x.exp()
            return g * (ctx.y if where == "attribute" else ctx.saved_tensors[0])

    gc.disable()
    try:
        x = leaf(0.5, 1.0)
        y = Keeps.apply(x)
        watched = [weakref.ref(y), weakref.ref(y.grad_fn)]
        (g,) = grad(y.sum(), x, create_graph=create_graph)
        if create_graph:
            (h,) = grad(g.sum(), x)
            np.testing.assert_allclose(h.numpy(), np.exp([0.5, 1.0]))
            del h
        del y, g
        assert [w() for w in watched] == [None, None]
    finally:
        gc.enable()


def test_output_that_is_the_input():
    class Same(Function):
        @staticmethod
        def forward(ctx, x):
            return x

        @staticmethod
        def backward(ctx, g):
            return g * 2

    x = leaf(1.0)
    y = Same.apply(x)
    assert y is not x and x.is_leaf
    y.backward()
    assert x.grad.item() == 2


def test_backward_may_be_named_vjp():
    class Five(Function):
        generate_vmap_rule = True

        @staticmethod
        def forward(ctx, x):
            return x * 5

        @staticmethod
        def vjp(ctx, g):
            return g * 5

    class Both(Five):
        @staticmethod
        def backward(ctx, g):
            return g

    x = leaf(1.0)
    Five.apply(x).backward()
    assert x.grad.item() == 5
    with pytest.raises(NotImplementedError, match=r"Both: .*backward \(or vjp.*found both"):
        Both.apply(x).backward()


def test_missing_methods_name_the_class():
    class Nothing(Function):
        pass

    class OnlyForward(Function):
        @staticmethod
        def forward(ctx, x):
            return x * 1

    with pytest.raises(NotImplementedError, match="Nothing: a Function needs a static method forward"):
        Nothing.apply(leaf(1.0))
    assert OnlyForward.apply(fw.ones(1)).item() == 1
    with pytest.raises(NotImplementedError, match="OnlyForward: a Function needs a static method backward"):
        OnlyForward.apply(leaf(1.0)).backward()


def test_in_anomaly_mode_both_lines_of_a_changed_value_are_told():
    class Double(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.mark_dirty(x)
            return x.mul_(2.0)

        @staticmethod
        def backward(ctx, g):
            return g * 2

    with fw.autograd.detect_anomaly():
        y = leaf(1.0) * 1
        z = Exp.apply(y) + Product.apply(y, y)
        Double.apply(y)
        with pytest.raises(AutogradError) as caught:
            z.backward()
    message = str(caught.value)
    assert "a value it kept with save_for_backward (float64[1]) was changed in place by Double" in message
    assert "Product ran at" in message and "Double ran at" in message and "Double.apply(y)" in message


def test_repr_names_the_class():
    assert "Exp" in repr(Exp.apply(leaf(1.0)))


def test_a_view_that_became_a_leaf_stays_one_when_its_base_is_changed():
    """What gathers a gradient of its own is not put behind the base, whether a Function or an op writes."""
    class Scale(Function):
        @staticmethod
        def forward(ctx, x, w):
            x._array[...] *= w._array
            ctx.mark_dirty(x)
            return x

        @staticmethod
        def backward(ctx, g):
            return g, (g * 1.0).sum()

    for write in (Scale.apply, lambda x, w: x.mul_(w)):
        x, w = fw.ones(2, 3), leaf(2.0).sum()
        own, other = x[0].requires_grad_(), x[1]
        place = own.grad_fn, own._node
        write(x, w)
        assert own.is_leaf and (own.grad_fn, own._node) == place and own.tolist() == [2.0] * 3
        assert other.requires_grad and not other.is_leaf
        (own * 3.0).sum().backward()
        assert own.grad.tolist() == [3.0] * 3


def test_what_forward_put_on_ctx_is_found_on_the_node():
    class Scaled(fw.autograd.Function):
        @staticmethod
        def forward(ctx, x, by):
            ctx.by = by
            ctx.save_for_backward(x)
            return x * by

        @staticmethod
        def backward(ctx, g):
            return g * ctx.by, None

    x = fw.ones(2, requires_grad=True)
    y = Scaled.apply(x, 3.0)
    assert y.grad_fn.by == 3.0
    assert not hasattr(y.grad_fn, "other") and not hasattr((x * 2).grad_fn, "by")
    y.sum().backward()
    assert x.grad.tolist() == [3, 3]


class GivesItsParameter(fw.autograd.Function):
    @staticmethod
    def forward(ctx, p, x):
        return p


class NeedsNothing(fw.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.needs_input_grad = (False,)
        return x * 2


class LeavesALevelOpen(fw.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        LeavesALevelOpen.level = fw.autograd.forward_ad.dual_level()
        LeavesALevelOpen.level.__enter__()
        return x * 2

    @staticmethod
    def backward(ctx, g):
        return g


def test_what_forward_may_do_to_its_context_and_its_thread():
    p = fw.nn.Parameter(fw.ones(3), requires_grad=False)
    assert type(GivesItsParameter.apply(p, fw.ones(3))) is fw.nn.Parameter
    assert not NeedsNothing.apply(fw.ones(2, requires_grad=True)).requires_grad

    def in_a_thread_of_its_own():
        LeavesALevelOpen.apply(fw.ones(2, requires_grad=True))
        with pytest.raises(RuntimeError, match="no dual level is open"):
            fw.autograd.forward_ad.make_dual(fw.ones(2), fw.ones(2))
        done.append(fw.is_grad_enabled())
    done = []
    thread = threading.Thread(target=in_a_thread_of_its_own)
    thread.start()
    thread.join()
    assert done == [True]


def test_odd_objects_in_place_of_what_a_view_notes():
    x = fw.ones(3)
    x._more = 5
    with pytest.raises((TypeError, AttributeError)):
        x[0]
    y = fw.ones(3) * 1
    y[0]
    y._more.base = 5
    for call in (lambda: y[0], lambda: y.split(1), lambda: y.t()):
        with pytest.raises((TypeError, AttributeError)):
            call()
