"""Losses over classes by margins (those by probabilities: ``classes.py``), and over any distance."""

from collections.abc import Callable
from typing import Any

from ...errors import DTypeError, ShapeError
from ...tensor import Tensor, wrap
from ..index.embedding import one_hot
from ..index.scatter import gather
from ..language.elementwise import Elementwise
from ..linalg.distances import pairwise_distance
from ..pointwise.activations import logsigmoid_op
from ..pointwise.choose import clamp_min, where
from ..record.args import floating, real_arg, tensor_arg
from ..record.constants import like
from ..record.public import public
from .classes import _check_classes, _class_weights
from .distances import nearer
from .elements import _alike, _check_weight, _reduced


def _rows(input: Tensor, target: Tensor, single: tuple[int, ...], op: str) -> tuple[Any, Any]:
    """Scores (n, c) and targets with a first size n, also of one sample, whose target is ``single``."""
    floating(real_arg(input, op), op)
    if input.ndim == 0 and isinstance(target, Tensor) and target.numel() == 1:  # one sample of one class
        single_class: Any = input
        input, target = single_class.reshape(1), target.reshape(single)  # type: ignore[attr-defined]
    if not single and input.ndim == 1 and isinstance(target, Tensor) and target.shape == (1,):
        target = target.reshape(())  # type: ignore[attr-defined]
    if tensor_arg(target, op, "target")._array.dtype.kind not in "iu":
        raise DTypeError(f"{op}: target must hold class numbers (int64), got {target.dtype}; convert it "
                         f"with target.long()")
    if input.ndim not in (1, 2) or target.shape != input.shape[:-1] + single:
        raise ShapeError(f"{op}: wanted an input (n, c) or (c) and a target of shape "
                         f"{list(input.shape[:-1] + single)}, got {list(input.shape)} and "
                         f"{list(target.shape)}")
    x: Any = input
    t: Any = target
    return (x.unsqueeze(0), t.unsqueeze(0)) if x.ndim == 1 else (x, t)


# by how much a class, which is not the wanted one (own), is ahead of where it may be
_gap = Elementwise("multi_margin_loss", "own ahead", "where(own, 0.0, maximum(ahead + margin, 0.0))",
                   settings="margin", result="select",
                   vjp={"ahead": "where(own, 0.0, where(ahead + margin >= 0, g, 0.0))"})
_square_gap = Elementwise(
    "multi_margin_loss_of_squares", "own ahead", "where(own, 0.0, square(maximum(ahead + margin, 0.0)))",
    settings="margin", result="select",
    vjp={"ahead": "where(own, 0.0, 2 * g * maximum(ahead + margin, 0.0))"})


@public("nn.functional", autocast="float32")
def multi_margin_loss(input: Tensor, target: Tensor, p: int = 1, margin: float = 1.0,
                      weight: Tensor | None = None, *, reduction: str = "mean") -> Tensor:
    """The mean over classes i other than t of ``w[t] * max(0, margin - x[t] + x[i])**p``: (n, c) or (c).

    target: class numbers (n) or (). p: 1 or 2. weight (c): factors of the classes. Each sum is divided by
    all c classes. Raises IndexError for a target that is no class, ShapeError, DTypeError, ValueError.

    >>> fw.nn.functional.multi_margin_loss(fw.tensor([[0.0, 0.5]]), fw.tensor([0]))
    tensor(0.7500)
    """
    op = "multi_margin_loss"
    if p not in (1, 2):
        raise ValueError(f"{op}: p must be 1 or 2, got {p}")
    x, t = _rows(input, target, (), op)
    _check_classes(t._array, x.shape[1], 0, op)
    _class_weights(weight, x, op)
    t = t.long().unsqueeze(1)
    own = t == like(t, lambda xp, dtype: xp.arange(x.shape[1]))
    gaps: Any = (_gap if p == 1 else _square_gap).run(
        own, x - gather(x, 1, t), margin=float(margin))  # type: ignore[operator]
    losses = gaps.mean(1)
    if weight is not None:
        losses = losses * weight[t[:, 0]]  # type: ignore[index]
    return _reduced(losses[0] if input.ndim < 2 else losses, reduction, op)


@public("nn.functional", autocast="float32")
def multilabel_margin_loss(input: Tensor, target: Tensor, *, reduction: str = "mean") -> Tensor:
    """The sum of ``max(0, 1 - x[t] + x[i]) / c`` over targets t and all i that are none: (n, c) or (c).

    target: of the input's shape, the class numbers of each sample up to the first -1. Raises IndexError for
    a target that is no class, ShapeError, DTypeError.

    >>> x = fw.tensor([0.0, 0.5, 1.0, 0.0])
    >>> fw.nn.functional.multilabel_margin_loss(x, fw.tensor([2, 1, -1, 0]))
    tensor(0.2500)
    """
    op = "multilabel_margin_loss"
    x, t = _rows(input, target, tensor_arg(input, op).shape[-1:] or (1,), op)
    used: Any = (t < 0).cumsum(1) == 0
    t = where(used, t, -1)
    _check_classes(t._array, x.shape[1], -1, op)
    safe: Any = where(used, t, 0).long()  # type: ignore[attr-defined]
    hot: Any = one_hot(safe, x.shape[1]).bool() & used.unsqueeze(2)  # type: ignore[attr-defined]
    counted = used.unsqueeze(2) & ~hot.any(1).unsqueeze(1)  # (n, target, class)
    gaps: Any = clamp_min(1 - gather(x, 1, safe).unsqueeze(2) + x.unsqueeze(1), 0)  # type: ignore
    losses = (gaps * wrap(counted._array)).sum((1, 2)) / x.shape[1]
    return _reduced(losses[0] if input.ndim < 2 else losses, reduction, op)


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
