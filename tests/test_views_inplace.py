"""Views and changes in place: every view, change and hook together give the functional formula's gradient."""

import copy
import gc
import itertools
import signal
import sys
import weakref
from contextlib import suppress

import numpy as np
import pytest

import framework as fw
from framework import _native
from framework.errors import AutogradError, DTypeError, ShapeError
from framework.ops.pointwise import arithmetic
from framework.quiet import quiet

DATA = np.random.default_rng(0).normal(size=(3, 4)) + 3.0

# a view, and the mask of the places in a 3 x 4 base that it shows
VIEWS = {
    "row": lambda x: x[1],
    "column": lambda x: x[:, 2],
    "number": lambda x: x[1, 2],
    "slice": lambda x: x[::2, 1:3],
    "transpose": lambda x: x.t(),
    "reshape": lambda x: x.view(2, 6),
    "diagonal": lambda x: x.diagonal(1),
    "squeeze": lambda x: x[0:1].squeeze(0),
    "unsqueeze": lambda x: x.unsqueeze(1),
    "chunk": lambda x: x.split([1, 2])[1],
    "unbind": lambda x: x.unbind(1)[3],
    "windows": lambda x: x.unfold(1, 2, 2),
    "strided": lambda x: x.as_strided((2, 2), (4, 1), 1),
    "expanded to itself": lambda x: x.expand(3, 4),
    "view of a view": lambda x: x.t()[1:3].reshape(2, 3)[:, ::2],
    "deep": lambda x: x.view(4, 3).permute(1, 0)[1:].diagonal().narrow(0, 0, 1),
}
CHANGES = {
    "add_": lambda v: v.add_(2.0),
    "mul_": lambda v: v.mul_(3.0),
    "iadd": lambda v: v.__iadd__(v * 0.5),
    "exp_": lambda v: v.mul_(0.1).exp_(),
    "zero_": lambda v: v.zero_(),
    "fill_": lambda v: v.fill_(1.5),
    "copy_": lambda v: v.copy_(v * 2 + 1),
    "masked_fill_": lambda v: v.masked_fill_(v > 3.0, 1.0),
    "setitem": lambda v: v.__setitem__(Ellipsis, v * 2),
    "clamp_": lambda v: v.clamp_(2.5, 3.5),
}
FUNCTIONAL = {
    "add_": lambda v: v + 2.0, "mul_": lambda v: v * 3.0, "iadd": lambda v: v + v * 0.5,
    "exp_": lambda v: (v * 0.1).exp(), "zero_": lambda v: v * 0.0, "fill_": lambda v: v * 0.0 + 1.5,
    "copy_": lambda v: v * 2 + 1, "masked_fill_": lambda v: fw.where(v > 3.0, 1.0, v),
    "setitem": lambda v: v * 2,
    "clamp_": lambda v: v.clamp(2.5, 3.5),
}
TORCH_REFUSES = {"chunk", "unbind"}  # PyTorch forbids changing one of several views made at once


def weights():
    return fw.tensor(np.random.default_rng(1).normal(size=(3, 4)))


def put(base, view, new):
    """The base with the view's places replaced, by a formula without in-place changes or views."""
    places = view(fw.arange(12).view(3, 4)).reshape(-1)
    flat = base.reshape(-1).index_put((places,), new.reshape(-1))
    return flat.view(3, 4)


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("kind", VIEWS)
def test_change_through_view(kind, change):
    """Values and first and second gradients are those of the functional formula."""
    view, results = VIEWS[kind], []
    for functional in (False, True):
        x = fw.tensor(DATA, requires_grad=True)
        y = x * x
        if functional:
            z = put(y, view, FUNCTIONAL[change](view(y)))
        else:
            v = view(y)
            assert v._base is y
            CHANGES[change](v)
            z = y
        (g,) = fw.autograd.grad((z * z * weights()).sum(), x, create_graph=True)
        second = fw.autograd.grad((g * g).sum(), x)[0]
        results.append([z.detach().numpy(), g.detach().numpy(), second.numpy()])
    for a, b in zip(*results):
        np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("kind", [k for k in VIEWS if k not in TORCH_REFUSES])
