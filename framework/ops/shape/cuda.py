"""Sums of sliding windows (``windows.cu``) and triangles of matrices (``triangles.cu``) on GPUs."""

import math
from pathlib import Path
from typing import Any

from ...backends import cuda, device_code, device_launcher

_SOURCE = device_code.source(Path(__file__).with_name("windows.cu"))
_TRIANGLES = device_code.source(Path(__file__).with_name("triangles.cu"), dtypes="?bBhHiIlLfdeE")


def fold_windows(x: Any, *, shape: tuple[int, ...], dim: int, step: int) -> Any:
    """The device function of fold_windows."""
    char, module = device_code.char_of(x), cuda.cupy()
    if char not in device_code.FLOATS or not shape or not x.size or not math.prod(shape):
        return NotImplemented
    out = device_launcher.empty(shape, x.dtype)
    _SOURCE.kernel("fold_windows", char)(
        (device_code.blocks(out.size),), (device_code.THREADS,),
        (out, module.ascontiguousarray(x), math.prod(shape[:dim]), shape[dim], math.prod(shape[dim + 1 :]),
         x.shape[dim], x.shape[-1], step))
    return out


def triangle(x: Any, *, k: int, upper: bool, unit: bool = False, as_it_lies: bool = False) -> Any:
    """Triangles of (*, m, n) as ``tril`` and ``triu`` give them, with ``unit`` 1 on the diagonals.

    as_it_lies: of columns one after the other the result lies the same way, and nothing is copied.
    """
    char = device_code.char_of(x)
    if not char or not x.size:
        return NotImplemented
    if as_it_lies and not x.flags.c_contiguous and (other := x.swapaxes(-1, -2)).flags.c_contiguous:
        return triangle(other, k=-k, upper=not upper, unit=unit, as_it_lies=True).swapaxes(-1, -2)
    module = cuda.cupy()
    x, out = module.ascontiguousarray(x), device_launcher.empty(x.shape, x.dtype)
    _TRIANGLES.kernel("triangle", char)(
        (device_code.blocks(out.size),), (device_code.THREADS,),
        (out, x, *x.shape[-2:], out.size, k, int(upper), int(unit)))
    return out
