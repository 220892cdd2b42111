"""What is computed along the ragged dimension: sums, extremes, softmax, attention in each sequence."""

from typing import Any

import numpy as np

from ..creation import zeros
from ..dtypes import FLOAT
from ..errors import ShapeError
from ..nn import functional as F
from ..ops.convert.cast import from_array
from ..ops.index.embedding import add_rows
from ..ops.index.scatter_reduce import index_reduce
from ..ops.shape.join import cat
from ..tensor import Tensor
from .tensor import NestedTensor, Ragged, nested, rows


def total(values: Tensor, sizes: Ragged) -> Tensor:
    """The sum of each sequence, (batch, ...)."""
    if values.dtype.category < FLOAT:
        values = values.long()  # type: ignore[attr-defined]
    return add_rows.run(values, from_array(sizes.index, values), rows=len(sizes.lengths))


def extreme(values: Tensor, sizes: Ragged, reduce: str) -> Tensor:
    """The largest (amax) or smallest (amin) element of each sequence, (batch, ...)."""
    if not sizes.lengths.all():
        raise ShapeError(f"{reduce}: a sequence of length 0 has no {reduce}")
    empty = zeros((len(sizes.lengths), *values.shape[1:]), dtype=values.dtype, device=values.device)
    return index_reduce(empty, 0, from_array(sizes.index, values), values, reduce, include_self=False)


def softmax(values: Tensor, sizes: Ragged, log: bool) -> Tensor:
    """The softmax, or its logarithm, within each sequence."""
    if not len(values):
        return values
    some = Ragged(np.concatenate([[0], np.cumsum(sizes.lengths[sizes.lengths > 0])]))
    shifted = values - rows(extreme(values.detach(), some, "amax"), some.index)
    sums = total(shifted.exp(), some)  # type: ignore[attr-defined]
    if log:
        return shifted - rows(sums.log(), some.index)  # type: ignore[attr-defined]
    return shifted.exp() / rows(sums, some.index)  # type: ignore[attr-defined]


def attention(query: NestedTensor, key: NestedTensor, value: NestedTensor, attn_mask: Any = None,
              dropout_p: float = 0.0, is_causal: bool = False, scale: float | None = None,
              enable_gqa: bool = False) -> NestedTensor:
    """Each query attends to its own sequence; sequences of the same lengths run as one call.

    (batch, heads, j, width), or (batch, j, width).
    """
    if attn_mask is not None:
        raise NotImplementedError("scaled_dot_product_attention: attn_mask is not taken with nested tensors "
                                  "(each query sees its own sequence); use to_padded_tensor(padding)")
    for name, x in (("key", key), ("value", value)):
        if not isinstance(x, NestedTensor) or x._place != query._place or x.ndim != query.ndim:
            raise ShapeError(f"scaled_dot_product_attention: {name} must be nested as query is, with its "
                             f"ragged dimension at {query._place}")
    if key._sizes != value._sizes or len(query) != len(key):
        raise ShapeError("scaled_dot_product_attention: key and value must have the same lengths, and query "
                         "as many sequences")
    heads = query.ndim == 4
    if query.ndim not in (3, 4) or query._place != (2 if heads else 1):
        raise ShapeError(f"scaled_dot_product_attention: wanted (batch, heads, j, width) or (batch, j, width)"
                         f", got {query.shape}; transpose(1, 2) brings heads to the front")
    own, other = query._sizes, key._sizes
    order = np.lexsort((other.lengths, own.lengths))
    pairs = np.stack([own.lengths[order], other.lengths[order]])
    first = np.ones(min(len(order), 1), bool)
    news = np.flatnonzero(np.concatenate([first, (np.diff(pairs) != 0).any(0)]))
    counts = np.diff([*news, len(order)])
    q, k, v = [_sorted(x._packed, x._sizes, order) for x in (query, key, value)]
    sizes = [[int(n * pairs[i, at]) for n, at in zip(counts, news)] for i in (0, 1)]
    outs = []
    for n, at, qs, ks, vs in zip(counts, news, q.split(sizes[0]), k.split(sizes[1]), v.split(sizes[1])):  # type: ignore[attr-defined]
        queries, keys = int(pairs[0, at]), int(pairs[1, at])
        q, k, v = (_batch(part, int(n), length)
                   for part, length in ((qs, queries), (ks, keys), (vs, keys)))
        out = F.scaled_dot_product_attention(q, k, v, dropout_p=dropout_p, is_causal=is_causal, scale=scale,
                                             enable_gqa=enable_gqa)
        out = out.transpose(1, 2) if heads else out
        outs.append(out.reshape(-1, *out.shape[2:]))
    if not outs:
        return query
    whole = cat(outs)
    places = _places(own, order)
    if places is not None:
        back = np.empty_like(places)
        back[places] = np.arange(len(places))
        whole = rows(whole, back)
    return nested(whole, own, query._place)


def _places(sizes: Ragged, order: np.ndarray) -> np.ndarray | None:
    """Where the elements of the sequences are, taken in this order; None where it is theirs."""
    if (np.diff(order) == 1).all():
        return None
    lengths = sizes.lengths[order]
    ends = np.cumsum(lengths)
    begins = sizes.starts[:-1][order] - (ends - lengths)
    return np.arange(ends[-1]) + np.repeat(begins, lengths)


def _sorted(values: Tensor, sizes: Ragged, order: np.ndarray) -> Tensor:
    places = _places(sizes, order)
    return values if places is None else rows(values, places)


def _batch(part: Tensor, count: int, length: int) -> Tensor:
    """(count * length, [heads,] width) as (count, [heads,] length, width)."""
    shaped = part.reshape(count, length, *part.shape[1:])  # type: ignore[attr-defined]
    return shaped.transpose(1, 2) if shaped.ndim == 4 else shaped
