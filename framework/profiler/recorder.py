"""Spans of time: what an interceptor of the seam notes of each op, and the parts that the user names."""

import threading
from collections import deque
from collections.abc import Callable
from functools import wraps
from time import perf_counter_ns
from types import TracebackType
from typing import Any

import numpy as np

from ..node import next_seq, notes_of, place_of
from ..seam import BACKWARD, MAKE, STEP, WRITE, Event
from ..tensor import Tensor
from .gpu import GpuClock
from .memory import MemoryLog
from .program_lines import module_path, user_line, user_stack

USER = "user"
_PREFIX = {BACKWARD: "backward ", STEP: "step ", MAKE: "make "}


class Span:
    """One thing that took time: an op, a derivative, a step of an optimizer, a part that the user named.

    start, end: nanoseconds; inside: nanoseconds of the spans within it; depth: in how many others it lies.
    bytes: memory of its result; freed: of older results that went meanwhile, where memory is looked at.
    line: "file:line" of the user's code; module: path, e.g. "layers.0.attn".
    gpu: (number of the GPU, handle of the stream) of an op whose work is there, from gpu_start to gpu_end;
    gpu_inside: nanoseconds of such ops within it.
    """

    __slots__ = (
        "name",
        "kind",
        "start",
        "end",
        "inside",
        "depth",
        "thread",
        "shapes",
        "bytes",
        "freed",
        "line",
        "module",
        "stack",
        "parent",
        "on_gpu",
        "gpu",
        "gpu_start",
        "gpu_end",
        "gpu_inside",
    )

    def __init__(self, name: str, kind: str, depth: int, thread: int) -> None:
        self.name, self.kind, self.depth, self.thread = name, kind, depth, thread
        self.start = self.end = self.inside = self.bytes = self.freed = 0
        self.shapes: list | None = None
        self.line: str | None = None
        self.module: str | None = None
        self.stack: tuple[str, ...] = ()
        self.parent: Span | None = None
        self.on_gpu = False  # whether it has marks of its own there, whose times are known at the end
        self.gpu: tuple[int, int] | None = None
        self.gpu_start = self.gpu_end = self.gpu_inside = 0

    @property
    def gpu_time(self) -> int:
        """Nanoseconds of its work on a GPU: its own, or what the ops within it did."""
        return self.gpu_end - self.gpu_start if self.gpu is not None else self.gpu_inside

    def __repr__(self) -> str:
        return f"<{self.kind} {self.name} {(self.end - self.start) / 1e3:.1f} us>"


