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
    edges: tuple
    seq: int
    notes: dict

    @property
    def next_functions(self) -> tuple:
        """Per input, its node (None if it needs no gradient) and which of that node's outputs it is."""
        return tuple([place_of(edge) for edge in self.edges])

    @property
    def metadata(self) -> dict:
        """A dictionary for whatever the user wants to remember with this node."""
        return notes_of(self).setdefault("metadata", {})


class _Call(_Shown):
    """What a node of an op tells of itself."""

    __slots__ = ()
    op: Any

    def name(self) -> str:
        """The name of the op."""
        return f"{self.op.name}"

    def __repr__(self) -> str:
        return f"<node {self.name()} #{self.seq}>"


def place_of(edge: Any) -> tuple:
    """(node, number of its output) for what an edge or ``Tensor._node`` holds."""
    if type(edge) is Pick:
        return edge.edges[0], edge.index
    return edge, 0


def notes_of(node: Any) -> dict:
    """What is remembered with a node that few nodes have: ``metadata``, the line that made it."""
    try:
        return node.notes
    except AttributeError:  # left unset by __init__, which has to be quick
        node.notes = {}
        return node.notes


class GraphOp:
    """What backward, forward mode and those who look at a graph may ask of a node's op.

    Records (``Op``) are the usual kind; others stand for a call of a user's ``Function``, of a checkpointed
    function, for the pieces of a tensor, and the like. name: for people. arguments: names of the inputs.
    differentiable: how many outputs carry a gradient; with more than one, ``pull`` gets a list of gradients,
    with None for outputs that were not used. keeps_nothing: whether backward may pass a node of it twice.
    has_vjp: whether there is a derivative. jvp, infer: as of a record, None where there is none.
    """

    __slots__ = ()
    name: str = "op"
    arguments: tuple[str, ...] = ()
    differentiable: int = 1
    keeps_nothing: bool = True
    has_vjp: bool = True
    jvp: Any = None
    infer: Any = None

    def pull(self, node: Any, g: Any, edges: tuple, live: bool) -> Any:
        """The gradient, or None, of each input, from that of the output.

        edges: the inputs' places, None for those whose gradient is not wanted. live: gradients are tensors,
        to be recorded, otherwise arrays.
        """
        raise NotImplementedError

    def _source(self, name: str) -> tuple[str, str, int] | None:
        """Where a kept value comes from: (name, "in" or "out", position); None for other values."""
        return None


class Node(_Call):
    """One recorded call of an op.

    op: the record whose ``pull`` turns the output's gradient into the inputs' gradients.
    edges: per input, the node its gradient flows to, or None.
    kept: name -> array for the values the rules asked for; None once freed.
    versions: (counter, value) pairs of the kept arrays, to notice a later in-place change.
    settings: the call's keyword settings.
    shapes: the inputs' shapes where broadcasting changed one, else None.
    tangents: {dual level: a tangent or None per output}; set only while a level is open.
    """

    __slots__ = ("op", "edges", "kept", "versions", "settings", "shapes", "seq", "hooks", "tangents",
                 "notes", "__weakref__")

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


class PlainNode(_Call):
    """A node that keeps nothing, for calls whose gradient is handed on unchanged (sums)."""

    __slots__ = ("op", "edges", "seq", "hooks", "tangents", "notes", "__weakref__")
    kept = versions = shapes = None
    settings: dict = {}

    def __init__(self, op: Any, edges: tuple) -> None:
        self.op = op
        self.edges = edges
        self.hooks: list[Callable] | None = None
        self.seq = next_seq()


class Dual(Node):
    """The place of tensors that have tangents and require no gradient: backward ends here.

    ``settings`` holds weak references to the tensors: see ``owners``.
    """

    __slots__ = ()

    def __init__(self) -> None:
        super().__init__(None, (), None, None, {}, None)
        self.end()

    def end(self) -> None:
        """Forget the call, if this was the node of one."""
        owners: Any = []
        self.edges, self.kept, self.versions, self.settings = (), None, None, owners

    @classmethod
    def standing_for(cls, node: Any, op: Any) -> "Dual":
        """A place with the call that ``node`` was made for."""
        self = cls.__new__(cls)
        self.op, self.edges, self.kept, self.versions = op, node.edges, node.kept, node.versions
        self.settings, self.shapes, self.hooks, self.seq = node.settings, node.shapes, None, node.seq
        return self

    @property
    def owners(self) -> Any:
        """Weak references to the tensors here."""
        return self.settings

    def name(self) -> str:
        return "dual"


class Pick:
    """One output of a node that has several; ``edges[0]`` is that node."""

    __slots__ = ("edges", "index", "seq", "hooks", "__weakref__")

    def __init__(self, source: Node, index: int) -> None:
        self.edges = (source,)
        self.index = index
        self.hooks: list[Callable] | None = None
        self.seq = next_seq()

    def name(self) -> str:
        """The name of the op."""
        return self.edges[0].name()

    @property
    def next_functions(self) -> tuple:
        """Those of the node."""
        return self.edges[0].next_functions

    @property
    def metadata(self) -> dict:
        """That of the node."""
        return self.edges[0].metadata

    def __repr__(self) -> str:
        return f"<output {self.index} of {self.edges[0]!r}>"


class Home:
    """Memory that waits for a leaf's gradient: ``ops/record/placing.py``.

    free: whether nothing is in it that counts; it is false from the moment it is given to an op.
    """

    __slots__ = ("array", "free")

    def __init__(self, array: Any) -> None:
        self.array, self.free = array, True


class Leaf(_Shown):
    """The end of a graph: where the gradient of a tensor made by the user is gathered."""

    __slots__ = ("grad", "seq", "hooks", "after", "home", "tangents", "owner", "notes", "__weakref__")
    edges = ()

    def __init__(self, owner: Callable | None = None) -> None:
        self.grad: Any = None
        self.home: Home | None = None
        self.owner = owner  # a weak reference to the tensor
        self.hooks: list[Callable] | None = None
        self.after: list[Callable] | None = None
        self.seq = next_seq()

    def name(self) -> str:
        """What PyTorch calls AccumulateGrad."""
        return "leaf"

    @property
    def variable(self) -> Any:
        """The tensor whose gradient is gathered here, or None if it is gone."""
        return None if self.owner is None else self.owner()

    def __repr__(self) -> str:
        return f"<leaf #{self.seq}>"
