"""Transformers: encoder and decoder layers, stacks of them, and the model of both."""

from collections.abc import Callable
from copy import deepcopy
from typing import Any

from .. import dtypes
from ..creation import full
from ..errors import ShapeError
from ..tensor import Tensor
from . import functional as F
from . import init
from .container import ModuleList
from .dropout import Dropout
from .joins import drops_nothing, linear_then, two_layers
from .linear import Linear
from .module import Module
from .multihead import MultiheadAttention
from .normalization import LayerNorm

_ACTIVATIONS: dict[str, Callable] = {"relu": F.relu, "gelu": F.gelu}


def _activation(given: Any, layer: str) -> Callable:
    if callable(given):
        return given
    if given not in _ACTIVATIONS:
        raise ValueError(f"{layer}: activation must be 'relu', 'gelu' or a function, got {given!r}")
    return _ACTIVATIONS[given]


def _copies(layer: Module, number: int) -> ModuleList:
    return ModuleList([deepcopy(layer) for _ in range(number)])


def _is_causal(mask: Tensor | None, said: bool | None) -> bool:
    """What the caller said or, if that is None, whether the mask forbids exactly what lies above the
    diagonal. That only saves applying it: on a GPU, where looking would wait, nobody looks."""
    if said is not None or mask is None or mask.ndim != 2 or mask.shape[0] != mask.shape[1] or mask.is_cuda:
        return bool(said)
    size, kind = mask.shape[0], mask.dtype
    ones = full((size, size), True, device=mask.device).triu(1)
    wanted = ones if kind.category == 0 else full((size, size), 0.0, dtype=kind, device=mask.device
                                                  ).masked_fill(ones, float("-inf"))
    return bool((mask == wanted).all())


class _Layer(Module):
    """Attention to itself, a network of two linear layers, and what an encoder and a decoder layer share."""

    def __init__(self, d_model: int, nhead: int, dim_feedforward: int, dropout: float, activation: Any,
                 layer_norm_eps: float, batch_first: bool, norm_first: bool, bias: bool, made: dict,
                 crossed: bool) -> None:
        super().__init__()
        heads: dict[str, Any] = {"dropout": dropout, "bias": bias, "batch_first": batch_first, **made}
        self.self_attn = MultiheadAttention(d_model, nhead, **heads)
        if crossed:
            self.multihead_attn = MultiheadAttention(d_model, nhead, **heads)
        self.linear1 = Linear(d_model, dim_feedforward, bias=bias, **made)
        self.dropout = Dropout(dropout)
        self.linear2 = Linear(dim_feedforward, d_model, bias=bias, **made)
        self.norm_first = norm_first
        for i in range(3 if crossed else 2):
            setattr(self, f"norm{i + 1}", LayerNorm(d_model, eps=layer_norm_eps, bias=bias, **made))
        for i in range(3 if crossed else 2):
            setattr(self, f"dropout{i + 1}", Dropout(dropout))
        self.activation = _activation(activation, type(self).__name__)

    def _around(self, i: int, x: Tensor, block: Callable[[Tensor], Tensor]) -> Tensor:
        """The i-th block with its norm and dropout, and x itself added."""
        norm, drop = getattr(self, f"norm{i}"), getattr(self, f"dropout{i}")
        if self.norm_first:
            return x + drop(block(norm(x)))
        return norm(x + drop(block(x)))

    def _feed_forward(self, x: Tensor) -> Tensor:
        if not dtypes.plain and drops_nothing(self.dropout):
            both = two_layers(self.linear1, self.activation, self.linear2, x)
            if both is not None:
                return both
        return self.linear2(self.dropout(linear_then(self.linear1, self.activation, x)))

    def _attend_self(self, x: Tensor, mask: Tensor | None, padding: Tensor | None, causal: bool) -> Tensor:
        return self.self_attn(x, x, x, attn_mask=mask, key_padding_mask=padding, need_weights=False,
                              is_causal=causal)[0]


class TransformerEncoderLayer(_Layer):
    """Attention to itself and a feed-forward network, each with a residual and a norm (arXiv:1706.03762).

    ``x = norm1(x + attend(x)); y = norm2(x + linear2(activation(linear1(x))))``, or with ``norm_first`` the
    norms on what enters the blocks. src and y (S, N, d_model), with ``batch_first`` (N, S, d_model), without
    a batch (S, d_model). src_mask (S, S), src_key_padding_mask (N, S): as in ``MultiheadAttention``;
    is_causal says that src_mask is the causal one. activation: "relu", "gelu" or a function. Raises
    ShapeError, DTypeError or ValueError.

    >>> layer = fw.nn.TransformerEncoderLayer(8, 2, dim_feedforward=16, batch_first=True)
    >>> layer(fw.randn(3, 5, 8)).shape
    (3, 5, 8)
    """

    def __init__(self, d_model: int, nhead: int, dim_feedforward: int = 2048, dropout: float = 0.1,
                 activation: Any = F.relu, layer_norm_eps: float = 1e-5, batch_first: bool = False,
                 norm_first: bool = False, bias: bool = True, device: Any = None, dtype: Any = None) -> None:
        super().__init__(d_model, nhead, dim_feedforward, dropout, activation, layer_norm_eps, batch_first,
                         norm_first, bias, {"device": device, "dtype": dtype}, crossed=False)

    def forward(self, src: Tensor, src_mask: Tensor | None = None, src_key_padding_mask: Tensor | None = None,
                is_causal: bool = False) -> Tensor:
        x = self._around(1, src, lambda x: self._attend_self(x, src_mask, src_key_padding_mask, is_causal))
        return self._around(2, x, self._feed_forward)


