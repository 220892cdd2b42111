"""What runs along dimensions, on GPUs: folds, softmax (``kernels.cu``), running sums (``scan.cu``), rows in
order (``order.cu``). The rest is NotImplemented.
"""

import math
from pathlib import Path
from typing import Any

import numpy as np

from ...backends import cuda, device_code
from ..language.cuda_fold import fold_of_elements
from ..shape.broadcast import sum_to
from .along import kept_shape

_SOURCE = device_code.source(Path(__file__).with_name("kernels.cu"))
_SCAN = device_code.source(Path(__file__).with_name("scan.cu"), dtypes="fdeEil")
_ORDER = device_code.source(Path(__file__).with_name("order.cu"), dtypes="fdeEbil")
_SCAN_THREADS, _MOST_ORDERED = 128, 2048  # as the sources have them


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


# -- running sums, order -----------------------------------------------------------------------------


def running(name: str, places: bool = False) -> Any:
    """The device function of a record that runs along ``dim``; places: it gives those of extremes, too."""

    def scan(x: Any, *, dim: int, reverse: bool = False) -> Any:
        char = device_code.char_of(x)
        if char in ("", "?") or not x.ndim or not x.size:
            return NotImplemented
        module = cuda.cupy()
        x, n, inner = module.ascontiguousarray(x), x.shape[dim], math.prod(x.shape[dim + 1 :])
        out, rows = module.empty(x.shape, x.dtype), x.size // n
        found = module.empty(x.shape, np.int64) if places else None
        threads = _SCAN_THREADS if inner == 1 else device_code.THREADS
        _SCAN.kernel(name, char)(
            (min(rows, 1 << 30) if inner == 1 else device_code.blocks(rows),),
            (threads,),
            (out, found, x, n, inner, rows, int(reverse)),
        )
        return (out, found) if places else out

    return scan


def _in_order(x: Any, dim: int, first: int, take: int, descending: bool) -> Any:
    """(values, places) from ``first`` on of rows of few elements; NotImplemented for others."""
    char = device_code.char_of(x)
    if not char or not x.ndim or not x.size or not take or x.shape[dim] > _MOST_ORDERED:
        return NotImplemented
    module = cuda.cupy()
    x, n, inner = module.ascontiguousarray(x), x.shape[dim], math.prod(x.shape[dim + 1 :])
    shape, rows = (*x.shape[:dim], take, *x.shape[dim + 1 :]), x.size // n
    values, places = module.empty(shape, x.dtype), module.empty(shape, np.int64)
    _ORDER.kernel("order_rows", char)(
        (min(rows, 1 << 30),),
        (min(device_code.THREADS, max(32, 1 << (n - 1).bit_length() >> 1)),),
        (values, places, x, n, inner, rows, first, take, int(descending)),
    )
    return values, places


def sort(x: Any, *, dim: int, descending: bool) -> Any:
    """The device function of sort: short rows by a block each."""
    return _in_order(x, dim, 0, x.shape[dim] if x.ndim else 0, descending)


def topk(x: Any, *, k: int, dim: int, largest: bool) -> Any:
    """That of topk."""
    return _in_order(x, dim, 0, k, largest)


def kthvalue(x: Any, *, dim: int, keepdim: bool, k: int, nan_wins: bool) -> Any:
    """That of kthvalue, and of the median of whole numbers: of others a nan would have to win."""
    if nan_wins and x.dtype.kind not in "iub":
        return NotImplemented
    found = _in_order(x, dim, k, 1, False)
    if found is NotImplemented or keepdim:
        return found
    shape = x.shape[:dim] + x.shape[dim + 1 :]
    return tuple([a.reshape(shape) for a in found])
