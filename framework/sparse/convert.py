"""From one layout to another, to dense and back, and to SciPy's matrices."""

import math
from typing import Any

import numpy as np

from ..backends import array_module
from ..config import need
from ..errors import LayoutError, ShapeError
from ..layouts import Layout, sparse_bsc, sparse_bsr, sparse_coo, sparse_csc, sparse_csr, strided
from ..ops.record.args import ntuple
from ..ops.shape.join import cat, cat_op
from ..tensor import Tensor, wrap
from .pattern import Compressed, Coordinates, at_linear, count_of, starts_of
from .products import put, take
from .tensor import COMPRESSED, SparseTensor, sparse, there


@there
def coalesce(self: SparseTensor) -> SparseTensor:
    """The same tensor with its places in order and each once; values of one place are summed."""
    pattern = self._coordinates("coalesce")
    merged, inverse = pattern.merged
    if inverse is None:
        return self
    return sparse(merged, put(self._entries, inverse, len(merged)), self._size)


@there
def to_dense(self: SparseTensor, dtype: Any = None, *, masked_grad: bool = True) -> Tensor:
    """All elements as a dense tensor; gradients flow back to the stored values."""
    x = coo(self)
    sizes = x._pattern.sizes
    linear = x._pattern.linear  # type: ignore[union-attr]
    dense: Any = put(x._entries, linear, count_of(sizes)).reshape(self._size)  # type: ignore[union-attr]
    return dense if dtype is None else dense.to(dtype)


def coo(x: Any) -> SparseTensor:
    """The tensor in the layout COO; itself if it is."""
    p = x._pattern
    if isinstance(p, Coordinates):
        return x
    values = x._entries.reshape(-1) if p.blocked else x._entries
    return sparse(p.coordinates, values, x._size)


def merged(x: Any) -> SparseTensor:
    """The tensor with each of its places once: coalesced, or compressed as it is."""
    return coalesce(x) if isinstance(x._pattern, Coordinates) else x


