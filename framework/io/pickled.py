"""A pickle read as data: its opcodes are followed here, and nothing that it names is imported or called.

A pickle is a program for a small stack machine (PEP 307, 3154, 574). Most of its opcodes make numbers, text
and containers. Those that name classes and functions ask the reader's table of stand-ins; what the table does
not have is noted, and the file refused with all such names. Every fault is a CheckpointError.
"""

import struct
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Callable
from typing import Any, BinaryIO

import numpy as np

from ..device import Device
from ..dtypes import DType
from ..errors import CheckpointError

_LINE = 1 << 16  # more than any name or number in text takes
_MARK = object()
_DICTS = (dict, OrderedDict, defaultdict, Counter)
_SCALARS = (str, int, float, complex, bool, bytes, type(None))
_SIZED = (list, tuple, dict, str, bytes, bytearray)
_COPIES = 16  # how often the calls of a file may copy what it holds; those of a sound one do it once
_KEY = 1000  # parts of a key that is a tuple, those in its tuples included


safe: dict[str, Any] = {}  # what the program listed as safe, by name: see ``framework.serialization``


def _listed(refused: Any) -> str:
    """What to say of the names that the program had listed."""
    names = [name for name in refused if name in safe]
    listed = f" (add_safe_globals listed {', '.join(names)}, but no class is built from a file here)"
    return listed if names else ""


class Call:
    """What stands for a class or function that a file may call; it gets the arguments of the file."""

    def __init__(self, function: Callable) -> None:
        self.function = function


class Refused:
    """Stands for what a file names and the table does not have, and for all that is made with it."""

    def __init__(self, name: str) -> None:
        self.name = name


class Bytes:
    """The bytes of a pickle, from an open file; asks for no more than there are."""

    def __init__(self, file: BinaryIO, size: int, what: str) -> None:
        self.file, self.left, self.what = file, size, what

    def take(self, count: int) -> bytes:
        if count > self.left:
            raise CheckpointError(f"{self.what}: the pickle is cut short; use an earlier copy")
        data = self.file.read(count)
        if len(data) != count:
            raise CheckpointError(f"{self.what}: the pickle is cut short; use an earlier copy")
        self.left -= count
        return data

    def line(self) -> bytes:
        data = self.file.readline(min(_LINE, self.left))
        self.left -= len(data)
        if not data.endswith(b"\n"):
            raise CheckpointError(f"{self.what}: a line in the pickle has no end; the file is damaged")
        return data[:-1]


def read_pickle(
    source: Bytes, known: dict[tuple[str, str], Any], states: dict[type, Callable], persistent: Callable
) -> Any:
    """The object in the pickle that starts here.

    known: (module, name) -> a Call, or the value that stands for the name.
    states: type -> ``f(object, state)``, which gives the object with the state that the file has for it.
    persistent: makes an object of a persistent id.
    """
    machine = _Machine(source, known, states, persistent)
    found, fault = None, None
    try:
        found = machine.run()
    except CheckpointError:
        raise
    except (
        ValueError,
        TypeError,
        LookupError,
        AttributeError,
        struct.error,
        ArithmeticError,
        RecursionError,
    ) as error:
        fault = error
    if machine.refused:  # which may be why something after it went wrong
        refusal = CheckpointError(
            f"{source.what}: refused, since it names what is no plain data: {', '.join(machine.refused)}. "
            f"Nothing of it was imported or called. A whole module or another object was saved; save its "
            f"state_dict() instead, or these parts as numbers, text and tensors{_listed(machine.refused)}"
        )
        refusal.refused = tuple(machine.refused)  # type: ignore[attr-defined]
        raise refusal
    if fault is not None:
        raise CheckpointError(
            f"{source.what}: the pickle is not sound ({fault}); the file is damaged or foreign"
        ) from None
    return found


