"""Kernels for calls on few numbers beside their formulas, in sizes and layouts that no sample has."""

import numpy as np
import pytest

import framework as fw
from framework import _native
from framework.ops.index.scatter import scatter_add_op
from framework.ops.linalg.factor import qr_op
from framework.ops.linalg.lu import factor_op, parts_op
from framework.ops.linalg.made_matrices import product_op
from framework.ops.linalg.older_names import geqrf_op, reflected_op
from framework.ops.linalg.products import cross_op
from framework.ops.pointwise.complex_numbers import join_op
from framework.ops.reduce.quantiles import mode_op, nanmedian_op
from framework.ops.reduce.sums import nanmean_op, nansum_op
from framework.ops.shape.diagonals import put_diagonal

pytestmark = pytest.mark.skipif(_native.module is None, reason=f"no native extension: {_native.isa}")
SHAPES = [(1, 1), (1, 5), (5, 1), (4, 3), (3, 4), (2, 3, 3), (2, 2, 20, 7), (64, 64), (3, 64), (200, 20),
          (2, 1024, 5)]


def close(found, want, most):
    found, want = (x if isinstance(x, tuple) else (x,) for x in (found, want))
    for a, b in zip(found, want, strict=True):
        assert (a.shape, a.dtype) == (b.shape, b.dtype)
        np.testing.assert_allclose(a, b, most, most)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize(("dtype", "most"), [(np.float32, 2e-4), (np.float64, 1e-11)])
def test_reflections_are_those_of_lapack(shape, dtype, most):
    rng, module = np.random.default_rng(len(shape)), _native.module
    A = rng.standard_normal(shape).astype(dtype)
    A[..., 0] = 0 if shape[-1] == 3 else A[..., 0]  # nothing to reflect
    for a in (A, np.asfortranarray(A), np.repeat(A, 2, -1)[..., ::2]):
        packed, tau = geqrf_op.plain(A)
        close(module.geqrf(a), (np.ascontiguousarray(packed), tau), most)
        for mode in ("reduced", "complete"):
            if mode == "complete" and shape[-2] > 500:
                assert module.small_qr(a, mode=mode) is NotImplemented
            else:
                close(module.small_qr(a, mode=mode), qr_op.plain(A, mode=mode), most)
    if shape[-2] >= shape[-1]:
        close(module.householder_product(packed, tau), product_op.plain(packed, tau), most)
    C = rng.standard_normal((*shape[:-1], 3)).astype(dtype)
    for transposed in (False, True):
        close(module.reflected(packed, tau, C, transposed=transposed),
              reflected_op.plain(packed, tau, C, transposed=transposed), most)
    parts = module.lu_factor(A, pivot=True)
    close(module.lu_parts(parts[0], parts[2]), parts_op.plain(parts[0], parts[2]), 0)
    L, U, P = module.lu_parts(parts[0], parts[2])
    np.testing.assert_allclose(P @ L @ U, A, most, most)
    assert (module.lu_parts(*factor_op.plain(A.astype(np.float64), pivot=False)[::2])[2]
            == np.eye(shape[-2])).all()


def test_reflections_of_extreme_numbers():
    for scale in (1e-300, 1e300):
        Q, R = _native.module.small_qr(np.array([[3.0, 1.0], [4.0, 2.0]]) * scale, mode="reduced")
        np.testing.assert_allclose(R / scale, [[-5.0, -2.2], [0.0, 0.4]], 1e-12)
        np.testing.assert_allclose(Q.T @ Q, np.eye(2), 1e-12, 1e-12)
    for a in (np.ones((1 << 17, 2)), np.ones((2, 1 << 17))):  # more than a MB
        assert _native.module.small_qr(a, mode="reduced") is NotImplemented
    assert _native.module.small_qr(np.ones((400, 2)), mode="complete") is NotImplemented
    assert _native.module.geqrf(np.ones((400, 400))) is NotImplemented


@pytest.mark.parametrize("shape", [(65, 63), (63, 65), (128, 128), (150, 100), (100, 150), (2000, 30),
                                   (3, 70, 70)])
@pytest.mark.parametrize(("dtype", "most"), [(np.float32, 1e-5), (np.float64, 1e-13)])
def test_factors_of_large_matrices(shape, dtype, most):
    """float32 in float32: held against what QR promises, not against LAPACK's."""
    rng = np.random.default_rng(shape[-1])
    for scale in (1, 1e20 if dtype is np.float32 else 1e200, 1e-20 if dtype is np.float32 else 1e-200):
        A = (rng.standard_normal(shape) * scale).astype(dtype)
        A[..., 5] = 0
        Q, R = (part.astype(np.float64) for part in _native.module.small_qr(A, mode="reduced"))
        assert np.abs(Q @ R - A).max() < most * 10 * scale and (np.tril(R, -1) == 0).all()
        assert np.abs(Q.swapaxes(-1, -2) @ Q - np.eye(Q.shape[-1])).max() < most
        packed, tau = _native.module.geqrf(A)
        assert np.abs(np.triu(packed)[..., :R.shape[-2], :] - R).max() <= most * 10 * scale
    assert _native.module.householder_product(np.ones((2, 2)), np.ones(3)) is NotImplemented


