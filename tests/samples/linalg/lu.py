"""Rows of ops/linalg/lu.py."""

from typing import Any

import numpy as np

from framework.errors import ShapeError

from ..base import Sample, normal, row
from . import not_square

A, B = normal(3, 3) + 2 * np.eye(3), normal(3, 2, seed=1)
BATCH, TALL, WIDE = normal(2, 3, 3) + 2 * np.eye(3), normal(4, 2), normal(2, 4)


def _pivoted(a: Any) -> tuple:
    """Elimination with row exchanges, one matrix: packed LU, pivots from 1, order."""
    a, order, pivots = a.copy(), np.arange(len(a)), []
    for i in range(min(a.shape)):
        p = i + np.abs(a[i:, i]).argmax()
        pivots.append(p + 1)
        a[[i, p]], order[[i, p]] = a[[p, i]], order[[p, i]]
        a[i + 1:, i] /= a[i, i]
        a[i + 1:, i + 1:] -= np.outer(a[i + 1:, i], a[i, i + 1:])
    return a, np.array(pivots, "int32"), order


def _plu(a: Any) -> tuple:
    packed, _, order = _pivoted(a)
    m, n = a.shape
    k = min(m, n)
    return np.eye(m)[:, order].astype(a.dtype), np.tril(packed[:, :k], -1) + np.eye(m, k), np.triu(packed[:k])


row("lu_factor",
    *[Sample(name, lambda M, a: tuple(M.linalg.lu_factor(a)), (x,), lambda a: _pivoted(a)[:2])
      for name, x in (("square", A), ("tall", TALL), ("wide", WIDE))],
    Sample("batch", lambda M, a: M.linalg.lu_factor(a)[0], (BATCH,),
           lambda a: np.stack([_pivoted(x)[0] for x in a])),
    namespace="linalg", errors=[("vector", lambda M: M.linalg.lu_factor(M.ones(3)), ValueError, "matrices")])


def _plain(a: Any) -> tuple:
    L = np.linalg.cholesky(a)
    d = np.diag(L)
    return L / d, (L * d).T


row("lu", *[Sample(name, lambda M, a: tuple(M.linalg.lu(a)), (x,), _plu)
            for name, x in (("square", A), ("tall", TALL), ("wide", WIDE))],
    Sample("no pivots", lambda M, a: tuple(M.linalg.lu(a @ a.mT + M.eye(3, dtype=a.dtype), pivot=False))[1:],
           (A,), lambda a: _plain(a @ a.T + np.eye(3)), torch=False, why="it has that only on CUDA"),
    namespace="linalg", errors=[("vector", lambda M: M.linalg.lu(M.ones(3)), ValueError, "matrices")])
row("lu_solve",
    *[Sample(f"left={left} adjoint={adjoint}", lambda M, a, b, ahead=left, t=adjoint: M.linalg.lu_solve(
        *M.linalg.lu_factor(a), b if ahead else b.mT, left=ahead, adjoint=t), (A, B),
        lambda a, b, ahead=left, t=adjoint: np.linalg.solve(a.T if t else a, b) if ahead else
        b.T @ np.linalg.inv(a.T if t else a)) for left in (True, False) for adjoint in (True, False)],
    namespace="linalg", errors=not_square(lambda M, a: M.linalg.lu_solve(a, M.ones(2).int(), a)))
PACKED = np.array([[4.0, 1.0, 2.0], [0.5, 3.0, -1.0]])
AT = np.array([2, 2], np.int32)


def _parts(x: np.ndarray) -> tuple:
    L = np.tril(x[:, :2], -1) + np.eye(2)
    return np.array([[0.0, 1.0], [1.0, 0.0]]), L, np.triu(x)


row(
    "lu_unpack",
    Sample("wide", lambda M, x, p: M.lu_unpack(x, p), (PACKED, AT), lambda x, p: _parts(x)),
    Sample(
        "data",
        lambda M, x, p: M.lu_unpack(x, p, unpack_pivots=False)[1:],
        (PACKED, AT),
        lambda x, p: _parts(x)[1:],
    ),
    Sample(
        "pivots",
        lambda M, x, p: M.lu_unpack(x, p, unpack_data=False).P,
        (PACKED, AT),
        lambda x, p: _parts(x)[0],
        grad=False,
    ),
    errors=[("vector", lambda M: M.lu_unpack(M.ones(2), M.ones(2)), ShapeError, "LU_data")],
)
