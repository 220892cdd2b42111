"""``load``: an ONNX file as a module, whose operators are this package's functions.

The file is read by the package onnx and checked before anything is made of it; nothing in it is executed. Its
floating weights are parameters under their own names, the rest buffers. An operator is looked up in the table
(``operators/``), else in the functions that ONNX itself gives for it as a graph of simpler ones.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import CheckpointError, FrameworkError
from ..from_data import from_numpy
from ..nn import Module, Parameter
from ..tensor import Tensor
from .operators.table import DTYPES, row_of
from .protobuf import need_onnx
from .tensors import tensor_of
from .trace import OnnxError

# inputs that are numbers of the operator rather than weights to be trained
_SETTINGS = {"BatchNormalization": (3, 4), "Resize": (1, 2), "Upsample": (1,), "Pad": (2,), "Clip": (1, 2),
             "Dropout": (1,), "QuantizeLinear": (1,), "DequantizeLinear": (1,), "OneHot": (2,),
             "Range": (0, 1, 2)}


class Attribute:
    """A reference to an attribute of the function around it."""

    def __init__(self, name: str) -> None:
        self.name = name


class Node:
    """One call: the operator, names of inputs and outputs, attributes, and what need not be kept after it."""

    __slots__ = ("domain", "name", "label", "row", "inputs", "outputs", "attributes", "drop", "proto", "made")

    def __init__(self, proto: Any, attributes: dict, row: Any) -> None:
        self.domain = _domain(proto.domain)
        self.name = proto.op_type
        self.label = proto.name or (proto.output[0] if proto.output else "")
        self.row = row
        self.inputs = list(proto.input)
        self.outputs = list(proto.output)
        while self.outputs and not self.outputs[-1]:
            self.outputs.pop()
        self.attributes = attributes
        self.drop: tuple[str, ...] = ()
        self.proto = proto
        self.made: dict[tuple, Any] = {}  # ONNX's own function for it, by the types of its inputs


class Graph:
    """Nodes in order with the names of what comes in and goes out; ``run`` computes it."""

    def __init__(self, nodes: list[Node], inputs: list[str], outputs: list[str], constants: dict[str, Tensor],
                 versions: dict[str, int]) -> None:
        self.nodes = nodes
        self.inputs = inputs
        self.outputs = outputs
        self.constants = constants
        self.versions = versions
        self._note_last_uses()

    def _note_last_uses(self) -> None:
        kept = {*self.outputs}
        for node in reversed(self.nodes):
            used = {x for x in node.inputs if x}
            for value in node.attributes.values():
                if isinstance(value, Graph):
                    used |= value.free()
            node.drop = tuple(used - kept)
            kept |= used

    def free(self) -> set[str]:
        """The names that come from the graph around it."""
        own = {*self.inputs, *self.constants}
        found: set[str] = set()
        for node in self.nodes:
            used = {x for x in node.inputs if x}
            for value in node.attributes.values():
                if isinstance(value, Graph):
                    used |= value.free()
            found |= used - own
            own |= {*node.outputs}
        return found | {x for x in self.outputs if x not in own}

    def run(self, inputs: Sequence, outer: dict[str, Any], attributes: dict | None = None) -> list:
        """The outputs for these inputs; ``outer`` are the values of the graphs around."""
        values = {**outer, **self.constants, **dict(zip(self.inputs, inputs))}
        for node in self.nodes:
            try:
                results = _called(node, [values[x] if x else None for x in node.inputs], values, attributes,
                                  self)
            except (FrameworkError, ValueError, TypeError, IndexError, KeyError, RuntimeError, OverflowError,
                    ZeroDivisionError, AssertionError, AttributeError, MemoryError) as error:
                if isinstance(error, OnnxError):
                    raise
                raise OnnxError(f"{node.name} {node.label!r}: {type(error).__name__}: {error}") from error
            for name in node.drop:
                values.pop(name, None)
            for name, result in zip(node.outputs, results):
                if name:
                    values[name] = result
        return [values.get(x) for x in self.outputs]  # of a function only what is asked for is made


def _called(node: Node, inputs: list, values: dict, outside: dict | None, graph: Graph) -> Sequence:
    attributes = node.attributes
    if any(isinstance(v, Attribute) for v in attributes.values()):
        given = outside or {}
        attributes = {k: given.get(v.name) if isinstance(v, Attribute) else v for k, v in attributes.items()}
        attributes = {k: v for k, v in attributes.items() if v is not None}
    row = node.row
    if row is None:
        return _by_function(node, inputs, attributes, graph)
    if isinstance(row, Function):
        return row.run(inputs, attributes)
    if row.asks:
        attributes = dict(attributes)
        if "outputs" in row.asks:
            attributes["outputs"] = len(node.outputs)
        if "run" in row.asks:
            attributes["run"] = lambda body, given: body.run(given, values, outside)
    result = row.function(*inputs, **attributes)
    return result if isinstance(result, tuple) else (result,)


class Function:
    """A function of the model, or ONNX's own one for an operator: a graph with attributes."""

    def __init__(self, graph: Graph, defaults: dict) -> None:
        self.graph = graph
        self.defaults = defaults

    def run(self, inputs: list, attributes: dict) -> list:
        given = [*inputs, *[None] * (len(self.graph.inputs) - len(inputs))]
        return self.graph.run(given, {}, {**self.defaults, **attributes})


