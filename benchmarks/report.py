"""A run of the benchmarks as text, as a table, as a picture, as a line of JSON."""

import json
from html import escape
from math import log2
from pathlib import Path
from typing import Any

UNITS = {"s": [(1.0, "s"), (1e-3, "ms"), (1e-6, "us"), (0.0, "ns")],
         "B": [(1e9, "GB"), (1e6, "MB"), (0.0, "kB")]}
START, END = "<!-- the table, written by python -m benchmarks -->", "<!-- end of the table -->"
SCALES = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9, "GB": 1e9, "MB": 1e6, "kB": 1e3}


def amount(number: float, unit: str) -> str:
    """Three digits and a unit: ``amount(0.0123, "s")`` is ``12.3 ms``."""
    name = next(name for least, name in UNITS[unit] if number >= least)
    return f"{number / SCALES[name]:.3g} {name}"


def ratio(row: dict[str, Any]) -> str:
    """The median ratio with its quartiles, or a dash."""
    if not row.get("ratio"):
        return "-"
    low, middle, high = row["ratio"]
    return f"{middle:.2f}" if row["rounds"] == 1 else f"{middle:.2f} ({low:.2f} to {high:.2f})"


def line(row: dict[str, Any], peak: dict[str, float]) -> str:
    """One row for the terminal."""
    if "failed" in row:
        return f"{row['name']:22} FAILED: {row['failed']}"
    times = "".join(f"{name:>11} {amount(t, row['unit']):>8}" for name, t in row["median"].items())
    others = "".join(f"   {name} {amount(t, row['unit'])}" for name, t in row["beside"].items())
    return f"{row['name']:22}{times}   ratio {ratio(row):22}{_peaks(row, peak):>16}{others}"


def _peaks(row: dict[str, Any], peak: dict[str, float]) -> str:
    """Percent of peak of each module, and of what."""
    if "bound" not in row:
        return ""
    best = row["count"] / peak[row["bound"]]
    return " / ".join(f"{100 * best / t:.0f}" for t in row["median"].values()) + f" % {row['bound']}"


def conditions(run: dict[str, Any]) -> list[str]:
    """The sentences that a table needs beside it."""
    m, peak = run["machine"], run["peak"]
    versions = ", ".join(f"{name} {number}" for name, number in m["versions"].items())
    return [f"{m['processor']}, {m['cores']} cores, load {m['load']} at the start; {m['system']}; "
            f"{versions}; {m['when']}.",
            f"Threads of every module: {run['threads']}. Peak measured in this run: "
            f"{peak['flops'] / 1e9:.0f} GFLOP/s (NumPy's product, float32), "
            f"{peak['bytes'] / 1e9:.1f} GB/s (copy)."]


def markdown(run: dict[str, Any]) -> str:
    """The table, family by family, and the conditions under it."""
    names = run["modules"]
    head = ["workload", "what", *names]
    if len(names) > 1:
        head += ["ratio (quartiles)"]
    others = list(dict.fromkeys(name for row in run["rows"] for name in row.get("beside", ())))
    head += ["% of peak", *others]
    lines = [f"| {' | '.join(head)} |", "|" + " --- |" * len(head)]
    for row in run["rows"]:
        if "failed" in row:
            cells = [row["name"], "failed: " + row["failed"].replace("|", "/")]
        else:
            what = f"{row['what']} ({row['note']})" if row["note"] else row["what"]
            cells = [row["name"], what, *[amount(row["median"][n], row["unit"]) for n in names]]
            cells += [ratio(row)] if len(names) > 1 else []
            cells.append(_peaks(row, run["peak"]))
            cells += [amount(row["beside"][n], row["unit"]) if n in row["beside"] else "" for n in others]
        cells += [""] * (len(head) - len(cells))
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join([*lines, "", *conditions(run)]) + "\n"


def embed(text: str, table: str, first: str = START, last: str = END) -> str:
    """The table in the place that two comments mark in a page, or the table alone where there is none."""
    before, start, rest = text.partition(first)
    _, end, after = rest.partition(last)
    return f"{before}{start}\n\n{table}\n{end}{after}" if end else table


def append(run: dict[str, Any], path: str) -> None:
    """Add the run as one line to a file of JSON lines: the history."""
    with open(path, "a") as file:
        file.write(json.dumps(run) + "\n")


# -- the picture ----------------------------------------------------------------------------------

LEFT, WIDTH, LINE, TOP = 190, 560, 17, 48
STYLE = ("text{font:12px sans-serif;fill:#222}.f{fill:#2a7f62}.s{fill:#b5533c}"
         ".q{stroke:#222;stroke-width:1}.g{stroke:#ddd}.one{stroke:#222;stroke-width:1.5}")


def picture(run: dict[str, Any]) -> str:
    """Ratios as bars on a logarithmic axis, with the quartiles: left of 1 the first module is faster."""
    rows = [row for row in run["rows"] if row.get("ratio")]
    ends = [x for row in rows for x in row["ratio"]] + [0.5, 2.0]
    low, high = log2(min(ends)) - 0.1, log2(max(ends)) + 0.1

    def at(x: float) -> float:
        return round(LEFT + (log2(x) - low) / (high - low) * WIDTH, 1)

    bottom = TOP + LINE * len(rows)
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{LEFT + WIDTH + 60}" height="{bottom + 34}">',
             f"<style>{STYLE}</style>", '<rect width="100%" height="100%" fill="#fff"/>',
             f'<text x="{LEFT}" y="18">time or memory of {escape(" / ".join(run["modules"]))}: '
             'bar = median, stroke = quartiles</text>']
    for power in range(int(low) - 1, int(high) + 2):
        if low <= power <= high:
            x, kind = at(2.0 ** power), "g" if power else "one"
            label = str(2 ** power) if power >= 0 else f"1/{2 ** -power}"
            parts += [f'<line class="{kind}" x1="{x}" y1="{TOP - 8}" x2="{x}" y2="{bottom}"/>',
                      f'<text x="{x}" y="{bottom + 16}" text-anchor="middle">{label}</text>']
    for i, row in enumerate(rows):
        y, (first, middle, third) = TOP + LINE * i, row["ratio"]
        left, right = sorted((at(middle), at(1.0)))
        parts += [f'<text x="{LEFT - 8}" y="{y + 11}" text-anchor="end">{escape(row["name"])}</text>',
                  f'<rect class="{"f" if middle <= 1 else "s"}" x="{left}" y="{y + 2}" '
                  f'width="{max(right - left, 1):.1f}" height="{LINE - 6}"/>',
                  f'<line class="q" x1="{at(first)}" y1="{y + 7}" x2="{at(third)}" y2="{y + 7}"/>',
                  f'<text x="{max(at(third), right) + 5}" y="{y + 11}">{middle:.2f}</text>']
    return "\n".join([*parts, "</svg>"]) + "\n"


def write(run: dict[str, Any], table: str | None, drawing: str | None, history: str | None) -> None:
    """Write the files that were asked for."""
    if table:
        page = Path(table)
        page.write_text(embed(page.read_text() if page.exists() else "", markdown(run)))
    if drawing:
        Path(drawing).write_text(picture(run))
    if history:
        append(run, history)
