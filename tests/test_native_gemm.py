"""Matrix products by the native kernels: as exact as NumPy's, at any shape, stride and number of threads."""

import math
from contextlib import contextmanager

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import framework as fw
from framework import _native
from framework.ops.linalg.contract import matmul_kernel
from framework.ops.linalg.matmul import linear_op, matmul_op

native = _native.module
pytestmark = pytest.mark.skipif(not hasattr(native, "matmul"), reason=f"no native matmul: {_native.isa}")

sizes = st.one_of(st.integers(0, 5), st.sampled_from([7, 8, 13, 14, 15, 16, 17, 29, 31, 32, 33, 64, 67, 130]))
lengths = st.one_of(sizes, st.sampled_from([127, 256, 383, 385, 769, 1031]))
dtypes = st.sampled_from([np.float32, np.float64])
layouts = st.sampled_from(["rows", "columns", "steps", "slice", "backwards"])
threads = st.sampled_from([1, 2, 3])
seeds = st.integers(0, 2**16)
slow = settings(deadline=None, max_examples=150)


@contextmanager
def with_threads(n):
    before = native.threads()
    native.set_threads(n)
    try:
        yield
    finally:
        native.set_threads(before)


def laid(x, layout):
    """The same numbers in another layout of memory."""
    if layout == "columns":
        return np.ascontiguousarray(x.swapaxes(-1, -2)).swapaxes(-1, -2) if x.ndim > 1 else x
    if layout == "steps":
        x = np.repeat(x, 2, -1)[..., ::2]
        return np.repeat(x, 3, 0)[::3] if x.ndim > 1 else x
    if layout == "slice":
        return np.pad(x, [(1, 2)] * x.ndim)[(slice(1, -2),) * x.ndim]
    if layout == "backwards":
        return np.ascontiguousarray(x[..., ::-1])[..., ::-1]
    return x


def normal(seed, dtype, *shape):
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


def product(x, y, n=2):
    with with_threads(n):
        out = native.matmul(x, y)
    assert type(out) is np.ndarray and out.flags.c_contiguous and out.dtype == x.dtype
    return out


def check(out, x, y, extra=0.0):
    """Within the bound of any order of summation, which is some eps of the sum of absolute products."""
    wide = [np.asarray(a, np.longdouble if out.size * x.shape[-1] < 10**6 else np.float64) for a in (x, y)]
    right = np.matmul(*wide) + extra
    assert out.shape == right.shape
    size = np.matmul(*map(np.abs, wide)) + np.abs(extra)
    assert np.all(np.abs(out - right) <= size * np.finfo(out.dtype).eps * (4 + x.shape[-1] ** 0.5))


@slow
@given(sizes, sizes, lengths, dtypes, layouts, layouts, threads, seeds)
def test_matrices(m, n, k, dtype, first, second, count, seed):
    x, y = laid(normal(seed, dtype, m, k), first), laid(normal(seed + 1, dtype, k, n), second)
    check(product(x, y, count), x, y)


@pytest.mark.parametrize("m,n,k", [(300, 400, 500), (1000, 33, 700), (257, 1033, 129), (2, 3000, 40),
                                   (513, 2, 2049)])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("first,second", [("rows", "rows"), ("columns", "rows"), ("rows", "columns"),
                                          ("steps", "slice")])
def test_large_matrices(m, n, k, dtype, first, second):
    x, y = laid(normal(1, dtype, m, k), first), laid(normal(2, dtype, k, n), second)
    one, two, five = (product(x, y, count) for count in (1, 2, 5))
    check(one, x, y)
    assert np.array_equal(one, two) and np.array_equal(one, five)


@pytest.mark.parametrize("m,n,k", [(17, 60, 1030), (33, 57, 128), (65, 200, 1024), (140, 300, 2048),
                                   (141, 99, 512), (225, 100, 1024), (600, 40, 1024), (300, 100, 24),
                                   (40, 30, 9000), (14, 96, 20011)])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_operands_that_are_read_as_they_lie(m, n, k, dtype):
    """In place, packed, copied as they would share a place in the cache, or turned; and sums of many
    steps."""
    x, y = normal(1, dtype, m, k), normal(2, dtype, k, n)
    for first in ("rows", "columns", "slice"):
        for second in ("rows", "columns", "slice"):
            a, b = laid(x, first), laid(y, second)
            one = product(a, b, 1)
            check(one, x, y)
            assert np.array_equal(one, product(a, b, 2)), (first, second)


