"""What SparseTensor has of Tensor's methods in a form of its own, beside what records dispatch."""

from typing import Any

from ..autograd.mode import no_grad, state
from ..backends import array_module
from ..errors import AutogradError, LayoutError
from ..node import Leaf
from ..ops.language.elementwise import Elementwise
from ..ops.record.args import one_dim
from ..ops.record.op import OPS
from ..ops.reduce.vector_norm import norm_op
from ..ops.shape.view import permute_op
from ..tensor import Tensor, bump
from . import convert, products, reduce
from .convert import coo, merged
from .pattern import Compressed, Coordinates
from .products import take
from .tensor import SparseTensor, sparse, there

_FLIP = {"row": "column", "column": "row"}


@there
def transpose(self: SparseTensor, dim0: int, dim1: int) -> SparseTensor:
    """Two dimensions swapped: of CSR the CSC matrix over the same memory and the other way round, of COO the
    rows of the indices."""
    a, b = (one_dim(d, self.ndim, "transpose") for d in (dim0, dim1))
    p, size = self._pattern, list(self._size)
    if a == b:
        return self
    size[a], size[b] = size[b], size[a]
    if isinstance(p, Compressed):
        block = p.block[::-1] if p.blocked else None
        turned = Compressed(p.starts, p.others, (p.sizes[1], p.sizes[0]), _FLIP[p.by], block)
        values: Any = self._entries.transpose(1,
                                              2) if p.blocked else self._entries  # type: ignore[attr-defined]
        return sparse(turned, values, tuple(size))
    k = len(p.sizes)
    if (a < k) != (b < k):
        raise LayoutError(f"transpose: dimensions {a} and {b} are one sparse and one dense; use x.to_dense()")
    if a >= k:
        return sparse(p, self._entries.transpose(a - k + 1, b - k + 1),
                      tuple(size))  # type: ignore[attr-defined]
    order = list(range(k))
    order[a], order[b] = b, a
    places = Coordinates(p.indices[order], tuple(size[:k]))
    return sparse(places, self._entries, tuple(size))


def _permuted(x: SparseTensor, *, dims: tuple) -> SparseTensor:
    left = [d for d in range(len(dims)) if dims[d] != d]
    if not left:
        return x
    if len(left) == 2:
        return transpose(x, *left)
    x = coo(x)
    p = x._pattern
    assert isinstance(p, Coordinates)
    k = len(p.sizes)
    if sorted(dims[:k]) != list(range(k)):
        raise LayoutError("permute: a sparse dimension would become a dense one; use x.to_dense()")
    values: Any = x._entries
    if x.dense_dim():
        values = values.permute(0, *[d - k + 1 for d in dims[k:]])
    places = Coordinates(p.indices[list(dims[:k])], tuple(p.sizes[d] for d in dims[:k]))
    return sparse(places, values, tuple(x._size[d] for d in dims))


