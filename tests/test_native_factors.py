"""Factors of symmetric matrices, and the order of rows that exchanges give: natively and by the formula."""

import itertools

import numpy as np
import pytest

import framework as fw
from framework import _native
from framework.ops.linalg.factor import triangular_op
from framework.ops.linalg.ldl import ldl_op, ldl_solve_op
from framework.ops.linalg.lu import factor_op, order_op
from framework.ops.linalg.powers import matrix_exp_op

native = pytest.mark.skipif(_native.module is None, reason="no native kernels here")


@native
@pytest.mark.parametrize("n", [1, 2, 3, 5, 8, 33])
def test_symmetric_factors_are_those_of_the_formula(n: int) -> None:
    """Definite, indefinite, and with zeros on the diagonal, which takes 2 x 2 blocks."""
    rng = np.random.default_rng(n)
    for turn in range(12):
        x = rng.standard_normal((3, n, n))
        A = x @ x.swapaxes(1, 2) if turn % 3 == 0 else x + x.swapaxes(1, 2)
        if turn % 3 == 1:
            A[:, range(n), range(n)] = 0
        A = np.where(np.tri(n, dtype=bool), A, np.nan) if turn % 2 else A
        LD, pivots, info = _native.module.ldl_factor(A, hermitian=False)
        want = ldl_op.plain(np.tril(A), hermitian=False) if turn % 2 else ldl_op.plain(A, hermitian=False)
        assert (pivots == want[1]).all() and (info == want[2]).all()
        np.testing.assert_allclose(LD, want[0], 1e-9, 1e-9)
        if info.any():
            continue
        B = rng.standard_normal((3, n, 2))
        X = _native.module.ldl_solve(LD, pivots, B, hermitian=False)
        np.testing.assert_allclose(X, ldl_solve_op.plain(LD, pivots, B, hermitian=False), 1e-7, 1e-9)
        whole = np.tril(np.nan_to_num(A))
        whole = whole + np.tril(whole, -1).swapaxes(1, 2)
        np.testing.assert_allclose(whole @ X, B, 1e-6, 1e-7)


@native
def test_exchanges_that_cannot_be_are_left_to_the_formula() -> None:
    solve, order = _native.module.ldl_solve, _native.module.lu_order
    LD, B = np.tril(np.ones((1, 3, 3))), np.ones((1, 3, 1))
    least = -(2**31)
    for bad in ([4, 2, 3], [0, 0, 3], [1, 2, -3], [-3, 2, 3], [-2, -3, 3], [2, 1, 3], [least, least, 3]):
        assert solve(LD, np.array([bad], "int32"), B, hermitian=False) is NotImplemented, bad
    assert solve(np.zeros((1, 3, 3)), np.array([[1, 2, 3]], "int32"), B, hermitian=False) is NotImplemented
    for bad in ([0, 1], [1, 3], [-1, 1]):
        assert order(np.array(bad, "int32"), n=2) is NotImplemented
    pivots = np.array([[3, 3, 3], [1, 2, 3]], "int32")
    assert (order(pivots, n=4) == order_op.plain(pivots, n=4)).all()
    assert order(pivots, n=4).tolist() == [[2, 0, 1, 3], [0, 1, 2, 3]]


@native
@pytest.mark.parametrize("shape", [(5, 1, 1), (2, 3, 3, 3), (37, 2, 2), (16, 3, 3), (35, 4, 4), (32, 32),
                                   (33, 33), (2, 70, 70), (40, 65),
                                   (65, 40), (3, 2, 7)])
