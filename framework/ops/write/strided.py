"""Views named by their strides, and copies of a tensor with the part seen by a view replaced."""

import itertools
import math
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from ...autograd.mode import no_grad
from ...backends import array_module
from ...backends.native import native_or
from ...backends.segments import owner_of
from ...backends.sums import add_at
from ...errors import DTypeError, ShapeError
from ...tensor import Tensor, step_of
from ..record.aliases import overlaps_itself, view_maker
from ..record.args import one_dim, size_args, tensor_arg
from ..record.op import Meta, Op
from ..record.public import public
from ..shape.diagonals import diagonal_op
from ..shape.slices import slice_op
from ..shape.view import seen_in
from .inplace import put_view

# -- as_strided ----------------------------------------------------------------------------------
#
# ``layout`` holds the strides of the tensor the view was taken of, ``offset`` counts from its first
# element; both in elements. A rule runs on gradients, whose memory may be laid out otherwise: they are
# first copied into memory of the tensor's layout.


def _strides(x: Any) -> tuple[int, ...]:
    size = x.itemsize
    return tuple([s // size for s in x.strides])


def _span(shape: tuple[int, ...], strides: tuple[int, ...], offset: int = 0) -> int:
    """One more than the last element reached."""
    return 0 if 0 in shape else offset + 1 + sum((n - 1) * s for n, s in zip(shape, strides))


def _positions(xp: Any, shape: tuple[int, ...], strides: tuple[int, ...], offset: int = 0) -> Any:
    places = xp.full(shape, offset)
    for i, (n, s) in enumerate(zip(shape, strides)):
        places += (xp.arange(n) * s).reshape((n,) + (1,) * (len(shape) - i - 1))
    return places


def _as_strided_kernel(xp: Any, x: Any, *, size: tuple, stride: tuple, offset: int, layout: tuple) -> Any:
    steps = tuple([s * x.itemsize for s in stride])
    if xp is np and x.size and _strides(x) == layout:
        alone = not _meets_itself(x.itemsize, size, steps)
        out = seen_in(np.asarray(x), size, steps, offset * x.itemsize, alone)
        if out is not NotImplemented:
            return out
    if _strides(x) != layout or not _reaches(xp, x, size, stride, offset):
        low = min(offset, 0)
        memory = xp.zeros(max(_span(x.shape, layout), _span(size, stride, offset)) - low, x.dtype)
        memory[_positions(xp, x.shape, layout, -low)] = x
        return memory[_positions(xp, size, stride, offset - low)]
    if xp is not np:
        return xp.ndarray(size, x.dtype, memptr=x.data + offset * x.itemsize, strides=steps)
    x = np.asarray(x)  # the memory of a NumPy scalar does not stay
    # as_strided starts at the first element; a negative or far offset is reached through an address
    out = np.asarray(_Memory(x, size, steps, offset * x.itemsize)).view(x.dtype)
    if out.flags.writeable and overlaps_itself(out):
        out.flags.writeable = False
    return out


def _meets_itself(extent: int, size: tuple, steps: tuple) -> bool:
    """``overlaps_itself`` of what is not there yet."""
    for step, n in sorted(zip(map(abs, steps), size)):
        if n > 1:
            if step < extent:
                return True
            extent += step * (n - 1)
    return False


def _reaches(xp: Any, x: Any, size: tuple, stride: tuple, offset: int) -> bool:
    """Whether the memory that ``x`` lies in holds all of it: not where ``x`` stands for the call's tensor.

    That is a gradient, or a copy, whose memory is its own, and the call was of a part of a larger one.
    """
    before, total = _memory_around(xp, x)
    return 0 in size or before + offset >= 0 and before + _span(size, stride, offset) <= total


class _Memory:
    """NumPy's array interface over the memory of ``array``, which it keeps alive."""

    def __init__(self, array: np.ndarray, size: tuple, strides: tuple, offset: int) -> None:
        interface = dict(array.__array_interface__)
        address, read_only = interface["data"]
        interface.update(data=(address + offset, read_only), shape=size, strides=strides)
        self.__array_interface__ = interface
        self.base = array


def _unstride_kernel(xp: Any, x: Any, *, shape: tuple, stride: tuple, offset: int, layout: tuple) -> Any:
    low = min(offset, 0)
    memory = xp.zeros(max(_span(shape, layout), _span(x.shape, stride, offset)) - low, x.dtype)
    if xp is np and x.size and 0 not in shape and (
            _add_few(memory, x, stride, offset - low) or _add_in_steps(memory, x, stride, offset - low)):
        out = seen_in(memory, shape, tuple([s * x.itemsize for s in layout]), -low * x.itemsize, True)
        if out is not NotImplemented:
            return out
    else:
        add_at(xp, memory, _positions(xp, x.shape, stride, offset - low).reshape(-1), x.reshape(-1))
    return memory[_positions(xp, shape, layout, -low)]


_add_few = native_or("add_seen", lambda memory, x, stride, offset: False)
_MOST_STEPS = 64


def _add_in_steps(memory: np.ndarray, x: np.ndarray, stride: tuple, offset: int) -> bool:
    """Add ``x`` to where ``stride`` puts its elements in ``memory``, a part without repeats at a time; False,
    and nothing done, where these would be many."""
    at_once: list[int] = []  # the dimensions of a part, the largest first that do not meet
    for d in sorted(range(x.ndim), key=x.shape.__getitem__, reverse=True):
        if not _meets_itself(1, *zip(*[(x.shape[k], stride[k]) for k in (*at_once, d)])):
            at_once.append(d)
    others = [d for d in range(x.ndim) if d not in at_once]
    if math.prod([x.shape[d] for d in others]) > _MOST_STEPS:
        return False
    at_once.sort()
    size, steps = [x.shape[d] for d in at_once], [stride[d] * x.itemsize for d in at_once]
    places = list(itertools.product(*[range(x.shape[d]) for d in others]))
    starts = [offset + sum(i * stride[d] for i, d in zip(place, others)) for place in places]
    parts = [seen_in(memory, tuple(size), tuple(steps), start * x.itemsize, True) for start in starts]
    if any(part is NotImplemented for part in parts):  # as without the extension
        return False
    for place, part in zip(places, parts):
        key: list[Any] = [slice(None)] * x.ndim
        for i, d in zip(place, others):
            key[d] = i
        part += x[tuple(key)]
    return True


as_strided_op = Op("as_strided", "x", kernel=_as_strided_kernel, view=True, jvp="linear", strided=True,
                   infer=lambda x, *, size, stride, offset, layout: Meta(size, x.dtype),
                   vjp={"x": lambda g, x_shape, stride, offset, layout: unstride(
                       g, shape=x_shape, stride=stride, offset=offset, layout=layout)})
unstride = Op("unstride", "x", kernel=_unstride_kernel, jvp="linear",
              infer=lambda x, *, shape, stride, offset, layout: Meta(shape, x.dtype),
              vjp={"x": lambda g, x_shape, stride, offset, layout: as_strided_op(
                  g, size=x_shape, stride=stride, offset=offset, layout=layout)})


_strided_of = view_maker("strided")
_native_memory: Callable = native_or("memory_around", lambda array: NotImplemented)


def _storage(x: Tensor) -> tuple[int, int]:
    """Elements of the underlying memory before the first of ``x``, and in all."""
    if type(x._array) is not np.ndarray and x.device.type == "meta":  # no memory, so any size of it
        return 0, sys.maxsize
    return _memory_around(array_module(x._array), x._array)


def _memory_around(xp: Any, array: Any) -> tuple[int, int]:
    if xp is not np:
        memory = array.data.mem
        return int(array.data.ptr - memory.ptr) // array.itemsize, memory.size // array.itemsize
    array = np.asarray(array)
    found = _native_memory(array)
    if found is not NotImplemented:
        return found[0] // array.itemsize, found[1] // array.itemsize
    owner = owner_of(array)
    start = owner.__array_interface__["data"][0]
    return (array.__array_interface__["data"][0] - start) // array.itemsize, owner.nbytes // array.itemsize


@public("", method=True)
def storage_offset(input: Tensor) -> int:
    """How many elements of the underlying memory lie before the tensor's first.

    >>> fw.arange(5)[2:].storage_offset()
    2
    """
    return _storage(input)[0]


@public(method=True, op=as_strided_op)
def as_strided(input: Tensor, size: Any, stride: Any, storage_offset: int | None = None) -> Tensor:
    """A view of the memory behind ``input`` with any size and strides, counted in elements.

    storage_offset: where it starts in that memory (default: where ``input`` does). Raises ShapeError if it
    would reach outside of the memory. Prefer ``unfold``, ``diagonal`` or slices where they do.

    >>> fw.as_strided(fw.arange(5), (3, 2), (1, 1))
    tensor([[0, 1],
            [1, 2],
            [2, 3]])
    """
    out = _strided_of(input, size, stride, storage_offset, as_strided_op)
    if out is not NotImplemented:
        return out
    tensor_arg(input, "as_strided")
    sizes, steps = size_args((size,), "as_strided"), size_args((stride,), "as_strided", "stride")
    if len(sizes) != len(steps) or min(*sizes, *steps, 0, 0) < 0:
        raise ShapeError(f"as_strided: size {list(sizes)} and stride {list(steps)} must be equally many "
                         f"numbers, none negative")
    layout, (here, total) = _strides(input._array), _storage(input)
    start = here if storage_offset is None else int(storage_offset)
    if start < 0 or _span(sizes, steps, start) > total:
        raise ShapeError(f"as_strided: size {list(sizes)} with stride {list(steps)} from {start} reaches "
                         f"outside of the memory, which holds {total} elements")
    if input._node is not None and any(n > 1 and s <= 0 for n, s in zip(input.shape, layout)):
        raise ShapeError("as_strided: this tensor is an expanded view; clone() it first")
    return as_strided_op.run(input, size=sizes, stride=steps, offset=start - here, layout=layout)


# -- with a part replaced ------------------------------------------------------------------------


def _replace(x: Tensor, src: Tensor, record: Op, settings: dict, op: str) -> Tensor:
    own, given = tensor_arg(x, op)._array, tensor_arg(src, op, "src")._array
    if type(own) is np.ndarray is type(given) and given.dtype is own.dtype:
        try:
            part = record(own, **settings)
            if part.shape == given.shape and x._node is src._node is None:
                return put_view.run(x, src, shape=own.shape, chain=((record, settings),), part=part)
            if part.shape == given.shape:
                return put_view.run(x, src, shape=own.shape, chain=((record, settings),))
        except (IndexError, ValueError):  # the record's rule says what is wrong
            pass
    want = record.infer(Meta(x.shape, x.dtype), **settings).shape  # type: ignore[misc]
    if src.shape != want:
        raise ShapeError(f"{op}: src must have shape {list(want)}, got {list(src.shape)}")
    if src.dtype is not x.dtype:
        raise DTypeError(f"{op}: src must be {x.dtype} like the tensor, got {src.dtype}; convert it")
    return put_view.run(x, src, shape=x.shape, chain=((record, settings),))


@public(method=True, op=put_view)
def select_scatter(input: Tensor, src: Tensor, dim: int, index: int) -> Tensor:
    """A copy of ``input`` with ``input.select(dim, index)`` replaced by ``src``.

    >>> fw.select_scatter(fw.zeros(2, 2), fw.ones(2), 0, 1)
    tensor([[0., 0.],
            [1., 1.]])
    """
    at = one_dim(dim, tensor_arg(input, "select_scatter").ndim, "select_scatter")
    return _replace(input, src, slice_op, {"key": (slice(None),) * at + (int(index),)}, "select_scatter")


@public(method=True, op=put_view, out=True)
def slice_scatter(input: Tensor, src: Tensor, dim: int = 0, start: int | None = None, end: int | None = None,
                  step: int = 1) -> Tensor:
    """A copy of ``input`` with the positions ``start:end:step`` along ``dim`` replaced by ``src``.

    >>> fw.slice_scatter(fw.zeros(4), fw.ones(2), start=1, end=3)
    tensor([0., 1., 1., 0.])
    """
    at = one_dim(dim, tensor_arg(input, "slice_scatter").ndim, "slice_scatter")
    if step <= 0:
        raise ValueError(f"slice_scatter: step must be positive, got {step}")
    return _replace(input, src, slice_op, {"key": (slice(None),) * at + (slice(start, end, step),)},
                    "slice_scatter")


@public(method=True, op=put_view)
def diagonal_scatter(input: Tensor, src: Tensor, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Tensor:
    """A copy of ``input`` with ``input.diagonal(offset, dim1, dim2)`` replaced by ``src``.

    >>> fw.diagonal_scatter(fw.zeros(2, 2), fw.ones(2))
    tensor([[1., 0.],
            [0., 1.]])
    """
    ndim = tensor_arg(input, "diagonal_scatter").ndim
    dims = one_dim(dim1, ndim, "diagonal_scatter", "dim1"), one_dim(dim2, ndim, "diagonal_scatter", "dim2")
    if dims[0] == dims[1]:
        raise ShapeError(f"diagonal_scatter: dim1={dim1} and dim2={dim2} are the same dimension")
    return _replace(input, src, diagonal_op, {"offset": int(offset), "dims": dims}, "diagonal_scatter")


@public(method=True, op=put_view, out=True)
def as_strided_scatter(input: Tensor, src: Tensor, size: Any, stride: Any,
                       storage_offset: int | None = None) -> Tensor:
    """A copy of ``input`` with ``input.as_strided(size, stride, storage_offset)`` replaced by ``src``.

    Where several positions of src lie on one place, which of them stays is not defined.

    >>> fw.as_strided_scatter(fw.zeros(4), fw.ones(2), (2,), (3,))
    tensor([1., 0., 0., 1.])
    """
    if isinstance(input, Tensor) and input._node is None and isinstance(src, Tensor) and src._node is None:
        part = as_strided(input, size, stride, storage_offset)
        links, own = part._more and part._more.links, input._array
        if links and part._base is (input if input._base is None else input._base) \
                and src._array.dtype is own.dtype and src._array.shape == part._array.shape:
            return put_view.run(input, src, shape=own.shape, chain=(step_of(links),), part=part._array)
    with no_grad():
        part = as_strided(input, size, stride, storage_offset)
    if tensor_arg(src, "as_strided_scatter", "src").shape != part.shape:
        raise ShapeError(f"as_strided_scatter: src must have shape {list(part.shape)}, got {list(src.shape)}")
    layout, (here, _) = _strides(input._array), _storage(input)
    start = here if storage_offset is None else int(storage_offset)
    return _replace(input, src, as_strided_op, {"size": part.shape, "stride": size_args(
        (stride,), "as_strided_scatter", "stride"), "offset": start - here, "layout": layout},
        "as_strided_scatter")
