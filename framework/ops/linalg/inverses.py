"""Inverses beyond the plain: of tensors, from factors, and with a code in place of an error."""

from typing import Any, NamedTuple

import numpy as np

from ...dtypes import int32
from ...errors import ShapeError
from ...tensor import Tensor, wrap
from ..convert.cast import from_array
from ..language.expression import OPS_BY_NAME
from ..record.args import tensor_arg
from ..record.public import public
from ..shape.view import permute_op, reshape_op
from .factor import LinAlgError, column, eye, matrix
from .linalg import cholesky, inv, solve
from .matmul import promoted
from .solvers import cholesky_solve, lu_factor

where_op = OPS_BY_NAME["where"]


class InvEx(NamedTuple):
    """What ``inv_ex`` gives."""

    inverse: Tensor
    info: Tensor


class SolveEx(NamedTuple):
    """What ``solve_ex`` gives."""

    result: Tensor
    info: Tensor


class CholeskyEx(NamedTuple):
    """What ``cholesky_ex`` gives."""

    L: Tensor
    info: Tensor


class LUFactorEx(NamedTuple):
    """What ``lu_factor_ex`` gives."""

    LU: Tensor
    pivots: Tensor
    info: Tensor


# -- of tensors ------------------------------------------------------------------------------------


@public("linalg", out=True)
def tensorinv(input: Tensor, ind: int = 2) -> Tensor:
    """The inverse with respect to ``tensordot``: (*a, *b) -> (*b, *a), where a has ``ind`` dimensions.

    ``tensordot(tensorinv(x), x, dims=ind)`` is the identity. Raises ShapeError where the sizes of a and of b
    have different products, LinAlgError where there is no inverse.

    >>> fw.linalg.tensorinv(fw.eye(4).reshape(4, 2, 2), ind=1).shape
    (2, 2, 4)
    """
    tensor_arg(input, "tensorinv")
    if ind < 1:
        raise ValueError(f"tensorinv: ind must be positive, got {ind}")
    first, last = input.shape[:ind], input.shape[ind:]
    return reshape_op.run(inv(_square(input, first, last, "tensorinv")), shape=last + first)


def _square(A: Tensor, first: tuple, last: tuple, op: str) -> Tensor:
    m, n = int(np.prod(first)), int(np.prod(last))
    if m != n:
        raise ShapeError(f"{op}: input of shape {list(A.shape)} is split into {list(first)} and "
                         f"{list(last)}, which have {m} and {n} elements; they must be equally many")
    return reshape_op.run(A, shape=(m, n))


@public("linalg", out=True)
def tensorsolve(input: Tensor, other: Tensor, dims: Any = None) -> Tensor:
    """X with ``tensordot(input, X, dims=X.ndim) = other``: input (*b, *x), other (*b) -> (*x).

    dims: dimensions of input that are moved to its end first. Raises ShapeError where the sizes of b and of x
    have different products, LinAlgError where input is singular.

    >>> fw.linalg.tensorsolve(2 * fw.eye(4).reshape(2, 2, 4), fw.ones(2, 2))
    tensor([0.5000, 0.5000, 0.5000, 0.5000])
    """
    A, B = promoted("tensorsolve", input=input, other=other)
    if dims is not None:
        moved = tuple(d % A.ndim for d in dims)
        A = permute_op.run(A, dims=tuple(d for d in range(A.ndim) if d not in moved) + moved)
    first, last = A.shape[:B.ndim], A.shape[B.ndim:]
    if first != B.shape:
        raise ShapeError(f"tensorsolve: other has shape {list(B.shape)}, the first dimensions of input are "
                         f"{list(first)}, and they must be equal; dims= moves others to the end")
    return reshape_op.run(solve(_square(A, first, last, "tensorsolve"),
                                reshape_op.run(B, shape=(B.numel(),))), shape=last)


@public(method=True, out=True)
def cholesky_inverse(input: Tensor, upper: bool = False) -> Tensor:
    """The inverse of ``L @ L.H`` from its factor L, or of ``U.H @ U`` if upper: (*, n, n) -> (*, n, n).

    >>> fw.cholesky_inverse(fw.tensor([[2.0]]))
    tensor([[0.2500]])
    """
    matrix(input, "cholesky_inverse", name="input")
    return cholesky_solve(eye(input, input.shape[-1]).expand(input.shape), input, upper)


# -- with a code where there is none ---------------------------------------------------------------
#
# The usual road is taken first. Only if it fails is every matrix looked at: those that fail are replaced by
# the identity, and their results by nan.


