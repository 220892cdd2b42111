"""Symmetric and Hermitian matrices as ``P L D L.T P.T`` with 1 x 1 and 2 x 2 blocks in D, and their systems.

J. Bunch, L. Kaufman, "Some stable methods for calculating inertia and solving symmetric linear systems",
1977, in the packed form of LAPACK's ``sytrf`` and ``hetrf`` for lower triangles: the exchanges of a step are
not made in the columns before it.
"""

import math
from typing import Any, NamedTuple

from ...dtypes import int32
from ...errors import LinAlgError, ShapeError
from ...tensor import Tensor
from ..record.args import tensor_arg
from ..record.batched import leading
from ..record.op import Meta, Op
from ..record.public import public
from ..shape.broadcast import broadcast_shape
from ..shape.view import take_shape
from . import cuda_ldl
from .factor import checked, column, matrix
from .lu import _size
from .matmul import in_one_batch, promoted

_ALPHA = (1 + math.sqrt(17)) / 8  # keeps the growth of elements smallest


class LDLFactor(NamedTuple):
    """What ``ldl_factor`` gives."""

    LD: Tensor
    pivots: Tensor


class LDLFactorEx(NamedTuple):
    """What ``ldl_factor_ex`` gives."""

    LD: Tensor
    pivots: Tensor
    info: Tensor


def _pivot(xp: Any, A: Any, k: int) -> tuple[int, int]:
    """Which row comes to the end of the block that starts at k, and the block's size; 0 for none at all."""
    own, below = _size(xp, A[k, k]), _size(xp, A[k + 1:, k])
    column_max = below.max() if below.size else 0.0
    if max(own, column_max) == 0 or own != own:
        return k, 0
    if own >= _ALPHA * column_max:
        return k, 1
    far = k + 1 + int(xp.argmax(below))
    row = _size(xp, A[far, k:])
    row[far - k] = 0
    row_max = row.max()
    if own >= _ALPHA * column_max * (column_max / row_max):
        return k, 1
    return far, 1 if _size(xp, A[far, far]) >= _ALPHA * row_max else 2


def _factored(xp: Any, A: Any, turn: Any) -> tuple[Any, list[int], int]:
    """LD, pivots and info of one whole matrix; ``turn`` conjugates where it is Hermitian."""
    n, k, info = len(A), 0, 0
    pivots = [0] * n
    while k < n:
        found, size = _pivot(xp, A, k)
        end = k + max(size, 1)
        if found != end - 1:
            for part in (A[k:, k:], A[k:, k:].T):
                part[[end - 1 - k, found - k]] = part[[found - k, end - 1 - k]]
        if size:
            block, rest = A[k:end, k:end], A[end:, k:end].copy()
            A[end:, k:end] = rest / block[0, 0] if size == 1 else rest @ xp.linalg.inv(block)
            A[end:, end:] -= A[end:, k:end] @ turn(rest).T
        else:
            info = info or k + 1
        for i in range(k, end):
            pivots[i] = -(found + 1) if size == 2 else found + 1
        k = end
    return xp.tril(A), pivots, info


def _ldl_kernel(xp: Any, A: Any, *, hermitian: bool) -> tuple:
    *batch, n, _ = A.shape
    turn = xp.conj if hermitian else (lambda x: x)
    lower = xp.tril(A, -1)
    whole = lower + turn(lower.swapaxes(-1, -2)) + A * xp.eye(n, dtype=A.dtype)
    if hermitian and A.dtype.kind == "c":
        whole[..., range(n), range(n)] = whole[..., range(n), range(n)].real
    found = [_factored(xp, one, turn) for one in whole.reshape(math.prod(batch), n, n)]
    LD = xp.stack([f[0] for f in found]) if found else whole
    return (LD.reshape(A.shape), xp.asarray([f[1] for f in found], "int32").reshape(*batch, n),
            xp.asarray([f[2] for f in found], "int32").reshape(tuple(batch)))


ldl_op = Op("ldl_factor", "A", batch=leading, outputs="LD pivots info", differentiable=1, vjp="undefined",
            kernel=_ldl_kernel, native="ldl_factor", device=cuda_ldl.ldl_factor,
            infer=lambda A, *, hermitian: (A, Meta(A.shape[:-1], int32), Meta(A.shape[:-2], int32)))


def _solved(LD: Any, pivots: list[int], B: Any, turn: Any, inverse: Any) -> Any:
    """The solution for one matrix, by ``sytrs``: L, then D, then L.T, with the exchanges between."""
    n = len(LD)
    steps, k = [], 0
    while k < n:
        end = k + (1 if pivots[k] > 0 else 2)
        steps.append((k, end, abs(pivots[k]) - 1))
        k = end
    for k, end, found in steps:
        B[[end - 1, found]] = B[[found, end - 1]]
        B[end:] -= LD[end:, k:end] @ B[k:end]
        block = LD[k:end, k:end].copy()
        if end - k == 2:
            block[0, 1] = turn(block[1, 0])
        B[k:end] = inverse(block) @ B[k:end]
    for k, end, found in reversed(steps):
        B[k:end] -= turn(LD[end:, k:end]).T @ B[end:]
        B[[end - 1, found]] = B[[found, end - 1]]
    return B


