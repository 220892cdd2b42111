"""From a trace to the steps of a model file: what each record is in the library.

``RULES`` maps the names of records to functions of (lowered, step), which add steps. Elementwise records
need none: their expression becomes a program (``ops/language/program.py``), the very one that Python's
kernels run.
"""

import itertools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ..onnx.lowering.traces import live
from ..onnx.points import Points
from ..onnx.sizes import Extent, Repeated, Varies
from ..onnx.trace import CONSTANT, INPUT, MAKE, WEIGHT, Ref, Trace
from ..onnx.trace import Step as Traced
from ..ops.language.elementwise import Elementwise
from ..ops.language.program import NoProgram, compile_program
from . import format as file
from .format import Size, Step, Writer


class Unsupported(Exception):
    """What the library cannot do."""


class Lowered:
    """A trace as the steps of a model file (``writer``); lacking: what could not be lowered, with its
    lines."""

    def __init__(self, trace: Trace, points: Points) -> None:
        self.trace = trace
        self.labels = list(points.base)
        self.points = points.all
        self.writer = Writer(self.labels)
        self.numbers: dict[Ref, int] = {}  # of values in the file
        self.lacking: list[str] = []
        lost: set[Ref] = set()
        for i, value in enumerate(trace.values):
            if value.kind == INPUT:
                self.numbers[Ref(i)] = self._value(
                    file.INPUT, value.dtype.name, value.name, [self.size(n) for n in value.shape]
                )
        for step in live(trace):
            if any(isinstance(x, Ref) and x in lost for x in step.inputs):
                lost.update(step.outputs)
                continue
            before = len(self.writer.steps)
            try:
                self._step(step)
            except Unsupported as error:
                del self.writer.steps[before:]
                lost.update(step.outputs)
                line = f"{step.name} in {step.where}: {error}"
                if line not in self.lacking:
                    self.lacking.append(line)

    def finish(self, names: list[str]) -> None:
        """Name the outputs."""
        self.writer.outputs = [(self.value(ref), name) for ref, name in zip(self.trace.outputs, names)]

    # -- values ------------------------------------------------------------------------------------

    def _value(self, kind: int, dtype: str, name: str = "", sizes: Any = (), array: Any = None) -> int:
        if dtype not in file.TYPES:
            raise Unsupported(f"there are no numbers of {dtype}")
        return self.writer.value(kind, dtype, name, sizes, array)

    def constant(self, array: np.ndarray, name: str = "") -> int:
        """An array in the file; one that lies otherwise than row by row is turned, so that it lies as it
        did."""
        order = sorted(range(array.ndim), key=lambda d: (-array.strides[d], d))
        if array.ndim > 1 and not array.flags.c_contiguous and array.transpose(order).flags.c_contiguous:
            number = self.constant(array.transpose(order), name)
            return self.add("permute", [number], np.argsort(order).tolist(), dtype=array.dtype.name)
        if not array.size:
            raise Unsupported("a tensor without elements")
        return self._value(file.CONSTANT, array.dtype.name, name, array.shape, np.ascontiguousarray(array))

    def value(self, x: Any) -> int:
        """The number of an operand in the file; -1 for None."""
        if x is None:
            return -1
        if not isinstance(x, Ref):
            raise Unsupported(
                f"{x!r} among its operands"
                if not isinstance(x, Varies)
                else "an operand that differs with the sizes in a way that is not followed"
            )
        if x not in self.numbers:
            value = self.trace.values[x]
            if value.kind not in (WEIGHT, CONSTANT) or value.array is None:
                raise Unsupported(
                    "a tensor that comes from values or sizes of the inputs by ways that are no "
                    "operations (NumPy, say)"
                )
            self.numbers[x] = self.constant(value.array, value.name)
        return self.numbers[x]

    def size(self, n: Any) -> "int | Size":
        """A number that may depend on the dynamic axes."""
        if isinstance(n, (bool, int, np.integer)) and not isinstance(n, Ref):
            return int(n)
        if not isinstance(n, Extent):
            raise Unsupported(f"{n!r} where a number is wanted")
        for count in range(1, len(self.labels) + 1):
            for chosen in itertools.combinations(range(len(self.labels)), count):
                products = [math.prod(p[self.labels[i]] for i in chosen) for p in self.points]
                found = _line(products, n.at)
                if found is not None:
                    return Size(*found, sum(1 << i for i in chosen))
        raise Unsupported(f"a number that follows from the sizes in no simple way {n.at}")

    def made_of(self, step: Traced, i: int = 0) -> Any:
        """What is known of a result."""
        return self.trace.values[step.outputs[i]]

    def shape(self, x: Any) -> tuple:
        return self.trace.values[x].shape

    # -- steps -------------------------------------------------------------------------------------

    def add(
        self,
        name: str,
        inputs: list[int],
        numbers: Any = (),
        reals: Any = (),
        words: Any = (),
        dtype: str = "float32",
    ) -> int:
        """A step with one result, which is given."""
        result = self._value(file.RESULT, dtype)
        self.writer.steps.append(Step(name, inputs, [self.size(n) for n in numbers], reals, words, [result]))
        return result

    def give(
        self,
        step: Traced,
        name: str,
        inputs: list[int],
        numbers: Any = (),
        reals: Any = (),
        words: Any = (),
        results: int = 1,
    ) -> None:
        """A step whose results are the first ones of a traced one."""
        outputs = []
        for i in range(results):
            wanted = i < len(step.outputs) and step.outputs[i] in self.wanted
            outputs.append(self._value(file.RESULT, self.made_of(step, i).dtype.name) if wanted else -1)
            if wanted:
                self.numbers[step.outputs[i]] = outputs[-1]
        self.writer.steps.append(Step(name, inputs, [self.size(n) for n in numbers], reals, words, outputs))

    @property
    def wanted(self) -> set:
        if not hasattr(self, "_wanted"):
            self._wanted = set(self.trace.outputs)
            for s in self.trace.steps:
                self._wanted.update(x for x in s.inputs if isinstance(x, Ref))
        return self._wanted

    def _step(self, step: Traced) -> None:
        if step.kind == MAKE:
            return _made(self, step)
        if step.kind != "op":
            raise Unsupported("writing into a part of a tensor")
        if step.name in RULES:
            return RULES[step.name](self, step, *step.inputs, **step.settings)
        if isinstance(step.op, Elementwise):
            return _elementwise(self, step)
        raise Unsupported("the library has no such operation")


