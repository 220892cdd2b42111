"""The cross entropy of a linear layer's scores, as one function, as a whole or in chunks of rows."""

import warnings
from dataclasses import dataclass
from typing import Any

from ...dtypes import DType, as_dtype
from ...errors import ShapeError
from ...tensor import Tensor
from ..convert.cast import cast
from ..index.embedding import one_hot_op
from ..linalg.matmul import linear, matmul_op, same_dtype, swap_last
from ..pointwise.choose import where
from ..record.args import number_arg, real_arg, tensor_arg
from ..record.constants import raw
from ..record.op import Meta, Op
from ..record.public import public
from ..reduce.softmax import softmax_op
from ..shape.join import cat_op
from ..shape.slices import slice_op
from ..shape.view import reshape_op
from .classes import _check_classes, cross_entropy

# -- in chunks -----------------------------------------------------------------------------------
#
# The scores (n, c) of a large vocabulary take more memory than all else. Here they exist for one chunk of
# rows at a time, forward and, computed anew, backward: with p = softmax(scores), the derivative by the scores
# of a row is ``p - onehot(t)``.


@dataclass
class LinearCrossEntropyOptions:
    """How ``linear_cross_entropy`` goes through its rows: in chunks, so that no (n, c) scores are held.

    batch_chunk_size: rows of a chunk. chunking_method: what decides where that is None: "aspect_ratio:r", r
    times as many rows as features, so that the scores of a chunk are as large as r times the weight; "auto"
    means r = 2; None, all rows. acc_dtype: in which dtype the weight's gradient is added up over the chunks
    (default: its own). acc_policy ("accurate", "balanced", "compact", "auto") and allow_retain_graph are
    taken for PyTorch's programs: backward computes each chunk anew, which is exact and may be repeated.

    >>> options = fw.nn.LinearCrossEntropyOptions(batch_chunk_size=2)
    >>> x, w, t = fw.ones(5, 2), fw.zeros(3, 2), fw.zeros(5, dtype=fw.int64)
    >>> fw.nn.functional.linear_cross_entropy(x, w, t, options=options)
    tensor(1.0986)
    """

    allow_retain_graph: bool = False
    batch_chunk_size: int | None = None
    chunking_method: str | None = "auto"
    acc_policy: str = "auto"
    acc_dtype: DType | None = None

    def __post_init__(self) -> None:
        kind = type(self).__name__
        if self.batch_chunk_size is not None and self.batch_chunk_size < 1:
            raise ValueError(f"{kind}: batch_chunk_size must be positive, got {self.batch_chunk_size!r}")
        if self.acc_policy not in ("accurate", "balanced", "compact", "auto"):
            raise ValueError(f"{kind}: acc_policy must be 'accurate', 'balanced', 'compact' or 'auto', got "
                             f"{self.acc_policy!r}")
        self.rows(1, 1)

    def rows(self, n: int, features: int) -> int:
        """How many of n rows make a chunk."""
        method = self.chunking_method
        if self.batch_chunk_size is not None or method is None:
            return max(min(self.batch_chunk_size or n, n), 1)
        head, _, ratio = ("aspect_ratio:2" if method == "auto" else method).partition(":")
        try:
            factor = float(ratio) if head == "aspect_ratio" else 0.0
        except ValueError:
            factor = 0.0
        if not factor > 0:
            raise ValueError(f"{type(self).__name__}: chunking_method must be None, 'auto' or "
                             f"'aspect_ratio:r' with r > 0, got {method!r}")
        return max(min(int(factor * features), n), 1)


def _parts(n: int, rows: int) -> list[tuple]:
    return [(slice(i, min(i + rows, n)),) for i in range(0, n, rows)]


def _chunked_kernel(xp: Any, x: Any, w: Any, b: Any, t: Any, *, rows: int, acc: Any) -> Any:
    out = xp.empty(x.shape[0], x.dtype)
    for at in _parts(x.shape[0], rows):
        scores = x[at] @ w.T
        if b is not None:
            scores += b
        scores -= scores.max(axis=1, keepdims=True)
        own = xp.take_along_axis(scores, t[at][:, None], 1)[:, 0].copy()
        out[at] = xp.log(xp.exp(scores, out=scores).sum(axis=1)) - own
    return out


