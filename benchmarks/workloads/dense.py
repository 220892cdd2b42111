"""Products of matrices: MLPs."""

from collections.abc import Callable
from itertools import pairwise
from types import ModuleType
from typing import Any

import numpy as np

from ..workload import Case, fill, forward_flops, integers, normal, training, weights, workload

LR, MOMENTUM = 1e-3, 0.9


def mlp(M: ModuleType, batch: int, widths: tuple[int, ...], optimizer: Callable[[Any], Any]) -> Case:
    """A training step of linear layers with ReLU between them, cross entropy at the end."""
    layers: list = []
    for inner, outer in pairwise(widths):
        layers += [M.nn.Linear(inner, outer), M.nn.ReLU()]
    model = fill(M, M.nn.Sequential(*layers[:-1]))
    x, y = normal(M, batch, widths[0]), integers(M, widths[-1], batch)
    forward, first = forward_flops(M, model, lambda: model(x))
    return training(M, model, lambda: M.nn.functional.cross_entropy(model(x), y),
                    optimizer(model.parameters()), forward=forward, first=first)


class _Hand:
    """The same training step in plain NumPy: forward, backward and SGD with momentum."""

    def __init__(self, batch: int, widths: tuple[int, ...]) -> None:
        shapes = list(pairwise(widths))
        self.w = [weights(f"{2 * i}.weight", (b, a)) for i, (a, b) in enumerate(shapes)]
        self.b = [weights(f"{2 * i}.bias", (b,)) for i, (a, b) in enumerate(shapes)]
        self.speed: list = [None] * (2 * len(shapes))
        rng = [np.random.default_rng(0) for _ in range(2)]
        self.x = rng[0].standard_normal((batch, widths[0]), dtype=np.float32)
        self.y = rng[1].integers(0, widths[-1], batch)

    def forward(self) -> tuple[np.ndarray, list[np.ndarray]]:
        kept = [self.x]
        for i, (w, b) in enumerate(zip(self.w, self.b)):
            x = kept[-1] @ w.T
            x += b
            if i < len(self.w) - 1:
                np.maximum(x, 0, out=x)
            kept.append(x)
        return kept.pop(), kept

    def step(self) -> np.float32:
        z, kept = self.forward()
        z -= z.max(1, keepdims=True)
        rows = np.arange(len(z))
        chosen = z[rows, self.y]
        np.exp(z, out=z)
        total = z.sum(1, keepdims=True)
        loss = (np.log(total[:, 0]) - chosen).mean()
        g = z
        g /= total
        g[rows, self.y] -= 1
        g /= np.float32(len(g))
        grads: list = []
        for i in reversed(range(len(self.w))):
            grads += [g.sum(0), g.T @ kept[i]]
            if i:
                g = g @ self.w[i]
                g *= kept[i] > 0
        self.grads = grads[::-1]
        for i, (p, d) in enumerate(zip(self.parameters(), self.grads)):
            if self.speed[i] is None:
                self.speed[i] = d.copy()
            else:
                self.speed[i] *= np.float32(MOMENTUM)
                self.speed[i] += d
            p -= np.float32(LR) * self.speed[i]
        return loss

    def parameters(self) -> list[np.ndarray]:
        return [p for pair in zip(self.w, self.b) for p in pair]

    def values(self, loss: np.float32) -> list:
        names = [f"{2 * i}.{kind}" for i in range(len(self.w)) for kind in ("weight", "bias")]
        order = sorted(range(len(names)), key=names.__getitem__)
        return [loss, *[self.grads[i] for i in order], *[self.parameters()[i] for i in order]]


def _by_hand(batch: int = 256, widths: tuple[int, ...] = (784, 1024, 1024, 10)) -> Case:
    hand = _Hand(batch, widths)
    return Case(hand.step, hand.values)


@workload(tiny={"batch": 8, "widths": (12, 16, 16, 4)}, by_hand=_by_hand, training=True)
def mlp_step(M: ModuleType, *, batch: int = 256, widths: tuple[int, ...] = (784, 1024, 1024, 10)) -> Case:
    """Training step of an MLP 784-1024-1024-10, batch 256, SGD with momentum."""
    return mlp(M, batch, widths, lambda p: M.optim.SGD(p, lr=LR, momentum=MOMENTUM))
