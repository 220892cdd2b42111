"""Rows of ops/shape/broadcast.py."""

import numpy as np

from framework.errors import ShapeError

from ..base import Sample, normal, row

row("expand",
    Sample("grow", lambda M, x: x.expand(2, 3), (normal(2, 1),), lambda x: np.broadcast_to(x, (2, 3))),
    Sample("new dims", lambda M, x: x.expand((2, 2, -1)), (normal(3),),
           lambda x: np.broadcast_to(x, (2, 2, 3))),
    Sample("nothing grows", lambda M, x: x.expand(2, 3), (normal(2, 3),), lambda x: x),
    Sample("to no rows", lambda M, x: x.expand(0, 3), (normal(1, 3),), lambda x: np.zeros((0, 3))),
    Sample("number", lambda M, x: x.expand(2), (np.array(1.5),), lambda x: np.full(2, 1.5)),
    errors=[("size", lambda M: M.ones(2, 3).expand(2, 4), ShapeError, "[2, 3]"),
            ("fewer dims", lambda M: M.ones(2, 3).expand(3), ShapeError, "[2, 3]"),
            ("two sizes", lambda M: M.ones(2, 3).expand(3, 2), ShapeError, "[2, 3]")],
    namespace="")
row("broadcast_to",
    Sample("grow", lambda M, x: M.broadcast_to(x, (2, 3)), (normal(3),),
           lambda x: np.broadcast_to(x, (2, 3))),
    errors=[("size", lambda M: M.broadcast_to(M.ones(2), (3,)), ShapeError, "[2]")])
row("sum_to_size",
    Sample("keep", lambda M, x: x.sum_to_size(1, 3), (normal(2, 3),), lambda x: x.sum(0, keepdims=True)),
    Sample("drop", lambda M, x: x.sum_to_size((3,)), (normal(2, 3),), lambda x: x.sum(0)),
    Sample("all", lambda M, x: x.sum_to_size(()), (normal(2, 3),), lambda x: x.sum(), torch=False,
           why="PyTorch reads the empty tuple as no sizes"),
    Sample("same", lambda M, x: x.sum_to_size(2, 3) * 1, (normal(2, 3),), lambda x: x),
    errors=[("size", lambda M: M.ones(2, 3).sum_to_size(2), ShapeError, "[2]")],
    namespace="")
