"""Every public op beside PyTorch: which are slow, by one table sorted by ratio.

    python -m benchmarks --ops [--only NAME ...] [--sizes tiny cache memory] [--dtypes float32 ...]
                            [--layouts plain transposed gaps channels-last broadcast]
                            [--ways forward backward out] [--rows FILE]

The calls are those of the sample table of the tests, so an op cannot be forgotten. Their arrays are repeated
along a new first dimension until they have the wanted size; where the two libraries then refuse, or disagree,
a size is left out (a square matrix of 16 MB is no batch of small ones), and where a result takes more than
some GB (all pairs of many rows). What PyTorch puts off (conjugates) is made before the clock stops. With
channels last it is the images that become more, and only calls that have some are made; with operands that
broadcast, all but the first keep one element of their first dimension; ``out`` gives the function a tensor
for its result. Each row is the fastest of several calls, taken in turns,
by the processor's time where one thread runs; a call that changes its inputs gets the same ones again. Rows
go to a file as they come, and those it has are not measured again: a long table can be stopped and gone on
with.
"""

import itertools
import math
import os
import sys
import time
import warnings
from collections.abc import Callable, Container, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np

MOST_MEMORY = 5 << 30  # bytes of addresses beside those that there are: a call that wants more is refused
SIZES = {"tiny": 0, "cache": 1 << 16, "memory": 1 << 22}  # elements of the largest input; tiny: as it is
LAYOUTS = ("plain", "transposed", "gaps", "channels-last", "broadcast")
WAYS = ("forward", "backward", "out")
DTYPES = ("float32", "float64", "float16", "bfloat16", "int64")
LONGEST = 2.0  # seconds for a row: a call of which five take longer is made less often
LEFT_OUT = {  # (op, layout): what is wrong with PyTorch's call
    ("fft.ihfftn", "transposed"): "it writes past its memory: malloc() finds its lists spoilt",
}
COMPARED = 1 << 17  # elements of a result that are looked at
DIFFERS = 0.05  # results further apart than this, relative to the largest, are not of the same call


class Kind(NamedTuple):
    """What a row is of: everything but the numbers."""

    name: str
    way: str
    size: str
    dtype: str
    layout: str


class Case(NamedTuple):
    """One call at one size, of both."""

    kind: Kind
    ours: Callable[[], Any]
    theirs: Callable[[], Any]


class Timed(NamedTuple):
    """The fastest seconds of both."""

    kind: Kind
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


