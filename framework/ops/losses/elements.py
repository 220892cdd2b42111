"""Pointwise losses; those over classes stand in ``classes.py``, over distances in ``distances.py``.

Prediction and target must have the same shape here: PyTorch broadcasts them with at most a warning,
and a [N, 1] prediction against an [N] target then trains on an N x N table of differences.
"""

import math
import warnings
from collections.abc import Callable
from typing import Any

from ...backends import device_flags
from ...backends.native import native_or
from ...config import names
from ...errors import ShapeError
from ...tensor import Tensor
from ..language.elementwise import Elementwise
from ..pointwise.activations import logsigmoid_op
from ..record.args import number_arg, tensor_arg
from ..record.autocast import by_place
from ..record.batched import innermost
from ..record.deferred import fails_for_numbers
from ..record.planned import Step, planned
from ..record.public import public
from ..reduce.sums import mean_op, sum_op
from ..reduce.total import Total
from ..shape.broadcast import broadcast_shape, expand
from ..shape.view import take_shape

# -- shared --------------------------------------------------------------------------------------


def _reduced(losses: Tensor, reduction: str, op: str, weight: Tensor | None = None) -> Tensor:
    if weight is not None:
        losses = losses * weight  # type: ignore[operator]
    every = tuple(range(losses.ndim))
    if reduction == "none":
        return losses
    if reduction == "sum":
        return sum_op.run(losses, dims=every, keepdim=False)
    if reduction != "mean":
        raise ValueError(f"{op}: reduction must be 'none', 'mean' or 'sum', got {reduction!r}")
    if weight is None:
        return mean_op.run(losses, dims=every, keepdim=False)
    total = expand.run(weight, size=losses.shape).sum()  # type: ignore[attr-defined]
    return sum_op.run(losses, dims=every, keepdim=False) / total


def _pointwise(op: Elementwise, total: Total, x: Tensor, target: Tensor, reduction: str, name: str,
               weight: Tensor | None = None, **settings: Any) -> Tensor:
    """The reduced loss; its mean or sum in one pass where both are floating numbers of one dtype."""
    dtype = x._array.dtype
    if reduction in ("mean", "sum") and weight is None and dtype.kind == "f" \
            and dtype == target._array.dtype and x.numel():
        return total.run(x, target, count=x.numel() if reduction == "mean" else 1, **settings)
    return _reduced(op.run(x, target, **settings), reduction, name, weight)


def _alike(op: str, **tensors: Any) -> None:
    """All are tensors of one shape; the message names the two that differ."""
    names = list(tensors)
    for name in names:
        tensor_arg(tensors[name], op, name)
    first = tensors[names[0]]
    for name in names[1:]:
        if tensors[name].shape != first.shape:
            raise ShapeError(
                f"{op}: {name} has shape {list(tensors[name].shape)} but {names[0]} has shape "
                f"{list(first.shape)}, and they are not broadcast here; reshape one, e.g. with "
                f".squeeze(-1) or .unsqueeze(-1), or expand it on purpose with .expand_as()")


def _paired(op: str, input: Any, target: Any) -> tuple[Tensor, Tensor]:
    """Both, of one shape. For programs of PyTorch they are broadcast, with its warning."""
    if isinstance(input, Tensor) and isinstance(target, Tensor) and input._array.shape == target._array.shape:
        return input, target
    tensor_arg(input, op, "input"), tensor_arg(target, op, "target")
    if input.shape != target.shape and names.package == "torch":
        warnings.warn(f"{op}: target of shape {list(target.shape)} and input of shape {list(input.shape)} "
                      f"are broadcast, which is seldom meant; give both one shape", UserWarning, stacklevel=3)
        size = broadcast_shape((input.shape, target.shape), op)
        return expand.run(input, size=size), expand.run(target, size=size)
    _alike(op, input=input, target=target)
    return input, target


def _check_weight(weight: Any, input: Tensor, op: str) -> None:
    if weight is not None and broadcast_shape(
            (tensor_arg(weight, op, "weight").shape, input.shape), op) != input.shape:
        raise ShapeError(f"{op}: weight of shape {list(weight.shape)} does not broadcast to the losses' "
                         f"shape {list(input.shape)}")