def compress(x: SparseTensor, layout: Layout, block: Any = None) -> SparseTensor:
    """A sparse matrix in one of the layouts by rows or columns."""
    by, blocked = COMPRESSED[layout]
    name = f"to_{layout.name}"
    if len(x._size) != 2 or x.dense_dim():
        raise LayoutError(f"{name}: only matrices without dense dimensions have the layout {layout}, got "
                          f"shape {list(x._size)}; use to_sparse_coo(), or to_dense()")
    size: Any = ntuple(block, 2, name, "blocksize") if blocked else (1, 1)
    if x.layout is layout and size == x._pattern.block:  # type: ignore[union-attr]
        return x
    if any(b < 1 or s % b for b, s in zip(size, x._size)):
        raise ShapeError(f"{name}: blocks of {list(size)} do not divide a matrix of shape {list(x._size)}")
    x = coalesce(coo(x))
    row, column = x._pattern.indices  # type: ignore[union-attr]
    shape: Any = x._size
    grid = (shape[0] // size[0], shape[1] // size[1])
    if not blocked:
        if by == "row":
            return sparse(Compressed(starts_of(row, grid[0]), column, shape), x._entries, shape)
        rows, _ = x._pattern.rows()
        turned, order = rows.turned
        pattern = Compressed(turned.starts, turned.columns, shape, "column")
        return sparse(pattern, take(x._entries, order), x._size)
    xp = array_module(row)
    number = (row // size[0]) * grid[1] + column // size[1] if by == "row" else (
        (column // size[1]) * grid[0] + row // size[0])
    found, which = xp.unique(number, return_inverse=True)
    wide = grid[1] if by == "row" else grid[0]
    pattern = Compressed(starts_of(found // wide, grid[0] if by == "row" else grid[1]), found % wide, shape,
                         by, size)
    slot = (which.reshape(-1) * size[0] + row % size[0]) * size[1] + column % size[1]
    values: Any = put(x._entries, slot, len(found) * size[0] * size[1])
    return sparse(pattern, values.reshape(len(found), *size), x._size)


def from_dense(x: Tensor, sparse_dim: int) -> SparseTensor:
    """COO of what is not 0 in a dense tensor, with this many sparse dimensions."""
    if not 0 <= sparse_dim <= x.ndim or (x.ndim and not sparse_dim):
        raise ShapeError(f"to_sparse: sparse_dim={sparse_dim} must be between 1 and the {x.ndim} dimensions "
                         f"of the tensor")
    sizes, rest = x.shape[:sparse_dim], x.shape[sparse_dim:]
    rows: Any = x.reshape((count_of(sizes), *rest))  # type: ignore[attr-defined]
    array = rows._array
    there = array != 0 if not rest else (array.reshape(len(array), math.prod(rest)) != 0).any(1)
    (linear,) = array_module(array).nonzero(there)
    return sparse(at_linear(linear, tuple(sizes)), take(rows, linear), tuple(x.shape))


@there
def to_sparse(self: Tensor, sparse_dim: int | None = None, *, layout: Any = None, blocksize: Any = None,
              dense_dim: int | None = None) -> SparseTensor:
    """The tensor in a sparse layout: COO, or the one that is named; of a dense one, what is not 0.

    sparse_dim: how many dimensions are stored by coordinates (of a dense tensor; default: all). blocksize: of
    the layouts of blocks. Raises LayoutError for what cannot have the layout, ShapeError for blocks that do
    not fit.
    """
    if dense_dim:
        raise LayoutError("to_sparse: dense_dim is not offered here; use to_sparse(sparse_dim) in layout COO")
    layout = sparse_coo if layout is None else layout
    if layout is strided or not isinstance(layout, Layout):
        raise TypeError(f"to_sparse: layout must be a sparse layout, e.g. framework.sparse_csr, got "
                        f"{layout!r}")
    if sparse_dim is not None and layout is not sparse_coo:
        raise LayoutError(f"to_sparse: sparse_dim is for layout COO, not {layout}")
    if (blocksize is not None) != COMPRESSED.get(layout, ("", False))[1]:
        raise ValueError(f"to_sparse: blocksize={blocksize!r} does not go with layout {layout}: the layouts "
                         f"of blocks need one, the others take none")
    x: Any = self
    if not isinstance(x, SparseTensor):
        x = from_dense(x, x.ndim if sparse_dim is None else sparse_dim)
    elif sparse_dim not in (None, x.sparse_dim()):
        raise LayoutError(f"to_sparse: the tensor has {x.sparse_dim()} sparse dimensions already; use "
                          f"to_dense().to_sparse({sparse_dim})")
    return coo(x) if layout is sparse_coo else compress(x, layout, blocksize)


def to_sparse_coo(self: Tensor) -> SparseTensor:
    """The tensor in the layout COO."""
    return to_sparse(self)


def to_sparse_csr(self: Tensor, dense_dim: int | None = None) -> SparseTensor:
    """A matrix in the layout CSR."""
    return to_sparse(self, layout=sparse_csr, dense_dim=dense_dim)


def to_sparse_csc(self: Tensor, dense_dim: int | None = None) -> SparseTensor:
    """A matrix in the layout CSC."""
    return to_sparse(self, layout=sparse_csc, dense_dim=dense_dim)


def to_sparse_bsr(self: Tensor, blocksize: Any, dense_dim: int | None = None) -> SparseTensor:
    """A matrix in the layout BSR, of blocks of this size."""
    return to_sparse(self, layout=sparse_bsr, blocksize=blocksize, dense_dim=dense_dim)


def to_sparse_bsc(self: Tensor, blocksize: Any, dense_dim: int | None = None) -> SparseTensor:
    """A matrix in the layout BSC, of blocks of this size."""
    return to_sparse(self, layout=sparse_bsc, blocksize=blocksize, dense_dim=dense_dim)


@there
def sparse_mask(self: Tensor, mask: Tensor) -> SparseTensor:
    """The elements of the tensor at the places of the sparse ``mask``, whose values do not count.

    >>> mask = fw.tensor([[1.0, 0.0], [0.0, 1.0]]).to_sparse()
    >>> fw.tensor([[1.0, 2.0], [3.0, 4.0]]).sparse_mask(mask).values()
    tensor([1., 4.])
    """
    if not isinstance(mask, SparseTensor):
        raise LayoutError("sparse_mask: mask must be sparse, it is dense; use mask.to_sparse(), or "
                          "framework.where")
    if tuple(self.shape) != mask._size:
        raise ShapeError(f"sparse_mask: the tensor has shape {list(self.shape)}, the mask "
                         f"{list(mask._size)}; "
                         f"they must be equal")
    mask = merged(mask)
    places = coo(mask)._pattern
    assert isinstance(places, Coordinates)
    if isinstance(self, SparseTensor):
        if self.dense_dim() != mask.dense_dim():
            raise LayoutError("sparse_mask: the tensor and the mask have different sparse dimensions")
        x = coalesce(coo(self))
        values = _at(x, places.linear)
    else:
        sizes = places.sizes
        rows = self.reshape((count_of(sizes), *mask._size[len(sizes):]))  # type: ignore[attr-defined]
        values = take(rows, places.linear)
    return sparse(mask._pattern, values.reshape(mask._entries.shape), mask._size)


def _at(x: SparseTensor, linear: Any) -> Any:
    """The values of a coalesced tensor at these places, 0 where it has none."""
    own, xp = x._pattern.linear, array_module(linear)  # type: ignore[union-attr]
    if not len(own):
        return x._entries.new_zeros((len(linear), *x._entries.shape[1:]))  # type: ignore[attr-defined]
    at = xp.minimum(xp.searchsorted(own, linear), len(own) - 1)
    absent: Any = wrap(own[at] != linear)
    absent = absent.reshape((-1,) + (1,) * (x._entries.ndim - 1))
    found = take(x._entries, at)
    return found.masked_fill(absent, 0)  # type: ignore[union-attr]


@there
def _joined(*xs: Any, dim: int) -> SparseTensor:
    """``cat`` of sparse tensors: the places of each behind those of the ones before."""
    if not all(isinstance(x, SparseTensor) for x in xs):
        raise LayoutError("cat: sparse and dense tensors do not join; use x.to_dense()")
    first, layout = coo(xs[0]), xs[0].layout
    k = first.sparse_dim()
    if dim >= k or any(x.sparse_dim() != k for x in xs):
        raise LayoutError("cat: sparse tensors join along sparse dimensions, of which all have equally many; "
                          "use x.to_dense()")
    size, places, offset = list(first._size), [], 0
    for x in map(coo, xs):
        if [s for d, s in enumerate(x._size) if d != dim] != [s for d, s in enumerate(size) if d != dim]:
            raise ShapeError(f"cat: shapes {[list(x.shape) for x in xs]} differ beside dimension {dim}")
        moved = x._pattern.indices.copy()  # type: ignore[union-attr]
        moved[dim] += offset
        offset += x._size[dim]
        places.append(moved)
    size[dim] = offset
    indices = array_module(places[0]).concatenate(places, 1)
    made = sparse(Coordinates(indices, tuple(size[:k])), cat([coo(x)._entries for x in xs]), tuple(size))
    block = xs[0]._pattern.block if "bs" in layout.name else None
    return to_sparse(made, layout=layout, blocksize=block)


cat_op.sparse = _joined  # type: ignore[attr-defined]


# -- SciPy ---------------------------------------------------------------------------------------


def from_scipy(matrix: Any) -> SparseTensor:
    """A tensor over the memory of a SciPy matrix or array: CSR, CSC and BSR as they are, others as COO.

    Nothing is copied but the two rows of COO's indices, which stand in one array here. Indices that are not
    sorted are sorted first.
    """
    kind = getattr(matrix, "format", None)
    if kind in ("csr", "csc", "bsr"):
        if not matrix.has_canonical_format:
            matrix = matrix.copy()
            matrix.sum_duplicates()
        shape: Any = tuple(map(int, matrix.shape))
        block: Any = tuple(map(int, matrix.blocksize)) if kind == "bsr" else None
        pattern = Compressed(matrix.indptr, matrix.indices, shape, "column" if kind == "csc" else "row",
                             block)
        return sparse(pattern, wrap(matrix.data), pattern.sizes)
    if not hasattr(matrix, "tocoo"):
        raise TypeError(f"sparse.from_scipy: wanted a matrix or array of scipy.sparse, got "
                        f"{type(matrix).__name__}")
    matrix = matrix.tocoo()
    sizes = tuple(map(int, matrix.shape))
    places = Coordinates(np.stack([matrix.row, matrix.col]).astype(np.int64), sizes)
    return sparse(places, wrap(matrix.data), sizes)


@there
def to_scipy(x: SparseTensor) -> Any:
    """The SciPy array over the memory of a sparse matrix; as for ``numpy``, it must not require grad."""
    scipy = need("scipy.sparse", "dev", "sparse.to_scipy")
    if not isinstance(x, SparseTensor):
        raise LayoutError("sparse.to_scipy: the tensor is dense; use x.to_sparse_csr() first")
    if len(x._size) != 2 or x.dense_dim():
        raise LayoutError(f"sparse.to_scipy: wanted a matrix without dense dimensions, got shape "
                          f"{list(x._size)}")
    p, values = x._pattern, x._entries.numpy()
    if isinstance(p, Coordinates):
        return scipy.coo_array((values, tuple(p.indices)), shape=p.sizes)
    if p.layout is sparse_bsc:
        raise LayoutError("sparse.to_scipy: SciPy has no layout BSC; use x.to_sparse_bsr(size) first")
    kind = scipy.bsr_array if p.blocked else scipy.csr_array if p.by == "row" else scipy.csc_array
    return kind((values, p.others, p.starts), shape=p.sizes)
