"""The graph: what hangs on a tensor whose computation was recorded.

A graph is a chain of nodes; a node holds its op, the nodes of its inputs (``edges``) and the arrays
its derivative needs (``kept``). It never holds a tensor that leads back to it, so reference counting
alone frees a graph. ``seq`` numbers creation: an input's node always has the smaller number, which
makes "largest first" a valid order for walking backward.
"""

from collections.abc import Callable
from itertools import count
from typing import Any

next_seq = count(1).__next__


class _Shown:
    """What a node tells of itself."""

    __slots__ = ()
    op: Any
    edges: tuple
    seq: int

    @property
    def name(self) -> str:
        return f"{self.op.name}"

    @property
    def next_functions(self) -> tuple:
        """The nodes of the inputs, as PyTorch shows them."""
        return tuple((edge, 0) for edge in self.edges)

    def __repr__(self) -> str:
        return f"<node {self.name} #{self.seq}>"


class Node(_Shown):
    """One recorded call of an op.

    op: the record whose ``pull`` turns the output's gradient into the inputs' gradients.
    edges: per input, the node its gradient flows to, or None.
    kept: name -> array for the values the rules asked for; None once freed.
    versions: (counter, value) pairs of the kept arrays, to notice a later in-place change.
    settings: the call's keyword settings.
    shapes: the inputs' shapes where broadcasting changed one, else None.
    """

    __slots__ = ("op", "edges", "kept", "versions", "settings", "shapes", "seq", "hooks",
                 "__weakref__")

    def __init__(self, op: Any, edges: tuple, kept: dict | None, versions: Any, settings: dict,
                 shapes: tuple | None) -> None:
        self.op = op
        self.edges = edges
        self.kept = kept
        self.versions = versions
        self.settings = settings
        self.shapes = shapes
        self.hooks: list[Callable] | None = None
        self.seq = next_seq()


class PlainNode(_Shown):
    """A node that keeps nothing, for calls whose gradient is handed on unchanged (sums)."""

    __slots__ = ("op", "edges", "seq", "hooks", "__weakref__")
    kept = versions = shapes = None
    settings: dict = {}

    def __init__(self, op: Any, edges: tuple) -> None:
        self.op = op
        self.edges = edges
        self.hooks: list[Callable] | None = None
        self.seq = next_seq()


class Pick:
    """One output of a node that has several; ``edges[0]`` is that node."""

    __slots__ = ("edges", "index", "seq", "hooks", "__weakref__")
    name = "pick"

    def __init__(self, source: Node, index: int) -> None:
        self.edges = (source,)
        self.index = index
        self.hooks: list[Callable] | None = None
        self.seq = next_seq()

    def __repr__(self) -> str:
        return f"<output {self.index} of {self.edges[0]!r}>"


class Leaf:
    """The end of a graph: where the gradient of a tensor made by the user is gathered."""

    __slots__ = ("grad", "seq", "hooks", "after", "__weakref__")
    name = "leaf"
    edges = ()

    def __init__(self) -> None:
        self.grad: Any = None
        self.hooks: list[Callable] | None = None
        self.after: list[Callable] | None = None
        self.seq = next_seq()

    def __repr__(self) -> str:
        return f"<leaf #{self.seq}>"
