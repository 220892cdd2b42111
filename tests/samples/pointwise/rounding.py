"""Rows of ops/pointwise/rounding.py."""

import numpy as np

from ..base import Sample, integers, normal, row
from .elementary import unary

A, N = normal(2, 3), integers(2, 3, low=1)
for _name, _ref in (("floor", np.floor), ("ceil", np.ceil), ("trunc", np.trunc)):
    unary(_name, _ref, A, ints=False)
unary("frac", lambda x: x - np.trunc(x), A, ints=False, special=False)
HALVES = np.array([0.5, 1.5, -0.5, 2.5, -2.7])
row("round",
    Sample("halves", lambda M, x: M.round(x), (HALVES,), np.round, grad=False),
    Sample("gradient", lambda M, x: M.round(x), (A,), np.round),
    Sample("decimals", lambda M, x: x.round(decimals=2), (A,), lambda x: np.round(x, 2), grad=False,
           why="so steep that the numerical derivative sees the steps"),
    Sample("in place", lambda M, x: x.clone().round_(), (A,), np.round),
    Sample("int", lambda M, x: M.round(x), (N,), lambda x: x),
    errors=[("not a tensor", lambda M: M.round([1.0]), TypeError, "list"),
            ("not a tensor, decimals", lambda M: M.round([1.0], decimals=1), TypeError, "list"),
            ("bool", lambda M: M.round(M.ones(2).bool()), (TypeError, ValueError), "bool")])
row("round", Sample("method", lambda M, x: x.round(), (A,), np.round), namespace="",
    errors=[("word", lambda M: M.round("x"), TypeError, "str")])
