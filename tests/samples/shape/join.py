"""Rows of ops/shape/join.py."""

from typing import Any

import numpy as np

from framework.errors import ShapeError

from ..base import Sample, integers, normal, row

M23, N23, V3, W3 = normal(2, 3), normal(2, 3, seed=1), normal(3), normal(3, seed=1)


def _two(label: str, call: Any, reference: Any, x: Any = M23, y: Any = N23, **more: Any) -> Sample:
    return Sample(label, call, (x, y), reference, **more)


row("cat",
    _two("rows", lambda M, x, y: M.cat([x, y]), lambda x, y: np.concatenate([x, y])),
    _two("columns", lambda M, x, y: M.cat((x, y), -1), lambda x, y: np.concatenate([x, y], 1),
          y=normal(2, 1)),
    _two("concat", lambda M, x, y: M.concat([x, y], dim=1), lambda x, y: np.concatenate([x, y], 1)),
    _two("concatenate", lambda M, x, y: M.concatenate([x, y, x]), lambda x, y: np.concatenate([x, y, x])),
    _two("one twice", lambda M, x, y: M.cat([x * y, x]), lambda x, y: np.concatenate([x * y, x])),
    _two("mixed dtypes", lambda M, x, y: M.cat([x, y]), lambda x, y: np.concatenate([x, y]),
          y=integers(2, 3)),
    _two("old empty", lambda M, x, y: M.cat([y, x, y]), lambda x, y: x, y=np.zeros(0)),
    _two("no rows", lambda M, x, y: M.cat([x, y]), lambda x, y: x, y=np.zeros((0, 3))),
    Sample("one", lambda M, x: M.cat([x]), (V3,), lambda x: x),
    errors=[("sizes", lambda M: M.cat([M.ones(2, 3), M.ones(2, 4)]), ShapeError, "tensor 1 has [2, 4]"),
            ("dims", lambda M: M.cat([M.ones(2, 3), M.ones(2)]), ShapeError, "tensor 1 has [2]"),
            ("none", lambda M: M.cat([]), ValueError, "empty"),
            ("numbers", lambda M: M.cat([M.tensor(1.0)]), ShapeError, "stack()"),
            ("a tensor", lambda M: M.cat(M.ones(2)), TypeError, "list or tuple"),
            ("not tensors", lambda M: M.cat([M.ones(2), 3]), TypeError, "tensors[1]"),
            ("range", lambda M: M.cat([M.ones(2)], 1), IndexError, "dim=1")])
row("stack",
    _two("front", lambda M, x, y: M.stack([x, y]), lambda x, y: np.stack([x, y])),
    _two("middle", lambda M, x, y: M.stack((x, y), 1), lambda x, y: np.stack([x, y], 1)),
    _two("last", lambda M, x, y: M.stack([x, y], -1), lambda x, y: np.stack([x, y], -1)),
    _two("numbers", lambda M, x, y: M.stack([x, y]), lambda x, y: np.stack([x, y]), np.array(1.5),
          np.array(2.0)),
    _two("products", lambda M, x, y: M.stack([x * y, y * y]), lambda x, y: np.stack([x * y, y * y])),
    errors=[("sizes", lambda M: M.stack([M.ones(2), M.ones(3)]), ShapeError, "tensor 1 has [3]"),
            ("range", lambda M: M.stack([M.ones(2)], 2), IndexError, "dim=2")])
row("hstack",
    _two("matrices", lambda M, x, y: M.hstack([x, y]), lambda x, y: np.hstack([x, y])),
    _two("vectors", lambda M, x, y: M.hstack((x, y)), lambda x, y: np.hstack([x, y]), V3, W3),
    _two("numbers", lambda M, x, y: M.hstack([x, y]), lambda x, y: np.hstack([x, y]), np.array(1.5), V3))
row("vstack",
    _two("matrix and vector", lambda M, x, y: M.vstack([x, y]), lambda x, y: np.vstack([x, y]), y=V3),
    _two("row_stack", lambda M, x, y: M.row_stack([x, y]), lambda x, y: np.vstack([x, y]), torch=False,
         why="PyTorch warns that the name is old"))
row("dstack",
    _two("matrices", lambda M, x, y: M.dstack([x, y]), lambda x, y: np.dstack([x, y])),
    _two("vectors", lambda M, x, y: M.dstack([x, y]), lambda x, y: np.dstack([x, y]), V3, W3))
row("column_stack",
    _two("vectors", lambda M, x, y: M.column_stack([x, y]), lambda x, y: np.column_stack([x, y]), V3, W3),
    _two("mixed", lambda M, x, y: M.column_stack([x, y]), lambda x, y: np.column_stack([x, y]), y=normal(2)))


def _blocks(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    out = np.zeros((x.shape[0] + y.shape[0], x.shape[1] + y.shape[1]))
    out[:x.shape[0], :x.shape[1]], out[x.shape[0]:, x.shape[1]:] = x, y
    return out


row("block_diag",
    _two("matrices", lambda M, x, y: M.block_diag(x, y), _blocks, y=normal(2, 1)),
    _two("vector", lambda M, x, y: M.block_diag(x, y), lambda x, y: _blocks(x, y[None]), y=V3),
    errors=[("batch", lambda M: M.block_diag(M.ones(1, 2, 2)), ShapeError, "[1, 2, 2]")])
row("cartesian_prod",
    _two("two", lambda M, x, y: M.cartesian_prod(x, y),
         lambda x, y: np.stack([np.repeat(x, 2), np.tile(y, 3)], 1), V3, normal(2)),
    Sample("one", lambda M, x: M.cartesian_prod(x) * 1, (V3,), lambda x: x),
    errors=[("matrix", lambda M: M.cartesian_prod(M.ones(2, 2)), ShapeError, "vectors")])
