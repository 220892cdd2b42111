"""Gradients of weights made where they are to lie: in a bucket that is summed over ranks, say.

``Leaf.home`` names the place. A ``PlacingOp`` lets its native kernel put the weight's gradient there, which
saves a copy of it. It looks for places from the first call of ``use`` on. What arrives elsewhere (a second
use of the weight, a kernel of NumPy, a compiled backward) is for the owner of the place to copy.
"""

from typing import Any

from ... import _native
from ...autograd.mode import state
from ...node import Home, Leaf, Node
from .op import Op

_place_next: Any = getattr(_native.module, "place_next", None)


class PlacingOp(Op):
    """A record whose gradients go home: its rules are one per input, its native kernels make new arrays."""

    __slots__ = ()

    def _pull_placing(self, node: Node, g: Any, edges: tuple, live: bool) -> Any:
        """``pull`` from the first call of ``use`` on."""
        walk = state.walk
        if not live and walk is not None and walk.needed is None:
            for i, edge in enumerate(edges):
                if type(edge) is Leaf and edge.home is not None and edge.home.free and edge.grad is None:
                    return self._pull_home(node, g, edges, i)
        return Op.pull(self, node, g, edges, live)

    def _pull_home(self, node: Node, g: Any, edges: tuple, i: int) -> list:
        """The gradients, of which the one for input ``i`` is asked for alone: no other takes its place."""
        rest: list[Any] = [e if k != i else None for k, e in enumerate(edges)]
        grads = list(super().pull(node, g, tuple(rest), False)) if any(rest) else rest
        home = edges[i].home
        home.free = False
        _place_next(home.array)
        try:
            grads[i] = super().pull(node, g, tuple([e if k == i else None for k, e in enumerate(edges)]),
                                    False)[i]
        finally:
            _place_next(None)
        return grads


def use(leaf: Leaf, array: Any) -> Home:
    """Let the gradient of ``leaf`` be made in ``array``, of its shape and dtype, where an op can."""
    if _place_next is not None:
        PlacingOp.pull = PlacingOp._pull_placing  # type: ignore[assignment, method-assign]
    leaf.home = Home(array)
    return leaf.home
