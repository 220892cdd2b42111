"""Distances between vectors, and the losses over them."""

import math
from typing import Any

import numpy as np

from ... import _native
from ...dtypes import float16, float32
from ...errors import ShapeError
from ...tensor import Tensor
from ..convert.cast import cast
from ..language.expression import OPS_BY_NAME
from ..language.program import SLICES, in_slices, native_kernel
from ..pointwise.functions import _where, clamp_min, sqrt
from ..record.args import floating, one_dim, real_arg, tensor_arg
from ..record.op import Op
from ..record.public import public
from ..reduce.moments import norm_op
from ..reduce.reduce import amax, sum_op
from ..shape.broadcast import broadcast_shape, expand
from ..shape.view import reshape_op
from .elements import _alike, _reduced

clamp_op, where_op = OPS_BY_NAME["clamp_min"], OPS_BY_NAME["where"]


def _p_norm(x: Any, p: float, dim: int, keepdim: bool) -> Any:
    """``(sum |x|**p)**(1/p)`` along one dimension; the gradient at 0 is 0. float16 is summed in float32."""
    if x.dtype is float16:
        return cast.run(_p_norm(cast.run(x, dtype=float32), p, dim, keepdim), dtype=float16)
    if p == 2:
        x = x.abs() if x.is_complex() else x
        return sqrt(sum_op.run(x * x, dims=(dim,), keepdim=keepdim))
    size = x.abs()
    if p == 1:
        return sum_op.run(size, dims=(dim,), keepdim=keepdim)
    if p == math.inf:
        return amax(size, dim, keepdim)
    if p == 0:
        return sum_op.run(cast.run(size != 0, dtype=size.dtype), dims=(dim,), keepdim=keepdim)
    return sum_op.run(size ** p, dims=(dim,), keepdim=keepdim) ** (1 / p)


@public("nn.functional", numpy=True)
def cosine_similarity(x1: Tensor, x2: Tensor, dim: int = 1, eps: float = 1e-8) -> Tensor:
    """``x1 . x2 / (max(|x1|, eps) * max(|x2|, eps))`` along ``dim``; shapes broadcast.

    >>> fw.nn.functional.cosine_similarity(fw.tensor([[1.0, 1.0]]), fw.tensor([[1.0, 0.0]]))
    tensor([0.7071])
    """
    op = "cosine_similarity"
    floating(real_arg(x1, op, "x1"), op, "x1")
    floating(real_arg(x2, op, "x2"), op, "x2")
    shape = broadcast_shape((x1.shape, x2.shape), op)
    at = one_dim(dim, len(shape), op)
    if not shape:
        return cosine_similarity(*(reshape_op.run(x, shape=(1,)) for x in (x1, x2)), 0, eps).squeeze(0)
    a, b = (reshape_op.run(x, shape=(1,) * (len(shape) - x.ndim) + x.shape) for x in (x1, x2))
    # expanded first: a dimension of size 1 counts as many times as the other's is long
    a, b = (expand.run(x, size=x.shape[:at] + shape[at:at + 1] + x.shape[at + 1:]) for x in (a, b))
    unit_a = a / clamp_min(_p_norm(a, 2, at, True), eps)  # type: ignore[operator]
    unit_b = b / clamp_min(_p_norm(b, 2, at, True), eps)  # type: ignore[operator]
    return sum_op.run(unit_a * unit_b, dims=(at,), keepdim=False)


@public("nn.functional", numpy=True)
def pairwise_distance(x1: Tensor, x2: Tensor, p: float = 2.0, eps: float = 1e-6,
                      keepdim: bool = False) -> Tensor:
    """The p-norm of ``x1 - x2 + eps`` along the last dimension; shapes broadcast.

    >>> fw.nn.functional.pairwise_distance(fw.tensor([[3.0, 4.0]]), fw.tensor([[0.0, 0.0]]))
    tensor([5.0000])
    """
    op = "pairwise_distance"
    floating(tensor_arg(x1, op, "x1"), op, "x1")
    floating(tensor_arg(x2, op, "x2"), op, "x2")
    difference = x1 - x2 + eps  # type: ignore[operator]
    if not difference.ndim:
        raise ShapeError(f"{op}: wanted at least 1 dimension, got two 0-dim tensors")
    return _p_norm(difference, p, difference.ndim - 1, keepdim)


def _unit_kernel(xp: Any, x: Any, *, dim: int, eps: float) -> Any:
    size = norm_op.kernel(xp, x, ord=2.0, dims=(dim,), keepdim=True)
    return x / xp.maximum(size, eps)


def _unit_vjp(g: Any, x: Any, dim: int, eps: float) -> Any:
    size = norm_op(x, ord=2.0, dims=(dim,), keepdim=True)
    divisor = clamp_op(size, low=eps)
    unit = x / divisor
    turned = sum_op(g * unit, dims=(dim,), keepdim=True) * unit
    return (g - where_op(size < eps, 0.0, turned)) / divisor


