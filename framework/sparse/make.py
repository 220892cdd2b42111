"""Constructors of sparse tensors, and what they check."""

from typing import Any

import numpy as np

from ..backends import array_module, move
from ..errors import DTypeError, LayoutError, ShapeError
from ..from_data import as_tensor
from ..layouts import Layout, sparse_bsc, sparse_bsr, sparse_coo, sparse_csc, sparse_csr
from ..ops.record.args import size_args
from ..tensor import Tensor, wrap
from .pattern import Compressed, Coordinates, count_of
from .tensor import COMPRESSED, SparseTensor, sparse, there


class check_sparse_tensor_invariants:
    """What PyTorch's programs switch on: here constructors always check, so there is nothing to switch."""

    def __init__(self, enable: bool = True) -> None:
        self.enabled = enable

    def __enter__(self) -> "check_sparse_tensor_invariants":
        return self

    def __exit__(self, *error: Any) -> None:
        return None

    @staticmethod
    def is_enabled() -> bool:
        """Whether constructors check: True."""
        return True

    @staticmethod
    def enable() -> None:
        """Nothing: constructors check already."""

    @staticmethod
    def disable() -> None:
        """Nothing: constructors go on checking."""


@there
def sparse_coo_tensor(indices: Any, values: Any = None, size: Any = None, *, dtype: Any = None,
                      device: Any = None,
                      requires_grad: bool = False, check_invariants: bool | None = None,
                      is_coalesced: bool | None = None) -> SparseTensor:
    """A tensor of ``values`` (nnz, *dense) at the coordinates ``indices`` (sparse_dim, nnz); COO.

    size: default, the smallest that holds them. Places may come in any order and repeat: their values are
    summed. ``sparse_coo_tensor(size)`` is an empty one. Gradients flow to ``values``; with requires_grad the
    tensor is a leaf of its own. Raises ShapeError, IndexError for coordinates outside, TypeError for ones
    that are no integers.

    >>> fw.sparse_coo_tensor([[0, 1, 1], [2, 0, 2]], [3.0, 4.0, 5.0], (2, 3)).to_dense()
    tensor([[0., 0., 3.],
            [4., 0., 5.]])
    """
    op = "sparse_coo_tensor"
    if values is None:
        size, indices = indices if size is None else size, None
        sizes = size_args((size,), op)
        indices = np.zeros((len(sizes), 0), np.int64)
        values = as_tensor([])
    entries = _values(values, dtype, device, requires_grad)
    places = _integers(indices, op, "indices", entries)
    if places.ndim == 1 and not places.size:
        places = places.reshape(0, 0)
    if places.ndim != 2:
        raise ShapeError(f"{op}: indices must be (sparse_dim, nnz), got shape {list(places.shape)}")
    if not entries.ndim and places.shape[1] == 1:
        entries = entries.reshape(1)  # type: ignore[attr-defined]
    k, n = places.shape
    if not entries.ndim or entries.shape[0] != n:
        raise ShapeError(f"{op}: {n} columns of indices do not fit values of shape {list(entries.shape)}; "
                         f"each value has one")
    places = places.astype(np.int64, copy=False)
    if size is None:
        sizes = (*(int(m) + 1 for m in (places.max(1) if n else [-1] * k)), *entries.shape[1:])
    else:
        sizes = size_args((size,), op)
        if len(sizes) != k + entries.ndim - 1 or sizes[k:] != entries.shape[1:]:
            raise ShapeError(f"{op}: size {list(sizes)} does not fit: indices have {k} rows and each value "
                             f"shape {list(entries.shape[1:])}; size must be {k} sparse sizes, then these")
    for d in range(k):
        if n and not 0 <= int(places[d].min()) <= int(places[d].max()) < sizes[d]:
            raise IndexError(f"{op}: indices[{d}] go from {int(places[d].min())} to {int(places[d].max())}, "
                             f"but size[{d}] is {sizes[d]}")
    count_of(sizes[:k])
    pattern = Coordinates(places, tuple(sizes[:k]))
    if is_coalesced:
        if n > 1 and not bool((pattern.linear[1:] > pattern.linear[:-1]).all()):
            raise ValueError(f"{op}: is_coalesced=True, but the indices are not in order, or come twice")
        pattern.coalesced = True
    return sparse(pattern, entries, tuple(sizes))


