"""Rows of ops/linalg/products.py."""

from collections.abc import Callable
from typing import Any

import numpy as np

from framework.errors import ShapeError

from ..base import Sample, normal, row
from . import product

B = normal(3, 2, seed=1)
row("mv", product("mv", "plain", (2, 3), (3,)),
    errors=[("matrix", lambda M: M.mv(M.ones(2, 2), M.ones(2, 2)), ShapeError, "a vector")])
for _name in ("dot", "vdot"):
    row(_name, product(_name, "plain", (4,), (4,)), product(_name, "empty", (0,), (0,)),
        errors=[("matrix", lambda M: M.dot(M.ones(2, 2), M.ones(2)), ShapeError, "a vector"),
                ("sizes", lambda M: M.dot(M.ones(2), M.ones(3)), ShapeError, "2 elements")])
for _name in ("outer", "ger"):
    row(_name, product(_name, "plain", (2,), (3,), np.outer),
        product(_name, "empty", (0,), (3,), np.outer),
        errors=[("matrix", lambda M: M.outer(M.ones(2, 2), M.ones(2)), ShapeError, "a vector")])
row("inner", product("inner", "vectors", (3,), (3,), np.inner),
    product("inner", "matrices", (2, 3), (4, 3), np.inner), product("inner", "numbers", (), (2,), np.inner),
    errors=[("sizes", lambda M: M.inner(M.ones(2), M.ones(3)), ShapeError, "2 and 3")])


def _sum_rows(name: str, x: tuple, a: tuple, b: tuple, reference: Callable) -> None:
    def plain(M: Any, *xs: Any) -> Any:
        return getattr(M, name)(*xs)

    def scaled(M: Any, *xs: Any) -> Any:
        return getattr(M, name)(*xs, beta=0.5, alpha=2.0)

    def ignoring(M: Any, *xs: Any) -> Any:
        return getattr(M, name)(*xs, beta=0)

    inputs = normal(*x), normal(*a, seed=1), normal(*b, seed=2)
    row(name, Sample("plain", plain, inputs, lambda x, a, b: x + reference(a, b)),
        Sample("scaled", scaled, inputs, lambda x, a, b: 0.5 * x + 2 * reference(a, b)),
        Sample("beta 0", ignoring, (np.full(x, np.nan), *inputs[1:]), lambda x, a, b: reference(a, b),
               grad=False),
        errors=[("shape", lambda M: getattr(M, name)(M.ones(7, 7, 7), M.ones(a), M.ones(b)), ShapeError,
                 "[7, 7, 7]")])


_sum_rows("addmm", (3,), (2, 2), (2, 3), np.matmul)
_sum_rows("addmv", (2,), (2, 3), (3,), np.matmul)
_sum_rows("addr", (2, 3), (2,), (3,), np.outer)
_sum_rows("baddbmm", (2, 1, 2), (2, 2, 3), (2, 3, 2), np.matmul)
_sum_rows("addbmm", (2, 2), (2, 2, 3), (2, 3, 2), lambda a, b: (a @ b).sum(0))
row("tensordot",
    Sample("two", lambda M, x, y: M.tensordot(x, y, dims=2), (normal(2, 3, 2), normal(3, 2, 2)),
           lambda x, y: np.tensordot(x, y, 2)),
    Sample("lists", lambda M, x, y: M.tensordot(x, y, dims=([1], [0])), (normal(2, 3, 2), normal(3, 2)),
           lambda x, y: np.tensordot(x, y, ([1], [0]))),
    Sample("outer", lambda M, x, y: M.tensordot(x, y, dims=0), (normal(2), normal(3)),
           lambda x, y: np.tensordot(x, y, 0)),
    errors=[("sizes", lambda M: M.tensordot(M.ones(2, 3), M.ones(2, 3), dims=1), ShapeError, "[3]"),
            ("dims", lambda M: M.tensordot(M.ones(2), M.ones(2), dims=2), ValueError, "dims=2")])
row("cross",
    Sample("vectors", lambda M, x, y: M.cross(x, y, dim=0), (normal(3), normal(3, seed=1)), np.cross),
    Sample("dim", lambda M, x, y: M.cross(x, y, dim=0), (normal(3, 2), normal(3, 2, seed=1)),
           lambda x, y: np.cross(x, y, axis=0)),
    errors=[("size", lambda M: M.cross(M.ones(2), M.ones(2), dim=0), ShapeError, "size 3")])
row("cross",
    Sample("broadcast", lambda M, x, y: M.linalg.cross(x, y), (normal(2, 3), normal(1, 3, seed=1)), np.cross),
    namespace="linalg",
    errors=[("size", lambda M: M.linalg.cross(M.ones(2), M.ones(2)), ShapeError, "size 3")])
row("vecdot", Sample("plain", lambda M, x, y: M.linalg.vecdot(x, y), (B, B[::-1] + 1),
                     lambda x, y: (x * y).sum(-1)),
    Sample("dim", lambda M, x, y: M.linalg.vecdot(x, y, dim=0), (B, B[:, :1]), lambda x, y: (x * y).sum(0)),
    namespace="linalg", errors=[("list", lambda M: M.linalg.vecdot(M.ones(1), [1.0]), TypeError, "list")])
