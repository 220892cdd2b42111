"""Systems of triangular matrices on GPUs (``triangular.cu``): some rows at a time, which a product takes off
the others. A 0 on a diagonal is told when the host waits.
"""

import math
from pathlib import Path
from typing import Any

from ...backends import cuda, device_code, device_flags
from ...errors import LinAlgError
from ..shape.broadcast import broadcast_shape
from . import cublas

_SOURCE = device_code.source(Path(__file__).with_name("triangular.cu"), dtypes="fd")
_ROWS = 64  # at a time
SINGULAR = "solve_triangular: there is a 0 on the diagonal of the matrix"


def solve_triangular(A: Any, B: Any, *, upper: bool, unit: bool) -> Any:
    """The device function of solve_triangular."""
    char, module = device_code.char_of(A, B), cuda.cupy()
    batch = broadcast_shape((A.shape[:-2], B.shape[:-2]), "solve (batch dimensions)")
    (n, k), count = B.shape[-2:], math.prod(batch)
    if char not in ("f", "d") or not count * n * k:
        return NotImplemented
    every = module.broadcast_to(A, (*batch, n, n)).reshape(count, n, n)
    x = module.array(module.broadcast_to(B, (*batch, n, k)), copy=True, order="C").reshape(count, n, k)
    steps, flag = [s // A.itemsize for s in every.strides], device_flags.memory()
    where = device_flags.site(SINGULAR, LinAlgError)
    panels = [(start, min(start + _ROWS, n)) for start in range(0, n, _ROWS)]
    for start, stop in reversed(panels) if upper else panels:
        _SOURCE.kernel("solve_rows", char)(
            (device_code.blocks(count * k, 64),), (64,),
            (x, every, count, n, k, start, stop, *steps, int(upper), int(unit), flag, where))
        left = slice(0, start) if upper else slice(stop, n)
        if left.start < left.stop:
            x[:, left] -= cublas.product(every[:, left, start:stop], x[:, start:stop])
    return x.reshape(*batch, n, k)