def test_like_torch(kind):
    """The same program on PyTorch: base and view both used after the change, a hook on each."""
    torch = pytest.importorskip("torch")
    results = []
    for M in (fw, torch):
        x = M.tensor(DATA, dtype=M.float64).requires_grad_()
        y = x * x
        v = VIEWS[kind](y)
        early, late, base = [], [], []
        v.register_hook(lambda g, found=early: found.append(g.tolist()))
        v.mul_(3.0)
        v.register_hook(lambda g, found=late: found.append(g.tolist()))
        y.register_hook(lambda g, found=base: found.append(g.tolist()))
        loss = (y * y).sum() + (v.exp() * 1e-3).sum()
        loss.backward()
        results.append([x.grad.numpy(), early, late, base])
    (grad, *_), (want, *_) = results
    np.testing.assert_allclose(grad, want, rtol=1e-10)
    (_, early, *found), (_, _, *wanted) = results
    for ours, theirs in zip(found, wanted):
        assert len(ours) == len(theirs) == 1
        np.testing.assert_allclose(np.array(ours[0]), np.array(theirs[0]), rtol=1e-10)
    # a hook from before the change gets the old value's gradient (PyTorch does not call it for a view)
    base = fw.tensor(found[1][0], dtype=fw.float64)
    np.testing.assert_allclose(np.array(early), 3 * VIEWS[kind](base).numpy()[None], rtol=1e-10)


@pytest.mark.parametrize("change", CHANGES)
def test_base_changed_after_view_was_made(change):
    """A view made before its base changes has the new values and the new place in the graph."""
    x = fw.tensor(DATA, requires_grad=True)
    y = x * 1
    views = [view(y) for view in VIEWS.values()]
    CHANGES[change](y)
    z = FUNCTIONAL[change](x * 1)
    for view, v in zip(VIEWS.values(), views):
        w = view(z)
        np.testing.assert_array_equal(v.detach().numpy(), w.detach().numpy())
        got, want = (fw.autograd.grad((t * t).sum(), x, retain_graph=True, materialize_grads=True)[0].numpy()
                     for t in (v, w))
        np.testing.assert_allclose(got, want, rtol=1e-12)


@pytest.mark.parametrize("first, second", list(itertools.combinations(VIEWS, 2))[::5])
def test_sibling_views(first, second):
    """A view sees what is written through another view of the same base."""
    x = fw.tensor(DATA, requires_grad=True)
    y = x * 1
    a, b = VIEWS[first](y), VIEWS[second](y)
    a.mul_(2.0)
    b.mul_(5.0)
    a.add_(1.0)
    z = x * 1
    for kind, step in ((first, lambda t: t * 2.0), (second, lambda t: t * 5.0), (first, lambda t: t + 1.0)):
        z = put(z, VIEWS[kind], step(VIEWS[kind](z)))
    for got, want in ((y, z), (a, VIEWS[first](z)), (b, VIEWS[second](z))):
        np.testing.assert_allclose(got.detach().numpy(), want.detach().numpy())
        grads = [fw.autograd.grad((t * t).sum(), x, retain_graph=True)[0].numpy() for t in (got, want)]
        np.testing.assert_allclose(*grads)


# -- who may be changed --------------------------------------------------------------------------


@pytest.mark.parametrize("change", CHANGES)
def test_leaf_may_not_change(change):
    """A recorded leaf, and a view of one, raise, and nothing happens to them."""
    x = fw.tensor(DATA, requires_grad=True)
    for target in (lambda: x, lambda: x[0], lambda: x.t()):
        with pytest.raises(AutogradError, match="leaf"):
            CHANGES[change](target())
    np.testing.assert_array_equal(x.detach().numpy(), DATA)
    assert x._version == 0


@pytest.mark.parametrize("change", CHANGES)
def test_leaf_may_change_under_no_grad(change):
    """As optimizers do; the leaf stays a leaf and its version rises."""
    x = fw.tensor(DATA, requires_grad=True)
    with fw.no_grad():
        CHANGES[change](x)
        want = FUNCTIONAL[change](fw.tensor(DATA)).numpy()
    np.testing.assert_allclose(x.detach().numpy(), want)
    assert x.is_leaf and x.requires_grad and x._version > 0


