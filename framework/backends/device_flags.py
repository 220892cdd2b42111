"""What kernels of GPUs found wrong: an index out of range, say. It is told at the next wait for the device.

A kernel that checks gets the device's flag (``memory``) and the number of its message (``site``). The first
fault since the last look stays in the flag; ``look``, called wherever the host waits, raises it as an
IndexError.
"""

from pathlib import Path
from typing import Any

import numpy as np

from . import cuda, device_code

_FLAG = np.dtype([("code", "i4"), ("where", "i4"), ("value", "i8"), ("size", "i8")])
_SOURCE = device_code.source(Path(__file__).with_name("flags.cu"), dtypes="l")
_messages: list[str] = []
_flags: dict[tuple[Any, int], Any] = {}  # of each device
_used: set[int] = set()  # devices whose flag a kernel has been given since the last look


def site(message: str) -> int:
    """The number of a message, in which {value}, {size} and {last} (size - 1) stand for what was found."""
    if message not in _messages:
        _messages.append(message)
    return _messages.index(message) + 1


def memory() -> Any:
    """The flag of the current device, for a kernel that may raise it."""
    module = cuda.cupy()
    device = int(module.cuda.runtime.getDevice())
    _used.add(device)
    found = _flags.get((module, device))
    if found is None:
        found = _flags[module, device] = module.zeros(_FLAG.itemsize, np.uint8)
    return found


def check(array: Any, low: int, high: int, message: str, ignore: int | None = None) -> bool:
    """Have a kernel check that integers are within ``low`` to ``high`` - 1, or ``ignore``; False without
    kernels.

    message: as for ``site``; its {size} is ``high``.
    """
    if not device_code.enabled or not device_code.is_device_array(array):
        return False
    module = cuda.cupy()
    with array.device:
        array = module.ascontiguousarray(array if array.dtype == np.int64 else array.astype(np.int64))
        if array.size:
            _SOURCE.kernel("check_range", "l")(
                (device_code.blocks(array.size),),
                (device_code.THREADS,),
                (
                    array,
                    array.size,
                    low,
                    high,
                    int(ignore is not None),
                    ignore or 0,
                    high,
                    memory(),
                    site(message),
                ),
            )
    return True


def look() -> None:
    """Raise what kernels have found since the last look; the host is waiting anyway."""
    if not _used or not device_code.enabled:
        return
    module = cuda.cupy()
    for device in list(_used):
        _used.discard(device)
        flag = _flags.get((module, device))
        if flag is None:
            continue
        with module.cuda.Device(device):
            found = np.frombuffer(flag.get().tobytes(), _FLAG)[0]
            if not found["code"]:
                continue
            flag.fill(0)
        value, size = int(found["value"]), int(found["size"])
        text = _messages[int(found["code"]) - 1].format(value=value, size=size, last=size - 1)
        raise IndexError(f"{text} (found on cuda:{device}, told when the host waited for it)")


cuda.at_waits.append(look)
