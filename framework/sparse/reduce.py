"""Sums and softmax over dimensions of sparse tensors, and diagonals."""

from typing import Any

import numpy as np

from ..backends import array_module
from ..errors import LayoutError, ShapeError
from ..from_data import as_tensor
from ..layouts import sparse_coo
from ..ops.record.args import many_dims, one_dim
from ..ops.reduce.softmax import log_softmax as dense_log_softmax
from ..ops.reduce.softmax import softmax as dense_softmax
from ..ops.reduce.sums import sum_op
from ..tensor import Tensor, wrap
from .convert import coalesce, coo
from .pattern import Coordinates
from .products import put, take
from .tensor import SparseTensor, sparse, there


def _sparse(x: Any, op: str) -> SparseTensor:
    if isinstance(x, SparseTensor):
        return x
    kind = "a dense tensor" if isinstance(x, Tensor) else type(x).__name__
    raise LayoutError(f"{op}: argument 'input' must be sparse, got {kind}; use framework.{op.split('.')[1]}, "
                      f"or input.to_sparse()")


@there
def sum(input: Tensor, dim: Any = None, dtype: Any = None, keepdim: bool = False) -> Tensor:
    """Sums over dimensions: sparse as long as a sparse dimension is left, else dense; of all, a number.

    keepdim: whether the dimensions stay, with size 1; the result is sparse then.

    >>> x = fw.sparse_coo_tensor([[0, 1, 1], [2, 0, 2]], [3.0, 4.0, 5.0], (2, 3))
    >>> fw.sparse.sum(x, 0).to_dense()
    tensor([4., 0., 8.])
    """
    x: Any = _sparse(input, "sparse.sum")
    if dtype is not None:
        x = x.to(dtype)
    dims = many_dims(dim, x.ndim, "sparse.sum")
    if keepdim:
        return _kept(coo(x), dims).to_sparse(layout=x.layout)
    if dim is None or len(dims) == x.ndim:
        return x._entries.sum()
    x = coo(x)
    k = x.sparse_dim()
    values, sizes = x._entries, x._pattern.sizes
    inside = tuple(d - k + 1 for d in dims if d >= k)
    if inside:
        values = values.sum(inside)
    kept = [d for d in range(k) if d not in dims]
    if not kept:
        return values.sum(0)
    pattern = Coordinates(x._pattern.indices[kept], tuple(sizes[d] for d in kept),
                          len(kept) == k and x._pattern.coalesced)
    return coalesce(sparse(pattern, values))


def _kept(x: SparseTensor, dims: Any) -> Any:
    """The sums over dimensions, which stay with size 1."""
    k, values = x.sparse_dim(), x._entries
    inside = tuple(d - k + 1 for d in dims if d >= k)
    if inside:
        values = values.sum(inside, keepdim=True)  # type: ignore[attr-defined]
    p = x._pattern
    assert isinstance(p, Coordinates)
    indices = p.indices.copy()
    indices[[d for d in dims if d < k]] = 0
    return coalesce(sparse(Coordinates(indices, tuple(1 if d in dims else s for d, s in enumerate(p.sizes))),
                           values))


@there
def _summed(x: SparseTensor, *, dims: Any = None, keepdim: bool = False, **settings: Any) -> Tensor:
    return sum(x, dims, None, keepdim)


def _groups(x: SparseTensor, dim: int) -> tuple[Any, int]:
    """For each value, which of the lines along a sparse dimension it lies in, and how many lines have any."""
    p = x._pattern
    assert isinstance(p, Coordinates)
    rows = [d for d in range(len(p.sizes)) if d != dim]
    line = Coordinates(p.indices[rows], tuple(p.sizes[d] for d in rows)).linear
    found, inverse = array_module(line).unique(line, return_inverse=True)
    return inverse.reshape(-1), len(found)


def _highest(values: Any, groups: Any, count: int) -> Any:
    """The highest value of each group: a constant, which the derivative does not see."""
    xp = array_module(values)
    found = xp.full((count, *values.shape[1:]), -np.inf, values.dtype)
    xp.maximum.at(found, groups, values)
    return wrap(found)