@pytest.mark.parametrize("overlapping", [lambda x: x[:, :1].expand(3, 4), lambda x: x.unfold(1, 2, 1),
                                         lambda x: x.as_strided((3, 2), (1, 1))])
def test_overlapping_view_may_not_change(overlapping):
    """Several elements in one place cannot take several values."""
    x = fw.tensor(DATA)
    for change in CHANGES.values():
        with pytest.raises(AutogradError, match="clone"):
            change(overlapping(x))
    np.testing.assert_array_equal(x.numpy(), DATA)


def test_read_only_memory():
    """Memory that NumPy guards is not written to."""
    array = np.ones(3)
    array.flags.writeable = False
    with pytest.raises(ValueError, match="read-only"):
        fw.from_numpy(array).add_(1.0)


# -- versions ------------------------------------------------------------------------------------


def test_versions_are_shared():
    """Views and detached tensors count with their base; ``.data`` and copies count alone."""
    x = fw.tensor(DATA)
    row, bare, data, copy = x[0], x.detach(), x.data, x.clone()
    assert x._version == 0
    row.add_(1.0)
    x[1, 2] = 3.0
    bare.t().zero_()
    assert x._version == row._version == bare._version == 3
    data.add_(1.0)
    copy.add_(1.0)
    assert x._version == 3 and copy._version == 1


@pytest.mark.parametrize("change, name", [
    (lambda y: y.add_(1.0), "add_"), (lambda y: y[0].mul_(2.0), "mul_"), (lambda y: y.zero_(), "zero_"),
    (lambda y: y.__setitem__(0, 1.0), "__setitem__"), (lambda y: y.detach().fill_(1.0), "fill_"),
    (lambda y: y.copy_(y * 1), "copy_")])
def test_kept_value_was_changed(change, name):
    """Backward tells which op kept a value and which changed it."""
    x = fw.tensor(DATA, requires_grad=True)
    y = x * 1
    z = (y * y).sum()
    change(y)
    with pytest.raises(AutogradError, match=f"mul.*changed in place by {name}"):
        z.backward()


def test_changed_index_and_mask_are_noticed():
    """The index of a choice is kept for backward too."""
    x = fw.tensor(DATA, requires_grad=True)
    index, mask = fw.tensor([0, 2]), fw.tensor(DATA > 3)
    for z, change in ((x[index], lambda: index.add_(-1)), (x[:, index], lambda: index.fill_(0)),
                      (x.index_select(0, index), lambda: index.fill_(1)), (x[mask], lambda: mask.zero_())):
        change()
        with pytest.raises(AutogradError, match="changed in place"):
            z.sum().backward()


def test_numpy_index_may_change():
    """An array of the caller is copied, since its changes could not be noticed."""
    x = fw.tensor(DATA, requires_grad=True)
    index = np.array([0, 1])
    z = x[index]
    index[:] = 2
    z.sum().backward()
    assert x.grad.sum(1).tolist() == [4.0, 4.0, 0.0]


# -- assignment ----------------------------------------------------------------------------------


def test_augmented_slices():
    """``x[0] += y`` reads a view, changes it and assigns it to itself: once in the graph."""
    x = fw.tensor([1.0, 2.0, 3.0])
    x[0] += 1
    x[1:] *= 2
    x[[0, 2]] -= 1
    x[x > 4.5] /= 5
    assert x.tolist() == [1.0, 4.0, 1.0]
    w = fw.tensor(3.0, requires_grad=True)
    y = fw.zeros(3)
    y[0] += w * 2
    y[1:] += w * w
    y[[0, 1]] *= w
    y.sum().backward()
    assert w.grad.item() == pytest.approx(4 * 3 + 3 * 9 + 2 * 3)


def test_setitem_in_a_loop():
    """A buffer filled step by step from recorded values, as recurrent programs do."""
    w = fw.tensor(0.5, requires_grad=True)
    out, h = fw.zeros(5), fw.tensor(1.0)
    for t in range(5):
        h = h * w
        out[t] = h
    out.sum().backward()
    assert w.grad.item() == pytest.approx(sum(t * 0.5 ** (t - 1) for t in range(1, 6)))
    assert out.grad_fn is not None and not out.is_leaf


