"""Rows of ops/index/scatter.py."""

from typing import Any

import numpy as np

from framework.errors import DTypeError, ShapeError

from ..base import normal, row
from . import M34, T21, many

G32 = np.array([[0, 3], [2, 2], [1, 0]])  # positions along dim 1 of 3 x 4, one of them twice
G24 = np.array([[0, 1, 2, 1], [0, 0, 1, 1]])


def _loop(x: np.ndarray, index: np.ndarray, src: Any, dim: int, add: bool) -> np.ndarray:
    out = x.copy()
    for at in np.ndindex(*index.shape):
        to = list(at)
        to[dim] = index[at]
        value = src[at] if isinstance(src, np.ndarray) and src.ndim else src
        out[tuple(to)] = out[tuple(to)] + value if add else value
    return out


row("gather",
    many("dim 1", lambda M, x, i: M.gather(x, 1, i), lambda x, i: np.take_along_axis(x, i, 1), M34, G32),
    many("dim 0", lambda M, x, i: x.gather(0, i), lambda x, i: np.take_along_axis(x, i, 0), M34, G24),
    many("smaller", lambda M, x, i: x.gather(-1, i), lambda x, i: np.take_along_axis(x[:2], i, 1), M34, T21),
    many("number", lambda M, x, i: x.gather(0, i), lambda x, i: x, np.array(1.5), np.array(0)),
    many("nothing", lambda M, x, i: x.gather(0, i), lambda x, i: x[:0], M34, np.zeros((0, 4), np.int64)),
    errors=[("dims", lambda M: M.ones(2, 3).gather(0, M.tensor([0])), ShapeError, "as many dimensions"),
            ("size", lambda M: M.ones(2, 3).gather(1, M.zeros(3, 1).long()), ShapeError,
            "larger at dimension 0"),
            ("range", lambda M: M.ones(3).gather(0, M.tensor([3])), IndexError, "index 3"),
            ("dtype", lambda M: M.ones(3).gather(0, M.ones(1)), DTypeError, "integers")])
row("take_along_dim",
    many("dim", lambda M, x, i: M.take_along_dim(x, i, 1), lambda x, i: np.take_along_axis(x, i, 1), M34,
          G32),
    many("negative", lambda M, x, i: M.take_along_dim(x, i - 3, 1),
          lambda x, i: np.take_along_axis(x, i - 3, 1), M34, G32),
    many("broadcast", lambda M, x, i: x.take_along_dim(i, 1), lambda x, i: x[:, i[0]], M34, G32[:1]),
    many("flat", lambda M, x, i: x.take_along_dim(i), lambda x, i: x.ravel()[i.ravel()], M34, G32),
    errors=[("dims", lambda M: M.ones(2, 3).take_along_dim(M.tensor([0]), 0), ShapeError, "as many")])
ONCE = np.array([[0, 3], [2, 1], [1, 0]])
row("scatter",
    many("tensor", lambda M, x, i, y: M.scatter(x, 1, i, y), lambda x, i, y: _loop(x, i, y, 1, False), M34,
          ONCE,
          normal(3, 2)),
    many("larger source", lambda M, x, i, y: x.scatter(0, i, y), lambda x, i, y: _loop(x, i, y, 0, False),
          M34,
          np.array([[2, 0]]), normal(2, 3), torch=False, why="PyTorch's gradient fails there"),
    many("number", lambda M, x, i: x.scatter(1, i, 2.5), lambda x, i: _loop(x, i, 2.5, 1, False), M34, G32),
    many("value", lambda M, x, i: x.scatter(1, i, value=2.5), lambda x, i: _loop(x, i, 2.5, 1, False), M34,
          G32),
    many("add", lambda M, x, i, y: x.scatter(1, i, y, reduce="add"),
          lambda x, i, y: _loop(x, i, y, 1, True), M34,
          G32, normal(3, 2), torch=False, why="PyTorch has no derivative for reduce"),
    many("add number", lambda M, x, i: x.scatter(1, i, 2.0, reduce="add"),
          lambda x, i: _loop(x, i, 2.0, 1, True),
          M34, G32, grad=False),
    many("multiply", lambda M, x, i: x.scatter(1, i, 2.0, reduce="multiply"),
          lambda x, i: x * 2.0 ** (np.arange(4) == G32[..., None]).sum(1), M34, G32, grad=False),
    errors=[("range", lambda M: M.ones(3).scatter(0, M.tensor([3]), 1.0), IndexError, "index 3"),
            ("dtype", lambda M: M.ones(3).scatter(0, M.tensor([0]), M.ones(1).long()), DTypeError, "int64"),
            ("source", lambda M: M.ones(3).scatter(0, M.tensor([0, 1]), M.ones(1)), ShapeError, "smaller"),
            ("reduce", lambda M: M.ones(3).scatter(0, M.tensor([0]), 1.0, reduce="max"), ValueError, "'max'"),
            ("both", lambda M: M.ones(3).scatter(0, M.tensor([0])), TypeError, "exactly one")])
row("scatter_add",
    many("repeats", lambda M, x, i, y: M.scatter_add(x, 1, i, y), lambda x, i, y: _loop(x, i, y, 1, True),
          M34, G32,
          normal(3, 2)),
    many("dim 0", lambda M, x, i, y: x.scatter_add(0, i, y), lambda x, i, y: _loop(x, i, y, 0, True), M34,
          G24,
          normal(2, 4)),
    errors=[("range", lambda M: M.ones(3).scatter_add(0, M.tensor([-1]), M.ones(1)), IndexError, "index -1")])
