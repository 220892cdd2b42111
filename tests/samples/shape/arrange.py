"""Rows of ops/shape/arrange.py and of the overwriting forms of ops/write/inplace.py."""

from itertools import combinations, combinations_with_replacement
from typing import Any

import numpy as np

from framework.errors import DTypeError, ShapeError

from ..base import Sample, integers, normal, row

V3, M23, M33, M234 = normal(3), normal(2, 3), normal(3, 3), normal(2, 3, 4)
COUNTS = np.array([2, 0, 1])


def _one(label: str, call: Any, reference: Any, x: Any = M23, **more: Any) -> Sample:
    return Sample(label, call, (x,), reference, **more)


for _name, _ref in (("tril", np.tril), ("triu", np.triu)):
    row(_name,
        _one("matrix", lambda M, x, n=_name: getattr(M, n)(x), _ref, M33),
        _one("above", lambda M, x, n=_name: getattr(x, n)(1), lambda x, f=_ref: f(x, 1)),
        _one("below", lambda M, x, n=_name: getattr(x, n)(diagonal=-1), lambda x, f=_ref: f(x, -1)),
        _one("batch", lambda M, x, n=_name: getattr(x, n)(), _ref, M234),
        _one("ints", lambda M, x, n=_name: getattr(x, n)(), _ref, integers(3, 3)),
        errors=[("vector", lambda M, n=_name: getattr(M, n)(M.ones(2)), ShapeError, "2 dimensions")])
    row(f"{_name}_indices",
        _one("square", lambda M, x, n=_name: getattr(M, f"{n}_indices")(3, 3),
             lambda x, n=_name: np.stack(getattr(np, f"{n}_indices")(3)), grad=False),
        _one("offset", lambda M, x, n=_name: getattr(M, f"{n}_indices")(2, 4, 1),
             lambda x, n=_name: np.stack(getattr(np, f"{n}_indices")(2, 1, 4)), grad=False),
        errors=[("negative", lambda M, n=_name: getattr(M, f"{n}_indices")(-1, 2), ValueError, "negative")])
row("diag",
    _one("vector", lambda M, x: M.diag(x, 1), lambda x: np.diag(x, 1), V3),
    _one("matrix", lambda M, x: x.diag(), np.diag, M33),
    _one("below", lambda M, x: x.diag(-1), lambda x: np.diag(x, -1)),
    errors=[("batch", lambda M: M.diag(M.ones(1, 2, 2)), ShapeError, "[1, 2, 2]")])
row("diag_embed",
    _one("vector", lambda M, x: M.diag_embed(x), np.diag, V3),
    _one("batch", lambda M, x: x.diag_embed(), lambda x: x[:, :, None] * np.eye(3)),
    _one("offset", lambda M, x: x.diag_embed(-1), lambda x: np.stack([np.diag(v, -1) for v in x])),
    _one("dims", lambda M, x: x.diag_embed(0, 0, 2), lambda x: np.swapaxes(x[:, :, None] * np.eye(3), 0, 1)),
    errors=[("same dim", lambda M: M.diag_embed(M.ones(2), 0, 1, 1), ShapeError, "dim1=1")])
row("diagflat", _one("matrix", lambda M, x: M.diagflat(x), lambda x: np.diag(x.ravel())),
    _one("offset", lambda M, x: x.diagflat(1), lambda x: np.diag(x, 1), V3))
row("trace", _one("matrix", lambda M, x: M.trace(x), np.trace, M33),
    _one("wide", lambda M, x: x.trace(), np.trace),
    _one("ints", lambda M, x: x.trace(), np.trace, integers(3, 3)),
    errors=[("vector", lambda M: M.ones(2).trace(), ShapeError, "matrix")])
row("flip",
    _one("one", lambda M, x: M.flip(x, (0,)), lambda x: x[::-1]),
    _one("several", lambda M, x: x.flip(0, -1), lambda x: x[::-1, ::-1]),
    _one("none", lambda M, x: x.flip(()), lambda x: x),
    errors=[("range", lambda M: M.ones(2).flip(1), IndexError, "dims=1")])
row("fliplr", _one("matrix", lambda M, x: M.fliplr(x), np.fliplr),
    errors=[("vector", lambda M: M.ones(2).fliplr(), ShapeError, "2 dimensions")])
