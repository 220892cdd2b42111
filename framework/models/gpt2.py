"""GPT-2, under the names of Hugging Face's files.

Source: Radford et al., Language models are unsupervised multitask learners, 2019.
"""

import re
from dataclasses import dataclass
from typing import Any

from .. import nn
from ..autograd.mode import no_grad
from ..creation import arange, zeros
from ..errors import ShapeError
from ..ops.shape.join import cat
from ..tensor import Tensor
from .weights import load_weights


@dataclass
class GPT2Config:
    """Sizes of a GPT-2; the defaults are those of the smallest published one (124 million parameters)."""

    vocabulary: int = 50257
    context: int = 1024
    layers: int = 12
    width: int = 768
    heads: int = 12
    dropout: float = 0.1


class Projection(nn.Module):
    """x W + b with W of shape (inputs, outputs): a Linear whose weight lies transposed, as in the files."""

    def __init__(self, inputs: int, outputs: int, std: float = 0.02) -> None:
        super().__init__()
        self.weight = nn.Parameter(nn.init.normal_(zeros(inputs, outputs), std=std))
        self.bias = nn.Parameter(zeros(outputs))

    def forward(self, x: Tensor) -> Tensor:
        return nn.functional.linear(x, self.weight.t(), self.bias)

    def as_linear(self) -> nn.Linear:
        """The same map as a Linear, for what takes those, as quantisation does."""
        inputs, outputs = self.weight.shape
        layer = nn.Linear(inputs, outputs, device="meta")
        layer.weight, layer.bias = nn.Parameter(self.weight.detach().t().contiguous()), self.bias
        return layer


class Attention(nn.Module):
    """Causal attention. Shapes: (N, L, width) to the same; ``past``: keys and values of what came before."""

    def __init__(self, config: GPT2Config) -> None:
        super().__init__()
        self.heads, self.dropout = config.heads, config.dropout
        self.c_attn = Projection(config.width, 3 * config.width)
        self.c_proj = Projection(config.width, config.width, 0.02 / (2 * config.layers) ** 0.5)
        self.resid_dropout = nn.Dropout(config.dropout)

    def forward(self, x: Tensor, past: tuple[Tensor, Tensor] | None) -> tuple[Tensor, tuple[Tensor, Tensor]]:
        n, length, width = x.shape
        q, k, v = [
            part.reshape(n, length, self.heads, -1).transpose(1, 2) for part in self.c_attn(x).split(width, 2)
        ]
        if past is not None:
            k, v = cat([past[0], k], 2), cat([past[1], v], 2)
        before = k.shape[2] - length
        mask = None
        if before and length > 1:
            mask = (
                arange(before + length, device=x.device) <= arange(length, device=x.device)[:, None] + before
            )
        y = nn.functional.scaled_dot_product_attention(
            q, k, v, mask, self.dropout if self.training else 0.0, is_causal=not before and length > 1
        )
        return self.resid_dropout(self.c_proj(y.transpose(1, 2).reshape(n, length, width))), (k, v)


class Perceptron(nn.Module):
    """Widen four times, tanh-approximated GELU, narrow. Shapes: (N, L, width) to the same."""

    def __init__(self, config: GPT2Config) -> None:
        super().__init__()
        self.c_fc = Projection(config.width, 4 * config.width)
        self.act = nn.GELU("tanh")
        self.c_proj = Projection(4 * config.width, config.width, 0.02 / (2 * config.layers) ** 0.5)
        self.dropout = nn.Dropout(config.dropout)

    def forward(self, x: Tensor) -> Tensor:
        return self.dropout(self.c_proj(self.act(self.c_fc(x))))


class Block(nn.Module):
    """Attention and a perceptron, each behind a layer norm and beside a shortcut."""

    def __init__(self, config: GPT2Config) -> None:
        super().__init__()
        self.ln_1 = nn.LayerNorm(config.width)
        self.attn = Attention(config)
        self.ln_2 = nn.LayerNorm(config.width)
        self.mlp = Perceptron(config)

    def forward(self, x: Tensor, past: Any) -> tuple[Tensor, Any]:
        y, past = self.attn(self.ln_1(x), past)
        x = x + y
        return x + self.mlp(self.ln_2(x)), past