def _ldl_solve_kernel(xp: Any, LD: Any, pivots: Any, B: Any, *, hermitian: bool) -> Any:
    n, k = B.shape[-2:]
    batch = broadcast_shape((LD.shape[:-2], B.shape[:-2]), "ldl_solve")
    count = math.prod(batch)
    turn = xp.conj if hermitian else (lambda x: x)
    every = xp.broadcast_to(LD, (*batch, n, n)).reshape(count, n, n)
    places = xp.broadcast_to(pivots, (*batch, n)).reshape(count, n).tolist()
    out = xp.broadcast_to(B, (*batch, n, k)).reshape(count, n, k).copy()
    for one, at, x in zip(every, places, out):
        _solved(one, at, x, turn, xp.linalg.inv)
    return out.reshape(*batch, n, k)


ldl_solve_op = Op("ldl_solve", "LD pivots B", vjp="undefined", native="ldl_solve",
                  device=cuda_ldl.ldl_solve, kernel=checked(cuda_ldl.SINGULAR)(_ldl_solve_kernel),
                  infer=lambda LD, pivots, B, *, hermitian: Meta(
                      (*broadcast_shape((LD.shape[:-2], B.shape[:-2]), "ldl_solve"), *B.shape[-2:]), B.dtype))


@public("linalg", op=ldl_op, out=True, also="input=A", autocast="float32")
def ldl_factor_ex(A: Tensor, *, hermitian: bool = False, check_errors: bool = False) -> LDLFactorEx:
    """``ldl_factor`` with ``info`` in place of an error: 0, or the place (from 1) of a block of D that is 0.

    check_errors: raise LinAlgError all the same.

    >>> fw.linalg.ldl_factor_ex(fw.zeros(2, 2)).info
    tensor(1, dtype=framework.int32)
    """
    found = LDLFactorEx(*ldl_op.run(matrix(A, "ldl_factor"), hermitian=bool(hermitian)))
    if check_errors and bool((found.info != 0).any()):  # type: ignore[attr-defined]
        raise LinAlgError("ldl_factor: D has a block of zeros: the matrix is singular; use ldl_factor_ex()")
    return found


@public("linalg", out=True, also="input=A", autocast="float32")
def ldl_factor(A: Tensor, *, hermitian: bool = False) -> LDLFactor:
    """L and D of symmetric matrices in one, and the exchanges of rows: (*, n, n) -> (*, n, n), int32 (*, n).

    For ``ldl_solve``. Only the lower triangle is read; hermitian: the upper one is its conjugate. A negative
    pivot marks a 2 x 2 block of D. Raises LinAlgError where a block is 0; backward through it raises.

    >>> fw.linalg.ldl_factor(fw.tensor([[4.0, 2.0], [2.0, 3.0]])).LD
    tensor([[4.0000, 0.0000],
            [0.5000, 2.0000]])
    """
    return LDLFactor(*ldl_factor_ex(A, hermitian=hermitian, check_errors=True)[:2])


@public("linalg", op=ldl_solve_op, out=True, autocast="float32")
def ldl_solve(LD: Tensor, pivots: Tensor, B: Tensor, *, hermitian: bool = False) -> Tensor:
    """X with ``A @ X = B`` from ``LD, pivots = ldl_factor(A)``: LD (*, n, n), B (*, n, k) -> (*, n, k).

    Batches broadcast. Backward through it raises; ``solve`` is differentiable. Raises ShapeError where the
    shapes do not fit.

    >>> LD, pivots = fw.linalg.ldl_factor(fw.tensor([[4.0, 2.0], [2.0, 3.0]]))
    >>> fw.linalg.ldl_solve(LD, pivots, fw.tensor([[6.0], [5.0]]))
    tensor([[1.],
            [1.]])
    """
    packed, B = promoted("ldl_solve", LD=LD, B=B)
    matrix(packed, "ldl_solve", name="LD")
    matrix(B, "ldl_solve", square=False, name="B")
    *batch, n = packed.shape[:-1]
    if list(tensor_arg(pivots, "ldl_solve", "pivots").shape) != [*batch, n] or B.shape[-2] != n:
        raise ShapeError(f"ldl_solve: LD of shape {list(packed.shape)} needs pivots {[*batch, n]} and "
                         f"B (*, {n}, k), got {list(pivots.shape)} and {list(B.shape)}")
    packed, B, places = in_one_batch(packed, B, column(pivots))
    return ldl_solve_op.run(packed, take_shape(places, places.shape[:-1]), B, hermitian=bool(hermitian))
