"""Normalisation by moments: to mean 0 and variance 1 (or root mean square 1) over some dimensions.

With ``y = (x - mean) * rstd`` over n elements: ``dmean/dx = 1/n``, ``drstd/dx = -rstd**2 * y / n``,
and a cotangent g of y gives ``rstd * (g - mean(g) - y * mean(g * y))``.
"""

import math
import operator
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from ...autograd.mode import FORWARD, state
from ...backends import device_code
from ...backends.native import converted, native_or
from ...dtypes import DType, combine, finfo, float32
from ...errors import ShapeError
from ...tensor import Tensor
from ..convert.cast import cast
from ..image.conv import _in_channels, _of_channels
from ..pointwise.elementary import rsqrt
from ..record import autocast
from ..record.args import floating, number_arg, real_arg, size_args, tensor_arg
from ..record.batched import call, everywhere, on_tensors, spread_out
from ..record.op import Meta, Op
from ..record.planned import Step, have_kernels, planned
from ..record.public import public
from ..record.rounded import is_half
from ..reduce.sums import kept_shape, mean_op
from ..shape.broadcast import expand, sum_to
from ..shape.view import reshape_op
from . import cuda

# -- records -------------------------------------------------------------------------------------


#
# ``y = (x - mean) * rstd * weight + bias`` with the statistics over ``dims``; weight and bias, which may be
# None, broadcast from the shape ``per``. Backward keeps x, mean and var. They are functions of x, so the
# derivatives of backward's own records are those of the whole: as if mean and var were computed there.


def _mean(x: Any, dims: tuple[int, ...]) -> Any:
    return mean_op(x, dims=dims, keepdim=True)


def count_of(shape: tuple[int, ...], dims: tuple[int, ...]) -> int:
    return math.prod(shape[d] for d in dims)


def weight_dims(dims: tuple[int, ...], per: tuple[int, ...]) -> tuple[int, ...]:
    """The shape of weight and bias: of the last dimensions, or one number per channel."""
    return per if len(per) == len(dims) else (math.prod(per),)


def _standardized(xp: Any, x: Any, mean: Any, var: Any, eps: float) -> Any:
    y = x * (1 / xp.sqrt(var + eps)) if mean is None else x - mean
    if mean is not None:
        y *= 1 / xp.sqrt(var + eps)
    return y


def _with_weights(y: Any, weight: Any, bias: Any, per: tuple[int, ...]) -> Any:
    if weight is not None:
        y *= weight.reshape(per)
    if bias is not None:
        y += bias.reshape(per)
    return y


def _grouped(shape: tuple[int, ...], per: tuple[int, ...]) -> tuple[int, ...]:
    """The shape (N, C, ...) as (N, groups, channels of one, ...), if ``per`` has that one more dimension."""
    return (shape[0], *per[1:3], *shape[2:]) if len(per) > len(shape) else shape


def _in_groups(x: Any, per: tuple[int, ...]) -> Any:
    return x.reshape(_grouped(x.shape, per)) if len(per) > x.ndim else x


def _norm_kernel(xp: Any, x: Any, weight: Any, bias: Any, *, dims: tuple[int, ...], per: tuple[int, ...],
                 eps: float) -> tuple:
    shape, x = x.shape, _in_groups(x, per)
    mean = x.mean(axis=dims, keepdims=True, dtype=x.dtype)
    y = x - mean
    var = xp.square(y).mean(axis=dims, keepdims=True, dtype=x.dtype)
    y *= 1 / xp.sqrt(var + eps)
    return _with_weights(y, weight, bias, per).reshape(shape), mean, var


def _rms_kernel(xp: Any, x: Any, weight: Any, *, dims: tuple[int, ...], per: tuple[int, ...],
                eps: float) -> tuple:
    var = xp.square(x).mean(axis=dims, keepdims=True, dtype=x.dtype)
    return _with_weights(_standardized(xp, x, None, var, eps), weight, None, per), var


