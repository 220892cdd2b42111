"""Rows of ops/random/fills.py. What no seed can change: distributions are tested in tests/test_random.py."""

import numpy as np

from ..base import Sample, row
from .draws import COIN, M23, OFF
from .numbers import unit

row("uniform_",
    Sample("one value", lambda M, x: M.zeros_like(x).uniform_(2.0, 2.0), (M23,),
           lambda x: np.full((2, 3), 2.0), **OFF),
    Sample("in range", lambda M, x: unit(M.zeros_like(x).uniform_()), (M23,),
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
