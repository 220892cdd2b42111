"""The words of elementwise expressions in ONNX, and the functions that some of them name in their ``onnx``.

The table of words is that of ``framework/ops/language/words.py``.
"""

from functools import partial
from typing import Any

import numpy as np

from ... import dtypes
from ...ops.language.words import NUMBERS, WORDS, of_arrays
from ..graph import Edge, Graph, Unsupported


class _Words(dict):
    def __init__(self, g: Graph, given: dict) -> None:
        super().__init__(given)
        self.g = g

    def __missing__(self, name: str) -> Any:
        return NUMBERS[name] if name in NUMBERS else partial(self._called, name)

    def _called(self, name: str, *xs: Any) -> Any:
        if not any(isinstance(x, Edge) for x in xs):  # of a call's settings alone
            return of_arrays(name, np)(*xs)
        return self._lowered(name)(*xs)

    def _lowered(self, name: str) -> Any:
        word = WORDS.get(name)
        if word is None or word.onnx is None:
            if word is not None and isinstance(word.program, tuple):
                parameters, expression = word.program
                return lambda *xs: in_words(self.g, expression, dict(zip(parameters.split(), xs)))
            raise Unsupported(f"ONNX has no function {name}")
        own = word.onnx
        if own[:1].isupper():
            return lambda *xs: self.g.operator(own)(*_edges(self.g, xs))
        parameters, _, expression = own.partition(": ")
        if expression:
            return lambda *xs: in_words(self.g, expression, dict(zip(parameters.split(), _edges(self.g, xs))))
        return partial(globals()[own], self.g)


def in_words(g: Graph, text: str, given: dict) -> Any:
    return eval(compile(text, "<expression>", "eval"), {"__builtins__": {}}, _Words(g, given))


def _edges(g: Graph, xs: tuple) -> list:
    like = next(x for x in xs if isinstance(x, Edge))
    return [g.like(x, like) for x in xs]


def where(g: Graph, condition: Any, x: Any, y: Any) -> Any:
    if not isinstance(condition, Edge):
        return x if condition else y
    edges = [e for e in (x, y) if isinstance(e, Edge)]
    wanted = next((e for e in edges if e.dtype is not dtypes.bool_), edges[0] if edges else None)
    if wanted is None:
        wanted = Edge(g, "", dtypes.get_default_dtype())
    x, y = [g.cast(e, wanted.dtype) if isinstance(e, Edge) else g.like(e, wanted) for e in (x, y)]
    return g.emit("Where", (condition, x, y))


def _whole(g: Graph, x: Edge, op: str) -> Edge:
    return x if not x.dtype.is_floating_point else g.emit(op, (x,))


def remainder(g: Graph, x: Any, y: Any) -> Edge:
    x, y = _edges(g, (x, y))
    if not x.dtype.is_floating_point:
        return g.emit("Mod", (x, y))
    return x - g.emit("Floor", (x / y,)) * y


def floor_divide(g: Graph, x: Any, y: Any) -> Edge:
    x, y = _edges(g, (x, y))
    if x.dtype.is_floating_point:
        return g.emit("Floor", (x / y,))
    return (x - g.emit("Mod", (x, y))) / y


def fmod(g: Graph, x: Any, y: Any) -> Edge:
    return g.emit("Mod", _edges(g, (x, y)), {"fmod": 1})


def trunc(g: Graph, x: Edge) -> Edge:
    if not x.dtype.is_floating_point:
        return x
    return where(g, x < 0, g.emit("Ceil", (x,)), g.emit("Floor", (x,)))


def isfinite(g: Graph, x: Edge) -> Edge:
    return ~(isinf(g, x) | isnan(g, x))


def _logical(op: str) -> Any:
    def logical(g: Graph, *xs: Any) -> Edge:
        return g.emit(op, [x if x.dtype is dtypes.bool_ else x != 0 for x in _edges(g, xs)])
    return logical


def left_shift(g: Graph, x: Any, y: Any) -> Edge:
    x, y = _edges(g, (x, y))
    return x * g.emit("Pow", (g.like(2, x), y))


def right_shift(g: Graph, x: Any, y: Any) -> Edge:
    x, y = _edges(g, (x, y))
    return floor_divide(g, x, g.emit("Pow", (g.like(2, x), y)))


def _of_floats(op: str) -> Any:
    return lambda g, x: g.emit(op, (x if x.dtype.is_floating_point else g.cast(x, dtypes.float32),))


def trunc_divide(g: Graph, x: Any, y: Any) -> Edge:
    return trunc(g, _edges(g, (x, y))[0] / y)


def logical_not(g: Graph, x: Edge) -> Edge:
    return ~(x if x.dtype is dtypes.bool_ else x != 0)


logical_and, logical_or, logical_xor = map(_logical, ("And", "Or", "Xor"))
round, floor, ceil = [partial(_whole, op=op) for op in ("Round", "Floor", "Ceil")]
isnan, isinf = map(_of_floats, ("IsNaN", "IsInf"))
