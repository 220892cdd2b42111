"""Rows of ops/linalg/norm.py."""

import numpy as np

from ..base import Sample, normal, row
from ..reduce.vector_norm import norm

M23, M234 = normal(2, 3), normal(2, 3, 4)
ZERO_ROW = np.array([[0.0, 0.0, 0.0], [3.0, 0.0, -4.0]])
row("norm",
    Sample("default", lambda M, x: M.norm(x), (M234,), lambda x: norm(x, 2)),
    Sample("method", lambda M, x: (x * x).norm(1, 0), (M23,), lambda x: norm(x * x, 1, 0)),
    Sample("fro", lambda M, x: M.norm(x, "fro", dim=(0, 1), keepdim=True), (M234,),
           lambda x: norm(x, 2, (0, 1), True)),
    Sample("inf", lambda M, x: M.norm(x * x, p=float("inf"), dim=-1), (M234,),
           lambda x: norm(x * x, np.inf, -1)),
    Sample("nuc", lambda M, x: M.norm(x, "nuc"), (M23,), lambda x: np.linalg.norm(x, "nuc")),
    Sample("nuc dims", lambda M, x: x.norm("nuc", (0, 2), keepdim=True), (M234,),
           lambda x: np.linalg.norm(x, "nuc", (0, 2), keepdims=True)),
    Sample("0", lambda M, x: M.norm(x, 0), (ZERO_ROW,), lambda x: 2.0, grad=False, why="a step at 0"),
    Sample("dtype", lambda M, x: M.norm(x, dtype=M.float64), (M23,),
           lambda x: norm(x, 2)),
    errors=[("int", lambda M: M.norm(M.tensor([1, 2])), TypeError, "floating"),
            ("word", lambda M: M.norm(M.ones(2, 2), "two"), ValueError, "'nuc'"),
            ("nuc of a stack", lambda M: M.norm(M.ones(2, 2, 2), "nuc"), ValueError, "two dimensions in dim"),
            ("dim out of range", lambda M: M.norm(M.ones(2), 2, 1), IndexError, "dim=1")])
