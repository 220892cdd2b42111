"""Memory formats: copies of tensors in another layout, and tensors made in the layout of another one."""

from collections.abc import Callable
from typing import Any

import numpy as np

from ...backends.native import copied
from ...backends.turned import in_rows
from ...memory_formats import (
    MemoryFormat,
    axes_of,
    back,
    checked,
    contiguous_format,
    inverse,
    lies_in,
    need_dims,
    order,
    turned,
)
from ...tensor import Tensor, wrap
from ..record.op import Op


def _copy(xp: Any, x: Any) -> Any:
    if xp is np:
        return copied(x)
    found = in_rows(x)
    return xp.array(x, order="C") if found is NotImplemented else found


def _last_kernel(xp: Any, x: Any) -> Any:
    return _copy(xp, x.transpose(order(x.ndim))).transpose(back(x.ndim))


def batch_copy(op: Op, size: int, arrays: list, batched: tuple, settings: dict) -> Any:
    """The rule for batches of copies in another order: a copy, whatever its order."""
    return arrays[0].copy()


# a copy with the channels side by side
channels_last_op = Op("channels_last", "x", onnx="x", runtime="channels_last(x)",
                      kernel=_last_kernel, infer=lambda x: x, jvp="linear", moves=True,
                      batch=batch_copy,
                      vjp={"x": lambda g: g})


def _preserved_kernel(xp: Any, x: Any) -> Any:
    axes = axes_of(x) if turned(x) else tuple(range(x.ndim))
    return _copy(xp, x.transpose(axes)).transpose(inverse(axes))


# a copy with its dimensions in the same order in memory; in rows where that is the shape's, or some meet
preserved_op = Op("preserved", "x", runtime="contiguous(x)", native="preserved",
                  kernel=_preserved_kernel, infer=lambda x: x, jvp="linear", moves=True,
                  batch=batch_copy, vjp={"x": lambda g: g})


def copy_in(x: Tensor, memory_format: MemoryFormat, op: str) -> Tensor | None:
    """A copy with the channels last, or laid out as x is, if the format says so for x; None for rows."""
    need_dims(x.shape, memory_format, op)
    if memory_format.name == "preserve_format" and turned(x._array):
        return preserved_op.run(x)
    return channels_last_op.run(x) if memory_format.ndim else None


def in_format(x: Tensor, memory_format: MemoryFormat, op: str) -> Tensor | None:
    """x itself where it lies in that format already; else as ``copy_in``."""
    return x if lies_in(x._array, memory_format) else copy_in(x, memory_format, op)


def made_like(make: Callable[..., Tensor], x: Tensor, memory_format: Any, requires_grad: bool,
              op: str) -> Tensor:
    """``make(shape)`` in the shape of x and the format asked for, by default that of x."""
    wanted = checked(memory_format, op)
    need_dims(x.shape, wanted, op)
    if wanted is contiguous_format or not wanted.ndim and not turned(x._array):
        return make(x.shape).requires_grad_(requires_grad)
    axes = order(x.ndim) if wanted.ndim else axes_of(x._array)
    made = make(tuple(x.shape[d] for d in axes))
    return wrap(made._array.transpose(inverse(axes))).requires_grad_(requires_grad)
