"""Products of sparse matrices: spmm and sddmm, each the derivative of the other.

With the places (i, j) of a sparse matrix ``A`` fixed, both are linear in each input::

    spmm(values, dense)[i] = sum over the places (i, j) of values * dense[j]     (A @ dense)
    sddmm(x, y)[place]     = x[i] . y[j]                                        ((x @ y.T) at the places)

and the derivative of either is made of the two, so derivatives of every order are sparse, too.
"""

from typing import Any

import numpy as np

from ..backends import array_module
from ..backends.sums import add_at
from ..errors import DTypeError, LayoutError, ShapeError, kind_of
from ..ops.index.embedding import add_rows, embedding_op
from ..ops.linalg.matmul import matmul_op
from ..ops.record.meta import Meta
from ..ops.record.op import Op
from ..tensor import Tensor, wrap
from .pattern import Coordinates, Rows, at_linear
from .tensor import SparseTensor, sparse, there

PIECE = 1 << 20  # elements of products that the NumPy formulas make at once


def take(values: Any, places: Any) -> Any:
    """``values[places]`` along the first dimension, for tensors and arrays."""
    if isinstance(values, Tensor):
        return embedding_op.run(values, wrap(places), padding=None, by_frequency=False)
    return embedding_op(values, places, padding=None, by_frequency=False)


def put(values: Any, places: Any, count: int) -> Any:
    """``count`` values, each the sum of those that ``places`` sends there."""
    if isinstance(values, Tensor):
        return add_rows.run(values, wrap(places), rows=count)
    return add_rows(values, places, rows=count)


