"""Normalisation: to mean 0 and variance 1 (or root mean square 1) over some dimensions.

With ``y = (x - mean) * rstd`` over n elements: ``dmean/dx = 1/n``, ``drstd/dx = -rstd**2 * y / n``,
and a cotangent g of y gives ``rstd * (g - mean(g) - y * mean(g * y))``.
"""

import math
from typing import Any

from ..autograd.mode import no_grad
from ..dtypes import finfo, float16, float32
from ..errors import ShapeError
from ..tensor import Tensor
from .args import floating, real_arg, size_args, tensor_arg
from .broadcast import expand
from .cast import cast
from .inplace import write
from .op import Meta, Op
from .pointwise import rsqrt
from .public import public
from .reduce import kept_shape, mean_op
from .view import reshape_op


def _mean(x: Any, dims: tuple[int, ...]) -> Any:
    return mean_op(x, dims=dims, keepdim=True)


def _size(shape: tuple[int, ...], dims: tuple[int, ...]) -> int:
    return math.prod(shape[d] for d in dims)


def _standardize_kernel(xp: Any, x: Any, *, dims: tuple[int, ...], eps: float) -> tuple:
    average = x.mean(axis=dims, keepdims=True, dtype=x.dtype)
    y = x - average
    var = xp.square(y).mean(axis=dims, keepdims=True, dtype=x.dtype)
    rstd = 1 / xp.sqrt(var + eps)
    y *= rstd
    return y, average, rstd, var


def _standardize_vjp(g: list, y: Any, rstd: Any, x_shape: tuple[int, ...], dims: tuple[int, ...]) -> Any:
    g_y, g_mean, g_rstd, _ = (*g, None, None)[:4]
    share = 1 / max(_size(x_shape, dims), 1)
    terms = []
    if g_y is not None:
        terms.append(rstd * (g_y - _mean(g_y, dims) - y * _mean(g_y * y, dims)))
    if g_rstd is not None:
        terms.append(y * (g_rstd * (rstd * rstd) * -share))
    if g_mean is not None:
        terms.append(expand(g_mean * share, size=x_shape))
    total = terms[0]
    for term in terms[1:]:
        total = total + term
    return total


def _standardize_infer(x: Meta, *, dims: tuple[int, ...], eps: float) -> tuple:
    floating(x, "standardize")
    small = Meta(kept_shape(x.shape, dims), x.dtype)
    return x, small, small, small


# y = (x - mean) * rstd with rstd = 1 / sqrt(var + eps); var is for running statistics only
standardize = Op("standardize", "x", outputs="y mean rstd var", differentiable=3,
                 kernel=_standardize_kernel, infer=_standardize_infer, vjp={"x": _standardize_vjp})


def _rms_kernel(xp: Any, x: Any, *, dims: tuple[int, ...], eps: float) -> tuple:
    rstd = 1 / xp.sqrt(xp.square(x).mean(axis=dims, keepdims=True, dtype=x.dtype) + eps)
    return x * rstd, rstd


def _rms_vjp(g: list, y: Any, rstd: Any, x_shape: tuple[int, ...], dims: tuple[int, ...]) -> Any:
    g_y, g_rstd = g
    total = None
    if g_y is not None:
        total = rstd * (g_y - y * _mean(g_y * y, dims))
    if g_rstd is not None:
        term = y * (g_rstd * (rstd * rstd) * (-1 / max(_size(x_shape, dims), 1)))
        total = term if total is None else total + term
    return total


def _rms_infer(x: Meta, *, dims: tuple[int, ...], eps: float) -> tuple:
    floating(x, "rms_norm", "input")
    return x, Meta(kept_shape(x.shape, dims), x.dtype)


rms_op = Op("rms", "x", outputs="y rstd", kernel=_rms_kernel, infer=_rms_infer, vjp={"x": _rms_vjp})


