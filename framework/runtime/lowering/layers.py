"""Products, attention, recurrent layers, normalisation and embedding as steps (see ``shapes.py`` for what the
functions take)."""

import math
from typing import Any

from ...onnx.sizes import Extent, Repeated, Varies
from .model import Model, Unsupported


def linear(to: Model, x: Any, w: Any, b: Any, relu: bool = False) -> None:
    to.give("linear", to.values(x, w, b), [int(relu)])


def matmul(to: Model, x: Any, y: Any) -> None:
    to.give("matmul", to.values(x, y))


def embedding(to: Model, table: Any, index: Any) -> None:
    to.give("embedding", to.values(table, index))


def attention(to: Model, q: Any, k: Any, v: Any, mask: Any, causal: bool, scale: float, p: float) -> None:
    if p:
        raise Unsupported("dropout")
    to.give("attention", to.values(q, k, v, mask), [int(causal)], [float(scale)])


def layer_norm(to: Model, x: Any, weight: Any, bias: Any, dims: Any, eps: float) -> None:
    to.give("layer_norm", to.values(x, weight, bias), [len(dims)], [float(eps)])


def group_norm(to: Model, x: Any, weight: Any, bias: Any, per: Any, eps: float) -> None:
    to.give("group_norm", to.values(x, weight, bias), [math.prod(per[2:])], [float(eps)])


def rms_norm(to: Model, x: Any, weight: Any, dims: Any, eps: float) -> None:
    to.give("rms_norm", to.values(x, weight, None), [len(dims)], [float(eps)])


def batch_norm(to: Model, x: Any, mean: Any, var: Any, weight: Any, bias: Any, eps: float) -> None:
    to.give("batch_norm", to.values(x, mean, var, weight, bias), (), [float(eps)])


def recurrent(to: Model, step: str, operands: tuple, sizes: Any, reverse: bool) -> None:
    """operands: rows of all times, first states, weights, biases; results: rows of all times and last
    states, as many as there are first ones."""
    to.give(step, to.values(*operands), [*_times(sizes), int(reverse)], results=len(operands) - 4)


def _times(sizes: Any) -> list:
    """How many times there are, and rows at each."""
    if isinstance(sizes, Repeated):
        return [sizes.count, sizes.item]
    if (any(isinstance(n, (Extent, Varies)) and n != sizes[0] for n in sizes)
            or len({str(n) for n in sizes}) != 1):
        raise Unsupported("sequences of several lengths")
    return [len(sizes), sizes[0]]
