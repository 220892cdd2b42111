"""LU factorisation with row exchanges, and systems solved by it."""

import math
from typing import Any, NamedTuple

from ...dtypes import int32, int64
from ...errors import ShapeError
from ...tensor import Tensor
from ..index.scatter import take_along_dim
from ..record.args import tensor_arg
from ..record.batched import leading
from ..record.constants import like
from ..record.op import Meta, Op
from ..record.public import public
from ..shape.diagonals import tril, triu
from ..shape.join import cat
from .factor import column, eye, lower_mask, matrix, mirror, solve_op
from .matmul import promoted, swap_last
from .systems import _unit, solve


class LU(NamedTuple):
    """What ``lu`` gives."""

    P: Tensor
    L: Tensor
    U: Tensor


class LUFactor(NamedTuple):
    """What ``lu_factor`` gives."""

    LU: Tensor
    pivots: Tensor


def _size(xp: Any, x: Any) -> Any:
    """How LAPACK measures a pivot: of complex numbers the sum of both parts' absolute values."""
    return xp.abs(x.real) + xp.abs(x.imag) if x.dtype.kind == "c" else xp.abs(x)


def _pivot_kernel(xp: Any, A: Any) -> tuple:
    """Gaussian elimination with row exchanges: the exchanges (from 1) and the order of rows they give."""
    *batch, m, n = A.shape
    count, k = math.prod(batch), min(m, n)
    A = A.reshape(count, m, n).copy()
    order = xp.broadcast_to(xp.arange(m), (count, m)).copy()
    pivots, each = xp.zeros((count, k), "int32"), xp.arange(count)
    for i in range(k):
        p = xp.argmax(_size(xp, A[:, i:, i]), axis=1) + i
        pivots[:, i] = p + 1
        for rows in (A, order):
            kept = rows[each, p].copy()
            rows[each, p] = rows[:, i]
            rows[:, i] = kept
        top = A[:, i, i]
        A[:, i + 1:, i] /= xp.where(top == 0, xp.ones_like(top), top)[:, None]
        A[:, i + 1:, i + 1:] -= A[:, i + 1:, i, None] * A[:, i, None, i + 1:]
    return pivots.reshape(*batch, k), order.reshape(*batch, m).astype("int64")


def _pivot_infer(A: Meta) -> tuple[Meta, Meta]:
    *batch, m, n = A.shape
    return Meta((*batch, min(m, n)), int32), Meta((*batch, m), int64)


def _eliminate_kernel(xp: Any, A: Any) -> Any:
    A = A.copy()
    for i in range(A.shape[-1] - 1):
        top = A[..., i, i]
        A[..., i + 1:, i] /= xp.where(top == 0, xp.ones_like(top), top)[..., None]
        A[..., i + 1:, i + 1:] -= A[..., i + 1:, i, None] * A[..., i, None, i + 1:]
    return A


def _eliminate_vjp(g: Any, out: Any) -> Any:
    n = out.shape[-1]
    strict = lower_mask(out, n, 0.0)
    L, U = out * strict + eye(out, n), out * (1 - strict)
    phi = (swap_last(L) @ (g * strict)) * strict + ((g * (1 - strict)) @ swap_last(U)) * (1 - strict)
    return swap_last(solve_op(U, swap_last(solve_op(swap_last(L), phi))))


pivot_op = Op("lu_pivots", "A",
              batch=leading, kernel=_pivot_kernel, native="lu_pivots",
              outputs="pivots order", infer=_pivot_infer)
eliminate = Op("lu_eliminate", "A", batch=leading, kernel=_eliminate_kernel, native="lu_eliminate",
               infer=lambda A: A,
               vjp={"A": _eliminate_vjp})


def _lu(A: Any, pivot: bool, op: str) -> tuple[Any, Any, Any]:
    """LU (packed), pivots and the order of rows. What lies outside the leading square is solved for."""
    matrix(A, op, square=False)
    m, n = A.shape[-2:]
    k, order, pivots = min(m, n), None, None
    if pivot:
        pivots, order = pivot_op.run(A.detach())
        A = take_along_dim(A, column(order), -2)
    packed: Any = eliminate.run(A[..., :k, :k])
    if m > n:
        return cat([packed, solve(triu(packed), A[..., k:, :], left=False)], -2), pivots, order
    if n > m:
        return cat([packed, solve(_unit(tril(packed)), A[..., k:])], -1), pivots, order
    return packed, pivots, order


@public("linalg", out=True, autocast="float32")
def lu_factor(A: Tensor, *, pivot: bool = True) -> LUFactor:
    """L and U in one matrix, and the exchanges of rows: (*, m, n) -> (*, m, n), int32 (*, min(m, n)).

    Row i was exchanged with row ``pivots[i] - 1`` in step i. For ``lu_solve``. Raises LinAlgError in
    backward where A is singular; pivot=False is not offered here (ValueError): use ``lu``.

    >>> fw.linalg.lu_factor(fw.tensor([[1.0, 2.0], [2.0, 2.0]])).pivots
    tensor([2, 2], dtype=framework.int32)
    """
    if not pivot:
        raise ValueError("lu_factor: pivot=False is not offered; linalg.lu has it")
    packed, pivots, _ = _lu(tensor_arg(A, "lu_factor"), True, "lu_factor")
    return LUFactor(packed, pivots)


