"""Norms of vectors, and slices limited in norm."""

import math
from typing import Any

from ... import dtypes
from ...backends import device_code
from ...dtypes import INEXACT
from ...errors import ShapeError
from ...tensor import Tensor
from ..convert.cast import cast
from ..language.elementwise import Elementwise
from ..pointwise.arithmetic import abs as abs_
from ..pointwise.arithmetic import over, sign
from ..pointwise.choose import where_op
from ..record import autocast
from ..record.args import floating, many_dims, number_arg, one_dim, tensor_arg
from ..record.batched import along
from ..record.op import Op
from ..record.planned import Step, planned
from ..record.public import public
from ..shape.view import reshape_op
from . import cuda
from .along import kept_shape
from .extremes import amax, amin, need_elements
from .moments import _real, _wide, squared
from .sums import in_dtype, reduced, spread, sum_op, wide_sum
from .sums import sum as sum_

# d/dx of (sum |x|^p)^(1/p) is sign(x) (|x| / out)^(p-1). Where x or out is 0 a power may be inf and the
# subgradient 0 is taken, whose derivatives are 0, too. For p = 2 the power of x is x itself, which needs no
# such care and whose derivative at 0 is not 0.
_CARED = "where((x == 0) | (size == 0), 0.0, {})"
_slope = Elementwise("vector_norm_slope", "h x size", settings="ord", result="float",
                     expr=_CARED.format("h * sign(x) * pow(abs(x) / size, ord - 1)"), vjp={
    "h": _CARED.format("g * sign(x) * pow(abs(x) / size, ord - 1)"),
    "x": _CARED.format("g * h * (ord - 1) * pow(abs(x) / size, ord - 2) / size"),
    "size": _CARED.format("g * h * sign(x) * (1 - ord) * pow(abs(x) / size, ord - 1) / size")})

# a launch on GPUs; the CPU divides but once for each norm
_slope_of_two = Elementwise("vector_norm_slope of 2", "h x size", "where(size == 0, 0.0, h / size * x)", vjp={
    "h": "where(size == 0, 0.0, g / size * x)", "x": "where(size == 0, 0.0, g * h / size)",
    "size": "where(size == 0, 0.0, -g * h * x / (size * size))"}, result="float")


def _norm_kernel(xp: Any, x: Any, *, ord: float, dims: tuple[int, ...], keepdim: bool) -> Any:
    dtype, x = x.dtype, _wide(x)
    if ord == 2:
        return in_dtype(xp.sqrt(wide_sum(squared(x), dims, keepdim)), _real(dtype))
    return in_dtype(xp.power(wide_sum(xp.power(xp.abs(x), ord), dims, keepdim), 1 / ord), dtype)


def _norm_vjp(g: Any, x: Any, out: Any, ord: float, dims: tuple[int, ...]) -> Any:
    if ord == 2 and device_code.is_device_array(g) and x.dtype.kind != "c":
        kept = kept_shape(x.shape, dims)
        return _slope_of_two(reshape_op(g, shape=kept), x, reshape_op(out, shape=kept))
    if ord == 2:
        return spread(where_op(out == 0, 0.0, over(g, out)), x.shape, dims) * x
    kept = kept_shape(x.shape, dims)
    return _slope(reshape_op(g, shape=kept), x, reshape_op(out, shape=kept), ord=ord)


norm_op = Op("vector_norm", "x", onnx="norm(x, ord, dims, keepdim)",
             batch=along("dims"), native="vector_norm", halves=True, kernel=_norm_kernel, adjoint=True,
             device=cuda.vector_norm, rules_round=False,
             infer=lambda x, *, ord, dims, keepdim: reduced(x, dims, keepdim, x.dtype.to_real()),
             vjp={"x": _norm_vjp})


