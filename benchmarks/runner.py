"""Timing, statistics, what the machine can do, and whether two modules did the same work."""

import gc
import os
import platform
import statistics
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

import framework
from framework.backends.threads import usable_cores

from . import compiled
from .workload import Case, Workload

# threads of a BLAS or OpenMP spin for a while after a product: they are given time to fall asleep
SETTLE = 0.03


@dataclass(frozen=True)
class Plan:
    """How long to measure: rounds of samples, each of about ``seconds``."""

    rounds: int = 15
    seconds: float = 0.1


class Disagree(AssertionError):
    """Two modules computed different things from the same weights."""


# -- the same work --------------------------------------------------------------------------------


def arrays(case: Case) -> list[np.ndarray]:
    """What one run of a case computed."""
    found = []
    for x in case.values(case.run()):
        found.append(np.array(x.detach().numpy() if hasattr(x, "detach") else x))
    return found


def _largest(x: np.ndarray) -> float:
    return float(np.abs(x).max(initial=0))


def _euclidean(x: np.ndarray) -> float:
    return float(np.linalg.norm(x.ravel()))


def agree(names: Sequence[str], cases: Sequence[Case], tolerance: float,
          size: Callable[[np.ndarray], float] = _largest) -> None:
    """Run every case once and raise `Disagree` unless all computed the first one's values.

    Of each array the difference may be ``tolerance`` times the array, both measured by ``size``.
    """
    first, *others = [arrays(case) for case in cases]
    for name, other in zip(names[1:], others):
        if len(first) != len(other):
            raise Disagree(f"{names[0]} gives {len(first)} arrays, {name} {len(other)}")
        for i, (a, b) in enumerate(zip(first, other)):
            if a.shape != b.shape or a.dtype != b.dtype:
                raise Disagree(f"array {i}: {names[0]} gives {a.dtype}{list(a.shape)}, "
                               f"{name} {b.dtype}{list(b.shape)}")
            if not (np.isfinite(a).all() and np.isfinite(b).all()):
                raise Disagree(f"array {i} is not finite")
            scale, worst = size(b), size(a.astype(np.float64) - b)
            if worst > tolerance * scale:
                raise Disagree(f"array {i}: {names[0]} and {name} differ by {worst:.3g}, the array is "
                               f"{scale:.3g} large, allowed is {tolerance:g} times that")


def agree_in_double(work: Workload, modules: Sequence[ModuleType], tiny: bool = False) -> None:
    """Raise `Disagree` unless the modules compute the same in float64, to rounding."""
    before = [M.get_default_dtype() for M in modules]
    try:
        for M in modules:
            M.set_default_dtype(M.float64)
        agree([M.__name__ for M in modules], work.cases(list(modules), tiny), 1e-10)
    finally:
        for M, dtype in zip(modules, before):
            M.set_default_dtype(dtype)


# -- timing ---------------------------------------------------------------------------------------


def seconds(run: Callable[[], Any], number: int) -> float:
    """Seconds per call over ``number`` calls."""
    start = time.perf_counter()
    for _ in range(number):
        run()
    return (time.perf_counter() - start) / number


def alternate(runs: Sequence[Callable[[], Any]], plan: Plan) -> list[list[float]]:
    """Per round the seconds of each function; every round takes them in the opposite order.

    Before each sample there is a pause and a call that does not count, so that none finds the caches,
    the clock or the threads as another one left them. The garbage collector runs as it does for users,
    over what was made since the start of the measurement.
    """
    gc.collect()
    gc.freeze()
    try:
        once = max(min(seconds(run, 1) for _ in range(2)) for run in runs)
        number = max(1, round(plan.seconds / max(once, 1e-7)))
        found = []
        for i in range(plan.rounds):
            row = [0.0] * len(runs)
            for j in sorted(range(len(runs)), reverse=bool(i % 2)):
                time.sleep(SETTLE)
                runs[j]()
                row[j] = seconds(runs[j], number)
            found.append(row)
        return found
    finally:
        gc.unfreeze()


def per_call(cases: Sequence[Case], plan: Plan) -> list[list[float]]:
    """`alternate`, divided by what each case does in a run."""
    return [[t / case.calls for t, case in zip(row, cases)]
            for row in alternate([case.run for case in cases], plan)]


