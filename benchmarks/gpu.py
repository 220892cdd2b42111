"""On a GPU: workloads beside PyTorch on the same device and beside the CPU, small calls, passes over memory.

    python -m benchmarks.gpu --json gpu.json [--only NAME ...] [--seconds 540]    and again, to go on
    python -m benchmarks.gpu --standin tests/standin --vs '' --tiny               its way, without a GPU

Sections: ``workloads`` (one call of each in milliseconds, on the CPU, on the device, recorded once as a CUDA
graph, and PyTorch's), ``host`` (microseconds of the host for a small call) and ``memory`` (GB/s, beside a
copy's). Medians of rounds in which the two modules take turns. What is in the file is not measured again;
what no longer fits into ``--seconds`` is left for the next call, and said so.
"""

import argparse
import gc
import json
import os
import statistics
import sys
import time
import warnings
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from . import workloads  # noqa: F401
from .workload import REGISTRY, Workload, normal

NEEDED = 15.0  # seconds that a measurement may take
SMALL: dict[str, Callable] = {  # of x, y (10, 20), v (64, 64), a layer and a norm of 64
    "add": lambda M, a: a["x"] + a["y"], "add a number": lambda M, a: a["x"] + 1.0,
    "mul": lambda M, a: a["x"] * a["y"], "exp": lambda M, a: a["x"].exp(), "tanh": lambda M, a: a["x"].tanh(),
    "relu": lambda M, a: a["x"].relu(), "gelu": lambda M, a: M.nn.functional.gelu(a["x"]),
    "sum": lambda M, a: a["x"].sum(), "mean of rows": lambda M, a: a["x"].mean(1),
    "amax": lambda M, a: a["x"].amax(), "softmax": lambda M, a: M.nn.functional.softmax(a["x"], dim=-1),
    "view": lambda M, a: a["x"].view(200), "slice": lambda M, a: a["x"][2:5],
    "transpose": lambda M, a: a["x"].t(), "cat": lambda M, a: M.cat([a["x"], a["y"]]),
    "zeros": lambda M, a: M.zeros(10, 20), "where": lambda M, a: M.where(a["x"] > 0, a["x"], a["y"]),
    "matmul": lambda M, a: a["v"] @ a["v"], "linear": lambda M, a: a["linear"](a["v"]),
    "layer_norm": lambda M, a: a["norm"](a["v"]),
}
# passes over memory: (how often each element is read or written, the call)
PASSES: dict[str, tuple[int, Callable]] = {
    "copy": (2, lambda M, a: a["x"].clone()), "add": (3, lambda M, a: a["x"] + a["y"]),
    "gelu": (2, lambda M, a: M.nn.functional.gelu(a["x"])),
    "softmax": (2, lambda M, a: M.nn.functional.softmax(a["x"], dim=-1)),
    "layer norm": (2, lambda M, a: M.nn.functional.layer_norm(a["x"], a["x"].shape[-1:])),
    "rms norm": (2, lambda M, a: M.nn.functional.rms_norm(a["x"], a["x"].shape[-1:])),
    "cross entropy": (1, lambda M, a: M.nn.functional.cross_entropy(a["x"], a["classes"])),
    "dropout": (2, lambda M, a: M.nn.functional.dropout(a["x"], 0.1, True)),
    "sum": (1, lambda M, a: a["x"].sum()), "sum of columns": (1, lambda M, a: a["x"].sum(0)),
    "sort of rows": (3, lambda M, a: a["x"].sort(-1)),
    "Adam": (7, lambda M, a: a["adam"].step()), "SGD with momentum": (5, lambda M, a: a["sgd"].step()),
}


