"""A derivative rule as the kernels that it calls, found out while it runs once.

A rule is a short function that calls records on arrays. Here it is called on stand-ins that tell how large an
array is and nothing else, and with records that note what they run. So nothing that it decides can depend on
numbers: the kernels that were noted are what it does for all arrays of these shapes. A rule that does
anything else with an array (an operator, a NumPy function, a look at its numbers) fails on a stand-in, and
stays the Python function that it is.
"""

from collections.abc import Callable
from types import CellType, FunctionType
from typing import Any

import numpy as np

from ..ops.record.entries import behind
from ..ops.record.op import Op
from ..size import Size
from .backward import globals_of
from .kernels import Array, Step, Unknown, is_plain

ndarray = np.ndarray


class Seen:
    """What a rule sees of an array."""

    __slots__ = ("_memory", "_name", "_notes")
    __array_ufunc__ = None

    def __init__(self, memory: ndarray, name: str, notes: "_Notes") -> None:
        self._memory, self._name, self._notes = memory, name, notes

    @property
    def shape(self) -> tuple:
        return self._memory.shape

    @property
    def ndim(self) -> int:
        return self._memory.ndim

    @property
    def size(self) -> int:
        return self._memory.size

    @property
    def dtype(self) -> np.dtype:
        return self._memory.dtype

    def __array__(self, *args: Any, **settings: Any) -> Any:
        raise Unknown("a rule that takes an array as it is")

    def __bool__(self) -> bool:
        raise Unknown("a rule that looks at numbers")

    def __eq__(self, other: Any) -> Any:  # which every object has, and which is of numbers for arrays
        raise Unknown("a rule that compares numbers")

    __ne__ = __eq__
    __hash__ = object.__hash__


class _Notes:
    """The kernels that one run of a rule calls, as steps."""

    def __init__(self, prefix: str) -> None:
        self.prefix, self.steps = prefix, list[Step]()

    def run(self, op: Op, arrays: tuple, settings: dict) -> Any:
        out = op.cpu(*map(_memory_in, arrays), **{k: _memory_in(v) for k, v in settings.items()})
        operands = tuple(map(_place, arrays))
        placed = {k: _place(v) for k, v in settings.items()}
        name = f"{self.prefix}w{len(self.steps)}"
        if type(out) is ndarray:
            self.steps.append(Step(op.cpu, operands, placed, name, (out.shape, out.dtype)))
            return Seen(out, name, self)
        if type(out) not in (tuple, list) or not all(type(x) is ndarray for x in out):
            raise Unknown("a kernel that gives something else than arrays")
        names = [f"{name}_{i}" for i in range(len(out))]
        self.steps.append(Step(op.cpu, operands, placed, names, None))
        return type(out)([Seen(x, n, self) for x, n in zip(out, names)])


def _memory_in(value: Any) -> Any:
    if type(value) is Seen:
        return value._memory
    return type(value)(map(_memory_in, value)) if type(value) in (tuple, list) else value


def _place(value: Any) -> Any:
    if type(value) is Seen:
        return Array(value._name)
    if type(value) is Size:
        return tuple(value)
    if type(value) in (tuple, list):
        return type(value)(map(_place, value))
    if is_plain(value):
        return value
    raise Unknown(f"a {type(value).__name__} among the operands")


def _noting(op: Op) -> Callable:
    def called(*arrays: Any, **settings: Any) -> Any:
        notes = next((x._notes for x in arrays if type(x) is Seen), None)
        if notes is None:
            raise Unknown("a record that is called on no array")
        return notes.run(op, arrays, settings)
    return called


_noted: dict[Any, Any] = {}


