"""Timing of statements: the number of runs is chosen, threads are set, and the median is reported."""

import math
import statistics
import time
import timeit
from collections.abc import Callable, Iterable
from enum import IntEnum
from typing import Any, NamedTuple

from ...backends.threads import get_num_threads, set_num_threads

_UNITS = ((1e-9, "ns"), (1e-6, "us"), (1e-3, "ms"), (1.0, "s"))


class Language(IntEnum):
    """What a statement is written in; C++ is not compiled here, and `Timer` refuses it."""

    PYTHON = 0
    CPP = 1


class TaskSpec(NamedTuple):
    """What was timed, under which names."""

    stmt: str
    setup: str = "pass"
    global_setup: str = ""
    label: str | None = None
    sub_label: str | None = None
    description: str | None = None
    env: str | None = None
    num_threads: int = 1

    @property
    def title(self) -> str:
        """The names in one line."""
        return ", ".join(
            name for name in (self.label or self.stmt, self.sub_label, self.description, self.env) if name
        )


def select_unit(t: float) -> tuple[str, float]:
    """The unit that seconds are best read in, and its length.

    >>> fw.utils.benchmark.select_unit(2e-5)
    ('us', 1e-06)
    """
    scale, unit = next((pair for pair in reversed(_UNITS) if t >= pair[0]), _UNITS[0])
    return unit, scale


def trim_sigfig(x: float, n: int) -> float:
    """``x`` rounded to ``n`` digits that count.

    >>> fw.utils.benchmark.trim_sigfig(1234.0, 2)
    1200.0
    """
    if not x:
        return 0.0
    return float(round(x, n - 1 - math.floor(math.log10(abs(x)))))


def ordered_unique(elements: Iterable[Any]) -> list[Any]:
    """Each element once, in the order in which they came.

    >>> fw.utils.benchmark.ordered_unique("abca")
    ['a', 'b', 'c']
    """
    return list(dict.fromkeys(elements))


class Measurement:
    """Times of runs of one statement, ``number_per_run`` times each.

    >>> from framework.utils.benchmark import Measurement, TaskSpec
    >>> m = Measurement(10, [20e-6, 30e-6, 40e-6], TaskSpec("x + y"))
    >>> m.median, m.times[0] < m.mean
    (3e-06, True)
    """

    def __init__(
        self,
        number_per_run: int,
        raw_times: list[float],
        task_spec: TaskSpec,
        metadata: dict[Any, Any] | None = None,
    ) -> None:
        self.number_per_run, self.raw_times = number_per_run, raw_times
        self.task_spec, self.metadata = task_spec, metadata

    @property
    def title(self) -> str:
        """The names of what was timed, in one line."""
        return self.task_spec.title

    @property
    def num_threads(self) -> int:
        """How many threads the package worked with."""
        return self.task_spec.num_threads

    @property
    def label(self) -> str | None:
        """The heading of the table that it belongs to."""
        return self.task_spec.label

    @property
    def sub_label(self) -> str | None:
        """The row of the table."""
        return self.task_spec.sub_label

    @property
    def description(self) -> str | None:
        """The column of the table."""
        return self.task_spec.description

    @property
    def env(self) -> str | None:
        """Where it ran, for tables of several places."""
        return self.task_spec.env

    @property
    def as_row_name(self) -> str:
        """What stands before its row."""
        return self.sub_label or self.task_spec.stmt or "[Unknown]"

    @property
    def significant_figures(self) -> int:
        """How many digits of the median its spread lets count: one at least, four at most."""
        if len(self.raw_times) < 2 or self.iqr == 0:
            return 4 if len(self.raw_times) > 1 else 1
        # the median of n normal numbers, whose quartiles are 1.35 deviations apart, is uncertain by
        # 1.25 deviations by the root of n
        uncertain = 1.25 * self.iqr / 1.35 / math.sqrt(len(self.raw_times))
        return min(max(math.floor(math.log10(self.median / uncertain)) + 1, 1), 4)

    @property
    def has_warnings(self) -> bool:
        """Whether the quartiles are more than a tenth of the median apart."""
        return self.iqr > 0.1 * self.median

    @staticmethod
    def merge(measurements: Iterable["Measurement"]) -> list["Measurement"]:
        """The runs of one task as one measurement, for each task; their numbers per run become one.

        >>> from framework.utils.benchmark import Measurement, TaskSpec
        >>> a, b = [Measurement(n, [n * 1.0], TaskSpec("x")) for n in (1, 2)]
        >>> Measurement.merge([a, b])[0].times
        [1.0, 1.0]
        """
        groups: dict[TaskSpec, list[Measurement]] = {}
        for m in measurements:
            groups.setdefault(m.task_spec, []).append(m)
        merged = []
        for spec, group in groups.items():
            number = group[0].number_per_run
            times = [t * number for m in group for t in m.times]
            merged.append(Measurement(number, times, spec))
        return merged

    @property
    def times(self) -> list[float]:
        """Seconds for one execution, a number for each run."""
        return [t / self.number_per_run for t in self.raw_times]

    @property
    def median(self) -> float:
        """The median of ``times``."""
        return statistics.median(self.times)

    @property
    def mean(self) -> float:
        """The mean of ``times``."""
        return statistics.fmean(self.times)

    @property
    def iqr(self) -> float:
        """The distance between the quartiles of ``times``."""
        if len(self.raw_times) < 2:
            return 0.0
        first, _, third = statistics.quantiles(self.times, n=4, method="inclusive")
        return third - first

    def __repr__(self) -> str:
        unit, scale = select_unit(self.median)
        runs = f"{len(self.raw_times)} runs of {self.number_per_run}, {self.num_threads} thread(s)"
        apart = f"quartiles {self.iqr / scale:.2f} apart"
        return f"{self.title}\n  {self.median / scale:.2f} {unit} ({apart}; {runs})"


