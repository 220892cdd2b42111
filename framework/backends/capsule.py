"""DLPack capsules of bfloat16, which NumPy neither makes nor reads: they travel as uint16 with another label.

A capsule points at a struct whose element type is two bytes and a count: code, bits, lanes. Code 1 is
unsigned, 4 is bfloat16 (dlpack.h, DLDataTypeCode).
"""

import ctypes
from typing import Any

import numpy as np

_UNSIGNED, _BFLOAT = 1, 4
# where the element type stands in the struct, by the capsule's name
_OFFSETS = {b"dltensor": 20, b"dltensor_versioned": 52}
_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_pointer.restype, _pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
_name = ctypes.pythonapi.PyCapsule_GetName
_name.restype, _name.argtypes = ctypes.c_char_p, [ctypes.py_object]


class Exported:
    """An exporter of a capsule that is there already; it can be read once."""

    def __init__(self, capsule: Any) -> None:
        name = _name(capsule)
        if name not in _OFFSETS:
            raise TypeError(f"from_dlpack: the capsule is called {name!r}, and one that nobody has read yet "
                            f"'dltensor'; export the tensor again")
        self.capsule = capsule
        address = _pointer(capsule, name) + _OFFSETS[name] - 12  # device and dimensions stand before the type
        self.device = tuple((ctypes.c_int32 * 2).from_address(address))

    def __dlpack__(self, **settings: Any) -> Any:
        return self.capsule

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.device  # type: ignore[return-value]


def _relabel(capsule: Any, old: int, new: int) -> bool:
    """Relabel 16-bit elements of kind ``old``; gives whether they were of that kind."""
    name = _name(capsule)
    address = _pointer(capsule, name) + _OFFSETS[name]
    code = ctypes.c_uint8.from_address(address)
    if code.value != old or ctypes.c_uint8.from_address(address + 1).value != 16:
        return False
    code.value = new
    return True


def export_bfloat16(array: np.ndarray, **settings: Any) -> Any:
    """The capsule of a bfloat16 array on the CPU."""
    capsule = array.view(np.uint16).__dlpack__(**settings)
    _relabel(capsule, _UNSIGNED, _BFLOAT)
    return capsule


class _AsUnsigned:
    """An exporter of bfloat16 as NumPy can read it."""

    def __init__(self, source: Any) -> None:
        self.source = source
        self.relabelled = False

    def __dlpack__(self, **settings: Any) -> Any:
        capsule = self.source.__dlpack__(**settings)
        self.relabelled = _relabel(capsule, _BFLOAT, _UNSIGNED)
        return capsule

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.source.__dlpack_device__()


def read_bfloat16(source: Any) -> np.ndarray | None:
    """The memory of an exporter of bfloat16 as uint16; None if its elements are of another dtype."""
    exporter = _AsUnsigned(source)
    try:
        array = np.from_dlpack(exporter)
    except (RuntimeError, BufferError):  # the latter since NumPy 2.5
        return None
    return array if exporter.relabelled else None
