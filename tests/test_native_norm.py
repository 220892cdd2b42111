"""Softmax, norms and cross_entropy: native kernels against the NumPy formulas, and all derivatives."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import framework as fw
from framework import _native
from framework.autograd import gradcheck, gradgradcheck
from framework.ops.losses import classes as class_losses
from framework.ops.losses.ctc import ctc_grad, ctc_op
from framework.ops.normalization import channels
from framework.ops.normalization import moments as norm
from framework.ops.normalization.channels import fixed_norm
from framework.ops.reduce import softmax

module = _native.module
pytestmark = pytest.mark.usefixtures("each_threads")
needs_native = pytest.mark.skipif(module is None, reason=f"no native extension: {_native.isa}")
F = fw.nn.functional
INF, NAN = math.inf, math.nan
# what results are checked in; where none is wider, the formula's own roundings are allowed for
WIDER = {np.dtype(np.float32): np.float64, np.dtype(np.float64): np.longdouble}
EXACT = np.finfo(np.longdouble).eps < np.finfo(np.float64).eps
# of the largest number of a result, for numbers of about 1
TOLERANCE = {np.dtype(np.float32): 2e-6, np.dtype(np.float64): 4e-15 if EXACT else 2e-14}
LARGEST = 2 ** 20  # numbers in a drawn array
sizes = st.one_of(st.integers(1, 9), st.sampled_from([15, 16, 17, 31, 33, 64, 67]))
lengths = st.one_of(sizes, st.sampled_from([130, 1000, 2050, 4099]))
dtypes = st.sampled_from([np.float32, np.float64])
seeds = st.integers(0, 2 ** 16)
layouts = st.sampled_from(["rows", "columns", "steps", "backwards", "expanded"])
slow = settings(deadline=None, max_examples=60)


def laid(a, layout):
    """The same numbers (of one slice, expanded) lying otherwise."""
    if layout == "columns":
        return np.asfortranarray(a)
    if layout == "steps":
        wide = np.zeros((*a.shape[:-1], 2 * a.shape[-1]), a.dtype)
        wide[..., ::2] = a
        return wide[..., ::2]
    if layout == "backwards":
        return np.ascontiguousarray(a[..., ::-1])[..., ::-1]
    return np.broadcast_to(a[:1], a.shape) if layout == "expanded" else a


def numbers(seed, *shape, dtype=np.float64, layout="rows"):
    return laid(np.random.default_rng(seed).normal(size=shape).astype(dtype), layout)


def shapes(*parts):
    return st.tuples(*parts).filter(lambda shape: math.prod(shape) <= LARGEST)


def wide(x):
    return x.astype(WIDER[x.dtype]) if isinstance(x, np.ndarray) and x.dtype in WIDER else x


def agrees(op, *arrays, allowed=0.0, **given):
    """The native result is the formula's, computed in a wider dtype, but for some roundings; it is returned.

    allowed: what the first result may be off beyond that.
    """
    found = getattr(module, op.native)(*arrays, **given)
    assert found is not NotImplemented, f"{op.name} was left to NumPy"
    with np.errstate(all="ignore"):
        wanted = op.plain(*map(wide, arrays), **given)
    pairs = zip(found, wanted, strict=True) if isinstance(wanted, tuple) else [(found, wanted)]
    for i, (a, b) in enumerate(pairs):
        assert a.shape == np.shape(b) and a.flags.c_contiguous
        b = np.asarray(b)
        limit = TOLERANCE[a.dtype] * np.abs(b[np.isfinite(b)]).max(initial=1) + (0 if i else allowed)
        np.testing.assert_allclose(a, b, rtol=TOLERANCE[a.dtype], atol=limit, err_msg=op.name)
    return found


# -- softmax ---------------------------------------------------------------------------------------------


@needs_native
@slow
@given(shapes(sizes, lengths, st.sampled_from([1, 2, 17, 300])), st.integers(0, 2), dtypes, layouts, seeds)
def test_softmax(shape, dim, dtype, layout, seed):
    x = numbers(seed, *shape, dtype=dtype, layout=layout) * dtype(3)
    g = numbers(seed + 1, *shape, dtype=dtype, layout=layout)
    for forward, backward in ((softmax.softmax_op, softmax.softmax_grad),
                              (softmax.log_softmax_op, softmax.log_softmax_grad)):
        y = agrees(forward, laid(x, layout), dim=dim)
        agrees(backward, g, y, dim=dim)


@needs_native
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("inner", [1, 3])
def test_softmax_of_special_numbers(dtype, inner):
    """-inf is left out, a row of -inf, with nan or with inf is nan, and denormals are numbers."""
    rows = [[0.0, -INF, 1.0], [-INF, -INF, -INF], [NAN, 0.0, 1.0], [1.0, 0.0, NAN], [INF, 0.0, 1.0],
            [1e-40, -1e-40, 0.0], [1e30, -1e30, 0.0], [-700.0, -690.0, -1e4]]
    for extra in (0, 14, 40):  # in the rest, in a whole vector
        x = np.array([row + [-5.0] * extra for row in rows], dtype)
        x = np.repeat(x[:, :, None], inner, 2)
        for op in (softmax.softmax_op, softmax.log_softmax_op):
            got = getattr(module, op.native)(x, dim=1)
            with np.errstate(all="ignore"):
                wanted = op.plain(x.astype(np.float64), dim=1)
            np.testing.assert_array_equal(np.isnan(got), np.isnan(wanted))
            least = 1e-37 if op is softmax.softmax_op else 2 ** -23  # of a logarithm, a digit of the sum
            np.testing.assert_allclose(got, wanted, rtol=1e-6, atol=least if dtype == np.float32 else 1e-15)


@needs_native
def test_large_results_go_past_the_caches():
    x, g = (numbers(i, 4100, 1040, dtype=np.float32) for i in (0, 1))
    y = agrees(softmax.softmax_op, x, dim=1)
    agrees(softmax.softmax_grad, g, y, dim=1)
    w = numbers(2, 1040, dtype=np.float32)
    case = {"dims": (1,), "per": (1040,), "eps": 1e-5}
    _, mean, var = agrees(norm.layer_norm_op, x, w, w, **case)
    gx, *_ = module.layer_norm_grad(g, x, w, mean, var, wanted=(True, True), **case)
    plain = norm.layer_norm_op.plain, norm._grad_kernel
    wanted = plain[1](np, *map(wide, (g, x, w, mean, var)), wanted=(True, True), **case)[0]
    np.testing.assert_allclose(gx, wanted, atol=2e-5)


# -- normalisations --------------------------------------------------------------------------------------


def check_norm(name, x, g, weight, bias, **case):
    op = getattr(norm, f"{name}_op")
    offset = x.dtype.type(3)
    centred = name != "rms_norm"
    given = (x + offset, weight, bias)[:3 if centred else 2]
    _, *statistics = agrees(op, *given, allowed=rounded_mean(*given[:2], **case) if centred else 0, **case)
    backward = next(o for o in fw.ops.OPS if o.name == f"{name}_grad")
    for wanted in ((True, True), (True, False), (False, True)):
        agrees_grad(backward, g, x + offset, weight, *statistics, wanted=wanted, **case)


def rounded_mean(x, weight, *, dims, per, eps):
    """What one rounding of the mean makes of y: much where x hardly varies."""
    scale = 1 / np.sqrt(wide(x).var(axis=dims, keepdims=True) + eps)
    if weight is not None:
        scale = scale * np.abs(weight.reshape(per))
    return float(np.finfo(x.dtype).eps * np.abs(x).max() * scale.max())


def agrees_grad(op, *arrays, **given):
    """As ``agrees``, but where x is constant its sum of squares, and so the gradient, is rounding alone."""
    found = getattr(module, op.native)(*arrays, **given)
    assert found is not NotImplemented, f"{op.name} was left to NumPy"
    for a, b in zip(found, op.plain(*map(wide, arrays), **given), strict=True):
        assert a.shape == b.shape
        scale = np.abs(b).max(initial=1) * math.sqrt(arrays[1].size)
        np.testing.assert_allclose(a, b, rtol=0, atol=TOLERANCE[a.dtype] * scale, err_msg=op.name)


@needs_native
@slow
@given(shapes(sizes, sizes, lengths), st.integers(1, 3), dtypes, layouts, seeds, st.booleans(),
       st.booleans())
def test_layer_norm(shape, count, dtype, layout, seed, weighted, shifted):
    x, g = (numbers(seed + i, *shape, dtype=dtype, layout=layout) for i in (0, 1))
    per = shape[3 - count:]
    w = numbers(seed + 2, *per, dtype=dtype) if weighted else None
    b = numbers(seed + 3, *per, dtype=dtype) if shifted else None
    case = {"dims": tuple(range(3 - count, 3)), "per": per, "eps": 0.1}
    check_norm("layer_norm", x, g, w, b, **case)
    check_norm("rms_norm", x, g, w, None, **case)


@needs_native
@slow
@given(st.integers(2, 200), sizes, st.sampled_from([(), (1,), (3,), (4, 4), (7, 7), (50, 50)]), dtypes,
       layouts, seeds, st.booleans())
def test_batch_norm(samples, channels, rest, dtype, layout, seed, weighted):
    shape = (samples if len(rest) < 2 else samples % 7 + 1, channels, *rest)
    x, g = (numbers(seed + i, *shape, dtype=dtype, layout=layout) for i in (0, 1))
    w, b = (numbers(seed + i, channels, dtype=dtype) if weighted else None for i in (2, 3))
    per = (1, channels) + (1,) * len(rest)
    check_norm("batch_norm", x, g, w, b, dims=(0, *range(2, x.ndim)), per=per, eps=0.1)
    mean, var = numbers(seed, channels, dtype=dtype), np.square(numbers(seed + 5, channels, dtype=dtype))
    agrees(fixed_norm, x, mean, var, w, b, per=per, eps=0.1)


@needs_native
@slow
@given(sizes, st.integers(1, 5), st.integers(1, 5), st.sampled_from([(16,), (4, 5), (7, 7), (50, 50)]),
       dtypes, layouts, seeds, st.booleans())
def test_group_norm(samples, groups, each, rest, dtype, layout, seed, weighted):
    shape = (samples, groups, each, *rest)
    x, g = (numbers(seed + i, *shape, dtype=dtype, layout=layout) for i in (0, 1))
    w, b = (numbers(seed + i, groups * each, dtype=dtype) if weighted else None for i in (2, 3))
    check_norm("group_norm", x, g, w, b, dims=tuple(range(2, x.ndim)), eps=0.1,
               per=(1, groups, each) + (1,) * len(rest))


@pytest.mark.parametrize("last", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("dtype", [fw.float32, fw.float64])
def test_gradients_with_given_statistics(dtype, weighted, last, monkeypatch):
    """Of frozen batch norms: as the formula, and of the second order."""
    layer = fw.nn.BatchNorm2d(19, affine=weighted, dtype=dtype).eval()
    layer.running_mean.copy_(fw.randn(19)), layer.running_var.copy_(fw.rand(19) + 0.5)
    x = fw.randn(3, 19, 5, 7, dtype=dtype)
    x = (x.contiguous(memory_format=fw.channels_last) if last else x).requires_grad_()
    g = fw.randn(*x.shape, dtype=dtype)

    def gradients():
        found = fw.autograd.grad(layer(x), [x, *layer.parameters()], g)
        return [*found, *fw.autograd.grad(layer(x), list(layer.parameters())[1:] + [x], g)]
    found = gradients()
    monkeypatch.setattr(channels, "_fixed_grads", None)
    for got, wanted in zip(found, gradients()):
        np.testing.assert_allclose(got.numpy(), wanted.numpy(), atol=1e-4 if dtype is fw.float32 else 1e-12)
    if dtype is fw.float64:
        monkeypatch.undo()
        small = fw.randn(2, 19, 2, 1, dtype=dtype, requires_grad=True)
        assert gradgradcheck(lambda a: layer(a).sin(), [small])


@pytest.mark.parametrize("offset", [1e3, -1e5])
def test_variance_far_from_zero(offset):
    """Squares are taken of distances from the mean, so no digits are lost to it; also after outlying rows."""
    x = numbers(0, 512, 4, 40, dtype=np.float32) + np.float32(offset)
    x[:16] = 0
    for a in (x, np.ascontiguousarray(x[:, :, 0])):
        axes = (0, *range(2, a.ndim))
        mean, var = fw.zeros(4), fw.zeros(4)
        F.batch_norm(fw.tensor(a), mean, var, training=True, momentum=1.0)
        np.testing.assert_allclose(mean.numpy(), a.mean(axis=axes, dtype=np.float64), rtol=1e-6)
        np.testing.assert_allclose(var.numpy(), a.var(axis=axes, dtype=np.float64, ddof=1), rtol=1e-5)


def test_the_same_numbers_for_any_number_of_threads():
    x, w = fw.tensor(numbers(0, 300, 130)), fw.tensor(numbers(1, 130))
    results = []
    for n in (1, 2, 3):
        fw.set_num_threads(n)
        a, b = x.clone().requires_grad_(), w.clone().requires_grad_()
        y = F.layer_norm(a, (130,), b) + F.batch_norm(a, None, None, b, training=True)
        F.cross_entropy(y, fw.arange(300) % 130).backward()
        results.append([a.grad.numpy(), b.grad.numpy()])
    for other in results[1:]:
        np.testing.assert_array_equal(other[0], results[0][0])
        np.testing.assert_array_equal(other[1], results[0][1])


def test_mixed_dtypes():
    """Of 16 bits, the result has the input's dtype and all is computed in float32; else the widest dtype."""
    x = numbers(0, 6, 300) * 300  # whose squares float16 cannot hold
    for dtype, weights in ((fw.float16, fw.float16), (fw.float16, fw.float32), (fw.float32, fw.float64)):
        a = fw.tensor(x).to(dtype).requires_grad_()
        w = fw.ones(300, dtype=weights)
        y = F.layer_norm(a, (300,), w)
        assert y.dtype is (dtype if dtype is fw.float16 else weights)
        y.square().sum().backward()
        assert a.grad.dtype is dtype and bool(fw.isfinite(a.grad).all())
        wanted = (x - x.mean(1, keepdims=True)) / x.std(1, keepdims=True)
        np.testing.assert_allclose(y.detach().to(fw.float64).numpy(), wanted, atol=1e-2)


