"""Sums of sliding windows (``windows.cu``), triangles of matrices (``triangles.cu``) and arrays one after
another (``join.cu``) on GPUs."""

import math
from itertools import accumulate
from pathlib import Path
from typing import Any

import numpy as np

from ...backends import cuda, device_code, device_launcher
from ...memory_formats import format_of

_SOURCE = device_code.source(Path(__file__).with_name("windows.cu"))
_JOIN = device_code.source(Path(__file__).with_name("join.cu"), dtypes="BHIL")
_BY_SIZE, _MOST = {1: "B", 2: "H", 4: "I", 8: "L"}, 8
_PARTS = np.dtype([*[(name, "i8") for name in ("count", "row", "n")], ("begin", "i8", (_MOST + 1,))])
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


def join(*xs: Any, dim: int) -> Any:
    """The device function of cat: arrays that lie in rows, by one launch, 16 bytes at a time where all of
    them let it."""
    first, char = xs[0], _BY_SIZE.get(xs[0].itemsize, "")
    others = *first.shape[:dim], *first.shape[dim + 1 :]
    parts = [x for x in xs if x.size]
    if not device_code.enabled or not char or not 0 < len(parts) <= _MOST \
            or not all(x.dtype == first.dtype and x.flags.c_contiguous for x in parts) \
            or any((*x.shape[:dim], *x.shape[dim + 1 :]) != others for x in xs) \
            or all(format_of(x).ndim == first.ndim for x in xs):  # channels last, as the result is to be
        return NotImplemented
    shape = (*first.shape[:dim], sum([x.shape[dim] for x in xs]), *first.shape[dim + 1 :])
    inner = math.prod(shape[dim + 1 :])
    out = device_launcher.empty(shape, first.dtype)
    widths, each = [x.shape[dim] * inner for x in parts], 16 // first.itemsize
    packs = not any(width % each for width in widths) and not any(x.data.ptr % 16 for x in parts)
    if packs:
        widths = [width // each for width in widths]
    begin = [0, *accumulate(widths)]
    n = math.prod(shape[:dim]) * begin[-1]
    plan = np.array([(len(parts), begin[-1], n, begin + [0] * (_MOST - len(parts)))], _PARTS)
    _JOIN.kernel("join_packs" if packs else "join", char)(
        (device_code.blocks(n),), (device_code.THREADS,),
        (out, *parts, *[None] * (_MOST - len(parts)), plan))
    return out
