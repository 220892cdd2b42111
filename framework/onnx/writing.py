"""``export``: a model as an ONNX file, which is written only after it has been checked and has run.

The model is run at several sizes of its dynamic axes; each run is written down (``trace.py``), the runs are
made one (``sizes.py``), and every step is lowered by what its record says of ONNX (``graph.py``,
``lower.py``). The finished model then runs at other sizes, batches of 1, 2 and 5 among them, and must give
what the model gives.
"""

import inspect
import os
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ..autograd.mode import no_grad
from ..errors import MissingExtraError
from ..layouts import strided
from ..nn import Module
from ..ops.language.elementwise import Elementwise
from ..ops.reduce.total import Total
from ..tensor import Tensor, wrap
from ..version import __version__
from . import lower
from .graph import CODES, Edge, Graph, Node, Unsupported
from .sizes import Extent, Varies, joined
from .trace import CONSTANT, INPUT, MAKE, WEIGHT, OnnxError, Ref, Step, Trace, tensors_of

OPSETS = range(17, 24)
DEFAULT_OPSET = 20
_EXTERNAL_FROM = 1 << 31  # bytes of a protobuf message at most
_BATCHES = (1, 2, 5)


def need_onnx(what: str) -> Any:
    """The ``onnx`` package; MissingExtraError where it is not installed."""
    try:
        import onnx
    except ImportError as error:
        raise MissingExtraError(f"{what} needs the package onnx; install it with: pip install "
                                f"'framework[onnx]'") from error
    return onnx


class ONNXProgram:
    """What ``export`` gives: the model (``model_proto``), and the sizes at which it was found equal
    (``checked``).

    checked: a list of (sizes by name, the largest difference from the model itself relative to its values).
    """

    def __init__(self, model_proto: Any, checked: list) -> None:
        self.model_proto = model_proto
        self.checked = checked

    def save(self, f: Any, external_data: bool | None = None) -> None:
        """Write it to a path or a file; with large weights beside it (``external_data``)."""
        _write(self.model_proto, f, external_data)

    def __repr__(self) -> str:
        return (f"<ONNXProgram of {len(self.model_proto.graph.node)} nodes, equal to the model at "
                f"{len(self.checked)} sizes>")


def export(model: Any, args: Any = (), f: Any = None, *, kwargs: dict | None = None,
           input_names: Sequence[str] | None = None, output_names: Sequence[str] | None = None,
           opset_version: int | None = None, dynamic_axes: Any = None, dynamic_shapes: Any = None,
           training: Any = None, external_data: bool | None = None, opset: int | None = None,
           verify: bool = True, dynamo: bool = True) -> ONNXProgram:
    """Write a model, or any function of tensors, as ONNX. It is run, checked, run elsewhere, and then
    written.

    args, kwargs: an example of its arguments; tensors in them, also in tuples, lists and dicts, are the
    inputs of the graph, everything else is fixed. f: a path or a binary file; None only gives the program.
    dynamic_axes: which sizes differ from call to call: ``{"x": {0: "batch", 1: "length"}}`` or ``{"x": [0]}``
    by the names of inputs. Axes of one name are of one size. dynamic_shapes: the same as PyTorch's newer
    argument, by the names of the model's arguments or in their order. Every number that comes from such a
    size is computed in the graph; what cannot be followed is refused, with the line. The model is then run
    at batches of 1, 2 and 5 and at two lengths of each further axis, and the file is written if it gives the
    same there. opset_version (or opset): 17 to 23, default 20. training: None or "eval" exports in
    evaluation mode, "preserve" as the model is, "train" in training mode (dropout becomes an operation that
    drops; results are then compared by shape only). external_data: weights in a file beside it (default:
    above 2 GB). verify: False leaves out the runs elsewhere. dynamo: taken for PyTorch's programs; there is
    one exporter.

    Returns an ONNXProgram. Raises OnnxError for what cannot be exported: operations without an ONNX form
    (all of them, with their lines), reads of values that depend on the inputs, ways that depend on sizes,
    results that differ; MissingExtraError without the package onnx. Sources: the operator schemas of ONNX.

    >>> model = fw.nn.Sequential(fw.nn.Linear(3, 4), fw.nn.ReLU())
    >>> fw.onnx.export(model, (fw.randn(2, 3),), dynamic_axes={"input": {0: "batch"}})  # doctest: +SKIP
    <ONNXProgram of 2 nodes, equal to the model at 3 sizes>
    """
    onnx = need_onnx("onnx.export")
    version = opset_version if opset_version is not None else DEFAULT_OPSET if opset is None else opset
    if version not in OPSETS:
        raise ValueError(f"export: opset_version must be {OPSETS[0]} to {OPSETS[-1]}, got {version}")
    args = (args,) if isinstance(args, Tensor) else tuple(args)
    call = Call(model, args, kwargs or {}, input_names, output_names, training)
    symbols = _symbols(call, dynamic_axes, dynamic_shapes)
    with call:
        points = Points(call, symbols)
        trace = points.unified()
        graph, outputs = _lowered(trace, version)
        names = call.output_names(len(outputs))
        proto = _proto(onnx, graph, call, trace, outputs, names, points, version)
        checked = _verified(onnx, proto, call, points, names, graph, verify)
    if f is not None:
        _write(proto, f, external_data)
    return ONNXProgram(proto, checked)


