"""How time grows: with threads, and with batch, width and length, beside PyTorch where it is installed.

    python -m benchmarks.scaling [--markdown FILE]
"""

import argparse
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import framework
from framework import _native
from framework.backends.threads import usable_cores

from . import report, runner, workloads  # noqa: F401
from .__main__ import modules
from .workload import REGISTRY

START, END = "<!-- scaling, written by python -m benchmarks.scaling -->", "<!-- end of scaling -->"
SIMULATED = (2, 4, 8, 16)
PLAN = runner.Plan(rounds=5, seconds=0.05)
THREADED = ("mlp-step", "cnn-step", "resnet20-step", "conv3x3-step", "lstm-step", "gpt-step", "add-large",
            "elementwise-grad", "softmax", "layer-norm", "sum-rows", "adam-one")


@dataclass(frozen=True)
class Sweep:
    """One workload over several sizes; ``sizes`` turns a number into the workload's own arguments."""

    work: str
    what: str
    values: tuple[int, ...]
    sizes: Any


SWEEPS = (
    Sweep("mlp-step", "batch", (1, 8, 64, 256, 1024), lambda n: {"batch": n}),
    Sweep("mlp-step", "width", (64, 256, 1024, 2048), lambda n: {"widths": (784, n, n, 10)}),
    Sweep("conv3x3-step", "batch", (1, 4, 16), lambda n: {"batch": n}),
    Sweep("conv3x3-step", "channels", (16, 64, 256), lambda n: {"channels": n}),
    Sweep("conv3x3-step", "side of the image", (7, 14, 28, 56), lambda n: {"size": n}),
    Sweep("lstm-step", "length", (8, 32, 128), lambda n: {"length": n}),
    Sweep("lstm-step", "width", (32, 128, 512), lambda n: {"width": n}),
    Sweep("gpt-step", "length", (16, 64, 256), lambda n: {"length": n}),
    Sweep("gpt-step", "width", (64, 128, 256), lambda n: {"width": n}),
)


def times(name: str, found: Sequence[ModuleType], **sizes: Any) -> dict[str, Any]:
    """Medians by module and quartiles of the ratio for a workload of these sizes."""
    work = REGISTRY[name]
    built = {"built_in": all(hasattr(M.nn, "LSTM") for M in found)} if work.built_in else {}
    cases = [work.build(M, **{**work.sizes, **built, **sizes}) for M in found]
    rows = runner.alternate([case.run for case in cases], PLAN)
    return runner.summary([M.__name__ for M in found], rows)


def simulated(name: str, threads: int) -> float:
    """Seconds of a workload as that many threads would take it, told by timing their pieces on one.

    Work outside of the native kernels, and waiting for each other, count in full; sharing the bandwidth of
    memory and the last cache does not: a bound from below.
    """
    simulate = _native.module.simulate_threads  # type: ignore[union-attr]
    runner.set_threads([framework], 1)
    case, = REGISTRY[name].cases([framework])
    found = []
    for _ in range(PLAN.rounds):
        case.run()
        simulate(threads)
        try:
            took = runner.seconds(case.run, 3)
        finally:
            saved = simulate(0)
        found.append((took - saved / 3) / case.calls)
    return min(found)


def by_simulation() -> list[list[str]]:
    """Per workload the speed-up over one thread that the partition of the work allows."""
    rows = [["workload", *[f"{n} threads" for n in SIMULATED]]]
    for work in THREADED:
        times = [simulated(work, n) for n in (1, *SIMULATED)]
        rows.append([work, *[f"{times[0] / t:.1f}" for t in times[1:]]])
        print(*rows[-1], sep="  ", flush=True)
    return rows


def by_threads(found: Sequence[ModuleType], most: int) -> list[list[str]]:
    """Per workload the time of the first module at 1, 2, 4 ... threads and the speed-ups of all."""
    counts = [n for n in (1, 2, 4, 8, 16, 32) if n <= most]
    names = [M.__name__ for M in found]
    rows = [["workload", *[f"{n} thread{'s' * (n > 1)}" for n in counts],
             *[f"{name}: {n} over 1" for name in names for n in counts[1:]]]]
    for work in THREADED:
        measured = []
        for n in counts:
            runner.set_threads(found, n)
            measured.append(times(work, found)["median"])
        rows.append([work, *[report.amount(m[names[0]], "s") for m in measured],
                     *[f"{measured[0][name] / m[name]:.2f}" for name in names for m in measured[1:]]])
        print("  ".join(rows[-1]), flush=True)
    return rows


def by_size(sweep: Sweep, found: Sequence[ModuleType]) -> list[list[str]]:
    """Per size: the time of each module, the ratio, and the growth of the first since the size before."""
    names = [M.__name__ for M in found]
    rows = [[f"{sweep.work}: {sweep.what}", *names, "ratio (quartiles)", "growth"]]
    before = None
    for n in sweep.values:
        m = times(sweep.work, found, **sweep.sizes(n))
        mine = m["median"][names[0]]
        rows.append([str(n), *[report.amount(m["median"][name], "s") for name in names], report.ratio(m),
                     "" if before is None else f"{mine / before:.2f}"])
        before = mine
        print(sweep.work, sweep.what, *rows[-1], sep="  ", flush=True)
    return rows


def table(rows: list[list[str]]) -> str:
    """Rows as a Markdown table, the first as its head."""
    lines = [f"| {' | '.join(row)} |" for row in rows]
    return "\n".join([lines[0], "|" + " --- |" * len(rows[0]), *lines[1:]]) + "\n"


def main(given: Sequence[str] | None = None) -> int:
    """Measure, print, and write the tables where asked."""
    says = __doc__.partition("\n")[0]
    parser = argparse.ArgumentParser(prog="python -m benchmarks.scaling", description=says)
    parser.add_argument("--module", default="framework", help="what is measured (default: framework)")
    parser.add_argument("--vs", metavar="MODULE", help="beside what (default: torch, where it is installed)")
    parser.add_argument("--threads", type=int, default=usable_cores(), help="the most threads")
    parser.add_argument("--markdown", metavar="FILE", help="write the tables, or their part of a page")
    options = parser.parse_args(given)
    found = modules(options)
    tables = [table(by_threads(found, options.threads))]
    if _native.module is not None:
        tables += ["Simulated: the speed-up over one thread that the partition of the work allows.\n",
                   table(by_simulation())]
    runner.set_threads(found, options.threads)
    tables += [table(by_size(sweep, found)) for sweep in SWEEPS]
    if options.markdown:
        page = Path(options.markdown)
        text = page.read_text() if page.exists() else ""
        page.write_text(report.embed(text, "\n".join(tables), START, END))
    return 0


if __name__ == "__main__":
    sys.exit(main())
