"""Losses over classes by margins (those by probabilities: ``classes.py``), and over any distance."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ...errors import DTypeError, ShapeError
from ...tensor import Tensor, as_tensor
from ..index.scatter import gather
from ..linalg.distances import pairwise_distance
from ..pointwise.activations import logsigmoid_op
from ..pointwise.choose import clamp_min, where
from ..record.args import floating, real_arg, tensor_arg
from ..record.batched import call, everywhere, spread_out
from ..record.constants import like
from ..record.op import Meta, Op
from ..record.planned import Step, planned, writes_graphs
from ..record.public import public
from ..reduce.sums import mean_op, sum_op
from ..write.twice import twice
from . import cuda_margins
from .classes import _check_classes, _class_weights
from .distances import nearer
from .elements import _alike, _check_weight, _reduced

# The losses of rows x (n, c), or of one row (c), with targets t (n, k): for each target of a row (all, or
# those before the first negative one) and each class i that is none of them, ``max(0, gap)**p / c`` with
# ``gap = margin - x[t] + x[i]``.


def _pairs(xp: Any, x: Any, target: Any, single: bool) -> tuple[Any, Any, Any]:
    """(targets (n, k) with 0 for none, which of the classes each is (n, k, c), the pairs that count)."""
    n, c = x.shape if x.ndim == 2 else (1, x.size)
    t = target.reshape(n, target.size // n if n else 0)
    used = t >= t if single else (t < 0).cumsum(axis=1) == 0
    _check_classes(xp.where(used, t, -1), c, 0 if single else -1,
                   "multi_margin_loss" if single else "multilabel_margin_loss")
    safe = xp.where(used & (t >= 0) & (t < c), t, 0).astype(np.int64)  # a GPU tells of wrong ones later
    hot = (safe[:, :, None] == xp.arange(c)) & used[:, :, None]
    return safe, hot, used[:, :, None] & ~hot.any(axis=1)[:, None]


def _gaps(xp: Any, x: Any, safe: Any, margin: float) -> Any:
    rows = x.reshape(safe.shape[0], x.size // max(1, safe.shape[0]))
    return (margin - xp.take_along_axis(rows, safe, 1))[:, :, None] + rows[:, None]


def _loss_kernel(xp: Any, x: Any, target: Any, *, p: int, margin: float, single: bool, reduction: str) -> Any:
    safe, _, counted = _pairs(xp, x, target, single)
    gaps = xp.where(counted, xp.maximum(_gaps(xp, x, safe, margin), 0), 0)
    losses = (gaps * gaps if p == 2 else gaps).sum(axis=(1, 2), dtype=x.dtype) / gaps.shape[2]
    if reduction == "none" or x.ndim < 2:
        return losses.astype(x.dtype) if x.ndim == 2 else losses[0].astype(x.dtype)
    return (losses.mean() if reduction == "mean" else losses.sum()).astype(x.dtype)


def _slopes(xp: Any, x: Any, target: Any, margin: float, single: bool, p: int) -> tuple[Any, Any]:
    """The derivatives of the rows' losses by the gaps (n, k, c), and which of the classes each target is."""
    safe, hot, counted = _pairs(xp, x, target, single)
    gaps = _gaps(xp, x, safe, margin)
    each = xp.where(counted & (gaps >= 0), 2 * gaps if p == 2 else 1, 0) / gaps.shape[2]
    return each.astype(x.dtype), hot


def _loss_grad_kernel(xp: Any, g: Any, x: Any, target: Any, *, p: int, margin: float, single: bool,
                      reduction: str) -> Any:
    slopes, hot = _slopes(xp, x, target, margin, single, p)
    n = slopes.shape[0]
    g = g / max(n, 1) if reduction == "mean" else g
    slopes = slopes * (g[:, None, None] if reduction == "none" and x.ndim == 2 else g)
    out = slopes.sum(axis=1) - (hot * slopes.sum(axis=2, keepdims=True)).sum(axis=1)
    return out.astype(x.dtype).reshape(x.shape)


def _formula(x: Any, target: Any, p: int, margin: float, single: bool, reduction: str) -> Tensor:
    """The losses by other ops: what is differentiated twice, and what graphs are written of."""
    c = x.shape[-1] if x.ndim else 1
    rows = x if x.ndim == 2 else x.reshape(1, c)
    t = target.reshape(1, -1) if x.ndim < 2 else target.unsqueeze(1) if single else target
    used = None if single else (t < 0).cumsum(1) == 0
    safe = (t if used is None else where(used, t, 0)).long()
    hot = safe.unsqueeze(2) == like(safe, lambda xp, dtype: xp.arange(c))
    hot = hot if used is None else hot & used.unsqueeze(2)
    counted = ~hot.any(1).unsqueeze(1)
    counted = counted if used is None else counted & used.unsqueeze(2)
    gaps: Any = clamp_min(margin - gather(rows, 1, safe).unsqueeze(2) + rows.unsqueeze(1), 0)  # type: ignore
    losses: Any = where(counted, gaps * gaps if p == 2 else gaps, 0.0)
    losses = sum_op.run(losses, dims=(1, 2), keepdim=False) / c
    return _reduced(losses if x.ndim == 2 else losses[0], reduction, "multi_margin_loss")


