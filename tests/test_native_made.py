"""Kernels for calls on few numbers beside their formulas: counts, powers, runs, draws, joins."""

import numpy as np
import pytest

import framework as fw
from framework import _native
from framework.errors import ShapeError
from framework.ops.index.nonzero import isin_op
from framework.ops.index.repeat import repeat_op
from framework.ops.index.scatter_reduce import index_reduce_op
from framework.ops.linalg.lu import factor_op
from framework.ops.linalg.made_matrices import powers_op
from framework.ops.linalg.products import cross_op, kron_op
from framework.ops.random.draws import _dirichlet_slope, slope_of_gamma
from framework.ops.reduce.histograms import bincount_op, histc_op, histogram_op, histogramdd_op
from framework.ops.reduce.quantiles import quantile_op
from framework.ops.reduce.sums import others
from framework.ops.reduce.unique import runs_op
from framework.ops.shape.diagonals import trace_op

pytestmark = pytest.mark.skipif(_native.module is None, reason=f"no native extension: {_native.isa}")
DTYPES = [np.float32, np.float64]
MODULE = _native.module


def same(found, want, most=0.0):
    found, want = (x if isinstance(x, tuple) else (x,) for x in (found, want))
    for a, b in zip(found, want, strict=True):
        assert a is not NotImplemented
        assert (a.shape, a.dtype) == (np.shape(b), np.asarray(b).dtype)
        np.testing.assert_allclose(a, b, most, most)


def layouts(a):
    yield a
    yield np.asfortranarray(a)
    yield np.repeat(a, 2, -1)[..., ::2]
    yield a[::-1][::-1]


@pytest.mark.parametrize("dtype", DTYPES)
def test_counts_are_those_of_numpy(dtype):
    rng = np.random.default_rng(0)
    x = rng.standard_normal((7, 33)).astype(dtype)
    x[0, :4] = [np.nan, np.inf, -np.inf, 1]
    weight = rng.random(x.shape).astype(dtype)
    for edges in (np.linspace(-2, 2, 9), [-1, -0.5, 1, 1, 3], [0, 1e-3, 5], [1, 1]):
        edges = np.array(edges, dtype)
        for a in layouts(x):
            same(MODULE.histogram(a, None, edges), histogram_op.plain(x, None, edges))
            same(MODULE.histogram(a, weight, edges), histogram_op.plain(x, weight, edges), 1e-5)
    assert MODULE.histogram(x, None, np.array([0, np.inf], dtype)) is NotImplemented
    assert MODULE.histogram(x, None, np.array([1, 0], dtype)) is NotImplemented
    rows = np.nan_to_num(x[:, :3].copy(), posinf=9, neginf=-9)
    edges = [np.linspace(-1, 1, n).astype(dtype) for n in (3, 4, 2)]
    same(MODULE.histogramdd(rows, None, *edges), histogramdd_op.plain(rows, None, *edges))
    same(MODULE.histogramdd(rows, weight[:, 0].copy(), *edges),
         histogramdd_op.plain(rows, weight[:, 0], *edges), 1e-5)
    assert MODULE.histogramdd(rows, None, *edges[:2]) is NotImplemented
    finite = np.nan_to_num(x, posinf=9, neginf=-9)
    for settings in ({"bins": 5, "low": -1.0, "high": 2.0}, {"bins": 1, "low": 0.0, "high": 1e-3}):
        for a in layouts(finite):
            same(MODULE.histc(a, **settings), histc_op.plain(finite, **settings))
    assert MODULE.ends(x) is None
    assert MODULE.ends(finite) == (finite.min(), finite.max())


def test_bincount_counts_what_it_may():
    x = np.random.default_rng(1).integers(0, 9, 500)
    same(MODULE.bincount(x[::3], None, size=12), bincount_op.plain(x[::3], None, size=12))
    assert MODULE.bincount(x, None, size=int(x.max())) is NotImplemented
    assert MODULE.bincount(-x, None, size=20) is NotImplemented
    assert fw.bincount(fw.tensor([3, 0, 3]), minlength=6).tolist() == [1, 0, 0, 2, 0, 0]


