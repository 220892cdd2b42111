"""Norms and condition numbers of matrices."""

import math
from typing import Any

from ...errors import ShapeError
from ...tensor import Tensor
from ..record import autocast
from ..record.args import many_dims, number_arg, one_dim, tensor_arg
from ..record.public import public
from ..reduce.vector_norm import p_norm
from ..shape.view import take_order, take_shape
from .decompositions import svdvals
from .factor import matrix
from .systems import inv


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
    return p_norm(input, 2 if ord is None else ord, dim, keepdim, dtype, "vector_norm")


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
    if autocast.used and dtype is None:
        input = autocast.in_float32_on_a_gpu(input)
    ord = number_arg(ord, "matrix_norm", "ord")
    if ord == "fro" and dim == (-2, -1) and dtype is None:
        matrix(input, "matrix_norm", square=False, half=True)
        return p_norm(input, 2, dim, keepdim, None, "vector_norm")
    if dtype is not None:
        input = input.to(dtype)  # type: ignore[attr-defined]
    matrix(input, "matrix_norm", square=False, half=True)
    if not isinstance(dim, (tuple, list)) or len(many_dims(dim, input.ndim, "matrix_norm")) != 2:
        raise ValueError(f"matrix_norm: dim must name two dimensions, got {dim!r}")
    row, column = (one_dim(d, input.ndim, "matrix_norm") for d in dim)
    if ord == "fro":
        return p_norm(input, 2, (row, column), keepdim, None, "vector_norm")
    rest = tuple(d for d in range(input.ndim) if d not in (row, column))
    input = take_order(input, (*rest, row, column))
    if ord in ("nuc", 2, -2):
        s = svdvals(input)
        out = (s.sum(-1) if ord == "nuc" else s.amax(-1) if ord == 2 else s.amin(-1))  # type: ignore[attr-defined]
    elif ord in (1, -1, math.inf, -math.inf):
        sums = input.abs().sum(-2 if abs(ord) == 1 else -1)  # type: ignore[attr-defined]
        out = sums.amax(-1) if ord > 0 else sums.amin(-1)
    else:
        raise ValueError(f"matrix_norm: ord must be 'fro', 'nuc', inf, -inf, 1, -1, 2 or -2, got {ord!r}")
    if keepdim:
        out = take_shape(out, tuple(1 if d in (row, column) else s
                                              for d, s in enumerate(_restored(input, rest, row, column))))
    return out


def _restored(A: Tensor, rest: tuple, row: int, column: int) -> list[int]:
    shape = [1] * A.ndim
    for d, s in zip(rest, A.shape):
        shape[d] = s
    return shape


@public("linalg", out=True, also="input=A", autocast="float32")
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