def _with_noting(thing: Any) -> Any:
    """A function with records that note in place of those that it names; anything else as it is."""
    if isinstance(thing, Op) and type(thing).__call__ is Op.__call__:
        if thing not in _noted:
            _noted[thing] = _noting(thing)
        return _noted[thing]
    thing = behind(thing)
    if type(thing) is not FunctionType or "ops" not in (thing.__module__ or "").split("."):
        return thing
    if thing not in _noted:
        _noted[thing] = thing  # for one that calls itself
        named = set().union(*globals_of(thing.__code__))
        scope = dict(thing.__globals__)
        scope.update({name: _with_noting(scope[name]) for name in named if name in scope})
        cells = tuple([CellType(_with_noting(c.cell_contents)) for c in thing.__closure__ or ()])
        made = FunctionType(thing.__code__, scope, thing.__name__, thing.__defaults__, cells or None)
        made.__kwdefaults__ = thing.__kwdefaults__
        _noted[thing] = made
    return _noted[thing]


class Watched:
    """In place of a step's kernel in one run: gives what it gives; ``steps`` is what came to light."""

    def __init__(self, step: Step, rule: Callable, number: int) -> None:
        self.step, self.rule, self.number = step, rule, number
        self.steps: list[Step] | None = None

    def __call__(self, *operands: Any) -> Any:
        notes = _Notes(f"{self.number}")
        try:
            seen: dict[str, Seen] = {}
            found = _with_noting(self.rule)(*[_seen_in(x, known, seen, notes)
                                              for x, known in zip(operands, self.step.operands)])
            self.steps = self._named(notes.steps, found)
            return _memory_in(found)
        except Exception:  # its own errors, too, come from the rule itself
            return self.step.kernel(*operands)

    def _named(self, steps: list[Step], found: Any) -> list[Step]:
        """The steps, whose results have the names that the whole has. Raises Unknown."""
        wanted = self.step.results
        pairs = [(wanted, found)] if isinstance(wanted, str) else list(zip(wanted, found, strict=True))
        names: dict[str, str] = {}
        made = {name for s in steps for name in ([s.results] if isinstance(s.results, str) else s.results)}
        for name, x in pairs:
            if name is None:
                continue
            if type(x) is not Seen or x._name not in made or x._name in names:
                raise Unknown("a result that is handed on")
            names[x._name] = name

        def renamed(value: Any) -> Any:
            if isinstance(value, Array):
                return Array(names.get(value.name, value.name))
            return type(value)(map(renamed, value)) if type(value) in (tuple, list) else value
        return [Step(s.kernel, renamed(s.operands), {k: renamed(v) for k, v in s.settings.items()},
                     names.get(s.results, s.results) if isinstance(s.results, str)
                     else [names.get(n, n) for n in s.results], s.shapes) for s in steps]


def _seen_in(value: Any, known: Any, seen: dict, notes: _Notes) -> Any:
    """An operand with stand-ins for its arrays, of which each name has one."""
    if isinstance(known, Array):
        if type(value) is not ndarray:
            raise Unknown("an operand that is no array")
        if known.name not in seen:
            seen[known.name] = Seen(value, known.name, notes)
        return seen[known.name]
    if type(known) in (tuple, list):
        return type(known)([_seen_in(v, k, seen, notes) for v, k in zip(value, known)])
    return value


def watched(steps: list[Step]) -> list[Step]:
    """The steps with a look at those that are rules; ``lowered`` of them after a run."""
    found = []
    for i, s in enumerate(steps):
        rule = getattr(s.kernel, "__wrapped__", s.kernel)
        if type(rule) is FunctionType and "ops" in rule.__module__.split(".") and _is_of_backward(s):
            s = Step(Watched(s, rule, i), s.operands, s.settings, s.results, s.shapes)
        found.append(s)
    return found


def _is_of_backward(step: Step) -> bool:
    first = step.results if isinstance(step.results, str) else next((r for r in step.results if r), "")
    return first[:1] == "g" and bool(step.operands) and not step.settings


def lowered(steps: list[Step]) -> list[Step]:
    """Kernels in place of the rules that came to light in a run."""
    return [inner for s in steps for inner in (
        [s] if type(s.kernel) is not Watched else s.kernel.steps if s.kernel.steps is not None
        else [s.kernel.step])]
