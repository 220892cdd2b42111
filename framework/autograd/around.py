"""Hooks that only few nodes have, put around their op so that all others pay nothing for them.

``around(node)`` gives the node an op that stands in for its own: before the derivative it opens what hooks
on saved tensors have packed, and it calls the hooks of the node.
"""

from collections.abc import Callable
from operator import attrgetter
from typing import Any

import numpy as np

from ..errors import AutogradError, ShapeError
from ..node import GraphOp, Node, Pick, next_seq
from ..tensor import Tensor, as_tensor, wrap
from .mode import no_grad, state

_UNTRACKED = ([0, None], 0)  # a version that never changes, for a value that a hook took over


class Parcel:
    """What a pack hook made of a tensor, and the hook that makes a tensor of it again."""

    __slots__ = ("packed", "unpack", "kind", "where")

    def __init__(self, array: Any, hooks: tuple, where: str) -> None:
        pack, self.unpack = hooks
        given = wrap(array)
        self.kind, self.where = (given.shape, given.dtype), where
        with no_grad():
            self.packed = pack(given)
        if given._version:
            raise AutogradError(f"{where}: the pack hook changed the tensor it was given in place; it is "
                                f"still in use, clone() it first")

    def holds(self, array: Any) -> bool:
        """Whether the packed object is the tensor itself, as it was."""
        return isinstance(self.packed, Tensor) and self.packed._array is array

    def open(self) -> Any:
        """The array again."""
        t = self.unpack(self.packed)
        if not isinstance(t, Tensor):
            raise TypeError(f"{self.where}: the unpack hook must return a Tensor, got {type(t).__name__}")
        if (t.shape, t.dtype) != self.kind:
            shape, dtype = self.kind
            raise AutogradError(f"{self.where}: the unpack hook returned {t.dtype}{list(t.shape)} for a "
                                f"tensor of {dtype}{list(shape)}")
        return t._array


def opened(value: Any) -> Any:
    """A kept value, out of its parcel if it is in one."""
    if type(value) is tuple:
        return tuple([opened(part) for part in value])
    return value.open() if type(value) is Parcel else value


def packed(array: Any, version: tuple, name: str) -> tuple:
    """(what to keep of an array, its version), after the hooks on saved tensors of this thread, if any."""
    if not state.saved_hooks:
        return array, version
    parcel = Parcel(array, state.saved_hooks[-1], f"a tensor saved by {name}")
    return parcel, version if parcel.holds(array) else _UNTRACKED


def pack_node(node: Any) -> None:
    """Put the inputs and outputs that a new node keeps into parcels."""
    if not node.kept or not node.versions or not state.recording:
        return
    versions = iter(node.versions)
    kept: dict[str, Any] = {}
    left: list[tuple] = []
    for name, value in node.kept.items():
        source = node.op._source(name)
        if source is None or source[1] not in ("in", "out"):
            kept[name] = value
            continue
        parts = value if type(value) is tuple else (value,)
        parcels = tuple([_parcel(part, node, versions, left) for part in parts])
        kept[name] = parcels if type(value) is tuple else parcels[0]
    node.kept, node.versions = kept, left
    around(node).packed = True


def _parcel(array: Any, node: Any, versions: Any, left: list) -> Any:
    if not hasattr(array, "dtype") or isinstance(array, np.generic):
        return array  # a number: only tensors are packed, and only they have versions
    parcel, version = packed(array, next(versions), node.op.name)
    left.append(version)
    return parcel


class _Around(GraphOp):
    """Stands in for the op of one node; all but the derivative is that op's."""

    pull_new = None  # a hook may have kept the gradient, and parcels are to be opened

    def __init__(self, op: Any) -> None:
        self.op = op
        self.packed = False
        self.before: dict[int, Callable] = {}
        self.after: dict[int, Callable] = {}

    def __getattr__(self, name: str) -> Any:
        return getattr(self.op, name)

    def pull(self, node: Any, g: Any, edges: tuple, live: bool) -> Any:
        """The derivative of the op, with what stands around it."""
        parts = _grads(g)
        for hook in list(self.before.values()):
            parts = _replaced(parts, hook(parts), node, "prehook")
        if self.before:
            g = _bare(parts, live) if type(g) is list else _bare(parts, live)[0]
        grads = self._pull(node, g, edges, live)
        if not self.after:
            return grads
        ins = _grads(list(grads))
        for hook in list(self.after.values()):
            ins = _replaced(ins, hook(ins, parts), node, "hook")
        return _bare(ins, live)

    def _pull(self, node: Any, g: Any, edges: tuple, live: bool) -> Any:
        if not self.packed or node.kept is None:
            return self.op.pull(node, g, edges, live)
        kept = {name: opened(value) for name, value in node.kept.items()}
        n = self.op.differentiable
        outputs = (node,) if n == 1 else tuple([Pick(node, i) for i in range(n)])
        stand = _Stand(self.op, node, kept)
        grads = self.op.pull(stand, g, edges, live)
        # a second derivative may lead through an output: from here on the gradients of those are the node's
        stand.op, stand.edges = _HandOn(n), outputs
        stand.kept = stand.versions = stand.shapes = None
        return grads


for _asked in vars(GraphOp).keys() - {"pull", "__slots__", "__module__", "__doc__", "__annotations__"}:
    setattr(_Around, _asked, property(attrgetter(f"op.{_asked}")))


class _Stand(Node):
    """A node in the place of another, with what that one keeps taken out; no listener hears of it."""

    __slots__ = ()

    def __init__(self, op: Any, node: Any, kept: dict) -> None:
        self.op, self.edges, self.kept, self.versions = op, node.edges, kept, node.versions
        self.settings, self.shapes, self.hooks = node.settings, node.shapes, None
        if hasattr(node, "tangents"):  # of its outputs, which the rule may look at
            self.tangents = node.tangents
        self.seq = next_seq()


class _HandOn(GraphOp):
    """The op of a node that stood in for another."""

    name = "hand_on"

    def __init__(self, differentiable: int) -> None:
        self.differentiable = differentiable

    def pull(self, node: Any, g: Any, edges: tuple, live: bool) -> list:
        """The gradients as they are."""
        return g if self.differentiable > 1 else [g]


def around(node: Any) -> _Around:
    """What stands around the op of ``node``; put there if it is not."""
    if type(node.op) is not _Around:
        node.op = _Around(node.op)
    return node.op


def _grads(g: Any) -> tuple:
    return tuple([None if x is None else as_tensor(x) for x in (g if type(g) is list else [g])])


def _bare(parts: tuple, live: bool) -> list:
    return [x if live or x is None else x._array for x in parts]


def _replaced(old: tuple, new: Any, node: Any, what: str) -> tuple:
    if new is None:
        return old
    new = (new,) if isinstance(new, Tensor) else tuple(new)
    if len(new) != len(old):
        raise ValueError(f"a {what} of {node.name()} returned {len(new)} gradients where {len(old)} were "
                         f"wanted")
    for a, b in zip(old, new):
        if b is not None and not isinstance(b, Tensor):
            raise TypeError(f"a {what} of {node.name()} must return Tensors or None, got {type(b).__name__}")
        if a is not None and b is not None and a.shape != b.shape:
            raise ShapeError(f"a {what} of {node.name()} turned a gradient of shape {list(a.shape)} into one "
                             f"of shape {list(b.shape)}")
    return new