# -- pointwise -----------------------------------------------------------------------------------

_mse = Elementwise("mse_loss", "x target", "square(x - target)", result="float",
                   vjp={"x": "g * (2 * (x - target))", "target": "g * (2 * (target - x))"})
_l1 = Elementwise("l1_loss", "x target", "abs(x - target)", result="float",
                  vjp={"x": "g * sign(x - target)", "target": "g * sign(target - x)"})
_CLIPPED = "g * (minimum(maximum({0}, -{1}), {1}) * {2})"
_smooth = Elementwise(
    "smooth_l1_loss", "x target", "where(abs(x - target) < beta, square(x - target) * (0.5 / beta),"
    " abs(x - target) - 0.5 * beta)", settings="beta", result="float",
    vjp={"x": _CLIPPED.format("x - target", "beta", "(1 / beta)"),
         "target": _CLIPPED.format("target - x", "beta", "(1 / beta)")})
_huber = Elementwise(
    "huber_loss", "x target", "where(abs(x - target) <= delta, square(x - target) * 0.5,"
    " delta * (abs(x - target) - 0.5 * delta))", settings="delta", result="float",
    vjp={"x": _CLIPPED.format("x - target", "delta", "1"),
         "target": _CLIPPED.format("target - x", "delta", "1")})
_mse_total, _l1_total, _smooth_total, _huber_total = map(Total, (_mse, _l1, _smooth, _huber))


@public("nn.functional", op=_mse, autocast="float32")
def mse_loss(input: Tensor, target: Tensor, *, reduction: str = "mean",
             weight: Tensor | None = None) -> Tensor:
    """``(input - t)**2``, by ``reduction`` "mean", "sum" or "none" (one loss per element).

    weight: factors of the elements; their weighted mean is then taken. Raises ShapeError unless both
    have one shape.

    >>> fw.nn.functional.mse_loss(fw.tensor([1.0, 2.0]), fw.tensor([1.0, 4.0]))
    tensor(2.)
    """
    input, target = _paired("mse_loss", input, target)
    _check_weight(weight, input, "mse_loss")
    return _pointwise(_mse, _mse_total, input, target, reduction, "mse_loss", weight)


@public("nn.functional", op=_l1, autocast="float32")
def l1_loss(input: Tensor, target: Tensor, *, reduction: str = "mean",
            weight: Tensor | None = None) -> Tensor:
    """``|input - t|``. Arguments and errors as ``mse_loss``.

    >>> fw.nn.functional.l1_loss(fw.tensor([1.0, 2.0]), fw.tensor([1.0, 4.0]))
    tensor(1.)
    """
    input, target = _paired("l1_loss", input, target)
    _check_weight(weight, input, "l1_loss")
    if input.is_complex():
        return _reduced(abs(input - target), reduction, "l1_loss", weight)  # type: ignore[operator]
    return _pointwise(_l1, _l1_total, input, target, reduction, "l1_loss", weight)


@public("nn.functional", op=_smooth, autocast="float32")
def smooth_l1_loss(input: Tensor, target: Tensor, *, reduction: str = "mean",
                   beta: float = 1.0) -> Tensor:
    """``(input - t)**2 / (2 beta)`` where ``|input - t| < beta``, else ``|input - t| - beta / 2``.

    Raises ShapeError unless both have one shape, ValueError for a negative beta.

    >>> fw.nn.functional.smooth_l1_loss(fw.tensor([1.0, 2.0]), fw.tensor([2.0, 4.0]))
    tensor(1.)
    """
    input, target = _paired("smooth_l1_loss", input, target)
    beta = number_arg(beta, "smooth_l1_loss", "beta")
    if beta < 0:
        raise ValueError(f"smooth_l1_loss: beta must not be negative, got {beta}")
    if beta == 0:
        return _pointwise(_l1, _l1_total, input, target, reduction, "smooth_l1_loss")
    return _pointwise(_smooth, _smooth_total, input, target, reduction, "smooth_l1_loss", beta=beta)


