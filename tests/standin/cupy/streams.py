"""Streams and events, and who waits for whom: work of one stream that another one has not waited for shows.

Everything is done at once here, but each stream has a clock, and so has the host: how far into each stream's
work what comes next is certain to come after. Events carry clocks from one to another. Memory knows its last
writer and its readers; a use that is not certain to come after them raises ``Race``, whatever a device would
have happened to do: work in other streams counts as not done until somebody has waited for it. Memory that
goes back to the pool while another stream than its own may still use it is told at the next use of anything.
"""

import itertools
import threading
import weakref
from typing import Any

from . import counts, graphs


class Race(RuntimeError):
    """A use of memory that is not certain to come after the work that it needs."""


def _device() -> int:
    import cupy

    return int(cupy.cuda.runtime.getDevice()) if hasattr(cupy, "cuda") else 0


_numbers = itertools.count(1)
_all: Any = weakref.WeakSet()
used = False  # whether there is more than the default stream: otherwise nothing is looked at
host: dict[int, int] = {}  # what the host has waited for, of each stream
freed: list[str] = []
priorities: dict[int, int] = {}  # by a stream's handle


def merge(clock: dict, other: dict) -> None:
    """The clock comes after the other, too."""
    for stream, n in other.items():
        if clock.get(stream, 0) < n:
            clock[stream] = n


class Stream:
    """A queue of work with its clock."""

    null: "Stream"

    def __init__(self, null: bool = False, non_blocking: bool = False, ptds: bool = False,
                 priority: int | None = None) -> None:
        global used
        self.ptr = 0 if null else next(_numbers) << 8
        priorities[self.ptr] = max(-5, min(priority or 0, 0))
        self.device_id = -1 if null else _device()
        self.clock: dict[int, int] = {}
        self._before: list[Stream] = []
        self._captured = False
        _all.add(self)
        if not null:
            used = True

    def _must_be_here(self) -> None:
        if self.device_id not in (-1, _device()):
            raise RuntimeError(f"The device that the stream is created on ({self.device_id}) does not match "
                               f"with the current device ({_device()})")

    @classmethod
    def from_external(cls, obj: Any) -> "Stream":
        """A queue of another library's, by its handle, of whatever device is current."""
        version, handle = obj.__cuda_stream__()
        assert version == 0
        found = cls()
        found.ptr, found.device_id = handle, -1
        return found

    def __enter__(self) -> "Stream":
        self._must_be_here()
        self._before.append(current.stream)
        current.stream = self
        return self

    def __exit__(self, *exception: Any) -> None:
        current.stream = self._before.pop()

    def use(self) -> "Stream":
        """Let work go here from now on."""
        self._must_be_here()
        current.stream = self
        return self

    def work(self) -> int:
        """One more piece of work, which comes after all that the host has waited for; its number."""
        merge(self.clock, host)
        self.clock[self.ptr] = self.clock.get(self.ptr, 0) + 1
        return self.clock[self.ptr]

    @property
    def done(self) -> bool:
        """Whether the host has waited for all of it: a device may be as late as that."""
        return self.clock.get(self.ptr, 0) <= host.get(self.ptr, 0)

    def synchronize(self) -> None:
        """Wait for all of it."""
        counts.wait("synchronize")
        merge(host, self.clock)

    def record(self, event: "Event | None" = None) -> "Event":
        """A mark behind what is here now."""
        event = Event() if event is None else event
        event.record(self)
        return event

    def wait_event(self, event: "Event") -> None:
        """What comes next comes after a mark."""
        merge(self.clock, event.clock)

    def begin_capture(self, mode: int | None = None) -> None:
        """Keep what comes, instead of doing it."""
        if not self.ptr:
            raise graphs.CUDARuntimeError("cudaErrorStreamCaptureUnsupported: the default stream")
        graphs.begin()
        self._captured = True

    def end_capture(self) -> "graphs.Graph":
        """What was kept."""
        self._captured = False
        return graphs.end()

    def is_capturing(self) -> bool:
        """Whether what comes is kept."""
        return self._captured



def hand_over(to: int | None) -> None:
    """What a consumer's stream does next comes after what is here, as DLPack has it; -1: it sees to that."""
    ptr = 0 if to in (None, 0, 1) else to
    if to != -1 and ptr != current.stream.ptr:
        for stream in list(_all):
            if stream.ptr == ptr:
                stream.wait_event(current.stream.record())


class _Current(threading.local):
    stream: Stream


Stream.null = Stream(null=True)
_Current.stream = Stream.null
current = _Current()


class Event:
    """A mark; ``time`` is the number of a tick."""

    def __init__(self, block: bool = False, disable_timing: bool = False, interprocess: bool = False) -> None:
        if interprocess and not disable_timing:
            raise ValueError("Timing must be disabled for interprocess events")
        self.ptr = next(_numbers) << 8
        self.clock: dict[int, int] = {}
        self.timed, self.time = not disable_timing, 0

    def record(self, stream: Stream | None = None) -> None:
        """Put it behind what is in a stream now."""
        stream = current.stream if stream is None else stream
        stream.work()
        self.clock, self.time = dict(stream.clock), next(_numbers)

    @property
    def done(self) -> bool:
        """Whether the host has waited for what is before it."""
        return all(host.get(stream, 0) >= n for stream, n in self.clock.items())

    def synchronize(self) -> None:
        """Wait for it, and for nothing behind it."""
        graphs.refuse("an event waits")
        merge(host, self.clock)


def wait_for_all() -> None:
    """Wait for what is in all streams."""
    for stream in list(_all):
        merge(host, stream.clock)


def elapsed(first: Event, second: Event) -> float:
    """Milliseconds between two marks, or what counts as such."""
    if not (first.timed and second.timed):
        raise RuntimeError("cudaErrorInvalidResourceHandle: an event without timing")
    return float(second.time - first.time)


# -- memory ------------------------------------------------------------------------------------------


class Uses:
    """Who wrote memory last, and who has read it since; home: the stream that it belongs to."""

    def __init__(self) -> None:
        self.home, self.of_graph = current.stream, graphs.recording is not None
        self.write: tuple[int, int] | None = None
        self.reads: dict[int, int] = {}
        self.size = 0

    def after(self, clock: dict, uses: list[tuple[int, int]], what: str) -> None:
        """Raise unless a clock comes after some uses."""
        for stream, n in uses:
            if clock.get(stream, 0) < n:
                raise Race(f"{what}: memory that stream {stream:#x} works on, which is not waited for")

    def use(self, what: str, writes: bool) -> None:
        """Memory is used by the next piece of work of the current stream."""
        if freed:
            raise Race(freed.pop())
        n = current.stream.work()
        before = [self.write] if self.write else []
        if writes:
            before += self.reads.items()
        self.after(current.stream.clock, before, f"{what} in stream {current.stream.ptr:#x}")
        if writes:
            self.write, self.reads = (current.stream.ptr, n), {}
        else:
            self.reads[current.stream.ptr] = n

    def free(self) -> None:
        """Memory goes back: its own stream may give it to others at once; a graph's pool has no others."""
        if self.of_graph:
            return
        clock = dict(self.home.clock)
        merge(clock, host)
        for stream, n in [*([self.write] if self.write else []), *self.reads.items()]:
            if stream != self.home.ptr and clock.get(stream, 0) < n:
                freed.append(f"memory of stream {self.home.ptr:#x} was given back while stream {stream:#x} "
                             f"works on it: record_stream was not called")


def clear() -> None:
    """Forget all streams but the default one."""
    global used
    used = False
    host.clear()
    freed.clear()
    Stream.null.clock.clear()
    current.stream = Stream.null
