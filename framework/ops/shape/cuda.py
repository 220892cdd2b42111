"""Sums of sliding windows on GPUs (``windows.cu``)."""

import math
from pathlib import Path
from typing import Any

from ...backends import cuda, device_code

_SOURCE = device_code.source(Path(__file__).with_name("windows.cu"))


def fold_windows(x: Any, *, shape: tuple[int, ...], dim: int, step: int) -> Any:
    """The device function of fold_windows."""
    char, module = device_code.char_of(x), cuda.cupy()
    if char not in device_code.FLOATS or not shape or not x.size or not math.prod(shape):
        return NotImplemented
    out = module.empty(shape, x.dtype)
    _SOURCE.kernel("fold_windows", char)(
        (device_code.blocks(out.size),), (device_code.THREADS,),
        (out, module.ascontiguousarray(x), math.prod(shape[:dim]), shape[dim], math.prod(shape[dim + 1 :]),
         x.shape[dim], x.shape[-1], step))
    return out
