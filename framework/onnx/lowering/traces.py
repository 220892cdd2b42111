"""The graph of a trace: its steps one by one, each by what its record says."""

from typing import Any

from ...ops.language.elementwise import Elementwise
from ...ops.reduce.total import Total
from ..graph import Edge, Graph, Unsupported
from ..sizes import Extent, Varies
from ..trace import CONSTANT, INPUT, MAKE, WEIGHT, OnnxError, Ref, Step, Trace
from . import records


def lowered(trace: Trace, opset: int) -> tuple[Graph, list[Edge]]:
    """The graph of a trace, and its outputs."""
    g = Graph(opset)
    for value in trace.values:
        if value.kind in (INPUT, WEIGHT):
            g.fresh(value.name)
    edges: dict[int, Any] = {}
    for i, value in enumerate(trace.values):
        if value.kind == INPUT:
            g.known(_edge(g, trace, edges, Ref(i)))
    lacking: dict[str, None] = {}  # in the order in which they were met
    for step in live(trace):
        if any(isinstance(x, Ref) and edges.get(x, 0) is None for x in step.inputs):
            _give(edges, step, (None,) * len(step.outputs))  # an input is lacking already
            continue
        g.scope = step.scope
        before = len(g.nodes)
        try:
            results = _results(g, trace, edges, step)
        except (Unsupported, TypeError) as error:
            if isinstance(error, TypeError) and "Extent" not in str(error):
                raise
            del g.nodes[before:]
            inside = f" of {step.scope.replace('/', '.')}" if step.scope else ""
            lacking.setdefault(f"{step.name}{inside} in {step.where}: {error}")
            results = (None,) * len(step.outputs)
        for ref, result in zip(step.outputs, results):
            if result is not None:
                value = trace.values[ref]
                if result.shape is None or result.dtype is None:
                    result.shape, result.dtype = value.shape, value.dtype
                g.known(Edge(g, result.name, value.dtype, value.shape))
        _give(edges, step, results)
    if not lacking:
        lacking = {f"{trace.values[ref].name}: an output that ONNX's operator does not give": None
                   for ref in trace.outputs if edges.get(ref, 0) is None}
    if lacking:
        lines = "\n  ".join(lacking)
        raise OnnxError(f"export: {len(lacking)} operation{'s' * (len(lacking) > 1)} cannot be written as "
                        f"ONNX (opset {opset}):\n  {lines}")
    return g, [_edge(g, trace, edges, ref) for ref in trace.outputs]


def live(trace: Trace) -> list[Step]:
    """The steps that lead to an output."""
    wanted = set(trace.outputs)
    live: list[Step] = []
    for step in reversed(trace.steps):
        if wanted.intersection(step.outputs):
            live.append(step)
            wanted.update(x for x in step.inputs if isinstance(x, Ref))
    return live[::-1]


def _edge(g: Graph, trace: Trace, edges: dict[int, Any], ref: Ref) -> Any:
    """The edge of a value; inputs, weights and constants get theirs when they are first asked for."""
    if ref not in edges:
        value = trace.values[ref]
        if value.kind in (INPUT, WEIGHT):
            edges[ref] = Edge(g, value.name, value.dtype, value.shape)
        if value.kind == WEIGHT:
            g.weights[value.name] = value.array
        elif value.kind == CONSTANT:
            if value.array is None:
                raise Unsupported("a tensor that comes from values or sizes of the inputs by ways that are "
                                  "no operations (NumPy, say)")
            edges[ref] = g.constant(value.array)
    return edges[ref]


def _results(g: Graph, trace: Trace, edges: dict[int, Any], step: Step) -> tuple:
    if any(isinstance(x, Varies) for x in step.inputs) and step.kind != MAKE:
        raise Unsupported("an input that differs with the size of a dynamic axis in a way that is not "
                          "followed")
    inputs = tuple([_edge(g, trace, edges, x) if isinstance(x, Ref) else x for x in step.inputs])
    g.current = [n for x in inputs if isinstance(x, Edge) for n in x.shape or () if isinstance(n, Extent)]
    return _step(g, trace, step, inputs)


def _give(values: dict, step: Step, results: tuple) -> None:
    for i, ref in enumerate(step.outputs):
        values[ref] = results[i] if i < len(results) else None


def _step(g: Graph, trace: Trace, step: Step, inputs: tuple) -> tuple:
    first = trace.values[step.outputs[0]]
    if step.kind == MAKE:
        return (records.made(g, step.op, inputs, first.shape, first.dtype, first.array),)
    if step.kind == "put":
        base, value, *others = inputs
        return (records.written(g, base, value, step.settings["cut"], tuple(others)),)
    if isinstance(step.op, Total):
        return (records.loss_total(g, step.op.op, inputs, step.settings, first.dtype),)
    if isinstance(step.op, Elementwise):
        return (records.elementwise(g, step.op, inputs, step.settings, first.dtype),)
    if getattr(step.op, "onnx", None) is None:
        raise Unsupported("ONNX has no operator for it, or none is known here")
    if step.op.variadic:
        given = {step.op.inputs[0]: inputs}
    else:
        given = dict(zip(step.op.inputs, inputs))
    made = records.evaluated(g, step.op.onnx, {**given, **step.settings})
    results = made if isinstance(made, tuple) else (made,)
    if results[0].dtype is not first.dtype:
        results = (g.cast(results[0], first.dtype) if results[0].dtype is not None else results[0],
                   *results[1:])
    return results
