"""Rearranging elements: triangles and diagonals, flips and rolls, repeats and grids."""

from typing import Any

import numpy as np

from ...backends import backend_for, move
from ...device import as_device
from ...dtypes import INTEGER, as_dtype, int64
from ...errors import DTypeError, ShapeError
from ...tensor import Tensor, wrap
from ..convert.cast import cast
from ..record.args import many_dims, one_dim, size_args, tensor_arg
from ..record.op import Meta, Op
from ..record.public import public
from .broadcast import broadcast_shape, expand, sum_to
from .view import diagonal, permute_op, put_diagonal, reshape_op


def _same(x: Meta, **settings: Any) -> Meta:
    return x


# -- triangles and diagonals ---------------------------------------------------------------------

tril_op = Op("tril", "x", masks=True, kernel=lambda xp, x, *, k: xp.tril(x, k), infer=_same, jvp="linear",
             native="tril", vjp={"x": lambda g, k: tril_op(g, k=k)})
triu_op = Op("triu", "x", masks=True, kernel=lambda xp, x, *, k: xp.triu(x, k), infer=_same, jvp="linear",
             native="triu", vjp={"x": lambda g, k: triu_op(g, k=k)})


def _matrix(x: Any, op: str) -> Tensor:
    if tensor_arg(x, op).ndim < 2:
        raise ShapeError(f"{op}: wanted at least 2 dimensions, got shape {list(x.shape)}")
    return x


@public(method=True, inplace=True, op=tril_op, out=True)
def tril(input: Tensor, diagonal: int = 0) -> Tensor:
    """The lower triangle of the matrix (or batch of them), 0 above the given diagonal.

    >>> fw.tril(fw.ones(2, 2))
    tensor([[1., 0.],
            [1., 1.]])
    """
    return tril_op.run(_matrix(input, "tril"), k=int(diagonal))


@public(method=True, inplace=True, op=triu_op, out=True)
def triu(input: Tensor, diagonal: int = 0) -> Tensor:
    """The upper triangle of the matrix (or batch of them), 0 below the given diagonal.

    >>> fw.triu(fw.ones(2, 2), 1)
    tensor([[0., 1.],
            [0., 0.]])
    """
    return triu_op.run(_matrix(input, "triu"), k=int(diagonal))


@public(method=True, op=put_diagonal)
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
    size = input.shape[-1] + abs(offset)
    shape = list(input.shape[:-1])
    for d in sorted((a, b)):
        shape.insert(d, size)
    return put_diagonal.run(input, shape=tuple(shape), offset=int(offset), dims=(a, b))


@public(method=True, out=True)
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
    return diag_embed(reshape_op.run(tensor_arg(input, "diagflat"), shape=(input.numel(),)), offset)


@public(method=True)
def trace(input: Tensor) -> Tensor:
    """The sum of the diagonal of a matrix; integers are summed as int64.

    >>> fw.trace(fw.tensor([[1.0, 2.0], [3.0, 4.0]]))
    tensor(5.)
    """
    if tensor_arg(input, "trace").ndim != 2:
        raise ShapeError(f"trace: wanted a matrix, got shape {list(input.shape)}")
    if input.dtype.category <= INTEGER and input.dtype is not int64:
        input = cast.run(input, dtype=int64)
    return sum_to.run(diagonal(input), size=())


def _triangle_indices(row: int, col: int, offset: int, dtype: Any, device: Any, lower: bool) -> Tensor:
    if row < 0 or col < 0:
        raise ValueError(f"{'tril' if lower else 'triu'}_indices: row and col must not be negative, got "
                         f"{row} and {col}")
    dtype = as_dtype(dtype)
    if dtype.category != INTEGER:
        raise DTypeError(f"{'tril' if lower else 'triu'}_indices: dtype must be an integer one, got {dtype}")
    make = np.tril_indices if lower else np.triu_indices
    places = np.stack(make(row, offset, col)).astype(dtype.numpy)
    target = as_device(device)
    backend_for(target)
    return wrap(move(places, target))


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


# -- flips and rolls -----------------------------------------------------------------------------

flip_op = Op("flip", "x", kernel=lambda xp, x, *, dims: xp.flip(x, dims).copy(), infer=_same, jvp="linear",
             native="flip", vjp={"x": lambda g, dims: flip_op(g, dims=dims)})
roll_op = Op("roll", "x", kernel=lambda xp, x, *, shifts, dims: xp.roll(x, shifts, axis=dims), infer=_same,
             jvp="linear", native="roll", vjp={"x": lambda g, shifts, dims: roll_op(
                 g, shifts=tuple(-s for s in shifts) if dims else -shifts, dims=dims)})


@public(method=True, op=flip_op)
def flip(input: Tensor, *dims: Any) -> Tensor:
    """A copy with the order of the elements reversed along the given dimensions.

    >>> fw.flip(fw.tensor([[1, 2], [3, 4]]), (0,))
    tensor([[3, 4],
            [1, 2]])
    """
    wanted = size_args(dims, "flip", "dims")
    found = many_dims(wanted, tensor_arg(input, "flip").ndim, "flip", "dims") if wanted else ()
    return flip_op.run(input, dims=found)


