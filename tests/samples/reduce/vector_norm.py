"""Rows of ops/reduce/vector_norm.py."""

from typing import Any

import numpy as np

from framework.errors import ShapeError

from ..base import Sample, complex_twins, normal, row

X = normal(3, 4)


def _renorm(x: Any, p: float, dim: int, most: float) -> Any:
    others = tuple(d for d in range(x.ndim) if d != dim)
    norm = (abs(x) ** p).sum(others, keepdims=True) ** (1 / p)
    return np.where(norm > most, x * most / (norm + 1e-7), x)


row(
    "renorm",
    Sample("plain", lambda M, x: M.renorm(x, 2, 0, 1.5), (X,), lambda x: _renorm(x, 2, 0, 1.5)),
    Sample(
        "cubes",
        lambda M, x: x.renorm(3, dim=1, maxnorm=1.0),
        (normal(2, 3, 2),),
        lambda x: _renorm(x, 3, 1, 1.0),
    ),
    Sample("in place", lambda M, x: x.clone().renorm_(1, 0, 2.0), (X,), lambda x: _renorm(x, 1, 0, 2.0)),
    errors=[
        ("ndim", lambda M: M.renorm(M.ones(2), 2, 0, 1.0), ShapeError, "[2]"),
        ("p", lambda M: M.renorm(M.ones(2, 2), 0, 0, 1.0), ValueError, "p=0"),
    ],
)
complex_twins("renorm")
