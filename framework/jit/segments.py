"""A recorded sequence of calls, and its backward, as one native call over arrays.

Steps are the kernels that the calls run (``kernels.py``), or the derivative rules of their nodes, in the
order of the engine's walk. What nobody needs is left out (kernels have no effects), and elementwise steps are
fused.
"""

from typing import Any

import numpy as np

from .. import _native
from ..autograd.engine import plus
from ..backends.native import add, asked, copied
from ..ops.language.program import Program
from ..ops.language.program import Step as Instruction
from ..ops.shape.view import permute_op, reshape_op
from . import fusion
from .kernels import Array, Step, names_in, part
from .lifetimes import Life, within_peak
from .pairs import (
    masked_early,
    masked_in_products,
    paired,
    parameters_at_once,
    pooled_at_once,
    stacked_in_order,
)
from .recurrent import panels_shared

fusion._programs[id(add)] = (add, Program(("x", "y"), (False, False), (), 0, (
    Instruction("add", 2, (0, 1)),), False) if type(add).__name__ == "Kernel" else None, ("x", "y"))


_VIEWS = {np.ndarray.transpose: "turn", np.ndarray.reshape: "shape",
          permute_op.cpu: "turn", reshape_op.cpu: "shape"}
_NATIVE = ("Kernel", "Fused")  # types of native objects that fill what they give
MOST_WAIT, MOST_BEHIND = 3, 40  # kernels that wait for the end of a round, and all that wait


class Missing(Exception):
    """A derivative gave nothing where there was something when the plan was made."""


def own(ge: Any, g: Any) -> Any:
    """A gradient for a leaf, which is the user's: never shared with another's."""
    return copied(ge) if ge is g or ge.base is not None else ge


def _results(step: Step) -> list[str]:
    return [step.results] if isinstance(step.results, str) else [r for r in step.results if r]


def needed(steps: list[Step], outputs: list[str]) -> list[Step]:
    """The steps that the outputs depend on."""
    wanted, kept = set(outputs), []
    for step in reversed(steps):
        if not wanted.isdisjoint(_results(step)):
            kept.append(step)
            wanted.update(step.reads)
    return kept[::-1]


def known(step: Step, shapes: dict) -> Step:
    """The step, where shapes were found out later: a sum of two gradients is an addition of arrays."""
    if step.kernel is plus and all(isinstance(x, Array) for x in step.operands):
        a, b = (shapes.get(x.name) for x in step.operands)
        if a is not None and a == b and a[0] != ():
            return Step(add, step.operands, {}, step.results, a)
    return step


def unshared(steps: list[Step], outputs: list[str], shapes: dict) -> tuple[list[Step], list[str]]:
    """Without the copies of gradients that a leaf is handed as they come, where nobody else has the memory:
    the first leaf may have what an elementwise kernel made.
    """
    made = {step.results for step in steps if type(step.kernel).__name__ == "Kernel"
            and isinstance(step.results, str) and shapes.get(step.results, ((),))[0] != ()}
    same: dict[str, str] = {}
    kept = []
    for step in steps:
        if step.kernel is own and outputs.count(step.results) == 1 and isinstance(step.operands[1], Array):
            name = step.operands[0].name
            if name == step.operands[1].name and name in made and name not in outputs:
                made.discard(name)
                same[step.results] = name
                continue
        kept.append(step)
    return kept, [same.get(n, n) for n in outputs]


def _done(kernel: Any, other: Any) -> tuple[Any, Any]:
    """What is called for a step, and what where that does not apply: a native function is asked directly."""
    native = asked(kernel) if other is None else None
    return (kernel, other) if native is None else (native, kernel)


def _words(kernel: Any, operands: list, names: tuple) -> str:
    """What the segment does by itself in place of calling the kernel, if it knows it."""
    if kernel is own:
        return "own"
    if kernel is part and all(type(x) is not Array for x in operands[1:]):
        return "part"
    if kernel in _VIEWS and len(operands) == 2 and type(operands[1]) is tuple:
        return _VIEWS[kernel]
    return ""


