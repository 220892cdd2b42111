"""Attention of several heads whose projections are of 8-bit numbers; attention itself is of floats."""

from typing import Any

from .....tensor import Tensor
from ...quantizable import attention
from .linear import Linear


class MultiheadAttention(attention.MultiheadAttention):
    """``MultiheadAttention`` with projections by dynamically quantised layers, one for each input.

    Called as the layer of floats is: query (L, N, E), key (S, N, K), value (S, N, V), or (N, L, E) and so
    on with ``batch_first``, or without the batch. In evaluation and in training it computes the same: there
    is no dropout.

    >>> layer = fw.ao.nn.quantized.dynamic.MultiheadAttention.from_float(fw.nn.MultiheadAttention(4, 2))
    >>> x = fw.ones(3, 1, 4)
    >>> layer(x, x, x)[0].shape
    (3, 1, 4)
    """

    _layer = Linear

    def _take(self, layer: Any, weight: Tensor, bias: Tensor | None) -> None:
        layer._take(weight, bias)

    def _get_name(self) -> str:
        return "DynamicQuantizedMultiheadAttention"