def _grad_kernel(xp: Any, g: Any, x: Any, weight: Any, mean: Any, var: Any, *, dims: tuple[int, ...],
                 per: tuple[int, ...], eps: float, wanted: tuple[bool, bool]) -> tuple:
    whole, g, x = x.shape, _in_groups(g, per), _in_groups(x, per)
    y = _standardized(xp, x, mean, var, eps)
    product = g * y
    gx = gw = gb = xp.empty(0, x.dtype)
    if wanted[1]:
        others = tuple(d for d in range(x.ndim)
                       if d < x.ndim - len(per) or per[d - x.ndim] == 1 != x.shape[d])
        shape = weight_dims(dims, per)
        gw = product.sum(axis=others, dtype=x.dtype).reshape(shape)
        gb = g.sum(axis=others, dtype=x.dtype).reshape(shape) if mean is not None else gb
    if wanted[0]:
        if weight is not None:
            product *= weight.reshape(per)
        y *= product.mean(axis=dims, keepdims=True, dtype=x.dtype)
        gx = xp.multiply(g, 1 if weight is None else weight.reshape(per), out=product)
        if mean is not None:
            gx -= gx.mean(axis=dims, keepdims=True, dtype=x.dtype)
        gx -= y
        gx *= 1 / xp.sqrt(var + eps)
        gx = gx.reshape(whole)
    return gx, gw, gb


def _rms_grad_kernel(xp: Any, g: Any, x: Any, weight: Any, var: Any, **settings: Any) -> tuple:
    return _grad_kernel(xp, g, x, weight, None, var, **settings)[:2]


def _of_rows(x: Any, dims: tuple[int, ...], eps: float, centred: bool) -> tuple[Any, Any, Callable]:
    """(y, rstd, what takes a cotangent of y to one of x), differentiable."""
    centre = x - _mean(x, dims) if centred else x
    rstd = rsqrt.op(_mean(centre * centre, dims) + eps)  # type: ignore[attr-defined]
    y = centre * rstd

    def pulled(g: Any) -> Any:
        rest = g - _mean(g, dims) if centred else g
        return rstd * (rest - y * _mean(g * y, dims))
    return y, rstd, pulled


def _total(terms: list) -> Any:
    total = None
    for term in terms:
        total = term if total is None else total + term
    return total


def _of_backward(h: list, g: Any, x: Any, weight: Any, dims: tuple[int, ...], per: tuple[int, ...],
                 eps: float, wanted: tuple[bool, bool], needs: tuple[bool, ...], centred: bool) -> list:
    """The cotangents of g, x and weight from those of gx, gw and gb; what was not wanted has none.

    With a = g * weight, the sum of hx * gx over n elements is ``n * rstd * s``, where
    ``s = mean(hx * a) - mean(hx) * mean(a) - mean(hx * y) * mean(a * y)``.
    """
    if np.dtype(getattr(x.dtype, "numpy", x.dtype)).itemsize == 2:  # a GPU's kernels took it so
        h, given = [None if part is None else cast(part, dtype=float32) for part in h], (g, x, weight)
        wide = [None if a is None else cast(a, dtype=float32) for a in given]
        found = _of_backward(h, wide[0], wide[1], wide[2], dims, per, eps, wanted, needs, centred)
        return [None if part is None else cast(part, dtype=a.dtype) for part, a in zip(found, given)]
    if len(per) > len(x.shape):  # all channels stand in one dimension
        rows, shape = _grouped(x.shape, per), x.shape
        h = [reshape_op(h[0], shape=rows) if wanted[0] and h[0] is not None else h[0], *h[1:]]
        found = _of_backward(h, reshape_op(g, shape=rows), reshape_op(x, shape=rows), weight, dims, per, eps,
                             wanted, needs, centred)
        return [*[None if part is None else reshape_op(part, shape=shape) for part in found[:2]], found[2]]
    hx, hw, hb = [part if want else None for part, want in zip(h, (wanted[0], wanted[1], wanted[1]))]
    w = 1.0 if weight is None else reshape_op(weight, shape=per)
    hw = None if hw is None else reshape_op(hw, shape=per)
    y, rstd, pulled = _of_rows(x, dims, eps, centred)
    to_g, to_y, to_x = [], [], []
    to_w = None
    if hx is not None:
        a, along = g * w, _mean(hx * y, dims)
        share = _mean(a * y, dims)
        s = _mean(hx * a, dims) - along * share
        if centred:
            s = s - _mean(hx, dims) * _mean(a, dims)
        back = pulled(hx)
        to_g.append(back * w)
        to_y.append((hx * share + a * along) * -rstd)
        to_x.append(y * (rstd * rstd * s) * -1.0)
        if weight is not None:
            to_w = reshape_op(sum_to(g * back, size=per), shape=weight_dims(dims, per))
    if hw is not None:
        to_g.append(y * hw)
        to_y.append(g * hw)
    if hb is not None:
        to_g.append(expand(reshape_op(hb, shape=per), size=x.shape))
    if to_y and needs[1]:
        to_x.append(pulled(_total(to_y)))
    return [_total(to_g), _total(to_x) if needs[1] else None, to_w]


