"""Losses over classes: nll_loss and cross_entropy, with class numbers or probabilities as target."""

import math
import operator
from typing import Any

import numpy as np

from ...backends import array_module, device_flags
from ...dtypes import DType, float32, int64
from ...errors import DeviceError, DTypeError, ShapeError
from ...tensor import Tensor, wrap
from ..convert.cast import cast
from ..index.index import extremes
from ..record.args import floating, number_arg, real_arg, tensor_arg
from ..record.batched import any_batched, call, everywhere, looped, merged
from ..record.deferred import Positions
from ..record.op import Meta, Op
from ..record.planned import Step, have_kernels, planned
from ..record.public import public
from ..reduce.softmax import log_softmax_op, softmax_op
from ..reduce.sums import mean_op, sum_op
from ..shape.view import reshape_op, take_shape
from . import cuda
from .elements import _reduced

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
    if ignore is None and x.ndim == 2:
        return x[xp.arange(len(x)), target]
    _, skip, key = _places(xp, target, ignore)
    out = x.reshape(*x.shape[:2], math.prod(x.shape[2:]))[key]
    if skip is not None:
        out[skip] = 0
    return out.reshape(target.shape)


def _put_kernel(xp: Any, x: Any, target: Any, *, ignore: int | None, classes: int) -> Any:
    if ignore is None and x.ndim == 1:
        out = xp.zeros((len(x), classes), x.dtype)
        out[xp.arange(len(x)), target] = x
        return out
    _, skip, key = _places(xp, target, ignore)
    flat = x.reshape(key[1].shape)
    if skip is not None:
        flat = xp.where(skip, xp.zeros_like(flat), flat)
    out = xp.zeros((flat.shape[0], classes, flat.shape[1]), x.dtype)
    out[key] = flat
    return out.reshape(target.shape[0], classes, *target.shape[1:])


pick_class = Op("pick_class", "x target", onnx="picked(x, target, ignore)",
                runtime="picked(x, target, ignore)", batch=merged(),
                kernel=_pick_kernel, device=cuda.pick_class,
                infer=lambda x, target, *, ignore: Meta(target.shape, x.dtype),
                vjp={"x": lambda g, x_shape, target, ignore: put_class(
                    g, target, ignore=ignore, classes=x_shape[1])})
put_class = Op("put_class", "x target", batch=merged(), kernel=_put_kernel, device=cuda.put_class,
               infer=lambda x, target, *, ignore, classes: Meta(
                   (target.shape[0], classes, *target.shape[1:]), x.dtype),
               vjp={"x": lambda g, target, ignore: pick_class(g, target, ignore=ignore)})


# cross_entropy of x (N, C, d1...) and targets (N, d1...): with p = softmax(x), and of each target t the share
# ``q_c = (1 - smoothing) * w_t * [c == t] + smoothing / C * w_c`` of class c, the loss is the sum of
# ``-q_c * log(p_c)``, and its derivative ``p_c * sum(q) - q_c``. Backward keeps x, its largest scores ``top``
# and ``total``, the sum of ``exp(x - top)``.


def _flat(x: Any) -> Any:
    return x.reshape(*x.shape[:2], math.prod(x.shape[2:]))


def _counted(xp: Any, target: Any, weight: Any, ignore: int, dtype: Any) -> tuple[Any, Any]:
    """(index of the classes into (N, C, M), what each target counts: its class's weight, 0 if ignored)."""
    safe, skip, key = _places(xp, target, ignore)
    return key, xp.where(skip, 0, 1 if weight is None else weight[safe]).astype(dtype)


def _cross_entropy_kernel(xp: Any, x: Any, target: Any, weight: Any, *, ignore: int, smoothing: float,
                          reduction: str) -> tuple:
    _check_classes(target, x.shape[1], ignore, "cross_entropy")
    key, share = _counted(xp, target, weight, ignore, x.dtype)
    flat = _flat(x)
    top = flat.max(axis=1, keepdims=True)
    shifted = flat - top
    total = xp.exp(shifted).sum(axis=1, dtype=x.dtype)
    log_total = xp.log(total)
    losses = (log_total - shifted[key]) * share
    if smoothing:
        w = xp.ones(x.shape[1], x.dtype) if weight is None else weight
        even = (log_total * w.sum() - (shifted * w[:, None]).sum(axis=1)) * (smoothing / x.shape[1])
        losses = losses * (1 - smoothing) + even
    losses = xp.where(target.reshape(share.shape) == ignore, xp.zeros_like(losses), losses)
    if reduction == "none":
        loss = losses.reshape(target.shape)
    else:
        loss = losses.sum(dtype=x.dtype) / (share.sum(dtype=x.dtype) if reduction == "mean" else 1)
    return loss, top.reshape(target.shape), total.reshape(target.shape)


