"""Rows of ops/linalg/older_names.py. Signs of vectors are free, so products of them are compared."""

from typing import Any

import numpy as np

from framework.errors import ShapeError

from ..base import Sample, normal, row

A, TALL, WIDE = normal(2, 3, 3) + 2 * np.eye(3), normal(4, 2), normal(2, 4)
B = normal(2, 3, 2, seed=1)
NOT_SQUARE = ShapeError, "matrices"


def _inputs(x: Any) -> Any:
    return x


row("lu", Sample("product", lambda M, x: M.lu_unpack(*M.lu(x))[0] @ M.lu_unpack(*M.lu(x))[1]
                 @ M.lu_unpack(*M.lu(x))[2], (A,), _inputs),
    Sample("codes", lambda M, x: x.lu(get_infos=True)[2], (np.array([[[1.0, 2], [2, 4]], np.eye(2)]),),
           lambda x: np.array([2, 0], np.int32), grad=False),
    errors=[("vector", lambda M: M.lu(M.ones(2)), *NOT_SQUARE)])
row("lu_solve",
    Sample("plain", lambda M, b, x: M.lu_solve(b, *M.lu(x)), (B, A), lambda b, x: np.linalg.solve(x, b)),
    errors=[("no tensor", lambda M: M.lu_solve([1.0], M.eye(1), M.ones(1, dtype=M.int32)), TypeError,
             "'input'")])
row("qr", *[Sample(label, lambda M, x: M.qr(x)[0] @ M.qr(x)[1], (x,), _inputs)
            for label, x in (("tall", TALL), ("square", A))],
    Sample("complete", lambda M, x: M.qr(x, some=False)[1].abs(), (TALL,),
           lambda x: np.abs(np.linalg.qr(x, "complete")[1]), grad=False),
    errors=[("vector", lambda M: M.qr(M.ones(2)), *NOT_SQUARE)])


def _rebuilt(M: Any, x: Any) -> Any:
    U, S, V = M.svd(x)
    return U * S @ V.mT


row("svd", Sample("tall", _rebuilt, (TALL,), _inputs), Sample("wide", _rebuilt, (WIDE,), _inputs),
    Sample("values", lambda M, x: M.svd(x, compute_uv=False)[1], (TALL,),
           lambda x: np.linalg.svd(x, compute_uv=False)),
    errors=[("vector", lambda M: M.svd(M.ones(2)), *NOT_SQUARE)])
def _triangle(x: np.ndarray, upper: bool = True, transpose: bool = False, unit: bool = False) -> np.ndarray:
    t = np.triu(x) if upper else np.tril(x)
    if unit:
        t = t * (1 - np.eye(3)) + np.eye(3)
    return t.swapaxes(-1, -2) if transpose else t


row("triangular_solve",
    *[Sample(f"{flags}", lambda M, b, x, f=flags: M.triangular_solve(b, x, *f)[0], (B, A),
             lambda b, x, f=flags: np.linalg.solve(_triangle(x, *f), b))
      for flags in ((True,), (False,), (True, True), (False, True), (True, False, True))],
    errors=[("sizes", lambda M: M.triangular_solve(M.ones(2, 1), M.eye(3)), ShapeError, "")])


def _q_of(M: Any, x: Any) -> Any:
    a, tau = M.geqrf(x)
    return M.linalg.householder_product(a, tau) @ a[:2].triu()


row("geqrf", Sample("product", _q_of, (TALL,), _inputs, grad=False),
    errors=[("vector", lambda M: M.geqrf(M.ones(2)), *NOT_SQUARE)])
REFLECTIONS, TAU, TWO = np.tril(normal(4, 2, seed=2), -1), np.array([1.2, 0.7]), normal(4, 3, seed=5)


def _orthogonal(a: np.ndarray, tau: np.ndarray) -> np.ndarray:
    Q = np.eye(len(a))
    for i, t in enumerate(tau):
        v = np.tril(a, -1)[:, i] + np.eye(len(a))[i]
        Q = Q @ (np.eye(len(a)) - t * np.outer(v, v))
    return Q


row("ormqr",
    Sample("left", lambda M, a, t, c: M.ormqr(a, t, c), (REFLECTIONS, TAU, TWO),
           lambda a, t, c: _orthogonal(a, t) @ c),
    Sample("left, transposed", lambda M, a, t, c: M.ormqr(a, t, c, True, True), (REFLECTIONS, TAU, TWO),
           lambda a, t, c: _orthogonal(a, t).T @ c),
    Sample("right", lambda M, a, t, c: M.ormqr(a, t, c, left=False), (REFLECTIONS, TAU, TWO.T.copy()),
           lambda a, t, c: c @ _orthogonal(a, t)),
    Sample("right, transposed", lambda M, a, t, c: M.ormqr(a, t, c, False, True),
           (REFLECTIONS, TAU, TWO.T.copy()), lambda a, t, c: c @ _orthogonal(a, t).T),
    errors=[("sizes", lambda M: M.ormqr(M.ones(3, 2), M.ones(2), M.ones(2, 2)), ShapeError, "do not fit")])


def _near(name: str, **more: Any) -> Any:
    def call(M: Any, x: Any) -> Any:
        U, S, V = getattr(M, name)(x, q=2, **more)
        return U * S @ V.mT
    return call


row("svd_lowrank", Sample("tall", _near("svd_lowrank"), (TALL,), _inputs),
    Sample("wide", _near("svd_lowrank"), (WIDE,), _inputs),
    Sample("less M", lambda M, x, y: _near("svd_lowrank", M=y)(M, x), (TALL, TALL * 0.5), lambda x, y: x - y),
    errors=[("q", lambda M: M.svd_lowrank(M.ones(2, 2), q=3), ValueError, "q=3")])
row("pca_lowrank", Sample("centred", _near("pca_lowrank"), (TALL,), lambda x: x - x.mean(0)),
    Sample("not", _near("pca_lowrank", center=False), (TALL,), _inputs),
    errors=[("q", lambda M: M.pca_lowrank(M.ones(2, 2), q=3), ValueError, "q=3")])