@pytest.mark.parametrize("key", [0, slice(1, 3), (Ellipsis, 1), [2, 0], (slice(None), [1, 3]), (0, 1),
                                 ([0, 1], [2, 3]), DATA > 3.0, (np.array([True, False, True]), slice(1, 3))],
                         ids=str)
@pytest.mark.parametrize("where", ["base", "view"])
def test_setitem_gradients(key, where):
    """Old values that stay and new values get their gradients, also through a view of the target."""
    torch = pytest.importorskip("torch")
    results = []
    for M in (fw, torch):
        x = M.tensor(DATA, dtype=M.float64).requires_grad_()
        v = M.tensor(2.0, dtype=M.float64).requires_grad_()
        y = x * x
        target = y if where == "base" else y.view(4, 3).t()
        at = key
        if where == "view" and isinstance(key, np.ndarray):
            at = key.reshape(4, 3).T
        at = M.tensor(at) if isinstance(at, np.ndarray) else at
        target[at] = v * v
        (y * y).sum().backward()
        results.append([y.detach().numpy(), x.grad.numpy(), v.grad.numpy()])
    for a, b in zip(*results):
        np.testing.assert_allclose(a, b, rtol=1e-12)


def test_failed_assignment_changes_nothing():
    """Errors come before the write."""
    x = fw.tensor(DATA)
    for key, value, kind in ((3, 1.0, IndexError), ([0, 3], 1.0, IndexError), (0, fw.ones(3), ShapeError),
                             ([0, 1], fw.ones(3, 4), ShapeError), (0, "a", TypeError)):
        with pytest.raises(kind):
            x[key] = value
    with pytest.raises(DTypeError):
        x[0] = 1j
    np.testing.assert_array_equal(x.numpy(), DATA)
    assert x._version == 0


# -- overwriting, out=, modes --------------------------------------------------------------------


@pytest.mark.parametrize("overwrite", [lambda y: y.zero_(), lambda y: y.fill_(2.0),
                                       lambda y: y.copy_(fw.ones(3, 4)),
                                       lambda y: y.__setitem__(Ellipsis, 0.0)])
def test_overwritten_tensor_still_requires_grad(overwrite):
    """Its old values get the gradient zero."""
    x = fw.tensor(DATA, requires_grad=True)
    y = x * 2
    overwrite(y)
    assert y.requires_grad
    (y * 3).sum().backward()
    np.testing.assert_array_equal(x.grad.numpy(), np.zeros((3, 4)))


def test_copy_casts_and_broadcasts():
    """The source's gradient has its own dtype and shape."""
    source = fw.tensor([1.0, 2.0, 3.0, 4.0], dtype=fw.float32, requires_grad=True)
    y = fw.zeros(3, 4, dtype=fw.float64)
    y.copy_(source)
    y.sum().backward()
    assert source.grad.dtype is fw.float32 and source.grad.tolist() == [3.0] * 4
    assert fw.zeros(4, dtype=fw.int64).copy_(source.detach() + 0.5).tolist() == [1, 2, 3, 4]


def test_buffer_changed_by_recorded_value():
    """A plain tensor becomes part of the graph; what the op keeps of it survives the write."""
    w = fw.tensor(DATA, requires_grad=True)
    x = fw.tensor(DATA)
    x.mul_(w)
    x.mul_(x)
    x.sum().backward()
    np.testing.assert_allclose(w.grad.numpy(), 2 * DATA ** 3)


def test_out():
    """``out=`` writes into the tensor; with gradients it says no."""
    out = fw.zeros(3, 4, dtype=fw.float64)
    x = fw.tensor(DATA)
    assert fw.add(x, 1.0, out=out) is out and out._version == 1
    np.testing.assert_array_equal(out.numpy(), DATA + 1)
    assert fw.cat([x[:1], x[1:]], out=out) is out
    np.testing.assert_array_equal(out.numpy(), DATA)
    with pytest.raises(RuntimeError, match="out="):
        fw.add(x.requires_grad_(), 1.0, out=out)
    with pytest.raises(ShapeError):
        fw.exp(fw.ones(2, dtype=fw.float64), out=out)