class TransformerDecoderLayer(_Layer):
    """As an encoder layer, with attention to what the encoder gave between the two (arXiv:1706.03762).

    tgt and y (T, N, d_model), memory (S, N, d_model); tgt_mask (T, T), memory_mask (T, S); the padding masks
    (N, T) and (N, S); with ``batch_first`` N comes first. The options: as ``TransformerEncoderLayer``. Raises
    ShapeError, DTypeError or ValueError.

    >>> layer = fw.nn.TransformerDecoderLayer(8, 2, dim_feedforward=16)
    >>> layer(fw.randn(5, 3, 8), fw.randn(7, 3, 8)).shape
    (5, 3, 8)
    """

    def __init__(self, d_model: int, nhead: int, dim_feedforward: int = 2048, dropout: float = 0.1,
                 activation: Any = F.relu, layer_norm_eps: float = 1e-5, batch_first: bool = False,
                 norm_first: bool = False, bias: bool = True, device: Any = None, dtype: Any = None) -> None:
        super().__init__(d_model, nhead, dim_feedforward, dropout, activation, layer_norm_eps, batch_first,
                         norm_first, bias, {"device": device, "dtype": dtype}, crossed=True)

    def forward(self, tgt: Tensor, memory: Tensor, tgt_mask: Tensor | None = None,
                memory_mask: Tensor | None = None, tgt_key_padding_mask: Tensor | None = None,
                memory_key_padding_mask: Tensor | None = None, tgt_is_causal: bool = False,
                memory_is_causal: bool = False) -> Tensor:
        def cross(x: Tensor) -> Tensor:
            return self.multihead_attn(x, memory, memory, attn_mask=memory_mask, need_weights=False,
                                       key_padding_mask=memory_key_padding_mask,
                                       is_causal=memory_is_causal)[0]
        x = self._around(1, tgt, lambda x: self._attend_self(x, tgt_mask, tgt_key_padding_mask,
                                                             tgt_is_causal))
        x = self._around(2, x, cross)
        return self._around(3, x, self._feed_forward)


class TransformerEncoder(Module):
    """``num_layers`` copies of an encoder layer, one after the other, and a norm at the end if given.

    Inputs, masks and errors: as the layer's. is_causal: None looks whether ``mask`` is the causal one.
    enable_nested_tensor and mask_check are taken for PyTorch's sake and change nothing.

    >>> layer = fw.nn.TransformerEncoderLayer(8, 2, dim_feedforward=16)
    >>> fw.nn.TransformerEncoder(layer, 2)(fw.randn(5, 3, 8)).shape
    (5, 3, 8)
    """

    def __init__(self, encoder_layer: Module, num_layers: int, norm: Module | None = None,
                 enable_nested_tensor: bool = True, mask_check: bool = True) -> None:
        super().__init__()
        self.layers = _copies(encoder_layer, num_layers)
        self.num_layers = num_layers
        self.norm = norm
        self.enable_nested_tensor, self.mask_check = enable_nested_tensor, mask_check

    def forward(self, src: Tensor, mask: Tensor | None = None, src_key_padding_mask: Tensor | None = None,
                is_causal: bool | None = None) -> Tensor:
        causal = _is_causal(mask, is_causal)
        for layer in self.layers:
            src = layer(src, src_mask=mask, src_key_padding_mask=src_key_padding_mask, is_causal=causal)
        return src if self.norm is None else self.norm(src)


class TransformerDecoder(Module):
    """``num_layers`` copies of a decoder layer, one after the other, and a norm at the end if given.

    Inputs, masks and errors: as the layer's. tgt_is_causal: None looks whether ``tgt_mask`` is causal.

    >>> layer = fw.nn.TransformerDecoderLayer(8, 2, dim_feedforward=16)
    >>> fw.nn.TransformerDecoder(layer, 2)(fw.randn(5, 3, 8), fw.randn(7, 3, 8)).shape
    (5, 3, 8)
    """

    def __init__(self, decoder_layer: Module, num_layers: int, norm: Module | None = None) -> None:
        super().__init__()
        self.layers = _copies(decoder_layer, num_layers)
        self.num_layers = num_layers
        self.norm = norm

    def forward(self, tgt: Tensor, memory: Tensor, tgt_mask: Tensor | None = None,
                memory_mask: Tensor | None = None, tgt_key_padding_mask: Tensor | None = None,
                memory_key_padding_mask: Tensor | None = None, tgt_is_causal: bool | None = None,
                memory_is_causal: bool = False) -> Tensor:
        causal = _is_causal(tgt_mask, tgt_is_causal)
        for layer in self.layers:
            tgt = layer(tgt, memory, tgt_mask=tgt_mask, memory_mask=memory_mask,
                        tgt_key_padding_mask=tgt_key_padding_mask,
                        memory_key_padding_mask=memory_key_padding_mask, tgt_is_causal=causal,
                        memory_is_causal=memory_is_causal)
        return tgt if self.norm is None else self.norm(tgt)


