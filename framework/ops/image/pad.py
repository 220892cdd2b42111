"""Padding: with a number, or by reflecting, repeating and wrapping."""

import math
from typing import Any

from ...errors import ShapeError
from ...tensor import Tensor
from ..record.args import tensor_arg
from ..record.batched import call, on_tensors
from ..record.op import Meta, Op
from ..record.planned import Step, planned
from ..record.public import public
from ..shape.slices import slice_op
from .resample import Plan, resample


def _pad_key(x_shape: tuple, pads: tuple) -> tuple:
    return tuple(slice(lo, lo + s) for s, (lo, _) in zip(x_shape, pads))


def _pad_kernel(xp: Any, x: Any, *, pads: tuple, value: Any) -> Any:
    shape = tuple(s + lo + hi for s, (lo, hi) in zip(x.shape, pads))
    out = xp.zeros(shape, x.dtype) if value == 0 else xp.full(shape, value, x.dtype)
    out[_pad_key(x.shape, pads)] = x
    return out


@on_tensors()
def batch_pad(op: Op, size: int, arrays: list, batched: tuple, settings: dict) -> Any:
    """The rule for batches: the batch is not padded."""
    return call(op, arrays[0], pads=((0, 0), *settings["pads"]), value=settings["value"])


pad_op = Op("pad", "x", onnx="padded(x, pads, value)", runtime="padded(x, pads, value)",
            batch=batch_pad, kernel=_pad_kernel, native="pad", rounds="pad",
            infer=lambda x, *, pads, value: Meta(
                tuple(s + lo + hi for s, (lo, hi) in zip(x.shape, pads)), x.dtype),
            vjp={"x": lambda g, x_shape, pads: slice_op(g, key=_pad_key(x_shape, pads))})


def _cropped(shape: tuple, pads: tuple) -> tuple[list[Step], tuple]:
    """The step that takes off what negative pads say, if there are such, and what is left to add."""
    least = 0
    for d, (lo, hi) in enumerate(pads):
        if lo < 0 or hi < 0:
            least = -1
            if shape[d] + lo + hi < 0 or shape[d] + min(lo, 0) + min(hi, 0) < 0:
                raise ShapeError(f"pad: {(lo, hi)} takes more from dimension {d} than its size {shape[d]}")
    if least == 0:
        return [], pads
    key = tuple(slice(max(-lo, 0), s - max(-hi, 0)) for s, (lo, hi) in zip(shape, pads))
    return [(slice_op.run, 1, {"key": key})], tuple((max(lo, 0), max(hi, 0)) for lo, hi in pads)


@planned
def _padded(input: Tensor, pad: Any, mode: str, value: Any) -> list[Step]:
    """The steps of ``pad``."""
    shape = tensor_arg(input, "pad").shape
    if not isinstance(pad, (tuple, list)) or len(pad) % 2 or len(pad) > 2 * len(shape):
        raise ValueError(f"pad: wanted pairs (before, after) for at most {len(shape)} dimensions, last one "
                         f"first, got {pad!r} for shape {list(shape)}")
    sides = [(int(pad[i]), int(pad[i + 1])) for i in range(0, len(pad), 2)]
    pads = ((0, 0),) * (len(shape) - len(sides)) + tuple(sides[::-1])
    if mode == "constant":
        steps, pads = _cropped(shape, pads)
        return [*steps, (pad_op.run, 1, {"pads": pads, "value": 0 if value is None else value})]
    if mode not in ("reflect", "replicate", "circular"):
        raise ValueError(f"pad: mode must be 'constant', 'reflect', 'replicate' or 'circular', got {mode!r}")
    if value not in (None, 0):
        raise ValueError(f"pad: mode={mode!r} takes no value, got {value!r}")
    steps, cut = _cropped(shape, pads) if mode == "circular" else ([], pads)
    for d, (lo, hi) in enumerate(cut):
        if not lo and not hi:
            continue
        size = shape[d] + min(pads[d][0], 0) + min(pads[d][1], 0) if mode == "circular" else shape[d]
        most = size - 1 if mode == "reflect" else size if mode == "circular" else math.inf
        if max(lo, hi) > most or size + lo + hi < 0 or (size == 0 and max(lo, hi) > 0):
            raise ShapeError(f"pad: mode={mode!r} cannot add {(lo, hi)} to dimension {d} of size {size}"
                             + (f"; at most {most} on a side" if most < math.inf else ""))
        plan = Plan(mode, size, size + lo + hi, offset=lo)
        steps.append((resample.run, 1, {"dim": d, "plan": plan, "back": False}))
    return steps


def _pads_by_values(input: Any, pad: Any, mode: str = "constant", value: Any = None) -> str:
    """Whether it is one that PyTorch counts among the operations of float32."""
    return "float32" if mode == "replicate" or mode == "reflect" and len(pad) <= 4 else "as given"


@public("nn.functional", op=pad_op, autocast=_pads_by_values, deferred=True)
def pad(input: Tensor, pad: Any, mode: str = "constant", value: Any = None) -> Tensor:
    """The tensor with elements added at the ends of its last dimensions (or, if negative, taken).

    pad: (before, after) of the last dimension, then of the one before it, and so on. mode: "constant"
    adds ``value`` (0); "reflect" mirrors without repeating the edge; "replicate" repeats the edge;
    "circular" goes on at the other end. Raises ShapeError where a mode has too few elements.

    >>> fw.nn.functional.pad(fw.tensor([1.0, 2.0, 3.0]), (2, 1))
    tensor([0., 0., 1., 2., 3., 0.])
    >>> fw.nn.functional.pad(fw.tensor([1.0, 2.0, 3.0]), (2, 1), mode="reflect")
    tensor([3., 2., 1., 2., 3., 2.])
    """
    return _padded(input, pad, mode, value)
