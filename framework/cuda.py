"""NVIDIA GPUs: whether there are any, and waiting for them."""

from typing import Any

from .backends import cuda as _backend
from .device import Device, as_device


def is_available() -> bool:
    """Whether CuPy is installed and sees a CUDA device.

    >>> isinstance(fw.cuda.is_available(), bool)
    True
    """
    return _backend.device_count() > 0


def device_count() -> int:
    """The number of CUDA devices CuPy sees; 0 without CuPy."""
    return _backend.device_count()


def current_device() -> int:
    """The number of the device that ``cuda`` means."""
    return _backend.index_of(Device("cuda"))


def synchronize(device: Any = None) -> None:
    """Wait until all work queued on a device (default: the current one) is done."""
    target = as_device("cuda" if device is None else device)
    _backend.require(target)
    _backend.synchronize(target)
