"""A model file under way: the values that are in it, and the steps that the traced operations become."""

import itertools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ...onnx.points import Points
from ...onnx.sizes import Extent, Varies
from ...onnx.trace import CONSTANT, WEIGHT, Ref, Trace
from ...onnx.trace import Step as Traced
from ...onnx.trace import Value as TracedValue
from .. import format as file
from ..format import Size, Step, Writer


class Unsupported(Exception):
    """What the library cannot do."""


class Model:
    """The steps of a model file (``writer``). What lowers an operation asks for the numbers of its operands
    (``value``), may add steps of its own (``add``), and ends in the step that gives the results of the traced
    operation (``give``)."""

    def __init__(self, trace: Trace, points: Points) -> None:
        self.trace = trace
        self.labels = list(points.base)
        self.points = points.all
        self.writer = Writer(self.labels)
        self.numbers: dict[Ref, int] = {}  # of values in the file
        self.symbols: dict[Extent, int] = {}  # of sizes that are measured
        self.step: Traced  # the operation that is lowered now
        self.wanted = set(trace.outputs)
        for step in trace.steps:
            self.wanted.update(x for x in step.inputs if isinstance(x, Ref))

    def name_outputs(self, names: list[str]) -> None:
        self.writer.outputs = [(self.value(ref), name) for ref, name in zip(self.trace.outputs, names)]

    # -- values ------------------------------------------------------------------------------------

    def new_value(self, kind: int, dtype: str, name: str = "", sizes: Any = (), array: Any = None) -> int:
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
        return self.new_value(file.CONSTANT, array.dtype.name, name, array.shape, np.ascontiguousarray(array))

    def value(self, x: Any) -> int:
        """The number of an operand in the file; -1 for None."""
        if x is None:
            return -1
        if isinstance(x, Varies):
            raise Unsupported("an operand that differs with the sizes in a way that is not followed")
        if not isinstance(x, Ref):
            raise Unsupported(f"{x!r} among its operands")
        if x not in self.numbers:
            value = self.trace.values[x]
            if value.kind not in (WEIGHT, CONSTANT) or value.array is None:
                raise Unsupported(
                    "a tensor that comes from values or sizes of the inputs by ways that are no "
                    "operations (NumPy, say)")
            self.numbers[x] = self.constant(value.array, value.name)
        return self.numbers[x]

    def values(self, *operands: Any) -> list[int]:
        return [self.value(x) for x in operands]

    def size(self, n: Any) -> "int | Size":
        """A number that may depend on the dynamic axes."""
        if isinstance(n, Size):
            return n
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
        return self._measured(n)

    def _measured(self, n: Extent) -> Size:
        """A number that follows from a size of a value that is in the file: that becomes a symbol."""
        for same in (True, False):
            for ref, number in reversed(self.numbers.items()):
                for dim, size in enumerate(self.trace.values[ref].shape):
                    found = None
                    if isinstance(size, Extent):
                        found = (1, 0, 1) if size == n else None if same else _line(list(size.at), n.at)
                    if found is not None:
                        return Size(*found, 1 << self._symbol(size, number, dim))
        raise Unsupported(f"a number that follows from the sizes in no simple way {n.at}")

    def _symbol(self, size: Extent, number: int, dim: int) -> int:
        """The symbol of a size of a value, which is measured here if it was not before."""
        if size not in self.symbols:
            symbols = self.writer.symbols
            if len(symbols) >= file.MOST_SYMBOLS:
                raise Unsupported("so many sizes that depend on each other")
            self.symbols[size] = len(symbols)
            symbols.append(f"size {len(symbols)}")
            self.writer.steps.append(Step("measure", [number], [dim, self.symbols[size]], (), (), []))
        return self.symbols[size]

    def sizes(self, shape: Sequence) -> list:
        """The numbers of a shape; -1 for one that has to follow from the others."""
        found: list = []
        for n in shape:
            try:
                found.append(self.size(n))
            except Unsupported:
                if -1 in found:
                    raise
                found.append(-1)
        return found

    def result(self, i: int = 0) -> TracedValue:
        """What is known of a result of the operation."""
        return self.trace.values[self.step.outputs[i]]

    def shape(self, x: Any) -> tuple:
        return self.trace.values[x].shape

    def dtype(self, x: Any) -> str:
        return self.trace.values[x].dtype.name

    # -- steps -------------------------------------------------------------------------------------

    def add(self, name: str, inputs: Sequence[int], numbers: Any = (), reals: Any = (), words: Any = (),
            dtype: str = "float32") -> int:
        """A step between, with one result, whose number is returned."""
        result = self.new_value(file.RESULT, dtype)
        self.writer.steps.append(Step(name, inputs, [self.size(n) for n in numbers], reals, words, [result]))
        return result

    def give(self, name: str, inputs: Sequence[int], numbers: Any = (), reals: Any = (), words: Any = (),
             results: int = 1) -> None:
        """The step whose results are the first ones of the operation."""
        outputs, sizes = [], [self.size(n) for n in numbers]  # which may be measured, before the step
        for i in range(results):
            wanted = i < len(self.step.outputs) and self.step.outputs[i] in self.wanted
            outputs.append(self.new_value(file.RESULT, self.result(i).dtype.name) if wanted else -1)
            if wanted:
                self.numbers[self.step.outputs[i]] = outputs[-1]
        self.writer.steps.append(Step(name, inputs, sizes, reals, words, outputs))

    def same(self, number: int) -> None:
        """The operation gives a value that is in the file already."""
        self.numbers[self.step.outputs[0]] = number


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
