"""Rows of ops/shape/split.py."""

from typing import Any

import numpy as np

from framework.errors import ShapeError

from ..base import Sample, normal, row

M53, M234 = normal(5, 3), normal(2, 3, 4)


def _one(label: str, call: Any, reference: Any, x: Any = M53, **more: Any) -> Sample:
    return Sample(label, call, (x,), reference, **more)


row("split",
    _one("size", lambda M, x: M.split(x, 2), lambda x: np.split(x, [2, 4])),
    _one("sections", lambda M, x: x.split([1, 0, 2], -1), lambda x: np.split(x, [1, 1], 1)),
    _one("size over all", lambda M, x: x.split(9), lambda x: [x]),
    _one("empty", lambda M, x: x.split(2), lambda x: [x], np.zeros((0, 3))),
    errors=[("sum", lambda M: M.ones(5).split([2, 2]), ShapeError, "sum to 4"),
            ("zero", lambda M: M.ones(5).split(0), ShapeError, "positive"),
            ("number", lambda M: M.tensor(1.0).split(1), ShapeError, "0 dimensions"),
            ("range", lambda M: M.ones(5).split(2, 1), IndexError, "dim=1")])
row("split_with_sizes", _one("sizes", lambda M, x: M.split_with_sizes(x, [4, 1]), lambda x: np.split(x, [4])),
    errors=[("negative", lambda M: M.ones(5).split_with_sizes([6, -1]), ShapeError, "negative")])
row("unsafe_split", _one("size", lambda M, x: M.unsafe_split(x, 4), lambda x: np.split(x, [4])),
    errors=[("zero", lambda M: M.unsafe_split(M.ones(2), 0), ShapeError, "positive")])
row("chunk",
    _one("uneven", lambda M, x: M.chunk(x, 2), lambda x: np.split(x, [3])),
    _one("fewer than asked", lambda M, x: x.chunk(4), lambda x: np.split(x, [2, 4])),
    _one("dim", lambda M, x: x.chunk(3, 1), lambda x: np.split(x, 3, 1)),
    _one("empty", lambda M, x: x.chunk(2), lambda x: [x, x], np.zeros((0, 3))),
    errors=[("count", lambda M: M.ones(5).chunk(0), ValueError, "positive")])
row("tensor_split",
    _one("number", lambda M, x: M.tensor_split(x, 3), lambda x: np.array_split(x, 3)),
    _one("more than there are", lambda M, x: x.tensor_split(7), lambda x: np.array_split(x, 7)),
    _one("places", lambda M, x: x.tensor_split((1, -1)), lambda x: np.split(x, [1, 4])),
    _one("places beyond", lambda M, x: x.tensor_split([2, 9], 0), lambda x: np.split(x, [2, 5])),
    errors=[("count", lambda M: M.ones(5).tensor_split(0), ValueError, "positive")])
row("hsplit", _one("matrix", lambda M, x: M.hsplit(x, 3), lambda x: np.hsplit(x, 3)),
    _one("vector", lambda M, x: x.hsplit([1]), lambda x: np.split(x, [1]), normal(4)),
    errors=[("uneven", lambda M: M.ones(2, 5).hsplit(2), ShapeError, "equal pieces")])
row("vsplit", _one("places", lambda M, x: M.vsplit(x, [2]), lambda x: np.split(x, [2])),
    errors=[("vector", lambda M: M.ones(2).vsplit(2), ShapeError, "2 dimensions")])
row("dsplit", _one("number", lambda M, x: M.dsplit(x, 2), lambda x: np.dsplit(x, 2), M234),
    errors=[("matrix", lambda M: M.ones(2, 2).dsplit(2), ShapeError, "3 dimensions")])
row("unbind", _one("rows", lambda M, x: M.unbind(x), lambda x: list(x)),
    _one("columns", lambda M, x: x.unbind(-1), lambda x: list(x.T)),
    _one("numbers", lambda M, x: x.unbind(), lambda x: list(x), normal(3)),
    errors=[("number", lambda M: M.tensor(1.0).unbind(), ShapeError, "0 dimensions")])
row("__iter__", _one("rows", lambda M, x: list(x), lambda x: list(x)),
    _one("unpacked and used", lambda M, x: sum(a * b for a, b in zip(*x)), lambda x: (x[0] * x[1]).sum(),
         normal(2, 3)),
    errors=[("number", lambda M: list(M.tensor(1.0)), TypeError, "0 dimensions")], namespace="")
