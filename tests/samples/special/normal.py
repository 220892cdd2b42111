"""Rows of ops/special/normal.py."""

import math
from typing import Any

import numpy as np

from ..base import Sample, normal
from . import unary

A = normal(2, 3)
UNIT = np.array([[0.1, -0.6, 0.85], [-0.3, 0.45, -0.9]])
_erf, _erfc = np.vectorize(math.erf, [float]), np.vectorize(math.erfc, [float])


def _solve(f: Any, low: float, high: float) -> Any:
    """The inverse of a rising function, by bisection."""
    def inverse(y: Any) -> Any:
        a, b = np.full(np.shape(y), low), np.full(np.shape(y), high)
        for _ in range(100):
            middle = 0.5 * (a + b)
            below = f(middle) < y
            a, b = np.where(below, middle, a), np.where(below, b, middle)
        return 0.5 * (a + b)
    return inverse


def _ndtr(x: Any) -> Any:
    return 0.5 * _erfc(-x / math.sqrt(2))


unary("erfinv", _solve(_erf, -6, 6), UNIT, "framework",
      Sample("ends", lambda M, x: M.erfinv(x), (np.array([-1.0, 1.0, 1.5, 0.0]),),
             lambda x: np.array([-np.inf, np.inf, np.nan, 0]), grad=False))
unary("erfcx", lambda x: np.exp(x * x) * _erfc(x), A, "special",
      Sample("large", lambda M, x: M.special.erfcx(x), (np.array([30.0, 1e3]),),
             lambda x: 1 / (np.sqrt(np.pi) * x) * (1 - 0.5 / x ** 2 + 0.75 / x ** 4), grad=False))
unary("ndtr", _ndtr, A, "special")
unary("ndtri", _solve(_ndtr, -9, 9), np.abs(UNIT), "special",
      Sample("ends", lambda M, x: M.special.ndtri(x), (np.array([0.0, 1.0, -1.0, 0.5]),),
             lambda x: np.array([-np.inf, np.inf, np.nan, 0]), grad=False))
unary("log_ndtr", lambda x: np.log(_ndtr(x)), A * 2, "special")
