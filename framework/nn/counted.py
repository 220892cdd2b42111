"""Counts that modules keep in a buffer, known to the host without waiting for the device that holds them."""

from typing import NamedTuple

from ..backends import cuda
from ..tensor import Tensor


class Known(NamedTuple):
    """What was in a buffer when it had a version."""

    buffer: Tensor | None = None
    version: int = 0
    value: int = 0


def value_of(buffer: Tensor, known: Known, op: str) -> int:
    """The count in a buffer, for which the host waits only where somebody else has changed it."""
    if cuda.capture is not None and cuda.capture_here() is not None:
        cuda.refuse_in_capture(f"{op}: a count that grows", "call it outside, after the graph's replay()")
    if known.buffer is buffer and known.version == buffer._version:
        return known.value
    return int(buffer)  # type: ignore[call-overload]


def know(buffer: Tensor, value: int) -> Known:
    """That a buffer holds ``value`` now."""
    return Known(buffer, buffer._version, value)
