"""Muon's steps on GPUs: three launches for all matrices of a dtype, and products, of equal shapes together.

A product of bfloat16 sums up in float32 and adds what it is added to before it rounds, as ``muon.orthogonal``
does; what it is added to is copied first. So a step of five iterations takes 15 products and 10 copies for
each shape that there is.
"""

from pathlib import Path
from typing import Any

import numpy as np

from ..backends import cuda, device_code, device_products, tensor_lists

NUMBERS = "momentum rest nesterov lr shrink adamw eps a b c steps"
_SOURCE = device_code.source(Path(__file__).with_name("muon.cu"), tensor_lists.HEADER)
_BFLOAT16, _IN_FLOAT32, _DEFAULT = 14, 68, -1  # cudaDataType, cublasComputeType_t, the choice of a way


def fits(tensors: list[Any]) -> str:
    """The letter of the dtype of parameter, gradient and momentum that kernels can take; "" of others."""
    char = device_code.char_of(*tensors)
    plain = all(a.flags.c_contiguous for a in tensors) and max(tensors[0].shape) < 2**31
    return char if plain and char in device_code.FLOATS else ""


def step(char: str, group: list[list[Any]], numbers: Any, skip: Any) -> None:
    """Update rows of (parameter, gradient, momentum) of one dtype."""
    by_shape: dict[tuple[int, ...], list[list[Any]]] = {}
    for row in group:
        by_shape.setdefault(row[0].shape, []).append(row)
    empty, rows, further, stacks = cuda.cupy().empty, [], [], []
    for shape, alike in by_shape.items():
        stack = empty((len(alike), *shape), np.uint16)  # the bits of bfloat16
        stacks.append(stack)
        rows += [[*row, x] for row, x in zip(alike, stack)]
        further += [list(shape)] * len(alike)
    made, blocks = tensor_lists.table(rows, "muon", further)
    parts, given = empty(blocks, np.float32), (made, len(rows), 8, numbers, skip)
    _SOURCE.kernel("muon_momentum", char)((blocks,), (device_code.THREADS,), (*given, parts))
    _SOURCE.kernel("muon_scale", char)((blocks,), (device_code.THREADS,), (*given, parts))
    *_, a, b, c, count = numbers["at"][0, :len(NUMBERS.split())].tolist()
    for stack in stacks:
        _make_orthogonal(stack, a, b, c, int(count))
    _SOURCE.kernel("muon_step", char)((blocks,), (device_code.THREADS,), given)


def _make_orthogonal(x: Any, a: float, b: float, c: float, steps: int) -> None:
    """``x = a x + (b g + c g g) x`` with ``g = x x'``, a few times, of a batch [k, m, n]; x stands before
    the others where m > n."""
    m, n = x.shape[1:]
    tall, size, module = m > n, min(m, n), cuda.cupy()
    gram, poly = (module.empty((len(x), size, size), np.uint16) for _ in range(2))
    before = module.empty_like(x)
    for _ in range(steps):
        # libraries take columns that lie together: there matrices are transposed, and factors change places
        _multiply((0, 1) if tall else (1, 0), (size, size, m if tall else n), 1.0, x, x, 0.0, gram)
        module.copyto(poly, gram)
        _multiply((0, 0), (size, size, size), c, gram, gram, b, poly)
        module.copyto(before, x)
        first, second = (poly, before) if tall else (before, poly)
        _multiply((0, 0), (n, m, size), 1.0, first, second, a, x)


def _multiply(turned: tuple[int, int], sizes: tuple[int, int, int], by: float, x: Any, y: Any, kept: float,
              out: Any) -> None:
    """``out = by x y + kept out`` of batches of bfloat16 whose columns lie together, as cuBLAS has it."""
    module, factors = cuda.cupy(), np.array([by, kept], np.float32)
    a, b, c = ((t.data.ptr, _BFLOAT16, t.shape[2], t.shape[1] * t.shape[2]) for t in (x, y, out))
    device_products.gemm(
        module.cuda.device.get_cublas_handle(), *turned, *sizes, factors[:1].ctypes.data, *a, *b,
        factors[1:].ctypes.data, *c, len(out), _IN_FLOAT32, _DEFAULT)
