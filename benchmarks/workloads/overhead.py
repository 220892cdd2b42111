"""Work so small that the road of a call is what one measures."""

from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np

from ..workload import Case, fill, normal, workload

LENGTH = 20


def _chain(x, b):
    for _ in range(LENGTH):
        x = x + b
    return x


def _bare_chain() -> Case:
    x, b = np.ones((10, 20), np.float32), np.ones((10, 20), np.float32)
    return Case(lambda: _chain(x, b), calls=LENGTH)


@workload(tiny={}, by_hand=_bare_chain)
def add_chain_forward(M: ModuleType) -> Case:
    """An addition on 10x20 numbers in a chain of 20, recorded."""
    a, b = M.ones(10, 20, requires_grad=True), M.ones(10, 20)
    return Case(lambda: _chain(a, b), calls=LENGTH)


@workload(tiny={})
def add_chain(M: ModuleType) -> Case:
    """An addition on 10x20 numbers in a chain of 20, forward and backward."""
    a, b, g = M.ones(10, 20, requires_grad=True), M.ones(10, 20), M.ones(10, 20)

    def run() -> Any:
        a.grad = None
        _chain(a, b).backward(g)
        return a.grad
    return Case(run, calls=LENGTH)


def _inference(M: ModuleType, model: Any, x: Any) -> Callable:
    def run() -> Any:
        with M.no_grad():
            return model(x)
    return run


@workload(tiny={})
def mlp_batch_1(M: ModuleType) -> Case:
    """Inference of an MLP 16-64-64-4 on one sample."""
    L, T = M.nn.Linear, M.nn.Tanh
    model = fill(M, M.nn.Sequential(L(16, 64), T(), L(64, 64), T(), L(64, 4)))
    return Case(_inference(M, model.eval(), normal(M, 1, 16)))


@workload(tiny={})
def mlp_small_step(M: ModuleType) -> Case:
    """Training step of an MLP 64-64-64-10, batch 32, Adam."""
    from .dense import mlp
    return mlp(M, batch=32, widths=(64, 64, 64, 10), optimizer=lambda p: M.optim.Adam(p, lr=1e-4))


@workload(tiny={})
def views(M: ModuleType) -> Case:
    """One of reshape, transpose, slice, unsqueeze, sum on 10x20 numbers, forward and backward."""
    a = normal(M, 10, 20, requires_grad=True)

    def run() -> Any:
        a.grad = None
        a.reshape(20, 10).transpose(0, 1)[2:8].unsqueeze(0).sum().backward()
        return a.grad
    return Case(run, calls=5)