def _pieces(rows: Rows, width: int) -> Any:
    """Rows from and to, and their places, with about PIECE products each."""
    starts, row, m = rows.starts, 0, rows.shape[0]
    while row < m:
        last = int(np.searchsorted(starts, int(starts[row]) + max(PIECE // max(width, 1), 1),
                                   side="right")) - 1
        last = min(max(last, row + 1), m)
        yield row, last, slice(int(starts[row]), int(starts[last]))
        row = last


def _spmm_kernel(xp: Any, values: Any, dense: Any, *, rows: Rows) -> Any:
    out = xp.zeros((rows.shape[0], *dense.shape[1:]), dense.dtype)
    one = values[:, None] if dense.ndim > 1 else values
    if xp is not np:
        add_at(xp, out, rows.of, one * dense[rows.columns])
        return out
    for first, last, part in _pieces(rows, dense[:1].size):
        begin = rows.starts[first:last] - rows.starts[first]
        filled = rows.starts[first:last] < rows.starts[first + 1:last + 1]
        if filled.any():
            products = one[part] * dense[rows.columns[part]]
            out[first:last][filled] = np.add.reduceat(products, begin[filled], axis=0, dtype=dense.dtype)
    return out


def _sddmm_kernel(xp: Any, x: Any, y: Any, *, rows: Rows) -> Any:
    if x.ndim == 1:
        return x[rows.of] * y[rows.columns]
    if xp is not np:
        return (x[rows.of] * y[rows.columns]).sum(1)
    out = np.empty(len(rows.columns), x.dtype)
    step = max(PIECE // max(x.shape[1], 1), 1)
    for i in range(0, len(out), step):
        part = slice(i, i + step)
        out[part] = np.einsum("ij,ij->i", x[rows.of[part]], y[rows.columns[part]])
    return out


def _spmm_infer(values: Meta, dense: Meta, *, rows: Rows) -> Meta:
    return Meta((rows.shape[0], *dense.shape[1:]), dense.dtype)


def _sddmm_infer(x: Meta, y: Meta, *, rows: Rows) -> Meta:
    return Meta((len(rows.columns),), x.dtype)


def _spmm_dense(g: Any, values: Any, rows: Rows) -> Any:
    turned, order = rows.turned
    return spmm(take(values, order), g, rows=turned)


def _sddmm_y(g: Any, x: Any, rows: Rows) -> Any:
    turned, order = rows.turned
    return spmm(take(g, order), x, rows=turned)


spmm = Op("spmm", "values dense", native="spmm", kernel=_spmm_kernel, infer=_spmm_infer, jvp="multilinear",
          vjp={"values": lambda g, dense, rows: sddmm(g, dense, rows=rows), "dense": _spmm_dense})
sddmm = Op("sddmm", "x y", native="sddmm", kernel=_sddmm_kernel, infer=_sddmm_infer, jvp="multilinear",
           vjp={"x": lambda g, y, rows: spmm(g, y, rows=rows), "y": _sddmm_y})


# -- what users call -----------------------------------------------------------------------------


def row_values(x: SparseTensor) -> tuple[Rows, Tensor]:
    """A sparse matrix as rows, with its values in their order."""
    rows, order = x._pattern.rows()
    values: Any = x._entries
    if getattr(x._pattern, "blocked", False):
        values = values.reshape(-1)
    return rows, values if order is None else take(values, order)


def _matrix(x: Any, op: str, name: str) -> Any:
    if not isinstance(x, Tensor):
        raise TypeError(f"{op}: argument '{name}' must be a Tensor, got {kind_of(x)}")
    if x.ndim != 2:
        raise ShapeError(f"{op}: argument '{name}' must be a matrix, got shape {list(x.shape)}")
    if isinstance(x, SparseTensor) and x.dense_dim():
        raise LayoutError(f"{op}: argument '{name}' has {x.dense_dim()} dense dimensions, which products of "
                          f"sparse matrices do not take; use x.to_dense()")
    return x


@there
def product(x: Any, y: Any, op: str = "sparse.mm") -> Any:
    """``x @ y`` where at least one is a sparse matrix; of two, the result is sparse."""
    if x.dtype is not y.dtype:
        raise DTypeError(f"{op}: the operands are {x.dtype} and {y.dtype}; convert one with .to(dtype)")
    if isinstance(x, SparseTensor):
        if x.ndim == y.ndim == 3 and not isinstance(y, SparseTensor):
            return _batches(x, y, op)
        _matrix(x, op, "mat1")
        if isinstance(y, SparseTensor):
            return _two_sparse(x, _matrix(y, op, "mat2"), op)
        if y.ndim > 2:
            raise ShapeError(f"{op}: a sparse matrix of shape {list(x.shape)} times a dense tensor of shape "
                             f"{list(y.shape)}: wanted a vector or a matrix; for batches use x.to_dense()")
        if not y.ndim or y.shape[0] != x.shape[1]:
            raise ShapeError(f"{op}: a sparse matrix of shape {list(x.shape)} does not fit a dense tensor of "
                             f"shape {list(y.shape)}: the inner sizes must be equal")
        rows, values = row_values(x)
        return spmm.run(values, y, rows=rows)
    _matrix(y, op, "mat2")
    if x.ndim not in (1, 2) or x.shape[-1] != y.shape[0]:
        raise ShapeError(f"{op}: shapes {list(x.shape)} and {list(y.shape)} do not fit: the inner sizes must "
                         f"be equal, of a vector or matrix and a sparse matrix")
    rows, values = row_values(y)  # (x @ y).T = y.T @ x.T
    across, order = rows.turned
    out = spmm.run(take(values, order), x.t() if x.ndim == 2 else x, rows=across)
    return out.t() if x.ndim == 2 else out


def _batches(x: SparseTensor, y: Any, op: str) -> Any:
    """A COO batch (b, m, n) times a dense one (b, n, p): a matrix of blocks along the diagonal times rows."""
    (b, m, n), (c, k, p) = x._size, y.shape
    if x.dense_dim() or b != c or n != k:
        raise ShapeError(f"{op}: a sparse batch of shape {list(x._size)} does not fit a dense one of shape "
                         f"{list(y.shape)}: wanted (b, m, n) and (b, n, p)")
    i, row, column = x._coordinates(op).indices
    whole = sparse(Coordinates(np.stack([i * m + row, i * n + column]), (b * m, b * n)), x._entries)
    return product(whole, y.reshape(b * n, p), op).reshape(b, m, p)


def _two_sparse(x: SparseTensor, y: SparseTensor, op: str) -> SparseTensor:
    """The product of two sparse matrices: every value of a row of x meets the row of y that it names."""
    if x.shape[1] != y.shape[0]:
        raise ShapeError(f"{op}: shapes {list(x.shape)} and {list(y.shape)} do not fit: the inner sizes must "
                         f"be equal")
    a, av = row_values(x)
    b, bv = row_values(y)
    xp = array_module(a.columns)
    first = b.starts[a.columns]
    counts = b.starts[a.columns + 1] - first
    left = xp.repeat(xp.arange(len(a.columns)), counts)
    ends = xp.cumsum(counts)
    right = xp.arange(len(left)) - xp.repeat(ends - counts, counts) + xp.repeat(first, counts)
    size = (x.shape[0], y.shape[1])
    linear = a.of[left].astype(np.int64) * size[1] + b.columns[right]
    found, inverse = xp.unique(linear, return_inverse=True)
    products = take(av, left) * take(bv, right)
    made = sparse(at_linear(found, size), put(products, inverse.reshape(-1), len(found)), size)
    return made.to_sparse(layout=x.layout) if not x.is_sparse else made  # type: ignore[attr-defined, return-value]


@there
def mm(mat1: Tensor, mat2: Tensor, reduce: str | None = None) -> Any:
    """The product of two matrices of which at least one is sparse: (m, n), (n, p) -> (m, p).

    Sparse times dense is dense, sparse times sparse is sparse. Gradients flow to the values of sparse
    operands and to dense ones. Raises ShapeError, DTypeError. reduce: "sum" (the default), "mean", "amax" or
    "amin" of the products that a row stores, 0 for a row that stores none; of a sparse mat1 and a dense mat2.

    >>> x = fw.sparse_coo_tensor([[0, 1], [1, 0]], [2.0, 3.0], (2, 2))
    >>> fw.sparse.mm(x, fw.tensor([[1.0], [10.0]]))
    tensor([[20.],
            [ 3.]])
    """
    if reduce not in (None, "sum", "mean", "amax", "amin"):
        raise ValueError(f"sparse.mm: reduce must be 'sum', 'mean', 'amax' or 'amin', got {reduce!r}")
    _matrix(mat1, "sparse.mm", "mat1"), _matrix(mat2, "sparse.mm", "mat2")
    if not (isinstance(mat1, SparseTensor) or isinstance(mat2, SparseTensor)):
        raise LayoutError("sparse.mm: neither operand is sparse; use framework.mm, or mat1.to_sparse()")
    return product(mat1, mat2) if reduce in (None, "sum") else _reduced(mat1, mat2, reduce)


def _reduced(x: Any, y: Any, reduce: str) -> Any:
    """The products that each row of x stores, by their mean or by the highest or lowest of them."""
    if not isinstance(x, SparseTensor) or isinstance(y, SparseTensor):
        raise LayoutError(f"sparse.mm: reduce={reduce!r} takes a sparse mat1 and a dense mat2")
    if x.shape[1] != y.shape[0]:
        raise ShapeError(f"sparse.mm: shapes {list(x.shape)} and {list(y.shape)} do not fit: the inner sizes "
                         f"must be equal")
    rows, values = row_values(x.coalesce() if x.is_sparse else x)  # type: ignore[attr-defined]
    if reduce == "mean":
        count = array_module(rows.starts).maximum(rows.starts[1:] - rows.starts[:-1], 1)
        return spmm.run(values, y, rows=rows) / wrap(count.astype(y.dtype.numpy)[:, None])  # type: ignore[operator]
    products = values[:, None] * take(y, rows.columns)  # type: ignore[index]
    at = wrap(rows.of.astype(np.int64)[:, None]).expand(products.shape)  # type: ignore[attr-defined]
    return y.new_zeros((x.shape[0], y.shape[1])).scatter_reduce(0, at, products, reduce, include_self=False)


@there
def smm(input: Tensor, mat: Tensor) -> Any:
    """``mm`` of a sparse and a dense matrix as a sparse one.

    >>> fw.smm(fw.eye(2).to_sparse(), fw.tensor([[0.0, 1.0], [0.0, 2.0]])).indices().tolist()
    [[0, 1], [1, 1]]
    """
    return mm(input, mat).to_sparse()


@there
def hspmm(mat1: Tensor, mat2: Tensor) -> Any:
    """``mm`` of a sparse and a dense matrix as a sparse one that stores rows which are not 0.

    >>> fw.hspmm(fw.eye(2).to_sparse(), fw.tensor([[0.0, 0.0], [0.0, 2.0]])).values()
    tensor([[0., 2.]])
    """
    return mm(mat1, mat2).to_sparse(1)


@there
def addmm(mat: Tensor, mat1: Tensor, mat2: Tensor, *, beta: Any = 1, alpha: Any = 1) -> Any:
    """``beta * mat + alpha * mat1 @ mat2`` with a sparse mat1: (m, p), (m, n), (n, p) -> (m, p).

    With beta 0 nothing of mat counts, nan included.

    >>> x = fw.sparse_coo_tensor([[0, 1], [1, 0]], [2.0, 3.0], (2, 2))
    >>> fw.sparse.addmm(fw.ones(2, 1), x, fw.tensor([[1.0], [10.0]]), alpha=2)
    tensor([[41.],
            [ 7.]])
    """
    result = mm(mat1, mat2)
    if alpha != 1:
        result = result * alpha
    if beta == 0:
        return result
    return (mat if beta == 1 else mat * beta) + result  # type: ignore[operator]


@there
def sampled_addmm(input: Tensor, mat1: Tensor, mat2: Tensor, *, beta: Any = 1, alpha: Any = 1,
                  out: Any = None) -> SparseTensor:
    """``beta * input + alpha * (mat1 @ mat2)`` at the places of the sparse ``input`` only.

    Shapes: input (m, n) sparse, mat1 (m, k), mat2 (k, n) -> (m, n) sparse. No product is formed elsewhere.

    >>> x = fw.tensor([[1.0, 0.0], [0.0, 1.0]]).to_sparse_csr()
    >>> fw.sparse.sampled_addmm(x, fw.tensor([[1.0], [2.0]]), fw.tensor([[3.0, 4.0]])).values()
    tensor([4., 9.])
    """
    op = "sparse.sampled_addmm"
    if out is not None:
        raise LayoutError(f"{op}: out= is not offered; use the result")
    if not isinstance(_matrix(input, op, "input"), SparseTensor):
        raise LayoutError(f"{op}: input must be sparse, it is dense; use framework.addmm, or "
                          f"input.to_sparse_csr()")
    _matrix(mat1, op, "mat1"), _matrix(mat2, op, "mat2")
    if mat1.shape[1] != mat2.shape[0] or (mat1.shape[0], mat2.shape[1]) != tuple(input.shape):
        raise ShapeError(f"{op}: mat1 of shape {list(mat1.shape)} and mat2 of shape {list(mat2.shape)} do "
                         f"not fit input of shape {list(input.shape)}: wanted (m, k), (k, n) and (m, n)")
    if not mat1.dtype is mat2.dtype is input.dtype:
        raise DTypeError(f"{op}: input is {input.dtype}, mat1 {mat1.dtype} and mat2 {mat2.dtype}; convert "
                         f"them to one with .to(dtype)")
    x: Any = input
    x = x.coalesce() if x.is_sparse else x
    rows, order = x._pattern.rows()
    products = sddmm.run(mat1, mat2.t(), rows=rows)  # type: ignore[attr-defined]
    if order is not None:
        products = put(products, order, len(order))
    if getattr(x._pattern, "blocked", False):
        products = products.reshape(x._entries.shape)
    if alpha != 1:
        products = products * alpha
    if beta != 0:
        products = (x._entries if beta == 1 else x._entries * beta) + products
    return sparse(x._pattern, products, x._size)


matmul_op.sparse = product  # type: ignore[attr-defined]
