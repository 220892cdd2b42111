"""Rows of the rooms in ops/linalg, and what the files share."""

from collections.abc import Callable
from typing import Any

import numpy as np

from framework.errors import DTypeError, ShapeError

from ..base import Sample, normal


def not_square(call: Any) -> list:
    """The call of a matrix that is not square must raise."""
    return [("not square", lambda M: call(M, M.ones(2, 3)), ValueError, "square")]


def regular(*shape: int, seed: int = 0) -> np.ndarray:
    """Well-conditioned matrices."""
    return 0.3 * normal(*shape, seed=seed) + np.diag(np.arange(2.0, 2 + shape[-1]))


def one(name: str, label: str, x: Any, reference: Callable, *args: Any, prepare: Callable | None = None,
        pick: Callable | None = None, home: str = "linalg", **settings: Any) -> Sample:
    """A call of one tensor; ``prepare`` comes before it, ``pick`` after it, for both libraries."""
    def call(M: Any, x: Any) -> Any:
        space = M.linalg if home == "linalg" else M
        y = getattr(space, name)(prepare(x) if prepare else x, *args, **settings)
        return pick(y) if pick else tuple(y) if isinstance(y, tuple) else y

    def expected(x: Any) -> Any:
        return reference(prepare(x) if prepare else x)
    return Sample(label, call, (x,), expected)


def refusals(name: str, home: str = "linalg", square: bool = True) -> list:
    """The calls of ints, of a vector and of a matrix that is not square must raise."""
    def function(M: Any) -> Any:
        return getattr(M.linalg if home == "linalg" else M, name)
    found = [("ints", lambda M: function(M)(M.ones(2, 2).long()), DTypeError, "floating"),
             ("vector", lambda M: function(M)(M.ones(2)), ShapeError, "[2]")]
    if square:
        found.append(("square", lambda M: function(M)(M.ones(2, 3)), ShapeError, "square"))
    return found


def product(op: str, label: str, x: tuple, y: tuple, reference: Callable = np.matmul) -> Sample:
    """A product of arrays of these shapes."""
    def call(M: Any, a: Any, b: Any) -> Any:
        return getattr(M, op)(a, b)
    return Sample(label, call, (normal(*x), normal(*y, seed=1)), reference)