@slow
@given(sizes, lengths, dtypes, layouts, threads, seeds)
def test_vectors(n, k, dtype, layout, count, seed):
    x = laid(normal(seed, dtype, n, k), layout)
    v = laid(normal(seed + 1, dtype, k), "steps" if seed % 2 else "rows")
    check(product(x, v, count), x, v)
    check(product(v, x.T, count), v, x.T)
    check(product(v, v, count), v, v)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_long_vectors(dtype):
    x, y = normal(1, dtype, 300_001), normal(2, dtype, 300_001)
    results = [product(x, y, count) for count in (1, 2, 3)]
    check(results[0], x, y)
    assert results[0] == results[1] == results[2]
    wide = normal(3, dtype, 3, 9001)
    check(product(y[:3], wide), y[:3], wide)
    check(product(wide, y[:9001]), wide, y[:9001])
    check(product(wide.T, y[:3]), wide.T, y[:3])


batches = st.lists(st.tuples(st.sampled_from([1, 2, 3, 5]), st.sampled_from("xyb")), max_size=4)


@slow
@given(batches, st.integers(0, 3), sizes.filter(lambda n: n < 40), sizes.filter(lambda n: n < 40),
       st.integers(0, 40), dtypes, layouts, layouts, threads, seeds)
def test_batches(batch, missing, m, n, k, dtype, first, second, count, seed):
    a = [size if who in "xb" else 1 for size, who in batch]
    b = [size if who in "yb" else 1 for size, who in batch][min(missing, len(batch)):]
    x, y = laid(normal(seed, dtype, *a, m, k), first), laid(normal(seed + 1, dtype, *b, k, n), second)
    check(product(x, y, count), x, y)


def test_batches_in_odd_places():
    x, y = normal(1, np.float32, 3, 4, 5, 6), normal(2, np.float32, 6, 7)
    for turned in (x.transpose(1, 0, 2, 3), x.transpose(2, 1, 0, 3), x[:, ::2], x[:, :, 1:2],
                   x[:, 1:2, ::-1]):
        check(product(turned, y), turned, y)
    spread = np.broadcast_to(x[:1], x.shape)
    check(product(spread, x.swapaxes(-1, -2)), spread, x.swapaxes(-1, -2))
    check(product(x[0, 0, 0], x.swapaxes(-1, -2)), x[0, 0, 0], x.swapaxes(-1, -2))
    check(product(x, x[0, 0, 0]), x, x[0, 0, 0])


@slow
@given(sizes, sizes, lengths, dtypes, layouts, layouts, threads, st.booleans(), seeds)
def test_linear(m, n, k, dtype, first, second, count, biased, seed):
    x, w = laid(normal(seed, dtype, m, k), first), laid(normal(seed + 1, dtype, n, k), second)
    b = normal(seed + 2, dtype, n) if biased else None
    with with_threads(count):
        out = native.linear(x, w, b)
    check(out, x, w.T, 0 if b is None else b)


def test_linear_of_batches():
    w, b = normal(1, np.float32, 5, 7), normal(2, np.float32, 5)
    for shape in ((7,), (1, 7), (2, 3, 7), (2, 0, 7), (4, 1, 3, 7)):
        x = normal(3, np.float32, *shape)
        for bias in (b, b[:1], b[1:2].reshape(()), np.repeat(b, 2)[::2], b[::-1]):
            check(native.linear(x, w, bias), x, w.T, bias)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("m,n,k", [(1, 1, 40), (1, 40, 40), (40, 1, 40), (3, 5, 300), (20, 20, 20),
                                   (100, 90, 400)])