def quartiles(numbers: Iterable[float]) -> list[float]:
    """First quartile, median, third quartile."""
    sample = sorted(numbers)
    if len(sample) == 1:
        return sample * 3
    return statistics.quantiles(sample, n=4, method="inclusive")


def summary(names: Sequence[str], rows: Sequence[Sequence[float]]) -> dict[str, Any]:
    """Medians by name, and the quartiles of the ratios of the first two, round by round."""
    medians = {name: statistics.median(row[i] for row in rows) for i, name in enumerate(names)}
    ratios = quartiles(row[0] / row[1] for row in rows) if len(names) > 1 else None
    return {"median": medians, "ratio": ratios, "rounds": len(rows)}


def beside(work: Workload, modules: Sequence[ModuleType], tiny: bool = False) -> dict[str, Case]:
    """The same work by other means: written by hand in NumPy, compiled by JAX where it is installed."""
    found = {}
    if hand := work.numpy_case(tiny):
        found["NumPy by hand"] = hand
    if work.name in compiled.CASES and len(modules) > 1 and find_spec("jax"):
        found["JAX (jit)"] = compiled.CASES[work.name](**work.tiny if tiny else {})
    return found


def measure(work: Workload, modules: Sequence[ModuleType], plan: Plan, tiny: bool = False) -> dict[str, Any]:
    """Check that the modules, and what stands beside them, agree, then time them."""
    names, cases = [M.__name__ for M in modules], work.cases(list(modules), tiny)
    others = beside(work, modules, tiny)
    if work.kinks:
        agree_in_double(work, modules, tiny)
    agree([*names, *others], [*cases, *others.values()], work.tolerance,
          _euclidean if work.kinks else _largest)
    found = summary(names, per_call(cases, plan))
    # by themselves: what is many times slower would leave room for a call or two of the modules in a sample
    found["beside"] = {name: statistics.median(t for t, in per_call([case], plan))
                       for name, case in others.items()}
    kind, count = ("flops", cases[0].flops) if cases[0].flops else ("bytes", cases[0].bytes)
    if count:
        found["bound"], found["count"] = kind, count
    return {"name": work.name, "family": work.family, "what": work.what, "unit": "s",
            "note": cases[0].note, **found}


# -- the machine ----------------------------------------------------------------------------------


def set_threads(modules: Sequence[ModuleType], n: int) -> None:
    """The same number of threads for every module, and for NumPy's BLAS."""
    for M in {framework, *modules}:
        M.set_num_threads(n)


def peak(threads: int, tries: int = 3, size: int = 1536, megabytes: int = 128) -> dict[str, float]:
    """Flops per second of NumPy's float32 product, bytes per second of a copy by all threads.

    The best of the tries; a copy counts what it reads and what it writes.
    """
    a = np.random.default_rng(0).standard_normal((size, size), dtype=np.float32)
    product = min(seconds(lambda: a @ a, 1) for _ in range(tries))
    parts = np.ones((2, threads, megabytes * 10 ** 6 // 8 // threads))
    with ThreadPoolExecutor(threads) as pool:
        copy = min(seconds(lambda: list(pool.map(np.copyto, parts[0], parts[1])), 1) for _ in range(tries))
    return {"flops": 2 * size ** 3 / product, "bytes": parts.nbytes / copy}


def _processor() -> str:
    """The name of the processor, where Linux tells it."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    names = (x.partition(":")[2].strip() for x in lines if x.startswith("model name"))
    return next(names, platform.machine())


def machine() -> dict[str, Any]:
    """What a figure depends on: processor, cores, load, system, versions."""
    versions = {"python": platform.python_version(), "framework": framework.__version__}
    for name in ("numpy", "torch", "jax"):
        try:
            versions[name] = version(name)
        except PackageNotFoundError:
            continue
    return {"processor": _processor(), "cores": usable_cores(),
            "load": round(os.getloadavg()[0], 1), "system": platform.platform(), "versions": versions,
            "when": datetime.now(UTC).isoformat(timespec="seconds")}
