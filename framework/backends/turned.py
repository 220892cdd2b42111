"""Copies in rows on GPUs of what lies there in another order, by tiles (``turned.cu``).

CuPy copies element by element in the order of the result, which reads a transposed matrix or channels that
lie side by side with a step for each element.
"""

import math
from pathlib import Path
from typing import Any

from ..memory_formats import dense_axes
from . import cuda, device_code, device_launcher

_SOURCE = device_code.source(Path(__file__).with_name("turned.cu"), dtypes="BHIL")
_LEAST = 8  # fewer rows or columns fill too little of a tile
_BY_SIZE = {1: "B", 2: "H", 4: "I", 8: "L"}


def _matrices(x: Any) -> tuple[int, int] | None:
    """(rows, columns) of the matrices that lie in memory where ``x`` shows them transposed; None elsewhere,
    and of narrow ones.

    In memory the last dimensions of x, all behind some place, come before those in front of it.
    """
    axes = dense_axes(x)
    if axes is None:
        return None
    kept = [d for d in range(x.ndim) if x.shape[d] != 1]
    axes = tuple([d for d in axes if x.shape[d] != 1])
    while kept and axes[0] == kept[0]:  # the matrices' own dimensions
        kept, axes = kept[1:], axes[1:]
    split = kept.index(axes[0]) if kept else 0
    if not split or list(axes) != kept[split:] + kept[:split]:
        return None
    rows, columns = (math.prod([x.shape[d] for d in part]) for part in (kept[split:], kept[:split]))
    return (rows, columns) if min(rows, columns) >= _LEAST else None


def in_rows(x: Any) -> Any:
    """A copy of ``x`` in rows; NotImplemented where it is no transposed matrix, nor many of them."""
    char = _BY_SIZE.get(x.itemsize, "")
    found = _matrices(x) if char and x.size and not x.flags.c_contiguous and device_code.enabled else None
    if found is None:
        return NotImplemented
    rows, columns = found
    out = device_launcher.empty(x.shape, x.dtype)
    tiles = x.size // (rows * columns) * -(-rows // 32) * -(-columns // 32)
    _SOURCE.kernel("turn", char)((min(tiles, device_code.MOST_BLOCKS),), (device_code.THREADS,),
                                 (out, x, rows, columns, tiles))
    return out


def rows(x: Any) -> Any:
    """``x`` in rows: itself where it lies so, else a copy."""
    found = x if x.flags.c_contiguous else in_rows(x)
    return cuda.cupy().ascontiguousarray(x) if found is NotImplemented else found
