"""Matrices made of vectors: of powers, of reflections."""

from typing import Any

import numpy as np

from ...dtypes import FLOATING
from ...errors import ShapeError
from ...quiet import quiet
from ...tensor import Tensor
from ..pointwise.choose import where_op
from ..record.args import floating, tensor_arg
from ..record.batched import leading
from ..record.constants import like
from ..record.op import Meta, Op
from ..record.public import public
from ..reduce.scan import cumprod
from ..reduce.sums import as_summed
from ..shape.arrange import flip
from ..shape.diagonals import diagonal as diagonal_
from ..shape.join import cat
from .factor import column, eye, matrix, turned, use_kernel
from .matmul import promoted


def _powers_kernel(xp: Any, x: Any, *, count: int, falling: bool) -> Any:
    out = xp.ones((*x.shape, count), x.dtype)
    factors = xp.broadcast_to(x[..., None], (*x.shape, max(count - 1, 0)))
    out[..., 1:] = xp.cumprod(factors, axis=-1, dtype=x.dtype)
    return out[..., ::-1] if falling else out


# of numbers on the CPU, in no graph
powers_op = Op("powers", "x", kernel=_powers_kernel, native="powers",
               infer=lambda x, *, count, falling: Meta((*x.shape, count), x.dtype))


def _powers(x: Any, n: Any, op: str, falling: bool = False) -> Any:
    """1, x, x**2, ... as a last dimension of size n (default: that of the last one), or backwards."""
    n = x.shape[-1] if n is None else n
    if type(n) is int and n >= 0 and x._node is None and type(x._array) is np.ndarray \
            and (x._array.dtype.kind in FLOATING or x._array.dtype.char == "l") and quiet.run is not None:
        return powers_op.run(x, count=n, falling=falling)
    if isinstance(n, bool) or not hasattr(n, "__index__") or n.__index__() < 0:
        raise ValueError(f"{op}: N must be a whole number >= 0, got {n!r}")
    x = as_summed(x, None, op)
    first = x.new_ones((*x.shape, 1))
    if n < 2:
        return first[..., :n]
    out = cat([first, cumprod(column(x).expand(*x.shape, n - 1), -1)], -1)
    return flip(out, -1) if falling else out


@public("linalg", name="vander")
def _linalg_vander(x: Tensor, N: int | None = None) -> Tensor:
    """Powers of the elements, from the 0th on: (*, n) -> (*, n, N), N = n unless given.

    A 0-dim tensor with N counts as a vector. Raises ShapeError without, ValueError for a wrong N.

    >>> fw.linalg.vander(fw.tensor([2, 3]), N=3)
    tensor([[1, 2, 4],
            [1, 3, 9]])
    """
    if not tensor_arg(x, "vander", "x").ndim and N is None:
        raise ShapeError("vander: x must have at least 1 dimension, or N be given, got a 0-dim tensor")
    return _powers(x if x.ndim else x.reshape(1), N, "vander")  # type: ignore[attr-defined]


@public()
def vander(x: Tensor, N: int | None = None, increasing: bool = False) -> Tensor:
    """Powers of a vector's elements, the highest first unless increasing: (n) -> (n, N), N = n unless given.

    Raises ShapeError unless x is a vector, ValueError for a wrong N.

    >>> fw.vander(fw.tensor([2, 3]), 3)
    tensor([[4, 2, 1],
            [9, 3, 1]])
    """
    if tensor_arg(x, "vander", "x").ndim != 1:
        raise ShapeError(f"vander: x must be a vector, got shape {list(x.shape)}; linalg.vander takes any")
    return _powers(x, N, "vander", falling=not increasing)


@public("linalg", out=True, autocast="float32")
def householder_product(input: Tensor, tau: Tensor) -> Tensor:
    """The first n columns of a product of reflections: (*, m, n), (*, k) -> (*, m, n), k <= n <= m.

    Formula: ``H_1 H_2 ... H_k``, ``H_i = I - tau_i v_i v_i.H``; v_i is column i of ``input`` below its
    diagonal, 1 on it and 0 above. Raises ShapeError where the shapes do not fit.

    >>> fw.linalg.householder_product(fw.zeros(2, 1), fw.tensor([2.0]))
    tensor([[-1.],
            [ 0.]])
    """
    A, tau = promoted("householder_product", input=input, tau=tau)
    floating(matrix(A, "householder_product", square=False, name="input"), "householder_product")
    (m, n), k = A.shape[-2:], tau.shape[-1] if tau.ndim else 0
    if not k <= n <= m or tau.ndim != A.ndim - 1 or tau.shape[:-1] != A.shape[:-2]:
        raise ShapeError(f"householder_product: input of shape {list(A.shape)} and tau of shape "
                         f"{list(tau.shape)} must be (*, m, n) and (*, k) with k <= n <= m")
    if use_kernel(A, tau):
        return product_op.run(A, tau)
    Q: Any = like(A, lambda xp, dtype: xp.eye(m, n, dtype=dtype)).expand(A.shape)  # type: ignore[attr-defined]
    unit = eye(A, m)
    if not k:
        return where_op.run(like(A, lambda xp, dtype: xp.zeros((), bool)), A, Q)  # of A, though no element is
    for i in reversed(range(k)):
        below = like(A, lambda xp, dtype, i=i: (xp.arange(m) > i).astype(dtype))
        v = column(A[..., i] * below + unit[i])  # type: ignore[index]
        Q = Q - column(column(tau[..., i])) * (v @ (turned(v) @ Q))  # type: ignore[index]
    return Q


def _product_kernel(xp: Any, A: Any, tau: Any) -> Any:
    Q, rows = xp.broadcast_to(xp.eye(*A.shape[-2:], dtype=A.dtype), A.shape), xp.arange(A.shape[-2])
    for i in reversed(range(tau.shape[-1])):
        v = (A[..., i] * (rows > i) + (rows == i)).astype(A.dtype)[..., None]
        Q = Q - tau[..., i, None, None] * (v @ (xp.swapaxes(v, -1, -2) @ Q))
    return Q


# the first columns of a product of real reflections; what is recorded is composed
product_op = Op("householder_product", "A tau", batch=leading, kernel=_product_kernel,
                native="householder_product", infer=lambda A, tau: A)


@public(method=True, out=True, autocast="float32")
def orgqr(input: Tensor, input2: Tensor) -> Tensor:
    """``linalg.householder_product`` under LAPACK's name: (*, m, n), (*, k) -> (*, m, n).

    >>> fw.orgqr(fw.zeros(2, 1), fw.tensor([2.0]))
    tensor([[-1.],
            [ 0.]])
    """
    return householder_product(input, input2)


@public("linalg", name="diagonal", deferred=True)
def _diagonal(A: Tensor, *, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Tensor:
    """The diagonal of every matrix, a view: (*, m, n) -> (*, min(m, n)) for offset 0.

    >>> fw.linalg.diagonal(fw.tensor([[1.0, 2.0], [3.0, 4.0]]))
    tensor([1., 4.])
    """
    return diagonal_(tensor_arg(A, "diagonal", "A"), offset, dim1, dim2)