# -- the call and its arguments ----------------------------------------------------------------------


class Call:
    """A model and the example of its arguments: which are tensors, what they are called, in which mode it
    runs.
    """

    def __init__(self, model: Any, args: tuple, kwargs: dict, input_names: Any, output_names: Any,
                 training: Any) -> None:
        self.model = model
        self.args = args
        self.kwargs = kwargs
        self.given_outputs = output_names
        mode = getattr(training, "name", training)
        mode = "eval" if mode is None else str(mode).lower()
        modes = {"eval": False, "preserve": None, "train": True, "training": True}
        if mode not in modes:
            raise ValueError(f"export: training must be None, 'eval', 'preserve' or 'train', got "
                             f"{training!r}")
        self.mode = modes[mode]
        self.example: dict[str, Tensor] = {}
        self.roots: dict[str, tuple[str, Any]] = {}  # name of an input -> the model's argument it lies in
        found: list[tuple[str, Tensor]] = []
        for name, value in (*zip(_parameters(model, len(args)), args), *self.kwargs.items()):
            _tensors(value, name, found)
        names = list(input_names or [])
        if len(names) > len(found):
            raise ValueError(f"export: {len(names)} input_names for {len(found)} tensors among the arguments")
        for i, (path, tensor) in enumerate(found):
            name = names[i] if i < len(names) else path
            if name in self.example:
                raise ValueError(f"export: two inputs are called {name!r}; give other input_names")
            self.example[name] = tensor
            self.roots[name] = (path.partition(".")[0], i)
        if not found:
            raise ValueError("export: there is no tensor among the arguments; give an example of them in "
                             "args")
        self.owner = model if isinstance(model, Module) else getattr(model, "__self__", None)
        module = self.owner if isinstance(self.owner, Module) else Module()
        self.weights: dict[int, str] = {}
        for name, tensor in (*module.named_parameters(), *module.named_buffers()):
            self.weights.setdefault(id(tensor._array), name)
        self.scopes = {id(m): n.replace(".", "/") for n, m in module.named_modules()}
        self.function: Callable = model

    def __enter__(self) -> "Call":
        module = self.owner if isinstance(self.owner, Module) else Module()
        self.before = [(m, m.training) for m in module.modules()]
        if self.mode is not None:
            module.train(self.mode)
        return self

    def __exit__(self, *error: Any) -> None:
        for module, training in self.before:
            module.training = training

    def filled(self, tensors: dict[str, Tensor]) -> tuple[tuple, dict]:
        """The arguments with these tensors in the places of the example's."""
        left = list(tensors.values())
        args = tuple(_replaced(a, left) for a in self.args)
        return args, {k: _replaced(v, left) for k, v in self.kwargs.items()}

    def trace(self, tensors: dict[str, Tensor]) -> Trace:
        args, kwargs = self.filled(tensors)
        return Trace(self.function, args, kwargs, tensors, self.weights, self.scopes, no_grad())

    def run(self, tensors: dict[str, Tensor]) -> list[np.ndarray]:
        """What the model itself gives."""
        args, kwargs = self.filled(tensors)
        with no_grad():
            return [t._array for t in tensors_of(self.function(*args, **kwargs))]

    def output_names(self, count: int) -> list[str]:
        names = list(self.given_outputs or [])
        if len(names) > count:
            raise ValueError(f"export: {len(names)} output_names for {count} outputs")
        default = ["output"] if count == 1 else [f"output_{i}" for i in range(count)]
        names += default[len(names):]
        if len({*names, *self.example}) != len(names) + len(self.example):
            raise ValueError(f"export: inputs {list(self.example)} and outputs {names} need names of their "
                             f"own")
        return names


