"""Normalisation of images by channels: batch, instance, group and local response norm."""

import math
from functools import partial
from typing import Any

import numpy as np

from ... import _native
from ...autograd.mode import no_grad, state
from ...backends.native import native_or
from ...errors import ShapeError
from ...memory_formats import back, format_of, order
from ...quiet import quiet
from ...tensor import Tensor, bump
from ..convert.cast import clone_op
from ..image.pad import pad
from ..pointwise.elementary import rsqrt
from ..record import autocast
from ..record.args import floating, number_arg, real_arg
from ..record.batched import call, everywhere, merged, on_tensors, spread_out
from ..record.deferred import InSteps
from ..record.op import Op
from ..record.planned import Step, planned
from ..record.public import public
from ..reduce.sums import mean_op
from ..shape.broadcast import sum_to
from ..shape.view import reshape_op, take_order, take_shape
from ..write.inplace import write
from . import cuda
from .moments import (
    batch_norm_op,
    check_shapes,
    count_of,
    group_norm_op,
    how_to_norm,
    in_one_dtype,
    per_example,
    weight_dims,
)

_fixed_grads = getattr(_native.module, "batch_norm_eval_grad", None)


def _fixed_kernel(xp: Any, x: Any, mean: Any, var: Any, weight: Any, bias: Any, *, per: tuple[int, ...],
                  eps: float) -> Any:
    scale = 1 / xp.sqrt(var + eps)
    if weight is not None:
        scale *= weight
    shift = -mean * scale if bias is None else bias - mean * scale
    y = x * scale.reshape(per)
    y += shift.reshape(per)
    return y


def _fixed_vjp(g: Any, x: Any, mean: Any, var: Any, weight: Any, per: tuple[int, ...], eps: float,
               needs: tuple[bool, ...]) -> list:
    found = cuda.fixed_grads(g, x, mean, var, weight, per, eps, needs)
    if found is not NotImplemented:
        return found
    if _fixed_grads and type(g) is np.ndarray and not (needs[1] or needs[2]):
        found = _fixed_grads(g, x, mean, var, weight, eps, needs[0], needs[3] or needs[4])
        if found is not NotImplemented:
            gx, gw, gb = found
            return [part if need else None for part, need in zip((gx, None, None, gw, gb), needs)]
    rstd = rsqrt.op(var + eps)  # type: ignore[attr-defined]
    scale = rstd if weight is None else rstd * weight
    gx = gm = gv = gw = gb = None
    if needs[0]:
        gx = g * reshape_op(scale, shape=per)
    if needs[1] or needs[4]:
        gb = reshape_op(sum_to(g, size=per), shape=weight_dims((), per))
        gm = -gb * scale if needs[1] else None
    if needs[2] or needs[3]:
        centred = x - reshape_op(mean, shape=per)
        gw = reshape_op(sum_to(g * centred, size=per), shape=weight_dims((), per)) * rstd
        gv = gw * (scale * rstd) * -0.5 if needs[2] else None
    return [part if need else None for part, need in zip((gx, gm, gv, gw, gb), needs)]


# (x - mean) * rsqrt(var + eps) * weight + bias with one given number per channel
@on_tensors(lambda batched, settings: not any(batched[1:]))
def batch_fixed(op: Op, size: int, arrays: list, batched: tuple, settings: dict) -> Any:
    if not any(batched[1:]):
        return merged(4)(op, size, arrays, batched, settings)
    x = everywhere(size, arrays[:1], batched)[0]
    mean, var, weight, bias = [
        None if a is None else per_example(
            a if own else spread_out(a, size), size, x.ndim - 1, settings["per"])
        for a, own in zip(arrays[1:], batched[1:])]
    y = (x - mean) / np.sqrt(var + settings["eps"])
    y = y if weight is None else y * weight
    return y if bias is None else y + bias


fixed_norm = Op("batch_norm_eval", "x mean var weight bias",
                onnx="batch_normed(x, mean, var, weight, bias, eps)",
                runtime="batch_norm(x, mean, var, weight, bias, eps)",
                batch=batch_fixed,
                kernel=_fixed_kernel, native="batch_norm_eval",
                device=cuda.fixed_norm, rules_round=False,
                infer=lambda x, *_, **__: x, vjp=_fixed_vjp)