class Results:
    """What has been measured, in a file; and whether there is time for more."""

    def __init__(self, path: str | None, seconds: float) -> None:
        self.path, self.end = path, time.monotonic() + seconds
        there = path is not None and os.path.exists(path)
        self.found: dict[str, Any] = json.loads(Path(str(path)).read_text()) if there else {}
        self.left: list[str] = []

    def wants(self, key: str) -> bool:
        """Whether it is still to be measured, and there is time."""
        if key in self.found:
            return False
        if time.monotonic() + NEEDED > self.end:
            self.left.append(key)
            return False
        return True

    def put(self, key: str, value: dict[str, Any]) -> None:
        """Keep and print it."""
        self.found[key] = value
        shown = ", ".join(f"{k} {v:.4g}" if isinstance(v, float) else f"{k} {v}" for k, v in value.items())
        print(f"{key:40} {shown}", flush=True)
        if self.path:
            Path(f"{self.path}.part").write_text(json.dumps(self.found, indent=1))
            os.replace(f"{self.path}.part", self.path)


def inside(M: Any, device: str, run: Callable[[], Any]) -> Callable[[], Any]:
    """A run whose new tensors are on a device."""
    def there() -> Any:
        with M.device(device):
            return run()
    return there


def seconds(M: Any, run: Callable[[], Any], number: int, device: str, wait: bool = True) -> float:
    """Seconds per call; wait: until the device has done them, else of the host alone."""
    synchronize = M.cuda.synchronize if device.startswith("cuda") else lambda: None
    synchronize()
    start = time.perf_counter()
    for _ in range(number):
        run()
    host = time.perf_counter() - start
    synchronize()
    return (time.perf_counter() - start if wait else host) / number


def medians(runs: dict[str, tuple[Any, Callable, str]], options: argparse.Namespace,
            wait: bool = True, number: int = 0) -> dict[str, float]:
    """Median seconds of each run (module, function, device), in rounds of turns."""
    numbers, found = {}, {name: [] for name in runs}  # type: ignore[var-annotated]
    for name, (M, run, device) in runs.items():
        run()  # compiles kernels and chooses plans
        once = min(seconds(M, run, 1, device) for _ in range(2))
        numbers[name] = number or max(1, min(200, round(options.piece / max(once, 1e-7))))
    for turn in range(options.rounds):
        for name in list(runs)[:: -1 if turn % 2 else 1]:
            M, run, device = runs[name]
            found[name].append(seconds(M, run, numbers[name], device, wait))
    return {name: statistics.median(times) for name, times in found.items()}


def captured(M: Any, run: Callable[[], Any]) -> Callable[[], Any]:
    """A run recorded once as a CUDA graph."""
    side = M.cuda.Stream()
    side.wait_stream(M.cuda.current_stream())
    with M.cuda.stream(side):
        for _ in range(3):
            run()
    M.cuda.current_stream().wait_stream(side)
    graph = M.cuda.CUDAGraph()
    with M.cuda.graph(graph):
        run()

    def replay(kept: Any = run) -> None:  # the graph works on the memory of parameters, and does not keep it
        graph.replay()
    return replay


def measure_workload(work: Workload, modules: Sequence[Any], options: argparse.Namespace) -> dict[str, Any]:
    """Milliseconds by module and place; a word instead of them where it does not run there."""
    runs: dict[str, tuple[Any, Callable, str]] = {}
    failed: dict[str, str] = {}

    def add(name: str, M: Any, device: str, make: Callable[[Callable], Callable]) -> None:
        try:
            with M.device(device):
                case = work.cases([M], options.tiny)[0]
            runs[name] = M, make(inside(M, device, case.run)), device
            runs[name][1]()
        except Exception as error:  # one that a module refuses ends this run alone
            runs.pop(name, None)
            failed[name] = f"{type(error).__name__}: {error}"[:160]
    add(f"{modules[0].__name__} cpu", modules[0], "cpu", lambda run: run)
    for M in modules:
        add(M.__name__, M, options.device, lambda run: run)
        if work.training:
            add(f"{M.__name__} captured", M, options.device, lambda run, M=M: captured(M, run))
    found: dict[str, Any] = {name: 1e3 * t for name, t in medians(runs, options).items()}
    return {**found, **failed}


