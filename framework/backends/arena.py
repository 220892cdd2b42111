"""Places in shared memory, few descriptors: small requests share a segment, large ones get their own.

A segment costs a descriptor in every process that may pass it on, and processes have few (often 1024).
So small requests fill a common segment, an arena, and once many descriptors are in use large ones do
too, into arenas that double what there is: any number of tensors then takes a few dozen descriptors. The
price: the memory of an arena goes back to the system when the last tensor on it goes.
"""

import os
from threading import Lock

from .segments import Segment

_ALIGNED = 64  # a cache line: also enough for every vector instruction
_SMALL = 1 << 18
_ARENA = 1 << 20
_BIG_ARENA, _BIGGEST_ARENA = 1 << 26, 1 << 36  # addresses: memory is taken as places are handed out
_STEP = 1 << 16  # what is set aside at a time in an arena
_CROWDED = 96  # descriptors passed at once to a process that starts are limited to about 250


def descriptor_limit() -> int:
    """How many descriptors this process may have open."""
    return os.sysconf("SC_OPEN_MAX") if hasattr(os, "sysconf") else 512


class Pool:
    """Hands out places in segments; all of a process's tensors come from one pool."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._arena: Segment | None = None
        self._top = 0
        self._reserved = 0
        self._capacity = _BIG_ARENA
        self._crowded = False

    def reserve(self, size: int) -> tuple[Segment, int]:
        """A segment and the byte in it from which ``size`` bytes of zeros are the caller's.

        Raises SharedMemoryError if there is no room.
        """
        with self._lock:
            if size > _SMALL and not self._crowded:
                segment = Segment.create(size)
                self._note(segment)
                return segment, 0
            return self._from_arena(-(-size // _ALIGNED) * _ALIGNED)

    def _from_arena(self, size: int) -> tuple[Segment, int]:
        if self._arena is None or self._top + size > self._arena.size:
            self._arena = Segment.create(self._next_capacity(size), reserve=False)
            self._top = self._reserved = 0
            self._note(self._arena)
        arena, start = self._arena, self._top
        end = start + size
        if end > self._reserved:
            upto = min(max(end, self._reserved + _STEP), arena.size)
            arena.reserve(self._reserved, upto - self._reserved)
            self._reserved = upto
        self._top = end
        return arena, start

    def _next_capacity(self, size: int) -> int:
        if not self._crowded:
            self._capacity = _BIG_ARENA
            return _ARENA
        capacity, self._capacity = self._capacity, min(2 * self._capacity, _BIGGEST_ARENA)
        return max(size, capacity)

    def _note(self, segment: Segment) -> None:
        """The system gives the lowest free number, so the number tells how many are in use."""
        assert segment.fd is not None
        self._crowded = segment.fd >= min(descriptor_limit() // 4, _CROWDED)


_pool = Pool()


def reserve(size: int) -> tuple[Segment, int]:
    """A segment and the byte in it from which ``size`` bytes of zeros are the caller's."""
    return _pool.reserve(size)


def _forget() -> None:
    """After a fork parent and child must not fill the same arena; the parent keeps it."""
    global _pool
    _pool = Pool()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)
