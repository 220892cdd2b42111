"""Memory formats: copies of tensors in another layout, and tensors made in the layout of another one."""

from collections.abc import Callable
from typing import Any

import numpy as np

from ...backends.native import copied
from ...layouts import MemoryFormat, back, checked, contiguous_format, format_of, lies_in, need_dims, order
from ...tensor import Tensor, wrap
from ..record.op import Op


def _last_kernel(xp: Any, x: Any) -> Any:
    turned = x.transpose(order(x.ndim))
    return (copied(turned) if xp is np else xp.array(turned, order="C")).transpose(back(x.ndim))


# a copy with the channels side by side
def unchanged(op: Op, size: int, arrays: list, batched: tuple, settings: dict) -> Any:
    """The rule for batches of what concerns the order in memory only."""
    return arrays[0]


channels_last_op = Op("channels_last", "x", onnx="x",
                      kernel=_last_kernel, infer=lambda x: x, jvp="linear", moves=True,
                      batch=unchanged,
                      vjp={"x": lambda g: g})


def copy_in(x: Tensor, memory_format: MemoryFormat, op: str) -> Tensor | None:
    """A copy with the channels last, if the format says so for x, else None."""
    need_dims(x.shape, memory_format, op)
    return channels_last_op.run(x) if _wanted(x, memory_format).ndim else None


def in_format(x: Tensor, memory_format: MemoryFormat, op: str) -> Tensor | None:
    """x itself where it lies in that format already; else as ``copy_in``."""
    need_dims(x.shape, memory_format, op)
    return x if lies_in(x._array, memory_format) else copy_in(x, memory_format, op)


def _wanted(x: Tensor, memory_format: MemoryFormat) -> MemoryFormat:
    return format_of(x._array) if memory_format.name == "preserve_format" else memory_format


def made_like(make: Callable[..., Tensor], x: Tensor, memory_format: Any, requires_grad: bool,
              op: str) -> Tensor:
    """``make(shape)`` in the shape of x and the format asked for, by default that of x."""
    wanted = checked(memory_format, op)
    need_dims(x.shape, wanted, op)
    wanted = _wanted(x, wanted)
    if wanted is contiguous_format:
        return make(x.shape).requires_grad_(requires_grad)
    made = make(tuple(x.shape[d] for d in order(x.ndim)))
    return wrap(made._array.transpose(back(x.ndim))).requires_grad_(requires_grad)
