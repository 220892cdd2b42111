"""Rows of ops/linalg/matrix_norm.py."""

import math

import numpy as np

from framework.errors import ShapeError

from ..base import Sample, normal, row
from . import not_square, one, refusals

A = normal(3, 3) + 2 * np.eye(3)
BATCH = normal(2, 3, 3) + 2 * np.eye(3)
row("cond", *[Sample(f"p={p}", lambda M, a, p=p: M.linalg.cond(a, p), (A,),
                     lambda a, p=p: np.linalg.cond(a, p), torch=p in (None, 2, -2),
                     why="its own backward fails: modified by an inplace operation")
              for p in (None, 2, -2, "fro", 1, float("inf"))],
    Sample("batch", lambda M, a: M.linalg.cond(a), (BATCH,), np.linalg.cond),
    namespace="linalg", errors=not_square(lambda M, a: M.linalg.cond(a, "fro")))
_ORDERS = ("fro", "nuc", 1, -1, 2, -2, math.inf, -math.inf)
row("matrix_norm",
    *[one("matrix_norm", f"ord {o}", normal(3, 2),
           lambda x, o=o: np.linalg.norm(x, o), o) for o in _ORDERS],
    one("matrix_norm", "batch", normal(2, 3, 2), lambda x: np.linalg.norm(x, "fro", (-2, -1))),
    one("matrix_norm", "dims", normal(2, 3, 2), lambda x: np.linalg.norm(x, 1, (0, 1), keepdims=True), 1,
         dim=(0, 1), keepdim=True),
    one("matrix_norm", "keepdim", normal(2, 2, 3), lambda x: np.linalg.norm(x, "nuc", (2, 0), keepdims=True),
         "nuc", dim=(2, 0), keepdim=True),
    namespace="linalg",
    errors=[*refusals("matrix_norm", square=False),
            ("ord", lambda M: M.linalg.matrix_norm(M.ones(2, 2), 3), ValueError, "ord"),
            ("dim", lambda M: M.linalg.matrix_norm(M.ones(2, 2), dim=0), ValueError, "two dimensions")])
row("norm",
    one("norm", "all", normal(2, 3), np.linalg.norm), one("norm", "vector", normal(3), np.linalg.norm),
    one("norm", "vector 1", normal(3), lambda x: np.linalg.norm(x, 1), 1),
    one("norm", "dim", normal(2, 3), lambda x: np.linalg.norm(x, 1, 0), 1, dim=0),
    one("norm", "matrix 1", normal(2, 3), lambda x: np.linalg.norm(x, 1), 1),
    one("norm", "fro", normal(2, 3), lambda x: np.linalg.norm(x, "fro"), "fro"),
    namespace="linalg",
    errors=[("three", lambda M: M.linalg.norm(M.ones(2, 2, 2), 1), ShapeError, "vector or a matrix")])
