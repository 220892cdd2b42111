"""Settings of the libraries under a backend: modules that check what they are set to."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any


class Flags(ModuleType):
    """A module whose settings take only what they are for; with others they raise, and stay as they were."""

    def __setattr__(self, name: str, value: Any) -> None:
        kinds = self.__dict__.get("KINDS", {})
        if name in kinds and not isinstance(value, kinds[name]):
            raise TypeError(f"{self.__name__}.{name} must be of type {kinds[name].__name__}, got {value!r}")
        super().__setattr__(name, value)


def checking(name: str) -> None:
    """Let a module check what its settings, by name in ``KINDS``, are set to."""
    sys.modules[name].__class__ = Flags


@contextmanager
def set_for(module: str, **settings: Any) -> Iterator[None]:
    """A block in which settings of a module have other values; None leaves one alone."""
    home = sys.modules[module]
    before = {name: getattr(home, name) for name in settings}
    try:
        for name, value in settings.items():
            if value is not None:
                setattr(home, name, value)
        yield
    finally:
        for name, value in before.items():
            setattr(home, name, value)
