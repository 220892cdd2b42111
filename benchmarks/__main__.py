"""Time one module beside another on the same workloads.

    python -m benchmarks --module framework --vs torch [--only NAME ...] [--quick]
    python -m benchmarks --ops [--only NAME ...] [--sizes tiny cache memory] [--dtypes float32 ...]
"""

import argparse
import os
import sys
import traceback
from collections.abc import Sequence
from importlib import import_module
from types import ModuleType
from typing import Any

from framework.backends.threads import usable_cores

from . import ops, report, runner, workloads  # noqa: F401
from .processes import PLAIN, measurements, without_kernels
from .workload import REGISTRY

QUICK = runner.Plan(rounds=5, seconds=0.03)


def arguments(given: Sequence[str] | None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__.partition("\n")[0])
    parser.add_argument("--module", default="framework", help="what is measured (default: framework)")
    parser.add_argument("--vs", metavar="MODULE", help="beside what (default: torch, where it is installed)")
    parser.add_argument("--only", nargs="+", metavar="NAME", help="these workloads or families")
    parser.add_argument("--list", action="store_true", help="print the workloads and stop")
    parser.add_argument("--rounds", type=int, help=f"samples of each (default: {runner.Plan.rounds})")
    parser.add_argument("--threads", type=int, default=usable_cores(), help="threads of every module")
    parser.add_argument("--quick", action="store_true", help="fewer and shorter samples of the same work")
    parser.add_argument("--plain", action="store_true", help="also time each without the native kernels")
    parser.add_argument("--json", metavar="FILE", help="append the run to this file, one line of JSON")
    parser.add_argument("--markdown", metavar="FILE", help="write the table, or its part of a page")
    parser.add_argument("--picture", metavar="FILE", help="write the ratios as SVG")
    parser.add_argument("--ops", action="store_true", help="time every public op, slowest ratio first")
    parser.add_argument("--sizes", nargs="+", choices=list(ops.SIZES), default=list(ops.SIZES),
                        help="of --ops")
    parser.add_argument("--ways", nargs="+", choices=ops.WAYS, default=list(ops.WAYS[:2]), help="of --ops")
    parser.add_argument("--rows", metavar="FILE", help="of --ops: rows as they come; those it has are kept")
    parser.add_argument("--dtypes", nargs="+", choices=ops.DTYPES, default=["float32"], help="of --ops")
    parser.add_argument("--layouts", nargs="+", choices=ops.LAYOUTS, default=["plain"], help="of --ops")
    options = parser.parse_args(given)
    if options.rounds is not None and options.rounds < 1:
        parser.error("--rounds must be positive")
    return options


def chosen(only: Sequence[str] | None) -> list[str]:
    """Names of workloads and measurements, in their order; SystemExit for an unknown one."""
    families = {**{name: w.family for name, w in REGISTRY.items()},
                **dict.fromkeys(measurements(), "processes")}
    for name in only or ():
        if name not in families and name not in families.values():
            raise SystemExit(f"there is no workload or family {name!r}; --list prints them")
    return [n for n, family in families.items() if not only or n in only or family in only]


def modules(options: argparse.Namespace) -> list[ModuleType]:
    """What is compared; PyTorch is left out with a word where it is not installed and was not asked for."""
    found = [import_module(options.module)]
    try:
        found.append(import_module(options.vs or "torch"))
    except ImportError:
        if options.vs:
            raise
        print("PyTorch is not installed (the compare extra brings it): no ratios", file=sys.stderr)
    for M in found:
        for part in ("nn", "optim"):
            import_module(f"{M.__name__}.{part}")
    return found


def run(names: Sequence[str], pair: list[ModuleType], plan: runner.Plan, threads: int,
        plain: bool = False) -> dict[str, Any]:
    """Measure and print row by row. A workload that fails is a row that says so.

    The peak is measured again before every row, since other programs may run just then; the best counts.
    """
    runner.set_threads(pair, threads)
    os.environ["OMP_NUM_THREADS"] = str(threads)    # for the fresh processes
    peak = runner.peak(threads, 10)
    found: dict[str, Any] = {"modules": [M.__name__ for M in pair], "threads": threads, "peak": peak,
                             "machine": runner.machine(), "rows": []}
    print("\n".join(report.conditions(found)), flush=True)
    processes = measurements()
    for name in names:
        again = runner.peak(threads)
        peak.update({kind: max(peak[kind], again[kind]) for kind in peak})
        try:
            if name in REGISTRY:
                row = runner.measure(REGISTRY[name], pair, plan)
                if plain:
                    row["beside"][PLAIN] = without_kernels(found["modules"][0], name, threads)
            else:
                row = processes[name].measure(found["modules"], plan.rounds)
        except Exception as error:
            traceback.print_exc()
            row = {"name": name, "failed": f"{type(error).__name__}: {error}".partition("\n")[0]}
        found["rows"].append(row)
        print(report.line(row, peak), flush=True)
    return found


def main(given: Sequence[str] | None = None) -> int:
    """0, or 1 if a workload failed."""
    options = arguments(given)
    if options.ops:
        pair = modules(options)
        if len(pair) < 2:
            raise SystemExit("--ops needs PyTorch beside it: pip install 'framework[compare]'")
        runner.set_threads(pair, options.threads)
        ops.main(*pair, options.only, options.sizes, options.dtypes, options.layouts, options.ways,
                 options.rounds or 5, page=options.markdown, threads=options.threads, rows=options.rows)
        return 0
    names = chosen(options.only)
    if options.list:
        says = {x.name: x.what for x in (*REGISTRY.values(), *measurements().values())}
        print("\n".join(f"{name:24}{says[name]}" for name in names))
        return 0
    plan = QUICK if options.quick else runner.Plan()
    plan = runner.Plan(options.rounds or plan.rounds, plan.seconds)
    found = run(names, modules(options), plan, options.threads, options.plain)
    report.write(found, options.markdown, options.picture, options.json)
    return any("failed" in row for row in found["rows"])


if __name__ == "__main__":
    sys.exit(main())
