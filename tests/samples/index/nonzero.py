"""Rows of ops/index/nonzero.py."""

import numpy as np

from ..base import Sample, integers, row
from . import I2, MASK34, many, one

row("nonzero",
    one("rows", lambda M, x: M.nonzero(x), lambda x: np.argwhere(x), MASK34),
    one("tuple", lambda M, x: x.nonzero(as_tuple=True), lambda x: np.nonzero(x), integers(3, 4, high=2)),
    one("number", lambda M, x: x.nonzero(), lambda x: np.zeros((1, 0), np.int64), np.array(3)))
row("nonzero_static",
    Sample("fewer and more", lambda M, x: (M.nonzero_static(x, size=2),
                                           x.nonzero_static(size=14, fill_value=7)),
           (MASK34,), lambda x: (np.argwhere(x)[:2], np.concatenate(
               [np.argwhere(x), np.full((14 - int(x.sum()), 2), 7)])[:14]), grad=False),
    errors=[("size", lambda M: M.nonzero_static(M.ones(2), size=-1), ValueError, "-1")])
row("unravel_index",
    Sample("three dims", lambda M, x: M.unravel_index(x, (3, 4, 5)), (integers(2, 3, high=60),),
           lambda x: np.unravel_index(x, (3, 4, 5)), grad=False),
    errors=[("outside", lambda M: M.unravel_index(M.tensor([6]), (2, 3)), ValueError, "6"),
            ("floats", lambda M: M.unravel_index(M.ones(1), (2, 3)), (TypeError, ValueError), "integer")])
row("argwhere", one("rows", lambda M, x: M.argwhere(x), lambda x: np.argwhere(x), MASK34))
row("isin",
    many("tensors", lambda M, x, y: M.isin(x, y), lambda x, y: np.isin(x, y), integers(3, 4), I2),
    many("number", lambda M, x: M.isin(x, 2, invert=True), lambda x: x != 2, integers(3, 4)),
    many("of a number", lambda M, x: M.isin(2, x), lambda x: np.array((x == 2).any()), integers(3, 4)),
    errors=[("numbers", lambda M: M.isin(1, 2), TypeError, "both are numbers")])