def test_running_statistics_may_move_before_backward():
    """What evaluation normalised by is kept as it was."""
    mean, var = fw.zeros(2), fw.ones(2)
    x = fw.tensor([[1.0, 2.0], [3.0, 5.0]], requires_grad=True)
    y = F.batch_norm(x, mean, var, training=False, eps=0.0)
    F.batch_norm(x.detach(), mean, var, training=True)
    y.sum().backward()
    np.testing.assert_array_equal(x.grad.numpy(), np.ones((2, 2)))


# -- cross_entropy ---------------------------------------------------------------------------------------


@needs_native
@slow
@given(shapes(sizes, lengths, st.sampled_from([1, 5, 300])), st.booleans(), dtypes, layouts, seeds,
       st.booleans(), st.sampled_from([0.0, 0.2, 1.0]), st.sampled_from(["none", "sum", "mean"]))
def test_cross_entropy(shape, flat, dtype, layout, seed, weighted, smoothing, reduction):
    samples, classes, *rest = shape[:2] if flat and shape[2] == 1 else shape
    x = numbers(seed, samples, classes, *rest, dtype=dtype, layout=layout)
    rng = np.random.default_rng(seed)
    target = rng.integers(0, classes, size=(samples, *rest))
    target[rng.random(target.shape) < 0.2] = -100
    w = rng.uniform(0.5, 2, classes).astype(dtype) if weighted else None
    case = {"ignore": -100, "smoothing": smoothing, "reduction": reduction}
    _, top, total = agrees(class_losses.cross_entropy_op, x, target, w, **case)
    g = numbers(seed + 1, *target.shape, dtype=dtype) if reduction == "none" else np.asarray(0.7, dtype)
    agrees(class_losses.cross_entropy_grad, g, x, target, w, top, total, **case)


