"""Compare: measurements as tables, a row for each ``sub_label`` and a column for each ``description``."""

from collections.abc import Iterable
from enum import Enum, auto

from .timer import Measurement, ordered_unique, select_unit, trim_sigfig

# the best number, good ones, bad ones, the worst ones: how a terminal shows them
_BEST, _GOOD, _BAD, _WORST, _PLAIN = (
    "\033[92m\033[1m",
    "\033[34m",
    "\033[2m\033[91m",
    "\033[31m\033[1m",
    "\033[0m\033[0m",
)


class Colorize(Enum):
    """What the numbers are coloured beside: nothing, all in their column, all in their row."""

    NONE = auto()
    COLUMNWISE = auto()
    ROWWISE = auto()


class Compare:
    """Tables of measurements: one for each ``label``, in one unit.

    >>> from framework.utils.benchmark import Compare, Measurement, TaskSpec
    >>> times = [Measurement(1, [t], TaskSpec("f(x)", label="f", sub_label=size, description=way))
    ...          for size, way, t in (("small", "old", 2e-6), ("small", "new", 1e-6), ("large", "new", 3e-6))]
    >>> Compare(times).print()
    [------------- f -------------]
                     |  old  |  new
    1 threads: --------------------
          small      |  2.0  |  1.0
          large      |       |  3.0
    <BLANKLINE>
    Times are in microseconds (us).
    """

    def __init__(self, results: Iterable[Measurement]) -> None:
        self._results: list[Measurement] = []
        self.extend_results(results)
        self._trim, self._highlight, self._colorize = False, False, Colorize.NONE

    def extend_results(self, results: Iterable[Measurement]) -> None:
        """Further measurements. Raises ValueError for anything else."""
        results = list(results)
        for result in results:
            if not isinstance(result, Measurement):
                raise ValueError(f"Compare: wanted Measurements, got {type(result).__name__}")
        self._results.extend(results)

    def trim_significant_figures(self) -> None:
        """Show only the digits that the spread of the runs lets count."""
        self._trim = True

    def highlight_warnings(self) -> None:
        """Show by how much the runs differ where that is much: (! 25%)."""
        self._highlight = True

    def colorize(self, rowwise: bool = False) -> None:
        """Colour the numbers, beside those in their column or in their row, for a terminal."""
        self._colorize = Colorize.ROWWISE if rowwise else Colorize.COLUMNWISE

    def print(self) -> None:
        """Print the tables."""
        print(str(self))

    def __str__(self) -> str:
        merged = Measurement.merge(self._results)
        tables = [
            self._table(label, [m for m in merged if m.label == label])
            for label in ordered_unique(m.label for m in merged)
        ]
        return "\n".join(tables)

    def _table(self, label: str | None, results: list[Measurement]) -> str:
        unit, scale = select_unit(min(m.median for m in results))
        columns = ordered_unique(m.description for m in results)
        many = len(ordered_unique(m.env for m in results)) > 1

        def name(m: Measurement) -> tuple[int, str]:
            return m.num_threads, f"({m.env})  {m.as_row_name}" if many and m.env else m.as_row_name

        rows = sorted(ordered_unique(map(name, results)), key=lambda row: row[0])  # the order else stays
        found = {(name(m), m.description): m for m in results}
        shown = {key: self._number(m, scale) for key, m in found.items()}
        widths = [
            max(len(column or ""), *(len(shown.get((row, column), "")) for row in rows)) for column in columns
        ]
        left = max(len(text) for _, text in rows) + 12
        head = " " * left + "".join(f"|  {column or '':^{w}}  " for column, w in zip(columns, widths))
        inner = len(head.rstrip()) - 2
        lines = [f"[{f' {label} ' if label else '':-^{inner}}]", head.rstrip()]
        threads = None
        for row in rows:
            if row[0] != threads:
                threads = row[0]
                lines.append(f"{threads} threads: ".ljust(inner + 2, "-"))
            cells = []
            for column, w in zip(columns, widths):
                text = f"{shown.get((row, column), ''):>{w}}"
                cells.append(f"|  {self._coloured(text, found, row, column)}  ")
            lines.append(f"      {row[1]:<{left - 6}}{''.join(cells)}".rstrip())
        words = {"ns": "nanoseconds", "us": "microseconds", "ms": "milliseconds", "s": "seconds"}
        lines += ["", f"Times are in {words[unit]} ({unit})."]
        if self._highlight and any(m.has_warnings for m in results):
            lines.append("(! XX%) Measurement has high variance, where XX is the IQR / median * 100.")
        return "\n".join(lines)

    def _number(self, m: Measurement, scale: float) -> str:
        value = m.median / scale
        digits = m.significant_figures if self._trim else 4
        text = f"{trim_sigfig(value, digits):.{1 if value < 1000 else 0}f}"
        return f"(! {m.iqr / m.median:.0%}) {text}" if self._highlight and m.has_warnings else text

    def _coloured(self, text: str, found: dict, row: tuple, column: str | None) -> str:
        own = found.get((row, column))
        if self._colorize is Colorize.NONE or own is None:
            return text
        beside = [
            m.median
            for (r, c), m in found.items()
            if (c == column if self._colorize is Colorize.COLUMNWISE else r == row)
        ]
        best = min(beside)
        if own.median <= best * 1.01 or own.median - best <= own.iqr:
            colour = _BEST
        elif own.median <= best * 1.1:
            colour = _GOOD
        else:
            colour = _WORST if own.median > best * 5 else _BAD if own.median > best * 2 else ""
        return f"{colour}{text}{_PLAIN}" if colour else text
