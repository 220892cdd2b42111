"""LAPACK by NumPy's loops over matrices, without what ``numpy.linalg`` does around them.

To look at its argument and to arrange how failures are told takes that three times as long as a small matrix.
It is called where NumPy has no such loop, for complex numbers and nothing, and where a result is not finite:
it says what is wrong.
"""

import math
from typing import Any

import numpy as np

from ..language.words import all_finite

_LOOPS: Any = getattr(np.linalg, "_umath_linalg", None)


def _loop(name: str, A: Any) -> Any:
    """NumPy's loop of that name for ``A``; None where ``numpy.linalg`` is to be called."""
    known = type(A) is np.ndarray and A.dtype.char in "fd" and A.size
    return getattr(_LOOPS, name, None) if known else None


def _as_given(A: Any, *results: Any) -> tuple:
    """What was computed in double precision, as ``numpy.linalg`` does, in the dtype of ``A``."""
    return results if A.dtype.char == "d" else tuple([x.astype(A.dtype) for x in results])


def _came_out(values: Any) -> bool:
    """Whether every matrix was decomposed: one that was not has nothing but nan."""
    return math.isfinite(values.item(0)) if values.ndim == 1 else all_finite(values)


def _refuse_infinite(A: Any) -> None:
    """Raise where an element is inf or nan: some libraries never come back from those."""
    if not all_finite(A) and not np.isfinite(A).all():
        raise np.linalg.LinAlgError("Array must not contain infs or NaNs")


def svd(xp: Any, A: Any, *, full: bool) -> tuple:
    """U, S and Vh; ``full``: with all columns of U and rows of Vh."""
    if xp is np:
        _refuse_infinite(A)
    loop = _loop("svd_f" if full else "svd_s", A)
    if loop is not None:
        U, S, Vh = loop(A, signature="d->ddd")
        if _came_out(S):
            return _as_given(A, U, S, Vh)
    return tuple(xp.linalg.svd(A, full_matrices=full))


def svdvals(xp: Any, A: Any) -> Any:
    """S alone."""
    if xp is np:
        _refuse_infinite(A)
    loop = _loop("svd", A)
    if loop is not None:
        S = loop(A, signature="d->d")
        if _came_out(S):
            return _as_given(A, S)[0]
    return xp.linalg.svd(A, compute_uv=False)


def eigh(xp: Any, A: Any, *, uplo: str) -> tuple:
    """Eigenvalues, smallest first, and eigenvectors of symmetric matrices of which a triangle is read."""
    loop = _loop("eigh_lo" if uplo == "L" else "eigh_up", A)
    if loop is not None:
        values, vectors = loop(A, signature="d->dd")
        if _came_out(values):
            return _as_given(A, values, vectors)
    return tuple(xp.linalg.eigh(A, UPLO=uplo))


def eigvalsh(xp: Any, A: Any, *, uplo: str) -> Any:
    """The eigenvalues alone."""
    loop = _loop("eigvalsh_lo" if uplo == "L" else "eigvalsh_up", A)
    if loop is not None:
        values = loop(A, signature="d->d")
        if _came_out(values):
            return _as_given(A, values)[0]
    return xp.linalg.eigvalsh(A, UPLO=uplo)


def eig(xp: Any, A: Any) -> tuple:
    """Complex eigenvalues and eigenvectors."""
    to = xp.result_type(A.dtype, xp.complex64)
    loop = _loop("eig", A)
    if loop is not None and all_finite(A):
        values, vectors = loop(A, signature="d->DD")
        if np.isfinite(values).all():
            return values.astype(to), vectors.astype(to)
    if hasattr(xp.linalg, "eig"):
        values, vectors = xp.linalg.eig(A)
    else:  # older CuPy: by way of the host
        values, vectors = (xp.asarray(part) for part in np.linalg.eig(xp.asnumpy(A)))
    return values.astype(to), vectors.astype(to)


def eigvals(xp: Any, A: Any) -> Any:
    """The eigenvalues alone."""
    loop = _loop("eigvals", A)
    if loop is not None and all_finite(A):
        values = loop(A, signature="d->D")
        if np.isfinite(values).all():
            return values.astype(np.result_type(A.dtype, np.complex64), copy=False)
    to = xp.result_type(A.dtype, xp.complex64)
    if hasattr(xp.linalg, "eigvals"):
        return xp.linalg.eigvals(A).astype(to, copy=False)
    return xp.asarray(np.linalg.eigvals(xp.asnumpy(A))).astype(to)  # older CuPy: by way of the host
