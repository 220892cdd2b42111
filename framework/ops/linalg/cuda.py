"""Products of matrices on GPUs (``cublas.py``), and linear layers."""

import math
from typing import Any

from ...backends import device_code
from ..language.cuda import DeviceKernel
from . import cublas

_plus = DeviceKernel("x + b", ("x", "b"), lambda x, b: x + b)


def matmul(x: Any, y: Any) -> Any:
    """The device function of matmul."""
    return cublas.product(x, y)


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
    out = cublas.product(rows, w.T)
    if b is not None:
        _plus(out, b, out=out)
    return out.reshape(*x.shape[:-1], w.shape[0])
