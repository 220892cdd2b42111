"""Cholesky, QR and singular value decomposition."""

from typing import NamedTuple

from ...tensor import Tensor
from ..record.public import public
from .factor import cholesky_op, matrix, qr_op, svd_op, svdvals_op, turned


class QR(NamedTuple):
    """What ``qr`` gives."""

    Q: Tensor
    R: Tensor


class SVD(NamedTuple):
    """What ``svd`` gives."""

    U: Tensor
    S: Tensor
    Vh: Tensor


@public("linalg", op=cholesky_op, out=True, autocast="float32")
def cholesky(input: Tensor, *, upper: bool = False) -> Tensor:
    """The lower triangular L with ``L @ L.H = input``, for Hermitian positive definite A (*, n, n).

    Only the lower triangle of A is read. upper: gives L.H. Raises LinAlgError for another matrix.

    >>> fw.linalg.cholesky(fw.tensor([[4.0, 2.0], [2.0, 2.0]]))
    tensor([[2., 0.],
            [1., 1.]])
    """
    L = cholesky_op.run(matrix(input, "cholesky"))
    return turned(L) if upper else L


@public(method=True, name="cholesky", out=True, autocast="float32")
def _cholesky(input: Tensor, upper: bool = False) -> Tensor:
    """The Cholesky factor of every matrix; ``linalg.cholesky``.

    >>> fw.cholesky(fw.tensor([[4.0]]))
    tensor([[2.]])
    """
    return cholesky(input, upper=upper)


@public("linalg", op=qr_op, out=True, autocast="float32")
def qr(A: Tensor, mode: str = "reduced") -> QR:
    """Q with orthonormal columns and upper triangular R with ``Q @ R = A``: A (*, m, n).

    mode "reduced": Q (*, m, k), R (*, k, n), k = min(m, n); "complete": Q (*, m, m), R (*, m, n);
    "r": only R, Q is empty.

    >>> fw.linalg.qr(fw.tensor([[3.0], [4.0]])).R.abs()
    tensor([[5.]])
    """
    if mode not in ("reduced", "complete", "r"):
        raise ValueError(f"qr: mode must be 'reduced', 'complete' or 'r', got {mode!r}")
    return QR(*qr_op.run(matrix(A, "qr", square=False), mode=mode))


@public("linalg", op=svd_op, out=True, autocast="float32")
def svd(A: Tensor, full_matrices: bool = True) -> SVD:
    """``A = U @ diag(S) @ Vh``: orthonormal U, Vh, and singular values S, largest first; A (*, m, n).

    The gradient of complex vectors wants a result that does not depend on their phases (AutogradError).
    U (*, m, m), S (*, k), Vh (*, n, n), k = min(m, n); without full_matrices U (*, m, k), Vh (*, k, n).

    >>> fw.linalg.svd(fw.tensor([[3.0, 0.0], [0.0, 4.0]])).S
    tensor([4., 3.])
    """
    return SVD(*svd_op.run(matrix(A, "svd", square=False), full=bool(full_matrices)))


@public("linalg", out=True, autocast="float32")
def svdvals(A: Tensor) -> Tensor:
    """The singular values of every matrix, largest first: (*, m, n) -> (*, min(m, n)).

    >>> fw.linalg.svdvals(fw.tensor([[3.0, 0.0], [0.0, 4.0]]))
    tensor([4., 3.])
    """
    matrix(A, "svdvals", square=False)  # with a gradient the vectors are wanted, too
    return svd_op.run(A, full=False)[1] if A.requires_grad else svdvals_op.run(A)
