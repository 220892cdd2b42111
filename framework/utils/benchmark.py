"""Timing of statements: the number of runs is chosen, threads are set, and the median is reported."""

import statistics
import time
import timeit
from collections.abc import Callable
from typing import Any

from ..backends.threads import get_num_threads, set_num_threads

__all__ = ["Measurement", "Timer"]

_UNITS = ((1e-9, "ns"), (1e-6, "us"), (1e-3, "ms"), (1.0, "s"))


class Measurement:
    """Times of runs of one statement, ``number_per_run`` times each.

    >>> from framework.utils.benchmark import Measurement
    >>> m = Measurement(10, [20e-6, 30e-6, 40e-6], "x + y", num_threads=1)
    >>> m.median, m.times[0] < m.mean
    (3e-06, True)
    """

    def __init__(self, number_per_run: int, raw_times: list[float], title: str, num_threads: int) -> None:
        self.number_per_run, self.raw_times = number_per_run, raw_times
        self.title, self.num_threads = title, num_threads

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
        scale, unit = next((pair for pair in reversed(_UNITS) if self.median >= pair[0]), _UNITS[0])
        runs = f"{len(self.raw_times)} runs of {self.number_per_run}, {self.num_threads} thread(s)"
        apart = f"quartiles {self.iqr / scale:.2f} apart"
        return f"{self.title}\n  {self.median / scale:.2f} {unit} ({apart}; {runs})"


class Timer:
    """Times ``stmt`` after ``setup``, with ``num_threads`` threads of the package (1 by default).

    stmt, setup: Python source, which sees ``globals``. label, sub_label and description name it in reports.
    Raises
    ValueError for a language other than Python.

    >>> from framework.utils.benchmark import Timer
    >>> m = Timer("x + x", globals={"x": fw.ones(3)}).timeit(100)
    >>> m.number_per_run, m.median > 0
    (100, True)
    """

    def __init__(self, stmt: str = "pass", setup: str = "pass", global_setup: str = "",
                 timer: Callable[[], float] = time.perf_counter, globals: dict[str, Any] | None = None,
                 label: str | None = None, sub_label: str | None = None, description: str | None = None,
                 env: str | None = None, num_threads: int = 1, language: Any = "python") -> None:
        if str(language).lower() not in ("python", "py", "language.python"):
            raise ValueError(f"Timer: language must be Python, got {language!r}; C++ is not compiled here")
        if global_setup:
            raise ValueError("Timer: global_setup is for C++; put Python into setup")
        names = [label or stmt, sub_label, description, env]
        self._title = ", ".join(name for name in names if name)
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
        return Measurement(number, times, self._title, self._threads)

    def timeit(self, number: int = 1000000) -> Measurement:
        """One run of ``number`` executions, after a short one to warm up."""
        self._run(max(number // 100, 1))
        return self._measured(number, [self._run(number)])

    def blocked_autorange(self, callback: Callable[[int, float], Any] | None = None,
                          min_run_time: float = 0.2) -> Measurement:
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

    def adaptive_autorange(self, threshold: float = 0.1, *, min_run_time: float = 0.01,
                           max_run_time: float = 10.0,
                           callback: Callable[[int, float], Any] | None = None) -> Measurement:
        """Runs until the quartiles are within ``threshold`` of the median, or the time is up."""
        end = time.perf_counter() + max_run_time
        found = self.blocked_autorange(callback, min_run_time)
        while time.perf_counter() < end and (
                len(found.raw_times) < 4 or found.iqr > threshold * found.median):
            found.raw_times.append(self._run(found.number_per_run))
            if callback is not None:
                callback(found.number_per_run, found.raw_times[-1])
        return found
