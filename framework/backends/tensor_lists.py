"""Lists of tensors on a GPU in one launch, however many: by a table of their addresses on the device.

The table is sent again only when an address has changed; memory that comes from a pool mostly is the same
at each step of a training.
"""

import math
from pathlib import Path
from typing import Any

import numpy as np

from ..memory_formats import dense_axes
from . import cuda, device_code, device_launcher

HEADER = "tensor_lists.cuh"  # what a source that reads tables begins with
_SOURCE = device_code.source(Path(__file__).with_name("tensor_lists.cu"), HEADER)
_CHUNK = 4096  # elements that a block takes, as in ``tensor_lists.cuh``
# the last ones: rows as bytes, the same on the device, blocks
_tables: dict[tuple, tuple[bytes, Any, int]] = {}


def table(rows: list[list[Any]], purpose: str, further: list[list[int]] | None = None) -> tuple[Any, int]:
    """Addresses, sizes and first blocks of rows of tensors, on the device, and the number of blocks.

    further: what stands behind the addresses of each row.
    """
    stream = cuda.cupy().cuda.get_current_stream().ptr  # another one would have to wait for the copy
    key = (purpose, cuda.cupy(), int(rows[0][0].device.id), rows[0][0].data.ptr, stream)
    lines, block = [], 0
    for i, tensors in enumerate(rows):
        size, more = tensors[0].size, further[i] if further is not None else ()
        lines.append([*[a.data.ptr for a in tensors], *more, size, block])
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
    groups = _groups([[a] for a in arrays])
    return next(iter(groups)) if groups is not None and len(groups) == 1 else ""


def _groups(rows: list[list[Any]]) -> dict[str, list[list[Any]]] | None:
    """Rows of floating arrays by the letter of their dtype, without the empty ones; None where kernels do not
    take them together: other dtypes, several devices, odd layouts, memory that rows share.

    The first of a row is changed; the others have its dtype and lie as it does.
    """
    if not device_code.enabled or not all(device_code.is_device_array(a) for row in rows for a in row) \
            or len({a.device.id for row in rows for a in row}) != 1:
        return None
    groups: dict[str, list[list[Any]]] = {}
    for row in rows:
        first, char = row[0], device_code.char_of(*row)
        if char not in device_code.FLOATS or any(a.shape != first.shape for a in row):
            return None
        if first.size:
            if any(a.strides != first.strides for a in row) or dense_axes(first) is None:
                return None
            groups.setdefault(char, []).append(row)
    changed = [row[0].data.ptr for group in groups.values() for row in group]
    return groups if groups and len(set(changed)) == len(changed) else None


def _by_size(rows: list[list[Any]]) -> dict[str, list[list[Any]]] | None:
    """Rows of (array, source) by the letter of a floating dtype whose elements are of their size; or None."""
    arrays = [a for row in rows for a in row]
    if not device_code.enabled or not all(map(device_code.is_device_array, arrays)) \
            or len({a.device.id for a in arrays}) != 1:
        return None
    groups: dict[str, list[list[Any]]] = {}
    for a, b in rows:
        char = _OF_SIZE.get(a.itemsize, "")
        if not char or a.dtype != b.dtype or a.shape != b.shape:
            return None
        if a.size:
            if a.strides != b.strides or dense_axes(a) is None:
                return None
            groups.setdefault(char, []).append([a, b])
    return groups


_OF_SIZE = {2: "e", 4: "f", 8: "d"}


def _launch(name: str, groups: dict[str, list[list[Any]]], *further: Any) -> None:
    """One launch for each dtype."""
    for char, rows in groups.items():
        made, blocks = table(rows, _PURPOSES.get(name, name))
        _SOURCE.kernel(name, char)(
            (blocks,), (device_code.THREADS,), (made, len(rows), len(rows[0]) + 2, *further)
        )


# the same table does for both
_PURPOSES = {"norm_of_all": "gradients", "scale_all": "gradients", "clip_all": "gradients"}


def norm_of_all(arrays: list[Any], exponent: float, tickets: Any) -> Any:
    """The norm of all elements, on the device; tickets: makes counters. Or NotImplemented."""
    groups = _groups([[a] for a in arrays])
    if groups is None or not exponent > 0:
        return NotImplemented
    empty, first = device_launcher.empty, 0
    kind = next(iter(groups)) if len(groups) == 1 else "d" if "d" in groups else "f"
    with arrays[0].device:
        tables = {c: table(rows, "gradients") for c, rows in groups.items()}
        blocks = sum(n for _, n in tables.values())
        total, parts = empty((), _dtype(kind, arrays)), empty(blocks, np.float64)
        for char, rows in groups.items():
            made, count = tables[char]
            given = total, made, len(rows), 3, parts, tickets(1), first, blocks, float(exponent), ord(kind)
            _SOURCE.kernel("norm_of_all", char)((count,), (device_code.THREADS,), given)
            first += count
    return total


def _dtype(kind: str, arrays: list[Any]) -> Any:
    return next((a.dtype for a in arrays if device_code.letter(a.dtype) == kind), np.float32)


def scale_all(arrays: list[Any], total: Any, most: float) -> bool:
    """Multiply all by what brings a norm of ``total`` down to ``most``; False, nothing done, for others."""
    groups = _groups([[a] for a in arrays])
    if groups is None or not device_code.is_device_array(total) or total.device != arrays[0].device \
            or total.size != 1 or device_code.letter(total.dtype) not in device_code.FLOATS:
        return False
    with arrays[0].device:
        _launch("scale_all", groups, total, ord(device_code.letter(total.dtype)), float(most))
    return True


def clip_all(arrays: list[Any], low: float, high: float) -> bool:
    """Bring all elements into [low, high]; False, nothing done, for others."""
    groups = _groups([[a] for a in arrays])
    if groups is None:
        return False
    with arrays[0].device:
        _launch("clip_all", groups, float(low), float(high))
    return True


def copy_all(arrays: list[Any], sources: list[Any]) -> bool:
    """Copy each source to its array; False, nothing done, for others than arrays of one device that lie as
    their sources do.
    """
    groups = _by_size([[a, b] for a, b in zip(arrays, sources)]) if arrays else None
    if groups is None:
        return False
    with arrays[0].device:
        _launch("copy_all", groups)
    return True


def lerp_all(arrays: list[Any], ends: list[Any], weight: float) -> bool:
    """``a + weight * (end - a)`` in the place of each array; False, nothing done, for others."""
    groups = _groups([[a, b] for a, b in zip(arrays, ends)])
    if groups is None:
        return False
    with arrays[0].device:
        _launch("lerp_all", groups, float(weight))
    return True
