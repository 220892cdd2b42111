"""Eigenvalues and eigenvectors."""

from typing import Any, NamedTuple

import numpy as np

from ...dtypes import BY_NUMPY
from ...tensor import Tensor
from ..pointwise.arithmetic import over
from ..record.batched import leading
from ..record.op import Meta, Op
from ..record.public import public
from ..shape.complex_parts import real_op
from ..shape.diagonals import diagonal_op
from . import lapack
from .factor import (
    check_phase,
    column,
    converging,
    eigh_op,
    eigvalsh_op,
    eye,
    imaginary_diagonal,
    is_complex,
    matrix,
    row,
    solve_op,
    turned,
)


class Eigh(NamedTuple):
    """What ``eigh`` gives."""

    eigenvalues: Tensor
    eigenvectors: Tensor


@public("linalg", op=eigh_op, out=True, autocast="float32")
def eigh(input: Tensor, UPLO: str = "L") -> Eigh:
    """Eigenvalues, smallest first, and orthonormal eigenvectors (columns) of symmetric or Hermitian matrices.

    A (*, n, n) -> real (*, n), (*, n, n). The gradient of complex vectors wants a result that does not depend
    on their phases (AutogradError). Only the lower (UPLO="L") or upper ("U") triangle is read.

    >>> fw.linalg.eigh(fw.tensor([[2.0, 0.0], [0.0, 1.0]])).eigenvalues
    tensor([1., 2.])
    """
    return Eigh(*eigh_op.run(matrix(input, "eigh"), uplo=_triangle(UPLO, "eigh")))


def _triangle(UPLO: str, op: str) -> str:
    if UPLO not in ("L", "U", "l", "u"):
        raise ValueError(f"{op}: UPLO must be 'L' or 'U', got {UPLO!r}")
    return UPLO.upper()


@public("linalg", out=True, autocast="float32")
def eigvalsh(input: Tensor, UPLO: str = "L") -> Tensor:
    """The eigenvalues of symmetric or Hermitian matrices, smallest first: (*, n, n) -> real (*, n).

    >>> fw.linalg.eigvalsh(fw.tensor([[2.0, 0.0], [0.0, 1.0]]))
    tensor([1., 2.])
    """
    uplo = _triangle(UPLO, "eigvalsh")
    if matrix(input, "eigvalsh").requires_grad:  # the vectors are wanted, too
        return eigh_op.run(input, uplo=uplo)[0]
    return eigvalsh_op.run(input, uplo=uplo)


class Eig(NamedTuple):
    """What ``eig`` gives."""

    eigenvalues: Tensor
    eigenvectors: Tensor


def _eig_infer(A: Meta) -> tuple[Meta, Meta]:
    to = BY_NUMPY[np.result_type(A.dtype.numpy, np.complex64)]
    return Meta(A.shape[:-1], to), Meta(A.shape, to)


def _eig_vjp(g: list, A_dtype: Any, eigenvalues: Any, V: Any) -> tuple:
    gl, gv = g
    n = V.shape[-1]
    middle = None if gl is None else row(gl) * eye(V, n)
    if gv is not None:
        inner = turned(V) @ gv
        check_phase(imaginary_diagonal(inner), "eig", gv)
        lengths = real_op(diagonal_op(inner, offset=0, dims=(V.ndim - 2, V.ndim - 1)))
        along = (turned(V) @ V) * row(lengths)  # the length of a vector stays 1
        gaps = (row(eigenvalues) - column(eigenvalues)).conj() + eye(V, n)
        part = over((inner - along) * (1 - eye(V, n)), gaps)
        middle = part if middle is None else middle + part
    out = solve_op(turned(V), middle @ turned(V))
    return (out if A_dtype.kind == "c" else real_op(out),)


eig_op = Op("eig", "A",
            batch=leading, kernel=converging("eig", lapack.eig), native="eig",
            outputs="eigenvalues V",
            infer=_eig_infer, vjp=_eig_vjp)


@public("linalg", op=eig_op, out=True, autocast="float32")
def eig(input: Tensor) -> Eig:
    """Eigenvalues and eigenvectors (columns of length 1), complex, in no order.

    A (*, n, n) -> (*, n), (*, n, n). The gradient of the vectors needs distinct eigenvalues and a result that
    does not depend on their phases (AutogradError). For symmetric and Hermitian matrices use ``eigh``.

    >>> fw.linalg.eig(fw.tensor([[0.0, 1.0], [-1.0, 0.0]])).eigenvalues
    tensor([0.+1.j, 0.-1.j])
    """
    return Eig(*eig_op.run(matrix(input, "eig", name="input")))


def _eigvals_vjp(g: Any, A: Any) -> Any:
    V = eig_op(A)[1]
    out = solve_op(turned(V), (row(g) * eye(V, V.shape[-1])) @ turned(V))
    return out if is_complex(A) else real_op(out)


# the values alone, half of the work; with a gradient the vectors are wanted, too
eigvals_op = Op("eigvals", "A", batch=leading, adjoint=True, kernel=converging("eigvals", lapack.eigvals),
                native="eigvals",
                infer=lambda A: _eig_infer(A)[0], vjp={"A": _eigvals_vjp})


@public("linalg", out=True, autocast="float32")
def eigvals(input: Tensor) -> Tensor:
    """The eigenvalues of every matrix, complex, in no order: (*, n, n) -> (*, n).

    >>> fw.linalg.eigvals(fw.tensor([[2.0, 0.0], [0.0, 1.0]])).shape
    (2,)
    """
    if matrix(input, "eigvals", name="input").requires_grad:
        return eig_op.run(input)[0]
    return eigvals_op.run(input)
