"""Rows of ops/linalg/matmul.py."""

from typing import Any

import numpy as np

from framework.errors import ShapeError

from ..base import Sample, integers, normal, row
from . import product

row("matmul",
    product("matmul", "vectors", (3,), (3,)),
    product("matmul", "matrix and vector", (2, 3), (3,)),
    product("matmul", "vector and matrix", (3,), (3, 2)),
    product("matmul", "matrices", (2, 3), (3, 4)),
    product("matmul", "batch and matrix", (2, 2, 3), (3, 2)),
    product("matmul", "matrix and batch", (2, 3), (2, 3, 2)),
    product("matmul", "batch and vector", (2, 2, 3), (3,)),
    product("matmul", "vector and batch", (3,), (2, 3, 2)),
    product("matmul", "batches that broadcast", (2, 1, 2, 3), (3, 3, 2)),
    product("matmul", "no rows", (0, 3), (3, 2)),
    product("matmul", "nothing to sum", (2, 0), (0, 3)),
    product("matmul", "empty batch", (0, 2, 3), (3, 2)),
    Sample("integers", lambda M, x, y: M.matmul(x, y), (integers(2, 3), integers(3, 2, seed=1)),
           np.matmul, grad=False),
    Sample("operator", lambda M, x, y: x @ y, (normal(2, 3), normal(3, 2)), np.matmul),
    errors=[("mixed dtypes", lambda M: M.matmul(M.ones(2, 3), M.ones(3, 2, dtype=M.int64)), TypeError,
             "'input' is framework.float32 but 'other' is framework.int64"),
            ("sizes", lambda M: M.matmul(M.ones(2, 3), M.ones(4, 2)), ShapeError, "[2, 3] and [4, 2]"),
            ("both sizes", lambda M: M.matmul(M.ones(2, 3), M.ones(4, 2)), ShapeError, "is 3, the second"),
            ("batch", lambda M: M.matmul(M.ones(2, 1, 3), M.ones(3, 3, 1)), ShapeError, "2 and 3"),
            ("number", lambda M: M.matmul(M.tensor(1.0), M.ones(2)), ShapeError, "at least 1 dimension"),
            ("not a tensor", lambda M: M.matmul(M.ones(2), 3), TypeError, "must be a Tensor")])
row("__matmul__", Sample("operator", lambda M, x, y: x @ y, (normal(2, 3), normal(3, 2)), np.matmul),
    namespace="", errors=[("list", lambda M: M.ones(1, 1) @ [[1.0]], TypeError, "'Tensor' and 'list'")])
row("rmatmul", Sample("method", lambda M, x, y: y.__rmatmul__(x), (normal(2, 3), normal(3, 2)), np.matmul),
    namespace="", errors=[("list", lambda M: [[1.0]] @ M.ones(1, 1), TypeError, "'list' and 'Tensor'")])
row("mm", product("mm", "matrices", (2, 3), (3, 4)), product("mm", "empty", (0, 3), (3, 0)),
    errors=[("vector", lambda M: M.mm(M.ones(2), M.ones(2, 2)), ShapeError, "a matrix"),
            ("sizes", lambda M: M.mm(M.ones(2, 3), M.ones(2, 3)), ShapeError, "is 3")])
row("bmm", product("bmm", "batches", (2, 2, 3), (2, 3, 2)), product("bmm", "empty", (0, 2, 3), (0, 3, 2)),
    errors=[("batches", lambda M: M.bmm(M.ones(2, 1, 1), M.ones(3, 1, 1)), ShapeError, "2 and 3 matrices"),
            ("matrix", lambda M: M.bmm(M.ones(2, 2), M.ones(2, 2, 2)), ShapeError, "a batch")])


def _linear(M: Any, *xs: Any) -> Any:
    return M.nn.functional.linear(*xs)


row("linear",
    Sample("matrix", _linear, (normal(2, 3), normal(4, 3)), lambda x, w: x @ w.T),
    Sample("bias", _linear, (normal(2, 3), normal(4, 3), normal(4)), lambda x, w, b: x @ w.T + b),
    Sample("vector", _linear, (normal(3), normal(4, 3), normal(4)), lambda x, w, b: x @ w.T + b),
    Sample("more dimensions", _linear, (normal(2, 2, 3), normal(2, 3), normal(2)),
           lambda x, w, b: x @ w.T + b),
    Sample("empty", _linear, (normal(0, 3), normal(4, 3), normal(4)), lambda x, w, b: x @ w.T + b),
    Sample("weight vector", _linear, (normal(2, 3), normal(3)), lambda x, w: x @ w),
    namespace="nn.functional",
    errors=[("sizes", lambda M: M.nn.functional.linear(M.ones(2, 3), M.ones(4, 5)), ShapeError, "3 and 5"),
            ("bias", lambda M: M.nn.functional.linear(M.ones(2, 3), M.ones(4, 3), M.ones(5)), ShapeError,
             "wanted [4]"),
            ("array", lambda M: M.nn.functional.linear(np.ones(3), M.ones(4, 3)), TypeError, "Tensor")])
