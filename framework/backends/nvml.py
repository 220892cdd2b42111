"""How many GPUs there are, from NVIDIA's management library, which does not start CUDA in this process.

A process that has started CUDA cannot use it in children that it forks; asking whether there is a GPU must
not do that.
"""

import ctypes
import os


def device_count() -> int | None:
    """The GPUs that CUDA would show, 0 without a driver; None where only CUDA can tell."""
    try:
        library = ctypes.CDLL("libnvidia-ml.so.1")
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