def _target_shares(xp: Any, x: Any, target: Any, weight: Any, ignore: int, smoothing: float,
                   reduction: str) -> tuple:
    """(q (N, C, M), its sum (N, 1, M), what a loss counts in the result)."""
    key, share = _counted(xp, target, weight, ignore, x.dtype)
    divisor = share.sum(dtype=x.dtype) if reduction == "mean" else 1
    q = xp.zeros(_flat(x).shape, x.dtype)
    if smoothing:
        w = xp.ones(x.shape[1], x.dtype) if weight is None else weight
        keep = target.reshape(share.shape) != ignore
        q += (w * (smoothing / x.shape[1]))[:, None] * keep[:, None]
    q[key] += share * (1 - smoothing)
    return q, q.sum(axis=1, keepdims=True), 1 / divisor


def _cross_entropy_grad_kernel(xp: Any, g: Any, x: Any, target: Any, weight: Any, top: Any, total: Any, *,
                               ignore: int, smoothing: float, reduction: str) -> Any:
    key, share = _counted(xp, target, weight, ignore, x.dtype)
    skip = target.reshape(share.shape) == ignore
    scale = g.reshape(share.shape) if reduction == "none" else g
    scale = xp.where(skip, 0, scale / share.sum() if reduction == "mean" else scale).astype(x.dtype)
    w = xp.ones(x.shape[1], x.dtype) if weight is None else weight
    even = smoothing / x.shape[1]
    out = _flat(x) - top.reshape(share.shape)[:, None]
    xp.exp(out, out=out)
    own = share * (1 - smoothing)
    out *= (scale * (own + even * w.sum()) / total.reshape(share.shape))[:, None]
    if smoothing:
        out -= w[:, None] * (scale * even)[:, None]
    out[key] -= scale * own
    if xp is not np:
        out = xp.where(skip[:, None], xp.zeros_like(out), out)
    elif skip.any():
        out[xp.broadcast_to(skip[:, None], out.shape)] = 0
    return out.reshape(x.shape)


def _of_backward(h: Any, g: Any, x: Any, target: Any, weight: Any, ignore: int, smoothing: float,
                 reduction: str) -> list:
    """The cotangents of g and x: those of ``g * scale * (p * sum(q) - q)`` with p = softmax(x)."""
    scores, classes, weights = [getattr(t, "_array", t) for t in (x, target, weight)]
    constants = _target_shares(array_module(scores), scores, classes, weights, ignore, smoothing, reduction)
    q, every, scale = [wrap(c) if isinstance(x, Tensor) and hasattr(c, "shape") else c for c in constants]
    shape = (*x.shape[:2], math.prod(x.shape[2:]))
    h, p = reshape_op(h, shape=shape), softmax_op(reshape_op(x, shape=shape), dim=1)
    along = sum_op(h * p, dims=(1,), keepdim=True)
    to_g = (along * every - sum_op(h * q, dims=(1,), keepdim=True)) * scale
    if reduction == "none":
        to_g, g = reshape_op(to_g, shape=target.shape), reshape_op(g, shape=along.shape)
    else:
        to_g = sum_op(to_g, dims=(0, 1, 2), keepdim=False)
    to_x = (h - along) * p * (every * scale) * g
    return [to_g, reshape_op(to_x, shape=x.shape), None, None, None, None]


# The rules for batches: examples are merged with the samples, which is right without a reduction; the mean or
# sum of each example is formed behind (before, backward).


def _counts_of_examples(x: Any, target: Any, weight: Any, ignore: int) -> Any:
    """What the targets of each example count together, (batch,), for the mean."""
    kept = target != ignore
    if weight is not None:
        kept = np.asarray(weight)[np.where(kept, target, 0)] * kept
    return kept.reshape((kept.shape[0], math.prod(kept.shape[1:]))).sum(axis=1).astype(x.dtype)


