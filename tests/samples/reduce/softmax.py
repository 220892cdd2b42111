"""Rows of ops/reduce/softmax.py."""

from typing import Any

import numpy as np

from ..base import Sample, normal, row

X = normal(2, 3, 4)
HUGE = np.array([[1e4, 0.0, -1e4], [700.0, 800.0, 800.5]])
NO = -np.inf


def softmax(x: Any, dim: int = -1) -> Any:
    """The reference, from shifted exponentials."""
    e = np.exp(x - x.max(axis=dim, keepdims=True, initial=-np.inf))
    return e / e.sum(axis=dim, keepdims=True)


def log_softmax(x: Any, dim: int = -1) -> Any:
    """The reference."""
    shifted = x - x.max(axis=dim, keepdims=True, initial=-np.inf)
    return shifted - np.log(np.exp(shifted).sum(axis=dim, keepdims=True))


def _samples(name: str, reference: Any, functional: bool) -> list:
    def call(M: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
        return getattr(M.nn.functional if functional else M, name)(x, *args, **kwargs)
    rows = [Sample(f"dim {d}", lambda M, x, d=d: call(M, x, d), (X,),
                   lambda x, d=d: reference(x, d)) for d in (0, 1, -1)]
    return [*rows,
            Sample("huge", lambda M, x: call(M, x, dim=1), (HUGE,), lambda x: reference(x, 1), order=1,
                   why="differences see no curvature"),
            Sample("scalar", lambda M, x: call(M, x, dim=-1), (normal(seed=1),),
                   lambda x: reference(x.reshape(1)).reshape(())),
            Sample("empty", lambda M, x: call(M, x, dim=1), (np.zeros((0, 3)),), lambda x: x),
            Sample("no columns", lambda M, x: call(M, x, dim=1), (np.zeros((2, 0)),), lambda x: x),
            Sample("masked", lambda M, x: call(M, x, dim=1), (np.array([[0.0, NO, 1.0]]),),
                   lambda x: reference(x, 1), grad=False, why="an infinite input has no difference quotient"),
            Sample("all masked", lambda M, x: call(M, x, dim=1), (np.array([[NO, NO]]),),
                   lambda x: np.full((1, 2), np.nan), grad=False),
            Sample("dtype", lambda M, x: call(M, x, dim=0, dtype=M.float64), (np.array([1, 2, 3]),),
                   lambda x: reference(x.astype(float), 0), grad=False)]


def _errors(name: str, functional: bool) -> list:
    def call(M: Any, *args: Any, **kwargs: Any) -> Any:
        return getattr(M.nn.functional if functional else M, name)(*args, **kwargs)
    return [("no dim", lambda M: call(M, M.ones(2, 3)), TypeError, "dim is needed"),
            ("dim", lambda M: call(M, M.ones(2, 3), dim=2), IndexError, "dim=2"),
            ("integers", lambda M: call(M, M.arange(3), dim=0), TypeError, "must be floating"),
            ("not a tensor", lambda M: call(M, [1.0], dim=0), TypeError, "must be a Tensor")]


for _name, _reference in (("softmax", softmax), ("log_softmax", log_softmax)):
    row(_name, *_samples(_name, _reference, False),
        Sample("method", lambda M, x, n=_name: getattr(x, n)(1), (X,),
               lambda x, r=_reference: r(x, 1)), errors=_errors(_name, False))
    row(_name, *_samples(_name, _reference, True), namespace="nn.functional",
        errors=_errors(_name, True))
row("softmin", *_samples("softmin", lambda x, dim=-1: softmax(-x, dim), True)[:6],
    namespace="nn.functional", errors=_errors("softmin", True)[1:2])
