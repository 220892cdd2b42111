"""Every public op beside PyTorch: which are slow, by one table sorted by ratio.

    python -m benchmarks --ops [--only NAME ...] [--sizes tiny cache memory] [--dtypes float32 ...]

The calls are those of the sample table of the tests, so an op cannot be forgotten. Their arrays are repeated
along a new first dimension until they have the wanted size; where the two libraries then refuse, or disagree,
a size is left out (a square matrix of 16 MB is no batch of small ones), and where a result takes more than
some GB (all pairs of many rows). Each row is the fastest of several calls, taken in turns, by the processor's
time where one thread runs; a call that changes its inputs gets the same ones again.
"""

import itertools
import math
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np

MOST_MEMORY = 8 << 30  # bytes of addresses beside those that there are: a call that wants more is refused
SIZES = {"tiny": 0, "cache": 1 << 16, "memory": 1 << 22}  # elements of the largest input; tiny: as it is
LAYOUTS = ("plain", "transposed", "gaps")
DTYPES = ("float32", "float64", "float16", "bfloat16", "int64")
DIFFERS = 0.05  # results further apart than this, relative to the largest, are not of the same call


class Case(NamedTuple):
    """One call at one size."""

    name: str
    way: str
    size: str
    dtype: str
    layout: str
    ours: Callable[[], Any]
    theirs: Callable[[], Any]


class Timed(NamedTuple):
    """The fastest seconds of both."""

    case: Case
    ours: float
    theirs: float

    @property
    def ratio(self) -> float:
        """Ours by theirs."""
        return self.ours / self.theirs


def _table() -> tuple[list, Callable]:
    """The rows of the sample table and the name of one."""
    folder = str(Path(__file__).resolve().parents[1] / "tests")
    if folder not in sys.path:
        sys.path.insert(0, folder)
    from table import ROWS, row_id
    return ROWS, row_id


def _grown(inputs: tuple, elements: int) -> list[Any] | None:
    """The arrays, repeated along a new first dimension; None where nothing can grow."""
    sizes = [a.size for a in inputs if isinstance(a, np.ndarray) and a.ndim]
    if not sizes or not max(sizes):
        return None
    times = max(1, elements // max(sizes))
    return [np.repeat(a[None], times, 0) if isinstance(a, np.ndarray) and a.ndim else a for a in inputs]


def _laid(a: np.ndarray, layout: str) -> np.ndarray:
    if layout == "transposed" and a.ndim > 1:
        return np.ascontiguousarray(a.T).T
    return np.repeat(a, 2, axis=-1)[..., ::2] if layout == "gaps" and a.ndim else a


def _tensors(M: ModuleType, arrays: list, dtype: str, layout: str, grad: bool) -> list[Any]:
    made = []
    for a in arrays:
        if isinstance(a, (np.ndarray, np.generic)):
            floating = np.asarray(a).dtype.kind == "f"
            a = M.from_numpy(_laid(np.array(a), layout))
            a = a.to(getattr(M, dtype)) if floating else a
            if grad and a.is_floating_point():
                a.requires_grad_()
        made.append(a)
    return made


def _leaves(out: Any, M: ModuleType) -> list[Any]:
    parts = out if isinstance(out, (list, tuple)) else [out]
    return [x for part in parts for x in (_leaves(part, M) if isinstance(part, (list, tuple)) else [part])
            if isinstance(x, M.Tensor)]


def _agree(ours: list[Any], theirs: list[Any]) -> bool:
    """Whether both give tensors of the same shapes with nearly the same numbers."""
    if len(ours) != len(theirs) or not ours:
        return False
    for a, b in zip(ours, theirs):
        if tuple(a.shape) != tuple(b.shape):
            return False
        x, y = ((t if t.is_complex() else t.double()).detach().resolve_conj().numpy() for t in (a, b))
        most = np.nanmax(np.abs(np.where(np.isfinite(y), y, 0)), initial=0)
        if not np.allclose(np.nan_to_num(x), np.nan_to_num(y), DIFFERS, DIFFERS * (most + 1)):
            return False
    return True


def _call(M: ModuleType, sample: Any, given: list, backward: bool) -> Callable[[], Any]:
    if not backward:
        return lambda: sample.call(M, *given)

    def both() -> Any:
        leaves = [y for y in _leaves(sample.call(M, *given), M) if y.requires_grad]
        inputs = [x for x in given if isinstance(x, M.Tensor) and x.requires_grad]
        return M.autograd.grad(leaves, inputs, [M.ones_like(y) for y in leaves], allow_unused=True)
    return both


def cases(fw: ModuleType, torch: ModuleType, only: list[str] | None, sizes: list[str], dtypes: list[str],
          layouts: list[str]) -> Iterator[Case]:
    """Every call that both libraries make and agree on."""
    rows, row_id = _table()
    for row in rows:
        name = row_id(row)
        if only and not any(o in (name, row.name) for o in only):
            continue
        samples = [s for s in row.samples if s.torch]
        for size, dtype, layout in itertools.product(sizes, dtypes, layouts):
            for sample in samples[:1]:
                arrays = None
                with suppress(MemoryError):
                    arrays = list(sample.inputs) if size == "tiny" else _grown(sample.inputs, SIZES[size])
                if arrays is None:
                    continue
                for backward in (False, True) if sample.grad and dtype != "int64" else (False,):
                    try:
                        pair = []
                        for M in (fw, torch):
                            given = _tensors(M, arrays, dtype, layout, backward)
                            M.manual_seed(0)
                            pair.append((_call(M, sample, given, backward), sample.call(M, *given)))
                        if not _agree(_leaves(pair[0][1], fw), _leaves(pair[1][1], torch)):
                            continue
                        pair[0][0]()
                        pair[1][0]()
                    except Exception:  # refused by one of them: not a call to compare
                        continue
                    yield Case(name, "backward" if backward else "forward", size, dtype, layout, pair[0][0],
                               pair[1][0])


def limit_memory() -> None:
    """From now on allocations beyond ``MOST_MEMORY`` raise, where the system knows such limits (Linux)."""
    try:
        import resource
        used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (used + MOST_MEMORY, resource.RLIM_INFINITY))
    except (ImportError, OSError):
        pass