def _chunked_vjp(g: Any, x: Any, w: Any, b: Any, t: Any, rows: int, acc: Any, needs: tuple) -> list:
    to_x, to_w, to_b = [], None, None
    for at in _parts(x.shape[0], rows):
        own = slice_op(x, key=at)
        scores = matmul_op(own, swap_last(w))
        if b is not None:
            scores = scores + b
        hot = cast(one_hot_op(slice_op(t, key=at), count=w.shape[0]), dtype=raw(x).dtype)
        d = (softmax_op(scores, dim=1) - hot) * reshape_op(slice_op(g, key=at), shape=(-1, 1))
        if needs[0]:
            to_x.append(matmul_op(d, w))
        if needs[1]:
            part = matmul_op(swap_last(d), own)
            part = part if acc is None else cast(part, dtype=acc)
            to_w = part if to_w is None else to_w + part
        if b is not None and needs[2]:
            to_b = d.sum(0) if to_b is None else to_b + d.sum(0)
    if to_w is not None and acc is not None:
        to_w = cast(to_w, dtype=raw(w).dtype)
    return [cat_op(*to_x, dim=0) if to_x else None, to_w, to_b, None]


chunked_op = Op("chunked_cross_entropy", "x w b t", kernel=_chunked_kernel, vjp=_chunked_vjp,
                infer=lambda x, w, b, t, *, rows, acc: Meta(x.shape[:1], x.dtype))


def _in_chunks(x: Any, w: Any, b: Any, t: Any, reduction: str, ignored: int, options: Any, op: str) -> Any:
    used = t != ignored
    _check_classes(t._array, w.shape[0], ignored, op)
    safe = where(used, t, 0)
    x, w = same_dtype(op, input=x, linear_weight=w)
    acc = None if options.acc_dtype is None else as_dtype(options.acc_dtype)
    losses: Any = chunked_op.run(x, w, b, safe.long(), acc=acc,  # type: ignore[attr-defined]
                                 rows=options.rows(x.shape[0], x.shape[1]))
    losses = where(used, losses, 0.0)
    if reduction == "none":
        return losses
    return losses.sum() if reduction == "sum" else losses.sum() / used.sum()


@public("nn.functional")
def linear_cross_entropy(input: Tensor, linear_weight: Tensor, target: Tensor, *,
                         linear_bias: Tensor | None = None, weight: Tensor | None = None,
                         reduction: str = "mean", ignore_index: int | None = None,
                         label_smoothing: float = 0.0,
                         options: LinearCrossEntropyOptions | None = None) -> Tensor:
    """``cross_entropy(linear(input, linear_weight, linear_bias), target)``: input (n, f) or (f), weight
    (c, f) or (c, d1, ..., f), target as ``cross_entropy`` takes it, (n, d1, ...) or (n, c, d1, ...).

    options: go through the rows in chunks; of a matrix, a matrix and class numbers, without weights and
    smoothing. Others are computed as a whole, with a warning.

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
    ignored = -100 if ignore_index is None else number_arg(ignore_index, op, "ignore_index")
    if ignore_index is not None and target.is_floating_point():
        raise ValueError(f"{op}: ignore_index applies to class numbers, but target holds probabilities")
    if options is not None:
        if (x.ndim == w.ndim == 2 and x.shape[1] == w.shape[1] and weight is None and not label_smoothing
                and reduction in ("none", "mean", "sum") and target.shape == x.shape[:1]
                and not target.is_floating_point()):
            return _in_chunks(x, w, b, target, reduction, ignored, options, op)
        warnings.warn(f"{op}: options apply to a matrix, a matrix of weights and class numbers, without "
                      f"weight and label_smoothing; this is computed as a whole", UserWarning, stacklevel=2)
    scores: Any = linear(x, w.reshape(-1, w.shape[-1]), None if b is None else b.reshape(-1))
    if outputs:
        scores = scores.reshape(x.shape[0], w.shape[0], *outputs)
    return cross_entropy(scores, target, weight, ignore_index=ignored, reduction=reduction,
                         label_smoothing=label_smoothing)
