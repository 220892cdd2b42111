"""How busy, warm and fast a GPU is, as NVIDIA's management library, which comes with the driver, says it."""

import ctypes
from typing import Any

from ..backends import cuda as _backend
from ..backends import nvml
from ..config.listing import own as _own
from .devices import needed

_CELSIUS, _MULTIPROCESSORS = 0, 1  # of the sensors, and of the clocks


def _said(name: str, device: Any, function: str, *arguments: int, into: Any = None) -> Any:
    bus = _backend.cupy().cuda.runtime.deviceGetPCIBusId(needed(device).index)
    return nvml.reading(name, bus, function, *arguments, into=ctypes.c_uint() if into is None else into)


def utilization(device: Any = None) -> int:
    """Per cent of the last moments in which kernels ran; DeviceError without a GPU or the library."""
    return int(_said("utilization", device, "nvmlDeviceGetUtilizationRates", into=nvml.Rates()).gpu)


def memory_usage(device: Any = None) -> int:
    """Per cent of the last moments in which its memory was read or written; DeviceError likewise."""
    return int(_said("memory_usage", device, "nvmlDeviceGetUtilizationRates", into=nvml.Rates()).memory)


def device_memory_used(device: Any = None) -> int:
    """Bytes of a device that all processes use; DeviceError likewise."""
    return int(_said("device_memory_used", device, "nvmlDeviceGetMemoryInfo", into=nvml.Memory()).used)


def temperature(device: Any = None) -> int:
    """Degrees Celsius of the chip; DeviceError likewise."""
    return int(_said("temperature", device, "nvmlDeviceGetTemperature", _CELSIUS).value)


def power_draw(device: Any = None) -> int:
    """Milliwatts that it takes, with its memory; DeviceError likewise."""
    return int(_said("power_draw", device, "nvmlDeviceGetPowerUsage").value)


def clock_rate(device: Any = None) -> int:
    """Megahertz of its multiprocessors; DeviceError likewise."""
    return int(_said("clock_rate", device, "nvmlDeviceGetClockInfo", _MULTIPROCESSORS).value)


__dir__ = _own(globals())
