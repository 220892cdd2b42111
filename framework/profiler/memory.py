"""Who owns the memory: results of ops by the line that made them, now and at the peak."""

import threading
import weakref
from collections import Counter, deque
from collections.abc import Callable
from time import perf_counter_ns
from typing import Any, NamedTuple


class Owner(NamedTuple):
    """Memory of one place in the program: its line or the name of the op, bytes, number of arrays."""

    place: str
    bytes: int
    arrays: int


class MemoryLog:
    """Every array that ops made and every one that went, in order; the oldest are summed up."""

    def __init__(self, limit: int, freed: Callable[[int], None]) -> None:
        self.log: deque[tuple[int, int, str]] = deque()  # time, bytes (negative: freed), place
        self.limit, self.freed = limit, freed
        self.before: Counter = Counter()  # bytes by place, of what is no longer in the log
        self.before_arrays: Counter = Counter()
        self.closed = False
        self._lock = threading.RLock()
        self._alive: dict[int, weakref.ref] = {}

    def allocated(self, array: Any, span: Any) -> None:
        """Note the array that a span made."""
        place, size, key = span.line or span.name, array.nbytes, id(array)
        if key in self._alive or not size:
            return

        def gone(_: Any) -> None:
            self._alive.pop(key, None)
            if not self.closed:
                self._note(-size, place)
                self.freed(size)

        self._alive[key] = weakref.ref(array, gone)
        self._note(size, place)

    def _note(self, size: int, place: str) -> None:
        with self._lock:
            self.log.append((perf_counter_ns(), size, place))
            if len(self.log) > self.limit:
                _, old, where = self.log.popleft()
                self.before[where] += old
                self.before_arrays[where] += 1 if old > 0 else -1

    def close(self) -> None:
        """Stop noting."""
        self.closed = True
        self._alive.clear()

    def timeline(self) -> list[tuple[int, int]]:
        """(time in nanoseconds, bytes that are alive) after each change."""
        total, found = sum(self.before.values()), []
        for time, size, _ in self.log:
            total += size
            found.append((time, total))
        return found

    def at_peak(self) -> tuple[int, list[Owner]]:
        """The most bytes that were alive at one time, and who owned them, the largest first."""
        total = peak = sum(self.before.values())
        when = 0
        for i, (_, size, _) in enumerate(self.log):
            total += size
            if total > peak:
                peak, when = total, i + 1
        sizes, counts = Counter(self.before), Counter(self.before_arrays)
        for _, size, place in list(self.log)[:when]:
            sizes[place] += size
            counts[place] += 1 if size > 0 else -1
        owners = [Owner(place, size, counts[place]) for place, size in sizes.items() if size > 0]
        return peak, sorted(owners, key=lambda owner: -owner.bytes)