@public("linalg", out=True, autocast="float32")
def lu(A: Tensor, *, pivot: bool = True) -> LU:
    """``A = P @ L @ U``: a permutation, a lower triangle with ones on its diagonal, an upper triangle.

    A (*, m, n), P (*, m, m), L (*, m, k), U (*, k, n), k = min(m, n). pivot=False: no rows are exchanged
    and P is empty.

    >>> fw.linalg.lu(fw.tensor([[1.0, 2.0], [2.0, 2.0]])).U
    tensor([[2., 2.],
            [0., 1.]])
    """
    packed, _, order = _lu(tensor_arg(A, "lu"), pivot, "lu")
    return _unpacked(packed, order)


def _unpacked(packed: Any, order: Any) -> LU:
    m, n = packed.shape[-2:]
    k = min(m, n)
    L = tril(packed[..., :k], -1) + like(packed, lambda xp, dtype: xp.eye(m, k, dtype=dtype))
    if order is None:
        return LU(packed.new_empty((0,)), L, triu(packed[..., :k, :]))
    P = (order.unsqueeze(-2) == order.new_ones(()) * _count(order, m)).to(packed.dtype)  # type: ignore
    return LU(P, L, triu(packed[..., :k, :]))


def _count(order: Any, m: int) -> Any:
    """0 to m - 1 as a column."""
    return column(order.new_ones((m,)).cumsum(0) - 1)


def _order_kernel(xp: Any, pivots: Any, *, n: int) -> Any:
    order = xp.broadcast_to(xp.arange(n), (*pivots.shape[:-1], n)).astype("int64")
    for i in range(pivots.shape[-1]):
        p = pivots[..., i:i + 1].astype("int64") - 1
        moved = xp.take_along_axis(order, p, -1)
        xp.put_along_axis(order, p, order[..., i:i + 1], -1)
        order[..., i:i + 1] = moved
    return order


# the order of n rows that exchanges give
order_op = Op("lu_order", "pivots", batch=leading, kernel=_order_kernel, native="lu_order",
              infer=lambda pivots, *, n: Meta((*pivots.shape[:-1], n), int64))


def _undo(pivots: Any, n: int) -> Any:
    return order_op.run(pivots, n=n)


@public(out=True)
def lu_unpack(LU_data: Tensor, LU_pivots: Tensor, unpack_data: bool = True,
              unpack_pivots: bool = True) -> LU:
    """P, L and U of ``linalg.lu`` from what ``lu_factor`` gives: LU_data (*, m, n), LU_pivots (*, min(m, n)).

    What is not unpacked is empty.

    >>> fw.lu_unpack(*fw.linalg.lu_factor(fw.tensor([[1.0, 2.0], [2.0, 2.0]]))).L
    tensor([[1.0000, 0.0000],
            [0.5000, 1.0000]])
    """
    packed: Any = tensor_arg(LU_data, "lu_unpack", "LU_data")
    if packed.ndim < 2:
        raise ShapeError(f"lu_unpack: LU_data must be matrices (*, m, n), got shape {list(packed.shape)}")
    tensor_arg(LU_pivots, "lu_unpack", "LU_pivots")
    order = _undo(LU_pivots, packed.shape[-2]) if unpack_pivots else None
    P, L, U = _unpacked(packed, order)
    nothing = packed.new_empty((0,))
    return LU(P, L, U) if unpack_data else LU(P, nothing, nothing)


@public("linalg", out=True, autocast="float32")
def lu_solve(LU: Tensor, pivots: Tensor, B: Tensor, *, left: bool = True,
             adjoint: bool = False) -> Tensor:
    """X with ``A @ X = B`` from ``LU, pivots = lu_factor(A)``: LU (*, n, n), B (*, n, k).

    left=False: ``X @ A = B``; adjoint: A is transposed and conjugated.

    >>> LU, pivots = fw.linalg.lu_factor(fw.tensor([[1.0, 2.0], [2.0, 2.0]]))
    >>> fw.linalg.lu_solve(LU, pivots, fw.tensor([[3.0], [4.0]]))
    tensor([[1.],
            [1.]])
    """
    packed, B = promoted("lu_solve", LU=LU, B=B)
    matrix(packed, "lu_solve", name="LU")
    matrix(B, "lu_solve", square=False, name="B")
    order: Any = column(_undo(tensor_arg(pivots, "lu_solve", "pivots"), packed.shape[-1]))
    L, U = _unit(tril(packed)), triu(packed)
    if adjoint:
        L, U = mirror(L), mirror(U)
    if not left:
        B = swap_last(B)
    if adjoint is left:  # the transposed system: U.T L.T P.T X = B
        X = solve(swap_last(L), solve(swap_last(U), B))
        X = take_along_dim(X, order.argsort(-2), -2)
    else:
        X = solve(U, solve(L, take_along_dim(B, order, -2)))
    return X if left else swap_last(X)
