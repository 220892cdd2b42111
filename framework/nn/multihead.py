"""Attention of several heads as a layer."""

from typing import Any

from ..creation import empty
from ..errors import ShapeError
from ..tensor import Tensor
from . import functional as F
from . import init
from .linear import NonDynamicallyQuantizableLinear
from .module import Module
from .parameter import Parameter


class MultiheadAttention(Module):
    """``(y, weights)``: heads that attend from query to key, and give value (arXiv:1706.03762).

    query (L, N, E), key (S, N, kdim), value (S, N, vdim), y (L, N, E); with ``batch_first`` N comes before
    L and S; without a batch there is no N. weights, masks and the options: as
    ``nn.functional.multi_head_attention_forward``. Raises ShapeError, DTypeError, TypeError or ValueError.

    >>> x = fw.randn(5, 2, 4)
    >>> y, weights = fw.nn.MultiheadAttention(4, 2)(x, x, x)
    >>> y.shape, weights.shape
    ((5, 2, 4), (2, 5, 5))
    """

    def __init__(self, embed_dim: int, num_heads: int, dropout: float = 0.0, bias: bool = True,
                 add_bias_kv: bool = False, add_zero_attn: bool = False, kdim: int | None = None,
                 vdim: int | None = None, batch_first: bool = False, device: Any = None,
                 dtype: Any = None) -> None:
        super().__init__()
        if embed_dim <= 0 or num_heads <= 0 or embed_dim % num_heads:
            raise ValueError(f"MultiheadAttention: embed_dim={embed_dim} does not divide into "
                             f"num_heads={num_heads}")
        made = {"device": device, "dtype": dtype}
        self.embed_dim, self.num_heads, self.head_dim = embed_dim, num_heads, embed_dim // num_heads
        self.kdim = embed_dim if kdim is None else kdim
        self.vdim = embed_dim if vdim is None else vdim
        self.dropout, self.add_zero_attn, self.batch_first = dropout, add_zero_attn, batch_first
        self._qkv_same_embed_dim = self.kdim == self.vdim == embed_dim

        def parameter(*size: int) -> Parameter:
            return Parameter(empty(size, **made))
        joint = self._qkv_same_embed_dim
        self.in_proj_weight = parameter(3 * embed_dim, embed_dim) if joint else None
        self.q_proj_weight = None if joint else parameter(embed_dim, embed_dim)
        self.k_proj_weight = None if joint else parameter(embed_dim, self.kdim)
        self.v_proj_weight = None if joint else parameter(embed_dim, self.vdim)
        self.in_proj_bias = parameter(3 * embed_dim) if bias else None
        self.out_proj = NonDynamicallyQuantizableLinear(embed_dim, embed_dim, bias=bias, **made)
        self.bias_k = parameter(1, 1, embed_dim) if add_bias_kv else None
        self.bias_v = parameter(1, 1, embed_dim) if add_bias_kv else None
        self._reset_parameters()

    def _reset_parameters(self) -> None:
        """Projections uniform (Glorot), biases 0, the further key and value normal (Glorot)."""
        for w in (self.in_proj_weight, self.q_proj_weight, self.k_proj_weight, self.v_proj_weight):
            if w is not None:
                init.xavier_uniform_(w)
        if self.in_proj_bias is not None:
            init.zeros_(self.in_proj_bias)
            init.zeros_(self.out_proj.bias)
        for b in (self.bias_k, self.bias_v):
            if b is not None:
                init.xavier_normal_(b)

    def forward(self, query: Tensor, key: Tensor, value: Tensor, key_padding_mask: Tensor | None = None,
                need_weights: bool = True, attn_mask: Tensor | None = None, average_attn_weights: bool = True,
                is_causal: bool = False) -> tuple[Tensor, Tensor | None]:
        inputs: tuple[Tensor, Tensor, Tensor] = (query, key, value)
        turned = self.batch_first and getattr(query, "ndim", 0) == 3
        if turned:
            if min(x.ndim for x in inputs) < 3:
                raise ShapeError(f"MultiheadAttention: query {list(query.shape)} has a batch, key "
                                 f"{list(key.shape)} and value {list(value.shape)} must have it too")
            if query is key is value:
                inputs = (query.transpose(0, 1),) * 3
            else:
                inputs = (query.transpose(0, 1), key.transpose(0, 1), value.transpose(0, 1))
        y, weights = F.multi_head_attention_forward(
            *inputs, self.embed_dim, self.num_heads, self.in_proj_weight, self.in_proj_bias, self.bias_k,
            self.bias_v, self.add_zero_attn, self.dropout, self.out_proj.weight, self.out_proj.bias,
            training=self.training,
            key_padding_mask=key_padding_mask, need_weights=need_weights, attn_mask=attn_mask,
            use_separate_proj_weight=not self._qkv_same_embed_dim, q_proj_weight=self.q_proj_weight,
            k_proj_weight=self.k_proj_weight, v_proj_weight=self.v_proj_weight,
            average_attn_weights=average_attn_weights, is_causal=is_causal)
        return (y.transpose(0, 1) if turned else y), weights  # type: ignore[attr-defined]
