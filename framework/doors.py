"""Doors to what stands above: parts of the package that are loaded when somebody below first needs them.

An import by name would point up. So ``framework/__init__``, which stands above all, hangs the doors, and
whoever is below goes through them: a program without sparse tensors, say, does not pay for that package.
"""

from collections.abc import Callable
from typing import Any

_OPENERS: dict[str, Callable[[], Any]] = {}


def hang(**openers: Callable[[], Any]) -> None:
    """Let ``through(name)`` give what the function of that name gives."""
    _OPENERS.update(openers)


def through(name: str) -> Any:
    """What stands behind a door; loaded if nobody has gone through yet."""
    return _OPENERS[name]()
