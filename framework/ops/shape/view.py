"""Other shapes and orders of dimensions: reshape, permute and what is written with them."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ...backends.native import native_or
from ...dtypes import DType
from ...errors import LayoutError, ShapeError
from ...quiet import quiet
from ...tensor import Tensor, counter_of, wrap
from ..record.aliases import view_maker
from ..record.args import many_dims, one_dim, size_args, tensor_arg
from ..record.batched import call, on_tensors
from ..record.op import Meta, Op
from ..record.planned import Step, have_kernels
from ..record.public import public
from ..record.road import NEVER
from ..record.short_roads import seen_anew

# the rules for batches: the same on the dimensions behind the batch


@on_tensors()
def batch_reshape(op: Op, size: int, arrays: list, batched: tuple, settings: dict) -> Any:
    """Of a record whose setting ``shape`` is that of the result."""
    return call(op, arrays[0], **{**settings, "shape": (size, *settings["shape"])})


@on_tensors()
def batch_permute(op: Op, size: int, arrays: list, batched: tuple, settings: dict) -> Any:
    """Of permute."""
    ndim = arrays[0].ndim - 1
    return call(op, arrays[0], dims=(0, *[d % ndim + 1 for d in settings["dims"]]))


_shaped, _permuted, _transposed = view_maker("shaped"), view_maker("permuted"), view_maker("transposed")
_reversed, _flattened, _moved = view_maker("reversed"), view_maker("flattened"), view_maker("moved")
_unsqueezed, _squeezed = view_maker("unsqueezed"), view_maker("squeezed")


def _strided(x: np.ndarray, shape: Any, strides: Any, offset: int, writeable: bool) -> Any:
    if offset:
        return NotImplemented
    return np.lib.stride_tricks.as_strided(x, shape, strides, writeable=writeable)


# the memory of an array in another shape: (x, shape, strides, offset, whether it may be written to), in bytes
seen_in: Callable = native_or("seen", _strided)


def _reshape_infer(x: Meta, *, shape: tuple[int, ...]) -> Meta:
    return Meta(full_shape(x.shape, shape, "reshape"), x.dtype)


def full_shape(old: tuple[int, ...], new: tuple[int, ...], op: str) -> tuple[int, ...]:
    """``new`` with its one -1 worked out; raises ShapeError if the element counts differ."""
    total, unknown = math.prod(old), new.count(-1)
    known = math.prod([s for s in new if s != -1]) if unknown else math.prod(new)
    if unknown > 1 or new and min(new) < -1:
        raise ShapeError(f"{op}: shape {list(new)} may hold one -1 and no other negative size")
    if unknown:
        if known == 0 or total % known:
            raise ShapeError(f"{op}: a tensor of shape {list(old)} ({total} elements) does not fit shape "
                             f"{list(new)}")
        return tuple([total // known if s == -1 else s for s in new])
    if known != total:
        raise ShapeError(f"{op}: a tensor of shape {list(old)} ({total} elements) does not fit shape "
                         f"{list(new)} ({known} elements)")
    return new


reshape_op = Op("reshape", "x", onnx="reshaped(x, shape)", runtime="reshaped(x)",
                kernel=lambda xp, x, *, shape: x.reshape(shape), native="reshaped", view="maybe",
                infer=_reshape_infer, jvp="linear", batch=batch_reshape,
                vjp={"x": lambda g, x_shape: reshape_op(g, shape=x_shape)})


def _permute_infer(x: Meta, *, dims: tuple[int, ...]) -> Meta:
    if len(dims) != x.ndim:
        raise ShapeError(f"permute: a tensor of {x.ndim} dimensions needs {x.ndim} dims, got {list(dims)}")
    return Meta(tuple(x.shape[d] for d in dims), x.dtype)


def _inverse(dims: tuple[int, ...]) -> tuple[int, ...]:
    back = [0] * len(dims)
    for i, d in enumerate(dims):
        back[d] = i
    return tuple(back)


permute_op = Op("permute", "x", onnx="permuted(x, dims)", runtime="permuted(x, dims)",
                kernel=lambda xp, x, *, dims: x.transpose(dims), view=True,
                batch=batch_permute,
                infer=_permute_infer, jvp="linear",
                vjp={"x": lambda g, dims: permute_op(g, dims=_inverse(dims))})


@on_tensors()
def _batch_rearrange(op: Op, size: int, arrays: list, batched: tuple, settings: dict) -> Any:
    shape, dims, out = (settings[name] for name in ("shape", "dims", "out"))
    return call(op, arrays[0], shape=(size, *shape), dims=(0, *[d + 1 for d in dims]), out=(size, *out))


# the three steps of ``rearranged`` as one copy
_rearrange = Op("rearrange", "x", moves=True, native="rearranged", jvp="linear", batch=_batch_rearrange,
                kernel=lambda xp, x, *, shape, dims, out: x.reshape(shape).transpose(dims).reshape(out),
                infer=lambda x, *, out, **_: Meta(out, x.dtype),
                vjp={"x": lambda g, x_shape, shape, dims: _rearrange(
                    g, shape=tuple([shape[d] for d in dims]), dims=_inverse(dims), out=x_shape)})


def rearranged(x: Tensor, shape: tuple[int, ...], dims: tuple[int, ...], out: tuple[int, ...]) -> list[Step]:
    """The steps to the elements in another shape, whose dimensions then take another order, in a third
    shape."""
    if have_kernels(x, moved=True):
        return [(_rearrange.run, 1, {"shape": shape, "dims": dims, "out": out})]
    return [(take_shape, 1, {"shape": shape}), (take_order, 1, {"dims": dims}),
            (take_shape, 1, {"shape": out})]


@public(method=True, op=reshape_op, deferred=True)
def reshape(input: Tensor, *shape: Any) -> Tensor:
    """The elements in another shape: a view where memory allows, else a copy. One size may be -1.

    Raises ShapeError if the number of elements differs.

    >>> fw.reshape(fw.arange(6), (2, -1))
    tensor([[0, 1, 2],
            [3, 4, 5]])
    """
    out = _shaped(input, shape, reshape_op)
    if out is not NotImplemented:
        return out
    return _reshaped(tensor_arg(input, "reshape"), size_args(shape, "reshape", "shape"))


def _reshaped(input: Tensor, sizes: tuple[int, ...]) -> Tensor:
    if sizes and min(sizes) < -1:  # NumPy takes any negative size for -1
        full_shape(input.shape, sizes, "reshape")
    return take_shape(input, sizes)


def take_shape(x: Tensor, shape: tuple[int, ...]) -> Tensor:
    """``reshape_op.run(x, shape=shape)`` by a shorter way, for arrays that need no copy."""
    out = _shaped(x, shape, reshape_op)
    if out is not NotImplemented:
        return out
    try:
        array = x._array
        if type(array) is np.ndarray and quiet.run is not None and array.flags.c_contiguous:
            if quiet.settle is not None and x._node is not None:  # the graph in the order of the calls
                quiet.settle()
            return seen_anew(x, array, array.reshape(shape), reshape_op, {"shape": shape})
    except (LayoutError, ValueError):
        pass  # the op takes sparse tensors, or says what was wrong
    return reshape_op.run(x, shape=shape)


def take_order(x: Tensor, dims: tuple[int, ...]) -> Tensor:
    """``permute_op.run(x, dims=dims)`` by a shorter way."""
    out = _permuted(x, dims, permute_op)
    if out is not NotImplemented:
        return out
    try:
        array = x._array
        if type(array) is np.ndarray and quiet.run is not None:
            if quiet.settle is not None and x._node is not None:  # the graph in the order of the calls
                quiet.settle()
            return seen_anew(x, array, array.transpose(dims), permute_op, {"dims": dims})
    except (LayoutError, ValueError):
        pass  # the op takes sparse tensors, or says what was wrong
    return permute_op.run(x, dims=dims)


@public("", method=True, also="dtype=size", deferred=True)
def view(input: Tensor, *size: Any) -> Tensor:
    """The same memory in another shape; raises ShapeError where that needs a copy (use reshape).

    ``input.view(dtype)`` reads the bytes as another dtype of the same size.

    >>> fw.arange(4).view(2, 2)
    tensor([[0, 1],
            [2, 3]])
    """
    out = _shaped(input, size, reshape_op)
    if out is not NotImplemented:
        return out
    if len(size) == 1 and isinstance(size[0], DType):
        if size[0] is not input.dtype:
            out = wrap(input._array.view(size[0].numpy))
            out._counter = counter_of(input)
            return out
        size = input.shape  # the graph goes on
    try:
        out = _reshaped(input, size_args(size, "view"))
    except ShapeError as error:
        raise ShapeError(str(error).replace("reshape:", "view:", 1)) from None
    if out._more is None and out._base is None and out._array.size:  # `_base` makes one that is put off
        raise ShapeError(f"view: a tensor of shape {list(input.shape)} and strides "
                         f"{list(input.stride())} cannot be seen as {list(out.shape)} without a copy; "
                         f"use reshape()")
    return out


@public("", method=True, deferred=True)
def view_as(input: Tensor, other: Tensor) -> Tensor:
    """The same memory in the shape of ``other``.

    >>> fw.arange(4).view_as(fw.ones(2, 2))
    tensor([[0, 1],
            [2, 3]])
    """
    out = _shaped(input, other, reshape_op)
    return view(input, other.shape) if out is NotImplemented else out


@public("", method=True)
def reshape_as(input: Tensor, other: Tensor) -> Tensor:
    """The elements in the shape of ``other``.

    >>> fw.arange(4).reshape_as(fw.ones(2, 2))
    tensor([[0, 1],
            [2, 3]])
    """
    out = _shaped(input, other, reshape_op)
    return reshape(input, other.shape) if out is NotImplemented else out


@public(method=True, op=permute_op, deferred=True)
def permute(input: Tensor, *dims: Any) -> Tensor:
    """A view with the dimensions in another order.

    >>> fw.permute(fw.ones(2, 3, 4), (2, 0, 1)).shape
    (4, 2, 3)
    """
    out = _permuted(input, dims, permute_op)
    if out is not NotImplemented:
        return out
    tensor_arg(input, "permute")
    ndim = input.ndim
    order = tuple([one_dim(d, ndim, "permute", "dims") for d in size_args(dims, "permute", "dims")])
    if len(set(order)) != len(order):
        raise ShapeError(f"permute: dims {list(order)} names a dimension twice")
    return take_order(input, order)


@public(method="transpose swapdims", alias="swapdims", deferred=True)
def transpose(input: Tensor, dim0: int, dim1: int) -> Tensor:
    """A view with two dimensions swapped.

    >>> fw.transpose(fw.tensor([[1, 2], [3, 4]]), 0, 1)
    tensor([[1, 3],
            [2, 4]])
    """
    out = _transposed(input, dim0, dim1, permute_op)
    if out is not NotImplemented:
        return out
    tensor_arg(input, "transpose")
    ndim = input.ndim
    a, b = one_dim(dim0, ndim, "transpose", "dim0"), one_dim(dim1, ndim, "transpose", "dim1")
    order = list(range(ndim))
    if order:
        order[a], order[b] = order[b], order[a]
    return take_order(input, tuple(order))


@public(method=True, deferred=True)
def swapaxes(input: Tensor, axis0: int, axis1: int) -> Tensor:
    """``transpose`` by NumPy's name.

    >>> fw.swapaxes(fw.ones(2, 3), 0, 1).shape
    (3, 2)
    """
    out = _transposed(input, axis0, axis1, permute_op)
    return transpose(input, axis0, axis1) if out is NotImplemented else out


@public(method=True, deferred=True)
def t(input: Tensor) -> Tensor:
    """The transpose of a matrix, as a view; a vector or number is returned as it is.

    >>> fw.t(fw.tensor([[1, 2], [3, 4]]))
    tensor([[1, 3],
            [2, 4]])
    """
    out = _reversed(input, 2, permute_op)
    if out is not NotImplemented:
        return out
    if tensor_arg(input, "t").ndim > 2:
        raise ShapeError(f"t: wanted at most 2 dimensions, got shape {list(input.shape)}; use transpose()")
    return take_order(input, tuple(range(input.ndim))[::-1])


@public("", method="T", as_property=True, deferred=True)
def T(input: Tensor) -> Tensor:
    """The transpose: all dimensions in reverse order."""
    out = _reversed(input, NEVER, permute_op)
    if out is not NotImplemented:
        return out
    return take_order(input, tuple(range(input.ndim))[::-1])


@public("", method="mT", as_property=True, deferred=True)
def mT(input: Tensor) -> Tensor:
    """The last two dimensions swapped: the transpose of every matrix of a batch."""
    out = _transposed(input, -2, -1, permute_op)
    if out is not NotImplemented:
        return out
    if input.ndim < 2:
        raise ShapeError(f"mT: wanted at least 2 dimensions, got shape {list(input.shape)}")
    return transpose(input, -2, -1)


@public(method="movedim moveaxis", alias="moveaxis", deferred=True)
def movedim(input: Tensor, source: Any, destination: Any) -> Tensor:
    """A view with some dimensions moved to other places, the rest in order.

    >>> fw.movedim(fw.ones(2, 3, 4), 0, -1).shape
    (3, 4, 2)
    """
    out = _moved(input, source, destination, permute_op)
    if out is not NotImplemented:
        return out
    tensor_arg(input, "movedim")
    if type(source) is int and type(destination) is int:
        ndim = input.ndim
        start = one_dim(source, ndim, "movedim", "source")
        end = one_dim(destination, ndim, "movedim", "destination")
        order = list(range(ndim))
        if order:
            order.insert(end, order.pop(start))
        return take_order(input, tuple(order))
    given = [d if isinstance(d, (tuple, list)) else (d,) for d in (source, destination)]
    if len(given[0]) != len(given[1]):
        raise ShapeError(f"movedim: {len(given[0])} source dims but {len(given[1])} destinations")
    src = [one_dim(d, input.ndim, "movedim", "source") for d in given[0]]
    dst = [one_dim(d, input.ndim, "movedim", "destination") for d in given[1]]
    if len(set(src)) != len(src) or len(set(dst)) != len(dst):
        raise ShapeError("movedim: a dimension is named twice")
    order = [d for d in range(input.ndim) if d not in src]
    for d, s in sorted(zip(dst, src)) if input.ndim else ():
        order.insert(d, s)
    return take_order(input, tuple(order))


@public(method=True, inplace=False, deferred=True)
def unsqueeze(input: Tensor, dim: int) -> Tensor:
    """A view with a new dimension of size 1 at ``dim``.

    >>> fw.unsqueeze(fw.ones(3), 0).shape
    (1, 3)
    """
    out = _unsqueezed(input, dim, reshape_op)
    if out is not NotImplemented:
        return out
    shape = tuple(tensor_arg(input, "unsqueeze").shape)
    at = one_dim(dim, len(shape) + 1, "unsqueeze")
    return take_shape(input, (*shape[:at], 1, *shape[at:]))


@public(method=True, deferred=True)
def squeeze(input: Tensor, dim: Any = None) -> Tensor:
    """A view without the dimensions of size 1, or without those of ``dim`` that have size 1.

    >>> fw.squeeze(fw.ones(1, 3, 1)).shape
    (3,)
    """
    out = _squeezed(input, dim, reshape_op)
    if out is not NotImplemented:
        return out
    tensor_arg(input, "squeeze")
    shape = input.shape
    if dim is None:
        return take_shape(input, tuple([s for s in shape if s != 1]))
    drop = many_dims(dim, len(shape), "squeeze") if dim != () else ()
    return take_shape(input, tuple([s for i, s in enumerate(shape) if s != 1 or i not in drop]))


@public(method=True, deferred=True)
def flatten(input: Tensor, start_dim: int = 0, end_dim: int = -1) -> Tensor:
    """Dimensions ``start_dim`` to ``end_dim`` as one.

    >>> fw.flatten(fw.ones(2, 3, 4), 1).shape
    (2, 12)
    """
    out = _flattened(input, start_dim, end_dim, reshape_op)
    if out is not NotImplemented:
        return out
    tensor_arg(input, "flatten")
    shape = tuple(input.shape)
    if not shape:
        return take_shape(input, (1,))
    start = one_dim(start_dim, len(shape), "flatten", "start_dim")
    end = one_dim(end_dim, len(shape), "flatten", "end_dim")
    if start > end:
        raise ShapeError(f"flatten: start_dim={start_dim} comes after end_dim={end_dim}")
    if start == end:
        return input
    return take_shape(input, (*shape[:start], math.prod(shape[start:end + 1]), *shape[end + 1:]))


@public(method=True, deferred=True)
def ravel(input: Tensor) -> Tensor:
    """All elements in one dimension.

    >>> fw.ravel(fw.tensor([[1, 2], [3, 4]]))
    tensor([1, 2, 3, 4])
    """
    out = _flattened(input, 0, -1, reshape_op)
    if out is not NotImplemented:
        return out
    return take_shape(tensor_arg(input, "ravel"), (-1,) if input.numel() else (0,))


@public(method=True, deferred=True)
def unflatten(input: Tensor, dim: int, sizes: Any) -> Tensor:
    """One dimension as several; one of ``sizes`` may be -1.

    >>> fw.unflatten(fw.ones(2, 12), 1, (3, -1)).shape
    (2, 3, 4)
    """
    at = one_dim(dim, tensor_arg(input, "unflatten")._array.ndim, "unflatten")
    own = input._array.shape
    if type(sizes) is tuple and own:
        out = _shaped(input, own[:at] + sizes + own[at + 1:], reshape_op)
        if out is not NotImplemented:
            return out
    inner = full_shape((input.shape[at],), size_args((sizes,), "unflatten", "sizes"), "unflatten")
    return take_shape(input, input.shape[:at] + inner + input.shape[at + 1:])