def batch_cross_entropy(op: Op, size: int, arrays: list, batched: tuple, settings: dict) -> Any:
    x, target, weight = arrays
    if batched[2] or any_batched(arrays):
        return looped(op, size, arrays, batched, settings)
    x, target = everywhere(size, [x, target], batched)
    loss, top, total = merged(1)(op, size, [x, target, weight], (True, True, False),
                                 {**settings, "reduction": "none"})
    if settings["reduction"] != "none":
        loss = loss.reshape((size, math.prod(loss.shape[1:]))).sum(axis=1, dtype=loss.dtype)
    if settings["reduction"] == "mean":
        loss = loss / _counts_of_examples(x, target, weight, settings["ignore"])
    return loss, top, total


def batch_cross_entropy_grad(op: Op, size: int, arrays: list, batched: tuple, settings: dict) -> Any:
    g, x, target, weight, top, total = arrays
    if batched[3] or any_batched(arrays):
        return looped(op, size, arrays, batched, settings)
    g, x, target, top, total = everywhere(size, [g, x, target, top, total], (*batched[:3], *batched[4:]))
    if settings["reduction"] == "mean":
        g = g / _counts_of_examples(x, target, weight, settings["ignore"])
    if settings["reduction"] != "none":
        g = np.broadcast_to(g.reshape((size, *(1,) * (target.ndim - 1))), target.shape)
    flat = [a.reshape((size * a.shape[1], *a.shape[2:])) for a in (g, x, target, top, total)]
    out = call(op, *flat[:3], weight, *flat[3:], **{**settings, "reduction": "none"})
    return out.reshape(x.shape)


cross_entropy_grad = Op("cross_entropy_grad", "g x target weight top total", native="cross_entropy_grad",
                        device=cuda.cross_entropy_grad, batch=batch_cross_entropy_grad,
                        kernel=_cross_entropy_grad_kernel, infer=lambda g, x, *_, **__: x, vjp=_of_backward)
cross_entropy_op = Op(
    "cross_entropy", "x target weight", batch=batch_cross_entropy, outputs="loss top total",
    device=cuda.cross_entropy,
    differentiable=1, native="cross_entropy",
    onnx="losses(x, target, weight, ignore, smoothing, reduction)",
    kernel=_cross_entropy_kernel, infer=lambda x, target, weight, *, reduction, **_: (
        Meta(target.shape if reduction == "none" else (), x.dtype), *[Meta(target.shape, x.dtype)] * 2),
    vjp={"x": lambda g, x, target, weight, top, total, ignore, smoothing, reduction: cross_entropy_grad(
        g, x, target, weight, top, total, ignore=ignore, smoothing=smoothing, reduction=reduction)})


def _batched(input: Tensor, target: Tensor, op: str) -> tuple[Tensor, Tensor]:
    """Scores (N, C, d1...) and classes (N, d1...), checked; one sample (C) becomes a batch of one."""
    real_arg(input, op, "input"), tensor_arg(target, op, "target")
    floating(input, op, "input")
    if not type(target._array) is type(input._array) is np.ndarray and target.device != input.device:
        raise DeviceError(f"{op}: target is on {target.device}, the input on {input.device}; move one with "
                          f".to(device)")
    if target._array.dtype.kind not in "iu":
        raise DTypeError(f"{op}: target must hold class numbers (int64), got {target.dtype}; convert it "
                         f"with target.long()")
    shape = input._array.shape
    expected = shape[:1] + shape[2:] if len(shape) > 1 else ()
    if not shape or target._array.shape != expected:
        raise ShapeError(f"{op}: an input of shape {list(input.shape)} (N, C, d1...) needs a target of "
                         f"class numbers of shape {list(expected)}, got {list(target.shape)}")
    if input.ndim == 1:
        input = take_shape(input, (1, *input.shape))
        target = take_shape(target, (1,))
    return input, target


def _check_classes(target: Any, classes: int, ignore: int, op: str) -> bool:
    """Whether a target is ignored; IndexError for one that is no class."""
    if not target.size:
        return False
    text = (f"{op}: a target is class {{value}}, but there are {{size}} classes (0 to {{last}}), and "
            f"ignore_index is {ignore}")
    if device_flags.check(target, 0, classes, text, ignore):
        return True  # there may be one
    low, high = extremes(target)
    if low >= 0 and high < classes and not low <= ignore <= high:
        return False
    xp = array_module(target)
    wrong = ((target < 0) | (target >= classes)) & (target != ignore)
    if bool(wrong.any()):
        at = tuple(int(i[0]) for i in xp.nonzero(wrong))
        raise IndexError(f"{op}: target{list(at)} is class {int(target[at])}, but there are {classes} "
                         f"classes (0 to {classes - 1}), and ignore_index is {ignore}")
    return bool((target == ignore).any())