def _standardized(x: Tensor, dims: tuple[int, ...], eps: float, op: Op = standardize) -> tuple:
    """What ``op`` gives; of float16, whose squares overflow from 256 on, computed in float32."""
    if x.dtype is not float16:
        return op.run(x, dims=dims, eps=eps)
    y, *statistics = op.run(cast.run(x, dtype=float32), dims=dims, eps=eps)
    return cast.run(y, dtype=float16), *statistics


# -- weight and bias -----------------------------------------------------------------------------


def _affine(y: Tensor, weight: Any, bias: Any, shape: tuple[int, ...]) -> Tensor:
    """``y * weight + bias``, both seen in ``shape``. Never y itself, which its backward needs unchanged."""
    if weight is None and bias is None and y._node is not None:
        return y.clone()  # type: ignore[attr-defined]
    if weight is not None:
        y = y * (weight if weight.shape == shape else reshape_op.run(weight, shape=shape))
    if bias is not None:
        y = y + (bias if bias.shape == shape else reshape_op.run(bias, shape=shape))
    return y


def _check_shapes(op: str, wanted: tuple[int, ...], why: str, **tensors: Any) -> None:
    for name, t in tensors.items():
        if t is not None and tensor_arg(t, op, name).shape != wanted:
            raise ShapeError(f"{op}: {name} must have shape {list(wanted)} ({why}), got {list(t.shape)}")


def _last_dims(x: Any, normalized_shape: Any, op: str) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """(normalized_shape as a tuple, the dimensions it names), checked."""
    floating(real_arg(x, op, "input"), op, "input")
    shape = size_args((normalized_shape,), op, "normalized_shape")
    if not shape or x.shape[x.ndim - len(shape):] != shape or len(shape) > x.ndim:
        raise ShapeError(f"{op}: normalized_shape {list(shape)} must be the last sizes of the input, whose "
                         f"shape is {list(x.shape)}")
    return shape, tuple(range(x.ndim - len(shape), x.ndim))


@public("nn.functional")
def layer_norm(input: Tensor, normalized_shape: Any, weight: Tensor | None = None,
               bias: Tensor | None = None, eps: float = 1e-5) -> Tensor:
    """``(input - mean) / sqrt(var + eps) * w + b`` over the last dimensions (arXiv:1607.06450).

    normalized_shape: their sizes, and the shape of weight and bias. Raises ShapeError if it does not
    fit the input.

    >>> fw.nn.functional.layer_norm(fw.tensor([[1.0, 3.0]]), (2,))
    tensor([[-1.0000,  1.0000]])
    """
    shape, dims = _last_dims(input, normalized_shape, "layer_norm")
    _check_shapes("layer_norm", shape, "normalized_shape", weight=weight, bias=bias)
    return _affine(_standardized(input, dims=dims, eps=eps)[0], weight, bias, shape)


@public("nn.functional")
def rms_norm(input: Tensor, normalized_shape: Any, weight: Tensor | None = None,
             eps: float | None = None) -> Tensor:
    """``input / sqrt(mean(input**2) + eps) * w`` over the last dimensions (arXiv:1910.07467).

    eps: by default the machine epsilon of the input's dtype. Raises ShapeError if normalized_shape
    does not fit the input.

    >>> fw.nn.functional.rms_norm(fw.tensor([[3.0, 4.0]]), (2,))
    tensor([[0.8485, 1.1314]])
    """
    shape, dims = _last_dims(input, normalized_shape, "rms_norm")
    _check_shapes("rms_norm", shape, "normalized_shape", weight=weight)
    eps = finfo(input.dtype).eps if eps is None else eps
    return _affine(_standardized(input, dims, eps, rms_op)[0], weight, None, shape)


def _channel_args(op: str, x: Any, least: int, **tensors: Any) -> tuple[int, ...]:
    """The shape in which one number per channel broadcasts to x (N, C, ...); all is checked."""
    floating(real_arg(x, op, "input"), op, "input")
    if x.ndim < least:
        raise ShapeError(f"{op}: wanted an input (N, C, ...) of at least {least} dimensions, got shape "
                         f"{list(x.shape)}")
    _check_shapes(op, (x.shape[1],), "one number per channel", **tensors)
    return (1, x.shape[1]) + (1,) * (x.ndim - 2)


