"""PyTorch's place for ``save`` and ``load``, and its list of classes that files may name.

Files hold plain data and tensors here, and no class is built from one, listed or not: the list is what a
refusal looks at to say so. ``load(..., weights_only=False)`` opens what this package saved as a whole object.
"""

from collections.abc import Iterable
from typing import Any

from .io import load as load
from .io import save as save
from .io.pickled import safe


def _name(item: Any) -> str:
    kind, name = item if isinstance(item, tuple) else (item, None)
    if not callable(kind):
        raise TypeError(f"add_safe_globals: wanted classes, functions or (class, name), got {item!r}")
    return name or f"{kind.__module__}.{kind.__qualname__}"


def add_safe_globals(safe_globals: list[Any]) -> None:
    """List classes that files may name; a file that needs one is still refused, and told what to do.

    >>> fw.serialization.add_safe_globals([complex]); fw.serialization.get_safe_globals()
    [<class 'complex'>]
    >>> fw.serialization.clear_safe_globals()
    """
    safe.update({_name(item): item for item in safe_globals})


def get_safe_globals() -> list[Any]:
    """The classes that were listed."""
    return list(safe.values())


def clear_safe_globals() -> None:
    """Forget the list."""
    safe.clear()


class safe_globals:
    """A block in which classes are listed as ``add_safe_globals`` does."""

    def __init__(self, safe_globals: Iterable[Any]) -> None:
        self.items = list(safe_globals)

    def __enter__(self) -> None:
        self.before = dict(safe)
        add_safe_globals(self.items)

    def __exit__(self, *error: Any) -> None:
        safe.clear()
        safe.update(self.before)
