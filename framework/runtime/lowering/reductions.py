"""Sums, extremes and softmax as steps (see ``shapes.py`` for what the functions take)."""

from typing import Any

from .. import format as file
from .model import Model, Unsupported


def folded(to: Model, step: str, x: Any, dims: Any, keepdim: bool) -> None:
    if to.dtype(x) not in ("float32", "float64") or not dims:
        raise Unsupported(f"of {to.dtype(x)}")
    to.give(step, [to.value(x)], [sum(1 << d % len(to.shape(x)) for d in dims), int(keepdim)])


def softmax(to: Model, x: Any, dim: int, logarithm: bool = False) -> None:
    to.give("softmax", [to.value(x)], [dim % len(to.shape(x)), int(logarithm)])


def best(to: Model, step: str, x: Any, dim: int, keepdim: bool) -> None:
    """The largest or smallest element along a dimension, and its position."""
    if not to.shape(x):
        raise Unsupported("of a tensor without dimensions")
    to.give(step, [to.value(x)], [dim % len(to.shape(x)), int(keepdim)], results=2)


def every(to: Model, step: str, x: Any, dims: Any, keepdim: bool) -> None:
    """Whether all elements, or any, are other than 0: the least, or the largest, of their truth values."""
    if not dims or to.result().dtype.name != "bool":
        raise Unsupported(f"of {to.dtype(x)}")
    truth = to.add("cast", [to.value(x)], [file.TYPES["bool"]], dtype="bool")
    numbers = to.add("cast", [truth], [file.TYPES["float32"]])
    folded = to.add(step, [numbers], [sum(1 << d % len(to.shape(x)) for d in dims), int(keepdim)])
    to.give("cast", [folded], [file.TYPES["bool"]])


def cumulated(to: Model, what: int, x: Any, dim: int, reverse: bool = False) -> None:
    """What runs along a dimension: sums (0), products (1)."""
    _along(to, "cumulate", x, [what, dim % max(len(to.shape(x)), 1), int(reverse)], 1)


def ordered(to: Model, x: Any, dim: int, descending: bool) -> None:
    _along(to, "sort", x, [dim % max(len(to.shape(x)), 1), int(descending)], 2)


def top(to: Model, x: Any, k: int, dim: int, largest: bool) -> None:
    _along(to, "topk", x, [k, dim % max(len(to.shape(x)), 1), int(largest)], 2)


def _along(to: Model, step: str, x: Any, numbers: list, results: int) -> None:
    if not to.shape(x) or to.dtype(x) not in ("float32", "float64", "int64"):
        raise Unsupported(f"of {to.dtype(x)}" if to.shape(x) else "of a tensor without dimensions")
    to.give(step, [to.value(x)], numbers, results=results)
