"""PyTorch's names for types of arguments, for annotations of programs."""

import builtins
import os
from collections.abc import Sequence
from typing import IO, TypeAlias

from . import dtypes, layouts
from .config.listing import own as _own
from .device import Device as DeviceClass
from .size import Size
from .storage import TypedStorage as Storage
from .tensor import Tensor

__all__ = ["Device", "FileLike", "Number", "Storage"]

_int, _float, _bool, _str = builtins.int, builtins.float, builtins.bool, builtins.str
_complex, _bytes = builtins.complex, builtins.bytes
_device, _dtype, _layout = DeviceClass, dtypes.DType, layouts.Layout
Number: TypeAlias = int | float | bool
Device: TypeAlias = DeviceClass | str | int | None
FileLike: TypeAlias = str | os.PathLike[str] | IO[bytes]
_size: TypeAlias = Size | list[int] | tuple[int, ...]
_symsize, _dispatchkey = _size, _str
_TensorOrTensors: TypeAlias = Tensor | Sequence[Tensor]
py_sym_types = (int, float, bool)
PySymType: TypeAlias = int | float | bool


__dir__ = _own(globals(), "Device FileLike Number PySymType Size Storage Tensor py_sym_types")
