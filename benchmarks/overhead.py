"""Overhead per recorded op, beside PyTorch in the same run, and the time to import.

    python benchmarks/overhead.py

Twenty additions on 10x20 numbers with a graph, forward and backward, alternating between the two;
medians over many rounds, and the spread of the ratio. PyTorch is needed (the ``compare`` extra).
"""

import os
import statistics
import subprocess
import sys
import timeit
from collections.abc import Callable
from types import ModuleType

import framework as fw

LENGTH, ROUNDS, CALLS = 20, 60, 50


def forward(M: ModuleType) -> Callable:
    """Twenty additions."""
    a, b = M.ones(10, 20, requires_grad=True), M.ones(10, 20)

    def run() -> None:
        x = a
        for _ in range(LENGTH):
            x = x + b
    return run


def forward_backward(M: ModuleType) -> Callable:
    """Twenty additions and their backward."""
    a, b, g = M.ones(10, 20, requires_grad=True), M.ones(10, 20), M.ones(10, 20)

    def run() -> None:
        x = a
        for _ in range(LENGTH):
            x = x + b
        x.backward(g)
    return run


def compare(make: Callable, other: ModuleType) -> None:
    """Print microseconds per addition of both, and the median ratio with its quartiles."""
    ours, theirs = make(fw), make(other)
    times = []
    for _ in range(ROUNDS):
        times.append([timeit.timeit(f, number=CALLS) / CALLS / LENGTH * 1e6 for f in (ours, theirs)])
    ratios = sorted(a / b for a, b in times)
    print(f"{make.__name__:18} framework {statistics.median(t[0] for t in times):5.2f} us   "
          f"{other.__name__} {statistics.median(t[1] for t in times):5.2f} us   ratio "
          f"{statistics.median(ratios):.2f} ({ratios[ROUNDS // 4]:.2f} to {ratios[3 * ROUNDS // 4]:.2f})")


def import_times(rounds: int = 9) -> None:
    """Print the median time of ``import framework`` over ``import numpy``, in fresh processes.

    Compiled modules are cached, as in any installation after the first import.
    """
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}

    def seconds(module: str) -> float:
        code = f"import time; t = time.perf_counter(); import {module}; print(time.perf_counter() - t)"
        return float(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True,
                                    check=True, env=environment).stdout)

    seconds("framework")
    pairs = [(seconds("framework"), seconds("numpy")) for _ in range(rounds)]
    ours, numpy = (statistics.median(p[i] for p in pairs) * 1000 for i in (0, 1))
    print(f"import framework   {ours:.0f} ms, import numpy {numpy:.0f} ms: {ours - numpy:.0f} ms more")


if __name__ == "__main__":
    import torch

    for workload in (forward, forward_backward):
        compare(workload, torch)
    import_times()
