"""Rows of unique_consecutive."""


import numpy as np

from ..base import Sample, row

RUNS = np.array([1, 1, 2, 2, 2, 1])
row("unique_consecutive",
    Sample("plain", lambda M, x: M.unique_consecutive(x), (RUNS,), lambda x: np.array([1, 2, 1])),
    Sample("all", lambda M, x: M.unique_consecutive(x, return_inverse=True, return_counts=True), (RUNS,),
           lambda x: (np.array([1, 2, 1]), np.array([0, 0, 1, 1, 1, 2]), np.array([2, 3, 1]))),
    Sample("dim", lambda M, x: M.unique_consecutive(x, dim=0), (np.array([[1, 2], [1, 2], [3, 4]]),),
           lambda x: x[1:]),
    Sample("empty", lambda M, x: M.unique_consecutive(x), (RUNS[:0],), lambda x: x),
    errors=[("list", lambda M: M.unique_consecutive([1]), TypeError, "list")])
