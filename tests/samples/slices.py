"""Rows of put, renorm, frexp and their kin."""

from typing import Any

import numpy as np

from framework.errors import DTypeError, ShapeError

from .base import Sample, complex_twins, integers, normal, row

X, Y = normal(3, 4), normal(5)
AT = np.array([0, 7, -1, 3, 5])


def _put(x: Any, i: Any, y: Any, add: bool = False) -> Any:
    out = x.copy().reshape(-1)
    if add:
        np.add.at(out, i, y)
    else:
        out[i] = y
    return out.reshape(x.shape)


row(
    "put",
    Sample("plain", lambda M, x, i, y: M.put(x, i, y), (X, AT, Y), _put),
    Sample(
        "add",
        lambda M, x, i, y: x.put(i, y, accumulate=True),
        (X, np.array([0, 0, 1, 1, -1]), Y),
        lambda x, i, y: _put(x, i, y, True),
    ),
    Sample("shaped", lambda M, x, i, y: M.put(x, i.reshape(1, 5), y), (X, AT, Y), _put),
    Sample("in place", lambda M, x, i, y: x.clone().put_(i, y), (X, AT, Y), _put),
    errors=[
        ("sizes", lambda M: M.put(M.ones(2), M.tensor([0]), M.ones(2)), ShapeError, "1 elements"),
        ("dtype", lambda M: M.put(M.ones(2), M.tensor([0]), M.tensor([1])), DTypeError, "int64"),
        ("range", lambda M: M.put(M.ones(2), M.tensor([2]), M.ones(1)), IndexError, "2"),
    ],
)
row(
    "narrow_copy",
    Sample("plain", lambda M, x: M.narrow_copy(x, 1, 1, 2), (X,), lambda x: x[:, 1:3]),
    Sample("method", lambda M, x: x.narrow_copy(0, 1, 1), (X,), lambda x: x[1:2]),
    Sample(
        "from the end",
        lambda M, x: x.narrow_copy(0, -1, 1),
        (X,),
        lambda x: x[-1:],
        torch=False,
        why="PyTorch's gradient is 0",
    ),
    errors=[("range", lambda M: M.narrow_copy(M.ones(2), 0, 1, 3), (IndexError, ValueError), "narrow")],
)


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
complex_twins("renorm put")
