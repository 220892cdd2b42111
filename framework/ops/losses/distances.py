"""Distances between vectors, and the losses over them."""

from typing import Any

from ...dtypes import FLOATING, get_default_dtype, int64
from ...errors import ShapeError
from ...tensor import Tensor
from ..convert.cast import cast
from ..language.elementwise import Elementwise
from ..linalg.distances import pairwise_distance
from ..pointwise.choose import clamp_min
from ..record.args import number_arg, tensor_arg
from ..record.public import public
from ..reduce.sums import as_summed, sum_op
from .elements import _alike, _reduced

_MISSED = "where(margin - t * (a - b) < 0, 0.0, {})"
_ranking = Elementwise("margin_ranking_loss", "a b t", "maximum(margin - t * (a - b), 0)", settings="margin",
                       result="float", arguments="input1 input2 target", masks=True, vjp={
    "a": _MISSED.format("-(g * t)"), "b": _MISSED.format("g * t"), "t": _MISSED.format("-(g * (a - b))")})
_hinge = Elementwise("hinge_embedding_loss", "x t", result="float", settings="margin", masks=True,
                     arguments="input target",
                     expr="where(t != 1, maximum(margin - x, 0), 0.0) + where(t != -1, x, 0.0)", vjp={
    "x": "where(t != 1, where(margin - x < 0, 0.0, -g), 0.0) + where(t != -1, g, 0.0)"})


@public("nn.functional", autocast="float32", deferred=True)
def margin_ranking_loss(input1: Tensor, input2: Tensor, target: Tensor, margin: float = 0.0, *,
                        reduction: str = "mean") -> Tensor:
    """``max(0, -t * (x1 - x2) + margin)`` for targets 1 (x1 should be larger) and -1.

    Raises ShapeError unless all have one shape.

    >>> one, two = fw.tensor([1.0, 2.0]), fw.tensor([2.0, 1.0])
    >>> fw.nn.functional.margin_ranking_loss(one, two, fw.tensor([1.0, 1.0]))
    tensor(0.5000)
    """
    _alike("margin_ranking_loss", input1=input1, input2=input2, target=target)
    if {input1._array.dtype.kind, input2._array.dtype.kind, target._array.dtype.kind} & set(FLOATING):
        margin = number_arg(margin, "margin_ranking_loss", "margin")
        losses = _ranking.run(input1, input2, target, margin=margin)
    else:  # whole numbers are counted as such, those without a sign around 0
        losses = clamp_min(-target * (input1 - input2) + margin, 0)  # type: ignore[operator]
    return _reduced(losses, reduction, "margin_ranking_loss")


@public("nn.functional", autocast="float32", deferred=True)
def hinge_embedding_loss(input: Tensor, target: Tensor, margin: float = 1.0, *,
                         reduction: str = "mean") -> Tensor:
    """``input`` where the target is 1, ``max(0, margin - input)`` where it is -1.

    Raises ShapeError unless both have one shape.

    >>> fw.nn.functional.hinge_embedding_loss(fw.tensor([0.5, 0.25]), fw.tensor([1.0, -1.0]))
    tensor(0.6250)
    """
    _alike("hinge_embedding_loss", input=input, target=target)
    losses = _hinge.run(input, target, margin=number_arg(margin, "hinge_embedding_loss", "margin"))
    return _reduced(losses, reduction, "hinge_embedding_loss")


_COS = "(xy / sqrt((xx + 1e-12) * (yy + 1e-12)))"  # of a zero vector 0, with finite derivatives
_TURN = f"(where(target == 1, -g, 0.0) + where(target == -1, where({_COS} >= margin, g, 0.0), 0.0))"
_angles = Elementwise(  # of the products of two vectors
    "cosine_embedding_loss", "xy xx yy target",
    f"where(target == 1, 1 - {_COS}, 0.0) + where(target == -1, maximum({_COS} - margin, 0.0), 0.0)",
    settings="margin", result="float", vjp={
        "xy": f"{_TURN} / sqrt((xx + 1e-12) * (yy + 1e-12))",
        "xx": f"-0.5 * {_TURN} * {_COS} / (xx + 1e-12)", "yy": f"-0.5 * {_TURN} * {_COS} / (yy + 1e-12)"})


@public("nn.functional", autocast="float32", deferred=True)
def cosine_embedding_loss(input1: Tensor, input2: Tensor, target: Tensor, margin: float = 0.0, *,
                          reduction: str = "mean") -> Tensor:
    """``1 - cos`` where the target is 1, ``max(0, cos - margin)`` where it is -1.

    input1, input2: (N, D) with target (N), or (D) with a 0-dim target. Raises ShapeError otherwise.

    >>> one, two = fw.tensor([[1.0, 0.0]]), fw.tensor([[0.0, 1.0]])
    >>> fw.nn.functional.cosine_embedding_loss(one, two, fw.tensor([1.0]))
    tensor(1.)
    """
    op = "cosine_embedding_loss"
    _alike(op, input1=input1, input2=input2)
    wanted = (input1.shape[:-1], (1,) * (input1.ndim - 1))  # one target may stand for all
    if tensor_arg(target, op, "target").shape not in wanted or input1.ndim not in (1, 2):
        raise ShapeError(f"{op}: wanted inputs (N, D) with a target (N), or (D) with (), got inputs of shape "
                         f"{list(input1.shape)} and a target of shape {list(target.shape)}")
    last = (input1.ndim - 1,)

    def product(a: Any, b: Any) -> Any:
        total = sum_op.run(as_summed(a * b, None, op), dims=last, keepdim=False)
        return cast.run(total, dtype=get_default_dtype()) if total.dtype is int64 else total
    products = product(input1, input2), product(input1, input1), product(input2, input2)
    losses = _angles.run(*products, cast.run(target, dtype=products[0].dtype), margin=float(margin))
    return _reduced(losses, reduction, op)


nearer = Elementwise(
    "triplet_margin_loss", "near far", "maximum(near - far + margin, 0.0)", settings="margin", result="float",
    vjp={"near": "where(near - far + margin >= 0, g, 0.0)",
         "far": "where(near - far + margin >= 0, -g, 0.0)"})


@public("nn.functional", autocast="float32", deferred=True)
def triplet_margin_loss(anchor: Tensor, positive: Tensor, negative: Tensor, margin: float = 1.0,
                        p: float = 2.0, eps: float = 1e-6, swap: bool = False, *,
                        reduction: str = "mean") -> Tensor:
    """``max(0, d(a, p) - d(a, n) + margin)`` with ``d`` of ``pairwise_distance``.

    swap: use d(p, n) for d(a, n) where it is smaller. Raises ShapeError unless all have one shape.

    >>> a, b = fw.tensor([[0.0, 0.0]]), fw.tensor([[3.0, 4.0]])
    >>> fw.nn.functional.triplet_margin_loss(a, a, b, margin=6.0)
    tensor(1.0000)
    """
    op = "triplet_margin_loss"
    margin = number_arg(margin, op, "margin")
    if margin <= 0:
        raise ValueError(f"{op}: margin must be positive, got {margin}")
    _alike(op, anchor=anchor, positive=positive, negative=negative)
    near: Any = pairwise_distance(anchor, positive, p, eps)
    far: Any = pairwise_distance(anchor, negative, p, eps)
    if swap:
        other = pairwise_distance(positive, negative, p, eps)
        far = far.minimum(other)
    return _reduced(nearer.run(near, far, margin=float(margin)), reduction, op)
