"""What a call runs: the kernels behind a public function, found out by listening to one call of it."""

from collections.abc import Callable
from itertools import permutations
from typing import Any
from weakref import ref

import numpy as np

from ..dtypes import DType
from ..quiet import quiet

ndarray = np.ndarray
PLAIN = (int, float, bool, str, type(None), np.dtype, DType, type(Ellipsis), type)
Name = str  # of an array in a plan: e0 an external, v3 a value, t7_0 an array in between


class Unknown(Exception):
    """Why a call cannot be replayed."""


class Step:
    """One kernel: its function, operands and settings (with ``Array`` for arrays), and its results' names."""

    __slots__ = ("kernel", "operands", "settings", "results", "shapes")

    def __init__(self, kernel: Any, operands: tuple, settings: dict, results: Any, shapes: Any) -> None:
        self.kernel, self.operands, self.settings = kernel, operands, settings
        self.results = results  # a name, or a list of names
        self.shapes = shapes  # (shape, dtype) of the one result


class Array:
    """The place of an array among operands."""

    __slots__ = ("name",)

    def __init__(self, name: Name) -> None:
        self.name = name


def owner_of(array: ndarray) -> ndarray:
    """The array that has the memory."""
    while isinstance(array.base, ndarray):
        array = array.base
    return array


class Book:
    """The names of the arrays that were seen in one segment: weakly, so that it keeps no memory."""

    def __init__(self) -> None:
        self.names: dict[int, tuple[Any, Name]] = {}

    def add(self, array: Any, name: Name) -> None:
        if self.name_of(array) is None:
            self.names[id(array)] = ref(array), name

    def part_of(self, array: Any) -> tuple[Name, int] | None:
        """The array whose memory this one shows a part of, and where in it that begins."""
        owner = owner_of(array)
        if not owner.flags.c_contiguous:
            return None
        name = self.name_of(owner)
        if name is None:  # a kernel's result that is itself a view of what it made
            name = next((n for r, n in self.names.values()
                         if (known := r()) is not None and owner_of(known) is owner), None)
        if name is None or name[0] == "e":  # where in its memory an external lies, is another thing each time
            return None
        return name, array.__array_interface__["data"][0] - owner.__array_interface__["data"][0]

    def turned(self, array: Any) -> tuple[Name, tuple, bool] | None:
        """The array that this is with its dimensions in another order, and which; whether reshaped then."""
        owner = owner_of(array)
        name = self.name_of(owner)
        if name is None or owner is array or owner.size != array.size or not 1 < owner.ndim < 6 \
                or owner.__array_interface__["data"][0] != array.__array_interface__["data"][0]:
            return None
        for axes in permutations(range(owner.ndim)):
            seen = owner.transpose(axes)
            if seen.shape == array.shape and seen.strides == array.strides:
                return name, axes, False
            if seen.flags.c_contiguous and array.flags.c_contiguous and not owner.flags.c_contiguous:
                return name, axes, True
        return None

    def name_of(self, array: Any) -> Name | None:
        found = self.names.get(id(array))
        return found[1] if found is not None and found[0]() is array else None


def part(whole: ndarray, shape: tuple, dtype: Any, offset: int, strides: tuple) -> ndarray:
    """A view of a part of an array in row-major order."""
    return np.ndarray(shape, dtype, owner_of(whole), offset, strides)


def listened(function: Callable, *args: Any, **settings: Any) -> tuple[Any, list]:
    """What the call gives, and the kernels that ran: (kernel, arrays, settings, result)."""
    log: list[tuple] = []
    plain = quiet.plain

    def run(kernel: Callable, /, *arrays: Any, **settings: Any) -> Any:
        out = plain(kernel, *arrays, **settings)
        log.append((kernel, arrays, settings, out))
        return out
    before, quiet.run = quiet.run, run
    try:
        return function(*args, **settings), log
    finally:
        quiet.run = before


def steps_of(log: list, book: Book, prefix: str) -> tuple[list[Step], Callable]:
    """The steps of a call, and what gives the name of an array that it made. Raises Unknown."""
    steps: list[Step] = []
    made: list[tuple[Any, Name]] = []

    def name_of(array: Any) -> Name:
        known = book.name_of(array)
        if known is not None:
            return known
        for out, name in reversed(made):  # what the road makes of a kernel's result
            if isinstance(out, np.generic) and array.shape == () and array.dtype == out.dtype \
                    and array.tobytes() == out.tobytes():
                kernel: Any = np.asarray
            elif isinstance(out, ndarray) and out.shape == array.shape and out.dtype == array.dtype \
                    and not out.flags.c_contiguous and array.flags.c_contiguous \
                    and array.tobytes() == out.tobytes():
                kernel = np.ascontiguousarray
            else:
                continue
            new = f"t{prefix}_{len(steps)}"
            steps.append(Step(kernel, (Array(name),), {}, new, (array.shape, array.dtype)))
            book.add(array, new)
            return new
        turned = book.turned(array)
        if turned is not None:
            new = f"t{prefix}_{len(steps)}"
            steps.append(Step(ndarray.transpose, (Array(turned[0]), turned[1]), {}, new,
                              None if turned[2] else (array.shape, array.dtype)))
            if turned[2]:  # as rows, and then in another shape
                flat, new = new, f"{new}s"
                steps.append(Step(ndarray.reshape, (Array(flat), array.shape), {}, new,
                                  (array.shape, array.dtype)))
            book.add(array, new)
            return new
        found = book.part_of(array)
        if found is None:
            raise Unknown("an array from elsewhere")
        whole, offset = found
        new = f"t{prefix}_{len(steps)}"
        steps.append(Step(part, (Array(whole), array.shape, array.dtype, offset, array.strides), {}, new,
                          (array.shape, array.dtype)))
        book.add(array, new)
        return new

    def place(value: Any) -> Any:
        if type(value) is ndarray:
            return Array(name_of(value))
        if isinstance(value, (tuple, list)) and type(value).__module__ in ("builtins", "framework.size"):
            return list(map(place, value)) if type(value) is list else tuple(map(place, value))
        if isinstance(value, slice):
            return value
        if isinstance(value, PLAIN) and not isinstance(value, np.generic):
            return value
        raise Unknown(f"a {type(value).__name__} among the operands")

    for kernel, arrays, settings, out in log:
        operands = tuple(map(place, arrays))
        placed = {k: place(v) for k, v in settings.items()}
        number = len(steps)
        if isinstance(out, (tuple, list)):
            results: Any = []
            for i, one in enumerate(out):
                results.append(f"t{prefix}_{number}_{i}")
                if isinstance(one, ndarray):
                    book.add(one, results[-1])
                made.append((one, results[-1]))
            shapes = None
        elif isinstance(out, (ndarray, np.generic)):
            results = f"t{prefix}_{number}"
            if isinstance(out, ndarray):
                book.add(out, results)
            made.append((out, results))
            shapes = (out.shape, out.dtype)
        else:
            raise Unknown("a result that is no array")
        owner = getattr(kernel, "__self__", None)
        if getattr(kernel, "__name__", "") == "_first_cpu":
            kernel = owner.cpu  # type: ignore[union-attr]
        steps.append(Step(kernel, operands, placed, results, shapes))
    return steps, name_of