def test_no_grad_change_of_computed_tensor():
    """Not recorded, but noticed where the value was kept."""
    x = fw.tensor(DATA, requires_grad=True)
    y = x * 2
    with fw.no_grad():
        y.mul_(5.0)
        y[0] = 0.0
    y.sum().backward()
    np.testing.assert_array_equal(x.grad.numpy(), np.full((3, 4), 2.0))


@pytest.mark.parametrize("name, call", [
    ("index_add", lambda f, x: f(x, 0, fw.tensor([0, 0]), fw.ones(2, 4, dtype=fw.float64))),
    ("index_copy", lambda f, x: f(x, 0, fw.tensor([2]), fw.ones(1, 4, dtype=fw.float64))),
    ("index_fill", lambda f, x: f(x, 1, fw.tensor([2]), 1.5)),
    ("index_put", lambda f, x: f(x, (fw.tensor([1]), fw.tensor([2])), fw.ones(1, dtype=fw.float64))),
    ("scatter", lambda f, x: f(x, 1, fw.tensor([[1], [2]]), 1.5)),
    ("scatter_add", lambda f, x: f(x, 1, fw.tensor([[1], [1]]), fw.ones(2, 1, dtype=fw.float64))),
    ("masked_scatter", lambda f, x: f(x, x.detach() > 3.0, fw.ones(3, 4, dtype=fw.float64))),
    ("tril", lambda f, x: f(x)), ("triu", lambda f, x: f(x, 1))])
def test_inplace_forms(name, call):
    """``name_`` is ``name`` written into the tensor, with its gradient."""
    results = []
    for form in (getattr(fw, name), getattr(fw.Tensor, f"{name}_")):
        x = fw.tensor(DATA, requires_grad=True)
        y = x * x
        z = call(form, y)
        assert (z is y) == (form is not getattr(fw, name))
        (z * z).sum().backward()
        results.append([z.detach().numpy(), x.grad.numpy()])
    for a, b in zip(*results):
        np.testing.assert_allclose(a, b)


def test_retained_gradient_follows_the_tensor():
    """``retain_grad`` is about the tensor, so after a change it is about the new value, as in PyTorch."""
    torch = pytest.importorskip("torch")
    grads = []
    for M in (fw, torch):
        x = M.tensor(DATA, dtype=M.float64).requires_grad_()
        y = x * 2
        y.retain_grad()
        y.mul_(3.0)
        (y * y).sum().backward()
        grads.append(y.grad.numpy())
    np.testing.assert_allclose(*grads)


def test_graph_is_freed_without_the_collector():
    """Views and changes make no cycles: base, view and nodes go with their last reference."""
    gc.collect()
    gc.disable()
    try:
        x = fw.tensor(DATA, requires_grad=True)
        y = x * x
        v = y[0]
        v.mul_(2.0)
        y[1] = v
        y[[0, 1]] = v
        refs = [weakref.ref(o) for o in (y, v, y.grad_fn, v.grad_fn)]
        del y, v
        assert all(ref() is None for ref in refs)
    finally:
        gc.enable()


def _steps(function):
    """How many instructions of Python a call of ``function`` takes."""
    count = 0

    def count_steps(frame, event, arg):
        nonlocal count
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        count += event == "opcode"
        return count_steps
    function()  # what is done once
    before = sys.gettrace()
    sys.settrace(count_steps)
    try:
        function()
    finally:
        sys.settrace(before)
    return count


@pytest.mark.parametrize("change", [lambda y, v: y.add_(1.0), lambda y, v: y.mul_(2.0),
                                    lambda y, v: y.fill_(3.0), lambda y, v: v.add_(1.0)])