def _norm_infer(x: Meta, weight: Any, bias: Any, *, dims: tuple[int, ...], per: tuple[int, ...],
                **_: Any) -> tuple:
    floating(x, "norm")
    small = Meta(kept_shape(_grouped(x.shape, per), dims), x.dtype)
    return x, small, small


def _grad_infer(g: Meta, x: Meta, *_: Any, dims: tuple[int, ...], per: tuple[int, ...], eps: float,
                wanted: tuple[bool, bool]) -> tuple:
    weights = Meta(weight_dims(dims, per) if wanted[1] else (0,), x.dtype)
    return x if wanted[0] else Meta((0,), x.dtype), weights, weights


# The rules for batches: the same dimensions behind the batch. Weights that each example has its own of, and
# their gradients, are worked out around the record.


def _moved(settings: dict, ndim: int) -> dict:
    return {**settings, "dims": tuple([d % ndim + 1 for d in settings["dims"]])}


def per_example(a: Any, size: int, ndim: int, per: tuple[int, ...]) -> Any:
    """Weights of each example, so that they broadcast to the values."""
    return a.reshape((size, *(1,) * (ndim - len(per)), *per))


def _as_channels(size: int, weights: Any, batched: tuple, channels: int) -> list:
    return [None if a is None else (a if own else spread_out(a, size)).reshape((size * channels,))
            for a, own in zip(weights, batched)]


def _many_channels(settings: dict, size: int) -> dict:
    per = settings["per"]
    return {**settings, "per": tuple([s * size if s > 1 or i == 1 - (len(per) < 2) else s
                                      for i, s in enumerate(per)])}


@on_tensors(lambda batched, settings: not any(batched[1:]) and 0 not in settings["dims"])
def batch_norm_of(op: Op, size: int, arrays: list, batched: tuple, settings: dict) -> Any:
    x = everywhere(size, arrays[:1], batched)[0]
    ndim = x.ndim - 1
    if 0 in settings["dims"]:  # statistics over the samples: the batch is one of channels
        y, *rest = call(op, _in_channels(x), *_as_channels(size, arrays[1:], batched[1:], x.shape[2]),
                        **_many_channels(settings, size))
        return _of_channels(y, size), *[_of_channels(a, size) for a in rest]
    if not any(batched[1:]):
        return call(op, x, *arrays[1:], **_moved(settings, ndim))
    y, *rest = call(op, x, *[None] * (len(arrays) - 1), **_moved(settings, ndim))
    for a, own, join in zip(arrays[1:], batched[1:], (operator.mul, operator.add)):
        if a is not None:
            y = join(y, per_example(a if own else spread_out(a, size), size, ndim, settings["per"]))
    return y, *rest


