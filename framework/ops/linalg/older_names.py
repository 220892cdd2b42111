"""Factorisations under older names and LAPACK's: reflections, lu, qr, svd with V, few singular values."""

from typing import Any, NamedTuple

from ...errors import ShapeError
from ...random import normal_array
from ...tensor import Tensor, wrap
from ..record.args import tensor_arg
from ..record.batched import leading
from ..record.op import Meta, Op
from ..record.public import public
from ..reduce.sums import mean
from ..shape.broadcast import take_size
from .decompositions import QR
from .decompositions import qr as reduced_qr
from .decompositions import svd as linalg_svd
from .factor import column, eye, matrix, svd_op, turned, use_kernel
from .lu import _lu
from .lu import lu_solve as linalg_lu_solve
from .matmul import in_one_batch, promoted, swap_last
from .systems import triangular_op


class USV(NamedTuple):
    """What ``svd`` and its relatives of few values give."""

    U: Tensor
    S: Tensor
    V: Tensor


class TriangularSolve(NamedTuple):
    """What ``triangular_solve`` gives."""

    solution: Tensor
    cloned_coefficient: Tensor


class Reflections(NamedTuple):
    """What ``geqrf`` gives."""

    a: Tensor
    tau: Tensor


@public(method=True, autocast="float32")
def lu(input: Tensor, pivot: bool = True, get_infos: bool = False) -> tuple[Tensor, ...]:
    """(LU, pivots) of ``linalg.lu_factor``, and with get_infos its int32 codes: (*, m, n) -> the same.

    pivots: int32 (*, min(m, n)); without pivot they exchange nothing.

    >>> fw.lu(fw.tensor([[1.0, 2.0], [2.0, 2.0]]))[1]
    tensor([2, 2], dtype=framework.int32)
    """
    packed, pivots, _ = _lu(tensor_arg(input, "lu"), pivot, "lu")
    k = min(packed.shape[-2:])
    if pivots is None:
        pivots = (packed.new_ones((k,)).cumsum(0).int()).expand(*packed.shape[:-2], k)
    if not get_infos:
        return packed, pivots
    zero = packed.detach().diagonal(dim1=-2, dim2=-1) == 0
    first = zero.int().argmax(-1) + 1 if k else packed.new_zeros(packed.shape[:-2])
    return packed, pivots, (zero.any(-1) * first).int()


@public(method=True, out=True, autocast="float32")
def lu_solve(input: Tensor, LU_data: Tensor, LU_pivots: Tensor) -> Tensor:
    """X with ``A @ X = input`` from what ``lu`` gives of A: (*, n, k), (*, n, n) -> (*, n, k).

    >>> fw.lu_solve(fw.tensor([[3.0], [4.0]]), *fw.lu(fw.tensor([[1.0, 2.0], [2.0, 2.0]])))
    tensor([[1.],
            [1.]])
    """
    return linalg_lu_solve(LU_data, LU_pivots, tensor_arg(input, "lu_solve"))


@public(method=True, out=True, autocast="float32")
def qr(input: Tensor, some: bool = True) -> QR:
    """Q and R of ``linalg.qr``: "reduced" where some, else "complete"; (*, m, n).

    >>> fw.qr(fw.tensor([[3.0], [4.0]])).R.abs()
    tensor([[5.]])
    """
    return reduced_qr(tensor_arg(input, "qr"), "reduced" if some else "complete")


@public(method=True, out=True, autocast="float32")
def svd(input: Tensor, some: bool = True, compute_uv: bool = True) -> USV:
    """``input = U @ diag(S) @ V.H``: (*, m, n) -> (*, m, k), (*, k), (*, n, k), k = min(m, n).

    Not some: U (*, m, m) and V (*, n, n). Without compute_uv those are zeros. ``linalg.svd`` gives V.H.

    >>> fw.svd(fw.tensor([[3.0, 0.0], [0.0, 4.0]])).S
    tensor([4., 3.])
    """
    if not compute_uv:
        *batch, m, n = matrix(input, "svd", square=False, name="input").shape
        S = linalg_svd(input, full_matrices=False).S
        return USV(input.new_zeros((*batch, m, m)), S, input.new_zeros((*batch, n, n)))  # type: ignore
    U, S, Vh = svd_op.run(matrix(input, "svd", square=False, name="input"), full=not some)
    return USV(U, S, turned(Vh))


