"""Rows of ops/linalg/distances.py."""

from typing import Any

import numpy as np

from ..base import Sample, normal, row

Y, X = normal(3, 4), np.array([0.0, 0.5, 1.5, 3.0])


def _distances(p: float) -> Any:
    def ref(a: Any, b: Any) -> Any:
        return np.linalg.norm(a[..., :, None, :] - b[..., None, :, :], ord=p, axis=-1)
    return ref


row("dist", *[Sample(f"p={p}", lambda M, x, y, p=p: M.dist(x, y, p), (Y, Y[::-1] * 2),
                     lambda x, y, p=p: np.linalg.norm((x - y).ravel(), ord=p))
              for p in (1, 2, 3.0, float("inf"))],
    Sample("broadcast", lambda M, x, y: x.dist(y), (Y, X), lambda x, y: np.linalg.norm((x - y).ravel())),
    errors=[("list", lambda M: M.dist(M.ones(2), [1.0]), TypeError, "list")])
row("cdist", *[Sample(f"p={p}", lambda M, x, y, p=p: M.cdist(x, y, p), (Y, normal(2, 4, seed=5)),
                      _distances(p)) for p in (1.0, 2.0, 3.0, float("inf"))],
    Sample("batch", lambda M, x, y: M.cdist(x, y), (normal(2, 2, 3), normal(2, 3, seed=5)), _distances(2.0)),
    errors=[("sizes", lambda M: M.cdist(M.ones(2, 3), M.ones(2, 4)), ValueError, "[2, 3]")])
POINTS = normal(4, 3)


def _pairs(x: Any, p: float) -> Any:
    return np.array([np.linalg.norm(x[i] - x[j], p) for i in range(len(x)) for j in range(i + 1, len(x))])


row("pdist",
    *[Sample(f"p {p}", lambda M, x, p=p: M.nn.functional.pdist(x, p), (POINTS,), lambda x, p=p: _pairs(x, p),
             torch=p == 2 or p == np.inf, why="PyTorch has no second derivative of pdist but where it is 0")
      for p in (1.0, 2.0, 3.0, np.inf)],
    Sample("one point", lambda M, x: M.nn.functional.pdist(x), (POINTS[:1],), lambda x: np.zeros(0)),
    namespace="nn.functional", errors=[
        ("vector", lambda M: M.nn.functional.pdist(M.ones(3)), ValueError, "matrix"),
        ("p", lambda M: M.nn.functional.pdist(M.ones(2, 2), -1.0), ValueError, "negative")])
