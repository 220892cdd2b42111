"""Inverses, solutions and factors with a code in place of an error where there is none."""

from typing import Any, NamedTuple

import numpy as np

from ...dtypes import int32
from ...errors import LinAlgError
from ...seam import settled
from ...tensor import Tensor, wrap
from ..convert.cast import from_array
from ..pointwise.choose import where_op
from ..record.batched import leading
from ..record.op import Meta, Op
from ..record.public import public
from .decompositions import cholesky
from .factor import column, eye, matrix
from .lu import factors, lu_factor
from .matmul import promoted
from .systems import inv, solve


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


def _first_zero(xp: Any, LU: Any) -> Any:
    zero = LU.diagonal(0, -2, -1) == 0
    if not zero.shape[-1]:
        return xp.zeros(zero.shape[:-1], "int32")
    return xp.where(zero.any(axis=-1), zero.argmax(axis=-1) + 1, 0).astype("int32")


# the first element of U's diagonal, from 1, that is 0; 0 where none is
zero_pivot_op = Op("lu_zero_pivot", "LU", batch=leading, kernel=_first_zero, native="lu_zero_pivot",
                   infer=lambda LU: Meta(LU.shape[:-2], int32))


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
        result = attempt(A)
        settled((result,))
        return result, _info(A)
    except LinAlgError:
        if check_errors:
            raise
    info = _info(A, bad)
    good = column(column(info == 0))
    result = attempt(where_op.run(good, A, eye(A, A.shape[-1])))
    return where_op.run(good if result.ndim >= A.ndim else info == 0, result, float("nan")), info


@public("linalg", out=True, autocast="float32")
def inv_ex(A: Tensor, *, check_errors: bool = False) -> InvEx:
    """The inverse of every matrix, nan where there is none, and int32 codes: (*, n, n) -> (*, n, n), (*).

    info: 0, or the step (from 1) at which elimination met a pivot of 0. check_errors: raise LinAlgError then.

    >>> fw.linalg.inv_ex(fw.zeros(2, 2)).info
    tensor(1, dtype=framework.int32)
    """
    return InvEx(*_tried(inv, matrix(A, "inv_ex"), _zero_pivot, check_errors))


@public("linalg", out=True, autocast="float32")
def solve_ex(A: Tensor, B: Tensor, *, left: bool = True, check_errors: bool = False) -> SolveEx:
    """``linalg.solve`` with codes in place of errors: nan where A is singular.

    info: int32 (*), as in ``inv_ex``. check_errors: raise LinAlgError where it is not 0.

    >>> fw.linalg.solve_ex(fw.zeros(2, 2), fw.ones(2)).result
    tensor([nan, nan])
    """
    A, B = promoted("solve_ex", A=A, B=B)
    result, info = _tried(lambda M: solve(M, B, left=left), matrix(A, "solve_ex"), _zero_pivot, check_errors)
    return SolveEx(result, info)


@public("linalg", out=True, autocast="float32")
def cholesky_ex(input: Tensor, *, upper: bool = False, check_errors: bool = False) -> CholeskyEx:
    """The Cholesky factor of every matrix, nan where there is none, and int32 codes: (*, n, n) -> same, (*).

    info: 0, or the order of the first leading minor that is not positive definite. check_errors: raise
    LinAlgError then.

    >>> fw.linalg.cholesky_ex(-fw.eye(2)).info
    tensor(1, dtype=framework.int32)
    """
    return CholeskyEx(*_tried(lambda M: cholesky(M, upper=upper), matrix(input, "cholesky_ex"),
                              _indefinite_minor, check_errors))


@public("linalg", out=True, autocast="float32")
def lu_factor_ex(A: Tensor, *, pivot: bool = True, check_errors: bool = False) -> LUFactorEx:
    """``linalg.lu_factor`` and int32 codes: 0, or the first (from 1) diagonal element of U that is 0.

    A (*, m, n) -> (*, m, n), int32 (*, min(m, n)), int32 (*). check_errors: raise LinAlgError then.

    >>> fw.linalg.lu_factor_ex(fw.zeros(2, 2)).info
    tensor(1, dtype=framework.int32)
    """
    LU, pivots = factors(A, pivot, "lu_factor_ex")
    info: Any = zero_pivot_op.run(LU)
    if check_errors and bool((info != 0).any()):
        raise LinAlgError(f"lu_factor_ex: U has a 0 on its diagonal, info={info.tolist()}")
    return LUFactorEx(LU, pivots, info)
