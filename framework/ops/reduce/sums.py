"""Sums, means and products over dimensions; truth and counts; log-sum-exp. (Moments: ``moments.py``.)"""

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ... import dtypes
from ...backends import array_module
from ...backends.native import native_or
from ...dtypes import FLOATING, INEXACT
from ...tensor import Tensor
from ..convert.cast import cast
from ..language.elementwise import Elementwise
from ..language.expression import array_function
from ..language.program import folding, native_kernel
from ..pointwise.arithmetic import gate
from ..pointwise.choose import where_op
from ..pointwise.elementary import exp
from ..record import autocast
from ..record.args import floating, many_dims, one_dim, tensor_arg
from ..record.batched import along, leading
from ..record.constants import alike, raw
from ..record.op import Meta, Op
from ..record.public import public, run_into
from ..shape.alone import in_any_order
from ..shape.broadcast import expand
from ..shape.complex_parts import as_complex_op, as_real_op
from ..shape.view import reshape_op, take_order, take_shape
from . import cuda
from .along import kept_shape

exp_op = exp.op


def reduced(x: Meta, dims: tuple[int, ...], keepdim: bool, dtype: Any = None) -> Meta:
    """The Meta after reducing ``dims``."""
    shape = (kept_shape(x.shape, dims) if keepdim
             else tuple(s for i, s in enumerate(x.shape) if i not in dims))
    return Meta(shape, x.dtype if dtype is None else dtype)


_spread_over = native_or("spread", lambda g, size, over: NotImplemented)


def spread(g: Any, x_shape: tuple[int, ...], dims: tuple[int, ...]) -> Any:
    """The gradient of a sum: every element gets that of the sum it went into."""
    if isinstance(g, np.generic):
        g = np.asarray(g)
    if type(g) is np.ndarray and (seen := _spread_over(g, x_shape, dims)) is not NotImplemented:
        return seen
    return expand(reshape_op(g, shape=kept_shape(x_shape, dims)), size=x_shape)


def count(shape: tuple[int, ...], dims: tuple[int, ...]) -> int:
    """How many elements go into one result."""
    return math.prod(shape[d] for d in dims)


MANY = 512  # complex numbers from where on their parts are summed natively
_sum_of_parts = native_or("sum", lambda x, dims, keepdim: x.sum(axis=dims, keepdims=keepdim))


def wide_sum(x: Any, dims: tuple[int, ...], keepdim: bool) -> Any:
    """The sum in the array's dtype; float16 is summed, and left, in float32."""
    if type(x) is np.ndarray and x.dtype.kind == "c" and x.size >= MANY:
        return as_complex_op.kernel(np, _sum_of_parts(as_real_op.kernel(np, x), dims=dims, keepdim=keepdim))
    return x.sum(axis=dims, keepdims=keepdim, dtype="float32" if x.dtype.char == "e" else x.dtype)


def in_dtype(out: Any, dtype: Any) -> Any:
    """A result computed in float32 back in float16; others as they are."""
    return out if out.dtype == dtype else out.astype(dtype)


def _sum_kernel(xp: Any, x: Any, *, dims: tuple[int, ...], keepdim: bool) -> Any:
    return in_dtype(wide_sum(x, dims, keepdim), x.dtype)


def _mean_kernel(xp: Any, x: Any, *, dims: tuple[int, ...], keepdim: bool) -> Any:
    return in_dtype(wide_sum(x, dims, keepdim) / count(x.shape, dims), x.dtype)


def _mean_vjp(g: Any, x_shape: tuple[int, ...], dims: tuple[int, ...]) -> Any:
    return spread(g * (1 / (count(x_shape, dims) or 1)), x_shape, dims)


def _same(x: Meta, *, dims: tuple[int, ...], keepdim: bool) -> Meta:
    return reduced(x, dims, keepdim)


sum_op = Op("sum", "x", onnx="total(x, dims, keepdim)", runtime="folded('sum', x, dims, keepdim)",
            batch=along("dims"), jvp="linear", native="sum", rounds="sum", kernel=_sum_kernel,
            infer=_same, device=cuda.folded("sum"),
            vjp={"x": lambda g, x_shape, dims: spread(g, x_shape, dims)})
