"""Rows of ops/losses/linear.py."""

from typing import Any

import numpy as np

from framework.errors import ShapeError

from ..base import Sample, normal, row

X, W, B = normal(4, 3), normal(5, 3), normal(5)
CLASSES = np.array([0, 4, 2, 4])
P = np.abs(normal(4, 5))
DEEP, DEEP_CLASSES = normal(5, 2, 3), np.array([[0, 1], [4, 2], [3, 3], [1, 0]])

REDUCED = {"none": lambda a: a, "sum": np.sum, "mean": lambda a: a.sum() / 3}


def logs(scores: Any, axis: int = 1) -> Any:
    return scores - np.log(np.exp(scores).sum(axis, keepdims=True))


row("linear_cross_entropy",
    Sample("classes", lambda M, x, w, y: M.nn.functional.linear_cross_entropy(x, w, y), (X, W, CLASSES),
           lambda x, w, y: -logs(x @ w.T)[np.arange(4), y].mean()),
    Sample("bias", lambda M, x, w, y, b: M.nn.functional.linear_cross_entropy(
        x, w, y, linear_bias=b, reduction="none"), (X, W, CLASSES, B),
        lambda x, w, y, b: -logs(x @ w.T + b)[np.arange(4), y]),
    Sample("ignored", lambda M, x, w, y: M.nn.functional.linear_cross_entropy(x, w, y, ignore_index=4),
           (X, W, CLASSES), lambda x, w, y: -logs(x @ w.T)[[0, 2], y[[0, 2]]].mean()),
    *[Sample(f"chunks {reduction} {settings}", lambda M, x, w, y, b, r=reduction, s=settings:
             M.nn.functional.linear_cross_entropy(x, w, y, linear_bias=b, reduction=r, ignore_index=2,
                                                  options=M.nn.LinearCrossEntropyOptions(**s)),
             (X, W, CLASSES, B),
             lambda x, w, y, b, r=reduction: REDUCED[r](
                 np.where(y == 2, 0, -logs(x @ w.T + b)[np.arange(4), y])), torch=reduction != "none",
             why="PyTorch's has no second derivative")
      for reduction, settings in (("mean", {"batch_chunk_size": 3}), ("sum", {"chunking_method": None}),
                                  ("none", {"batch_chunk_size": 1}))],
    Sample("probabilities", lambda M, x, w, p: M.nn.functional.linear_cross_entropy(x, w, p), (X, W, P),
           lambda x, w, p: -(logs(x @ w.T) * p).sum(1).mean()),
    Sample("deep", lambda M, x, w, y: M.nn.functional.linear_cross_entropy(x, w, y), (X, DEEP, DEEP_CLASSES),
           lambda x, w, y: -np.take_along_axis(logs(np.einsum("nf,cdf->ncd", x, w)), y[:, None], 1).mean()),
    namespace="nn.functional", errors=[
        ("batch", lambda M: M.nn.functional.linear_cross_entropy(M.ones(3), M.ones(5, 2, 3), M.tensor(1)),
         ShapeError, "(n, features)"),
        ("chunk size", lambda M: M.nn.LinearCrossEntropyOptions(batch_chunk_size=0), ValueError, "positive"),
        ("chunking", lambda M: M.nn.LinearCrossEntropyOptions(chunking_method="wide"), ValueError, "'auto'"),
        ("ignored", lambda M: M.nn.functional.linear_cross_entropy(
            M.ones(2, 3), M.ones(5, 3), M.ones(2, 5), ignore_index=1), ValueError, "probabilities")])
