"""The CPU as a device: its memory and its threads, under the names PyTorch programs look for.

>>> fw.cpu.device_count()
1
"""

from ..backends.memory import empty_cache as empty_cache
from ..backends.memory import max_memory_allocated as max_memory_allocated
from ..backends.memory import memory_allocated as memory_allocated
from ..backends.memory import memory_reserved as memory_reserved
from ..backends.memory import memory_stats as memory_stats
from ..backends.memory import memory_summary as memory_summary
from ..backends.memory import reset_peak_memory_stats as reset_peak_memory_stats
from ..backends.memory import set_cache_limit as set_cache_limit
from ..config.listing import listing as _listing
from . import amp as amp


def is_available() -> bool:
    """True: there always is one."""
    return True


def device_count() -> int:
    """1, however many cores and sockets."""
    return 1


def current_device() -> str:
    """"cpu"."""
    return "cpu"


def synchronize(device: object = None) -> None:
    """Wait for the CPU, which is never behind."""

__dir__ = _listing(globals(), "amp")