@pytest.mark.parametrize("shape", [(1,), (7,), (3, 1), (2, 65), (65, 3), (2, 3, 17), (600,)])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int64, np.int32])
def test_modes_and_medians_without_nan(shape, dtype):
    rng = np.random.default_rng(len(shape))
    for turn in range(6):
        x = rng.integers(-3, 3, shape).astype(dtype)
        if turn % 2 and x.dtype.kind == "f":
            x[rng.random(shape) < (0.3 if turn < 4 else 0.9)] = np.nan
        for dim in range(x.ndim):
            for keepdim in (False, True):
                for op in (mode_op, nanmedian_op):
                    close(getattr(_native.module, op.name)(x, dim=dim, keepdim=keepdim),
                          op.plain(x, dim=dim, keepdim=keepdim), 0)
        if x.dtype.kind == "f":
            for dims in [(0,), tuple(range(x.ndim))]:
                settings = {"dims": dims, "keepdim": False}
                np.testing.assert_allclose(nansum_op.cpu(x, **settings), np.nansum(x, dims), 1e-5)
                some = ~np.isnan(x).all(dims)
                with np.errstate(invalid="ignore"):
                    found = nanmean_op.cpu(x, **settings)
                np.testing.assert_allclose(np.where(some, found, 0),
                                           np.where(some, np.nanmean(np.where(some, x, 0), dims), 0), 1e-5)


def test_positions_are_drawn_by_their_weights():
    """As often as they should, each once or again and again, in each row by its own weights."""
    fw.manual_seed(0)
    weights = fw.tensor([[1.0, 0.0, 3.0, 4.0], [0.0, 0.0, 5.0, 5.0]])
    again = fw.multinomial(weights, 40000, True)
    share = np.stack([np.bincount(row, minlength=4) for row in again.numpy()]) / 40000
    np.testing.assert_allclose(share, weights.numpy() / weights.numpy().sum(1, keepdims=True), atol=0.015)
    first = np.stack([fw.multinomial(weights[0], 3).numpy() for _ in range(4000)])
    assert all(len(set(row)) == 3 for row in first.tolist()) and not (first == 1).any()
    share = np.bincount(first[:, 0], minlength=4) / 4000
    np.testing.assert_allclose(share, [1 / 8, 0, 3 / 8, 1 / 2], atol=0.04)
    for bad in ([0.0, 0.0], [-1.0, 1.0], [float("nan"), 1.0], [float("inf"), 1.0]):
        before = fw.get_rng_state()
        with pytest.raises(ValueError, match="multinomial"):
            fw.multinomial(fw.tensor(bad), 1)
        assert (fw.get_rng_state() == before).all()
    with pytest.raises(ValueError, match="without replacement"):
        fw.multinomial(weights, 3)


def test_positions_are_those_of_numpy(monkeypatch):
    """Drawn again and again they are the same numbers with and without the kernel."""
    weights = fw.rand(5, 300, dtype=fw.float64)
    fw.manual_seed(1)
    found = fw.multinomial(weights, 50, True), fw.multinomial(weights[0], 1)
    monkeypatch.setattr("framework.ops.random.draws.drawn_at_once", lambda *given: None)
    fw.manual_seed(1)
    want = fw.multinomial(weights, 50, True), fw.multinomial(weights[0], 1)
    for a, b in zip(found, want):
        assert (a == b).all()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n", [0, 1, 3, 4097])
def test_parts_are_joined_and_diagonals_put(dtype, n):
    rng, module = np.random.default_rng(n), _native.module
    x, y = rng.standard_normal((2, 3, n)).astype(dtype)
    close(module.join_parts(x, y.copy("F")), join_op.plain(x, y), 0)
    close(module.join_parts(x, y[:1]), join_op.plain(x, y[:1]), 0)
    assert module.join_parts(x, y[:, :0] if n > 1 else y[:2]) is NotImplemented  # which do not broadcast
    if 0 < n < 10:
        for offset, dims in ((0, (-2, -1)), (2, (0, 2)), (-1, (1, 0)), (-1, (2, 0))):
            shape = list(x.shape[:-1])
            for d in sorted(d % 3 for d in dims):
                shape.insert(d, n + abs(offset))
            settings = {"shape": tuple(shape), "offset": offset, "dims": dims}
            close(module.put_diagonal(x, **settings), put_diagonal.plain(x, **settings), 0)
        assert module.put_diagonal(x, shape=(3, n, n + 1), offset=-n, dims=(1, 2)) is NotImplemented
    for shape, dim in (((3,), -1), ((n, 3), -1), ((3, n), -2), ((2, 3, n), -2)):
        a, b = rng.standard_normal((2, *shape)).astype(dtype)
        if a.size:
            close(module.cross(a, b, dim=dim), cross_op.plain(a, b, dim=dim), 1e-6)


