"""cuBLAS as CuPy's bindings have it, as far as it is used: products by addresses, sizes and steps.

What cuBLAS would refuse is refused here: steps that are too small, 0 for a size, a way of computing that
does not go with the types. CuPy's bindings refuse all in a capture, the libraries themselves
(``Library``, ``multiply``) do not.
"""

import ctypes

import numpy as np

from . import counts, graphs, streams

HANDLE = 0xB1A5
_TYPES = {0: np.float32, 1: np.float64, 2: np.float16, 14: None}
_COMPUTED = {(0, 68), (0, 77), (1, 70), (2, 68), (14, 68)}
calls: list = []  # (types, way of computing, which operands are transposed, count) of the last calls


def _memory(address: int, shape: tuple, strides: tuple, dtype: np.dtype) -> np.ndarray:
    """The memory from an address on as an array; strides in elements."""
    reach = sum((s - 1) * t for s, t in zip(shape, strides)) + 1
    room = (ctypes.c_char * (reach * dtype.itemsize)).from_address(address)
    return np.ndarray(shape, dtype, room, 0, tuple(t * dtype.itemsize for t in strides))


def gemmStridedBatchedEx(
    handle: int, transa: int, transb: int, m: int, n: int, k: int,
    alpha: int, A: int, Atype: int, lda: int, strideA: int,
    B: int, Btype: int, ldb: int, strideB: int, beta: int,
    C: int, Ctype: int, ldc: int, strideC: int, batchCount: int,
    computeType: int, algo: int,
) -> None:
    """``C = alpha op(A) op(B) + beta C`` of matrices whose columns lie together."""
    refuse_in_capture()
    multiply(handle, transa, transb, m, n, k, alpha, A, Atype, lda, strideA, B, Btype, ldb, strideB, beta, C,
             Ctype, ldc, strideC, batchCount, computeType, algo)


def refuse_in_capture(library: str = "cuBLAS") -> None:
    """What CuPy's bindings do of NVIDIA's libraries."""
    if graphs.recording is not None:
        raise NotImplementedError(f"calling {library} API during stream capture is currently unsupported")


def multiply(
    handle: int, transa: int, transb: int, m: int, n: int, k: int,
    alpha: int, A: int, Atype: int, lda: int, strideA: int,
    B: int, Btype: int, ldb: int, strideB: int, beta: int,
    C: int, Ctype: int, ldc: int, strideC: int, batchCount: int,
    computeType: int, algo: int,
) -> None:
    """The same, whoever asks."""
    assert HANDLE <= handle < HANDLE + 8 and algo == -1
    assert Atype == Btype == Ctype and (Atype, computeType) in _COMPUTED, "CUBLAS_STATUS_NOT_SUPPORTED"
    fits = lda >= max(1, k if transa else m) and ldb >= max(1, n if transb else k) and ldc >= max(1, m)
    assert fits and min(m, n, k, batchCount) > 0, "CUBLAS_STATUS_INVALID_VALUE"
    assert batchCount == 1 or strideC >= m, "the results lie on each other"
    if graphs.recording is not None:
        factors = [_memory(p, (1,), (1,), np.dtype(np.float64 if Atype == 1 else np.float32)).copy()
                   for p in (alpha, beta)]  # which are read when the work is captured
        graphs.recording.append(lambda: multiply(
            handle, transa, transb, m, n, k, factors[0].ctypes.data, A, Atype, lda, strideA, B, Btype, ldb,
            strideB, factors[1].ctypes.data, C, Ctype, ldc, strideC, batchCount, computeType, algo))
        return
    if streams.used:
        import cupy

        for address, writes in ((A, False), (B, False), (C, True)):
            cupy._use_at(address, writes)
    if _TYPES[Atype] is None:
        import ml_dtypes  # which makes NumPy know the name

        assert ml_dtypes.bfloat16
    dtype = np.dtype(_TYPES[Atype] or "bfloat16")
    wide = np.dtype(np.float64 if Atype == 1 else np.float32)
    factor, kept = (float(_memory(p, (1,), (1,), wide)[0]) for p in (alpha, beta))
    a = _memory(A, (batchCount, *((k, m) if transa else (m, k))), (strideA, 1, lda), dtype).astype(wide)
    b = _memory(B, (batchCount, *((n, k) if transb else (k, n))), (strideB, 1, ldb), dtype).astype(wide)
    c = _memory(C, (batchCount, m, n), (strideC, 1, ldc), dtype)
    product = factor * np.matmul(a.mT if transa else a, b.mT if transb else b)
    c[...] = (product + kept * c.astype(wide) if kept else product).astype(dtype)
    counts.launch("matmul")
    calls[:] = [*calls[-63:], (Atype, computeType, (transa, transb), batchCount)]


def gemmEx(
    handle: int, transa: int, transb: int, m: int, n: int, k: int,
    alpha: int, A: int, Atype: int, lda: int, B: int, Btype: int, ldb: int, beta: int,
    C: int, Ctype: int, ldc: int, computeType: int, algo: int,
) -> None:
    """The same of one matrix."""
    gemmStridedBatchedEx(handle, transa, transb, m, n, k, alpha, A, Atype, lda, 0, B, Btype, ldb, 0, beta, C,
                         Ctype, ldc, m, 1, computeType, algo)


class Library:
    """cuBLAS without CuPy: it takes the same, and returns a status."""

    @staticmethod
    def cublasSetStream_v2(handle: int, stream: int) -> int:
        """The current one."""
        assert stream == streams.current.stream.ptr
        return 0

    @staticmethod
    def cublasGemmStridedBatchedEx(*given: int) -> int:
        """The product."""
        assert all(type(a) is int for a in given), given
        multiply(*given)
        return 0
