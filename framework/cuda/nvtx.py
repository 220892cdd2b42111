"""Named ranges in the time line of NVIDIA's profilers. RuntimeError without a GPU: no profiler could look."""

from collections.abc import Iterator
from contextlib import contextmanager

from ..backends import cuda as _backend
from ..config.listing import own as _own
from .devices import needed


def range_push(msg: str) -> None:
    """Open a named range."""
    needed()
    _backend.cupy().cuda.nvtx.RangePush(msg)


def range_pop() -> None:
    """Close the innermost range."""
    needed()
    _backend.cupy().cuda.nvtx.RangePop()


def mark(msg: str) -> None:
    """A named point."""
    needed()
    _backend.cupy().cuda.nvtx.Mark(msg)


@contextmanager
def range(msg: str) -> Iterator[None]:
    """A block in a named range."""
    range_push(msg)
    try:
        yield
    finally:
        range_pop()


__dir__ = _own(globals())
