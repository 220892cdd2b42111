"""Rows of ops/linalg/systems.py."""

from collections.abc import Callable
from typing import Any

import numpy as np

from framework.errors import LinAlgError, ShapeError

from ..base import Sample, complex_twins, normal, row
from . import not_square, one, refusals, regular

A, B = normal(3, 3) + 2 * np.eye(3), normal(3, 2, seed=1)
TALL, WIDE = normal(4, 2), normal(2, 4)
L = np.linalg.cholesky(normal(3, 3) @ normal(3, 3).T + np.eye(3))
for _name, _home in (("inv", "linalg"), ("inverse", "framework")):
    row(_name, one(_name, "plain", regular(3, 3), np.linalg.inv, home=_home),
        one(_name, "batch", regular(2, 2, 2), np.linalg.inv, home=_home),
        one(_name, "empty", np.zeros((0, 0)), np.linalg.inv, home=_home),
        namespace=_home, errors=[*refusals(_name, _home), (
            "singular", lambda M: M.linalg.inv(M.zeros(2, 2)), np.linalg.LinAlgError, "singular")])


def _solve(label: str, a: Any, b: Any, reference: Callable, **settings: Any) -> Sample:
    def call(M: Any, a: Any, b: Any) -> Any:
        return M.linalg.solve(a, b, **settings)
    return Sample(label, call, (a, b), reference)


row("solve",
    _solve("matrix", regular(3, 3), normal(3, 2), np.linalg.solve),
    _solve("vector", regular(3, 3), normal(3), np.linalg.solve),
    _solve("batch", regular(2, 2, 2), normal(2, 2, 1), np.linalg.solve),
    _solve("batch of vectors", regular(2, 3, 3), normal(2, 3),
           lambda a, b: np.linalg.solve(a, b[..., None])[..., 0]),
    _solve("broadcast", regular(2, 2), normal(3, 2, 2), lambda a, b: np.linalg.inv(a) @ b),
    _solve("right", regular(2, 2), normal(3, 2), lambda a, b: b @ np.linalg.inv(a), left=False),
    namespace="linalg",
    errors=[("sizes", lambda M: M.linalg.solve(M.eye(2), M.ones(3, 2)), ShapeError, "2 rows"),
            ("square", lambda M: M.linalg.solve(M.ones(2, 3), M.ones(3, 2)), ShapeError, "square"),
            ("singular", lambda M: M.linalg.solve(M.zeros(2, 2), M.ones(2, 2)), np.linalg.LinAlgError,
             "singular")])


def _tri(a: Any, upper: bool, unit: bool = False) -> Any:
    a = np.triu(a) if upper else np.tril(a)
    return a - np.diag(np.diag(a)) + np.eye(3) if unit else a


row("solve_triangular",
    *[Sample(f"upper={u} unit={t}", lambda M, a, b, u=u, t=t: M.linalg.solve_triangular(
        a, b, upper=u, unitriangular=t), (A, B), lambda a, b, u=u, t=t: np.linalg.solve(_tri(a, u, t), b))
      for u in (True, False) for t in (True, False)],
    Sample("right", lambda M, a, b: M.linalg.solve_triangular(a, b, upper=True, left=False), (A, B.T),
           lambda a, b: b @ np.linalg.inv(np.triu(a))),
    namespace="linalg", errors=not_square(lambda M, a: M.linalg.solve_triangular(a, a, upper=True)))
row("cholesky_solve",
    Sample("lower", lambda M, b, a: M.cholesky_solve(b, a.tril()), (B, A),
           lambda b, a: np.linalg.solve(np.tril(a) @ np.tril(a).T, b)),
    Sample("upper", lambda M, b, a: M.cholesky_solve(b, a.triu(), upper=True), (B, A),
           lambda b, a: np.linalg.solve(np.triu(a).T @ np.triu(a), b)),
    errors=not_square(lambda M, a: M.cholesky_solve(M.ones(2, 1), a)))
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
row(
    "tensorinv",
    Sample(
        "plain",
        lambda M, x: M.linalg.tensorinv(x),
        (normal(2, 3, 6),),
        lambda x: np.linalg.tensorinv(x),
    ),
    Sample(
        "ind",
        lambda M, x: M.linalg.tensorinv(x, ind=1),
        (normal(6, 3, 2),),
        lambda x: np.linalg.tensorinv(x, 1),
    ),
    namespace="linalg",
    errors=[
        ("sizes", lambda M: M.linalg.tensorinv(M.ones(2, 3, 4)), ShapeError, "6 and 4"),
        ("ind", lambda M: M.linalg.tensorinv(M.ones(2, 2), 0), ValueError, "positive"),
        ("singular", lambda M: M.linalg.tensorinv(M.zeros(2, 2, 4)), LinAlgError, "singular"),
    ],
)
row(
    "tensorsolve",
    Sample(
        "plain",
        lambda M, x, y: M.linalg.tensorsolve(x, y),
        (normal(2, 3, 6), normal(2, 3)),
        np.linalg.tensorsolve,
    ),
    Sample(
        "dims",
        lambda M, x, y: M.linalg.tensorsolve(x, y, dims=(0,)),
        (normal(6, 2, 3), normal(2, 3)),
        lambda x, y: np.linalg.tensorsolve(x, y, (0,)),
    ),
    namespace="linalg",
    errors=[
        ("shape", lambda M: M.linalg.tensorsolve(M.ones(2, 3, 6), M.ones(3, 3)), ShapeError, "[3, 3]"),
        ("sizes", lambda M: M.linalg.tensorsolve(M.ones(2, 3), M.ones(2)), ShapeError, "2 and 3"),
    ],
)
row(
    "cholesky_inverse",
    Sample(
        "lower",
        lambda M, x: M.cholesky_inverse(x),
        (L,),
        lambda x: np.linalg.inv(x @ x.T),
        torch=False,
        why="PyTorch gives the triangle that is not read a gradient",
    ),
    Sample(
        "upper",
        lambda M, x: x.cholesky_inverse(upper=True),
        (L.T,),
        lambda x: np.linalg.inv(x.T @ x),
        grad=False,
    ),
    errors=[("shape", lambda M: M.cholesky_inverse(M.ones(2, 3)), ShapeError, "[2, 3]")],
)
complex_twins("tensorinv tensorsolve", "linalg")