def _twice(h: Any, g: Any, x: Any, target: Any, needs: tuple, **settings: Any) -> list:
    def steps(x: Any) -> tuple:
        return (_formula(x, as_tensor(target), **settings),)
    return [*twice(steps, [h], (g,), (x,), (True,), needs[:2]), None]


# The rules for batches: the rows of all examples are one's, and the means or sums are formed behind (before,
# backward).


def _merged(size: int, x: Any, target: Any) -> tuple[Any, Any, int]:
    """(rows of all examples, their targets, how many of an example)."""
    n = x.shape[1] if x.ndim == 3 else 1
    c = math.prod(x.shape[1 + (x.ndim == 3):])
    k = math.prod(target.shape[1:]) // n if n else 0
    return x.reshape((size * n, c)), target.reshape((size * n, k)), n


def _batch_loss(op: Op, size: int, arrays: list, batched: tuple, settings: dict) -> Any:
    x, target = everywhere(size, arrays, batched)
    rows, targets, n = _merged(size, x, target)
    losses = call(op, rows, targets, **{**settings, "reduction": "none"})
    if x.ndim < 3:
        return losses
    losses = losses.reshape((size, n))
    if settings["reduction"] == "none":
        return losses
    return call(mean_op if settings["reduction"] == "mean" else sum_op, losses, dims=(1,), keepdim=False)


def _batch_loss_grad(op: Op, size: int, arrays: list, batched: tuple, settings: dict) -> Any:
    g, x, target = everywhere(size, arrays, batched)
    rows, targets, n = _merged(size, x, target)
    if x.ndim == 3 and settings["reduction"] != "none":
        g = spread_out(g / n if settings["reduction"] == "mean" else g, n).T
    out = call(op, g.reshape((size * n,)), rows, targets, **{**settings, "reduction": "none"})
    return out.reshape(x.shape)


margin_loss_grad = Op("margin_loss_grad", "g x target", kernel=_loss_grad_kernel, native="margin_loss_grad",
                      device=cuda_margins.margin_loss_grad, rules_round=False, batch=_batch_loss_grad,
                      infer=lambda g, x, target, **_: x,
                      vjp=lambda h, g, x, target, needs, p, margin, single, reduction: _twice(
                          h, g, x, target, needs, p=p, margin=margin, single=single, reduction=reduction))
margin_loss = Op("margin_loss", "x target", kernel=_loss_kernel, native="margin_loss", batch=_batch_loss,
                 device=cuda_margins.margin_loss, rules_round=False,
                 infer=lambda x, target, *, reduction, **_: Meta(
                     x.shape[:-1] if reduction == "none" else (), x.dtype),
                 vjp={"x": lambda g, x, target, p, margin, single, reduction: margin_loss_grad(
                     g, x, target, p=p, margin=margin, single=single, reduction=reduction)})


def _check_rows(input: Any, target: Any, single: bool, reduction: str, op: str) -> None:
    """Raise unless these are scores (n, c) or (c), and a class of each row, or as many as it has scores."""
    floating(real_arg(input, op), op)
    if tensor_arg(target, op, "target")._array.dtype.kind not in "iu":
        raise DTypeError(f"{op}: target must hold class numbers (int64), got {target.dtype}; convert it "
                         f"with target.long()")
    wanted = input.shape[:-1] if single else input.shape
    alone = input.ndim < 2 and target.numel() == 1 and (single or input.numel() == 1) and target.ndim < 2
    if input.ndim > 2 or target.shape != wanted and not alone:
        raise ShapeError(f"{op}: wanted an input (n, c) or (c) and a target of shape {list(wanted)}, got "
                         f"{list(input.shape)} and {list(target.shape)}")
    if reduction not in ("none", "mean", "sum"):
        raise ValueError(f"{op}: reduction must be 'none', 'mean' or 'sum', got {reduction!r}")


def _weighted(x: Tensor, target: Any, weight: Any, reduction: str, **settings: Any) -> Tensor:
    factors = weight[target.reshape(x.shape[:-1]).long()]
    run = _formula if writes_graphs() else margin_loss.run
    losses: Any = run(x, target, **settings, reduction="none")
    return _reduced(losses * factors, reduction, "multi_margin_loss")


@planned
def _multi_margin(input: Tensor, target: Tensor, weight: Tensor | None, p: int, margin: float,
                  reduction: str) -> list[Step]:
    op = "multi_margin_loss"
    if p not in (1, 2):
        raise ValueError(f"{op}: p must be 1 or 2, got {p}")
    _check_rows(input, target, True, reduction, op)
    settings = {"p": int(p), "margin": float(margin), "single": True, "reduction": reduction}
    if weight is None:
        return [(_formula if writes_graphs() else margin_loss.run, 2, settings)]
    _class_weights(weight, input if input.ndim == 2 else input.reshape(1, -1), op)  # type: ignore
    return [(_weighted, 3, settings)]


