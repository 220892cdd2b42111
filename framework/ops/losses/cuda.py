"""Cross entropy on GPUs (``kernels.cu``): one kernel forward, one or two backward, and no wait for the
device.

A class that is out of range is told at the next wait for the device (``backends/device_flags.py``).
"""

import math
from pathlib import Path
from typing import Any

import numpy as np

from ...backends import cuda, device_code, device_flags, device_launcher
from ..language.cuda_fold import tickets

_SOURCE = device_code.source(Path(__file__).with_name("kernels.cu"))
_REDUCTIONS = {"none": 0, "sum": 1, "mean": 2}
_TARGET = device_flags.site(
    "cross_entropy: a target is class {value}, but there are {size} classes (0 to {last})"
)


def _ready(x: Any, target: Any, weight: Any) -> tuple[str, Any, Any, Any] | None:
    char = device_code.char_of(x) if weight is None else device_code.char_of(x, weight)
    if char not in device_code.FLOATS or not x.size or not target.size:
        return None
    module = cuda.cupy()
    target = module.ascontiguousarray(target if target.dtype == np.int64 else target.astype(np.int64))
    return (
        char,
        module.ascontiguousarray(x),
        target,
        None if weight is None else module.ascontiguousarray(weight),
    )


def _threads(classes: int) -> int:
    return min(256, max(32, 1 << (classes // 4).bit_length()))


def cross_entropy(x: Any, target: Any, weight: Any, *, ignore: int, smoothing: float, reduction: str) -> Any:
    """The device function of cross_entropy."""
    ready = _ready(x, target, weight)
    if ready is None:
        return NotImplemented
    char, x, target, weight = ready
    (rows, classes), wide = (target.size, x.shape[1]), np.float64 if char == "d" else np.float32
    top, total = device_launcher.empty(target.shape, x.dtype), device_launcher.empty(target.shape, x.dtype)
    loss = device_launcher.empty(target.shape if reduction == "none" else (), x.dtype)
    parts = counters = None
    if reduction != "none":
        parts, counters = device_launcher.empty(2 * rows, wide), tickets(1)
    _SOURCE.kernel("cross_entropy", char)(
        (device_code.blocks(rows, 1),),
        (_threads(classes),),
        (
            loss,
            top,
            total,
            x,
            target,
            weight,
            classes,
            math.prod(x.shape[2:]),
            rows,
            ignore,
            float(smoothing),
            _REDUCTIONS[reduction],
            parts,
            counters,
            device_flags.memory(),
            _TARGET,
        ),
    )
    return loss, top, total


def cross_entropy_grad(
    g: Any,
    x: Any,
    target: Any,
    weight: Any,
    top: Any,
    total: Any,
    *,
    ignore: int,
    smoothing: float,
    reduction: str,
) -> Any:
    """The device function of its backward."""
    ready = _ready(x, target, weight)
    if ready is None or device_code.char_of(g, top, total) != ready[0]:
        return NotImplemented
    char, x, target, weight = ready
    module, rows, classes, inner = cuda.cupy(), target.size, x.shape[1], math.prod(x.shape[2:])
    out = device_launcher.empty(x.shape, x.dtype)
    shares = None
    if reduction == "mean":
        shares = device_launcher.empty(1, np.float64 if char == "d" else np.float32)
        _SOURCE.kernel("target_shares", char)(
            (1,), (1024,), (shares, target, weight, classes, inner, rows, ignore)
        )
    _SOURCE.kernel("cross_entropy_grad", char)(
        (device_code.blocks(rows, 1),),
        (_threads(classes),),
        (
            out,
            module.ascontiguousarray(g),
            x,
            target,
            weight,
            top,
            total,
            shares,
            classes,
            inner,
            rows,
            ignore,
            float(smoothing),
            int(reduction == "none"),
        ),
    )
    return out


def _by_class(
    name: str, x: Any, target: Any, shape: tuple[int, ...], classes: int, ignore: int | None
) -> Any:
    ready = _ready(x, target, None)
    if ready is None or not math.prod(shape):
        return NotImplemented
    char, x, target, _ = ready
    out = device_launcher.empty(shape, x.dtype)
    inner = math.prod(target.shape[1:])
    _SOURCE.kernel(name, char)(
        (device_code.blocks(out.size),),
        (device_code.THREADS,),
        (out, x, target, classes, inner, target.size, int(ignore is not None), ignore or 0),
    )
    return out


def pick_class(x: Any, target: Any, *, ignore: int | None) -> Any:
    """The device function of pick_class."""
    return _by_class("pick_class", x, target, target.shape, x.shape[1], ignore)


def put_class(x: Any, target: Any, *, ignore: int | None, classes: int) -> Any:
    """That of put_class."""
    return _by_class("put_class", x, target, (target.shape[0], classes, *target.shape[1:]), classes, ignore)


def class_shares(like: Any, target: Any, weight: Any, ignore: int | None, classes: int) -> Any:
    """What each target counts, in the dtype of ``like``; NotImplemented for what is left to formulas."""
    ready = _ready(like, target, weight)
    if ready is None:
        return NotImplemented
    char, _, target, weight = ready
    out = device_launcher.empty(target.shape, like.dtype)
    _SOURCE.kernel("class_shares", char)(
        (device_code.blocks(target.size),),
        (device_code.THREADS,),
        (out, target, weight, classes, target.size, int(ignore is not None), ignore or 0),
    )
    return out
