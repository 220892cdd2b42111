"""Native reductions, scans and sorts against the plain formulas, their accuracy, threads."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import framework as fw
from framework import _native
from framework.ops.record.op import OPS

module = _native.module
pytestmark = pytest.mark.skipif(module is None, reason=f"no native extension: {_native.isa}")
PLAIN = {op.native: op.plain for op in OPS if op.native}
FLOATS = [np.float32, np.float64]
SIZES = [1, 2, 3, 7, 8, 15, 16, 17, 33, 64, 130, 257]
ODD = [np.nan, np.inf, -np.inf, 0.0, -0.0, 1e-40]
VIEWS = {
    "rows": lambda x: x,
    "transposed": lambda x: x.T,
    "swapped": lambda x: x.swapaxes(0, -1),
    "outer step": lambda x: x[::2],
    "inner step": lambda x: x[..., ::2],
    "broadcast": lambda x: np.broadcast_to(x[..., :1], x.shape),
    "backwards": lambda x: x[::-1],
}


@pytest.fixture(autouse=True)
def threads():
    """The number of threads that the process began with comes back after each test."""
    before = fw.get_num_threads()
    yield fw.set_num_threads
    fw.set_num_threads(before)


def both(name, *arrays, **settings):
    """(native results, plain results), each a list of arrays."""
    with np.errstate(all="ignore"):
        found = getattr(module, name)(*arrays, **settings), PLAIN[name](*arrays, **settings)
    return [[np.asarray(a) for a in (r if isinstance(r, tuple) else [r])] for r in found]


def exact(name, *arrays, **settings):
    """The plain results in wider numbers: NumPy's own sums lose digits in permuted layouts."""
    wide = [a.astype(np.longdouble) if np.asarray(a).dtype.kind == "f" else a for a in arrays]
    with np.errstate(all="ignore"):
        found = PLAIN[name](*wide, **settings)
    return [np.asarray(a) for a in (found if isinstance(found, tuple) else [found])]


def assert_like_plain(name, *arrays, scale=1.0, **settings):
    native, plain = both(name, *arrays, **settings)
    for a, b, c in zip(native, plain, exact(name, *arrays, **settings), strict=True):
        assert (a.shape, a.dtype) == (b.shape, b.dtype)
        if a.dtype.kind != "f":
            np.testing.assert_array_equal(a, b)
            continue
        finite = np.isfinite(b)
        np.testing.assert_array_equal(a[~finite], b[~finite])
        bound = 64 * np.finfo(a.dtype).eps
        np.testing.assert_allclose(a[finite], c[finite], rtol=bound, atol=bound * scale)


def numbers(rng, shape, dtype=np.float32, odd=0):
    x = rng.standard_normal(shape).astype(dtype)
    for _ in range(odd):
        x.flat[rng.integers(x.size)] = rng.choice(ODD)
    return x


