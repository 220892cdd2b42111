"""Broadcasting as two ops, each the other's derivative: repeat along dimensions, and sum them away."""

import math
from collections.abc import Callable
from typing import Any

from ... import _native
from ...dtypes import FLOAT, int64
from ...errors import ShapeError
from ...tensor import Tensor
from ..convert.cast import cast
from ..record.aliases import view_maker
from ..record.args import size_args, tensor_arg
from ..record.batched import call, on_tensors
from ..record.op import Meta, Op
from ..record.planned import Step, planned
from ..record.public import public

_expanded = view_maker("expanded")
_common_shape: Callable = getattr(_native.module, "common_shape", lambda shapes: None)  # of those that fit


def broadcast_shape(shapes: Any, op: str) -> tuple[int, ...]:
    """The common shape under NumPy's broadcasting, or a ShapeError that names the axis."""
    if (shape := _common_shape(shapes)) is not None:
        return shape
    ndim = max((len(s) for s in shapes), default=0)
    result = [1] * ndim
    for shape in shapes:
        for axis, size in enumerate(shape, ndim - len(shape)):
            if size == 1:
                continue
            if result[axis] not in (1, size):
                listed = ", ".join(str(list(s)) for s in shapes)
                raise ShapeError(
                    f"{op}: shapes {listed} do not broadcast: at dimension {axis - ndim} the sizes are "
                    f"{result[axis]} and {size}, and they must be equal or 1; reshape or unsqueeze one")
            result[axis] = size
    return tuple(result)


def _expand_infer(x: Meta, *, size: tuple[int, ...]) -> Meta:
    if len(size) < x.ndim or broadcast_shape((x.shape, size), "expand") != tuple(size):
        raise ShapeError(f"expand: a tensor of shape {list(x.shape)} cannot expand to {list(size)}; only "
                         f"dimensions of size 1 grow, and new ones come in front")
    return Meta(size, x.dtype)


def _expand_kernel(xp: Any, x: Any, *, size: tuple[int, ...]) -> Any:
    if x.size == math.prod(size) and size[len(size) - x.ndim:] == x.shape:
        return x.reshape(size)  # nothing is repeated, so unlike broadcast_to's it may be written to
    return xp.broadcast_to(x, size)


def _sum_to_kernel(xp: Any, x: Any, *, size: tuple[int, ...]) -> Any:
    return x if x.shape == size else x.sum(axis=summed_dims(x.shape, size), dtype=x.dtype).reshape(size)


def summed_dims(shape: tuple[int, ...], size: tuple[int, ...]) -> tuple[int, ...]:
    """Which dimensions a sum from ``shape`` to ``size`` is over."""
    extra = len(shape) - len(size)
    return (*range(extra), *[i + extra for i, s in enumerate(size) if s == 1 != shape[i + extra]])


def _sum_to_infer(x: Meta, *, size: tuple[int, ...]) -> Meta:
    if broadcast_shape((x.shape, size), "sum_to_size") != x.shape:
        raise ShapeError(f"sum_to_size: shape {list(x.shape)} does not sum to {list(size)}; each kept "
                         f"size must be equal or 1")
    return Meta(size, x.dtype)


@on_tensors()
def batch_size(op: Op, size: int, arrays: list, batched: tuple, settings: dict) -> Any:
    """The rule for batches of sum_to_size and expand: between the batch and what is behind are ones."""
    (x,), wanted = arrays, settings["size"]
    most = max(x.ndim - 1, len(wanted))
    x = x.reshape((size, *(1,) * (most - x.ndim + 1), *x.shape[1:]))
    out = call(op, x, size=(size, *(1,) * (most - len(wanted)), *wanted))
    return out if out.ndim == len(wanted) + 1 else out.reshape((size, *wanted))


sum_to = Op("sum_to_size", "x", native="sum_to_size", kernel=_sum_to_kernel, infer=_sum_to_infer,
            batch=batch_size, jvp="linear", vjp={"x": lambda g, x_shape: expand(g, size=x_shape)})
expand = Op("expand", "x", onnx="expanded(x, size)", runtime="expanded(x)", native="expand",
            kernel=_expand_kernel, infer=_expand_infer, jvp="linear", view=True,
            batch=batch_size, vjp={"x": lambda g, x_shape: sum_to(g, size=x_shape)})


def take_size(x: Tensor, size: tuple[int, ...]) -> Tensor:
    """``expand.run(x, size=size)`` by a shorter way."""
    out = _expanded(x, size, expand)
    return expand.run(x, size=size) if out is NotImplemented else out


@public("", method=True, op=expand, name="expand", deferred=True)
def _expand_method(input: Tensor, *size: Any) -> Tensor:
    """The tensor repeated along dimensions of size 1 to ``size``, without copying; -1 keeps a size.

    Raises ShapeError where a dimension of another size would have to grow.

    >>> fw.tensor([[1.0], [2.0]]).expand(2, 3)
    tensor([[1., 1., 1.],
            [2., 2., 2.]])
    """
    out = _expanded(input, size, expand)
    if out is not NotImplemented:
        return out
    wanted = size_args(size, "expand")
    tensor_arg(input, "expand")
    if -1 in wanted:
        shape = input.shape
        extra = len(wanted) - len(shape)
        wanted = tuple([shape[i - extra] if s == -1 and i >= extra else s for i, s in enumerate(wanted)])
    if wanted and min(wanted) < 0:
        raise ShapeError(f"expand: got size {list(wanted)} for a tensor of shape {list(input.shape)}; "
                         f"no size may be negative, but for -1, which keeps one that is there")
    return expand.run(input, size=wanted)


@public("", method=True, deferred=True)
def expand_as(input: Tensor, other: Tensor) -> Tensor:
    """The tensor expanded to the shape of ``other``, without copying.

    >>> fw.tensor([1.0]).expand_as(fw.ones(2))
    tensor([1., 1.])
    """
    out = _expanded(input, other, expand)
    return _expand_method(input, other.shape) if out is NotImplemented else out


@public(method=True)
def broadcast_to(input: Tensor, size: Any) -> Tensor:
    """The tensor expanded to ``size``; see ``Tensor.expand``.

    >>> fw.broadcast_to(fw.tensor([1.0, 2.0]), (2, 2))
    tensor([[1., 2.],
            [1., 2.]])
    """
    out = _expanded(input, (size,), expand)
    return _expand_method(input, size) if out is NotImplemented else out


@public("", method=True, op=sum_to)
def sum_to_size(input: Tensor, *size: Any) -> Tensor:
    """The sum over broadcast dimensions that leaves ``size``; the reverse of ``expand``.

    >>> fw.ones(2, 3).sum_to_size(1, 3)
    tensor([[2., 2., 2.]])
    """
    return _summed_to(tensor_arg(input, "sum_to_size"), *size)


@planned
def _summed_to(x: Tensor, *size: Any) -> list[Step]:
    wanted = size_args(size, "sum_to_size")
    _sum_to_infer(Meta(x.shape, x.dtype), size=wanted)
    whole = x.dtype.category < FLOAT and wanted != x.shape
    before: list[Step] = [(cast.run, 1, {"dtype": int64})] if whole else []
    return [*before, (sum_to.run, 1, {"size": wanted})]
