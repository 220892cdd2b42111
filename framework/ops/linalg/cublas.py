"""Products of matrices by cuBLAS, called through CuPy's bindings as the operands lie.

Transposed matrices and batches, steps between rows, and operands that a batch shares are not copied;
float16 and bfloat16 are summed up in float32 and rounded once; TF32 is used where
``set_float32_matmul_precision`` permits it. (CuPy's own ``matmul`` copies transposed batches, takes those of
float16 to float32 and those of bfloat16 to a kernel for integers, and never uses TF32 in them.)
"""

import math
from typing import Any

import numpy as np

from ...backends import cuda, device_code, precision
from ..language.cuda import folded, strides_in

_TYPES = {"f": 0, "d": 1, "e": 2, "E": 14}  # cudaDataType
_IN_FLOAT32, _IN_FLOAT64, _IN_TF32, _DEFAULT = 68, 70, 77, -1  # cublasComputeType_t, and the choice of a way
_ONES: dict[str, Any] = {"f": np.ones(1, np.float32), "d": np.ones(1, np.float64)}
_ZEROS: dict[str, Any] = {"f": np.zeros(1, np.float32), "d": np.zeros(1, np.float64)}
_MOST = 2**31 - 1  # sizes are 32 bits


def product(x: Any, y: Any) -> Any:
    """``x @ y`` of two arrays of a device, or NotImplemented for what is left to CuPy."""
    char = device_code.char_of(x, y)
    if char not in _TYPES or not (x.size and y.size and x.ndim and y.ndim):
        return NotImplemented
    a, b = x[None] if x.ndim == 1 else x, y[:, None] if y.ndim == 1 else y
    if a.shape[-1] != b.shape[-2]:
        return NotImplemented
    try:
        lead = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    except ValueError:
        return NotImplemented
    out = cuda.cupy().empty((*lead, a.shape[-2], b.shape[-1]), x.dtype)
    if not _multiply(char, out, a, b, lead):
        return NotImplemented
    if x.ndim == 1 or y.ndim == 1:
        out = out.reshape(lead + x.shape[:-1][-1:] + (y.shape[-1:] if y.ndim > 1 else ()))
    return out


def _lying(rows: int, columns: int, row: int, column: int) -> tuple[int, int] | None:
    """(whether the columns lie together, the step between them or between rows); None where neither does."""
    if (column == 1 or columns == 1) and (row >= columns or rows == 1):
        return 0, max(row, columns)
    if (row == 1 or rows == 1) and (column >= rows or columns == 1):
        return 1, max(column, rows)
    return None


def _in_elements(a: Any, lead: tuple[int, ...]) -> list[int]:
    """The strides, in elements, of a batch of matrices broadcast to ``lead``."""
    return strides_in((*lead, *a.shape[-2:]), a.shape, a.strides, a.itemsize)


def _multiply(char: str, out: Any, a: Any, b: Any, lead: tuple[int, ...]) -> bool:
    """One call for all matrices, after copies of operands whose elements no step reaches."""
    (m, k), n, module = a.shape[-2:], b.shape[-1], cuda.cupy()
    for attempt in range(3):
        a_steps, b_steps, out_steps = (_in_elements(x, lead) for x in (a, b, out))
        sizes, steps = folded(list(lead), [s[:-2] for s in (a_steps, b_steps, out_steps)])
        rows, together = m, b.ndim == 2 and len(lead) > 0
        if together:  # one matrix beside a batch: all rows of the batch are those of one matrix
            _, found = folded([*lead, m], [a_steps[:-1], out_steps[:-1]])
            together = len(found[0]) < 2
            if together:
                rows, sizes, steps = math.prod(lead) * m, [], [[], [], []]
                a_steps[-2] = found[0][0] if found[0] else a_steps[-2]
        a_lies, b_lies = _lying(rows, k, *a_steps[-2:]), _lying(k, n, *b_steps[-2:])
        if a_lies is not None and b_lies is not None and len(sizes) < 2:
            break
        if attempt == 0:
            a = a if a_lies and (b_lies is None or a.flags.c_contiguous) else module.ascontiguousarray(a)
            b = b if b_lies and (a_lies is None or b.flags.c_contiguous) else module.ascontiguousarray(b)
        else:
            a, b = (module.ascontiguousarray(module.broadcast_to(x, (*lead, *x.shape[-2:]))) for x in (a, b))
    if a_lies is None or b_lies is None or max(rows, n, k, a_lies[1], b_lies[1], *sizes) > _MOST:
        return False
    kind, wide = _TYPES[char], "d" if char == "d" else "f"
    tf32 = char == "f" and precision.get_float32_matmul_precision() != "highest"
    computed = _IN_FLOAT64 if char == "d" else _IN_TF32 if tf32 else _IN_FLOAT32
    one, zero = _ONES[wide].ctypes.data, _ZEROS[wide].ctypes.data
    handle, cublas = module.cuda.device.get_cublas_handle(), module.cuda.cublas
    # cuBLAS takes columns that lie together for the plain case: there the operands change places
    if not sizes:
        cublas.gemmEx(handle, b_lies[0], a_lies[0], n, rows, k, one, b.data.ptr, kind, b_lies[1],
                      a.data.ptr, kind, a_lies[1], zero, out.data.ptr, kind, n, computed, _DEFAULT)
    else:
        cublas.gemmStridedBatchedEx(
            handle, b_lies[0], a_lies[0], n, rows, k, one, b.data.ptr, kind, b_lies[1], steps[1][0],
            a.data.ptr, kind, a_lies[1], steps[0][0], zero, out.data.ptr, kind, n, steps[2][0],
            sizes[0], computed, _DEFAULT)
    return True