def _values(values: Any, dtype: Any, device: Any, requires_grad: bool) -> Any:
    entries: Any = as_tensor(values, dtype=dtype, device=device)
    if isinstance(entries, SparseTensor):
        raise LayoutError("sparse tensors: values must be dense, they are sparse; use values.to_dense()")
    if requires_grad or entries._node is None:
        return entries.detach().requires_grad_(requires_grad)
    return entries


def _integers(given: Any, op: str, name: str, entries: Tensor) -> Any:
    """Indices as an array where the values are; TypeError unless they are integers."""
    if isinstance(given, (list, tuple)) and not np.size(given):
        given = np.zeros(np.shape(given), np.int64)
    x = as_tensor(given)
    if x._array.dtype.kind not in "iu":
        raise DTypeError(f"{op}: {name} must be integers, got {x.dtype}; convert them with .long()")
    return move(x._array, entries.device)


@there
def sparse_compressed_tensor(compressed_indices: Any, plain_indices: Any, values: Any, size: Any = None, *,
                             dtype: Any = None, layout: Any = None, device: Any = None,
                             pin_memory: bool = False,
                             requires_grad: bool = False,
                             check_invariants: bool | None = None) -> SparseTensor:
    """A matrix in the layout CSR, CSC, BSR or BSC: where each row (column) begins, the others, the values.

    compressed_indices (rows + 1) grow from 0 to nnz; plain_indices (nnz) grow within a row; values (nnz), or
    of blocks (nnz, height, width). Raises ShapeError, ValueError for indices out of order, IndexError.

    >>> fw.sparse_compressed_tensor([0, 1, 2], [1, 0], [3.0, 4.0], (2, 2), layout=fw.sparse_csr).to_dense()
    tensor([[0., 3.],
            [4., 0.]])
    """
    if layout not in COMPRESSED:
        raise ValueError(f"sparse_compressed_tensor: layout must be sparse_csr, sparse_csc, sparse_bsr or "
                         f"sparse_bsc, got {layout!r}")
    return _compressed("sparse_compressed_tensor", layout, compressed_indices, plain_indices, values, size,
                       dtype,
                       device, requires_grad)


def _compressed(op: str, layout: Layout, starts: Any, others: Any, values: Any, size: Any, dtype: Any,
                device: Any,
                requires_grad: bool) -> SparseTensor:
    by, blocked = COMPRESSED[layout]
    entries = _values(values, dtype, device, requires_grad)
    starts, others = (_integers(i, op, n, entries) for i, n in ((starts, "compressed indices"),
                                                                 (others, "plain indices")))
    if starts.dtype != others.dtype or starts.dtype not in (np.int32, np.int64):
        starts, others = starts.astype(np.int64), others.astype(np.int64)
    if starts.ndim != 1 or others.ndim != 1 or entries.ndim != 1 + 2 * blocked:
        raise ShapeError(f"{op}: compressed indices of shape {list(starts.shape)}, plain indices of shape "
                         f"{list(others.shape)} and values of shape {list(entries.shape)} are no matrix: "
                         f"wanted "
                         f"(rows + 1), (nnz) and {'(nnz, height, width)' if blocked else '(nnz)'}; batches "
                         f"and dense dimensions are not offered, use layout COO")
    nnz, block = len(others), tuple(entries.shape[1:]) if blocked else (1, 1)
    if entries.shape[0] != nnz:
        raise ShapeError(f"{op}: {nnz} plain indices do not fit {entries.shape[0]} values")
    if not len(starts) or int(starts[0]) or int(starts[-1]) != nnz or bool((starts[1:] < starts[:-1]).any()):
        raise ValueError(f"{op}: compressed indices must grow from 0 to the number of values, {nnz}")
    lines = (len(starts) - 1) * block[0 if by == "row" else 1]
    if size is None:
        widest = (int(others.max()) + 1 if nnz else 0) * block[1 if by == "row" else 0]
        sizes = (lines, widest) if by == "row" else (widest, lines)
    else:
        sizes = size_args((size,), op)  # type: ignore[assignment]
    if len(sizes) != 2 or sizes[0 if by == "row" else 1] != lines or any(b and s % b for s, b in zip(sizes,
                                                                                                     block)):
        raise ShapeError(f"{op}: size {list(sizes)} does not fit {len(starts)} compressed indices"
                         + (f" and blocks of {list(block)}" if blocked else ""))
    pattern = Compressed(starts, others, sizes, by, block if blocked else None)
    reach = pattern.grid[1 if by == "row" else 0]
    if nnz and not 0 <= int(others.min()) <= int(others.max()) < reach:
        raise IndexError(f"{op}: plain indices go from {int(others.min())} to {int(others.max())}, but there "
                         f"are "
                         f"{reach} {'columns' if by == 'row' else 'rows'}{' of blocks' if blocked else ''}")
    xp = array_module(others)
    grows = xp.ones(nnz, bool)
    grows[1:] = others[1:] > others[:-1]
    grows[starts[:-1][starts[:-1] < nnz]] = True
    if not bool(grows.all()):
        raise ValueError(f"{op}: plain indices must grow within each {by}, and none may come twice; build "
                         f"layout COO and call "
                         f".coalesce().{'to_sparse_csr()' if by == 'row' else 'to_sparse_csc()'}")
    return sparse(pattern, entries, sizes)


