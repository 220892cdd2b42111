"""Exponentials of matrices on GPUs (``exp.cu``): each block chooses how often it squares; nobody waits."""

import math
from pathlib import Path
from typing import Any

from ...backends import cuda, device_code

_SOURCE = device_code.source(Path(__file__).with_name("exp.cu"), dtypes="fd")
_MOST = 256  # rows of a matrix that one block takes


def matrix_exp(A: Any, *, degree: int) -> Any:
    """The exponentials of (*, n, n), or NotImplemented; degree: of the polynomial."""
    char, n = device_code.char_of(A), A.shape[-1]
    if char not in ("f", "d") or not A.size or n > _MOST:
        return NotImplemented
    module, count = cuda.cupy(), math.prod(A.shape[:-2])
    out, room = module.empty(A.shape, A.dtype), module.empty((count, 2, n, n), A.dtype)
    _SOURCE.kernel("matrix_exp", char)(
        (count,), (32 if n <= 8 else 256,), (out, room, module.ascontiguousarray(A), n, degree))
    return out