row("flipud", _one("matrix", lambda M, x: M.flipud(x), np.flipud),
    errors=[("number", lambda M: M.tensor(1.0).flipud(), ShapeError, "1 dimension")])
row("roll",
    _one("flat", lambda M, x: M.roll(x, 2), lambda x: np.roll(x, 2)),
    _one("dim", lambda M, x: x.roll(-1, 1), lambda x: np.roll(x, -1, 1)),
    _one("several", lambda M, x: x.roll((1, 2), (0, 1)), lambda x: np.roll(x, (1, 2), (0, 1))),
    _one("empty", lambda M, x: x.roll(1, 0), lambda x: x, np.zeros((0, 2))),
    errors=[("counts", lambda M: M.ones(2, 2).roll((1, 1), 0), ValueError, "2 shifts"),
            ("range", lambda M: M.ones(2).roll(1, 1), IndexError, "dims=1")])
row("rot90", *[_one(f"k={k}", lambda M, x, k=k: M.rot90(x, k) * 1, lambda x, k=k: np.rot90(x, k))
               for k in (-1, 0, 1, 2, 3, 5)],
    _one("dims", lambda M, x: x.rot90(1, (1, 2)), lambda x: np.rot90(x, 1, (1, 2)), M234),
    errors=[("vector", lambda M: M.ones(2).rot90(), ShapeError, "2 dims")])
row("repeat",
    _one("dims", lambda M, x: x.repeat(2, 3), lambda x: np.tile(x, (2, 3))),
    _one("new dims", lambda M, x: x.repeat((2, 1, 2)), lambda x: np.tile(x, (2, 1, 2))),
    _one("never", lambda M, x: x.repeat(0, 1), lambda x: np.zeros((0, 3))),
    _one("number", lambda M, x: x.repeat(3), lambda x: np.tile(x, 3), np.array(1.5)),
    errors=[("few", lambda M: M.ones(2, 2).repeat(2), ShapeError, "2 dimensions"),
            ("negative", lambda M: M.ones(2).repeat(-1), ValueError, "negative")], namespace="")
row("tile",
    _one("fewer", lambda M, x: M.tile(x, (2,)), lambda x: np.tile(x, 2)),
    _one("more", lambda M, x: x.tile(2, 1, 1), lambda x: np.tile(x, (2, 1, 1))))
row("repeat_interleave",
    _one("flat", lambda M, x: M.repeat_interleave(x, 2), lambda x: np.repeat(x, 2)),
    _one("dim", lambda M, x: x.repeat_interleave(3, dim=-1), lambda x: np.repeat(x, 3, -1)),
    Sample("counts", lambda M, x, n: x.repeat_interleave(n, 1), (M23, COUNTS),
          lambda x, n: np.repeat(x, n, 1)),
    Sample("positions", lambda M, n: M.repeat_interleave(n), (COUNTS,), lambda n: np.repeat(np.arange(3), n)),
    errors=[("counts", lambda M: M.ones(2).repeat_interleave(M.tensor([1, 2, 3])), ShapeError, "3 repeats"),
            ("negative", lambda M: M.ones(2).repeat_interleave(-1), ValueError, "negative"),
            ("floating", lambda M: M.ones(2).repeat_interleave(M.ones(2)), DTypeError, "integers")])
row("meshgrid",
    Sample("ij", lambda M, x, y: M.meshgrid(x, y, indexing="ij"), (V3, normal(2)),
           lambda x, y: np.meshgrid(x, y, indexing="ij")),
    Sample("xy", lambda M, x, y: M.meshgrid([x, y], indexing="xy"), (V3, normal(2)),
           lambda x, y: np.meshgrid(x, y, indexing="xy")),
    Sample("three", lambda M, x, y: M.meshgrid(x, y, x, indexing="xy"), (V3, normal(2)),
           lambda x, y: np.meshgrid(x, y, x, indexing="xy")),
    errors=[("indexing", lambda M: M.meshgrid(M.ones(2), indexing="no"), ValueError, "'no'"),
            ("matrix", lambda M: M.meshgrid(M.ones(2, 2), indexing="ij"), ShapeError, "vectors")])
