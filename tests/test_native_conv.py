"""Native convolutions and pooling against their NumPy formulas."""

import math

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import framework as fw
from framework import _native
from framework.ops.image import adaptive_pool, conv, places, pool, windows

module = _native.module
pytestmark = [pytest.mark.usefixtures("each_threads"),
              pytest.mark.skipif(module is None, reason=f"no native extension: {_native.isa}")]
FLOATS = [np.float32, np.float64]
# of the largest number: sums of some thousand products in another order than NumPy's
TOLERANCE = {np.dtype(np.float32): 1e-4, np.dtype(np.float64): 1e-12}
dtypes = st.sampled_from(FLOATS)
seeds = st.integers(0, 2 ** 32 - 1)
LAYOUTS = {
    "rows": lambda a: a,
    "columns": lambda a: np.asfortranarray(a),
    "reversed": lambda a: np.ascontiguousarray(a[..., ::-1])[..., ::-1],
    "expanded": lambda a: np.broadcast_to(a[:1, :1], a.shape),
}


def native(op, *arrays, **given):
    out = getattr(module, op.native)(*arrays, **given)
    assert out is not NotImplemented, f"{op.name} was left to NumPy"
    return out


def close(got, wanted):
    assert got.shape == wanted.shape and got.dtype == wanted.dtype and got.flags.c_contiguous
    with np.errstate(all="ignore"):
        scale = np.abs(wanted[np.isfinite(wanted)]).max(initial=0)
    np.testing.assert_allclose(got, wanted, rtol=0, atol=TOLERANCE[got.dtype] * scale)


def agrees(op, *arrays, **given):
    """The native result is the plain formula's, or was left to it."""
    out = getattr(module, op.native)(*arrays, **given)
    if out is not NotImplemented:
        close(out, op.plain(*arrays, **given))


# -- convolutions ----------------------------------------------------------------------------------------


@st.composite
def convolutions(draw):
    """(x shape, w shape, settings), from one number to some dozens of each size."""
    d = draw(st.integers(1, 3))
    sizes = st.sampled_from([1, 2, 3, 5, 8, 14, 15, 16, 17, 31, 33] if d < 3 else [1, 2, 4, 7, 9])
    several = st.integers(1, 3)
    kernel = draw(st.lists(st.integers(1, 4), min_size=d, max_size=d))
    groups = draw(st.sampled_from([1, 1, 2, 5]))
    each, rows = draw(st.sampled_from([0, 1, 2, 3, 9, 16])), draw(st.sampled_from([0, 1, 2, 7, 8, 17, 40]))
    given = {"stride": tuple(draw(st.lists(several, min_size=d, max_size=d))),
             "padding": tuple(draw(st.lists(st.integers(0, 4), min_size=d, max_size=d))),
             "dilation": tuple(draw(st.lists(several, min_size=d, max_size=d))), "groups": groups}
    image = draw(st.lists(sizes, min_size=d, max_size=d))
    x = (draw(st.sampled_from([0, 1, 2, 3, 7])), each * groups, *image)
    assume(min(out_size(x, kernel, given)) > 0 and each + groups < 18)
    return x, (rows * groups, each, *kernel), given


def out_size(x, kernel, given):
    return windows.out_sizes(x[2:], tuple(kernel), given["stride"], given["padding"], given["dilation"])


def check_convolution(x_shape, w_shape, given, dtype, seed=0):
    draw = np.random.default_rng(seed)
    x, w, b, y = (draw.standard_normal(shape).astype(dtype) for shape in (
        x_shape, w_shape, w_shape[:1], (x_shape[0], w_shape[0], *out_size(x_shape, w_shape[2:], given))))
    agrees(conv.conv, x, w, None, **given)
    agrees(conv.conv, x, w, b, **given)
    agrees(conv.conv_input_grad, y, w, x_shape=x_shape, **given)
    agrees(conv.conv_weight_grad, x, y, w_shape=w_shape, **given)


