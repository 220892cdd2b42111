"""Triangles and diagonals of matrices, a diagonal as a view."""

from collections.abc import Callable
from functools import lru_cache, partial
from typing import Any

import numpy as np

from ...backends import backend_for, move
from ...backends.native import native_or
from ...device import CPU, as_device
from ...dtypes import FLOATING, INEXACT, INTEGER, as_dtype, int64
from ...errors import DTypeError, ShapeError
from ...seam import Maker
from ...tensor import Tensor, made
from ..convert.cast import cast
from ..record.aliases import view_maker
from ..record.args import one_dim, tensor_arg
from ..record.batched import along, call, leading
from ..record.into import native_into
from ..record.op import Meta, Op
from ..record.public import public
from . import cuda
from .broadcast import expand
from .view import reshape_op, take_shape

_diagonal_of = view_maker("diagonal")


def batch_put_diagonal(op: Op, size: int, arrays: list, batched: tuple, settings: dict) -> Any:
    """Of put_diagonal, whose dims are of the result."""
    shape, ndim = settings["shape"], len(settings["shape"])
    dims = tuple([d % ndim + 1 for d in settings["dims"]])
    return call(op, arrays[0], shape=(size, *shape), offset=settings["offset"], dims=dims)


def _diagonal_kernel(xp: Any, x: Any, *, offset: int, dims: tuple[int, int]) -> Any:
    out = x.diagonal(offset, *dims)
    if xp is np and x.flags.writeable:
        out.flags.writeable = True  # NumPy gives a read-only view, but a view it is
    return out


def _diagonal_infer(x: Meta, *, offset: int, dims: tuple[int, int]) -> Meta:
    rows, columns = x.shape[dims[0]], x.shape[dims[1]]
    length = max(min(rows, columns - offset) if offset >= 0 else min(rows + offset, columns), 0)
    return Meta(tuple(s for i, s in enumerate(x.shape) if i not in dims) + (length,), x.dtype)


def _put_diagonal_kernel(xp: Any, x: Any, *, shape: tuple[int, ...], offset: int,
                         dims: tuple[int, int]) -> Any:
    out = xp.zeros(shape, x.dtype)
    _diagonal_kernel(xp, out, offset=offset, dims=dims)[...] = x
    return out


diagonal_op = Op("diagonal", "x", onnx="diagonal(x, offset, dims)",
                 kernel=_diagonal_kernel, view=True, infer=_diagonal_infer, jvp="linear",
                 batch=along("dims"),
                 vjp={"x": lambda g, x_shape, offset, dims: put_diagonal(
                     g, shape=x_shape, offset=offset, dims=dims)})
put_diagonal = Op("put_diagonal", "x", kernel=_put_diagonal_kernel, jvp="linear", native="put_diagonal",
                  rounds="put_diagonal",
                  batch=batch_put_diagonal,
                  infer=lambda x, *, shape, offset, dims: Meta(shape, x.dtype),
                  vjp={"x": lambda g, offset, dims: diagonal_op(g, offset=offset, dims=dims)})


