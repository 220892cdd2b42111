"""Rows of ops/random/numbers.py: what no seed can change. Distributions: tests/test_random.py."""

from typing import Any

import numpy as np

from ..base import Sample, normal, row

M23 = normal(2, 3)
OFF: dict[str, Any] = {"grad": False}


def unit(values: Any) -> Any:
    """1 where the number is in [0, 1)."""
    return ((values >= 0) & (values < 1)).double()


row("rand",
    Sample("in range", lambda M: unit(M.rand(2, 3)), (), lambda: np.ones((2, 3)), **OFF),
    Sample("tuple, dtype", lambda M: unit(M.rand((4,), dtype=M.float64)), (), lambda: np.ones(4), **OFF),
    Sample("empty", lambda M: M.rand(0, 3), (), lambda: np.zeros((0, 3), np.float32), **OFF),
    errors=[("integer dtype", lambda M: M.rand(2, dtype=M.int64), TypeError, ""),
            ("negative size", lambda M: M.rand(-2), RuntimeError, "negative"),
            ("float size", lambda M: M.rand(2.5), TypeError, "")])
row("randn",
    Sample("finite", lambda M: (M.randn(2, 3).abs() < 20).double(), (), lambda: np.ones((2, 3)), **OFF),
    Sample("empty", lambda M: M.randn(0, 3), (), lambda: np.zeros((0, 3), np.float32), **OFF),
    errors=[("integer dtype", lambda M: M.randn(2, dtype=M.int64), TypeError, "")])
row("randint",
    Sample("one value", lambda M: M.randint(3, 4, (2, 2)), (), lambda: np.full((2, 2), 3), **OFF),
    Sample("high alone", lambda M: M.randint(1, (2,)), (), lambda: np.zeros(2, np.int64), **OFF),
    Sample("negative", lambda M: M.randint(-3, -2, (2,), dtype=M.int8), (),
           lambda: np.full(2, -3, np.int8), **OFF),
    Sample("floating", lambda M: M.randint(5, 6, (2,), dtype=M.float32), (),
           lambda: np.full(2, 5, np.float32), **OFF),
    errors=[("empty range", lambda M: M.randint(3, 3, (2,)), ValueError, ""),
            ("beyond the dtype", lambda M: M.randint(0, 300, (2,), dtype=M.uint8),
             ValueError, "")])
row("randperm",
    Sample("all", lambda M: M.randperm(5).sort()[0], (), lambda: np.arange(5), **OFF),
    Sample("none", lambda M: M.randperm(0), (), lambda: np.arange(0), **OFF),
    Sample("dtype", lambda M: M.randperm(1, dtype=M.int32), (), lambda: np.zeros(1, np.int32), **OFF),
    errors=[("negative", lambda M: M.randperm(-1), ValueError, "")])
row("rand_like",
    Sample("in range", lambda M, x: unit(M.rand_like(x)), (M23,), lambda x: np.ones((2, 3)), **OFF),
    errors=[("no tensor", lambda M: M.rand_like(3), TypeError, "")])
row("randn_like",
    Sample("finite", lambda M, x: (M.randn_like(x).abs() < 20).double(), (M23,),
           lambda x: np.ones((2, 3)), **OFF),
    errors=[("no tensor", lambda M: M.randn_like(3), TypeError, "")])
row("randint_like",
    Sample("one value", lambda M, x: M.randint_like(x, 2, 3), (M23,),
           lambda x: np.full((2, 3), 2.0), **OFF),
    Sample("high alone", lambda M, x: M.randint_like(x, 1), (M23,), lambda x: np.zeros((2, 3)), **OFF),
    errors=[("no tensor", lambda M: M.randint_like(3, 2), TypeError, ""),
            ("empty range", lambda M: M.randint_like(M.ones(2), 2, 2), ValueError, "")])
