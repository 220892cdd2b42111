"""NumPy: the array module and memory of the CPU."""

from typing import Any

import numpy as np

from .. import _native
from ..config.listing import own as _own
from ..device import CPU, Device

xp = np
ndarray = np.ndarray


def device_of(array: Any) -> Device:
    """The device of one of this backend's arrays."""
    return CPU


def asarray(obj: Any, dtype: np.dtype | None, device: Device) -> np.ndarray:
    """An array of ``obj``; no copy if it is one already."""
    return np.asarray(obj, dtype=dtype)


def empty(shape: tuple[int, ...], dtype: np.dtype, device: Device) -> np.ndarray:
    """Uninitialised memory."""
    return np.empty(shape, dtype)


def to_numpy(array: Any) -> np.ndarray:
    """The array as a NumPy array."""
    return array


def get_cpu_capability() -> str:
    """The instruction set of the native kernels, in PyTorch's words: "DEFAULT", "AVX2" or "AVX512"."""
    return {"avx2": "AVX2", "avx512": "AVX512"}.get(_native.isa, "DEFAULT")


def synchronize(device: Device) -> None:
    """Wait until all queued work of the device is done: on the CPU it always is."""


__dir__ = _own(globals())