def test_an_index_is_known_to_fit_only_if_it_does():
    fits, line, x = _native.module.places_fit, _native.module.line_fits, np.zeros((3, 4))
    index = np.array([[0, 2], [1, 0]])
    assert [fits(x, index, d) for d in (0, 1, -1, -2, 2, -3, 1 << 70, 0.0)] == [0, 1, 1, 0, -1, -1, -1, -1]
    for bad in (index + 1, index - 1, index[0], index.astype("int32"), np.zeros((2, 0), int), (index - 1).T):
        assert fits(x, bad, 0) == -1
    assert fits(x, index.T, 0) == 0  # as it lies
    assert fits(x, np.zeros((4, 4), int), 0) == 0 and fits(x, np.zeros((4, 5), int), 0) == -1
    places = np.array([3, 0])
    assert line(x, places, 1) == 1 and line(x, places, 0) == -1 and line(x, index, 0) == -1
    values = np.random.default_rng(0).standard_normal((2, 2))
    found = _native.module.scatter_add(x, values, index, 1)
    close(found, scatter_add_op.plain(x, values, index, dim=1), 1e-12)


def test_pieces_of_listed_lengths():
    x = fw.arange(12).view(3, 4)
    for cut in (lambda n, d: fw.split(x, n, d), lambda n, d: fw.split_with_sizes(x, n, d)):
        assert [p.tolist() for p in cut([1, 3], 1)] == [x[:, :1].tolist(), x[:, 1:].tolist()]
        assert [tuple(p.shape) for p in cut((0, 3), 0)] == [(0, 4), (3, 4)]
        for bad in ([1, 1], [2, -1, 2], [[3]]):
            with pytest.raises((fw.errors.ShapeError, TypeError)):
                cut(bad, 0)
    y = x.float().requires_grad_()
    a, b = fw.split(y * 2, [1, 2])
    (a.sum() + 3 * b.sum()).backward()
    assert y.grad.tolist() == [[2.0] * 4, [6.0] * 4, [6.0] * 4]
    assert [p.tolist() for p in fw.tensor_split(fw.arange(5), (1, 9))] == [[0], [1, 2, 3, 4], []]


@pytest.mark.parametrize("n", [1, 63, 2049, 70001])
def test_programs_of_one_step_over_any_memory(n):
    """Results beside, over and apart from their operands."""
    x = np.random.default_rng(n).standard_normal(n).astype(np.float32)
    for function, want in ((fw.neg, -x), (fw.square, x * x), (fw.floor, np.floor(x)),
                           (lambda t, out=None: fw.clamp(t, -0.5, 0.5, out=out), np.clip(x, -0.5, 0.5)),
                           (lambda t, out=None: fw.mul(t, 3.0, out=out), x * np.float32(3)),
                           (lambda t, out=None: fw.add(t, t, out=out), x + x)):
        t, out = fw.from_numpy(x.copy()), fw.zeros(n)
        assert (function(t).numpy() == want).all()
        function(t, out=out)
        assert (out.numpy() == want).all()
        function(t, out=t)
        assert (t.numpy() == want).all()


def test_special_functions_into_memory():
    x = fw.rand(50)
    want, out, wide = fw.lgamma(x), fw.zeros(50), fw.zeros(100)
    assert fw.lgamma(x, out=out) is out and (out == want).all()
    fw.lgamma(x, out=wide[::2])
    assert (wide[::2] == want).all() and not wide[1::2].any()
    y = fw.cat([x, x])
    fw.lgamma(y[:50], out=y[25:75])  # memory in common
    assert (y[25:75] == want).all()
    assert (x.lgamma_() == want).all()


def test_memory_that_was_freed_last_comes_first():
    """Results come into memory that is still in the processor's caches, however much is kept."""
    with fw.no_grad():
        x, kept = fw.rand(1 << 16), [fw.rand(1 << 16) * 2 for _ in range(8)]
        last = kept[5].data_ptr()
        del kept[5]
        del x
        y = fw.rand(1 << 16)  # takes what x had, which was freed last
        assert (y * 2).data_ptr() == last
        assert len({(y * 2).data_ptr() for _ in range(5)}) == 1
