"""Sums, extremes and softmax as steps (see ``shapes.py`` for what the functions take)."""

from typing import Any

from .model import Model, Unsupported


def folded(to: Model, step: str, x: Any, dims: Any, keepdim: bool) -> None:
    if to.dtype(x) not in ("float32", "float64") or not dims:
        raise Unsupported(f"of {to.dtype(x)}")
    to.give(step, [to.value(x)], [sum(1 << d % len(to.shape(x)) for d in dims), int(keepdim)])


def softmax(to: Model, x: Any, dim: int, logarithm: bool = False) -> None:
    to.give("softmax", [to.value(x)], [dim % len(to.shape(x)), int(logarithm)])