def taken_apart(x: SparseTensor) -> tuple[dict, dict[str, Tensor]]:
    """What a file holds of a sparse tensor: plain data, and dense tensors by name."""
    p = x._pattern
    told: dict[str, Any] = {"layout": p.layout.name, "size": list(x._size), "requires_grad": x.requires_grad}
    if isinstance(p, Coordinates):
        return {**told, "coalesced": p.coalesced}, {"indices": wrap(p.indices), "values": x._entries.detach()}
    return told, {"starts": wrap(p.starts), "others": wrap(p.others), "values": x._entries.detach()}


@there
def put_together(layout: str, size: list, values: Tensor, requires_grad: bool = False,
                 coalesced: bool = False,
                 **indices: Tensor) -> SparseTensor:
    """The tensor that ``taken_apart`` took apart; all is checked."""
    if type(requires_grad) is not bool or not isinstance(values, Tensor):
        raise ValueError("no values")
    if layout == sparse_coo.name:
        return sparse_coo_tensor(indices["indices"], values, tuple(size), requires_grad=requires_grad,
                                 is_coalesced=coalesced)
    named = {k.name: k for k in COMPRESSED}
    return sparse_compressed_tensor(indices["starts"], indices["others"], values, tuple(size),
                                    layout=named[layout], requires_grad=requires_grad)


@there
def sparse_csr_tensor(crow_indices: Any, col_indices: Any, values: Any, size: Any = None, *,
                      dtype: Any = None,
                      device: Any = None, pin_memory: bool = False, requires_grad: bool = False,
                      check_invariants: bool | None = None) -> SparseTensor:
    """A matrix in the layout CSR; see ``sparse_compressed_tensor``.

    >>> fw.sparse_csr_tensor([0, 1, 2], [1, 0], [3.0, 4.0], (2, 2)).to_dense()
    tensor([[0., 3.],
            [4., 0.]])
    """
    return _compressed("sparse_csr_tensor", sparse_csr, crow_indices, col_indices, values, size, dtype,
                       device,
                       requires_grad)


@there
def sparse_csc_tensor(ccol_indices: Any, row_indices: Any, values: Any, size: Any = None, *,
                      dtype: Any = None,
                      device: Any = None, pin_memory: bool = False, requires_grad: bool = False,
                      check_invariants: bool | None = None) -> SparseTensor:
    """A matrix in the layout CSC, CSR's transpose; see ``sparse_compressed_tensor``.

    >>> fw.sparse_csc_tensor([0, 1, 2], [1, 0], [3.0, 4.0], (2, 2)).to_dense()
    tensor([[0., 4.],
            [3., 0.]])
    """
    return _compressed("sparse_csc_tensor", sparse_csc, ccol_indices, row_indices, values, size, dtype,
                       device,
                       requires_grad)


