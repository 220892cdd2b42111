"""What kernels of GPUs found wrong: an index out of range, say. It is told at the next wait for the device.

A kernel that checks gets the flag of its stream (``memory``) and the number of its message (``site``). The
first fault since the last look stays in the flag; ``look``, called wherever the host waits, raises it: that
of the current stream where a value is read, those of all where the device is waited for.
"""

from pathlib import Path
from typing import Any

import numpy as np

from . import cuda, device_code, device_launcher

_FLAG = np.dtype([("code", "i4"), ("where", "i4"), ("value", "i8"), ("size", "i8")])
_SOURCE = device_code.source(Path(__file__).with_name("flags.cu"), dtypes="lfdeE")
_messages: list[tuple[str, type[Exception]]] = []
_sites: dict[tuple[str, type[Exception]], int] = {}  # their numbers, from 1 on
_flags: dict[tuple[Any, int, int], Any] = {}  # of each device and stream
_used: set[tuple[int, int]] = set()  # those whose flag a kernel has been given since the last look


def site(message: str, error: type[Exception] = IndexError) -> int:
    """The number of a message, in which {value} or, of a fraction, {real}, {size} and {last} (size - 1) stand
    for what was found."""
    found = _sites.get((message, error))
    if found is None:
        _messages.append((message, error))
        found = _sites[message, error] = len(_messages)
    return found


def memory() -> Any:
    """The flag of the current device and stream, for a kernel that may raise it."""
    module = cuda.cupy()
    place = _here(module)
    _used.add(place)
    found = _flags.get((module, *place))
    if found is None:
        found = _flags[module, *place] = module.zeros(_FLAG.itemsize, np.uint8)
    return found


def _here(module: Any) -> tuple[int, int]:
    device = 0 if cuda.is_alone() else int(module.cuda.runtime.getDevice())
    return device, device_launcher.current_stream()


def check(array: Any, low: int, high: int, message: str, ignore: int | None = None,
          error: type[Exception] = IndexError) -> bool:
    """Have a kernel check that integers are within ``low`` to ``high`` - 1, or ``ignore``; False without
    kernels.

    message: as for ``site``; its {size} is ``high``. Where no number is within, that is raised at once.
    """
    if high <= low and ignore is None and device_code.is_device_array(array) and array.size:
        raise error(message.format(value="(any)", size=high, last=high - 1))
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
                    site(message, error),
                ),
            )
    return True


def check_reals(array: Any, low: float, high: float, message: str, nan: bool = True,
                error: type[Exception] = ValueError) -> bool:
    """The same for floating numbers from ``low`` to ``high``, or nan where that may be."""
    char = device_code.char_of(array) if device_code.is_device_array(array) else ""
    if char not in device_code.FLOATS:
        return False
    with array.device:
        array = cuda.cupy().ascontiguousarray(array)
        if array.size:
            _SOURCE.kernel("check_reals", char)(
                (device_code.blocks(array.size),), (device_code.THREADS,),
                (array, array.size, float(low), float(high), int(nan), memory(), site(message, error)))
    return True


def look(stream: int | None = None, everywhere: bool = False) -> None:
    """Raise what kernels of a stream (the current one) have found since the last look; the host waits anyway.

    everywhere: of all streams, which the host has waited for.
    """
    if not _used or not device_code.enabled:
        return
    module = cuda.cupy()
    device, current = _here(module)
    places = list(_used) if everywhere else [(device, current if stream is None else stream)]
    for place in places:
        flag = _flags.get((module, *place)) if place in _used else None
        _used.discard(place)
        if flag is None:
            continue
        with module.cuda.Device(place[0]):
            found = np.frombuffer(flag.get().tobytes(), _FLAG)[0]
            if not found["code"]:
                continue
            flag.fill(0)
            module.cuda.get_current_stream().synchronize()  # before other streams use it again
        value, size = int(found["value"]), int(found["size"])
        message, error = _messages[int(found["code"]) - 1]
        real = f"{found['value'].view(np.float64):g}"
        text = message.format(value=value, real=real, size=size, last=size - 1)
        raise error(f"{text} (found on cuda:{place[0]}, told when the host waited for it)")


cuda.at_waits.append(look)
cuda.after_waits.append(look)