@public("nn.functional", op=_huber, autocast="float32")
def huber_loss(input: Tensor, target: Tensor, reduction: str = "mean", delta: float = 1.0,
               weight: Tensor | None = None) -> Tensor:
    """``(input - t)**2 / 2`` where ``|input - t| <= delta``, else ``delta * (|input - t| - delta / 2)``.

    Raises ShapeError unless both have one shape, ValueError for a delta that is not positive.

    >>> fw.nn.functional.huber_loss(fw.tensor([1.0, 2.0]), fw.tensor([2.0, 4.0]))
    tensor(1.)
    """
    input, target = _paired("huber_loss", input, target)
    delta = number_arg(delta, "huber_loss", "delta")
    if delta <= 0:
        raise ValueError(f"huber_loss: delta must be positive, got {delta}")
    _check_weight(weight, input, "huber_loss")
    return _pointwise(_huber, _huber_total, input, target, reduction, "huber_loss", weight, delta=delta)


# The logarithms are limited to -100 and the derivative's divisor from below, so that predictions of
# exactly 0 and 1 give finite losses and gradients.
_bce = Elementwise(
    "binary_cross_entropy", "x target",
    "(target - 1) * maximum(log1p(-x), -100.0) - target * maximum(log(x), -100.0)", result="float",
    vjp={"x": "g * ((x - target) / maximum(x * (1 - x), 1e-12))",
         "target": "g * (maximum(log1p(-x), -100.0) - maximum(log(x), -100.0))"})
_bce_logits = Elementwise(
    "binary_cross_entropy_with_logits", "x target",
    "maximum(x, 0) - x * target + log1p(exp(-abs(x)))", result="float",
    vjp={"x": "g * (sigmoid(x) - target)", "target": "-g * x"})


_bce_total = Total(_bce)
_LOG_SIGMOID = "(minimum(x, 0) - log1p(exp(-abs(x))))"
_bce_weighted = Elementwise(
    "binary_cross_entropy_with_logits of weights", "x target p",
    f"(1 - target) * x - (1 + (p - 1) * target) * {_LOG_SIGMOID}", result="float",
    vjp={"x": "g * (1 - target - (1 + (p - 1) * target) * exp(-maximum(x, 0) - log1p(exp(-abs(x)))))",
         "target": f"-g * (x + (p - 1) * {_LOG_SIGMOID})", "p": f"-g * target * {_LOG_SIGMOID}"})


def _unknown(array: Any, low: float, high: float) -> bool:
    return False


# whether an array is of floating numbers of which none lies outside; False where that is not known
_reals_within: Callable = native_or("reals_within", _unknown, _unknown)


def _check_unit(array: Any, wanted: str, remedy: str) -> None:
    """Raise ValueError where a number is below 0 or above 1; nan is neither."""
    if _reals_within(array, 0.0, 1.0):
        return
    said = f"binary_cross_entropy: {wanted} [0, 1], found "
    if device_flags.check_reals(array, 0, 1, f"{said}{{real}}{remedy}"):
        return
    if bool(((array < 0) | (array > 1)).any()):
        raise ValueError(f"{said}values from {array.min().item()} to {array.max().item()}{remedy}")


def _checked_bce(input: Tensor, target: Tensor, weight: Tensor | None, reduction: str) -> Tensor:
    _check_unit(innermost(input._array), "input must hold probabilities in",
                "; apply sigmoid first, or use binary_cross_entropy_with_logits")
    _check_unit(target._array, "target must lie in", "")
    if weight is not None:
        return _reduced(_bce.run(input, target) * weight, reduction, "binary_cross_entropy")  # type: ignore
    return _pointwise(_bce, _bce_total, input, target, reduction, "binary_cross_entropy")


@planned
def _bce_loss(input: Tensor, target: Tensor, weight: Tensor | None, reduction: str) -> list[Step]:
    _alike("binary_cross_entropy", input=input, target=target)
    _check_weight(weight, input, "binary_cross_entropy")
    return [(_checked_bce, 3, {"reduction": reduction})]


