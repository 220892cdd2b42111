"""Sizes that differ from call to call: what the same step was given in runs at several sizes, as one.

A dynamic axis is known by running the function at several lengths of it. A number that was the same in all
runs is that number; one that differed is an ``Extent``, the vector of what it was in each, which must be
explained as a dimension of an earlier value (times, plus or divided by a constant) or it is refused: nothing
is baked.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..tensor import Tensor
from .trace import CONSTANT, WEIGHT, OnnxError, Ref, Step, Trace


class Extent:
    """A whole number that was ``at[i]`` in run i; arithmetic is that of the numbers."""

    __slots__ = ("at",)

    def __init__(self, at: Sequence[int]) -> None:
        self.at = tuple(int(n) for n in at)

    def _with(self, other: Any, function: Callable) -> Any:
        if isinstance(other, Extent):
            return size_of([function(a, b) for a, b in zip(self.at, other.at)])
        if isinstance(other, (int, np.integer)):
            return size_of([function(a, int(other)) for a in self.at])
        return NotImplemented

    def __add__(self, other: Any) -> Any:
        return self._with(other, lambda a, b: a + b)

    def __sub__(self, other: Any) -> Any:
        return self._with(other, lambda a, b: a - b)

    def __rsub__(self, other: Any) -> Any:
        return self._with(other, lambda a, b: b - a)

    def __mul__(self, other: Any) -> Any:
        return self._with(other, lambda a, b: a * b)

    def __floordiv__(self, other: Any) -> Any:
        return self._with(other, lambda a, b: a // b)

    def __neg__(self) -> Any:
        return Extent([-a for a in self.at])

    __radd__, __rmul__ = __add__, __mul__

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Extent) and self.at == other.at

    def __hash__(self) -> int:
        return hash(self.at)

    def __int__(self) -> int:
        raise TypeError(f"it has to be known beforehand, but an Extent depends on a dynamic axis {self.at}")

    __index__ = __int__

    def __repr__(self) -> str:
        return f"Extent{self.at}"


class Repeated:
    """A tuple of one number, ``count`` times, where the count differed between the runs."""

    def __init__(self, item: Any, count: Extent) -> None:
        self.item = item
        self.count = count


class Varies:
    """What differed between the runs and is no whole number: an operation that needs it refuses."""

    def __init__(self, values: list) -> None:
        self.values = values

    def __repr__(self) -> str:
        return f"a value that differs between runs ({', '.join(map(str, self.values[:3]))})"


def size_of(numbers: Sequence[int]) -> Any:
    """One number, if it was the same in all runs, else an Extent."""
    return int(numbers[0]) if all(n == numbers[0] for n in numbers) else Extent(numbers)


def unified(values: list) -> Any:
    """What the runs were given at one place, as one."""
    first = values[0]
    if isinstance(first, Ref):
        return first if all(type(v) is Ref and v == first for v in values) else Varies(values)
    if isinstance(first, bool) or first is None or isinstance(first, str):
        return first if all(type(v) is type(first) and v == first for v in values) else Varies(values)
    if isinstance(first, (int, np.integer)):
        if all(isinstance(v, (int, np.integer)) and not isinstance(v, bool) for v in values):
            return size_of(values)
        return Varies(values)
    if isinstance(first, (float, np.floating, complex)):
        same = all(v == first or v != v and first != first for v in values)
        return first if same else Varies(values)
    if isinstance(first, slice):
        return slice(*[unified([getattr(v, part) for v in values]) for part in ("start", "stop", "step")]) \
            if all(isinstance(v, slice) for v in values) else Varies(values)
    if isinstance(first, (tuple, list)):
        if not all(type(v) is type(first) for v in values):
            return Varies(values)
        if any(len(v) != len(first) for v in values):
            flat = [set(v) for v in values if all(isinstance(n, int) for n in v)]
            if len(flat) == len(values) and all(len(s) == 1 for s in flat):
                return Repeated(unified([next(iter(s)) for s in flat]), Extent([len(v) for v in values]))
            return Varies(values)
        parts = [unified(list(part)) for part in zip(*values)]
        if hasattr(first, "_fields"):
            return type(first)(*parts)
        return parts if type(first) is list else tuple(parts)
    if isinstance(first, dict):
        if any(v.keys() != first.keys() for v in values):
            return Varies(values)
        return {k: unified([v[k] for v in values]) for k in first}
    if isinstance(first, (Tensor, np.ndarray)):
        arrays = [getattr(v, "_array", v) for v in values]
        return first if all(same_array(arrays[0], a) for a in arrays) else Varies(values)
    if isinstance(first, Step):
        return first
    try:
        same = all(v is first or v == first for v in values)
    except Exception:  # what cannot be compared is not the same
        same = False
    return first if same else Varies(values)


def same_array(a: Any, b: Any) -> bool:
    """Whether two arrays are one, or hold the same."""
    return a is b or a.shape == b.shape and a.dtype == b.dtype and a.tobytes() == b.tobytes()


def joined(traces: list[Trace], sizes: list[str]) -> Trace:
    """The first trace, in which numbers that differ in the others have become Extents."""
    first = traces[0]
    for other, at in zip(traces[1:], sizes[1:]):
        for mine, its in zip(first.steps, other.steps):
            if (mine.kind, mine.name, [type(x) for x in mine.inputs], mine.outputs) != \
                    (its.kind, its.name, [type(x) for x in its.inputs], its.outputs):
                raise OnnxError(f"export: the program takes another way at other sizes: at {sizes[0]} it "
                                f"computes "
                                f"{mine.name} in {mine.where}; at {at} {its.name} in {its.where}. Leave the "
                                f"axis out of dynamic_axes, or write it so that all sizes go one way")
        if len(first.steps) != len(other.steps) or first.outputs != other.outputs:
            raise OnnxError(f"export: the program takes another way at other sizes: {len(first.steps)} "
                            f"operations at {sizes[0]}, {len(other.steps)} at {at}")
    for i, value in enumerate(first.values):
        others = [t.values[i] for t in traces]
        if any(len(v.shape) != len(value.shape) for v in others):
            raise OnnxError("export: a tensor has another number of dimensions at other sizes")
        value.shape = tuple(size_of(s) for s in zip(*[v.shape for v in others]))
        if value.kind in (CONSTANT, WEIGHT) and not all(same_array(value.array, v.array) for v in others):
            value.array = None  # whoever uses it refuses
        elif value.array is not None and not all(
                v.array is not None and same_array(value.array, v.array) for v in others):
            value.array = None
    for steps in zip(*[t.steps for t in traces]):
        steps[0].inputs = tuple(unified(list(x)) for x in zip(*[s.inputs for s in steps])) \
            if len({len(s.inputs) for s in steps}) == 1 else (Varies([s.inputs for s in steps]),)
        if steps[0].kind == "put":
            steps[0].settings = {"cut": steps[0].settings["cut"]}
        else:
            steps[0].settings = unified([s.settings for s in steps])
    return first
