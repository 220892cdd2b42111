"""Elements in another order or several times: flips, rolls, repeats."""

import math
from typing import Any

from ...errors import ShapeError
from ...tensor import Tensor
from ..record.args import many_dims, one_dim, size_args, tensor_arg
from ..record.batched import along, call, on_tensors
from ..record.op import Meta, Op
from ..record.public import public
from ..record.road import NEVER, row_major
from .broadcast import sum_to
from .diagonals import _matrix, _same
from .view import reshape_op, take_order

# -- flips and rolls -----------------------------------------------------------------------------

flip_op = Op("flip", "x", onnx="flipped(x, dims)", runtime="flipped(x, dims)",
             kernel=lambda xp, x, *, dims: xp.flip(x, dims).copy(), infer=_same, jvp="linear",
             batch=along("dims"),
             native="flip", rounds="flip", loose_from=NEVER, vjp={"x": lambda g, dims: flip_op(g, dims=dims)})


@on_tensors()
def batch_roll(op: Op, size: int, arrays: list, batched: tuple, settings: dict) -> Any:
    """The rule for batches; without dims the elements are rolled in one row."""
    (x,), dims, shifts = arrays, settings["dims"], settings["shifts"]
    if dims is None or dims == ():
        row = x.reshape((size, math.prod(x.shape[1:])))
        shifts = (shifts,) if isinstance(shifts, int) else shifts
        return call(op, row, shifts=shifts, dims=(1,)).reshape(x.shape)
    return along("dims")(op, size, arrays, batched, settings)


roll_op = Op("roll", "x", onnx="rolled(x, shifts, dims)", runtime="rolled(x, shifts, dims)",
             kernel=lambda xp, x, *, shifts, dims: row_major(xp.roll(x, shifts, axis=dims)), infer=_same,
             batch=batch_roll,
             jvp="linear", native="roll", rounds="roll", loose_from=NEVER,
             vjp={"x": lambda g, shifts, dims: roll_op(
                 g, shifts=tuple(-s for s in shifts) if dims else -shifts, dims=dims)})


@public(method=True, op=flip_op, deferred=True)
def flip(input: Tensor, *dims: Any) -> Tensor:
    """A copy with the order of the elements reversed along the given dimensions.

    >>> fw.flip(fw.tensor([[1, 2], [3, 4]]), (0,))
    tensor([[3, 4],
            [1, 2]])
    """
    wanted = size_args(dims, "flip", "dims")
    found = many_dims(wanted, tensor_arg(input, "flip").ndim, "flip", "dims") if wanted else ()
    return flip_op.run(input, dims=found)


@public(method=True, deferred=True)
def fliplr(input: Tensor) -> Tensor:
    """A copy reversed along dimension 1: left and right change places.

    >>> fw.fliplr(fw.tensor([[1, 2], [3, 4]]))
    tensor([[2, 1],
            [4, 3]])
    """
    return flip_op.run(_matrix(input, "fliplr"), dims=(1,))


@public(method=True, deferred=True)
def flipud(input: Tensor) -> Tensor:
    """A copy reversed along dimension 0: up and down change places.

    >>> fw.flipud(fw.tensor([1, 2]))
    tensor([2, 1])
    """
    if tensor_arg(input, "flipud").ndim < 1:
        raise ShapeError("flipud: wanted at least 1 dimension, got a tensor of 0 dimensions")
    return flip_op.run(input, dims=(0,))


@public(method=True, op=roll_op, deferred=True)
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


@public(method=True, deferred=True)
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
    return take_order(turned, tuple(order))


# -- repeats -------------------------------------------------------------------------------------


def _tile_vjp(g: Any, x_shape: tuple[int, ...], reps: tuple[int, ...]) -> Any:
    sizes = (1,) * (len(reps) - len(x_shape)) + x_shape
    pairs = tuple(s for both in zip(reps, sizes) for s in both)
    kept = tuple(s for size in sizes for s in (1, size))
    return reshape_op(sum_to(reshape_op(g, shape=pairs), size=kept), shape=x_shape)


@on_tensors()
def batch_tile(op: Op, size: int, arrays: list, batched: tuple, settings: dict) -> Any:
    """The rule for batches: between the batch and what is repeated are ones."""
    (x,), reps = arrays, settings["reps"]
    lead = max(len(reps) - x.ndim + 1, 0)
    reps = (1,) * (x.ndim - 1 - len(reps)) + tuple(reps)
    return call(op, x.reshape((size, *(1,) * lead, *x.shape[1:])), reps=(1, *reps))


tile_op = Op("tile", "x", onnx="tiled(x, reps)", runtime="tiled(x, reps)",
             kernel=lambda xp, x, *, reps: xp.tile(x, reps) if reps else x.copy(),
             batch=batch_tile,
             jvp="linear", native="tile", vjp={"x": _tile_vjp},
             infer=lambda x, *, reps: Meta(tuple(r * s for r, s in zip(
                 reps, (1,) * (len(reps) - x.ndim) + x.shape)), x.dtype))


@public("", method=True, op=tile_op, deferred=True)
def repeat(input: Tensor, *repeats: Any) -> Tensor:
    """A copy repeated so many times along each dimension; further numbers add dimensions in front.

    Raises ShapeError if there are fewer numbers than dimensions, or one is negative.

    >>> fw.tensor([1, 2]).repeat(2, 2)
    tensor([[1, 2, 1, 2],
            [1, 2, 1, 2]])
    """
    reps = size_args(repeats, "repeat", "repeats")
    if len(reps) < input.ndim:
        raise ShapeError(f"repeat: {len(reps)} numbers for a tensor of {input.ndim} dimensions; one for each "
                         f"is wanted")
    if any(r < 0 for r in reps):
        raise ShapeError(f"repeat: the numbers must not be negative, got {list(reps)}")
    return tile_op.run(input, reps=reps)


@public(method=True, op=tile_op, deferred=True)
def tile(input: Tensor, *dims: Any) -> Tensor:
    """A copy repeated so many times along each dimension; missing numbers in front count as 1.

    >>> fw.tile(fw.tensor([[1, 2]]), (2,))
    tensor([[1, 2, 1, 2]])
    """
    reps = size_args(dims, "tile", "dims")
    return repeat(input, (1,) * (tensor_arg(input, "tile").ndim - len(reps)) + reps)
