"""What is known of calls that were recorded, and the plans that they end with."""

from typing import Any

from ..node import Leaf, Node
from ..ops.record.deferred import Positions
from .gradients import Freed, Given
from .lowering import lowered, watched
from .segments import Segment


class Data:
    """What is known of a recorded call: its steps, its results' names, and the plans that end with it."""

    __slots__ = ("steps", "results", "shapes", "fixed", "forward", "backward", "grad", "positions")

    def __init__(self) -> None:
        self.steps: list = []
        self.results: list[str] = []
        self.shapes: dict = {}
        self.fixed: list[bool] = []  # results that are views of others
        self.grad: list[bool] = []  # results that require gradients
        self.forward: dict[tuple, Any] = {}
        self.backward: dict[tuple, Any] = {}
        self.positions: Positions | None = None


class BackwardPlan:
    """A segment with its backward: the function, what it gives, and the graph to be shown afterwards.

    The first run goes step by step and finds out the shapes of all gradients, with which the steps are fused.
    """

    __slots__ = ("steps", "outputs", "shapes", "segment", "leaves", "alive", "template", "numbers", "served",
                 "words", "edges", "ready")

    def __init__(self, steps: list, outputs: list, shapes: dict, leaves: list, alive: list, template: list,
                 numbers: dict, words: str) -> None:
        self.steps: list | None = steps
        self.outputs, self.shapes = outputs, shapes
        self.segment: Segment | None = None
        self.leaves, self.alive = tuple(leaves), alive
        self.template, self.numbers, self.words = template, numbers, words
        keys = [v.number for row in template if row[0] is Node for v in row[5].values() if type(v) is Given]
        self.edges = tuple([row[1] for row in template if row[0] is Leaf] + keys)
        self.served = 0
        self.ready: tuple | None = None  # what the native side asks for, see ``quick.cpp``

    def run(self, plain: Any, arrays: list) -> tuple:
        """The outputs for these arrays."""
        steps = self.steps
        if steps is None:
            return plain(self.segment.made, arrays)  # type: ignore[union-attr]
        if self.served:
            self.segment = segment = Segment(lowered(steps), self.outputs, self.shapes)
            self.steps = None
            self.ready = segment.made, self.leaves, self.edges, bool(self.numbers)
            return plain(segment.made, arrays)
        if self.segment is None:
            self.steps = steps = watched(steps)
            self.segment = Segment(steps, self.outputs, self.shapes, fuse=False)
        segment = self.segment
        notes: list = []
        found = plain(segment.made, arrays, notes)
        self.shapes = {**self.shapes, **{segment.names[i]: (shape, dtype) for i, shape, dtype in notes}}
        return found


    def hang(self, ends: tuple) -> list:
        """What stands for the nodes of the results, as they are after a backward; ends: its leaves."""
        self.served += 1
        if not self.numbers:
            return [None] * len(self.alive)
        freed, numbers = Freed(self.template, self.edges, ends), self.numbers
        return [freed.node(numbers[i]) if i in numbers else None for i in self.alive]


class ForwardPlan:
    """A segment without its graph."""

    __slots__ = ("segment", "served", "words", "ready")

    def __init__(self, segment: Segment, words: str) -> None:
        self.segment, self.words, self.served = segment, words, 0
        self.ready = (segment.made,)  # what the native side asks for, see ``quick.cpp``
