"""Views: tensors that share memory, and the bookkeeping that keeps their gradients right.

A view knows its base and the chain of view ops from the base to it; the base knows its views, weakly.
When one of them is changed in place, ``write/inplace.py`` replays the chains to put every live view at its
new place in the graph.
"""

import weakref
from typing import Any

import numpy as np

from ...tensor import More, Tensor, counter_of
from .batched import Batched

_PRUNE_FROM = 32


def link_view(x: Tensor, view: Tensor, op: Any, settings: dict) -> None:
    """Note that ``view = op(x, **settings)`` shares memory with ``x``."""
    if op.view != "maybe" or _shares(x._array, view._array):
        link(x, view, op, settings)


def link(x: Tensor, view: Tensor, op: Any, settings: dict) -> None:
    """``link_view`` for what surely shares memory."""
    view._counter = x._counter or counter_of(x)
    source = x._more or x._extras()
    more = view._more = More()
    if source.base is None:
        more.base, more.links = x, (None, (op, settings))
    else:
        more.base, more.links = source.base, (source.links, (op, settings))
        source = source.base._more  # type: ignore[assignment]
    if view._node is not None:
        source.followed = True
    refs = source.views
    if refs is None:
        refs = source.views = []
    refs.append(weakref.ref(view))  # the base knows its views, weakly, and forgets the dead ones now and then
    if len(refs) >= _PRUNE_FROM and not len(refs) & (len(refs) - 1):
        refs[:] = [ref for ref in refs if ref() is not None]


def _shares(a: Any, b: Any) -> bool:
    if b is a or b.base is a:
        return True
    if type(b) is Batched:
        return np.may_share_memory(a, b)
    return b.base is not None and b.base is a.base


def overlaps_itself(array: Any) -> bool:
    """Whether several elements share one place in memory (told from the strides, on the safe side)."""
    extent = array.itemsize
    for stride, size in sorted(zip(map(abs, array.strides), array.shape)):
        if size > 1:
            if stride < extent:
                return bool(array.size)
            extent += stride * (size - 1)
    return False