@public(method=True)
def fliplr(input: Tensor) -> Tensor:
    """A copy reversed along dimension 1: left and right change places.

    >>> fw.fliplr(fw.tensor([[1, 2], [3, 4]]))
    tensor([[2, 1],
            [4, 3]])
    """
    return flip_op.run(_matrix(input, "fliplr"), dims=(1,))


@public(method=True)
def flipud(input: Tensor) -> Tensor:
    """A copy reversed along dimension 0: up and down change places.

    >>> fw.flipud(fw.tensor([1, 2]))
    tensor([2, 1])
    """
    if tensor_arg(input, "flipud").ndim < 1:
        raise ShapeError("flipud: wanted at least 1 dimension, got a tensor of 0 dimensions")
    return flip_op.run(input, dims=(0,))


@public(method=True, op=roll_op)
def roll(input: Tensor, shifts: Any, dims: Any = None) -> Tensor:
    """A copy with the elements shifted along dimensions; what leaves at one end comes in at the other.

    Without ``dims``, the flattened tensor is shifted.

    >>> fw.roll(fw.tensor([1, 2, 3]), 1)
    tensor([3, 1, 2])
    """
    tensor_arg(input, "roll")
    steps = size_args((shifts,), "roll", "shifts")
    if dims is None or dims == ():
        if len(steps) != 1:
            raise ValueError(f"roll: {len(steps)} shifts need dims, one for each")
        return roll_op.run(input, shifts=steps[0], dims=None)
    places = tuple(one_dim(d, input.ndim, "roll", "dims") for d in size_args((dims,), "roll", "dims"))
    if len(places) != len(steps):
        raise ValueError(f"roll: {len(steps)} shifts but {len(places)} dims")
    if not input.ndim:
        return input.clone()  # type: ignore[attr-defined]
    return roll_op.run(input, shifts=steps, dims=places)


@public(method=True)
def rot90(input: Tensor, k: int = 1, dims: Any = (0, 1)) -> Tensor:
    """A copy turned by ``k`` quarters in the plane of two dimensions, from the first to the second.

    >>> fw.rot90(fw.tensor([[1, 2], [3, 4]]))
    tensor([[2, 4],
            [1, 3]])
    """
    if tensor_arg(input, "rot90").ndim < 2 or len(dims) != 2:
        raise ShapeError(f"rot90: wanted 2 dims of a tensor of 2 dimensions at least, got dims={dims!r} and "
                         f"shape {list(input.shape)}")
    a, b = (one_dim(d, input.ndim, "rot90", "dims") for d in dims)
    if a == b:
        raise ShapeError(f"rot90: dims={tuple(dims)} names a dimension twice")
    turned = flip_op.run(input, dims=((), (b,), (a, b), (a,))[k % 4])
    if k % 2 == 0:
        return turned
    order = list(range(input.ndim))
    order[a], order[b] = b, a
    return permute_op.run(turned, dims=tuple(order))


# -- repeats -------------------------------------------------------------------------------------


def _tile_vjp(g: Any, x_shape: tuple[int, ...], reps: tuple[int, ...]) -> Any:
    sizes = (1,) * (len(reps) - len(x_shape)) + x_shape
    pairs = tuple(s for both in zip(reps, sizes) for s in both)
    kept = tuple(s for size in sizes for s in (1, size))
    return reshape_op(sum_to(reshape_op(g, shape=pairs), size=kept), shape=x_shape)


tile_op = Op("tile", "x", kernel=lambda xp, x, *, reps: xp.tile(x, reps) if reps else x.copy(),
             jvp="linear", native="tile", vjp={"x": _tile_vjp},
             infer=lambda x, *, reps: Meta(tuple(r * s for r, s in zip(
                 reps, (1,) * (len(reps) - x.ndim) + x.shape)), x.dtype))


@public("", method=True, op=tile_op)
def repeat(input: Tensor, *repeats: Any) -> Tensor:
    """A copy repeated so many times along each dimension; further numbers add dimensions in front.

    Raises ShapeError if there are fewer numbers than dimensions.

    >>> fw.tensor([1, 2]).repeat(2, 2)
    tensor([[1, 2, 1, 2],
            [1, 2, 1, 2]])
    """
    reps = size_args(repeats, "repeat", "repeats")
    if len(reps) < input.ndim:
        raise ShapeError(f"repeat: {len(reps)} numbers for a tensor of {input.ndim} dimensions; one for each "
                         f"is wanted")
    if any(r < 0 for r in reps):
        raise ValueError(f"repeat: the numbers must not be negative, got {list(reps)}")
    return tile_op.run(input, reps=reps)


@public(method=True, op=tile_op)
def tile(input: Tensor, *dims: Any) -> Tensor:
    """A copy repeated so many times along each dimension; missing numbers in front count as 1.

    >>> fw.tile(fw.tensor([[1, 2]]), (2,))
    tensor([[1, 2, 1, 2]])
    """
    reps = size_args(dims, "tile", "dims")
    return repeat(input, (1,) * (tensor_arg(input, "tile").ndim - len(reps)) + reps)


