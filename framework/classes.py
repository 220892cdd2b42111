"""PyTorch's ``classes``: those written in C++ with its headers, of which there are none here.

Any space can be named, as in PyTorch; a class that is asked for raises.
"""

from typing import Any, NoReturn

from .config.listing import own as _own
from .ops import load_library as _load

loaded_libraries: set[str] = set()


class Space:
    """The classes of a library: none."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __getattr__(self, name: str) -> NoReturn:
        if name.startswith("__"):
            raise AttributeError(name)
        raise RuntimeError(
            f"classes.{self.name}.{name}: classes written in C++ with PyTorch's headers cannot be "
            f"loaded here; write a class in Python, or functions with utils.cpp_extension"
        )


def load_library(path: Any) -> NoReturn:
    """Refused, as ``ops.load_library`` is."""
    _load(path)


def __getattr__(name: str) -> Space:
    """The classes of a library, by its name."""
    if name.startswith("_"):
        raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
    return Space(name)


__dir__ = _own(globals())