@there
def sparse_bsr_tensor(crow_indices: Any, col_indices: Any, values: Any, size: Any = None, *,
                      dtype: Any = None,
                      device: Any = None, pin_memory: bool = False, requires_grad: bool = False,
                      check_invariants: bool | None = None) -> SparseTensor:
    """A matrix in the layout BSR: CSR of blocks, values (nnz, height, width); see
    ``sparse_compressed_tensor``.

    >>> fw.sparse_bsr_tensor([0, 1], [1], [[[1.0, 2.0]]], (1, 4)).to_dense()
    tensor([[0., 0., 1., 2.]])
    """
    return _compressed("sparse_bsr_tensor", sparse_bsr, crow_indices, col_indices, values, size, dtype,
                       device,
                       requires_grad)


@there
def sparse_bsc_tensor(ccol_indices: Any, row_indices: Any, values: Any, size: Any = None, *,
                      dtype: Any = None,
                      device: Any = None, pin_memory: bool = False, requires_grad: bool = False,
                      check_invariants: bool | None = None) -> SparseTensor:
    """A matrix in the layout BSC: CSC of blocks, values (nnz, height, width); see
    ``sparse_compressed_tensor``.

    >>> fw.sparse_bsc_tensor([0, 0, 1], [0], [[[1.0, 2.0]]], (1, 4)).to_dense()
    tensor([[0., 0., 1., 2.]])
    """
    return _compressed("sparse_bsc_tensor", sparse_bsc, ccol_indices, row_indices, values, size, dtype,
                       device,
                       requires_grad)


@there
def zeros_like(input: SparseTensor, dtype: Any = None, device: Any = None,
               requires_grad: bool = False) -> SparseTensor:
    """A sparse tensor of the same shape and layout that stores nothing.

    >>> fw.sparse.zeros_like(fw.eye(2).to_sparse())._nnz()
    0
    """
    pattern, values = input._pattern, input._entries.detach()[:0]
    kind: Any = {"dtype": dtype or input.dtype, "device": device or input.device,
                 "requires_grad": requires_grad}
    if isinstance(pattern, Coordinates):
        indices = wrap(pattern.indices[:, :0])
        return sparse_coo_tensor(indices, values, input._size, is_coalesced=True, **kind)
    return sparse_compressed_tensor(wrap(pattern.starts * 0), wrap(pattern.others[:0]), values, input._size,
                                    layout=input.layout, **kind)


def empty_like(input: SparseTensor, dtype: Any = None, device: Any = None,
               requires_grad: bool = False) -> SparseTensor:
    """The same as ``zeros_like`` in COO; values that are not set at the same places in the other layouts."""
    if isinstance(input._pattern, Coordinates):
        return zeros_like(input, dtype, device, requires_grad)
    values: Any = input._entries.detach().clone().to(device or input.device, dtype or input.dtype)  # type: ignore[attr-defined]
    return sparse(input._pattern, values.requires_grad_(requires_grad), input._size)


@there
def equal(input: Tensor, other: Tensor) -> bool:
    """Whether two sparse tensors have the same shape and elements, wherever they store 0.

    >>> x = fw.eye(2).to_sparse()
    >>> fw.equal(x, x.to_sparse_csr()), fw.equal(x, x * 2)
    (True, False)
    """
    if not isinstance(input, SparseTensor) or not isinstance(other, SparseTensor):
        raise LayoutError("equal: a sparse tensor is compared with a sparse one; use x.to_dense()")
    if input._size != other._size or input.dtype is not other.dtype:
        return False
    found = []
    for x in (input, other):
        x = x.detach().to_sparse_coo().coalesce()  # type: ignore[attr-defined]
        values = x._entries.numpy()
        kept = (values != 0).any(axis=tuple(range(1, values.ndim)))
        found.append((x._pattern.indices[:, kept], values[kept]))
    return all(np.array_equal(a, b) for a, b in zip(*found))
