"""Products, ``np.linalg`` and ``np.fft`` on tensors."""

from typing import Any

import numpy as np

from ..tensor import Tensor
from .table import FFT, FUNCTIONS, LINALG, T, Unsupported, implements, of_one_dtype, store, tensor

# -- products --------------------------------------------------------------------------------------


@implements(np.dot)
def dot(a: Any, b: Any, out: Any = None) -> Any:
    x, y = of_one_dtype(a, b)
    if not x.ndim or not y.ndim:
        return store(T.mul(x, y), out, "dot")
    return store(T.tensordot(x, y, ([-1], [max(y.ndim - 2, 0)])), out, "dot")


@implements(np.inner)
def inner(a: Any, b: Any, /) -> Tensor:
    x, y = of_one_dtype(a, b)
    return T.mul(x, y) if not x.ndim or not y.ndim else T.tensordot(x, y, ([-1], [-1]))


@implements(np.vdot)
def vdot(a: Any, b: Any, /) -> Tensor:
    x, y = (T.reshape(v, -1) for v in of_one_dtype(a, b))
    return T.sum(T.conj(x) * y)


@implements(np.outer)
def outer(a: Any, b: Any, out: Any = None) -> Any:
    x, y = (T.reshape(v, -1) for v in of_one_dtype(a, b))
    return store(x[:, None] * y, out, "outer")


@implements(np.tensordot)
def tensordot(a: Any, b: Any, axes: Any = 2) -> Tensor:
    x, y = of_one_dtype(a, b)
    if isinstance(axes, int):
        return T.tensordot(x, y, axes)
    return T.tensordot(x, y, tuple([[d] if isinstance(d, int) else list(d) for d in axes]))


@implements(np.einsum)
def einsum(subscripts: Any, *operands: Any, out: Any = None, optimize: Any = False, **settings: Any) -> Any:
    if not isinstance(subscripts, str) or settings:
        raise Unsupported(f"np.einsum: tensors take the form einsum('ij,jk->ik', a, b) without "
                        f"{', '.join(settings) or 'lists of axes'}")
    return store(T.einsum(subscripts, *of_one_dtype(*operands)), out, "einsum")


@implements(np.trace)
def trace(a: Any, offset: int = 0, axis1: int = 0, axis2: int = 1, dtype: Any = None, out: Any = None) -> Any:
    return store(T.sum(T.diagonal(tensor(a), offset, axis1, axis2), -1, dtype=dtype), out, "trace")


@implements(np.cross)
def cross(a: Any, b: Any, axisa: int = -1, axisb: int = -1, axisc: int = -1,
          axis: int | None = None) -> Tensor:
    if axis is not None:
        axisa = axisb = axisc = axis
    x, y = (T.movedim(v, d, -1) for v, d in zip(of_one_dtype(a, b), (axisa, axisb)))
    x, y = T.broadcast_tensors(x, y)
    return T.movedim(T.cross(x, y, -1), -1, axisc)


FUNCTIONS[np.kron] = lambda a, b: T.kron(*of_one_dtype(a, b))
FUNCTIONS[np.linalg.multi_dot] = lambda arrays, *, out=None: store(
    LINALG.multi_dot(of_one_dtype(*arrays)), out, "linalg.multi_dot")

# -- linalg ----------------------------------------------------------------------------------------

FUNCTIONS.update({
    np.linalg.inv: lambda a: LINALG.inv(tensor(a)), np.linalg.det: lambda a: LINALG.det(tensor(a)),
    np.linalg.slogdet: lambda a: LINALG.slogdet(tensor(a)),
    np.linalg.cholesky: lambda a, /, *, upper=False: LINALG.cholesky(tensor(a), upper=upper),
    np.linalg.eigh: lambda a, UPLO="L": LINALG.eigh(tensor(a), UPLO),
    np.linalg.eigvalsh: lambda a, UPLO="L": LINALG.eigvalsh(tensor(a), UPLO),
    np.linalg.eig: lambda a: LINALG.eig(tensor(a)), np.linalg.eigvals: lambda a: LINALG.eigvals(tensor(a)),
    np.linalg.matrix_power: lambda a, n: LINALG.matrix_power(tensor(a), n),
    np.linalg.matrix_rank: lambda A, tol=None, hermitian=False, *, rtol=None: LINALG.matrix_rank(
        tensor(A), hermitian=hermitian, atol=tol, rtol=rtol if tol is None else 0),
    np.linalg.cond: lambda x, p=None: LINALG.cond(tensor(x), p),
    np.linalg.norm: lambda x, ord=None, axis=None, keepdims=False: LINALG.norm(
        tensor(x), ord, axis, keepdims),
    np.linalg.pinv: lambda a, rcond=None, hermitian=False, *, rtol=None: LINALG.pinv(
        tensor(a), hermitian=hermitian, rtol=rtol if rcond is None else rcond),
})