def _line(x: list[int], y: tuple[int, ...]) -> tuple[int, int, int] | None:
    """(factor, more, over) with y = (factor * x + more) / over everywhere."""
    low, high = min(zip(x, y)), max(zip(x, y))
    rise, run = high[1] - low[1], high[0] - low[0]
    if not run or not rise:
        return None
    over = run // math.gcd(rise, run)
    factor = rise * over // run
    more = over * low[1] - factor * low[0]
    return (factor, more, over) if all(factor * a + more == over * b for a, b in zip(x, y)) else None


# -- rules ------------------------------------------------------------------------------------------

RULES: dict[str, Callable] = {}


def rule(*names: str) -> Callable:
    """Use a function for the records of these names."""

    def known(function: Callable) -> Callable:
        RULES.update(dict.fromkeys(names, function))
        return function

    return known


def _made(to: Lowered, step: Traced) -> None:
    value = to.made_of(step)
    ref = step.outputs[0]
    if value.array is not None and not any(isinstance(n, Extent) for n in value.shape):
        to.numbers[ref] = to.constant(value.array)
        return
    name, data = step.name, step.inputs
    fill = data[0] if data else 0
    if name in ("zeros", "ones", "full", "empty") and isinstance(fill, (bool, int, float)):
        return to.give(step, "expand", [to.constant(np.array(fill, value.dtype.numpy))], value.shape)
    if name == "arange" and len(data) == 3 and value.dtype.name == "int64" and data[0] == 0 and data[2] == 1:
        return to.give(step, "arange", [], [data[1]])
    raise Unsupported(f"what {name} makes depends on the values or sizes of the inputs")


_COMPUTED = {"float32", "float64", "int64", "int32"}


def _elementwise(to: Lowered, step: Traced) -> None:
    op = step.op
    try:
        program = compile_program(op.expr, (*op.inputs, *op.settings), op.settings)
    except NoProgram as error:
        raise Unsupported(f"its expression has no program ({error})") from None
    kinds = {
        to.trace.values[x].dtype.name
        for x, truth in zip(step.inputs, program.truth)
        if isinstance(x, Ref) and not truth
    }
    if len(kinds) != 1 or not kinds <= _COMPUTED:
        raise Unsupported(f"programs do not compute with {' and '.join(sorted(kinds)) or 'truth values'}")
    inputs, reals = [], []
    for x in (*step.inputs, *[step.settings[n] for n in op.settings]):
        if not isinstance(x, Ref) and isinstance(x, (bool, int, float, np.floating, np.integer)):
            inputs.append(-1)
            reals.append(float(x))
        else:
            inputs.append(to.value(x))
    words = [s.name for s in program.steps]
    numbers = [
        sum(1 << i for i, truth in enumerate(program.truth) if truth),
        program.registers,
        program.once,
        int(program.truth_result),
    ]
    for s in program.steps:
        numbers += [s.result, *(s.operands * 3)[:3]]
    to.give(
        step, "program", inputs, numbers, [float(len(program.constants)), *program.constants, *reals], words
    )


