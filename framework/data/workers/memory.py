"""The shared slots that batches travel in.

A worker has a few slots; the main process says with each task which one is free. The first batch that goes
into a slot decides its size: the worker makes a segment, passes it on by descriptor, and both sides keep
only the mapping. The main process gives a slot back when the last array on it is gone.
"""

import math
import os
import weakref
from collections import deque
from typing import Any

import numpy as np

from ...backends.segments import Segment

INLINE = 1 << 14  # a batch of fewer bytes goes through the socket: a slot is not worth it
_SLACK = 1 << 16  # the first large array of a batch makes the slot, and labels come after it
_ALIGN = 64
_PAGE = 4096

_forks = 0  # of this process so far: a child that holds a batch must not see the next one in its place


def count_fork() -> None:
    """Called before each fork."""
    global _forks
    _forks += 1


class _Lent:
    """A segment under another type: a tensor on a slot is not one that may be shared as it is, as the slot
    is used again when this process, not another one, has done with it."""

    def __init__(self, segment: Segment) -> None:
        self._segment, self.__array_interface__ = segment, segment.__array_interface__


class Slots:
    """The worker's side: room for the arrays of one batch at a time."""

    def __init__(self) -> None:
        self._segments: dict[int, Segment] = {}
        self._shared = True
        self._usual = 0  # bytes of the largest slot so far
        self._fresh: Segment | None = None  # not known to the other side yet
        self._slot: int | None = None
        self._leases: dict[int, weakref.ref] = {}
        self._memory: np.ndarray | None = None
        self._used = 0

    def open(self, slot: int, fresh: bool = False) -> None:
        """What follows goes into this slot. ``fresh``: its memory so far is not to be used again."""
        self._slot, self._used, self._memory = slot, 0, None
        kept = self._leases.pop(slot, None)
        if fresh or (kept is not None and kept() is not None):  # the dataset itself kept the last batch
            self._segments.pop(slot, None)
        segment = self._segments.get(slot)
        if segment is not None:
            self._enter(segment)

    def _enter(self, segment: Segment) -> None:
        assert self._slot is not None
        self._memory = np.asarray(_Lent(segment))
        self._leases[self._slot] = weakref.ref(self._memory)

    def leave(self) -> None:
        """The batch is sent; the next task opens a slot anew."""
        if self._fresh is not None and self._slot is not None:  # the batch took another way
            self._segments.pop(self._slot, None)
            self._fresh = None
        self._slot = self._memory = None

    def empty(self, shape: tuple[int, ...], dtype: Any) -> np.ndarray:
        """An array in the slot if there is room for it, else elsewhere."""
        dtype = np.dtype(dtype)
        size = math.prod(shape) * dtype.itemsize
        if dtype.hasobject:
            return np.empty(shape, dtype)
        if self._memory is None and self._slot is not None and self._shared and size > INLINE:
            self._grow(size + _SLACK)
        start = self._used
        if self._memory is None or size == 0 or start + size > self._memory.size:
            return np.empty(shape, dtype)
        self._used = _aligned(start + size)
        return np.ndarray(shape, dtype, self._memory, start)

    def place(self, parts: list[memoryview]) -> tuple[list[tuple[int, int]], Segment | None] | None:
        """Where each part lies in the slot, copied there unless it already does; a new segment, if any.

        None: it does not go into shared memory, being small, or there being none.
        """
        total = sum(_aligned(p.nbytes) for p in parts)
        if total <= INLINE or self._slot is None or not self._shared:
            return None
        inside = [self._offset(p) for p in parts]
        need = self._used + sum(_aligned(p.nbytes) for p, at in zip(parts, inside) if at is None)
        if self._memory is None or need > self._memory.size:
            if not self._grow(total):
                return None
            inside = [None] * len(parts)
        fresh, self._fresh = self._fresh, None
        memory, spans = self._memory, []
        assert memory is not None
        for part, at in zip(parts, inside):
            if at is None:
                at, self._used = self._used, _aligned(self._used + part.nbytes)
                memory[at:at + part.nbytes] = np.frombuffer(part, np.uint8)
            spans.append((at, part.nbytes))
        return spans, fresh

    def _offset(self, part: memoryview) -> int | None:
        if self._memory is None:
            return None
        at = np.frombuffer(part, np.uint8).__array_interface__["data"][0] - \
            self._memory.__array_interface__["data"][0]
        return at if 0 <= at <= self._memory.size - part.nbytes else None

    def _grow(self, need: int) -> bool:
        """A new segment for the slot that is open; False if there is no room for one."""
        assert self._slot is not None
        self._segments.pop(self._slot, None)
        self._usual = max(_aligned(need, _PAGE), self._usual)
        try:
            self._fresh = Segment.create(self._usual)
        except OSError:
            self._shared = False
            return False
        self._segments[self._slot] = self._fresh
        self._used = 0
        self._enter(self._fresh)
        return True

    def memory(self) -> np.ndarray:
        """The bytes of the slot that is open."""
        assert self._memory is not None
        return self._memory

    def refuse(self) -> None:
        """The other side cannot have segments: batches go through the pipe from here on."""
        self._shared = False
        self._segments.clear()
        self._memory = self._fresh = None


class Leases:
    """The main process's side, for one worker: which slots are free, and arrays on the others."""

    def __init__(self, count: int) -> None:
        self.free = list(range(count))
        self._segments: dict[int, _Lent] = {}
        self._held: dict[int, tuple[weakref.ref, int]] = {}
        self._stale: set[int] = set()
        self._back: deque[int] = deque()

    def take(self) -> tuple[int, bool] | None:
        """A free slot, and whether its memory may not be used again; None if none is free."""
        self.collect()
        if not self.free:
            return None
        slot = min(self.free)
        self.free.remove(slot)
        stale = slot in self._stale
        self._stale.discard(slot)
        return slot, stale

    def collect(self) -> None:
        """Take back the slots whose arrays have gone."""
        while self._back:  # filled by callbacks, in whichever thread the last array goes
            slot = self._back.popleft()
            if self._held.pop(slot)[1] != _forks:
                self._stale.add(slot)
            self.free.append(slot)

    def give(self, slot: int) -> None:
        """A slot that was not used after all."""
        self.free.append(slot)

    def attach(self, slot: int, fd: int) -> None:
        """The worker's new segment for this slot; raises SharedMemoryError if it cannot be mapped."""
        segment = Segment.attach(fd)
        segment.close()
        self._segments[slot] = _Lent(segment)

    def parts(self, slot: int, spans: list[tuple[int, int]]) -> list[np.ndarray]:
        """The parts of a batch; the slot is taken back when they, and all views of them, are gone."""
        memory = np.asarray(self._segments[slot])
        back = self._back
        self._held[slot] = weakref.ref(memory, lambda _: back.append(slot)), _forks
        return [memory[at:at + size] for at, size in spans]

    def copies(self, slot: int, spans: list[tuple[int, int]]) -> list[np.ndarray]:
        """The parts of a batch in memory of their own; the slot is free at once."""
        memory = np.asarray(self._segments[slot])
        parts = [memory[at:at + size].copy() for at, size in spans]
        self.free.append(slot)
        return parts


def _aligned(size: int, to: int = _ALIGN) -> int:
    return -(-size // to) * to


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=count_fork)