class Timer:
    """Times ``stmt`` after ``setup``, with ``num_threads`` threads of the package (1 by default).

    stmt, setup: Python source, which sees ``globals``. label, sub_label and description name it in reports.
    Raises ValueError for a language other than Python.

    >>> from framework.utils.benchmark import Timer
    >>> m = Timer("x + x", globals={"x": fw.ones(3)}).timeit(100)
    >>> m.number_per_run, m.median > 0
    (100, True)
    """

    def __init__(
        self,
        stmt: str = "pass",
        setup: str = "pass",
        global_setup: str = "",
        timer: Callable[[], float] = time.perf_counter,
        globals: dict[str, Any] | None = None,
        label: str | None = None,
        sub_label: str | None = None,
        description: str | None = None,
        env: str | None = None,
        num_threads: int = 1,
        language: Any = "python",
    ) -> None:
        if language is not Language.PYTHON and str(language).lower() not in ("python", "py"):
            raise ValueError(f"Timer: language must be Python, got {language!r}; C++ is not compiled here")
        if global_setup:
            raise ValueError("Timer: global_setup is for C++; put Python into setup")
        self._task_spec = TaskSpec(stmt, setup, global_setup, label, sub_label, description, env, num_threads)
        self._threads = num_threads
        self._timer = timeit.Timer(stmt, setup, timer, {} if globals is None else globals)

    def _run(self, number: int) -> float:
        before = get_num_threads()
        set_num_threads(self._threads)
        try:
            return self._timer.timeit(number)
        finally:
            set_num_threads(before)

    def _measured(self, number: int, times: list[float]) -> Measurement:
        return Measurement(number, times, self._task_spec)

    def timeit(self, number: int = 1000000) -> Measurement:
        """One run of ``number`` executions, after a short one to warm up."""
        self._run(max(number // 100, 1))
        return self._measured(number, [self._run(number)])

    def blocked_autorange(
        self, callback: Callable[[int, float], Any] | None = None, min_run_time: float = 0.2
    ) -> Measurement:
        """Runs until ``min_run_time`` seconds were measured; each is long enough for the clock to be exact.

        callback: called with (number, seconds) after each run.
        """
        number = 1
        while (took := self._run(number)) < min(min_run_time / 100, 0.01):
            number *= 10 if took < 1e-4 else 2
        times: list[float] = []
        while not times or sum(times) < min_run_time:
            times.append(self._run(number))
            if callback is not None:
                callback(number, times[-1])
        return self._measured(number, times)

    def adaptive_autorange(
        self,
        threshold: float = 0.1,
        *,
        min_run_time: float = 0.01,
        max_run_time: float = 10.0,
        callback: Callable[[int, float], Any] | None = None,
    ) -> Measurement:
        """Runs until the quartiles are within ``threshold`` of the median, or the time is up."""
        end = time.perf_counter() + max_run_time
        found = self.blocked_autorange(callback, min_run_time)
        while time.perf_counter() < end and (
            len(found.raw_times) < 4 or found.iqr > threshold * found.median
        ):
            found.raw_times.append(self._run(found.number_per_run))
            if callback is not None:
                callback(found.number_per_run, found.raw_times[-1])
        return found
