"""Sparse tensors in other shapes: a dimension more, a part of one, several behind each other."""

from typing import Any

import numpy as np

from ..errors import LayoutError, ShapeError
from ..ops.record.args import one_dim, size_args
from ..ops.shape.join import cat_op, stack_op
from ..tensor import Tensor, wrap
from . import convert
from .convert import coo
from .pattern import Compressed, Coordinates
from .products import take
from .tensor import SparseTensor, sparse, there


def _places(x: Any) -> Coordinates:
    p = x._pattern
    assert isinstance(p, Coordinates)
    return p


@there
def unsqueeze(self: SparseTensor, dim: int) -> SparseTensor:
    """A sparse dimension of size 1 at ``dim``, of a tensor in the layout COO."""
    at = one_dim(dim, self.ndim + 1, "unsqueeze")
    if not isinstance(self._pattern, Coordinates):
        raise LayoutError(f"unsqueeze: layout {self.layout} holds matrices only; use x.to_sparse_coo() first")
    p = self._pattern
    if at > len(p.sizes):
        values: Any = self._entries
        return sparse(p, values.unsqueeze(at - len(p.sizes) + 1))
    sizes = (*p.sizes[:at], 1, *p.sizes[at:])
    return sparse(Coordinates(np.insert(p.indices, at, 0, axis=0), sizes, p.coalesced), self._entries)


@there
def select(self: SparseTensor, dim: int, index: int) -> Any:
    """One position along a dimension, which is dropped: sparse in COO; dense where no sparse one is left."""
    at = one_dim(dim, self.ndim, "select")
    if not -self._size[at] <= index < self._size[at]:
        raise IndexError(f"select: index={index} is out of range for dimension {at} of size {self._size[at]}")
    x = convert.coalesce(coo(self))
    p, index = _places(x), index % self._size[at]
    k = len(p.sizes)
    if at >= k:
        values: Any = x._entries
        return sparse(p, values.select(at - k + 1, index))
    (there,) = (p.indices[at] == index).nonzero()
    values = take(x._entries, there)
    if k == 1:
        return values.sum(0)
    indices = np.delete(p.indices[:, there], at, axis=0)
    return sparse(Coordinates(indices, (*p.sizes[:at], *p.sizes[at + 1:]), True), values)


@there
def narrow_copy(self: SparseTensor, dim: int, start: int, length: int) -> SparseTensor:
    """``length`` positions from ``start`` along a dimension."""
    at = one_dim(dim, self.ndim, "narrow_copy")
    size = self._size[at]
    first = start + size if start < 0 else start
    if not (0 <= first <= size and 0 <= length <= size - first):
        raise IndexError(f"narrow_copy: start={start} and length={length} reach outside of dimension {at} "
                         f"of size {size}")
    x = coo(self)
    p = _places(x)
    k = len(p.sizes)
    if at >= k:
        values: Any = x._entries
        return sparse(p, values.narrow(at - k + 1, first, length))
    (there,) = ((p.indices[at] >= first) & (p.indices[at] < first + length)).nonzero()
    indices = p.indices[:, there].copy()
    indices[at] -= first
    made = sparse(Coordinates(indices, (*p.sizes[:at], length, *p.sizes[at + 1:]), p.coalesced),
                  take(x._entries, there))
    if isinstance(self._pattern, Compressed) and not self._pattern.blocked:
        return convert.to_sparse(made, layout=self.layout)
    return made


@there
def unbind(self: SparseTensor, dim: int = 0) -> tuple:
    """Every position along a dimension."""
    return tuple([select(self, dim, i) for i in range(self._size[one_dim(dim, self.ndim, "unbind")])])


@there
def sparse_resize_(self: SparseTensor, size: Any, sparse_dim: int, dense_dim: int) -> SparseTensor:
    """Another size with the same stored values, in place, which must lie inside it; COO."""
    sizes = size_args((size,), "sparse_resize_")
    p = self._coordinates("sparse_resize_")
    if (sparse_dim, dense_dim) != (len(p.sizes), self.dense_dim()) or len(sizes) != sparse_dim + dense_dim \
            or tuple(sizes[sparse_dim:]) != self._size[sparse_dim:]:
        raise ShapeError(f"sparse_resize_: a tensor of {len(p.sizes)} sparse dimensions and values of shape "
                         f"{list(self._size[len(p.sizes):])} keeps these; use sparse_resize_and_clear_()")
    if len(p) and any(int(row.max()) >= s for row, s in zip(p.indices, sizes)):
        raise ShapeError(f"sparse_resize_: values lie outside of the size {list(sizes)}; use narrow_copy()")
    self._pattern, self._size = Coordinates(p.indices, tuple(sizes[:sparse_dim]), p.coalesced), tuple(sizes)
    return self


@there
def sparse_resize_and_clear_(self: SparseTensor, size: Any, sparse_dim: int, dense_dim: int) -> SparseTensor:
    """Another size with nothing stored, in place; COO."""
    sizes = size_args((size,), "sparse_resize_and_clear_")
    self._coordinates("sparse_resize_and_clear_")
    if len(sizes) != sparse_dim + dense_dim:
        raise ShapeError(f"sparse_resize_and_clear_: size {list(sizes)} has {len(sizes)} dimensions, "
                         f"sparse_dim={sparse_dim} and dense_dim={dense_dim} are {sparse_dim + dense_dim}")
    self._pattern = Coordinates(np.zeros((sparse_dim, 0), np.int64), tuple(sizes[:sparse_dim]), True)
    self._entries = wrap(np.zeros((0, *sizes[sparse_dim:]), self.dtype.numpy))
    self._size = tuple(sizes)
    return self


@there
def transpose_(self: SparseTensor, dim0: int, dim1: int) -> SparseTensor:
    """Two dimensions swapped, in place; of CSR and CSC this is not offered, it would change the layout."""
    made: Any = self.transpose(dim0, dim1)  # type: ignore[attr-defined]
    if made.layout is not self.layout:
        raise LayoutError(f"transpose_: a tensor of layout {self.layout} would become {made.layout}; use "
                          f"x.transpose({dim0}, {dim1})")
    self._pattern, self._entries, self._size = made._pattern, made._entries, made._size
    return self


@there
def _stacked(*xs: Any, dim: int) -> SparseTensor:
    """``stack`` of sparse tensors, in COO."""
    if not all(isinstance(x, SparseTensor) for x in xs):
        raise LayoutError("stack: sparse and dense tensors do not join; use x.to_dense()")
    return cat_op.run(*[unsqueeze(coo(x), dim) for x in xs], dim=dim)


@there
def filled_like(input: SparseTensor, value: Any, dtype: Any, device: Any, requires_grad: bool,
                name: str) -> SparseTensor:
    """``value`` at the places of a matrix in CSR, CSC, BSR or BSC."""
    if isinstance(input._pattern, Coordinates):
        raise LayoutError(f"{name}: of a tensor in layout COO all elements would be stored; use "
                          f"{name}(x.to_dense()), or sparse_coo_tensor(x.indices(), new_values, x.shape)")
    kind: Any = {"dtype": dtype or input.dtype, "device": device or input.device}
    values: Any = Tensor.new_full(input._entries, input._entries.shape, value, **kind)  # type: ignore[attr-defined]
    return sparse(input._pattern, values.requires_grad_(requires_grad), input._size)


stack_op.sparse = _stacked  # type: ignore[attr-defined]
for _method in (unsqueeze, select, narrow_copy, unbind, sparse_resize_, sparse_resize_and_clear_, transpose_):
    setattr(SparseTensor, _method.__name__, _method)