def _info(A: Any, bad: Any = None) -> Tensor:
    """The codes of all matrices, int32 (*): 0, or what ``bad`` says of one."""
    found = np.zeros(A.shape[:-2], np.int32)
    if bad is not None:
        arrays = A.detach().cpu().numpy()
        for at in np.ndindex(*found.shape):
            found[at] = bad(arrays[at])
    return from_array(found, A)


def _fails(function: Any, *args: Any) -> bool:
    try:
        function(*args)
    except np.linalg.LinAlgError:
        return True
    return False


def _zero_pivot(a: np.ndarray) -> int:
    """The step, from 1, at which elimination meets a pivot of 0; 0 if there is an inverse."""
    if not _fails(np.linalg.inv, a):
        return 0
    packed = lu_factor(wrap(a))[0]._array
    zeros = np.flatnonzero(np.diagonal(packed) == 0)
    return int(zeros[0]) + 1 if zeros.size else len(a)


def _indefinite_minor(a: np.ndarray) -> int:
    """The order of the first leading minor that is not positive; 0 if there is none."""
    return next((k for k in range(1, len(a) + 1) if _fails(np.linalg.cholesky, a[:k, :k])), 0)


def _tried(attempt: Any, A: Tensor, bad: Any, check_errors: bool) -> tuple[Tensor, Tensor]:
    try:
        return attempt(A), _info(A)
    except LinAlgError:
        if check_errors:
            raise
    info = _info(A, bad)
    good = column(column(info == 0))
    result = attempt(where_op.run(good, A, eye(A, A.shape[-1])))
    return where_op.run(good if result.ndim >= A.ndim else info == 0, result, float("nan")), info


@public("linalg", out=True)
def inv_ex(A: Tensor, *, check_errors: bool = False) -> InvEx:
    """The inverse of every matrix, nan where there is none, and int32 codes: (*, n, n) -> (*, n, n), (*).

    info: 0, or the step (from 1) at which elimination met a pivot of 0. check_errors: raise LinAlgError then.

    >>> fw.linalg.inv_ex(fw.zeros(2, 2)).info
    tensor(1, dtype=framework.int32)
    """
    return InvEx(*_tried(inv, matrix(A, "inv_ex"), _zero_pivot, check_errors))


@public("linalg", out=True)
def solve_ex(A: Tensor, B: Tensor, *, left: bool = True, check_errors: bool = False) -> SolveEx:
    """``linalg.solve`` with codes in place of errors: nan where A is singular.

    info: int32 (*), as in ``inv_ex``. check_errors: raise LinAlgError where it is not 0.

    >>> fw.linalg.solve_ex(fw.zeros(2, 2), fw.ones(2)).result
    tensor([nan, nan])
    """
    A, B = promoted("solve_ex", A=A, B=B)
    result, info = _tried(lambda M: solve(M, B, left=left), matrix(A, "solve_ex"), _zero_pivot, check_errors)
    return SolveEx(result, info)


@public("linalg", out=True)
def cholesky_ex(input: Tensor, *, upper: bool = False, check_errors: bool = False) -> CholeskyEx:
    """The Cholesky factor of every matrix, nan where there is none, and int32 codes: (*, n, n) -> same, (*).

    info: 0, or the order of the first leading minor that is not positive definite. check_errors: raise
    LinAlgError then.

    >>> fw.linalg.cholesky_ex(-fw.eye(2)).info
    tensor(1, dtype=framework.int32)
    """
    return CholeskyEx(*_tried(lambda M: cholesky(M, upper=upper), matrix(input, "cholesky_ex"),
                              _indefinite_minor, check_errors))


@public("linalg", out=True)
def lu_factor_ex(A: Tensor, *, pivot: bool = True, check_errors: bool = False) -> LUFactorEx:
    """``linalg.lu_factor`` and int32 codes: 0, or the first (from 1) diagonal element of U that is 0.

    A (*, m, n) -> (*, m, n), int32 (*, min(m, n)), int32 (*). check_errors: raise LinAlgError then.

    >>> fw.linalg.lu_factor_ex(fw.zeros(2, 2)).info
    tensor(1, dtype=framework.int32)
    """
    LU, pivots = lu_factor(A, pivot=pivot)
    diagonal: Any = LU.detach().diagonal(dim1=-2, dim2=-1) == 0  # type: ignore[attr-defined]
    first = diagonal.to(int32).argmax(-1) + 1 if diagonal.shape[-1] else diagonal.sum(-1)
    info = (diagonal.any(-1) * first).to(int32)
    if check_errors and bool((info != 0).any()):
        raise LinAlgError(f"lu_factor_ex: U has a 0 on its diagonal, info={info.tolist()}")
    return LUFactorEx(LU, pivots, info)
