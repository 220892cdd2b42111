"""The vision transformer, under torchvision's names.

Source: Dosovitskiy et al., An image is worth 16x16 words, ICLR 2021.
"""

from typing import Any

from .. import nn
from ..creation import zeros
from ..ops.shape.join import cat
from ..tensor import Tensor
from .weights import load_weights


class EncoderBlock(nn.Module):
    """Attention and a perceptron, each behind a layer norm and beside a shortcut.

    Shapes: (N, L, width) to the same.
    """

    def __init__(self, width: int, heads: int, hidden: int, dropout: float) -> None:
        super().__init__()
        self.ln_1 = nn.LayerNorm(width, eps=1e-6)
        self.self_attention = nn.MultiheadAttention(width, heads, batch_first=True)
        self.dropout = nn.Dropout(dropout)
        self.ln_2 = nn.LayerNorm(width, eps=1e-6)
        self.mlp = nn.Sequential(
            nn.Linear(width, hidden),
            nn.GELU(),
            nn.Dropout(dropout),
            nn.Linear(hidden, width),
            nn.Dropout(dropout),
        )

    def forward(self, x: Tensor) -> Tensor:
        y = self.ln_1(x)
        y, _ = self.self_attention(y, y, y, need_weights=False)
        x = x + self.dropout(y)
        return x + self.mlp(self.ln_2(x))


class Encoder(nn.Module):
    """Position embeddings, blocks, a last norm. Shapes: (N, L, width) to the same."""

    def __init__(self, length: int, layers: int, width: int, heads: int, hidden: int, dropout: float) -> None:
        super().__init__()
        self.pos_embedding = nn.Parameter(nn.init.normal_(zeros(1, length, width), std=0.02))
        self.dropout = nn.Dropout(dropout)
        self.layers = nn.Sequential()
        for i in range(layers):
            self.layers.add_module(f"encoder_layer_{i}", EncoderBlock(width, heads, hidden, dropout))
        self.ln = nn.LayerNorm(width, eps=1e-6)

    def forward(self, x: Tensor) -> Tensor:
        return self.ln(self.layers(self.dropout(x + self.pos_embedding)))


class VisionTransformer(nn.Module):
    """A vision transformer. Shapes: (N, channels, image_size, image_size) to (N, num_classes).

    >>> model = fw.models.VisionTransformer(32, patch_size=8, layers=2, width=32, heads=4, hidden=64)
    >>> model(fw.ones(1, 3, 32, 32)).shape
    (1, 1000)
    """

    def __init__(
        self,
        image_size: int = 224,
        patch_size: int = 16,
        layers: int = 12,
        width: int = 768,
        heads: int = 12,
        hidden: int = 3072,
        num_classes: int = 1000,
        channels: int = 3,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        if image_size % patch_size:
            raise ValueError(
                f"VisionTransformer: image_size {image_size} is no multiple of patch_size {patch_size}"
            )
        self.conv_proj = nn.Conv2d(channels, width, patch_size, patch_size)
        self.class_token = nn.Parameter(zeros(1, 1, width))
        self.encoder = Encoder((image_size // patch_size) ** 2 + 1, layers, width, heads, hidden, dropout)
        self.heads = nn.Sequential()
        self.heads.add_module("head", nn.Linear(width, num_classes))

    def forward(self, x: Tensor) -> Tensor:
        patches = self.conv_proj(x).flatten(2).transpose(1, 2)
        token = self.class_token.expand(len(x), -1, -1)
        return self.heads(self.encoder(cat([token, patches], 1))[:, 0])


def vit_b_16(weights: Any = None, **settings: Any) -> VisionTransformer:
    """ViT-B/16, 86.6 million parameters. weights: see ``load_weights``; settings: its own."""
    model = VisionTransformer(**settings)
    return model if weights is None else load_weights(model, weights)  # type: ignore[return-value]
