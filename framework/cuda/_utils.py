"""What libraries for PyTorch take from its inside."""

from typing import Any

from ..device import Device
from .devices import current_device


def _get_device_index(device: Any, optional: bool = False, allow_cpu: bool = False) -> int:
    """The number of a device: an int itself; for "cuda", and None if ``optional``, the current one; -1 for
    the CPU if ``allow_cpu``. ValueError for others."""
    if isinstance(device, int):
        return device
    if device is None and not optional:
        raise ValueError("a device was expected, got None")
    found = Device("cuda") if device is None else Device(device)
    if found.type == "cuda":
        return current_device() if found.index is None else found.index
    if found.type == "cpu" and allow_cpu:
        return -1
    raise ValueError(f"a CUDA device was expected, got {str(found)!r}")