def batch_norm_grad(op: Op, size: int, arrays: list, batched: tuple, settings: dict) -> Any:
    g, x, weight, *rest = arrays
    g, x, *rest = everywhere(size, [g, x, *rest], (*batched[:2], *batched[3:]))
    if len(settings["per"]) > x.ndim - 1:
        shape, per = x.shape, settings["per"]
        g, x = [a.reshape((*shape[:2], *per[1:3], *shape[3:])) for a in (g, x)]
        gx, *others = batch_norm_grad(op, size, [g, x, weight, *rest], (True, True, batched[2], True, True),
                                      settings)
        return gx.reshape(shape) if settings["wanted"][0] else gx, *others
    ndim, per, wanted = x.ndim - 1, settings["per"], settings["wanted"]
    if 0 in settings["dims"]:
        (weight,) = _as_channels(size, [weight], batched[2:3], x.shape[2])
        gx, *others = call(op, _in_channels(g), _in_channels(x), weight, *[_in_channels(a) for a in rest],
                           **_many_channels(settings, size))
        return (_of_channels(gx, size) if wanted[0] else gx,
                *[a.reshape((size, a.shape[0] // size)) if wanted[1] else a for a in others])
    centred = len(rest) == 2
    found: list = [x.reshape((size, -1))[:, :0]] * (2 + centred)
    if wanted[0]:
        scaled = g
        if weight is not None:
            scaled = g * per_example(weight if batched[2] else spread_out(weight, size), size, ndim, per)
        found[0] = call(op, scaled, x, None, *rest, **{**_moved(settings, ndim), "wanted": (True, False)})[0]
    if wanted[1]:
        y = (x - rest[0] if centred else x) / np.sqrt(rest[-1] + settings["eps"])
        lead = ndim - len(per)
        sizes = (*(1,) * lead, *per)
        shape = weight_dims(settings["dims"], per)
        for k, part in enumerate((g * y, g)[:1 + centred]):
            total = call(sum_to, part, size=(size, *[1 if s == 1 else n for s, n in zip(sizes, x.shape[1:])]))
            found[1 + k] = total.reshape((size, *shape))
    return tuple(found)


def _beside_float32(kernel: Callable) -> Callable:
    """``kernel`` for numbers of 16 bits: as float32, and what is normalised is rounded. The statistics, of
    which backward is made, stay float32, as the native functions give them."""
    def narrow(x: Any, *weights: Any, **settings: Any) -> tuple:
        wide = [None if a is None else converted(a, np.dtype(np.float32)) for a in (x, *weights)]
        y, *statistics = kernel(*wide, **settings)
        return converted(y, x.dtype), *statistics
    return narrow


def _of_narrow(op: Op) -> Op:
    """The record of a norm, which takes numbers of 16 bits as ``_beside_float32`` says."""
    kernel, native = op.cpu, op.native
    narrow = native_or(native, _beside_float32(kernel))
    op.cpu = native_or(native, lambda x, *weights, **settings: (narrow if is_half(x) else kernel)(
        x, *weights, **settings))
    op.narrow = narrow
    return op


def _pulled_wide(grad: Op, g: Any, x: Any, weight: Any, *moments: Any, **settings: Any) -> Any:
    """A norm's gradients; of tensors of 16 bits beside moments of float32 as the casts of float32 tensors."""
    if not isinstance(g, Tensor) or g._array.dtype.itemsize > 2 or moments[0]._array.dtype.itemsize == 2:
        return grad(g, x, weight, *moments, **settings)
    given = (g, x, weight)
    found = grad(*[None if a is None else _as(a, float32) for a in given], *moments, **settings)
    kind = g.dtype if weight is None else weight.dtype
    return [_as(found[0], g.dtype), *[_as(part, kind) for part in found[1:]]]


def _normalizing(name: str, onnx: str | None = None, runtime: str | None = None) -> Op:
    """The record of a norm by mean and variance; before it, that of its backward."""
    grad = Op(f"{name}_grad", "g x weight mean var", outputs="gx gw gb", kernel=_grad_kernel,
              batch=batch_norm_grad,
              native=f"{name}_grad", infer=_grad_infer, device=cuda.norm_grad,
              vjp=lambda h, g, x, weight, dims, per, eps, wanted, needs: [
                  *_of_backward(h, g, x, weight, dims, per, eps, wanted, needs, True), None, None])

    def pull(g: Any, x: Any, weight: Any, mean: Any, var: Any, dims: tuple, per: tuple, eps: float,
             needs: tuple[bool, ...]) -> list:
        found = _pulled_wide(grad, g, x, weight, mean, var, dims=dims, per=per, eps=eps,
                             wanted=(needs[0], needs[1] or needs[2]))
        return [part if need else None for part, need in zip(found, needs)]

    return _of_narrow(Op(
        name, "x weight bias", outputs="y mean var", differentiable=1, kernel=_norm_kernel, native=name,
        device=cuda.norm, infer=_norm_infer, vjp=pull, batch=batch_norm_of, onnx=onnx, runtime=runtime))


_NORMED = "normed(x, weight, bias, dims, per, eps)"
layer_norm_op = _normalizing("layer_norm", _NORMED, "layer_norm(x, weight, bias, dims, eps)")
group_norm_op = _normalizing("group_norm", _NORMED, "group_norm(x, weight, bias, per, eps)")
batch_norm_op = _normalizing("batch_norm", _NORMED)  # of the batch; with given averages: ``batch_norm_eval``
rms_norm_grad = Op("rms_norm_grad", "g x weight var", outputs="gx gw", kernel=_rms_grad_kernel,
                   batch=batch_norm_grad,
                   native="rms_norm_grad", device=cuda.rms_norm_grad,
                   infer=lambda *xs, **settings: _grad_infer(*xs, **settings)[:2],
                   vjp=lambda h, g, x, weight, dims, per, eps, wanted, needs: [
                       *_of_backward([*h, None], g, x, weight, dims, per, eps, wanted, needs, False), None])


def _rms_norm_pull(g: Any, x: Any, weight: Any, var: Any, dims: tuple, per: tuple, eps: float,
                   needs: tuple[bool, ...]) -> list:
    found = _pulled_wide(rms_norm_grad, g, x, weight, var, dims=dims, per=per, eps=eps, wanted=needs)
    return [part if need else None for part, need in zip(found, needs)]


def _statistics(xp: Any, mean: Any, var: Any, *, shape: tuple[int, ...], eps: float, dtype: DType) -> tuple:
    mean, var = mean.reshape(shape), var.reshape(shape)
    return mean.astype(dtype.numpy), (1 / xp.sqrt(var + var.dtype.type(eps))).astype(dtype.numpy)


norm_statistics = Op("norm_statistics", "mean var", outputs="means rstd", native="norm_statistics",
                     kernel=_statistics,
                     infer=lambda mean, var, *, shape, eps, dtype: [Meta(shape, dtype)] * 2)
rms_norm_op = _of_narrow(Op(
    "rms_norm", "x weight", onnx="rms_normed(x, weight, dims, per, eps)",
    runtime="rms_norm(x, weight, dims, eps)", outputs="y var", differentiable=1, kernel=_rms_kernel,
    batch=batch_norm_of, native="rms_norm", device=cuda.rms_norm, vjp=_rms_norm_pull,
    infer=lambda x, weight, **settings: _norm_infer(x, weight, None, **settings)[:2]))


def in_one_dtype(op: Op, x: Tensor, *others: Any, **settings: Any) -> Any:
    """``op`` on tensors (or None) of one dtype: the widest given. An ``x`` of 16 bits, whose weights may be
    wider, is computed in float32, and the result is of its dtype."""
    dtype = x._array.dtype
    if dtype.itemsize > 2:
        for t in others:  # a generator would cost as much as all else here
            if t is not None and t._array.dtype is not dtype and t._array.dtype != dtype:
                break
        else:
            return op.run(x, *others, **settings)
    elif _narrow_on_a_device(op, x, others, settings):
        return op.run(x, *others, **settings)
    wide = float32
    if dtype.itemsize > 2 or any(t is not None and t._array.dtype.itemsize > 4 for t in others):
        wide = combine(([t.dtype for t in (x, *others) if t is not None], [], []))
    wanted = x.dtype if dtype.itemsize == 2 else wide
    out = op.run(*[None if t is None else _as(t, wide) for t in (x, *others)], **settings)
    return (_as(out[0], wanted), *out[1:]) if isinstance(out, tuple) else _as(out, wanted)


def _narrow_on_a_device(op: Op, x: Tensor, weights: tuple, settings: dict) -> bool:
    """Whether a kernel of a GPU reads 16 bits and computes in float32, derivatives included."""
    if op.device is None or not device_code.is_device_array(x._array):
        return False
    if state.enabled is FORWARD or state.recording and not op.rules_round:
        return False
    return cuda.takes_narrow(x._array, [None if t is None else t._array for t in weights], **settings)


def _as(t: Tensor, dtype: DType) -> Tensor:
    return t if t.dtype is dtype else cast.run(t, dtype=dtype)


# -- arguments -----------------------------------------------------------------------------------


def check_shapes(op: str, wanted: tuple[int, ...], why: str, **tensors: Any) -> None:
    for name, t in tensors.items():
        if t is not None and tensor_arg(t, op, name)._array.shape != wanted:
            raise ShapeError(f"{op}: {name} must have shape {list(wanted)} ({why}), got {list(t.shape)}")


def _last_dims(x: Any, normalized_shape: Any, op: str) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """(normalized_shape as a tuple, the dimensions it names), checked."""
    floating(real_arg(x, op, "input"), op, "input")
    shape, sizes = size_args((normalized_shape,), op, "normalized_shape"), x._array.shape
    first = len(sizes) - len(shape)
    if not shape or sizes[first:] != shape or first < 0:
        raise ShapeError(f"{op}: normalized_shape {list(shape)} must be the last sizes of the input, whose "
                         f"shape is {list(sizes)}")
    return shape, tuple(range(first, len(sizes)))


@public("nn.functional", deferred=True)
def layer_norm(input: Tensor, normalized_shape: Any, weight: Tensor | None = None,
               bias: Tensor | None = None, eps: float = 1e-5) -> Tensor:
    """``(input - mean) / sqrt(var + eps) * w + b`` over the last dimensions (arXiv:1607.06450).

    normalized_shape: their sizes, and the shape of weight and bias. Raises ShapeError if it does not
    fit the input.

    >>> fw.nn.functional.layer_norm(fw.tensor([[1.0, 3.0]]), (2,))
    tensor([[-1.0000,  1.0000]])
    """
    if autocast.used:
        input = autocast.in_float32_on_a_gpu(input)
    return layer_norm_parts(input, weight, bias, normalized_shape, eps)[0]


@planned
def layer_norm_parts(input: Tensor, weight: Tensor | None, bias: Tensor | None, normalized_shape: Any,
                     eps: float) -> list[Step]:
    """(y, mean, var) of ``layer_norm``."""
    shape, dims = _last_dims(input, normalized_shape, "layer_norm")
    check_shapes("layer_norm", shape, "normalized_shape", weight=weight, bias=bias)
    return [_normed(layer_norm_op, (input, weight, bias), {"dims": dims, "per": shape, "eps": eps})]


def _normed(op: Op, tensors: tuple, settings: dict) -> Step:
    return how_to_norm(op, *tensors) or partial(in_one_dtype, op), len(tensors), settings


def how_to_norm(op: Op, x: Tensor, *weights: Tensor | None) -> Any:
    """What runs the record as one kernel; None where that is not to be had."""
    return op.run if have_kernels(x, *weights) else None


@public("nn.functional", deferred=True)
def rms_norm(input: Tensor, normalized_shape: Any, weight: Tensor | None = None,
             eps: float | None = None) -> Tensor:
    """``input / sqrt(mean(input**2) + eps) * w`` over the last dimensions (arXiv:1910.07467).

    eps: by default the machine epsilon of the input's dtype. Raises ShapeError if normalized_shape
    does not fit the input.

    >>> fw.nn.functional.rms_norm(fw.tensor([[3.0, 4.0]]), (2,))
    tensor([[0.8485, 1.1314]])
    """
    if autocast.used:
        input = autocast.in_float32_on_a_gpu(input)
    return _rms_norm(input, weight, normalized_shape, eps)[0]


@planned
def _rms_norm(input: Tensor, weight: Tensor | None, normalized_shape: Any, eps: float | None) -> list[Step]:
    shape, dims = _last_dims(input, normalized_shape, "rms_norm")
    check_shapes("rms_norm", shape, "normalized_shape", weight=weight)
    eps = finfo(input.dtype).eps if eps is None else number_arg(eps, "rms_norm", "eps")
    return [_normed(rms_norm_op, (input, weight), {"dims": dims, "per": shape, "eps": eps})]
