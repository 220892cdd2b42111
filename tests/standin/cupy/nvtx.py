"""A stand-in for ``cupy.cuda.nvtx``: ``said`` has what a profiler would be told."""

import itertools

said: list[tuple] = []
_numbers = itertools.count(1)


def RangePush(message: str, id_color: int = -1) -> None:
    """A range opens."""
    said.append(("push", message))


def RangePop() -> None:
    """The innermost one closes."""
    said.append(("pop",))


def Mark(message: str, id_color: int = -1) -> None:
    """A point."""
    said.append(("mark", message))


def RangeStart(message: str, color: int) -> int:
    """A range opens that may close anywhere."""
    number = next(_numbers)
    said.append(("start", message, number))
    return number


def RangeEnd(range_id: int) -> None:
    """It closes."""
    said.append(("end", range_id))
