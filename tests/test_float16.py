"""float16: computed as float32 and rounded once, by the native kernels where there are some."""

import numpy as np
import pytest

import framework as fw
import framework.nn.functional as F
from framework import _native

needs_native = pytest.mark.skipif(_native.module is None, reason="without the native kernels")
ALL = np.arange(1 << 16, dtype=np.uint16).view(np.float16)  # every float16 there is


@needs_native
def test_conversions_are_numpys():
    wide = _native.module.cast(ALL, np.dtype(np.float32))
    numbers = ~np.isnan(wide)
    with np.errstate(invalid="ignore"):  # of signalling nan, on some processors
        want = ALL.astype(np.float32)
    assert np.array_equal(wide[numbers].view(np.uint32), want[numbers].view(np.uint32))
    assert np.isnan(wide).sum() == np.isnan(ALL).sum()
    r = np.random.default_rng(0)
    edges = np.float32([65504, 65519.996, 65520, 1e30, np.inf, -np.inf, 2**-24, 2**-25, 3e-8, 6e-8, 0, -0.0])
    middles = (wide[:-1].astype(np.float64) + wide[1:]) / 2
    x = np.concatenate([edges, middles[np.isfinite(middles)].astype(np.float32),
                        r.integers(0, 2**32, 100001, np.uint32).view(np.float32)])
    with np.errstate(all="ignore"):
        want = x.astype(np.float16)
    for step in (1, 3):
        got, wanted = _native.module.cast(x[::step], np.dtype(np.float16)), want[::step]
        good = ~np.isnan(wanted)
        assert np.array_equal(got.view(np.uint16)[good], wanted.view(np.uint16)[good])
        assert np.isnan(got[~good]).all()


def rounded(f, *xs):
    with np.errstate(all="ignore"):
        return f(*[x.astype(np.float32) for x in xs]).astype(np.float16)


@needs_native
@pytest.mark.parametrize("call, formula", [
    (lambda x, y: x * y + 1, lambda x, y: (x * y).astype(np.float16) + np.float16(1)),
    (lambda x, y: fw.exp(x), lambda x, y: np.exp(x)),
    (lambda x, y: fw.maximum(x, y.t().contiguous().t()), lambda x, y: np.maximum(x, y)),
    (lambda x, y: x + y[0], lambda x, y: x + y[0]),
    (lambda x, y: x.sum(), lambda x, y: x.sum(dtype=np.float64)),
    (lambda x, y: x.mean(1), lambda x, y: x.mean(1, dtype=np.float64)),
    (lambda x, y: x @ y.t(), lambda x, y: x @ y.T),
    (lambda x, y: F.softmax(x, 1), lambda x, y: np.exp(x) / np.exp(x).sum(1, keepdims=True)),
    (lambda x, y: x.amax(0), lambda x, y: x.max(0)),
    (lambda x, y: F.relu(x), lambda x, y: np.maximum(x, 0)),
], ids=range(10))
def test_results_are_rounded_once(call, formula):
    r = np.random.default_rng(1)
    x, y = (r.standard_normal((40, 70)).astype(np.float16) for _ in range(2))
    got, want = call(fw.tensor(x), fw.tensor(y)).numpy(), rounded(formula, x, y)
    assert got.dtype == np.float16 and got.shape == want.shape
    steps = np.abs(got.view(np.int16).astype(int) - want.view(np.int16))  # rounding may fall either way
    assert steps.max() <= 1 and (steps == 0).mean() > 0.97


@needs_native
@pytest.mark.parametrize("half", ["float16", "bfloat16"])
@pytest.mark.parametrize("shape", [(1,), (7,), (8, 15), (3, 16), (5, 17), (2, 33), (40, 1000), (3, 4, 257),
                                   (100_003,)])
def test_folds_have_the_bits_of_float32_rounded_once(half, shape):
    pytest.importorskip("ml_dtypes")
    half, own = getattr(fw, half), fw.Generator().manual_seed(len(shape))
    x = fw.randn(*shape, generator=own).to(half)
    first = x.reshape(-1)
    first[len(first) // 2] = float("-inf")
    for numbers in (x, fw.randn(*shape, generator=own).to(half)):
        for f in (fw.sum, fw.mean, fw.amax, fw.amin):
            for dims in ((-1,), tuple(range(len(shape))), (0,)):
                got, wanted = f(numbers, dims), f(numbers.float(), dims).to(half)
                assert got.dtype == half
                assert np.array_equal(got.float().numpy(), wanted.float().numpy(), equal_nan=True), (f, dims)


def test_a_long_sum_is_not_lost():
    assert fw.ones(40000, dtype=fw.float16).sum().item() == 40000


@needs_native
def test_training_runs_in_float16():
    fw.manual_seed(0)
    layer = fw.nn.Sequential(fw.nn.Conv2d(3, 8, 3), fw.nn.ReLU(), fw.nn.Flatten(), fw.nn.LayerNorm(288),
                             fw.nn.Linear(288, 5))
    x, t = fw.randn(4, 3, 8, 8), fw.tensor([0, 1, 2, 3])
    F.cross_entropy(layer(x), t).backward()
    wanted = [p.grad.numpy() for p in layer.parameters()]
    half = layer.half()
    for p in half.parameters():
        p.grad = None
    F.cross_entropy(half(x.half()), t).backward()
    for p, want in zip(half.parameters(), wanted):
        assert p.grad.dtype == fw.float16
        got = p.grad.numpy().astype(np.float32)
        np.testing.assert_allclose(got, want, atol=0.02 * np.abs(want).max() + 1e-3)


@pytest.mark.parametrize("step", [1, 2])
@pytest.mark.parametrize("other", [np.bool_, np.uint8, np.int32, np.int64, np.float64])
def test_conversions_from_and_to_other_dtypes_are_numpys(other, step):
    """By way of float32, some hundred at a time: lengths that do not fit, and numbers that are too large."""
    wide = np.arange(-500, 800, dtype=np.float32)
    wide[-3:] = [65504, 40000, 2049]
    x = wide.astype(other)[::step]
    with np.errstate(all="ignore"):
        want = x.astype(np.float32).astype(np.float16)
        assert np.array_equal(fw.from_numpy(x).half().numpy(), want)
        back = want[np.isfinite(want)]
        if np.dtype(other).itemsize >= 4 or other is np.bool_:
            dtype = getattr(fw, np.dtype(other).name)
            assert np.array_equal(fw.from_numpy(back).to(dtype).numpy(), back.astype(other))


def test_numbers_of_64_bits_are_rounded_once():
    """Beside the middle between two numbers, where float32 on the way would round twice; large and small."""
    halves = np.arange(0x7C00, dtype=np.uint16).view(np.float16).astype(np.float64)
    middle = (halves[1:] + halves[:-1]) / 2
    x = np.concatenate([halves, middle, [65519.999, 65520, 1e300, 1e-300, 5e-324, np.inf]])
    with np.errstate(all="ignore"):
        near = [np.nextafter(x, 0), np.nextafter(x, np.inf), x * (1 + 2.0 ** -30), x * (1 - 2.0 ** -30)]
    x = np.concatenate([x, *near])
    x = np.concatenate([x, -x, [np.nan]])
    with np.errstate(all="ignore"):
        want = x.astype(np.float16)
    for given in (x, np.repeat(x, 2)[::2]):
        np.testing.assert_array_equal(fw.from_numpy(given).half().numpy(), want)
    assert np.signbit(fw.from_numpy(np.array([-0.0])).half().numpy()).all()
