"""``torch.ops``: operators by space and name, of ``aten`` and of ``library``, without the rooms of ours."""

from typing import Any

from ...ops.spaces import load_library as load_library
from ...ops.spaces import loaded_libraries as loaded_libraries
from ...ops.spaces import space


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(name)
    return space(name)
