"""Multi-head attention with its projections: PyTorch's long function, in short steps."""

import math
from typing import Any

from ...errors import DTypeError, ShapeError
from ...tensor import Tensor
from ..convert.cast import to
from ..image.pad import pad
from ..linalg.matmul import linear, matmul
from ..pointwise.choose import where_op
from ..random.dropout import dropout
from ..record.args import floating, tensor_arg
from ..record.public import public
from ..reduce.sums import mean
from ..shape.join import cat
from ..shape.split import split
from ..shape.view import take_order, take_shape
from ..write.inplace import zero_op
from .attention import attend, settings_of, weights_of

_OP = "multi_head_attention_forward"


def _check(query: Any, key: Any, value: Any, embed: int, heads: int) -> bool:
    """Whether there is a batch; raises what does not fit."""
    for name, x in (("query", query), ("key", key), ("value", value)):
        floating(tensor_arg(x, _OP, name), _OP, name)
    if query.ndim not in (2, 3) or not query.ndim == key.ndim == value.ndim:
        raise ShapeError(f"{_OP}: query, key and value must all be (length, batch, features) or (length, "
                         f"features), got shapes {list(query.shape)}, {list(key.shape)}, {list(value.shape)}")
    if query.shape[-1] != embed:
        raise ShapeError(f"{_OP}: query {list(query.shape)} must have {embed} features (embed_dim_to_check)")
    if heads <= 0 or embed % heads:
        raise ShapeError(f"{_OP}: {embed} features do not divide into num_heads={heads}")
    if key.shape[:-1] != value.shape[:-1] or query.ndim == 3 and key.shape[1] != query.shape[1]:
        raise ShapeError(f"{_OP}: key {list(key.shape)} and value {list(value.shape)} must agree in length, "
                         f"and with query {list(query.shape)} in batch")
    return query.ndim == 3


def _all_tensors(**given: Any) -> None:
    for name, x in given.items():
        if x is not None or name == "out_proj_weight":
            tensor_arg(x, _OP, name)


def _project(inputs: tuple, packed: Tensor | None, separate: tuple, bias: Tensor | None,
             embed: int) -> list:
    """Query, key and value times their weights, which stand in one tensor or in three."""
    if packed is None and any(w is None for w in separate):
        raise TypeError(f"{_OP}: in_proj_weight is None; with use_separate_proj_weight=True pass "
                        f"q_proj_weight, k_proj_weight and v_proj_weight")
    if packed is not None:
        if packed.shape != (3 * embed, embed):
            raise ShapeError(f"{_OP}: in_proj_weight must be [{3 * embed}, {embed}], got "
                             f"{list(packed.shape)}")
        if inputs[0] is inputs[1] is inputs[2]:  # self-attention: one product
            return list(split(linear(inputs[0], packed, bias), embed, dim=-1))
        separate = split(packed, embed)
    biases = (None,) * 3 if bias is None else split(bias, embed)
    return [linear(x, w, b) for x, w, b in zip(inputs, separate, biases)]


def closed(mask: Tensor, dtype: Any) -> Tensor:
    """-inf where the mask is True, else 0."""
    return where_op.run(mask, float("-inf"), zero_op.run(to(mask, dtype)))


def _additive(mask: Tensor | None, name: str, like: Any) -> Any:
    """A mask to be added to the scores: True becomes -inf."""
    if mask is None:
        return None
    if tensor_arg(mask, _OP, name).dtype.category in (1, 3):
        raise DTypeError(f"{_OP}: {name} must be bool (True: do not attend) or floating (added to the "
                         f"scores), got {mask.dtype}")
    if mask.dtype.category:
        return to(mask, like.dtype)
    return closed(mask, like.dtype)


def _wanted(mask: Any, name: str, *shapes: tuple[int, ...]) -> None:
    if mask is not None and mask.shape not in shapes:
        wanted = " or ".join(str(list(s)) for s in shapes)
        raise ShapeError(f"{_OP}: {name} must have shape {wanted}, got {list(mask.shape)}")


