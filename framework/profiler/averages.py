"""Spans summed up by name, and as a table."""

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from .recorder import Span

_SORTS = {
    "cpu_time_total": "cpu_time_total",
    "self_cpu_time_total": "self_cpu_time_total",
    "cpu_time": "cpu_time",
    "count": "count",
    "cpu_memory_usage": "cpu_memory_usage",
    "self_cpu_memory_usage": "self_cpu_memory_usage",
    "device_time_total": "device_time_total",
    "self_device_time_total": "self_device_time_total",
    "cuda_time_total": "device_time_total",
    "self_cuda_time_total": "self_device_time_total",
}


class Average:
    """The spans of one key: how often, how long (microseconds), how many bytes their results took.

    key: the name; source: line, module or shapes where averages are told apart by them.
    cpu_memory_usage: bytes of the results; cpu_memory_freed: of results that went while it ran, where memory
    was looked at.
    device_time_total: of its work on GPUs.
    cpu_time_total counts what happened inside, self_cpu_time_total does not; cpu_time is the mean.
    """

    def __init__(self, key: str, source: str = "") -> None:
        self.key, self.source = key, source
        self.count = 0
        self.cpu_time_total = self.self_cpu_time_total = 0.0
        self.device_time_total = self.self_device_time_total = 0.0
        self.cpu_memory_usage = self.cpu_memory_freed = 0
        self.input_shapes: Any = []
        self.stack: tuple[str, ...] = ()

    @property
    def cpu_time(self) -> float:
        """Microseconds per call, on average."""
        return self.cpu_time_total / self.count if self.count else 0.0

    @property
    def self_cpu_memory_usage(self) -> int:
        """Bytes taken."""
        return self.cpu_memory_usage

    def add(self, span: Span) -> None:
        """Count one more call."""
        whole = (span.end - span.start) / 1e3
        self.count += 1
        self.cpu_time_total += whole
        self.self_cpu_time_total += whole - span.inside / 1e3
        self.device_time_total += span.gpu_time / 1e3
        self.self_device_time_total += (span.gpu_time - span.gpu_inside) / 1e3
        self.cpu_memory_usage += span.bytes
        self.cpu_memory_freed += span.freed
        self.input_shapes, self.stack = span.shapes or [], span.stack

    def __repr__(self) -> str:
        return f"<{self.key}: {self.count} calls, {self.cpu_time_total:.1f} us>"


class Averages(list):
    """A list of ``Average``; ``table`` prints it."""

    dropped = 0  # spans that are not in it, since only the latest are kept

    def table(
        self,
        sort_by: str | None = None,
        row_limit: int = 100,
        max_name_column_width: int = 55,
        *,
        header: str = "",
        top_level_events_only: bool = False,
        **others: Any,
    ) -> str:
        """A table as text. sort_by: ``"self_cpu_time_total"`` (default), ``"cpu_time_total"``,
        ``"cpu_time"``, ``"device_time_total"``, ``"self_device_time_total"``, ``"count"``,
        ``"cpu_memory_usage"``. Raises ValueError for another one."""
        sort_by = sort_by or "self_cpu_time_total"
        if sort_by not in _SORTS:
            raise ValueError(f"table: sort_by must be one of {sorted(_SORTS)}, got {sort_by!r}")
        rows = sorted(self, key=lambda row: -getattr(row, _SORTS[sort_by]))
        total = sum(row.self_cpu_time_total for row in self) or 1.0
        rows = rows[: row_limit if row_limit > 0 else None]
        width = max_name_column_width
        columns: list[list[str]] = [
            ["Name", *(r.key if len(r.key) <= width else r.key[: width - 3] + "..." for r in rows)],
            ["Self CPU %", *(f"{100 * r.self_cpu_time_total / total:.2f}%" for r in rows)],
            ["Self CPU", *(_time(r.self_cpu_time_total) for r in rows)],
            ["CPU total", *(_time(r.cpu_time_total) for r in rows)],
            ["CPU time avg", *(_time(r.cpu_time) for r in rows)],
        ]
        if any(r.device_time_total for r in rows):
            columns += [
                ["Self GPU", *(_time(r.self_device_time_total) for r in rows)],
                ["GPU total", *(_time(r.device_time_total) for r in rows)],
            ]
        columns += [
            ["# of Calls", *(str(r.count) for r in rows)],
            ["Memory", *(_size(r.cpu_memory_usage) for r in rows)],
            ["Freed", *(_size(r.cpu_memory_freed) for r in rows)],
        ]
        if any(r.source for r in rows):
            columns.append(["Source", *(r.source for r in rows)])
        padded = []
        for column in columns:
            widest = max(map(len, column))
            left = column[0] in ("Name", "Source")
            padded.append([cell.ljust(widest) if left else cell.rjust(widest) for cell in column])
        text = ["  ".join(cells).rstrip() for cells in zip(*padded)]
        rule = "-" * max(map(len, text))
        ends = [f"Self CPU time total: {_time(total)}"]
        if any(r.device_time_total for r in rows):
            ends.append(f"Self GPU time total: {_time(sum(row.self_device_time_total for row in self))}")
        if self.dropped:
            ends.append(
                f"{self.dropped} older events are not in this table; see the argument limit of profile"
            )
        return "\n".join([*([header] if header else []), rule, text[0], rule, *text[1:], rule, *ends])

    def __str__(self) -> str:
        return self.table()

    @property
    def self_cpu_time_total(self) -> float:
        """Microseconds of all spans, each counted once."""
        return sum(row.self_cpu_time_total for row in self)

    def total_average(self) -> Average:
        """All of them as one."""
        found = Average("Total")
        for row in self:
            found.count += row.count
            found.cpu_time_total += row.cpu_time_total
            found.self_cpu_time_total += row.self_cpu_time_total
            found.device_time_total += row.device_time_total
            found.self_device_time_total += row.self_device_time_total
            found.cpu_memory_usage += row.cpu_memory_usage
            found.cpu_memory_freed += row.cpu_memory_freed
        return found


def averaged(spans: Iterable[Span], source: Callable[[Span], str]) -> Averages:
    """Spans by name and source."""
    found: dict[tuple[str, str], Average] = {}
    for span in spans:
        key = span.name, source(span)
        if key not in found:
            found[key] = Average(*key)
        found[key].add(span)
    return Averages(found.values())


def each(spans: Iterable[Span]) -> Iterator[Average]:
    """One average for each span."""
    for span in spans:
        one = Average(span.name, span.line or "")
        one.add(span)
        yield one


def _time(us: float) -> str:
    return f"{us:.3f}us" if us < 1e3 else f"{us / 1e3:.3f}ms" if us < 1e6 else f"{us / 1e6:.3f}s"


def _size(count: int) -> str:
    if count < 1000:
        return f"{count} B"
    return (
        f"{count / 1e3:.2f} kB"
        if count < 1e6
        else f"{count / 1e6:.2f} MB"
        if count < 1e9
        else f"{count / 1e9:.2f} GB"
    )
