"""The places of tensors in the graph after a write: the tensor's own, and those of its views."""

from typing import Any

from ..node import Leaf
from ..tensor import Tensor, place, wrap
from .forward import is_recorded, replace_tangents
from .mode import state


def move_to(x: Tensor, node: Any) -> None:
    """Put ``x`` at another node; a retained gradient goes with it, other hooks stay where they were."""
    if not state.recording and is_recorded(x._node):  # only tangents are written
        replace_tangents(x._node, node)
        return
    hooks = None if x._node is None else x._node.hooks
    if hooks and node is not None:
        retained = [h for h in hooks if getattr(h, "retains", False)]
        if retained:
            hooks[:] = [h for h in hooks if h not in retained]
            node.hooks = [*(node.hooks or ()), *retained]
    place(x, node)


def replay_views(base: Tensor) -> None:
    """Put the live views of a tensor that was written at their places behind the tensor's own."""
    for ref in (base._more.views if base._more is not None else None) or ():
        view = ref()
        if view is None or type(view._node) is Leaf:
            continue
        t = wrap(base._array, node=base._node)
        for op, settings in view._more.chain:
            t = op.run(t, **settings)
        move_to(view, t._node)
