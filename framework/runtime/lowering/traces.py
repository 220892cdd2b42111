"""The steps of a trace one by one, each by what its record says."""

import math
from collections.abc import Callable
from functools import partial

import numpy as np

from ...dtypes import int64
from ...onnx.lowering.traces import live
from ...onnx.points import Points
from ...onnx.sizes import Extent
from ...onnx.trace import INPUT, MAKE, STEP, Ref, Step, Trace, Value
from ...ops.language.elementwise import Elementwise
from .. import format as file
from . import images, layers, programs, reductions, shapes
from .model import Model, Unsupported
from .programs import elementwise

FUNCTIONS: dict[str, Callable] = {  # what a record's ``runtime`` may name
    name: function for part in (shapes, reductions, layers, images, programs)
    for name, function in vars(part).items()
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
        return _written(to, step)
    text = getattr(step.op, "runtime", None)
    if text is not None:
        inputs = (step.inputs,) if step.op.variadic else step.inputs
        given = {**dict(zip(step.op.inputs, inputs)), **step.settings}
        _evaluate(to, text, given)
    elif isinstance(step.op, Elementwise):
        elementwise(to, step)
    else:
        raise Unsupported("the library has no such operation")


def _evaluate(to: Model, text: str, given: dict) -> None:
    """The expression of a record's ``runtime``."""
    eval(compile(text, "<runtime>", "eval"), {"__builtins__": {}}, _Names(to, given))


def _written(to: Model, step: Step) -> None:
    """A tensor with another value in the part that a view shows: at its places among those of the tensor."""
    base, value, *others = step.inputs
    cut = step.settings["cut"]
    shape, dtype, item = to.shape(base), to.dtype(base), to.trace.values[value]
    if item.dtype.name != dtype:
        raise Unsupported(f"writing {item.dtype.name} into {dtype}")
    count = math.prod(n for n in shape) if all(isinstance(n, int) for n in shape) else None
    if count is None:
        raise Unsupported("writing into a part of a tensor of a dynamic size")
    places = to.constant(np.arange(count).reshape(shape))
    to.trace.values += [Value(STEP, "", shape, int64), Value(STEP, "", item.shape, int64)]
    here, part = Ref(len(to.trace.values) - 2), Ref(len(to.trace.values) - 1)
    view = Step("op", cut.op, (here, *others), cut.settings, step.where, step.scope)
    view.outputs = [part]
    to.numbers[here] = places
    to.wanted.add(part)
    _lower(to, view)
    to.step = step
    flat = to.add("reshape", [to.value(base)], [count], dtype=dtype)
    values = to.add("reshape", [to.value(value)], [-1], dtype=dtype)
    index = to.add("reshape", [to.numbers[part]], [-1], dtype="int64")
    to.give("reshape", [to.add("scatter", [flat, values, index], [0], dtype=dtype)], shape)


def _made(to: Model, step: Step) -> None:
    """A tensor of no tensors: what is the same in all runs is a constant."""
    value = to.result()
    if value.array is not None and not any(isinstance(n, Extent) for n in value.shape):
        return to.same(to.constant(value.array))
    if step.op.runtime is None:
        raise Unsupported(f"what {step.name} makes depends on the values or sizes of the inputs")
    _evaluate(to, step.op.runtime, dict(zip(step.op.arguments, step.inputs)))
