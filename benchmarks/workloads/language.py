"""Sequences: recurrent networks and a small GPT."""

from collections.abc import Callable
from types import ModuleType
from typing import Any

from ..workload import Case, Loss, fill, forward_flops, integers, normal, training, workload

BY_HAND = "cell written with the module's ops on both sides"


def _cell(M: ModuleType, inner: int, width: int) -> Any:
    """An LSTM cell out of linear layers and pointwise functions, gates in the order i, f, g, o."""
    class Cell(M.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.input = M.nn.Linear(inner, 4 * width)
            self.hidden = M.nn.Linear(width, 4 * width)

        def forward(self, x: Any, state: Any) -> tuple:
            h, c = state
            i, f, g, o = (self.input(x) + self.hidden(h)).chunk(4, 1)
            c = M.sigmoid(f) * c + M.sigmoid(i) * M.tanh(g)
            return M.sigmoid(o) * M.tanh(c), c
    return Cell()


def _language_model(M: ModuleType, vocabulary: int, width: int, built_in: bool) -> Any:
    class Model(M.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.embed = M.nn.Embedding(vocabulary, width)
            self.rnn = M.nn.LSTM(width, width) if built_in else _cell(M, width, width)
            self.head = M.nn.Linear(width, vocabulary)

        def forward(self, tokens: Any) -> Any:
            x = self.embed(tokens)
            if built_in:
                return self.head(self.rnn(x)[0])
            h = c = M.zeros(x.shape[1], width)
            found = []
            for t in range(len(x)):
                h, c = self.rnn(x[t], (h, c))
                found.append(h)
            return self.head(M.stack(found))
    return Model()


@workload(tiny={"vocabulary": 11, "width": 8, "length": 3, "batch": 2}, built_in="nn.LSTM", training=True)
def lstm_step(M: ModuleType, *, vocabulary: int = 256, width: int = 128, length: int = 32, batch: int = 16,
              built_in: bool = False) -> Case:
    """Training step of an LSTM language model: width 128, 256 tokens, length 32, batch 16, Adam."""
    model = fill(M, _language_model(M, vocabulary, width, built_in))
    x, y = integers(M, vocabulary, length, batch), integers(M, vocabulary, length * batch, seed=1)

    def loss() -> Any:
        return M.nn.functional.cross_entropy(model(x).reshape(-1, vocabulary), y)
    flops = 2.0 * length * batch * (2 * width * 4 * width + width * vocabulary)
    return training(M, model, loss, M.optim.Adam(model.parameters(), lr=1e-4), forward=flops,
                    note="nn.LSTM" if built_in else BY_HAND)


@workload(tiny={"width": 4, "length": 3, "batch": 2}, built_in="nn.LSTMCell")
def lstm_cell_loop(M: ModuleType, *, width: int = 32, length: int = 50, batch: int = 8,
                   built_in: bool = False) -> Case:
    """An LSTM cell of width 32 in a Python loop of 50 steps, batch 8, forward and backward."""
    cell = fill(M, M.nn.LSTMCell(width, width) if built_in else _cell(M, width, width))
    x = normal(M, length, batch, width)
    start = M.zeros(batch, width)

    def run() -> Any:
        cell.zero_grad()
        h = c = start
        for t in range(length):
            h, c = cell(x[t], (h, c))
        h.sum().backward()
        return h
    return Case(run, lambda h: [h, *[p.grad for _, p in sorted(cell.named_parameters())]],
                note="nn.LSTMCell" if built_in else BY_HAND)


def gpt(M: ModuleType, vocabulary: int, width: int, heads: int, length: int, layers: int) -> Any:
    """A GPT whose blocks normalise first."""
    n, F = M.nn, M.nn.functional

    class Block(n.Module):
        def __init__(self) -> None:
            super().__init__()
            self.norm1, self.norm2 = n.LayerNorm(width), n.LayerNorm(width)
            self.qkv, self.project = n.Linear(width, 3 * width), n.Linear(width, width)
            self.up, self.down = n.Linear(width, 4 * width), n.Linear(4 * width, width)

        def forward(self, x: Any) -> Any:
            b, t, _ = x.shape
            q, k, v = (p.reshape(b, t, heads, width // heads).transpose(1, 2)
                       for p in self.qkv(self.norm1(x)).chunk(3, 2))
            y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
            x = x + self.project(y.transpose(1, 2).reshape(b, t, width))
            return x + self.down(F.gelu(self.up(self.norm2(x))))

    class GPT(n.Module):
        def __init__(self) -> None:
            super().__init__()
            self.token, self.place = n.Embedding(vocabulary, width), n.Embedding(length, width)
            self.blocks = n.Sequential(*[Block() for _ in range(layers)])
            self.norm, self.head = n.LayerNorm(width), n.Linear(width, vocabulary)

        def forward(self, tokens: Any) -> Any:
            x = self.token(tokens) + self.place(M.arange(tokens.shape[1]))
            return self.head(self.norm(self.blocks(x)))
    return GPT()


def train_gpt(M: ModuleType, vocabulary: int, width: int, heads: int, length: int, layers: int, batch: int,
              around: Callable[[Loss], Loss] = lambda loss: loss) -> Case:
    """A training step of a GPT; ``around`` may put something around the loss."""
    model = fill(M, gpt(M, vocabulary, width, heads, length, layers))
    x, y = integers(M, vocabulary, batch, length), integers(M, vocabulary, batch * length, seed=1)

    def loss() -> Any:
        return M.nn.functional.cross_entropy(model(x).reshape(-1, vocabulary), y)
    attention = layers * 2 * 2.0 * batch * length * length * width
    return training(M, model, around(loss), M.optim.AdamW(model.parameters(), lr=1e-4),
                    forward=forward_flops(M, model, loss)[0] + attention)


TINY_GPT = {"vocabulary": 11, "width": 8, "heads": 2, "length": 5, "layers": 2, "batch": 2}


@workload(tiny=TINY_GPT, training=True)
def gpt_step(M: ModuleType, *, vocabulary: int = 512, width: int = 128, heads: int = 4, length: int = 64,
             layers: int = 4, batch: int = 8) -> Case:
    """Training step of a GPT of 4 layers: width 128, 4 heads, 512 tokens, length 64, batch 8, AdamW."""
    return train_gpt(M, vocabulary, width, heads, length, layers, batch)
