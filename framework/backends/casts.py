"""Floating arrays of GPUs in another floating dtype, and copies of them, by kernels of ours (``casts.cu``).

CuPy does these, too, and takes four times as long to start them.
"""

from pathlib import Path
from typing import Any

from . import device_code, device_launcher

_SOURCE = device_code.source(Path(__file__).with_name("casts.cu"))


def converted(x: Any, dtype: Any) -> Any:
    """``x.astype(dtype)`` of an array in rows, always a copy; NotImplemented where that is CuPy's."""
    char, to = device_code.letter(x.dtype), device_code.letter(dtype)
    if not device_code.enabled or char not in device_code.FLOATS or to not in device_code.FLOATS \
            or char == "d" and to in "eE" or not x.size or not x.flags.c_contiguous:
        return NotImplemented
    out = device_launcher.empty(x.shape, dtype)
    each = 16 // max(x.itemsize, out.itemsize)
    _SOURCE.kernel(f"cast_to_{to}", char)(
        (device_code.blocks(x.size, device_code.THREADS * each),), (device_code.THREADS,), (out, x, x.size))
    return out
