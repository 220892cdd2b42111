"""Powers, chains of products, and the exponential of matrices."""

import math
from typing import Any

import numpy as np

from ...backends import about_to_read
from ...errors import ShapeError
from ...quiet import quiet
from ...tensor import Tensor
from ..record import autocast
from ..record.args import tensor_arg
from ..record.batched import leading
from ..record.op import Op
from ..record.public import public
from ..shape.broadcast import take_size
from ..shape.slices import put_slice, slice_op
from ..shape.view import take_shape
from . import cuda_exp
from .factor import column, eye, matrix, row
from .matmul import matmul, matmul_op, swap_last
from .systems import inv


@public("linalg", out=True)
def matrix_power(input: Tensor, n: int) -> Tensor:
    """Every matrix times itself, n times; for negative n its inverse: (*, k, k) -> (*, k, k).

    >>> fw.linalg.matrix_power(fw.tensor([[2.0]]), 3)
    tensor([[8.]])
    """
    if isinstance(n, bool) or not hasattr(n, "__index__"):
        raise TypeError(f"matrix_power: n must be an int, got {type(n).__name__}")
    tensor_arg(input, "matrix_power", "input")
    shape = input._array.shape if type(input) is Tensor else input.shape
    if len(shape) < 2 or shape[-1] != shape[-2]:
        raise ShapeError(f"matrix_power: wanted square matrices (*, k, k), got shape {list(input.shape)}")
    if n < 0:
        input, n = inv(input), -n
    if n == 0 and type(input) is Tensor and input._node is None and type(input._array) is np.ndarray \
            and quiet.run is not None and input._array.dtype.kind in "fVi":
        one = eye(input, shape[-1])
        return one if len(shape) == 2 else take_size(one, shape).clone()  # type: ignore[attr-defined]
    if n == 0:
        return input * 0 + eye(input, input.shape[-1]).to(input.dtype)  # type: ignore[attr-defined,operator]
    result, times = None, matmul if autocast.used else matmul_op.run
    while n:
        if n & 1:
            result = input if result is None else times(result, input)
        n >>= 1
        if n:
            input = times(input, input)
    return result.clone() if result is input else result  # type: ignore[union-attr,return-value]


public(method=True, name="matrix_power")(matrix_power)


@public("linalg", out=True, autocast="lower", deferred=True)
def multi_dot(tensors: Any) -> Tensor:
    """The product of two or more matrices in the order that needs the fewest multiplications.

    The first and the last may be vectors. Raises ShapeError where sizes do not fit.

    >>> fw.linalg.multi_dot([fw.ones(2, 3), fw.ones(3, 4), fw.ones(4, 1)]).shape
    (2, 1)
    """
    xs = list(tensors)
    if len(xs) == 3 and all(type(x) is Tensor and x._array.ndim == 2 for x in xs):
        (a, b), (_, c), (d, e) = [x._array.shape for x in xs]
        if c == d and c * e * (a + b) < a * b * c + a * c * e:
            return matmul(xs[0], matmul(xs[1], xs[2]))
        return matmul(matmul(xs[0], xs[1]), xs[2])
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
    return take_shape(out, drop) if first or last else out


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

    return _in_order(xs, best, 0, n - 1)


def _in_order(xs: list, best: dict, i: int, j: int) -> Tensor:
    if i == j:
        return xs[i]
    k = best[i, j][1]
    return matmul(_in_order(xs, best, i, k), _in_order(xs, best, k + 1, j))


_DEGREE = 15  # of the Taylor polynomial on a GPU, for norms up to 1/2: its error is below 1e-17
# up to which norm, of which degree, in powers of which power: of the least products for small matrices, and
# of the fewest squarings, which double the error of rounding, for large ones
_POLYNOMIALS = {"f": ((0.5, 8, 3), (1.9, 12, 4)), "d": ((0.5, 15, 4), (1.6, 20, 5))}


def _exp_kernel(xp: Any, A: Any) -> Any:
    if not A.size:
        return A.copy()
    largest = xp.abs(A).sum(axis=-2).max()
    about_to_read(largest, "matrix_exp, whose number of squarings depends on the norm,")
    largest = float(largest)
    small, large = _POLYNOMIALS["f" if A.dtype.char in "fF" else "d"]
    norm, degree, step = large if largest > small[0] else small
    squarings = max(0, math.ceil(math.log2(largest / norm))) if norm < largest < math.inf else 0
    out = _taylor(xp, A / 2 ** squarings if squarings else A, degree, step)
    for _ in range(squarings):
        out = xp.matmul(out, out)
    return out


def _taylor(xp: Any, A: Any, degree: int, step: int) -> Any:
    """The polynomial, as one of A**step with polynomials as coefficients (Paterson and Stockmeyer, 1973)."""
    powers = [xp.eye(A.shape[-1], dtype=A.dtype), A]
    while len(powers) <= step:
        powers.append(xp.matmul(powers[-1], A))
    out = None
    for first in range(degree // step * step, -1, -step):
        part = powers[0] * A.dtype.type(1 / math.factorial(first))
        for k in range(1, min(step, degree - first + 1)):
            part = part + powers[k] * A.dtype.type(1 / math.factorial(first + k))
        out = part if out is None else part + xp.matmul(out, powers[step])
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


matrix_exp_op = Op("matrix_exp", "A",
                   batch=leading, native="small_exp", kernel=_exp_kernel, infer=lambda A: A,
                   vjp={"A": _exp_vjp},
                   device=lambda A: cuda_exp.matrix_exp(A, degree=_DEGREE), rules_round=False)


@public(method=True, op=matrix_exp_op, out=True)
def matrix_exp(input: Tensor) -> Tensor:
    """The exponential ``sum_k A**k / k!`` of every matrix: (*, n, n) -> (*, n, n).

    By scaling, a Taylor polynomial, and squaring; a batch shares the scaling of its largest matrix, but for
    matrices of real numbers on a GPU, of which each of up to 256 rows has its own.

    >>> fw.matrix_exp(fw.tensor([[0.0, 1.0], [0.0, 0.0]]))
    tensor([[1., 1.],
            [0., 1.]])
    """
    return matrix_exp_op.run(matrix(input, "matrix_exp", name="input"))


public("linalg", name="matrix_exp")(matrix_exp)
