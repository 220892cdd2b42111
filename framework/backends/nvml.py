"""NVIDIA's management library: how many GPUs there are, and how they are, without starting CUDA here.

A process that has started CUDA cannot use it in children that it forks; asking whether there is a GPU must
not do that.
"""

import ctypes
import os
from typing import Any

from ..errors import DeviceError

LIBRARY = "libnvidia-ml.so.1"


def device_count() -> int | None:
    """The GPUs that CUDA would show, 0 without a driver; None where only CUDA can tell."""
    try:
        library = ctypes.CDLL(LIBRARY)
    except OSError:
        return None
    if library.nvmlInit_v2():
        return None
    try:
        found = ctypes.c_uint()
        if library.nvmlDeviceGetCount_v2(ctypes.byref(found)):
            return None
    finally:
        library.nvmlShutdown()
    return _visible(found.value, os.environ.get("CUDA_VISIBLE_DEVICES"))


def _visible(count: int, chosen: str | None) -> int | None:
    """What ``CUDA_VISIBLE_DEVICES`` leaves: numbers up to the first that no GPU has; None for names."""
    if chosen is None:
        return count
    seen: list[int] = []
    for word in chosen.split(",") if chosen.strip() else ():
        try:
            number = int(word)
        except ValueError:
            return None  # the GPU's long name, or a part of one
        if not 0 <= number < count:
            break
        if number in seen:
            return 0  # CUDA refuses all then
        seen.append(number)
    return len(seen)


class Rates(ctypes.Structure):
    """Per cent of the last moments in which kernels ran, and in which memory was read or written."""

    _fields_ = [("gpu", ctypes.c_uint), ("memory", ctypes.c_uint)]


class Memory(ctypes.Structure):
    """Bytes of a device."""

    _fields_ = [("total", ctypes.c_ulonglong), ("free", ctypes.c_ulonglong), ("used", ctypes.c_ulonglong)]


class Process(ctypes.Structure):
    """A process, the bytes of a device that it has, and which parts of a divided one."""

    _fields_ = [("pid", ctypes.c_uint), ("used", ctypes.c_ulonglong), ("part", ctypes.c_uint),
                ("part_that_computes", ctypes.c_uint)]


def reading(name: str, bus: str, function: str, *arguments: Any, into: Any) -> Any:
    """What the library says of the device on a bus, for ``cuda.<name>``; DeviceError without it."""
    try:
        library = ctypes.CDLL(LIBRARY)
    except OSError as error:
        raise DeviceError(f"cuda.{name}: NVIDIA's management library {LIBRARY} is not there ({error}); it "
                          f"comes with the driver, in containers with the capability 'utility'") from None
    failed = library.nvmlInit_v2()
    if not failed:
        try:
            device = ctypes.c_void_p()
            failed = (library.nvmlDeviceGetHandleByPciBusId_v2(bus.encode(), ctypes.byref(device))
                      or getattr(library, function)(device, *arguments, ctypes.byref(into)))
        finally:
            library.nvmlShutdown()
    if failed:
        raise DeviceError(f"cuda.{name}: {function} of {LIBRARY} failed with code {failed} for the device on "
                          f"bus {bus}")
    return into
