"""What counts as zero: the pseudo-inverse and the rank of matrices."""

from typing import Any

import numpy as np

from ...dtypes import int64
from ...tensor import Tensor
from ..record.batched import Batched, known, leading
from ..record.op import Meta, Op
from ..record.public import public
from ..shape.broadcast import broadcast_shape, sum_to
from .contract import product
from .decompositions import svdvals
from .factor import eigh_op, eigvalsh_op, matrix, svd_op, turned
from .matmul import matmul_op


def _tolerances(A: Tensor, op: str, atol: Any, rtol: Any) -> tuple[Any, Any]:
    """``atol`` and ``rtol``, numbers or arrays of one per matrix; rtol by PyTorch's default."""
    for name, value in (("atol", atol), ("rtol", rtol)):
        if not isinstance(value, (Tensor, int, float, np.number, type(None))):
            raise TypeError(f"{op}: {name} must be a number or a Tensor, got {type(value).__name__}")
    atol, rtol = [known(t._array) if isinstance(t, Tensor) else t for t in (atol, rtol)]
    for value in (atol, rtol):
        if type(value) is Batched:  # they are settings, which examples have in common
            value.item()
    usual = max(A.shape[-2:]) * float(np.finfo(A._array.dtype).eps)
    if rtol is None:
        rtol = usual if atol is None else usual * (atol <= 0)
    return 0.0 if atol is None else atol, rtol


def _limit(xp: Any, s: Any, atol: Any, rtol: Any) -> Any:
    """Up to which singular values ``s`` (*, k), largest first, count as 0: (*, 1)."""
    atol, rtol = [t[..., None] if getattr(t, "ndim", 0) else t for t in (atol, rtol)]
    return xp.maximum(s[..., :1] * rtol, atol)


def _pinv_vjp(g: Any, A: Any, out: Any) -> Any:
    m, n = A.shape[-2:]
    gt, pt = turned(g), turned(out)
    total = -product(product(pt, g), pt)
    if m > 0 and n > 0:
        total = total + product(product(gt - product(A, product(out, gt)), out), pt)
        total = total + product(product(pt, out), gt - product(product(gt, out), A))
    return total if total.shape == A.shape else sum_to(total, size=A.shape)


def _pinv_kernel(xp: Any, A: Any, *, rtol: Any, atol: Any, hermitian: bool) -> Any:
    if hermitian:
        w, v = eigh_op(A, uplo="L") if xp is np else xp.linalg.eigh(A)
        size = abs(w)
        keep = size > _limit(xp, size.max(axis=-1, keepdims=True, initial=0), atol, rtol)
        inverse = keep / xp.where(keep, w, xp.ones_like(w))
        return matmul_op(v * inverse[..., None, :], turned(v))
    # what the record asks of a GPU besides, whether it has converged, would be waited for
    u, s, vh = svd_op(A, full=False) if xp is np else xp.linalg.svd(A, full_matrices=False)
    keep = s > _limit(xp, s, atol, rtol)
    inverse = keep / xp.where(keep, s, xp.ones_like(s))
    return matmul_op(turned(vh) * inverse[..., None, :], turned(u))


def _batch(x: Meta, atol: Any, rtol: Any, own: int) -> tuple[int, ...]:
    """The batch dimensions of the result: those of x, all but ``own``, with those of the tolerances."""
    return broadcast_shape((x.shape[:-own], np.shape(atol), np.shape(rtol)), "tolerances of matrices")


pinv_op = Op("pinv", "A", batch=leading, kernel=_pinv_kernel, adjoint=True, vjp={"A": _pinv_vjp},
             infer=lambda A, *, rtol, atol, hermitian: Meta(
                 (*_batch(A, atol, rtol, 2), A.shape[-1], A.shape[-2]), A.dtype))


@public("linalg", op=pinv_op, out=True, autocast="float32")
def pinv(input: Tensor, rcond: Any = None, hermitian: bool = False, *, atol: Any = None,
         rtol: Any = None) -> Tensor:
    """The Moore-Penrose pseudo-inverse of every matrix: (*, m, n) -> (*, n, m).

    Singular values up to the greater of ``atol`` and ``rtol`` times the largest count as 0; both are numbers,
    or tensors (*) of one per matrix. rtol is max(m, n) times the dtype's eps unless it or a positive atol is
    given. rcond: another name of rtol. hermitian: by eigenvalues; only the lower triangle is read.
    The derivative holds while the rank does not change.

    >>> fw.linalg.pinv(fw.tensor([[2.0, 0.0], [0.0, 0.0]]))
    tensor([[0.5000, 0.0000],
            [0.0000, 0.0000]])
    """
    matrix(input, "pinv", square=bool(hermitian))
    atol, rtol = _tolerances(input, "pinv", atol, rcond if rtol is None else rtol)
    return pinv_op.run(input, rtol=rtol, atol=atol, hermitian=bool(hermitian))


@public(method=True, autocast="float32")
def pinverse(input: Tensor, rcond: float = 1e-15) -> Tensor:
    """The pseudo-inverse of every matrix; ``linalg.pinv``.

    >>> fw.pinverse(fw.tensor([[2.0], [0.0]]))
    tensor([[0.5000, 0.0000]])
    """
    return pinv(input, rtol=rcond)


rank_op = Op("matrix_rank", "s", infer=lambda s, *, atol, rtol: Meta(_batch(s, atol, rtol, 1), int64),
             batch=leading,
             kernel=lambda xp, s, *, atol, rtol: (s > _limit(xp, s, atol, rtol)).sum(axis=-1))


@public("linalg", out=True, also="input=A", autocast="float32")
def matrix_rank(A: Tensor, tol: Any = None, hermitian: bool = False, *, atol: Any = None,
                rtol: Any = None) -> Tensor:
    """How many singular values are greater than ``max(atol, rtol * the largest)``: (*, m, n) -> int64 (*).

    atol and rtol are numbers, or tensors (*) of one per matrix; rtol is max(m, n) times the dtype's eps
    unless it or a positive atol is given. tol: an older name for atol without rtol. hermitian: the absolute
    values of the eigenvalues count instead; only the lower triangle is read.

    >>> fw.linalg.matrix_rank(fw.tensor([[1.0, 2.0], [2.0, 4.0]]))
    tensor(1)
    """
    if tol is not None:
        atol, rtol = tol, 0.0
    given = matrix(A, "matrix_rank", square=bool(hermitian)).detach()
    s: Any = abs(eigvalsh_op.run(given, uplo="L")).sort(-1, True)[0] if hermitian else svdvals(given)
    if not s.shape[-1]:
        return s.sum(-1).long()
    atol, rtol = _tolerances(A, "matrix_rank", atol, rtol)
    return rank_op.run(s, atol=atol, rtol=rtol)
