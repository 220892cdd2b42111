"""Losses over classes: nll_loss and cross_entropy, with class numbers or probabilities as target."""

import math
from typing import Any

from ..backends import array_module
from ..errors import DeviceError, DTypeError, ShapeError
from ..tensor import Tensor, wrap
from .args import floating, real_arg, tensor_arg
from .losses import _reduced
from .op import Meta, Op
from .public import public
from .reduce import mean_op, sum_op
from .softmax import log_softmax_op
from .view import reshape_op

# pick_class takes from x (N, C, d1...) the score of the target's class (N, d1...), 0 where the target
# is `ignore`; put_class, its transpose, puts scores at their classes into zeros.


def _places(xp: Any, target: Any, ignore: int | None) -> tuple[Any, Any, tuple]:
    """(classes with 0 for ignored ones, mask of ignored ones or None, index into (N, C, M))."""
    flat = target.reshape(target.shape[0], math.prod(target.shape[1:]))
    skip = None if ignore is None else flat == ignore
    safe = flat if skip is None else xp.where(skip, 0, flat)
    n, m = flat.shape
    return safe, skip, (xp.arange(n)[:, None], safe, xp.arange(m))


def _pick_kernel(xp: Any, x: Any, target: Any, *, ignore: int | None) -> Any:
    _, skip, key = _places(xp, target, ignore)
    out = x.reshape(*x.shape[:2], math.prod(x.shape[2:]))[key]
    if skip is not None:
        out[skip] = 0
    return out.reshape(target.shape)


def _put_kernel(xp: Any, x: Any, target: Any, *, ignore: int | None, classes: int) -> Any:
    _, skip, key = _places(xp, target, ignore)
    flat = x.reshape(key[1].shape)
    if skip is not None:
        flat = xp.where(skip, xp.zeros_like(flat), flat)
    out = xp.zeros((flat.shape[0], classes, flat.shape[1]), x.dtype)
    out[key] = flat
    return out.reshape(target.shape[0], classes, *target.shape[1:])


pick_class = Op("pick_class", "x target", kernel=_pick_kernel,
                infer=lambda x, target, *, ignore: Meta(target.shape, x.dtype),
                vjp={"x": lambda g, x_shape, target, ignore: put_class(
                    g, target, ignore=ignore, classes=x_shape[1])})
put_class = Op("put_class", "x target", kernel=_put_kernel,
               infer=lambda x, target, *, ignore, classes: Meta(
                   (target.shape[0], classes, *target.shape[1:]), x.dtype),
               vjp={"x": lambda g, target, ignore: pick_class(g, target, ignore=ignore)})


def _batched(input: Tensor, target: Tensor, op: str) -> tuple[Tensor, Tensor]:
    """Scores (N, C, d1...) and classes (N, d1...), checked; one sample (C) becomes a batch of one."""
    real_arg(input, op, "input"), tensor_arg(target, op, "target")
    floating(input, op, "input")
    if target.device != input.device:
        raise DeviceError(f"{op}: target is on {target.device}, the input on {input.device}; move one with "
                          f".to(device)")
    if target._array.dtype.kind not in "iu":
        raise DTypeError(f"{op}: target must hold class numbers (int64), got {target.dtype}; convert it "
                         f"with target.long()")
    expected = input.shape[:1] + input.shape[2:] if input.ndim > 1 else ()
    if input.ndim == 0 or target.shape != expected:
        raise ShapeError(f"{op}: an input of shape {list(input.shape)} (N, C, d1...) needs a target of "
                         f"class numbers of shape {list(expected)}, got {list(target.shape)}")
    if input.ndim == 1:
        input = reshape_op.run(input, shape=(1, *input.shape))
        target = reshape_op.run(target, shape=(1,))
    return input, target


def _check_classes(target: Any, classes: int, ignore: int, op: str) -> bool:
    """Whether a target is ignored; IndexError for one that is no class."""
    if not target.size:
        return False
    low, high = int(target.min()), int(target.max())
    if low >= 0 and high < classes and not low <= ignore <= high:
        return False
    xp = array_module(target)
    wrong = ((target < 0) | (target >= classes)) & (target != ignore)
    if bool(wrong.any()):
        at = tuple(int(i[0]) for i in xp.nonzero(wrong))
        raise IndexError(f"{op}: target{list(at)} is class {int(target[at])}, but there are {classes} "
                         f"classes (0 to {classes - 1}), and ignore_index is {ignore}")
    return bool((target == ignore).any())


def _class_weights(weight: Tensor | None, x: Tensor, op: str) -> None:
    classes = x.shape[1]
    if weight is None:
        return
    if tensor_arg(weight, op, "weight").device != x.device:
        raise DeviceError(f"{op}: weight is on {weight.device}, the input on {x.device}; move one with "
                          f".to(device)")
    if weight.shape != (classes,):
        raise ShapeError(f"{op}: weight must have one number per class ([{classes}]), got shape "
                         f"{list(weight.shape)}")


def _nll(x: Tensor, target: Tensor, weight: Tensor | None, ignore: int | None, reduction: str,
         op: str) -> Tensor:
    """The loss for checked log-probabilities (N, C, d1...)."""
    picked = pick_class.run(x, target, ignore=ignore)
    share = None
    if weight is not None or ignore is not None:
        share = _shares(x, target, weight, ignore)
        if weight is not None:
            picked = picked * share
    if reduction == "none":
        return -picked
    every = tuple(range(picked.ndim))
    if share is None and reduction == "mean":
        return -mean_op.run(picked, dims=every, keepdim=False)
    total = -_reduced(picked, "sum" if reduction == "mean" else reduction, op)  # type: ignore
    return total / share.sum() if reduction == "mean" else total  # type: ignore