@pytest.mark.parametrize("dtype", [np.uint8, np.int8, np.int16, np.int32])
@pytest.mark.parametrize("n", [0, 1, 3, 4, 1001, 70_000])
def test_narrow_numbers_are_counted(n, dtype):
    x = np.random.default_rng(2).integers(0, 128, n).astype(dtype)
    most = int(x.max()) if n else -1
    same(MODULE.bincount(x, None, size=most + 1), np.bincount(x).astype(np.int64))
    same(MODULE.bincount(x[::2], None, size=300), np.bincount(x[::2], minlength=300).astype(np.int64))
    assert fw.bincount(fw.from_numpy(x), minlength=9).tolist() == np.bincount(x, minlength=9).tolist()
    if n:
        assert MODULE.bincount(x, None, size=most) is NotImplemented
        wrong = x.copy()
        wrong[n // 2] = -1 if dtype is not np.uint8 else 255
        assert MODULE.bincount(wrong, None, size=255) is NotImplemented
        if dtype is not np.uint8:
            with pytest.raises(ValueError, match="negative.*-1"):
                fw.bincount(fw.from_numpy(wrong))


@pytest.mark.parametrize("shapes", [((3, 2), (2, 4)), ((3,), (2, 4)), ((2, 2, 3), (2,)), ((), (3,)),
                                    ((1,), (1,))])
@pytest.mark.parametrize("dtype", [*DTYPES, np.int64])
def test_kronecker_products(shapes, dtype):
    rng = np.random.default_rng(2)
    x, y = (np.asarray((rng.standard_normal(s) * 9).astype(dtype)) for s in shapes)
    same(MODULE.kron(x, y), kron_op.plain(x, y))
    same(MODULE.kron(np.asfortranarray(x), np.asfortranarray(y)), kron_op.plain(x, y))


@pytest.mark.parametrize("dtype", [*DTYPES, np.int64])
def test_powers_and_traces(dtype):
    x = np.arange(-3, 5).astype(dtype)
    for a in (x, x[::-1], x.reshape(2, 4).T, np.array(x[0])):
        for count in (1, 2, 5):
            for falling in (False, True):
                same(MODULE.powers(a, count=count, falling=falling),
                     powers_op.plain(a, count=count, falling=falling))
    if dtype is not np.int64:
        for shape in ((3, 3), (2, 5), (5, 2), (0, 4), (1, 1)):
            A = np.random.default_rng(3).standard_normal(shape).astype(dtype)
            same(MODULE.trace(A), trace_op.plain(A), 1e-6)
            same(MODULE.trace(A.T), trace_op.plain(A.T), 1e-6)


def test_trace_goes_back():
    x = fw.arange(6.0).reshape(2, 3).requires_grad_()
    (fw.trace(x) * 2).backward()
    assert x.grad.tolist() == [[2, 0, 0], [0, 2, 0]]
    assert fw.autograd.gradcheck(fw.trace, fw.randn(3, 2, dtype=fw.float64, requires_grad=True))


@pytest.mark.parametrize("dtype", DTYPES)
def test_cross_products_broadcast(dtype):
    rng = np.random.default_rng(4)
    for a, b, dim in (((2, 3), (1, 3), -1), ((4, 1, 3), (1, 5, 3), -1), ((1, 3, 2), (4, 3, 1), -2)):
        x, y = (rng.standard_normal(s).astype(dtype) for s in (a, b))
        same(MODULE.cross(x, y, dim=dim), cross_op.plain(x, y, dim=dim), 1e-6)
        same(MODULE.cross(np.asfortranarray(x), y, dim=dim), cross_op.plain(x, y, dim=dim), 1e-6)
    assert MODULE.cross(np.ones((2, 3), dtype), np.ones((5, 3), dtype), dim=-1) is NotImplemented


def test_runs_and_repeats():
    rng = np.random.default_rng(5)
    for dtype in (np.float32, np.float64, np.int64, np.int32, np.uint8):
        x = rng.integers(0, 3, (6, 10)).astype(dtype)
        settings = {"dim": None, "inverse": False, "counts": False}
        for a in (*layouts(x), x[:1, :1], np.full(9, 2, dtype)):
            same(MODULE.runs(a, **settings), runs_op.plain(a, **settings))
            for times in (1, 2, 3, 4, 7):
                same(MODULE.repeat_each(a, times=times), repeat_op.plain(a, times=times))
        for y in (x[0, :1], x[0, :5], np.zeros(3, dtype)):
            if dtype in (np.float32, np.float64, np.int64):
                for invert in (False, True):
                    want = isin_op.plain(x, y, assume_unique=False, invert=invert)
                    same(MODULE.isin(np.asfortranarray(x), y, assume_unique=False, invert=invert), want)
    x = np.array([1, np.nan, np.nan, 2], np.float32)
    assert len(MODULE.runs(x, dim=None, inverse=False, counts=False)[0]) == 4


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("way", ["prod", "mean", "amax", "amin"])
@pytest.mark.parametrize("own", [True, False])
def test_index_reduce(dtype, way, own):
    rng = np.random.default_rng(6)
    x = rng.standard_normal((4, 5, 3)).astype(dtype)
    for dim in range(3):
        index = rng.integers(0, x.shape[dim], 6)
        shape = [*x.shape]
        shape[dim] = 6
        source = rng.standard_normal(shape).astype(dtype)
        source.reshape(-1)[::17] = np.nan
        settings = {"dim": dim, "way": way, "own": own}
        for a in layouts(x):
            same(MODULE.index_reduce(a, np.asfortranarray(source), index, **settings),
                 index_reduce_op.plain(x, source, index, **settings), 1e-5)
        composed = fw.index_reduce(fw.tensor(x).requires_grad_(), dim, fw.tensor(index),
                                   fw.tensor(np.nan_to_num(source)), way, include_self=own)
        single = fw.index_reduce(fw.tensor(x), dim, fw.tensor(index), fw.tensor(np.nan_to_num(source)), way,
                                 include_self=own)
        np.testing.assert_allclose(single.numpy(), composed.detach().numpy(), 1e-5, 1e-5)
    assert MODULE.index_reduce(x, source, index + 9, **settings) is NotImplemented


def test_parts_put_into_copies():
    x = fw.arange(24.0).reshape(4, 6)
    src = -fw.ones(2, 3)
    for base in (x, x[:, ::1], x.T.contiguous().T):
        for part in (src, src.T.clone().T):
            found = base[:2].slice_scatter(part, 1, 0, 6, 2)
            want = base[:2].clone().numpy()
            want[:, ::2] = -1
            assert found.numpy().tolist() == want.tolist()
    assert fw.select_scatter(x, fw.zeros(6), 0, -1)[3].sum() == 0
    assert fw.diagonal_scatter(x, fw.full((4,), 5.0)).diagonal().tolist() == [5.0] * 4
    window = fw.as_strided_scatter(x, fw.zeros(2, 2), (2, 2), (7, 1), 3)
    want = x.numpy().copy().reshape(-1)
    want[[3, 4, 10, 11]] = 0
    assert window.reshape(-1).tolist() == want.tolist()
    assert x.reshape(-1).tolist() == list(range(24))  # none of them wrote into it


@pytest.mark.parametrize("dtype", DTYPES)
def test_slopes_of_samples(dtype):
    rng = np.random.default_rng(7)
    a = np.exp(rng.uniform(-6, 12.5, 400)).astype(dtype)
    z = (a * rng.gamma(1.0, 1.0, 400)).astype(dtype) + dtype(1e-6)
    a[:3], z[:3] = [0, -1, 2], [1, 1, np.inf]
    with np.errstate(all="ignore"):
        want = slope_of_gamma.plain(a, z)
    same(MODULE.gamma_slopes(a, z), want, 2e-5 if dtype is np.float32 else 1e-9)
    x = rng.dirichlet(np.ones(5), 60).astype(dtype)
    own = np.exp(rng.uniform(-3, 4, x.shape)).astype(dtype)
    total = own.sum(-1, keepdims=True)
    most = 1e-4 if dtype is np.float32 else 1e-8
    for part in layouts(x):
        same(MODULE.dirichlet_slopes(part, own, total), _dirichlet_slope.plain(x, own, total), most)
    assert MODULE.dirichlet_slopes(x, own, total[:, 0]) is NotImplemented


FILLS = {
    "uniform": lambda x, g: x.uniform_(-2.0, 3.0, generator=g),
    "standard": lambda x, g: x.uniform_(generator=g),
    "normal": lambda x, g: x.normal_(1.0, 2.0, generator=g),
    "coins": lambda x, g: x.bernoulli_(0.25, generator=g),
    "integers": lambda x, g: x.random_(-3, 9, generator=g),
    "like": lambda x, g: x.copy_(fw.bernoulli(fw.full(x.shape, 0.25, dtype=x.dtype), generator=g))}


@pytest.mark.parametrize("name", FILLS)
@pytest.mark.parametrize("dtype", [fw.float32, fw.float64])
def test_fills_are_those_of_a_given_generator(name, dtype):
    """The way past Python draws the same numbers, leaves the same state and counts the change."""
    for size in ((6,), (1,), (3, 7), (5000,)):
        fw.manual_seed(5)
        generator = fw.Generator().manual_seed(5)
        fw.rand(3), fw.rand(3, generator=generator)
        x, y = fw.zeros(size, dtype=dtype), fw.zeros(size, dtype=dtype)
        before = x._version
        FILLS[name](x, None), FILLS[name](y, generator)
        assert x.tolist() == y.tolist()
        assert x._version == before + 1
        assert fw.rand(4).tolist() == fw.rand(4, generator=generator).tolist()


def test_fills_of_views_and_recorded_tensors():
    x = fw.zeros(4, 4)
    x[:, 1:3].normal_()
    assert (x[:, 0] == 0).all() and (x[:, 1:3] != 0).all()
    leaf = fw.zeros(3, requires_grad=True)
    with pytest.raises(RuntimeError):
        leaf.uniform_(0.0, 2.0)
    with pytest.raises(ValueError, match="std"):
        fw.zeros(2).normal_(0.0, -1.0)
    y = fw.zeros(3)
    with pytest.raises(ValueError, match="from"):
        y.uniform_(2.0, 1.0)
    z = fw.zeros(2, 3).T.uniform_(1.0, 2.0)
    assert ((z >= 1) & (z < 2)).all()


def test_joins_of_lists():
    vector, row = fw.ones(3), fw.ones(1, 3)
    assert fw.cat([vector, fw.ones(0), vector]).shape == (6,)
    assert fw.stack((vector, vector), -1).shape == (3, 2)
    with pytest.raises(ShapeError):
        fw.stack([vector, fw.ones(2)])
    with pytest.raises(ShapeError):
        fw.cat([vector, row])
    assert fw.vstack([vector, row]).shape == (2, 3)
    assert fw.dstack([row, row]).shape == (1, 3, 2)
    assert fw.column_stack([vector, vector]).shape == (3, 2)
    assert fw.cat([fw.ones(2), fw.ones(2, dtype=fw.float64)]).dtype == fw.float64
    for sections in (1, 2, 3, 7, 8, [2], [1, 4], [0, 9], [5, 2]):
        found = fw.tensor_split(fw.arange(7), sections)
        assert [p.tolist() for p in found] == [p.tolist() for p in np.array_split(np.arange(7), sections)]


@pytest.mark.parametrize("how", ["linear", "lower", "higher", "nearest", "midpoint"])
@pytest.mark.parametrize("ignore", [True, False])
@pytest.mark.parametrize("dtype", DTYPES)
def test_quantiles(how, ignore, dtype):
    x = np.random.default_rng(8).standard_normal((6, 9)).astype(dtype)
    x[0, 3] = x[1] = np.nan
    x[2, :2] = np.inf, -np.inf
    q = np.array([0, 0.1, 0.5, 0.77, 1], dtype)
    with np.errstate(invalid="ignore"):
        for a in (x, x[:, :1], x[3:, ::2]):
            want = quantile_op.plain(a, q, how=how, ignore=ignore)
            same(MODULE.quantile(a, q, how=how, ignore=ignore), want, 1e-6)
            f = fw.nanquantile if ignore else fw.quantile
            recorded = f(fw.tensor(a).requires_grad_(), fw.tensor(q), 1, interpolation=how)
            plain = f(fw.tensor(a), fw.tensor(q), 1, interpolation=how)
            np.testing.assert_allclose(plain.numpy(), recorded.detach().numpy(), 1e-6)
    rows = fw.tensor(x[3:]).T  # along a dimension that is not the last
    assert fw.quantile(rows, 0.5, 0, keepdim=True).shape == (1, 3)
    assert fw.quantile(rows, 0.5).shape == () and fw.quantile(rows, 0.5, keepdim=True).shape == (1, 1)


@pytest.mark.parametrize("n", [1, 2, 3, 4, 9, 100])
def test_products_of_all_others(n):
    for dtype in DTYPES:
        x = (1 + 0.1 * np.random.default_rng(n).standard_normal((3, n))).astype(dtype)
        x[1, 0] = 0
        x[2, [0, -1]] = 0
        for a in layouts(x):
            same(MODULE.prod_others(a), others.plain(x), 1e-5 if dtype is np.float32 else 1e-12)


def test_whole_quotients():
    for dtype in (np.int64, np.int32):
        least = np.iinfo(dtype).min
        x = np.array([[7, -7, 7, -7, 0, least]], dtype).repeat(2, 0)
        y = np.array([[2, 2, -2, -2, 3, -1]], dtype).repeat(2, 0)
        want = np.array([[3, -3, -3, 3, 0, least]], dtype).repeat(2, 0)
        same(MODULE.trunc_divide(x, y), want)
        same(MODULE.trunc_divide(np.asfortranarray(x), y), want)
        want = np.array([[3, -3, 3, -3, 0, least // 2]], dtype).repeat(2, 0)
        same(MODULE.trunc_divide(x, np.array(2, dtype)), want)
    assert fw.div(fw.tensor([7, -7]), 2, rounding_mode="trunc").tolist() == [3, -3]


@pytest.mark.parametrize("dtype", [np.int64, np.int32])
@pytest.mark.parametrize("name", ["floor_divide", "remainder", "fmod", "trunc_divide"])
def test_quotients_of_whole_numbers_are_numpys(name, dtype):
    """Beside the ends of what doubles hold, where a quotient is nearly whole, and of one number with all."""
    rng, ends = np.random.default_rng(0), np.iinfo(dtype)
    bits = 8 * np.dtype(dtype).itemsize - 1
    powers = [s * 2 ** k + d for k in range(bits) for s in (1, -1) for d in (-1, 0, 1)]
    powers = np.array([*powers, ends.max, ends.min], object)
    powers = powers[(powers >= ends.min) & (powers <= ends.max)].astype(dtype)
    y = np.concatenate([powers, rng.integers(-50, 50, 500), rng.integers(ends.min, ends.max, 500)])
    y = y.astype(dtype)
    y[y == 0] = 3
    with np.errstate(over="ignore"):
        multiples = y[rng.permutation(y.size)] * rng.integers(-1000, 1000, y.size).astype(dtype)
    function, plain = getattr(MODULE, name), getattr(np, name, None)
    if name == "trunc_divide":
        plain = lambda a, b: a // b + ((a % b != 0) & ((a < 0) != (b < 0)))
    with np.errstate(over="ignore"):
        few = y * rng.integers(-9, 9, y.size).astype(dtype)
        for x in (y[::-1].copy(), multiples, multiples + 1, multiples - 1, few):
            same(function(x, y), plain(x, y).astype(dtype))
            for one in (7, -1, int(ends.min), 1 << 20):
                same(function(x, one), plain(x, dtype(one)).astype(dtype))
                same(function(one, y), plain(dtype(one), y).astype(dtype))
        for a, b in zip(layouts(x[:1020].reshape(30, 34)), layouts(y[:1020].reshape(30, 34))):
            same(function(a, b), plain(a, b).astype(dtype))
            same(function(a, np.ascontiguousarray(b)), plain(a, b).astype(dtype))
    assert function(x, ends.max + 1) is NotImplemented and function(x, x[:3]) is NotImplemented
    assert function(x, 1.5) is NotImplemented and function(x, y.astype(np.float64)) is NotImplemented
    assert function(x, True) is NotImplemented and function(x[:0], y[:0]) is NotImplemented


@pytest.mark.parametrize("n", [1, 2, 3, 4, 5])
def test_factors_and_triangles_of_few_rows(n):
    rng = np.random.default_rng(n)
    for dtype, most in ((np.float32, 2e-4), (np.float64, 1e-11)):
        A = rng.standard_normal((7, n, n)).astype(dtype)
        A[0] = 0
        A[1, 0] = 0
        for pivot in (True, False):
            same(MODULE.lu_factor(A, pivot=pivot), factor_op.plain(A, pivot=pivot), most * 50)
        T, B = A[2:] + 3 * np.eye(n, dtype=dtype), rng.standard_normal((5, n, 3)).astype(dtype)
        for upper in (True, False):
            for unit in (True, False):
                X = MODULE.solve_triangular(T, B, upper=upper, unit=unit)
                triangle = np.triu(T) if upper else np.tril(T)
                if unit:
                    triangle += np.eye(n, dtype=dtype) * (1 - np.diagonal(T, axis1=1, axis2=2)[:, None])
                np.testing.assert_allclose(triangle @ X, B, most, most * 20)


def test_pieces_in_memory_of_their_own():
    x = fw.arange(24).reshape(4, 6)
    for base in (x, x.T, x[:, ::2], x.double()):
        for dim in (0, 1, -1):
            for size in (1, 2, 4, 9):
                found, want = fw.split_copy(base, size, dim), fw.split(base, size, dim)
                assert [p.tolist() for p in found] == [p.tolist() for p in want]
            found, want = fw.unbind_copy(base, dim), fw.unbind(base, dim)
            assert [p.tolist() for p in found] == [p.tolist() for p in want]
            found[0].zero_()
    assert x.reshape(-1).tolist() == list(range(24))
    y = fw.ones(4, requires_grad=True)
    fw.split_copy(y, 2)[0].sum().backward()
    assert y.grad.tolist() == [1, 1, 0, 0]
    with pytest.raises(ShapeError):
        fw.split_copy(x, 0)


TYPES = [fw.bool, fw.uint8, fw.int8, fw.int16, fw.int32, fw.int64, fw.float32, fw.float64]


@pytest.mark.parametrize("first", TYPES, ids=str)
def test_several_dtypes_are_promoted_as_by_the_long_way(first):
    """Pairs of dtypes are known once they were met."""
    numbers = fw.tensor([1, 0, 3]).to(first)
    for second in TYPES:
        other = fw.tensor([1, 2, 3]).to(second)
        for f in (fw.add, fw.mul, fw.maximum, fw.eq, fw.gt, fw.div, fw.atan2, fw.floor_divide, fw.ldexp):
            wanted = f(numbers, other) if first is second else f(
                *[t.to(fw.promote_types(first, second)) for t in (numbers, other)])
            found = f(numbers, other)
            assert found.dtype is wanted.dtype and found.tolist() == wanted.tolist()
    for number in (2, 2.5):
        found = numbers + number
        wanted = fw.result_type(numbers, number)
        assert found.dtype is wanted
        assert found.tolist() == [n + number for n in numbers.to(wanted).tolist()]


def test_differences_and_slopes_that_are_not_recorded():
    for n in (3, 4, 7):
        x = fw.tensor(np.random.default_rng(n).standard_normal((n, n + 1)))
        for order in (1, 2):
            for space in (1, 0.5, [2.0, 3]):
                spaces = space if isinstance(space, list) else [space]
                want = np.gradient(x.numpy(), *spaces, edge_order=order)
                for a, b in zip(fw.gradient(x, spacing=space, edge_order=order), want, strict=True):
                    np.testing.assert_allclose(a.numpy(), b, 1e-12)
        for dim in (0, 1):
            assert fw.diff(x, dim=dim).tolist() == np.diff(x.numpy(), axis=dim).tolist()
    assert fw.diff(fw.ones(1)).shape == (0,) and fw.diff(fw.ones(0)).shape == (0,)


def test_the_least_whole_number_is_not_infinite():
    least = fw.tensor([-1 << 63, 1])
    assert fw.isposinf(least).tolist() == fw.isneginf(least).tolist() == [False, False]
    assert (least == float("inf")).tolist() == (least == 2.0 ** 63).tolist() == [False, False]


@pytest.mark.parametrize("places", [[1, 3], [2], [0, 5], [3, 1], [-1]])
def test_places_to_cut_at_may_stand_in_a_tensor(places):
    x = fw.arange(12).view(6, 2)
    found = fw.tensor_split(x, fw.tensor(places))
    assert [a.tolist() for a in found] == [a.tolist() for a in np.array_split(x.numpy(), places)]
    found = fw.tensor_split(x, fw.tensor(4))
    assert [a.tolist() for a in found] == [a.tolist() for a in np.array_split(x.numpy(), 4)]
    assert [a.shape for a in fw.split_copy(fw.zeros(4, 0), 2)] == [(2, 0), (2, 0)]
