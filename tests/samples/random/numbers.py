"""Rows of ops/random/numbers.py: what no seed can change. Distributions: tests/test_random.py."""

from typing import Any

import numpy as np

from ..base import Sample, normal, row

M23 = normal(2, 3)
COIN = np.array([[0.0, 1.0, 1.0], [1.0, 0.0, 0.0]])
OFF: dict[str, Any] = {"grad": False}


def _unit(values: Any) -> Any:
    """1 where the number is in [0, 1)."""
    return ((values >= 0) & (values < 1)).double()


row("rand",
    Sample("in range", lambda M: _unit(M.rand(2, 3)), (), lambda: np.ones((2, 3)), **OFF),
    Sample("tuple, dtype", lambda M: _unit(M.rand((4,), dtype=M.float64)), (), lambda: np.ones(4), **OFF),
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
    Sample("in range", lambda M, x: _unit(M.rand_like(x)), (M23,), lambda x: np.ones((2, 3)), **OFF),
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
row("normal",
    Sample("std 0", lambda M, x: M.normal(x, M.zeros_like(x)), (M23,), lambda x: x, **OFF),
    Sample("number std", lambda M, x: M.normal(x, 0.0), (M23,), lambda x: x, **OFF),
    Sample("number mean", lambda M, x: M.normal(2.0, x * 0), (M23,),
           lambda x: np.full((2, 3), 2.0), **OFF),
    Sample("broadcast", lambda M, x: M.normal(x, M.zeros(4, 1, 3, dtype=x.dtype)), (M23,),
           lambda x: np.broadcast_to(x, (4, 2, 3)), **OFF),
    Sample("numbers", lambda M: M.normal(2.0, 0.0, (2,)), (), lambda: np.full(2, 2, np.float32), **OFF),
    errors=[("negative std", lambda M: M.normal(M.ones(2), -1.0), ValueError, "std"),
            ("shapes", lambda M: M.normal(M.ones(2), M.ones(3)), RuntimeError, ""),
            ("integers", lambda M: M.normal(M.tensor([1]), 1.0), RuntimeError, "")])
row("bernoulli",
    Sample("certain", lambda M, x: M.bernoulli(x), (COIN,), lambda x: x, **OFF),
    Sample("p", lambda M, x: M.bernoulli(x, 1.0), (M23,), lambda x: np.ones((2, 3)), **OFF),
    Sample("method", lambda M, x: x.bernoulli(), (COIN,), lambda x: x, **OFF),
    errors=[("above 1", lambda M: M.bernoulli(M.tensor([2.0])), ValueError, ""),
            ("nan", lambda M: M.bernoulli(M.tensor([float("nan")])), ValueError, ""),
            ("integers", lambda M: M.bernoulli(M.tensor([1])), RuntimeError, "")])
row("multinomial",
    Sample("one possible", lambda M, x: M.multinomial(x, 3, replacement=True),
           (np.array([[0.0, 2.0, 0.0], [0.0, 0.0, 1.0]]),),
           lambda x: np.array([[1, 1, 1], [2, 2, 2]]), **OFF),
    Sample("all", lambda M, x: M.multinomial(x, 3).sort()[0], (np.array([0.5, 2.0, 1.0]),),
           lambda x: np.arange(3), **OFF),
    Sample("method", lambda M, x: x.multinomial(1), (np.array([0.0, 2.0]),), lambda x: np.array([1]), **OFF),
    errors=[("too many", lambda M: M.multinomial(M.ones(2), 3), ValueError, ""),
            ("all 0", lambda M: M.multinomial(M.zeros(2), 1), ValueError, ""),
            ("negative", lambda M: M.multinomial(M.tensor([-1.0, 2.0]), 1), ValueError, ""),
            ("none", lambda M: M.multinomial(M.ones(2), 0), ValueError, ""),
            ("3 dims", lambda M: M.multinomial(M.ones(2, 2, 2), 1), RuntimeError, "")])

row("uniform_",
    Sample("one value", lambda M, x: M.zeros_like(x).uniform_(2.0, 2.0), (M23,),
           lambda x: np.full((2, 3), 2.0), **OFF),
    Sample("in range", lambda M, x: _unit(M.zeros_like(x).uniform_()), (M23,),
           lambda x: np.ones((2, 3)), **OFF),
    namespace="",
    errors=[("order", lambda M: M.zeros(2).uniform_(2.0, 1.0), ValueError, "from"),
            ("leaf", lambda M: M.zeros(2, requires_grad=True).uniform_(), RuntimeError, "leaf"),
            ("integers", lambda M: M.zeros(2, dtype=M.int64).uniform_(), RuntimeError, "")])
row("normal_",
    Sample("std 0", lambda M, x: M.zeros_like(x).normal_(3.0, 0.0), (M23,),
           lambda x: np.full((2, 3), 3.0), **OFF),
    namespace="",
    errors=[("negative std", lambda M: M.zeros(2).normal_(0.0, -1.0), ValueError, "std"),
            ("leaf", lambda M: M.zeros(2, requires_grad=True).normal_(), RuntimeError, "leaf")])
row("random_",
    Sample("one value", lambda M, x: M.zeros_like(x).random_(3, 4), (M23,),
           lambda x: np.full((2, 3), 3.0), **OFF),
    Sample("to", lambda M, x: M.ones_like(x).random_(1), (M23,), lambda x: np.zeros((2, 3)), **OFF),
    namespace="",
    errors=[("empty range", lambda M: M.zeros(2).random_(3, 3), ValueError, ""),
            ("beyond", lambda M: M.zeros(2, dtype=M.uint8).random_(0, 300), ValueError, ""),
            ("leaf", lambda M: M.zeros(2, requires_grad=True).random_(), RuntimeError, "leaf")])
row("exponential_",
    Sample("positive", lambda M, x: (M.zeros_like(x).exponential_(2.0) > 0).double(), (M23,),
           lambda x: np.ones((2, 3)), **OFF),
    namespace="",
    errors=[("lambda", lambda M: M.zeros(2).exponential_(0.0), ValueError, "lambd"),
            ("leaf", lambda M: M.zeros(2, requires_grad=True).exponential_(), RuntimeError, "leaf")])
row("cauchy_",
    Sample("finite", lambda M, x: M.zeros_like(x).cauchy_(1.0, 2.0).isfinite(), (M23,),
           lambda x: np.ones((2, 3), bool), **OFF),
    namespace="", errors=[("sigma", lambda M: M.zeros(2).cauchy_(0.0, 0.0), ValueError, "sigma")])
row("log_normal_",
    Sample("positive", lambda M, x: M.zeros_like(x).log_normal_(0.0, 0.5) > 0, (M23,),
           lambda x: np.ones((2, 3), bool), **OFF),
    namespace="", errors=[("std", lambda M: M.zeros(2).log_normal_(0.0, -1.0), ValueError, "std")])
row("geometric_",
    Sample("whole", lambda M, x: (M.zeros_like(x).geometric_(0.3) % 1) == 0, (M23,),
           lambda x: np.ones((2, 3), bool), **OFF),
    namespace="", errors=[("p", lambda M: M.zeros(2).geometric_(1.5), ValueError, "p must be")])
row("bernoulli_",
    Sample("number", lambda M, x: M.zeros_like(x).bernoulli_(1.0), (M23,),
           lambda x: np.ones((2, 3)), **OFF),
    Sample("tensor", lambda M, x: M.zeros_like(x).bernoulli_(x), (COIN,), lambda x: x, **OFF),
    namespace="",
    errors=[("above 1", lambda M: M.zeros(2).bernoulli_(1.5), ValueError, ""),
            ("shape", lambda M: M.zeros(2).bernoulli_(M.ones(3)), RuntimeError, ""),
            ("leaf", lambda M: M.zeros(2, requires_grad=True).bernoulli_(), RuntimeError, "leaf")])