def test_cross_entropy_of_far_scores():
    """Large scores cost no digits: what is kept is the largest one and the sum of what is left."""
    scores = np.array([[1e4, 1e4 - 1, 1e4 - 2], [-3e4, -3e4 + 0.5, -3e4]])
    x = fw.tensor(scores.astype(np.float32), requires_grad=True)
    F.cross_entropy(x, fw.tensor([0, 1])).backward()
    e = np.exp(scores - scores.max(1, keepdims=True))
    p = e / e.sum(1, keepdims=True)
    np.testing.assert_allclose(x.grad.numpy(), (p - np.eye(3)[:2]) / 2, rtol=1e-6)


def test_cross_entropy_of_ignored_rows():
    """A row that counts nothing gets a gradient of 0, whatever it holds."""
    x = fw.tensor([[NAN, 1.0], [INF, INF], [0.5, 0.25]], requires_grad=True)
    loss = F.cross_entropy(x, fw.tensor([-100, -100, 1]))
    loss.backward()
    assert math.isfinite(loss.item())
    np.testing.assert_array_equal(x.grad.numpy()[:2], 0)
    assert x.grad.numpy()[2].all()


# -- derivatives of every order --------------------------------------------------------------------------


def leaf(seed, *shape):
    return fw.tensor(numbers(seed, *shape), requires_grad=True)


