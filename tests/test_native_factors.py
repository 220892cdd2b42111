"""Factors of symmetric matrices, and the order of rows that exchanges give: natively and by the formula."""

import numpy as np
import pytest

from framework import _native
from framework.ops.linalg.ldl import ldl_op, ldl_solve_op
from framework.ops.linalg.lu import order_op

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
