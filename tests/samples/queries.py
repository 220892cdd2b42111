"""Rows of ops/queries.py."""

from typing import Any

import numpy as np

from framework.errors import DTypeError, ShapeError

from .base import Sample, integers, normal, row

ONE, A, B = np.array([[2.5]]), normal(3, 4), normal(1, 4, seed=1)
row("is_nonzero", Sample("yes", lambda M, x: M.tensor(M.is_nonzero(x)), (ONE,), lambda x: np.array(True),
                         grad=False),
    Sample("no", lambda M, x: M.tensor((x - x).is_nonzero()), (ONE,), lambda x: np.array(False), grad=False),
    errors=[("many", lambda M: M.is_nonzero(M.ones(2)), ShapeError, "[2]")])
row("is_signed", Sample("dtypes", lambda M, x, n: M.tensor([
    M.is_signed(x), n.is_signed(), (n > 0).is_signed(), n.to(M.uint8).is_signed()]), (A, integers(2)),
    lambda x, n: np.array([True, True, False, False]), grad=False),
    errors=[("list", lambda M: M.is_signed([1]), TypeError, "list")])
row("is_same_size", Sample("both", lambda M, x, y: M.tensor([M.is_same_size(x, y), x.is_same_size(x)]),
                           (A, B), lambda x, y: np.array([False, True]), grad=False),
    errors=[("list", lambda M: M.is_same_size(M.ones(1), [1]), TypeError, "'other'")])


def _results(M: Any, n: Any) -> Any:
    small, one = M.ones(2).to(M.float16), M.tensor(1.0)
    found = [M.result_type(n, 1.5), M.result_type(n, n > 0), M.result_type(small, one),
             M.result_type(2, True), M.result_type(n, 1j), M.result_type(small, M.ones(1))]
    wanted = [M.float32, M.int64, M.float16, M.int64, M.complex64, M.float32]
    return M.tensor([a is b for a, b in zip(found, wanted)])


row("result_type", Sample("promotion", _results, (integers(2),), lambda n: np.ones(6, bool), grad=False),
    errors=[("string", lambda M: M.result_type(M.ones(1), "x"), TypeError, "str")])
row("type",
    Sample("dtype", lambda M, x: x.type(M.complex64).real, (A,), lambda x: x.astype(np.float32), grad=False),
    Sample("name", lambda M, n: n.type(n.to(M.uint8).type()), (integers(2, 3),),
           lambda n: n.astype(np.uint8)),
    namespace="", errors=[("name", lambda M: M.ones(1).type("Tensor"), DTypeError, "names no type"),
                          ("none", lambda M: M.ones(1).to(M.uint16).type(), DTypeError, "x.dtype")])


def _diagonal(x: Any, wrap: bool = False) -> Any:
    out = x.copy()
    np.fill_diagonal(out, 2.5, wrap)
    return out


row("fill_diagonal_",
    Sample("wide", lambda M, x: (x * 1.0).fill_diagonal_(2.5), (A,), _diagonal),
    Sample("tall", lambda M, x: (x * 1.0).fill_diagonal_(2.5), (normal(5, 2),), _diagonal),
    Sample("wrapped", lambda M, x: (x * 1.0).fill_diagonal_(2.5, wrap=True), (normal(7, 2),),
           lambda x: _diagonal(x, True)),
    Sample("cube", lambda M, x: (x * 1.0).fill_diagonal_(2.5), (normal(2, 2, 2),), _diagonal),
    namespace="", errors=[
        ("vector", lambda M: M.ones(2).fill_diagonal_(1), ShapeError, "matrix"),
        ("box", lambda M: M.ones(2, 2, 3).fill_diagonal_(1), ShapeError, "one size")])
row("apply_", Sample("plain", lambda M, x: x.detach().clone().apply_(lambda v: 2 * v + 1), (A,),
                     lambda x: 2 * x + 1, grad=False),
    namespace="",
    errors=[("recorded", lambda M: M.ones(2, requires_grad=True).apply_(abs), RuntimeError, "detach")])
row("map_", Sample("broadcast", lambda M, x, y: x.detach().clone().map_(y.detach(), min),
                   (A, B), np.minimum, grad=False),
    namespace="", errors=[
        ("shape", lambda M: M.ones(1, 2).map_(M.ones(3, 1), max), ShapeError, "broadcast"),
        ("list", lambda M: M.ones(2).map_([1.0], max), TypeError, "must be a Tensor")])