CLASSES = fw.tensor([[0, 2, -100, 1], [1, 1, 0, 2]])
CASES = {
    "softmax": (lambda x: F.softmax(x, 1), (2, 3, 4)),
    "log_softmax": (lambda x: F.log_softmax(x, -1), (2, 3, 4)),
    "layer_norm": (lambda x, w, b: F.layer_norm(x, (4,), w, b), (3, 4), (4,), (4,)),
    "layer_norm of two": (lambda x: F.layer_norm(x, (3, 4)), (2, 3, 4)),
    "layer_norm with a shift": (lambda x, b: F.layer_norm(x, (4,), None, b), (3, 4), (4,)),
    "rms_norm": (lambda x, w: F.rms_norm(x, (4,), w), (3, 4), (4,)),
    "batch_norm": (lambda x, w, b: F.batch_norm(x, None, None, w, b, training=True), (3, 2, 4), (2,), (2,)),
    "batch_norm by given": (lambda x, m, v, w, b: F.batch_norm(x, m, v * v, w, b, eps=0.5),
                            (3, 2, 4), (2,), (2,), (2,), (2,)),
    "group_norm": (lambda x, w, b: F.group_norm(x, 2, w, b), (2, 4, 3), (4,), (4,)),
    "instance_norm": (lambda x, w: F.instance_norm(x, weight=w), (2, 2, 4), (2,)),
    "cross_entropy": (lambda x: F.cross_entropy(x, CLASSES), (2, 3, 4)),
    "cross_entropy smoothed": (lambda x: F.cross_entropy(x, CLASSES, fw.tensor([1.0, 0.5, 2.0]).double(),
                                                         label_smoothing=0.2, reduction="none"), (2, 3, 4)),
    "cross_entropy summed": (lambda x: F.cross_entropy(x, CLASSES, reduction="sum"), (2, 3, 4)),
}