def _by_function(node: Node, inputs: list, attributes: dict, graph: Graph) -> list:
    """An operator by the graph of simpler ones that its schema gives."""
    onnx = need_onnx("onnx.load")
    kinds = tuple(None if x is None else x.dtype.name for x in inputs)
    if kinds not in node.made:
        version = graph.versions.get(node.domain, 1)
        schema = onnx.defs.get_schema(node.name, version, node.domain)
        if schema.has_function:
            proto = schema.function_body
        else:
            types = [_type_of(onnx, x) for x in inputs]
            text = schema.get_context_dependent_function_with_opset_version(
                schema.since_version, node.proto.SerializeToString(), [t.SerializeToString() for t in types])
            proto = onnx.FunctionProto()
            proto.ParseFromString(text)
        defaults = {name: _value(onnx, a.default_value, None) for name, a in schema.attributes.items()
                    if a.default_value.type}
        sets = {_domain(s.domain): s.version for s in proto.opset_import} or dict(graph.versions)
        node.made[kinds] = Function(Reader(onnx, sets, {}).function(proto), defaults)
    function = node.made[kinds]
    return function.run(inputs, attributes)


def _type_of(onnx: Any, x: Any) -> Any:
    if x is None:
        return onnx.TypeProto()
    code = next(c for c, d in DTYPES.items() if d is x.dtype)
    return onnx.helper.make_tensor_type_proto(code, list(x.shape))


def _domain(name: str) -> str:
    return "" if name == "ai.onnx" else name


# -- from the message to nodes --------------------------------------------------------------------------


class Reader:
    """Makes nodes of a message's nodes; collects what is not known."""

    def __init__(self, onnx: Any, versions: dict[str, int], functions: dict[tuple[str, str], Function],
                 folder: Path | None = None) -> None:
        self.onnx = onnx
        self.versions = versions
        self.functions = functions
        self.folder = folder
        self.unknown: dict[str, None] = {}

    def nodes(self, protos: Any) -> list[Node]:
        return [self.node(p) for p in protos]

    def node(self, proto: Any) -> Node:
        domain = _domain(proto.domain)
        attributes = {a.name: _value(self.onnx, a, self) for a in proto.attribute}
        row: Any = self.functions.get((domain, proto.op_type))
        if row is None:
            version = self.versions.get(domain, 1)
            row = row_of(domain, proto.op_type, version)
            if row is None and not self.by_schema(domain, proto.op_type, version):
                where = f"{domain}." if domain else ""
                self.unknown[f"{where}{proto.op_type} (version {version})"] = None
            if row is not None and not row.any:
                for name in attributes.keys() - row.attributes:
                    self.unknown[f"attribute {name} of {proto.op_type} (version {version})"] = None
            if row is not None and row.most is not None and len(proto.input) > row.most:
                self.unknown[f"{len(proto.input)} inputs of {proto.op_type} (version {version})"] = None
        return Node(proto, attributes, row)

    def by_schema(self, domain: str, name: str, version: int) -> bool:
        try:
            schema = self.onnx.defs.get_schema(name, version, domain)
        except self.onnx.defs.SchemaError:
            return False
        return schema.has_function or schema.has_context_dependent_function

    def graph(self, proto: Any) -> Graph:
        """A graph among attributes."""
        constants = {t.name: tensor_of(self.onnx, t, self.folder) for t in proto.initializer}
        return Graph(self.nodes(proto.node), [i.name for i in proto.input], [o.name for o in proto.output],
                     constants,
                     self.versions)

    def function(self, proto: Any) -> Graph:
        return Graph(self.nodes(proto.node), list(proto.input), list(proto.output), {}, self.versions)


