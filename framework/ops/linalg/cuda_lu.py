"""LU factorisation on GPUs (``lu.cu``): small matrices in one launch, large ones by columns, some at a time,
which cuBLAS takes off the columns behind.
"""

import math
from pathlib import Path
from typing import Any

import numpy as np

from ...backends import cuda, device_code
from . import cublas

_SOURCE = device_code.source(Path(__file__).with_name("lu.cu"), dtypes="fd")
_SMALL, _WIDTH = 128, 64  # matrices that a block makes alone; columns at a time of others


def lu_factor(A: Any, *, pivot: bool) -> Any:
    """The device function of lu_factor."""
    char, module = device_code.char_of(A), cuda.cupy()
    if char not in ("f", "d") or not A.size:
        return NotImplemented
    *batch, m, n = A.shape
    count, k = math.prod(batch), min(m, n)
    packed = module.array(A, copy=True, order="C").reshape(count, m, n)
    pivots, order = module.empty((count, k), np.int32), module.empty((count, m), np.int64)
    width = k if n <= _SMALL else _WIDTH
    threads = 256 if m * width > 1024 else 32
    for start in range(0, k, width):
        stop = min(start + width, k)
        _SOURCE.kernel("lu_columns", char)(
            (count,), (threads,), (packed, pivots, order, m, n, start, stop, int(pivot)))
        if stop < n:
            _SOURCE.kernel("lu_rows", char)(
                (device_code.blocks(count * (n - stop)),), (device_code.THREADS,),
                (packed, count, m, n, start, stop))
        if stop < min(m, n):
            left, above = packed[:, stop:, start:stop], packed[:, start:stop, stop:]
            packed[:, stop:, stop:] -= cublas.product(left, above)
    return packed.reshape(A.shape), pivots.reshape(*batch, k), order.reshape(*batch, m)