def _soft(input: Any, dim: int, dtype: Any, log: bool) -> SparseTensor:
    name = "sparse.log_softmax" if log else "sparse.softmax"
    x: Any = _sparse(input, name)
    if dtype is not None:
        x = x.to(dtype)
    at = one_dim(dim, x.ndim, name)
    layout = x.layout
    if "bs" in layout.name:
        raise LayoutError(f"{name}: the zeros within blocks would count; use x.to_sparse_coo() first")
    x = coalesce(coo(x))
    k = x.sparse_dim()
    if at >= k:
        made = (dense_log_softmax if log else dense_softmax)(x._entries, at - k + 1)
    else:
        groups, count = _groups(x, at)
        shifted = x._entries - take(_highest(x._entries._array, groups, count), groups)
        powers = shifted.exp()
        total = put(powers, groups, count)
        made = shifted - take(total.log(), groups) if log else powers / take(total, groups)
    result = sparse(x._pattern, made, x._size)
    return result if layout is sparse_coo else result.to_sparse(layout=layout)  # type: ignore[attr-defined, return-value]


@there
def softmax(input: Tensor, dim: int, *, dtype: Any = None) -> SparseTensor:
    """Softmax along a dimension over the stored values alone, as if the others were -inf.

    >>> x = fw.sparse_coo_tensor([[0, 0, 1], [0, 2, 1]], [1.0, 1.0, 7.0], (2, 3))
    >>> fw.sparse.softmax(x, 1).values()
    tensor([0.5000, 0.5000, 1.0000])
    """
    return _soft(input, dim, dtype, False)


@there
def log_softmax(input: Tensor, dim: int, *, dtype: Any = None) -> SparseTensor:
    """The logarithm of ``softmax`` along a dimension, over the stored values alone.

    >>> x = fw.sparse_coo_tensor([[0, 0, 1], [0, 2, 1]], [1.0, 1.0, 7.0], (2, 3))
    >>> fw.sparse.log_softmax(x, 1).values()
    tensor([-0.6931, -0.6931,  0.0000])
    """
    return _soft(input, dim, dtype, True)


@there
def spdiags(diagonals: Tensor, offsets: Tensor, shape: Any, layout: Any = None) -> SparseTensor:
    """A matrix with the rows of ``diagonals`` (d, n) on its diagonals ``offsets`` (d); element j in column j.

    offsets: 0 the main one, above positive. Raises ShapeError, ValueError for an offset that comes twice.

    >>> fw.sparse.spdiags(fw.tensor([[1.0, 2.0], [3.0, 4.0]]), fw.tensor([0, 1]), (2, 2)).to_dense()
    tensor([[1., 4.],
            [0., 2.]])
    """
    rows: Any = diagonals if diagonals.ndim == 2 else diagonals.reshape(1, -1)  # type: ignore[attr-defined]
    places = as_tensor(offsets)._array.reshape(-1)
    if len(places) != rows.shape[0]:
        raise ShapeError(f"sparse.spdiags: {len(places)} offsets do not fit diagonals of shape "
                         f"{list(diagonals.shape)}")
    if places.dtype.kind not in "iu":
        raise TypeError(f"sparse.spdiags: offsets must be integers, got {places.dtype}")
    if len(set(places.tolist())) < len(places):
        raise ValueError(f"sparse.spdiags: an offset comes twice in {places.tolist()}")
    m, n = (int(s) for s in shape)
    xp = array_module(places)
    column = xp.broadcast_to(xp.arange(rows.shape[1]), tuple(rows.shape))
    row = column - places[:, None]
    (there,) = xp.nonzero(((row >= 0) & (row < m) & (column < n)).reshape(-1))
    pattern = Coordinates(xp.stack([row.reshape(-1)[there], column.reshape(-1)[there]]).astype(np.int64),
                          (m, n))
    made: Any = coalesce(sparse(pattern, take(rows.reshape(-1), there), (m, n)))
    return made if layout is None else made.to_sparse(layout=layout)


sum_op.sparse = _summed  # type: ignore[attr-defined]
