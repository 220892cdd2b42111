"""Which steps of a program are looked at."""

from collections.abc import Callable
from enum import Enum


class ProfilerAction(Enum):
    """What a profiler does in a step."""

    NONE = 0
    WARMUP = 1
    RECORD = 2
    RECORD_AND_SAVE = 3


def schedule(*, wait: int, warmup: int, active: int, repeat: int = 0, skip_first: int = 0) -> Callable:
    """A schedule of steps: after ``skip_first``, cycles of ``wait``, ``warmup`` and ``active`` steps.

    In steps of warm-up the program runs under the profiler and what it finds is thrown away. The last
    active step of each cycle ends in ``on_trace_ready``. repeat: the number of cycles; 0: as long as the
    program runs. Raises ValueError for negative numbers and ``active`` below 1.

    >>> plan = fw.profiler.schedule(wait=1, warmup=1, active=2)
    >>> [plan(step).name for step in range(4)]
    ['NONE', 'WARMUP', 'RECORD', 'RECORD_AND_SAVE']
    """
    if min(wait, warmup, repeat, skip_first) < 0 or active < 1:
        raise ValueError(
            f"schedule: wait, warmup, repeat and skip_first must not be negative and active at least 1, "
            f"got {wait}, {warmup}, {repeat}, {skip_first} and {active}"
        )
    length = wait + warmup + active

    def action(step: int) -> ProfilerAction:
        cycle, place = divmod(step - skip_first, length)
        if step < skip_first or repeat and cycle >= repeat or place < wait:
            return ProfilerAction.NONE
        if place < wait + warmup:
            return ProfilerAction.WARMUP
        return ProfilerAction.RECORD_AND_SAVE if place == length - 1 else ProfilerAction.RECORD

    return action


def always(step: int) -> ProfilerAction:
    """Record from the first step to the end."""
    return ProfilerAction.RECORD
