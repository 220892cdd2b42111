"""Linear algebra: solving, factorising, determinants, powers and norms of (batches of) matrices.

The records of the factorisations, and where their derivatives come from, are in ``factor.py``.
"""

import math
from typing import Any, NamedTuple

from ...errors import ShapeError
from ...tensor import Tensor
from ..language.expression import OPS_BY_NAME
from ..pointwise.complex_numbers import imag_op
from ..record.args import many_dims, one_dim, tensor_arg
from ..record.constants import like
from ..record.op import Meta, Op
from ..record.public import public
from ..reduce.moments import vector_norm
from ..shape.view import permute_op, reshape_op, slice_op
from .factor import (
    cholesky_op,
    column,
    eigh_op,
    eye,
    inv_op,
    matrix,
    mirror,
    qr_op,
    row,
    solve_infer,
    solve_op,
    svd_op,
    turned,
)
from .matmul import matmul, promoted, swap_last


class SlogDet(NamedTuple):
    """What ``slogdet`` gives."""

    sign: Tensor
    logabsdet: Tensor


class QR(NamedTuple):
    """What ``qr`` gives."""

    Q: Tensor
    R: Tensor


class SVD(NamedTuple):
    """What ``svd`` gives."""

    U: Tensor
    S: Tensor
    Vh: Tensor


class Eigh(NamedTuple):
    """What ``eigh`` gives."""

    eigenvalues: Tensor
    eigenvectors: Tensor


def _det_vjp(g: Any, A: Any, out: Any) -> Any:
    """g times the matrix of cofactors: out * inv(A).T, or by the SVD where A is singular."""
    g = column(column(g))
    if bool((out != 0).all()):
        return g * column(column(out)) * swap_last(inv_op(A))
    u, s, vh = svd_op(A, full=False)
    n = A.shape[-1]
    others = [_products(s, i) for i in range(n)]
    middle = None
    for i, p in enumerate(others):
        part = p * mirror(slice_op(u, key=(Ellipsis, slice(i, i + 1)))) @ mirror(slice_op(
            vh, key=(Ellipsis, slice(i, i + 1), slice(None))))
        middle = part if middle is None else middle + part
    return g * (column(column(det_op(u) * det_op(vh))) * middle)


def _products(s: Any, left_out: int) -> Any:
    """The product of all but one of the last dimension, as (*, 1, 1)."""
    total = like(s, lambda xp, dtype: xp.ones((1, 1), dtype=dtype))
    for k in range(s.shape[-1]):
        if k != left_out:
            total = total * column(slice_op(s, key=(Ellipsis, slice(k, k + 1))))
    return total


det_op = Op("det", "A", kernel=lambda xp, A: xp.linalg.det(A), vjp={"A": _det_vjp},
            infer=lambda A: Meta(A.shape[:-2], A.dtype))


def _slogdet_kernel(xp: Any, A: Any) -> tuple:
    sign, logabsdet = xp.linalg.slogdet(A)
    return logabsdet, sign


def _slogdet_infer(A: Meta) -> tuple[Meta, Meta]:
    return Meta(A.shape[:-2], A.dtype.to_real()), Meta(A.shape[:-2], A.dtype)


def _complex_slogdet_vjp(g: list, A: Any, sign: Any) -> tuple:
    """d log(det) = d logabsdet + i d angle, and d sign = i sign d angle."""
    total, gs = g
    if gs is not None:
        angle = imag_op(gs * sign.conj()) * 1j
        total = angle if total is None else total + angle
    return (column(column(total)) * turned(inv_op(A)),)


# the sign of a real determinant has no derivative, the direction of a complex one has
slogdet_op = Op("slogdet", "A", kernel=_slogdet_kernel, outputs="logabsdet sign", differentiable=1,
                infer=_slogdet_infer, vjp={"A": lambda g, A: column(column(g)) * swap_last(inv_op(A))})
complex_slogdet_op = Op("complex_slogdet", "A", kernel=_slogdet_kernel, outputs="logabsdet sign",
                        infer=_slogdet_infer, vjp=_complex_slogdet_vjp)


@public("linalg", op=inv_op, out=True)
def inv(A: Tensor) -> Tensor:
    """The inverse of every matrix: (*, n, n) -> (*, n, n). Raises LinAlgError where there is none.

    >>> fw.linalg.inv(fw.tensor([[2.0, 0.0], [0.0, 4.0]]))
    tensor([[0.5000, 0.0000],
            [0.0000, 0.2500]])
    """
    return inv_op.run(matrix(A, "inv"))