class Transformer(Module):
    """Encoder and decoder (Vaswani et al., arXiv:1706.03762): ``decoder(tgt, encoder(src))``.

    src (S, N, d_model), tgt and the result (T, N, d_model); with ``batch_first`` N comes first; without a
    batch there is no N. src_mask (S, S), tgt_mask (T, T), memory_mask (T, S); padding masks (N, S), (N, T),
    (N, S). The options: as ``TransformerEncoderLayer``; custom_encoder and custom_decoder stand in for the
    stacks. Raises ShapeError, DTypeError or ValueError.

    >>> model = fw.nn.Transformer(8, 2, 1, 1, dim_feedforward=16)
    >>> model(fw.randn(7, 3, 8), fw.randn(5, 3, 8)).shape
    (5, 3, 8)
    """

    def __init__(self, d_model: int = 512, nhead: int = 8, num_encoder_layers: int = 6,
                 num_decoder_layers: int = 6, dim_feedforward: int = 2048, dropout: float = 0.1,
                 activation: Any = F.relu, custom_encoder: Module | None = None,
                 custom_decoder: Module | None = None, layer_norm_eps: float = 1e-5,
                 batch_first: bool = False, norm_first: bool = False, bias: bool = True, device: Any = None,
                 dtype: Any = None) -> None:
        super().__init__()
        made = {"device": device, "dtype": dtype}
        options = (d_model, nhead, dim_feedforward, dropout, activation, layer_norm_eps, batch_first,
                   norm_first, bias)

        def last_norm() -> LayerNorm:
            return LayerNorm(d_model, eps=layer_norm_eps, bias=bias, **made)
        self.encoder = custom_encoder if custom_encoder is not None else TransformerEncoder(
            TransformerEncoderLayer(*options, **made), num_encoder_layers, last_norm())
        self.decoder = custom_decoder if custom_decoder is not None else TransformerDecoder(
            TransformerDecoderLayer(*options, **made), num_decoder_layers, last_norm())
        self._reset_parameters()
        self.d_model, self.nhead, self.batch_first = d_model, nhead, batch_first

    def _reset_parameters(self) -> None:
        """Matrices uniform (Glorot)."""
        for p in self.parameters():
            if p.ndim > 1:
                init.xavier_uniform_(p)

    def forward(self, src: Tensor, tgt: Tensor, src_mask: Tensor | None = None,
                tgt_mask: Tensor | None = None, memory_mask: Tensor | None = None,
                src_key_padding_mask: Tensor | None = None, tgt_key_padding_mask: Tensor | None = None,
                memory_key_padding_mask: Tensor | None = None,
                src_is_causal: bool | None = None, tgt_is_causal: bool | None = None,
                memory_is_causal: bool = False) -> Tensor:
        self._check(src, tgt)
        memory = self.encoder(src, mask=src_mask, src_key_padding_mask=src_key_padding_mask,
                              is_causal=src_is_causal)
        return self.decoder(tgt, memory, tgt_mask=tgt_mask, memory_mask=memory_mask,
                            tgt_key_padding_mask=tgt_key_padding_mask,
                            memory_key_padding_mask=memory_key_padding_mask, tgt_is_causal=tgt_is_causal,
                            memory_is_causal=memory_is_causal)

    def _check(self, src: Tensor, tgt: Tensor) -> None:
        shapes = f"src {list(src.shape)}, tgt {list(tgt.shape)}"
        if src.ndim != tgt.ndim or src.ndim not in (2, 3):
            raise ShapeError(f"Transformer: src and tgt must both be (length, batch, features) or both "
                             f"without the batch, got {shapes}")
        batch = 0 if self.batch_first else 1
        if src.ndim == 3 and src.shape[batch] != tgt.shape[batch]:
            raise ShapeError(f"Transformer: src and tgt must have the same batch (dimension {batch}), got "
                             f"{shapes}")
        if src.shape[-1] != self.d_model or tgt.shape[-1] != self.d_model:
            raise ShapeError(f"Transformer: the last size of src and tgt must be d_model={self.d_model}, got "
                             f"{shapes}")

    @staticmethod
    def generate_square_subsequent_mask(sz: int, device: Any = None, dtype: Any = None) -> Tensor:
        """The causal mask (sz, sz): -inf above the diagonal, 0 elsewhere.

        >>> fw.nn.Transformer.generate_square_subsequent_mask(2)
        tensor([[0., -inf],
                [0., 0.]])
        """
        return full((sz, sz), float("-inf"), device=device, dtype=dtype).triu(1)