@public("nn.functional", op=_bce, autocast=by_place("refused", "float32"), deferred=fails_for_numbers)
def binary_cross_entropy(input: Tensor, target: Tensor, weight: Tensor | None = None, *,
                         reduction: str = "mean") -> Tensor:
    """``-(t * log(input) + (1 - t) * log(1 - input))`` for probabilities, the logs at least -100.

    weight: factors, broadcast to the losses. Raises ShapeError unless both have one shape, ValueError
    for input or target outside [0, 1].

    >>> fw.nn.functional.binary_cross_entropy(fw.tensor([0.5, 0.5]), fw.tensor([0.0, 1.0]))
    tensor(0.6931)
    """
    return _bce_loss(input, target, weight, reduction)


@public("nn.functional", op=_bce_logits, autocast="float32")
def binary_cross_entropy_with_logits(input: Tensor, target: Tensor, weight: Tensor | None = None, *,
                                     reduction: str = "mean",
                                     pos_weight: Tensor | None = None) -> Tensor:
    """``-(p * t * log(s) + (1 - t) * log(1 - s))`` with ``s = sigmoid(input)``, without overflow.

    weight: factors, broadcast to the losses. pos_weight: p, broadcast to the input. Raises ShapeError
    unless input and target have one shape.

    >>> fw.nn.functional.binary_cross_entropy_with_logits(fw.tensor([0.0, 99.0]), fw.tensor([0.0, 1.0]))
    tensor(0.3466)
    """
    op = "binary_cross_entropy_with_logits"
    _alike(op, input=input, target=target)
    _check_weight(weight, input, op)
    if pos_weight is None:
        losses = _bce_logits.run(input, target)
    else:
        _check_weight(pos_weight, input, op)
        losses = _bce_weighted.run(input, target, pos_weight)
    return _reduced(losses if weight is None else losses * weight, reduction, op)


_kl = Elementwise(
    "kl_div", "x target",
    "where(target == 0, 0.0, target * log(target)) - target * x", result="float",
    vjp={"x": "-g * target", "target": "gate(where(target > 0, g, 0.0), log(target) + 1) - g * x"})
_kl_log = Elementwise(
    "kl_div_log", "x target", "exp(target) * (target - x)", result="float",
    vjp={"x": "-g * exp(target)", "target": "g * (exp(target) * (target - x + 1))"})


@public("nn.functional", op=_kl, autocast="float32")
def kl_div(input: Tensor, target: Tensor, *, reduction: str = "mean",
           log_target: bool = False) -> Tensor:
    """``t * (log(t) - input)`` for log-probabilities; the sum is the Kullback-Leibler divergence.

    reduction: also "batchmean", the sum divided by the first size, which is the mathematical value.
    log_target: the target holds log-probabilities too. Raises ShapeError unless both have one shape.

    >>> x, t = fw.tensor([[0.5, 0.5]]).log(), fw.tensor([[0.25, 0.75]])
    >>> fw.nn.functional.kl_div(x, t, reduction="batchmean")
    tensor(0.1308)
    """
    input, target = _paired("kl_div", input, target)
    losses = (_kl_log if log_target else _kl).run(input, target)
    if reduction == "batchmean":
        rows = input.shape[0] if input.ndim else 1
        return _reduced(losses, "sum", "kl_div") / rows  # type: ignore[operator]
    return _reduced(losses, reduction, "kl_div")


@public("nn.functional", autocast="float32", deferred=True)
def soft_margin_loss(input: Tensor, target: Tensor, *, reduction: str = "mean") -> Tensor:
    """``log(1 + exp(-t * input))`` for targets -1 and 1. Raises ShapeError unless both have one shape.

    >>> fw.nn.functional.soft_margin_loss(fw.tensor([0.0]), fw.tensor([1.0]))
    tensor(0.6931)
    """
    input, target = _paired("soft_margin_loss", input, target)
    return _reduced(-logsigmoid_op.run(input * target), reduction, "soft_margin_loss")  # type: ignore


_poisson = Elementwise(
    "poisson_nll_loss", "x target", "x - target * log(x + eps)", settings="eps", result="float", complex=True,
    vjp={"x": "g * (1 - target / (x + eps))", "target": "-(g * log(x + eps))"})
