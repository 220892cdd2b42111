"""What a module shows as its ``_parameters``, ``_buffers`` and ``_modules``."""

from collections.abc import Iterator, MutableMapping
from typing import Any


class Registry(MutableMapping):
    """The registered values of one kind, by name: a live view of a module's attributes."""

    def __init__(self, module: Any, kind: str) -> None:
        self._module, self._kind = module, kind

    def __getitem__(self, name: str) -> Any:
        if self._module._kinds.get(name) != self._kind:
            raise KeyError(name)
        return self._module.__dict__[name]

    def __setitem__(self, name: str, value: Any) -> None:
        self._module._register(name, value, self._kind)

    def __delitem__(self, name: str) -> None:
        self[name]
        delattr(self._module, name)

    def __iter__(self) -> Iterator[str]:
        return iter([n for n, kind in self._module._kinds.items() if kind == self._kind])

    def __len__(self) -> int:
        return len(list(iter(self)))

    def __repr__(self) -> str:
        return repr(dict(self))
