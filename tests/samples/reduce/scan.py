"""Rows of ops/reduce/scan.py."""

from typing import Any

import numpy as np

from ..base import Sample, integers, masks, normal, row

M23, M234 = normal(2, 3), normal(2, 3, 4)
EMPTY = np.zeros((2, 0, 3))
ZEROS = np.array([[1.5, 0.0, 2.0, 0.5], [0.0, -1.0, 0.0, 2.0], [0.5, 2.0, -3.0, 0.0]])
TIES = np.array([[1.0, 1.0, 0.5, 2.0, 2.0], [3.0, 2.0, 3.0, 1.0, 3.0]])


def _errors(name: str) -> list:
    return [("dim out of range", lambda M: getattr(M, name)(M.ones(2), 1), IndexError, "dim=1"),
            ("not a tensor", lambda M: getattr(M, name)([1.0], 0), TypeError, "must be a Tensor"),
            ("two dims", lambda M: getattr(M, name)(M.ones(2, 2), (0, 1)), TypeError, "an int")]


def _scan(name: str, f: Any, *more: Sample) -> None:
    row(name,
        Sample("dim 0", lambda M, x: getattr(M, name)(x, 0), (M234,), lambda x: f(x, 0)),
        Sample("dim 1", lambda M, x: getattr(M, name)(x, dim=1), (M234,), lambda x: f(x, 1)),
        Sample("last", lambda M, x: getattr(x, name)(-1), (M234,), lambda x: f(x, -1)),
        Sample("0-dim", lambda M, x: getattr(M, name)(x, 0), (np.array(2.0),), lambda x: x),
        Sample("one", lambda M, x: getattr(M, name)(x, 0), (normal(1, 2),), lambda x: x),
        Sample("empty", lambda M, x: getattr(M, name)(x, 1), (EMPTY,), lambda x: x),
        Sample("empty-other", lambda M, x: getattr(M, name)(x, 0), (EMPTY,), lambda x: x),
        *more, errors=_errors(name))


def _typed(name: str, f: Any) -> list[Sample]:
    return [
        Sample("int", lambda M, x: getattr(M, name)(x, 0), (integers(3, 4),), lambda x: f(x, axis=0)),
        Sample("bool", lambda M, x: getattr(M, name)(x, 0), (masks(5),),
               lambda x: f(x.astype(int), axis=0)),
        Sample("dtype", lambda M, x: getattr(M, name)(x, 0, dtype=M.float64), (integers(4),),
               lambda x: f(x.astype(float), axis=0)),
    ]


_scan("cumsum", np.cumsum, *_typed("cumsum", np.cumsum))
_scan("cumprod", np.cumprod, *_typed("cumprod", np.cumprod),
      Sample("zeros", lambda M, x: M.cumprod(x, 1), (ZEROS,), lambda x: np.cumprod(x, 1)),
      Sample("zeros in columns", lambda M, x: M.cumprod(x, 0), (ZEROS,), lambda x: np.cumprod(x, 0)),
      Sample("only zeros", lambda M, x: M.cumprod(x, 0), (np.zeros(3),), lambda x: x))


def _running(f: Any) -> Any:
    """(running extreme, index of the last element equal to it) along an axis."""
    def reference(x: np.ndarray, axis: int) -> tuple:
        values = f.accumulate(x, axis=axis)
        at = np.apply_along_axis(lambda v: np.array(
            [max(j for j in range(i + 1) if v[j] == f.reduce(v[:i + 1])) for i in range(len(v))]),
            axis, x)
        return values, at
    return reference


def _extreme(name: str, f: Any) -> None:
    both = _running(f)
    row(name,
        Sample("dim 0", lambda M, x: getattr(M, name)(x, 0), (M234,), lambda x: both(x, 0)),
        Sample("dim 1", lambda M, x: getattr(M, name)(x, dim=1), (M234,), lambda x: both(x, 1)),
        Sample("last", lambda M, x: getattr(x, name)(-1), (normal(2, 7),), lambda x: both(x, -1)),
        Sample("named", lambda M, x: getattr(M, name)(x, 1).values, (normal(2, 7),),
               lambda x: f.accumulate(x, axis=1)),
        Sample("ties", lambda M, x: getattr(M, name)(x, 1), (TIES,), lambda x: both(x, 1), order=1,
               grad=False, why="not differentiable where elements are equal"),
        Sample("nan", lambda M, x: getattr(M, name)(x, 0), (np.array([1.0, np.nan, 2.0, np.nan]),),
               lambda x: (np.array([1.0, np.nan, np.nan, np.nan]), np.array([0, 1, 1, 3])),
               grad=False),
        Sample("int", lambda M, x: getattr(M, name)(x, 1), (integers(2, 6),), lambda x: both(x, 1)),
        Sample("0-dim", lambda M, x: getattr(M, name)(x, 0), (np.array(2.0),),
               lambda x: (x, np.array(0))),
        Sample("empty", lambda M, x: getattr(M, name)(x, 1), (EMPTY,), lambda x: (x, x.astype(int))),
        errors=_errors(name))


_extreme("cummax", np.maximum)
_extreme("cummin", np.minimum)


def _lcse(x: np.ndarray, axis: int) -> np.ndarray:
    return np.logaddexp.accumulate(x, axis=axis)


_scan("logcumsumexp", _lcse,
      Sample("far apart", lambda M, x: M.logcumsumexp(x, 1),
             (np.array([[-500.0, 0.0, 500.0, 499.0], [3.0, 2.0, -700.0, 1.0]]),),
             lambda x: _lcse(x, 1)),
      Sample("-inf first", lambda M, x: M.logcumsumexp(x, 0), (np.array([-np.inf, 0.0, 1.0]),),
             lambda x: _lcse(x, 0), grad=False))
row("diff",
    Sample("vector", lambda M, x: M.diff(x), (normal(5),), np.diff),
    Sample("method", lambda M, x: x.diff(dim=0), (M234,), lambda x: np.diff(x, axis=0)),
    Sample("twice", lambda M, x: M.diff(x, 2, 1), (M234,), lambda x: np.diff(x, 2, 1)),
    Sample("n 0", lambda M, x: M.diff(x, 0), (M23,), lambda x: x),
    Sample("more than there are", lambda M, x: M.diff(x, n=5), (M23,), lambda x: np.zeros((2, 0))),
    Sample("ends", lambda M, x, a, b: M.diff(x, dim=1, prepend=a, append=b),
           (M23, normal(2, 1), normal(2, 2)),
           lambda x, a, b: np.diff(np.concatenate([a, x, b], 1), axis=1)),
    Sample("one end", lambda M, x, b: M.diff(x, append=b), (normal(4), normal(1, seed=2)),
           lambda x, b: np.diff(np.concatenate([x, b]))),
    Sample("int", lambda M, x: M.diff(x, dim=0), (integers(3, 4),), lambda x: np.diff(x, axis=0)),
    Sample("bool", lambda M, x: M.diff(x), (masks(6),), np.diff),
    Sample("empty", lambda M, x: M.diff(x, dim=1), (EMPTY,), lambda x: x),
    errors=[("0-dim", lambda M: M.diff(M.tensor(1.0)), ValueError, "dimension"),
            ("negative n", lambda M: M.diff(M.ones(2), -1), ValueError, "n must not"),
            ("prepend", lambda M: M.diff(M.ones(2, 2), prepend=M.ones(3, 1)), ValueError, "prepend"),
            ("dim out of range", lambda M: M.diff(M.ones(2), dim=1), IndexError, "dim=1")])