@settings(deadline=None, max_examples=120)
@given(convolutions(), dtypes, seeds)
def test_convolution(shapes, dtype, seed):
    check_convolution(*shapes, dtype, seed)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize(("x", "w", "stride", "padding", "groups"), [
    ((9, 16, 32, 32), (16, 16, 3, 3), 1, 1, 1),     # vectors are lines
    ((9, 16, 32, 32), (32, 16, 3, 3), 2, 1, 1),
    ((17, 64, 8, 8), (64, 64, 3, 3), 1, 1, 1),      # two lines in a vector
    ((9, 33, 7, 7), (65, 33, 3, 3), 1, 1, 1),       # packed
    ((1, 200, 7, 7), (30, 200, 3, 3), 1, 1, 1),     # packed in two parts
    ((9, 3, 40, 19), (2, 3, 3, 5), 1, 2, 1),        # whole planes
    ((8, 1, 28, 28), (32, 1, 3, 3), 1, 1, 1),
    ((1, 3, 64, 64), (64, 3, 7, 7), 2, 3, 1),
    ((2, 40, 9, 9), (24, 40, 1, 1), 1, 0, 1),
    ((2, 40, 9, 9), (24, 40, 1, 1), 2, 0, 1),
    ((3, 24, 17, 40), (24, 1, 3, 3), 1, 1, 24),     # depthwise
    ((3, 24, 17, 40), (48, 1, 3, 3), 2, 1, 24),
    ((2, 32, 12, 12), (64, 8, 3, 3), 1, 1, 4),
    ((2, 3, 32, 32), (16, 3, 16, 16), 16, 0, 1),    # patches
    ((3, 5, 4, 4), (4, 5, 4, 4), 3, 0, 1),          # one window
    ((2, 4, 6, 6), (4, 4, 1, 1), 1, 4, 1),          # windows of padding alone
    ((300, 2, 5, 5), (3, 2, 3, 3), 1, 1, 1),
    ((1, 64, 7, 7), (256, 64, 3, 3), 1, 1, 1),      # unfolded
    ((3, 20, 8, 8), (128, 20, 4, 4), 2, 1, 1),
    ((2, 8, 14, 15), (40, 8, 7, 7), 7, 0, 1),       # and apart
    ((2, 8, 14, 15), (40, 8, 3, 2), 5, 2, 1),
    ((4, 70, 12, 12), (30, 70, 1, 1), 1, 0, 1),     # windows of a pixel
    ((1, 20, 9, 9), (70, 20, 1, 1), 1, 0, 1),
    ((2, 20, 80, 80), (30, 20, 1, 1), 1, 0, 1),     # whose weights are sums of many steps
    ((37, 16, 4, 4), (3, 16, 4, 4), 1, 0, 1),       # windows of an image
])
def test_layers(x, w, stride, padding, groups, dtype):
    check_convolution(x, w, {"stride": (stride,) * 2, "padding": (padding,) * 2, "dilation": (1, 1),
                             "groups": groups}, dtype)


@settings(deadline=None, max_examples=120)
@given(convolutions(), st.sampled_from([40, 100, 300]), st.integers(1, 3), dtypes, seeds)
def test_few_windows(shapes, rows, images, dtype, seed):
    """Beside the channels of the results: windows may be unfolded, wherever they begin and end."""
    x, w, given = shapes
    given["groups"] = 1
    check_convolution((images, w[1], *x[2:]), (rows, *w[1:]), given, dtype, seed)


SQUARE = {"stride": (1, 1), "padding": (1, 1), "dilation": (1, 1), "groups": 1}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", FLOATS)
def test_convolution_of_arrays_that_are_not_in_rows(layout, dtype):
    draw, lay = np.random.default_rng(1), LAYOUTS[layout]
    x, w, y = (lay(draw.standard_normal(shape).astype(dtype)) for shape in (
        (2, 5, 9, 11), (7, 5, 3, 3), (2, 7, 9, 11)))
    b = np.repeat(draw.standard_normal(7).astype(dtype), 2)[::2]
    close(native(conv.conv, x, w, b, **SQUARE), conv.conv.plain(x, w, b, **SQUARE))
    agrees(conv.conv_input_grad, y, w, x_shape=x.shape, **SQUARE)
    agrees(conv.conv_weight_grad, x, y, w_shape=w.shape, **SQUARE)


