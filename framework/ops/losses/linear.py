"""The cross entropy of a linear layer's scores, as one function."""

from typing import Any

from ...errors import ShapeError
from ...tensor import Tensor
from ..linalg.matmul import linear
from ..record.args import real_arg, tensor_arg
from ..record.public import public
from .classes import cross_entropy


@public("nn.functional")
def linear_cross_entropy(input: Tensor, linear_weight: Tensor, target: Tensor, *,
                         linear_bias: Tensor | None = None, weight: Tensor | None = None,
                         reduction: str = "mean", ignore_index: int | None = None,
                         label_smoothing: float = 0.0) -> Tensor:
    """``cross_entropy(linear(input, linear_weight, linear_bias), target)``: input (n, f) or (f), weight
    (c, f) or (c, d1, ..., f), target as ``cross_entropy`` takes it, (n, d1, ...) or (n, c, d1, ...).

    Raises ShapeError for several dimensions of outputs without a batch.

    >>> fw.nn.functional.linear_cross_entropy(fw.ones(1, 2), fw.zeros(3, 2), fw.tensor([1]))
    tensor(1.0986)
    """
    op = "linear_cross_entropy"
    x: Any = real_arg(input, op)
    w: Any = tensor_arg(linear_weight, op, "linear_weight")
    outputs = w.shape[1:-1]
    if outputs and x.ndim != 2:
        raise ShapeError(f"{op}: a weight of {w.ndim} dimensions wants input (n, features), got "
                         f"{list(x.shape)}")
    b: Any = None if linear_bias is None else tensor_arg(linear_bias, op, "linear_bias")
    scores: Any = linear(x, w.reshape(-1, w.shape[-1]), None if b is None else b.reshape(-1))
    if outputs:
        scores = scores.reshape(x.shape[0], w.shape[0], *outputs)
    ignored = -100 if ignore_index is None else ignore_index
    if ignore_index is not None and target.is_floating_point():
        raise ValueError(f"{op}: ignore_index applies to class numbers, but target holds probabilities")
    return cross_entropy(scores, target, weight, ignore_index=ignored, reduction=reduction,
                         label_smoothing=label_smoothing)
