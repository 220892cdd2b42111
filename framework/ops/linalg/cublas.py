"""Products of matrices by cuBLASLt, and by cuBLAS where that has no plan, as the operands lie.

Transposed matrices and batches, steps between rows, and operands that a batch shares are not copied;
float16 and bfloat16 are summed up in float32 and rounded once; TF32 is used where
``set_float32_matmul_precision`` permits it. (CuPy's own ``matmul`` copies transposed batches, takes those of
float16 to float32 and those of bfloat16 to a kernel for integers, and never uses TF32 in them.)
"""

import math
from typing import Any, NamedTuple

import numpy as np

from ...backends import cuda, device_code, device_launcher, device_products, precision
from ...backends.device_products import Product
from ..language.cuda import DeviceKernel, folded, row_major_strides, strides_in

_TYPES = {"f": 0, "d": 1, "e": 2, "E": 14}  # cudaDataType
_IN_FLOAT32, _IN_FLOAT64, _IN_TF32, _DEFAULT = 68, 70, 77, -1  # cublasComputeType_t, and the choice of a way
_ONES: dict[str, Any] = {"f": np.ones(1, np.float32), "d": np.ones(1, np.float64)}
_ZEROS: dict[str, Any] = {"f": np.zeros(1, np.float32), "d": np.zeros(1, np.float64)}
_MOST = 2**31 - 1  # sizes are 32 bits
_MOST_KNOWN = 4096
_plus = DeviceKernel("x + b", ("x", "b"), lambda x, b, out: cuda.cupy().add(x, b, out=out))


class _Known(NamedTuple):
    """A product whose operands no copy is needed of: the shape of the result, and what libraries are told."""

    shape: tuple[int, ...]
    planned: Product


_known: dict[tuple, _Known] = {}  # by how the operands lie


def product(x: Any, y: Any, bias: Any = None) -> Any:
    """``x @ y`` of arrays of a device, plus ``bias`` if given; NotImplemented for what is left to CuPy."""
    dtype = x.dtype
    added = None if bias is None else (bias.shape, bias.strides, bias.dtype.char)
    key = (x.shape, x.strides, dtype.char, y.shape, y.strides, y.dtype.char, added,
           precision.get_float32_matmul_precision())
    known = _known.get(key)
    if known is None:
        return _first_product(x, y, bias, key)
    out = device_launcher.empty(known.shape, dtype)
    _write(known.planned, out, x, y, bias)
    return out


def _first_product(x: Any, y: Any, bias: Any, key: tuple) -> Any:
    """A product of operands that lie as none did before."""
    found = _placed(x, y)
    if found is None:
        return NotImplemented
    shape, how, a, b = found
    planned = _planned(device_code.char_of(x, y), how, bias)
    if a.data.ptr == x.data.ptr and b.data.ptr == y.data.ptr:  # no copies
        _remember(key, _Known(shape, planned))
    out = device_launcher.empty(shape, x.dtype)
    _write(planned, out, a, b, bias)
    return out


def _remember(key: tuple, known: _Known) -> None:
    if len(_known) >= _MOST_KNOWN:
        _known.clear()
    _known[key] = known


def _placed(x: Any, y: Any) -> tuple[tuple[int, ...], "_Arranged", Any, Any] | None:
    """The shape of a product, how libraries take it, and the operands, copied where they have to be; or
    None."""
    if device_code.char_of(x, y) not in _TYPES or not (x.size and y.size and x.ndim and y.ndim):
        return None
    a, b = x[None] if x.ndim == 1 else x, y[:, None] if y.ndim == 1 else y
    if a.shape[-1] != b.shape[-2]:
        return None
    try:
        lead = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    except ValueError:
        return None
    how, a, b = _reached(a, b, lead)
    if how is None:
        return None
    return lead + (x.shape[-2:-1] if x.ndim > 1 else ()) + (y.shape[-1:] if y.ndim > 1 else ()), how, a, b


def _write(planned: Product, out: Any, a: Any, b: Any, bias: Any) -> None:
    """Compute a product, and add a bias where cuBLASLt has not."""
    handle, biased = cuda.cupy().cuda.device.get_cublas_handle(), planned.epilogue == device_products.BIAS
    # libraries take columns that lie together for the plain case: there the operands change places
    if not device_products.multiply(handle, planned, b, a, out, bias if biased else None):
        _by_cublas(handle, planned, b, a, out)
        if bias is not None:
            _plus(out, bias, out=out)
    elif bias is not None and not biased:
        _plus(out, bias, out=out)