@public(method=True, out=True, autocast="float32")
def triangular_solve(input: Tensor, A: Tensor, upper: bool = True, transpose: bool = False,
                     unitriangular: bool = False) -> TriangularSolve:
    """X with ``A @ X = input`` for a triangle of A, or of A.T if transpose, and that A: (*, n, k), (*, n, n).

    unitriangular: the diagonal counts as ones. ``linalg.solve_triangular`` does the same.

    >>> fw.triangular_solve(fw.tensor([[2.0]]), fw.tensor([[4.0]])).solution
    tensor([[0.5000]])
    """
    B, T = matrix(input, "triangular_solve", square=False, name="input"), matrix(A, "triangular_solve")
    if transpose:
        T = swap_last(T)
    if T._array.dtype is not B._array.dtype:
        T, B = promoted("triangular_solve", A=T, input=B)
    T, B = in_one_batch(T, B)
    solution = triangular_op.run(T, B, upper=bool(upper) is not bool(transpose), unit=bool(unitriangular))
    batch = solution._array.shape[:-2]
    own = A if batch == A._array.shape[:-2] else take_size(A, batch + A._array.shape[-2:])
    return TriangularSolve(solution, own.clone())  # type: ignore[attr-defined]


def _reflections(xp: Any, A: Any) -> tuple[Any, Any]:
    turned_rows, tau = xp.linalg.qr(A, mode="raw")
    return xp.swapaxes(turned_rows, -1, -2), tau


geqrf_op = Op("geqrf", "A", batch=leading, kernel=_reflections, native="geqrf", outputs="a tau",
              vjp="undefined", infer=lambda A: (A, Meta((*A.shape[:-2], min(A.shape[-2:])), A.dtype)))


@public(method=True, op=geqrf_op, out=True, autocast="float32")
def geqrf(input: Tensor) -> Reflections:
    """R and the reflections that ``linalg.householder_product`` makes Q of: (*, m, n) -> (*, m, n), (*, k).

    R is the upper triangle of ``a``, the reflections stand below it; k = min(m, n). Backward through it
    raises: ``linalg.qr`` has a derivative.

    >>> a, tau = fw.geqrf(fw.tensor([[3.0], [4.0]]))
    >>> (fw.linalg.householder_product(a, tau) @ a[:1]).round()
    tensor([[3.],
            [4.]])
    """
    return Reflections(*geqrf_op.run(matrix(input, "geqrf", square=False, name="input")))


@public(method=True, out=True, autocast="float32")
def ormqr(input: Tensor, input2: Tensor, input3: Tensor, left: bool = True,
          transpose: bool = False) -> Tensor:
    """``Q @ input3``, or ``input3 @ Q`` if not left: Q (*, m, m) is the product of ``geqrf``'s reflections.

    input (*, m, k), input2 (their tau) (*, k), input3 (*, m, n), or (*, n, m) if not left. transpose: Q.H in
    place of Q.
    Raises ShapeError where the shapes do not fit.

    >>> fw.ormqr(fw.zeros(2, 1), fw.tensor([2.0]), fw.tensor([[3.0], [4.0]]))
    tensor([[-3.],
            [ 4.]])
    """
    A, tau, C = promoted("ormqr", input=input, input2=input2, input3=input3)
    matrix(A, "ormqr", square=False, name="input"), matrix(C, "ormqr", square=False, name="input3")
    m, k = A.shape[-2], tau.shape[-1] if tau.ndim else 0
    if not left:
        C = turned(C)
    if tau.shape[:-1] != A.shape[:-2] or k > A.shape[-1] or C.shape[-2] != m or k > m:
        raise ShapeError(f"ormqr: input of shape {list(input.shape)}, input2 of shape {list(tau.shape)} "
                         f"and input3 of shape {list(input3.shape)} do not fit: wanted (*, m, k), (*, k) and "
                         f"{'(*, m, n)' if left else '(*, n, m)'}")
    if use_kernel(A, tau, C):
        product = reflected_op.run(A, tau, C, transposed=left is transpose)
        return product if left else turned(product)
    X: Any = C
    backward = left is not transpose  # H_1 (H_2 (... C)); of Q.H the other way round, factors conjugate
    for i in reversed(range(k)) if backward else range(k):
        v = _reflector(A, i, m)
        factor = column(column(tau[..., i]))  # type: ignore[index]
        X = X - (factor if backward else factor.conj()) * (v @ (turned(v) @ X))
    return X if left else turned(X)