@public(method=True, out=True)
def inverse(input: Tensor) -> Tensor:
    """The inverse of every matrix; ``linalg.inv``.

    >>> fw.inverse(fw.tensor([[2.0]]))
    tensor([[0.5000]])
    """
    return inv(input)


@public("linalg", op=solve_op, out=True)
def solve(A: Tensor, B: Tensor, *, left: bool = True) -> Tensor:
    """X with ``A @ X = B`` (or ``X @ A = B`` if not left): A (*, n, n), B (*, n, k) or (*, n).

    Batches broadcast. Raises LinAlgError where A is singular.

    >>> fw.linalg.solve(fw.tensor([[2.0, 0.0], [0.0, 4.0]]), fw.tensor([2.0, 2.0]))
    tensor([1.0000, 0.5000])
    """
    A, B = promoted("solve", A=A, B=B)
    matrix(A, "solve")
    vector = B.ndim == 1 or (B.ndim == A.ndim - 1 and B.shape == A.shape[:-1])
    if vector:
        B = column(B) if left else row(B)
    elif B.ndim < 2:
        raise ShapeError(f"solve: B must be a vector or matrices, got shape {list(B.shape)}")
    if not left:
        A, B = swap_last(A), swap_last(B)
    solve_infer(Meta(A.shape, A.dtype), Meta(B.shape, B.dtype))
    X = solve_op.run(A, B)
    if vector:
        return reshape_op.run(X, shape=X.shape[:-1])
    return X if left else swap_last(X)


@public("linalg", op=det_op, out=True, also="input=A")
def det(A: Tensor) -> Tensor:
    """The determinant of every matrix: (*, n, n) -> (*).

    >>> fw.linalg.det(fw.tensor([[1.0, 2.0], [3.0, 5.0]]))
    tensor(-1.)
    """
    return det_op.run(matrix(A, "det"))


@public("linalg", op=slogdet_op, out=True, also="input=A")
def slogdet(A: Tensor) -> SlogDet:
    """Sign and logarithm of the absolute determinant: (*, n, n) -> ((*), (*)), safe from overflow.

    The sign of a complex one is the number of length 1 in its direction, and has a gradient.

    >>> fw.linalg.slogdet(fw.tensor([[1.0, 0.0], [0.0, -1.0]])).sign
    tensor(-1.)
    """
    op = complex_slogdet_op if matrix(A, "slogdet").is_complex() else slogdet_op
    logabsdet, sign = op.run(A)
    return SlogDet(sign, logabsdet)


public(method=True, name="det")(det)
public(method=True, name="slogdet")(slogdet)


@public(method=True)
def logdet(input: Tensor) -> Tensor:
    """The logarithm of the determinant: nan where it is negative, -inf where it is 0; complex of complex.

    >>> fw.logdet(fw.tensor([[1.0, 0.0], [0.0, 1.0]]))
    tensor(0.)
    """
    sign, logabsdet = slogdet(input)
    if sign.is_complex():
        return logabsdet + OPS_BY_NAME["log"].run(sign)  # type: ignore[operator]
    return OPS_BY_NAME["where"].run(sign < 0, math.nan, logabsdet)  # type: ignore[operator]


# -- factorisations ------------------------------------------------------------------------------


@public("linalg", op=cholesky_op, out=True)
def cholesky(input: Tensor, *, upper: bool = False) -> Tensor:
    """The lower triangular L with ``L @ L.H = input``, for Hermitian positive definite A (*, n, n).

    Only the lower triangle of A is read. upper: gives L.H. Raises LinAlgError for another matrix.

    >>> fw.linalg.cholesky(fw.tensor([[4.0, 2.0], [2.0, 2.0]]))
    tensor([[2., 0.],
            [1., 1.]])
    """
    L = cholesky_op.run(matrix(input, "cholesky"))
    return turned(L) if upper else L


@public(method=True, name="cholesky", out=True)
def _cholesky(input: Tensor, upper: bool = False) -> Tensor:
    """The Cholesky factor of every matrix; ``linalg.cholesky``.

    >>> fw.cholesky(fw.tensor([[4.0]]))
    tensor([[2.]])
    """
    return cholesky(input, upper=upper)


@public("linalg", op=qr_op, out=True)
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


