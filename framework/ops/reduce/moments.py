"""Moments, norms and histograms."""

import math
from typing import Any

from ... import dtypes
from ...errors import DTypeError, ShapeError
from ...tensor import Tensor
from ..convert.cast import cast
from ..language.expression import OPS_BY_NAME
from ..pointwise.arithmetic import abs as abs_
from ..pointwise.arithmetic import sign
from ..record.args import floating, many_dims, one_dim, tensor_arg
from ..record.op import Meta, Op
from ..record.public import public
from .reduce import (
    amax,
    amin,
    count,
    gate,
    mean,
    mean_op,
    narrow,
    need_elements,
    over,
    reduced,
    spread,
    where_op,
    wide_sum,
)
from .reduce import sum as sum_

sub_op = OPS_BY_NAME["sub"]

# -- variance ------------------------------------------------------------------------------------


def squared(x: Any) -> Any:
    """The squares of the elements' absolute values."""
    return x.real * x.real + x.imag * x.imag if x.dtype.kind == "c" else x * x


def _var_kernel(xp: Any, x: Any, *, dims: tuple[int, ...], correction: float, keepdim: bool) -> Any:
    n, dtype, x = count(x.shape, dims), x.dtype, _wide(x)
    d = x - wide_sum(x, dims, True) / n  # of nothing: nan; Python's own division would raise
    left = n - correction
    return narrow(wide_sum(squared(d), dims, keepdim) / (left if left > 0 else 0), _real(dtype))


def _real(dtype: Any) -> Any:
    return dtypes.BY_NUMPY[dtype].to_real().numpy if dtype.kind == "c" else dtype


def _wide(x: Any) -> Any:
    return x.astype("float32") if x.dtype.char == "e" else x


def _std_kernel(xp: Any, x: Any, **settings: Any) -> Any:
    return narrow(xp.sqrt(_var_kernel(xp, _wide(x), **settings)), _real(x.dtype))


def _var_infer(x: Meta, *, dims: tuple[int, ...], correction: float, keepdim: bool) -> Meta:
    return reduced(x, dims, keepdim, x.dtype.to_real())


def _per_degree(x_shape: tuple[int, ...], dims: tuple[int, ...], correction: float) -> float:
    left = count(x_shape, dims) - correction
    return 1 / left if left > 0 else math.inf


def _var_vjp(g: Any, x: Any, dims: tuple[int, ...], correction: float) -> Any:
    g = gate(g, 2 * _per_degree(x.shape, dims, correction))
    return gate(spread(g, x.shape, dims), sub_op(x, mean_op(x, dims=dims, keepdim=True)))


def _std_vjp(g: Any, x: Any, out: Any, dims: tuple[int, ...], correction: float) -> Any:
    g = where_op(out == 0, 0.0, over(g, out))  # all equal: the subgradient 0
    g = gate(g, _per_degree(x.shape, dims, correction))
    return gate(spread(g, x.shape, dims), sub_op(x, mean_op(x, dims=dims, keepdim=True)))


var_op = Op("var", "x", native="var", kernel=_var_kernel, infer=_var_infer, adjoint=True, vjp={"x": _var_vjp})
std_op = Op("std", "x", native="std", kernel=_std_kernel, infer=_var_infer, adjoint=True, vjp={"x": _std_vjp})


def _spread_of(op: Op, x: Any, dim: Any, unbiased: Any, keepdim: bool, correction: Any) -> Tensor:
    if isinstance(dim, bool):  # var(x, unbiased)
        dim, unbiased = None, dim
    if unbiased is not None and correction is not None:
        raise TypeError(f"{op.name}: give unbiased or correction, not both (unbiased=True is "
                        f"correction=1)")
    floating(tensor_arg(x, op.name), op.name)
    if correction is None:
        correction = 1 if unbiased is None else int(unbiased)
    return op.run(x, dims=many_dims(dim, x.ndim, op.name), correction=correction, keepdim=keepdim)


@public(method=True, op=var_op, out=True)
def var(input: Tensor, dim: Any = None, unbiased: bool | None = None, keepdim: bool = False, *,
        correction: float | None = None) -> Tensor:
    """The variance over ``dim``: ``sum(|input - mean(input)| ** 2) / max(0, n - correction)``.

    ``correction`` is 1 unless given; ``unbiased=False`` is ``correction=0``. Raises DTypeError for
    integers.

    >>> fw.var(fw.tensor([1.0, 2.0, 3.0, 4.0]), correction=0)
    tensor(1.2500)
    """
    return _spread_of(var_op, input, dim, unbiased, keepdim, correction)