@public("linalg", op=norm_op, out=True, deferred=True)
def vector_norm(input: Tensor, ord: Any = 2, dim: Any = None, keepdim: bool = False, *,
                dtype: Any = None) -> Tensor:
    """``sum(|input| ** ord) ** (1 / ord)`` over ``dim`` (an int, several, or None for all).

    ``ord`` inf and -inf give the largest and the smallest absolute value, 0 the number of elements
    that are not 0. The derivative at the zero vector is 0. Raises DTypeError for integers, ShapeError
    for ``ord=inf`` or a negative ``ord`` of nothing.

    >>> fw.linalg.vector_norm(fw.tensor([3.0, 4.0]))
    tensor(5.)
    >>> fw.linalg.vector_norm(fw.tensor([3.0, -4.0]), ord=float("inf"))
    tensor(4.)
    """
    return p_norm(input, ord, dim, keepdim, dtype, "vector_norm")


_NUMBERS = (int, float)


def p_norm(x: Any, ord: Any, dim: Any, keepdim: bool, dtype: Any, name: str) -> Tensor:
    """The norm of order ``ord``, for the public function ``name``."""
    if autocast.used and dtype is None:
        x = autocast.in_float32_on_a_gpu(x)
    if type(ord) in _NUMBERS and ord == 2 and dtype is None and type(x) is Tensor \
            and x._array.dtype.kind in INEXACT:
        return norm_op.run(x, ord=2.0, dims=many_dims(dim, x._array.ndim, name), keepdim=keepdim)
    ord = number_arg(ord, name, "ord")
    if isinstance(ord, bool) or not isinstance(ord, (int, float)):
        raise TypeError(f"{name}: the order must be a number, got {ord!r}")
    floating(tensor_arg(x, name), name)
    if dtype is not None:
        x = cast.run(x, dtype=dtypes.as_dtype(dtype))
    if x.dtype.is_complex and ord != 2:
        x = abs_(x)
    dims = many_dims(dim, x.ndim, name)
    if ord < 0 or ord == math.inf:
        need_elements(x, dims, name)
    if ord == 0:
        return sum_(abs_(sign(x)), dims, keepdim)
    if ord == 1:
        size = abs_.op.run(x)
        return sum_op.run(size, dims=dims, keepdim=keepdim)
    if math.isinf(ord):
        return (amax if ord > 0 else amin)(abs_(x), dims, keepdim)
    return norm_op.run(x, ord=float(ord), dims=dims, keepdim=keepdim)


@public(method=True, inplace=True, out=True)
def renorm(input: Tensor, p: float, dim: int, maxnorm: float) -> Tensor:
    """The slices along ``dim`` with p-norms above ``maxnorm`` scaled down to it; others as they are.

    Raises ShapeError below 2 dimensions, ValueError for a p that is not positive or a negative maxnorm.

    >>> fw.renorm(fw.tensor([[3.0, 4.0], [0.3, 0.4]]), 2, 0, 1.0)
    tensor([[0.6000, 0.8000],
            [0.3000, 0.4000]])
    """
    if autocast.used:
        input = autocast.in_float32_on_a_gpu(input)
    return _renorm(input, input, p, dim, maxnorm)


# PyTorch's guard against 0, kept so that results agree
_down_to = Elementwise("renorm", "norm", "where(norm > most, most / (norm + 1e-7), 1.0)", settings="most",
                       vjp={"norm": "where(norm > most, -g * most / square(norm + 1e-7), 0.0)"})


def _scaled_down(norm: Tensor, x: Tensor, most: float) -> Tensor:
    return x * _down_to.run(norm, most=most)  # type: ignore[operator]


@planned
def _renorm(x: Tensor, again: Tensor, p: float, dim: int, maxnorm: float) -> list[Step]:
    floating(tensor_arg(x, "renorm"), "renorm")
    if x.ndim < 2:
        raise ShapeError(f"renorm: input must have at least 2 dimensions, got shape {list(x.shape)}")
    if not p > 0 or not maxnorm >= 0:
        raise ValueError(f"renorm: p must be positive and maxnorm not negative, got p={p}, maxnorm={maxnorm}")
    at = one_dim(dim, x.ndim, "renorm")
    dims = tuple(d for d in range(x.ndim) if d != at)
    return [(p_norm, 1, {"ord": p, "dim": dims, "keepdim": True, "dtype": None, "name": "renorm"})
            if p == 1 or math.isinf(p) or x.is_complex() else
            (norm_op.run, 1, {"ord": float(p), "dims": dims, "keepdim": True}),
            (_scaled_down, 2, {"most": float(maxnorm)})]