@public("linalg", op=svd_op, out=True)
def svd(A: Tensor, full_matrices: bool = True) -> SVD:
    """``A = U @ diag(S) @ Vh``: orthonormal U, Vh, and singular values S, largest first; A (*, m, n).

    The gradient of complex vectors wants a result that does not depend on their phases (AutogradError).
    U (*, m, m), S (*, k), Vh (*, n, n), k = min(m, n); without full_matrices U (*, m, k), Vh (*, k, n).

    >>> fw.linalg.svd(fw.tensor([[3.0, 0.0], [0.0, 4.0]])).S
    tensor([4., 3.])
    """
    return SVD(*svd_op.run(matrix(A, "svd", square=False), full=bool(full_matrices)))


@public("linalg", out=True)
def svdvals(A: Tensor) -> Tensor:
    """The singular values of every matrix, largest first: (*, m, n) -> (*, min(m, n)).

    >>> fw.linalg.svdvals(fw.tensor([[3.0, 0.0], [0.0, 4.0]]))
    tensor([4., 3.])
    """
    return svd_op.run(matrix(A, "svdvals", square=False), full=False)[1]


@public("linalg", op=eigh_op, out=True)
def eigh(input: Tensor, UPLO: str = "L") -> Eigh:
    """Eigenvalues, smallest first, and orthonormal eigenvectors (columns) of symmetric or Hermitian matrices.

    A (*, n, n) -> real (*, n), (*, n, n). The gradient of complex vectors wants a result that does not depend
    on their phases (AutogradError). Only the lower (UPLO="L") or upper ("U") triangle is read.

    >>> fw.linalg.eigh(fw.tensor([[2.0, 0.0], [0.0, 1.0]])).eigenvalues
    tensor([1., 2.])
    """
    if UPLO not in ("L", "U", "l", "u"):
        raise ValueError(f"eigh: UPLO must be 'L' or 'U', got {UPLO!r}")
    return Eigh(*eigh_op.run(matrix(input, "eigh"), uplo=UPLO.upper()))


@public("linalg", out=True)
def eigvalsh(input: Tensor, UPLO: str = "L") -> Tensor:
    """The eigenvalues of symmetric or Hermitian matrices, smallest first: (*, n, n) -> real (*, n).

    >>> fw.linalg.eigvalsh(fw.tensor([[2.0, 0.0], [0.0, 1.0]]))
    tensor([1., 2.])
    """
    return eigh(input, UPLO)[0]


# -- powers --------------------------------------------------------------------------------------


@public("linalg", out=True)
def matrix_power(input: Tensor, n: int) -> Tensor:
    """Every matrix times itself, n times; for negative n its inverse: (*, k, k) -> (*, k, k).

    >>> fw.linalg.matrix_power(fw.tensor([[2.0]]), 3)
    tensor([[8.]])
    """
    if isinstance(n, bool) or not hasattr(n, "__index__"):
        raise TypeError(f"matrix_power: n must be an int, got {type(n).__name__}")
    if tensor_arg(input, "matrix_power", "input").ndim < 2 or input.shape[-1] != input.shape[-2]:
        raise ShapeError(f"matrix_power: wanted square matrices (*, k, k), got shape {list(input.shape)}")
    if n < 0:
        input, n = inv(input), -n
    if n == 0:
        return input * 0 + eye(input, input.shape[-1]).to(input.dtype)  # type: ignore[attr-defined,operator]
    result = None
    while n:
        if n & 1:
            result = input if result is None else matmul(result, input)
        n >>= 1
        if n:
            input = matmul(input, input)
    return result.clone() if result is input else result  # type: ignore[union-attr,return-value]


public(method=True, name="matrix_power")(matrix_power)


@public("linalg", out=True)
def multi_dot(tensors: Any) -> Tensor:
    """The product of two or more matrices in the order that needs the fewest multiplications.

    The first and the last may be vectors. Raises ShapeError where sizes do not fit.

    >>> fw.linalg.multi_dot([fw.ones(2, 3), fw.ones(3, 4), fw.ones(4, 1)]).shape
    (2, 1)
    """
    xs = list(tensors)
    if len(xs) < 2:
        raise ValueError(f"multi_dot: wanted at least 2 tensors, got {len(xs)}")
    for i, x in enumerate(xs):
        if tensor_arg(x, "multi_dot", f"tensors[{i}]").ndim != 2 and not (
                x.ndim == 1 and i in (0, len(xs) - 1)):
            raise ShapeError(f"multi_dot: tensors[{i}] must be a matrix, got shape {list(x.shape)}")
    first, last = xs[0].ndim == 1, xs[-1].ndim == 1
    if first:
        xs[0] = row(xs[0])
    if last:
        xs[-1] = column(xs[-1])
    out = _cheapest(xs)
    drop = tuple(s for s, gone in zip(out.shape, (first, last)) if not gone)
    return reshape_op.run(out, shape=drop) if first or last else out


