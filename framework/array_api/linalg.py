"""The linear algebra extension: ``framework.array_api.linalg``."""

import math
from typing import Any, NamedTuple

from ..config.listing import own as _own
from ..dtypes import DType
from ..ops.linalg import decompositions, determinant, eigen, powers, products, rank, systems
from ..ops.linalg import matrix_norm as matrix_norms
from ..ops.reduce import vector_norm as vector_norms
from ..ops.shape import diagonals, view
from ..tensor import Tensor
from . import linear, manipulation, statistics
from .array import Array, array_arg, give, together

matmul, tensordot, vecdot = linear.matmul, linear.tensordot, linear.vecdot
matrix_transpose = manipulation.matrix_transpose


class EighResult(NamedTuple):
    """What ``eigh`` and ``eig`` give."""

    eigenvalues: Array
    eigenvectors: Array


class QRResult(NamedTuple):
    """What ``qr`` gives."""

    Q: Array
    R: Array


class SlogdetResult(NamedTuple):
    """What ``slogdet`` gives."""

    sign: Array
    logabsdet: Array


class SVDResult(NamedTuple):
    """What ``svd`` gives."""

    U: Array
    S: Array
    Vh: Array


def cholesky(x: Tensor, /, *, upper: bool = False) -> Array:
    """The lower (or upper) Cholesky factor of positive definite matrices."""
    return give(decompositions.cholesky(array_arg(x, "cholesky"), upper=upper))


def cross(x1: Any, x2: Any, /, *, axis: int = -1) -> Array:
    """The cross product of vectors of 3 elements along an axis; the others broadcast."""
    a, b = together("cross", x1, x2)
    ndim = max(a.ndim, b.ndim)
    a, b = (view.reshape(v, (1,) * (ndim - v.ndim) + v.shape) for v in (a, b))
    return give(products.cross(a, b, axis))


def det(x: Tensor, /) -> Array:
    """The determinant of square matrices."""
    return give(determinant.det(array_arg(x, "det")))


def diagonal(x: Tensor, /, *, offset: int = 0) -> Array:
    """A diagonal of each matrix."""
    return give(diagonals.diagonal(array_arg(x, "diagonal"), offset, -2, -1), x)


def eig(x: Tensor, /) -> EighResult:
    """Eigenvalues and eigenvectors (columns), complex also for real matrices."""
    return EighResult(*map(give, eigen.eig(array_arg(x, "eig"))))


def eigh(x: Tensor, /) -> EighResult:
    """Eigenvalues, rising, and eigenvectors (columns) of Hermitian matrices."""
    return EighResult(*map(give, eigen.eigh(array_arg(x, "eigh"))))


def eigvals(x: Tensor, /) -> Array:
    """Eigenvalues, complex also for real matrices."""
    return give(eigen.eigvals(array_arg(x, "eigvals")))


def eigvalsh(x: Tensor, /) -> Array:
    """Eigenvalues, rising, of Hermitian matrices."""
    return give(eigen.eigvalsh(array_arg(x, "eigvalsh")))


def inv(x: Tensor, /) -> Array:
    """The inverse of square matrices."""
    return give(systems.inv(array_arg(x, "inv")))


def matrix_norm(x: Tensor, /, *, keepdims: bool = False, ord: Any = "fro") -> Array:
    """A norm of each matrix: "fro", "nuc", 1, 2, inf and their negatives; of nothing it is 0."""
    nothing = 0 in array_arg(x, "matrix_norm").shape[-2:]
    kind = "fro" if ord is None or (nothing and ord in (1, 2, math.inf)) else ord
    return give(matrix_norms.matrix_norm(x, kind, (-2, -1), keepdims))


def matrix_power(x: Tensor, n: int, /) -> Array:
    """Square matrices to an integer power."""
    return give(powers.matrix_power(array_arg(x, "matrix_power"), n), x)


def matrix_rank(x: Tensor, /, *, rtol: Any = None) -> Array:
    """How many singular values exceed ``rtol`` times the largest (default: max(M, N) * eps)."""
    return give(rank.matrix_rank(array_arg(x, "matrix_rank"), rtol=rtol))


def outer(x1: Any, x2: Any, /) -> Array:
    """All products of the elements of two vectors."""
    return give(products.outer(*together("outer", x1, x2)))


def pinv(x: Tensor, /, *, rtol: Any = None) -> Array:
    """The pseudo-inverse; singular values up to ``rtol`` times the largest count as 0."""
    return give(rank.pinv(array_arg(x, "pinv"), rtol=rtol))


def qr(x: Tensor, /, *, mode: str = "reduced") -> QRResult:
    """Q with orthonormal columns and R upper triangular, whose product is the matrix."""
    return QRResult(*map(give, decompositions.qr(array_arg(x, "qr"), mode)))


def slogdet(x: Tensor, /) -> SlogdetResult:
    """The sign and the logarithm of the absolute value of the determinant."""
    return SlogdetResult(*map(give, determinant.slogdet(array_arg(x, "slogdet"))))


def solve(x1: Any, x2: Any, /) -> Array:
    """The solution of ``x1 @ out = x2``; ``x2`` is a vector only if it has one dimension."""
    a, b = together("solve", x1, x2)
    if b.ndim == 1:
        return give(view.squeeze(systems.solve(a, view.unsqueeze(b, -1)), -1))
    return give(systems.solve(a, b))


def svd(x: Tensor, /, *, full_matrices: bool = True) -> SVDResult:
    """U, the singular values falling, and Vh, whose product is the matrix."""
    return SVDResult(*map(give, decompositions.svd(array_arg(x, "svd"), full_matrices)))


def svdvals(x: Tensor, /) -> Array:
    """The singular values, falling."""
    return give(decompositions.svdvals(array_arg(x, "svdvals")))


def trace(x: Tensor, /, *, offset: int = 0, dtype: DType | None = None) -> Array:
    """The sum of a diagonal of each matrix; small integers are added up in 64 bits."""
    return statistics.sum(diagonal(x, offset=offset), axis=-1, dtype=dtype)


def vector_norm(x: Tensor, /, *, axis: Any = None, keepdims: bool = False, ord: Any = 2) -> Array:
    """The norm of the elements over axes as one vector, of any order; of nothing it is 0."""
    if ord == math.inf and not array_arg(x, "vector_norm").numel():
        ord = 1
    return give(vector_norms.vector_norm(array_arg(x, "vector_norm"), ord, axis, keepdims))


__dir__ = _own(globals(), "matmul matrix_transpose tensordot vecdot")
