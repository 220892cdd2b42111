"""Elementwise programs on float16 and bfloat16, however operands lie: in float32, rounded once, natively."""

import numpy as np
import pytest

import framework as fw
from framework import _native
from framework.ops.language.program import native_kernel

pytest.importorskip("ml_dtypes", reason="bfloat16 needs the lowprecision extra")
pytestmark = pytest.mark.skipif(_native.module is None, reason="without the native kernels")
NARROW = pytest.mark.parametrize("dtype", [np.dtype(np.float16), fw.bfloat16.numpy], ids=str)


def declined(*args, **kwargs):
    raise AssertionError("left to NumPy")


def kernel(text, names):
    return native_kernel(text, names, declined)


def numbers(dtype, *shape, seed=0):
    return np.asarray(np.random.default_rng(seed).standard_normal(shape) * 3).astype(dtype)


def same(got, want, dtype):
    assert got.dtype == dtype and got.shape == want.shape
    assert np.array_equal(got.view(np.uint16), want.astype(dtype).view(np.uint16))


LAYOUTS = {
    "row": lambda dtype: (numbers(dtype, 5, 700), numbers(dtype, 700, seed=1)),
    "column": lambda dtype: (numbers(dtype, 3000, 3), numbers(dtype, 3000, 1, seed=1)),
    "outer": lambda dtype: (numbers(dtype, 40, 1), numbers(dtype, 1, 90, seed=1)),
    "transposed": lambda dtype: (numbers(dtype, 70, 50).T, numbers(dtype, 50, 70, seed=1)),
    "gaps": lambda dtype: (numbers(dtype, 4, 2400)[:, ::2], numbers(dtype, 4, 3600, seed=1)[:, ::3]),
    "numbers": lambda dtype: (numbers(dtype), numbers(dtype, 1, 1, seed=1)),
    "nothing": lambda dtype: (numbers(dtype, 0, 3), numbers(dtype, 3, seed=1)),
    "turned": lambda dtype: (numbers(dtype, 2100)[::-1], numbers(dtype, 2100, seed=1)),
}


@NARROW
@pytest.mark.parametrize("layout", LAYOUTS)
def test_operands_that_lie_otherwise(dtype, layout):
    x, y = LAYOUTS[layout](dtype)
    want = (lambda a, b: a * b + np.float32(0.5))(x.astype(np.float32), y.astype(np.float32))
    same(kernel("x * y + 0.5", ("x", "y"))(x, y), want, dtype)
    got = kernel("x < y", ("x", "y"))(x, y)
    assert got.dtype == bool and np.array_equal(got, x.astype(np.float32) < y.astype(np.float32))
    mask = np.broadcast_to(x.astype(np.float32) > 0, want.shape)
    got = kernel("where(m, x, y)", ("m", "x", "y"))(mask, x, y)
    same(got, np.where(mask, x.astype(np.float32), y.astype(np.float32)), dtype)


@NARROW
@pytest.mark.parametrize("place", ["rows", "columns", "gaps", "itself"])
def test_results_in_memory_that_is_there(dtype, place):
    x, y = numbers(dtype, 60, 50), numbers(dtype, 50, seed=1)
    out = {"rows": np.zeros((60, 50), dtype), "columns": np.zeros((50, 60), dtype).T,
           "gaps": np.zeros((60, 150), dtype)[:, ::3], "itself": x}[place]
    want = x.astype(np.float32) * y.astype(np.float32)
    assert kernel("x * y", ("x", "y"))(x, y, out=out) is out
    same(np.ascontiguousarray(out), want, dtype)


@NARROW
def test_results_over_operands_that_lie_otherwise(dtype):
    x = numbers(dtype, 50)
    want = x[:-1].astype(np.float32) * x[1:].astype(np.float32)
    kernel("x * y", ("x", "y"))(x[:-1], x[1:], out=x[1:])
    same(x[1:], want, dtype)


