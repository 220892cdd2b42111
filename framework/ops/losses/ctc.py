"""Connectionist temporal classification (A. Graves et al., ICML 2006), as a composite over time."""

from typing import Any

import numpy as np

from ...errors import ShapeError
from ...tensor import Tensor
from ..convert.cast import from_array
from ..index.scatter import gather
from ..pointwise.choose import where
from ..pointwise.elementary import exp, log
from ..record.args import floating, tensor_arg
from ..record.public import public
from ..reduce.extremes import amax
from ..shape.join import cat

_NONE = -1e30  # the logarithm of "impossible": far below any real one, and harmless in differences


def _labels(targets: Any, lengths: np.ndarray, blank: int) -> np.ndarray:
    """The targets with blanks between, before and after them: (n, 2 * longest + 1)."""
    rows = targets.detach().cpu().numpy()
    if rows.ndim == 1:
        if rows.size != lengths.sum():
            raise ShapeError(f"ctc_loss: targets has {rows.size} labels, but target_lengths sum to "
                             f"{lengths.sum()}")
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


def _sum(a: Any, b: Any, c: Any) -> Any:
    """log(exp(a) + exp(b) + exp(c))"""
    top = where(a > b, a, b)
    top = where(top > c, top, c).detach()
    return top + log(exp(a - top) + exp(b - top) + exp(c - top))


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
    most = targets.shape[1] if targets.ndim == 2 else targets.numel()
    times = _lengths(input_lengths, n, steps, "input_lengths")
    sizes = _lengths(target_lengths, n, most, "target_lengths")
    labels = _labels(targets, sizes, blank)
    if labels.size and not 0 <= labels.min() <= labels.max() < classes:
        raise ValueError(f"ctc_loss: targets must lie in [0, {classes - 1}]")
    losses = _losses(x, labels, times, sizes, blank)
    lost: Any = losses > -0.5 * _NONE
    losses = where(lost, 0.0 if zero_infinity else float("inf"), losses)
    if reduction == "mean":
        return (losses / from_array(np.maximum(sizes, 1), x)).mean()  # type: ignore[attr-defined, operator]
    if reduction == "sum":
        return losses.sum()  # type: ignore[attr-defined]
    return losses[0] if single else losses


def _losses(x: Any, labels: np.ndarray, times: np.ndarray, sizes: np.ndarray, blank: int) -> Any:
    """The forward algorithm: alpha[s], the log probability of being at label s, one step after the other."""
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
    return -(top + log(exp(last - top).sum(1, keepdim=True))).squeeze(1)  # type: ignore[attr-defined]