def _value(onnx: Any, a: Any, reader: Reader | None) -> Any:
    """An attribute's value."""
    kind = onnx.AttributeProto
    if a.ref_attr_name:
        return Attribute(a.ref_attr_name)
    if a.type == kind.TENSOR:
        return tensor_of(onnx, a.t, reader.folder if reader else None)
    if a.type == kind.GRAPH:
        assert reader is not None
        return reader.graph(a.g)
    if a.type == kind.STRING:
        return a.s.decode("utf-8", "replace")
    if a.type == kind.STRINGS:
        return [s.decode("utf-8", "replace") for s in a.strings]
    if a.type in (kind.FLOAT, kind.INT, kind.FLOATS, kind.INTS):
        value = onnx.helper.get_attribute_value(a)
        return list(value) if a.type in (kind.FLOATS, kind.INTS) else value
    if a.type == kind.TYPE_PROTO:
        return a.tp
    raise OnnxError(f"attribute {a.name!r} is of a kind that is not known here ({a.type})")


# -- the module ------------------------------------------------------------------------------------------


class OnnxModule(Module):
    """A graph of ONNX as a module. Call it with the inputs in order or by name; it gives the output(s).

    Floating weights are parameters, under their names in the file (parts between dots are submodules), other
    numbers are buffers. ``input_names``, ``output_names``: those of the graph.
    """

    def __init__(self, graph: Graph, inputs: list[str], optional: dict[str, str], weights: dict[str, Tensor],
                 settings: set[str], title: str) -> None:
        super().__init__()
        self.input_names = inputs
        self.output_names = graph.outputs
        self.title = title
        self._graph = graph
        self._places: dict[str, tuple[Module, str]] = {}
        for name, tensor in weights.items():
            trained = tensor.is_floating_point() and tensor.ndim > 0 and name not in settings
            self._places[name] = self._put(name, Parameter(tensor) if trained else tensor, weights)

    def _put(self, name: str, tensor: Tensor, weights: dict) -> tuple[Module, str]:
        *path, last = name.split(".")
        above = [".".join(path[:i + 1]) for i in range(len(path))]
        whole = all(path) and last and not weights.keys() & set(above)
        place: Module = self
        if whole:
            for part in path:
                inner = place._modules.get(part)
                if inner is None:
                    if hasattr(place, part):
                        whole = False
                        break
                    inner = Module()
                    place.add_module(part, inner)
                place = inner
        if not whole or hasattr(place, last):
            place, last = self, "weight_" + "_".join(c for c in name.split(".") if c)
            while hasattr(self, last):
                last += "_"
        if isinstance(tensor, Parameter):
            place.register_parameter(last, tensor)
        else:
            place.register_buffer(last, tensor)
        return place, last

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        if len(args) > len(self.input_names):
            raise TypeError(f"{len(args)} inputs for a graph that takes {len(self.input_names)}: "
                            f"{', '.join(self.input_names)}")
        given = {**dict(zip(self.input_names, args)), **kwargs}
        if missing := [n for n in self.input_names if n not in given]:
            raise TypeError(f"no value for the inputs {', '.join(missing)} of the graph")
        if foreign := given.keys() - {*self.input_names, *self._places}:
            raise TypeError(f"the graph has no inputs {', '.join(sorted(foreign))}; it has "
                            f"{', '.join(self.input_names)}")
        values = {name: getattr(place, last) for name, (place, last) in self._places.items()}
        values |= {k: _as_value(v) for k, v in given.items()}
        results = self._graph.run([values.pop(n) for n in self._graph.inputs], values)
        return results[0] if len(results) == 1 else tuple(results)

    def extra_repr(self) -> str:
        kinds: dict[str, int] = {}
        for node in self._graph.nodes:
            kinds[node.name] = kinds.get(node.name, 0) + 1
        counts = ", ".join(f"{k} x{n}" if n > 1 else k for k,
                           n in sorted(kinds.items(), key=lambda kv: -kv[1]))
        return (f"{self.title}: {', '.join(self.input_names)} -> {', '.join(self.output_names)}; "
                f"{len(self._graph.nodes)} nodes: {counts}")


def _as_value(x: Any) -> Any:
    if isinstance(x, np.ndarray):
        return from_numpy(x if x.flags.writeable else x.copy())
    if isinstance(x, (list, tuple)):
        return [_as_value(v) for v in x]
    return from_numpy(np.asarray(x)) if isinstance(x, np.generic) else x


def load(f: Any) -> OnnxModule:
    """The module that an ONNX file describes: trainable, printable, its weights under their names.

    f: a path, a binary file, its bytes, or a ``ModelProto``. Nothing in the file is executed; weights
    outside of it are read from the folder of the model only. Raises CheckpointError for what is damaged or
    no ONNX, OnnxError naming all operators that are not known, MissingExtraError without the package onnx.

    >>> model = fw.onnx.load("model.onnx")  # doctest: +SKIP
    """
    onnx = need_onnx("onnx.load")
    proto, folder = _message(onnx, f)
    try:
        onnx.checker.check_model(proto if folder is None else _named_only(onnx, proto))
    except onnx.checker.ValidationError as error:
        raise CheckpointError(f"onnx.load: ONNX's checker refuses the file: {error}") from None
    except (ValueError, RuntimeError, UnicodeDecodeError) as error:
        raise CheckpointError(f"onnx.load: the file is damaged: {error}") from None
    try:
        return _module(onnx, proto, folder)
    except (FrameworkError, MemoryError):
        raise
    except (ValueError, TypeError, KeyError, IndexError, AttributeError, RecursionError, RuntimeError,
            OverflowError) as error:
        raise CheckpointError(f"onnx.load: the file is damaged: {type(error).__name__}: {error}") from error


