"""What a call runs: the kernels behind a public function, found out by listening to one call of it."""

from collections.abc import Callable
from itertools import permutations
from typing import Any
from weakref import ref

import numpy as np

from ..dtypes import DType
from ..quiet import quiet
from ..random import Drawn, key_of

ndarray = np.ndarray
PLAIN = (int, float, bool, str, type(None), np.dtype, DType, type(Ellipsis), type)
Name = str  # of an array in a plan: e0 an external, v3 a value, t7_0 an array in between


def is_plain(value: Any) -> bool:
    """Whether it is a constant that is no array, or a tuple with names of such."""
    if isinstance(value, PLAIN):
        return not isinstance(value, np.generic)
    return isinstance(value, tuple) and all(type(v) in PLAIN for v in value)


class Unknown(Exception):
    """Why a call cannot be replayed."""


class Declined(Unknown):
    """Why a function says that a call of it cannot be put off: it may do more than give its result."""


class Step:
    """One kernel: its function, operands and settings (with ``Array`` for arrays), and its results' names."""

    __slots__ = ("kernel", "operands", "settings", "results", "shapes", "_names", "_reads")

    def __init__(self, kernel: Any, operands: tuple, settings: dict, results: Any, shapes: Any) -> None:
        self.kernel, self.operands, self.settings = kernel, operands, settings
        self.results = results  # a name, or a list of names
        self.shapes = shapes  # (shape, dtype) of the one result
        self._names: list[Name] | None = None
        self._reads: frozenset | None = None

    @property
    def names(self) -> "list[Name]":
        """The names of the arrays that it takes, in their order."""
        found = self._names
        if found is None:
            found = self._names = names_in((self.operands, self.settings))
        return found

    @property
    def reads(self) -> frozenset:
        """The names of the arrays that it takes."""
        found = self._reads
        if found is None:
            found = self._reads = frozenset(self.names)
        return found


class Array:
    """The place of an array among operands."""

    __slots__ = ("name",)

    def __init__(self, name: Name) -> None:
        self.name = name


def names_in(value: Any) -> list[Name]:
    """The arrays among operands."""
    kind = type(value)
    if kind is Array:
        return [value.name]
    if kind is dict:
        value = value.values()
    elif kind is not tuple and kind is not list:
        return []
    found: list[Name] = []
    for v in value:
        kind = type(v)
        if kind is Array:
            found.append(v.name)
        elif kind is tuple or kind is list or kind is dict:
            found += names_in(v)
    return found


def owner_of(array: ndarray) -> ndarray:
    """The array that has the memory."""
    while isinstance(array.base, ndarray):
        array = array.base
    return array


class Book:
    """The names of the arrays that were seen in one segment: weakly, so that it keeps no memory."""

    def __init__(self) -> None:
        self.names: dict[int, tuple[Any, Name]] = {}
        self.outside: set[int] = set()  # arrays whose memory was handed in, by their ids
        self.externals: list[int] = []  # their ids
        self.shared = False  # whether two tensors from outside have one array
        self.labels: dict[int, tuple[Any, int]] = {}  # of memory, by the ids of the arrays that own it
        self.counted = 0
        self.values: dict[int, int] = {}  # of the path, by number: equal labels are one memory

    def add_externals(self, arrays: list) -> None:
        """Name what was handed in, in order, so far as it is new; all of it is alive."""
        ids, known = list(map(id, arrays)), self.externals
        begin = len(known)
        if ids[:begin] != known:
            begin, self.shared = 0, False
        for i in range(begin, len(arrays)):
            self.add(arrays[i], f"e{i}")
            self.outside.add(id(owner_of(arrays[i])))
            if self.name_of(arrays[i]) != f"e{i}":  # handed in by another tensor, too, or a result's
                self.shared = True
        self.externals = ids

    def drop(self, left: int) -> None:
        """Forget what was handed in behind the first ``left`` arrays."""
        for key in self.externals[left:]:
            if self.names.get(key, (None, ""))[1][:1] == "e":
                del self.names[key]
        del self.externals[left:]

    def label(self, array: ndarray) -> int:
        """A number for its memory."""
        owner = owner_of(array)
        known = self.labels.get(id(owner))
        if known is None or known[0]() is not owner:
            self.counted += 1
            known = self.labels[id(owner)] = ref(owner), self.counted
        return known[1]

    def remember(self, first: int, made: Any, result: Any) -> None:
        """Note whose memory the values from ``first`` on have, which a call made, and what its results hold
        where they took that over.
        """
        for i, x in enumerate(made if isinstance(made, (tuple, list)) else (made,)):
            self.values[first + i] = self.label(x._array)
        if made is not result and result._array is not made._array:
            self.rename(result._array, made._array)

    def rename(self, array: ndarray, made: ndarray) -> None:
        """From here on, what ``array`` holds is what ``made`` is called."""
        name = self.name_of(made)
        self.names.pop(id(array), None)
        if name is not None:
            self.names[id(array)] = ref(array), name

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

    def cut_of(self, array: Any) -> tuple[Name, int] | None:
        """The array that was handed in of which this one shows a part, and where in it that begins."""
        owner, at = owner_of(array), array.__array_interface__["data"][0]
        for known, name in self.names.values():
            whole = known() if name[0] == "e" else None
            if whole is not None and owner_of(whole) is owner and whole.flags.c_contiguous:
                begin = at - whole.__array_interface__["data"][0]
                end = begin + sum((n - 1) * s for n, s in zip(array.shape, array.strides)) + array.itemsize
                if begin >= 0 and end <= whole.nbytes and array.size and min(array.strides, default=0) >= 0:
                    return name, begin
        return None

    def turned(self, array: Any) -> tuple[Name, tuple, bool] | None:
        """The array that this is with its dimensions in another order, and which order (an empty one: as they
        are); whether reshaped then.
        """
        owner = owner_of(array)
        name = self.name_of(owner)
        if name is None or owner is array or owner.size != array.size \
                or owner.__array_interface__["data"][0] != array.__array_interface__["data"][0]:
            return None
        if name[0] == "e" and owner.flags.c_contiguous and array.flags.c_contiguous:
            return name, (), True
        if not 1 < owner.ndim < 6:
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


