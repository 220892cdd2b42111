"""What ``dir()`` and completion show: public names, neither the files of a package nor its imports."""

from collections.abc import Callable
from types import ModuleType
from typing import Any


def listing(namespace: dict[str, Any], modules: str = "", further: str = "") -> Callable[[], list[str]]:
    """The ``__dir__`` of a package: what it names itself, and of its modules only those named in ``modules``.

    The others are attributes once they are imported, but nobody should find them by completion; nor what was
    only imported from elsewhere, but for the names in ``further``.
    """
    def __dir__() -> list[str]:
        """The public names."""
        root = namespace["__name__"].partition(".")[0]
        own = {name for name, value in namespace.items() if name.startswith("__")
               or not (name.startswith("_") or isinstance(value, ModuleType) or _is_foreign(value, root))}
        return sorted(own | {*modules.split(), *further.split()})
    return __dir__


def _is_foreign(value: Any, root: str) -> bool:
    home = getattr(value, "__module__", None) or root
    return isinstance(home, str) and home.partition(".")[0]  != root


def own(namespace: dict[str, Any], further: str = "") -> Callable[[], list[str]]:
    """The ``__dir__`` of a module of one file: what it defines itself, and the names in ``further``."""
    def __dir__() -> list[str]:
        """The public names."""
        here = namespace["__name__"]
        found = {name for name, value in namespace.items() if name.startswith("__")
                 or not name.startswith("_") and getattr(value, "__module__", None) == here}
        return sorted(found | set(further.split()))
    return __dir__
