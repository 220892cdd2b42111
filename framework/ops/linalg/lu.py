"""LU factorisation with row exchanges, and systems solved by it."""

import math
from typing import Any, NamedTuple

from ...dtypes import int32, int64
from ...errors import ShapeError
from ...tensor import Tensor
from ..index.scatter import gather_op, take_along_dim
from ..record.args import tensor_arg
from ..record.batched import leading
from ..record.constants import like
from ..record.op import Meta, Op
from ..record.public import public
from ..shape.broadcast import expand, take_size
from ..shape.diagonals import tril, tril_op, triu, triu_op
from ..shape.join import cat_op
from ..shape.slices import put_slice, slice_op
from . import cuda_lu
from .contract import product
from .factor import column, matrix, mirror, triangular_op, turned
from .matmul import in_one_batch, promoted, swap_last


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


def _factor_kernel(xp: Any, A: Any, *, pivot: bool) -> tuple:
    """Gaussian elimination: L and U, the exchanges of rows (from 1) and the order of rows they give."""
    *batch, m, n = A.shape
    count, k = math.prod(batch), min(m, n)
    A = A.reshape(count, m, n).copy()
    order = xp.broadcast_to(xp.arange(m), (count, m)).copy()
    pivots, each = xp.broadcast_to(xp.arange(1, k + 1, dtype="int32"), (count, k)).copy(), xp.arange(count)
    for i in range(k):
        p = xp.argmax(_size(xp, A[:, i:, i]), axis=1) + i if pivot else xp.full(count, i)
        pivots[:, i] = p + 1
        for rows in (A, order):
            kept = rows[each, p].copy()
            rows[each, p] = rows[:, i]
            rows[:, i] = kept
        top = A[:, i, i]
        A[:, i + 1:, i] /= xp.where(top == 0, xp.ones_like(top), top)[:, None]
        A[:, i + 1:, i + 1:] -= A[:, i + 1:, i, None] * A[:, i, None, i + 1:]
    return (A.reshape(*batch, m, n), pivots.reshape(*batch, k),
            order.reshape(*batch, m).astype("int64"))


def _factor_infer(A: Meta, *, pivot: bool) -> tuple[Meta, Meta, Meta]:
    *batch, m, n = A.shape
    return A, Meta((*batch, min(m, n)), int32), Meta((*batch, m), int64)


def _factor_vjp(g: Any, packed: Any, order: Any, pivot: bool) -> Any:
    """With L and U square, d(PA) = dL U + L dU; what lies beside them is A2 inv(U), or inv(L) A2."""
    m, n = packed.shape[-2:]
    k = min(m, n)

    def cut(x: Any, rest: bool = False) -> Any:
        part = slice(k, None) if rest else slice(0, k)
        return slice_op(x, key=(Ellipsis, part, slice(None)) if m > n else (Ellipsis, slice(None), part))

    square, first, beside = cut(packed), cut(g), None
    if m > n:
        beside = _over_upper(square, cut(g, True))
        first = first - triu_op(product(turned(cut(packed, True)), beside), k=0)
    elif n > m:
        beside = triangular_op(turned(square), cut(g, True), upper=True, unit=True)
        first = first - tril_op(product(beside, turned(cut(packed, True))), k=-1)
    lower = tril_op(square, k=-1)
    strict = tril_op(first, k=-1)
    phi = tril_op(strict + product(turned(lower), strict), k=-1)
    phi = phi + triu_op(product(triu_op(first, k=0), turned(triu_op(square, k=0))), k=0)
    total = _over_upper(square, triangular_op(turned(square), phi, upper=True, unit=True))
    if beside is not None:
        total = cat_op(total, beside, dim=total.ndim - (2 if m > n else 1))
    if not pivot:
        return total
    return gather_op(total, expand(column(order.argsort(-1)), size=total.shape), dim=total.ndim - 2)


def _over_upper(U: Any, x: Any) -> Any:
    """x over the conjugate transpose of the upper triangle."""
    return turned(triangular_op(U, turned(x), upper=True, unit=False))


factor_op = Op("lu_factor", "A", batch=leading, kernel=_factor_kernel, native="lu_factor", adjoint=True,
               device=cuda_lu.lu_factor, rules_round=False,
               outputs="packed pivots order", differentiable=1, infer=_factor_infer, vjp={"A": _factor_vjp})


