"""When the work of ops ran on GPUs: two marks around each op in the queue that takes its work."""

from collections import deque
from collections.abc import Iterable
from time import perf_counter_ns
from typing import Any, NamedTuple

import numpy as np

from ..backends import cuda as backend


class Marks(NamedTuple):
    """Of one op: where its work stands, between two marks (CuPy's events)."""

    span: Any
    gpu: int
    stream: int
    begin: Any
    end: Any


class GpuClock:
    """Marks of ops, and the times between them on the clock of the other spans.

    Of each GPU a first mark is waited for, which says when on this clock its times begin. Nothing waits after
    that until ``settle``. limit: how many ops are remembered, the latest.
    """

    def __init__(self, limit: int) -> None:
        self._first: dict[int, tuple[Any, int]] = {}
        self._marks: deque[Marks] = deque(maxlen=limit)

    def begin(self, span: Any, inputs: Iterable) -> Marks | None:
        """Mark the queue before an op; None where none of its inputs is on a GPU."""
        gpu = _gpu_of(inputs)
        if gpu is None:
            return None
        cuda = backend.cupy().cuda
        with cuda.Device(gpu):
            if gpu not in self._first:
                first = cuda.Event()
                first.record()
                first.synchronize()
                self._first[gpu] = first, perf_counter_ns()
            marks = Marks(span, gpu, int(cuda.get_current_stream().ptr), cuda.Event(), cuda.Event())
            marks.begin.record()
        return marks

    def end(self, marks: Marks) -> None:
        """Mark the queue after the op."""
        with backend.cupy().cuda.Device(marks.gpu):
            marks.end.record()
        self._marks.append(marks)

    def settle(self) -> None:
        """Wait until the work is done, and write its times into the spans."""
        between = backend.cupy().cuda.get_elapsed_time  # milliseconds
        while self._marks:
            span, gpu, stream, begin, end = self._marks.popleft()
            end.synchronize()
            first, start = self._first[gpu]
            span.gpu = gpu, stream
            span.gpu_start = start + round(between(first, begin) * 1e6)
            span.gpu_end = start + round(between(first, end) * 1e6)
            outer, spent = span.parent, span.gpu_end - span.gpu_start
            while outer is not None:
                outer.gpu_inside += spent
                outer = None if outer.on_gpu else outer.parent


def _gpu_of(inputs: Iterable) -> int | None:
    for x in inputs:
        if isinstance(x, (list, tuple)):
            found = _gpu_of(x)
            if found is not None:
                return found
            continue
        array = getattr(x, "_array", x)
        if not isinstance(array, np.ndarray) and isinstance(array, backend.cupy().ndarray):
            return int(array.device.id)
    return None
