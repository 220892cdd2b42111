"""``profile``: the profiler as PyTorch programs use it."""

import os
import socket
import time
from collections.abc import Callable, Iterable
from enum import Enum
from types import TracebackType
from typing import Any

from ..backends import cuda
from ..io.atomic import write_atomically
from ..io.stream import write_all
from ..seam import intercept
from .averages import Average, Averages, averaged, each
from .memory import Owner
from .recorder import Recorder, Span, current
from .schedule import ProfilerAction, always
from .traces import chrome_trace, flame_graph, folded, write_json

_RECORDING = (ProfilerAction.RECORD, ProfilerAction.RECORD_AND_SAVE)


class ProfilerActivity(Enum):
    """What is looked at: ops, and with CUDA their work in the streams of GPUs. Other devices are not here."""

    CPU = 0
    XPU = 1
    MTIA = 2
    CUDA = 3
    HPU = 4


def supported_activities() -> set[ProfilerActivity]:
    """The activities that can be looked at here."""
    gpus = {ProfilerActivity.CUDA} if cuda.is_loaded() and cuda.device_count() else set()
    return {ProfilerActivity.CPU} | gpus


def kineto_available() -> bool:
    """Whether NVIDIA's tracing library is used: False, GPUs are timed by their events."""
    return False


class profile:
    """Look at what a block computes: a context manager, or ``start()`` and ``stop()``.

    Every op of this thread, and of threads that begin while it looks, is seen, forward and backward, every
    step of an optimizer, and the parts named with ``record_function``. Without a profiler a program pays
    nothing.

    activities: without ``ProfilerActivity.CUDA`` GPUs are not looked at; default: all that is there. What
    an op on a GPU's tensors does there stands between two marks in its stream, waited for at the end.
    schedule: which steps are recorded, see ``schedule``; the program calls ``step()`` after each of them.
    on_trace_ready: called with the profiler when an active part of the schedule, or the block, has ended.
    record_shapes: note the shapes of inputs. profile_memory: note who owns the memory. with_stack: note the
    user's lines; with_modules: the path of the module. limit: how many events are kept, the latest.

    >>> with fw.profiler.profile(record_shapes=True) as prof:
    ...     x = fw.ones(2, 3) @ fw.ones(3, 4)
    >>> [(row.key, row.input_shapes) for row in prof.key_averages(group_by_input_shape=True)][-1]
    ('matmul', [(2, 3), (3, 4)])
    """

    def __init__(
        self,
        activities: Iterable[ProfilerActivity] | None = None,
        schedule: Callable | None = None,
        on_trace_ready: Callable | None = None,
        record_shapes: bool = False,
        profile_memory: bool = False,
        with_stack: bool = False,
        with_flops: bool = False,
        with_modules: bool = False,
        *,
        limit: int = 1_000_000,
        **others: Any,
    ) -> None:
        unknown = set(others) - {
            "experimental_config",
            "execution_trace_observer",
            "acc_events",
            "use_cuda",
            "custom_trace_id_callback",
        }
        if unknown:
            raise TypeError(f"profile: unknown arguments {sorted(unknown)}")
        if with_flops:
            raise ValueError("profile: with_flops is not there; nn.utils.summary counts those of layers")
        self.schedule = schedule or always
        self.on_trace_ready = on_trace_ready
        self.step_num = 0
        self.action = ProfilerAction.NONE
        self._settings = {
            "shapes": record_shapes,
            "memory": profile_memory,
            "stacks": with_stack,
            "modules": with_modules,
            "limit": limit,
        }
        self._activities = None if activities is None else set(activities)
        self._recorder = Recorder(**self._settings)  # type: ignore[arg-type]
        self._block: intercept | None = None

    # -- running ---------------------------------------------------------------------------------

    def __enter__(self) -> "profile":
        self.start()
        return self

    def __exit__(self, kind: type | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.stop()

    def start(self) -> None:
        """Begin, with the action of step 0."""
        self.action = self.schedule(self.step_num)
        self._follow(ProfilerAction.NONE)

    def step(self) -> None:
        """A step of the program has ended."""
        before = self.action
        if before is ProfilerAction.RECORD_AND_SAVE:
            self._pause()
            self._ready()
        self.step_num += 1
        self.action = self.schedule(self.step_num)
        self._follow(before)

    def stop(self) -> None:
        """End; what was recorded last is ready."""
        before, self.action = self.action, ProfilerAction.NONE
        self._pause()
        if before in _RECORDING and (self.schedule is always or before is ProfilerAction.RECORD_AND_SAVE):
            self._ready()

    def _follow(self, before: ProfilerAction) -> None:
        """Do what the schedule says of the step that begins."""
        if self.action is ProfilerAction.NONE:
            self._pause()
        elif (
            before in (ProfilerAction.NONE, ProfilerAction.RECORD_AND_SAVE)
            or before is ProfilerAction.WARMUP
            and self.action in _RECORDING
        ):
            self._pause()
            wanted = self._activities or set(ProfilerActivity)
            gpu = ProfilerActivity.CUDA in supported_activities() & wanted
            self._recorder = Recorder(**self._settings, gpu=gpu)  # type: ignore[arg-type]
            self._block = intercept(self._recorder, shortcuts=True, newcomers=True)
            self._block.__enter__()
            current.append(self._recorder)

    def _pause(self) -> None:
        if self._block is not None:
            block, self._block = self._block, None
            current.remove(self._recorder)
            block.__exit__(None, None, None)
            if self._recorder.memory is not None:
                self._recorder.memory.close()
            if self._recorder.clock is not None:
                self._recorder.clock.settle()

    def _ready(self) -> None:
        if self.on_trace_ready is not None:
            self.on_trace_ready(self)

    # -- what was found --------------------------------------------------------------------------

    @property
    def spans(self) -> list[Span]:
        """The events one by one, in the order in which they ended."""
        return list(self._recorder.spans)

    def events(self) -> Averages:
        """The events one by one, as averages of one."""
        return Averages(each(self._recorder.spans))

    def key_averages(
        self, group_by_input_shape: bool = False, group_by_stack_n: int = 0, *, group_by: str | None = None
    ) -> Averages:
        """Events summed by name; also by shapes, by the innermost lines of the stack, or by ``"line"`` or
        ``"module"``.

        Raises ValueError for another ``group_by``.
        """
        sources: dict[str | None, Callable[[Span], str]] = {
            None: lambda s: "",
            "line": lambda s: s.line or "",
            "module": lambda s: s.module or "",
        }
        if group_by not in sources:
            raise ValueError(f"key_averages: group_by must be 'line' or 'module', got {group_by!r}")
        source = sources[group_by]
        if group_by_input_shape:
            source = lambda s: str(s.shapes or [])
        elif group_by_stack_n:
            source = lambda s: "; ".join(s.stack[:group_by_stack_n])
        found = averaged(sorted(self._recorder.spans, key=lambda s: s.start), source)
        found.dropped = self._recorder.dropped
        return found

    def total_average(self) -> Average:
        """All events as one."""
        return self.key_averages().total_average()

    def export_chrome_trace(self, path: Any) -> None:
        """Write a trace for Perfetto, speedscope or chrome://tracing; packed if the name ends in .gz."""
        write_json(chrome_trace(self._recorder.spans, self._recorder.memory), path)

    def export_stacks(self, path: Any, metric: str = "self_cpu_time_total") -> None:
        """Write a line for each stack with its microseconds, for flame graphs; needs ``with_stack=True``.

        metric: ``"self_cpu_time_total"``, or ``"self_cpu_memory_usage"`` for bytes.
        """
        lines = "".join(
            f"{stack} {value}\n" for stack, value in self._folded(metric, "export_stacks").items()
        )
        write_atomically(os.fsdecode(path), lambda file: write_all(file, lines.encode()))

    def export_flame_graph(self, path: Any, metric: str = "self_cpu_time_total") -> None:
        """Write a flame graph as SVG: who called whom, as wide as its time; needs ``with_stack=True``."""
        unit = "bytes" if metric == "self_cpu_memory_usage" else "us"
        text = flame_graph(self._folded(metric, "export_flame_graph"), unit)
        write_atomically(os.fsdecode(path), lambda file: write_all(file, text.encode()))

    def _folded(self, metric: str, name: str) -> Any:
        if metric not in ("self_cpu_time_total", "self_cpu_memory_usage"):
            raise ValueError(
                f"{name}: metric must be 'self_cpu_time_total' or 'self_cpu_memory_usage', got {metric!r}"
            )
        if not self._recorder.stacks:
            raise RuntimeError(f"{name}: no lines were noted; profile with with_stack=True")
        return folded(self._recorder.spans, metric)

    def memory_at_peak(self) -> tuple[int, list[Owner]]:
        """(bytes, owners): the most memory that results took at one time, and the lines that had made them.

        Lines are known under ``with_stack=True``, else the names of ops stand for them.
        Raises RuntimeError without ``profile_memory=True``.
        """
        if self._recorder.memory is None:
            raise RuntimeError("memory_at_peak: memory was not looked at; profile with profile_memory=True")
        return self._recorder.memory.at_peak()


def tensorboard_trace_handler(
    dir_name: str, worker_name: str | None = None, use_gzip: bool = False
) -> Callable:
    """For ``on_trace_ready``: write each trace into a directory, named as TensorBoard's plugin wants it."""
    worker = worker_name or f"{socket.gethostname()}_{os.getpid()}"

    def handle(prof: profile) -> None:
        os.makedirs(dir_name, exist_ok=True)
        name = f"{worker}.{time.time_ns()}.pt.trace.json" + (".gz" if use_gzip else "")
        prof.export_chrome_trace(os.path.join(dir_name, name))

    return handle
