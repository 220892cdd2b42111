"""Gradients of weights made where they are to lie: in a bucket that is summed over ranks, say.

``Leaf.home`` names the place. Records that ``gives_gradients_a_place`` knows let their native kernel put the
weight's gradient there, which saves a copy of it. They do so from the first call of ``use`` on, which gives
them another class: until then backward asks nothing, and a program without such places pays nothing. What
arrives elsewhere (a second use of the weight, a kernel of NumPy) is for the owner of the place to copy.
"""

from typing import Any

from ... import _native
from ...autograd.mode import state
from ...node import Home, Leaf, Node
from .op import Op

_places: list[Op] = []
_place_next: Any = getattr(_native.module, "place_next", None)


class _Placing(Op):
    """A record whose gradients go home."""

    __slots__ = ()

    def pull(self, node: Node, g: Any, edges: tuple, live: bool) -> Any:
        walk = state.walk
        if not live and walk is not None and walk.needed is None:
            for i, edge in enumerate(edges):
                if type(edge) is Leaf and edge.home is not None and edge.home.free and edge.grad is None:
                    return self._pull_home(node, g, edges, i)
        return super().pull(node, g, edges, live)

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


def gives_gradients_a_place(op: Op) -> Op:
    """``op``, whose rules are one per input and whose native kernels make their results as new arrays."""
    assert op.rules is not None
    _places.append(op)
    return op


def use(leaf: Leaf, array: Any) -> Home:
    """Let the gradient of ``leaf`` be made in ``array``, of its shape and dtype, where an op can."""
    if _place_next is not None:
        for op in _places:
            op.__class__ = _Placing
    leaf.home = Home(array)
    return leaf.home