def timed(case: Case, rounds: int, seconds: float, clock: Callable[[], float] = time.perf_counter) -> Timed:
    """The fastest call of both, in turns."""
    best = [math.inf, math.inf]
    calls = (case.ours, case.theirs)
    counts = []
    for call in calls:
        start = clock()
        call()
        counts.append(max(1, min(1000, int(seconds / rounds / max(clock() - start, 1e-7)))))
    for _ in range(rounds):
        for i, call in enumerate(calls):
            start = clock()
            for _ in range(counts[i]):
                call()
            best[i] = min(best[i], (clock() - start) / counts[i])
    return Timed(case._replace(ours=_over, theirs=_over), *best)


def _over() -> None:
    """In place of a call that has been timed: it would hold its arrays as long as the table is made."""


def summary(found: list[Timed]) -> str:
    """How many rows there are, their geometric mean, and how many are above 1, 1.5 and 2."""
    if not found:
        return "no rows"
    mean = math.exp(sum(math.log(t.ratio) for t in found) / len(found))
    above = ", ".join(f"{sum(t.ratio > limit for t in found)} above {limit:g}" for limit in (1.0, 1.5, 2.0))
    return f"{len(found)} rows, geometric mean {mean:.2f}, {above}"


def line(t: Timed) -> str:
    """A row of the table."""
    c = t.case
    times = f"{t.ours * 1e6:.1f} | {t.theirs * 1e6:.1f}"
    return f"| {t.ratio:.2f} | {c.name} | {c.way} | {c.size} | {c.dtype} | {c.layout} | {times} |"


def main(fw: ModuleType, torch: ModuleType, only: list[str] | None, sizes: list[str], dtypes: list[str],
         layouts: list[str], rounds: int = 5, seconds: float = 0.02, page: str | None = None,
         threads: int = 1) -> list[Timed]:
    """Measure, print the table sorted by ratio, slowest first, and the summaries."""
    found = []
    clock = time.thread_time if threads == 1 else time.perf_counter
    limit_memory()
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        for case in cases(fw, torch, only, sizes, dtypes, layouts):
            with suppress(RuntimeError, MemoryError):  # no memory: not a call to compare
                found.append(timed(case, rounds, seconds, clock))
            if sys.stderr.isatty():
                print(f"\r{len(found)} {case.name:40}", end="", file=sys.stderr)
    found.sort(key=lambda t: -t.ratio)
    head = ["| ours / theirs | op | way | size | dtype | layout | ours, us | theirs, us |",
            "| --- | --- | --- | --- | --- | --- | --- | --- |"]
    parts = [f"- {what}: {summary([t for t in found if what in (t.case.size, t.case.way, t.case.dtype)])}"
             for what in (*sizes, "forward", "backward", *(dtypes if len(dtypes) > 1 else ()))]
    text = "\n".join([summary(found), "", *parts, "", *head, *map(line, found)])
    print(text)
    if page:
        Path(page).write_text(text + "\n")
    return found
