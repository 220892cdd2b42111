"""Functions of ``nn.functional`` that few programs use, as composites, and unique_consecutive."""

from typing import Any

import numpy as np

from ..errors import ShapeError
from ..tensor import Tensor
from .activations import logsigmoid_op
from .adaptive_pool import _largest
from .args import floating, one_dim, real_arg, tensor_arg
from .cast import from_array
from .embedding import embedding
from .index import index_add
from .join import cat
from .losses import _alike, _check_weight, _reduced
from .op import Meta, Op
from .pad import pad
from .public import public
from .scatter_reduce import index_reduce


@public("nn.functional")
def adaptive_max_pool3d(input: Tensor, output_size: Any, return_indices: bool = False) -> Any:
    """Maxima over windows that give ``output_size``: (n, c, d, h, w) -> (n, c, d', h', w').

    return_indices: also the places of the elements in the flattened image.

    >>> fw.nn.functional.adaptive_max_pool3d(fw.arange(8.0).reshape(1, 2, 2, 2), 1).flatten()
    tensor([7.])
    """
    return _largest(3, input, output_size, return_indices)


@public("nn.functional")
def local_response_norm(input: Tensor, size: int, alpha: float = 1e-4, beta: float = 0.75,
                        k: float = 1.0) -> Tensor:
    """``x / (k + alpha * mean of x**2 over size neighbouring channels)**beta``: (n, c, *) -> (n, c, *).

    Beyond the first and last channel there are zeros. A. Krizhevsky et al., "ImageNet classification
    with deep convolutional neural networks", 2012. Raises ShapeError below 3 dimensions.

    >>> fw.nn.functional.local_response_norm(fw.ones(1, 1, 1), 1, alpha=3.0, beta=0.5)
    tensor([[[0.5000]]])
    """
    x: Any = real_arg(input, "local_response_norm")
    floating(x, "local_response_norm")
    if x.ndim < 3:
        raise ShapeError(f"local_response_norm: input must be (n, c, *), got shape {list(x.shape)}")
    if size < 1:
        raise ValueError(f"local_response_norm: size must be positive, got {size}")
    if not x.numel():
        return x
    flat = (x * x).reshape(*x.shape[:2], -1).mT  # channels last, to pad them
    near = pad(flat, (size // 2, (size - 1) // 2)).unfold(2, size, 1).mean(-1)  # type: ignore[attr-defined]
    return x / (near.mT.reshape(x.shape) * alpha + k) ** beta


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
    _check_weight(weight, input.shape, op)
    x, t = input, target
    losses = -(t * logsigmoid_op.run(x) + (1 - t) * logsigmoid_op.run(-x))  # type: ignore[operator]
    if weight is not None:
        losses = losses * weight
    return _reduced(losses.mean(-1), reduction, op)


@public("nn.functional")
def embedding_bag(input: Tensor, weight: Tensor, offsets: Tensor | None = None,
                  max_norm: float | None = None, norm_type: float = 2, scale_grad_by_freq: bool = False,
                  mode: str = "mean", sparse: bool = False, per_sample_weights: Tensor | None = None,
                  include_last_offset: bool = False, padding_idx: int | None = None) -> Tensor:
    """Sums, means or maxima of bags of rows of ``weight`` (V, D): input (B, n) or (N) -> (B, D).

    input (N) is cut into bags that start at ``offsets`` (B), the first being 0; include_last_offset: the
    last offset is where the last bag ends. per_sample_weights: factors like input, for mode "sum".
    padding_idx: a row that is left out. An empty bag gives zeros. The other arguments: ``embedding``.
    In mode "max", equal elements share the gradient. Raises ShapeError, ValueError.

    >>> table = fw.tensor([[1.0], [2.0], [4.0]])
    >>> fw.nn.functional.embedding_bag(fw.tensor([0, 1, 2]), table, fw.tensor([0, 1]), mode="sum")
    tensor([[1.],
            [6.]])
    """
    op = "embedding_bag"
    if mode not in ("sum", "mean", "max"):
        raise ValueError(f"{op}: mode must be 'sum', 'mean' or 'max', got {mode!r}")
    if per_sample_weights is not None and (mode != "sum" or per_sample_weights.shape != input.shape):
        raise ValueError(f"{op}: per_sample_weights needs mode='sum' and the shape of input")
    bags, count = _bags(tensor_arg(input, op), offsets, include_last_offset, op)
    flat: Any = input.reshape(-1)  # type: ignore[attr-defined]
    rows: Any = embedding(flat, weight, padding_idx, max_norm, norm_type, scale_grad_by_freq, sparse)
    if per_sample_weights is not None:
        rows = rows * per_sample_weights.reshape(-1, 1)  # type: ignore[attr-defined]
    if padding_idx is not None:
        kept = flat != padding_idx % weight.shape[0]
        rows, bags = rows[kept], bags[kept]
    zeros: Any = weight.new_zeros((count, weight.shape[1]))  # type: ignore[attr-defined]
    if mode == "max":
        return index_reduce(zeros, 0, bags, rows, "amax", include_self=False)
    total: Any = index_add(zeros, 0, bags, rows)
    if mode == "sum":
        return total
    sizes: Any = index_add(zeros[:, 0], 0, bags, bags.new_ones(bags.shape, dtype=weight.dtype))
    return total / sizes.clamp(min=1.0).unsqueeze(1)


def _bags(x: Any, offsets: Any, last: bool, op: str) -> tuple[Any, int]:
    """The bag of every element of the flattened input, and how many bags there are."""
    if x.ndim == 2:
        if offsets is not None:
            raise ValueError(f"{op}: offsets are for 1-dim input; (B, n) has bags of n already")
        numbers = np.repeat(np.arange(x.shape[0]), x.shape[1])
        return from_array(numbers, x), x.shape[0]
    if x.ndim != 1 or offsets is None or tensor_arg(offsets, op, "offsets").ndim != 1:
        raise ShapeError(f"{op}: input must be (B, n), or (N) with offsets (B), got shape {list(x.shape)}")
    starts = offsets.cpu().numpy()
    if not starts.size or starts[0] != 0 or (np.diff(starts) < 0).any() or starts[-1] > x.shape[0]:
        raise ValueError(f"{op}: offsets must start with 0, not fall, and end within the input of "
                         f"{x.shape[0]}, got {starts.tolist()}")
    count = len(starts) - bool(last)
    ends = [*starts[1:count], starts[-1] if last else x.shape[0]] if count else []
    kept = np.repeat(np.arange(count), np.diff([0, *ends]))
    if len(kept) < x.shape[0]:
        raise ValueError(f"{op}: the last offset is {starts[-1]}, but input has {x.shape[0]} elements")
    return from_array(kept, x), count


firsts = Op("_unique_consecutive", "x index", vjp="undefined", moves=True,
            kernel=lambda xp, x, index, *, dim: xp.take(x, index, dim),
            infer=lambda x, index, *, dim: Meta(x.shape[:dim] + index.shape + x.shape[dim + 1:], x.dtype))


@public(method=True)
def unique_consecutive(input: Tensor, return_inverse: bool = False, return_counts: bool = False,
                       dim: int | None = None) -> Any:
    """The elements (or slices along ``dim``) without those that equal the one before them.

    return_inverse: also where each went; return_counts: also how many each stands for. Backward
    through it raises.

    >>> fw.unique_consecutive(fw.tensor([1, 1, 2, 1]))
    tensor([1, 2, 1])
    """
    x: Any = tensor_arg(input, "unique_consecutive")
    at = 0 if dim is None else one_dim(dim, x.ndim, "unique_consecutive")
    shape = x.shape
    x = x.reshape(-1) if dim is None else x
    n = x.shape[at]
    rows = x.movedim(at, 0).reshape(n, -1) if x.numel() else x.new_zeros((n, 1))
    new = (rows[1:] != rows[:-1]).any(1).long()
    group = cat([new.new_zeros((min(n, 1),)), new.cumsum(0)], 0)
    first = cat([new.new_ones((min(n, 1),)), new], 0).nonzero().reshape(-1)
    found = [firsts.run(x, first, dim=at)]
    if return_inverse:
        found.append(group.reshape(shape) if dim is None else group)
    if return_counts:
        found.append(group.bincount() if n else group)
    return found[0] if len(found) == 1 else tuple(found)

