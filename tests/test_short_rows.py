"""Rows of few numbers, of which kernels take a vector of rows at a time: the formula's results, whatever the
number of rows, and the same for a row wherever it stands."""

import numpy as np
import pytest

import framework as fw
from framework import _native

LENGTHS = [1, 2, 3, 4, 5, 7, 8, 9, 12, 15, 16, 17, 20, 31, 33, 64, 65, 127, 130]
COUNTS = [1, 2, 7, 8, 9, 15, 16, 17, 31, 40, 1003]
DTYPES = [np.float32, np.float64, np.int32, np.int64]
FOLDS = {"sum": np.sum, "prod": np.prod, "amax": np.max, "amin": np.min}
MOMENTS = {"mean": np.mean, "var": lambda x, axis: np.var(x, axis=axis, ddof=1),
           "logsumexp": lambda x, axis: np.log(np.exp(x).sum(axis)), "nansum": np.nansum,
           "norm": lambda x, axis: np.sqrt((x * x).sum(axis))}


def rows(dtype, count, length, special=False):
    rng = np.random.default_rng(count * 131 + length)
    if np.dtype(dtype).kind == "i":
        return rng.integers(-3, 4, (count, length)).astype(dtype)
    x = rng.normal(size=(count, length)).astype(dtype)
    if special:
        kinds = rng.random(x.shape)
        for value, low, high in ((np.nan, 0, 0.03), (np.inf, 0.1, 0.3), (-np.inf, 0.4, 0.6), (-0.0, 0.7, 0.8),
                                 (0.0, 0.8, 0.9)):
            x[(low < kinds) & (kinds < high)] = value
    return x


def both(name, x):
    return getattr(fw, name)(fw.from_numpy(x), dim=-1).numpy()


@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_folds(dtype, length):
    for count in COUNTS:
        x = rows(dtype, count, length)
        wide = x.astype(np.float64)
        for name, formula in FOLDS.items():
            if name == "prod" and np.dtype(dtype).kind == "i":
                x, wide = x % 2, wide % 2
            want = formula(wide, axis=-1)
            np.testing.assert_allclose(both(name, x), want, rtol=2e-5 if dtype == np.float32 else 1e-12,
                                       atol=1e-5 if name == "sum" and dtype == np.float32 else 1e-13)


@pytest.mark.parametrize("length", LENGTHS[1:])
@pytest.mark.parametrize("dtype", DTYPES[:2])
def test_moments(dtype, length):
    for count in COUNTS:
        x = rows(dtype, count, length)
        for name, formula in MOMENTS.items():
            np.testing.assert_allclose(both(name, x), formula(x.astype(np.float64), axis=-1),
                                       rtol=2e-5 if dtype == np.float32 else 1e-12,
                                       atol=2e-6 if dtype == np.float32 else 1e-14)


@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_the_first_of_the_best(dtype, length):
    """Of equal elements, and of those that are nan, the first one; the value has the sign of that element."""
    for count in COUNTS:
        x = rows(dtype, count, length, special=True)
        for name in ("max", "min"):
            value, place = getattr(fw.from_numpy(x), name)(-1)
            want = getattr(np, f"arg{name}")(x, axis=-1)
            np.testing.assert_array_equal(place.numpy(), want)
            np.testing.assert_array_equal(value.numpy(), x[np.arange(count), want])
            signs = [np.signbit(v * 1.0) for v in (value.numpy(), x[np.arange(count), want])]
            np.testing.assert_array_equal(*signs)
            np.testing.assert_array_equal(getattr(fw.from_numpy(x), f"arg{name}")(-1).numpy(), want)


@pytest.mark.parametrize("name", ["sum", "prod", "amax", "mean", "var", "logsumexp", "norm", "nansum"])
@pytest.mark.parametrize("length", [2, 3, 5, 8, 13, 16])
def test_a_row_has_the_same_result_wherever_it_stands(name, length):
    x = rows(np.float32, 100, length)
    whole = both(name, x)
    for first, last in ((0, 1), (3, 5), (10, 27), (50, 100)):
        np.testing.assert_array_equal(both(name, x[first:last].copy()), whole[first:last])


@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize("dtype", DTYPES[:2])
def test_a_matrix_of_short_rows_times_a_vector(dtype, length):
    rng = np.random.default_rng(length)
    for count in COUNTS:
        whole = rng.normal(size=(count, length + 3)).astype(dtype)
        vector = rng.normal(size=2 * length).astype(dtype)
        for a in (whole[:, :length], np.ascontiguousarray(whole[:, 1:1 + length])):
            for v in (vector[:length], vector[::2]):
                got = (fw.from_numpy(a) @ fw.from_numpy(v)).numpy()
                scale = np.abs(a).astype(np.float64) @ np.abs(v) + 1e-300
                wrong = np.abs(got - a.astype(np.float64) @ v.astype(np.float64)) / scale
                assert wrong.max() <= 4 * np.finfo(dtype).eps
    a = np.ones((40, length), dtype)
    a[3, length - 1], a[20, 0] = np.nan, np.inf
    got = (fw.from_numpy(a) @ fw.ones(length, dtype=fw.from_numpy(a).dtype)).numpy()
    assert np.isnan(got[3]) and np.isinf(got[20]) and (np.delete(got, [3, 20]) == length).all()


