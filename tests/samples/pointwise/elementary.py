"""Rows of ops/pointwise/elementary.py."""

import math
from typing import Any

import numpy as np

from ..base import Sample, integers, masks, normal, positive, row
from . import COUNTS, SECOND, binary, no_list, with_nan

A, POS = normal(2, 3), positive(2, 3)
V, COLUMN = normal(3, seed=2), normal(2, 1, seed=3)
UNIT = np.array([[0.1, -0.6, 0.85], [-0.3, 0.45, -0.9]])
BEYOND = POS + 1
EMPTY = np.zeros((2, 0))
N, BITS = integers(2, 3, low=1), masks(2, 3)
SPECIAL = np.array([np.nan, np.inf, -np.inf, 1.5])
_erf, _erfc = np.vectorize(math.erf, [float]), np.vectorize(math.erfc, [float])


def unary(name: str, ref: Any, x: np.ndarray, *, alias: str = "", ints: bool = True,
          special: bool = True) -> None:
    """The row of a function of one argument."""
    def call(M: Any, x: Any) -> Any:
        return getattr(M, name)(x)

    def quiet(x: np.ndarray) -> Any:
        with np.errstate(all="ignore"):
            return ref(x)

    samples = [
        Sample("function", call, (x,), ref),
        Sample("method", lambda M, x: getattr(x, name)(), (x,), ref),
        Sample("0-dim", call, (x[0, 0],), ref),
        Sample("empty", call, (EMPTY,), lambda x: x),
        Sample("in place", lambda M, x: getattr(x.clone(), f"{name}_")(), (x,), ref,
               torch=name not in ("asinh", "acosh", "atanh"), why="PyTorch has no derivative of these"),
        Sample("alone", lambda M, x: getattr(M, alias or name)(x), (x,), ref),
    ]
    if special:
        samples.append(Sample("special", call, (SPECIAL,), quiet, grad=False))
    if name in ("floor", "ceil", "trunc"):
        samples.append(Sample("int", call, (N,), lambda x: x))
    if ints:
        samples += [Sample("int", call, (N,), lambda x: quiet(x).astype(np.float32)),
                    Sample("bool", call, (BITS,), lambda x: quiet(x.astype(float)).astype(np.float32))]
    row(name, *samples, errors=[("not a tensor", lambda M: getattr(M, name)([1.0]), TypeError, "list")])


def _sigmoid(x: Any) -> Any:
    return 1 / (1 + np.exp(-x))


def _rsqrt(x: Any) -> Any:
    return 1 / np.sqrt(x)


for _name, _ref, _x, _alias in (
        ("exp", np.exp, A, ""), ("exp2", np.exp2, A, ""), ("expm1", np.expm1, A, ""),
        ("log", np.log, POS, ""), ("log2", np.log2, POS, ""), ("log10", np.log10, POS, ""),
        ("log1p", np.log1p, POS, ""), ("sqrt", np.sqrt, POS, ""), ("rsqrt", _rsqrt, POS, ""),
        ("sin", np.sin, A, ""), ("cos", np.cos, A, ""), ("tan", np.tan, UNIT, ""),
        ("asin", np.arcsin, UNIT, "arcsin"), ("acos", np.arccos, UNIT, "arccos"),
        ("atan", np.arctan, A, "arctan"), ("sinh", np.sinh, A, ""), ("cosh", np.cosh, A, ""),
        ("tanh", np.tanh, A, ""), ("asinh", np.arcsinh, A, "arcsinh"),
        ("acosh", np.arccosh, BEYOND, "arccosh"), ("atanh", np.arctanh, UNIT, "arctanh"),
        ("sigmoid", _sigmoid, A, ""), ("erf", _erf, A, ""), ("erfc", _erfc, A, "")):
    unary(_name, _ref, _x, alias=_alias)
for _name, _factor in (("deg2rad", np.pi / 180), ("rad2deg", 180 / np.pi)):
    def _call(M: Any, x: Any, name: str = _name) -> Any:
        return getattr(M, name)(x)

    def _ref(x: Any, factor: float = _factor) -> Any:
        return x * factor
    row(_name, Sample("plain", _call, (A,), _ref), Sample("0-dim", _call, (A[0, 0],), _ref),
        Sample("int", _call, (COUNTS,), lambda x, f=_ref: f(x).astype(np.float32)), errors=no_list(_name))
binary("hypot", np.hypot, A, SECOND, COLUMN, with_nan("hypot", np.hypot))
binary("logaddexp", np.logaddexp, A, SECOND, COLUMN, Sample(
    "large", lambda M, x, y: M.logaddexp(x, y), (A * 500, SECOND * 500), np.logaddexp,
    torch=False, why="its second derivative there is nan"))
binary("logaddexp2", np.logaddexp2, A, SECOND, COLUMN)
