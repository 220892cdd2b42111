"""Elementwise steps that follow each other as one pass over memory, with several results.

What is fused is the *programs* that the calls themselves run, instruction by instruction
(``_native/program/fused.cpp``): each rounds as before, so the bits are eager's. A pass that does not apply
to the arrays at hand (another dtype or order in memory than when it was made) is run program by program.
"""

from contextlib import suppress
from typing import Any, NamedTuple

import numpy as np

from .. import _native
from ..ops.language.elementwise import Elementwise
from ..ops.language.program import PAIRS, NoProgram, Program, compile_program
from ..ops.record.op import OPS
from .kernels import Array, Step

MOST_SLOTS, MOST_RESULTS = 60, 24
_programs: dict[int, tuple[Any, Program | None, tuple[str, ...]]] = {}  # by kernel, which is kept alive


class Part(NamedTuple):
    """A step that may be fused: its program, operands in the program's order, result, shape and dtype."""

    step: Step
    program: Program
    operands: list
    result: str
    shape: tuple
    dtype: Any


def note(kernel: Any, text: str, arguments: tuple[str, ...], settings: tuple[str, ...] = ()) -> None:
    """The kernel computes this expression."""
    if id(kernel) not in _programs:
        program: Program | None = None
        if type(kernel).__name__ == "Kernel":
            with suppress(NoProgram):
                program = compile_program(text, arguments, settings)
        _programs[id(kernel)] = kernel, program, arguments


def _find(kernel: Any) -> tuple[Any, Program | None, tuple[str, ...]]:
    found = _programs.get(id(kernel))
    if found is None:
        for op in OPS:
            if isinstance(op, Elementwise) and op.cpu is kernel:
                note(kernel, op.expr, (*op.inputs, *op.settings), op.settings)
                return _programs[id(kernel)]
        found = _programs[id(kernel)] = kernel, None, ()
    return found


def part(step: Step, shapes: dict) -> Part | None:
    """The step as one that may be fused; shapes: of the arrays that are known."""
    if type(step.kernel).__name__ != "Kernel" or not isinstance(step.results, str):
        return None
    _, program, names = _find(step.kernel)
    if program is None or program.truth_result or any(program.truth):
        return None
    operands = [*step.operands, *[step.settings.get(n) for n in names[len(step.operands):]]]
    known = shapes.get(step.results)
    if known is None or len(operands) != len(names) or known[1].char not in "fd":
        return None
    for x in operands:
        if isinstance(x, Array):
            if x.name not in shapes or shapes[x.name][1] != known[1]:
                return None
        elif type(x) not in (int, float) or type(x) is int and abs(x) > 1 << 24:
            return None
    if not any(isinstance(x, Array) and shapes[x.name][0] == known[0] for x in operands):
        return None
    return Part(step, program, operands, step.results, known[0], known[1])


def composed(parts: list[Part], outputs: list[str]) -> tuple[Any, list[str]] | None:
    """The pass of these parts that gives ``outputs``, and the names of the arrays that it takes."""
    arguments: list[str] = []
    constants: list[str] = []
    made = {p.result for p in parts}
    for p in parts:
        for x in p.operands:
            if isinstance(x, Array):
                if x.name not in made and x.name not in arguments:
                    arguments.append(x.name)
            elif float(x).hex() not in constants:
                constants.append(float(x).hex())
        constants += [c for c in dict.fromkeys(float(c).hex() for c in p.program.constants)
                      if c not in constants]
    last: dict[str, int] = {}
    for at, p in enumerate(parts):
        for x in p.operands:
            if isinstance(x, Array):
                last[x.name] = at
    if len(outputs) > MOST_RESULTS:
        return None
    base = len(arguments) + len(constants)
    free: list[int] = []
    used = 0

    def register() -> int:
        nonlocal used
        if free:
            return free.pop()
        used += 1
        return used - 1
    places: dict[str, tuple[str, int]] = {name: ("in", i) for i, name in enumerate(arguments)}
    steps: list[tuple] = []
    for at, p in enumerate(parts):
        own = [("r", register()) for _ in range(p.program.registers)]
        target = ("out", outputs.index(p.result)) if p.result in outputs else ("r", register())
        count = len(p.program.arguments)
        table: list[tuple] = []
        for x in p.operands:
            table.append(places[x.name] if isinstance(x, Array) else
                         ("in", len(arguments) + constants.index(float(x).hex())))
        table += [("in", len(arguments) + constants.index(float(c).hex())) for c in p.program.constants]
        table += own
        table.append(target)
        assert len(table) == count + len(p.program.constants) + p.program.registers + 1
        for s in p.program.steps:
            steps.append((s.name, table[s.result], *[table[o] for o in (s.operands * 3)[:3]]))
        places[p.result] = target
        free += [r for _, r in own]
        for x in {x.name for x in p.operands if isinstance(x, Array)}:
            if last[x] == at and places[x][0] == "r":
                free.append(places[x][1])
        if p.result not in last and target[0] == "r":
            free.append(target[1])
    steps = _merged(steps)
    total = base + used + len(outputs)
    if total > MOST_SLOTS or not arguments:
        return None

    def slot(place: tuple) -> int:
        kind, i = place
        return i if kind == "in" else base + i if kind == "r" else base + used + i
    code = tuple((name, *map(slot, where)) for name, *where in steps)
    kernel = _native.module.make_fused(len(arguments), tuple(float.fromhex(c) for c in constants), used,
                                       len(outputs), code)
    return kernel, arguments


def _merged(steps: list[tuple]) -> list[tuple]:
    """The steps (name, target, operands), where two that follow each other are one if nobody else reads what
    the first one makes. The one rounds like both, and has their operands in order, so that nan is the same.
    """
    made: list[tuple] = []
    for at, (name, target, *operands) in enumerate(steps):
        wanted, pairs = PAIRS.get(name, ("", {0: ""}))
        which = min(pairs)
        before = made[-1] if made else ("", None)
        place = before[1]
        if before[0] == wanted and place is not None and place[0] == "r" and operands[which] == place \
                and operands[1 - which] != place and not _read_later(place, target, steps[at + 1:]):
            made[-1] = pairs[which], target, *before[2:4], operands[1 - which]
        else:
            made.append((name, target, *operands))
    return made


def _read_later(place: tuple, target: tuple, steps: list[tuple]) -> bool:
    if place == target:
        return False
    for _, written, *operands in steps:
        if place in operands:
            return True
        if place == written:
            return False
    return False


def one_by_one(parts: list[Part], arguments: list[str], outputs: list[str]) -> Any:
    """The same, program by program."""
    def run(*arrays: np.ndarray) -> tuple:
        values: dict[str, Any] = dict(zip(arguments, arrays))
        for p in parts:
            s = p.step
            values[p.result] = np.asarray(s.kernel(
                *[values[x.name] if isinstance(x, Array) else x for x in s.operands],
                **{k: values[x.name] if isinstance(x, Array) else x for k, x in s.settings.items()}))
        return tuple([values[name] for name in outputs])
    return run
