"""What ``dir()`` and completion show of a package: its public names, not the files it is made of."""

from collections.abc import Callable
from types import ModuleType
from typing import Any


def listing(namespace: dict[str, Any], modules: str = "") -> Callable[[], list[str]]:
    """The ``__dir__`` of a package: what it names itself, and of its modules only those named in ``modules``.

    The others are attributes once they are imported, but nobody should find them by completion.
    """
    def __dir__() -> list[str]:
        """The public names."""
        own = {name for name, value in namespace.items() if name.startswith("__")
               or not (name.startswith("_") or isinstance(value, ModuleType))}
        return sorted(own | set(modules.split()))
    return __dir__


def own(namespace: dict[str, Any], further: str = "") -> Callable[[], list[str]]:
    """The ``__dir__`` of a module of one file: what it defines itself, and the names in ``further``."""
    def __dir__() -> list[str]:
        """The public names."""
        here = namespace["__name__"]
        found = {name for name, value in namespace.items() if name.startswith("__")
                 or not name.startswith("_") and getattr(value, "__module__", None) == here}
        return sorted(found | set(further.split()))
    return __dir__