@pytest.mark.parametrize("dtype", [np.int8, np.int16, np.float16, np.float32, np.float64])
def test_rows_by_their_positions(dtype):
    rng = np.random.default_rng(3)
    for width in (1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 33, 64, 65, 127, 128, 129, 257, 600):
        table, index = (rng.normal(size=(3, 40, width)) * 50).astype(dtype), rng.integers(-40, 40, 90)
        got = fw.from_numpy(table)[:, fw.from_numpy(index)].numpy()
        np.testing.assert_array_equal(got, table[:, index])
        got = fw.from_numpy(table[0]).index_select(0, fw.from_numpy(index % 40)).numpy()
        np.testing.assert_array_equal(got, table[0][index])


PLANES = [((2,), 2), ((8,), 2), ((9,), 3), ((7,), 2), ((4, 4), 2), ((6, 9), 3), ((6, 5), (3, 2)),
          ((2, 4, 2), 2), ((3, 3, 4), (3, 1, 2)), ((6, 6), (2, 3))]


@pytest.mark.parametrize("size, kernel", PLANES)
@pytest.mark.parametrize("name", ["max", "avg"])
def test_small_planes_are_pooled_as_each_by_itself(name, size, kernel):
    x = np.random.default_rng(4).normal(size=(37, 3, *size)).astype(np.float32).round(1)
    pool = getattr(fw.nn.functional, f"{name}_pool{len(size)}d")

    def both(part):
        leaf = fw.tensor(part, requires_grad=True)
        y = pool(leaf, kernel)
        (g,) = fw.autograd.grad(y, leaf, fw.tensor(np.cos(y.detach().numpy() * 9)))
        places = pool(leaf, kernel, return_indices=True)[1].numpy() if name == "max" else np.zeros(0)
        return y.detach().numpy(), g.numpy(), places
    whole = both(x)
    for i in (0, 5, 36):
        for got, part in zip(whole, both(x[i:i + 1])):
            np.testing.assert_array_equal(got[i:i + 1], part)


@pytest.mark.parametrize("size, step", [(2, 1), (5, 2), (16, 16), (50, 1), (299, 1), (300, 1)])
def test_windows_that_overlap(size, step):
    whole = np.random.default_rng(5).normal(size=(7, 300))
    windows = fw.tensor(whole).unfold(-1, size, step)
    for name, formula in {**FOLDS, "mean": np.mean}.items():
        for dims in (0, 1, 2, (1, 2), (0, 1, 2)):
            if name != "prod":
                got, want = getattr(windows, name)(dims).numpy(), formula(windows.numpy(), axis=dims)
                np.testing.assert_allclose(got, want, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("dtype", DTYPES)
def test_the_first_operand_is_one_number_for_all_or_for_each_line(dtype):
    rng = np.random.default_rng(6)
    x, first = (rng.normal(size=(2, 5, 70)) * 20).astype(dtype)
    first = first[:, :1].copy()
    kinds = [lambda a, b: a - b] + [lambda a, b: a / b] * (np.dtype(dtype).kind == "f")
    with np.errstate(all="ignore"):
        for kind in kinds:
            both = fw.from_numpy(first), fw.from_numpy(x)
            np.testing.assert_array_equal(kind(*both).numpy(), kind(first, x))
            if np.dtype(dtype).kind == "f":
                first[2], first[3] = np.nan, 0
                np.testing.assert_array_equal(kind(*both).numpy(), kind(first, x))
                for number in (1.5, 0.0, -0.0, float("nan"), float("inf")):
                    got, want = kind(number, fw.from_numpy(x)).numpy(), kind(dtype(number), x)
                    np.testing.assert_array_equal(got, want)
                    np.testing.assert_array_equal(np.signbit(got[want == 0]), np.signbit(want[want == 0]))


@pytest.mark.parametrize("p", [1.0, 2.0])
@pytest.mark.parametrize("length", [1, 3, 4, 5, 16, 33, 64, 65])
def test_gradients_of_distances(p, length):
    rng = np.random.default_rng(length)
    x, y = rng.normal(size=(2, 9, length)).round(1), rng.normal(size=(2, 40, length)).round(1)
    y[:, 3] = x[:, 3]
    g = rng.normal(size=(2, 9, 40)) * (rng.random((2, 9, 40)) > 0.1)
    leaves = [fw.tensor(a, requires_grad=True) for a in (x, y)]
    got = fw.autograd.grad(fw.cdist(*leaves, p=p), leaves, fw.tensor(g))
    apart = x[:, :, None] - y[:, None]
    size = np.sqrt((apart ** 2).sum(-1, keepdims=True))
    shares = g[..., None] * (np.sign(apart) if p == 1 else apart / np.where(size == 0, 1, size))
    np.testing.assert_allclose(got[0].numpy(), shares.sum(2), rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(got[1].numpy(), -shares.sum(1), rtol=1e-10, atol=1e-10)


@pytest.mark.skipif(_native.module is None, reason="NumPy's formula multiplies 0 by inf")
@pytest.mark.parametrize("count", [3, 17, 40])
def test_a_distance_that_counts_nothing_gives_nothing(count):
    """Whatever the rows are: the product of 0 and inf would be nan."""
    x, y = np.ones((2, 2)), np.zeros((count, 2))
    x[0, 0] = np.inf
    g = np.ones((2, count))
    g[0] = 0
    leaves = [fw.tensor(a, requires_grad=True) for a in (x, y)]
    gx, gy = fw.autograd.grad(fw.cdist(*leaves), leaves, fw.tensor(g))
    np.testing.assert_allclose(gx.numpy(), [[0, 0], [count * 0.5 ** 0.5] * 2])
    np.testing.assert_allclose(gy.numpy(), -(0.5 ** 0.5) * np.ones((count, 2)))