def bytes_of_bits(columns: int) -> int:
    """How many bytes a row of bits has, as cuBLASLt lays them."""
    return -(-columns // 128) * 16


def kept_of(active: int, rows: int, columns: int, dtype: Any) -> Any:
    """Memory for what the slope of an activation reads, of so many rows and columns: bits where relu let
    through, or what gelu was of, in rows as cuBLASLt lays them."""
    if active == device_products.RELU:
        return device_launcher.empty((rows, bytes_of_bits(columns)), np.uint8)
    return device_launcher.empty((rows, -(-columns // 8) * 8), dtype)[:, :columns]


def _step_of(kept: Any) -> int:
    """The step between rows of what is kept, in elements, which may be bits."""
    if kept is None:
        return 0
    return int(kept.strides[0]) * 8 if kept.dtype == np.uint8 else int(kept.strides[0]) // kept.itemsize


def followed(x: Any, y: Any, epilogue: int, vector: Any = None, kept: Any = None) -> Any:
    """``x @ y`` with an epilogue, where cuBLASLt has a plan for it; else NotImplemented, and nothing done.

    epilogue: of ``device_products``; vector, kept: what it reads or writes besides. The rows of ``x`` are
    those of one matrix.
    """
    step = _step_of(kept)
    key = (x.shape, x.strides, x.dtype.char, y.shape, y.strides, y.dtype.char, epilogue, step,
           precision.get_float32_matmul_precision())
    known, a, b = _known.get(key), x, y
    if known is None:
        found = _placed(x, y)
        if found is None or found[1].sizes:
            return NotImplemented
        shape, how, a, b = found
        planned = _planned(device_code.char_of(x, y), how, None)
        known = _Known(shape, planned._replace(epilogue=epilogue, aux_step=step))
        if a is x and b is y:
            _remember(key, known)
    out = device_launcher.empty(known.shape, x.dtype)
    handle = cuda.cupy().cuda.device.get_cublas_handle()
    return out if device_products.multiply(handle, known.planned, b, a, out, vector, kept) else NotImplemented


def _lying(rows: int, columns: int, row: int, column: int) -> tuple[int, int] | None:
    """(whether the columns lie together, the step between them or between rows); None where neither does."""
    if (column == 1 or columns == 1) and (row >= columns or rows == 1):
        return 0, max(row, columns)
    if (row == 1 or rows == 1) and (column >= rows or columns == 1):
        return 1, max(column, rows)
    return None


class _Arranged(NamedTuple):
    """A product as libraries take it: ``rows`` rows, or a batch of them; factors lie as ``_lying`` says."""

    rows: int
    n: int
    k: int
    a: Any
    b: Any
    sizes: list[int]  # of a batch, if it is one
    steps: list[list[int]]  # in it, of both factors and the result


def _arranged(lead: tuple, a_shape: tuple, a_strides: tuple, b_shape: tuple, b_strides: tuple,
              item: int) -> _Arranged:
    (m, k), n = a_shape[-2:], b_shape[-1]
    a_steps = strides_in((*lead, m, k), a_shape, a_strides, item)
    b_steps = strides_in((*lead, k, n), b_shape, b_strides, item)
    out_steps = [0 if s == 1 else step for s, step in zip((*lead, m, n), row_major_strides((*lead, m, n)))]
    sizes, steps = folded(list(lead), [s[:-2] for s in (a_steps, b_steps, out_steps)])
    rows = m
    if len(b_shape) == 2 and lead:  # one matrix beside a batch: all rows of the batch are those of one matrix
        _, found = folded([*lead, m], [a_steps[:-1], out_steps[:-1]])
        if len(found[0]) < 2:
            rows, sizes, steps = math.prod(lead) * m, [], [[], [], []]
            a_steps[-2] = found[0][0] if found[0] else a_steps[-2]
    return _Arranged(rows, n, k, _lying(rows, k, *a_steps[-2:]), _lying(k, n, *b_steps[-2:]), sizes, steps)


def _reached(a: Any, b: Any, lead: tuple[int, ...]) -> tuple[_Arranged | None, Any, Any]:
    """How libraries take a product, and its operands, copied where no step reaches their elements."""
    module = cuda.cupy()
    for attempt in range(3):
        how = _arranged(lead, a.shape, a.strides, b.shape, b.strides, a.itemsize)
        if how.a is not None and how.b is not None and len(how.sizes) < 2:
            break
        if attempt == 0:
            copied_a = how.a is None or how.b is not None and not a.flags.c_contiguous
            copied_b = how.b is None or how.a is not None and not b.flags.c_contiguous
            a = module.ascontiguousarray(a) if copied_a else a
            b = module.ascontiguousarray(b) if copied_b else b
        else:
            a, b = (module.ascontiguousarray(module.broadcast_to(x, (*lead, *x.shape[-2:]))) for x in (a, b))
    if how.a is None or how.b is None or len(how.sizes) > 1 \
            or max(how.rows, how.n, how.k, how.a[1], how.b[1], *how.sizes) > _MOST:
        return None, a, b
    return how, a, b


def _planned(char: str, how: _Arranged, bias: Any) -> Product:
    tf32 = char == "f" and precision.get_float32_matmul_precision() != "highest"
    computed = _IN_FLOAT64 if char == "d" else _IN_TF32 if tf32 else _IN_FLOAT32
    batch, steps = (how.sizes[0], [s[0] for s in how.steps]) if how.sizes else (1, (0, 0, 0))
    (turned_a, step_a), (turned_b, step_b) = how.a, how.b
    first = (how.k, how.n) if turned_b else (how.n, how.k)
    second = (how.rows, how.k) if turned_a else (how.k, how.rows)
    # cuBLASLt adds a number for each column of one matrix
    biased = bias is not None and bias.shape == (how.n,) and batch == 1 and not how.sizes \
        and device_code.char_of(bias) == char and bool(bias.flags.c_contiguous)
    return Product(_TYPES[char], computed, (bool(turned_b), bool(turned_a)), (*first, step_b, steps[1]),
                   (*second, step_a, steps[0]), (how.n, how.rows, how.n, steps[2]), batch,
                   device_products.BIAS if biased else device_products.NOTHING)


def _by_cublas(handle: int, how: Product, a: Any, b: Any, out: Any) -> None:
    """The product without what follows it."""
    wide = "d" if how.type == _TYPES["d"] else "f"
    one, zero = _ONES[wide].ctypes.data, _ZEROS[wide].ctypes.data
    n, rows, k = how.out[0], how.out[1], how.a[0 if how.turned[0] else 1]
    (turned_a, turned_b), out_step = map(int, how.turned), how.out[3] if how.batch > 1 else n * rows
    device_products.gemm(
        handle, turned_a, turned_b, n, rows, k, one, int(a.data.ptr), how.type, *how.a[2:],
        int(b.data.ptr), how.type, *how.b[2:], zero, int(out.data.ptr), how.type, n, out_step, how.batch,
        how.computed, _DEFAULT)
