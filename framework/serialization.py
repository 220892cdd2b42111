"""PyTorch's place for ``save`` and ``load``, and its list of classes that files may name.

Files hold plain data and tensors here, and no class is built from one, listed or not: the list is what a
refusal looks at to say so. ``load(..., weights_only=False)`` opens what this package saved as a whole object.
"""

from collections.abc import Callable, Iterable
from typing import Any, TypeAlias

from .config.listing import own as _own
from .device import as_device
from .errors import CheckpointError
from .io import load as load
from .io import save as save
from .io.pickled import safe
from .storage import UntypedStorage
from .tensor import Tensor
from .types import FileLike

DEFAULT_PROTOCOL = 2  # of pickle, which programs hand to ``save``; files are written in one way here

FILE_LIKE: TypeAlias = FileLike
MAP_LOCATION: TypeAlias = Callable[[Tensor, str], Tensor | None] | str | dict[str, str] | None


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


def get_unsafe_globals_in_checkpoint(f: Any) -> list[str]:
    """The names of classes and functions in a file of PyTorch that are no plain data; a file without any is
    read.

    Nothing that the file names is imported or called. Raises CheckpointError for a file that is damaged.

    >>> import io
    >>> file = io.BytesIO(); fw.save({"w": fw.ones(1)}, file)
    >>> fw.serialization.get_unsafe_globals_in_checkpoint(io.BytesIO(file.getvalue()))
    []
    """
    try:
        load(f, map_location="cpu")
    except CheckpointError as error:
        if not hasattr(error, "refused"):
            raise
        return [name for name in error.refused if name not in safe]
    return []


def default_restore_location(storage: UntypedStorage, location: str) -> UntypedStorage:
    """The storage on the device of this name, "cpu" or "cuda:0": what ``load`` does without ``map_location``.

    >>> s = fw.ones(2).untyped_storage()
    >>> fw.serialization.default_restore_location(s, "cpu") is s
    True
    """
    device = as_device(location)
    if device == storage.device:
        return storage
    return type(storage)(storage._tensor.to(device))  # type: ignore[attr-defined]


__dir__ = _own(globals(), "FILE_LIKE MAP_LOCATION load save")