@pytest.mark.parametrize("bad", [math.nan, math.inf, 1e-40])
@pytest.mark.parametrize("width", [8, 14, 16, 20, 33])
def test_convolution_keeps_what_is_not_a_number_at_its_windows(bad, width):
    draw = np.random.default_rng(2)
    x, w = draw.standard_normal((3, 6, 8, width)), draw.standard_normal((9, 6, 3, 3))
    x[1, 2, 4, width - 1] = x[2, 0, 0, 0] = bad
    for dtype in FLOATS:
        a, b = x.astype(dtype), w.astype(dtype)
        with np.errstate(all="ignore"):
            close(native(conv.conv, a, b, None, **SQUARE), conv.conv.plain(a, b, None, **SQUARE))
            wanted = conv.conv_weight_grad.plain(a, a[:, :6], w_shape=(6, 6, 3, 3), **SQUARE)
            got = native(conv.conv_weight_grad, a, a[:, :6], w_shape=(6, 6, 3, 3), **SQUARE)
        assert np.isfinite(got).sum() >= np.isfinite(wanted).sum()


@pytest.mark.parametrize("arrays", [
    (np.ones((1, 2, 4, 4), int), np.ones((1, 2, 3, 3), int)),
    (np.ones((1, 2, 4, 4), np.complex64), np.ones((1, 2, 3, 3), np.complex64)),
    (np.ones((1, 2, 4, 4), np.float16), np.ones((1, 2, 3, 3), np.float16)),
    (np.ones((1, 2, 4, 4)), np.ones((1, 2, 3, 3), np.float32)),
    (np.ones((1, 2, 4, 4)), np.ones((1, 3, 3, 3))),
    (np.ones((1, 2, 4)), np.ones((1, 2, 3, 3))),
    (np.ones((1, 2, 0, 4)), np.ones((1, 2, 3, 3))),
    (np.ones((0, 2, 4, 4)), np.ones((1, 2, 3, 3))),
    (np.ones((1, 2, 4, 4)), np.ones((1, 2, 9, 9))),
    (1.0, np.ones((1, 2, 3, 3))),
], ids=lambda a: "")
def test_what_convolutions_leave_to_numpy(arrays):
    assert module.conv(*arrays, None, **SQUARE) is NotImplemented


# -- depthwise -------------------------------------------------------------------------------------------


@settings(deadline=None, max_examples=80)
@given(st.tuples(st.sampled_from([1, 2, 3, 5, 7, 9]), st.sampled_from([3, 5, 6, 7, 8, 9, 11, 17])),
       st.sampled_from([1, 2]),
       st.tuples(st.integers(0, 6), st.integers(0, 6)),
       st.lists(st.sampled_from([1, 2, 5, 7, 8, 15, 16, 17, 28, 33, 40, 90]), min_size=2, max_size=2),
       st.sampled_from([5, 16, 19]), dtypes, seeds)
def test_depthwise(kernel, stride, padding, image, channels, dtype, seed):
    assume(all(p < k <= s + 2 * p for k, p, s in zip(kernel, padding, image)))
    given = {"stride": (stride,) * 2, "padding": padding, "dilation": (1, 1), "groups": channels}
    check_convolution((3, channels, *image), (channels, 1, *kernel), given, dtype, seed)


@pytest.mark.parametrize("stride", [1, 2])
def test_depthwise_keeps_what_is_not_a_number_at_its_windows(stride):
    x = np.random.default_rng(0).standard_normal((1, 2, 9, 20)).astype(np.float32)
    x[0, 1, 4, 19] = np.nan
    given = {"stride": (stride,) * 2, "padding": (1, 1), "dilation": (1, 1), "groups": 2}
    w = np.ones((2, 1, 3, 3), np.float32)
    found = native(conv.conv, x, w, None, **given)
    np.testing.assert_array_equal(np.isnan(found), np.isnan(conv.conv.plain(x, w, None, **given)))
    y = np.ones_like(found)
    taps = native(conv.conv_weight_grad, x, y, w_shape=w.shape, **given)
    assert np.isnan(taps[1, 0, 1, 2]) and np.isfinite(taps[..., 0]).all()  # which do not read it
    y[..., -1] = np.inf
    given["x_shape"] = x.shape
    wanted = np.isinf(conv.conv_input_grad.plain(y, w, **given))
    np.testing.assert_array_equal(np.isinf(native(conv.conv_input_grad, y, w, **given)), wanted)


