"""Attention by itself, over sequences of different lengths."""

from types import ModuleType
from typing import Any

from ..workload import Case, normal, workload


def _case(M: ModuleType, batch: int, heads: int, length: int, width: int) -> Case:
    """Causal attention of heads that are views of (batch, length, heads, width), forward and backward."""
    inputs = [normal(M, batch, length, heads, width, seed=i, requires_grad=True) for i in range(3)]
    g = normal(M, batch, length, heads * width, seed=3)

    def run() -> Any:
        for x in inputs:
            x.grad = None
        y = M.nn.functional.scaled_dot_product_attention(*[x.transpose(1, 2) for x in inputs], is_causal=True)
        y = y.transpose(1, 2).reshape(batch, length, heads * width)
        y.backward(g)
        return y
    flops = 7.0 * batch * heads * length ** 2 * width  # two products of half a table forward, five backward
    return Case(run, lambda y: [y, *[x.grad for x in inputs]], flops=flops)


@workload(tiny={"batch": 2, "heads": 2, "length": 5, "width": 4})
def attention(M: ModuleType, *, batch: int = 4, heads: int = 8, length: int = 512, width: int = 64) -> Case:
    """Causal attention, batch 4, 8 heads of 64, length 512: forward and all gradients."""
    return _case(M, batch, heads, length, width)


@workload(tiny={"batch": 1, "heads": 2, "length": 5, "width": 4}, training=True)
def attention_long(M: ModuleType, *, batch: int = 1, heads: int = 8, length: int = 2048,
                   width: int = 64) -> Case:
    """Causal attention, 8 heads of 64, length 2048: forward and all gradients."""
    return _case(M, batch, heads, length, width)