def cut(whole: ndarray, shape: tuple, dtype: Any, offset: int, strides: tuple) -> ndarray:
    """A view of a part of an array in row-major order, which may itself be part of another."""
    return np.ndarray(shape, dtype, whole, offset, strides)


def by_keys(function: Callable, places: list) -> Callable:
    """A kernel or rule that takes keys, of the arrays that hold them; places: their numbers or names."""
    def keyed(*operands: Any, **settings: Any) -> Any:
        given = [key_of(x) if i in places else x for i, x in enumerate(operands)]
        return function(*given, **{k: key_of(v) if k in places else v for k, v in settings.items()})
    return keyed


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
    reader = _Reader(book, prefix)
    for kernel, arrays, settings, out in log:
        reader.read(kernel, arrays, settings, out)
    return reader.steps, reader.name_of


class _Reader:
    """Writes down kernels as steps; where they take arrays that no kernel made, the steps that make those."""

    def __init__(self, book: Book, prefix: str) -> None:
        self.book, self.prefix = book, prefix
        self.steps: list[Step] = []
        self.made: list[tuple[Any, Name]] = []

    def read(self, kernel: Any, arrays: tuple, settings: dict, out: Any) -> None:
        operands = tuple(map(self.place, arrays))
        placed = {k: self.place(v) for k, v in settings.items()}
        keys = [k for k, v in settings.items() if type(v) is Drawn]
        shapes = None
        if isinstance(out, (tuple, list)):
            results: Any = [f"{self.new()}_{i}" for i in range(len(out))]
            for one, name in zip(out, results):
                self.note(one, name)
        elif isinstance(out, (ndarray, np.generic)):
            results, shapes = self.new(), (out.shape, out.dtype)
            self.note(out, results)
        else:
            raise Unknown("a result that is no array")
        owner = getattr(kernel, "__self__", None)
        if getattr(kernel, "__name__", "") == "_first_cpu":
            kernel = owner.cpu  # type: ignore[union-attr]
        if keys:
            kernel = by_keys(kernel, keys)
        self.steps.append(Step(kernel, operands, placed, results, shapes))

    def new(self) -> Name:
        """The name of what the next step makes."""
        return f"t{self.prefix}_{len(self.steps)}"

    def note(self, out: Any, name: Name) -> None:
        if isinstance(out, ndarray):
            self.book.add(out, name)
        self.made.append((out, name))

    def place(self, value: Any) -> Any:
        """An operand or a setting, with ``Array`` for arrays."""
        if type(value) is ndarray:
            return Array(self.name_of(value))
        if isinstance(value, (tuple, list)) and type(value).__module__ in ("builtins", "framework.size"):
            return list(map(self.place, value)) if type(value) is list else tuple(map(self.place, value))
        if type(value) is Drawn:
            return Array(self.name_of(value.array))
        if isinstance(value, slice) or is_plain(value):
            return value
        raise Unknown(f"a {type(value).__name__} among the operands")

    def name_of(self, array: Any) -> Name:
        """The name of an array, after the steps that make it of named ones."""
        known = self.book.name_of(array)
        if known is not None:
            return known
        name = self._brought_home(array) or self._turned(array) or self._part(array)
        if name is None:
            raise Unknown("an array from elsewhere")
        self.book.add(array, name)
        return name

    def _step(self, kernel: Any, operands: tuple, shape: Any) -> Name:
        name = self.new()
        self.steps.append(Step(kernel, operands, {}, name, shape))
        return name

    def _brought_home(self, array: Any) -> Name | None:
        """What the road makes of a kernel's result: an array of a scalar, or one in row-major order."""
        for out, name in reversed(self.made):
            if isinstance(out, np.generic) and array.shape == () and array.dtype == out.dtype \
                    and array.tobytes() == out.tobytes():
                return self._step(np.asarray, (Array(name),), (array.shape, array.dtype))
            if isinstance(out, ndarray) and out.shape == array.shape and out.dtype == array.dtype \
                    and not out.flags.c_contiguous and array.flags.c_contiguous \
                    and array.tobytes() == out.tobytes():
                return self._step(np.ascontiguousarray, (Array(name),), (array.shape, array.dtype))
        return None

    def _turned(self, array: Any) -> Name | None:
        found = self.book.turned(array)
        if found is None:
            return None
        name, axes, reshaped = found
        known = (array.shape, array.dtype)
        if not axes:
            return self._step(ndarray.reshape, (Array(name), array.shape), known)
        turned = self._step(ndarray.transpose, (Array(name), axes), None if reshaped else known)
        return self._step(ndarray.reshape, (Array(turned), array.shape), known) if reshaped else turned

    def _part(self, array: Any) -> Name | None:
        found, made = self.book.part_of(array), part
        if found is None:
            found, made = self.book.cut_of(array), cut
        if found is None:
            return None
        whole, offset = found
        return self._step(made, (Array(whole), array.shape, array.dtype, offset, array.strides),
                          (array.shape, array.dtype))
