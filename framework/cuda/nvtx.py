"""Named ranges in the time line of NVIDIA's profilers. RuntimeError without a GPU: no profiler could look."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ..backends import cuda as _backend
from ..config.listing import own as _own
from .devices import needed

_GREY = 0xFF808080


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
def range(msg: str, *args: Any, **kwargs: Any) -> Iterator[None]:
    """A block, or a function by ``@range("name")``, in a named range; ``msg.format(*args, **kwargs)``."""
    range_push(msg.format(*args, **kwargs))
    try:
        yield
    finally:
        range_pop()


def range_start(msg: str) -> int:
    """Open a named range that may end in another thread, and overlap with others; its number."""
    needed()
    return int(_backend.cupy().cuda.nvtx.RangeStart(msg, _GREY))


def range_end(range_id: int) -> None:
    """Close a range of ``range_start``."""
    needed()
    _backend.cupy().cuda.nvtx.RangeEnd(range_id)


__dir__ = _own(globals())