class GPT2(nn.Module):
    """GPT-2 as a language model; the logits use the weights of the token embedding.

    Shapes: indices (N, L), L at most ``context``, to logits (N, L, vocabulary).

    >>> model = fw.models.GPT2(vocabulary=20, context=16, layers=1, width=8, heads=2).eval()
    >>> model(fw.zeros(1, 4, dtype=fw.int64)).shape
    (1, 4, 20)
    >>> model.generate(fw.zeros(1, 1, dtype=fw.int64), 3, top_k=1).shape
    (1, 4)
    """

    def __init__(self, config: GPT2Config | None = None, *, weights: Any = None, **sizes: Any) -> None:
        super().__init__()
        self.config = config = config or GPT2Config(**sizes)
        if config.width % config.heads:
            raise ShapeError(f"GPT2: width {config.width} is no multiple of heads {config.heads}")
        self.transformer = nn.ModuleDict(
            {
                "wte": nn.Embedding(config.vocabulary, config.width),
                "wpe": nn.Embedding(config.context, config.width),
                "drop": nn.Dropout(config.dropout),
                "h": nn.ModuleList([Block(config) for _ in range(config.layers)]),
                "ln_f": nn.LayerNorm(config.width),
            }
        )
        for name in ("wte", "wpe"):
            nn.init.normal_(self.transformer[name].weight, std=0.02)
        if weights is not None:
            load_weights(self, weights)

    @staticmethod
    def published_name(name: str) -> str | None:
        """The name here of a tensor in a published file: masks and the tied head are no parameters."""
        if name == "lm_head.weight" or re.search(r"(^|\.)h\.\d+\.attn\.(bias|masked_bias)$", name):
            return None
        return name if name.startswith("transformer.") else f"transformer.{name}"

    def forward(self, indices: Tensor) -> Tensor:
        return self._run(indices, None)[0]

    def _run(self, indices: Tensor, past: list | None) -> tuple[Tensor, list]:
        parts = self.transformer
        start = 0 if past is None else past[0][0].shape[2]
        end = start + indices.shape[1]
        if end > self.config.context:
            raise ShapeError(
                f"GPT2: {end} positions, the model has a context of {self.config.context}; shorten the input"
            )
        x = parts["drop"](parts["wte"](indices) + parts["wpe"](arange(start, end, device=indices.device)))
        found = []
        for i, block in enumerate(parts["h"]):
            x, kept = block(x, None if past is None else past[i])
            found.append(kept)
        return nn.functional.linear(parts["ln_f"](x), parts["wte"].weight), found

    def generate(
        self,
        indices: Tensor,
        count: int,
        *,
        temperature: float = 1.0,
        top_k: int | None = None,
        generator: Any = None,
    ) -> Tensor:
        """``indices`` (N, L) with ``count`` more tokens, drawn one after the other; keys and values are kept.

        temperature: divides the logits; 0 takes the likeliest token. top_k: draw from the k likeliest only.
        """
        with no_grad():
            past, step = None, indices
            for _ in range(count):
                logits, past = self._run(step, past)
                step = _drawn(logits[:, -1], temperature, top_k, generator)
                indices = cat([indices, step], 1)
        return indices


def _drawn(logits: Tensor, temperature: float, top_k: int | None, generator: Any) -> Tensor:
    """One token of each row, (N, 1)."""
    if temperature == 0 or top_k == 1:
        return logits.argmax(1, keepdim=True)
    if top_k is not None:
        least = logits.topk(min(top_k, logits.shape[1]), 1).values[:, -1:]
        logits = logits.masked_fill(logits < least, float("-inf"))
    return (logits / temperature).softmax(1).multinomial(1, generator=generator)
