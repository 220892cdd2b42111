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
