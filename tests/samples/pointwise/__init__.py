"""Rows of the rooms in ops/pointwise, and what the files share."""

from typing import Any

import numpy as np

from ..base import Sample, integers, normal, row

FIRST, SECOND, COLUMN = normal(2, 3), normal(2, 3, seed=7), normal(2, 1, seed=3)
COUNTS, FEW = integers(2, 3, low=1), integers(2, 3, low=1, high=5, seed=4)
NAN, OTHER = np.array([np.nan, 1.5, np.nan, -0.5]), np.array([1.0, np.nan, np.nan, 2.0])


def no_list(name: str, *more: Any) -> list:
    """The call of a list must raise."""
    return [("list", lambda M: getattr(M, name)([1.0], *more), TypeError, "list")]


def binary(name: str, ref: Any, a: Any, b: Any, c: Any, *more: Sample, grad: bool = True) -> None:
    """The row of a function of two arguments."""
    def call(M: Any, x: Any, y: Any) -> Any:
        return getattr(M, name)(x, y)
    row(name, Sample("plain", call, (a, b), ref, grad=grad),
        Sample("method", lambda M, x, y: getattr(x, name)(y), (a, b), ref, grad=grad),
        Sample("broadcast", call, (a, c), ref, grad=grad),
        Sample("empty", call, (a[:, :0], c), ref, grad=grad), *more,
        errors=[("string", lambda M: getattr(M, name)(M.ones(2), "a"), TypeError, "str")])


def with_nan(name: str, ref: Any) -> Sample:
    """NaN on the left, on the right, on both sides."""
    return Sample("nan", lambda M, x, y: getattr(M, name)(x, y), (NAN, OTHER), ref, grad=False)