class Pass:
    """Elementwise steps that are being fused, of one shape and dtype, and what they make."""

    __slots__ = ("parts", "made")

    def __init__(self) -> None:
        self.parts: list[fusion.Part] = []
        self.made: set[str] = set()

    def takes(self, p: fusion.Part) -> bool:
        """Whether it is of that shape and dtype."""
        first = self.parts[0]
        return first.shape == p.shape and first.dtype == p.dtype

    def add(self, p: fusion.Part) -> None:
        """Put it behind the others."""
        self.parts.append(p)
        self.made.add(p.result)


class Segment:
    """Steps as one native call: ``made(arrays)`` gives the outputs as a tuple, ``made(arrays, notes)`` also
    lists (place, shape, dtype) of what each step gave, whose name is ``names[place]``.

    fuse: make elementwise steps one pass; else the steps run one by one.
    """

    def __init__(self, steps: list[Step], outputs: list[str], shapes: dict, fuse: bool = True) -> None:
        # kernel, other, operands, names of settings, results, whether expected, whether 0-d, what it reads
        self.rows: list[tuple] = []
        self.kernels = self.fused = self.inside = 0
        self.shapes = shapes
        steps = needed(steps, outputs)
        if fuse:
            steps = masked_early(paired(steps), outputs, shapes)
            steps = panels_shared(masked_in_products(pooled_at_once(steps, outputs), outputs))
            steps, outputs = parameters_at_once(stacked_in_order(steps, outputs), outputs, own)
            steps = needed(steps, outputs)
            steps, outputs = unshared([known(step, shapes) for step in steps], outputs, shapes)
        self.sizes = {step.results: step.shapes for step in steps
                      if isinstance(step.results, str) and step.shapes is not None} | shapes
        readers: dict[str, int] = {}
        for step in steps:
            for name in step.reads:
                readers[name] = readers.get(name, 0) + 1
        for name in outputs:
            readers[name] = readers.get(name, 0) + 1
        self.readers = readers
        self.open: list[Pass] = []
        if fuse:
            self._in_rounds(steps)
        else:
            for step in steps:
                self._plain(step)
        words = [_words(row[0], row[2], row[3]) for row in self.rows]
        beside = self._beside(outputs, words) if fuse else set()
        self.made, self.names = self._assembled(outputs, words, beside)
        del self.rows, self.open, self.shapes, self.sizes, self.readers

    def _assembled(self, outputs: list[str], words: list[str], beside: set[int]) -> tuple[Any, list[str]]:
        """The native call, and the names of its places; words: of the rows; beside: those that may go so."""
        places: dict[str, int] = {}

        def operand(value: Any) -> Any:
            kind = type(value)
            if kind is Array:
                return places.setdefault(value.name, len(places))
            if (kind is tuple or kind is list) and names_in(value):
                return "t" if kind is tuple else "l", [operand(v) for v in value]
            return "c", value

        def place(name: str | None) -> int:
            return -1 if name is None or name not in self.readers else places.setdefault(name, len(places))
        rows: list[tuple] = []
        for at, (kernel, other, operands, names, results, expected, scalar, _) in enumerate(self.rows):
            reads = [operand(x) for x in operands]
            made = place(results) if isinstance(results, str) else [place(r) for r in results]
            rows.append((*_done(kernel, other), reads, names, made, [], expected, scalar,
                         words[at], at in beside))
        wanted = [places.setdefault(n, len(places)) for n in outputs]
        kept = set(wanted)
        for row, given in zip(reversed(rows), reversed(self.rows)):
            gone = {places[n] for n in given[-1]} - kept  # not read again
            row[5].extend(gone)
            kept |= gone
        externals = [(int(n[1:]), i) for n, i in places.items() if n[0] == "e"]
        made = _native.module.make_segment(len(places), externals, rows, wanted, Missing, np.asarray)
        return made, list(places)

    def _beside(self, outputs: list[str], words: list[str]) -> set[int]:
        """The rows that may go on beside what follows: products (others do not ask, see ``compute`` in
        ``_native/bind/compute.h``) whose results nobody reads but who hands them out.
        """
        read = {n for row in self.rows if row[0] is not own for n in row[-1]}
        products = [getattr(_native.module, name, None) for name in ("matmul", "linear_parameters")]
        steps = []
        for (kernel, other, _, _, results, _, _, reads), word in zip(self.rows, words):
            native = asked(kernel)
            product = other is None and native is not None and native in products
            made = [results] if isinstance(results, str) else [r for r in results if r]
            late = product and read.isdisjoint(made)
            fills = native is not None or type(kernel).__name__ in _NATIVE
            steps.append(Life(reads, made, bool(word), late, fills))
        return within_peak(steps, outputs, self.sizes)

    def _in_rounds(self, steps: list[Step]) -> None:
        """Add all steps. A kernel that reads what is being fused waits for the end of a round, so that
        elementwise steps behind it, which do not need it, come into the same pass: derivatives of a chain
        behind the sum of its results, say.
        """
        while steps:
            waiting: list[Step] = []
            late: set[str] = set()  # what comes in a later round
            direct = 0
            for at, step in enumerate(steps):
                if direct >= MOST_WAIT or len(waiting) >= MOST_BEHIND:
                    waiting += steps[at:]
                    break
                reads = step.reads
                p = None
                if late.isdisjoint(reads):
                    p = fusion.part(step, self.shapes)
                    if p is not None and self._gathers(step, reads):
                        p = None
                    if p is None and any(not reads.isdisjoint(g.made) for g in self.open):
                        direct += 1
                    elif p is None:
                        self._plain(step)
                        continue
                if p is None:
                    waiting.append(step)
                    late.update(_results(step))
                else:
                    self._join(p, reads)
            while self.open:
                self._close(self.open[0])
            steps = waiting

    def _gathers(self, step: Step, reads: frozenset) -> bool:
        """Whether it adds up gradients that kernels of their own give: at once, while they are cached."""
        return step.kernel is add and step.results[0] == "g" and not all(
            any(name in g.made for g in self.open) for name in reads)

    def _join(self, p: fusion.Part, reads: frozenset) -> None:
        """Put an elementwise step into a pass that is open, or begin one."""
        home = next((g for g in self.open if g.takes(p)), None)
        for g in list(self.open):
            if g is not home and not reads.isdisjoint(g.made):
                self._close(g)
        if home is None:
            self.open.append(home := Pass())
        home.add(p)

    def _plain(self, step: Step) -> None:
        self.kernels += 1
        single = isinstance(step.results, str)
        self.rows.append((step.kernel, None, [*step.operands, *step.settings.values()], tuple(step.settings),
                          step.results, step.shapes is None,
                          single and step.shapes is not None and step.shapes[0] == (), step.names))

    def _close(self, finished: Pass) -> None:
        self.open.remove(finished)
        self._fused(finished.parts, finished.made)

    def _fused(self, group: list[fusion.Part], mine: set) -> None:
        if len(group) == 1:
            self._plain(group[0].step)
            return
        inner: dict[str, int] = {}
        for p in group:
            for name in p.step.reads & mine:
                inner[name] = inner.get(name, 0) + 1
        outputs = [p.result for p in group if self.readers.get(p.result, 0) > inner.get(p.result, 0)]
        made = fusion.composed(group, outputs) if outputs else None
        if made is None:
            half = len(group) // 2
            for some in (group[:half], group[half:]):
                self._fused(some, {p.result for p in some})
            return
        kernel, arguments = made
        self.kernels += 1
        self.fused += 1
        self.inside += len(group)
        self.rows.append((kernel, fusion.one_by_one(group, arguments, outputs),
                          [Array(n) for n in arguments], (), outputs, False, False, arguments))