def test_a_write_costs_the_same_however_many_views_are_in_no_graph(change):
    """Those of a plain tensor, those taken under no_grad, and those that are gone: counted, not timed."""
    def recorded():
        return fw.ones(1000, 2, requires_grad=True) * 1.0

    for make, taking in ((lambda: fw.ones(1000, 2), fw.enable_grad), (recorded, fw.no_grad)):
        few, many = make(), make()
        with taking():
            one, views = few[1], [many[i] for i in range(1000)]
        assert _steps(lambda: change(many, views[1])) <= _steps(lambda: change(few, one)) + 2
    many = recorded()
    gone = [many[i] for i in range(1000)]
    del gone
    assert _steps(lambda: change(many, many)) <= _steps(lambda: change(few, few)) + 2
    one, alive, gone = few[1], many[1], [many[i] for i in range(1000)]
    del gone
    assert _steps(lambda: change(many, alive)) <= _steps(lambda: change(few, one)) + 2


def test_a_view_taken_under_no_grad_stays_a_constant_until_it_is_written():
    """Whatever is written to its base; one taken while its base was in no graph enters it with the base."""
    p = fw.tensor(DATA, requires_grad=True)
    y = p * 2.0
    with fw.no_grad():
        v = y[0]
    w = y[1]
    y.mul_(3.0)
    assert not v.requires_grad and w.requires_grad
    np.testing.assert_array_equal(v.numpy(), DATA[0] * 6)
    v.add_(p[2])
    assert v.requires_grad
    y.mul_(5.0)  # and from now on it goes along
    (v.sum() + w.sum()).backward()
    np.testing.assert_array_equal(p.grad.numpy(), np.array([[0.0], [30.0], [5.0]]).repeat(4, 1))
    x = fw.zeros(3, 4, dtype=fw.float64)
    v = x[0]
    p.grad = None
    x.add_(p)
    v.sum().backward()
    np.testing.assert_array_equal(p.grad.numpy(), np.array([[1.0], [0.0], [0.0]]).repeat(4, 1))


def test_strides_reach_only_memory_that_is_there():
    """A view by strides of a tensor that is a part of a larger memory: the rest has no gradient."""
    whole = fw.arange(10.0)
    part = whole.detach()[6:9].detach()
    scale = fw.full((4,), 2.0, requires_grad=True)
    view = part.as_strided((4,), (2,), 0)
    view.mul_(scale)
    assert whole.tolist() == [0, 1, 4, 3, 8, 5, 12, 7, 8, 9]
    assert part.tolist() == [12, 7, 8]
    part.sum().backward()
    assert scale.grad.tolist() == [0, 0, 0, 6]

    x = fw.arange(10.0)[6:9].detach().requires_grad_()
    y = x.as_strided((4,), (2,), 0)
    first, = fw.autograd.grad((y * y).sum(), x, create_graph=True)
    second, = fw.autograd.grad(first.sum(), x)
    assert first.tolist() == [12, 0, 0] and second.tolist() == [2, 0, 0]


# -- what a signal handler raises in the middle of a write -------------------------------------------


@pytest.mark.parametrize("dtype", [fw.float32, fw.float16, fw.int64, fw.complex64], ids=repr)
@pytest.mark.parametrize("layout", [lambda x: x, lambda x: x.t()], ids=["rows", "transposed"])
@pytest.mark.parametrize("error", [RuntimeError, TypeError, ValueError, KeyboardInterrupt])
def test_a_write_that_a_signal_handler_ends_runs_once_and_is_counted(error, layout, dtype, monkeypatch):
    """No second call hides the error, and nobody takes what is there for what was saved."""
    record, arrived = arithmetic.add_op, error("time is over")
    fw.ones(1) + fw.ones(1)  # so that its kernel is there
    kernel, runs = record.cpu, []

    def interrupted(*arrays, **settings):
        out = kernel(*arrays, **settings)
        runs.append("out" in settings)
        if len(runs) == 1:
            signal.raise_signal(signal.SIGTERM)
        return out

    def handler(number, frame):
        raise arrived
    monkeypatch.setattr(record, "cpu", interrupted)
    before = signal.signal(signal.SIGTERM, handler)
    try:
        x = layout(fw.zeros(3, 4, dtype=dtype))
        version = x._version
        with pytest.raises(error) as caught:
            x.add_(1)
    finally:
        signal.signal(signal.SIGTERM, before)
    assert caught.value is arrived and len(runs) == 1
    assert x.tolist() == fw.full(x.shape, int(x._version > version), dtype=dtype).tolist()


