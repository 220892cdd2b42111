"""The model as ONNX's message, and its file: large weights lie beside it."""

import os
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import MissingExtraError
from ..version import __version__
from .calls import Call
from .graph import CODES, Edge, Graph, Node
from .points import Points
from .sizes import Extent
from .trace import INPUT, OnnxError, Trace

_EXTERNAL_FROM = 1 << 31  # bytes of a protobuf message at most


def need_onnx(what: str) -> Any:
    """The ``onnx`` package; MissingExtraError where it is not installed."""
    try:
        import onnx
    except ImportError as error:
        raise MissingExtraError(f"{what} needs the package onnx; install it with: pip install "
                                f"'framework[onnx]'") from error
    return onnx


def proto_of(onnx: Any, g: Graph, call: Call, trace: Trace, outputs: list[Edge], names: list[str],
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


def is_large(proto: Any) -> bool:
    return sum(len(t.raw_data) for t in proto.graph.initializer) > _EXTERNAL_FROM - (1 << 24)


def write(proto: Any, f: Any, external_data: bool | None) -> None:
    """To a path by way of a file beside it, so that there is the whole of it or what was there before."""
    onnx = need_onnx("onnx.export")
    outside = is_large(proto) if external_data is None else external_data
    if hasattr(f, "write"):
        if outside:
            raise OnnxError("export: the weights lie in a file of their own beside the model; give a path")
        f.write(proto.SerializeToString())
        return
    path = Path(f)
    with tempfile.TemporaryDirectory(dir=path.parent, prefix=".onnx-") as folder:
        new = Path(folder) / path.name
        saved(onnx, proto, new, outside)
        for part in sorted(Path(folder).iterdir(), key=lambda p: p == new):  # the model last
            os.replace(part, path.parent / part.name)


def saved(onnx: Any, proto: Any, path: Path, outside: bool) -> None:
    if not outside:
        path.write_bytes(proto.SerializeToString())
        return
    copy = onnx.ModelProto()
    copy.CopyFrom(proto)
    onnx.save_model(copy, str(path), save_as_external_data=True, all_tensors_to_one_file=True,
                    location=f"{path.name}.data", size_threshold=0)
