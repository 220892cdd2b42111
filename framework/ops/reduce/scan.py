"""Running sums, products and extremes along a dimension, and differences."""

from collections.abc import Callable
from typing import Any

import numpy as np

from ... import dtypes
from ...backends import about_to_read, array_module, device_code
from ...backends.native import native_or
from ...errors import ShapeError
from ...quiet import quiet
from ...tensor import Tensor, wrap
from ..pointwise.arithmetic import gate, sub_op
from ..pointwise.choose import where_op
from ..pointwise.compare import ne
from ..record import autocast, return_types
from ..record.args import floating, one_dim, real_arg, tensor_arg
from ..record.batched import along
from ..record.constants import alike, raw
from ..record.op import Meta, Op
from ..record.public import public
from ..shape.complex_parts import as_complex_op, as_real_op
from ..shape.slices import put_slice, slice_along
from ..shape.view import permute_op, reshape_op, take_shape
from . import cuda
from .along import put_along
from .sums import MANY, as_summed, exp_op, in_dtype, one_replaced, sum_op

# -- sums ----------------------------------------------------------------------------------------


def _cumsum_kernel(xp: Any, x: Any, *, dim: int, reverse: bool) -> Any:
    if not x.ndim:
        return x.copy()
    if type(x) is np.ndarray and x.dtype.kind == "c" and x.size >= MANY:
        return as_complex_op.kernel(np, _cumsum_of_parts(as_real_op.kernel(np, x), dim=dim, reverse=reverse))
    dtype = "float32" if x.dtype.char == "e" else x.dtype
    if reverse:
        return in_dtype(xp.flip(xp.cumsum(xp.flip(x, dim), axis=dim, dtype=dtype), dim), x.dtype)
    return in_dtype(xp.cumsum(x, axis=dim, dtype=dtype), x.dtype)


_cumsum_of_parts = native_or(
    "cumsum", lambda x, *, dim, reverse: _cumsum_kernel(np, x, dim=dim, reverse=reverse))
cumsum_op = Op("cumsum", "x", onnx="summed(x, dim, reverse)", runtime="cumulated(0, x, dim, reverse)",
               batch=along("dim"), native="cumsum", kernel=_cumsum_kernel, jvp="linear",
               device=cuda.running("cumsum"),
               infer=lambda x, *, dim, reverse: x,
               vjp={"x": lambda g, dim, reverse: cumsum_op(g, dim=dim, reverse=not reverse)})


@public(method=True, inplace=True, op=cumsum_op, out=True, deferred=True)
def cumsum(input: Tensor, dim: int, *, dtype: Any = None) -> Tensor:
    """The running sum along ``dim``: ``y[i] = input[0] + ... + input[i]``.

    Integers and bools are summed as int64 unless ``dtype`` says otherwise.

    >>> fw.cumsum(fw.tensor([1.0, 2.0, 3.0]), dim=0)
    tensor([1., 3., 6.])
    """
    if autocast.used:
        input = autocast.in_float32_on_a_gpu(input)
    input = as_summed(input, dtype, "cumsum")
    return cumsum_op.run(input, dim=one_dim(dim, input.ndim, "cumsum"), reverse=False)


# -- products ------------------------------------------------------------------------------------
#
# y[k] = x[0] ... x[k], so dy[k]/dx[j] = y[k] / x[j] for k >= j. Where a factor is 0 that quotient is not
# to be had: there row j of ``rows`` is x with 1 for x[j], and its running product, from j on, is the
# derivative.


def _upper(n: int, like: Any) -> Any:
    """[j, k] is whether k >= j, as a constant for a rule that runs on ``like``."""
    steps = array_module(raw(like)).arange(n)
    return alike(steps[:, None] <= steps, like)


def _to_last(x: Any, dim: int) -> Any:
    """``x`` with dimension ``dim`` moved to the end."""
    ndim = len(x.shape)
    return x if dim == ndim - 1 else permute_op(x, dims=(*range(dim), *range(dim + 1, ndim), dim))


def _from_last(x: Any, dim: int) -> Any:
    """The other way."""
    end = len(x.shape) - 1
    return x if dim == end else permute_op(x, dims=(*range(dim), end, *range(dim, end)))


def _cumprod_vjp(g: Any, x: Any, out: Any, dim: int) -> Any:
    if device_code.is_device_array(g):  # nobody waits to see zeros
        found = cuda.running_grad("cumprod", g, x, out, dim)
        if found is not NotImplemented:
            return found
    about_to_read(raw(x), "backward of cumprod, which looks for zeros,")
    if not (raw(x) == 0).any():
        return cumsum_op(gate(g, out), dim=dim, reverse=True) / x
    x, g, at = _to_last(x, dim), _to_last(g, dim), len(x.shape) - 1
    n = x.shape[-1]
    slopes = where_op(_upper(n, x), cumprod_op(one_replaced(x)[0], dim=at + 1), 0.0)
    wide = reshape_op(g, shape=(*x.shape[:-1], 1, n))
    return _from_last(sum_op(gate(wide, slopes), dims=(at + 1,), keepdim=False), dim)


