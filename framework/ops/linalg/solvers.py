"""More linear algebra: triangular systems, LU, condition, least squares, eigenvalues, matrix_exp.

LU's derivative follows S. Walter and L. Lehmann, "Algorithmic differentiation of linear algebra
functions", 2010; that of the matrix exponential is a block of the exponential of a block matrix
(I. Najfeld and T. Havel, "Derivatives of the matrix exponential and their computation", 1995); that of
eigenvectors is in C. Boeddeker et al., "On the computation of complex-valued gradients", 2017.
"""

import math
from typing import Any, NamedTuple

import numpy as np

from ...dtypes import BY_NUMPY, int32, int64
from ...errors import ShapeError
from ...tensor import Tensor
from ..index.scatter import take_along_dim
from ..pointwise.complex_numbers import real_op
from ..record.args import one_dim, tensor_arg
from ..record.constants import like
from ..record.op import Meta, Op
from ..record.public import public
from ..reduce.reduce import over
from ..shape.arrange import tril, triu
from ..shape.join import cat
from ..shape.view import diagonal as diagonal_
from ..shape.view import diagonal_op, put_slice, slice_op
from .factor import (
    check_phase,
    column,
    eye,
    imaginary_diagonal,
    lower_mask,
    matrix,
    mirror,
    row,
    solve_op,
    turned,
)
from .linalg import inv, matrix_norm, solve, svdvals
from .matmul import promoted, swap_last
from .rank import matrix_rank, pinv


class LU(NamedTuple):
    """What ``lu`` gives."""

    P: Tensor
    L: Tensor
    U: Tensor


class LUFactor(NamedTuple):
    """What ``lu_factor`` gives."""

    LU: Tensor
    pivots: Tensor


class Lstsq(NamedTuple):
    """What ``lstsq`` gives."""

    solution: Tensor
    residuals: Tensor
    rank: Tensor
    singular_values: Tensor


class Eig(NamedTuple):
    """What ``eig`` gives."""

    eigenvalues: Tensor
    eigenvectors: Tensor


# -- triangular systems ----------------------------------------------------------------------------


def _unit(A: Any) -> Any:
    """A with ones on its diagonal."""
    one = eye(A, A.shape[-1])
    return A * (1 - one) + one


@public("linalg", out=True)
def solve_triangular(input: Tensor, B: Tensor, *, upper: bool, left: bool = True,
                     unitriangular: bool = False) -> Tensor:
    """X with ``A @ X = B`` (or ``X @ A = B`` if not left) for triangular A = input (*, n, n) and B (*, n, k).

    Only the named triangle of A is read; unitriangular: its diagonal counts as ones. Batches broadcast.
    Raises LinAlgError where there is a 0 on the diagonal.

    >>> A = fw.tensor([[2.0, 0.0], [1.0, 4.0]])
    >>> fw.linalg.solve_triangular(A, fw.tensor([[2.0], [5.0]]), upper=False)
    tensor([[1.],
            [1.]])
    """
    A, B = promoted("solve_triangular", input=input, B=B)
    matrix(A, "solve_triangular", name="input")
    matrix(B, "solve_triangular", square=False, name="B")
    A = triu(A) if upper else tril(A)
    return solve(_unit(A) if unitriangular else A, B, left=left)


@public(method=True, out=True)
def cholesky_solve(input: Tensor, input2: Tensor, upper: bool = False) -> Tensor:
    """X with ``A @ X = input`` where A = L @ L.H, or L.H @ L if upper, and L = input2.

    Shapes: (*, n, k), (*, n, n) -> (*, n, k).

    >>> fw.cholesky_solve(fw.tensor([[4.0]]), fw.tensor([[2.0]]))
    tensor([[1.]])
    """
    B, L = promoted("cholesky_solve", input=input, input2=input2)
    matrix(B, "cholesky_solve", square=False, name="input")
    L = turned(triu(matrix(L, "cholesky_solve", name="input2"))) if upper else tril(
        matrix(L, "cholesky_solve", name="input2"))
    return solve(turned(L), solve(L, B))


# -- LU --------------------------------------------------------------------------------------------


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


