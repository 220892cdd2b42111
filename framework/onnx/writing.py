"""``export``: a model as an ONNX file, which is written only after it has been checked and has run.

The model is run at several sizes of its dynamic axes (``points.py``); each run is written down
(``trace.py``), the runs are made one (``sizes.py``), and every step is lowered by what its record says
(``graph.py``, ``lowering/``). The finished model then runs at other sizes, batches of 1, 2 and 5 among
them, and must give what the model gives (``checking.py``).
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..tensor import Tensor
from .calls import Call, symbols_of
from .checking import verified
from .lowering.traces import lowered
from .points import Points
from .protobuf import need_onnx, proto_of, write

OPSETS = range(17, 24)
DEFAULT_OPSET = 20


class ONNXProgram:
    """What ``export`` gives: the model (``model_proto``), and the sizes at which it was found equal
    (``checked``).

    checked: a list of (sizes by name, the largest difference from the model itself relative to its values).
    beside: weights by name that no message holds, above 2 GB in all; ``model_proto`` only names them.
    """

    def __init__(self, model_proto: Any, checked: list, beside: dict[str, np.ndarray]) -> None:
        self.model_proto = model_proto
        self.checked = checked
        self.beside = beside

    def save(self, f: Any, external_data: bool | None = None) -> None:
        """Write it to a path or a file; with large weights beside it (``external_data``)."""
        write(self.model_proto, self.beside, f, external_data)

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
    symbols = symbols_of(call, dynamic_axes, dynamic_shapes)
    with call:
        points = Points(call, symbols)
        trace = points.unified()
        graph, outputs = lowered(trace, version)
        names = call.output_names(len(outputs))
        proto, beside = proto_of(onnx, graph, call, trace, outputs, names, points, version)
        checked = verified(onnx, proto, beside, call, points, names, graph, verify)
    if f is not None:
        write(proto, beside, f, external_data)
    return ONNXProgram(proto, checked, beside)
