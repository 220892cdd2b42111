"""Reductions and softmax on GPUs, by kernels of our own (``kernels.cu``); the rest is NotImplemented."""

import math
from pathlib import Path
from typing import Any

from ...backends import cuda, device_code
from ..language.cuda_fold import fold_of_elements
from ..shape.broadcast import sum_to
from .along import kept_shape

_SOURCE = device_code.source(Path(__file__).with_name("kernels.cu"))


def folded(name: str) -> Any:
    """The device function of a record that folds ``dims``: "sum", "mean", "amax" or "amin"."""

    def fold(x: Any, *, dims: tuple[int, ...], keepdim: bool) -> Any:
        if not dims:
            return NotImplemented
        shape = (
            kept_shape(x.shape, dims)
            if keepdim
            else tuple([s for d, s in enumerate(x.shape) if d not in dims])
        )
        return fold_of_elements(name, dims, shape, x)

    return fold


def summed_to(x: Any, *, size: tuple[int, ...]) -> Any:
    """The device function of ``sum_to_size``."""
    lead = x.ndim - len(size)
    dims = (*range(lead), *[i + lead for i, s in enumerate(size) if s == 1 != x.shape[i + lead]])
    return fold_of_elements("sum", dims, size, x) if dims else NotImplemented


sum_to.device = summed_to  # a record of a lower family


def _along(name: str, logarithm: bool, *arrays: Any, dim: int) -> Any:
    x = arrays[0]
    char = device_code.char_of(*arrays)
    if char not in device_code.FLOATS or not x.size:
        return NotImplemented
    module = cuda.cupy()
    arrays = tuple([module.ascontiguousarray(a) for a in arrays])
    out = module.empty(x.shape, x.dtype)
    n, inner = x.shape[dim], math.prod(x.shape[dim + 1 :])
    rows = x.size // n
    threads = min(1024, max(32, 1 << (n // 4).bit_length())) if inner == 1 else device_code.THREADS
    grid = rows if inner == 1 else device_code.blocks(rows)
    _SOURCE.kernel(name, char)(
        (min(grid, 1 << 30),), (threads,), (out, *arrays, n, inner, rows, int(logarithm))
    )
    return out


def softmax(x: Any, *, dim: int) -> Any:
    """The device function of softmax."""
    return _along("softmax", False, x, dim=dim)


def log_softmax(x: Any, *, dim: int) -> Any:
    """That of its logarithm."""
    return _along("softmax", True, x, dim=dim)


def softmax_grad(g: Any, y: Any, *, dim: int) -> Any:
    """That of softmax's backward."""
    return _along("softmax_grad", False, g, y, dim=dim)


def log_softmax_grad(g: Any, y: Any, *, dim: int) -> Any:
    """That of the logarithm's."""
    return _along("softmax_grad", True, g, y, dim=dim)
