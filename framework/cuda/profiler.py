"""Switching NVIDIA's profilers on for a part of a program. DeviceError without a GPU."""

from collections.abc import Iterator
from contextlib import contextmanager

from ..backends import cuda as _backend
from ..config.listing import own as _own
from .devices import needed


def start() -> None:
    """Let a profiler that was started with the program, and waits, begin."""
    needed()
    _backend.cupy().cuda.runtime.profilerStart()


def stop() -> None:
    """Let it stop."""
    needed()
    _backend.cupy().cuda.runtime.profilerStop()


@contextmanager
def profile() -> Iterator[None]:
    """A block that a profiler looks at."""
    start()
    try:
        yield
    finally:
        stop()


__dir__ = _own(globals())
