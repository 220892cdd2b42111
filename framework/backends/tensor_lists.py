"""Lists of tensors on a GPU in one launch, however many: by a table of their addresses on the device.

The table is sent again only when an address has changed; memory that comes from a pool mostly is the same
at each step of a training.
"""

import math
from pathlib import Path
from typing import Any

import numpy as np

from ..memory_formats import dense_axes
from . import cuda, device_code

HEADER = "tensor_lists.cuh"  # what a source that reads tables begins with
_SOURCE = device_code.source(Path(__file__).with_name("tensor_lists.cu"), HEADER)
_CHUNK = 4096  # elements that a block takes, as in ``tensor_lists.cuh``
# the last ones: rows as bytes, the same on the device, blocks
_tables: dict[tuple, tuple[bytes, Any, int]] = {}


def table(rows: list[list[Any]], purpose: str) -> tuple[Any, int]:
    """Addresses, sizes and first blocks of rows of tensors, on the device, and the number of blocks."""
    stream = cuda.cupy().cuda.get_current_stream().ptr  # another one would have to wait for the copy
    key = (purpose, cuda.cupy(), int(rows[0][0].device.id), rows[0][0].data.ptr, stream)
    lines, block = [], 0
    for tensors in rows:
        size = tensors[0].size
        lines.append([*[a.data.ptr for a in tensors], size, block])
        block += math.ceil(size / _CHUNK)
    made = np.array(lines, np.int64)
    text = made.tobytes()
    found = _tables.get(key)
    if found is None or found[0] != text or cuda.capture_here() is not None:  # a graph has one of its own
        there, lasts = cuda.sent(made)
        if not lasts:
            return there, block
        if len(_tables) > 64:
            _tables.clear()
        found = _tables[key] = text, there, block
    return found[1], found[2]


def alike(arrays: list[Any]) -> str:
    """The letter of the dtype of arrays that kernels take together; "" of others."""
    if not all(map(device_code.is_device_array, arrays)) or len({a.device.id for a in arrays}) != 1:
        return ""
    char = device_code.char_of(*arrays)
    plain = all(a.size and dense_axes(a) is not None for a in arrays)
    apart = len({a.data.ptr for a in arrays}) == len(arrays)
    return char if plain and apart and char in device_code.FLOATS else ""


def norm_of_all(arrays: list[Any], tickets: Any) -> Any:
    """The root of the sum of all squares, on the device; tickets: makes counters. Or NotImplemented."""
    char = alike(arrays)
    if not char:
        return NotImplemented
    with arrays[0].device:
        rows, blocks = table([[a] for a in arrays], "norm")
        empty = cuda.cupy().empty
        total, parts = empty((), arrays[0].dtype), empty(blocks, np.float64 if char == "d" else np.float32)
        _SOURCE.kernel("norm_of_all", char)(
            (blocks,), (device_code.THREADS,), (total, rows, len(arrays), 3, parts, tickets(1))
        )
    return total


def scale_all(arrays: list[Any], total: Any, most: float) -> bool:
    """Multiply all by what brings a norm of ``total`` down to ``most``; False, nothing done, for others."""
    char = alike(arrays)
    if not char or not device_code.is_device_array(total) or total.dtype != arrays[0].dtype:
        return False
    with arrays[0].device:
        rows, blocks = table([[a] for a in arrays], "norm")
        _SOURCE.kernel("scale_all", char)(
            (blocks,), (device_code.THREADS,), (rows, len(arrays), 3, total, float(most))
        )
    return True
