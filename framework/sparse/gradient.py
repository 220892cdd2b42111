"""Sparse gradients of dense tensors: those of embeddings, how they add up, and how optimizers read them."""

from typing import Any

import numpy as np

from ..backends import array_module
from ..errors import ShapeError
from ..ops.index.embedding import factor
from ..ops.pointwise.arithmetic import add_op
from ..ops.shape.join import cat
from ..tensor import Tensor, bump, wrap
from .convert import coalesce, to_dense
from .pattern import Coordinates
from .products import take
from .tensor import SparseTensor, sparse, there


@there
def of_rows(g: Any, indices: Any, shape: tuple[int, ...], dtype: Any, padding: int | None,
            by_frequency: bool) -> SparseTensor:
    """The gradient of a table whose rows ``indices`` (any shape S) were taken, from that of the rows
    (S, D)."""
    indices = indices._array if isinstance(indices, Tensor) else indices
    if by_frequency:
        g = g * factor(indices, dtype=dtype, padding=padding, by_frequency=True)
    values = g.reshape((indices.size, *shape[1:]))
    places = indices.reshape(1, -1).astype(np.int64, copy=True)
    if padding is not None:
        (kept,) = (places[0] != padding).nonzero()
        values, places = take(values, kept), places[:, kept]
    if not isinstance(g, Tensor):
        values = wrap(array_module(values).array(values, order="C", copy=True))
    return sparse(Coordinates(places, (shape[0],)), values, shape)


@there
def like(t: SparseTensor, g: Tensor) -> Tensor:
    """The gradient of a sparse tensor from that of its values."""
    return g if isinstance(g, SparseTensor) else sparse(t._pattern, g, t._size)


@there
def plus(a: Any, b: Any) -> Any:
    """The sum of two gradients of which one is sparse: of two, sparse with the places of both, else dense."""
    x, y = (v if isinstance(v, Tensor) else wrap(v) for v in (a, b))
    if isinstance(x, SparseTensor) and isinstance(y, SparseTensor):
        if tuple(x._size) != tuple(y._size):
            raise ShapeError(f"gradients of shapes {list(x._size)} and {list(y._size)} do not add up")
        return joined(x, y)
    dense, rows = (y, x) if isinstance(x, SparseTensor) else (x, y)
    if isinstance(a, Tensor) and isinstance(b, Tensor) and (a._node is not None or b._node is not None):
        return add_op.run(dense, to_dense(rows))  # type: ignore[arg-type]
    out = dense._array.copy()
    add_into(out, rows)  # type: ignore[arg-type]
    return wrap(out)


def joined(x: SparseTensor, y: SparseTensor) -> SparseTensor:
    """The places of both, one after the other, not coalesced."""
    p, q = x._pattern, y._pattern
    assert isinstance(p, Coordinates) and isinstance(q, Coordinates)
    xp = array_module(p.indices)
    both = Coordinates(xp.concatenate([p.indices, q.indices], 1), p.sizes)
    values: Any = x._entries
    if x._node is not None or y._node is not None:
        return sparse(both, cat([values, y._entries]), x._size)
    return sparse(both, wrap(xp.concatenate([values._array, y._entries._array])), x._size)


def add_into(array: Any, x: SparseTensor) -> None:
    """Add the values of a sparse tensor to a dense array, in place."""
    x = coalesce(x)
    key = tuple(x._pattern.indices)  # type: ignore[union-attr]
    array[key] += x._entries._array


@there
def accumulate(old: Tensor, new: Tensor) -> Tensor:
    """``old`` plus ``new`` as the gradient that a leaf keeps; a dense old one is changed in place."""
    if isinstance(old, SparseTensor):
        return plus(old, new)
    add_into(old._array, new)  # type: ignore[arg-type]
    bump(old, "backward")
    return old


@there
def owned(x: SparseTensor, live: bool) -> SparseTensor:
    """A copy that a leaf keeps: nobody else has its values."""
    if live:
        return x.clone()
    return sparse(x._pattern, wrap(x._entries._array.copy()), x._size)


@there
def rows_of(x: SparseTensor) -> tuple[tuple, Any]:
    """For an optimizer: the places, as arrays for the first dimensions, each once, and the values there."""
    x = coalesce(x)
    return tuple(x._pattern.indices), x._entries._array  # type: ignore[union-attr]


@there
def merged_values(x: SparseTensor) -> Tensor:
    """The values of a gradient, which is coalesced where it stands, for what measures or changes them."""
    if x.is_sparse:
        found = coalesce(x)
        x._pattern, x._entries = found._pattern, found._entries
    return x._entries