@planned
def _multilabel_margin(input: Tensor, target: Tensor, reduction: str) -> list[Step]:
    _check_rows(input, target, False, reduction, "multilabel_margin_loss")
    return [(_formula if writes_graphs() else margin_loss.run, 2,
             {"p": 1, "margin": 1.0, "single": False, "reduction": reduction})]


@public("nn.functional", autocast="float32")
def multi_margin_loss(input: Tensor, target: Tensor, p: int = 1, margin: float = 1.0,
                      weight: Tensor | None = None, *, reduction: str = "mean") -> Tensor:
    """The mean over classes i other than t of ``w[t] * max(0, margin - x[t] + x[i])**p``: (n, c) or (c).

    target: class numbers (n) or (). p: 1 or 2. weight (c): factors of the classes. Each sum is divided by
    all c classes. Raises IndexError for a target that is no class, ShapeError, DTypeError, ValueError.

    >>> fw.nn.functional.multi_margin_loss(fw.tensor([[0.0, 0.5]]), fw.tensor([0]))
    tensor(0.7500)
    """
    return _multi_margin(input, target, weight, p, margin, reduction)


@public("nn.functional", autocast="float32")
def multilabel_margin_loss(input: Tensor, target: Tensor, *, reduction: str = "mean") -> Tensor:
    """The sum of ``max(0, 1 - x[t] + x[i]) / c`` over targets t and all i that are none: (n, c) or (c).

    target: of the input's shape, the class numbers of each sample up to the first -1. Raises IndexError for
    a target that is no class, ShapeError, DTypeError.

    >>> x = fw.tensor([0.0, 0.5, 1.0, 0.0])
    >>> fw.nn.functional.multilabel_margin_loss(x, fw.tensor([2, 1, -1, 0]))
    tensor(0.2500)
    """
    return _multilabel_margin(input, target, reduction)


@public("nn.functional")
def triplet_margin_with_distance_loss(anchor: Tensor, positive: Tensor, negative: Tensor, *,
                                      distance_function: Callable[[Tensor, Tensor], Tensor] | None = None,
                                      margin: float = 1.0, swap: bool = False,
                                      reduction: str = "mean") -> Tensor:
    """``max(0, d(a, p) - d(a, n) + margin)`` for any distance d, ``pairwise_distance`` unless given.

    swap: use d(p, n) for d(a, n) where it is smaller. Raises ValueError for a margin that is not positive.

    >>> a, b = fw.tensor([[0.0, 0.0]]), fw.tensor([[3.0, 4.0]])
    >>> fw.nn.functional.triplet_margin_with_distance_loss(
    ...     a, a, b, distance_function=lambda x, y: (x - y).abs().sum(-1), margin=8.0)
    tensor(1.)
    """
    op = "triplet_margin_with_distance_loss"
    if not margin > 0:
        raise ValueError(f"{op}: margin must be positive, got {margin}")
    shapes = [list(tensor_arg(x, op, name).shape) for x, name in (
        (anchor, "anchor"), (positive, "positive"), (negative, "negative"))]
    if any(len(s) != len(shapes[0]) for s in shapes):
        raise ShapeError(f"{op}: anchor, positive and negative must have as many dimensions, got shapes "
                         f"{', '.join(map(str, shapes))}")
    distance = distance_function or pairwise_distance
    near, far = distance(anchor, positive), distance(anchor, negative)
    if swap:
        far = far.minimum(distance(positive, negative))  # type: ignore[attr-defined]
    return _reduced(nearer.run(near, far, margin=float(margin)), reduction, op)  # type: ignore[arg-type]


@public("nn.functional")
def multilabel_soft_margin_loss(input: Tensor, target: Tensor, weight: Tensor | None = None, *,
                                reduction: str = "mean") -> Tensor:
    """The mean over classes of ``-t * log(sigmoid(x)) - (1 - t) * log(sigmoid(-x))``: (*, c) -> (*).

    weight (c): factors of the classes. reduction "mean", "sum" or "none" of the rows. Raises ShapeError
    unless input and target have one shape.

    >>> fw.nn.functional.multilabel_soft_margin_loss(fw.zeros(1, 2), fw.tensor([[0.0, 1.0]]))
    tensor(0.6931)
    """
    op = "multilabel_soft_margin_loss"
    _alike(op, input=input, target=target)
    floating(input, op)
    _check_weight(weight, input, op)
    x, t = input, target
    losses = -(t * logsigmoid_op.run(x) + (1 - t) * logsigmoid_op.run(-x))  # type: ignore[operator]
    if weight is not None:
        losses = losses * weight
    return _reduced(losses.mean(-1), reduction, op)
