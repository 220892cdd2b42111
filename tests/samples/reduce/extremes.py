"""Rows of ops/reduce/extremes.py."""

from typing import Any

import numpy as np

from ..base import Sample, integers, masks, normal, row
from .sums import dim_errors, over_dims

M23, M234 = normal(2, 3), normal(2, 3, 4)
TIES = np.array([[1.0, 3.0, 3.0], [2.0, 2.0, -1.0]])
GAPS = np.where(masks(3, 4), np.nan, normal(3, 4))
EMPTY = np.zeros((2, 0, 3))


def _empty_error(name: str) -> list:
    return [("empty", lambda M: getattr(M, name)(M.zeros(0, 3)), ValueError, "empty"),
            ("empty dim", lambda M: getattr(M, name)(M.zeros(0, 3), dim=0), ValueError, "empty")]


def _extreme(name: str, f: Any) -> None:
    row(name, *over_dims(name, f),
        Sample("ties", lambda M, x: getattr(M, name)(x, dim=1), (TIES,), lambda x: f(x, axis=1),
               order=1, why="not differentiable where elements are equal"),
        Sample("int", lambda M, x: getattr(M, name)(x, dim=0), (integers(3, 4),),
               lambda x: f(x, axis=0)),
        Sample("empty-other", lambda M, x: getattr(M, name)(x, dim=0), (EMPTY,),
               lambda x: np.zeros((0, 3))),
        Sample("nan", lambda M, x: getattr(M, name)(x, dim=1), (GAPS,), lambda x: f(x, axis=1),
               grad=False),
        errors=[*dim_errors(name), *_empty_error(name)])


_extreme("amax", np.max)
_extreme("amin", np.min)


def _chosen(name: str, f: Any, arg: Any, pair: Any) -> None:
    def both(x: np.ndarray, axis: int, keep: bool = False) -> tuple:
        return f(x, axis=axis, keepdims=keep), arg(x, axis=axis, keepdims=keep)

    row(name,
        Sample("all", lambda M, x: getattr(M, name)(x), (M234,), f),
        Sample("method", lambda M, x: getattr(x, name)(), (M23,), f),
        Sample("dim", lambda M, x: getattr(M, name)(x, 1), (M234,), lambda x: both(x, 1)),
        Sample("keepdim", lambda M, x: getattr(x, name)(dim=-1, keepdim=True), (M234,),
               lambda x: both(x, -1, True)),
        Sample("named", lambda M, x: getattr(M, name)(x, 0).values, (M23,), lambda x: f(x, axis=0)),
        Sample("ties go to the index", lambda M, x: getattr(M, name)(x, 1), (TIES,),
               lambda x: both(x, 1), order=1, torch=False,
               grad=False, why="which of equal elements is not promised by PyTorch"),
        Sample("ties share", lambda M, x: getattr(M, name)(x), (TIES,), f, grad=False),
        Sample("two tensors", lambda M, x, y: getattr(M, name)(x, y), (M23, normal(3, seed=3)), pair),
        Sample("0-dim", lambda M, x: getattr(M, name)(x, 0), (np.array(2.0),),
               lambda x: (x, np.array(0))),
        Sample("nan wins", lambda M, x: getattr(M, name)(x, 1), (GAPS,), lambda x: both(x, 1),
               grad=False),
        Sample("int", lambda M, x: getattr(M, name)(x, 0).values, (integers(3, 4),),
               lambda x: f(x, axis=0)),
        Sample("empty-other", lambda M, x: getattr(M, name)(x, 0), (EMPTY,),
               lambda x: (np.zeros((0, 3)), np.zeros((0, 3), int))),
        errors=[("dim out of range", lambda M: getattr(M, name)(M.ones(2), 1), IndexError, "dim=1"),
                ("not a tensor", lambda M: getattr(M, name)(2.0, 0), TypeError, "must be a Tensor"),
                *_empty_error(name)])


_chosen("max", np.max, np.argmax, np.maximum)
_chosen("min", np.min, np.argmin, np.minimum)


def _index(name: str, f: Any) -> None:
    row(name,
        Sample("all", lambda M, x: getattr(M, name)(x), (M234,), f),
        Sample("method", lambda M, x: getattr(x, name)(1), (M234,), lambda x: f(x, axis=1)),
        Sample("keepdim", lambda M, x: getattr(M, name)(x, dim=-1, keepdim=True), (M234,),
               lambda x: f(x, axis=-1, keepdims=True)),
        Sample("all-keepdim", lambda M, x: getattr(M, name)(x, keepdim=True), (M23,),
               lambda x: f(x, keepdims=True)),
        Sample("0-dim", lambda M, x: getattr(M, name)(x, 0), (np.array(2.0),), lambda x: 0),
        Sample("int", lambda M, x: getattr(M, name)(x), (np.array([2, 5, 1]),), f),
        errors=[("dim out of range", lambda M: getattr(M, name)(M.ones(2), 1), IndexError, "dim=1"),
                ("not a tensor", lambda M: getattr(M, name)([1.0]), TypeError, "must be a Tensor"),
                *_empty_error(name)])


_index("argmax", np.argmax)
_index("argmin", np.argmin)
row("aminmax",
    Sample("all", lambda M, x: M.aminmax(x), (M234,), lambda x: (x.min(), x.max())),
    Sample("dim", lambda M, x: M.aminmax(x, dim=1), (M234,), lambda x: (x.min(1), x.max(1))),
    Sample("keepdim", lambda M, x: x.aminmax(dim=-1, keepdim=True), (M234,),
           lambda x: (x.min(-1, keepdims=True), x.max(-1, keepdims=True))),
    Sample("named", lambda M, x: M.aminmax(x).max, (M23,), np.max),
    Sample("0-dim", lambda M, x: M.aminmax(x), (np.array(2.0),), lambda x: (x, x)),
    Sample("int", lambda M, x: M.aminmax(x, dim=0), (integers(3, 4),), lambda x: (x.min(0), x.max(0))),
    errors=[("dim out of range", lambda M: M.aminmax(M.ones(2), dim=1), IndexError, "dim=1"),
            ("empty", lambda M: M.aminmax(M.zeros(0)), ValueError, "empty")])
