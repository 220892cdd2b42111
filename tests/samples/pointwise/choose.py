"""Rows of ops/pointwise/choose.py."""

from typing import Any

import numpy as np

from framework.errors import ShapeError

from ..base import Sample, normal, row

A = normal(3, 4)


def _diagonal(x: Any, wrap: bool = False) -> Any:
    out = x.copy()
    np.fill_diagonal(out, 2.5, wrap)
    return out


row("fill_diagonal_",
    Sample("wide", lambda M, x: (x * 1.0).fill_diagonal_(2.5), (A,), _diagonal),
    Sample("tall", lambda M, x: (x * 1.0).fill_diagonal_(2.5), (normal(5, 2),), _diagonal),
    Sample("wrapped", lambda M, x: (x * 1.0).fill_diagonal_(2.5, wrap=True), (normal(7, 2),),
           lambda x: _diagonal(x, True)),
    Sample("cube", lambda M, x: (x * 1.0).fill_diagonal_(2.5), (normal(2, 2, 2),), _diagonal),
    namespace="", errors=[
        ("vector", lambda M: M.ones(2).fill_diagonal_(1), ShapeError, "matrix"),
        ("box", lambda M: M.ones(2, 2, 3).fill_diagonal_(1), ShapeError, "one size")])
