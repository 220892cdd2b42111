"""Basic slices: views of ranges along dimensions, and their transpose, zeros with a part put in."""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from ...backends.native import native_or
from ...quiet import quiet
from ...tensor import Tensor
from ..record.aliases import view_maker
from ..record.args import one_dim, tensor_arg
from ..record.batched import call, on_tensors
from ..record.op import Meta, Op
from ..record.public import public
from ..record.short_roads import seen_anew

sliced, _selected, _narrowed = view_maker("sliced"), view_maker("selected"), view_maker("narrowed")


@on_tensors()
def batch_slice(op: Op, size: int, arrays: list, batched: tuple, settings: dict) -> Any:
    """Of slice and put_slice."""
    moved = {**settings, "key": (slice(None), *settings["key"])}
    if "shape" in settings:
        moved["shape"] = (size, *settings["shape"])
    return call(op, arrays[0], **moved)


def _slice_infer(x: Meta, *, key: tuple) -> Meta:
    _check_key(x.shape, key)
    ghost = np.ndarray(x.shape, np.int8, b"\0", strides=(0,) * len(x.shape))  # broadcast_to takes 5 us
    return Meta(ghost[key].shape, x.dtype)


def _check_key(shape: tuple[int, ...], key: tuple) -> None:
    """Raise the precise IndexError for a basic key that does not fit ``shape``."""
    used = sum(k is not None and k is not Ellipsis for k in key)
    if used > len(shape):
        raise IndexError(f"index: {used} indices for a tensor of {len(shape)} dimensions (shape "
                         f"{list(shape)}); leave some out")
    dim = 0
    for k in key:
        if k is Ellipsis:
            dim += len(shape) - used
        elif k is not None:
            if not isinstance(k, slice) and not -shape[dim] <= k < shape[dim]:
                raise IndexError(f"index: {k} is out of range for dimension {dim} of size {shape[dim]} "
                                 f"(shape {list(shape)})")
            dim += 1


def _slice_kernel(xp: Any, x: Any, *, key: tuple) -> Any:
    out = x[key]
    return x[(*key, ...)] if isinstance(out, np.generic) else out  # a view, where NumPy copies


_padded = native_or("pad", lambda x, pads, value: NotImplemented)
MANY = 512  # elements from where on NumPy's copies of short lines count


def _around(key: tuple, shape: tuple[int, ...]) -> list[tuple[int, int]] | None:
    """How much of ``shape`` stands before and behind what a key of whole ranges takes; None of other keys."""
    pads = []
    for k, n in zip(key, shape):
        if type(k) is not slice:
            return None
        first, end, step = k.indices(n)
        if step != 1 or end <= first:
            return None
        pads.append((first, n - end))
    return pads + [(0, 0)] * (len(shape) - len(key)) if len(key) <= len(shape) else None


def _put_slice_kernel(xp: Any, x: Any, *, key: tuple, shape: tuple[int, ...]) -> Any:
    if type(x) is np.ndarray and x.size >= MANY and (pads := _around(key, shape)) is not None:
        out = _padded(x, tuple(pads), 0)
        if out is not NotImplemented:
            return out
    out = xp.zeros(shape, x.dtype)
    out[key] = x
    return out


# key: ints, slices, None and Ellipsis, as NumPy's basic indexing takes them
slice_op = Op("slice", "x", onnx="sliced(x, key)", runtime="sliced(x, key)",
              masks=True, part=True, kernel=_slice_kernel, view=True, jvp="linear",
              infer=_slice_infer, batch=batch_slice,
              vjp={"x": lambda g, x_shape, key: put_slice(g, key=key, shape=x_shape)})
put_slice = Op("put_slice", "x", onnx="put_slice(x, key, shape)", runtime="put_slice(x, key, shape)",
               kernel=_put_slice_kernel, rounded=partial(_put_slice_kernel, np), jvp="linear",
               batch=batch_slice,
               infer=lambda x, *, key, shape: Meta(shape, x.dtype),
               vjp={"x": lambda g, key: slice_op(g, key=key)})


