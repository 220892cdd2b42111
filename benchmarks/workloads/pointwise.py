"""Large arrays bound by memory: elementwise functions, softmax, norms, losses."""

from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np

from ..workload import Case, normal, workload

SMALL = {"rows": 6, "columns": 8}
FLOAT = 4


def there_and_back(M: ModuleType, make: Callable[[], Any], inputs: list, traffic: int = 0) -> Case:
    """Forward and backward with random gradients of the output; ``traffic`` in bytes, where counted."""
    g = normal(M, *make().shape, seed=99)

    def run() -> Any:
        for x in inputs:
            x.grad = None
        y = make()
        y.backward(g)
        return y
    return Case(run, lambda y: [y, *[x.grad for x in inputs]], bytes=traffic)


def _add_by_hand(rows: int = 1024, columns: int = 4096) -> Case:
    a, b = (np.random.default_rng(s).standard_normal((rows, columns), dtype=np.float32) for s in (0, 1))
    return Case(lambda: a + b)


@workload(tiny=SMALL, by_hand=_add_by_hand)
def add_large(M: ModuleType, *, rows: int = 1024, columns: int = 4096) -> Case:
    """x + y on 1024x4096, not recorded."""
    a, b = normal(M, rows, columns), normal(M, rows, columns, seed=1)
    return Case(lambda: a + b, bytes=3 * FLOAT * rows * columns)


@workload(tiny=SMALL)
def elementwise(M: ModuleType, *, rows: int = 1024, columns: int = 4096) -> Case:
    """tanh(a * b + c) * sigmoid(a) on 1024x4096, not recorded."""
    a, b, c = (normal(M, rows, columns, seed=s) for s in range(3))
    return Case(lambda: M.tanh(a * b + c) * M.sigmoid(a), bytes=4 * FLOAT * rows * columns)


@workload(tiny=SMALL)
def elementwise_grad(M: ModuleType, *, rows: int = 1024, columns: int = 4096) -> Case:
    """tanh(a * b + c) * sigmoid(a) on 1024x4096, forward and backward to all three."""
    a, b, c = (normal(M, rows, columns, seed=s, requires_grad=True) for s in range(3))
    return there_and_back(M, lambda: M.tanh(a * b + c) * M.sigmoid(a), [a, b, c],
                          11 * FLOAT * rows * columns)


@workload(tiny=SMALL)
def gelu(M: ModuleType, *, rows: int = 1024, columns: int = 4096) -> Case:
    """Exact gelu on 1024x4096, forward and backward."""
    x = normal(M, rows, columns, requires_grad=True)
    return there_and_back(M, lambda: M.nn.functional.gelu(x), [x], 5 * FLOAT * rows * columns)


@workload(tiny=SMALL)
def softmax(M: ModuleType, *, rows: int = 4096, columns: int = 1024) -> Case:
    """softmax over the rows of 4096x1024, forward and backward."""
    x = normal(M, rows, columns, requires_grad=True)
    return there_and_back(M, lambda: M.softmax(x, 1), [x], 5 * FLOAT * rows * columns)


@workload(tiny=SMALL)
def layer_norm(M: ModuleType, *, rows: int = 4096, columns: int = 1024) -> Case:
    """layer_norm over the rows of 4096x1024 with scale and shift, forward and backward."""
    x = normal(M, rows, columns, requires_grad=True)
    w, b = normal(M, columns, seed=1, requires_grad=True), normal(M, columns, seed=2, requires_grad=True)
    return there_and_back(M, lambda: M.nn.functional.layer_norm(x, (columns,), w, b), [x, w, b],
                          5 * FLOAT * rows * columns)


@workload(tiny={"rows": 4, "channels": 3, "size": 5})
def batch_norm(M: ModuleType, *, rows: int = 32, channels: int = 64, size: int = 32) -> Case:
    """batch_norm of 32x64x32x32 with scale and shift, forward and backward."""
    x = normal(M, rows, channels, size, size, requires_grad=True)
    w, b = normal(M, channels, seed=1, requires_grad=True), normal(M, channels, seed=2, requires_grad=True)

    def make() -> Any:
        return M.nn.functional.batch_norm(x, None, None, w, b, training=True)
    return there_and_back(M, make, [x, w, b], 5 * FLOAT * rows * channels * size * size)


@workload(tiny=SMALL)
def binary_cross_entropy(M: ModuleType, *, rows: int = 1024, columns: int = 4096) -> Case:
    """binary_cross_entropy_with_logits on 1024x4096, forward and backward."""
    x, y = normal(M, rows, columns, requires_grad=True), (normal(M, rows, columns, seed=1) > 0).float()
    return there_and_back(M, lambda: M.nn.functional.binary_cross_entropy_with_logits(x, y), [x],
                          5 * FLOAT * rows * columns)
