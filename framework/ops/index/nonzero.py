"""Positions of what is not zero or among given values: nonzero, argwhere, unravel_index, isin."""

from math import prod
from typing import Any

import numpy as np

from ...backends import about_to_read, device_flags
from ...dtypes import int64
from ...errors import DTypeError, ShapeError
from ...quiet import quiet
from ...tensor import Tensor, wrap
from ..record.args import size_args, tensor_arg
from ..record.batched import call, looped
from ..record.op import Meta, Op
from ..record.public import public
from ..shape.slices import slice_along
from ..shape.view import take_shape


def batch_isin(op: Op, size: int, arrays: list, batched: tuple, settings: dict) -> Any:
    if batched[1]:
        return looped(op, size, arrays, batched, settings)
    return call(op, *arrays, **settings)


_LARGE = 1 << 12  # numbers from which two dimensions are quicker searched as one


def _nonzero_kernel(xp: Any, x: Any) -> Any:
    if type(x) is not np.ndarray or not x.ndim:
        about_to_read(x, "nonzero")
        return xp.argwhere(x).astype("int64", copy=False)
    if x.ndim == 2 and x.size >= _LARGE:
        parts = np.unravel_index((x.reshape(-1) != 0).nonzero()[0], x.shape)
    else:
        parts = x.nonzero()
    out = np.empty((len(parts[0]), x.ndim), np.int64)
    for i, part in enumerate(parts):
        out[:, i] = part
    return out


nonzero_op = Op("nonzero", "x", onnx="Transpose(NonZero(x), perm=[1, 0])", native="nonzero",
                kernel=_nonzero_kernel)


@public(method=True, out=True)
def nonzero(input: Tensor, *, as_tuple: bool = False) -> Any:
    """Where the elements are not 0: an int64 tensor with a row of positions for each.

    as_tuple: one tensor per dimension instead, fit to index with.

    >>> fw.nonzero(fw.tensor([[0, 1], [2, 0]]))
    tensor([[0, 1],
            [1, 0]])
    """
    places = nonzero_op.run(tensor_arg(input, "nonzero"))
    if not as_tuple:
        return places
    if not input.ndim:  # as of a tensor of one dimension
        places = nonzero_op.run(take_shape(input, (1,)))
    if type(places._array) is np.ndarray and places._array.size <= _LARGE and quiet.run is not None:
        return tuple([wrap(one) for one in places._array.T.copy()])
    return tuple([slice_along(places, 1, i).contiguous() for i in range(max(input.ndim, 1))])


def _static_kernel(xp: Any, x: Any, *, size: int, fill_value: int) -> Any:
    places = nonzero_op(x)[:size]
    out = xp.empty((size, places.shape[1]), places.dtype)
    out[:len(places)] = places
    out[len(places):] = fill_value
    return out


nonzero_static_op = Op("nonzero_static", "x", kernel=_static_kernel,
                       infer=lambda x, *, size, fill_value: Meta((size, len(x.shape)), int64))


@public(method=True, out=True, op=nonzero_static_op)
def nonzero_static(input: Tensor, *, size: int, fill_value: int = -1) -> Tensor:
    """``nonzero`` with ``size`` rows: the first ones, and rows of ``fill_value`` where there are fewer.

    >>> fw.nonzero_static(fw.tensor([0, 3, 4]), size=3)
    tensor([[ 1],
            [ 2],
            [-1]])
    """
    if size < 0:
        raise ValueError(f"nonzero_static: size must not be negative, got {size}")
    return nonzero_static_op.run(tensor_arg(input, "nonzero_static"), size=size, fill_value=fill_value)


@public()
def unravel_index(indices: Tensor, shape: Any) -> tuple[Tensor, ...]:
    """The positions, one tensor for each dimension of ``shape``, of elements counted along all of them.

    Negative indices count from the end. Raises DTypeError unless they are integers, ValueError outside.

    >>> fw.unravel_index(fw.tensor([1, 5]), (2, 3))
    (tensor([0, 1]), tensor([1, 2]))
    """
    if tensor_arg(indices, "unravel_index", "indices")._array.dtype.kind not in "iu":
        raise DTypeError(f"unravel_index: argument 'indices' must be integer, got {indices.dtype}")
    sizes = size_args((shape,), "unravel_index", "shape")
    if any(s < 0 for s in sizes):
        raise ShapeError(f"unravel_index: shape must not have negative sizes, got {list(sizes)}")
    rest: Any = indices.long()  # type: ignore[attr-defined]
    total = prod(sizes)
    told = device_flags.check(rest._array, -total, total, f"unravel_index: shape {list(sizes)} has {total} "
                              "elements; the indices reach {value}", error=ValueError)
    if not told and indices.numel() and indices.device.type != "meta":
        low, high = int(rest.min()), int(rest.max())
        if not -total <= low <= high < total:
            raise ValueError(f"unravel_index: shape {list(sizes)} has {total} elements; the indices reach "
                             f"from {low} to {high}")
    found = []
    for s in reversed(sizes):
        found.append(rest % max(s, 1))
        rest = rest // max(s, 1)
    return tuple(reversed(found))


@public(method=True)
def argwhere(input: Tensor) -> Tensor:
    """Where the elements are not 0: an int64 tensor with a row of positions for each.

    >>> fw.argwhere(fw.tensor([0, 3, 4]))
    tensor([[1],
            [2]])
    """
    return nonzero(tensor_arg(input, "argwhere"))


_FEW = 1 << 12  # comparisons that are quicker made than avoided


def _isin_kernel(xp: Any, x: Any, y: Any, *, assume_unique: bool, invert: bool) -> Any:
    x, y = xp.asarray(x), xp.asarray(y)
    if x.size * y.size > _FEW:
        return xp.asarray(xp.isin(x, y, assume_unique=assume_unique, invert=invert))
    found = xp.asarray((x[..., None] == y.reshape(-1)).any(axis=-1))
    return ~found if invert else found


isin_op = Op("isin", "x y", batch=batch_isin, kernel=_isin_kernel, native="isin")


@public(out=True, also="element=elements test_element=test_elements")
def isin(elements: Any, test_elements: Any, *, assume_unique: bool = False,
         invert: bool = False) -> Tensor:
    """Whether each element is among ``test_elements``; either argument may be a number.

    >>> fw.isin(fw.tensor([1, 2, 3]), fw.tensor([2, 5]))
    tensor([False,  True, False])
    """
    if not isinstance(elements, Tensor) and not isinstance(test_elements, Tensor):
        raise TypeError("isin: elements or test_elements must be a Tensor, both are numbers")
    return isin_op.run(elements, test_elements, assume_unique=assume_unique, invert=invert)