def sum(self: SparseTensor, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Tensor:
    """Sums over dimensions, see ``sparse.sum``."""
    return reduce.sum(self, dim, dtype, keepdim)


def mean(self: SparseTensor, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Tensor:
    """Means over dimensions, in which elements that are not stored count as 0."""
    total: Any = sum(self, dim, keepdim, dtype=dtype)
    return total / (self.numel() // max(total.numel(), 1))


@there
def norm(self: SparseTensor, p: Any = 2, dim: Any = None, keepdim: bool = False, dtype: Any = None) -> Tensor:
    """The norm of all elements."""
    if dim is not None or keepdim:
        raise LayoutError("norm: dim= is not offered for sparse tensors; use x.to_dense()")
    return merged(self)._entries.norm(p, dtype=dtype)  # type: ignore[attr-defined]


@there
def any_(self: SparseTensor, dim: Any = None, keepdim: bool = False) -> Tensor:
    """Whether an element is not 0."""
    if dim is not None or keepdim:
        raise LayoutError("any: dim= is not offered for sparse tensors; use x.to_dense()")
    return merged(self)._entries.any()  # type: ignore[attr-defined]


def type_(self: SparseTensor, dtype: Any = None, non_blocking: bool = False) -> Any:
    """The values in a dtype; without one, its name."""
    if dtype is None or isinstance(dtype, str):
        return self._entries.type(dtype) if dtype is None else self._on_values("type", dtype)  # type: ignore[attr-defined]
    return self.to(dtype)


def round_(self: SparseTensor, *, decimals: int = 0) -> SparseTensor:
    """The values rounded."""
    return merged(self)._on_values("round", decimals=decimals)


def nan_to_num(self: SparseTensor, nan: float = 0.0, posinf: Any = None, neginf: Any = None) -> SparseTensor:
    """The values with numbers in place of nan and infinities."""
    return merged(self)._on_values("nan_to_num", nan, posinf, neginf)


def softmax(self: SparseTensor, dim: int, dtype: Any = None) -> SparseTensor:
    """Softmax over stored values, see ``sparse.softmax``."""
    return reduce.softmax(self, dim, dtype=dtype)


def log_softmax(self: SparseTensor, dim: int, dtype: Any = None) -> SparseTensor:
    """The logarithm of softmax over stored values."""
    return reduce.log_softmax(self, dim, dtype=dtype)


def mm(self: SparseTensor, mat2: Tensor) -> Any:
    """The matrix product, see ``sparse.mm``."""
    return products.mm(self, mat2)


@there
def index_select(self: SparseTensor, dim: int, index: Tensor) -> SparseTensor:
    """Rows (or slices of another sparse dimension) by number, in the order of ``index``."""
    at = one_dim(dim, self.ndim, "index_select")
    layout, x = self.layout, convert.coalesce(coo(self))
    p = x._pattern
    assert isinstance(p, Coordinates)
    if at >= len(p.sizes):
        values = x._entries.index_select(at - len(p.sizes) + 1, index)  # type: ignore[attr-defined]
        return sparse(p, values)
    wanted = index._array
    xp = array_module(wanted)
    if wanted.size and not 0 <= int(wanted.min()) <= int(wanted.max()) < p.sizes[at]:
        raise IndexError(f"index_select: index goes from {int(wanted.min())} to {int(wanted.max())}, but "
                         f"dimension {at} has {p.sizes[at]}")
    order = xp.argsort(p.indices[at], kind="stable")
    line = p.indices[at][order]
    first, last = xp.searchsorted(line, wanted), xp.searchsorted(line, wanted, side="right")
    counts = last - first
    ends = xp.cumsum(counts)
    total = int(ends[-1]) if len(ends) else 0
    chosen = order[xp.arange(total) - xp.repeat(ends - counts, counts) + xp.repeat(first, counts)]
    indices = p.indices[:, chosen].copy()
    indices[at] = xp.repeat(xp.arange(len(wanted)), counts)
    sizes = (*p.sizes[:at], len(wanted), *p.sizes[at + 1:])
    made: Any = convert.coalesce(sparse(Coordinates(indices, sizes), take(x._entries, chosen)))
    return made if made.layout is layout else made.to_sparse(layout=layout)


@there
def __getitem__(self: SparseTensor, key: Any) -> Any:
    """``x[i]`` of a sparse tensor: a slice of its first dimension; other keys are refused."""
    if isinstance(key, int) and not isinstance(key, bool) and self.ndim:
        at = one_dim(0, self.ndim, "getitem")
        if not -self._size[0] <= key < self._size[0]:
            raise IndexError(f"index {key} is out of range for dimension 0 of size {self._size[0]}")
        x = convert.coalesce(coo(self))
        p = x._pattern
        assert isinstance(p, Coordinates)
        (there,) = (p.indices[at] == key % self._size[0]).nonzero()
        if len(p.sizes) == 1:
            return take(x._entries, there).sum(0)
        places = Coordinates(p.indices[1:, there], p.sizes[1:], True)
        return sparse(places, take(x._entries, there), self._size[1:])
    if isinstance(key, tuple) and key and all(type(k) is int for k in key):
        found: Any = self
        for k in key:
            found = found[k]
        return found
    raise LayoutError("indexing a sparse tensor: only numbers are offered, x[i] or x[i, j]; use "
                      "x.narrow_copy(dim, start, length), x.index_select(dim, index), or x.to_dense()")


@there
def __setitem__(self: SparseTensor, key: Any, value: Any) -> None:
    """Raises: the places of a sparse tensor never change."""
    raise LayoutError("assignment into a sparse tensor: its places never change; change x.values() in place, "
                      "build another one, or use x.to_dense()")


def _in_place(name: str, function: str) -> Any:
    def change(self: SparseTensor, other: Any = None, **settings: Any) -> SparseTensor:
        if state.enabled and self._node is not None and type(self._node) is Leaf:
            raise AutogradError(f"{name}: a leaf that requires grad cannot be changed in place; use "
                                f"no_grad(), or the form without the underscore")
        made = getattr(Tensor, function)(self, *(() if other is None else (other,)), **settings)
        if not isinstance(made, SparseTensor):
            raise LayoutError(f"{name}: the result would be dense, which a sparse tensor cannot become in "
                              f"place; use x.to_dense()")
        if made._pattern is self._pattern and made._node is None and self._node is None and (
                made._entries._array.dtype == self._entries._array.dtype):
            self._entries._array[...] = made._entries._array
            bump(self._entries, name)
        else:
            self._entries, self._pattern = made._entries, made._pattern
        return self
    change.__name__ = change.__qualname__ = name
    change.__doc__ = f"``{function}`` in place; returns the tensor."
    return change


@no_grad()
def copy_(self: SparseTensor, src: Tensor, non_blocking: bool = False) -> SparseTensor:
    """Take the values and places of another sparse tensor of this shape; returns the tensor."""
    if not isinstance(src, SparseTensor) or src._size != self._size or src.layout is not self.layout:
        raise LayoutError(f"copy_: wanted a sparse tensor of layout {self.layout} and shape "
                          f"{list(self._size)}, got "
                          f"{src.layout} and {list(src.shape)}")  # type: ignore[attr-defined]
    values: Any = src._entries.detach().to(self.dtype)  # type: ignore[attr-defined]
    if src._entries.shape == self._entries.shape:
        self._entries.copy_(values)  # type: ignore[attr-defined]
    else:
        self._entries = values.clone().requires_grad_(self.requires_grad)
    self._pattern = src._pattern
    return self


@there
def zero_(self: SparseTensor) -> SparseTensor:
    """Drop all values, in place; returns the tensor."""
    empty = self._entries.detach()[:0].clone()  # type: ignore[index]
    x = coo(self)
    assert isinstance(x._pattern, Coordinates)
    if isinstance(self._pattern, Compressed):
        self._entries = self._entries.detach() * 0  # type: ignore[operator]
        return self
    self._entries, self._pattern = empty, Coordinates(x._pattern.indices[:, :0], x._pattern.sizes, True)
    return self


for _op in OPS:
    if isinstance(_op, Elementwise) and len(_op.inputs) == 1 and hasattr(Tensor, f"{_op.name}_"):
        setattr(SparseTensor, f"{_op.name}_", _in_place(f"{_op.name}_", _op.name))
for _name, _function in (("mul_", "mul"), ("div_", "div"), ("add_", "add"), ("sub_", "sub"), ("neg_", "neg")):
    setattr(SparseTensor, _name, _in_place(_name, _function))
for _symbol, _name in (("imul", "mul_"), ("itruediv", "div_"), ("iadd", "add_"), ("isub", "sub_")):
    setattr(SparseTensor, f"__{_symbol}__", getattr(SparseTensor, _name))
for _method in (transpose, sum, mean, norm, softmax, log_softmax, mm, index_select, __getitem__,
                __setitem__, zero_,
                copy_,
                convert.coalesce, convert.to_dense, convert.to_sparse, convert.to_sparse_coo,
                convert.to_sparse_csr, convert.to_sparse_csc, convert.to_sparse_bsr, convert.to_sparse_bsc,
                convert.sparse_mask):
    setattr(SparseTensor, _method.__name__, _method)
for _name, _method in (("any", any_), ("type", type_), ("round", round_), ("nan_to_num", nan_to_num)):
    setattr(SparseTensor, _name, _method)
for _dtype in ["float", "double", "half", "int", "long", "short", "bfloat16", "bool", "byte", "char",
               "cfloat", "cdouble"]:
    def _cast(self: SparseTensor, _dtype: str = _dtype) -> SparseTensor:
        return self._on_values(_dtype)
    _cast.__name__, _cast.__doc__ = _dtype, f"The values as {_dtype}."
    setattr(SparseTensor, _dtype, _cast)
def _norm(x: SparseTensor, *, ord: Any, dims: Any = None, keepdim: bool = False) -> Tensor:
    return norm(x, ord, None if dims is None or len(dims) == x.ndim else dims, keepdim)


norm_op.sparse = _norm  # type: ignore[attr-defined]
permute_op.sparse = _permuted  # type: ignore[attr-defined]
