"""``torch.ops``: the operators of `library.custom_op`, by the space and name they were given."""

from types import ModuleType
from typing import Any

from ...library import operators

__all__ = ["load_library"]


def load_library(path: str) -> None:
    """Raises OSError: what was built against PyTorch's headers cannot be loaded."""
    raise OSError(f"torch.ops.load_library: {path} was built for PyTorch's C++ core, which is not there")


class Space(ModuleType):
    """``torch.ops.<name>``: there for every name, as in PyTorch; what was not registered in it is missing."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        found = operators().get(f"{self.__name__.rpartition('.')[2]}::{name}")
        if found is None:
            raise AttributeError(f"{self.__name__}.{name} is not there: no operator of this name was made "
                                 f"by torch.library.custom_op")
        return found


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(name)
    space = globals()[name] = Space(f"torch.ops.{name}")
    return space