def _grown(inputs: tuple, size: str, layout: str) -> list[Any] | None:
    """The arrays, repeated along a new first dimension (images: their own); None where nothing can grow."""
    sizes = [a.size for a in inputs if _is_array(a)]
    if size == "tiny" or not sizes or not max(sizes):
        return list(inputs) if size == "tiny" else None
    if layout == "channels-last":
        first = next(a for a in inputs if _is_array(a) and a.ndim > 3)
        times = max(1, SIZES[size] // first.size)
        grow = [_is_array(a) and a.shape[:2] == first.shape[:2] for a in inputs]
        return [np.repeat(a, times, 0) if more else a for a, more in zip(inputs, grow)]
    times = max(1, SIZES[size] // max(sizes))
    return [np.repeat(a[None], times, 0) if _is_array(a) else a for a in inputs]


def _is_array(a: Any) -> bool:
    return isinstance(a, np.ndarray) and a.ndim > 0


def _laid(a: np.ndarray, layout: str) -> np.ndarray:
    if layout == "transposed" and a.ndim > 1:
        return np.ascontiguousarray(a.T).T
    if layout == "channels-last" and a.ndim > 3:
        return np.moveaxis(np.ascontiguousarray(np.moveaxis(a, 1, -1)), -1, 1)
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
        x, y = (t.detach().reshape(-1)[::1 + t.numel() // COMPARED] for t in (a, b))
        x, y = ((t if t.is_complex() else t.double()).resolve_conj().numpy() for t in (x, y))
        most = np.nanmax(np.abs(np.where(np.isfinite(y), y, 0)), initial=0)
        if not np.allclose(np.nan_to_num(x), np.nan_to_num(y), DIFFERS, DIFFERS * (most + 1)):
            return False
    return True


class _Filling:
    """A module whose function at ``path`` gets ``out=``."""

    def __init__(self, M: ModuleType, path: list[str], out: Any) -> None:
        self._module = M
        inner = getattr(M, path[0])
        setattr(self, path[0], _Filling(inner, path[1:], out) if path[1:] else partial(inner, out=out))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._module, name)


def _call(M: ModuleType, sample: Any, kind: Kind, given: list) -> tuple[Callable[[], Any], Any]:
    """The call to be timed, and what it gives."""
    result = sample.call(M, *given)
    if kind.way == "out":
        out = tuple(_leaves(result, M)) if isinstance(result, (list, tuple)) else result
        for y in _leaves(out, M):
            y.zero_()
        filling = _Filling(M, kind.name.split("."), out)
        sample.call(filling, *given)
        return lambda: sample.call(filling, *given), out
    if kind.way == "forward":
        call = partial(sample.call, M, *given)
        late = [y for y in _leaves(result, M) if y.is_conj() or y.is_neg()]
        if not late:
            return call, result
        return lambda: [y.resolve_conj().resolve_neg() for y in _leaves(call(), M)], result

    def both() -> Any:
        leaves = [y for y in _leaves(sample.call(M, *given), M) if y.requires_grad]
        inputs = [x for x in given if isinstance(x, M.Tensor) and x.requires_grad]
        return M.autograd.grad(leaves, inputs, [M.ones_like(y) for y in leaves], allow_unused=True)
    return both, result


def _fits(sample: Any, layout: str) -> bool:
    """Whether the layout makes a difference to the call: images, or several arrays."""
    arrays = [a for a in sample.inputs if _is_array(a)]
    return {"channels-last": any(a.ndim > 3 for a in arrays), "broadcast": len(arrays) > 1}.get(layout, True)


def _arrays(sample: Any, size: str, layout: str) -> list[Any] | None:
    with suppress(MemoryError):
        arrays = _grown(sample.inputs, size, layout)
        if arrays and layout == "broadcast":
            first = next(i for i, a in enumerate(arrays) if _is_array(a))
            arrays = [a[:1] if _is_array(a) and i > first else a for i, a in enumerate(arrays)]
        return arrays
    return None


def cases(fw: ModuleType, torch: ModuleType, only: list[str] | None, sizes: list[str], dtypes: list[str],
          layouts: list[str], ways: list[str], known: Container[Kind] = ()) -> Iterator[Case]:
    """Every call that both libraries make and agree on, but for those that are known."""
    rows, row_id = _table()
    for row in rows:
        name = row_id(row)
        if only and not any(o in (name, row.name) for o in only):
            continue
        for size, dtype, layout in itertools.product(sizes, dtypes, layouts):
            sample = next((s for s in row.samples if s.torch and _fits(s, layout)), None)
            arrays = _arrays(sample, size, layout) if sample else None
            if sample is None or arrays is None:
                continue
            for way in ways:
                kind = Kind(name, way, size, dtype, layout)
                if kind in known or (name, layout) in LEFT_OUT or (
                        way == "backward" and not (sample.grad and dtype != "int64")):
                    continue
                case = _case(fw, torch, sample, arrays, kind)
                if case:
                    yield case


def _case(fw: ModuleType, torch: ModuleType, sample: Any, arrays: list[Any], kind: Kind) -> Case | None:
    """The calls of both; None where one of them refuses (not a call to compare), or they disagree."""
    calls, results = [], []
    with suppress(Exception):
        for M in (fw, torch):
            given = _tensors(M, arrays, kind.dtype, kind.layout, kind.way == "backward")
            M.manual_seed(0)
            call, result = _call(M, sample, kind, given)
            calls.append(call)
            results.append(_leaves(result, M))
        if _agree(*results):
            for call in calls:
                call()
            return Case(kind, *calls)
    return None


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
    once = 0.0
    for call in calls:
        took = LONGEST
        for _ in range(3):  # the first calls may wait for the other library's threads, which spin for a while
            start = clock()
            call()
            took = min(took, max(clock() - start, 1e-7))
            if took > seconds:
                break
        once += took
        counts.append(max(1, min(1000, int(seconds / rounds / took))))
    for _ in range(max(1, min(rounds, int(LONGEST / once)))):
        for i, call in enumerate(calls):
            start = clock()
            for _ in range(counts[i]):
                call()
            best[i] = min(best[i], (clock() - start) / counts[i])
    return Timed(case.kind, *best)


def summary(found: list[Timed]) -> str:
    """How many rows there are, their geometric mean, and how many are above 1, 1.1, 1.5 and 2."""
    if not found:
        return "no rows"
    mean = math.exp(sum(math.log(t.ratio) for t in found) / len(found))
    above = ", ".join(f"{sum(t.ratio > most for t in found)} above {most:g}" for most in (1.0, 1.1, 1.5, 2.0))
    return f"{len(found)} rows, geometric mean {mean:.2f}, {above}"


def line(t: Timed) -> str:
    """A row of the table."""
    times = f"{t.ours * 1e6:.1f} | {t.theirs * 1e6:.1f}"
    return f"| {t.ratio:.2f} | {' | '.join(t.kind)} | {times} |"


def read(rows: str | None) -> dict[Kind, Timed]:
    """What an earlier run wrote."""
    known = {}
    if rows and Path(rows).exists():
        for text in Path(rows).read_text().splitlines():
            *kind, ours, theirs = text.split("\t")
            known[Kind(*kind)] = Timed(Kind(*kind), float(ours), float(theirs))
    return known


def main(fw: ModuleType, torch: ModuleType, only: list[str] | None, sizes: list[str], dtypes: list[str],
         layouts: list[str], ways: list[str], rounds: int = 5, seconds: float = 0.02, page: str | None = None,
         threads: int = 1, rows: str | None = None) -> list[Timed]:
    """Measure, print the table sorted by ratio, slowest first, and the summaries."""
    known = read(rows)
    found = list(known.values())
    clock = time.thread_time if threads == 1 else time.perf_counter
    limit_memory()
    with warnings.catch_warnings(), np.errstate(all="ignore"), open(rows or os.devnull, "a") as file:
        warnings.simplefilter("ignore")
        for case in cases(fw, torch, only, sizes, dtypes, layouts, ways, known):
            with suppress(RuntimeError, MemoryError):  # no memory: not a call to compare
                found.append(timed(case, rounds, seconds, clock))
                print(*found[-1].kind, found[-1].ours, found[-1].theirs, sep="\t", file=file, flush=True)
            if sys.stderr.isatty():
                print(f"\r{len(found)} {case.kind.name:40}", end="", file=sys.stderr)
    found.sort(key=lambda t: -t.ratio)
    head = ["| ours / theirs | op | way | size | dtype | layout | ours, us | theirs, us |",
            "| --- | --- | --- | --- | --- | --- | --- | --- |"]
    parts = [f"- {what}: {summary([t for t in found if what in t.kind])}"
             for what in (*sizes, *ways, *(dtypes if len(dtypes) > 1 else ()),
                          *(layouts if len(layouts) > 1 else ()))]
    text = "\n".join([summary(found), "", *parts, "", *head, *map(line, found)])
    print(text)
    if page:
        Path(page).write_text(text + "\n")
    return found