@public(method=True, op=diagonal_op, deferred=True)
def diagonal(input: Tensor, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Tensor:
    """A view of the diagonal of dimensions ``dim1`` and ``dim2``, which becomes the last dimension.

    offset: 0 for the main diagonal, positive above it, negative below.

    >>> fw.diagonal(fw.arange(9).view(3, 3))
    tensor([0, 4, 8])
    """
    out = _diagonal_of(input, offset, dim1, dim2, diagonal_op)
    if out is not NotImplemented:
        return out
    ndim = tensor_arg(input, "diagonal").ndim
    dims = one_dim(dim1, ndim, "diagonal", "dim1"), one_dim(dim2, ndim, "diagonal", "dim2")
    if dims[0] == dims[1] or ndim < 2:
        raise ShapeError(f"diagonal: dim1={dim1} and dim2={dim2} must be two dimensions of a tensor, this "
                         f"one has shape {list(input.shape)}")
    return diagonal_op.run(input, offset=int(offset), dims=dims)


def _same(x: Meta, **settings: Any) -> Meta:
    return x


tril_op = Op("tril", "x", onnx="triangle(x, k, 0)", runtime="triangle(x, k, 0)",
             masks=True, kernel=lambda xp, x, *, k: xp.tril(x, k), infer=_same, jvp="linear",
             batch=leading, device=partial(cuda.triangle, upper=False),
             native="tril", rounds="tril", vjp={"x": lambda g, k: tril_op(g, k=k)})
triu_op = Op("triu", "x", onnx="triangle(x, k, 1)", runtime="triangle(x, k, 1)",
             masks=True, kernel=lambda xp, x, *, k: xp.triu(x, k), infer=_same, jvp="linear",
             batch=leading, device=partial(cuda.triangle, upper=True),
             native="triu", rounds="triu", vjp={"x": lambda g, k: triu_op(g, k=k)})


def _matrix(x: Any, op: str) -> Tensor:
    if tensor_arg(x, op).ndim < 2:
        raise ShapeError(f"{op}: wanted at least 2 dimensions, got shape {list(x.shape)}")
    return x


# what lies beside a triangle set to 0 in memory: (x, diagonal, whether the lower one stays, name)
_triangle_into = native_into("triangle")


def _beside_cleared(lower: bool, name: str) -> Callable:
    def into(input: Tensor, diagonal: int = 0, *more: Any, **named: Any) -> Any:
        if more or named:  # the function itself says what is wrong
            return NotImplemented
        return _triangle_into(input, diagonal, lower, name)
    return into


@public(method=True, inplace=_beside_cleared(True, "tril_"), op=tril_op, out=True, deferred=True)
def tril(input: Tensor, diagonal: int = 0) -> Tensor:
    """The lower triangle of the matrix (or batch of them), 0 above the given diagonal.

    >>> fw.tril(fw.ones(2, 2))
    tensor([[1., 0.],
            [1., 1.]])
    """
    return tril_op.run(_matrix(input, "tril"), k=int(diagonal))


@public(method=True, inplace=_beside_cleared(False, "triu_"), op=triu_op, out=True, deferred=True)
def triu(input: Tensor, diagonal: int = 0) -> Tensor:
    """The upper triangle of the matrix (or batch of them), 0 below the given diagonal.

    >>> fw.triu(fw.ones(2, 2), 1)
    tensor([[0., 1.],
            [0., 0.]])
    """
    return triu_op.run(_matrix(input, "triu"), k=int(diagonal))


@public(method=True, op=put_diagonal, deferred=True)
def diag_embed(input: Tensor, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Tensor:
    """Square matrices, at dimensions ``dim1`` and ``dim2``, with the last dimension on the diagonal.

    >>> fw.diag_embed(fw.tensor([1, 2]))
    tensor([[1, 0],
            [0, 2]])
    """
    ndim = tensor_arg(input, "diag_embed").ndim + 1
    a, b = one_dim(dim1, ndim, "diag_embed", "dim1"), one_dim(dim2, ndim, "diag_embed", "dim2")
    if a == b or ndim < 2:
        raise ShapeError(f"diag_embed: dim1={dim1} and dim2={dim2} must be two dimensions, and the tensor "
                         f"needs one at least")
    own = input._array.shape
    size = own[-1] + abs(offset)
    if a == b - 1 == len(own) - 1:
        return put_diagonal.run(input, shape=(*own[:-1], size, size), offset=int(offset), dims=(a, b))
    shape = list(own[:-1])
    for d in sorted((a, b)):
        shape.insert(d, size)
    return put_diagonal.run(input, shape=tuple(shape), offset=int(offset), dims=(a, b))


@public(method=True, out=True, deferred=True)
def diag(input: Tensor, diagonal: int = 0) -> Tensor:
    """A matrix with the vector on its diagonal, or a copy of the diagonal of a matrix.

    >>> fw.diag(fw.tensor([[1, 2], [3, 4]]))
    tensor([1, 4])
    """
    if tensor_arg(input, "diag").ndim == 1:
        return diag_embed(input, diagonal)
    if input.ndim != 2:
        raise ShapeError(f"diag: wanted a vector or a matrix, got shape {list(input.shape)}")
    return _diagonal_copy(input, diagonal)


def _diagonal_copy(x: Tensor, offset: int) -> Tensor:
    return diagonal(x, offset).clone()  # type: ignore[attr-defined]


@public(method=True)
def diagflat(input: Tensor, offset: int = 0) -> Tensor:
    """A matrix with all elements of the tensor on its diagonal.

    >>> fw.diagflat(fw.tensor([[1], [2]]))
    tensor([[1, 0],
            [0, 2]])
    """
    flat = tensor_arg(input, "diagflat")
    return diag_embed(flat if flat._array.ndim == 1 else take_shape(flat, (flat.numel(),)), offset)


def _trace_vjp(g: Any, A_shape: tuple[int, ...]) -> Any:
    each = expand(reshape_op(g, shape=(1,)), size=(min(A_shape),))
    return put_diagonal(each, shape=A_shape, offset=0, dims=(0, 1))


# of a real matrix on the CPU
trace_op = Op("trace", "A", kernel=lambda xp, A: xp.asarray(xp.trace(A, dtype=A.dtype)), native="trace",
              whole="summed", infer=lambda A: Meta((), A.dtype), jvp="linear", vjp={"A": _trace_vjp})


@public(method=True, autocast="float32", deferred=True)
def trace(input: Tensor) -> Tensor:
    """The sum of the diagonal of a matrix; integers are summed as int64.

    >>> fw.trace(fw.tensor([[1.0, 2.0], [3.0, 4.0]]))
    tensor(5.)
    """
    if tensor_arg(input, "trace")._array.ndim != 2:
        raise ShapeError(f"trace: wanted a matrix, got shape {list(input.shape)}")
    if type(input._array) is np.ndarray and (input._array.dtype.kind in FLOATING or input.dtype is int64):
        return trace_op.run(input)
    if input._array.dtype.kind not in INEXACT and input.dtype is not int64:
        input = cast.run(input, dtype=int64)
    return diagonal(input).sum()  # type: ignore[attr-defined]


_MAKERS = {name: Maker(name, ("row", "col", "offset")) for name in ("tril_indices", "triu_indices")}
_SMALL = 1024  # elements of a matrix whose triangles are remembered


def _triangle(row: int, col: int, offset: int, lower: bool) -> np.ndarray:
    compare = np.greater_equal if lower else np.less_equal
    return np.array(compare.outer(np.arange(offset, row + offset), np.arange(col)).nonzero(), np.int64)


_triangle = native_or("triangle_places", _triangle)
_small_triangle = lru_cache(32)(_triangle)


def triangle_places(row: int, col: int, offset: int, lower: bool) -> np.ndarray:
    """The rows and columns of the elements of a matrix that stand in a triangle; not to be written."""
    return (_small_triangle if row * col <= _SMALL else _triangle)(row, col, offset, lower)


def _triangle_indices(row: int, col: int, offset: int, dtype: Any, device: Any, lower: bool) -> Tensor:
    name = "tril_indices" if lower else "triu_indices"
    if dtype is int64 and device is None and type(row) is type(col) is type(offset) is int \
            and row >= 0 <= col and as_device(None) is CPU:
        return made(_MAKERS[name], triangle_places(row, col, offset, lower).copy(), row, col, offset)
    if row < 0 or col < 0:
        raise ValueError(f"{name}: row and col must not be negative, got "
                         f"{row} and {col}")
    dtype = as_dtype(dtype)
    if dtype.category != INTEGER:
        raise DTypeError(f"{name}: dtype must be an integer one, got {dtype}")
    places = triangle_places(row, col, offset, lower)
    places = places.copy() if dtype is int64 else places.astype(dtype.numpy)
    target = as_device(device)
    backend_for(target)
    return made(_MAKERS[name], move(places, target), row, col, offset)


@public()
def tril_indices(row: int, col: int, offset: int = 0, *, dtype: Any = int64, device: Any = None) -> Tensor:
    """The positions of the lower triangle of a ``row`` x ``col`` matrix: rows, then columns.

    >>> fw.tril_indices(2, 2)
    tensor([[0, 1, 1],
            [0, 0, 1]])
    """
    return _triangle_indices(row, col, offset, dtype, device, True)


@public()
def triu_indices(row: int, col: int, offset: int = 0, *, dtype: Any = int64, device: Any = None) -> Tensor:
    """The positions of the upper triangle of a ``row`` x ``col`` matrix: rows, then columns.

    >>> fw.triu_indices(2, 2)
    tensor([[0, 0, 1],
            [0, 1, 1]])
    """
    return _triangle_indices(row, col, offset, dtype, device, False)
