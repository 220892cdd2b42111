"""The accelerator of this machine under names that name no vendor: the GPUs that CuPy sees, or none."""

from typing import Any

from . import cpu as _cpu
from . import cuda as _cuda
from .backends import cuda as _backend
from .config.listing import own as _own
from .device import Device
from .errors import DeviceError


def is_available() -> bool:
    """Whether there is a GPU.

    >>> isinstance(fw.accelerator.is_available(), bool)
    True
    """
    return _cuda.is_available()


def current_accelerator(check_available: bool = False) -> Device | None:
    """The kind of accelerator, ``device("cuda")``, or None without a GPU."""
    return Device("cuda") if _cuda.is_available() else None


def device_count() -> int:
    """The number of GPUs."""
    return _cuda.device_count()


def _needed() -> None:
    if not _cuda.is_available():
        raise DeviceError("there is no accelerator: CuPy is not installed or sees no GPU; use 'cpu'")


def current_device_index() -> int:
    """The number of the current GPU; DeviceError without one."""
    _needed()
    return _cuda.current_device()


def set_device_index(device: Any) -> None:
    """Make a GPU the current one; DeviceError where it is not there."""
    _needed()
    _cuda.set_device(device)


current_device_idx, set_device_idx = current_device_index, set_device_index


class device_index(_cuda.device):
    """A block in which a GPU is the current one; nothing for None."""


def synchronize(device: Any = None) -> None:
    """Wait until all work queued on a GPU is done; DeviceError without one."""
    _needed()
    _cuda.synchronize(device)


def current_stream(device: Any = None) -> "_cuda.Stream":
    """The queue that work goes into now; DeviceError without a GPU."""
    _needed()
    return _cuda.current_stream(device)


def set_stream(stream: "_cuda.Stream") -> None:
    """Let work go into a queue from here on; DeviceError without a GPU."""
    _needed()
    _cuda.set_stream(stream)


def empty_cache() -> None:
    """Give memory kept for later back to the driver; DeviceError without a GPU."""
    _needed()
    _cuda.empty_cache()


def memory_allocated(device: Any = None) -> int:
    """Bytes in arrays on a GPU; DeviceError without one."""
    _needed()
    return _cuda.memory_allocated(device)


def memory_reserved(device: Any = None) -> int:
    """Bytes in arrays on a GPU and in the pool behind them; DeviceError without one."""
    _needed()
    return _cuda.memory_reserved(device)


def max_memory_allocated(device: Any = None) -> int:
    """See ``cuda.max_memory_allocated``; DeviceError without a GPU."""
    _needed()
    return _cuda.max_memory_allocated(device)


def max_memory_reserved(device: Any = None) -> int:
    """See ``cuda.max_memory_reserved``; DeviceError without a GPU."""
    _needed()
    return _cuda.max_memory_reserved(device)


def memory_stats(device: Any = None) -> dict[str, int]:
    """See ``cuda.memory_stats``; DeviceError without a GPU."""
    _needed()
    return _cuda.memory_stats(device)


def get_memory_info(device: Any = None) -> tuple[int, int]:
    """Bytes of a GPU (free, in all); DeviceError without one."""
    _needed()
    return _cuda.mem_get_info(device)


def empty_host_cache() -> None:
    """Give pinned memory kept for later back to the system; DeviceError without a GPU."""
    _needed()
    _backend.cupy().get_default_pinned_memory_pool().free_all_blocks()


def reset_accumulated_memory_stats(device: Any = None) -> None:
    """Look for the peaks anew: sums over the whole time are not counted; DeviceError without a GPU."""
    _needed()
    _cuda.reset_accumulated_memory_stats(device)


def reset_peak_memory_stats(device: Any = None) -> None:
    """Look for the peaks anew; DeviceError without a GPU."""
    _needed()
    _cuda.reset_peak_memory_stats(device)


def get_device_module(device: Any = None) -> Any:
    """The module for a kind of device, ``framework.cpu`` or ``framework.cuda``; default: that of the
    accelerator.

    Raises RuntimeError for a kind without a module.

    >>> fw.get_device_module("cpu").__name__
    'framework.cpu'
    """
    if device is None:
        kind = "cuda" if _cuda.is_available() else "cpu"
    else:
        kind = device if isinstance(device, str) and ":" not in device else Device(device).type
    modules = {"cpu": _cpu, "cuda": _cuda}
    if kind not in modules:
        raise RuntimeError(f"get_device_module: there is no module for {kind!r}, but for 'cpu' and 'cuda'")
    return modules[kind]


def Stream(device: Any = None, *, priority: int = 0) -> "_cuda.Stream":
    """A queue of work of a GPU, as ``cuda.Stream``; DeviceError for other devices, which have none."""
    _needed()
    if device is not None and Device(device).type != "cuda":
        raise DeviceError(f"Stream: work on {device} is not queued; streams are of GPUs")
    return _cuda.Stream(device, priority)


def Event(device: Any = None, *, enable_timing: bool = False, blocking: bool = False,
          interprocess: bool = False) -> "_cuda.Event":
    """A mark in a queue of a GPU, as ``cuda.Event``; DeviceError for other devices, which have none."""
    _needed()
    if device is not None and Device(device).type != "cuda":
        raise DeviceError(f"Event: work on {device} is not queued; marks are in streams of GPUs")
    with _cuda.device(None if device is None else Device(device).index):
        return _cuda.Event(enable_timing, blocking, interprocess)


__dir__ = _own(globals())
