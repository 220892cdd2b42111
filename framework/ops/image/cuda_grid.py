"""grid_sample on GPUs (``grid.cu``): one kernel forward, one back."""

import math
from pathlib import Path
from typing import Any

import numpy as np

from ...backends import cuda, device_code, precision

_SOURCE = device_code.source(Path(__file__).with_name("grid.cu"), dtypes="fd")
_GRID = np.dtype([*[(n, "i8") for n in ("n", "c", "dims", "count", "mode", "padding", "align")],
                  ("size", "i8", (3,))])
_MODES = {"nearest": 0, "bilinear": 1, "bicubic": 2}
_PADDING = {"zeros": 0, "border": 1, "reflection": 2}


def _plan(x: Any, grid: Any, mode: str, padding: str, align: bool) -> Any:
    plan: Any = np.zeros(1, _GRID)
    plan["n"], plan["c"], plan["dims"] = x.shape[0], x.shape[1], x.ndim - 2
    plan["count"] = math.prod(grid.shape[1:-1])
    plan["mode"], plan["padding"], plan["align"] = _MODES[mode], _PADDING[padding], align
    plan["size"] = 1
    plan["size"][0, 5 - x.ndim :] = x.shape[2:]
    return plan


def _letter(*arrays: Any) -> str:
    char = device_code.char_of(*arrays)
    return char if char in _SOURCE.dtypes else ""


def grid_sample(x: Any, grid: Any, *, mode: str, padding: str, align: bool) -> Any:
    """The device function of grid_sample."""
    char, module = _letter(x, grid), cuda.cupy()
    if not char:
        return NotImplemented
    out = module.empty((*x.shape[:2], *grid.shape[1:-1]), x.dtype)
    if not out.size:
        return out
    _SOURCE.kernel("grid_sample", char)(
        (device_code.blocks(grid.size // grid.shape[-1]),), (device_code.THREADS,),
        (out, module.ascontiguousarray(x), module.ascontiguousarray(grid),
         _plan(x, grid, mode, padding, align)))
    return out


def grid_sample_grad(g: Any, x: Any, grid: Any, *, mode: str, padding: str, align: bool,
                     wanted: tuple) -> Any:
    """That of its backward: pixels by atomic additions, so not where determinism is asked for."""
    char, module = _letter(g, x, grid), cuda.cupy()
    if not char or wanted[0] and precision.are_deterministic_algorithms_enabled():
        return NotImplemented
    pixels = module.zeros(x.shape, x.dtype) if wanted[0] else None
    slopes = module.empty(grid.shape, x.dtype) if wanted[1] else None
    if g.size:
        given = [module.ascontiguousarray(a) for a in (g, x, grid)]
        _SOURCE.kernel("grid_sample_grad", char)(
            (device_code.blocks(grid.size // grid.shape[-1]),), (device_code.THREADS,),
            (pixels, slopes, *given, _plan(x, grid, mode, padding, align)))
    return tuple([module.empty(0, x.dtype) if part is None else part for part in (pixels, slopes)])
