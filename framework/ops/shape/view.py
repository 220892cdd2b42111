"""Shape ops that share memory: reshape, permute, basic slices and what is written with them."""

import math
from typing import Any

import numpy as np

from ...autograd.mode import state
from ...dtypes import DType
from ...errors import LayoutError, ShapeError
from ...node import Node
from ...quiet import quiet
from ...tensor import Tensor, counter_of, wrap
from ..record.aliases import link
from ..record.args import many_dims, one_dim, size_args, tensor_arg
from ..record.batched import along, call, on_tensors
from ..record.op import Meta, Op
from ..record.public import public

_new = object.__new__

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


@on_tensors()
def batch_slice(op: Op, size: int, arrays: list, batched: tuple, settings: dict) -> Any:
    """Of slice and put_slice."""
    moved = {**settings, "key": (slice(None), *settings["key"])}
    if "shape" in settings:
        moved["shape"] = (size, *settings["shape"])
    return call(op, arrays[0], **moved)


def batch_put_diagonal(op: Op, size: int, arrays: list, batched: tuple, settings: dict) -> Any:
    """Of put_diagonal, whose dims are of the result."""
    shape, ndim = settings["shape"], len(settings["shape"])
    dims = tuple([d % ndim + 1 for d in settings["dims"]])
    return call(op, arrays[0], shape=(size, *shape), offset=settings["offset"], dims=dims)


@on_tensors()
def batch_windows(op: Op, size: int, arrays: list, batched: tuple, settings: dict) -> Any:
    """Of unfold and fold_windows; a number is one window of one element."""
    moved, (x,) = dict(settings), arrays
    if "shape" in settings:
        ndim, moved["shape"] = len(settings["shape"]), (size, *(settings["shape"] or (1,)))
        if not ndim:
            x = x.reshape((size, 1, x.shape[-1]))
    else:
        ndim = x.ndim - 1
        if not ndim:
            x = x.reshape((size, 1))
    moved["dim"] = settings["dim"] % max(ndim, 1) + 1
    out = call(op, x, **moved)
    if ndim:
        return out
    return out.reshape((size,) if "shape" in settings else (size, out.shape[-1]))


# NumPy's functions for views by strides take five to ten times as long as its class


def lies_plainly(x: np.ndarray) -> bool:
    """Whether ``seen_in`` takes it: memory without gaps, of a dtype that has a name among C's."""
    return x.flags.c_contiguous and x.size > 0 and x.dtype.kind in "fiubc"


def seen_in(x: np.ndarray, shape: Any, strides: Any) -> np.ndarray:
    """The memory of ``x`` in another shape, with these strides in bytes."""
    return np.ndarray(shape, x.dtype, x, 0, strides)


def _reshape_infer(x: Meta, *, shape: tuple[int, ...]) -> Meta:
    return Meta(full_shape(x.shape, shape, "reshape"), x.dtype)


