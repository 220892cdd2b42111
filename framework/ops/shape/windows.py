"""Sliding windows as a view, and the transpose, their sum."""

from typing import Any

import numpy as np

from ...backends.native import native_or
from ...errors import ShapeError
from ...tensor import Tensor
from ..record.aliases import view_maker
from ..record.args import one_dim
from ..record.batched import call, on_tensors
from ..record.op import Meta, Op
from ..record.public import public
from . import cuda
from .view import seen_in

_windows_of = view_maker("windows")
_copied_over = native_or("copy_over", lambda array, memory: False)


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


def _unfold_kernel(xp: Any, x: Any, *, dim: int, size: int, step: int) -> Any:
    if x.ndim == 0:
        return x.reshape(1)[:size]
    count = (x.shape[dim] - size) // step + 1
    shape = x.shape[:dim] + (count,) + x.shape[dim + 1:] + (size,)
    stride = x.strides[dim]
    strides = x.strides[:dim] + (stride * step,) + x.strides[dim + 1:] + (stride,)
    if xp is np:  # where windows overlap, to write into one is to write into another
        return seen_in(x, shape, strides, 0, step >= size)
    return xp.lib.stride_tricks.as_strided(x, shape, strides)


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
    before, count, size = (slice(None),) * dim, x.shape[dim], x.shape[-1]
    if xp is np and step >= size > 0 and count:  # no element is in two of them
        part = _unfold_kernel(xp, out, dim=dim, size=size, step=step)
        if part is not NotImplemented:
            if not _copied_over(x, part):
                part[...] = x
            return out
    if xp is np and count < size:
        for k in range(count):
            part = out[(*before, slice(k * step, k * step + size))]
            part += np.moveaxis(x[(*before, k)], -1, dim)
        return out
    for k in range(x.shape[-1]):
        out[(*before, slice(k, k + (count - 1) * step + 1, step))] += x[..., k]
    return out


unfold_op = Op("unfold", "x", onnx="windows(x, dim, size, step)", runtime="windows(x, dim, size, step)",
               kernel=_unfold_kernel, view=True, infer=_unfold_infer, jvp="linear",
               batch=batch_windows,
               vjp={"x": lambda g, x_shape, dim, step: fold_windows(g, shape=x_shape, dim=dim, step=step)})
fold_windows = Op("fold_windows", "x", kernel=_fold_kernel, jvp="linear", batch=batch_windows,
                  native="fold_windows",
                  device=cuda.fold_windows,
                  infer=lambda x, *, shape, dim, step: Meta(shape, x.dtype),
                  vjp={"x": lambda g, x_shape, dim, step: unfold_op(
                      g, dim=dim, size=x_shape[-1], step=step)})


@public("", method=True, op=unfold_op, deferred=True)
def unfold(input: Tensor, dimension: int, size: int, step: int) -> Tensor:
    """A view of all windows of ``size`` along a dimension, ``step`` apart; a last dimension holds them.

    Raises ShapeError if a window is longer than the dimension.

    >>> fw.arange(5).unfold(0, 3, 2)
    tensor([[0, 1, 2],
            [2, 3, 4]])
    """
    out = _windows_of(input, dimension, size, step, unfold_op)
    if out is not NotImplemented:
        return out
    dim = one_dim(dimension, input.ndim, "unfold", "dimension")
    _unfold_infer(Meta(input.shape, input.dtype), dim=dim, size=size, step=step)
    return unfold_op.run(input, dim=dim, size=int(size), step=int(step))
