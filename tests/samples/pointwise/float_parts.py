"""Rows of ops/pointwise/float_parts.py."""

import numpy as np

from framework.errors import DTypeError

from ..base import Sample, integers, normal, row
from . import COLUMN, FIRST, SECOND, binary

X = normal(3, 4)
row(
    "frexp",
    Sample("plain", lambda M, x: M.frexp(x), (X * 10,), lambda x: np.frexp(x)),
    Sample("method", lambda M, x: x.frexp().mantissa, (X / 10,), lambda x: np.frexp(x)[0]),
    Sample(
        "ends",
        lambda M, x: M.frexp(x).mantissa,
        (np.array([0.0, -0.0, np.inf, np.nan]),),
        lambda x: x,
        grad=False,
    ),
    errors=[
        ("int", lambda M: M.frexp(M.tensor([1])), DTypeError, "int64"),
        ("list", lambda M: M.frexp([1.0]), TypeError, "list"),
    ],
)
E = integers(3, 4, low=-3, high=4)
row(
    "ldexp",
    Sample(
        "plain",
        lambda M, x, y: M.ldexp(x, y),
        (X, E),
        lambda x, y: x * 2.0**y,
        torch=False,
        why="PyTorch's gradient is 0 where other is negative",
    ),
    Sample("values", lambda M, x, y: M.ldexp(x, y), (X, E), lambda x, y: x * 2.0**y, grad=False),
    Sample("floats", lambda M, x, y: x.ldexp(y), (X, normal(3, 1)), lambda x, y: x * 2.0**y),
    Sample("in place", lambda M, x, y: x.clone().ldexp_(abs(y)), (X, E), lambda x, y: x * 2.0 ** abs(y)),
    Sample("ints", lambda M, x, y: M.ldexp(x, y), (E, E), lambda x, y: (x * 2.0**y).astype(np.float32)),
    errors=[("string", lambda M: M.ldexp(M.ones(1), "a"), TypeError, "str")],
)
binary("nextafter", np.nextafter, FIRST, SECOND, COLUMN)
row("nextafter", Sample("method", lambda M, x, y: x.nextafter(y), (FIRST, SECOND), np.nextafter),
    namespace="", errors=[("word", lambda M: M.ones(2).nextafter("x"), TypeError, "str")])