def full_shape(old: tuple[int, ...], new: tuple[int, ...], op: str) -> tuple[int, ...]:
    """``new`` with its one -1 worked out; raises ShapeError if the element counts differ."""
    total, known = math.prod(old), math.prod(s for s in new if s != -1)
    if any(s < -1 for s in new) or new.count(-1) > 1:
        raise ShapeError(f"{op}: shape {list(new)} may hold one -1 and no other negative size")
    if -1 in new:
        if known == 0 or total % known:
            raise ShapeError(f"{op}: a tensor of shape {list(old)} ({total} elements) does not fit shape "
                             f"{list(new)}")
        return tuple(total // known if s == -1 else s for s in new)
    if known != total:
        raise ShapeError(f"{op}: a tensor of shape {list(old)} ({total} elements) does not fit shape "
                         f"{list(new)} ({known} elements)")
    return new


reshape_op = Op("reshape", "x", onnx="reshaped(x, shape)",
                kernel=lambda xp, x, *, shape: x.reshape(shape), view="maybe",
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


permute_op = Op("permute", "x", onnx="permuted(x, dims)",
                kernel=lambda xp, x, *, dims: x.transpose(dims), view=True,
                batch=batch_permute,
                infer=_permute_infer, jvp="linear",
                vjp={"x": lambda g, dims: permute_op(g, dims=_inverse(dims))})


@public(method=True, op=reshape_op)
def reshape(input: Tensor, *shape: Any) -> Tensor:
    """The elements in another shape: a view where memory allows, else a copy. One size may be -1.

    Raises ShapeError if the number of elements differs.

    >>> fw.reshape(fw.arange(6), (2, -1))
    tensor([[0, 1, 2],
            [3, 4, 5]])
    """
    return _reshaped(tensor_arg(input, "reshape"), size_args(shape, "reshape", "shape"))


def _reshaped(input: Tensor, sizes: tuple[int, ...]) -> Tensor:
    if sizes and min(sizes) < -1:  # NumPy takes any negative size for -1
        full_shape(input.shape, sizes, "reshape")
    return take_shape(input, sizes)


def take_shape(x: Tensor, shape: tuple[int, ...]) -> Tensor:
    """``reshape_op.run(x, shape=shape)`` with less ado, for arrays that need no copy."""
    try:
        array = x._array
        if type(array) is np.ndarray and quiet.run is not None and array.flags.c_contiguous:
            return _seen(x, array, array.reshape(shape), reshape_op, {"shape": shape})
    except (LayoutError, ValueError):
        pass  # the op takes sparse tensors, or says what was wrong
    return reshape_op.run(x, shape=shape)


def take_order(x: Tensor, dims: tuple[int, ...]) -> Tensor:
    """``permute_op.run(x, dims=dims)`` with less ado."""
    try:
        array = x._array
        if type(array) is np.ndarray and quiet.run is not None:
            return _seen(x, array, array.transpose(dims), permute_op, {"dims": dims})
    except (LayoutError, ValueError):
        pass  # the op takes sparse tensors, or says what was wrong
    return permute_op.run(x, dims=dims)


def _seen(x: Tensor, array: np.ndarray, out: np.ndarray, op: Op, settings: dict) -> Tensor:
    """The tensor over ``out``, what the view ``op`` made of ``array`` of ``x``: what ``road`` ends with.

    Views cost so little themselves that half of the way is the road's. ``op`` keeps the shape at most.
    """
    result = _new(Tensor)
    result._array = out
    result._node = None
    if x._node is not None and (mode := state.enabled):
        if mode is True:
            kept = None if op.keeps_nothing else {"x_shape": array.shape}
            result._node = Node(op, (x._node,), kept, None, settings, None)
        else:
            op.record((x,), [array], result, settings)
    link(x, result, op, settings)
    return result


@public("", method=True, also="dtype=size")
def view(input: Tensor, *size: Any) -> Tensor:
    """The same memory in another shape; raises ShapeError where that needs a copy (use reshape).

    ``input.view(dtype)`` reads the bytes as another dtype of the same size.

    >>> fw.arange(4).view(2, 2)
    tensor([[0, 1],
            [2, 3]])
    """
    if len(size) == 1 and size[0] is input.dtype:
        size = input.shape  # the graph goes on
    if len(size) == 1 and isinstance(size[0], DType):
        out = wrap(input._array.view(size[0].numpy))
        out._counter = counter_of(input)
        return out
    try:
        out = _reshaped(input, size_args(size, "view"))
    except ShapeError as error:
        raise ShapeError(str(error).replace("reshape:", "view:", 1)) from None
    if out._base is None and out._array.size:
        raise ShapeError(f"view: a tensor of shape {list(input.shape)} and strides "
                         f"{list(input.stride())} cannot be seen as {list(out.shape)} without a copy; "
                         f"use reshape()")
    return out


@public("", method=True)
def view_as(input: Tensor, other: Tensor) -> Tensor:
    """The same memory in the shape of ``other``.

    >>> fw.arange(4).view_as(fw.ones(2, 2))
    tensor([[0, 1],
            [2, 3]])
    """
    return view(input, other.shape)


@public("", method=True)
def reshape_as(input: Tensor, other: Tensor) -> Tensor:
    """The elements in the shape of ``other``.

    >>> fw.arange(4).reshape_as(fw.ones(2, 2))
    tensor([[0, 1],
            [2, 3]])
    """
    return reshape(input, other.shape)


@public("", method=True)
def expand_as(input: Tensor, other: Tensor) -> Tensor:
    """The tensor expanded to the shape of ``other``, without copying.

    >>> fw.tensor([1.0]).expand_as(fw.ones(2))
    tensor([1., 1.])
    """
    return input.expand(other.shape)  # type: ignore[attr-defined]


@public(method=True, op=permute_op)
def permute(input: Tensor, *dims: Any) -> Tensor:
    """A view with the dimensions in another order.

    >>> fw.permute(fw.ones(2, 3, 4), (2, 0, 1)).shape
    (4, 2, 3)
    """
    tensor_arg(input, "permute")
    ndim = input.ndim
    order = tuple([one_dim(d, ndim, "permute", "dims") for d in size_args(dims, "permute", "dims")])
    if len(set(order)) != len(order):
        raise ShapeError(f"permute: dims {list(order)} names a dimension twice")
    return take_order(input, order)


@public(method="transpose swapdims", alias="swapdims")
def transpose(input: Tensor, dim0: int, dim1: int) -> Tensor:
    """A view with two dimensions swapped.

    >>> fw.transpose(fw.tensor([[1, 2], [3, 4]]), 0, 1)
    tensor([[1, 3],
            [2, 4]])
    """
    tensor_arg(input, "transpose")
    ndim = input.ndim
    a, b = one_dim(dim0, ndim, "transpose", "dim0"), one_dim(dim1, ndim, "transpose", "dim1")
    order = list(range(ndim))
    if order:
        order[a], order[b] = order[b], order[a]
    return take_order(input, tuple(order))


@public(method=True)
def swapaxes(input: Tensor, axis0: int, axis1: int) -> Tensor:
    """``transpose`` by NumPy's name.

    >>> fw.swapaxes(fw.ones(2, 3), 0, 1).shape
    (3, 2)
    """
    return transpose(input, axis0, axis1)


@public(method=True)
def t(input: Tensor) -> Tensor:
    """The transpose of a matrix, as a view; a vector or number is returned as it is.

    >>> fw.t(fw.tensor([[1, 2], [3, 4]]))
    tensor([[1, 3],
            [2, 4]])
    """
    if tensor_arg(input, "t").ndim > 2:
        raise ShapeError(f"t: wanted at most 2 dimensions, got shape {list(input.shape)}; use transpose()")
    return take_order(input, tuple(range(input.ndim))[::-1])


@public("", method="T", as_property=True)
def T(input: Tensor) -> Tensor:
    """The transpose: all dimensions in reverse order."""
    return take_order(input, tuple(range(input.ndim))[::-1])


@public("", method="mT", as_property=True)
def mT(input: Tensor) -> Tensor:
    """The last two dimensions swapped: the transpose of every matrix of a batch."""
    if input.ndim < 2:
        raise ShapeError(f"mT: wanted at least 2 dimensions, got shape {list(input.shape)}")
    return transpose(input, -2, -1)


@public(method="movedim moveaxis", alias="moveaxis")
def movedim(input: Tensor, source: Any, destination: Any) -> Tensor:
    """A view with some dimensions moved to other places, the rest in order.

    >>> fw.movedim(fw.ones(2, 3, 4), 0, -1).shape
    (3, 4, 2)
    """
    tensor_arg(input, "movedim")
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


@public(method=True, inplace=False)
def unsqueeze(input: Tensor, dim: int) -> Tensor:
    """A view with a new dimension of size 1 at ``dim``.

    >>> fw.unsqueeze(fw.ones(3), 0).shape
    (1, 3)
    """
    shape = tuple(tensor_arg(input, "unsqueeze").shape)
    at = one_dim(dim, len(shape) + 1, "unsqueeze")
    return take_shape(input, (*shape[:at], 1, *shape[at:]))


@public(method=True)
def squeeze(input: Tensor, dim: Any = None) -> Tensor:
    """A view without the dimensions of size 1, or without those of ``dim`` that have size 1.

    >>> fw.squeeze(fw.ones(1, 3, 1)).shape
    (3,)
    """
    tensor_arg(input, "squeeze")
    shape = input.shape
    if dim is None:
        return take_shape(input, tuple([s for s in shape if s != 1]))
    drop = many_dims(dim, len(shape), "squeeze") if dim != () else ()
    return take_shape(input, tuple([s for i, s in enumerate(shape) if s != 1 or i not in drop]))


@public(method=True)
def flatten(input: Tensor, start_dim: int = 0, end_dim: int = -1) -> Tensor:
    """Dimensions ``start_dim`` to ``end_dim`` as one.

    >>> fw.flatten(fw.ones(2, 3, 4), 1).shape
    (2, 12)
    """
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


@public(method=True)
def ravel(input: Tensor) -> Tensor:
    """All elements in one dimension.

    >>> fw.ravel(fw.tensor([[1, 2], [3, 4]]))
    tensor([1, 2, 3, 4])
    """
    return take_shape(tensor_arg(input, "ravel"), (-1,) if input.numel() else (0,))


@public(method=True)
def unflatten(input: Tensor, dim: int, sizes: Any) -> Tensor:
    """One dimension as several; one of ``sizes`` may be -1.

    >>> fw.unflatten(fw.ones(2, 12), 1, (3, -1)).shape
    (2, 3, 4)
    """
    at = one_dim(dim, tensor_arg(input, "unflatten").ndim, "unflatten")
    inner = full_shape((input.shape[at],), size_args((sizes,), "unflatten", "sizes"), "unflatten")
    return take_shape(input, input.shape[:at] + inner + input.shape[at + 1:])


# -- basic slices --------------------------------------------------------------------------------


def _slice_infer(x: Meta, *, key: tuple) -> Meta:
    _check_key(x.shape, key)
    return Meta(np.broadcast_to(np.int8(0), x.shape)[key].shape, x.dtype)


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


def _put_slice_kernel(xp: Any, x: Any, *, key: tuple, shape: tuple[int, ...]) -> Any:
    out = xp.zeros(shape, x.dtype)
    out[key] = x
    return out


# key: ints, slices, None and Ellipsis, as NumPy's basic indexing takes them
slice_op = Op("slice", "x", onnx="sliced(x, key)", masks=True, kernel=_slice_kernel, view=True, jvp="linear",
              infer=_slice_infer, batch=batch_slice,
              vjp={"x": lambda g, x_shape, key: put_slice(g, key=key, shape=x_shape)})
put_slice = Op("put_slice", "x", onnx="put_slice(x, key, shape)", kernel=_put_slice_kernel, jvp="linear",
               batch=batch_slice,
               infer=lambda x, *, key, shape: Meta(shape, x.dtype),
               vjp={"x": lambda g, key: slice_op(g, key=key)})


def grown(x: Tensor, more: list[int]) -> Tensor:
    """Images ``x`` (n, c, sizes...) with zeros behind their ends, ``more`` of them along each size."""
    shape = (*x.shape[:2], *(s + m for s, m in zip(x.shape[2:], more)))
    key = (Ellipsis, *(slice(0, s) for s in x.shape[2:]))
    return put_slice.run(x, key=key, shape=shape) if any(more) else x


def take_slice(x: Tensor, key: tuple) -> Tensor:
    """``slice_op.run(x, key=key)`` with less ado: slices are the most frequent of all calls."""
    array = x._array
    if type(array) is not np.ndarray or quiet.run is None:
        return slice_op.run(x, key=key)
    try:
        out = array[key]
    except IndexError:
        return slice_op.run(x, key=key)  # which says precisely what was wrong
    if type(out) is not np.ndarray:
        out = array[(*key, ...)]  # a view, where NumPy copies
    return _seen(x, array, out, slice_op, {"key": key})


def slice_along(x: Tensor, dim: int, key: Any) -> Tensor:
    """``x[:, ..., key]`` with the int or slice at dimension ``dim`` (already in range)."""
    return take_slice(x, (slice(None),) * dim + (key,))


@public(method=True)
def select(input: Tensor, dim: int, index: int) -> Tensor:
    """A view of one position along a dimension, which is dropped.

    >>> fw.select(fw.tensor([[1, 2], [3, 4]]), 1, 0)
    tensor([1, 3])
    """
    at = one_dim(dim, tensor_arg(input, "select").ndim, "select")
    size = input.shape[at] if input.ndim else 0
    if not -size <= index < size:
        raise IndexError(f"select: index={index} is out of range for dimension {dim} of size {size}")
    return slice_along(input, at, int(index))


@public(method=True)
def narrow(input: Tensor, dim: int, start: int, length: int) -> Tensor:
    """A view of ``length`` positions from ``start`` along a dimension.

    >>> fw.narrow(fw.arange(5), 0, 1, 3)
    tensor([1, 2, 3])
    """
    at = one_dim(dim, tensor_arg(input, "narrow").ndim, "narrow")
    size = input.shape[at] if input.ndim else 0
    begin = int(start) + size if start < 0 else int(start)
    if length < 0 or not 0 <= begin <= size or begin + length > size:
        raise IndexError(f"narrow: start={start}, length={length} does not fit dimension {dim} of size "
                         f"{size}")
    return slice_along(input, at, slice(begin, begin + length))


# -- diagonals and windows -----------------------------------------------------------------------


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
put_diagonal = Op("put_diagonal", "x", kernel=_put_diagonal_kernel, jvp="linear",
                  batch=batch_put_diagonal,
                  infer=lambda x, *, shape, offset, dims: Meta(shape, x.dtype),
                  vjp={"x": lambda g, offset, dims: diagonal_op(g, offset=offset, dims=dims)})


@public(method=True, op=diagonal_op)
def diagonal(input: Tensor, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Tensor:
    """A view of the diagonal of dimensions ``dim1`` and ``dim2``, which becomes the last dimension.

    offset: 0 for the main diagonal, positive above it, negative below.

    >>> fw.diagonal(fw.arange(9).view(3, 3))
    tensor([0, 4, 8])
    """
    ndim = tensor_arg(input, "diagonal").ndim
    dims = one_dim(dim1, ndim, "diagonal", "dim1"), one_dim(dim2, ndim, "diagonal", "dim2")
    if dims[0] == dims[1] or ndim < 2:
        raise ShapeError(f"diagonal: dim1={dim1} and dim2={dim2} must be two dimensions of a tensor, this "
                         f"one has shape {list(input.shape)}")
    return diagonal_op.run(input, offset=int(offset), dims=dims)


def _unfold_kernel(xp: Any, x: Any, *, dim: int, size: int, step: int) -> Any:
    if x.ndim == 0:
        return x.reshape(1)[:size]
    count = (x.shape[dim] - size) // step + 1
    shape = x.shape[:dim] + (count,) + x.shape[dim + 1:] + (size,)
    stride = x.strides[dim]
    strides = x.strides[:dim] + (stride * step,) + x.strides[dim + 1:] + (stride,)
    plainly = xp is np and lies_plainly(x)
    out = seen_in(x, shape, strides) if plainly else xp.lib.stride_tricks.as_strided(x, shape, strides)
    if xp is np and step < size:
        out.flags.writeable = False  # windows overlap: to write into one is to write into another
    return out


def _unfold_infer(x: Meta, *, dim: int, size: int, step: int) -> Meta:
    length = x.shape[dim] if x.ndim else 1
    if not 0 <= size <= length:
        raise ShapeError(f"unfold: windows of size={size} do not fit dimension {dim} of size {length}")
    if step <= 0:
        raise ValueError(f"unfold: step must be positive, got {step}")
    if not x.ndim:
        return Meta((size,), x.dtype)
    count = (length - size) // step + 1
    return Meta(x.shape[:dim] + (count,) + x.shape[dim + 1:] + (size,), x.dtype)


def _fold_kernel(xp: Any, x: Any, *, shape: tuple[int, ...], dim: int, step: int) -> Any:
    out = xp.zeros(shape, x.dtype)
    if not shape:
        out += x.sum(dtype=x.dtype)
        return out
    before, count = (slice(None),) * dim, x.shape[dim]
    for k in range(x.shape[-1]):
        out[(*before, slice(k, k + (count - 1) * step + 1, step))] += x[..., k]
    return out


unfold_op = Op("unfold", "x", onnx="windows(x, dim, size, step)",
               kernel=_unfold_kernel, view=True, infer=_unfold_infer, jvp="linear",
               batch=batch_windows,
               vjp={"x": lambda g, x_shape, dim, step: fold_windows(g, shape=x_shape, dim=dim, step=step)})
fold_windows = Op("fold_windows", "x", kernel=_fold_kernel, jvp="linear", batch=batch_windows,
                  infer=lambda x, *, shape, dim, step: Meta(shape, x.dtype),
                  vjp={"x": lambda g, x_shape, dim, step: unfold_op(
                      g, dim=dim, size=x_shape[-1], step=step)})


@public("", method=True, op=unfold_op)
def unfold(input: Tensor, dimension: int, size: int, step: int) -> Tensor:
    """A view of all windows of ``size`` along a dimension, ``step`` apart; a last dimension holds them.

    Raises ShapeError if a window is longer than the dimension.

    >>> fw.arange(5).unfold(0, 3, 2)
    tensor([[0, 1, 2],
            [2, 3, 4]])
    """
    dim = one_dim(dimension, input.ndim, "unfold", "dimension")
    _unfold_infer(Meta(input.shape, input.dtype), dim=dim, size=size, step=step)
    return unfold_op.run(input, dim=dim, size=int(size), step=int(step))


@public(method=True, out=True)
def narrow_copy(input: Tensor, dim: int, start: int, length: int) -> Tensor:
    """``narrow`` as a tensor of its own memory.

    >>> fw.narrow_copy(fw.arange(5), 0, 1, 3)
    tensor([1, 2, 3])
    """
    return narrow(input, dim, start, length).clone()  # type: ignore[attr-defined]
