"""Views: tensors that share memory, and the bookkeeping that keeps their gradients right.

A view knows its base and the chain of view ops from the base to it; the base knows its views, weakly.
When one of them is changed in place, ``write/inplace.py`` replays the chains to put every live view at its
new place in the graph.
"""

import weakref
from collections.abc import Callable
from typing import Any

import numpy as np

from ... import _native
from ...autograd.mode import state
from ...device import CPU
from ...node import Node
from ...quiet import quiet
from ...size import KNOWN
from ...tensor import More, Tensor, counter_of
from .batched import Batched
from .entries import entered

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
        more.base, more.links = x, (None, op, None, settings)
    else:
        more.base, more.links = source.base, (source.links, op, None, settings)
        source = source.base._more  # type: ignore[assignment]
    if view._node is not None:
        source.followed = True
    refs = source.views
    if refs is None:
        refs = source.views = []
    refs.append(weakref.ref(view))  # the base knows its views, weakly, and forgets the dead ones now and then
    if len(refs) >= _PRUNE_FROM and not len(refs) & (len(refs) - 1):
        refs[:] = [ref for ref in refs if ref() is not None]


if hasattr(_native.module, "set_up_views"):
    _native.module.set_up_tensors(Tensor, quiet, state)
    _native.module.set_up_properties(Tensor, CPU, KNOWN)
    _native.module.set_up_views(More, Node)
    Tensor.item = entered(Tensor.item, _native.module.item(Tensor.item))  # type: ignore[method-assign]


def view_maker(name: str) -> Callable:
    """The native function that takes a tensor, the arguments of a kind of view as they came, and its record.

    It gives the view, or NotImplemented where that takes more: an interceptor, a copy, wrong arguments.
    """
    return getattr(_native.module, f"view_{name}", _declined)


def _declined(*args: Any) -> Any:
    return NotImplemented


def _shares(a: Any, b: Any) -> bool:
    if b is a or b.base is a:
        return True
    if type(b) is Batched:
        return np.may_share_memory(a, b)
    return b.base is not None and b.base is a.base


def overlaps_itself(array: Any) -> bool:
    """Whether several elements share one place in memory (told from the strides, on the safe side)."""
    if array.flags.c_contiguous:
        return False
    extent = array.itemsize
    for stride, size in sorted(zip(map(abs, array.strides), array.shape)):
        if size > 1:
            if stride < extent:
                return bool(array.size)
            extent += stride * (size - 1)
    return False
