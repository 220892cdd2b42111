"""Rows of ops/index/masks.py."""

import numpy as np

from framework.errors import DTypeError, ShapeError

from ..base import normal, row
from . import M34, MASK3, MASK34, V4, many, put_reference

row("masked_select",
    many("same shape", lambda M, x, m: M.masked_select(x, m), lambda x, m: x[m], M34, MASK34),
    many("mask grows", lambda M, x, m: x.masked_select(m), lambda x, m: x[np.broadcast_to(m, (3, 4))], M34,
          MASK3[:, None]),
    many("tensor grows", lambda M, x, m: x.masked_select(m), lambda x, m: np.broadcast_to(x, (3, 4))[m], V4,
          MASK34),
    errors=[("dtype", lambda M: M.ones(2).masked_select(M.ones(2)), DTypeError, "bool"),
            ("shape", lambda M: M.ones(2).masked_select(M.ones(3).bool()), ShapeError, "broadcast")])
row("masked_scatter",
    many("first ones", lambda M, x, m, y: M.masked_scatter(x, m, y), lambda x, m, y: put_reference(
        m, y.ravel()[:m.sum()])(x), M34, MASK34, normal(4, 3)),
    many("mask grows", lambda M, x, m, y: x.masked_scatter(m, y),
          lambda x, m, y: np.stack([y[:4], x[1], y[4:8]]),
          M34, MASK3[:, None], normal(9)),
    errors=[("few", lambda M: M.ones(2).masked_scatter(M.ones(2).bool(), M.ones(1)), ShapeError,
    "chooses 2")])