class _Machine:
    """The stack machine. ``refused`` holds the names that the table does not have."""

    def __init__(self, source: Bytes, known: dict, states: dict, persistent: Callable) -> None:
        self.source, self.known, self.states, self.persistent = source, known, states, persistent
        self.stack: list[Any] = []
        self.memo: dict[int, Any] = {}
        self.refused: dict[str, None] = {}
        self.places: dict[int, list[int]] = {}  # where the memo has what a call made, by its id
        self.room = _COPIES * source.left + (1 << 16)  # items and bytes that calls may still copy

    def run(self) -> Any:
        take = self.source.take
        while True:
            code = take(1)[0]
            if code == 0x2E:  # STOP
                return self.pop()
            do = _OPCODES.get(code)
            if do is None:
                raise ValueError(f"an opcode {code:#04x} that stands for no data")
            do(self)

    # -- the stack -------------------------------------------------------------------------------

    def push(self, value: Any) -> None:
        self.stack.append(value)

    def pop(self) -> Any:
        value = self.stack.pop()
        if value is _MARK:
            raise ValueError("a mark where a value was wanted")
        return value

    def top(self) -> Any:
        if self.stack[-1] is _MARK:
            raise ValueError("a mark where a value was wanted")
        return self.stack[-1]

    def skip(self, count: int) -> None:
        self.source.take(count)

    def marked(self) -> list[Any]:
        """The values above the last mark, which are taken off with it."""
        for i in range(len(self.stack) - 1, -1, -1):
            if self.stack[i] is _MARK:
                values = self.stack[i + 1 :]
                del self.stack[i:]
                return values
        raise ValueError("a mark is missing")

    def number(self, form: str) -> Any:
        return struct.unpack(form, self.source.take(struct.calcsize(form)))[0]

    def text(self, form: str) -> str:
        return self.source.take(self.number(form)).decode("utf-8", "surrogatepass")

    def old_text(self, form: str) -> str:
        """A string of Python 2, which did not say how it is encoded."""
        return self.source.take(self.number(form)).decode("latin-1")

    # -- names, calls and states -----------------------------------------------------------------

    def name(self, module: Any, name: Any) -> None:
        if type(module) is not str or type(name) is not str:
            raise ValueError("a name that is no text")
        found = self.known.get((module, name))
        if found is None:
            full = f"{module}.{name}"[:200]
            self.refused[full] = None
            found = Refused(full)
        self.push(found)

    def call(self, function: Any, args: Any) -> None:
        if type(args) is not tuple:
            raise ValueError("a call with arguments that are no tuple")
        refused = next((x for x in (function, *args) if isinstance(x, Refused)), None)
        if refused is None and not isinstance(function, Call):
            raise ValueError("a call of what is no function")
        self.pay(args)
        made = refused or function.function(*args)
        self.places[id(made)] = []
        self.push(made)

    def pay(self, values: Any) -> None:
        """For what a call is about to copy: a short file may call for one long list again and again."""
        self.room -= sum(len(v) for v in values if type(v) in _SIZED)
        if self.room < 0:
            raise ValueError("calls that make much more than the file holds")

    def reduce(self) -> None:
        args = self.pop()
        self.call(self.pop(), args)

    def new_with_settings(self) -> None:
        settings, args = self.pop(), self.pop()
        if settings != {}:
            raise ValueError("a call with keyword arguments")
        self.call(self.pop(), args)

    def build(self) -> None:
        state, made = self.pop(), self.top()
        if isinstance(made, Refused) or isinstance(state, Refused):
            return
        give = next((f for kind, f in self.states.items() if isinstance(made, kind)), None)
        if give is None:
            raise ValueError(f"a state for a {type(made).__name__}")
        self.pay(state if type(state) is tuple else (state,))
        given = give(made, state)
        if given is not made:  # it could not be changed, so another one stands for it
            self.stack[-1] = given
            for place in self.places.pop(id(made), ()):
                if self.memo[place] is made:
                    self.memo[place] = given

    def remember(self, place: int) -> None:
        value = self.memo[place] = self.top()
        if id(value) in self.places:
            self.places[id(value)].append(place)

    # -- containers ------------------------------------------------------------------------------

    def append(self, values: list[Any]) -> None:
        target = self.top()
        if type(target) is list or type(target) is deque:
            target.extend(values)
        elif not isinstance(target, Refused):
            raise ValueError(f"items for a {type(target).__name__}")

    def add(self, values: list[Any]) -> None:
        target = self.top()
        if type(target) is not set:
            raise ValueError(f"members for a {type(target).__name__}")
        target.update(hashable(values))

    def assign(self, values: list[Any]) -> None:
        target = self.top()
        if isinstance(target, Refused):
            return
        if type(target) not in _DICTS or len(values) % 2:
            raise ValueError(f"pairs for a {type(target).__name__}")
        target.update(zip(hashable(values[::2]), values[1::2]))

    def one(self) -> list[Any]:
        return [self.pop()]

    def two(self) -> list[Any]:
        value = self.pop()
        return [self.pop(), value]

    def last(self, count: int) -> tuple:
        values = [self.pop() for _ in range(count)]
        return tuple(reversed(values))


def hashable(values: Any) -> list[Any]:
    """Values that a dict or set may hold; hashing deeply nested ones would take for ever."""
    return [_key(v, 3, [_KEY]) if type(v) is tuple else _key(v, 0, []) for v in values]