# -- by minimal filtering: float32, 3x3 kernels, stride 1, at least 16 channels --------------------------


@st.composite
def filterings(draw):
    channels = st.sampled_from([16, 17, 31, 32, 33, 48])
    padding = tuple(draw(st.lists(st.integers(0, 2), min_size=2, max_size=2)))
    image = [draw(st.sampled_from([1, 2, 3, 4, 7, 8, 15, 16, 17, 31, 33, 64])) for _ in range(2)]
    assume(all(s + 2 * p >= 3 for s, p in zip(image, padding)))
    n = draw(st.sampled_from([1, 2, 3, 9, 40]))
    assume(n * image[0] * image[1] < 10000)
    c, rows = draw(channels), draw(channels)
    return (n, c, *image), (rows, c, 3, 3), {**SQUARE, "padding": padding}


def errors(x_shape, w_shape, given, seed):
    """Largest errors of forward and both gradients beside those of the plain formula, against float64."""
    draw = np.random.default_rng(seed)
    x, w, b = (draw.standard_normal(shape) for shape in (x_shape, w_shape, w_shape[:1]))
    y = draw.standard_normal(conv.conv.plain(x, w, b, **given).shape)
    calls = ((conv.conv, (x, w, b), {}), (conv.conv_input_grad, (y, w), {"x_shape": x_shape}),
             (conv.conv_weight_grad, (x, y), {"w_shape": w_shape}))
    for op, arrays, more in calls:
        exact = op.plain(*arrays, **more, **given)
        singles = [a.astype(np.float32) for a in arrays]
        found = native(op, *singles, **more, **given)
        assert found.shape == exact.shape and found.dtype == np.float32
        plain = op.plain(*singles, **more, **given)
        scale = np.abs(exact).max()
        yield np.abs(found - exact).max() / scale, np.abs(plain - exact).max() / scale


@settings(deadline=None, max_examples=60)
@given(filterings(), seeds)
def test_minimal_filtering(shapes, seed):
    for found, _ in errors(*shapes, seed):
        assert found < 5e-6  # TOLERANCE allows 1e-4


@pytest.mark.parametrize(("x", "rows"), [
    ((8, 128, 28, 28), 128), ((1, 64, 64, 64), 64), ((9, 256, 7, 7), 300), ((32, 32, 16, 16), 32)])
def test_minimal_filtering_loses_no_digits(x, rows):
    for found, plain in errors(x, (rows, x[1], 3, 3), SQUARE, 0):
        assert found < 3 * plain + 2e-7


@pytest.mark.parametrize(("x", "rows"), [((32, 16, 14, 14), 32), ((3, 21, 33, 71), 48), ((2, 31, 15, 9), 64),
                                         ((1, 96, 14, 14), 48)])
def test_minimal_filtering_of_few_channels_loses_no_digits(x, rows):
    found, plain = next(errors(x, (rows, x[1], 3, 3), SQUARE, 0))  # gradients go another way
    assert found < plain + 1e-7


@pytest.mark.parametrize("rows", [16, 32])
@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_what_is_not_a_number_stays_in_its_tiles(bad, rows):
    """An infinite or undefined number reaches every pixel of its windows, and at most one pixel beyond."""
    x = np.random.default_rng(0).standard_normal((2, 16, 20, 20)).astype(np.float32)
    w = np.random.default_rng(1).standard_normal((rows, 16, 3, 3)).astype(np.float32)
    x[1, 3, 7, 9] = bad
    with np.errstate(all="ignore"):
        finite = np.isfinite(native(conv.conv, x, w, None, **SQUARE))
    assert not finite[1, :, 6:9, 8:11].any()
    finite[1, :, 5:10, 7:12] = True
    assert finite.all()


def test_minimal_filtering_can_be_switched_off():
    x = np.ones((1, 16, 20, 20), np.float32)
    x[0, 0, 7, 9] = np.nan
    w = np.ones((16, 16, 3, 3), np.float32)
    assert fw.backends.native.use_winograd(False)
    try:
        found = native(conv.conv, x, w, None, **SQUARE)
    finally:
        assert not fw.backends.native.use_winograd(True)
    assert np.isnan(found).sum() == 16 * 9