@pytest.mark.parametrize("pivot", [True, False])
def test_lu_factors_are_those_of_the_formula(shape: tuple, pivot: bool) -> None:
    """Of matrices that are one block of columns, that are several, and of such that are not square."""
    A = np.random.default_rng(len(shape)).standard_normal(shape)
    if not pivot:
        A[..., range(min(shape[-2:])), range(min(shape[-2:]))] += 9
    for dtype, most in ((np.float64, 1e-10), (np.float32, 1e-2)):
        for a in (A.astype(dtype), np.asfortranarray(A.astype(dtype))):
            found, want = _native.module.lu_factor(a, pivot=pivot), factor_op.plain(A, pivot=pivot)
            np.testing.assert_allclose(found[0], want[0], most, most)
            assert (found[1] == want[1]).all() and (found[2] == want[2]).all() and found[0].dtype == dtype


@native
@pytest.mark.parametrize("n", [2, 3, 4])
def test_small_matrices_side_by_side_give_what_each_gives_alone(n: int) -> None:
    """A vector of them is factored and solved at once: with equal pivots, zeros and nan; and a rest."""
    rng = np.random.default_rng(n)
    factor, solve = _native.module.lu_factor, _native.module.solve_triangular
    for count, dtype in itertools.product((2, 7, 16, 17, 40), (np.float32, np.float64)):
        A = rng.choice([-2.0, -1.0, 0.0, 1.0, 2.0, np.nan], (count, n, n), p=[.2, .2, .1, .25, .2, .05])
        A = A.astype(dtype)
        for pivot in (True, False):
            together = factor(A, pivot=pivot)
            for i in range(count):
                for x, y in zip(together, factor(A[i], pivot=pivot)):
                    np.testing.assert_array_equal(x[i], y)
        A = rng.standard_normal((count, n, n)).astype(dtype)
        b = rng.standard_normal((count, n, 3)).astype(dtype)
        for upper, unit in itertools.product((True, False), repeat=2):
            X = solve(A, b, upper=upper, unit=unit)
            for i in range(count):
                np.testing.assert_array_equal(X[i], solve(A[i], b[i], upper=upper, unit=unit))
            T = (np.triu if upper else np.tril)(A)
            T[:, range(n), range(n)] = np.where(unit, 1, T[:, range(n), range(n)])
            np.testing.assert_allclose(T @ X, b, atol=1e-3 * np.abs(X).max())
        A[-1, n - 1, n - 1] = 0
        assert solve(A, b, upper=True, unit=False) is NotImplemented