def _many_values(count: int, shape: tuple[int, ...], op: str, per: str) -> None:
    if count <= 1:
        raise ValueError(f"{op}: the variance of one value is not defined: an input of shape {list(shape)} "
                         f"has {count} per {per}; use a larger batch, or eval mode")


def _update(running: Tensor | None, value: Any, momentum: float, op: str) -> None:
    """``running = (1 - momentum) * running + momentum * value``, in place and unrecorded."""
    if running is not None:
        with no_grad():
            write(running, running * (1 - momentum) + value * momentum, op)  # type: ignore[operator]


def _with_running(x: Tensor, mean: Any, var: Any, weight: Any, bias: Any, eps: float,
                  shape: tuple[int, ...], op: str) -> Tensor:
    """Normalised by given statistics: one multiplication and one addition per element."""
    if mean is None or var is None:
        raise ValueError(f"{op}: without the input's own statistics (eval mode), running_mean and "
                         f"running_var are needed")
    scale = rsqrt(var + eps)
    if weight is not None:
        scale = scale * weight  # type: ignore[operator]
    shift = -mean * scale if bias is None else bias - mean * scale
    return _affine(x, scale, shift, shape)


@public("nn.functional")
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
    shape = _channel_args(op, input, 2, running_mean=running_mean, running_var=running_var,
                          weight=weight, bias=bias)
    if not training:
        return _with_running(input, running_mean, running_var, weight, bias, eps, shape, op)
    dims = (0, *range(2, input.ndim))
    n = _size(input.shape, dims)
    _many_values(n, input.shape, op, "channel")
    y, mean, _, var = _standardized(input, dims=dims, eps=eps)
    if running_mean is not None or running_var is not None:
        flat = (input.shape[1],)
        with no_grad():
            mean, var = reshape_op.run(mean, shape=flat), reshape_op.run(var, shape=flat)
            _update(running_mean, mean, momentum, op)
            _update(running_var, var * (n / (n - 1)), momentum, op)
    return _affine(y, weight, bias, shape)


@public("nn.functional")
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
        return _with_running(input, running_mean, running_var, weight, bias, eps, shape, op)
    dims = tuple(range(2, input.ndim))
    n = _size(input.shape, dims)
    _many_values(n, input.shape, op, "channel of a sample")
    y, mean, _, var = _standardized(input, dims=dims, eps=eps)
    if running_mean is not None or running_var is not None:
        with no_grad():
            mean, var = (reshape_op.run(s, shape=input.shape[:2]).mean(0) for s in (mean, var))
            _update(running_mean, mean, momentum, op)
            _update(running_var, var * (n / (n - 1)), momentum, op)
    return _affine(y, weight, bias, shape)


@public("nn.functional")
def group_norm(input: Tensor, num_groups: int, weight: Tensor | None = None,
               bias: Tensor | None = None, eps: float = 1e-5) -> Tensor:
    """``(input - mean) / sqrt(var + eps) * w + b`` over groups of channels of (N, C, ...) (1803.08494).

    Raises ShapeError unless C is a multiple of ``num_groups``, ValueError for one value per group.

    >>> fw.nn.functional.group_norm(fw.tensor([[1.0, 3.0, 5.0, 5.0]]), 2)
    tensor([[-1.0000,  1.0000,  0.0000,  0.0000]])
    """
    op = "group_norm"
    shape = _channel_args(op, input, 2, weight=weight, bias=bias)
    n, c = input.shape[:2]
    if num_groups < 1 or c % num_groups:
        raise ShapeError(f"{op}: {c} channels do not divide into {num_groups} groups; choose a divisor of "
                         f"{c}")
    inner = c // num_groups * math.prod(input.shape[2:])
    if n * inner == 1:
        _many_values(1, input.shape, op, "group")
    grouped = reshape_op.run(input, shape=(n, num_groups, inner))
    y = _standardized(grouped, dims=(2,), eps=eps)[0]
    return _affine(reshape_op.run(y, shape=input.shape), weight, bias, shape)