cumprod_op = Op("cumprod", "x", runtime="cumulated(1, x, dim)", native="cumprod",
                infer=lambda x, *, dim: x, vjp={"x": _cumprod_vjp},
                batch=along("dim"), device=cuda.running("cumprod"),
                kernel=lambda xp, x, *, dim: xp.cumprod(x, axis=dim, dtype=x.dtype))


def _along(op: Op, x: Tensor, dim: int) -> Tensor:
    """The op along ``dim``; a 0-dim tensor counts as a vector of one."""
    if not x.ndim:
        return take_shape(op.run(take_shape(x, (1,)), dim=0), ())
    return op.run(x, dim=dim)


@public(method=True, inplace=True, op=cumprod_op, out=True, deferred=True)
def cumprod(input: Tensor, dim: int, *, dtype: Any = None) -> Tensor:
    """The running product along ``dim``: ``y[i] = input[0] * ... * input[i]``.

    Integers and bools are multiplied as int64 unless ``dtype`` says otherwise. The derivative is right
    where factors are 0.

    >>> fw.cumprod(fw.tensor([1.0, 2.0, 3.0]), dim=0)
    tensor([1., 2., 6.])
    """
    if autocast.used:
        input = autocast.in_float32_on_a_gpu(input)
    input = as_summed(input, dtype, "cumprod")
    return _along(cumprod_op, input, one_dim(dim, input.ndim, "cumprod"))


# -- extremes ------------------------------------------------------------------------------------


def _double(xp: Any, x: Any, dim: int, combine: Callable) -> Any:
    """A running combination in log2(n) steps of slices: CuPy's ufuncs accumulate sums and products only."""
    out, step = x.copy(), 1
    before = (slice(None),) * dim
    while step < x.shape[dim]:
        out[before + (slice(step, None),)] = combine(out[before + (slice(None, -step),)],
                                                     out[before + (slice(step, None),)])
        step *= 2
    return out


def _running_kernel(ufunc: str) -> Callable:
    def kernel(xp: Any, x: Any, *, dim: int) -> tuple:
        if not x.ndim:
            return x.copy(), xp.zeros((), "int64")
        values = (getattr(np, ufunc).accumulate(x, axis=dim) if xp is np
                  else _double(xp, x, dim, getattr(xp, ufunc)))
        # the index is that of the last element that equals the value so far
        steps = xp.arange(x.shape[dim]).reshape((-1,) + (1,) * (x.ndim - dim - 1))
        found = xp.where((x == values) | (x != x), steps, 0)
        indices = (np.maximum.accumulate(found, axis=dim) if xp is np
                   else _double(xp, found, dim, xp.maximum))
        return values, indices
    return kernel


def _running_vjp(g: Any, indices: Any, x_shape: tuple[int, ...], dim: int) -> Any:
    return put_along(g, indices, dim=dim, shape=x_shape, unique=False)


def _running_infer(x: Meta, *, dim: int) -> tuple[Meta, Meta]:
    return x, Meta(x.shape, dtypes.int64)


cummax_op = Op("cummax", "x", native="cummax", kernel=_running_kernel("maximum"), infer=_running_infer,
               batch=along("dim"), device=cuda.running("cummax", places=True),
               outputs="values indices", differentiable=1, vjp={"x": _running_vjp})
cummin_op = Op("cummin", "x", native="cummin", kernel=_running_kernel("minimum"), infer=_running_infer,
               batch=along("dim"), device=cuda.running("cummin", places=True),
               outputs="values indices", differentiable=1, vjp={"x": _running_vjp})


@public(method=True, op=cummax_op, out=True)
def cummax(input: Tensor, dim: int) -> Any:
    """(values, indices) of the largest element so far along ``dim``; of equal ones, the last.

    >>> fw.cummax(fw.tensor([1.0, 3.0, 2.0]), dim=0).values
    tensor([1., 3., 3.])
    """
    return return_types.cummax(*cummax_op.run(input, dim=one_dim(
        dim, real_arg(input, "cummax").ndim, "cummax")))


@public(method=True, op=cummin_op, out=True)
def cummin(input: Tensor, dim: int) -> Any:
    """(values, indices) of the smallest element so far along ``dim``; of equal ones, the last.

    >>> fw.cummin(fw.tensor([3.0, 1.0, 2.0]), dim=0).values
    tensor([3., 1., 1.])
    """
    return return_types.cummin(*cummin_op.run(input, dim=one_dim(
        dim, real_arg(input, "cummin").ndim, "cummin")))


# -- log-sum-exp ---------------------------------------------------------------------------------
#
# y[k] = log(exp(x[0]) + ... + exp(x[k])), so dy[k]/dx[j] = exp(x[j] - y[k]) for k >= j. With a shift m the
# sum over k is exp(x[j] - m) times a running sum of g[k] exp(m - y[k]): linear in time, as long as the y are
# so near to each other that no exp overflows. Else the whole matrix is made.