def _as(t: Tensor, dtype: DType) -> Tensor:
    return t if t._array.dtype is dtype.numpy or t.dtype is dtype else cast.run(t, dtype=dtype)


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


# The loss in one kernel, with what the targets count together (``shares``), which the mean divides by.


def _nll_kernel(xp: Any, x: Any, target: Any, weight: Any, *, ignore: int, reduction: str) -> tuple:
    _check_classes(target, x.shape[1], ignore, "nll_loss")
    key, share = _counted(xp, target, weight, ignore, x.dtype)
    losses, shares = -_flat(x)[key] * share, share.sum(dtype=x.dtype)
    losses = xp.where(share == 0, xp.zeros_like(losses), losses)
    if reduction == "none":
        return losses.reshape(target.shape), shares
    total = losses.sum(dtype=x.dtype)
    return total / shares if reduction == "mean" else total, shares


def _nll_grad_kernel(xp: Any, g: Any, target: Any, weight: Any, shares: Any, *, ignore: int, reduction: str,
                     shape: tuple) -> Any:
    key, share = _counted(xp, target, weight, ignore, shares.dtype)
    out = xp.zeros((*shape[:2], math.prod(shape[2:])), shares.dtype)
    slope = -share * (g.reshape(share.shape) if reduction == "none" else g)
    out[key] = slope / shares if reduction == "mean" else slope  # others: 0, even without shares
    return out.reshape(shape)


nll_grad = Op("nll_loss_grad", "g target weight shares", kernel=_nll_grad_kernel, native="nll_loss_grad",
              infer=lambda g, target, weight, shares, *, shape, **_: Meta(shape, shares.dtype),
              vjp={"g": lambda h, target, weight, ignore, reduction: nll_op(
                  h, target, weight, ignore=ignore, reduction=reduction)[0]})
nll_op = Op("nll_loss", "x target weight", outputs="loss shares", differentiable=1, kernel=_nll_kernel,
            native="nll_loss", infer=lambda x, target, weight, *, reduction, **_: [
                Meta(target.shape if reduction == "none" else (), x.dtype), Meta((), x.dtype)],
            vjp={"x": lambda g, x_shape, target, weight, shares, ignore, reduction: nll_grad(
                g, target, weight, shares, ignore=ignore, reduction=reduction, shape=x_shape)})


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
    if target.is_cuda:
        given = None if weight is None else weight._array
        with target._array.device:
            keep = cuda.class_shares(x._array, classes, given, ignore, x.shape[1])
        if keep is not NotImplemented:
            return wrap(keep)
    keep = xp.ones(classes.shape, x._array.dtype)
    if ignore is not None:
        keep[classes == ignore] = 0
        classes = xp.where(classes == ignore, 0, classes)
    if weight is not None:
        keep = keep * weight._array[classes].astype(keep.dtype)
    return wrap(keep)


def _nll_of_records(input: Tensor, target: Tensor, weight: Tensor | None, ignore: int,
                    reduction: str) -> Tensor:
    x, t = _batched(input, target, "nll_loss")
    ignored = _check_classes(t._array, x.shape[1], ignore, "nll_loss")
    out = _nll(x, t, weight, ignore if ignored else None, reduction, "nll_loss")
    return take_shape(out, target.shape) if reduction == "none" else out


_COUNTED = 256  # what 8 bits of a mantissa count up to


@planned
def _nll_loss(input: Tensor, target: Tensor, weight: Tensor | None, ignore_index: Any,
              reduction: str) -> list[Step]:
    x, t = _batched(input, target, "nll_loss")
    ignore = number_arg(ignore_index, "nll_loss", "ignore_index")
    _class_weights(weight, x, "nll_loss")
    settings = {"ignore": ignore, "reduction": reduction}
    # the divisor, which backward reads
    exact = input.itemsize > 2 or weight is None and target.numel() <= _COUNTED
    if (exact and have_kernels(input, target, weight) and input.ndim > 1 and target._array.dtype == np.int64
            and type(ignore) is int and reduction in ("none", "mean", "sum")):
        return [(nll_op.run, 3, settings), (operator.itemgetter(0), 1, {})]
    return [(_nll_of_records, 3, settings)]