class Recorder:
    """An interceptor that notes spans: all of them summed, the latest ``limit`` one by one."""

    def __init__(
        self,
        *,
        shapes: bool = False,
        memory: bool = False,
        stacks: bool = False,
        modules: bool = False,
        gpu: bool = False,
        limit: int = 1_000_000,
    ) -> None:
        self.shapes, self.stacks, self.modules = shapes, stacks, modules
        self.looks = stacks or modules
        self.memory = MemoryLog(limit, self._freed) if memory else None
        self.clock = GpuClock(limit) if gpu else None
        self.spans: deque[Span] = deque(maxlen=limit)
        self.noted = 0
        self._noting = threading.Lock()
        self._open: dict[int, list[Span]] = {}  # of each thread, the outermost first

    @property
    def dropped(self) -> int:
        """How many of the oldest spans were let go of."""
        return self.noted - len(self.spans)

    def __call__(self, event: Event, proceed: Callable) -> Any:
        span = self.begin(_PREFIX.get(event.kind, "") + event.name, event.kind)
        if self.looks:
            self._look(span, event)
        if self.shapes:
            span.shapes = [_shape(x) for x in event.inputs]
        result, since = None, next_seq() if self.looks else 0
        marks = None if self.clock is None else self.clock.begin(span, event.inputs)
        span.on_gpu = marks is not None
        span.start = perf_counter_ns()
        try:
            result = proceed(*event.inputs, **event.settings)
            return result
        finally:
            span.end = perf_counter_ns()
            if marks is not None:
                self.clock.end(marks)  # type: ignore[union-attr]
            self.finish(span)
            if result is not None:
                self._note_result(span, event, result, since)

    def begin(self, name: str, kind: str) -> Span:
        """A span inside of those that are open in this thread."""
        thread = threading.get_ident()
        around = self._open.setdefault(thread, [])
        span = Span(name, kind, len(around), thread)
        span.parent = around[-1] if around else None
        around.append(span)
        return span

    def finish(self, span: Span) -> None:
        """Close a span, and those inside of it that were left open."""
        around = self._open[span.thread]
        if span not in around:
            return  # of a part that was left in another order
        while around.pop() is not span:
            pass
        if around:
            around[-1].inside += span.end - span.start
        with self._noting:
            self.spans.append(span)
            self.noted += 1

    def _freed(self, size: int) -> None:
        """A result went: that belongs to what this thread is at."""
        around = self._open.get(threading.get_ident())
        if around:
            around[-1].freed += size

    # -- where it comes from ---------------------------------------------------------------------

    def _look(self, span: Span, event: Event) -> None:
        """The user's line and the module: of a derivative those of its op."""
        if event.kind == BACKWARD:
            noted = notes_of(place_of(event.node)[0]).get("profiled")
            if noted is not None:
                span.line, span.module, span.stack = noted
                return
        span.line = user_line()
        if self.modules:
            span.module = module_path()
        if self.stacks:
            span.stack = user_stack()

    def _note_result(self, span: Span, event: Event, result: Any, since: int) -> None:
        results = result if isinstance(result, (tuple, list)) else (result,)
        first = True
        for x in results:
            array = x._array if isinstance(x, Tensor) else x
            if type(array) is not np.ndarray:
                continue
            if event.kind != WRITE and array.base is None:
                span.bytes += array.nbytes
                if self.memory is not None and event.kind != STEP:
                    self.memory.allocated(array, span)
            if self.looks and first and isinstance(x, Tensor) and x._node is not None and event.kind != MAKE:
                _note_nodes(place_of(x._node)[0], since, (span.line, span.module, span.stack))
            first = False


def _note_nodes(node: Any, since: int, place: tuple) -> None:
    """Say of a node, and of those that the same call made before it, where they come from."""
    left = [node]
    while left:
        node = left.pop()
        if hasattr(node, "op") and node.seq > since:
            notes_of(node)["profiled"] = place
            left += [place_of(edge)[0] for edge in node.edges if edge is not None]


def _shape(x: Any) -> Any:
    found = getattr(x, "shape", None)
    if found is not None:
        return tuple(found)
    return [_shape(v) for v in x] if isinstance(x, (list, tuple)) else ()


# -- parts that the user names ---------------------------------------------------------------------

current: list[Recorder] = []  # the recorders at work, in any thread


class record_function:
    """Name a part of the program: a span of that name while a profiler looks, else nothing.

    A context manager, or a decorator. Costs a fifth of a microsecond while nobody looks.

    >>> with fw.profiler.profile() as prof, fw.profiler.record_function("loading"):
    ...     _ = fw.ones(2)
    >>> prof.key_averages()[0].key
    'loading'
    """

    def __init__(self, name: str, args: str | None = None) -> None:
        self.name = name if args is None else f"{name}({args})"
        self._spans: list[tuple[Recorder, Span]] = []

    def __enter__(self) -> "record_function":
        for recorder in current:
            span = recorder.begin(self.name, USER)
            span.start = perf_counter_ns()
            self._spans.append((recorder, span))
        return self

    def __exit__(self, kind: type | None, error: BaseException | None, trace: TracebackType | None) -> None:
        while self._spans:
            recorder, span = self._spans.pop()
            span.end = perf_counter_ns()
            recorder.finish(span)

    def __call__(self, function: Callable) -> Callable:
        @wraps(function)
        def named(*args: Any, **settings: Any) -> Any:
            with record_function(self.name):
                return function(*args, **settings)

        return named