_poisson_of_log = Elementwise("poisson_nll_loss_of_log", "x target", "exp(x) - target * x", result="float",
                              complex=True, vjp={"x": "g * (exp(x) - target)", "target": "-(g * x)"})
_MANY = "maximum(t, 1.0)"
_stirling = Elementwise(  # of numbers above 1
    "stirling", "t", f"where(t > 1, t * log({_MANY}) - t + 0.5 * log({2 * math.pi} * {_MANY}), 0.0)",
    result="float", vjp={"t": f"where(t > 1, g * (log({_MANY}) + 0.5 / {_MANY}), 0.0)"})


@public("nn.functional", autocast="float32", deferred=True)
def poisson_nll_loss(input: Tensor, target: Tensor, log_input: bool = True, full: bool = False, *,
                     eps: float = 1e-8, reduction: str = "mean") -> Tensor:
    """``exp(input) - t * input``, or ``input - t * log(input + eps)`` with ``log_input=False``.

    full: add Stirling's ``t log(t) - t + log(2 pi t) / 2`` where t > 1. Raises ShapeError unless both
    have one shape.

    >>> fw.nn.functional.poisson_nll_loss(fw.tensor([0.0]), fw.tensor([3.0]))
    tensor(1.)
    """
    x, t = _paired("poisson_nll_loss", input, target)
    losses: Any = _poisson_of_log.run(x, t) if log_input else _poisson.run(x, t, eps=float(eps))
    if full:
        losses = losses + _stirling.run(t)
    return _reduced(losses, reduction, "poisson_nll_loss")


_gaussian = Elementwise(
    "gaussian_nll_loss", "x target var",
    "0.5 * (log(maximum(var, eps)) + square(x - target) / maximum(var, eps))", settings="eps", result="float",
    vjp={"x": "g * ((x - target) / maximum(var, eps))", "target": "g * ((target - x) / maximum(var, eps))",
         "var": "g * (0.5 * (1 - square(x - target) / maximum(var, eps)) / maximum(var, eps))"})


@public("nn.functional")
def gaussian_nll_loss(input: Tensor, target: Tensor, var: Any, full: bool = False, eps: float = 1e-6,
                      reduction: str = "mean") -> Tensor:
    """``(log(v) + (input - t)**2 / v) / 2`` with ``v = max(var, eps)``.

    target broadcasts to input. var: a number, or a tensor of the input's shape, or that with some sizes 1 or
    without the last dimension.
    full: add ``log(2 pi) / 2``. The limit ``eps`` does not stop the gradient of var.
    Raises ShapeError for other shapes, ValueError for a negative variance.

    >>> fw.nn.functional.gaussian_nll_loss(fw.tensor([1.0]), fw.tensor([3.0]), fw.tensor([4.0]))
    tensor(1.1931)
    """
    op = "gaussian_nll_loss"
    tensor_arg(input, op, "input"), tensor_arg(target, op, "target")
    if broadcast_shape((input.shape, target.shape), op) != input.shape:
        input, target = _paired(op, input, target)
    eps = number_arg(eps, op, "eps")
    if isinstance(var, (int, float)) and not isinstance(var, bool):
        var = input.detach() * 0.0 + float(var)  # type: ignore[operator]
    if tensor_arg(var, op, "var").shape == input.shape[:-1] and input.ndim and var.shape != input.shape:
        var = take_shape(var, (*var.shape, 1))
    if var.ndim != input.ndim or any(v not in (1, n) for v, n in zip(var.shape, input.shape)):
        raise ShapeError(f"{op}: var of shape {list(var.shape)} does not fit an input of shape "
                         f"{list(input.shape)}; each of its sizes must be the input's or 1")
    told = device_flags.check_reals(
        innermost(var._array), 0, math.inf, f"{op}: var must not be negative, found {{real}}")
    if not told and bool((innermost(var._array) < 0).any()):
        raise ValueError(f"{op}: var must not be negative, its least value is {var._array.min().item()}")
    losses: Any = _gaussian.run(input, target, var, eps=float(eps))
    if full:
        losses = losses + 0.5 * math.log(2 * math.pi)
    return _reduced(losses, reduction, op)