def batch_average(op: Op, size: int, arrays: list, batched: tuple, settings: dict) -> Any:
    x, new = everywhere(size, arrays, batched)
    count = math.prod(x.shape[1:])
    values = new.reshape((size, math.prod(new.shape[1:]) // count, *x.shape[1:]))
    share = call(mean_op, values, dims=(1,), keepdim=False) * (settings["momentum"] * settings["factor"])
    return x * (1 - settings["momentum"]) + share


def _average_kernel(xp: Any, x: Any, new: Any, *, momentum: float, factor: float) -> Any:
    values = new.reshape(-1, *x.shape)
    value = values[0] if len(values) == 1 else values.mean(axis=0)
    return x * (1 - momentum) + value * (momentum * factor)


running_average = Op("running_average", "x new", batch=batch_average, device=cuda.running_average,
                     kernel=_average_kernel, infer=lambda x, new, **_: x)


def _channel_args(op: str, x: Any, least: int, **tensors: Any) -> tuple[int, ...]:
    """The shape in which one number per channel broadcasts to x (N, C, ...); all is checked."""
    floating(real_arg(x, op, "input"), op, "input")
    shape = x._array.shape
    if len(shape) < least:
        raise ShapeError(f"{op}: wanted an input (N, C, ...) of at least {least} dimensions, got shape "
                         f"{list(shape)}")
    check_shapes(op, shape[1:2], "one number per channel", **tensors)
    return (1, shape[1]) + (1,) * (len(shape) - 2)


def _many_values(count: int, shape: tuple[int, ...], op: str, per: str) -> None:
    if count <= 1:
        raise ValueError(f"{op}: the variance of one value is not defined: an input of shape {list(shape)} "
                         f"has {count} per {per}; use a larger batch, or eval mode")


def _followed(made: tuple, running_mean: Tensor | None, running_var: Tensor | None, momentum: float, n: int,
              op: str) -> Tensor:
    """The result of a norm, whose statistics over ``n`` values each the running ones have followed."""
    y, mean, var = made
    _follow(running_mean, mean, momentum, 1, op)
    _follow(running_var, var, momentum, n / (n - 1), op)
    return y


_average_into = native_or("average_into", cuda.average_into)


def _follow(running: Tensor | None, value: Any, momentum: float, factor: float, op: str) -> None:
    """``running = (1 - momentum) * running + momentum * value * factor``, in place and unrecorded."""
    if running is not None:
        momentum = number_arg(momentum, op, "momentum")
        if quiet.run is not None and running._node is None and _average_into(
                running._array, value._array, momentum, factor):
            bump(running, op)
            return
        with no_grad():
            write(running, running_average.run(running, value, momentum=momentum, factor=factor), op)


def _by_running(x: Tensor, mean: Any, var: Any, weight: Any, bias: Any, eps: float, per: tuple[int, ...],
                op: str) -> Tensor:
    """Normalised by given statistics: one multiplication and one addition per element."""
    if mean is None or var is None:
        raise ValueError(f"{op}: without the input's own statistics (eval mode), running_mean and "
                         f"running_var are needed")
    if state.enabled:  # training may change them before backward
        mean, var = clone_op.run(mean), clone_op.run(var)
    return in_one_dtype(fixed_norm, x, mean, var, weight, bias, per=per, eps=eps)


def _follows_nothing(input: Tensor, running_mean: Tensor | None, running_var: Tensor | None,
                     weight: Tensor | None = None, bias: Tensor | None = None, training: bool = False,
                     momentum: float = 0.1, eps: float = 1e-5) -> str | None:
    return "running statistics that change" if training and running_mean is not None else None


def _in_steps(input: Tensor, running_mean: Tensor | None, running_var: Tensor | None,
              weight: Tensor | None = None, bias: Tensor | None = None, training: bool = False,
              momentum: float = 0.1, eps: float = 1e-5) -> Any:
    """``batch_norm`` in training, as the norm and two changes in place."""
    if training is not True or type(input) is not Tensor or type(running_mean) is not Tensor \
            or type(running_var) is not Tensor or type(momentum) is not float:
        return NotImplemented
    shape = input.shape
    if len(shape) < 2 or not input.is_contiguous() \
            or not running_mean.shape == running_var.shape == shape[1:2] \
            or not input.dtype is running_mean.dtype is running_var.dtype \
            or running_mean.requires_grad or running_var.requires_grad:
        return NotImplemented
    n = math.prod(shape) // (shape[1] or 1)
    if n <= 1:
        return NotImplemented
    y, mean, var = normed(input, weight, bias, eps)
    follow_(running_mean, mean, momentum, momentum)
    follow_(running_var, var, momentum, momentum * (n / (n - 1)))
    return y


def followed(running: Tensor, value: Tensor, momentum: float, share: float) -> Tensor:
    """``(1 - momentum) * running + share * value``, unrecorded."""
    with no_grad():
        return running * (1 - momentum) + value.reshape(running.shape) * share  # type: ignore[operator]


def follow_(running: Tensor, value: Tensor, momentum: float, share: float) -> Tensor:
    """``followed`` in place."""
    with no_grad():
        write(running, followed(running, value, momentum, share), "batch_norm")
    return running


def normed(input: Tensor, weight: Tensor | None, bias: Tensor | None, eps: float) -> tuple:
    """(y, mean, var) of ``batch_norm`` in training of an input that lies in rows."""
    return _normed(input, weight, bias, eps)


@public("nn.functional", deferred=InSteps(_in_steps, _follows_nothing))
def batch_norm(input: Tensor, running_mean: Tensor | None, running_var: Tensor | None,
               weight: Tensor | None = None, bias: Tensor | None = None, training: bool = False,
               momentum: float = 0.1, eps: float = 1e-5) -> Tensor:
    """``(input - mean) / sqrt(var + eps) * w + b`` per channel of (N, C, ...) (arXiv:1502.03167).

    training: use the batch's mean and variance, and move the running ones (if given) towards them by
    ``momentum``, in place, the variance unbiased. Otherwise use the running ones. Raises ShapeError
    for wrong sizes, ValueError when training with one value per channel, or without statistics.

    >>> x = fw.tensor([[1.0], [3.0]])
    >>> fw.nn.functional.batch_norm(x, None, None, training=True)
    tensor([[-1.0000],
            [ 1.0000]])
    """
    op = "batch_norm"
    if training and lies_in_rows(input):
        return batch_norm_parts(input, running_mean, running_var, weight, bias, momentum, eps)[0]
    if real_arg(input, op).ndim == 1 and not input.shape[0]:
        return clone_op.run(input)
    shape = _channel_args(op, input, 2, running_mean=running_mean, running_var=running_var,
                          weight=weight, bias=bias)
    if format_of(input._array).ndim:  # channels side by side: a row of them for each place
        turned = take_order(input, order(input.ndim))
        rows = take_shape(turned, (-1, input.shape[1]))
        y = batch_norm(rows, running_mean, running_var, weight, bias, training, momentum, eps)
        return take_order(take_shape(y, turned.shape), back(input.ndim))
    if not training:
        return _by_running(input, running_mean, running_var, weight, bias, eps, shape, op)
    dims = (0, *range(2, input.ndim))
    n = count_of(input.shape, dims)
    if not n:  # nothing to normalise, and nothing that the running statistics could follow
        parts = [1.0 if weight is None else weight, 0.0 if bias is None else bias]
        scale, shift = (take_shape(p, shape) if isinstance(p, Tensor) else p for p in parts)
        return input * scale + shift  # type: ignore[operator]
    _many_values(n, input.shape, op, "channel")
    made = in_one_dtype(batch_norm_op, input, weight, bias, dims=dims, per=shape, eps=eps)
    return _followed(made, running_mean, running_var, momentum, n, op)


def lies_in_rows(x: Any) -> bool:
    """Whether it has elements, which are the host's and lie as the shape says."""
    a = x._array if type(x) is Tensor else None
    return type(a) is np.ndarray and a.size > 0 and a.flags.c_contiguous


def batch_norm_parts(input: Tensor, running_mean: Tensor | None, running_var: Tensor | None,
                     weight: Tensor | None, bias: Tensor | None, momentum: float, eps: float) -> tuple:
    """(y, mean, var) of ``batch_norm`` in training, of an input that lies in rows."""
    made = _normed(input, weight, bias, eps)
    if running_mean is not None or running_var is not None:
        shape = input._array.shape
        check_shapes("batch_norm", shape[1:2], "one number per channel", running_mean=running_mean,
                     running_var=running_var)
        _followed(made, running_mean, running_var, momentum, input._array.size // shape[1], "batch_norm")
    return made


@planned
def _normed(input: Tensor, weight: Tensor | None, bias: Tensor | None, eps: float) -> list[Step]:
    """``batch_norm_parts`` without running statistics."""
    op = "batch_norm"
    per = _channel_args(op, input, 2, weight=weight, bias=bias)
    dims = (0, *range(2, input.ndim))
    _many_values(count_of(input.shape, dims), input.shape, op, "channel")
    settings = {"dims": dims, "per": per, "eps": eps}
    return [(how_to_norm(batch_norm_op, input, weight, bias) or _batch_normed, 3, settings)]


def _batch_normed(x: Tensor, weight: Tensor | None, bias: Tensor | None, **settings: Any) -> tuple:
    return in_one_dtype(batch_norm_op, x, weight, bias, **settings)


def _follows_none_of_each(input: Tensor, running_mean: Tensor | None = None, *others: Any,
                          **settings: Any) -> str | None:
    return None if running_mean is None else "running statistics"


@public("nn.functional", deferred=_follows_none_of_each)
def instance_norm(input: Tensor, running_mean: Tensor | None = None,
                  running_var: Tensor | None = None, weight: Tensor | None = None,
                  bias: Tensor | None = None, use_input_stats: bool = True, momentum: float = 0.1,
                  eps: float = 1e-5) -> Tensor:
    """As ``batch_norm``, but over each sample of (N, C, L...) by itself (arXiv:1607.08022).

    use_input_stats: use the input's statistics and move the running ones (if given) towards their
    average over the batch; otherwise use the running ones. Raises as ``batch_norm``.

    >>> fw.nn.functional.instance_norm(fw.tensor([[[1.0, 3.0]]]))
    tensor([[[-1.0000,  1.0000]]])
    """
    op = "instance_norm"
    shape = _channel_args(op, input, 3, running_mean=running_mean, running_var=running_var,
                          weight=weight, bias=bias)
    if not use_input_stats:
        return _by_running(input, running_mean, running_var, weight, bias, eps, shape, op)
    dims = tuple(range(2, input.ndim))
    n = count_of(input.shape, dims)
    _many_values(n, input.shape, op, "channel of a sample")
    norm = how_to_norm(group_norm_op, input, weight, bias) or partial(in_one_dtype, group_norm_op)
    made = norm(input, weight, bias, dims=dims, per=shape, eps=eps)
    return _followed(made, running_mean, running_var, momentum, n, op)


@public("nn.functional", deferred=True)
def group_norm(input: Tensor, num_groups: int, weight: Tensor | None = None,
               bias: Tensor | None = None, eps: float = 1e-5) -> Tensor:
    """``(input - mean) / sqrt(var + eps) * w + b`` over groups of channels of (N, C, ...) (1803.08494).

    Raises ShapeError unless C is a multiple of ``num_groups``, ValueError for one value per group.

    >>> fw.nn.functional.group_norm(fw.tensor([[1.0, 3.0, 5.0, 5.0]]), 2)
    tensor([[-1.0000,  1.0000,  0.0000,  0.0000]])
    """
    if autocast.used:
        input = autocast.in_float32_on_a_gpu(input)
    return group_norm_parts(input, weight, bias, num_groups, eps)[0]


@planned
def group_norm_parts(input: Tensor, weight: Tensor | None, bias: Tensor | None, num_groups: int,
                     eps: float) -> list[Step]:
    """(y, mean, var) of ``group_norm``."""
    op = "group_norm"
    _channel_args(op, input, 2, weight=weight, bias=bias)
    n, c, *rest = input.shape
    if num_groups < 1 or c % num_groups:
        raise ShapeError(f"{op}: {c} channels do not divide into {num_groups} groups; choose a divisor of "
                         f"{c}")
    if n * (c // num_groups) * math.prod(rest) == 1:
        _many_values(1, input.shape, op, "group")
    per = (1, num_groups, c // num_groups) + (1,) * len(rest)
    settings = {"dims": tuple(range(2, len(per))), "per": per, "eps": eps}
    if (norm := how_to_norm(group_norm_op, input, weight, bias)) is not None:
        return [(norm, 3, settings)]  # which takes the channels as they stand
    return [(_norm_of_groups, 3, settings)]


def _norm_of_groups(x: Tensor, weight: Tensor | None, bias: Tensor | None, per: tuple,
                    **settings: Any) -> tuple:
    grouped = take_shape(x, (x.shape[0], *per[1:3], *x.shape[2:]))
    y, mean, var = in_one_dtype(group_norm_op, grouped, weight, bias, per=per, **settings)
    return take_shape(y, x.shape), mean, var


@public("nn.functional", autocast="float32", deferred=True)
def local_response_norm(input: Tensor, size: int, alpha: float = 1e-4, beta: float = 0.75,
                        k: float = 1.0) -> Tensor:
    """``x / (k + alpha * mean of x**2 over size neighbouring channels)**beta``: (n, c, *) -> (n, c, *).

    Beyond the first and last channel there are zeros. A. Krizhevsky et al., "ImageNet classification
    with deep convolutional neural networks", 2012. Raises ShapeError below 3 dimensions.

    >>> fw.nn.functional.local_response_norm(fw.ones(1, 1, 1), 1, alpha=3.0, beta=0.5)
    tensor([[[0.5000]]])
    """
    x: Any = real_arg(input, "local_response_norm")
    floating(x, "local_response_norm")
    if x.ndim < 3:
        raise ShapeError(f"local_response_norm: input must be (n, c, *), got shape {list(x.shape)}")
    if size < 1:
        raise ValueError(f"local_response_norm: size must be positive, got {size}")
    if not x.numel():
        return x
    flat = (x * x).reshape(*x.shape[:2], -1).mT  # channels last, to pad them
    near = pad(flat, (size // 2, (size - 1) // 2)).unfold(2, size, 1).mean(-1)  # type: ignore[attr-defined]
    return x / (near.mT.reshape(x.shape) * alpha + k) ** beta