def test_images_with_channels_last():
    draw = np.random.default_rng(0)
    x, w, y = (draw.standard_normal(shape).astype(np.float32) for shape in (
        (2, 16, 9, 11), (24, 16, 3, 3), (2, 24, 9, 11)))

    last = channels_last
    for op, first, second, more in ((conv.conv, x, w, {}), (conv.conv_input_grad, y, w, {"x_shape": x.shape}),
                                    (conv.conv_weight_grad, x, y, {"w_shape": w.shape})):
        bias = (None,) if op is conv.conv else ()
        wanted = native(op, first, second, *bias, **more, **SQUARE)
        for a, b in ((last(first), second), (first, last(second)), (last(first), last(second))):
            for found in (native(op, a, b, *bias, **more, **SQUARE), op.plain(a, b, *bias, **more, **SQUARE)):
                assert found.transpose(0, 2, 3, 1).flags.c_contiguous
                np.testing.assert_allclose(found, wanted, atol=1e-4 * np.abs(wanted).max())


def channels_last(a):
    return np.ascontiguousarray(a.transpose(0, 2, 3, 1)).transpose(0, 3, 1, 2)


@st.composite
def convolutions_of_channels(draw):
    """(x shape, w shape, settings) of images of two sizes: dense, in groups and of one channel each."""
    several = st.integers(1, 3)
    depthwise = draw(st.booleans())
    kernel = [draw(st.sampled_from([3, 5, 7]))] * 2 if depthwise else [draw(st.integers(1, 5)), draw(several)]
    stride = [draw(st.integers(1, 2))] * 2 if depthwise else [draw(several) for _ in range(2)]
    dilation = [1, 1] if depthwise else [draw(st.sampled_from([1, 1, 2])) for _ in range(2)]
    groups = 1 if depthwise else draw(st.sampled_from([1, 1, 2]))
    channels = draw(st.sampled_from([1, 2, 3, 8, 16, 17, 33])) * groups
    rows = channels if depthwise else draw(st.sampled_from([3, 8, 16, 17, 31, 50, 130])) * groups
    groups = channels if depthwise else groups
    padding = [draw(st.integers(0, k + (0 if depthwise else 1))) for k in kernel]
    size = [draw(st.sampled_from([1, 2, 5, 8, 14, 15, 29])) for _ in range(2)]
    assume(all(s + 2 * p > d * (k - 1) for s, p, d, k in zip(size, padding, dilation, kernel)))
    how = {"stride": tuple(stride), "padding": tuple(padding), "dilation": tuple(dilation), "groups": groups}
    return (draw(several), channels, *size), (rows, channels // groups, *kernel), how


@settings(max_examples=150, deadline=None)
@given(case=convolutions_of_channels(), seed=seeds)
def test_convolutions_of_channels_last(case, seed):
    """As they lie in memory, or their kernels alone, forward and both gradients."""
    (x_shape, w_shape, how), random = case, np.random.default_rng(seed)
    x, w = (random.standard_normal(shape).astype(np.float32) for shape in (x_shape, w_shape))
    b = random.standard_normal(w_shape[0]).astype(np.float32)
    y = random.standard_normal(conv.conv.plain(x, w, None, **how).shape).astype(np.float32)
    wanted = [conv.conv.plain(x, w, b, **how), conv.conv_input_grad.plain(y, w, x_shape=x_shape, **how),
              conv.conv_weight_grad.plain(x, y, w_shape=w_shape, **how)]
    for x_laid, w_laid, y_laid in ((channels_last(x), w, channels_last(y)), (x, channels_last(w), y),
                                   (channels_last(x), channels_last(w), channels_last(y))):
        found = [native(conv.conv, x_laid, w_laid, b, **how),
                 native(conv.conv_input_grad, y_laid, w_laid, x_shape=x_shape, **how),
                 native(conv.conv_weight_grad, x_laid, y_laid, w_shape=w_shape, **how)]
        for got, plain in zip(found, wanted):
            assert got.shape == plain.shape
            np.testing.assert_allclose(got, plain, rtol=0, atol=1e-5 * np.abs(plain).max())


@pytest.mark.parametrize(("x", "rows"), [((8, 64, 15, 28), 64), ((5, 16, 14, 14), 33), ((3, 37, 33, 21), 48)])
def test_minimal_filtering_of_channels_last_loses_no_digits(x, rows):
    random = np.random.default_rng(0)
    x, w = random.standard_normal(x), random.standard_normal((rows, x[1], 3, 3))
    y = conv.conv.plain(x, w, None, **SQUARE)
    single = [channels_last(a.astype(np.float32)) for a in (x, w, y)]
    for op, at, more in ((conv.conv, (0, 1, None), {}), (conv.conv_input_grad, (2, 1), {"x_shape": x.shape}),
                         (conv.conv_weight_grad, (0, 2), {"w_shape": w.shape})):
        exact = op.plain(*(None if i is None else (x, w, y)[i] for i in at), **more, **SQUARE)
        found = native(op, *(None if i is None else single[i] for i in at), **more, **SQUARE)
        assert np.abs(found - exact).max() < 3e-6 * np.abs(exact).max()


@pytest.mark.parametrize("last", [False, True])
@pytest.mark.parametrize("size", [(1, 1), (4, 4), (3, 5)])
def test_kernels_as_large_as_the_images(size, last):
    random = np.random.default_rng(0)
    y, w = random.standard_normal((5, 24, 1, 1)), random.standard_normal((24, 17, *size))
    y, w = (a.astype(np.float32) for a in (y, w))
    how = {"x_shape": (5, 17, *size), "stride": (1, 1), "padding": (0, 0), "dilation": (1, 1), "groups": 1}
    found = native(conv.conv_input_grad, y, channels_last(w) if last else w, **how)
    np.testing.assert_allclose(found, conv.conv_input_grad.plain(y, w, **how), rtol=0, atol=1e-4)


def test_the_same_numbers_of_channels_last_whatever_the_threads(each_threads):
    random = np.random.default_rng(3)
    for rows, channels, stride in ((24, 16, 1), (24, 16, 2), (40, 7, 2)):
        how = {**SQUARE, "stride": (stride, stride)}
        x, w = (channels_last(random.standard_normal(shape, np.float32)) for shape in (
            (5, channels, 20, 21), (rows, channels, 3, 3)))
        found = []
        for threads in (1, 2, 3):
            fw.set_num_threads(threads)
            y = module.conv(x, w, None, **how)
            found.append((y, module.conv_input_grad(y, w, x_shape=x.shape, **how),
                          module.conv_weight_grad(x, y, w_shape=w.shape, **how)))
        for one, two, three in zip(*found):
            assert (one == two).all() and (one == three).all()


def test_the_same_numbers_every_time(each_threads):
    draw = np.random.default_rng(3)
    x = draw.standard_normal((13, 16, 20, 20), np.float32)
    w = draw.standard_normal((24, 16, 3, 3), np.float32)
    first = module.conv(x, w, None, **SQUARE)
    gradient = module.conv_weight_grad(x, first, w_shape=w.shape, **SQUARE)
    for _ in range(3):
        assert (module.conv(x, w, None, **SQUARE) == first).all()
        assert (module.conv_weight_grad(x, first, w_shape=w.shape, **SQUARE) == gradient).all()


def test_a_step_of_training_is_the_formulas(monkeypatch):
    def gradients():
        fw.manual_seed(0)
        model = fw.nn.Sequential(fw.nn.Conv2d(3, 16, 3, padding=1), fw.nn.ReLU(), fw.nn.MaxPool2d(2),
                                 fw.nn.Conv2d(16, 8, 3, stride=2), fw.nn.AvgPool2d(2), fw.nn.Flatten(),
                                 fw.nn.Linear(8 * 9, 5)).double()
        x = fw.randn(4, 3, 28, 28, dtype=fw.float64, requires_grad=True)
        model(x).square().sum().backward()
        return [x.grad.numpy(), *(p.grad.numpy() for p in model.parameters())]

    found = gradients()
    for op in (conv.conv, conv.conv_input_grad, conv.conv_weight_grad, pool.max_pool, pool.max_position,
               pool.max_spread, pool.avg_pool, pool.avg_spread):
        monkeypatch.setattr(op, "cpu", op.plain)
    for got, wanted in zip(found, gradients()):
        close(got, wanted)


# -- pooling ---------------------------------------------------------------------------------------------


@st.composite
def poolings(draw, dims=(1, 2, 3), dilations=(1, 1, 2)):
    """(array, layout): images with repeated, infinite and undefined numbers."""
    d = draw(st.sampled_from(dims))
    kernel, stride, dilation, padding, size = [], [], [], [], []
    for _ in range(d):
        kernel.append(draw(st.sampled_from([1, 2, 2, 3, 5, 9])))
        stride.append(draw(st.sampled_from([1, 2, 2, 3])))
        dilation.append(draw(st.sampled_from(dilations)))
        padding.append(draw(st.integers(0, (dilation[-1] * (kernel[-1] - 1) + 1) // 2)))
        size.append(draw(st.sampled_from([1, 2, 7, 14, 16, 28, 33] if d < 3 else [1, 4, 7])))
    ceil = draw(st.booleans())
    out = tuple(pool._out_size(*each, ceil) for each in zip(size, kernel, stride, padding, dilation))
    assume(min(out) > 0)
    random = np.random.default_rng(draw(seeds))
    x = random.standard_normal((draw(st.integers(1, 3)), draw(st.integers(1, 3)), *size)).astype(draw(dtypes))
    if draw(st.booleans()):
        x = np.round(x)
    for value in (np.nan, -np.inf, np.inf):
        if draw(st.integers(0, 3)) == 0:
            x[random.random(x.shape) < 0.2] = value
    return x, pool._layout(tuple(kernel), tuple(stride), tuple(padding), tuple(dilation), out)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize(("kernel", "padding", "dilation"), [
    (1, 0, 1), (2, 0, 1), (2, 1, 1), (3, 0, 1), (3, 1, 1), (3, 1, 5), (5, 2, 1), (9, 4, 2), (17, 8, 1),
    (18, 9, 1), (2, 1, 40)])
@pytest.mark.parametrize("kind", ["plain", "zeros", "nan", "inf"])
def test_windows_side_by_side(kind, kernel, padding, dilation, dtype):
    """On lines that are long and short: the first of a window's largest numbers, or its first nan."""
    rng = np.random.default_rng(1)
    for n in (1, 7, 40, 61, 64, 100, 4000):
        x = rng.standard_normal((2, 3, n)).astype(dtype)
        if kind == "zeros":
            x = np.copysign(dtype(0), x)
        elif kind != "plain":
            x[rng.random(x.shape) < 0.1] = np.nan if kind == "nan" else np.inf
            x[rng.random(x.shape) < 0.1] = -np.inf
        out = n + 2 * padding - dilation * (kernel - 1)
        if out < 1:
            continue
        layout = pool._layout((kernel,), (1,), (padding,), (dilation,), (out,))
        found = native(pool.max_pool, x, **layout)
        around = np.pad(x, ((0, 0), (0, 0), (padding, padding)), constant_values=-np.inf)
        windows = np.stack([around[..., k * dilation:k * dilation + out] for k in range(kernel)], -1)
        first = np.where(np.isnan(windows), np.inf, windows).argmax(-1)
        first = np.where(np.isnan(windows).any(-1), np.isnan(windows).argmax(-1), first)
        wanted = np.take_along_axis(windows, first[..., None], -1)[..., 0]
        np.testing.assert_array_equal(found, wanted)
        np.testing.assert_array_equal(np.signbit(found), np.signbit(wanted))


def test_windows_of_one_number_of_some_lines_only():
    """Which stay within the memory of so few."""
    x = np.arange(4000, dtype=np.float64).reshape(1, 1, 2000, 2)
    for line in (1, 2):
        layout = pool._layout((1, line), (1, line), (0, 0), (1, 1), (3, 2 // line))
        found = native(pool.max_pool, x, **layout)
        np.testing.assert_array_equal(found, x[:, :, :3, line - 1::line])


@settings(deadline=None, max_examples=120)
@given(poolings())
def test_max_pool(drawn):
    x, layout = drawn
    np.testing.assert_array_equal(native(pool.max_pool, x, **layout), pool.max_pool.plain(x, **layout))
    where = pool.max_position.plain(x, **layout)
    got = native(pool.max_position, x, **layout)
    np.testing.assert_array_equal(got, where)
    assert got.dtype == where.dtype
    both = native(pool.max_with_places, x, **layout)
    for found, wanted in zip(both, pool.max_with_places.plain(x, **layout)):
        np.testing.assert_array_equal(found, wanted)
    y = np.random.default_rng(0).standard_normal(where.shape).astype(x.dtype)
    close(native(pool.max_spread, y, where, x_shape=x.shape, **layout),
          pool.max_spread.plain(y, where, x_shape=x.shape, **layout))
    np.testing.assert_array_equal(native(pool.max_collect, x, where, **layout),
                                  pool.max_collect.plain(x, where, **layout))


@settings(deadline=None, max_examples=120)
@given(poolings(), st.booleans(), st.sampled_from([None, None, 3]))
def test_avg_pool(drawn, include, divisor):
    x, layout = drawn
    d = len(layout["kernel"])
    assume(layout.pop("dilation") == (1,) * d)
    layout |= {"include": include, "divisor": divisor}
    x = np.nan_to_num(x, nan=0, posinf=3, neginf=-2)
    close(native(pool.avg_pool, x, **layout), pool.avg_pool.plain(x, **layout))
    y = np.random.default_rng(0).standard_normal((*x.shape[:2], *layout["out"])).astype(x.dtype)
    close(native(pool.avg_spread, y, x_shape=x.shape, **layout),
          pool.avg_spread.plain(y, x_shape=x.shape, **layout))


@pytest.mark.parametrize("size", [(28, 28), (8, 8), (1, 64), (7, 5)])
@pytest.mark.parametrize("dtype", FLOATS)
def test_mean_of_whole_planes(size, dtype):
    x = np.random.default_rng(0).standard_normal((3, 4, *size)).astype(dtype)
    given = {"kernel": size, "stride": size, "padding": (0, 0), "out": (1, 1), "include": True,
             "divisor": None}
    close(native(pool.avg_pool, x, **given), pool.avg_pool.plain(x, **given))
    y = x[..., :1, :1]
    close(native(pool.avg_spread, y, x_shape=x.shape, **given),
          pool.avg_spread.plain(y, x_shape=x.shape, **given))


@settings(deadline=None, max_examples=60)
@given(st.lists(st.integers(1, 12), min_size=1, max_size=3), st.data(), dtypes, seeds)
def test_adaptive_max_pool(size, data, dtype, seed):
    out = tuple(data.draw(st.integers(1, s + 2)) for s in size)
    draw = np.random.default_rng(seed)
    x = np.round(draw.standard_normal((2, 3, *size))).astype(dtype)
    x[draw.random(x.shape) < 0.05] = np.nan
    largest, index = adaptive_pool.adaptive_max.plain(x, out=out)
    for found, wanted in zip(native(adaptive_pool.adaptive_max, x, out=out), (largest, index)):
        np.testing.assert_array_equal(found, wanted)
    d = len(size)
    np.testing.assert_array_equal(native(places.pick, x, index, d=d),
                                  places.pick.plain(x, index, d=d))
    y = draw.standard_normal(index.shape).astype(dtype)
    close(native(places.put, y, index, d=d, x_shape=x.shape),
          places.put.plain(y, index, d=d, x_shape=x.shape))


def test_places_outside_are_left_to_numpy():
    x, index = np.ones((1, 1, 3)), np.array([[[5]]])
    assert module.pick_places(x, index, d=1) is NotImplemented
    assert module.put_places(x[..., :1], index, d=1, x_shape=(1, 1, 3)) is NotImplemented


@pytest.mark.parametrize(("channels", "dtype"), [(1, int), (0, float), (1, np.float16)])
def test_what_pooling_leaves_to_numpy(channels, dtype):
    x = np.ones((1, channels, 4, 4), dtype)
    layout = pool._layout((2, 2), (2, 2), (0, 0), (1, 1), (2, 2))
    assert module.max_pool(x, **layout) is NotImplemented
    del layout["dilation"]
    assert module.avg_pool(x, **layout, include=True, divisor=None) is NotImplemented
