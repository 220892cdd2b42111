"""Gradients of determinants on GPUs (``cofactors.cu``): nobody asks whether a matrix is singular."""

import math
from pathlib import Path
from typing import Any

import numpy as np

from ...backends import cuda, device_code

_SOURCE = device_code.source(Path(__file__).with_name("cofactors.cu"), dtypes="fd")
_MOST = 256  # rows of a matrix that one block takes


def cofactors(A: Any) -> Any:
    """The matrices of cofactors of (*, n, n), or NotImplemented."""
    char = device_code.char_of(A) if device_code.is_device_array(A) else ""
    n = A.shape[-1]
    if char not in ("f", "d") or not A.size or n > _MOST:
        return NotImplemented
    module, count = cuda.cupy(), math.prod(A.shape[:-2])
    out = module.empty(A.shape, A.dtype)
    room, orders = module.empty((count, n, n), np.float64), module.empty((count, 2, n), np.int64)
    _SOURCE.kernel("cofactors", char)(
        (count,), (32 if n <= 8 else 256,),
        (out, room, orders, module.ascontiguousarray(A), n))
    return out
