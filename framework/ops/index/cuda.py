"""Rows of tables on GPUs (``kernels.cu``). An index out of range is told at the next wait for the device."""

import math
from pathlib import Path
from typing import Any

import numpy as np

from ...backends import cuda, device_code, device_flags, precision

_SOURCE = device_code.source(Path(__file__).with_name("kernels.cu"))
_INDEX = device_flags.site("embedding: input is {value}, but the table has {size} rows (0 to {last})")


def checks_itself(indices: Any) -> bool:
    """Whether the kernel tells of indices out of range, so that nobody need wait to look at them."""
    return device_code.enabled and device_code.is_device_array(indices)


def _indices(indices: Any) -> Any:
    indices = indices if indices.dtype == np.int64 else indices.astype(np.int64)
    return cuda.cupy().ascontiguousarray(indices)


def take_rows(weight: Any, indices: Any, *, padding: int | None, by_frequency: bool) -> Any:
    """The device function of embedding."""
    char = device_code.char_of(weight)
    if char not in device_code.FLOATS or not indices.size or not weight.size:
        return NotImplemented
    module, width = cuda.cupy(), math.prod(weight.shape[1:])
    out = module.empty((*indices.shape, *weight.shape[1:]), weight.dtype)
    _SOURCE.kernel("take_rows", char)(
        (device_code.blocks(out.size),),
        (device_code.THREADS,),
        (
            out,
            module.ascontiguousarray(weight),
            _indices(indices),
            indices.size,
            width,
            weight.shape[0],
            device_flags.memory(),
            _INDEX,
        ),
    )
    return out


def add_rows(x: Any, indices: Any, *, rows: int, padding: int = -1) -> Any:
    """The device function of add_rows: by atomic additions, or where determinism is asked for in order."""
    char = device_code.char_of(x)
    if char not in device_code.FLOATS or not x.size or not rows:
        return NotImplemented
    module, behind = cuda.cupy(), x.shape[indices.ndim :]
    width, n = math.prod(behind), indices.size
    x, indices = module.ascontiguousarray(x), _indices(indices)
    if precision.are_deterministic_algorithms_enabled():
        out = module.empty((rows, *behind), x.dtype)
        _SOURCE.kernel("add_rows_in_order", char)(
            (min(rows, device_code.MOST_BLOCKS), -(-width // 128)),
            (128,),
            (out, x, indices, n, width, rows, padding),
        )
        return out
    sums = module.zeros((rows, *behind), np.float64 if char == "d" else np.float32)
    _SOURCE.kernel("add_rows", char)(
        (device_code.blocks(x.size),), (device_code.THREADS,), (sums, x, indices, n, width, rows, padding)
    )
    return sums if sums.dtype == x.dtype else sums.astype(x.dtype)
