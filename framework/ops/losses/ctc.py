"""Connectionist temporal classification (A. Graves et al., ICML 2006): one record forward, one back.

The second derivative goes by the composite over time.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from ...backends import device_code, device_flags
from ...backends.native import native_or
from ...errors import ShapeError
from ...tensor import Tensor, as_tensor, wrap
from ..convert.cast import from_array
from ..index.scatter import gather
from ..pointwise.choose import where
from ..pointwise.elementary import exp, log
from ..record.args import floating, tensor_arg
from ..record.op import Meta, Op
from ..record.public import public
from ..reduce.extremes import amax
from ..shape.join import cat
from ..write.twice import twice
from . import cuda_ctc

_NONE = -1e30  # the logarithm of "impossible": far below any real one, and harmless in differences


def _labels(targets: Any, lengths: np.ndarray, blank: int) -> np.ndarray:
    """The targets with blanks between, before and after them: (n, 2 * longest + 1)."""
    rows = targets.detach().cpu().numpy()
    if rows.ndim == 1:
        _check_total(rows, lengths)
        rows = np.split(rows, np.cumsum(lengths)[:-1])
    out = np.full((len(lengths), 2 * int(lengths.max(initial=0)) + 1), blank, np.int64)
    for i, n in enumerate(lengths):
        out[i, 1:2 * n + 1:2] = rows[i][:n]
    return out


def _lengths(lengths: Any, n: int, most: int, name: str) -> np.ndarray:
    values = lengths.detach().cpu().numpy() if isinstance(lengths, Tensor) else np.asarray(lengths)
    if values.reshape(-1).shape != (n,):
        raise ShapeError(f"ctc_loss: {name} must have {n} entries, got shape {list(values.shape)}")
    values = values.reshape(-1).astype(np.int64)
    if n and not 0 <= values.min() <= values.max() <= most:
        raise ValueError(f"ctc_loss: {name} must lie in [0, {most}], got {values.tolist()}")
    return values


def _on_device(lengths: Any, x: Any, most: int, name: str) -> Any:
    """Lengths where x is: those of the host are checked here, others by a kernel."""
    if not isinstance(lengths, Tensor) or not device_code.is_device_array(lengths._array):
        return from_array(_lengths(lengths, x.shape[1], most, name), x)
    if lengths.shape != (x.shape[1],):
        raise ShapeError(f"ctc_loss: {name} must have {x.shape[1]} entries, got shape {list(lengths.shape)}")
    device_flags.check(lengths._array, 0, most + 1, f"ctc_loss: {name} must lie in [0, {most}], found "
                                                    "{value}", error=ValueError)
    return lengths.detach().long()  # type: ignore[attr-defined]


# the four of ``_places`` on the CPU, where nothing is wrong
_at_once: Callable = native_or("ctc_places", lambda *_: NotImplemented)


def _places(x: Any, targets: Any, input_lengths: Any, target_lengths: Any, blank: int) -> tuple:
    """(labels with blanks between, lengths of the inputs, of the targets, and these but at least 1), where x
    is.

    On a GPU they are made there, unless nobody knew how long the longest of targets in one row is.
    """
    found = _at_once(x._array, targets._array, *[a._array if isinstance(a, Tensor) else a
                                                 for a in (input_lengths, target_lengths)], blank)
    if found is not NotImplemented:
        return tuple([wrap(a) for a in found])
    steps, n, classes = x.shape
    most = targets.shape[1] if targets.ndim == 2 else targets.numel()
    here = device_code.is_device_array(targets._array) and device_code.is_device_array(x._array)
    host = not isinstance(target_lengths, Tensor) or target_lengths.device.type == "cpu"
    if device_code.enabled and here and (host or targets.ndim == 2):
        times = _on_device(input_lengths, x, steps, "input_lengths")
        sizes = _on_device(target_lengths, x, most, "target_lengths")
        longest = int(_lengths(target_lengths, n, most, "target_lengths").max(initial=0)) if host else most
        if targets.ndim == 1:
            _check_total(targets, _lengths(target_lengths, n, most, "target_lengths"))
        with x._array.device:
            labels = cuda_ctc.labels_of(x._array, targets._array, sizes._array, longest, blank)
        return wrap(labels), times, sizes, sizes.clamp(min=1)
    times = _lengths(input_lengths, n, steps, "input_lengths")
    sizes = _lengths(target_lengths, n, most, "target_lengths")
    rows = _labels(targets, sizes, blank)
    if rows.size and not 0 <= rows.min() <= rows.max() < classes:
        raise ValueError(f"ctc_loss: targets must lie in [0, {classes - 1}]")
    return tuple([from_array(a, x) for a in (rows, times, sizes, np.maximum(sizes, 1))])


def _check_total(targets: Any, lengths: np.ndarray) -> None:
    if targets.shape[0] != lengths.sum():
        raise ShapeError(f"ctc_loss: targets has {targets.shape[0]} labels, but target_lengths sum to "
                         f"{lengths.sum()}")


def _sum(a: Any, b: Any, c: Any) -> Any:
    """log(exp(a) + exp(b) + exp(c))"""
    top = where(a > b, a, b)
    top = where(top > c, top, c).detach()
    return top + log(exp(a - top) + exp(b - top) + exp(c - top))


def _losses(x: Any, labels: Any, times: Any, sizes: Any, blank: int) -> Any:
    """The composite: alpha[s], the log probability of being at label s, one step after the other."""
    labels, times, sizes = [as_tensor(a).detach().cpu().numpy() for a in (labels, times, sizes)]
    n, width = labels.shape
    index = from_array(labels, x)
    skips = np.zeros(labels.shape, bool)  # to another label, past the blank between
    skips[:, 2:] = (labels[:, 2:] != blank) & (labels[:, 2:] != labels[:, :-2])
    skip, place = from_array(skips, x), np.arange(width)
    first = from_array(np.broadcast_to(place < 2, labels.shape).copy(), x)
    alpha = where(from_array(place[None] + np.zeros((n, 1)) == 0, x), 0.0, x.new_full((n, width), _NONE))
    none = x.new_full((n, 2), _NONE)
    for t in range(x.shape[0]):
        emitted = gather(x[t], 1, index)
        if t == 0:
            moved = where(first, emitted, _NONE)
        else:
            padded = cat([none, alpha], 1)
            two = where(skip, padded[:, :width], _NONE)
            moved = _sum(alpha, padded[:, 1:width + 1], two) + emitted
        alpha = where(from_array((times > t)[:, None], x), moved, alpha)
    ends = from_array((place == 2 * sizes[:, None]) | (place == 2 * sizes[:, None] - 1), x)
    last = where(ends, alpha, _NONE)
    top: Any = amax(last.detach(), 1, keepdim=True)
    losses: Any = -(top + log(exp(last - top).sum(1, keepdim=True))).squeeze(1)  # type: ignore[attr-defined]
    lost: Any = losses > -0.5 * _NONE
    return where(lost, float("inf"), losses)


# -- one record each way --------------------------------------------------------------------------


def _log_sum(xp: Any, *parts: Any) -> Any:
    """log of the sum of exp of arrays, where -inf stands for nothing at all."""
    top = parts[0]
    for part in parts[1:]:
        top = xp.maximum(top, part)
    top = xp.where(xp.isneginf(top), xp.zeros_like(top), top)
    return top + xp.log(sum(xp.exp(part - top) for part in parts))


def _ways(xp: Any, x: Any, labels: Any, sizes: Any, blank: int) -> tuple[Any, Any, Any]:
    """What each place emits (t, n, width); from where one may go to it past the blank; where a way ends."""
    width, none = labels.shape[1], xp.asarray(-np.inf, x.dtype)
    place = xp.arange(width)
    index = xp.broadcast_to(labels, (x.shape[0], *labels.shape))
    emitted = xp.where(place <= 2 * sizes[:, None], xp.take_along_axis(x, index, -1), none)
    skip = xp.zeros(labels.shape, bool)
    skip[:, 2:] = (labels[:, 2:] != blank) & (labels[:, 2:] != labels[:, :-2])
    ends = (place == 2 * sizes[:, None]) | (place == 2 * sizes[:, None] - 1)
    return emitted, skip, xp.where(ends, xp.zeros_like(none), none)


def _shifted(xp: Any, row: Any, by: int) -> Any:
    """The numbers of each row ``by`` places to the right (left, if negative), -inf where there are none."""
    out = xp.full_like(row, -np.inf)
    if by > 0:
        out[:, by:] = row[:, :-by]
    else:
        out[:, :by] = row[:, -by:]
    return out


def _forward_kernel(xp: Any, x: Any, labels: Any, times: Any, sizes: Any, *, blank: int) -> tuple[Any, Any]:
    """alpha (n, t, width): the log probability of all ways that are at a label after a step."""
    emitted, skip, ends = _ways(xp, x, labels, sizes, blank)
    none, place = xp.asarray(-np.inf, x.dtype), xp.arange(labels.shape[1])
    alpha = xp.full((labels.shape[0], x.shape[0], labels.shape[1]), -np.inf, x.dtype)
    row = xp.where(place == 0, xp.zeros_like(ends), none)  # before the first step
    for t in range(x.shape[0]):
        if t == 0:
            moved = xp.where(place < 2, emitted[0], none)
        else:
            moved = emitted[t] + _log_sum(xp, row, _shifted(xp, row, 1),
                                          xp.where(skip, _shifted(xp, row, 2), none))
        live = times[:, None] > t
        alpha[:, t] = xp.where(live, moved, none)
        row = xp.where(live, moved, row)
    last = row + ends
    top = xp.max(last, axis=1)
    top = xp.where(xp.isneginf(top), xp.zeros_like(top), top)
    return -(top + xp.log(xp.exp(last - top[:, None]).sum(axis=1))), alpha


def _grad_kernel(xp: Any, g: Any, x: Any, alpha: Any, losses: Any, labels: Any, times: Any, sizes: Any, *,
                 blank: int) -> Any:
    """The other way: the ways from a label to an end, times those to it, are its share; 0 without any."""
    emitted, skip, ends = _ways(xp, x, labels, sizes, blank)
    none, out = xp.asarray(-np.inf, x.dtype), xp.zeros_like(x)
    skip = xp.concatenate([skip[:, 2:], xp.zeros_like(skip[:, :2])], 1)[:, :skip.shape[1]]
    lost = xp.isinf(losses)
    scale, whole = (xp.where(lost, xp.zeros_like(g), part)[:, None] for part in (g, losses))
    after = ends
    for t in range(x.shape[0] - 1, -1, -1):
        if t + 1 < x.shape[0]:
            row = after + emitted[t + 1]
            moved = _log_sum(xp, row, _shifted(xp, row, -1), xp.where(skip, _shifted(xp, row, -2), none))
            after = xp.where(times[:, None] > t + 1, moved, ends)
        share = xp.where(times[:, None] > t, xp.exp(alpha[:, t] + after + whole), 0)
        for s in range(labels.shape[1]):  # a label may come more than once
            at = xp.arange(labels.shape[0])
            out[t, at, labels[:, s]] -= (scale * share)[:, s]
    return out


def _grad_vjp(k: Any, g: Any, x: Any, labels: Any, times: Any, sizes: Any, blank: int, needs: tuple) -> list:
    def steps(x: Any) -> tuple:
        losses = _losses(x, labels, times, sizes, blank)
        return (where(losses == float("inf"), 0.0, losses),)
    return [*twice(steps, [k], (g,), (x,), (True,), needs[:2]), *[None] * (len(needs) - 2)]


ctc_grad = Op("ctc_grad", "g x alpha losses labels times sizes", kernel=_grad_kernel, native="ctc_grad",
              device=cuda_ctc.ctc_grad, infer=lambda g, x, *_, **__: x, vjp=_grad_vjp)
ctc_op = Op("ctc", "x labels times sizes", kernel=_forward_kernel, native="ctc", device=cuda_ctc.ctc,
            outputs="losses alpha",
            differentiable=1,
            infer=lambda x, labels, times, sizes, *, blank: (
                Meta(labels.shape[:1], x.dtype),
                Meta((labels.shape[0], x.shape[0], labels.shape[1]), x.dtype)),
            vjp={"x": lambda g, x, alpha, losses, labels, times, sizes, blank: ctc_grad(
                g, x, alpha, losses, labels, times, sizes, blank=blank)})


@public("nn.functional", autocast="float32")
def ctc_loss(log_probs: Tensor, targets: Tensor, input_lengths: Any, target_lengths: Any, blank: int = 0,
             reduction: str = "mean", zero_infinity: bool = False) -> Tensor:
    """-log of the probability of all alignments of the targets: log_probs (t, n, c) or (t, c).

    targets: labels (n, s), or all in one row; the lengths say how much of each counts. reduction "none",
    "sum", or "mean" of the losses by their target lengths. A target too long for its input gives inf, or
    with zero_infinity 0 and no gradient. Raises ShapeError and ValueError for lengths or labels that do
    not fit.

    >>> x = fw.zeros(2, 1, 2).log_softmax(-1)
    >>> fw.nn.functional.ctc_loss(x, fw.tensor([[1]]), [2], [1], reduction="sum")
    tensor(0.2877)
    """
    x: Any = tensor_arg(log_probs, "ctc_loss", "log_probs")
    floating(x, "ctc_loss", "log_probs")
    tensor_arg(targets, "ctc_loss", "targets")
    if reduction not in ("none", "mean", "sum"):
        raise ValueError(f"ctc_loss: reduction must be 'none', 'mean' or 'sum', got {reduction!r}")
    if x.ndim not in (2, 3):
        raise ShapeError(f"ctc_loss: log_probs must be (t, n, c) or (t, c), got shape {list(x.shape)}")
    single = x.ndim == 2
    x = x.unsqueeze(1) if single else x
    steps, n, classes = x.shape
    if not 0 <= blank < classes:
        raise ValueError(f"ctc_loss: blank={blank} is not one of the {classes} classes")
    labels, times, sizes, counted = _places(x, targets, input_lengths, target_lengths, blank)
    losses: Any = ctc_op.run(x, labels, times, sizes, blank=blank)[0]
    if zero_infinity:
        losses = where(losses == float("inf"), 0.0, losses)
    if reduction == "mean":
        return (losses / counted).mean()
    if reduction == "sum":
        return losses.sum()  # type: ignore[attr-defined]
    return losses[0] if single else losses
