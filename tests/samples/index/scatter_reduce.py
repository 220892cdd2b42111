"""Rows of ops/index/scatter_reduce.py."""

from typing import Any

import numpy as np

from ..base import Sample, normal, row

X, SRC = normal(3, 3), normal(3, 4, seed=2)
INDEX = np.array([[0, 2, 2, 0], [1, 1, 1, 1], [0, 0, 2, 1]])
PLACES = np.array([2, 0, 2])
_WAYS = {"sum": np.sum, "prod": np.prod, "mean": np.mean, "amax": np.max, "amin": np.min}


def _ref(way: str, own: bool) -> Any:
    def ref(x: Any, index: Any, src: Any) -> Any:
        out = x.copy()
        for i in range(len(x)):
            for j in range(x.shape[1]):
                came = src[i][index[i] == j].tolist()
                if came:
                    out[i, j] = _WAYS[way]([x[i, j], *came] if own else came)
        return out
    return ref


def _rows(way: str, own: bool) -> Any:
    def ref(x: Any, src: Any) -> Any:
        index = np.broadcast_to(PLACES, (x.shape[1], 3))
        return _ref(way, own)(x.T, index, src.T).T
    return ref


row("scatter_reduce",
    *[Sample(f"{way} {own}", lambda M, x, i, s, way=way, own=own: M.scatter_reduce(
        x, 1, i, s, way, include_self=own), (X, INDEX, SRC), _ref(way, own))
      for way in _WAYS for own in (True, False)],
    Sample("method", lambda M, x, i, s: x.scatter_reduce(1, i, s, reduce="amax"), (X, INDEX, SRC),
           _ref("amax", True)),
    errors=[("reduce", lambda M: M.scatter_reduce(M.ones(1), 0, M.tensor([0]), M.ones(1), "x"), ValueError,
             "amax"),
            ("truth", lambda M: M.scatter_reduce(M.ones(1) > 0, 0, M.tensor([0]), M.ones(1) > 0, "mean"),
             TypeError, "truth values have no mean"),
            ("range", lambda M: M.scatter_reduce(M.ones(1), 0, M.tensor([3]), M.ones(1), "sum"), IndexError,
             "3")])
row("index_reduce",
    *[Sample(f"{way} {own}", lambda M, x, s, way=way, own=own: M.index_reduce(
        x, 0, M.tensor([2, 0, 2]), s, way, include_self=own), (X, SRC[:, :3]), _rows(way, own))
      for way in ("prod", "mean", "amax", "amin") for own in (True, False)],
    errors=[("reduce", lambda M: M.index_reduce(M.ones(1), 0, M.tensor([0]), M.ones(1), "sum"), ValueError,
             "amax"),
            ("truth", lambda M: M.index_reduce(M.ones(1) > 0, 0, M.tensor([0]), M.ones(1) > 0, "mean"),
             TypeError, "truth values have no mean"),
            ("shape", lambda M: M.index_reduce(M.ones(2), 0, M.tensor([0]), M.ones(3), "prod"), ValueError,
             "[3]")])