pivot_op = Op("lu_pivots", "A", kernel=_pivot_kernel, outputs="pivots order", infer=_pivot_infer)
eliminate = Op("lu_eliminate", "A", kernel=_eliminate_kernel, infer=lambda A: A,
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


@public("linalg", out=True)
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


@public("linalg", out=True)
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


def _undo(pivots: Any, n: int) -> Any:
    """The order of rows that the exchanges give."""
    rows = pivots.to(int64) - 1
    start = _count(rows, n).squeeze(-1).expand(*rows.shape[:-1], n).contiguous()
    for i in range(rows.shape[-1]):
        p = rows[..., i:i + 1]
        moved = start.gather(-1, p)
        start = start.scatter(-1, p, start[..., i:i + 1])
        start = cat([start[..., :i], moved, start[..., i + 1:]], -1)
    return start


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


@public("linalg", out=True)
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


# -- condition, least squares ----------------------------------------------------------------------


@public("linalg", out=True, also="input=A")
def cond(A: Tensor, p: Any = None) -> Tensor:
    """The condition number ``|A| * |inv(A)|`` in the matrix norm p: (*, n, n) -> (*).

    p None or 2: the largest by the smallest singular value, also for (*, m, n); -2: the inverse of that;
    "fro", "nuc", inf, -inf, 1, -1: as in ``matrix_norm``.

    >>> fw.linalg.cond(fw.tensor([[2.0, 0.0], [0.0, 1.0]]))
    tensor(2.)
    """
    if p in (None, 2, -2):
        s: Any = svdvals(matrix(A, "cond", square=False))
        return s[..., -1] / s[..., 0] if p == -2 else s[..., 0] / s[..., -1]
    matrix(A, "cond")
    return matrix_norm(A, p) * matrix_norm(inv(A), p)  # type: ignore[operator]


@public("linalg", out=True)
def lstsq(input: Tensor, b: Tensor, rcond: float | None = None, *, driver: str | None = None) -> Lstsq:
    """The X that makes ``|A @ X - B|`` smallest, the least of several: A = input (*, m, n), B = b (*, m, k).

    Computed and differentiated as ``pinv(A, rtol=rcond) @ B``. residuals (*, k): the squared errors, empty
    unless m > n and every rank is n; rank (*); singular_values: those of A for drivers "gelsd" and
    "gelss", else empty.

    >>> fw.linalg.lstsq(fw.tensor([[1.0], [1.0]]), fw.tensor([[1.0], [3.0]])).solution
    tensor([[2.0000]])
    """
    if driver not in (None, "gels", "gelsy", "gelsd", "gelss"):
        raise ValueError(f"lstsq: driver must be gels, gelsy, gelsd or gelss, got {driver!r}")
    A, B = promoted("lstsq", input=input, b=b)
    matrix(A, "lstsq", square=False, name="input")
    if B.shape == A.shape[:-1]:
        found = lstsq(A, column(B), rcond, driver=driver)
        return Lstsq(found.solution[..., 0], *found[1:])
    matrix(B, "lstsq", square=False, name="b")
    m, n = A.shape[-2:]
    if B.shape[-2] != m:
        raise ShapeError(f"lstsq: input of shape {list(A.shape)} and b of shape {list(B.shape)} must have as "
                         f"many rows")
    X: Any = pinv(A, rtol=rcond) @ B  # type: ignore[operator]
    rank: Any = matrix_rank(A, rtol=rcond)
    residuals = (abs(A @ X - B) ** 2).sum(-2) if m > n and bool((rank == n).all()) else A.new_empty((0,))
    values = svdvals(A.detach()) if driver in ("gelsd", "gelss") else A.new_empty((0,))
    return Lstsq(X, residuals, rank, values)


# -- eigenvalues of any matrix ---------------------------------------------------------------------


def _eig_kernel(xp: Any, A: Any) -> tuple:
    to = xp.result_type(A.dtype, xp.complex64)
    if hasattr(xp.linalg, "eig"):
        values, vectors = xp.linalg.eig(A)
    else:  # older CuPy: by way of the host
        values, vectors = (xp.asarray(part) for part in np.linalg.eig(xp.asnumpy(A)))
    return values.astype(to), vectors.astype(to)


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


eig_op = Op("eig", "A", kernel=_eig_kernel, outputs="eigenvalues V", infer=_eig_infer, vjp=_eig_vjp)


@public("linalg", op=eig_op, out=True)
def eig(input: Tensor) -> Eig:
    """Eigenvalues and eigenvectors (columns of length 1), complex, in no order.

    A (*, n, n) -> (*, n), (*, n, n). The gradient of the vectors needs distinct eigenvalues and a result that
    does not depend on their phases (AutogradError). For symmetric and Hermitian matrices use ``eigh``.

    >>> fw.linalg.eig(fw.tensor([[0.0, 1.0], [-1.0, 0.0]])).eigenvalues
    tensor([0.+1.j, 0.-1.j])
    """
    return Eig(*eig_op.run(matrix(input, "eig", name="input")))


@public("linalg", op=eig_op, out=True)
def eigvals(input: Tensor) -> Tensor:
    """The eigenvalues of every matrix, complex, in no order: (*, n, n) -> (*, n).

    >>> fw.linalg.eigvals(fw.tensor([[2.0, 0.0], [0.0, 1.0]])).shape
    (2,)
    """
    return eig(input).eigenvalues


# -- the matrix exponential ------------------------------------------------------------------------

_DEGREE = 15  # of the Taylor polynomial, for norms up to 1/2: its error is below 1e-17


def _exp_kernel(xp: Any, A: Any) -> Any:
    if not A.size:
        return A.copy()
    largest = float(xp.abs(A).sum(axis=-2).max())
    squarings = max(0, math.ceil(math.log2(largest / 0.5))) if 0.5 < largest < math.inf else 0
    A = A / 2 ** squarings
    one = xp.broadcast_to(xp.eye(A.shape[-1], dtype=A.dtype), A.shape)
    out = one
    for k in range(_DEGREE, 0, -1):
        out = one + xp.matmul(A, out) / k
    for _ in range(squarings):
        out = xp.matmul(out, out)
    return out


def _exp_vjp(g: Any, A: Any) -> Any:
    """The upper right block of exp([[A.T, g], [0, A.T]])."""
    n, shape = A.shape[-1], (*A.shape[:-2], 2 * A.shape[-1], 2 * A.shape[-1])
    first, second = slice(0, n), slice(n, 2 * n)
    At = swap_last(A)
    block = (put_slice(At, key=(Ellipsis, first, first), shape=shape)
             + put_slice(At, key=(Ellipsis, second, second), shape=shape)
             + put_slice(g, key=(Ellipsis, first, second), shape=shape))
    return slice_op(matrix_exp_op(block), key=(Ellipsis, first, second))


matrix_exp_op = Op("matrix_exp", "A", kernel=_exp_kernel, infer=lambda A: A, vjp={"A": _exp_vjp})


@public(method=True, op=matrix_exp_op, out=True)
def matrix_exp(input: Tensor) -> Tensor:
    """The exponential ``sum_k A**k / k!`` of every matrix: (*, n, n) -> (*, n, n).

    By scaling, a Taylor polynomial, and squaring; a batch shares the scaling of its largest matrix.

    >>> fw.matrix_exp(fw.tensor([[0.0, 1.0], [0.0, 0.0]]))
    tensor([[1., 1.],
            [0., 1.]])
    """
    return matrix_exp_op.run(matrix(input, "matrix_exp", name="input"))


public("linalg", name="matrix_exp")(matrix_exp)


# -- small ones ------------------------------------------------------------------------------------


@public("linalg", out=True)
def vecdot(x: Tensor, y: Tensor, *, dim: int = -1) -> Tensor:
    """The dot products ``sum(conj(x) * y)`` along ``dim``; shapes broadcast.

    >>> fw.linalg.vecdot(fw.tensor([1.0, 2.0]), fw.tensor([3.0, 4.0]))
    tensor(11.)
    """
    a, b = promoted("vecdot", x=x, y=y)
    product = mirror(a) * b  # type: ignore[operator]
    return product.sum(one_dim(dim, product.ndim, "vecdot"))


@public("linalg", name="diagonal")
def _diagonal(A: Tensor, *, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Tensor:
    """The diagonal of every matrix, a view: (*, m, n) -> (*, min(m, n)) for offset 0.

    >>> fw.linalg.diagonal(fw.tensor([[1.0, 2.0], [3.0, 4.0]]))
    tensor([1., 4.])
    """
    return diagonal_(tensor_arg(A, "diagonal", "A"), offset, dim1, dim2)