def _message(onnx: Any, f: Any) -> tuple[Any, Path | None]:
    folder = None
    if isinstance(f, onnx.ModelProto):
        return f, None
    if isinstance(f, (bytes, bytearray)):
        data = bytes(f)
    elif hasattr(f, "read"):
        data = f.read()
    else:
        path = Path(f)
        data, folder = path.read_bytes(), path.absolute().parent
    proto = onnx.ModelProto()
    try:
        proto.ParseFromString(data)
    except Exception as error:
        raise CheckpointError(f"onnx.load: this is no ONNX file, or a damaged one: {error}") from None
    if not proto.HasField("graph") or not proto.opset_import:
        raise CheckpointError("onnx.load: there is no graph with a version of the operators in this file")
    return proto, folder


def _named_only(onnx: Any, proto: Any) -> Any:
    """For the checker, which looks for files of weights from the working directory: without them."""
    outside = [t for t in proto.graph.initializer if t.data_location == onnx.TensorProto.EXTERNAL]
    if not outside:
        return proto
    copy = onnx.ModelProto()
    copy.CopyFrom(proto)
    for t in [t for t in copy.graph.initializer if t.data_location == onnx.TensorProto.EXTERNAL]:
        copy.graph.input.append(onnx.helper.make_tensor_value_info(t.name, t.data_type, list(t.dims)))
        copy.graph.initializer.remove(t)
    return copy


def _module(onnx: Any, proto: Any, folder: Path | None) -> OnnxModule:
    versions = {_domain(s.domain): s.version for s in proto.opset_import}
    functions: dict[tuple[str, str], Function] = {}
    unknown: dict[str, None] = {}
    for f in _in_order(proto.functions):
        inner = Reader(onnx, {_domain(s.domain): s.version for s in f.opset_import} or versions, functions,
                       folder)
        defaults = {a.name: _value(onnx, a, inner) for a in f.attribute_proto}
        functions[_domain(f.domain), f.name] = Function(inner.function(f), defaults)
        unknown |= inner.unknown
    reader = Reader(onnx, versions, functions, folder)
    graph = proto.graph
    if graph.sparse_initializer:
        raise OnnxError("onnx.load: sparse weights are not read")
    weights = {t.name: tensor_of(onnx, t, folder) for t in graph.initializer}
    nodes = reader.nodes(graph.node)
    unknown |= reader.unknown
    if unknown:
        raise OnnxError(f"onnx.load: not known here: {', '.join(unknown)}")
    settings = {n.inputs[i] for n in nodes for i in _SETTINGS.get(n.name, ()) if i < len(n.inputs)}
    inputs = [i.name for i in graph.input if i.name not in weights]
    _check_names(nodes, {*inputs, *weights}, [o.name for o in graph.output])
    made = Graph(nodes, inputs, [o.name for o in graph.output], {}, versions)
    return OnnxModule(made, inputs, {}, weights, settings, graph.name or "graph")


def _in_order(functions: Any) -> list:
    """Functions, those that others call before these."""
    left = {(_domain(f.domain), f.name): f for f in functions}
    found: list = []

    def visit(key: tuple[str, str], path: tuple) -> None:
        if key not in left:
            return
        if key in path:
            raise CheckpointError(f"onnx.load: the function {key[1]} calls itself")
        for node in left[key].node:
            visit((_domain(node.domain), node.op_type), (*path, key))
        if key in left:
            found.append(left.pop(key))
    for key in list(left):
        visit(key, ())
    return found


def _check_names(nodes: list[Node], known: set[str], outputs: list[str]) -> None:
    """Every value is made before it is used."""
    have = set(known)
    for node in nodes:
        used = {x for x in node.inputs if x}
        for value in node.attributes.values():
            if isinstance(value, Graph):
                used |= value.free()
        if lost := used - have:
            raise CheckpointError(f"onnx.load: {node.name} {node.label!r} uses {sorted(lost)[0]!r}, which "
                                  f"is not made before it")
        have |= {*node.outputs}
    if lost := set(outputs) - have:
        raise CheckpointError(f"onnx.load: nothing makes the output {sorted(lost)[0]!r}")
