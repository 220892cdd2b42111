"""Rows of ops/reduce/vector_norm.py."""

from typing import Any

import numpy as np

from framework.errors import ShapeError

from ..base import Sample, complex_twins, normal, row

M23, M234 = normal(2, 3), normal(2, 3, 4)
EMPTY = np.zeros((2, 0, 3))
ZERO_ROW = np.array([[0.0, 0.0, 0.0], [3.0, 0.0, -4.0]])


def norm(x: np.ndarray, p: float, axis: Any = None, keepdims: bool = False) -> Any:
    """The norm of any order, along some axes."""
    x = np.abs(x)
    if np.isinf(p):
        return (np.max if p > 0 else np.min)(x, axis=axis, keepdims=keepdims)
    if p == 0:
        return (x != 0).sum(axis=axis, keepdims=keepdims).astype(float)
    with np.errstate(divide="ignore"):
        return (x ** p).sum(axis=axis, keepdims=keepdims) ** (1 / p)


def _order(p: float) -> Sample:
    if p in (1, np.inf, -np.inf):  # linear in pieces: squares give a second derivative to look at
        return Sample(f"order {p}", lambda M, x: M.linalg.vector_norm(x * x - 1, p, dim=1), (M234,),
                      lambda x: norm(x * x - 1, p, 1))
    return Sample(f"order {p}", lambda M, x: M.linalg.vector_norm(x, p, dim=1), (M234,),
                  lambda x: norm(x, p, 1))


row("vector_norm",
    Sample("all", lambda M, x: M.linalg.vector_norm(x), (M234,), lambda x: norm(x, 2)),
    Sample("keepdim", lambda M, x: M.linalg.vector_norm(x, 3, dim=(0, -1), keepdim=True), (M234,),
           lambda x: norm(x, 3, (0, 2), True)),
    *[_order(p) for p in (0, 0.5, 1, 1.5, 2, 2.5, 3, 4, -1, -2.5, np.inf, -np.inf)],
    Sample("0-dim", lambda M, x: M.linalg.vector_norm(x), (np.array(-2.0),), np.abs),
    Sample("empty", lambda M, x: M.linalg.vector_norm(x, 2, dim=1), (EMPTY,),
           lambda x: np.zeros((2, 3)), grad=False),
    Sample("dtype", lambda M, x: M.linalg.vector_norm(x, 2, dtype=M.float64), (M23,),
           lambda x: norm(x, 2)),
    Sample("some zeros", lambda M, x: M.linalg.vector_norm(x, 2), (np.array([3.0, 0.0, -4.0]),),
           lambda x: 5.0),
    Sample("some zeros, order 3", lambda M, x: M.linalg.vector_norm(x, 3), (np.array([3.0, 0.0, -4.0]),),
           lambda x: norm(x, 3)),
    Sample("zero vector", lambda M, x: M.linalg.vector_norm(x, 2, dim=1), (ZERO_ROW,),
           lambda x: norm(x, 2, 1), grad=False, why="a kink at 0"),
    errors=[("int", lambda M: M.linalg.vector_norm(M.tensor([1, 2])), TypeError, "floating"),
            ("word", lambda M: M.linalg.vector_norm(M.ones(2), "fro"), TypeError, "number"),
            ("inf of nothing", lambda M: M.linalg.vector_norm(M.ones(0), float("inf")), ValueError,
             "empty"),
            ("dim out of range", lambda M: M.linalg.vector_norm(M.ones(2), 2, 1), IndexError, "dim=1")],
    namespace="linalg")
X = normal(3, 4)


def _renorm(x: Any, p: float, dim: int, most: float) -> Any:
    others = tuple(d for d in range(x.ndim) if d != dim)
    norm = (abs(x) ** p).sum(others, keepdims=True) ** (1 / p)
    return np.where(norm > most, x * most / (norm + 1e-7), x)


row(
    "renorm",
    Sample("plain", lambda M, x: M.renorm(x, 2, 0, 1.5), (X,), lambda x: _renorm(x, 2, 0, 1.5)),
    Sample(
        "cubes",
        lambda M, x: x.renorm(3, dim=1, maxnorm=1.0),
        (normal(2, 3, 2),),
        lambda x: _renorm(x, 3, 1, 1.0),
    ),
    Sample("in place", lambda M, x: x.clone().renorm_(1, 0, 2.0), (X,), lambda x: _renorm(x, 1, 0, 2.0)),
    errors=[
        ("ndim", lambda M: M.renorm(M.ones(2), 2, 0, 1.0), ShapeError, "[2]"),
        ("p", lambda M: M.renorm(M.ones(2, 2), 0, 0, 1.0), ValueError, "p=0"),
    ],
)
complex_twins("renorm")
