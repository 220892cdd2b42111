"""Memory of GPUs: CuPy's pool behind an allocator that knows the most there was, and says who has it."""

import weakref
from collections import Counter, deque
from collections.abc import Callable
from typing import Any

from ..errors import OutOfMemoryError


class Allocator:
    """What CuPy calls when it wants memory.

    peaks: of each device the most bytes in arrays, and in arrays and the pool behind them.
    owners: gives lines about who has the memory of a device, for the error: the layers above know tensors.
    """

    def __init__(self, cupy: Any, owners: Callable[[int], list[str]]) -> None:
        self.cupy, self.pool, self.owners = cupy, cupy.get_default_memory_pool(), owners
        self.peaks: dict[int, list[int]] = {}
        self.retries: Counter[int] = Counter()  # how often the pool found no memory at first, and at last
        self.failures: Counter[int] = Counter()
        self.before_full: list[Callable[[], None]] = []  # called when the pool finds no memory
        self._room: dict[int, int] = {}  # bytes to hand out until the peak of arrays may be passed
        self._later: deque[tuple[Any, Any]] = deque()  # a mark, and the memory that is used until then

    def __call__(self, size: int) -> Any:
        """Memory of the current device; OutOfMemoryError where the pool, emptied, finds none."""
        if self._later:
            self._sweep()
        try:
            memory = self.pool.malloc(size)
        except self.cupy.cuda.memory.OutOfMemoryError:
            memory = self._again(size)
        device = memory.device_id
        room = self._room[device] = self._room.get(device, -1) - size - 511
        peak = self.peaks.get(device)
        if room < 0 or peak is None or self.pool.total_bytes() > peak[1]:
            self.look(device)  # the pool goes over all that it has given
        return memory

    def look(self, device: int) -> tuple[int, int]:
        """Bytes in arrays, and in arrays and the pool, of the device, which is the current one."""
        used, held = self.pool.used_bytes(), self.pool.total_bytes()
        peak = self.peaks.get(device)
        if peak is None:
            peak = self.peaks[device] = [0, 0]
        if used > peak[0]:
            peak[0] = used
        if held > peak[1]:
            peak[1] = held
        self._room[device] = peak[0] - used
        return used, held

    def _again(self, size: int) -> Any:
        """Once more when the streams are done with what only they use."""
        device = int(self.cupy.cuda.runtime.getDevice())
        self.retries[device] += 1
        try:
            for give_back in self.before_full:
                give_back()
            if self._later:
                self._sweep(wait=True)
            return self.pool.malloc(size)
        except self.cupy.cuda.memory.OutOfMemoryError:
            pass
        self.failures[device] += 1
        raise OutOfMemoryError(self._said(size)) from None

    def of_pool(self, malloc: Callable[[int], Any], size: int) -> Any:
        """Memory of another pool; where there is none, what this one keeps for later is given back first."""
        try:
            return malloc(size)
        except self.cupy.cuda.memory.OutOfMemoryError:
            for give_back in self.before_full:
                give_back()
            self.pool.free_all_blocks()
        try:
            return malloc(size)
        except self.cupy.cuda.memory.OutOfMemoryError:
            pass
        raise OutOfMemoryError(self._said(size)) from None

    def keep_for(self, array: Any, stream: Any) -> None:
        """Keep the memory, once the array and all its views are gone, until a stream has come there."""
        root = array if array.base is None else array.base
        weakref.finalize(root, self._leave, root.data.mem, stream).atexit = False

    def _leave(self, memory: Any, stream: Any) -> None:
        with self.cupy.cuda.Device(memory.device_id):
            self._later.append((stream.record(), memory))

    def _sweep(self, wait: bool = False) -> None:
        """Let go of the memory whose marks are past."""
        for _ in range(len(self._later)):  # others may put in and take out meanwhile
            try:
                mark, memory = self._later.popleft()
            except IndexError:
                return
            if wait:
                mark.synchronize()
            elif not mark.done:
                self._later.append((mark, memory))

    def _said(self, size: int) -> str:
        device = int(self.cupy.cuda.runtime.getDevice())
        used, held = self.look(device)
        free, total = self.cupy.cuda.runtime.memGetInfo()
        limit = self.pool.get_limit()
        text = (f"cuda:{device} is out of memory: {bytes_of(size)} were asked for; {bytes_of(used)} are in "
                f"use by arrays, {bytes_of(held - used)} are kept for later, {bytes_of(free)} of "
                f"{bytes_of(total)} are free")
        if limit:
            text += f"; set_per_process_memory_fraction allows {bytes_of(limit)}"
        lines = self.owners(device)
        if lines:
            text += "\nthe largest tensors are\n" + "\n".join(f"  {line}" for line in lines)
        return text + "\nmake batches smaller, or free what is not needed (del x; loss.item() keeps no graph)"


def bytes_of(size: int) -> str:
    """A number of bytes for people."""
    value = float(size)
    for unit, digits in (("B", 0), ("KiB", 1), ("MiB", 1), ("GiB", 2)):
        if value < 1024:
            return f"{value:.{digits}f} {unit}"
        value /= 1024
    return f"{value:.2f} TiB"


def install(cupy: Any, owners: Callable[[int], list[str]]) -> Allocator | None:
    """Stand before CuPy's pool; not where the program has chosen another allocator."""
    allocator = Allocator(cupy, owners)
    if cupy.cuda.get_allocator() != allocator.pool.malloc:
        return None
    cupy.cuda.set_allocator(allocator)
    return allocator