def _logcumsumexp_kernel(xp: Any, x: Any, *, dim: int) -> Any:
    if xp is np:
        return np.logaddexp.accumulate(x, axis=dim, dtype=x.dtype)
    return _double(xp, x, dim, xp.logaddexp)


def _logcumsumexp_vjp(g: Any, x: Any, out: Any, dim: int) -> Any:
    if device_code.is_device_array(g):  # nobody waits to see the values
        found = cuda.running_grad("logcumsumexp", g, x, out, dim)
        if found is not NotImplemented:
            return found
    out = where_op(out == -np.inf, 0.0, out)  # there x is -inf as well, and its weight 0, not nan
    values = raw(out)
    if not values.size:
        return g
    top = values.max()
    if float(top - values.min()) < _NEAR:
        top = float(top)
        return exp_op(x - top) * cumsum_op(g * exp_op(top - out), dim=dim, reverse=True)
    x, out, g, at = _to_last(x, dim), _to_last(out, dim), _to_last(g, dim), len(x.shape) - 1
    n = x.shape[-1]
    steps = (reshape_op(x, shape=(*x.shape, 1)), reshape_op(out, shape=(*x.shape[:-1], 1, n)))
    slopes = exp_op(where_op(_upper(n, x), steps[0] - steps[1], -np.inf))
    wide = reshape_op(g, shape=(*x.shape[:-1], 1, n))
    return _from_last(sum_op(gate(wide, slopes), dims=(at + 1,), keepdim=False), dim)


_NEAR = 40.0
logcumsumexp_op = Op("logcumsumexp", "x", native="logcumsumexp", kernel=_logcumsumexp_kernel,
                     batch=along("dim"), device=cuda.running("logcumsumexp", floats=True), rules_round=False,
                     infer=lambda x, *, dim: x, vjp={"x": _logcumsumexp_vjp})


@public(method=True, op=logcumsumexp_op, out=True, deferred=True)
def logcumsumexp(input: Tensor, dim: int) -> Tensor:
    """``log(exp(input[0]) + ... + exp(input[i]))`` along ``dim``, without overflow.

    Raises DTypeError for integers.

    >>> fw.logcumsumexp(fw.tensor([0.0, 0.0, 0.0]), dim=0)
    tensor([0.0000, 0.6931, 1.0986])
    """
    floating(real_arg(input, "logcumsumexp"), "logcumsumexp")
    return _along(logcumsumexp_op, input, one_dim(dim, input.ndim, "logcumsumexp"))


# -- differences ---------------------------------------------------------------------------------


def _joined(parts: list[Tensor], dim: int) -> Tensor:
    """The parts one after another along ``dim``, by adding each into zeros at its place."""
    sizes = [p.shape[dim] for p in parts]
    first = parts[0].shape
    shape = first[:dim] + (int(np.sum(sizes)),) + first[dim + 1:]
    start, result = 0, None
    for part, size in zip(parts, sizes):
        if part.ndim != len(shape) or part.shape[:dim] + part.shape[dim + 1:] != (
                shape[:dim] + shape[dim + 1:]):
            raise ShapeError(f"diff: prepend and append must have the shape of input except along dimension "
                             f"{dim}, got {list(part.shape)}")
        key = (slice(None),) * dim + (slice(start, start + size),)
        placed = put_slice.run(part, key=key, shape=shape)
        result = placed if result is None else result + placed  # type: ignore[operator]
        start += size
    return result  # type: ignore[return-value]


@public(method=True, out=True, deferred=True)
def diff(input: Tensor, n: int = 1, dim: int = -1, prepend: Tensor | None = None,
         append: Tensor | None = None) -> Tensor:
    """The ``n``-th difference along ``dim``: ``y[i] = input[i + 1] - input[i]``, n times.

    prepend, append: tensors to put before and after ``input`` first. Bools give whether neighbours differ.

    >>> fw.diff(fw.tensor([1.0, 4.0, 9.0]))
    tensor([3., 5.])
    """
    if tensor_arg(input, "diff").ndim == 0:
        raise ShapeError("diff: wanted at least 1 dimension, got a 0-dim tensor")
    if n < 0:
        raise ValueError(f"diff: n must not be negative, got {n}")
    at = one_dim(dim, input.ndim, "diff")
    parts = [tensor_arg(p, "diff", w) for p, w in ((prepend, "prepend"), (input, "input"), (append, "append"))
             if p is not None]
    y = input if len(parts) == 1 or not n else _joined(parts, at)
    own = y._array
    if n == 1 and y._node is None and quiet.run is not None and type(own) is np.ndarray \
            and own.dtype.kind != "b" and own.shape[at]:
        key = (slice(None),) * at
        return sub_op.run(wrap(own[(*key, slice(1, None))]), wrap(own[(*key, slice(0, -1))]))
    for _ in range(min(n, y.shape[at])):
        later = slice_along(y, at, slice(1, None))
        before = slice_along(y, at, slice(0, max(y.shape[at] - 1, 0)))
        y = ne(later, before) if y.dtype is dtypes.bool_ else later - before  # type: ignore[operator]
    return y
