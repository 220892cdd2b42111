"""LAPACK by NumPy's loops over matrices, without what ``numpy.linalg`` does around them.

To look at its argument and to arrange how failures are told takes that three times as long as a small matrix,
and it computes float32 in float64, up to twice as long. It is called where NumPy has no such loop, for
complex numbers and nothing, and where a result is not finite: it says what is wrong.
"""

import math
from functools import cache
from typing import Any

import numpy as np

from ..language.words import all_finite

_LOOPS: Any = getattr(np.linalg, "_umath_linalg", None)


def _made(name: str, A: Any, results: str) -> Any:
    """What NumPy's loop of that name makes of ``A``; None where ``numpy.linalg`` is to be called.

    results: "r" for each real one, "c" for each complex one. Eigenvectors that are no orthogonal ones may
    have either sign: those of small matrices have that of float64, as the native kernels' have.
    """
    loop, char = getattr(_LOOPS, name, None), A.dtype.char
    if loop is None or type(A) is not np.ndarray or char not in "fd" or not A.size:
        return None
    if char == "d" or "c" not in results or A.shape[-1] > _SMALL:
        return loop(A, signature=_signature(char, results))
    made = loop(A, signature=_signature("d", results))
    return tuple([x.astype("F") for x in made]) if len(results) > 1 else made.astype("F")


_SMALL = 32  # rows that the native kernels take


@cache
def _signature(char: str, results: str) -> str:
    return f"{char}->{results.replace('r', char).replace('c', char.upper())}"


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
    made = _made("svd_f" if full else "svd_s", A, "rrr")
    if made is not None and _came_out(made[1]):
        return made  # type: ignore[no-any-return]
    return tuple(xp.linalg.svd(A, full_matrices=full))


def svdvals(xp: Any, A: Any) -> Any:
    """S alone."""
    if xp is np:
        _refuse_infinite(A)
    S = _made("svd", A, "r")
    return S if S is not None and _came_out(S) else xp.linalg.svd(A, compute_uv=False)


def eigh(xp: Any, A: Any, *, uplo: str) -> tuple:
    """Eigenvalues, smallest first, and eigenvectors of symmetric matrices of which a triangle is read."""
    made = _made("eigh_lo" if uplo == "L" else "eigh_up", A, "rr")
    if made is not None and _came_out(made[0]):
        return made  # type: ignore[no-any-return]
    return tuple(xp.linalg.eigh(A, UPLO=uplo))


def eigvalsh(xp: Any, A: Any, *, uplo: str) -> Any:
    """The eigenvalues alone."""
    values = _made("eigvalsh_lo" if uplo == "L" else "eigvalsh_up", A, "r")
    return values if values is not None and _came_out(values) else xp.linalg.eigvalsh(A, UPLO=uplo)


def eig(xp: Any, A: Any) -> tuple:
    """Complex eigenvalues and eigenvectors."""
    to = xp.result_type(A.dtype, xp.complex64)
    made = _made("eig", A, "cc") if xp is np and all_finite(A) else None
    if made is not None and np.isfinite(made[0]).all():
        return made  # type: ignore[no-any-return]
    if hasattr(xp.linalg, "eig"):
        values, vectors = xp.linalg.eig(A)
    else:  # older CuPy: by way of the host
        values, vectors = (xp.asarray(part) for part in np.linalg.eig(xp.asnumpy(A)))
    return values.astype(to), vectors.astype(to)


def eigvals(xp: Any, A: Any) -> Any:
    """The eigenvalues alone."""
    values = _made("eigvals", A, "c") if xp is np and all_finite(A) else None
    if values is not None and np.isfinite(values).all():
        return values
    to = xp.result_type(A.dtype, xp.complex64)
    if hasattr(xp.linalg, "eigvals"):
        return xp.linalg.eigvals(A).astype(to, copy=False)
    return xp.asarray(np.linalg.eigvals(xp.asnumpy(A))).astype(to)  # older CuPy: by way of the host