@native
@pytest.mark.parametrize(("n", "k"), [(1, 1), (3, 5), (32, 2), (33, 1), (70, 40), (130, 3)])
@pytest.mark.parametrize("upper", [True, False])
@pytest.mark.parametrize("unit", [True, False])
def test_triangles_are_solved_as_by_the_formula(n: int, k: int, upper: bool, unit: bool) -> None:
    rng = np.random.default_rng(n)
    A, B = rng.standard_normal((2, n, n)) / n, rng.standard_normal((2, n, k))
    A[:, range(n), range(n)] += 2
    solve, settings = _native.module.solve_triangular, {"upper": upper, "unit": unit}
    want = triangular_op.plain(A, B, **settings)
    unread = np.where(np.tri(n, k=-int(unit)) > 0, A, np.nan) if not upper else np.where(
        np.tri(n, k=int(unit) - 1) > 0, np.nan, A)
    np.testing.assert_allclose(solve(unread, B, **settings), want, 1e-10, 1e-10)
    turned = np.ascontiguousarray(unread.swapaxes(1, 2)).swapaxes(1, 2)
    np.testing.assert_allclose(solve(turned.astype("f4"), B.astype("f4"), **settings), want, 1e-4, 1e-4)
    if not unit:
        unread[1, n // 2, n // 2] = 0
        assert solve(unread, B, **settings) is NotImplemented


@pytest.mark.parametrize("shape", [(3, 3), (2, 4, 2), (2, 5)])
@pytest.mark.parametrize("dtype", [fw.float64, fw.complex128])
def test_gradients_of_lu_factors(shape: tuple, dtype: fw.dtype) -> None:
    """Square, tall and wide: what is beside the square is solved for."""
    rng = fw.Generator().manual_seed(1)
    A = fw.randn(*shape, dtype=dtype, generator=rng).requires_grad_()
    calls = [lambda A: fw.linalg.lu_factor(A).LU]
    if shape[-2] == shape[-1]:
        calls.append(lambda A: fw.linalg.lu(A + 5 * fw.eye(shape[-1], dtype=dtype), pivot=False).L)
    for call in calls:
        assert fw.autograd.gradcheck(call, (A,)) and fw.autograd.gradgradcheck(call, (A,))


def test_values_alone_and_with_vectors_are_the_same() -> None:
    A = fw.randn(3, 6, 6, dtype=fw.float64, generator=fw.Generator().manual_seed(2))
    for values in (fw.linalg.svdvals, fw.linalg.eigvalsh):
        tracked = values(A.clone().requires_grad_())
        assert fw.allclose(values(A), tracked.detach())
        _, slope = fw.func.jvp(values, (A,), (fw.ones_like(A),))
        g = fw.func.vjp(values, A)[1](fw.ones_like(tracked.detach()))[0]
        assert fw.allclose(slope.sum(), g.sum())


@pytest.mark.parametrize("dtype", [fw.float64, fw.complex128])
def test_least_squares_by_qr_and_by_the_pseudo_inverse(dtype: fw.dtype) -> None:
    """The rank decides which; rcond may say that a matrix has less of it than bounds can tell."""
    rng = fw.Generator().manual_seed(3)
    A, B = (fw.randn(2, 6, n, dtype=dtype, generator=rng).requires_grad_() for n in (4, 3))
    want = fw.linalg.pinv(A.detach()) @ B.detach()
    found = fw.linalg.lstsq(A, B)
    assert fw.allclose(found.solution.detach(), want) and found.rank.tolist() == [4, 4]
    assert fw.autograd.gradcheck(lambda A, B: fw.linalg.lstsq(A, B).solution, (A, B))
    low = A.detach().clone()
    low[0, :, 3] = low[0, :, 0] * 2
    low[1, :, 3] = 0
    assert fw.linalg.lstsq(low, B).rank.tolist() == [3, 3]
    assert fw.allclose(fw.linalg.lstsq(low, B).solution, fw.linalg.pinv(low) @ B)
    cut = fw.linalg.lstsq(A.detach(), B.detach(), rcond=0.5)
    assert fw.allclose(cut.solution, fw.linalg.pinv(A.detach(), rtol=0.5) @ B.detach())
    assert (cut.rank == fw.linalg.matrix_rank(A.detach(), rtol=0.5)).all()
    wide = fw.linalg.lstsq(A.detach().mT, fw.ones(2, 4, 1, dtype=dtype)).solution
    assert fw.allclose(wide, fw.linalg.pinv(A.detach().mT) @ fw.ones(2, 4, 1, dtype=dtype))


@native
def test_large_symmetric_factors_lose_nothing_to_rounding() -> None:
    """One number stands for both places of a symmetric matrix: two drift apart."""
    rng = np.random.default_rng(5)
    x = rng.standard_normal((30, 130, 130))
    A, B = x + x.swapaxes(1, 2), rng.standard_normal((30, 130, 2))
    LD, pivots, _ = _native.module.ldl_factor(A, hermitian=False)
    X = _native.module.ldl_solve(LD, pivots, B, hermitian=False)
    scale = np.abs(A).max((1, 2)) * np.abs(X).max((1, 2)) * 130 + np.abs(B).max((1, 2))
    assert (np.abs(A @ X - B).max((1, 2)) / scale).max() < 3e-16


def _many(rng: np.random.Generator, shape: tuple, kind: str) -> np.ndarray:
    a = rng.standard_normal(shape)
    if kind == "scaled":
        a *= 10.0 ** rng.integers(-30, 30, (shape[0], 1, 1))
    if kind == "dependent":
        a[:, :, -1] = a[:, :, 0]
    return a


@native
@pytest.mark.parametrize("count", [1, 3, 8, 9, 50])
@pytest.mark.parametrize("size", [(1, 1), (2, 2), (3, 2), (2, 3), (3, 3), (4, 4), (4, 9), (32, 4), (3, 32)])
@pytest.mark.parametrize("kind", ["normal", "scaled", "dependent"])
@pytest.mark.parametrize(("dtype", "tolerance"), [(np.float32, 2e-7), (np.float64, 1e-14)])
def test_singular_values_of_small_matrices(count, size, kind, dtype, tolerance) -> None:
    a = _many(np.random.default_rng(count), (count, *size), kind).astype(dtype)
    found, want = _native.module.small_svdvals(a), np.linalg.svd(a.astype(np.float64), compute_uv=False)
    assert found.dtype == dtype and found.shape == want.shape
    assert (np.abs(found - want) <= tolerance * want[:, :1]).all()
    turned = _native.module.small_svdvals(a.swapaxes(1, 2))
    assert (np.abs(turned - want) <= tolerance * want[:, :1]).all()


def _orthonormal(q: np.ndarray, tolerance: float) -> bool:
    return bool((np.abs(q.swapaxes(-1, -2).astype(float) @ q - np.eye(q.shape[-1])) <= tolerance).all())


@native
@pytest.mark.parametrize("count", [1, 8, 9, 50])
@pytest.mark.parametrize("size", [(1, 1), (1, 3), (2, 2), (3, 2), (2, 4), (3, 3), (4, 4), (4, 9), (32, 4),
                                  (3, 32)])
@pytest.mark.parametrize("kind", ["normal", "scaled", "dependent", "none", "ones"])
@pytest.mark.parametrize(("dtype", "tolerance"), [(np.float32, 1e-6), (np.float64, 1e-14)])
def test_singular_vectors_of_small_matrices(count, size, kind, dtype, tolerance) -> None:
    a = _many(np.random.default_rng(count), (count, *size), kind).astype(dtype)
    a = np.zeros_like(a) if kind == "none" else np.ones_like(a) if kind == "ones" else a
    (m, n), k = size, min(size)
    for full in (False, True):
        found = _native.module.small_svd(a, full=full)
        if full and m != n and max(size) > 4:
            assert found is NotImplemented
            continue
        U, S, Vh = found
        assert {x.dtype for x in found} == {np.dtype(dtype)} and S.shape == (count, k)
        assert U.shape == (count, m, m if full else k) and Vh.shape == (count, n if full else k, n)
        assert _orthonormal(U, tolerance) and _orthonormal(Vh.swapaxes(-1, -2), tolerance)
        np.testing.assert_allclose(S, _native.module.small_svdvals(a), 1e-15, 1e-90)
        again = U[..., :k].astype(float) * S[:, None] @ Vh[:, :k]
        assert (np.abs(again - a) <= 4 * tolerance * S[:, :1, None]).all()


@native
@pytest.mark.parametrize("count", [1, 8, 9, 50])
@pytest.mark.parametrize("n", [1, 2, 3, 4])
@pytest.mark.parametrize("kind", ["normal", "scaled", "dependent", "equal", "none"])
@pytest.mark.parametrize(("dtype", "tolerance"), [(np.float32, 1e-6), (np.float64, 1e-14)])
def test_eigenvectors_of_small_symmetric_matrices(count, n, kind, dtype, tolerance) -> None:
    """Of either triangle; the other one may hold anything."""
    a = _many(np.random.default_rng(count), (count, n, n), kind).astype(dtype)
    a = np.zeros_like(a) if kind == "none" else a
    a = np.broadcast_to(np.eye(n, dtype=dtype), a.shape) if kind == "equal" else a
    for uplo in "LU":
        whole = np.tril(a) if uplo == "L" else np.triu(a)
        whole = whole + np.tril(whole, -1).swapaxes(1, 2) + np.triu(whole, 1).swapaxes(1, 2)
        w, V = _native.module.small_eigh(a, uplo=uplo)
        want = np.linalg.eigvalsh(whole.astype(np.float64))
        size = np.abs(want).max(-1)
        assert w.dtype == V.dtype == dtype and (np.abs(w - want) <= tolerance * size[:, None]).all()
        assert _orthonormal(V, tolerance) and (np.diff(w, axis=-1) >= 0).all()
        again = V.astype(float) * w[:, None] @ V.swapaxes(1, 2)
        assert (np.abs(again - whole) <= 4 * tolerance * size[:, None, None]).all()
        np.testing.assert_array_equal(_native.module.small_eigvalsh(a, uplo=uplo), w)


@native
@pytest.mark.parametrize("count", [1, 8, 50])
@pytest.mark.parametrize("n", [1, 2, 3, 4])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_exponentials_of_small_matrices(count, n, dtype) -> None:
    a = np.random.default_rng(n).standard_normal((count, n, n))
    for size in (0.0, 1e-3, 1.0, 20.0):
        x = (size * a).astype(dtype)
        want = matrix_exp_op.plain(x.astype(np.longdouble))
        most = np.abs(want).max((1, 2), keepdims=True)
        found = _native.module.small_exp(x)
        tolerance = 1e-6 if dtype is np.float32 else 1e-13 * (1 + size)
        assert found.dtype == dtype and (np.abs(found - want) <= tolerance * most).all()


@native
def test_what_methods_for_small_matrices_decline() -> None:
    module = _native.module
    for wrong in ([[np.nan, 1], [1, 1]], [[np.inf, 1], [1, 1]], np.ones((5, 5)), np.ones((0, 2, 2)),
                  np.ones((2, 2), complex), np.ones(3)):
        x = np.asarray(wrong)
        for call in (lambda: module.small_svd(x, full=False), lambda: module.small_eigh(x, uplo="L"),
                     lambda: module.small_eigvalsh(x, uplo="U"), lambda: module.small_exp(x)):
            assert call() is NotImplemented
    for scale in (1e-310, 1e-200, 1e200, 1e305):
        a = scale * np.array([[2.0, 1.0], [1.0, 3.0]])
        want = np.linalg.eigvalsh(a / scale)
        np.testing.assert_allclose(module.small_eigh(a, uplo="L")[0] / scale, want, 1e-13)
        np.testing.assert_allclose(module.small_svd(a, full=True)[1] / scale, want[::-1], 1e-13)


@native
def test_singular_values_at_the_ends_of_the_range() -> None:
    for diagonal in ([1.7e308, 1e308], [2e-310, 1e-310], [0, 0], [1e200, 1e100]):
        found = _native.module.small_svdvals(np.diag(np.array(diagonal, float)))
        np.testing.assert_allclose(found, diagonal, 1e-14)
    for wrong in ([[np.nan, 1], [1, 1]], [[np.inf, 1], [1, 1]], np.ones((5, 5)), np.ones((2, 33)),
                  np.ones((0, 2))):
        assert _native.module.small_svdvals(np.asarray(wrong)) is NotImplemented


@native
@pytest.mark.parametrize("count", [1, 7, 8, 50])
@pytest.mark.parametrize("n", [1, 2, 3, 4, 5])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_inverses_of_small_matrices(count, n, dtype) -> None:
    a = _many(np.random.default_rng(n), (count, n, n), "scaled").astype(dtype)
    found, want = _native.module.small_inv(a), np.linalg.inv(a.astype(np.float64))
    worst = np.abs(want).max((1, 2)) * np.linalg.cond(a.astype(np.float64)) * np.finfo(dtype).eps * 4
    np.testing.assert_array_less(np.abs(found - want).max((1, 2)), worst)
    a[-1] = 0
    assert _native.module.small_inv(a) is NotImplemented


@pytest.mark.parametrize("batches", [((4,), (1,)), ((1,), (4,)), ((), (4,)), ((4,), ()), ((2, 1), (1, 3))])
def test_systems_whose_batches_broadcast(batches) -> None:
    """Their results and gradients are those of matrices that were repeated before."""
    rng = np.random.default_rng(3)
    A = fw.from_numpy(rng.standard_normal((*batches[0], 3, 3)) + 4 * np.eye(3)).requires_grad_()
    B = fw.from_numpy(rng.standard_normal((*batches[1], 3, 2))).requires_grad_()
    batch = np.broadcast_shapes(*batches)
    whole = [x.detach().expand(*batch, *x.shape[-2:]).clone().requires_grad_() for x in (A, B)]
    calls = [lambda A, B: fw.linalg.solve(A, B),
             lambda A, B: fw.linalg.solve_triangular(A, B, upper=True),
             lambda A, B: fw.cholesky_solve(B, A.tril()),
             lambda A, B: fw.linalg.lu_solve(*fw.linalg.lu_factor(A), B),
             lambda A, B: fw.linalg.lu_solve(*fw.linalg.lu_factor(A), B.mT, left=False, adjoint=True)]
    for call in calls:
        found, want = call(A, B), call(*whole)
        fw.testing.assert_close(found, want)
        got = fw.autograd.grad(found.square().sum(), (A, B))
        for x, g, w in zip((A, B), got, fw.autograd.grad(want.square().sum(), whole)):
            fw.testing.assert_close(g, w.sum_to_size(x.shape))
    LD, pivots = fw.linalg.ldl_factor((A @ A.mT).detach())
    fw.testing.assert_close(fw.linalg.ldl_solve(LD, pivots, B.detach()),
                            fw.linalg.solve((A @ A.mT).detach(), B.detach()))


def test_batches_that_do_not_broadcast_are_told() -> None:
    for call in (fw.linalg.solve, lambda A, B: fw.linalg.solve_triangular(A, B, upper=True)):
        with pytest.raises(fw.errors.ShapeError):
            call(fw.ones(2, 3, 3), fw.ones(4, 3, 1))


@pytest.mark.parametrize("small", [1e-160, 1e-200, 5e-324])
def test_singular_values_whose_squares_vanish(small):
    found = fw.linalg.svdvals(fw.tensor([[[1.0, 0.0], [0.0, small]]] * 3, dtype=fw.float64))
    assert found.tolist() == [[1, small]] * 3


@pytest.mark.parametrize("n", [3, 6])
@pytest.mark.parametrize("name", ["svd", "svdvals", "pinv", "eig", "eigvals"])
@pytest.mark.parametrize("bad", [np.inf, np.nan])
def test_matrices_that_are_not_finite_raise(name, n, bad):
    """LAPACK may never come back from them."""
    x = fw.eye(n)
    x[0, 0] = bad
    with pytest.raises(fw.errors.LinAlgError, match=f"{'svd' if name == 'pinv' else name}: no convergence"):
        getattr(fw.linalg, name)(x)


def _unsymmetric(kind: str, count: int, n: int, source: np.random.Generator) -> np.ndarray:
    a = source.standard_normal((count, n, n))
    if kind == "whole numbers":
        return source.integers(-2, 3, a.shape).astype(float)
    if kind == "upper triangles":
        return np.triu(a)
    if kind == "lower triangles":
        return np.tril(a)
    if kind == "rows of all sizes":
        return a * 10.0 ** source.integers(-4, 5, (count, n, 1))
    if kind == "of all sizes":
        return a * 10.0 ** source.integers(-90, 90, (count, 1, 1))
    if kind == "symmetric":
        return a + a.transpose(0, 2, 1)
    if kind == "turns":
        return a - a.transpose(0, 2, 1)
    if kind == "rank one":
        return a[:, :, :1] * a[:, :1]
    if kind == "orders":
        return np.stack([np.eye(n)[source.permutation(n)] for _ in range(count)])
    if kind == "one block":
        return np.broadcast_to(2 * np.eye(n) + np.eye(n, k=1), a.shape).copy()
    return a if kind == "any" else np.zeros_like(a)


@pytest.mark.skipif(_native.module is None, reason="there are no native kernels")
@pytest.mark.parametrize("kind", ["any", "whole numbers", "upper triangles", "lower triangles",
                                  "rows of all sizes", "of all sizes", "symmetric", "turns", "rank one",
                                  "orders", "one block", "zeros"])
def test_eigenvectors_of_small_matrices(kind: str) -> None:
    source = np.random.default_rng(5)
    for n in (1, 2, 3, 4, 5, 8, 13, 32):
        a = _unsymmetric(kind, 300 // n, n, source)
        values, vectors = _native.module.eig(a)
        size = np.abs(a).sum(-1).max(-1)[:, None] + 1e-300
        rest = np.abs(a @ vectors - vectors * values[:, None, :]).max(-1) / size
        assert rest.max() < (1e-8 if kind == "rows of all sizes" else 1e-14 * n)
        np.testing.assert_allclose(np.linalg.norm(vectors, axis=-2), 1, rtol=1e-14)
        np.testing.assert_allclose(values.sum(-1) / size[:, 0], np.trace(a, axis1=1, axis2=2) / size[:, 0],
                                   atol=1e-13 * n)
        pairs = np.where(values.imag > 0)
        assert np.array_equal(values[pairs].conj(), values[pairs[0], pairs[1] + 1])
        largest = np.take_along_axis(vectors, np.abs(vectors).argmax(-2)[:, None], -2)
        if kind == "any":
            assert np.abs(largest.imag).max() == 0
            want = np.linalg.eigvals(a)
            for given in (values, _native.module.eigvals(a)):
                far = np.abs(given[:, :, None] - want[:, None]).min(-1)
                assert far.max() < 1e-10
        alone = _native.module.eig(a[-1:])
        assert np.array_equal(alone[0], values[-1:]) and np.array_equal(alone[1], vectors[-1:])
        half = _native.module.eig(a.astype(np.float32)) if kind != "of all sizes" else None
        assert half is None or half[0].dtype == np.complex64 == half[1].dtype
    bad = np.eye(3)
    bad[2, 0] = np.nan
    others = np.zeros((2, 3)), np.zeros((0, 3, 3)), np.eye(33), np.eye(3, dtype=complex), np.zeros(3)
    for left in (bad, *others):
        assert _native.module.eig(left) is _native.module.eigvals(left) is NotImplemented


def test_eigenvalues_of_very_small_numbers_and_of_hessenberg_matrices() -> None:
    a = np.array([[1.0, 2.0], [3.0, 4.0]])
    for size in (1e-320, 1e-200, 1e-99, 1e99, 1e200):
        found, want = fw.linalg.eigvals(fw.tensor(a * size)).numpy().real, np.linalg.eigvals(a * size)
        np.testing.assert_allclose(np.sort(found), np.sort(want), rtol=1e-12 if size > 1e-300 else 0.01)
    mixed = np.array([[1e-200, 1e-200, 0], [2e-200, -3e-200, 0], [0, 0, 1.0]])
    found = np.sort(fw.linalg.eigvals(fw.tensor(mixed)).numpy().real)
    np.testing.assert_allclose(found, [-3.449489742783178e-200, 1.449489742783178e-200, 1], rtol=1e-12)
    nilpotent = fw.tensor([[0.0, 1e-320], [0.0, 0.0]], dtype=fw.float64)
    assert fw.linalg.eig(nilpotent).eigenvectors.isfinite().all()
    hessenberg = np.triu(np.random.default_rng(0).standard_normal((100, 32, 32)), -1)
    values, vectors = (x.numpy() for x in fw.linalg.eig(fw.tensor(hessenberg)))
    rest = np.abs(hessenberg @ vectors - vectors * values[:, None]).max((1, 2))
    assert (rest / np.abs(hessenberg).sum(-1).max(-1)).max() < 1e-14
