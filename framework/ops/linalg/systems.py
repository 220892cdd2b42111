"""Systems of linear equations and inverses."""

import math
from functools import cache, lru_cache
from typing import Any, NamedTuple

import numpy as np

from ...dtypes import int64
from ...errors import LinAlgError, ShapeError
from ...tensor import Tensor, wrap
from ..record.args import tensor_arg
from ..record.op import Meta
from ..record.public import public
from ..reduce.vector_norm import norm_op
from ..shape.broadcast import take_size
from ..shape.view import take_order, take_shape
from .decompositions import svdvals
from .factor import column, eye, inv_op, matrix, qr_op, row, solve_infer, solve_op, triangular_op, turned
from .matmul import in_one_batch, matmul_op, promoted, swap_last
from .rank import matrix_rank, pinv


@public("linalg", op=inv_op, out=True, autocast="float32")
def inv(A: Tensor) -> Tensor:
    """The inverse of every matrix: (*, n, n) -> (*, n, n). Raises LinAlgError where there is none.

    >>> fw.linalg.inv(fw.tensor([[2.0, 0.0], [0.0, 4.0]]))
    tensor([[0.5000, 0.0000],
            [0.0000, 0.2500]])
    """
    return inv_op.run(matrix(A, "inv"))


@public(method=True, out=True, autocast="float32")
def inverse(input: Tensor) -> Tensor:
    """The inverse of every matrix; ``linalg.inv``.

    >>> fw.inverse(fw.tensor([[2.0]]))
    tensor([[0.5000]])
    """
    return inv(input)


@public("linalg", op=solve_op, out=True, autocast="float32")
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
    if A._array.shape[:-1] != B._array.shape[:-1]:
        solve_infer(Meta(A.shape, A.dtype), Meta(B.shape, B.dtype))
        A, B = in_one_batch(A, B)
    X = solve_op.run(A, B)
    if vector:
        return take_shape(X, X.shape[:-1])
    return X if left else swap_last(X)


class Lstsq(NamedTuple):
    """What ``lstsq`` gives."""

    solution: Tensor
    residuals: Tensor
    rank: Tensor
    singular_values: Tensor


@public("linalg", out=True, autocast="float32")
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
    if not left:
        A, B, upper = swap_last(A), swap_last(B), not upper
    if A._array.shape[:-2] != B._array.shape[:-2]:
        A, B = in_one_batch(A, B)
    X = triangular_op.run(A, B, upper=bool(upper), unit=bool(unitriangular))
    return X if left else swap_last(X)


@public(method=True, out=True, autocast="float32")
def cholesky_solve(input: Tensor, input2: Tensor, upper: bool = False) -> Tensor:
    """X with ``A @ X = input`` where A = L @ L.H, or L.H @ L if upper, and L = input2.

    Shapes: (*, n, k), (*, n, n) -> (*, n, k).

    >>> fw.cholesky_solve(fw.tensor([[4.0]]), fw.tensor([[2.0]]))
    tensor([[1.]])
    """
    B, L = promoted("cholesky_solve", input=input, input2=input2)
    matrix(B, "cholesky_solve", square=False, name="input")
    matrix(L, "cholesky_solve", name="input2")
    if B._array.shape[:-2] != L._array.shape[:-2]:
        B, L = in_one_batch(B, L)
    L = turned(L) if upper else L
    X = triangular_op.run(L, B, upper=False, unit=False)
    return triangular_op.run(turned(L), X, upper=True, unit=False)


def _reduced(A: Any, rcond: float | None) -> Any:
    """Q and R of matrices that have full rank for certain, by bounds of their singular values; else None."""
    m, n = A.shape[-2:]
    if type(A._array) is not np.ndarray or not 0 < n <= m:
        return None
    Q, R = qr_op.run(A, mode="reduced")
    known = R.detach()
    try:
        one = wrap(_identity(n, known._array.dtype)) if n <= _FEW else eye(known, n)
        one = one if known._array.ndim == 2 else take_size(one, known._array.shape)
        inverse = triangular_op.run(known, one, upper=True, unit=False)
    except LinAlgError:  # a 0 on the diagonal
        return None
    dims = (known._array.ndim - 2, known._array.ndim - 1)
    size: Any = [norm_op(x._array, ord=2.0, dims=dims, keepdim=False) for x in (known, inverse)]
    rtol = max(m, n) * _eps(A._array.dtype) if rcond is None else rcond
    if size[0].ndim == 0 and type(rtol) is float:
        return (Q, R) if size[0].item() * size[1].item() * rtol < 1 else None
    return (Q, R) if (size[0] * size[1] * rtol < 1).all() else None