@rule("linear")
def _linear(to: Lowered, step: Traced, x: Any, w: Any, b: Any, relu: int = 0) -> None:
    to.give(step, "linear", [to.value(x), to.value(w), to.value(b)], [relu])


@rule("linear_relu")
def _linear_relu(to: Lowered, step: Traced, x: Any, w: Any, b: Any) -> None:
    _linear(to, step, x, w, b, 1)


@rule("matmul")
def _matmul(to: Lowered, step: Traced, x: Any, y: Any) -> None:
    to.give(step, "matmul", [to.value(x), to.value(y)])


@rule("softmax", "log_softmax")
def _softmax(to: Lowered, step: Traced, x: Any, *, dim: int) -> None:
    to.give(step, "softmax", [to.value(x)], [dim % len(to.shape(x)), int(step.name == "log_softmax")])


@rule("reshape", "expand")
def _reshape(to: Lowered, step: Traced, x: Any, **_: Any) -> None:
    to.give(step, step.name, [to.value(x)], to.made_of(step).shape)


@rule("permute")
def _permute(to: Lowered, step: Traced, x: Any, *, dims: Any) -> None:
    to.give(step, "permute", [to.value(x)], [d % len(dims) for d in dims])


@rule("slice")
def _slice(to: Lowered, step: Traced, x: Any, *, key: Any) -> None:
    shape, numbers, out = to.shape(x), [], iter(to.made_of(step).shape)
    key = key if isinstance(key, tuple) else (key,)
    if len(key) > len(shape) or not all(isinstance(k, (slice, int, Extent)) for k in key):
        raise Unsupported(f"the key {key}")
    for n, k in zip(shape, (*key, *[slice(None)] * (len(shape) - len(key)))):
        if isinstance(k, slice):
            by = 1 if k.step is None else k.step
            if not isinstance(by, int):
                raise Unsupported(f"the key {key}")
            first = k.start if k.start is not None else 0 if by > 0 else n - 1
            if isinstance(first, int) and first < 0:
                first = n + first
            numbers += [first, by, next(out)]
        else:
            numbers += [n + k if isinstance(k, int) and k < 0 else k, 1, -1]
    to.give(step, "slice", [to.value(x)], numbers)


@rule("clone", "contiguous")
def _contiguous(to: Lowered, step: Traced, x: Any) -> None:
    to.give(step, "contiguous", [to.value(x)])


@rule("embedding")
def _embedding(to: Lowered, step: Traced, table: Any, index: Any, **_: Any) -> None:
    to.give(step, "embedding", [to.value(table), to.value(index)])


@rule("cat", "stack")
def _join(to: Lowered, step: Traced, *xs: Any, dim: int) -> None:
    fresh = step.name == "stack"
    to.give(step, "join", [to.value(x) for x in xs], [dim % (len(to.shape(xs[0])) + fresh), int(fresh)])


def _spatial(stride: Any, padding: Any, dilation: Any) -> list:
    if any(not isinstance(part, (tuple, list)) for part in (stride, padding, dilation)):
        raise Unsupported(f"padding {padding}")
    return [len(stride), *stride, *padding, *dilation]


@rule("conv", "conv_relu")
def _conv(
    to: Lowered,
    step: Traced,
    x: Any,
    w: Any,
    b: Any,
    *,
    stride: Any,
    padding: Any,
    dilation: Any,
    groups: int,
) -> None:
    to.give(
        step,
        "conv",
        [to.value(x), to.value(w), to.value(b), -1, -1, -1, -1],
        [*_spatial(stride, padding, dilation), groups, int(step.name == "conv_relu")],
        [0.0],
    )


