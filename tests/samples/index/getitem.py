"""Rows of ops/index/getitem.py."""

from typing import Any

import numpy as np

from framework.errors import DTypeError, ShapeError

from ..base import Sample, complex_twins, normal, row

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
complex_twins("put")
