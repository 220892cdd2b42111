"""Rows of ops/reduce/unique.py."""

import numpy as np

from ..base import Sample, integers, masks, row

FEW = integers(3, 5, high=4)
ROWS = np.array([[1, 2], [0, 3], [1, 2], [0, 2]])
row("unique",
    Sample("sorted", lambda M, x: M.unique(x), (FEW,), np.unique),
    Sample("method", lambda M, x: x.unique(), (np.array([2.0, 1.0, 2.0]),), np.unique, grad=False),
    Sample("inverse", lambda M, x: M.unique(x, return_inverse=True), (FEW,),
           lambda x: np.unique(x, return_inverse=True)),
    Sample("counts", lambda M, x: M.unique(x, return_counts=True), (FEW,),
           lambda x: np.unique(x, return_counts=True)),
    Sample("all three", lambda M, x: M.unique(x, return_inverse=True, return_counts=True), (FEW,),
           lambda x: np.unique(x, return_inverse=True, return_counts=True)),
    Sample("rows", lambda M, x: M.unique(x, dim=0, return_inverse=True, return_counts=True), (ROWS,),
           lambda x: np.unique(x, return_inverse=True, return_counts=True, axis=0)),
    Sample("columns", lambda M, x: M.unique(x, dim=-1), (ROWS,), lambda x: np.unique(x, axis=1)),
    Sample("bool", lambda M, x: M.unique(x), (masks(5),), np.unique),
    Sample("nan", lambda M, x: M.unique(x), (np.array([np.nan, 1.0, np.nan]),),
           lambda x: np.array([1.0, np.nan, np.nan]), grad=False),
    Sample("0-dim", lambda M, x: M.unique(x), (np.array(3),), np.unique),
    Sample("empty", lambda M, x: M.unique(x), (np.zeros(0, int),), np.unique),
    errors=[("dim", lambda M: M.unique(M.ones(2), dim=1), IndexError, "dim=1"),
            ("not a tensor", lambda M: M.unique([1.0]), TypeError, "must be a Tensor")])
RUNS = np.array([1, 1, 2, 2, 2, 1])
row("unique_consecutive",
    Sample("plain", lambda M, x: M.unique_consecutive(x), (RUNS,), lambda x: np.array([1, 2, 1])),
    Sample("all", lambda M, x: M.unique_consecutive(x, return_inverse=True, return_counts=True), (RUNS,),
           lambda x: (np.array([1, 2, 1]), np.array([0, 0, 1, 1, 1, 2]), np.array([2, 3, 1]))),
    Sample("dim", lambda M, x: M.unique_consecutive(x, dim=0), (np.array([[1, 2], [1, 2], [3, 4]]),),
           lambda x: x[1:]),
    Sample("empty", lambda M, x: M.unique_consecutive(x), (RUNS[:0],), lambda x: x),
    errors=[("list", lambda M: M.unique_consecutive([1]), TypeError, "list")])
