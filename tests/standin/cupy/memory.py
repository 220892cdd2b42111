"""CuPy's memory pool, as far as its counts go: memory in arrays, memory kept for later, a limit."""

import os
import weakref
from typing import Any

import numpy as np

from . import streams

TOTAL = int(os.environ.get("CUDA_ON_CPU_MEMORY", 1 << 34))  # bytes of each device


class OutOfMemoryError(MemoryError):
    """No block of that size, also after the kept ones were given back."""


class MemoryPointer:
    """A block of a pool."""

    def __init__(self, device_id: int) -> None:
        self.device_id = device_id
        self.uses = streams.Uses()


class MemoryPool:
    """Bytes in use and bytes held, of each device."""

    def __init__(self, current: Any) -> None:
        self._current, self._used, self._held, self._limits = current, {}, {}, {}  # type: ignore[var-annotated]

    def malloc(self, size: int) -> MemoryPointer:
        """A block; multiples of 512 bytes."""
        device, size = self._current(), -(-size // 512) * 512
        grown = max(self.used_bytes() + size - self.total_bytes(), 0)
        limit = self.get_limit() or TOTAL
        if self.total_bytes() + grown > limit:
            self.free_all_blocks()
            grown = size
            if self.total_bytes() + size > limit:
                raise OutOfMemoryError(size)
        self._used[device] = self.used_bytes() + size
        self._held[device] = self.total_bytes() + grown
        pointer = MemoryPointer(device)
        weakref.finalize(pointer, self._free, device, size, pointer.uses).atexit = False
        return pointer

    def _free(self, device: int, size: int, uses: "streams.Uses") -> None:
        if streams.used:
            uses.free()
        self._used[device] -= size

    def used_bytes(self) -> int:
        """In arrays of the current device."""
        return self._used.get(self._current(), 0)

    def total_bytes(self) -> int:
        """In arrays and kept."""
        return self._held.get(self._current(), 0)

    def free_all_blocks(self, stream: Any = None) -> None:
        """Give back what is kept."""
        self._held[self._current()] = self.used_bytes()

    def set_limit(self, size: int | None = None, fraction: float | None = None) -> None:
        """At most so many bytes of the current device, or that part of them; 0: no limit."""
        self._limits[self._current()] = int((fraction or 0) * TOTAL) if size is None else size

    def get_limit(self) -> int:
        """The limit in bytes; 0: none."""
        return self._limits.get(self._current(), 0)


def block_of(allocator: Any, array: np.ndarray) -> Any:
    """What an allocator gives for an array that owns its memory."""
    return allocator(array.nbytes) if array.nbytes else None