@pytest.mark.parametrize("write", [
    lambda x: x.fill_(1.0), lambda x: x.copy_(fw.ones(4)), lambda x: x.__setitem__(slice(None), fw.ones(4)),
    lambda x: x.exp_(), lambda x: x.__setitem__(fw.tensor([0, 1]), fw.ones(2))])
def test_writes_that_end_early_are_counted(write, monkeypatch):
    class Ends:
        """NumPy's memory is written, then a signal comes."""

        def __call__(self, function, *args, **settings):
            function(*args, **settings)
            raise KeyboardInterrupt
    x = fw.zeros(4)
    version, ends = x._version, Ends()
    monkeypatch.setattr(quiet, "plain", ends)
    monkeypatch.setattr(quiet, "run", ends)
    with suppress(KeyboardInterrupt):  # native fills do not go that way, and are not interrupted
        write(x)
    monkeypatch.undo()
    assert x._version > version or x.tolist() == [0, 0, 0, 0]


@pytest.mark.skipif(_native.module is None, reason="views are made by C++")
def test_pythons_collector_looks_at_two_objects_of_a_view():
    """Numbers and names say how it was made; a list of many views is collected often otherwise."""
    x = fw.ones(4, 5)
    for make in (lambda: x[1], lambda: x.view(-1), lambda: x.unbind(0)[2], lambda: x[1:3, 2],
                 lambda: x.T[2][1:], lambda: x.view(2, 10)[1].reshape(5, 2)):
        view = make()
        more = view._more
        assert gc.is_tracked(view) and gc.is_tracked(more) and more.base is x
        links = more.links
        while links is not None:
            assert not gc.is_tracked(links) and not gc.is_tracked(links[3])
            links = links[0]
    y = fw.zeros(3, requires_grad=True) * 1
    view = y[1:]
    view.mul_(2.0)
    dead = weakref.ref(y)
    del y, view
    gc.collect()
    assert dead() is None


ACTIVATIONS = {"relu": lambda y: fw.nn.functional.relu(y, inplace=True), "sigmoid": lambda y: y.sigmoid_(),
               "exp": lambda y: y.exp_(), "tanh": lambda y: y.tanh_(),
               "leaky_relu": lambda y: fw.nn.functional.leaky_relu(y, 0.5, inplace=True)}
def _as_data_of_another(y):
    z = fw.zeros(4)
    z.data = y
    z.fill_(9)


AFTERWARDS = {  # of what an activation has written, by roads that backward knows of or not
    "add_": lambda y: y.add_(1), "twice": lambda y: y.mul_(2).mul_(3), "part": lambda y: y[1:].sub_(5),
    "again": lambda y: y.sigmoid_(), "assigned": lambda y: y.__setitem__(0, 0.5),
    "fill_": lambda y: y.fill_(0.25), "copy_": lambda y: y.copy_(y * 2), "data": lambda y: y.data.mul_(2),
    "detach": lambda y: y.detach().add_(1), "alias": lambda y: copy.copy(y).add_(1),
    "numpy": lambda y: y.detach().numpy().__setitem__(slice(None), 3),
    "forced": lambda y: y.numpy(force=True).__setitem__(slice(None), 3),
    "storage": lambda y: y.untyped_storage().fill_(0), "no_grad": lambda y: fw.no_grad()(y.add_)(1),
    "no_grad part": lambda y: fw.no_grad()(y[1:].add_)(1),
    "data of a view": lambda y: y[1:].data.fill_(9), "pieces": lambda y: [v.data.fill_(9) for v in y],
    "numpy of a view": lambda y: y[1:].detach().numpy().fill(9),
    "copy of a view": lambda y: copy.copy(y[1:]).data.fill_(9),
    "storage of a view": lambda y: y[1:].untyped_storage().fill_(7), "data of another": _as_data_of_another,
    "parameter": lambda y: fw.nn.Parameter(y).data.fill_(9), "detach_": lambda y: y.detach_().data.fill_(9),
    "vmap": lambda y: fw.no_grad()(lambda: fw.func.vmap(lambda r: r.mul_(0.0))(y))()}