@NARROW
def test_in_place_forms_write_straight(dtype, monkeypatch):
    x, y = fw.from_numpy(numbers(dtype, 30)), fw.from_numpy(numbers(dtype, 30, seed=1))
    wide, other = x.float(), y.float()
    memory = x._array
    for form, want in ((lambda x: x.relu_(), wide.relu()), (lambda x: x.copy_(y), other),
                       (lambda x: x.mul_(0.3), other * 0.3), (lambda x: x.fill_(0.7), fw.full((30,), 0.7)),
                       (lambda x: x.add_(y), fw.full((30,), 0.7).to(x.dtype).float() + other),
                       (lambda x: x.zero_(), fw.zeros(30))):
        assert form(x) is x and x._array is memory
        same(x._array, want.to(x.dtype)._array, dtype)
    assert x._version == 6


@NARROW
def test_a_number_that_does_not_fit_is_refused_or_inf_as_before(dtype):
    x = fw.zeros(3).to(fw.float16 if dtype == np.float16 else fw.bfloat16)
    x.fill_(float("inf"))
    assert fw.isinf(x).all()
    x.fill_(65504.0)
    assert float(x[0]) == (65504.0 if dtype == np.float16 else 65536.0)


SHORT = (
    "abs(x - y)", "square(x - y)", "minimum(maximum(x + 3, 0), 6) / 6",
    "x * (minimum(maximum(x + 3, 0), 6) / 6)",
    "where(abs(x - y) < 0.5, square(x - y) * (0.5 / 0.5), abs(x - y) - 0.5 * 0.5)",
    "where(abs(x - y) <= z, square(x - y) * 0.5, z * (abs(x - y) - 0.5 * z))", "x - y", "(x - y) * x",
    "abs(x)", "round(x)", "minimum(maximum(x, -1), 1)", "where(x != x, 7, minimum(maximum(x, -1), 1))", "-x",
    "where(x != x, y, x)")


@NARROW
@pytest.mark.parametrize("text", SHORT)
@pytest.mark.parametrize("n", [1, 15, 64, 100, 70000])
def test_programs_of_few_steps_are_those_of_float32(dtype, text, n):
    """However short, in loops of their own or not, with arrays and with numbers."""
    x, y = numbers(dtype, n), numbers(dtype, n, seed=1)
    x[::7], y[::11], x[3::13] = np.nan, np.inf, 0
    names = tuple(name for name in "xyz" if name in text.replace("where", "").replace("maximum", ""))
    made = kernel(text, names)
    for given in ((x, y, 0.75), (x, -1.5, 0.75), (2.0, y, 0.75), (x, x, 0.75)):
        if not any(isinstance(a, np.ndarray) for a in given[:len(names)]):
            continue
        wide = [a.astype(np.float32) if isinstance(a, np.ndarray) else a for a in given[:len(names)]]
        with np.errstate(all="ignore"):
            want = made(*wide).astype(dtype)
        got = made(*given[:len(names)])
        assert got.dtype == dtype
        nan = np.isnan(want.astype(np.float32))
        np.testing.assert_array_equal(np.isnan(got.astype(np.float32)), nan)
        np.testing.assert_array_equal(got.view(np.uint16)[~nan], want.view(np.uint16)[~nan])


@NARROW
def test_sums_at_positions_in_memory(dtype):
    """``index_add_`` writes what ``index_add`` gives, which rounds the sums, too."""
    kind = fw.float16 if dtype == np.float16 else fw.bfloat16
    for seed in range(5):
        index = fw.tensor(np.random.default_rng(seed).integers(0, 7, 9))
        x, source = (fw.from_numpy(numbers(dtype, 4, k, 3, seed=seed)) for k in (7, 9))
        assert x.dtype == kind
        want = fw.index_add(x, 1, index, source)
        assert fw.equal(x.clone().index_add_(1, index, source), want)
        part = fw.zeros(4, 8, 3, dtype=kind)[:, :7]
        assert fw.equal(part.copy_(x).index_add_(1, index, source), want)
