"""Rows of the matmul room."""

from collections.abc import Callable
from typing import Any

import numpy as np

from framework.errors import ShapeError

from ..base import Sample, integers, normal, row


def _product(op: str, label: str, x: tuple, y: tuple, reference: Callable = np.matmul) -> Sample:
    def call(M: Any, a: Any, b: Any) -> Any:
        return getattr(M, op)(a, b)
    return Sample(label, call, (normal(*x), normal(*y, seed=1)), reference)


row("matmul",
    _product("matmul", "vectors", (3,), (3,)),
    _product("matmul", "matrix and vector", (2, 3), (3,)),
    _product("matmul", "vector and matrix", (3,), (3, 2)),
    _product("matmul", "matrices", (2, 3), (3, 4)),
    _product("matmul", "batch and matrix", (2, 2, 3), (3, 2)),
    _product("matmul", "matrix and batch", (2, 3), (2, 3, 2)),
    _product("matmul", "batch and vector", (2, 2, 3), (3,)),
    _product("matmul", "vector and batch", (3,), (2, 3, 2)),
    _product("matmul", "batches that broadcast", (2, 1, 2, 3), (3, 3, 2)),
    _product("matmul", "no rows", (0, 3), (3, 2)),
    _product("matmul", "nothing to sum", (2, 0), (0, 3)),
    _product("matmul", "empty batch", (0, 2, 3), (3, 2)),
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
row("mm", _product("mm", "matrices", (2, 3), (3, 4)), _product("mm", "empty", (0, 3), (3, 0)),
    errors=[("vector", lambda M: M.mm(M.ones(2), M.ones(2, 2)), ShapeError, "a matrix"),
            ("sizes", lambda M: M.mm(M.ones(2, 3), M.ones(2, 3)), ShapeError, "is 3")])
row("bmm", _product("bmm", "batches", (2, 2, 3), (2, 3, 2)), _product("bmm", "empty", (0, 2, 3), (0, 3, 2)),
    errors=[("batches", lambda M: M.bmm(M.ones(2, 1, 1), M.ones(3, 1, 1)), ShapeError, "2 and 3 matrices"),
            ("matrix", lambda M: M.bmm(M.ones(2, 2), M.ones(2, 2, 2)), ShapeError, "a batch")])
row("mv", _product("mv", "plain", (2, 3), (3,)),
    errors=[("matrix", lambda M: M.mv(M.ones(2, 2), M.ones(2, 2)), ShapeError, "a vector")])
for _name in ("dot", "vdot"):
    row(_name, _product(_name, "plain", (4,), (4,)), _product(_name, "empty", (0,), (0,)),
        errors=[("matrix", lambda M: M.dot(M.ones(2, 2), M.ones(2)), ShapeError, "a vector"),
                ("sizes", lambda M: M.dot(M.ones(2), M.ones(3)), ShapeError, "2 elements")])
for _name in ("outer", "ger"):
    row(_name, _product(_name, "plain", (2,), (3,), np.outer),
        _product(_name, "empty", (0,), (3,), np.outer),
        errors=[("matrix", lambda M: M.outer(M.ones(2, 2), M.ones(2)), ShapeError, "a vector")])
row("inner", _product("inner", "vectors", (3,), (3,), np.inner),
    _product("inner", "matrices", (2, 3), (4, 3), np.inner), _product("inner", "numbers", (), (2,), np.inner),
    errors=[("sizes", lambda M: M.inner(M.ones(2), M.ones(3)), ShapeError, "2 and 3")])

# -- sums with a product -------------------------------------------------------------------------


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

# -- linear --------------------------------------------------------------------------------------


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
row("bilinear",
    Sample("plain", lambda M, *xs: M.nn.functional.bilinear(*xs),
           (normal(2, 2), normal(2, 3), normal(2, 2, 3), normal(2)),
           lambda x, y, w, b: np.einsum("ni,oij,nj->no", x, w, y) + b, noncontiguous=False),
    namespace="nn.functional",
    errors=[("sizes", lambda M: M.nn.functional.bilinear(M.ones(1, 2), M.ones(1, 2), M.ones(1, 2, 3)),
             ShapeError, "[1, 2, 3]")])

# -- einsum and kin ------------------------------------------------------------------------------


def _einsum(equation: str, *shapes: tuple, reference: str = "", **more: Any) -> Sample:
    def call(M: Any, *xs: Any) -> Any:
        return M.einsum(equation, *xs)

    def numpy(*xs: Any) -> Any:
        return np.einsum(reference or equation, *xs)
    arrays = tuple(normal(*s, seed=i) for i, s in enumerate(shapes))
    return Sample(equation, call, arrays, numpy, **more)


row("einsum",
    _einsum("ij,jk->ik", (2, 3), (3, 2)), _einsum("ij,jk", (2, 3), (3, 2)),
    _einsum("bij,bjk->bik", (2, 2, 3), (2, 3, 2)), _einsum("i,j->ij", (2,), (3,)),
    _einsum("i,i->", (3,), (3,)), _einsum("ij->ji", (2, 3)), _einsum("ba", (2, 3)),
    _einsum("ij->", (2, 3)), _einsum("ii->i", (3, 3)), _einsum("ii", (3, 3)),
    _einsum("iji->j", (2, 3, 2)), _einsum("iii->i", (2, 2, 2)),
    _einsum("...ij,...jk->...ik", (2, 2, 3), (3, 2)), _einsum("...i,...i", (2, 3), (2, 3)),
    _einsum("ij,ik->i", (2, 3), (2, 2)), _einsum("ij,k->", (2, 2), (3,)),
    _einsum("ijk,k->ji", (2, 2, 3), (3,)), _einsum("i,oij,j->o", (2,), (2, 2, 3), (3,)),
    _einsum("ij,jk,kl->il", (2, 2), (2, 3), (3, 2)), _einsum("ii,ij->j", (2, 2), (2, 3)),
    _einsum("ij,ij->ij", (1, 3), (2, 3)), _einsum("ij,jk->ik", (0, 2), (2, 3)), _einsum("i->", (0,)),
    Sample("sublists", lambda M, x, y: M.einsum(x, [0, 1], y, [1, 2], [0, 2]), (normal(2, 3), normal(3, 2)),
           np.matmul),
    errors=[("sizes", lambda M: M.einsum("ij,jk->ik", M.ones(2, 3), M.ones(4, 2)), ShapeError,
             "index 'j'"),
            ("dimensions", lambda M: M.einsum("ij->i", M.ones(2)), ShapeError, "operand 0"),
            ("number", lambda M: M.einsum("i,j->ij", M.ones(2)), ValueError, "2 operands"),
            ("output", lambda M: M.einsum("i->k", M.ones(2)), ValueError, "output index 'k'"),
            ("letter", lambda M: M.einsum("i?->i", M.ones(2, 2)), ValueError, "letters"),
            ("type", lambda M: M.einsum(3, M.ones(2)), TypeError, "string")])
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