def _lu(A: Any, pivot: bool, op: str) -> tuple[Any, Any, Any]:
    """LU (packed), pivots and the order of rows."""
    return factor_op.run(matrix(A, op, square=False), pivot=bool(pivot))  # type: ignore[return-value]


def factors(A: Any, pivot: bool, op: str) -> tuple[Any, Any]:
    """L and U in one matrix, and the exchanges of rows."""
    if not pivot:
        raise ValueError(f"{op}: pivot=False is not offered; linalg.lu has it")
    packed, pivots, _ = _lu(A, True, op)
    return packed, pivots


@public("linalg", out=True, autocast="float32")
def lu_factor(A: Tensor, *, pivot: bool = True) -> LUFactor:
    """L and U in one matrix, and the exchanges of rows: (*, m, n) -> (*, m, n), int32 (*, min(m, n)).

    Row i was exchanged with row ``pivots[i] - 1`` in step i. For ``lu_solve``. Raises LinAlgError in
    backward where A is singular; pivot=False is not offered here (ValueError): use ``lu``.

    >>> fw.linalg.lu_factor(fw.tensor([[1.0, 2.0], [2.0, 2.0]])).pivots
    tensor([2, 2], dtype=framework.int32)
    """
    return LUFactor(*factors(A, pivot, "lu_factor"))


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
    return _unpacked(packed, order if pivot else None)


def _unpacked(packed: Any, order: Any) -> LU:
    if order is not None:
        L, U, P = parts_op.run(packed, order)  # type: ignore[misc]
        return LU(P, L, U)
    m, n = packed.shape[-2:]
    k = min(m, n)
    L = tril(packed[..., :k], -1) + like(packed, lambda xp, dtype: xp.eye(m, k, dtype=dtype))
    return LU(packed.new_empty((0,)), L, triu(packed[..., :k, :]))


def _parts_kernel(xp: Any, packed: Any, order: Any) -> tuple:
    m, n = packed.shape[-2:]
    k, dtype = min(m, n), packed.dtype
    L = xp.tril(packed[..., :k], -1) + xp.eye(m, k, dtype=dtype)
    return L, xp.triu(packed[..., :k, :]), (order[..., None, :] == xp.arange(m)[:, None]).astype(dtype)


def _parts_infer(packed: Meta, order: Meta) -> tuple[Meta, Meta, Meta]:
    *batch, m, n = packed.shape
    k = min(m, n)
    return (Meta((*batch, m, k), packed.dtype), Meta((*batch, k, n), packed.dtype),
            Meta((*batch, m, m), packed.dtype))


def _parts_vjp(g: list, packed_shape: tuple) -> tuple:
    k, (gl, gu) = min(packed_shape[-2:]), g[:2]
    parts = []
    if gl is not None:
        parts.append(put_slice(tril_op(gl, k=-1), key=(Ellipsis, slice(0, k)), shape=packed_shape))
    if gu is not None:
        key = (Ellipsis, slice(0, k), slice(None))
        parts.append(put_slice(triu_op(gu, k=0), key=key, shape=packed_shape))
    return parts[0] if len(parts) == 1 else parts[0] + parts[1], None


# L, U and the matrix of an order of rows, of what a factorisation gives
parts_op = Op("lu_parts", "packed order", batch=leading, kernel=_parts_kernel, native="lu_parts",
              outputs="L U P", differentiable=2, infer=_parts_infer, vjp=_parts_vjp)


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


def _rows_at(x: Any, order: Any) -> Any:
    """The rows of matrices (*, n, k) in another order (*, n, 1)."""
    shape = x._array.shape
    if order._array.shape[:-1] != shape[:-1]:
        return take_along_dim(x, order, -2)
    places: Any = take_size(order, shape)
    if places.is_cuda:
        places = places.contiguous()  # once, which backward would do again
    return gather_op.run(x, places, dim=len(shape) - 2)


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
    if adjoint:
        packed = mirror(packed)
    if not left:
        B = swap_last(B)
    packed, B, order = in_one_batch(packed, B, order)
    if adjoint is left:  # the transposed system: U.T L.T P.T X = B
        below = swap_last(packed)
        X = triangular_op.run(below, B, upper=False, unit=False)
        X = triangular_op.run(below, X, upper=True, unit=True)
        X = _rows_at(X, order.argsort(-2))
    else:
        X = triangular_op.run(packed, _rows_at(B, order), upper=False, unit=True)
        X = triangular_op.run(packed, X, upper=True, unit=False)
    return X if left else swap_last(X)