@pytest.mark.parametrize("turned", [False, True])
def test_nan_and_inf(dtype, m, n, k, turned):
    """Every product counts, also 0 * inf; what stands beside a row or column does not."""
    for special in (np.nan, np.inf, -np.inf):
        x, y = normal(1, dtype, m, k), laid(normal(2, dtype, k, n), "columns" if turned else "rows")
        x[m // 2, k - 1] = special
        y[k - 1, n // 2] = 0
        out = product(x, y)
        with np.errstate(all="ignore"):  # NumPy's BLAS for ARM leaves flags of divisions by zero behind
            assert np.array_equal(np.isfinite(out), np.isfinite(np.matmul(x, y)))
        assert np.isnan(out[m // 2, n // 2]) and np.isfinite(np.delete(out, m // 2, 0)).all()
        x, y = normal(1, dtype, m, k), y.copy()
        y[0, n - 1] = special
        assert np.isfinite(product(x, y)[:, :-1]).all() and not np.isfinite(product(x, y)[:, -1]).any()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_error_is_no_larger_than_that_of_numpy(dtype):
    for m, n, k in ((1, 1, 20_000), (1, 64, 4000), (64, 1, 4000), (4, 64, 4000), (64, 64, 4000)):
        ours, theirs = [], []
        for seed in range(3):
            x, y = normal(seed, dtype, m, k), normal(seed + 9, dtype, k, n)
            right = x.astype(np.longdouble) @ y.astype(np.longdouble)
            for where, out in ((ours, product(x, y)), (theirs, np.matmul(x, y))):
                where.append(float(np.sqrt(((out - right) ** 2).mean())))
        assert sum(ours) <= 1.5 * sum(theirs)


def test_left_to_numpy():
    x = normal(1, np.float32, 4, 4)
    odd = np.zeros(16 * 4 + 1, np.uint8)[1:].view(np.float32).reshape(4, 4)
    record = np.zeros((4, 4), [("a", np.float32), ("b", np.uint8)])["a"]
    for other in (x.astype(np.float64), x.astype(np.float16), x.astype(np.int32), x.astype(np.complex64),
                  x.astype(">f4"), odd, record, x[:3], x[0, :3], np.float32(2), 3.0, np.array(3, np.float32)):
        assert native.matmul(x, other) is NotImplemented
    assert native.matmul(x.reshape(2, 2, 4), np.zeros((3, 4, 1), np.float32)) is NotImplemented
    for bias in (2.0, np.zeros(3, np.float32), np.zeros(4), x[:1], x[0, :3]):
        assert native.linear(x, x, bias) is NotImplemented


@pytest.mark.parametrize("shapes", [((5,), (5,)), ((4, 5), (5,)), ((5,), (5, 6)), ((4, 5), (5, 6)),
                                    ((2, 4, 5), (5, 6)), ((2, 4, 5), (2, 5, 6)), ((3, 1, 4, 5), (2, 5, 6)),
                                    ((2, 4, 5), (5,)), ((5,), (2, 5, 6)), ((0, 5), (5, 2)), ((4, 0), (0, 3))])
def test_the_op_is_its_formula(shapes):
    x, y = (fw.from_numpy(normal(i, np.float64, *s)).requires_grad_() for i, s in enumerate(shapes))
    out = fw.matmul(x, y)
    assert np.allclose(out.detach().numpy(), matmul_kernel(np, x.detach().numpy(), y.detach().numpy()))
    assert not math.prod(out.shape) or fw.autograd.gradcheck(fw.matmul, (x, y))
    assert matmul_op.native == "matmul" and linear_op.native == "linear"


def test_gradients_of_linear():
    shapes = [(64, 96), (80, 96), (80,)]
    x, w, b = (fw.from_numpy(normal(i, np.float32, *s)).requires_grad_() for i, s in enumerate(shapes))
    g = normal(5, np.float32, 64, 80)
    fw.nn.functional.linear(x, w, b).backward(fw.from_numpy(g))
    check(x.grad.numpy(), g, w.detach().numpy())
    check(w.grad.numpy(), g.T, x.detach().numpy())
    assert np.allclose(b.grad.numpy(), g.sum(0), atol=1e-4)


@pytest.mark.parametrize("equation,shapes", [
    ("bij,bjk->bik", [(3, 4, 5), (3, 5, 6)]), ("bhid,bhjd->bhij", [(2, 3, 4, 5), (2, 3, 6, 5)]),
    ("ij,kj,k->i", [(4, 5), (6, 5), (6,)]), ("ab,bc,cd->ad", [(30, 40), (40, 20), (20, 50)]),
    ("i,i", [(9,), (9,)])])
def test_einsum(equation, shapes):
    arrays = [normal(i, np.float32, *s) for i, s in enumerate(shapes)]
    out = fw.einsum(equation, *map(fw.from_numpy, arrays)).numpy()
    right = np.einsum(equation, *(a.astype(np.float64) for a in arrays))
    assert np.allclose(out, right, rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("m", [1, 3, 9, 64])
def test_many_products_of_few_numbers(m, dtype):
    """With one operand in registers: any strides, operands that broadcast, and by any number of threads."""
    rng = np.random.default_rng(m)
    for k in range(1, 6):
        for n in range(1, 6):
            x = rng.standard_normal((300, m, k)).astype(dtype)
            y = rng.standard_normal((300, k, n)).astype(dtype)
            turned = np.ascontiguousarray(y.swapaxes(1, 2)).swapaxes(1, 2)
            apart = np.repeat(x, 2, -1)[..., ::2]
            want = x.astype(np.float64) @ y
            for a, b in ((x, y), (x, turned), (apart, y), (x[::-1], y[::-1])):
                for count in (1, 3):
                    with with_threads(count):
                        found = native.matmul(a, b)
                    assert found.dtype == dtype
                    exact = want[::-1] if a.strides[0] < 0 else want
                    np.testing.assert_allclose(found, exact, 1e-5, 1e-5 if dtype is np.float32 else 1e-13)
            np.testing.assert_allclose(native.matmul(x, y[:1]), x.astype(np.float64) @ y[:1], 1e-5, 1e-5)
