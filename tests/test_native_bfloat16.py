"""Products, convolutions and conversions of bfloat16 by the native kernels: sums in float32, rounded once."""

import concurrent.futures
import os
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from test_native_gemm import laid, layouts, lengths, native, sizes, threads, with_threads

import framework as fw
from framework import _native
from framework.ops.image import conv, windows

pytest.importorskip("ml_dtypes", reason="bfloat16 needs the lowprecision extra")
pytestmark = pytest.mark.skipif(not hasattr(native, "matmul"), reason=f"no native matmul: {_native.isa}")
BF16 = fw.bfloat16.numpy  # from here on the records look for it
TINY = 2.0**-126  # below it a product may count as 0
seeds = st.integers(0, 2**16)
slow = settings(deadline=None, max_examples=150)


def normal(seed, *shape):
    return np.random.default_rng(seed).standard_normal(shape).astype(BF16)


def product(x, y, count=2):
    with with_threads(count):
        out = native.matmul(x, y)
    assert type(out) is np.ndarray and out.flags.c_contiguous and out.dtype == BF16
    return out


def check(out, x, y, extra=0.0):
    """Within half a unit in the last place of the exact sum, and float32's error of a long one."""
    x, y = x.astype(np.float64), y.astype(np.float64)
    right, size = np.matmul(x, y) + extra, np.matmul(np.abs(x), np.abs(y)) + np.abs(extra)
    assert out.shape == right.shape
    slack = np.abs(right) * 2.0**-8 + size * 2.0**-23 * (4 + x.shape[-1] ** 0.5)
    assert np.all(np.abs(out.astype(np.float64) - right) <= slack * 1.0001 + TINY)


@slow
@given(sizes, sizes, lengths, layouts, layouts, threads, seeds)
def test_matrices(m, n, k, first, second, count, seed):
    x, y = laid(normal(seed, m, k), first), laid(normal(seed + 1, k, n), second)
    check(product(x, y, count), x, y)


@pytest.mark.parametrize(
    "m,n,k", [(300, 400, 500), (257, 133, 129), (2, 3000, 40), (5, 70, 9001), (64, 3, 20_000)]
)
@pytest.mark.parametrize(
    "first,second", [("rows", "rows"), ("columns", "rows"), ("rows", "columns"), ("steps", "slice")]
)
def test_large_matrices(m, n, k, first, second):
    x, y = laid(normal(1, m, k), first), laid(normal(2, k, n), second)
    one, two, five = (product(x, y, count) for count in (1, 2, 5))
    check(one, x, y)
    assert one.tobytes() == two.tobytes() == five.tobytes()


@slow
@given(sizes, sizes, lengths, layouts, layouts, threads, st.booleans(), seeds)
def test_linear(m, n, k, first, second, count, biased, seed):
    x, w = laid(normal(seed, m, k), first), laid(normal(seed + 1, n, k), second)
    b = normal(seed + 2, n) if biased else None
    with with_threads(count):
        out = native.linear(x, w, b)
    check(out, x, w.T, 0.0 if b is None else b.astype(np.float64))


@pytest.mark.parametrize(
    "shapes",
    [
        ((3, 4, 5), (5, 6)),
        ((3, 4, 5), (3, 5, 6)),
        ((2, 1, 4, 5), (3, 5, 6)),
        ((7,), (7,)),
        ((7,), (7, 3)),
        ((3, 7), (7,)),
        ((2, 3, 7), (7,)),
        ((0, 3), (3, 2)),
        ((3, 0), (0, 2)),
        ((2, 0, 4), (4, 1)),
    ],
)
def test_batches_vectors_and_empty_ones(shapes):
    x, y = (normal(i, *s) for i, s in enumerate(shapes))
    check(product(x, y), x, y)