@st.composite
def arrays(draw):
    """A view of normal numbers, some of them odd or equal, and some of its dimensions."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    shape = draw(st.lists(st.sampled_from(SIZES[:9]), min_size=1, max_size=4))
    x = numbers(rng, shape, draw(st.sampled_from(FLOATS)), draw(st.integers(0, 3)))
    if draw(st.booleans()):
        x = np.round(x)
    x = VIEWS[draw(st.sampled_from(sorted(VIEWS)))](x)
    dims = draw(st.sets(st.integers(0, x.ndim - 1), min_size=1))
    return x, tuple(sorted(dims))


def taken(name, *given, **settings):
    return getattr(module, name)(*given, **settings) is not NotImplemented


# -- reductions --------------------------------------------------------------------------------------------


@settings(max_examples=200, deadline=None)
@given(arrays(), st.booleans(), st.sampled_from([1, 2]))
def test_reductions_are_the_plain_formulas(given, keepdim, count):
    x, dims = given
    fw.set_num_threads(count)
    n = math.prod(x.shape[d] for d in dims)
    over = {"dims": dims, "keepdim": keepdim}
    for name, more in [("sum", {}), ("mean", {}), ("amax", {}), ("amin", {}), ("logsumexp", {}),
                       ("var", {"correction": 1}), ("std", {"correction": 0}), ("vector_norm", {"ord": 2.0})]:
        if taken(name, x, **over, **more):
            assert_like_plain(name, x, **over, **more, scale=n if name == "sum" else 4.0)
    for name in ("max", "min"):
        if taken(name, x, dim=dims[0], keepdim=keepdim):
            assert_like_plain(name, x, dim=dims[0], keepdim=keepdim)
    size = tuple(1 if d in dims else s for d, s in enumerate(x.shape))
    for wanted in (size, size[1:]) if 0 in dims else (size,):
        if taken("sum_to_size", x, size=wanted):
            assert_like_plain("sum_to_size", x, size=wanted, scale=n)


@pytest.mark.parametrize("dtype", [*FLOATS, np.int64])
@pytest.mark.parametrize("shape, dims", [
    ((300000,), (0,)), ((3, 70001), (1,)), ((70001, 3), (0,)), ((70001, 40), (0,)), ((2, 40000, 5), (1,)),
    ((5, 3, 20000), (0, 2)), ((40000, 3), (1,)), ((70, 2100), (1,)), ((2100, 70), (0,)),
    ((9, 7, 11, 13), (1, 3))])
def test_large_reductions(dtype, shape, dims, threads):
    x = (np.random.default_rng(0).standard_normal(shape) * 100).astype(dtype)
    over = {"dims": dims, "keepdim": False}
    names = ["sum", "amax", "amin"] + ([] if dtype is np.int64 else ["mean", "logsumexp", "vector_norm"])
    results = []
    for count in (1, 2):
        threads(count)
        for name in names:
            more = {"ord": 2.0} if name == "vector_norm" else {}
            assert_like_plain(name, x, **over, **more, scale=1e5)
            results.append(both(name, x, **over, **more)[0][0])
        assert_like_plain("max", x, dim=dims[0], keepdim=True)
        assert_like_plain("min", x, dim=dims[0], keepdim=True)
    for one, two in zip(results, results[len(names):]):
        np.testing.assert_array_equal(one, two)  # the order of addition does not depend on the threads


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("shape, dims", [((1000003,), (0,)), ((20000, 33), (0,)), ((33, 20000), (1,))])
def test_sums_are_as_exact_as_pairwise_ones(dtype, shape, dims):
    x = np.random.default_rng(1).random(shape).astype(dtype)
    exact = np.apply_along_axis(math.fsum, dims[0], x.astype(np.float64))
    pairwise = np.moveaxis(x, dims[0], -1).copy().sum(-1)
    found = module.sum(x, dims=dims, keepdim=False)
    eps = float(np.finfo(dtype).eps)
    assert np.abs(found - exact).max() <= max(np.abs(pairwise - exact).max(), 2 * eps * exact.max())


def test_variance_of_what_is_far_from_zero():
    x = (np.random.default_rng(2).standard_normal((500, 600)) + 1e4).astype(np.float32)
    for dims in [(0,), (1,), (0, 1)]:
        exact = x.astype(np.float64).var(axis=dims, ddof=1)
        np.testing.assert_allclose(module.var(x, dims=dims, correction=1, keepdim=False), exact, rtol=1e-5)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int32, np.int64])
@pytest.mark.parametrize("name", ["max", "min"])
@pytest.mark.parametrize("shape, dim", [((5000, 7), 0), ((5000, 7), 1), ((7, 5000), 1), ((300, 1), 0),
                                        ((40, 700), 0), ((100001,), 0), ((3, 33, 5), 1)])
def test_of_equal_elements_the_first_is_named(dtype, name, shape, dim):
    x = np.random.default_rng(3).integers(0, 4, shape).astype(dtype)
    assert_like_plain(name, x, dim=dim, keepdim=False)
    if x.dtype.kind == "f":
        x[np.random.default_rng(4).random(shape) < 1e-3] = np.nan
        assert_like_plain(name, x, dim=dim, keepdim=False)


@pytest.mark.parametrize("shape, dims", [((70000,), (0,)), ((300, 500), (0,)), ((300, 500), (1,)),
                                         ((5, 6, 7), (0, 2))])
@pytest.mark.parametrize("share", [0.0, 1e-4, 1 - 1e-4, 1.0])
@pytest.mark.parametrize("dtype", [np.bool_, np.uint8])
def test_truth(shape, dims, share, dtype):
    x = (np.random.default_rng(5).random(shape) < share).astype(dtype) * dtype(3)
    for name in ("any", "all"):
        assert_like_plain(name, x.astype(dtype), dims=dims, keepdim=False)


@pytest.mark.parametrize("shape", [(), (1,), (7,), (3, 5), (6, 4), (40, 300), (2, 1500), (300, 4, 9),
                                   (3, 700, 2), (70000,), (5, 3, 33), (600, 3)])
@pytest.mark.parametrize("dtype", [np.bool_, np.uint8, np.int32, np.int64, np.float32, np.float64])
def test_counts_of_what_is_not_zero(shape, dtype):
    rng = np.random.default_rng(12)
    for share in (0.0, 0.3, 1.0):
        x = np.where(rng.random(shape) < share, rng.choice([1, 2, 255], shape), 0).astype(dtype)
        if x.dtype.kind == "f" and x.size > 1:
            x.flat[:2] = -0.0, np.nan
        for laid in (x, x.T, x[..., ::-1] if x.ndim else x):
            for mask in range(1 << x.ndim):
                dims = tuple(d for d in range(x.ndim) if mask >> d & 1)
                if taken("count_nonzero", laid, dims=dims):
                    found = module.count_nonzero(laid, dims=dims)
                    wanted = (laid != 0).sum(axis=dims, dtype=np.int64)
                    assert found.dtype == np.int64 and found.shape == wanted.shape
                    np.testing.assert_array_equal(found, wanted)
                    for name in ("any", "all"):
                        assert_like_plain(name, laid, dims=dims, keepdim=bool(mask & 1))
                else:
                    assert laid is not x
    assert not taken("count_nonzero", np.zeros((0, 3), dtype), dims=(0,))


def test_sums_of_truth_values_are_counts():
    x = fw.tensor(np.random.default_rng(13).random((5, 300)) < 0.5)
    for dim in (None, 0, (0, 1), 1):
        for keepdim in (False, True):
            wanted = x.numpy().sum(dim, keepdims=keepdim)
            found = x.sum(dim, keepdim)
            assert found.dtype is fw.int64 and found.shape == wanted.shape
            np.testing.assert_array_equal(found.numpy(), wanted)
    assert x.sum(dtype=fw.float32).dtype is fw.float32 and (x[:0]).sum().item() == 0


def test_whole_sums_wrap_as_numpys_do():
    x = np.full((40, 50), 2**62)
    for dims in [(0,), (1,), (0, 1)]:
        assert_like_plain("sum", x, dims=dims, keepdim=False)


@pytest.mark.parametrize("shape", [(), (7,), (3, 5), (40, 300), (2, 1500), (70000,), (300, 4, 9)])
@pytest.mark.parametrize("name", ["sum", "mean", "amax", "amin", "var"])
def test_halves_are_folded_as_float32_and_rounded_once(name, shape):
    rng = np.random.default_rng(len(shape))
    x = rng.standard_normal(shape[::-1]).astype(np.float16).T  # at any strides
    more = {"correction": 1.0} if name == "var" else {}
    for dims in {tuple(range(len(shape))), tuple(range(len(shape)))[:1], tuple(range(len(shape)))[-1:]}:
        fold = lambda a: np.asarray(getattr(module, name)(a, dims=dims, keepdim=False, **more))
        out = fold(x)
        with np.errstate(all="ignore"):
            wide = fold(x.astype(np.float64, "C"))
            steps = np.spacing(np.abs(wide).astype(np.float16)).astype(np.float64)
        assert out.dtype == np.float16 and out.shape == wide.shape
        assert (np.isnan(out) & np.isnan(wide) | (np.abs(out - wide) <= 0.501 * steps)).all()


def test_minus_zero_stays():
    x = np.full((3, 5), -0.0, np.float32)
    for dims in [(0,), (1,), (0, 1)]:
        assert np.signbit(module.sum(x, dims=dims, keepdim=False)).all()
    assert np.signbit(module.cumsum(x, dim=1, reverse=False)).all()


@pytest.mark.parametrize("shape", [(), (1,), (7,), (5000,), (3, 4, 5), (300, 2), (2, 300)])
@pytest.mark.parametrize("dtype", ["c8", "c16"])
def test_sums_of_complex_numbers(shape, dtype):
    rng = np.random.default_rng(3)
    x = np.asarray((rng.standard_normal(shape) + 1j * rng.standard_normal(shape)).astype(dtype))
    gaps, back = (np.repeat(x, 2, -1)[..., ::2], x[::-1]) if shape else (x, x)
    for a in (x, np.ascontiguousarray(x.T).T, gaps, back):
        for dims in {(), *[(d,) for d in range(len(shape))], tuple(range(len(shape)))}:
            for keepdim in (False, True):
                found = module.sum(a, dims=dims, keepdim=keepdim)
                wanted = a.astype("c16").sum(axis=dims, keepdims=keepdim)
                assert found.dtype == dtype and found.shape == wanted.shape
                most = 1e-4 if dtype == "c8" else 1e-11
                np.testing.assert_allclose(found, wanted, most, most)
                assert found.flags.writeable and (not found.size or not np.shares_memory(found, a))
    assert module.sum(x.astype(">c8"), dims=(), keepdim=False) is NotImplemented


@pytest.mark.parametrize("name", ["sum", "mean", "amax", "amin", "logsumexp"])
@pytest.mark.parametrize("x", [np.zeros((0, 3), np.float32), np.zeros((0, 3), np.complex64),
                               np.zeros(2, np.int16), np.float32(1), np.zeros((2, 3), ">f4")],
                         ids=lambda x: f"{x.dtype}{x.shape}")
def test_other_arrays_are_left_to_the_formula(name, x):
    assert not taken(name, x, dims=tuple(range(np.ndim(x))), keepdim=False)
    assert not taken(name, np.zeros((2, 3), np.float32), dims=(2,), keepdim=False)


def test_a_number_in_no_dimension_is_its_own_sum():
    for name in ("sum", "mean", "amax"):
        assert_like_plain(name, np.asarray(2.5), dims=(), keepdim=False)


# -- scans -------------------------------------------------------------------------------------------------


@settings(max_examples=150, deadline=None)
@given(arrays(), st.sampled_from([1, 2]), st.booleans())
def test_scans_are_the_plain_formulas(given, count, reverse):
    x, (dim, *_) = given
    fw.set_num_threads(count)
    n = x.shape[dim]
    assert_like_plain("cumsum", x, dim=dim, reverse=reverse, scale=n * 4)
    assert_like_plain("cummax", x, dim=dim)
    assert_like_plain("cummin", x, dim=dim)
    assert_like_plain("logcumsumexp", x, dim=dim, scale=4)
    near = (1 + np.tanh(np.nan_to_num(x)) / 100).astype(x.dtype)
    assert_like_plain("cumprod", near, dim=dim)


@pytest.mark.parametrize("shape, dim", [((3, 20001), 1), ((20001, 3), 0), ((200, 300), 0),
                                        ((2, 3000, 20), 1)])
@pytest.mark.parametrize("count", [1, 2])
def test_large_scans(shape, dim, count, threads):
    threads(count)
    x = numbers(np.random.default_rng(6), shape, odd=1)
    whole = np.random.default_rng(7).integers(-2**62, 2**62, shape)
    for reverse in (False, True):
        assert_like_plain("cumsum", x, dim=dim, reverse=reverse, scale=shape[dim])
        assert_like_plain("cumsum", whole, dim=dim, reverse=reverse)
    for name in ("cummax", "cummin"):
        assert_like_plain(name, x, dim=dim)
        assert_like_plain(name, np.round(x), dim=dim)
        assert_like_plain(name, whole, dim=dim)


@pytest.mark.parametrize("dim", [0, 1, 2])
@pytest.mark.parametrize("values", [[1.5, -2.0, 3.0, 0.5], [1.5, 0.0, 3.0, 0.0]], ids=["no zero", "zeros"])
def test_scans_along_any_dimension_have_derivatives(dim, values):
    x = np.resize(values, (2, 3, 4))
    x = fw.tensor(x + (x != 0) * np.linspace(0, 0.1, 24).reshape(x.shape), requires_grad=True)
    for f in (fw.cumsum, fw.cumprod, fw.logcumsumexp):
        assert fw.autograd.gradcheck(lambda t, f=f: f(t, dim), (x,))
        assert fw.autograd.gradgradcheck(lambda t, f=f: f(t, dim), (x,))


# -- sorting -----------------------------------------------------------------------------------------------


def chosen(x, places, dim):
    return np.take_along_axis(x, places.reshape([-1 if d == dim else s for d, s in enumerate(x.shape)]), dim)


@settings(max_examples=150, deadline=None)
@given(arrays(), st.sampled_from([1, 2]), st.booleans(), st.data())
def test_sorts_are_the_plain_formulas(given, count, flag, data):
    x, (dim, *_) = given
    fw.set_num_threads(count)
    if data.draw(st.booleans()):
        x = np.nan_to_num(x, posinf=9, neginf=-9).astype(data.draw(st.sampled_from([np.int32, np.int64])))
    k = data.draw(st.integers(1, x.shape[dim]))
    assert_like_plain("sort", x, dim=dim, descending=flag)
    (values, places), (plain, _) = both("topk", x, k=k, dim=dim, largest=flag)
    np.testing.assert_array_equal(values, plain)
    np.testing.assert_array_equal(chosen(x, places, dim), values)
    (values, places), (plain, _) = both("kthvalue", x, dim=dim, keepdim=True, k=k - 1, nan_wins=flag)
    np.testing.assert_array_equal(values, plain)
    np.testing.assert_array_equal(chosen(x, places, dim), values)
    rows = np.ascontiguousarray(x)
    assert_like_plain("median", rows)
    keys = np.random.default_rng(8).permutation(rows.reshape(-1)).reshape(rows.shape)
    assert_like_plain("searchsorted", np.sort(rows, -1), keys, right=flag)
    assert_like_plain("searchsorted", np.sort(rows.reshape(-1)), keys, right=flag)


@pytest.mark.parametrize("n", sorted({*SIZES, 31, 64, 65, 600, 5000}))
@pytest.mark.parametrize("kind", ["normal", "equal", "few", "wide", "sorted", "odd"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int64])
def test_orders_of_all_lengths(n, kind, dtype):
    rng = np.random.default_rng(9)
    x = {"normal": lambda: rng.standard_normal((3, n)) * 1000, "equal": lambda: np.ones((3, n)),
         "few": lambda: rng.integers(-2, 3, (3, n)), "wide": lambda: rng.integers(-2**60, 2**60, (3, n)),
         "sorted": lambda: np.arange(3 * n).reshape(3, n), "odd": lambda: rng.choice(ODD, (3, n))}[kind]()
    x = np.nan_to_num(x, posinf=9, neginf=-9).astype(dtype) if dtype is np.int64 else x.astype(dtype)
    for descending in (False, True):
        assert_like_plain("sort", x, dim=1, descending=descending)
        assert_like_plain("sort", x.T.copy(), dim=0, descending=descending)
        order = module.sort(x, dim=1, descending=descending)[1]
        for k in {1, (n + 1) // 2, n, min(n, 9), min(n, 32), min(n, 33)}:  # of equal ones the first
            places = module.topk(x, k=k, dim=1, largest=descending)[1]
            np.testing.assert_array_equal(places, order[:, :k])
            places = module.topk(x.T.copy(), k=k, dim=0, largest=descending)[1]
            np.testing.assert_array_equal(places, order[:, :k].T)
    for k in {1, (n + 1) // 2, n, min(n, 9)}:
        np.testing.assert_array_equal(*(r[0] for r in both("topk", x, k=k, dim=1, largest=True)))
        np.testing.assert_array_equal(*(r[0] for r in both("kthvalue", x, dim=1, keepdim=False, k=k - 1,
                                                           nan_wins=True)))


@pytest.mark.parametrize("rows", [1, 3, 15, 16, 17, 100])
@pytest.mark.parametrize("n", [1, 2, 4, 16, 17, 70, 600, 2000])
@pytest.mark.parametrize("kind", ["few", "odd", "wide"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int32, np.int64])
def test_chosen_of_rows_beside_each_other(rows, n, kind, dtype):
    rng = np.random.default_rng(11)
    x = {"few": lambda: rng.integers(-2, 3, (rows, n)), "odd": lambda: rng.choice(ODD, (rows, n)),
         "wide": lambda: rng.integers(-2**30, 2**30, (rows, n))}[kind]()
    whole = dtype in (np.int32, np.int64)
    x = (np.nan_to_num(x, posinf=2**31 - 1, neginf=-2**31) if whole else x).astype(dtype)
    for laid, dim in ((x, 1), (np.ascontiguousarray(x.T), 0)):
        assert_like_plain("mode", laid, dim=dim, keepdim=False)
        values, places = module.nanmedian(laid, dim=dim, keepdim=False)
        np.testing.assert_array_equal(values, PLAIN["nanmedian"](laid, dim=dim, keepdim=False)[0])
        order = module.sort(laid, dim=dim, descending=False)[1]
        np.testing.assert_array_equal(order, np.argsort(laid, axis=dim, kind="stable"))
        for k in {0, n // 3, n - 1}:
            values, places = module.kthvalue(laid, dim=dim, keepdim=False, k=k, nan_wins=False)
            np.testing.assert_array_equal(values, chosen(laid, places, dim).reshape(-1))
            np.testing.assert_array_equal(values, np.sort(laid, axis=dim).take(k, dim))
            np.testing.assert_array_equal(places, order.take(k, dim))  # of equal ones the stable sort's


@pytest.mark.parametrize("lines", [1, 2, 5, 64, 65])
@pytest.mark.parametrize("width", [1, 2, 4, 8, 15, 16, 17])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int64])
def test_extremes_of_a_few_short_lines(lines, width, dtype):
    rng = np.random.default_rng(10)
    x = np.where(rng.random((9, 3, lines, width)) < 0.1, rng.choice(ODD, (9, 3, lines, width)),
                 rng.integers(-3, 4, (9, 3, lines, width)))
    x = np.nan_to_num(x, posinf=9, neginf=-9).astype(dtype) if dtype is np.int64 else x.astype(dtype)
    for laid in (x, x.transpose(1, 0, 2, 3), x[:, :, ::-1], x[::2, 1:]):
        for name in ("max", "min"):
            if taken(name, laid, dim=2, keepdim=False):
                assert_like_plain(name, laid, dim=2, keepdim=False)
            else:
                assert laid is not x or lines == 1


@pytest.mark.parametrize("lines", [1, 2, 3, 5, 8, 63, 129, 300])
@pytest.mark.parametrize("width", [2, 3, 5, 7, 8, 11, 16, 17, 31, 33, 49, 64, 65])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int64, np.float16])
def test_few_columns(lines, width, dtype):
    x = (np.random.default_rng(lines).standard_normal((7, lines + 1, width + 1)) * 9).astype(dtype)
    x[5, :, -1] = np.nan if x.dtype.kind == "f" else 7  # which lies beside
    for laid in (np.ascontiguousarray(x[:, :-1, :-1]), x[:, :-1, :-1]):
        for name, how in (("sum", {}), ("mean", {}), ("amax", {}), ("var", {"correction": 0})):
            found = getattr(module, name)(laid, dims=(1,), keepdim=False, **how)
            if found is NotImplemented:
                continue
            wide = laid.astype(np.float64) if laid.dtype.kind == "f" else laid
            wanted = PLAIN[name](wide, dims=(1,), keepdim=False, **how)
            assert found.dtype == (dtype if laid.dtype.kind == "f" else wanted.dtype)
            near = (2e-3, 2e-2) if dtype is np.float16 else (2e-5, 1e-4)
            np.testing.assert_allclose(found, wanted, *near)
    wide = x[:, :-1, :-1].astype(np.int64)
    np.testing.assert_array_equal(module.sum(wide, dims=(1,), keepdim=False), wide.sum(1))


@pytest.mark.parametrize("width", [1, 2, 3, 8, 15, 16, 17])
@pytest.mark.parametrize("reverse", [False, True])
def test_running_sums_of_few_columns(width, reverse):
    x = np.arange(3 * 41 * width, dtype=np.float32).reshape(3, 41, width)
    wanted = np.flip(np.cumsum(np.flip(x, 1), 1), 1) if reverse else np.cumsum(x, 1)
    np.testing.assert_array_equal(module.cumsum(x, dim=1, reverse=reverse), wanted)
    values, places = module.cummax(-x, dim=1)
    np.testing.assert_array_equal(values, np.broadcast_to(-x[:, :1], x.shape))
    assert not places.any()


@pytest.mark.parametrize("n", [1, 2, 7, 16, 17, 64, 65, 600, 5000])
@pytest.mark.parametrize("kind", ["few", "all", "sorted"])
@pytest.mark.parametrize("dtype", [np.bool_, np.int8, np.uint8, np.int16, np.uint16])
def test_narrow_numbers_in_order(n, kind, dtype, threads):
    rng = np.random.default_rng(12)
    low, high = (0, 1) if dtype is np.bool_ else (np.iinfo(dtype).min, np.iinfo(dtype).max)
    x = {"few": lambda: rng.integers(max(low, -2), min(high, 3), (5, n)),
         "all": lambda: rng.integers(low, high, (5, n), endpoint=True),
         "sorted": lambda: np.linspace(low, high, 5 * n).reshape(5, n)}[kind]().astype(dtype)
    wide = x.astype(np.int32)
    gaps = np.repeat(x, 2, axis=1)[:, ::2]
    for count, laid, dim in ((1, x, 1), (2, np.ascontiguousarray(x.T), 0), (1, gaps, 1)):
        threads(count)
        turn = (lambda a: a) if dim else (lambda a: a.T)
        for descending in (False, True):
            values, places = module.sort(laid, dim=dim, descending=descending)
            wanted = np.argsort(-wide if descending else wide, axis=1, kind="stable")
            np.testing.assert_array_equal(turn(places), wanted)
            np.testing.assert_array_equal(turn(values), np.take_along_axis(x, wanted, 1))
            assert values.dtype == dtype and places.dtype == np.int64
            for k in {1, (n + 1) // 2, min(n, 33)}:
                values, places = module.topk(laid, k=k, dim=dim, largest=descending)
                np.testing.assert_array_equal(turn(places), wanted[:, :k])
                np.testing.assert_array_equal(turn(values), np.take_along_axis(x, wanted, 1)[:, :k])
        order = np.sort(x, 1)
        for k in {0, n // 3, n - 1}:
            values, places = module.kthvalue(laid, dim=dim, keepdim=False, k=k, nan_wins=True)
            np.testing.assert_array_equal(values, order[:, k])
            np.testing.assert_array_equal(values, chosen(laid, places, dim).reshape(-1))
        for name in ("mode", "nanmedian"):
            for found, plain in zip(getattr(module, name)(laid, dim=dim, keepdim=False),
                                    getattr(module, name)(laid.astype(np.int32), dim=dim, keepdim=False)):
                np.testing.assert_array_equal(found, plain)
        middle = module.median(laid)
        assert middle.dtype == dtype and middle == np.sort(x.reshape(-1))[(x.size - 1) // 2]


def test_any_truth_but_zero_is_sorted_as_true():
    x = np.array([3, 0, 1, 255, 0], np.uint8).view(np.bool_)
    values, places = module.sort(x, dim=0, descending=True)
    assert places.tolist() == [0, 2, 3, 1, 4] and values.view(np.uint8).tolist() == [1, 1, 1, 0, 0]


def test_signs_of_zeros_keep_their_places():
    x = np.array([0.0, -0.0, 0.0, -0.0, -1.0], np.float32)
    values, places = module.sort(x, dim=0, descending=False)
    assert places.tolist() == [4, 0, 1, 2, 3]
    assert np.signbit(values).tolist() == [True, False, True, False, True]


def test_what_cannot_be_chosen_is_left_to_the_formula():
    x = np.zeros((2, 3), np.float32)
    assert not taken("topk", x, k=4, dim=1, largest=True)
    assert not taken("topk", x, k=0, dim=1, largest=True)
    assert not taken("kthvalue", x, dim=1, keepdim=False, k=3, nan_wins=False)
    assert not taken("sort", x, dim=2, descending=False)
    assert not taken("sort", np.zeros((0, 3), np.float32), dim=1, descending=False)
    assert not taken("searchsorted", x[0], x.astype(np.float64), right=False)


@pytest.mark.parametrize("shape", [(3001, 300), (2, 3, 100_000), (1, 600_000), (600_000, 1)])
@pytest.mark.parametrize("dtype", FLOATS)
def test_unit_vectors_slice_by_slice(shape, dtype, threads):
    x = np.random.default_rng(0).normal(size=shape).astype(dtype)
    x[..., :1, :] *= 0
    wide = x.astype(np.float64)
    wanted = wide / np.maximum(np.sqrt((wide * wide).sum(-1, keepdims=True)), 1e-12)
    for laid in (x, np.asfortranarray(x)):
        found = []
        for count in (1, 2):
            threads(count)
            found.append(fw.nn.functional.normalize(fw.from_numpy(laid), dim=-1).numpy())
        np.testing.assert_allclose(found[0], wanted, rtol=4 * np.finfo(dtype).eps)
        np.testing.assert_array_equal(found[0], found[1])


def test_sums_for_a_shape_have_memory_of_their_own():
    """A gradient that shows another's memory would be copied for its leaf."""
    x = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
    for size in ((4,), (3, 4), (1, 4)):
        found = _native.module.sum_to_size(x, size)
        assert found.shape == size and np.array_equal(found.reshape(-1), x.sum(
            axis=tuple(range(3 - len(size))) + ((1,) if size == (1, 4) else ())).reshape(-1))
    assert _native.module.sum_to_size(x, (4,)).base is None


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int32, np.int64])
@pytest.mark.parametrize("n", [127, 128, 255, 256, 257, 400, 5000])
def test_extremes_wherever_they_stand(dtype, n):
    """Long lines are folded in four chains: the largest, the smallest and a nan are found in each."""
    x = np.random.default_rng(n).integers(-50, 50, n).astype(dtype)
    for at in {0, 1, n // 3, n // 2, n - 20, n - 1, *range(0, 70, 7)}:
        y = x.copy()
        y[at] = 100
        assert fw.from_numpy(y).amax().item() == 100 and fw.from_numpy(-y).amin().item() == -100
        if y.dtype.kind == "f":
            y[at] = np.nan
            assert math.isnan(fw.from_numpy(y).amax().item()) and math.isnan(fw.from_numpy(y).amin().item())
    assert fw.from_numpy(np.sign(x) + (x == 0)).prod().item() == np.prod(np.sign(x) + (x == 0))
