"""Spans as files that other tools open: Chrome's trace format, folded stacks, a flame graph in SVG."""

import gzip
import json
import os
import threading
from collections import Counter
from collections.abc import Iterable, Iterator
from html import escape
from typing import Any

from ..io.atomic import write_atomically
from ..io.stream import write_all
from .recorder import Span


def chrome_trace(spans: Iterable[Span], memory: Any = None) -> dict:
    """The trace as Perfetto, speedscope and chrome://tracing read it: complete events in microseconds."""
    spans = sorted(spans, key=lambda s: (s.start, -s.end))
    start = spans[0].start if spans else 0
    pid = os.getpid()
    threads = list(dict.fromkeys(s.thread for s in spans))
    named = {t.ident: t.name for t in threading.enumerate()}  # those that have ended are known by number only
    names = [named.get(t, f"thread {t}") for t in threads]
    events: list[dict] = [
        {"ph": "M", "name": "process_name", "pid": pid, "tid": 0, "args": {"name": "framework"}}
    ]
    events += [
        {"ph": "M", "name": "thread_name", "pid": pid, "tid": i + 1, "args": {"name": names[i]}}
        for i in range(len(threads))
    ]
    numbers = {t: i + 1 for i, t in enumerate(threads)}
    for span in spans:
        event = {
            "ph": "X",
            "name": span.name,
            "cat": span.kind,
            "pid": pid,
            "tid": numbers[span.thread],
            "ts": (span.start - start) / 1e3,
            "dur": (span.end - span.start) / 1e3,
        }
        args = {
            key: value
            for key, value in (
                ("shapes", span.shapes),
                ("line", span.line),
                ("module", span.module),
                ("bytes", span.bytes),
                ("freed", span.freed),
            )
            if value
        }
        if args:  # viewers that add args to the name would show empty ones, too
            event["args"] = args
        events.append(event)
    events += _gpu_events(spans, start, pid)
    for time, size in memory.timeline() if memory is not None else ():
        events.append(
            {
                "ph": "C",
                "name": "memory",
                "pid": pid,
                "tid": 0,
                "ts": max(0.0, (time - start) / 1e3),
                "args": {"bytes": size},
            }
        )
    return {"traceEvents": events, "displayTimeUnit": "ms"}


_FIRST_GPU = 1 << 30  # viewers group by process: each GPU is one, with a number that no process has


def _gpu_events(spans: list[Span], start: int, pid: int) -> Iterator[dict]:
    """The work on GPUs, stream by stream, and an arrow to each from the op that asked for it."""
    on_gpus = [s for s in spans if s.gpu is not None]
    streams = {gpu: i for i, gpu in enumerate(sorted({s.gpu for s in on_gpus if s.gpu}))}
    for gpu in sorted({gpu for gpu, _ in streams}):
        yield {"ph": "M", "name": "process_name", "pid": _FIRST_GPU + gpu, "args": {"name": f"GPU {gpu}"}}
    for (gpu, handle), i in streams.items():
        named = "default stream" if not handle else f"stream {handle:#x}"
        yield {"ph": "M", "name": "thread_name", "pid": _FIRST_GPU + gpu, "tid": i, "args": {"name": named}}
    threads = {t: i + 1 for i, t in enumerate(dict.fromkeys(s.thread for s in spans))}
    for number, span in enumerate(on_gpus):
        assert span.gpu is not None
        time = (span.gpu_start - start) / 1e3
        there = {"pid": _FIRST_GPU + span.gpu[0], "tid": streams[span.gpu], "ts": time}
        yield {"ph": "X", "name": span.name, "cat": "gpu", **there, "dur": span.gpu_time / 1e3}
        arrow = {"name": "asks for", "cat": "gpu", "id": number}
        yield {"ph": "s", **arrow, "pid": pid, "tid": threads[span.thread], "ts": (span.start - start) / 1e3}
        yield {"ph": "f", "bp": "e", **arrow, **there}


def write_json(trace: dict, path: Any) -> None:
    """Write a trace, atomically; packed if the name ends in .gz."""
    data = json.dumps(trace, separators=(",", ":")).encode()
    if os.fsdecode(path).endswith(".gz"):
        data = gzip.compress(data, 6)
    write_atomically(os.fsdecode(path), lambda file: write_all(file, data))


def folded(spans: Iterable[Span], metric: str) -> Counter:
    """Microseconds (or bytes) of each stack of user lines with the op on top, "outer;inner;op"."""
    found: Counter = Counter()
    for span in spans:
        place = [part.replace(";", ",") for part in (*reversed(span.stack), span.name)]
        value = (
            span.bytes if metric == "self_cpu_memory_usage" else (span.end - span.start - span.inside) // 1000
        )
        found[";".join(place)] += value
    return found


_ROW, _WIDTH, _FONT = 18, 1200, 12
_COLORS = ("#e4794b", "#e89a4f", "#ebb95b", "#d9634a", "#efcb6f")


def flame_graph(stacks: Counter, unit: str = "us") -> str:
    """An SVG in which each box is as wide as its share and stands on what called it; names are tooltips."""
    root: dict[str, Any] = {"value": 0, "parts": {}}
    for path, value in stacks.items():
        at = root
        at["value"] += value
        for name in path.split(";"):
            at = at["parts"].setdefault(name, {"value": 0, "parts": {}})
            at["value"] += value
    boxes: list[tuple[int, float, float, str, int]] = []

    def place(level: int, left: float, node: dict) -> None:
        for name, part in node["parts"].items():
            width = _WIDTH * part["value"] / max(1, root["value"])
            if width >= 0.5:
                boxes.append((level, left, width, name, part["value"]))
                place(level + 1, left, part)
            left += width

    place(0, 0.0, root)
    height = _ROW * (1 + max((box[0] for box in boxes), default=0)) + 4
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_WIDTH}" height="{height}" '
        f'font-family="sans-serif" font-size="{_FONT}">',
        f'<rect width="{_WIDTH}" height="{height}" fill="#fff"/>',
    ]
    for level, left, width, name, value in boxes:
        top = height - _ROW * (level + 1) - 2
        short = name.rpartition("/")[2]
        room = int(width / (_FONT * 0.58))
        text = "" if room < 3 else short if len(short) <= room else short[: room - 1] + "\u2026"
        share = 100 * value / max(1, root["value"])
        lines.append(
            f'<g><title>{escape(name)}: {value} {unit} ({share:.1f} %)</title><rect x="{left:.1f}" y="{top}" '
            f'width="{max(0.5, width - 0.5):.1f}" height="{_ROW - 1}" '
            f'fill="{_COLORS[sum(map(ord, short)) % len(_COLORS)]}"/>'
            f'<text x="{left + 3:.1f}" y="{top + _ROW - 5}">{escape(text)}</text></g>'
        )
    return "\n".join([*lines, "</svg>"])
