"""Rows of ops/linalg/solvers.py."""

from typing import Any

import numpy as np

from ..base import Sample, normal, row

A, B = normal(3, 3) + 2 * np.eye(3), normal(3, 2, seed=1)
BATCH, TALL, WIDE = normal(2, 3, 3) + 2 * np.eye(3), normal(4, 2), normal(2, 4)


def _bad(call: Any) -> list:
    return [("not square", lambda M: call(M, M.ones(2, 3)), ValueError, "square")]


def _tri(a: Any, upper: bool, unit: bool = False) -> Any:
    a = np.triu(a) if upper else np.tril(a)
    return a - np.diag(np.diag(a)) + np.eye(3) if unit else a


row("solve_triangular",
    *[Sample(f"upper={u} unit={t}", lambda M, a, b, u=u, t=t: M.linalg.solve_triangular(
        a, b, upper=u, unitriangular=t), (A, B), lambda a, b, u=u, t=t: np.linalg.solve(_tri(a, u, t), b))
      for u in (True, False) for t in (True, False)],
    Sample("right", lambda M, a, b: M.linalg.solve_triangular(a, b, upper=True, left=False), (A, B.T),
           lambda a, b: b @ np.linalg.inv(np.triu(a))),
    namespace="linalg", errors=_bad(lambda M, a: M.linalg.solve_triangular(a, a, upper=True)))
row("cholesky_solve",
    Sample("lower", lambda M, b, a: M.cholesky_solve(b, a.tril()), (B, A),
           lambda b, a: np.linalg.solve(np.tril(a) @ np.tril(a).T, b)),
    Sample("upper", lambda M, b, a: M.cholesky_solve(b, a.triu(), upper=True), (B, A),
           lambda b, a: np.linalg.solve(np.triu(a).T @ np.triu(a), b)),
    errors=_bad(lambda M, a: M.cholesky_solve(M.ones(2, 1), a)))


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
row("lu", *[Sample(name, lambda M, a: tuple(M.linalg.lu(a)), (x,), _plu)
            for name, x in (("square", A), ("tall", TALL), ("wide", WIDE))],
    Sample("no pivots", lambda M, a: tuple(M.linalg.lu(a @ a.mT + M.eye(3, dtype=a.dtype), pivot=False))[1:],
           (A,), lambda a: _plain(a @ a.T + np.eye(3)), torch=False, why="it has that only on CUDA"),
    namespace="linalg", errors=[("vector", lambda M: M.linalg.lu(M.ones(3)), ValueError, "matrices")])


def _plain(a: Any) -> tuple:
    L = np.linalg.cholesky(a)
    d = np.diag(L)
    return L / d, (L * d).T


row("lu_solve",
    *[Sample(f"left={left} adjoint={adjoint}", lambda M, a, b, ahead=left, t=adjoint: M.linalg.lu_solve(
        *M.linalg.lu_factor(a), b if ahead else b.mT, left=ahead, adjoint=t), (A, B),
        lambda a, b, ahead=left, t=adjoint: np.linalg.solve(a.T if t else a, b) if ahead else
        b.T @ np.linalg.inv(a.T if t else a)) for left in (True, False) for adjoint in (True, False)],
    namespace="linalg", errors=_bad(lambda M, a: M.linalg.lu_solve(a, M.ones(2).int(), a)))
DEFECT = np.array([[1.0, 2.0], [2.0, 4.0]])
row("matrix_rank", Sample("full", lambda M, a: M.linalg.matrix_rank(a), (BATCH,), np.linalg.matrix_rank),
    Sample("less", lambda M, a: M.linalg.matrix_rank(a), (DEFECT,), np.linalg.matrix_rank),
    Sample("atol", lambda M, a: M.linalg.matrix_rank(a, atol=100.0), (A,), lambda a: np.int64(0)),
    namespace="linalg",
    errors=[("vector", lambda M: M.linalg.matrix_rank(M.ones(3)), ValueError, "matrices")])
row("cond", *[Sample(f"p={p}", lambda M, a, p=p: M.linalg.cond(a, p), (A,),
                     lambda a, p=p: np.linalg.cond(a, p), torch=p in (None, 2, -2),
                     why="its own backward fails: modified by an inplace operation")
              for p in (None, 2, -2, "fro", 1, float("inf"))],
    Sample("batch", lambda M, a: M.linalg.cond(a), (BATCH,), np.linalg.cond),
    namespace="linalg", errors=_bad(lambda M, a: M.linalg.cond(a, "fro")))
row("lstsq",
    Sample("tall", lambda M, a, b: tuple(M.linalg.lstsq(a, b, driver="gelsd"))[:2],
           (TALL, normal(4, 2, seed=3)),
           lambda a, b: np.linalg.lstsq(a, b)[:2], torch=False, why="its residuals carry no gradient"),
    Sample("solution", lambda M, a, b: M.linalg.lstsq(a, b)[0], (TALL, normal(4, 2, seed=3)),
           lambda a, b: np.linalg.lstsq(a, b)[0]),
    Sample("wide", lambda M, a, b: tuple(M.linalg.lstsq(a, b))[::2], (WIDE, normal(2, 1, seed=3)),
           lambda a, b: (np.linalg.lstsq(a, b)[0], np.int64(2))),
    namespace="linalg",
    errors=[("rows", lambda M: M.linalg.lstsq(M.ones(2, 2), M.ones(3, 1)), ValueError, "as many rows")])
for _name in ("eig", "eigvals"):
    def _values(M: Any, a: Any, name: str = _name) -> Any:
        out = getattr(M.linalg, name)(a)
        return out if name == "eigvals" else out[0]
    row(_name, Sample("values", _values, (A,), lambda a: np.linalg.eigvals(a).astype(complex), grad=False,
                      noncontiguous=False),
        Sample("real", _values, (np.diag([3.0, 1.0]),), lambda a: np.array([3.0 + 0j, 1.0]), grad=False),
        namespace="linalg", errors=_bad(_values))


def _exp(a: Any) -> Any:
    values, vectors = np.linalg.eig(a)
    return ((vectors * np.exp(values)[..., None, :]) @ np.linalg.inv(vectors)).real


row("matrix_exp", Sample("plain", lambda M, a: M.matrix_exp(a), (A * 0.3,), _exp),
    Sample("large", lambda M, a: a.matrix_exp(), (A * 2,), _exp),
    Sample("batch", lambda M, a: M.matrix_exp(a), (BATCH * 0.5,), _exp),
    errors=_bad(lambda M, a: M.matrix_exp(a)))
row("vecdot", Sample("plain", lambda M, x, y: M.linalg.vecdot(x, y), (B, B[::-1] + 1),
                     lambda x, y: (x * y).sum(-1)),
    Sample("dim", lambda M, x, y: M.linalg.vecdot(x, y, dim=0), (B, B[:, :1]), lambda x, y: (x * y).sum(0)),
    namespace="linalg", errors=[("list", lambda M: M.linalg.vecdot(M.ones(1), [1.0]), TypeError, "list")])
row("diagonal", Sample("plain", lambda M, a: M.linalg.diagonal(a), (BATCH,),
                       lambda a: np.diagonal(a, axis1=-2, axis2=-1)),
    Sample("offset", lambda M, a: M.linalg.diagonal(a, offset=1, dim1=0, dim2=1), (WIDE,),
           lambda a: np.diagonal(a, 1)), namespace="linalg",
    errors=[("list", lambda M: M.linalg.diagonal([1.0]), TypeError, "list")])
