"""Factors of symmetric matrices on GPUs, and their systems (``ldl.cu``): a block for each, which chooses
pivots itself. A block of zeros in D is told when the host waits.
"""

import math
from pathlib import Path
from typing import Any

import numpy as np

from ...backends import cuda, device_code, device_flags
from ...errors import LinAlgError
from ..shape.broadcast import broadcast_shape

_SOURCE = device_code.source(Path(__file__).with_name("ldl.cu"), dtypes="fd")
SINGULAR = "ldl_solve: D has a block of zeros, so the matrix is singular"


def ldl_factor(A: Any, *, hermitian: bool) -> Any:
    """The device function of ldl_factor; of real numbers Hermitian and symmetric are one."""
    char, module = device_code.char_of(A), cuda.cupy()
    if char not in ("f", "d") or not A.size:
        return NotImplemented
    *batch, n, _ = A.shape
    count = math.prod(batch)
    packed, room = module.empty(A.shape, A.dtype), module.empty((count, 2, n), A.dtype)
    pivots, info = module.empty((*batch, n), np.int32), module.empty(tuple(batch), np.int32)
    _SOURCE.kernel("ldl_factor", char)(
        (count,), (32 if n <= 16 else 256,), (packed, pivots, info, module.ascontiguousarray(A), room, n))
    return packed, pivots, info


def ldl_solve(LD: Any, pivots: Any, B: Any, *, hermitian: bool) -> Any:
    """That of ldl_solve."""
    char, module = device_code.char_of(LD, B), cuda.cupy()
    batch = broadcast_shape((LD.shape[:-2], B.shape[:-2]), "ldl_solve")
    (n, k), count = B.shape[-2:], math.prod(batch)
    if char not in ("f", "d") or not count * n * k:
        return NotImplemented
    packed = module.ascontiguousarray(module.broadcast_to(LD, (*batch, n, n)))
    places = module.ascontiguousarray(module.broadcast_to(pivots, (*batch, n)).astype(np.int32, copy=False))
    x = module.array(module.broadcast_to(B, (*batch, n, k)), copy=True, order="C")
    _SOURCE.kernel("ldl_solve", char)(
        (count,), (32 if k <= 32 else 256,),
        (x, packed, places, n, k, device_flags.memory(), device_flags.site(SINGULAR, LinAlgError)))
    return x
