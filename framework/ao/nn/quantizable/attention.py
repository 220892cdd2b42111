"""Attention of several heads whose projections are layers, which can become layers of 8-bit numbers."""

from typing import Any

from .... import nn
from ....creation import zeros
from ....errors import ShapeError
from ....ops.sequence.multihead import between_projections
from ....tensor import Tensor


class MultiheadAttention(nn.Module):
    """``MultiheadAttention`` with a ``Linear`` for each projection, as `prepare` puts in its place.

    Called as the layer of floats is: query (L, N, E), key (S, N, K), value (S, N, V), or (N, L, E) and so
    on with ``batch_first``, or without the batch. In evaluation and in training it computes the same: there
    is no dropout. After `convert` the projections are of 8-bit numbers; attention itself stays one of floats.

    >>> layer = fw.ao.nn.quantizable.MultiheadAttention.from_float(fw.nn.MultiheadAttention(4, 2))
    >>> x = fw.ones(3, 1, 4)
    >>> layer(x, x, x)[0].shape
    (3, 1, 4)
    """

    _layer: Any = nn.Linear  # of each projection

    def __init__(
        self,
        embed_dim: int,
        num_heads: int,
        bias: bool = True,
        add_bias_kv: bool = False,
        add_zero_attn: bool = False,
        kdim: int | None = None,
        vdim: int | None = None,
        batch_first: bool = False,
    ) -> None:
        super().__init__()
        self.embed_dim, self.num_heads, self.head_dim = embed_dim, num_heads, embed_dim // num_heads
        self.add_zero_attn, self.batch_first = add_zero_attn, batch_first
        sizes = (embed_dim, kdim or embed_dim, vdim or embed_dim)
        self.q_proj, self.k_proj, self.v_proj = [self._layer(size, embed_dim, bias) for size in sizes]
        self.out_proj = self._layer(embed_dim, embed_dim, bias)
        for name in ("bias_k", "bias_v"):
            self.register_buffer(name, zeros((1, 1, embed_dim)) if add_bias_kv else None)

    @classmethod
    def from_float(cls, mod: Any) -> "MultiheadAttention":
        """The layer next to a ``nn.MultiheadAttention``, with its weights."""
        made = cls(
            mod.embed_dim,
            mod.num_heads,
            mod.in_proj_bias is not None,
            mod.bias_k is not None,
            mod.add_zero_attn,
            mod.kdim,
            mod.vdim,
            mod.batch_first,
        )
        weights = (
            (mod.q_proj_weight, mod.k_proj_weight, mod.v_proj_weight)
            if mod.in_proj_weight is None
            else mod.in_proj_weight.detach().chunk(3)
        )
        biases = (None,) * 3 if mod.in_proj_bias is None else mod.in_proj_bias.detach().chunk(3)
        for layer, w, b in zip((made.q_proj, made.k_proj, made.v_proj), weights, biases):
            made._take(layer, w, b)
        made._take(made.out_proj, mod.out_proj.weight, mod.out_proj.bias)
        if mod.bias_k is not None:
            made.bias_k, made.bias_v = mod.bias_k.detach().clone(), mod.bias_v.detach().clone()
        return made

    def _take(self, layer: Any, weight: Tensor, bias: Tensor | None) -> None:
        layer.weight = nn.Parameter(weight.detach().clone())
        layer.bias = None if bias is None else nn.Parameter(bias.detach().clone())

    def forward(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        key_padding_mask: Tensor | None = None,
        need_weights: bool = True,
        attn_mask: Tensor | None = None,
        average_attn_weights: bool = True,
        is_causal: bool = False,
    ) -> tuple[Tensor, Tensor | None]:
        inputs: tuple[Any, ...] = (query, key, value)
        if any(x.ndim not in (2, 3) or x.ndim != inputs[0].ndim for x in inputs):
            raise ShapeError(
                f"MultiheadAttention: query, key and value must all have a batch or none, got shapes "
                f"{', '.join(str(list(x.shape)) for x in inputs)}"
            )
        if is_causal and attn_mask is None:
            raise ValueError("MultiheadAttention: is_causal=True needs attn_mask, the causal mask itself")
        batched = inputs[0].ndim == 3
        if not batched:
            inputs = tuple(x.unsqueeze(1) for x in inputs)
        elif self.batch_first:
            inputs = tuple(x.transpose(0, 1) for x in inputs)
        q, k, v = [layer(x) for layer, x in zip((self.q_proj, self.k_proj, self.v_proj), inputs)]
        y, shown = between_projections(
            q,
            k,
            v,
            self.num_heads,
            self.bias_k,
            self.bias_v,
            self.add_zero_attn,
            0.0,
            key_padding_mask,
            need_weights,
            attn_mask,
            None,
            None,
            average_attn_weights,
            is_causal,
            batched,
            k.shape[0],
        )
        y = self.out_proj(y)
        if not batched:
            return y.squeeze(1), None if shown is None else shown.squeeze(0)
        return (y.transpose(0, 1) if self.batch_first else y), shown