@pytest.mark.parametrize("m,n,k", [(1, 40, 40), (20, 20, 20), (100, 90, 401)])
def test_nan_and_inf(m, n, k):
    for special in (np.nan, np.inf):
        x, y = normal(1, m, k), normal(2, k, n)
        x[m // 2, k - 1], y[k - 1, n // 2] = special, 0
        out = product(x, y).astype(np.float32)
        assert np.isnan(out[m // 2, n // 2]) and np.isfinite(np.delete(out, m // 2, 0)).all()


def test_sums_are_rounded_once_and_to_even():
    ones, halves = np.ones((1, 2), BF16), np.array([[1.0], [2.0**-8]], BF16)
    assert product(ones, halves) == 1.0  # a tie goes to the even one
    halves[0] = 1.0 + 2.0**-7
    assert product(ones, halves).astype(float) == 1.0 + 2.0**-6
    long = np.ones(4096, BF16)
    assert product(long, long) == 4096


def test_gradients_are_products_too():
    shapes = [(33, 40), (50, 40), (50,)]
    x, w, b = (fw.from_numpy(normal(i, *s)).requires_grad_() for i, s in enumerate(shapes))
    g = normal(5, 33, 50)
    fw.nn.functional.linear(x, w, b).backward(fw.from_numpy(g))
    check(x.grad.numpy(), g, w.detach().numpy())
    check(w.grad.numpy(), g.T, x.detach().numpy())
    check(b.grad.numpy()[None], np.ones((1, 33), BF16), g)


NUMBERS = [np.float32, np.float64, np.int32, np.int64, np.int16, np.uint8, np.int8, np.bool_]


@pytest.mark.parametrize("dtype", NUMBERS)
@pytest.mark.parametrize("size", [1, 7, 16, 33, 70_001])
def test_conversions_have_the_bits_of_ml_dtypes(dtype, size):
    values = np.random.default_rng(size).standard_normal(size) * 100
    if dtype is np.uint8:
        values = np.abs(values) % 250  # what becomes of numbers below 0 is the processor's choice
    x = values.astype(dtype)
    for array in (x, x[::-1], x.reshape(1, -1).T):
        out = native.cast(array, BF16)
        assert out.shape == array.shape and out.tobytes() == array.astype(BF16).tobytes()
    back = values.astype(BF16)
    out = native.cast(back, np.dtype(dtype))
    assert out is NotImplemented or np.array_equal(out, back.astype(dtype))


def test_conversions_of_special_numbers():
    bits = np.arange(2**16, dtype=np.uint16).view(BF16)
    wide = native.cast(bits, np.dtype(np.float32))
    assert wide.view(np.uint32).tobytes() == (np.arange(2**16, dtype=np.uint32) << 16).tobytes()
    again = native.cast(wide, BF16)
    real = ~np.isnan(wide)
    assert np.array_equal(again.view(np.uint16)[real], bits.view(np.uint16)[real])
    assert np.isnan(again.astype(np.float32)[~real]).all()
    odd = np.array([3.4e38, 1e-40, 1.00390625, 1.01171875, -1.00390625], np.float32)
    assert native.cast(odd, BF16).tobytes() == odd.astype(BF16).tobytes()


def test_other_operands_are_left_to_numpy():
    x = normal(1, 4, 4)
    for other in (x.astype(np.float32), x.astype(np.float16), x[:3]):
        assert native.matmul(x, other) is NotImplemented
    assert native.linear(x, x, np.zeros(4, np.float32)) is NotImplemented


# -- convolutions ----------------------------------------------------------------------------------------


@st.composite
def convolutions(draw):
    """(x shape, w shape, settings) of small convolutions that give something."""
    d = draw(st.integers(1, 3))
    few, some = st.integers(1, 3), st.sampled_from([1, 2, 5, 7, 8, 14, 17, 33, 40] if d < 3 else [1, 2, 5, 8])
    kernel, image = ([draw(kind) for _ in range(d)] for kind in (few, some))
    given = {
        "stride": tuple(draw(few) for _ in range(d)),
        "padding": tuple(draw(st.integers(0, 3)) for _ in range(d)),
        "dilation": tuple(draw(few) for _ in range(d)),
        "groups": draw(st.sampled_from([1, 1, 2])),
    }
    assume(min(windows.out_sizes(tuple(image), tuple(kernel), *list(given.values())[:3])) > 0)
    each, rows = draw(st.integers(1, 8)), draw(st.sampled_from([1, 2, 7, 15, 29])) * given["groups"]
    return (draw(few), each * given["groups"], *image), (rows, each, *kernel), given


def run(op, *arrays, **given):
    """What the record computes on the CPU."""
    return op.kernel_for(arrays)(*arrays, **given)


def check_op(op, first, second, *others, count, **given):
    """The record's CPU function, within the bound of ``check``, by the formula in float64."""
    with with_threads(count):
        out = run(op, first, second, *others, **given)
    wide = [a.astype(np.float64) for a in (first, second, *others)]
    right, size = op.plain(*wide, **given), op.plain(*map(np.abs, wide), **given)
    assert out.dtype == BF16 and out.shape == right.shape
    assert np.all(
        np.abs(out.astype(np.float64) - right) <= (np.abs(right) * 2.0**-8 + size * 2.0**-18) * 1.0001 + TINY
    )


@slow
@given(convolutions(), threads, seeds)
def test_convolutions(shapes, count, seed):
    x_shape, w_shape, given = shapes
    x, w, b = normal(seed, *x_shape), normal(seed + 1, *w_shape), normal(seed + 2, w_shape[0])
    check_op(conv.conv, x, w, b, count=count, **given)
    y = normal(seed + 3, *conv.conv.plain(x.astype(np.float32), w.astype(np.float32), None, **given).shape)
    check_op(conv.conv_input_grad, y, w, count=count, x_shape=x_shape, **given)
    check_op(conv.conv_weight_grad, x, y, count=count, w_shape=w_shape, **given)


@pytest.mark.parametrize("n,channels,rows,image,padding", [
    (7, 33, 40, (24, 24), 1), (3, 32, 64, (47, 33), 0), (2, 48, 35, (41, 61), 2), (11, 64, 32, (4, 100), 1)])
def test_wide_convolutions_by_minimal_filtering(n, channels, rows, image, padding):
    x, w, b = normal(1, n, channels, *image), normal(2, rows, channels, 3, 3), normal(3, rows)
    given = {"stride": (1, 1), "padding": (padding,) * 2, "dilation": (1, 1), "groups": 1}
    y = normal(4, n, rows, *windows.out_sizes(image, (3, 3), *list(given.values())[:3]))
    for count in (1, 2):
        check_op(conv.conv, x, w, b, count=count, **given)
        check_op(conv.conv_input_grad, y, w, count=count, x_shape=x.shape, **given)
        check_op(conv.conv_weight_grad, x, y, count=count, w_shape=w.shape, **given)
    found = run(conv.conv, x, w, b, **given)
    before = fw.backends.native.use_winograd(False)
    try:
        plain = run(conv.conv, x, w, b, **given)
    finally:
        fw.backends.native.use_winograd(before)
    assert (found != plain).mean() < 0.05  # neighbours, where a sum lies between them


def test_convolutions_are_the_same_with_any_number_of_threads():
    x, w, y = normal(1, 3, 6, 17, 19), normal(2, 40, 6, 3, 3), normal(3, 3, 40, 17, 19)
    given = {"stride": (1, 1), "padding": (1, 1), "dilation": (1, 1), "groups": 1}
    found = []
    for count in (1, 2, 5):
        with with_threads(count):
            found.append(
                [
                    run(conv.conv, x, w, None, **given).tobytes(),
                    run(conv.conv_input_grad, y, w, x_shape=x.shape, **given).tobytes(),
                    run(conv.conv_weight_grad, x, y, w_shape=w.shape, **given).tobytes(),
                ]
            )
    assert found[0] == found[1] == found[2]


def test_nan_in_an_image_stays_where_its_windows_are():
    x, w = normal(1, 1, 3, 9, 9), normal(2, 5, 3, 3, 3)
    x[0, 1, 4, 4] = np.nan
    given = {"stride": (1, 1), "padding": (1, 1), "dilation": (1, 1), "groups": 1}
    out = np.isnan(run(conv.conv, x, w, None, **given).astype(np.float32))
    wanted = np.zeros((1, 5, 9, 9), bool)
    wanted[:, :, 3:6, 3:6] = True
    assert np.array_equal(out, wanted)
    y = normal(3, 1, 5, 9, 9)
    grad = np.isnan(run(conv.conv_weight_grad, x, y, w_shape=w.shape, **given).astype(np.float32))
    assert grad[:, 1].all() and not grad[:, [0, 2]].any()


# -- elementwise programs ----------------------------------------------------------------------------------


def rounded_once(op, *inputs, **given):
    """The public function on float32, rounded."""
    wide = [x.float() if isinstance(x, fw.Tensor) and x.dtype is fw.bfloat16 else x for x in inputs]
    out = op(*wide, **given)
    return out.bfloat16() if out.is_floating_point() else out


def layouts_of(x):
    yield x
    yield x.t()
    yield x[::2]
    yield x[:, :1].expand(-1, x.shape[1])
    yield x[0, 0]
    yield x[:0]


@pytest.mark.parametrize("name", ["exp", "tanh", "sigmoid", "relu", "neg", "abs", "sqrt", "isnan", "square"])
@pytest.mark.parametrize("shape", [(3, 5), (70, 300)])
def test_functions_of_one_tensor(name, shape):
    x = fw.from_numpy(normal(1, *shape))
    for each in layouts_of(x):
        out, wanted = getattr(fw, name)(each), rounded_once(getattr(fw, name), each)
        assert out.dtype is wanted.dtype and fw.equal(fw.nan_to_num(out), fw.nan_to_num(wanted))


@pytest.mark.parametrize("name", ["add", "mul", "div", "maximum", "pow", "lt", "atan2"])
def test_functions_of_two(name):
    x, y = fw.from_numpy(normal(1, 30, 700)), fw.from_numpy(normal(2, 30, 700))
    op = getattr(fw, name)
    for a, b in [(x, y), (x, y[:1]), (x, y[0, 0]), (x[0, 0], y), (x, 2.5), (x, 3), (x.t(), y.t()),
                 (x, y[:, :1].expand(-1, 700)), (x[:, :1], y[:1])]:
        out, wanted = op(a, b), rounded_once(op, a, b)
        assert out.dtype is wanted.dtype and fw.equal(fw.nan_to_num(out), fw.nan_to_num(wanted))


def test_choices_and_writes():
    x, y = fw.from_numpy(normal(1, 40, 500)), fw.from_numpy(normal(2, 40, 500))
    chosen = fw.where(x > y, x, y)
    assert fw.equal(chosen, fw.maximum(x, y)) and fw.equal(fw.where(x > 0, x, 0.0), x.relu())
    z = x.clone()
    z.mul_(y).add_(1.5)
    assert fw.equal(z, (x * y) + 1.5)


@pytest.mark.parametrize("name", ["gelu", "silu", "softplus", "elu"])
def test_gradients_are_rounded_once(name):
    x, g = normal(1, 20, 300), normal(2, 20, 300)
    op, found = getattr(fw.nn.functional, name), []
    for dtype in (fw.bfloat16, fw.float32):
        t = fw.from_numpy(x).to(dtype).requires_grad_()
        op(t).backward(fw.from_numpy(g).to(dtype))
        found.append(t.grad.bfloat16().float().numpy())
    np.testing.assert_allclose(*found, rtol=2.0**-6, atol=2.0**-9)  # a rule may use the rounded result


def test_the_number_of_threads_changes_nothing():
    x = fw.from_numpy(normal(1, 300, 701))
    results = []
    for count in (1, 2, 5):
        with with_threads(count):
            results.append((fw.exp(x) * x).numpy().tobytes())
    assert results[0] == results[1] == results[2]


def flushed(x):
    return np.where(np.abs(x) < np.float32(TINY), np.copysign(np.float32(0), x), x)


def by_tiles(x, y):
    """What the matrix unit's instruction is defined to compute, tile by tile of 32 steps."""
    k = -(-max(x.shape[1], 1) // 32) * 32
    a = flushed(np.pad(x.astype(np.float32), ((0, 0), (0, k - x.shape[1]))))
    b = flushed(np.pad(y.astype(np.float32), ((0, k - y.shape[0]), (0, 0))))
    total = np.zeros((x.shape[0], y.shape[1]), np.float32)
    for t in range(0, k, 32):
        parts = [np.zeros_like(total), np.zeros_like(total)]
        for p in range(t, t + 32):
            parts[p % 2] = flushed(parts[p % 2] + a[:, p, None] * b[p])
        total = flushed(total + flushed(parts[0] + parts[1]))
    return total.astype(BF16)


@settings(deadline=None, max_examples=60)
@given(sizes, lengths, sizes, layouts, layouts, threads, seeds)
def test_the_twin_of_the_matrix_unit(m, k, n, left, right, count, seed):
    x, y = laid(normal(seed, m, k), left), laid(normal(seed + 1, k, n), right)
    with with_threads(count):
        out = native.matmul_by_tiles(x, y, True)
    check(out, x, y)
    if m and n:
        np.testing.assert_array_equal(out.view(np.uint16), by_tiles(x, y).view(np.uint16))


def test_the_twin_takes_denormal_numbers_as_nothing():
    x = np.array([[1e-39, 1, -1e-39, 2]], np.float32).astype(BF16)
    y = np.array([[1e30], [1e-39], [1], [0.5]], np.float32).astype(BF16)
    assert native.matmul_by_tiles(x, y, True).item() == 1
    odd = np.array([[np.inf, 1, 1]], np.float32).astype(BF16)
    y = np.array([[0], [1], [1]], np.float32).astype(BF16)
    assert np.isnan(native.matmul_by_tiles(odd, y, True).item())


has_unit = hasattr(native, "has_matrix_unit") and native.has_matrix_unit()
with_unit = pytest.mark.skipif(not has_unit, reason="no matrix unit here, or not granted, or switched off")


def special(seed, *shape):
    """Any bits: numbers of all sizes, denormal ones, zeros of both signs, infinities, nan."""
    rng = np.random.default_rng(seed)
    x = rng.integers(0, 2**16, shape, np.uint16).view(BF16)
    x[rng.random(shape) < 0.6] = 1.5  # or nearly all sums are nan
    odd = rng.random(shape) < 0.3
    small = np.array([0x0001, 0x807F, 0x0000, 0x8000, 0x0080], np.uint16)
    x[odd] = rng.choice(small, int(odd.sum())).view(BF16)
    return x


def same_bits(a, b):
    """Bit by bit, but for which nan it is."""
    a, b = (np.where(np.isnan(x.astype(np.float32)), np.uint16(0x7FC0), x.view(np.uint16)) for x in (a, b))
    np.testing.assert_array_equal(a, b)


@with_unit
@slow
@given(sizes, lengths, sizes, layouts, layouts, threads, st.sampled_from([normal, special]), seeds)
def test_the_matrix_unit_has_the_bits_of_its_twin(m, k, n, left, right, count, numbers, seed):
    x, y = laid(numbers(seed, m, k), left), laid(numbers(seed + 1, k, n), right)
    with with_threads(count):
        same_bits(native.matmul_by_tiles(x, y, False), native.matmul_by_tiles(x, y, True))


@with_unit
@pytest.mark.parametrize("m,k,n", [(300, 500, 400), (70, 9001, 33), (257, 129, 1033), (1000, 64, 40)])
@pytest.mark.parametrize("left", ["rows", "columns"])
@pytest.mark.parametrize("right", ["rows", "columns"])
def test_the_matrix_unit_in_large_products(m, k, n, left, right):
    x, y = laid(normal(1, m, k), left), laid(normal(2, k, n), right)
    twin = native.matmul_by_tiles(x, y, True)
    for count in (1, 2, 5):
        with with_threads(count):
            same_bits(native.matmul_by_tiles(x, y, False), twin)


@with_unit
def test_the_matrix_unit_in_threads_and_forked_processes():
    x, y = normal(1, 100, 70), normal(2, 70, 90)
    twin = native.matmul_by_tiles(x, y, True)
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        for out in pool.map(lambda _: native.matmul_by_tiles(x, y, False), range(16)):
            same_bits(out, twin)
    read, write = os.pipe()
    child = os.fork()
    if child == 0:  # only what is needed: other threads' locks may be held
        with os.fdopen(write, "wb") as pipe:
            pipe.write(native.matmul_by_tiles(x, y, False).tobytes())
        os._exit(0)
    os.close(write)
    with os.fdopen(read, "rb") as pipe:
        found = pipe.read()
    assert os.waitpid(child, 0)[1] == 0
    assert found == twin.tobytes()


def channels_last(x, wanted):
    """The same numbers, the channels of a place side by side if ``wanted``."""
    order = (0, *range(2, x.ndim), 1)
    return np.ascontiguousarray(x.transpose(order)).transpose(np.argsort(order)) if wanted else x


@st.composite
def tiled_convolutions(draw):
    """``convolutions()`` with channels and rows beside the sizes of tiles, and how images and kernels lie."""
    x_shape, w_shape, given = draw(convolutions())
    each, rows = (draw(st.sampled_from([1, 3, 16, 17, 32, 40])) for _ in range(2))
    groups = given["groups"]
    x_shape, w_shape = (x_shape[0], each * groups, *x_shape[2:]), (rows * groups, each, *w_shape[2:])
    assume(np.prod(x_shape) * np.prod(w_shape[2:]) * rows < 2e6)  # the twin takes its time
    return x_shape, w_shape, given, [draw(st.booleans()) and len(x_shape) > 3 for _ in range(3)]


def tiled_calls(shapes, seed, numbers=normal):
    """Record, arrays as they should lie, and settings of the three convolutions by tiles."""
    x_shape, w_shape, given, last = shapes
    b = normal(seed + 2, w_shape[0]) if seed % 2 else None
    out = windows.out_sizes(x_shape[2:], w_shape[2:], *list(given.values())[:3])
    x, w, y = (channels_last(numbers(seed + i, *s), wanted)
               for i, (s, wanted) in enumerate(zip((x_shape, w_shape, (x_shape[0], w_shape[0], *out)), last)))
    yield conv.conv, native.conv_by_tiles, (x, w, b), given
    yield conv.conv_input_grad, native.conv_input_grad_by_tiles, (y, w), {"x_shape": x_shape, **given}
    yield conv.conv_weight_grad, native.conv_weight_grad_by_tiles, (x, y), {"w_shape": w_shape, **given}


@slow
@given(tiled_convolutions(), threads, seeds)
def test_convolutions_by_the_twin(shapes, count, seed):
    for op, tiles, arrays, how in tiled_calls(shapes, seed):
        with with_threads(count):
            out = tiles(*arrays, **how, plain=True)
        wide = [None if a is None else a.astype(np.float64) for a in arrays]
        right = op.plain(*wide, **how)
        size = op.plain(*(None if a is None else np.abs(a) for a in wide), **how)
        assert out.dtype == BF16 and out.shape == right.shape
        slack = (np.abs(right) * 2.0**-8 + size * 2.0**-18) * 1.0001 + TINY
        assert np.all(np.abs(out.astype(np.float64) - right) <= slack)
        last = any(a is not None and a.ndim > 3 and a.size and not a.flags.c_contiguous for a in arrays[:2])
        assert (out if not last else out.transpose(0, *range(2, out.ndim), 1)).flags.c_contiguous


@with_unit
@slow
@given(tiled_convolutions(), threads, st.sampled_from([normal, special]), seeds)
def test_convolutions_by_the_matrix_unit_have_the_bits_of_its_twin(shapes, count, numbers, seed):
    for _, tiles, arrays, how in tiled_calls(shapes, seed, numbers):
        with with_threads(count):
            same_bits(tiles(*arrays, **how, plain=False), tiles(*arrays, **how, plain=True))


@with_unit
@pytest.mark.parametrize("x,w,stride,padding,groups", [
    ((3, 64, 40, 44), (96, 64, 3, 3), 1, 1, 1), ((2, 300, 14, 14), (70, 300, 3, 3), 2, 1, 1),
    ((2, 3, 64, 64), (40, 3, 7, 7), 2, 3, 1), ((5, 96, 19, 23), (64, 96, 1, 1), 1, 0, 1),
    ((1, 64, 60, 60), (64, 64, 1, 1), 2, 0, 1), ((9, 32, 7, 7), (64, 16, 3, 3), 1, 1, 2),
    ((2, 70, 5000), (33, 70, 5), 1, 2, 1), ((2, 16, 9, 20, 20), (32, 16, 3, 3, 3), 1, 1, 1),
    ((1, 32, 4, 4), (640, 32, 3, 3), 1, 1, 1)])
def test_large_convolutions_by_the_matrix_unit(x, w, stride, padding, groups):
    d = len(x) - 2
    given = {"stride": (stride,) * d, "padding": (padding,) * d, "dilation": (1,) * d, "groups": groups}
    for last in ([False] * 3, [d > 1] * 3):
        for op, tiles, arrays, settings_ in tiled_calls((x, w, given, last), 1):
            found = []
            for count in (1, 2, 5):
                with with_threads(count):
                    found.append(tiles(*arrays, **settings_, plain=False))
            assert found[0].tobytes() == found[1].tobytes() == found[2].tobytes()
            wide = [None if a is None else a.astype(np.float32) for a in arrays]
            right = op.cpu(*wide, **settings_)
            size = op.cpu(*(None if a is None else np.abs(a) for a in wide), **settings_)
            slack = np.abs(right) * 2.0**-7.9 + size * 2.0**-17
            assert np.all(np.abs(found[0].astype(np.float32) - right) <= slack)
            if op is conv.conv:
                assert native.conv_bf16(*arrays, **settings_).tobytes() == found[0].tobytes()  # goes that way


def test_tiles_leave_nan_where_its_windows_are():
    x, w = normal(1, 1, 3, 9, 9), normal(2, 5, 3, 3, 3)
    x[0, 1, 8, 8] = np.nan
    given = {"stride": (1, 1), "padding": (1, 1), "dilation": (1, 1), "groups": 1}
    out = np.isnan(native.conv_by_tiles(x, w, None, **given, plain=True).astype(np.float32))
    wanted = np.zeros((1, 5, 9, 9), bool)
    wanted[:, :, 7:, 7:] = True
    assert np.array_equal(out, wanted)
    y = normal(3, 1, 5, 9, 9)
    grad = native.conv_weight_grad_by_tiles(x, y, **given, w_shape=w.shape, plain=True)
    wanted = np.zeros((5, 3, 3, 3), bool)
    wanted[:, 1, 1:, 1:] = True  # the first row and column of the kernel never see the last place
    assert np.array_equal(np.isnan(grad.astype(np.float32)), wanted)


@pytest.fixture
def medium():
    fw.set_float32_matmul_precision("medium")
    yield
    fw.set_float32_matmul_precision("highest")


@with_unit
@slow
@given(sizes, lengths, sizes, layouts, layouts, threads, st.booleans(), seeds)
def test_products_of_float32_may_be_rounded(m, k, n, left, right, count, relu, seed):
    rng = np.random.default_rng(seed)
    x, w = (laid(rng.standard_normal(s, np.float32), f) for s, f in (((m, k), left), ((n, k), right)))
    b = rng.standard_normal(n, np.float32)
    native.set_rounded_products(True)
    try:
        with with_threads(count):
            out = (native.linear_relu if relu else native.linear)(x, w, b)
    finally:
        native.set_rounded_products(False)
    least = 16  # fewer are not worth it
    rounded = [(a.astype(BF16) if min(m, n, k) >= least else a).astype(np.float64) for a in (x, w)]
    wanted = rounded[0] @ rounded[1].T + b
    size = np.abs(rounded[0]) @ np.abs(rounded[1]).T + np.abs(b)
    assert out.dtype == np.float32
    near = size * 2.0**-23 * (4 + k**0.5)
    assert np.all(np.abs(out - (np.maximum(wanted, 0) if relu else wanted)) <= near + TINY)


@with_unit
def test_medium_precision_is_a_permission(medium):
    x, y = (fw.from_numpy(np.random.default_rng(s).standard_normal((3, 40, 40), np.float32)) for s in (1, 2))
    rough = x @ y
    narrow = (x.bfloat16().double() @ y.bfloat16().double()).float()
    assert fw.allclose(rough, narrow, rtol=1e-5, atol=1e-5)
    fw.set_float32_matmul_precision("high")
    exact = x @ y
    assert fw.allclose(exact, (x.double() @ y.double()).float(), rtol=1e-5, atol=1e-5)
    assert not fw.allclose(exact, rough, rtol=1e-5, atol=1e-5)


@with_unit
@pytest.mark.parametrize("choice", ["off", "0", "on"])
def test_the_matrix_unit_can_be_switched_off(choice):
    code = "from framework import _native; print(_native.module.has_matrix_unit())"
    out = subprocess.run([sys.executable, "-c", code], env={**os.environ, "FRAMEWORK_AMX": choice},
                         capture_output=True, text=True, check=True)
    assert out.stdout.strip() == str(choice == "on")


@pytest.mark.parametrize("channels", [4, 32])  # by products, and by Winograd's
def test_convolutions_of_channels_last_stay_so(channels):
    fw.manual_seed(0)
    x, w = fw.randn(4, channels, 32, 32), fw.randn(channels, channels, 3, 3)
    plain = [a.bfloat16().requires_grad_() for a in (x, w)]
    last = [a.bfloat16().contiguous(memory_format=fw.channels_last).requires_grad_() for a in (x, w)]
    found = []
    for images, kernels in (plain, last):
        y = fw.nn.functional.conv2d(images, kernels, padding=1)
        found.append([y, *fw.autograd.grad(y.float().square().sum(), [images, kernels])])
    for part, (a, b) in enumerate(zip(*found)):
        assert [t.is_contiguous(memory_format=fw.channels_last) for t in (a, b)] == [False, True]
        if (_native.isa, channels, part) != ("avx2", 32, 2):
            assert a.equal(b)
            continue
        # there the gradient of the kernels goes by float32, and adds up in another order in each layout
        a, b = a.float().numpy(), b.float().numpy()
        np.testing.assert_allclose(a, b, rtol=2 ** -7, atol=2 ** -7 * np.abs(a).max())


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_moments_of_norms_are_not_rounded_for_backward(dtype):
    """Of few numbers that lie close together the variance in 16 bits would be far off."""
    F = fw.nn.functional
    values, weight = np.random.default_rng(0).standard_normal((3, 4)), [0.5, 0.8, 1.2, 1.5]
    seeds = 5 * np.sin(np.arange(12.0)).reshape(3, 4)
    norms = [lambda x, w: F.group_norm(x, 2, w, w), lambda x, w: F.layer_norm(x, (4,), w, w),
             lambda x, w: F.batch_norm(x, None, None, w, w, training=True)]
    for norm in norms:
        found = []
        for kind in (fw.float64, getattr(fw, dtype)):
            x = fw.tensor(values, dtype=kind).requires_grad_()
            y = norm(x, fw.tensor(weight, dtype=kind).requires_grad_())
            grad, = fw.autograd.grad([y], [x], [fw.tensor(seeds, dtype=kind)])
            found.append(grad.double().numpy())
        np.testing.assert_allclose(found[1], found[0], 3e-2, 3e-2 * np.abs(found[0]).max())


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_sums_without_nan_have_the_dtype_of_the_numbers(dtype):
    x = fw.tensor([[1.0, float("nan"), 2.0]], dtype=getattr(fw, dtype))
    for total in (fw.nansum(x), fw.nansum(x, 1), fw.nanmean(x), fw.nanmean(x, 0)):
        assert total.dtype is x.dtype
