"""Attributes of classes that are replaced while somebody wants it, in any thread, and are their own
otherwise.

So what is rarely wanted (being told of every node, of every read) costs nothing the rest of the time.
"""

import threading
from collections.abc import Callable, Iterable


class Swap:
    """Attributes ``name`` of classes, to be replaced by ``make(name, own)`` while the count is not 0."""

    def __init__(self, places: Iterable[tuple[type, str]], make: Callable[[str, Callable], Callable]) -> None:
        self._own = {(kind, name): getattr(kind, name) for kind, name in places}
        self._make = make
        self._lock = threading.Lock()
        self._count = 0

    def change(self, by: int) -> None:
        """So many more want it (or fewer)."""
        with self._lock:
            before, self._count = self._count, self._count + by
            if not before or not self._count:
                for (kind, name), own in self._own.items():
                    setattr(kind, name, self._make(name, own) if self._count else own)
