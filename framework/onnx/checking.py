"""The finished model beside the one it was made of: what both give at several sizes."""

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from .calls import Call
from .graph import Graph
from .points import Points, shown
from .protobuf import saved
from .trace import OnnxError


def verified(onnx: Any, proto: Any, beside: dict[str, np.ndarray], call: Call, points: Points,
             names: list[str], g: Graph, verify: bool) -> list:
    """Check the model, run it at several sizes, and compare with eager; raise where it differs."""
    with tempfile.TemporaryDirectory() as folder:
        source: Any = Path(folder) / "model.onnx"
        if beside:
            saved(onnx, proto, beside, source, True)
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
        steps = any(n.op in ("QuantizeLinear", "DynamicQuantizeLinear") for n in g.nodes)
        checked = []
        for sizes in points.checks():
            inputs = points.inputs(sizes)
            feeds = {name: t._array.copy() for name, t in inputs.items()}  # the model may write into them
            try:
                expected = call.run(inputs)
            except Exception as error:
                raise OnnxError(f"export: an axis was declared dynamic, but the model itself does not run at "
                                f"{shown(sizes)}: {error}") from error
            used = {i.name for i in proto.graph.input}
            try:
                found = run({k: v for k, v in feeds.items() if k in used})
            except Exception as error:
                raise OnnxError(f"export: the model that was made does not run at {shown(sizes)}: "
                                f"{error}") from error
            worst = 0.0
            for name, a, b in zip(names, expected, found):
                difference = _difference(a, np.asarray(b), draws, steps)
                if not difference <= 1e-4:
                    raise OnnxError(f"export: {name} differs at {shown(sizes)}: the model gives shape "
                                    f"{list(a.shape)}, "
                                    f"the graph {list(np.shape(b))}, relative difference {difference:.2g}; "
                                    f"nothing was written")
                worst = max(worst, difference)
            checked.append((sizes, worst))
    return checked


def _difference(a: np.ndarray, b: np.ndarray, draws: bool, steps: bool) -> float:
    """The largest difference, relative to the largest value; inf where shape or dtype differ. steps: whether
    activations are rounded to 8 bits: a last bit of a float may move one of them by a step.
    """
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
    slack = 1 / 256 if steps else {2: 1 / 64}.get(a.dtype.itemsize, 1.0)  # half precision is as much coarser
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
