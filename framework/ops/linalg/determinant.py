"""Determinants, plain and as sign and logarithm."""

import math
from typing import Any, NamedTuple

from ...backends import about_to_read
from ...tensor import Tensor
from ..pointwise.choose import where_op
from ..pointwise.elementary import log
from ..record.batched import leading
from ..record.constants import like, raw
from ..record.op import Meta, Op
from ..record.public import public
from ..shape.complex_parts import imag_op
from ..shape.slices import slice_op
from .cuda_det import cofactors
from .factor import column, inv_op, matrix, mirror, svd_op, turned
from .matmul import swap_last


class SlogDet(NamedTuple):
    """What ``slogdet`` gives."""

    sign: Tensor
    logabsdet: Tensor


def _det_vjp(g: Any, A: Any, out: Any) -> Any:
    """g times the matrix of cofactors: out * inv(A).T, or by the SVD where A is singular."""
    g = column(column(g))
    found = cofactors(A)
    if found is not NotImplemented:
        return g * found
    about_to_read(raw(out), "backward of det, which looks for singular matrices,")
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


det_op = Op("det", "A", native="small_det", onnx="Det(A)",
            batch=leading, kernel=lambda xp, A: xp.linalg.det(A), vjp={"A": _det_vjp},
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
slogdet_op = Op("slogdet", "A", native="small_slogdet", kernel=_slogdet_kernel,
                outputs="logabsdet sign", differentiable=1, batch=leading,
                infer=_slogdet_infer, vjp={"A": lambda g, A: column(column(g)) * swap_last(inv_op(A))})
complex_slogdet_op = Op("complex_slogdet", "A", kernel=_slogdet_kernel, outputs="logabsdet sign",
                        batch=leading,
                        infer=_slogdet_infer, vjp=_complex_slogdet_vjp)


@public("linalg", op=det_op, out=True, also="input=A", autocast="float32")
def det(A: Tensor) -> Tensor:
    """The determinant of every matrix: (*, n, n) -> (*).

    >>> fw.linalg.det(fw.tensor([[1.0, 2.0], [3.0, 5.0]]))
    tensor(-1.)
    """
    return det_op.run(matrix(A, "det"))


@public("linalg", op=slogdet_op, out=True, also="input=A", autocast="float32")
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
        return logabsdet + log.op.run(sign)  # type: ignore[operator]
    return where_op.run(sign < 0, math.nan, logabsdet)  # type: ignore[operator]