mean_op = Op("mean", "x", onnx="reduced('ReduceMean', x, dims, keepdim)",
             runtime="folded('mean', x, dims, keepdim)", batch=along("dims"),
             jvp="linear", native="mean", halves=True, kernel=_mean_kernel, infer=_same,
             device=cuda.folded("mean"), rules_round=False, vjp={"x": _mean_vjp})


@public(method=True, op=sum_op, out=True, deferred=True)
def sum(input: Tensor, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Tensor:
    """The sum over ``dim`` (an int, several, or None for all).

    Integers and bools are summed as int64 unless ``dtype`` says otherwise. The sum of nothing is 0.

    >>> fw.sum(fw.tensor([[1.0, 2.0], [3.0, 4.0]]), dim=0)
    tensor([4., 6.])
    """
    if autocast.used and dtype is None:
        input = autocast.in_float32_on_a_gpu(input)
    if dtype is None and type(input) is Tensor:
        own = input._array
        if own.dtype.kind in INEXACT:
            return sum_op.run(input, dims=many_dims(dim, own.ndim, "sum"), keepdim=keepdim)
        if not keepdim and own.dtype.char == "?":
            return count_op.run(input, dims=many_dims(dim, own.ndim, "sum"))  # in a byte each, not in eight
    input = as_summed(input, dtype, "sum")
    return sum_op.run(input, dims=many_dims(dim, input.ndim, "sum"), keepdim=keepdim)


def as_summed(x: Tensor, dtype: Any, op: str) -> Tensor:
    """The tensor in the dtype its sum or product has: ``dtype``, else int64 for integers."""
    if dtype is None and type(x) is Tensor and x._array.dtype.kind in INEXACT:
        return x
    tensor_arg(x, op)
    if dtype is None and x.dtype.category >= dtypes.FLOAT:
        return x
    wanted = dtypes.int64 if dtype is None else dtypes.as_dtype(dtype)
    return x if x.dtype is wanted else cast.run(x, dtype=wanted)


@public(method=True, op=mean_op, out=True, deferred=True)
def mean(input: Tensor, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Tensor:
    """The mean over ``dim`` (an int, several, or None for all) of a floating tensor.

    Raises DTypeError for integers unless ``dtype`` is given. The mean of nothing is nan.

    >>> fw.mean(fw.tensor([[1.0, 2.0], [3.0, 4.0]]), dim=1)
    tensor([1.5000, 3.5000])
    """
    if dtype is None and type(input) is Tensor and input._array.dtype.kind in INEXACT:
        return mean_op.run(input, dims=many_dims(dim, input._array.ndim, "mean"), keepdim=keepdim)
    tensor_arg(input, "mean")
    if dtype is not None:
        input = cast.run(input, dtype=dtypes.as_dtype(dtype))
    floating(input, "mean")
    return mean_op.run(input, dims=many_dims(dim, input.ndim, "mean"), keepdim=keepdim)


_without_nan = Elementwise("without_nan", "x", "where(x != x, 0.0, x)", complex=True, masks=True,
                           vjp={"x": "where(x != x, 0.0, g)"}, jvp="symmetric")


def _ignored_nan(x: Tensor) -> Tensor:
    return _without_nan.run(x) if x.dtype.category >= dtypes.FLOAT else x


def _is_plain(x: Any) -> bool:
    """Whether a record without a derivative takes its sum: real numbers of the host, in no graph."""
    return isinstance(x, Tensor) and x._node is None and type(x._array) is np.ndarray \
        and x._array.dtype.kind in FLOATING


def _numbers_folded(text: str) -> Callable:
    """``fold(name, dims, keepdim, correction, x)`` of an expression, see ``program.folding``."""
    return folding(native_kernel(text, ("x",), array_function(text, "x", np)))


_what_is, _how_many = _numbers_folded("where(x != x, 0.0, x)"), _numbers_folded("where(x != x, 0.0, 1.0)")


def _nansum_kernel(xp: Any, x: Any, *, dims: tuple[int, ...], keepdim: bool) -> Any:
    return in_dtype(_wide_nansum(xp, x, dims, keepdim), x.dtype)


def _wide_nansum(xp: Any, x: Any, dims: tuple[int, ...], keepdim: bool) -> Any:
    total = _what_is("sum", dims, keepdim, 0, x)
    return wide_sum(xp.where(x != x, x.dtype.type(0), x), dims, keepdim) if total is NotImplemented else total


def _nanmean_kernel(xp: Any, x: Any, *, dims: tuple[int, ...], keepdim: bool) -> Any:
    count = _how_many("sum", dims, keepdim, 0, x) if x.itemsize > 2 else NotImplemented  # or 16 bits end
    count = (x == x).sum(axis=dims, keepdims=keepdim) if count is NotImplemented else count
    return in_dtype(_wide_nansum(xp, x, dims, keepdim) / count, x.dtype)


nansum_op = Op("nansum", "x", kernel=_nansum_kernel, native="nansum", halves=True,
               batch=along("dims"), infer=reduced)
nanmean_op = Op("nanmean", "x", kernel=_nanmean_kernel, batch=along("dims"), infer=reduced)


@public(method=True, out=True, deferred=True)
def nansum(input: Tensor, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Tensor:
    """The sum over ``dim`` of what is not nan.

    >>> fw.nansum(fw.tensor([1.0, float("nan"), 3.0]))
    tensor(4.)
    """
    if dtype is None and _is_plain(input):
        return nansum_op.run(input, dims=many_dims(dim, input._array.ndim, "nansum"), keepdim=bool(keepdim))
    return sum(_ignored_nan(tensor_arg(input, "nansum")), dim, keepdim, dtype=dtype)


@public(method=True, out=True, deferred=True)
def nanmean(input: Tensor, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Tensor:
    """The mean over ``dim`` of what is not nan; nan where nothing is left.

    Raises DTypeError for integers.

    >>> fw.nanmean(fw.tensor([1.0, float("nan"), 3.0]))
    tensor(2.)
    """
    floating(tensor_arg(input, "nanmean"), "nanmean")
    if dtype is None and _is_plain(input):
        return nanmean_op.run(input, dims=many_dims(dim, input._array.ndim, "nanmean"), keepdim=bool(keepdim))
    total = nansum(input, dim, keepdim, dtype=dtype)
    return total / sum(input == input, dim, keepdim)  # type: ignore[operator]


# -- products ------------------------------------------------------------------------------------
#
# The derivative of a product is the product of all other factors, which must not be had by dividing:
# a factor may be 0. ``others`` computes it from the left and from the right. Its own derivative needs
# the products of all but two factors: where no factor is 0 a quotient gives them; else factor j is
# replaced by 1, for each j, and ``others`` is taken again. Both records work on the last dimension.


def _prod_kernel(xp: Any, x: Any) -> Any:
    if type(x) is np.ndarray and x.dtype.kind == "c" and x.size >= MANY:
        # one half by the other: NumPy goes number by number
        while (n := x.shape[-1]) > 1:
            half = n // 2
            y = x[..., :half] * x[..., half:2 * half]
            x = y if n % 2 == 0 else np.concatenate([y, x[..., -1:]], -1)
    return in_dtype(x.prod(axis=-1, dtype="float32" if x.dtype.char == "e" else x.dtype), x.dtype)


def _others_kernel(xp: Any, x: Any) -> Any:
    left, right = xp.ones_like(x), xp.ones_like(x)
    left[..., 1:] = xp.cumprod(x[..., :-1], axis=-1, dtype=x.dtype)
    right[..., :-1] = xp.cumprod(x[..., :0:-1], axis=-1, dtype=x.dtype)[..., ::-1]
    return left * right


def one_replaced(x: Any) -> tuple[Any, Any]:
    """(row j: x with its element j replaced by 1, the identity mask), for the last dimension."""
    n = x.shape[-1]
    eye = alike(array_module(raw(x)).eye(n, dtype=bool), x)
    rows = expand(reshape_op(x, shape=(*x.shape[:-1], 1, n)), size=(*x.shape[:-1], n, n))
    return where_op(eye, 1.0, rows), eye


def _others_vjp(g: Any, x: Any, out: Any) -> Any:
    last = (len(x.shape) - 1,)
    if not (raw(x) == 0).any():
        part = gate(g, out)
        return (sum_op(part, dims=last, keepdim=True) - part) / x
    rows, eye = one_replaced(x)
    pairs = where_op(eye, 0.0, others(rows))
    wide = expand(reshape_op(g, shape=(*g.shape[:-1], 1, g.shape[-1])), size=pairs.shape)
    return sum_op(gate(wide, pairs), dims=(len(pairs.shape) - 1,), keepdim=False)


others = Op("prod_others", "x",
            batch=leading, kernel=_others_kernel, native="prod_others", infer=lambda x: x,
            vjp={"x": _others_vjp})
prod_op = Op("prod", "x", onnx="reduced('ReduceProd', x, -1, False)",
             native="prod", kernel=_prod_kernel, infer=lambda x: Meta(x.shape[:-1], x.dtype),
             batch=leading,
             vjp={"x": lambda g, x: gate(reshape_op(g, shape=(*g.shape, 1)), others(x))})


@public(method=True, op=prod_op, out=True, autocast="float32", deferred=True)
def prod(input: Tensor, dim: int | None = None, keepdim: bool = False, *, dtype: Any = None) -> Tensor:
    """The product over one dimension, or of all elements.

    Integers and bools are multiplied as int64 unless ``dtype`` says otherwise. The product of nothing
    is 1. The derivative is right where factors are 0.

    >>> fw.prod(fw.tensor([[1.0, 2.0], [3.0, 4.0]]), dim=0)
    tensor([3., 8.])
    """
    input = as_summed(input, dtype, "prod")
    if dim is None:
        return prod_op.run(in_any_order(input))
    at = one_dim(dim, input.ndim, "prod")
    if not input.ndim:
        return prod_op.run(take_shape(input, (1,)))
    y = prod_op.run(last(input, at))
    return take_shape(y, kept_shape(input.shape, (at,))) if keepdim else y


def last(x: Tensor, dim: int) -> Tensor:
    """A view with dimension ``dim`` moved to the end."""
    if dim == x.ndim - 1:
        return x
    return take_order(x, tuple(d for d in range(x.ndim) if d != dim) + (dim,))


# -- truth, counts -------------------------------------------------------------------------------


def _truth(x: Any) -> Any:
    return dtypes.uint8 if x.dtype in (dtypes.uint8, dtypes.uint8.numpy) else dtypes.bool_


def _truth_infer(x: Meta, *, dims: tuple[int, ...], keepdim: bool) -> Meta:
    return reduced(x, dims, keepdim, _truth(x))


all_op = Op("all", "x", onnx="every(x, dims, keepdim, False)", runtime="every('amin', x, dims, keepdim)",
            batch=along("dims"),
            native="all", infer=_truth_infer, kernel=lambda xp, x, *, dims, keepdim: (x != 0).all(
    axis=dims, keepdims=keepdim).astype(_truth(x).numpy))
any_op = Op("any", "x", onnx="every(x, dims, keepdim, True)", runtime="every('amax', x, dims, keepdim)",
            batch=along("dims"),
            native="any", infer=_truth_infer, kernel=lambda xp, x, *, dims, keepdim: (x != 0).any(
    axis=dims, keepdims=keepdim).astype(_truth(x).numpy))


def _count_kernel(xp: Any, x: Any, *, dims: tuple[int, ...]) -> Any:
    if type(x) is np.ndarray and len(dims) == x.ndim:
        return np.asarray(np.count_nonzero(x))
    return (x != 0).sum(axis=dims, dtype="int64")


count_op = Op("count_nonzero", "x", onnx="counted(x, dims)",
              infer=lambda x, *, dims: reduced(x, dims, False, dtypes.int64),
              batch=along("dims"), native="count_nonzero", kernel=_count_kernel)


@public(method=True, op=all_op)
def all(input: Tensor, dim: Any = None, keepdim: bool = False, *, out: Tensor | None = None) -> Tensor:
    """Whether every element over ``dim`` is true (not 0); true of nothing. Gives bool (uint8 of uint8).

    >>> fw.all(fw.tensor([[True, False], [True, True]]), dim=1)
    tensor([False,  True])
    """
    dims = many_dims(dim, tensor_arg(input, "all").ndim, "all")
    if out is None:
        return all_op.run(input, dims=dims, keepdim=keepdim)
    return run_into(all_op.run, (input,), {"dims": dims, "keepdim": keepdim}, out, "all", False, all_op)


@public(method=True, op=any_op)
def any(input: Tensor, dim: Any = None, keepdim: bool = False, *, out: Tensor | None = None) -> Tensor:
    """Whether an element over ``dim`` is true (not 0); false of nothing. Gives bool (uint8 of uint8).

    >>> fw.any(fw.tensor([[True, False], [False, False]]), dim=1)
    tensor([ True, False])
    """
    dims = many_dims(dim, tensor_arg(input, "any").ndim, "any")
    if out is None:
        return any_op.run(input, dims=dims, keepdim=keepdim)
    return run_into(any_op.run, (input,), {"dims": dims, "keepdim": keepdim}, out, "any", False, any_op)


@public(method=True, op=count_op)
def count_nonzero(input: Tensor, dim: Any = None) -> Tensor:
    """How many elements over ``dim`` are not 0, as int64.

    >>> fw.count_nonzero(fw.tensor([[0, 1], [2, 3]]), dim=0)
    tensor([1, 2])
    """
    return count_op.run(input, dims=many_dims(dim, tensor_arg(input, "count_nonzero").ndim, "count_nonzero"))


# -- log-sum-exp ---------------------------------------------------------------------------------


def _logsumexp_kernel(xp: Any, x: Any, *, dims: tuple[int, ...], keepdim: bool) -> Any:
    if count(x.shape, dims) == 0:
        return xp.full(reduced(Meta(x.shape, x.dtype), dims, keepdim).shape, -math.inf, x.dtype)
    top = x.real.max(axis=dims, keepdims=True)
    top = xp.where(xp.isfinite(top), top, xp.zeros_like(top))
    sums = xp.exp(x - top).sum(axis=dims, keepdims=True, dtype=x.dtype)
    out = xp.log(sums) + top
    return out if keepdim else out.reshape(reduced(Meta(x.shape, x.dtype), dims, False).shape)


def _logsumexp_vjp(g: Any, x: Any, out: Any, dims: tuple[int, ...]) -> Any:
    out = where_op(out == -math.inf, 0.0, out)  # nothing but -inf: the weights are 0, not nan
    weights = exp_op(x - reshape_op(out, shape=kept_shape(x.shape, dims)))
    return gate(reshape_op(g, shape=kept_shape(x.shape, dims)), weights)


logsumexp_op = Op("logsumexp", "x", onnx="reduced('ReduceLogSumExp', x, dims, keepdim)",
                  native="logsumexp", kernel=_logsumexp_kernel, infer=_same,
                  device=cuda.logsumexp, rules_round=False,
                  batch=along("dims"),
                  vjp={"x": _logsumexp_vjp})


@public(method=True, op=logsumexp_op, out=True, deferred=True)
def logsumexp(input: Tensor, dim: Any, keepdim: bool = False) -> Tensor:
    """``log(sum(exp(input)))`` over ``dim``, without overflow. Of nothing: -inf.

    Integers become the default float dtype.

    >>> fw.logsumexp(fw.tensor([1000.0, 1000.0]), dim=0)
    tensor(1000.6932)
    """
    if autocast.used:
        input = autocast.in_float32_on_a_gpu(input)
    tensor_arg(input, "logsumexp")
    if input.dtype.category < dtypes.FLOAT:
        input = cast.run(input, dtype=dtypes.get_default_dtype())
    return logsumexp_op.run(input, dims=many_dims(dim, input.ndim, "logsumexp"), keepdim=keepdim)