def _key(value: Any, depth: int, room: list[int]) -> Any:
    if type(value) is tuple and depth and len(value) <= room[0]:
        room[0] -= len(value)
        return tuple(_key(v, depth - 1, room) for v in value)
    if isinstance(value, _SCALARS) or type(value) in (DType, Device) or isinstance(value, np.generic):
        return value
    raise ValueError(f"a key of type {type(value).__name__}")


def _decimal(line: bytes) -> Any:
    return line == b"01" if line in (b"00", b"01") else int(line.rstrip(b"L"))


def _get(machine: _Machine, place: int) -> None:
    machine.push(machine.memo[place])


def _pop(machine: _Machine) -> None:
    machine.stack.pop()


def _pop_mark(machine: _Machine) -> None:
    machine.marked()


def _dict(machine: _Machine) -> None:
    pairs = machine.marked()
    machine.push({})
    machine.assign(pairs)


_SMALL, _SHORT, _INT, _LONG, _HUGE = "<B", "<H", "<i", "<I", "<Q"
_OPCODES: dict[int, Callable[[_Machine], None]] = {
    # numbers and text
    0x4E: lambda m: m.push(None),
    0x88: lambda m: m.push(True),
    0x89: lambda m: m.push(False),
    0x49: lambda m: m.push(_decimal(m.source.line())),
    0x4C: lambda m: m.push(_decimal(m.source.line())),
    0x46: lambda m: m.push(float(m.source.line())),
    0x47: lambda m: m.push(m.number(">d")),
    0x4A: lambda m: m.push(m.number(_INT)),
    0x4B: lambda m: m.push(m.number(_SMALL)),
    0x4D: lambda m: m.push(m.number(_SHORT)),
    0x8A: lambda m: m.push(int.from_bytes(m.source.take(m.number(_SMALL)), "little", signed=True)),
    0x8B: lambda m: m.push(int.from_bytes(m.source.take(m.number(_LONG)), "little", signed=True)),
    0x58: lambda m: m.push(m.text(_LONG)),
    0x8C: lambda m: m.push(m.text(_SMALL)),
    0x8D: lambda m: m.push(m.text(_HUGE)),
    0x55: lambda m: m.push(m.old_text(_SMALL)),
    0x54: lambda m: m.push(m.old_text(_LONG)),
    0x42: lambda m: m.push(m.source.take(m.number(_LONG))),
    0x43: lambda m: m.push(m.source.take(m.number(_SMALL))),
    0x8E: lambda m: m.push(m.source.take(m.number(_HUGE))),
    0x96: lambda m: m.push(bytearray(m.source.take(m.number(_HUGE)))),
    # containers
    0x28: lambda m: m.push(_MARK),
    0x30: _pop,
    0x31: _pop_mark,
    0x32: lambda m: m.push(m.top()),
    0x5D: lambda m: m.push([]),
    0x6C: lambda m: m.push(m.marked()),
    0x61: lambda m: m.append(m.one()),
    0x65: lambda m: m.append(m.marked()),
    0x29: lambda m: m.push(()),
    0x74: lambda m: m.push(tuple(m.marked())),
    0x85: lambda m: m.push(m.last(1)),
    0x86: lambda m: m.push(m.last(2)),
    0x87: lambda m: m.push(m.last(3)),
    0x7D: lambda m: m.push({}),
    0x64: _dict,
    0x73: lambda m: m.assign(m.two()),
    0x75: lambda m: m.assign(m.marked()),
    0x8F: lambda m: m.push(set()),
    0x90: lambda m: m.add(m.marked()),
    0x91: lambda m: m.push(frozenset(hashable(m.marked()))),
    # what was met before
    0x70: lambda m: m.remember(int(m.source.line())),
    0x71: lambda m: m.remember(m.number(_SMALL)),
    0x72: lambda m: m.remember(m.number(_LONG)),
    0x94: lambda m: m.remember(len(m.memo)),
    0x67: lambda m: _get(m, int(m.source.line())),
    0x68: lambda m: _get(m, m.number(_SMALL)),
    0x6A: lambda m: _get(m, m.number(_LONG)),
    # names, calls, states
    0x63: lambda m: m.name(m.source.line().decode(), m.source.line().decode()),
    0x93: lambda m: m.name(*m.two()),
    0x52: _Machine.reduce,
    0x81: _Machine.reduce,
    0x92: _Machine.new_with_settings,
    0x62: _Machine.build,
    0x51: lambda m: m.push(m.persistent(m.pop())),
    # how the pickle is written
    0x80: lambda m: m.skip(1),
    0x95: lambda m: m.skip(8),
}