@pytest.mark.parametrize("name", CASES)
def test_three_derivatives(name):
    """The backward of each, whose own derivative is written by hand, has true derivatives too."""
    function, *shapes = CASES[name]
    inputs = [leaf(i, *shape) for i, shape in enumerate(shapes)]
    assert gradcheck(function, inputs)
    assert gradgradcheck(function, inputs)

    def gradients(*xs):
        y = function(*xs)
        loss = (y * fw.tensor(np.cos(np.arange(y.numel())).reshape(y.shape))).sum()
        return [g for g in fw.autograd.grad(loss, xs, create_graph=True) if g.requires_grad]

    assert gradgradcheck(gradients, inputs, atol=1e-4)


@pytest.mark.parametrize("name", CASES)
def test_forward_mode(name):
    """Pushing a tangent forward gives the transposed of pulling one back."""
    function, *shapes = CASES[name]
    inputs = [leaf(i, *shape) for i, shape in enumerate(shapes)]
    tangents = tuple(fw.tensor(numbers(9 + i, *shape)) for i, shape in enumerate(shapes))
    y, moved = fw.func.jvp(function, tuple(x.detach() for x in inputs), tangents)
    v = fw.tensor(numbers(20, *y.shape))
    pulled = fw.autograd.grad(function(*inputs), inputs, v)
    there = float((moved * v).sum())
    back = sum(float((g * t).sum()) for g, t in zip(pulled, tangents, strict=True))
    assert there == pytest.approx(back, rel=1e-9)