# -- grids and shapes ----------------------------------------------------------------------------


def _given(tensors: tuple, op: str) -> list[Tensor]:
    items = tensors[0] if len(tensors) == 1 and isinstance(tensors[0], (list, tuple)) else tensors
    return [tensor_arg(x, op, f"tensors[{i}]") for i, x in enumerate(items)]


@public()
def meshgrid(*tensors: Any, indexing: str = "ij") -> tuple[Tensor, ...]:
    """The grids spanned by vectors, as views: grid i varies along dimension i as vector i does.

    indexing: "ij", or "xy" to swap the first two dimensions.

    >>> fw.meshgrid(fw.tensor([1, 2]), fw.tensor([3, 4]), indexing="ij")[1]
    tensor([[3, 4],
            [3, 4]])
    """
    xs = _given(tensors, "meshgrid")
    if indexing not in ("ij", "xy"):
        raise ValueError(f"meshgrid: indexing must be 'ij' or 'xy', got {indexing!r}")
    for x in xs:
        if x.ndim > 1:
            raise ShapeError(f"meshgrid: wanted vectors, got shape {list(x.shape)}")
        if x.dtype is not xs[0].dtype:
            raise DTypeError(f"meshgrid: the tensors must have one dtype, got {xs[0].dtype} and {x.dtype}")
    order = list(range(len(xs)))
    if indexing == "xy" and len(xs) > 1:
        order[:2] = [1, 0]
    size = tuple(xs[i].numel() for i in order)
    grids = []
    for i, x in enumerate(xs):
        at = order.index(i)
        shape = (1,) * at + (x.numel(),) + (1,) * (len(xs) - at - 1)
        grids.append(expand.run(reshape_op.run(x, shape=shape), size=size))
    return tuple(grids)


def _kron(x: Tensor, y: Tensor, ndim: int) -> Any:
    shapes = [(1,) * (ndim - t.ndim) + t.shape for t in (x, y)]
    wide = reshape_op.run(x, shape=tuple(s for n in shapes[0] for s in (n, 1)))
    tall = reshape_op.run(y, shape=tuple(s for n in shapes[1] for s in (1, n)))
    return reshape_op.run(wide * tall, shape=tuple(a * b for a, b in zip(*shapes)))  # type: ignore[operator]


@public(method=True, out=True)
def kron(input: Tensor, other: Tensor) -> Tensor:
    """The Kronecker product: every element of ``input`` times the whole of ``other``, as blocks.

    >>> fw.kron(fw.tensor([1, 10]), fw.tensor([1, 2]))
    tensor([ 1,  2, 10, 20])
    """
    ndim = max(tensor_arg(input, "kron").ndim, tensor_arg(other, "kron", "other").ndim)
    return _kron(input, other, ndim)


def _atleast(tensors: tuple, ndim: int) -> Any:
    many = len(tensors) != 1 or isinstance(tensors[0], (list, tuple))
    results = []
    for x in _given(tensors, f"atleast_{ndim}d"):
        if x.ndim < ndim:
            front = (1,) if x.ndim == 1 and ndim > 1 else ()
            shape = front + x.shape
            x = reshape_op.run(x, shape=shape + (1,) * (ndim - len(shape)))
        results.append(x)
    return tuple(results) if many else results[0]


@public()
def atleast_1d(*tensors: Any) -> Any:
    """The tensor, or each of several, with one dimension at least.

    >>> fw.atleast_1d(fw.tensor(1))
    tensor([1])
    """
    return _atleast(tensors, 1)


@public()
def atleast_2d(*tensors: Any) -> Any:
    """The tensor, or each of several, with two dimensions at least; a vector becomes a row.

    >>> fw.atleast_2d(fw.tensor([1, 2])).shape
    (1, 2)
    """
    return _atleast(tensors, 2)


@public()
def atleast_3d(*tensors: Any) -> Any:
    """The tensor, or each of several, with three dimensions at least; new ones come last for matrices.

    >>> fw.atleast_3d(fw.tensor([1, 2])).shape
    (1, 2, 1)
    """
    return _atleast(tensors, 3)


@public()
def broadcast_shapes(*shapes: Any) -> tuple[int, ...]:
    """The shape that tensors of these shapes broadcast to; raises ShapeError if they do not.

    >>> fw.broadcast_shapes((2, 1), (3,))
    (2, 3)
    """
    return broadcast_shape([size_args((s,), "broadcast_shapes") for s in shapes], "broadcast_shapes")


@public()
def broadcast_tensors(*tensors: Any) -> tuple[Tensor, ...]:
    """The tensors, each expanded to their common shape, as views.

    >>> fw.broadcast_tensors(fw.tensor([1, 2]), fw.tensor([[3]]))[1]
    tensor([[3, 3]])
    """
    xs = _given(tensors, "broadcast_tensors")
    size = broadcast_shape([x.shape for x in xs], "broadcast_tensors")
    return tuple(expand.run(x, size=size) for x in xs)