class _Unit(Op):
    """x / max(|x|, eps), of large arrays in one pass over memory."""

    def __init__(self) -> None:
        super().__init__("normalize", "x", kernel=_unit_kernel, infer=lambda x, *, dim, eps: x,
                         vjp={"x": _unit_vjp})
        self._divide = native_kernel("x / size", ("x", "size"), np.divide)
        self.cpu = self._cpu

    def _cpu(self, x: Any, *, dim: int, eps: float) -> Any:
        def size(x: Any, dim: int) -> Any:
            return np.maximum(norm_op.cpu(x, ord=2.0, dims=(dim,), keepdim=True), eps)
        dense = dim == x.ndim - 1 and x.flags.c_contiguous and x.dtype.char in "fd"
        if _native.module is None or not dense or x.size <= SLICES:
            return x / size(x, dim)
        return in_slices(lambda rows: size(rows, 1), self._divide, x)


_unit = _Unit()


@public("nn.functional", op=_unit, out=True)
def normalize(input: Tensor, p: float = 2.0, dim: int = 1, eps: float = 1e-12) -> Tensor:
    """``input / max(|input|_p, eps)`` with the p-norm along ``dim``.

    >>> fw.nn.functional.normalize(fw.tensor([[3.0, 4.0]]))
    tensor([[0.6000, 0.8000]])
    """
    floating(tensor_arg(input, "normalize", "input"), "normalize", "input")
    at = one_dim(dim, input.ndim, "normalize")
    if not input.ndim:
        return reshape_op.run(normalize(reshape_op.run(input, shape=(1,)), p, 0, eps), shape=())
    if p == 2 and not input.is_complex():
        return _unit.run(input, dim=at, eps=float(eps))
    return input / clamp_min(_p_norm(input, p, at, True), eps)  # type: ignore[operator]


@public("nn.functional")
def margin_ranking_loss(input1: Tensor, input2: Tensor, target: Tensor, margin: float = 0.0, *,
                        reduction: str = "mean") -> Tensor:
    """``max(0, -t * (x1 - x2) + margin)`` for targets 1 (x1 should be larger) and -1.

    Raises ShapeError unless all have one shape.

    >>> one, two = fw.tensor([1.0, 2.0]), fw.tensor([2.0, 1.0])
    >>> fw.nn.functional.margin_ranking_loss(one, two, fw.tensor([1.0, 1.0]))
    tensor(0.5000)
    """
    _alike("margin_ranking_loss", input1=input1, input2=input2, target=target)
    losses = clamp_min(-target * (input1 - input2) + margin, 0)  # type: ignore[operator]
    return _reduced(losses, reduction, "margin_ranking_loss")


@public("nn.functional")
def hinge_embedding_loss(input: Tensor, target: Tensor, margin: float = 1.0, *,
                         reduction: str = "mean") -> Tensor:
    """``input`` where the target is 1, ``max(0, margin - input)`` where it is -1.

    Raises ShapeError unless both have one shape.

    >>> fw.nn.functional.hinge_embedding_loss(fw.tensor([0.5, 0.25]), fw.tensor([1.0, -1.0]))
    tensor(0.6250)
    """
    _alike("hinge_embedding_loss", input=input, target=target)
    far = clamp_min(margin - input, 0)  # type: ignore[operator]
    losses = _where.run(target != 1, far, 0.0) + _where.run(target != -1, input, 0.0)  # type: ignore
    return _reduced(losses, reduction, "hinge_embedding_loss")


@public("nn.functional")
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
    if tensor_arg(target, op, "target").shape != input1.shape[:-1] or input1.ndim not in (1, 2):
        raise ShapeError(f"{op}: wanted inputs (N, D) with a target (N), or (D) with (), got inputs of shape "
                         f"{list(input1.shape)} and a target of shape {list(target.shape)}")
    last = (input1.ndim - 1,)

    def product(a: Any, b: Any) -> Any:
        return sum_op.run(a * b, dims=last, keepdim=False)
    tiny = 1e-12  # inside the root: the cosine of a zero vector is 0, with finite derivatives
    size = sqrt((product(input1, input1) + tiny) * (product(input2, input2) + tiny))
    cos = product(input1, input2) / size
    losses = (_where.run(target == 1, 1 - cos, 0.0)
              + _where.run(target == -1, clamp_min(cos - margin, 0), 0.0))  # type: ignore[operator]
    return _reduced(losses, reduction, op)


@public("nn.functional")
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
    _alike(op, anchor=anchor, positive=positive, negative=negative)
    near: Any = pairwise_distance(anchor, positive, p, eps)
    far: Any = pairwise_distance(anchor, negative, p, eps)
    if swap:
        other = pairwise_distance(positive, negative, p, eps)
        far = far.minimum(other)
    return _reduced(clamp_min(near - far + margin, 0), reduction, op)
