"""The steps of a trace one by one, each by what its record says."""

from collections.abc import Callable
from functools import partial

import numpy as np

from ...onnx.lowering.traces import live
from ...onnx.points import Points
from ...onnx.sizes import Extent
from ...onnx.trace import INPUT, MAKE, Ref, Step, Trace
from ...ops.language.elementwise import Elementwise
from .. import format as file
from . import images, layers, reductions, shapes
from .model import Model, Unsupported
from .programs import elementwise

FUNCTIONS: dict[str, Callable] = {  # what a record's ``runtime`` may name
    name: function for part in (shapes, reductions, layers, images) for name, function in vars(part).items()
    if getattr(function, "__module__", "") == part.__name__ and not name.startswith("_")}


class _Names(dict):
    """What the names of an expression mean: inputs and settings, and the functions here."""

    def __init__(self, model: Model, given: dict) -> None:
        super().__init__(given)
        self.model = model

    def __missing__(self, name: str) -> Callable:
        return partial(FUNCTIONS[name], self.model)


def lowered(trace: Trace, points: Points) -> tuple[Model, list[str]]:
    """The model file under way, and what of the trace is not in the library, with its lines."""
    model = Model(trace, points)
    for i, value in enumerate(trace.values):
        if value.kind == INPUT:
            sizes = [model.size(n) for n in value.shape]
            model.numbers[Ref(i)] = model.new_value(file.INPUT, value.dtype.name, value.name, sizes)
    lacking: dict[str, None] = {}  # in the order in which they were met
    lost: set[Ref] = set()
    for step in live(trace):
        if any(isinstance(x, Ref) and x in lost for x in step.inputs):
            lost.update(step.outputs)
            continue
        before = len(model.writer.steps)
        try:
            _lower(model, step)
        except Unsupported as error:
            del model.writer.steps[before:]
            lost.update(step.outputs)
            lacking.setdefault(f"{step.name} in {step.where}: {error}")
    return model, list(lacking)


def _lower(to: Model, step: Step) -> None:
    to.step = step
    if step.kind == MAKE:
        return _made(to, step)
    if step.kind != "op":
        raise Unsupported("writing into a part of a tensor")
    text = getattr(step.op, "runtime", None)
    if text is not None:
        inputs = (step.inputs,) if step.op.variadic else step.inputs
        given = {**dict(zip(step.op.inputs, inputs)), **step.settings}
        eval(compile(text, "<runtime>", "eval"), {"__builtins__": {}}, _Names(to, given))
    elif isinstance(step.op, Elementwise):
        elementwise(to, step)
    else:
        raise Unsupported("the library has no such operation")


def _made(to: Model, step: Step) -> None:
    """A tensor of no tensors: what is the same in all runs is a constant."""
    value = to.result()
    if value.array is not None and not any(isinstance(n, Extent) for n in value.shape):
        return to.same(to.constant(value.array))
    name, data = step.name, step.inputs
    fill = data[0] if data else 0
    if name in ("zeros", "ones", "full", "empty") and isinstance(fill, (bool, int, float)):
        return to.give("expand", [to.constant(np.array(fill, value.dtype.numpy))], value.shape)
    if name == "arange" and len(data) == 3 and value.dtype.name == "int64" and data[0] == 0 and data[2] == 1:
        return to.give("arange", [], [data[1]])
    raise Unsupported(f"what {name} makes depends on the values or sizes of the inputs")