def _parameters(model: Any, count: int) -> list[str]:
    function = model.forward if isinstance(model, Module) else model
    names = [p.name for p in inspect.signature(function).parameters.values()
             if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    return (names + [f"input_{i}" for i in range(len(names), count)])[:count]


def _tensors(value: Any, path: str, found: list) -> None:
    if isinstance(value, Tensor):
        if value.layout is not strided:
            raise OnnxError(f"export: {path} is a sparse tensor, which ONNX's operators do not take; use "
                            f"to_dense()")
        found.append((path, value))
    elif isinstance(value, dict):
        for k, v in value.items():
            _tensors(v, f"{path}.{k}", found)
    elif isinstance(value, (tuple, list)):
        for i, v in enumerate(value):
            _tensors(v, f"{path}.{i}", found)


def _replaced(value: Any, left: list) -> Any:
    if isinstance(value, Tensor):
        return left.pop(0)
    if isinstance(value, dict):
        return {k: _replaced(v, left) for k, v in value.items()}
    if isinstance(value, (tuple, list)):
        parts = [_replaced(v, left) for v in value]
        return type(value)(*parts) if hasattr(value, "_fields") else type(value)(parts)
    return value


def _symbols(call: Call, axes: Any, shapes: Any) -> dict[tuple[str, int], str]:
    """The name of each dynamic axis: (input, axis) -> name."""
    found: dict[tuple[str, int], str] = {}
    if axes is not None and shapes is not None:
        raise ValueError("export: give dynamic_axes or dynamic_shapes, not both")
    for name, given in (axes or {}).items():
        if name not in call.example:
            if call.given_outputs and name in call.given_outputs or name.startswith("output"):
                continue  # sizes of outputs follow from those of inputs
            raise ValueError(f"export: dynamic_axes names {name!r}; the inputs are {', '.join(call.example)}")
        pairs = list(given.items() if isinstance(given, dict) else ((a, f"{name}_{a}") for a in given))
        for axis, label in pairs:
            found[name, axis] = label or f"{name}_{axis}"
    if shapes is not None:
        paths = _parameters(call.model, len(call.args)) + list(call.kwargs)
        given = shapes if isinstance(shapes, dict) else dict(zip(paths, shapes))
        flat: list[tuple[str, Any]] = []
        for key, spec in given.items():
            _specs(spec, key, flat)
        by_path = {path: name for name, (path, _) in call.roots.items()}
        by_path |= {name: name for name in call.example}
        for path, spec in flat:
            if path not in by_path:
                raise ValueError(f"export: dynamic_shapes names {path!r}; the arguments are "
                                 f"{', '.join(by_path)}")
            pairs = list(spec.items() if isinstance(spec, dict) else enumerate(spec))
            for axis, label in pairs:
                if label is None or isinstance(label, int):
                    continue
                text = label if isinstance(label, str) else getattr(label, "__name__", f"{path}_{axis}")
                found[by_path[path], axis] = text
    turned = {}
    for (name, axis), label in found.items():
        ndim = call.example[name].ndim
        if not isinstance(axis, int) or not -ndim <= axis < ndim:
            raise ValueError(f"export: {name} has no axis {axis}, its shape is "
                             f"{list(call.example[name].shape)}")
        turned[name, axis % ndim] = str(label)
    return turned


def _specs(spec: Any, path: str, flat: list) -> None:
    if spec is None:
        return
    leaf = isinstance(spec, dict) and all(isinstance(k, int) for k in spec) or isinstance(spec,
                                                                                          (tuple, list)) and \
        all(not isinstance(s, (dict, tuple, list)) for s in spec)
    if leaf:
        flat.append((path, spec))
    elif isinstance(spec, dict):
        for k, s in spec.items():
            _specs(s, f"{path}.{k}", flat)
    else:
        for i, s in enumerate(spec):
            _specs(s, f"{path}.{i}", flat)


# -- runs at several sizes ---------------------------------------------------------------------------


class Points:
    """At which sizes of the dynamic axes the model is traced, and at which the result is checked."""

    def __init__(self, call: Call, symbols: dict[tuple[str, int], str]) -> None:
        self.call = call
        self.axes = symbols
        self.base: dict[str, int] = {}
        for (name, axis), label in symbols.items():
            n = call.example[name].shape[axis]
            if self.base.setdefault(label, n) != n:
                raise ValueError(f"export: axes called {label!r} are of one size, but the example has "
                                 f"{self.base[label]} and {n}")
        self.batch = {label for (_, axis), label in symbols.items() if axis == 0}
        self.lengths: dict[str, list[int]] = {}
        self.refused: dict[str, Exception] = {}
        self.all: list[dict[str, int]] = []

    def inputs(self, sizes: dict[str, int], turn: int = 0) -> dict[str, Tensor]:
        """The example at other sizes: its elements along the dynamic axes again and again, from another one
        on.
        """
        tensors = {}
        for name, tensor in self.call.example.items():
            array = tensor.detach()._array
            for axis in range(array.ndim):
                label = self.axes.get((name, axis))
                n = array.shape[axis] if label is None else sizes[label]
                if label is not None or axis == 0 and turn and not self.axes:
                    array = np.take(array, (np.arange(n) + turn) % max(array.shape[axis], 1), axis=axis)
            if turn and not self.axes and array.dtype.kind == "f":
                array = array[..., ::-1] if array.ndim else array
            tensors[name] = wrap(np.array(array, order="C"))  # the graph must not know it by its memory
        return tensors

    def unified(self) -> Trace:
        """One trace for all sizes."""
        if not self.axes:
            traces = [self.call.trace(self.inputs({}, turn)) for turn in (0, 1)]
            self.all = [{}, {}]
            return joined(traces, ["the example", "other values"])
        kept: dict[tuple, Trace] = {}
        start = {label: max(n, 2) if label in self.batch else n for label, n in self.base.items()}
        start = {label: n if n > 1 else 4 for label, n in start.items()}
        self._try(start, kept, must=True)
        for label in self.base:
            self.lengths[label] = [start[label]]
            for n in _lengths(self.base[label], label in self.batch):
                if n >= 2 and n not in self.lengths[label] and self._try({**start, label: n}, kept):
                    self.lengths[label].append(n)
                if len(self.lengths[label]) == 3:
                    break
            else:
                raise OnnxError(
                    f"export: the axis {label!r} was declared dynamic, but the model runs at few sizes of "
                    f"it only "
                    f"({', '.join(map(str, self.lengths[label]))}): {self.refused.get(label, '')}")
        labels = list(self.base)
        for a, b in zip(labels, labels[1:]):  # two at once, or a product of both looks like one of them
            self._try({**start, a: self.lengths[a][1], b: self.lengths[b][1]}, kept)
        self.all = [dict(key) for key in kept]
        return joined(list(kept.values()), [_shown(dict(key)) for key in kept])

    def _try(self, sizes: dict[str, int], kept: dict, must: bool = False) -> bool:
        key = tuple(sizes.items())
        if key in kept:
            return True
        try:
            kept[key] = self.call.trace(self.inputs(sizes, len(kept)))
        except OnnxError:
            raise
        except Exception as error:  # the model itself refuses this size
            if must:
                raise
            for label, n in sizes.items():
                if n != self.base[label]:
                    self.refused[label] = error
            return False
        return True

    def checks(self) -> list[dict[str, int]]:
        """Sizes to compare at: batches of 1, 2 and 5, and two further lengths of each other axis."""
        if not self.axes:
            return [{}]
        start = {label: n if n > 1 else 4 for label, n in self.base.items()}
        points = [{**start, **dict.fromkeys(self.batch, n)} for n in _BATCHES] if self.batch else [start]
        for label in self.base:
            if label in self.batch:
                continue
            found = 0
            used = self.lengths.get(label, [])
            for n in [*[m for m in _lengths(self.base[label], False) if m not in used], *used]:
                sizes = {**start, **dict.fromkeys(self.batch, 2), label: n}
                try:
                    self.call.run(self.inputs(sizes))
                except Exception:
                    continue
                points.append(sizes)
                found += 1
                if found == 2:
                    break
        return points

    def symbol_of(self, n: Any) -> str | None:
        """The name of a size that is a dynamic axis."""
        for label in self.base:
            if n == Extent([p[label] for p in self.all]):
                return label
        return None


def _lengths(base: int, batch: bool) -> list[int]:
    """Lengths to try, those first that programs allow most often."""
    if batch:
        return [2, 3, 5, 4, 7, base, 2 * base, 3 * base]
    more = [-1, -2, 1, -3, 2, 4, 8, 16, 32, 64, -4, -8, -16, -5]
    near = [base - 1, base // 2, *[base + n for n in more[1:]]]
    near += [2 * base, base // 2 + 1, 3 * base, base // 4, 4 * base]
    return [n for n in near if n > 1] + [3, 2, 5]


def _shown(sizes: dict[str, int]) -> str:
    return ", ".join(f"{k}={v}" for k, v in sizes.items()) or "the example"


# -- lowering ----------------------------------------------------------------------------------------


def _lowered(trace: Trace, opset: int) -> tuple[Graph, list[Edge]]:
    """The graph of a trace, and its outputs."""
    g = Graph(opset)
    values: dict[int, Any] = {}
    for value in trace.values:
        if value.kind in (INPUT, WEIGHT):
            g.fresh(value.name)
    wanted = set(trace.outputs)
    live: list[Step] = []
    for step in reversed(trace.steps):
        if wanted.intersection(step.outputs):
            live.append(step)
            wanted.update(x for x in step.inputs if isinstance(x, Ref))
    lacking: dict[str, str] = {}

    def edge(ref: Ref, where: str) -> Any:
        if ref not in values:
            value = trace.values[ref]
            if value.kind == INPUT:
                values[ref] = Edge(g, value.name, value.dtype, value.shape)
            elif value.kind == WEIGHT:
                values[ref] = Edge(g, value.name, value.dtype, value.shape)
                g.weights[value.name] = value.array
            elif value.kind == CONSTANT:
                if value.array is None:
                    raise Unsupported("a tensor that comes from values or sizes of the inputs by ways that "
                                      "are no "
                                      "operations (NumPy, say)")
                values[ref] = g.constant(value.array)
        return values[ref]
    for i, value in enumerate(trace.values):
        if value.kind == INPUT:
            g.known(edge(Ref(i), ""))
    for step in reversed(live):
        if any(isinstance(x, Ref) and values.get(x, 0) is None for x in step.inputs):
            _give(values, step, (None,) * len(step.outputs))  # an input is lacking already
            continue
        g.scope = step.scope
        before = len(g.nodes)
        try:
            if any(isinstance(x, Varies) for x in step.inputs) and step.kind != MAKE:
                raise Unsupported("an input that differs with the size of a dynamic axis in a way that is "
                                  "not followed")
            inputs = tuple([edge(x, step.where) if isinstance(x, Ref) else x for x in step.inputs])
            g.current = [n for x in inputs if isinstance(x, Edge) for n in x.shape or () if isinstance(n,
                                                                                                       Extent)]
            results = _step(g, trace, step, inputs)
        except (Unsupported, TypeError) as error:
            if isinstance(error, TypeError) and "Extent" not in str(error):
                raise
            del g.nodes[before:]
            inside = f" of {step.scope.replace('/', '.')}" if step.scope else ""
            lacking.setdefault(f"{step.name}{inside} in {step.where}: {error}", "")
            results = (None,) * len(step.outputs)
        for ref, result in zip(step.outputs, results):
            if result is not None:
                value = trace.values[ref]
                if result.shape is None or result.dtype is None:
                    result.shape, result.dtype = value.shape, value.dtype
                g.known(Edge(g, result.name, value.dtype, value.shape))
        _give(values, step, results)
    if not lacking:
        for ref in trace.outputs:
            if values.get(ref, 0) is None:
                lacking[f"{trace.values[ref].name}: an output that ONNX's operator does not give"] = ""
    if lacking:
        lines = "\n  ".join(lacking)
        raise OnnxError(f"export: {len(lacking)} operation{'s' * (len(lacking) > 1)} cannot be written as "
                        f"ONNX (opset "
                        f"{opset}):\n  {lines}")
    return g, [edge(ref, "the result") for ref in trace.outputs]


def _give(values: dict, step: Step, results: tuple) -> None:
    for i, ref in enumerate(step.outputs):
        values[ref] = results[i] if i < len(results) else None


def _step(g: Graph, trace: Trace, step: Step, inputs: tuple) -> tuple:
    first = trace.values[step.outputs[0]]
    if step.kind == MAKE:
        return (lower.made(g, step.name, inputs, first.shape, first.dtype, first.array),)
    if step.kind == "put":
        base, value, *others = inputs
        return (lower.written(g, base, value, step.settings["cut"], tuple(others)),)
    if isinstance(step.op, Total):
        return (lower.loss_total(g, step.op.op, inputs, step.settings, first.dtype),)
    if isinstance(step.op, Elementwise):
        return (lower.elementwise(g, step.op, inputs, step.settings, first.dtype),)
    if getattr(step.op, "onnx", None) is None:
        raise Unsupported("ONNX has no operator for it, or none is known here")
    if step.op.variadic:
        given = {step.op.inputs[0]: inputs}
    else:
        given = dict(zip(step.op.inputs, inputs))
    made = lower.evaluated(g, step.op.onnx, {**given, **step.settings})
    results = made if isinstance(made, tuple) else (made,)
    if results[0].dtype is not first.dtype:
        results = (g.cast(results[0], first.dtype) if results[0].dtype is not None else results[0],
                   *results[1:])
    return results


# -- the file ----------------------------------------------------------------------------------------


def _proto(onnx: Any, g: Graph, call: Call, trace: Trace, outputs: list[Edge], names: list[str],
           points: Points,
           opset: int) -> Any:
    """The model as ONNX's message; only what leads to an output is in it."""
    helper = onnx.helper
    g.scope = ""
    for edge, name in zip(outputs, names):
        g.nodes.append(Node("Identity", [edge.name], [name], {}, ""))
    _rename(g, names, {i.name for i in trace.values if i.kind == INPUT})
    wanted, live = set(names), []
    for node in reversed(g.nodes):
        if wanted.intersection(node.outputs):
            live.append(node)
            wanted.update(node.inputs)
    nodes = [helper.make_node(n.op, n.inputs, n.outputs, name=n.outputs[0],
                              **{k: _plain(v) for k, v in n.attributes.items()}) for n in reversed(live)]
    weights = [onnx.numpy_helper.from_array(np.ascontiguousarray(a) if a.ndim else a, name)
               for name, a in {**g.weights, **g.constants}.items() if name in wanted]
    inputs = [helper.make_tensor_value_info(v.name, _code(v.dtype), [
        (points.symbol_of(n) or n.at[0]) if isinstance(n, Extent) else n for n in v.shape])
        for v in trace.values if v.kind == INPUT]
    shown = []
    for ref, name in zip(trace.outputs, names):
        value = trace.values[ref]
        sizes = [(points.symbol_of(n) or f"{name}_{i}") if isinstance(n, Extent) else n
                 for i, n in enumerate(value.shape)]
        shown.append(helper.make_tensor_value_info(name, _code(value.dtype), sizes))
    graph = helper.make_graph(nodes, type(call.model).__name__, inputs, shown, weights)
    sets = [helper.make_operatorsetid("", opset)]
    return helper.make_model(graph, opset_imports=sets, producer_name="framework",
                             producer_version=__version__,
                             ir_version=helper.find_min_ir_version_for(sets))


def _rename(g: Graph, outputs: list[str], inputs: set[str]) -> None:
    """Let the node that makes an output give it its name, where nothing else stands in the way."""
    made_by = {name: node for node in g.nodes for name in node.outputs}
    for last in [n for n in g.nodes if n.op == "Identity" and n.outputs[0] in outputs and n.inputs]:
        source, name = last.inputs[0], last.outputs[0]
        maker = made_by.get(source)
        again = sum(n.op == "Identity" and n.inputs == [source] and n.outputs[0] in outputs for n in g.nodes)
        if maker is None or maker is last or again > 1 or name in made_by and made_by[name] is not last:
            continue
        g.nodes.remove(last)
        for node in g.nodes:
            node.inputs = [name if x == source else x for x in node.inputs]
            node.outputs = [name if x == source else x for x in node.outputs]


def _plain(value: Any) -> Any:
    if isinstance(value, (tuple, list)):
        return [_plain(v) for v in value]
    return value.item() if isinstance(value, np.generic) else int(value) if isinstance(value, bool) else value


def _code(dtype: Any) -> int:
    if dtype.name not in CODES:
        raise OnnxError(f"export: an input or output is {dtype}, which ONNX's operators do not take")
    return CODES[dtype.name]


def _large(proto: Any) -> bool:
    return sum(len(t.raw_data) for t in proto.graph.initializer) > _EXTERNAL_FROM - (1 << 24)


def _write(proto: Any, f: Any, external_data: bool | None) -> None:
    """To a path by way of a file beside it, so that there is the whole of it or what was there before."""
    onnx = need_onnx("onnx.export")
    outside = _large(proto) if external_data is None else external_data
    if hasattr(f, "write"):
        if outside:
            raise OnnxError("export: the weights lie in a file of their own beside the model; give a path")
        f.write(proto.SerializeToString())
        return
    path = Path(f)
    with tempfile.TemporaryDirectory(dir=path.parent, prefix=".onnx-") as folder:
        new = Path(folder) / path.name
        _saved(onnx, proto, new, outside)
        for part in sorted(Path(folder).iterdir(), key=lambda p: p == new):  # the model last
            os.replace(part, path.parent / part.name)


def _saved(onnx: Any, proto: Any, path: Path, outside: bool) -> None:
    if not outside:
        path.write_bytes(proto.SerializeToString())
        return
    copy = onnx.ModelProto()
    copy.CopyFrom(proto)
    onnx.save_model(copy, str(path), save_as_external_data=True, all_tensors_to_one_file=True,
                    location=f"{path.name}.data", size_threshold=0)


# -- the check ---------------------------------------------------------------------------------------


def _verified(onnx: Any, proto: Any, call: Call, points: Points, names: list[str], g: Graph,
              verify: bool) -> list:
    """Check the model, run it at several sizes, and compare with eager; raise where it differs."""
    with tempfile.TemporaryDirectory() as folder:
        source: Any = Path(folder) / "model.onnx"
        if _large(proto):
            _saved(onnx, proto, source, True)
            source = str(source)
        else:
            source = proto.SerializeToString()
        try:
            onnx.checker.check_model(source, full_check=True)
        except Exception as error:
            raise OnnxError(f"export: ONNX's checker refuses the model: {error}") from error
        if not verify:
            return []
        try:
            run = runner(onnx, source)
        except Exception as error:
            raise OnnxError(f"export: the model that was made cannot be run: {error}") from error
        draws = any(n.op == "Dropout" for n in g.nodes)
        checked = []
        for sizes in points.checks():
            inputs = points.inputs(sizes)
            feeds = {name: t._array for name, t in inputs.items()}
            try:
                expected = call.run(inputs)
            except Exception as error:
                raise OnnxError(f"export: an axis was declared dynamic, but the model itself does not run at "
                                f"{_shown(sizes)}: {error}") from error
            used = {i.name for i in proto.graph.input}
            try:
                found = run({k: v for k, v in feeds.items() if k in used})
            except Exception as error:
                raise OnnxError(f"export: the model that was made does not run at {_shown(sizes)}: "
                                f"{error}") from error
            worst = 0.0
            for name, a, b in zip(names, expected, found):
                difference = _difference(a, np.asarray(b), draws)
                if not difference <= 1e-4:
                    raise OnnxError(f"export: {name} differs at {_shown(sizes)}: the model gives shape "
                                    f"{list(a.shape)}, "
                                    f"the graph {list(np.shape(b))}, relative difference {difference:.2g}; "
                                    f"nothing "
                                    f"was written")
                worst = max(worst, difference)
            checked.append((sizes, worst))
    return checked


def _difference(a: np.ndarray, b: np.ndarray, draws: bool) -> float:
    """The largest difference, relative to the largest value; inf where shape or dtype differ."""
    if a.shape != b.shape or a.dtype != b.dtype:
        return float("inf")
    if draws or not a.size:
        return 0.0
    if a.dtype.kind not in "fV":
        return 0.0 if (a == b).all() else float("inf")
    x, y = a.astype(np.float64), b.astype(np.float64)
    finite = np.isfinite(x)
    if not ((x == y) | finite | np.isnan(x) & np.isnan(y)).all():
        return float("inf")
    scale = max(1.0, float(np.abs(x[finite]).max(initial=0.0)))
    slack = {2: 1 / 64}.get(a.dtype.itemsize, 1.0)  # half precision rounds a hundred times as coarsely
    return float(np.abs(x[finite] - y[finite]).max(initial=0.0)) / scale * slack


def runner(onnx: Any, source: Any) -> Callable:
    """A function that runs a model (bytes or path): ONNX Runtime, else ONNX's reference."""
    try:
        import onnxruntime
    except ImportError:
        from onnx.reference import ReferenceEvaluator
        model = onnx.load(source) if isinstance(source, str) else onnx.load_from_string(source)
        session = ReferenceEvaluator(model)

        def evaluated(feeds: dict) -> list:
            with np.errstate(all="ignore"):  # it computes with NumPy
                return list(session.run(None, feeds))
        return evaluated
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    options.intra_op_num_threads = 1
    ready = onnxruntime.InferenceSession(source, options, providers=["CPUExecutionProvider"])
    return lambda feeds: ready.run(None, feeds)


