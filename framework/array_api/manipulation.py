"""Shapes: reorder, join, repeat, index."""

from typing import Any

import numpy as np

from .. import dtypes
from ..errors import ShapeError
from ..ops.convert.cast import clone, to
from ..ops.index import repeat as repeating
from ..ops.index import scatter
from ..ops.pointwise import choose
from ..ops.record.args import one_dim
from ..ops.shape import arrange, broadcast, diagonals, grids, join, split, view
from ..tensor import Tensor
from .array import Array, array_arg, common_dtype, forward, give


def broadcast_arrays(*arrays: Tensor) -> tuple[Array, ...]:
    """The arrays stretched to their common shape."""
    return tuple([give(out, x) for out, x in zip(grids.broadcast_tensors(*arrays), arrays)])


def broadcast_shapes(*shapes: Any) -> tuple[int, ...]:
    """The shape that arrays of these shapes broadcast to.

    >>> fw.array_api.broadcast_shapes((2, 1), (3,))
    (2, 3)
    """
    return grids.broadcast_shapes(*shapes)


def broadcast_to(x: Tensor, /, shape: Any) -> Array:
    """The array stretched to a shape."""
    return give(broadcast.broadcast_to(array_arg(x, "broadcast_to"), tuple(shape)), x)


def _together(name: str, arrays: Any) -> list[Tensor]:
    arrays = [array_arg(x, name, f"arrays[{i}]") for i, x in enumerate(arrays)]
    if not arrays:
        raise ValueError(f"{name}: wanted one array at least, got none")
    dtype = common_dtype(arrays)
    return [to(x, dtype) for x in arrays]


def concat(arrays: Any, /, *, axis: int | None = 0) -> Array:
    """Arrays end to end along an axis; with ``axis=None`` flattened.

    >>> xp = fw.array_api
    >>> xp.concat([xp.asarray([1]), xp.asarray([2.5])])
    tensor([1.0000, 2.5000])
    """
    ready = _together("concat", arrays)
    if axis is None:
        ready, axis = [view.reshape(x, -1) for x in ready], 0
    return give(join.cat(ready, axis), *ready)


def stack(arrays: Any, /, *, axis: int = 0) -> Array:
    """Arrays of one shape along a new axis."""
    return give(join.stack(_together("stack", arrays), axis))


def unstack(x: Tensor, /, *, axis: int = 0) -> tuple[Array, ...]:
    """The parts of an array along an axis, without it."""
    return tuple([give(part) for part in split.unbind(array_arg(x, "unstack"), axis)])


def expand_dims(x: Tensor, /, axis: Any) -> Array:
    """The array with new axes of length 1 at places (one or several) of the result.

    >>> fw.array_api.expand_dims(fw.ones(3), (0, -1)).shape
    (1, 3, 1)
    """
    places = axis if isinstance(axis, tuple) else (axis,)
    ndim = array_arg(x, "expand_dims").ndim + len(places)
    found = [_within(a, ndim, "expand_dims") for a in places]
    if len(set(found)) != len(found):
        raise ShapeError(f"expand_dims: axis={axis} names a place twice")
    sizes = iter(x.shape)
    return give(view.reshape(x, [1 if i in found else next(sizes) for i in range(ndim)]), x)


def _within(axis: int, ndim: int, name: str) -> int:
    """An axis as a number from 0; unlike in PyTorch a 0-dim array has none."""
    if not -ndim <= axis < ndim:
        raise IndexError(f"{name}: axis={axis} is out of range for {ndim} dimensions")
    return axis % ndim


def squeeze(x: Tensor, /, axis: Any) -> Array:
    """The array without the given axes; raises ValueError where one is not of length 1."""
    given = axis if isinstance(axis, tuple) else (axis,)
    axes = tuple([_within(a, array_arg(x, "squeeze").ndim, "squeeze") for a in given])
    if any(x.shape[a] != 1 for a in axes):
        raise ShapeError(f"squeeze: axis={axis} of shape {list(x.shape)} is not of length 1")
    return give(view.squeeze(x, axes), x)


def flip(x: Tensor, /, *, axis: Any = None) -> Array:
    """The elements in reverse order along the axes (default: all)."""
    axes = range(array_arg(x, "flip").ndim) if axis is None else axis if isinstance(axis, tuple) else (axis,)
    return give(arrange.flip(x, tuple(axes)), x)


