"""How busy, warm and fast a GPU is, as NVIDIA's management library, which comes with the driver, says it."""

import ctypes
from typing import Any

from ..backends import cuda as _backend
from ..backends import nvml
from ..config.listing import own as _own
from .devices import needed

_CELSIUS, _MULTIPROCESSORS = 0, 1  # of the sensors, and of the clocks


def _said(name: str, device: Any, function: str, *arguments: Any, into: Any = None) -> Any:
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


_MOST_PROCESSES = 1024
_UNKNOWN = (1 << 64) - 1  # where the driver does not tell, as in containers


def list_gpu_processes(device: Any = None) -> str:
    """The processes that compute on a device, one to a line, each with its memory; DeviceError likewise.

    Processes outside of a container may not be seen from inside.
    """
    count = ctypes.c_uint(_MOST_PROCESSES)
    found = _said("list_gpu_processes", device, "nvmlDeviceGetComputeRunningProcesses_v3",
                  ctypes.byref(count), into=(nvml.Process * _MOST_PROCESSES)())
    lines = [f"GPU:{needed(device).index}"]
    for process in found[: count.value]:
        size = "unknown memory" if process.used == _UNKNOWN else f"{process.used / 2 ** 20:.1f} MiB"
        lines.append(f"process {process.pid} has {size}")
    return "\n".join(lines if len(lines) > 1 else [*lines, "no process computes"])


__dir__ = _own(globals())