@needs_native
@pytest.mark.parametrize("order", ["turned", "backward", "repeated", "every other"])
def test_rows_that_do_not_lie_together(order):
    whole = np.random.default_rng(0).standard_normal((300, 700)).astype(np.float32)  # copied without the GIL
    laid = {
        "turned": np.ascontiguousarray(whole.T).T,
        "backward": np.ascontiguousarray(whole[::-1, ::-1])[::-1, ::-1],
        "repeated": np.broadcast_to(whole[:1], whole.shape),
        "every other": np.repeat(whole, 2, axis=1)[:, ::2],
    }[order]
    rows = np.ascontiguousarray(laid)
    calls = [("softmax", {"dim": 1}), ("softmax", {"dim": 0}), ("cumsum", {"dim": 1, "reverse": False})]
    for name, options in calls:
        kernel = getattr(module, name)
        np.testing.assert_array_equal(kernel(laid, **options), kernel(rows, **options))


@needs_native
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("longest", [0, 1, 4, 20])
def test_alignments_are_those_of_the_formula(dtype: type, longest: int) -> None:
    """Losses, what is on the way, and gradients; with repeated labels, lengths of 0, and too many labels."""
    rng = np.random.default_rng(longest)
    steps, n, classes, blank = 17, 9, 5, int(rng.integers(5))
    x = rng.standard_normal((steps, n, classes)).astype(dtype)
    sizes, times = rng.integers(0, longest + 1, n), rng.integers(0, steps + 1, n)
    sizes[0], times[:2] = longest, steps
    labels = np.full((n, 2 * longest + 1), blank)
    for i, size in enumerate(sizes):
        labels[i, 1:2 * size:2] = rng.integers(0, classes, size)
    places, settings = (labels, times, sizes), {"blank": blank}
    found = _native.module.ctc(x, *places, **settings)
    with np.errstate(all="ignore"):
        want = ctc_op.plain(x, *places, **settings)
        g = rng.standard_normal(n).astype(dtype)
        slope = ctc_grad.plain(g, x, want[1], want[0], *places, **settings)
    most = 1e-10 if dtype is np.float64 else 2e-4
    gradient = _native.module.ctc_grad(g, x, *found[::-1], *places, **settings)
    for a, b in zip((*found, gradient), (*want, slope)):
        np.testing.assert_allclose(a, b, most, most)
    for bad in ((labels + classes, times, sizes), (labels, times + steps + 1, sizes),
                (labels, times, sizes - 99), (labels[:, :0], times, sizes), (labels, times[1:], sizes)):
        assert _native.module.ctc(x, *bad, **settings) is NotImplemented


@needs_native
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n", [1, 5, 64])
def test_running_statistics_in_place(dtype, n):
    x, value = np.random.default_rng(n).standard_normal((2, n)).astype(dtype)
    wanted = x * (1 - 0.1) + value * (0.1 * 1.5)
    assert module.average_into(x, value, 0.1, 1.5) is True
    np.testing.assert_array_equal(x, wanted)
    fixed, other = x.copy(), np.float64 if dtype is np.float32 else np.float32
    fixed.flags.writeable = False
    gaps = np.zeros(2 * n, dtype)[::2]
    for a, b in ((fixed, value), (x, value.astype(other)), (x, np.ones(n + 1, dtype)), (x.astype(int), value),
                 (gaps if n > 1 else fixed, value)):
        assert module.average_into(a, b, 0.1, 1.0) is NotImplemented
    np.testing.assert_array_equal(x, wanted)