def _shares(x: Tensor, target: Tensor, weight: Tensor | None, ignore: int | None) -> Tensor:
    """What each target counts: its class's weight or 1, and 0 if it is ignored."""
    classes, xp = target._array, array_module(target._array)
    keep = xp.ones(classes.shape, x._array.dtype)
    if ignore is not None:
        keep[classes == ignore] = 0
        classes = xp.where(classes == ignore, 0, classes)
    if weight is not None:
        keep = keep * weight._array[classes].astype(keep.dtype)
    return wrap(keep)


@public("nn.functional", op=pick_class)
def nll_loss(input: Tensor, target: Tensor, weight: Tensor | None = None, *,
             ignore_index: int = -100, reduction: str = "mean") -> Tensor:
    """``-w[t] * input[t]`` for log-probabilities: (N, C), (C) or (N, C, d1...), classes t without C.

    "mean" divides by the sum of the weights. Targets of ``ignore_index`` count nothing. Raises
    IndexError for a target that is no class, ShapeError or DTypeError for wrong tensors.

    >>> x = fw.tensor([[0.5, 0.5], [0.25, 0.75]]).log()
    >>> fw.nn.functional.nll_loss(x, fw.tensor([0, 1]))
    tensor(0.4904)
    """
    x, t = _batched(input, target, "nll_loss")
    _class_weights(weight, x, "nll_loss")
    ignored = _check_classes(t._array, x.shape[1], ignore_index, "nll_loss")
    out = _nll(x, t, weight, ignore_index if ignored else None, reduction, "nll_loss")
    return reshape_op.run(out, shape=target.shape) if reduction == "none" else out


@public("nn.functional")
def cross_entropy(input: Tensor, target: Tensor, weight: Tensor | None = None, *,
                  ignore_index: int = -100, reduction: str = "mean",
                  label_smoothing: float = 0.0) -> Tensor:
    """``-w[t] * log_softmax(input)[t]`` for scores: (N, C), (C) or (N, C, d1...).

    target: class numbers (the input's shape without C), or class probabilities (the input's shape).
    label_smoothing: that share of each target is spread evenly over the classes. "mean" divides by
    the sum of the weights (class numbers), or by the number of targets (probabilities). Raises
    IndexError for a target that is no class, ShapeError or DTypeError for wrong tensors.

    >>> x = fw.tensor([[2.0, 0.0], [0.0, 0.0]])
    >>> fw.nn.functional.cross_entropy(x, fw.tensor([0, 1]))
    tensor(0.4100)
    """
    op = "cross_entropy"
    if not 0.0 <= label_smoothing <= 1.0:
        raise ValueError(f"{op}: label_smoothing must be in [0, 1], got {label_smoothing}")
    tensor_arg(input, op, "input"), tensor_arg(target, op, "target")
    if input.ndim and target.shape == input.shape and target.is_floating_point():
        return _soft_cross_entropy(input, target, weight, reduction, label_smoothing)
    x, t = _batched(input, target, op)
    _class_weights(weight, x, op)
    ignore = ignore_index if _check_classes(t._array, x.shape[1], ignore_index, op) else None
    logp = log_softmax_op.run(x, dim=1)
    out = _nll(logp, t, weight, ignore, reduction, op)
    if label_smoothing:
        even = _even(logp, t, weight, ignore, reduction, op) * (1 / x.shape[1])  # type: ignore
        out = out * (1 - label_smoothing) + even * label_smoothing  # type: ignore[operator]
    return reshape_op.run(out, shape=target.shape) if reduction == "none" else out


def _even(logp: Tensor, target: Tensor, weight: Tensor | None, ignore: int | None, reduction: str,
          op: str) -> Tensor:
    """The loss against all classes at once, of which label smoothing adds a share."""
    spread = _by_class(logp, weight)
    losses = -sum_op.run(spread, dims=(1,), keepdim=False)
    share = _shares(logp, target, weight, ignore)
    if ignore is not None:
        losses = losses * wrap((target._array != ignore).astype(losses._array.dtype))
    if reduction != "mean":
        return _reduced(losses, reduction, op)
    return losses.sum() / share.sum()  # type: ignore[attr-defined]


def _by_class(x: Tensor, weight: Tensor | None) -> Tensor:
    if weight is None:
        return x
    shaped = reshape_op.run(weight, shape=(1, x.shape[1]) + (1,) * (x.ndim - 2))
    return x * shaped  # type: ignore[operator]


def _soft_cross_entropy(input: Tensor, target: Tensor, weight: Tensor | None, reduction: str,
                        smoothing: float) -> Tensor:
    op = "cross_entropy"
    floating(input, op, "input")
    single = input.ndim == 1
    shape = (1, *input.shape) if single else input.shape
    x, t = reshape_op.run(input, shape=shape), reshape_op.run(target, shape=shape)
    _class_weights(weight, x, op)
    if smoothing:
        t = t * (1 - smoothing) + smoothing / shape[1]  # type: ignore[operator]
    losses = -sum_op.run(_by_class(log_softmax_op.run(x, dim=1) * t, weight),  # type: ignore
                         dims=(1,), keepdim=False)
    return reshape_op.run(losses, shape=()) if single else _reduced(losses, reduction, op)
