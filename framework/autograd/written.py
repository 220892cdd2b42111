"""The nodes of tensors after a write: the tensor's own, and those of its views."""

from typing import Any

from ..dtypes import INEXACT
from ..node import Leaf
from ..quiet import quiet
from ..tensor import Tensor, counter_of, set_node, wrap
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
    set_node(x, node)


def replay_views(base: Tensor, all_of_them: bool) -> None:
    """Put the live views of a tensor that was written at their nodes behind the tensor's own.

    all_of_them: also those that are in no graph, since the base was in none before. Otherwise they stay
    constants, as they were taken under ``no_grad``, and where no other view was ever made they cost nothing.
    """
    more = base._more
    if more is None or not more.views or not (all_of_them or more.followed):
        return
    source = wrap(base._array, node=base._node)  # the base itself would count what is made of it as its views
    live, more.followed = [], False
    for ref in more.views:
        view = ref()
        if view is None:
            continue
        live.append(ref)
        if type(view._node) is not Leaf and (all_of_them or view._node is not None):
            more.followed = True
            move_to(view, _node_behind(source, view))
    more.views[:] = live


def _node_behind(source: Tensor, view: Any) -> Any:
    """The node of ``view`` where its base is at that of ``source``."""
    *steps, (op, settings) = view._more.chain
    for step, its_settings in steps:
        source = step.run(source, **its_settings)
    recorded = source._node is not None and state.enabled and view._array.dtype.kind in INEXACT
    if not recorded or quiet.run is None:
        return op.run(source, **settings)._node
    result = wrap(view._array)  # it is there already: only the node is wanted
    result._counter = counter_of(view)
    op.record((source,), [source._array], result, settings)
    return result._node
