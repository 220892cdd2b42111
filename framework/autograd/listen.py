"""Being told of every node that this thread makes: for anomaly mode, hooks on saved tensors, and streams of
GPUs.

While somebody listens, in any thread, the classes of nodes have another ``__init__``; while nobody does,
they have their own, so making a node costs what it costs without this file.
"""

import threading
from collections.abc import Callable
from typing import Any

from ..node import Node, PlainNode
from ..swap import Swap


class _Held:
    """How often a thread listens; when it ends, that ends too, whatever blocks it was in."""

    def __init__(self) -> None:
        self.count = 0

    def __del__(self) -> None:
        if self.count:
            _makers.change(-self.count)


class _Listeners(threading.local):
    all: tuple[Callable, ...] = ()

    def __init__(self) -> None:
        self.held = _Held()


_here = _Listeners()


def _telling(name: str, plain: Callable) -> Callable:
    def __init__(self: Any, *args: Any) -> None:
        plain(self, *args)
        for listener in _here.all:
            listener(self)
    return __init__


_makers = Swap([(Node, "__init__"), (PlainNode, "__init__")], _telling)


def listen(listener: Callable) -> None:
    """Call ``listener(node)`` for every node that this thread makes from here on."""
    _here.all += (listener,)
    _here.held.count += 1
    _makers.change(1)


def unlisten(listener: Callable) -> None:
    """Take back one ``listen``."""
    rest = list(_here.all)
    rest.remove(listener)
    _here.all = tuple(rest)
    _here.held.count -= 1
    _makers.change(-1)
