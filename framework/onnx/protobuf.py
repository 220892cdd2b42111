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
_SMALL = 128              # bytes of tensors that always stay in the message: sizes, numbers
_ALIGNED = 4096           # where tensors begin in a file beside it, so that it can be mapped


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
           opset: int) -> tuple[Any, dict[str, np.ndarray]]:
    """The model as ONNX's message, with only what leads to an output in it; and the weights by name that are
    too large for a message, which then only refers to them.
    """
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
    arrays = {name: np.ascontiguousarray(a) if a.ndim else a
              for name, a in {**g.weights, **g.constants}.items() if name in wanted}
    large = sum(a.nbytes for a in arrays.values()) > _EXTERNAL_FROM - (1 << 24)
    beside = {name: a for name, a in arrays.items() if large and a.nbytes > _SMALL}
    weights = [_named(onnx, name, a) if name in beside else onnx.numpy_helper.from_array(a, name)
               for name, a in arrays.items()]
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
    model = helper.make_model(graph, opset_imports=sets, producer_name="framework",
                              producer_version=__version__,
                              ir_version=helper.find_min_ir_version_for(sets))
    return model, beside


def _named(onnx: Any, name: str, array: np.ndarray) -> Any:
    """A tensor whose numbers lie outside of the message."""
    kind = onnx.helper.np_dtype_to_tensor_dtype(array.dtype)
    return onnx.TensorProto(name=name, dims=array.shape, data_type=kind,
                            data_location=onnx.TensorProto.EXTERNAL)


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


def write(proto: Any, beside: dict[str, np.ndarray], f: Any, external_data: bool | None) -> None:
    """To a path by way of a file beside it, so that there is the whole of it or what was there before."""
    onnx = need_onnx("onnx.export")
    outside = bool(beside) or bool(external_data)
    if hasattr(f, "write"):
        if outside:
            raise OnnxError("export: the weights lie in a file of their own beside the model; give a path")
        f.write(proto.SerializeToString())
        return
    path = Path(f)
    with tempfile.TemporaryDirectory(dir=path.parent, prefix=".onnx-") as folder:
        new = Path(folder) / path.name
        saved(onnx, proto, beside, new, outside)
        for part in sorted(Path(folder).iterdir(), key=lambda p: p == new):  # the model last
            os.replace(part, path.parent / part.name)


def saved(onnx: Any, proto: Any, beside: dict[str, np.ndarray], path: Path, outside: bool) -> None:
    """The message as a file; ``outside``: with the numbers of tensors that are not small in a second one."""
    if not outside:
        path.write_bytes(proto.SerializeToString())
        return
    copy = onnx.ModelProto()
    copy.CopyFrom(proto)
    with open(f"{path}.data", "wb") as file:
        for tensor in copy.graph.initializer:
            data: Any = beside.get(tensor.name)
            if data is None and len(tensor.raw_data) <= _SMALL:
                continue
            data = tensor.raw_data if data is None else memoryview(data.reshape(-1).view(np.uint8))
            file.seek(-file.tell() % _ALIGNED, os.SEEK_CUR)
            places = {"location": f"{path.name}.data", "offset": file.tell(), "length": len(data)}
            file.write(data)
            tensor.ClearField("raw_data")
            tensor.data_location = onnx.TensorProto.EXTERNAL
            for key, value in places.items():
                tensor.external_data.add(key=key, value=str(value))
    path.write_bytes(copy.SerializeToString())