def _classes_alone(input: Tensor, target: Tensor, weight: Tensor | None = None, *, ignore_index: Any = -100,
                   reduction: str = "mean", label_smoothing: float = 0.0) -> Positions | str | None:
    if weight is not None or ignore_index != -100:
        return "weights of classes, or one that is ignored"
    if target.is_floating_point():
        return None
    return Positions(1, input.shape[1 if input.ndim > 1 else 0])


@public("nn.functional", op=pick_class, autocast="float32", deferred=_classes_alone)
def nll_loss(input: Tensor, target: Tensor, weight: Tensor | None = None, *,
             ignore_index: int = -100, reduction: str = "mean") -> Tensor:
    """``-w[t] * input[t]`` for log-probabilities: (N, C), (C) or (N, C, d1...), classes t without C.

    "mean" divides by the sum of the weights. Targets of ``ignore_index`` count nothing. Raises
    IndexError for a target that is no class, ShapeError or DTypeError for wrong tensors.

    >>> x = fw.tensor([[0.5, 0.5], [0.25, 0.75]]).log()
    >>> fw.nn.functional.nll_loss(x, fw.tensor([0, 1]))
    tensor(0.4904)
    """
    return _nll_loss(input, target, weight, ignore_index, reduction)


@public("nn.functional", autocast="float32", deferred=_classes_alone)
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
    if type(ignore_index) is not int:
        ignore_index = number_arg(ignore_index, op, "ignore_index")
    if not 0.0 <= label_smoothing <= 1.0:
        raise ValueError(f"{op}: label_smoothing must be in [0, 1], got {label_smoothing}")
    if reduction not in ("mean", "sum", "none"):
        raise ValueError(f"{op}: reduction must be 'none', 'mean' or 'sum', got {reduction!r}")
    if weight is None and type(input) is type(target) is Tensor and _are_usual(input._array, target._array):
        return _loss_of(input, target, None, ignore_index, label_smoothing, reduction)
    tensor_arg(input, op, "input"), tensor_arg(target, op, "target")
    if input.ndim and target.shape == input.shape and target.is_floating_point():
        if ignore_index >= 0:
            raise ValueError(f"{op}: ignore_index={ignore_index} applies to class numbers, but target holds "
                             f"probabilities; leave it out")
        return _soft_cross_entropy(input, target, weight, reduction, label_smoothing)
    x, t = _batched(input, target, op)
    _class_weights(weight, x, op)
    dtype = x.dtype
    wide = float32 if dtype.numpy.itemsize == 2 else dtype
    if weight is not None:
        weight = _as(weight.detach(), wide)
    out = _loss_of(_as(x, wide), _as(t, int64), weight, ignore_index, label_smoothing, reduction)
    out = _as(out, dtype)
    single = reduction == "none" and out.shape != target.shape
    return take_shape(out, target.shape) if single else out


def _are_usual(x: Any, target: Any) -> bool:
    """Whether nothing is to be said of scores (N, C, d1...) and class numbers, or done before the record."""
    return type(x) is type(target) is np.ndarray and x.dtype.char in "fd" and target.dtype.char == "l" \
        and x.ndim > 1 and target.shape == x.shape[:1] + x.shape[2:]


def _loss_of(x: Tensor, target: Tensor, weight: Tensor | None, ignore: int, smoothing: float,
             reduction: str) -> Tensor:
    try:
        return cross_entropy_op.run(x, target, weight, ignore=ignore, smoothing=float(smoothing),
                                    reduction=reduction)[0]
    except IndexError as error:
        error.__notes__.clear()  # a target that is no class: the record's settings add nothing
        raise


def _by_class(x: Tensor, weight: Tensor | None) -> Tensor:
    if weight is None:
        return x
    shaped = take_shape(weight, (1, x.shape[1]) + (1,) * (x.ndim - 2))
    return x * shaped  # type: ignore[operator]


def _soft_cross_entropy(input: Tensor, target: Tensor, weight: Tensor | None, reduction: str,
                        smoothing: float) -> Tensor:
    op = "cross_entropy"
    floating(input, op, "input")
    single = input.ndim == 1
    shape = (1, *input.shape) if single else input.shape
    x, t = take_shape(input, shape), take_shape(target, shape)
    _class_weights(weight, x, op)
    if smoothing:
        t = t * (1 - smoothing) + smoothing / shape[1]  # type: ignore[operator]
    losses = -sum_op.run(_by_class(log_softmax_op.run(x, dim=1) * t, weight),  # type: ignore
                         dims=(1,), keepdim=False)
    return take_shape(losses, ()) if single else _reduced(losses, reduction, op)
