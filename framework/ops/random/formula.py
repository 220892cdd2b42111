"""Formulas of numbers that were drawn: NumPy's functions where they lie on the host, one kernel on a GPU."""

from typing import Any

import numpy as np

from ... import _native
from ...backends import cuda, device_code, move, on_device
from ...backends.native import converted
from ...device import CPU, Device
from ...quiet import quietly
from ..language.cuda import DeviceKernel
from ..language.expression import array_function
from ..language.program import native_kernel
from ..record.rounded import by_float32


class Formula:
    """An expression (``ops/language``) of arrays, which lie on one device, the first one among them, and
    numbers. rounded: by operations that are rounded correctly, so that the native engine has NumPy's bits."""

    def __init__(self, text: str, names: str, rounded: bool = False) -> None:
        self.text, self.names = text, names
        each, plain = tuple(names.split(", ")), array_function(text, names, np)
        self.on_host = native_kernel(text, each, plain) if rounded else plain
        self._device = DeviceKernel(text, each, by_float32(self._by_cupy, lambda: self._by_cupy))

    def __call__(self, first: Any, *rest: Any) -> Any:
        if not device_code.is_device_array(first):
            return self.on_host(first, *rest)
        with on_device(first):
            return self._device(first, *rest)

    def _by_cupy(self, *arguments: Any) -> Any:
        return array_function(self.text, self.names, cuda.cupy())(*arguments)


def placed(array: Any, dtype: np.dtype, device: Device) -> Any:
    """What was made of numbers that were drawn, in a dtype and on a device."""
    if device_code.is_device_array(array):
        with on_device(array):
            return array.astype(dtype, copy=False)
    array = np.asarray(array)
    if _native.module is not None and array.size and device is CPU:  # no warning of what becomes infinite
        return array if array.dtype is dtype else converted(array, dtype)
    return move(array if array.dtype == dtype else quietly(converted, array, dtype), device)
