"""Products of matrices by cuBLASLt: how it does one of given sizes, steps and types is asked once and kept.

What follows a product (its epilogue: a bias, relu, the approximate gelu, their slopes, and the sums that are
the gradient of a bias) is part of it. A small native module calls the library, which CuPy has loaded for
cuBLAS; without either, and for what cuBLASLt does not take, callers use cuBLAS by CuPy's bindings.
"""

import ctypes
import importlib
import warnings
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from .. import _native
from . import cuda, device_launcher

# cublasLtEpilogue_t: bits of what follows a product. BIAS and gradients of biases take a vector; KEPT takes a
# matrix besides: bits where relu let through, or what gelu was of, which slopes read.
NOTHING, RELU, BIAS, RELU_SLOPE, SLOPE_SUM, GELU, GELU_SLOPE, KEPT = 1, 2, 4, 8 | 128, 16, 32, 64 | 128, 128
SUM_OF_FIRST, SUM_OF_SECOND = 256, 512  # of a factor, over what a product sums over
ROOM = 32 << 20  # bytes that a plan may work in, as NVIDIA advises for its largest devices
_MOST = 4096
_started: tuple[Any, Any] = (None, None)  # (the cupy module, the native module or None)
_plans: dict[tuple, Any] = {}  # a plan, or None where cuBLASLt has none
_refused: set[Any] = set()  # products whose plans failed


class Product(NamedTuple):
    """A product as cuBLASLt is asked for it. A matrix is (rows, columns, step, step of the batch), with
    columns that lie together."""

    type: int
    computed: int
    turned: tuple[bool, bool]
    a: tuple[int, int, int, int]
    b: tuple[int, int, int, int]
    out: tuple[int, int, int, int]
    batch: int
    epilogue: int = NOTHING
    aux_step: int = 0  # of the matrix besides


def library(name: str = "cublasLt") -> str:
    """The file of a library of CUDA's that goes with CuPy."""
    return f"lib{name}.so.{cuda.cupy().cuda.runtime.runtimeGetVersion() // 1000}"


def _native_module() -> Any:
    """The module, with the library loaded; None where either is not there."""
    global _started
    module = cuda._cupy
    if _started[0] is not module:
        _plans.clear()
        _refused.clear()
        native = None
        if _native.module is not None and not getattr(module.cuda.runtime, "is_hip", False):
            try:
                native = importlib.import_module("framework._native.products")
            except ImportError:  # a build of before
                native = None
        _started = module, native if native is not None and native.start(library()) else None
    return _started[1]


def _alignment(address: int) -> int:
    return min(address & -address, 256)


# of operands that begin where memory does, by which of the last two there are not
_FULLY: dict[tuple[bool, bool], tuple[int, ...]] = {
    (v, a): (256, 256, 256, 0 if v else 256, 0 if a else 256)
    for v in (True, False) for a in (True, False)}


def multiply(handle: int, product: Product, a: Any, b: Any, out: Any, vector: Any = None,
             aux: Any = None) -> bool:
    """Write a product with its epilogue into ``out``; False where that is left to others.

    vector, aux: what the epilogue takes besides.
    """
    native = _native_module()
    if native is None or _refused and product in _refused:
        return False
    at = a.data.ptr, b.data.ptr, out.data.ptr
    ends = 0 if vector is None else vector.data.ptr, 0 if aux is None else aux.data.ptr
    if (at[0] | at[1] | at[2] | ends[0] | ends[1]) & 255 == 0:
        lie = _FULLY[vector is None, aux is None]
    else:
        lie = tuple(map(_alignment, (*at, *ends)))
    key = product, lie, 0 if cuda.is_alone() else out.device.id
    plan = _plans.get(key, native)
    if plan is native:
        if len(_plans) >= _MOST:
            _plans.clear()
        plan = _plans[key] = native.plan(handle, *product, lie, ROOM)
    if plan is None:
        return False
    space = device_launcher.empty(plan.workspace, np.uint8) if plan.workspace else None
    room = 0 if space is None else int(space.data.ptr)
    status = plan.run(handle, *at, *ends, room, device_launcher.current_stream())
    if status:
        _refused.add(product)
        warnings.warn(f"cuBLASLt refused a product that it had planned ({product}: status {status}); cuBLAS "
                      f"computes it", stacklevel=2)
    return not status


# -- cuBLAS ------------------------------------------------------------------------------------------


@cache
def cublas() -> Any:
    """cuBLAS itself, which CuPy has loaded."""
    found = ctypes.CDLL(library("cublas"))
    p, i, q = ctypes.c_void_p, ctypes.c_int, ctypes.c_longlong
    found.cublasSetStream_v2.argtypes = [p, p]
    found.cublasGemmStridedBatchedEx.argtypes = [p, i, i, i, i, i, p, p, i, i, q, p, i, i, q, p, p, i, i, q,
                                                 i, i, i]
    return found


def gemm(handle: int, *given: Any) -> None:
    """``gemmStridedBatchedEx`` by CuPy's bindings; in a capture, where they refuse, by cuBLAS itself."""
    module = cuda.cupy()
    if cuda.capture_here() is None:
        module.cuda.cublas.gemmStridedBatchedEx(handle, *given)
        return
    cublas().cublasSetStream_v2(handle, int(module.cuda.get_current_stream().ptr))
    status = cublas().cublasGemmStridedBatchedEx(handle, *given)
    if status:
        raise RuntimeError(f"cuBLAS failed to record a product for a CUDA graph: status {status}")