@pytest.mark.parametrize("change", AFTERWARDS)
@pytest.mark.parametrize("name", ACTIVATIONS)
def test_backward_of_an_activation_in_place_sees_its_own_result(name, change):
    """Which is the memory of the tensor till that is changed, whoever holds it."""
    activation = ACTIVATIONS[name]
    for before in (lambda y: None, lambda y: y.data, lambda y: y.detach().numpy()):
        w = fw.tensor([-1.0, 0.5, 2.0, 3.0], requires_grad=True)
        y = w * 2
        held = before(y)
        activation(y)
        place = fw.autograd.graph.get_gradient_edge(y)
        AFTERWARDS[change](y)
        (got,) = fw.autograd.grad(place, w, fw.ones(4))
        assert held is None or len(held) == 4
        plain = {"leaky_relu": lambda x: fw.where(x > 0, x, 0.5 * x)}.get(name) or getattr(fw, name)
        (want,) = fw.autograd.grad(plain(w * 2).sum(), w)
        np.testing.assert_array_equal(got.numpy(), want.numpy())


@pytest.mark.parametrize("held", ["data", "numpy", "view"])
def test_memory_that_others_hold_is_not_kept_by_an_activation_in_place(held):
    w = fw.tensor([-1.0, 0.5, 2.0], requires_grad=True)
    y = w * 2
    other = {"data": lambda: y.data, "numpy": lambda: y.detach().numpy(),
             "view": lambda: y.detach()[:]}[held]()
    y.sigmoid_()
    other[:] = 7.0
    y.sum().backward()
    s = (w.detach() * 2).sigmoid()
    np.testing.assert_allclose(w.grad.numpy(), (2 * s * (1 - s)).numpy(), rtol=1e-6)


@pytest.mark.skipif(_native.module is None, reason="NumPy's way keeps a copy")
@pytest.mark.parametrize("name", ACTIVATIONS)
def test_an_activation_in_place_takes_no_memory(name):
    w = fw.ones(1 << 16, requires_grad=True)
    y = w * 2
    before = fw.cpu.memory_allocated()
    fw.cpu.reset_peak_memory_stats()
    ACTIVATIONS[name](y)
    assert fw.cpu.max_memory_allocated() - before < 1 << 12
    y.sum().backward()
    with pytest.raises(AutogradError, match="second time"):
        y.sum().backward()


@pytest.mark.parametrize("slope", [0.5, 0, -0.5, -2, fw.tensor(-0.5)], ids=str)
@pytest.mark.parametrize("inplace", [False, True])
def test_leaky_relu_with_any_slope(slope, inplace):
    """Where it is negative the result does not tell where the element was positive."""
    x = fw.tensor([-2.0, -0.0, 0.0, 3.0, float("nan")], dtype=fw.float64, requires_grad=True)
    y = fw.nn.functional.leaky_relu(x * 1, slope, inplace)
    (g,) = fw.autograd.grad(y, x, fw.ones(5, dtype=fw.float64))
    own = x.detach().numpy()
    np.testing.assert_array_equal(y.detach().numpy(), np.where(own > 0, own, float(slope) * own))
    np.testing.assert_array_equal(g.numpy(), np.where(own > 0, 1, float(slope)))


@pytest.mark.parametrize("pack", [lambda t: t.detach().numpy(), lambda t: t], ids=["as an array", "itself"])
def test_what_hooks_are_given_of_an_activation_in_place_is_not_changed_afterwards(pack):
    w = fw.tensor([-1.0, 0.5, 2.0], requires_grad=True)
    y = w * 2
    with fw.autograd.graph.saved_tensors_hooks(pack, lambda a: fw.as_tensor(a)):
        y.sigmoid_()
    y.mul_(3.0)
    y.sum().backward()
    s = (w.detach() * 2).sigmoid()
    np.testing.assert_allclose(w.grad.numpy(), (6 * s * (1 - s)).numpy(), rtol=1e-6)
