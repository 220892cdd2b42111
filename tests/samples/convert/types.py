"""Rows of ops/convert/types.py."""

from typing import Any

import numpy as np

from framework.errors import DTypeError

from ..base import Sample, integers, normal, row

A, B = normal(3, 4), normal(1, 4, seed=1)
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
