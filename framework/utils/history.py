"""The numbers of a run by epoch: a table to print, a CSV file, a picture that needs no plotting library."""

import csv
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

COLORS = ("#1f6fb4", "#d1601f", "#2f8f4e", "#a23c8f", "#8a6d1d", "#3d3d8f")
WIDTH, HEIGHT, LEFT, BOTTOM, TOP, RIGHT = 560, 300, 64, 36, 28, 16


class History:
    """What each epoch came to, row by row.

    >>> from framework.utils.training import History
    >>> history = History()
    >>> history.add(epoch=1, loss=0.5); history.add(epoch=2, loss=0.25, accuracy=0.9)
    >>> history["loss"], history.best("loss")
    ([0.5, 0.25], {'epoch': 2, 'loss': 0.25, 'accuracy': 0.9})
    >>> print(history.table())
    epoch  loss  accuracy
        1   0.5
        2  0.25       0.9
    """

    def __init__(self) -> None:
        self.rows: list[dict[str, Any]] = []

    def add(self, **values: Any) -> None:
        """One more row: numbers by name, or tensors of one element."""
        self.rows.append({name: _number(name, value) for name, value in values.items()})

    @property
    def names(self) -> list[str]:
        """The names of the columns, in the order in which they came."""
        return list(dict.fromkeys(name for row in self.rows for name in row))

    def __getitem__(self, name: str) -> list[Any]:
        """A column, None where a row has no such number."""
        if name not in self.names:
            raise KeyError(f"History: there is no column {name!r}; there are {self.names}")
        return [row.get(name) for row in self.rows]

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return iter(self.rows)

    def best(self, name: str, mode: str = "min") -> dict[str, Any]:
        """The row where ``name`` is smallest, or with mode "max" greatest."""
        if mode not in ("min", "max"):
            raise ValueError(f"History.best: mode must be 'min' or 'max', got {mode!r}")
        self[name]
        rows = [r for r in self.rows if r.get(name) is not None and not math.isnan(r[name])]
        if not rows:
            raise ValueError(f"History.best: column {name!r} holds no numbers but nan")
        return (min if mode == "min" else max)(rows, key=lambda row: row[name])

    def table(self, last: int | None = None) -> str:
        """The rows (or the last ones) as text."""
        cells = [self.names, *([_short(row.get(n)) for n in self.names] for row in self.rows[-(last or 0):])]
        widths = [max(len(line[i]) for line in cells) for i in range(len(self.names))]
        return "\n".join("  ".join(c.rjust(w) for c, w in zip(line, widths)).rstrip() for line in cells)

    def save_csv(self, path: str | Path) -> None:
        """Write a file with a column per name; a number that is missing is empty."""
        with open(path, "w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, self.names, restval="")
            writer.writeheader()
            writer.writerows(self.rows)

    @classmethod
    def load_csv(cls, path: str | Path) -> "History":
        """The history that `save_csv` wrote; whole numbers come back as int."""
        history = cls()
        with open(path, newline="", encoding="utf-8") as file:
            for row in csv.DictReader(file):
                history.rows.append({n: _parsed(v) for n, v in row.items() if v not in ("", None)})
        return history

    def state_dict(self) -> dict[str, Any]:
        """What a checkpoint keeps of it."""
        return {"rows": [dict(row) for row in self.rows]}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on from such a state."""
        self.rows = [dict(row) for row in state["rows"]]

    def plot(self, *names: str, path: str | Path | None = None, x: str | None = None,
             log: bool = False) -> str:
        """The columns as lines in one picture, as SVG text; also written to ``path``.

        names: default all but ``x``. x: the column to draw over; default "epoch" or "step" if there is one,
        else the number of the row. log: a logarithmic scale, on which numbers from 0 down have no place.
        Raises KeyError for a name that is no column, ValueError where there is nothing to draw.
        """
        if x is None:
            x = next((n for n in ("epoch", "step") if n in self.names), None)
        across = self[x] if x else list(range(1, len(self) + 1))
        lines = {}
        for name in names or [n for n in self.names if n != x]:
            lines[name] = [(float(a), float(v)) for a, v in zip(across, self[name])
                           if a is not None and v is not None and math.isfinite(v) and (v > 0 or not log)]
        points = [p for line in lines.values() for p in line]
        if not points:
            raise ValueError(f"History.plot: columns {list(lines)} hold no finite numbers to draw")
        svg = _drawn(lines, points, x or "row", log)
        if path is not None:
            Path(path).write_text(svg, encoding="utf-8")
        return svg


def _number(name: str, value: Any) -> Any:
    value = value.item() if hasattr(value, "item") else value
    if not isinstance(value, (int, float)):
        raise TypeError(f"History.add: {name} must be a number or a tensor of one element, got "
                        f"{type(value).__name__}")
    return value


def _parsed(text: str) -> int | float:
    try:
        return int(text)
    except ValueError:
        return float(text)


def _short(value: Any) -> str:
    return "" if value is None else str(value) if isinstance(value, int) else f"{value:.4g}"


def _ticks(low: float, high: float) -> list[float]:
    """Round numbers between the two, about five."""
    step = 10.0 ** math.floor(math.log10((high - low) / 4))
    step *= next(f for f in (1, 2, 5, 10) if (high - low) / (step * f) <= 5)
    first = math.ceil(low / step - 1e-9)
    return [step * i for i in range(first, math.floor(high / step + 1e-9) + 1)]


def _drawn(lines: dict[str, list[tuple[float, float]]], points: list[tuple[float, float]], x: str,
           log: bool) -> str:
    def height(v: float) -> float:
        return math.log10(v) if log else v

    def spread(values: list[float]) -> tuple[float, float]:
        low, high = min(values), max(values)
        return (low, high) if high > low else (low - 0.5, high + 0.5)

    left, right = spread([p[0] for p in points])
    low, high = spread([height(p[1]) for p in points])

    def at(a: float, b: float) -> tuple[float, float]:
        return (LEFT + (a - left) / (right - left) * (WIDTH - LEFT - RIGHT),
                HEIGHT - BOTTOM - (b - low) / (high - low) * (HEIGHT - BOTTOM - TOP))

    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" '
             f'height="{HEIGHT}" font-family="sans-serif" font-size="12">',
             f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>']
    for b in _ticks(low, high):
        y = at(left, b)[1]
        parts.append(f'<path d="M{LEFT} {y:.1f}H{WIDTH - RIGHT}" stroke="#ddd"/>'
                     f'<text x="{LEFT - 6}" y="{y + 4:.1f}" text-anchor="end" fill="#333">'
                     f'{10 ** b if log else b:.4g}</text>')
    for a in _ticks(left, right):
        parts.append(f'<text x="{at(a, low)[0]:.1f}" y="{HEIGHT - BOTTOM + 16}" text-anchor="middle" '
                     f'fill="#333">{a:.4g}</text>')
    parts.append(f'<text x="{WIDTH - RIGHT}" y="{HEIGHT - 4}" text-anchor="end" fill="#333">'
                 f'{escape(x)}</text>')
    beside = LEFT
    for i, (name, line) in enumerate(lines.items()):
        color = COLORS[i % len(COLORS)]
        path = " ".join(f"{px:.1f},{py:.1f}" for px, py in (at(a, height(b)) for a, b in line))
        if len(line) == 1:
            px, py = path.split(",")
            parts.append(f'<circle cx="{px}" cy="{py}" r="3" fill="{color}"/>')
        else:
            parts.append(f'<polyline points="{path}" fill="none" stroke="{color}" stroke-width="2"/>')
        parts.append(f'<text x="{beside}" y="16" fill="{color}" font-weight="bold">{escape(name)}</text>')
        beside += 8 * len(name) + 18
    return "\n".join([*parts, "</svg>\n"])