def _cheapest(xs: list) -> Tensor:
    """Matrix-chain order by dynamic programming over (first, last) of the chain."""
    n = len(xs)
    sizes = [x.shape[0] for x in xs] + [xs[-1].shape[1]]
    best: dict[tuple[int, int], tuple[int, Any]] = {(i, i): (0, i) for i in range(n)}
    for length in range(1, n):
        for i in range(n - length):
            j = i + length
            best[i, j] = min((best[i, k][0] + best[k + 1, j][0] + sizes[i] * sizes[k + 1] * sizes[j + 1], k)
                             for k in range(i, j))

    def build(i: int, j: int) -> Tensor:
        if i == j:
            return xs[i]
        k = best[i, j][1]
        return matmul(build(i, k), build(k + 1, j))
    return build(0, n - 1)


# -- norms ---------------------------------------------------------------------------------------


@public("linalg", out=True)
def matrix_norm(input: Tensor, ord: Any = "fro", dim: Any = (-2, -1), keepdim: bool = False, *,
                dtype: Any = None) -> Tensor:
    """A norm of every matrix: (*, m, n) -> (*).

    ord: "fro" (root of the sum of squares), "nuc" (sum of singular values), 2 and -2 (largest and
    smallest singular value), 1 and -1 (largest and smallest column sum of absolute values), inf and
    -inf (of rows).

    >>> fw.linalg.matrix_norm(fw.tensor([[3.0, 0.0], [4.0, 0.0]]))
    tensor(5.)
    """
    if dtype is not None:
        input = input.to(dtype)  # type: ignore[attr-defined]
    matrix(input, "matrix_norm", square=False)
    if not isinstance(dim, (tuple, list)) or len(many_dims(dim, input.ndim, "matrix_norm")) != 2:
        raise ValueError(f"matrix_norm: dim must name two dimensions, got {dim!r}")
    row, column = (one_dim(d, input.ndim, "matrix_norm") for d in dim)
    if ord == "fro":
        return vector_norm(input, 2, (row, column), keepdim)
    rest = tuple(d for d in range(input.ndim) if d not in (row, column))
    input = permute_op.run(input, dims=(*rest, row, column))
    if ord in ("nuc", 2, -2):
        s = svdvals(input)
        out = (s.sum(-1) if ord == "nuc" else s.amax(-1) if ord == 2 else s.amin(-1))  # type: ignore[attr-defined]
    elif ord in (1, -1, math.inf, -math.inf):
        sums = input.abs().sum(-2 if abs(ord) == 1 else -1)  # type: ignore[attr-defined]
        out = sums.amax(-1) if ord > 0 else sums.amin(-1)
    else:
        raise ValueError(f"matrix_norm: ord must be 'fro', 'nuc', inf, -inf, 1, -1, 2 or -2, got {ord!r}")
    if keepdim:
        out = reshape_op.run(out, shape=tuple(1 if d in (row, column) else s
                                              for d, s in enumerate(_restored(input, rest, row, column))))
    return out


@public("linalg", out=True)
def norm(input: Tensor, ord: Any = None, dim: Any = None, keepdim: bool = False, *,
         dtype: Any = None) -> Tensor:
    """``vector_norm`` or ``matrix_norm``, by what ``dim`` and ``ord`` name.

    One dim: of vectors; two dims: of matrices; no dim: of all elements for ord None, else of a vector or
    matrix.

    >>> fw.linalg.norm(fw.tensor([3.0, 4.0]))
    tensor(5.)
    """
    tensor_arg(input, "norm", "input")
    if dim is None and ord is not None and input.ndim == 2:
        dim = (0, 1)
    elif dim is None and ord is not None and input.ndim != 1:
        raise ShapeError(f"norm: ord={ord!r} without dim wants a vector or a matrix, got shape "
                         f"{list(input.shape)}")
    if isinstance(ord, str) or (isinstance(dim, (tuple, list)) and len(dim) == 2 and ord is not None):
        return matrix_norm(input, ord, (-2, -1) if dim is None else dim, keepdim, dtype=dtype)
    return vector_norm(input, 2 if ord is None else ord, dim, keepdim, dtype=dtype)


def _restored(A: Tensor, rest: tuple, row: int, column: int) -> list[int]:
    shape = [1] * A.ndim
    for d, s in zip(rest, A.shape):
        shape[d] = s
    return shape