def matrix_transpose(x: Tensor, /) -> Array:
    """The last two axes swapped."""
    return give(view.transpose(array_arg(x, "matrix_transpose"), -2, -1), x)


def moveaxis(x: Tensor, source: Any, destination: Any, /) -> Array:
    """Axes at new places, the others in order."""
    return give(view.movedim(array_arg(x, "moveaxis"), source, destination), x)


def permute_dims(x: Tensor, /, axes: Any) -> Array:
    """The axes in another order."""
    return give(view.permute(array_arg(x, "permute_dims"), tuple(axes)), x)


def repeat(x: Tensor, repeats: Any, /, *, axis: int | None = None) -> Array:
    """Each element (or slice along an axis) several times; ``repeats`` is a number or one per element."""
    if isinstance(repeats, Tensor):
        repeats = to(repeats, dtypes.int64)
    return give(repeating.repeat_interleave(array_arg(x, "repeat"), repeats, axis), x)


def reshape(x: Tensor, /, shape: Any, *, copy: bool | None = None) -> Array:
    """The elements in row-major order in another shape.

    copy: True for memory of its own, False to raise ValueError where sharing is not possible.
    """
    out = view.reshape(array_arg(x, "reshape"), tuple(shape))
    shared = not x.numel() or out.data_ptr() == x.data_ptr()
    if copy is False and not shared:
        raise ValueError(f"reshape: copy=False, but {list(x.shape)} with these strides needs a copy to "
                         f"become {list(shape)}")
    return give(clone(out) if copy and shared else out, x)


def roll(x: Tensor, /, shift: Any, *, axis: Any = None) -> Array:
    """Elements moved along axes, those that leave come in at the other end."""
    return give(arrange.roll(array_arg(x, "roll"), shift, axis), x)


def tile(x: Tensor, repetitions: Any, /) -> Array:
    """The whole array several times along each axis."""
    return give(arrange.tile(array_arg(x, "tile"), tuple(repetitions)), x)


def meshgrid(*arrays: Tensor, indexing: str = "xy") -> tuple[Array, ...]:
    """Coordinate arrays of a grid; "xy" (default) swaps the first two axes, "ij" does not."""
    return tuple([give(x, *arrays) for x in grids.meshgrid(*arrays, indexing=indexing)])


def tril(x: Tensor, /, *, k: int = 0) -> Array:
    """The lower triangle up to diagonal ``k``, zeros above."""
    return give(diagonals.tril(array_arg(x, "tril"), k), x)


def triu(x: Tensor, /, *, k: int = 0) -> Array:
    """The upper triangle from diagonal ``k``, zeros below."""
    return give(diagonals.triu(array_arg(x, "triu"), k), x)


def take(x: Tensor, indices: Tensor, /, *, axis: int | None = None) -> Array:
    """Slices of ``x`` along an axis (may be left out for one dimension)."""
    if axis is None:
        if array_arg(x, "take").ndim != 1:
            raise ValueError(f"take: axis must be given for an array of {x.ndim} dimensions")
        axis = 0
    axis = one_dim(axis, x.ndim, "take", "axis")
    key, _ = forward((*(slice(None),) * axis, array_arg(indices, "take", "indices")), x)
    return give(Tensor.__getitem__(x, key), x)  # type: ignore[attr-defined]


def take_along_axis(x: Tensor, indices: Tensor, /, *, axis: int = -1) -> Array:
    """One element of ``x`` for each index, along an axis; the other axes broadcast.

    >>> xp = fw.array_api
    >>> x = xp.asarray([[3, 1, 2]])
    >>> xp.take_along_axis(x, xp.argsort(x))
    tensor([[1, 2, 3]])
    """
    axis = one_dim(axis, array_arg(x, "take_along_axis").ndim, "take_along_axis", "axis")
    at = to(array_arg(indices, "take_along_axis", "indices"), dtypes.int64)
    if at.ndim != x.ndim:
        raise ShapeError(f"take_along_axis: indices has {at.ndim} dimensions, x has {x.ndim}")
    shape = np.broadcast_shapes(*[s[:axis] + (1,) + s[axis + 1:] for s in (x.shape, at.shape)])

    def stretched(a: Tensor) -> Tensor:
        return broadcast.broadcast_to(a, shape[:axis] + (a.shape[axis],) + shape[axis + 1:])
    x, at = stretched(x), stretched(at)
    rising: Any = choose.where(at < 0, at + x.shape[axis], at)  # type: ignore[operator]
    return give(scatter.gather(x, axis, rising))
