"""What records name in their ``onnx``: the operations that are more than one ONNX operator.

Every function takes the graph, then edges and settings as they stand in the record's expression. A setting
that depends on a dynamic axis is an ``Extent``; ``Graph.size`` gives it as an edge.
"""

from collections.abc import Callable
from typing import Any

from ... import dtypes
from ...seam import Maker
from ..graph import Edge, Graph, Names, Unsupported
from ..sizes import Extent, Varies
from . import images, int8, layers, positions, reductions, shapes
from .reductions import shaped
from .words import in_words

FUNCTIONS: dict[str, Callable] = {  # what an ``onnx`` may name
    name: function for part in (shapes, reductions, positions, layers, images, int8)
    for name, function in vars(part).items()
    if getattr(function, "__module__", "") == part.__name__ and not name.startswith("_")}


def elementwise(g: Graph, op: Any, inputs: tuple, settings: dict, dtype: Any) -> Edge:
    """An elementwise record by its expression: each word is an operator, or an expression itself."""
    edges = [x for x in inputs[1 if op.result == "select" else 0:] if isinstance(x, Edge)]
    like = edges[0] if edges else Edge(g, "", dtype)
    given = {n: x if isinstance(x, Edge) else g.like(x, like) for n, x in zip(op.inputs, inputs)}
    for n, value in settings.items():
        given[n] = g.like(value, like) if isinstance(value, (Varies, Extent)) else value
    if op.onnx is not None:
        return evaluated(g, op.onnx, {**given, **settings})
    result = in_words(g, op.expr, given)
    return g.cast(result, dtype) if result.dtype is not dtype else result


def evaluated(g: Graph, text: str, given: dict) -> Any:
    """The expression of a record's ``onnx``."""
    return eval(compile(text, "<onnx>", "eval"), {"__builtins__": {}}, Names(g, FUNCTIONS, given))


def made(g: Graph, maker: Maker, data: tuple, shape: tuple, dtype: Any, array: Any) -> Edge:
    """A tensor that a program made of no tensors, in every call alike or as large as its inputs ask for."""
    if maker.random:
        raise Unsupported(f"{maker.name} draws random numbers")
    if array is not None and not any(isinstance(n, Extent) for n in shape):
        return g.constant(array)
    if maker.onnx is None:
        raise Unsupported(f"what {maker.name} makes depends on the values or sizes of the inputs")
    return evaluated(g, maker.onnx, {**dict(zip(maker.arguments, data)), "shape": shape, "dtype": dtype})


def loss_total(g: Graph, op: Any, inputs: tuple, settings: dict, dtype: Any) -> Edge:
    """The sum of an elementwise loss over its count."""
    rest = {k: v for k, v in settings.items() if k != "count"}
    losses = elementwise(g, op, inputs, rest, dtype)
    whole = g.emit("ReduceSum", (losses,), {"keepdims": 0})
    return whole if settings["count"] == 1 else whole / g.like(settings["count"], whole)


def written(g: Graph, base: Edge, value: Edge, cut: Any, others: tuple) -> Edge:
    """The base with ``value`` in the part that the view ``cut`` shows: at its places among those of the
    base.
    """
    whole = g.emit("Reshape", (g.emit("Shape", (base,), dtype=dtypes.int64), g.ints([-1])))
    count = g.emit("ReduceProd", (whole,), {"keepdims": 0})
    places = g.emit("Range", (g.number(0), count, g.number(1)), dtype=dtypes.int64)
    places = shaped(g.emit("Reshape", (places, whole), dtype=dtypes.int64), base.shape)
    part = evaluated(g, cut.op.onnx, {**dict(zip(cut.op.inputs, (places, *others))), **cut.settings})
    flat = g.emit("Reshape", (base, g.ints([-1])))
    out = g.emit("ScatterElements", (flat, g.emit("Reshape", (part, g.ints([-1]))),
                                     g.emit("Reshape",
                                            (g.cast(value, base.dtype), g.ints([-1])))), {"axis": 0})
    return g.emit("Reshape", (out, whole))