@implements(np.linalg.solve)
def solve(a: Any, b: Any) -> Tensor:
    x, y = of_one_dtype(a, b)
    return LINALG.solve(x, y[:, None])[..., 0] if y.ndim == 1 else LINALG.solve(x, y)  # type: ignore[index]


@implements(np.linalg.qr)
def qr(a: Any, mode: str = "reduced") -> Any:
    if mode not in ("reduced", "complete", "r"):
        raise Unsupported(f"np.linalg.qr: mode={mode!r} is not supported for tensors; use reduced, complete "
                        f"or r")
    found = LINALG.qr(tensor(a), "reduced" if mode == "r" else mode)
    return found.R if mode == "r" else found


@implements(np.linalg.svd)
def svd(a: Any, full_matrices: bool = True, compute_uv: bool = True, hermitian: bool = False) -> Any:
    return LINALG.svd(tensor(a), full_matrices) if compute_uv else LINALG.svdvals(tensor(a))


# the names that NumPy 2 has from the array API standard
FUNCTIONS.update({
    np.linalg.svdvals: lambda x, /: LINALG.svdvals(tensor(x)),
    np.linalg.matrix_norm: lambda x, /, *, keepdims=False, ord="fro": LINALG.matrix_norm(
        tensor(x), ord, (-2, -1), keepdims),
    np.linalg.vector_norm: lambda x, /, *, axis=None, keepdims=False, ord=2: LINALG.vector_norm(
        tensor(x), ord, axis, keepdims),
    np.linalg.diagonal: lambda x, /, *, offset=0: T.diagonal(tensor(x), offset, -2, -1),
    np.linalg.trace: lambda x, /, *, offset=0, dtype=None: trace(x, offset, -2, -1, dtype),
    np.linalg.outer: lambda x1, x2, /: outer(x1, x2),
    np.linalg.cross: lambda x1, x2, /, *, axis=-1: cross(x1, x2, axis=axis),
    np.linalg.matmul: lambda x1, x2, /: T.matmul(*of_one_dtype(x1, x2)),
    np.linalg.tensordot: lambda x1, x2, /, *, axes=2: tensordot(x1, x2, axes),
    np.linalg.vecdot: lambda x1, x2, /, *, axis=-1: LINALG.vecdot(*of_one_dtype(x1, x2), dim=axis),
    np.linalg.matrix_transpose: lambda x, /: T.transpose(tensor(x), -2, -1),
    np.matrix_transpose: lambda x, /: T.transpose(tensor(x), -2, -1),
})

# -- fft -------------------------------------------------------------------------------------------


def _one(name: str) -> None:
    op = getattr(FFT, name)

    def transform(a: Any, n: int | None = None, axis: int = -1, norm: Any = None, out: Any = None) -> Any:
        return store(op(tensor(a), n, axis, norm), out, f"fft.{name}")
    implements(getattr(np.fft, name))(transform)


def _many(name: str, axes: Any) -> None:
    op = getattr(FFT, name)

    def transform(a: Any, s: Any = None, axes: Any = axes, norm: Any = None, out: Any = None) -> Any:
        return store(op(tensor(a), s, None if axes is None else tuple(axes), norm), out, f"fft.{name}")
    implements(getattr(np.fft, name))(transform)


for _kind in ("fft", "ifft", "rfft", "irfft"):
    _one(_kind)
    _many(f"{_kind}2", (-2, -1))
    _many(f"{_kind}n", None)
_one("hfft")
_one("ihfft")
FUNCTIONS[np.fft.fftshift] = lambda x, axes=None: FFT.fftshift(tensor(x), axes)
FUNCTIONS[np.fft.ifftshift] = lambda x, axes=None: FFT.ifftshift(tensor(x), axes)
