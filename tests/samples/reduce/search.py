"""Rows of ops/reduce/search.py."""

import numpy as np

from ..base import Sample, row

STEPS = np.array([1.0, 2.0, 2.0, 4.0])
KEYS = np.array([[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]])
BATCH = np.array([[1, 3, 5], [2, 2, 2]])
row("searchsorted",
    Sample("left", lambda M, a, x: M.searchsorted(a, x), (STEPS, KEYS), np.searchsorted, grad=False),
    Sample("right", lambda M, a, x: M.searchsorted(a, x, right=True), (STEPS, KEYS),
           lambda a, x: np.searchsorted(a, x, side="right"), grad=False),
    Sample("side", lambda M, a, x: M.searchsorted(a, x, side="right"), (STEPS, KEYS),
           lambda a, x: np.searchsorted(a, x, side="right"), grad=False),
    Sample("rows", lambda M, a, x: M.searchsorted(a, x), (BATCH, np.array([[0, 3, 9, 4], [1, 2, 3, 2]])),
           lambda a, x: np.stack([np.searchsorted(r, k) for r, k in zip(a, x)])),
    Sample("number", lambda M, a: M.searchsorted(a, 2.0, right=True), (STEPS,), lambda a: 3, grad=False),
    Sample("sorter", lambda M, a, x, s: M.searchsorted(a, x, sorter=s),
           (np.array([5, 1, 3]), np.array([2, 6]), np.array([1, 2, 0])),
           lambda a, x, s: np.searchsorted(a, x, sorter=s)),
    Sample("int32", lambda M, a, x: M.searchsorted(a, x, out_int32=True), (STEPS, KEYS),
           lambda a, x: np.searchsorted(a, x).astype(np.int32), grad=False),
    Sample("no keys", lambda M, a, x: M.searchsorted(a, x), (STEPS, np.zeros(0)),
           lambda a, x: np.zeros(0, int), grad=False),
    errors=[("shapes", lambda M: M.searchsorted(M.ones(2, 3), M.ones(3, 3)), ValueError, "fit"),
            ("side", lambda M: M.searchsorted(M.ones(2), M.ones(2), side="up"), ValueError, "side"),
            ("both", lambda M: M.searchsorted(M.ones(2), 1.0, right=True, side="left"), ValueError,
             "agree"),
            ("sorter", lambda M: M.searchsorted(M.ones(2), 1.0, sorter=M.tensor([0])), ValueError,
             "sorter"),
            ("word", lambda M: M.searchsorted(M.ones(2), "x"), TypeError, "input")])
row("bucketize",
    Sample("left", lambda M, x, a: M.bucketize(x, a), (KEYS, STEPS), lambda x, a: np.digitize(
        x, a, right=True), grad=False),
    Sample("right", lambda M, x, a: M.bucketize(x, a, right=True), (KEYS, STEPS),
           lambda x, a: np.digitize(x, a), grad=False),
    Sample("int32", lambda M, x, a: M.bucketize(x, a, out_int32=True), (KEYS, STEPS),
           lambda x, a: np.digitize(x, a, right=True).astype(np.int32), grad=False),
    Sample("number", lambda M, a: M.bucketize(3.0, a), (STEPS,), lambda a: 3, grad=False),
    errors=[("matrix", lambda M: M.bucketize(M.ones(2), M.ones(2, 2)), ValueError, "vector"),
            ("word", lambda M: M.bucketize("x", M.ones(2)), TypeError, "input")])
