"""Products of matrices on GPUs: cuBLAS through CuPy, which takes transposed matrices as they lie."""

import math
from typing import Any

from ...backends import cuda, device_code
from ..language.cuda import DeviceKernel

_plus = DeviceKernel("x + b", ("x", "b"), lambda x, b: x + b)


def matmul(x: Any, y: Any) -> Any:
    """The device function of matmul: two matrices of 16 bits, summed up in float32 and rounded once."""
    if x.ndim == 2 == y.ndim and device_code.char_of(x, y) in ("e", "E") and x.size and y.size:
        return cuda.cupy().matmul(x, y)
    return NotImplemented


def linear(x: Any, w: Any, b: Any) -> Any:
    """That of linear: one product of matrices, and the bias added to it in place."""
    char = device_code.char_of(x, w) if b is None else device_code.char_of(x, w, b)
    if (
        char not in device_code.FLOATS
        or w.ndim != 2
        or not x.ndim
        or x.shape[-1] != w.shape[1]
        or not x.size
        or not w.size
        or b is not None
        and b.ndim
        and b.shape[0] not in (1, w.shape[0])
    ):
        return NotImplemented
    rows = x.reshape(math.prod(x.shape[:-1]), x.shape[-1])
    out = cuda.cupy().matmul(rows, w.T)
    if b is not None:
        _plus(out, b, out=out)
    return out.reshape(*x.shape[:-1], w.shape[0])