_FEW = 32  # rows of an identity matrix that is remembered


@lru_cache(64)
def _identity(n: int, dtype: np.dtype) -> np.ndarray:
    one = np.eye(n, dtype=dtype)
    one.flags.writeable = False
    return one


@cache
def _eps(dtype: np.dtype) -> float:
    return float(np.finfo(dtype).eps)


@public("linalg", out=True, autocast="float32")
def lstsq(input: Tensor, b: Tensor, rcond: float | None = None, *, driver: str | None = None) -> Lstsq:
    """The X that makes ``|A @ X - B|`` smallest, the least of several: A = input (*, m, n), B = b (*, m, k).

    It is ``pinv(A, rtol=rcond) @ B``, by QR where the rank is certainly n. ``driver`` says what comes with
    it, as in PyTorch on the CPU, where it is "gelsy" by default. residuals (*, k): the squared errors, empty
    for "gelsy", unless m > n, and but for "gels" unless every rank is n; rank (*): empty for "gels";
    singular_values: those of A for "gelsd" and "gelss", else empty.

    >>> fw.linalg.lstsq(fw.tensor([[1.0], [1.0]]), fw.tensor([[1.0], [3.0]])).solution
    tensor([[2.]])
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
    parts = _reduced(A, rcond)
    if parts is None:
        X: Any = pinv(A, rtol=rcond) @ B  # type: ignore[operator]
        rank: Any = matrix_rank(A, rtol=rcond)
    else:
        X = triangular_op.run(parts[1], turned(parts[0]) @ B, upper=True, unit=False)
        rank = A.new_full(A.shape[:-2], n, dtype=int64)  # type: ignore[attr-defined]
    # gels takes every rank to be n, so that nobody looks
    known = m > n and (driver == "gels" or driver in ("gelsd", "gelss") and bool((rank == n).all()))
    residuals = (abs(A @ X - B) ** 2).sum(-2) if known else A.new_empty((0,))
    rank = rank.new_empty((0,)) if driver == "gels" else rank
    values = svdvals(A.detach()) if driver in ("gelsd", "gelss") else A.new_empty((0,))
    return Lstsq(X, residuals, rank, values)


@public("linalg", out=True, autocast="float32")
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
    return take_shape(inv(_square(input, first, last, "tensorinv")), last + first)


def _square(A: Tensor, first: tuple, last: tuple, op: str) -> Tensor:
    m, n = math.prod(first), math.prod(last)
    if m != n:
        raise ShapeError(f"{op}: input of shape {list(A.shape)} is split into {list(first)} and "
                         f"{list(last)}, which have {m} and {n} elements; they must be equally many")
    return take_shape(A, (m, n))


@public("linalg", out=True, autocast="float32")
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
        A = take_order(A, tuple(d for d in range(A.ndim) if d not in moved) + moved)
    first, last = A.shape[:B.ndim], A.shape[B.ndim:]
    if math.prod(first) != B.numel():
        raise ShapeError(f"tensorsolve: other has shape {list(B.shape)}, the first dimensions of input are "
                         f"{list(first)}, and they must hold as many elements; dims= moves others to the end")
    return take_shape(solve(_square(A, first, last, "tensorsolve"),
                                take_shape(B, (B.numel(),))), last)


@public(method=True, out=True, autocast="float32")
def cholesky_inverse(input: Tensor, upper: bool = False) -> Tensor:
    """The inverse of ``L @ L.H`` from its factor L, or of ``U.H @ U`` if upper: (*, n, n) -> (*, n, n).

    >>> fw.cholesky_inverse(fw.tensor([[2.0]]))
    tensor([[0.2500]])
    """
    shape = matrix(input, "cholesky_inverse", name="input")._array.shape
    one = eye(input, shape[-1])
    L = turned(input) if upper else input
    X = triangular_op.run(L, one if len(shape) == 2 else take_size(one, shape), upper=False, unit=False)
    return matmul_op.run(turned(X), X)