def grown(x: Tensor, more: list[int]) -> Tensor:
    """Images ``x`` (n, c, sizes...) with zeros behind their ends, ``more`` of them along each size."""
    shape = (*x.shape[:2], *(s + m for s, m in zip(x.shape[2:], more)))
    key = (Ellipsis, *(slice(0, s) for s in x.shape[2:]))
    return put_slice.run(x, key=key, shape=shape) if any(more) else x


def take_slice(x: Tensor, key: tuple) -> Tensor:
    """``slice_op.run(x, key=key)`` by a shorter way: slices are the most frequent of all calls."""
    seen = sliced(x, key, slice_op)
    if seen is not NotImplemented:
        return seen
    array = x._array
    if type(array) is not np.ndarray or quiet.run is None:
        return slice_op.run(x, key=key)
    if quiet.settle is not None:
        if x._node is not None:  # the graph in the order of the calls
            quiet.settle()
        seen = sliced(x, key, slice_op)  # it may have been put off before
        if seen is not NotImplemented:
            return seen
    try:
        out = array[key]
    except IndexError:
        return slice_op.run(x, key=key)  # which says precisely what was wrong
    if type(out) is not np.ndarray:
        out = array[(*key, ...)]  # a view, where NumPy copies
    return seen_anew(x, array, out, slice_op, {"key": key})


def slice_along(x: Tensor, dim: int, key: Any) -> Tensor:
    """``x[:, ..., key]`` with the int or slice at dimension ``dim`` (already in range)."""
    whole = (slice(None),) * dim + (key,)
    seen = sliced(x, whole, slice_op)
    return seen if seen is not NotImplemented else take_slice(x, whole)


# positions along a dimension, all of them there: no view if the tensor is in no graph, for a record alone
piece: Callable = native_or(
    "piece_alone", lambda x, dim, start, stop: slice_along(x, dim, slice(start, stop)))


@public(method=True, deferred=True)
def select(input: Tensor, dim: int, index: int) -> Tensor:
    """A view of one position along a dimension, which is dropped.

    >>> fw.select(fw.tensor([[1, 2], [3, 4]]), 1, 0)
    tensor([1, 3])
    """
    out = _selected(input, dim, index, slice_op)
    if out is not NotImplemented:
        return out
    at = one_dim(dim, tensor_arg(input, "select").ndim, "select")
    size = input.shape[at] if input.ndim else 0
    if not -size <= index < size:
        raise IndexError(f"select: index={index} is out of range for dimension {dim} of size {size}")
    return slice_along(input, at, int(index))


@public(method=True, deferred=True)
def narrow(input: Tensor, dim: int, start: int, length: int) -> Tensor:
    """A view of ``length`` positions from ``start`` along a dimension.

    >>> fw.narrow(fw.arange(5), 0, 1, 3)
    tensor([1, 2, 3])
    """
    out = _narrowed(input, dim, start, length, slice_op)
    if out is not NotImplemented:
        return out
    at = one_dim(dim, tensor_arg(input, "narrow").ndim, "narrow")
    size = input.shape[at] if input.ndim else 0
    begin = int(start) + size if start < 0 else int(start)
    if length < 0 or not 0 <= begin <= size or begin + length > size:
        raise IndexError(f"narrow: start={start}, length={length} does not fit dimension {dim} of size "
                         f"{size}")
    return slice_along(input, at, slice(begin, begin + length))


@public(method=True, out=True)
def narrow_copy(input: Tensor, dim: int, start: int, length: int) -> Tensor:
    """``narrow`` as a tensor of its own memory.

    >>> fw.narrow_copy(fw.arange(5), 0, 1, 3)
    tensor([1, 2, 3])
    """
    if type(input) is Tensor and type(dim) is type(start) is type(length) is int and start >= 0 < length:
        own = input._array
        if -own.ndim <= dim < own.ndim and start + length <= own.shape[dim]:
            return piece(input, dim % own.ndim, start, start + length).clone()
    return narrow(input, dim, start, length).clone()  # type: ignore[attr-defined]