def operands(M: Any, options: argparse.Namespace) -> dict[str, Any]:
    """What the small calls and the passes over memory take, on the default device."""
    rows, columns = (64, 128) if options.tiny else (8192, 4096)
    weights = [M.nn.Parameter(normal(M, rows, columns)) for _ in range(2)]
    for p in weights:
        p.grad = normal(M, rows, columns, seed=1)
    return {
        "small": {"x": normal(M, 10, 20), "y": normal(M, 10, 20, seed=1), "v": normal(M, 64, 64),
                  "linear": M.nn.Linear(64, 64), "norm": M.nn.LayerNorm(64)},
        "large": {"x": normal(M, rows, columns), "y": normal(M, rows, columns, seed=1),
                  "classes": M.from_numpy(np.arange(rows) % columns).to(M.get_default_device()),
                  "adam": M.optim.Adam(weights[:1]), "sgd": M.optim.SGD(weights[1:], lr=1e-3, momentum=0.9)},
    }


def measure_calls(kind: str, results: Results, modules: Sequence[Any], options: argparse.Namespace) -> None:
    """The sections ``host`` and ``memory``."""
    calls = SMALL if kind == "host" else {name: call for name, (_, call) in PASSES.items()}
    names = [n for n in calls if options.chosen(n) and results.wants(f"{kind}/{n}")]
    given = {}
    for M in modules if names else ():
        with M.device(options.device):
            given[M.__name__] = operands(M, options)["small" if kind == "host" else "large"]
    for name in names:
        if not results.wants(f"{kind}/{name}"):
            continue
        with ExitStack() as block:
            for M in modules:
                block.enter_context(M.device(options.device))
            runs = {M.__name__: (M, lambda M=M: calls[name](M, given[M.__name__]), options.device)
                    for M in modules}
            found = medians(runs, options, kind != "host", 100 if kind == "host" else 0)
        if kind == "host":
            results.put(f"host/{name}", {f"{k} us": 1e6 * t for k, t in found.items()})
        else:
            a = given[modules[0].__name__]["x"]
            size = PASSES[name][0] * a.numel() * a.element_size()
            results.put(f"memory/{name}", {f"{k} GB/s": size / t / 1e9 for k, t in found.items()})


def arguments(given: Sequence[str] | None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.gpu", description=__doc__.partition("\n")[0])
    parser.add_argument("--module", default="framework", help="what is measured (default: framework)")
    parser.add_argument("--vs", default="torch", metavar="MODULE", help="beside what; '' for nothing")
    parser.add_argument("--device", default="cuda", help="default: cuda")
    parser.add_argument("--sections", default="host,memory,workloads", help="some of them, in this order")
    parser.add_argument("--only", nargs="+", metavar="NAME", help="names that hold one of these words")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--piece", type=float, default=0.1, help="seconds of a sample")
    parser.add_argument("--seconds", type=float, default=540, help="to stop after")
    parser.add_argument("--json", metavar="FILE", help="where results are kept, and found again")
    parser.add_argument("--tiny", action="store_true", help="the sizes of the tests")
    parser.add_argument("--standin", metavar="FOLDER", help="of the stand-in for CuPy: its way, no figures")
    options = parser.parse_args(given)
    options.chosen = lambda name: not options.only or any(word in name for word in options.only)
    return options


def main(given: Sequence[str] | None = None) -> int:
    """The command; its exit status."""
    options = arguments(given)
    if options.standin:
        sys.path.insert(0, options.standin)
        # what graphs record past CuPy's bindings is computed by the stand-in, too
        import_module("framework.backends.device_products").cublas = import_module("cupy").cuda.cublas.Library
    modules = [import_module(name) for name in (options.module, options.vs) if name]
    warnings.filterwarnings("ignore", category=UserWarning)
    results = Results(options.json, options.seconds)
    if "device" not in results.found:
        results.put("device", {"name": modules[0].cuda.get_device_name(0),
                               **{M.__name__: str(M.__version__) for M in modules}})
    for section in options.sections.split(","):
        if section in ("host", "memory"):
            measure_calls(section, results, modules, options)
            continue
        for name, work in REGISTRY.items():
            if options.chosen(name) and results.wants(f"workloads/{name}"):
                results.put(f"workloads/{name}", measure_workload(work, modules, options))
                gc.collect()
    if results.left:
        print(f"{len(results.left)} left for another {options.seconds:g} seconds: run the same command again")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