@public(method=True, op=std_op, out=True)
def std(input: Tensor, dim: Any = None, unbiased: bool | None = None, keepdim: bool = False, *,
        correction: float | None = None) -> Tensor:
    """The standard deviation over ``dim``, the square root of ``var``.

    Its derivative where all elements are equal is 0. Raises DTypeError for integers.

    >>> fw.std(fw.tensor([1.0, 2.0, 3.0]))
    tensor(1.)
    """
    return _spread_of(std_op, input, dim, unbiased, keepdim, correction)


@public()
def var_mean(input: Tensor, dim: Any = None, unbiased: bool | None = None, keepdim: bool = False, *,
             correction: float | None = None) -> tuple[Tensor, Tensor]:
    """(var, mean) over ``dim``; see ``var``.

    >>> fw.var_mean(fw.tensor([1.0, 2.0, 3.0]))
    (tensor(1.), tensor(2.))
    """
    return (_spread_of(var_op, input, dim, unbiased, keepdim, correction),
            mean(input, None if isinstance(dim, bool) else dim, keepdim))


@public()
def std_mean(input: Tensor, dim: Any = None, unbiased: bool | None = None, keepdim: bool = False, *,
             correction: float | None = None) -> tuple[Tensor, Tensor]:
    """(std, mean) over ``dim``; see ``std``.

    >>> fw.std_mean(fw.tensor([1.0, 2.0, 3.0]))
    (tensor(1.), tensor(2.))
    """
    return (_spread_of(std_op, input, dim, unbiased, keepdim, correction),
            mean(input, None if isinstance(dim, bool) else dim, keepdim))


# -- norms ---------------------------------------------------------------------------------------
#
# d/dx of (sum |x|^p)^(1/p) is sign(x) |x|^(p-1) out^(1-p). Where x or out is 0 a power may be inf and
# the subgradient 0 is taken; 1 stands in for the 0, so that the second derivative is 0 there too. For
# p = 2 the power of x is x itself, which needs no such care and whose derivative at 0 is not 0.


def _norm_kernel(xp: Any, x: Any, *, ord: float, dims: tuple[int, ...], keepdim: bool) -> Any:
    dtype, x = x.dtype, _wide(x)
    if ord == 2:
        return narrow(xp.sqrt(wide_sum(squared(x), dims, keepdim)), _real(dtype))
    return narrow(xp.power(wide_sum(xp.power(xp.abs(x), ord), dims, keepdim), 1 / ord), dtype)


def _norm_vjp(g: Any, x: Any, out: Any, ord: float, dims: tuple[int, ...]) -> Any:
    if ord == 2:
        return spread(where_op(out == 0, 0.0, over(g, out)), x.shape, dims) * x
    scale = where_op(out == 0, 0.0, gate(g, where_op(out == 0, 1.0, out) ** (1 - ord)))
    size = where_op(x == 0, 1.0, abs(x))
    power = size ** (ord - 1)
    slope = where_op(x == 0, 0.0, where_op(x < 0, -power, power))
    return gate(spread(scale, x.shape, dims), slope)


norm_op = Op("vector_norm", "x", native="vector_norm", kernel=_norm_kernel, adjoint=True,
             infer=lambda x, *, ord, dims, keepdim: reduced(x, dims, keepdim, x.dtype.to_real()),
             vjp={"x": _norm_vjp})


@public("linalg", op=norm_op, out=True)
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


def p_norm(x: Any, ord: Any, dim: Any, keepdim: bool, dtype: Any, name: str) -> Tensor:
    """The norm of order ``ord``, for the public function ``name``."""
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
        return sum_(abs_(x), dims, keepdim)
    if math.isinf(ord):
        return (amax if ord > 0 else amin)(abs_(x), dims, keepdim)
    return norm_op.run(x, ord=float(ord), dims=dims, keepdim=keepdim)


# -- histograms ----------------------------------------------------------------------------------


def _bincount_kernel(xp: Any, x: Any, weights: Any, *, size: int) -> Any:
    if weights is None:
        return xp.bincount(x, minlength=size).astype("int64")
    sums = xp.bincount(x, weights=weights, minlength=size)
    return sums.astype("float32" if weights.dtype == "float32" else "float64")


def _bincount_infer(x: Meta, weights: Meta | None, *, size: int) -> Meta:
    if weights is None:
        return Meta((size,), dtypes.int64)
    return Meta((size,), dtypes.float32 if weights.dtype is dtypes.float32 else dtypes.float64)


bincount_op = Op("bincount", "x weights", kernel=_bincount_kernel, infer=_bincount_infer, vjp="undefined")