row("combinations",
    _one("pairs", lambda M, x: M.combinations(x), lambda x: np.array(list(combinations(x, 2))), V3),
    _one("replaced", lambda M, x: M.combinations(x, with_replacement=True),
         lambda x: np.array(list(combinations_with_replacement(x, 2))), V3),
    _one("too many", lambda M, x: M.combinations(x, 4), lambda x: np.zeros((0, 4)), V3),
    errors=[("matrix", lambda M: M.combinations(M.ones(2, 2)), ShapeError, "vector")])
row("kron",
    Sample("matrices", lambda M, x, y: M.kron(x, y), (M23, normal(2, 2)), np.kron),
    Sample("vector", lambda M, x, y: x.kron(y), (V3, normal(2, 2)), np.kron))
for _n in (1, 2, 3):
    row(f"atleast_{_n}d",
        *[_one(f"{x.ndim} dims", lambda M, x, n=_n: getattr(M, f"atleast_{n}d")(x) * 1,
               lambda x, n=_n: getattr(np, f"atleast_{n}d")(x), x)
          for x in (np.array(1.5), V3, M23, M234)],
        Sample("several", lambda M, x, y, n=_n: getattr(M, f"atleast_{n}d")([x, y]), (V3, M23),
               lambda x, y, n=_n: getattr(np, f"atleast_{n}d")(x, y)),
        errors=[("number", lambda M, n=_n: getattr(M, f"atleast_{n}d")(1.0), TypeError, "float")])
row("broadcast_shapes",
    Sample("two", lambda M, x: M.tensor(M.broadcast_shapes((2, 1), (3,))), (V3,), lambda x: np.array([2, 3]),
           grad=False),
    errors=[("sizes", lambda M: M.broadcast_shapes((2,), (3,)), ShapeError, "broadcast")])
row("broadcast_tensors",
    Sample("two", lambda M, x, y: M.broadcast_tensors(x, y), (V3, normal(2, 1)),
           lambda x, y: np.broadcast_arrays(x, y)),
    errors=[("sizes", lambda M: M.broadcast_tensors(M.ones(2), M.ones(3)), ShapeError, "broadcast")])

# -- overwriting ---------------------------------------------------------------------------------

row("fill",
    _one("number", lambda M, x: M.fill(x, 2.5), lambda x: np.full(x.shape, 2.5)),
    Sample("tensor", lambda M, x, y: M.fill(x, y) * x, (M23, np.array(1.5)), lambda x, y: 1.5 * x),
    errors=[("shape", lambda M: M.fill(M.ones(2), M.ones(2)), ShapeError, "0-dim")])
row("fill_",
    _one("number", lambda M, x: x.fill_(2), lambda x: np.full(x.shape, 2.0)),
    Sample("tensor", lambda M, x, y: x.fill_(y) * y, (M23, np.array(1.5)),
          lambda x, y: np.full((2, 3), 2.25)),
    _one("ints", lambda M, x: x.fill_(2.7), lambda x: np.full(x.shape, 2), integers(2, 3), torch=True),
    errors=[("text", lambda M: M.ones(2).fill_("a"), TypeError, "str"),
            ("complex", lambda M: M.ones(2).fill_(1j), DTypeError, "complex")], namespace="")
row("zero_", _one("all", lambda M, x: x.zero_(), np.zeros_like), namespace="")
row("copy_",
    Sample("same", lambda M, x, y: x.copy_(y) * y, (M23, normal(2, 3, seed=1)), lambda x, y: y * y),
    Sample("broadcast", lambda M, x, y: x.copy_(y), (M23, V3), lambda x, y: np.broadcast_to(y, (2, 3))),
    Sample("ints", lambda M, x, y: x.copy_(y), (M23, integers(2, 3)), lambda x, y: y.astype(float)),
    Sample("to ints", lambda M, x, y: x.copy_(y), (integers(2, 3), 10 * M23),
           lambda x, y: y.astype(np.int64), grad=False),
    errors=[("shape", lambda M: M.ones(2).copy_(M.ones(3)), ShapeError, "broadcast"),
            ("text", lambda M: M.ones(2).copy_("3"), TypeError, "other")], namespace="")
