"""Rows of ops/index/index.py."""

import numpy as np

from framework.errors import DTypeError, ShapeError

from ..base import normal, row
from . import I2, M34, REPEATS, many, put_reference

row("index_select",
    many("rows", lambda M, x, i: M.index_select(x, 0, i), lambda x, i: x[i], M34, I2),
    many("columns", lambda M, x, i: x.index_select(-1, i), lambda x, i: x[:, i], M34, REPEATS),
    many("0-dim index", lambda M, x, i: x.index_select(0, i), lambda x, i: x[i][None], M34, np.array(1)),
    many("number", lambda M, x, i: x.index_select(0, i), lambda x, i: x, np.array(1.5), np.array([0])),
    many("nothing", lambda M, x, i: x.index_select(0, i), lambda x, i: x[:0], M34, np.zeros(0, np.int64)),
    errors=[("range", lambda M: M.ones(2).index_select(0, M.tensor([2])), IndexError, "index 2"),
            ("negative", lambda M: M.ones(2).index_select(0, M.tensor([-1])), IndexError, "index -1"),
            ("floating", lambda M: M.ones(2).index_select(0, M.ones(1)), DTypeError, "integers"),
            ("dims", lambda M: M.ones(2).index_select(0, M.zeros(1, 1).long()), ShapeError, "one dimension")])
row("index_add",
    many("repeats", lambda M, x, y, i: M.index_add(x, 1, i, y),
          lambda x, y, i: x + np.stack([y[:, 0] + y[:, 2] + y[:, 3], 0 * x[:, 0], y[:, 1], 0 * x[:, 0]], 1),
          M34, normal(3, 4, seed=1), REPEATS),
    many("alpha", lambda M, x, y, i: x.index_add(0, i, y, alpha=2),
          lambda x, y, i: x + 2 * np.stack([y[1], 0 * y[0], y[0]]), M34, normal(2, 4), I2),
    many("ints", lambda M, x, y, i: x.index_add(0, i, y), lambda x, y, i: np.array([3, 0, 1, 0]),
          np.zeros(4, np.int64), np.ones(4, np.int64), REPEATS),
    errors=[("shape", lambda M: M.ones(3).index_add(0, M.tensor([0]), M.ones(2)), ShapeError, "[1]"),
            ("dtype", lambda M: M.ones(3).index_add(0, M.tensor([0]), M.ones(1).long()), DTypeError,
            "int64")])
row("index_copy",
    many("rows", lambda M, x, y, i: M.index_copy(x, 0, i, y), lambda x, y, i: np.stack([y[1], x[1], y[0]]),
          M34, normal(2, 4), I2),
    errors=[("shape", lambda M: M.ones(3).index_copy(0, M.tensor([0]), M.ones(2)), ShapeError, "[1]")])
row("index_fill",
    many("number", lambda M, x, i: M.index_fill(x, 1, i, 2.5),
          lambda x, i: put_reference((slice(None), i), 2.5)(x),
          M34, I2),
    many("tensor", lambda M, x, i, v: x.index_fill(0, i, v), lambda x, i, v: put_reference(i, v)(x), M34,
          I2,
          np.array(1.5)),
    many("a position twice", lambda M, x, i, v: x.index_fill(-1, i, v),
          lambda x, i, v: put_reference((slice(None), i), v)(x), M34, np.array([1, 1, 3]), np.array(1.5)),
    errors=[("range", lambda M: M.ones(3).index_fill(0, M.tensor([3]), 1), IndexError, "index 3")])
row("index_add_",
    many("repeats", lambda M, x, y, i: x.index_add_(1, i, y),
         lambda x, y, i: x + np.stack([y[:, 0] + y[:, 2] + y[:, 3], 0 * x[:, 0], y[:, 1], 0 * x[:, 0]], 1),
         M34, normal(3, 4, seed=1), REPEATS),
    many("alpha", lambda M, x, y, i: x.index_add_(0, i, y, alpha=2),
         lambda x, y, i: x + 2 * np.stack([y[1], 0 * y[0], y[0]]), M34, normal(2, 4), I2),
    many("ints", lambda M, x, y, i: x.index_add_(0, i, y), lambda x, y, i: np.array([3, 0, 1, 0]),
         np.zeros(4, np.int64), np.ones(4, np.int64), REPEATS), namespace="",
    errors=[("shape", lambda M: M.ones(3).index_add_(0, M.tensor([0]), M.ones(2)), ShapeError, "[1]"),
            ("negative", lambda M: M.ones(3).index_add_(0, M.tensor([-1]), M.ones(1)), IndexError,
             "index -1")])
row("index_copy_",
    many("rows", lambda M, x, y, i: x.index_copy_(0, i, y), lambda x, y, i: np.stack([y[1], x[1], y[0]]),
         M34, normal(2, 4), I2), namespace="",
    errors=[("shape", lambda M: M.ones(3).index_copy_(0, M.tensor([0]), M.ones(2)), ShapeError, "[1]"),
            ("negative", lambda M: M.ones(3).index_copy_(0, M.tensor([-1]), M.ones(1)), IndexError,
             "index -1")])
row("index_fill_",
    many("number", lambda M, x, i: x.index_fill_(1, i, 2.5),
         lambda x, i: put_reference((slice(None), i), 2.5)(x), M34, I2),
    many("tensor", lambda M, x, i, v: x.index_fill_(0, i, v), lambda x, i, v: put_reference(i, v)(x), M34, I2,
         np.array(1.5)), namespace="",
    errors=[("range", lambda M: M.ones(3).index_fill_(0, M.tensor([3]), 1), IndexError, "index 3"),
            ("negative", lambda M: M.ones(3).index_fill_(0, M.tensor([-1]), 1), IndexError, "index -1")])
row("take",
    many("positions", lambda M, x, i: M.take(x, i), lambda x, i: x.ravel()[i], M34,
          np.array([[0, 11], [-1, 5]])),
    many("repeats", lambda M, x, i: x.take(i), lambda x, i: x.ravel()[i], M34, REPEATS),
    errors=[("range", lambda M: M.ones(2, 2).take(M.tensor([4])), IndexError, "index 4")])