def _reflected_kernel(xp: Any, A: Any, tau: Any, C: Any, *, transposed: bool) -> Any:
    steps, m = range(tau.shape[-1]), A.shape[-2]
    for i in steps if transposed else reversed(steps):
        v = (A[..., i] * (xp.arange(m) > i) + (xp.arange(m) == i)).astype(A.dtype)[..., None]
        C = C - tau[..., i, None, None] * (v @ (xp.swapaxes(v, -1, -2) @ C))
    return C


# the product of real reflections, or its transpose, times C; what is recorded is composed
reflected_op = Op("reflected", "A tau C", batch=leading, kernel=_reflected_kernel, native="reflected",
                  infer=lambda A, tau, C, *, transposed: C)


def _reflector(A: Any, i: int, m: int) -> Any:
    """Column i below the diagonal, 1 on it and 0 above, as a matrix of one column."""
    unit = eye(A, m)[i]
    return column(A[..., i] * (unit.cumsum(0) - unit) + unit)


def _range_of(A: Any, q: int, niter: int) -> Any:
    """Orthonormal columns that span nearly what the q largest singular vectors of A span."""
    R: Any = wrap(normal_array((A.shape[-1], q), A._array.real.dtype, A.device)).to(A.dtype)  # type: ignore
    Q = reduced_qr(A @ R).Q
    for _ in range(niter):
        Q = reduced_qr(A @ reduced_qr(turned(A) @ Q).Q).Q
    return Q


@public()
def svd_lowrank(A: Tensor, q: int | None = 6, niter: int | None = 2, M: Tensor | None = None) -> USV:
    """The q largest singular values of ``A - M`` and their vectors, nearly.

    Shapes: (*, m, n) -> (*, m, q), (*, q), (*, n, q). From products with q random vectors, made better in
    niter rounds. N. Halko et al., "Finding structure with randomness", 2011, algorithm 5.1. Raises ValueError
    for a q above min(m, n).

    >>> [round(s) for s in fw.svd_lowrank(fw.diag(fw.tensor([5.0, 3.0, 0.0])), q=2).S.tolist()]
    [5, 3]
    """
    X: Any = matrix(A, "svd_lowrank", square=False)
    if M is not None:
        X = X - tensor_arg(M, "svd_lowrank", "M")
    return _few(X, 6 if q is None else q, 2 if niter is None else niter, "svd_lowrank")


def _few(X: Any, q: int, niter: int, op: str) -> USV:
    m, n = X.shape[-2:]
    if not 0 <= q <= min(m, n):
        raise ValueError(f"{op}: q={q} must be between 0 and {min(m, n)}, the smaller side of the matrix")
    if niter < 0:
        raise ValueError(f"{op}: niter must not be negative, got {niter}")
    if m < n:
        V, S, U = _few(turned(X), q, niter, op)
        return USV(U, S, V)
    Q = _range_of(X, q, niter)
    U, S, Vh = linalg_svd(turned(Q) @ X, full_matrices=False)
    return USV(Q @ U, S, turned(Vh))


@public()
def pca_lowrank(A: Tensor, q: int | None = None, center: bool = True, niter: int = 2) -> USV:
    """Principal components: ``svd_lowrank`` of A (*, m, n), less the mean of its rows if center.

    The columns of V are the directions, ``S**2 / (m - 1)`` the variances along them; q is min(6, m, n) unless
    given. Raises ValueError for a q above min(m, n).

    >>> fw.pca_lowrank(fw.tensor([[1.0, 1.0], [3.0, 3.0]]), q=1).S
    tensor([2.])
    """
    X: Any = matrix(A, "pca_lowrank", square=False)
    q = min(6, *X.shape[-2:]) if q is None else q
    return _few(X - mean(X, -2, True) if center else X, q, niter, "pca_lowrank")