@rule("conv_norm")
def _conv_norm(
    to: Lowered,
    step: Traced,
    x: Any,
    w: Any,
    b: Any,
    mean: Any,
    var: Any,
    weight: Any,
    bias: Any,
    eps: float,
    *,
    stride: Any,
    padding: Any,
    dilation: Any,
    groups: int,
    relu: bool,
) -> None:
    to.give(
        step,
        "conv",
        [to.value(v) for v in (x, w, b, mean, var, weight, bias)],
        [*_spatial(stride, padding, dilation), groups, int(relu)],
        [float(eps)],
    )


@rule("max_pool")
def _max_pool(
    to: Lowered, step: Traced, x: Any, *, kernel: Any, stride: Any, padding: Any, dilation: Any, out: Any
) -> None:
    to.give(step, "max_pool", [to.value(x)], [len(kernel), *kernel, *stride, *padding, *dilation, *out])


@rule("avg_pool")
def _mean_pool(
    to: Lowered,
    step: Traced,
    x: Any,
    *,
    kernel: Any,
    stride: Any,
    padding: Any,
    out: Any,
    include: bool,
    divisor: int | None,
) -> None:
    to.give(
        step,
        "mean_pool",
        [to.value(x)],
        [len(kernel), *kernel, *stride, *padding, *[1] * len(kernel), *out, int(include), divisor or 0],
    )


@rule("layer_norm")
def _layer_norm(
    to: Lowered, step: Traced, x: Any, w: Any, b: Any, *, dims: Any, per: Any, eps: float
) -> None:
    to.give(step, "layer_norm", [to.value(x), to.value(w), to.value(b)], [len(dims)], [float(eps)])


@rule("rms_norm")
def _rms_norm(to: Lowered, step: Traced, x: Any, w: Any, *, dims: Any, per: Any, eps: float) -> None:
    to.give(step, "rms_norm", [to.value(x), to.value(w), -1], [len(dims)], [float(eps)])


@rule("scaled_dot_product_attention")
def _attention(
    to: Lowered,
    step: Traced,
    q: Any,
    k: Any,
    v: Any,
    mask: Any,
    *,
    causal: bool,
    scale: float,
    p: float,
    key: int,
) -> None:
    if p:
        raise Unsupported("dropout")
    to.give(step, "attention", [to.value(x) for x in (q, k, v, mask)], [int(causal)], [float(scale)])


def _steps(sizes: Any) -> list:
    """How many steps, and rows of each."""
    if isinstance(sizes, Repeated):
        return [sizes.count, sizes.item]
    if (
        any(isinstance(n, (Extent, Varies)) and n != sizes[0] for n in sizes)
        or len({str(n) for n in sizes}) != 1
    ):
        raise Unsupported("sequences of several lengths")
    return [len(sizes), sizes[0]]


@rule("lstm", "gru")
def _recurrent(to: Lowered, step: Traced, *operands: Any, sizes: Any, reverse: bool) -> None:
    to.give(
        step,
        step.name,
        [to.value(x) for x in operands],
        [*_steps(sizes), int(reverse)],
        results=3 if step.name == "lstm" else 2,
    )


@rule("rnn")
def _rnn(to: Lowered, step: Traced, *operands: Any, sizes: Any, reverse: bool, relu: bool) -> None:
    to.give(
        step,
        "rnn_relu" if relu else "rnn_tanh",
        [to.value(x) for x in operands],
        [*_steps(sizes), int(reverse)],
        results=2,
    )


@rule("batch_norm_eval")
def _batch_norm(
    to: Lowered, step: Traced, x: Any, mean: Any, var: Any, weight: Any, bias: Any, *, per: Any, eps: float
) -> None:
    to.give(step, "batch_norm", [to.value(v) for v in (x, mean, var, weight, bias)], (), [float(eps)])


@rule("sum", "mean", "amax", "amin")
def _fold(to: Lowered, step: Traced, x: Any, *, dims: Any, keepdim: bool) -> None:
    if to.trace.values[x].dtype.name not in ("float32", "float64") or not dims:
        raise Unsupported(f"of {to.trace.values[x].dtype.name}")
    to.give(
        step, step.name, [to.value(x)], [sum(1 << d % len(to.shape(x)) for d in dims), int(keepdim)]
    )


@rule("cast")
def _cast(to: Lowered, step: Traced, x: Any, *, dtype: Any) -> None:
    name = to.made_of(step).dtype.name
    if name not in ("float32", "float64"):
        raise Unsupported(f"conversions to {name}")
    to.give(step, "cast", [to.value(x)], [file.TYPES[name]])