def _heads(x: Any, heads: int) -> Any:
    """(length, batch, features) as (batch, heads, length, features of one head)."""
    length, batch, features = x.shape
    parted = take_shape(x, (length, batch, heads, features // heads))
    return take_order(parted, (1, 2, 0, 3))


def _longer(x: Any, more: Any, dim: int) -> Any:
    """``x`` with the vector(s) ``more``, repeated as ``x`` is large, behind it along ``dim``."""
    size = list(x.shape)
    size[dim] = 1
    return cat((x, more.expand(size)), dim)


def _static(given: Any, x: Any, name: str) -> Any:
    batch, heads, _, features = x.shape
    if given is None:
        return x
    if given.shape[0] != batch * heads or given.shape[2] != features:
        raise ShapeError(f"{_OP}: {name} must be [{batch * heads}, length, {features}], got "
                         f"{list(given.shape)}")
    return take_shape(given, (batch, heads, *given.shape[1:]))


@public("nn.functional", autocast="lower")
def multi_head_attention_forward(
        query: Tensor, key: Tensor, value: Tensor, embed_dim_to_check: int, num_heads: int,
        in_proj_weight: Tensor | None, in_proj_bias: Tensor | None, bias_k: Tensor | None,
        bias_v: Tensor | None, add_zero_attn: bool, dropout_p: float, out_proj_weight: Tensor,
        out_proj_bias: Tensor | None,
        training: bool = True, key_padding_mask: Tensor | None = None, need_weights: bool = True,
        attn_mask: Tensor | None = None, use_separate_proj_weight: bool = False,
        q_proj_weight: Tensor | None = None, k_proj_weight: Tensor | None = None,
        v_proj_weight: Tensor | None = None, static_k: Tensor | None = None, static_v: Tensor | None = None,
        average_attn_weights: bool = True, is_causal: bool = False) -> tuple[Tensor, Tensor | None]:
    """Attention of several heads between projections: ``(y, weights)`` (Vaswani et al., arXiv:1706.03762).

    query (L, N, E), key (S, N, K), value (S, N, V), or without the batch N; y (L, N, E). in_proj_weight
    (3 E, E) holds the three projections, or they are given apart: q_proj_weight (E, E), k_proj_weight (E, K),
    v_proj_weight (E, V). bias_k, bias_v (1, 1, E): one more key and value; add_zero_attn: one more of zeros.
    static_k, static_v (N heads, S, E / heads) stand in for the projections. Masks are bool, True where
    attention is forbidden, or floating, added to the scores: key_padding_mask (N, S), attn_mask (L, S) or
    (N heads, L, S). is_causal says that attn_mask is the causal one, which must be given. A query that may
    attend to nothing gets zeros. weights: (N, L, S), the mean over heads, or (N, heads, L, S); None without
    need_weights. Floating dtypes. Raises ShapeError, DTypeError, TypeError or ValueError.

    >>> x, eye = fw.ones(3, 2), fw.eye(2)
    >>> w = fw.cat((eye, eye, eye))
    >>> attend = fw.nn.functional.multi_head_attention_forward
    >>> y, p = attend(x, x, x, 2, 1, w, None, None, None, False, 0.0, eye, None)
    >>> y.shape, p.shape
    ((3, 2), (3, 3))
    """
    batched = _check(query, key, value, embed_dim_to_check, num_heads)
    _all_tensors(in_proj_weight=in_proj_weight, in_proj_bias=in_proj_bias, bias_k=bias_k, bias_v=bias_v,
                 out_proj_weight=out_proj_weight, out_proj_bias=out_proj_bias, q_proj_weight=q_proj_weight,
                 k_proj_weight=k_proj_weight, v_proj_weight=v_proj_weight, static_k=static_k,
                 static_v=static_v)
    _check_settings(dropout_p if training else 0.0, is_causal, attn_mask, bias_k, bias_v)
    inputs: tuple = (query, key, value)
    if not batched:
        inputs = tuple(take_shape(x, (x.shape[0], 1, x.shape[1])) for x in inputs)
        if query is key is value:
            inputs = (inputs[0],) * 3
    E = inputs[0].shape[-1]
    S = inputs[1].shape[0] if static_k is None else static_k.shape[1]
    separate = (q_proj_weight, k_proj_weight, v_proj_weight)
    packed = None if use_separate_proj_weight else in_proj_weight
    q, k, v = _project(inputs, packed, separate, in_proj_bias, E)
    y, shown = between_projections(
        q, k, v, num_heads, bias_k, bias_v, add_zero_attn, dropout_p if training else 0.0,
        key_padding_mask, need_weights, attn_mask, static_k, static_v, average_attn_weights, is_causal,
        batched, S)
    y = linear(y, out_proj_weight, out_proj_bias)
    if batched:
        return y, shown
    return y.squeeze(1), None if shown is None else shown.squeeze(0)


def between_projections(
        q: Any, k: Any, v: Any, heads: int, bias_k: Any, bias_v: Any, add_zero_attn: bool, p: float,
        key_padding_mask: Any, need_weights: bool, attn_mask: Any, static_k: Any, static_v: Any,
        average: bool, is_causal: bool, batched: bool, S: int) -> tuple[Any, Any]:
    """What is between the projections: query (L, N, E), key and value (S, N, E) -> (L, N, E), and weights."""
    L, N, E = q.shape
    if bias_k is not None:
        k, v = _longer(k, bias_k, 0), _longer(v, bias_v, 0)
    q, k, v = [_heads(x, heads) for x in (q, k, v)]
    k, v = _static(static_k, k, "static_k"), _static(static_v, v, "static_v")
    if add_zero_attn:
        k, v = [_longer(x, zero_op.run(x[:, :, :1]), 2) for x in (k, v)]
    mask = _merged(attn_mask, key_padding_mask, (N, heads, L, S), k.shape[2] - S, q, batched)
    shown: Any = None
    if need_weights:
        scores = matmul(q * (1 / math.sqrt(max(E // heads, 1))), take_order(k, (0, 1, 3, 2)))
        weights = dropout(weights_of(scores, mask), p, True)
        y: Any = matmul(weights, v)
        shown = mean(weights, 1) if average else weights
    else:
        causal = is_causal and key_padding_mask is None and k.shape[2] == S and not mask.requires_grad
        y = attend(q, k, v, None if causal else mask, settings_of(q, p, causal))
    return take_shape(take_order(y, (2, 0, 1, 3)), (L, N, E)), shown


def _check_settings(p: float, is_causal: bool, mask: Any, bias_k: Any, bias_v: Any) -> None:
    if not 0.0 <= p <= 1.0:
        raise ValueError(f"{_OP}: dropout_p must be in [0, 1], got {p}")
    if is_causal and mask is None:
        raise ValueError(f"{_OP}: is_causal=True needs attn_mask, the causal mask itself")
    if (bias_k is None) != (bias_v is None):
        raise TypeError(f"{_OP}: bias_k and bias_v belong together; one of them is None")


def _merged(attn_mask: Any, padding_mask: Any, scores: tuple[int, ...], further: int, like: Any,
            batched: bool) -> Any:
    """Both masks as one to add to the scores; keys added behind the given ones may be attended to."""
    N, heads, L, S = scores
    attn = _additive(attn_mask, "attn_mask", like)
    padding = _additive(padding_mask, "key_padding_mask", like)
    _wanted(attn, "attn_mask", (L, S), (N * heads, L, S))
    _wanted(padding, "key_padding_mask", (N, S) if batched else (S,))
    if attn is not None and attn.ndim == 3:
        attn = take_shape(attn, scores)
    if padding is not None:
        padding = take_shape(padding, (N, 1, 1, S))
    both = padding if attn is None else attn if padding is None else attn + padding
    return both if both is None or not further else pad(both, (0, further))