@public(method=True, op=bincount_op)
def bincount(input: Tensor, weights: Tensor | None = None, minlength: int = 0) -> Tensor:
    """How often each number 0, 1, ... occurs in a vector of integers, or the sum of its weights.

    The result has ``max(max(input) + 1, minlength)`` elements: int64, or floating with weights. Raises
    ValueError for negative numbers; backward to weights raises.

    >>> fw.bincount(fw.tensor([0, 2, 2]), minlength=4)
    tensor([1, 0, 2, 0])
    """
    if tensor_arg(input, "bincount")._array.dtype.kind not in "iu":
        raise DTypeError(f"bincount: argument 'input' must be integer, got {input.dtype}")
    if input.ndim != 1:
        raise ShapeError(f"bincount: wanted a vector, got shape {list(input.shape)}; use input.flatten()")
    if weights is not None and tensor_arg(weights, "bincount", "weights").shape != input.shape:
        raise ShapeError(f"bincount: weights of shape {list(weights.shape)} for input of shape "
                         f"{list(input.shape)}; they must be equal")
    if minlength < 0 or (input.numel() and int(input._array.min()) < 0):
        raise ValueError("bincount: the elements of input and minlength must not be negative")
    most = int(input._array.max()) + 1 if input.numel() else 0
    if weights is not None and weights.dtype is not dtypes.float32:
        weights = cast.run(weights, dtype=dtypes.float64)
    return bincount_op.run(cast.run(input, dtype=dtypes.int64), weights,
                           size=most if most > minlength else int(minlength))


def _histc_kernel(xp: Any, x: Any, *, bins: int, low: float, high: float) -> Any:
    x = x.reshape(-1)
    x = x[(x >= low) & (x <= high)]
    places = xp.minimum(((x - low) * (bins / (high - low))).astype("int64"), bins - 1)
    return xp.bincount(places, minlength=bins).astype(x.dtype)


histc_op = Op("histc", "x", kernel=_histc_kernel,
              infer=lambda x, *, bins, low, high: Meta((bins,), x.dtype), vjp="undefined")


@public(method=True, op=histc_op, out=True)
def histc(input: Tensor, bins: int = 100, min: float = 0, max: float = 0) -> Tensor:
    """How many elements fall into each of ``bins`` equal parts of [min, max], in the dtype of ``input``.

    If min and max are equal, the smallest and the largest element are taken. Elements outside do not
    count. Raises DTypeError for integers, ValueError for a wrong range; backward through it raises.

    >>> fw.histc(fw.tensor([1.0, 2.0, 1.0]), bins=4, min=0, max=3)
    tensor([0., 2., 1., 0.])
    """
    if tensor_arg(input, "histc")._array.dtype.kind not in dtypes.FLOATING:
        raise DTypeError(f"histc: argument 'input' must be floating, got {input.dtype}")
    if bins <= 0:
        raise ValueError(f"histc: bins must be positive, got {bins}")
    low, high = float(min), float(max)
    if low == high and input.numel():
        low, high = float(input._array.min()), float(input._array.max())
    if low == high:
        low, high = low - 1, high + 1
    if not (math.isfinite(low) and math.isfinite(high) and low < high):
        raise ValueError(f"histc: the range [{low}, {high}] must be finite, with min below max")
    return histc_op.run(input, bins=int(bins), low=low, high=high)


@public(method=True, inplace=True, out=True)
def renorm(input: Tensor, p: float, dim: int, maxnorm: float) -> Tensor:
    """The slices along ``dim`` with p-norms above ``maxnorm`` scaled down to it; others as they are.

    Raises ShapeError below 2 dimensions, ValueError for a p that is not positive or a negative maxnorm.

    >>> fw.renorm(fw.tensor([[3.0, 4.0], [0.3, 0.4]]), 2, 0, 1.0)
    tensor([[0.6000, 0.8000],
            [0.3000, 0.4000]])
    """
    x: Any = tensor_arg(input, "renorm")
    floating(x, "renorm")
    if x.ndim < 2:
        raise ShapeError(f"renorm: input must have at least 2 dimensions, got shape {list(x.shape)}")
    if not p > 0 or not maxnorm >= 0:
        raise ValueError(f"renorm: p must be positive and maxnorm not negative, got p={p}, maxnorm={maxnorm}")
    at = one_dim(dim, x.ndim, "renorm")
    norm: Any = vector_norm(x, p, tuple(d for d in range(x.ndim) if d != at), True)
    # PyTorch's guard against 0, kept so that results agree
    factor = OPS_BY_NAME["where"].run(norm > maxnorm, maxnorm / (norm + 1e-7), 1.0)
    return x * factor
