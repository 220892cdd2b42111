"""Scaled dot-product attention, as a composite of matmul, where, softmax and dropout."""

import math
from typing import Any

from ..backends import array_module
from ..errors import DTypeError, ShapeError
from ..tensor import Tensor, wrap
from .args import floating, tensor_arg
from .broadcast import broadcast_shape
from .dropout import dropout
from .matmul import matmul
from .pointwise import _where
from .public import public
from .softmax import softmax_op
from .view import permute_op, reshape_op

_OP = "scaled_dot_product_attention"


def _check(query: Any, key: Any, value: Any, dropout_p: float) -> None:
    for name, x in (("query", query), ("key", key), ("value", value)):
        floating(tensor_arg(x, _OP, name), _OP, name)
        if x.ndim < 2:
            raise ShapeError(f"{_OP}: {name} must be (..., length, features), got shape {list(x.shape)}")
    if query.shape[-1] != key.shape[-1]:
        raise ShapeError(f"{_OP}: query {list(query.shape)} and key {list(key.shape)} must have the same "
                         f"last size")
    if key.shape[-2] != value.shape[-2]:
        raise ShapeError(f"{_OP}: key {list(key.shape)} and value {list(value.shape)} must have the same "
                         f"length (dimension -2)")
    if not 0.0 <= dropout_p <= 1.0:
        raise ValueError(f"{_OP}: dropout_p must be in [0, 1], got {dropout_p}")


def _mask(query: Tensor, key: Tensor, mask: Any, is_causal: bool) -> Tensor | None:
    """The mask that says who may attend to whom (bool) or what is added to the scores (floating)."""
    n, m = query.shape[-2], key.shape[-2]
    if is_causal:
        if mask is not None:
            raise ValueError(f"{_OP}: pass attn_mask or is_causal=True, not both")
        xp = array_module(query._array)
        return wrap(xp.arange(n)[:, None] >= xp.arange(m))
    if mask is None:
        return None
    if tensor_arg(mask, _OP, "attn_mask").dtype.category in (1, 3):
        raise DTypeError(f"{_OP}: attn_mask must be bool (True: may attend) or floating (added to the "
                         f"scores), got {mask.dtype}")
    shape = (*broadcast_shape((query.shape[:-2], key.shape[:-2]), _OP), n, m)
    if broadcast_shape((mask.shape, shape), _OP) != shape:
        raise ShapeError(f"{_OP}: attn_mask of shape {list(mask.shape)} does not broadcast to the scores' "
                         f"shape {list(shape)}")
    return mask


def _weights(scores: Any, mask: Any) -> Tensor:
    """Softmax of the masked scores; a row that may attend to nothing gets zeros, not nan."""
    if mask is None:
        return softmax_op.run(scores, dim=scores.ndim - 1)
    array, below = mask._array, float("-inf")
    boolean = array.dtype.kind == "b"
    closed = ~array if boolean else array == below
    empty = closed.all(axis=-1, keepdims=True)
    some_empty = bool(empty.any())
    if boolean:
        scores = _where.run(wrap(array | empty) if some_empty else mask, scores, below)
    else:
        scores = scores + (_where.run(wrap(empty), 0.0, mask) if some_empty else mask)
    weights = softmax_op.run(scores, dim=scores.ndim - 1)
    return _where.run(wrap(empty), 0.0, weights) if some_empty else weights


def _shared_heads(query: Tensor, x: Tensor, name: str) -> Tensor:
    """Grouped queries: each head of key and value serves several heads of the query."""
    heads, own = query.shape[-3], x.shape[-3]
    if own == 0 or heads % own:
        raise ShapeError(f"{_OP}: enable_gqa needs the query's {heads} heads to be a multiple of the "
                         f"{name}'s {own}")
    times = heads // own
    lead, rest = x.shape[:-3], x.shape[-2:]
    split: Any = reshape_op.run(x, shape=(*lead, own, 1, *rest))
    return reshape_op.run(split.expand(*lead, own, times, *rest), shape=(*lead, heads, *rest))


@public("nn.functional")
def scaled_dot_product_attention(query: Tensor, key: Tensor, value: Tensor,
                                 attn_mask: Tensor | None = None, dropout_p: float = 0.0,
                                 is_causal: bool = False, scale: float | None = None,
                                 enable_gqa: bool = False) -> Tensor:
    """``softmax(q k^T * scale + mask) v`` (Vaswani et al., arXiv:1706.03762).

    query (..., L, E), key (..., S, E), value (..., S, F) give (..., L, F). attn_mask, broadcast to
    (..., L, S): bool, True where attending is allowed, or floating, added to the scores. is_causal:
    position i attends to positions up to i. scale: 1 / sqrt(E) by default. dropout_p is always
    applied. enable_gqa: heads (dimension -3) of key and value are shared by those of the query. A query
    that may attend to nothing gives zeros. Raises ShapeError, DTypeError or ValueError.

    >>> q, k = fw.zeros(1, 2), fw.ones(3, 2)
    >>> fw.nn.functional.scaled_dot_product_attention(q, k, fw.tensor([[0.0], [3.0], [6.0]]))
    tensor([[3.]])
    """
    _check(query, key, value, dropout_p)
    if enable_gqa:
        if min(query.ndim, key.ndim, value.ndim) < 3:
            raise ShapeError(f"{_OP}: enable_gqa needs heads: (..., heads, length, features)")
        key, value = _shared_heads(query, key, "key"), _shared_heads(query, value, "value")
    mask = _mask(query, key, attn_mask, is_causal)
    factor = 1 / math.sqrt(max(query.shape[-1], 1)) if scale is None else scale
    axes = (*range(key.ndim - 2), key.ndim - 1, key.ndim - 2)
    scores = matmul(query * factor, permute_op.run(key, dims=axes))  # type: ignore[operator]
    return matmul(dropout(_weights(scores, mask), dropout_p), value)
