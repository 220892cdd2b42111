"""Passes over floating arrays of GPUs: another dtype, a copy, one number everywhere, sums (``passes.cu``).

CuPy makes them, too, and takes four times as long to start them.
"""

from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

from . import cuda, device_code, device_launcher

_HERE: AbstractContextManager = nullcontext()
_SOURCE = device_code.source(Path(__file__).with_name("passes.cu"))


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


def filled(shape: tuple[int, ...], dtype: Any, value: float) -> Any:
    """An array of the current device with one number everywhere; NotImplemented of other dtypes than floating
    ones."""
    char = device_code.letter(dtype) if device_code.enabled else ""
    if char not in device_code.FLOATS:
        return NotImplemented
    out = device_launcher.empty(shape, dtype)
    if out.size:
        _SOURCE.kernel("fill", char)(
            (device_code.blocks(out.size, device_code.THREADS * (16 // out.itemsize)),),
            (device_code.THREADS,), (out, float(value), out.size))
    return out


def added(x: Any, y: Any, out: Any = None) -> Any:
    """``x + y`` of arrays of one shape and dtype that lie in rows, maybe over one of them; NotImplemented of
    others."""
    char = device_code.char_of(x, y)
    if char not in device_code.FLOATS or x.shape != y.shape or not x.size \
            or not (x.flags.c_contiguous and y.flags.c_contiguous):
        return NotImplemented
    with cuda.on(cuda.device_of(x)) if not cuda.is_alone() else _HERE:
        out = device_launcher.empty(x.shape, x.dtype) if out is None else out
        _SOURCE.kernel("add_two", char)(
            (device_code.blocks(x.size, device_code.THREADS * (16 // x.itemsize)),), (device_code.THREADS,),
            (out, x, y, x.size))
    return out
