"""What the profiler costs: training steps with and without it, beside PyTorch's where that is installed.

    python -m benchmarks.profiling [--rounds 25]

Processor time of one thread; the ways take turns within each round, so that what else the machine does falls
on all of them; medians.
"""

import argparse
import os
from collections.abc import Callable
from contextlib import nullcontext
from importlib import import_module
from statistics import median
from time import thread_time
from types import ModuleType

os.environ.setdefault("KINETO_LOG_LEVEL", "99")  # PyTorch's profiler reports each start and stop

WAYS = {
    "off": None,
    "on": {},
    "shapes": {"record_shapes": True},
    "memory": {"profile_memory": True},
    "lines and modules": {"with_stack": True, "with_modules": True},
    "all of it": {"record_shapes": True, "profile_memory": True, "with_stack": True, "with_modules": True},
    "off again": None,
}


def mlp(M: ModuleType) -> tuple:
    """(network, input, labels): three layers of 256, 64 rows."""
    nn = M.nn
    net = nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 10))
    return net, M.randn(64, 64), M.randint(0, 10, (64,))


def cnn(M: ModuleType) -> tuple:
    """(network, input, labels): two convolutions with normalisation, 32 images of 3x32x32."""
    nn = M.nn
    net = nn.Sequential(
        nn.Conv2d(3, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(16, 32, 3, padding=1), nn.BatchNorm2d(32), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Linear(32 * 64, 10))
    return net, M.randn(32, 3, 32, 32), M.randint(0, 10, (32,))


def step_of(M: ModuleType, parts: tuple) -> Callable[[], None]:
    """One training step with Adam."""
    net, x, y = parts
    optimizer = M.optim.Adam(net.parameters(), lr=1e-3)

    def step() -> None:
        loss = M.nn.functional.cross_entropy(net(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return step


def seconds(M: ModuleType, step: Callable, settings: dict | None, steps: int) -> float:
    """The time of a step in a block of them; starting and ending the profiler is not counted."""
    with nullcontext() if settings is None else M.profiler.profile(**settings):
        step()
        start = thread_time()
        for _ in range(steps):
            step()
        return (thread_time() - start) / steps


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=25)
    parser.add_argument("--steps", type=int, default=10, help="steps of a sample")
    parser.add_argument("--only", choices=["mlp", "cnn"], nargs="+", default=["mlp", "cnn"])
    options = parser.parse_args()
    modules = [import_module("framework")]
    try:
        modules.append(import_module("torch"))
    except ImportError:
        print("PyTorch is not installed (the compare extra brings it)")
    for M in modules:
        M.set_num_threads(1)
        import_module(f"{M.__name__}.profiler")
    print("| step | profiler | " + " | ".join(f"{M.__name__} | more" for M in modules) + " |")
    print("| --- | --- |" + " --- | --- |" * len(modules))
    for make in (globals()[name] for name in options.only):
        cells: dict[str, list[str]] = {way: [] for way in WAYS}
        for M in modules:
            step = step_of(M, make(M))
            step()
            found: dict[str, list[float]] = {way: [] for way in WAYS}
            for _ in range(options.rounds):
                for way, settings in WAYS.items():
                    found[way].append(seconds(M, step, settings, options.steps))
            for way, times in found.items():
                more = median(a / b - 1 for a, b in zip(times, found["off"]))
                cells[way].append(f"{1e3 * median(times):.3f} ms")
                cells[way].append("" if way == "off" else f"{100 * more:+.0f} %")
        for way, row in cells.items():
            print(f"| {make.__name__.upper()} | {way} | {' | '.join(row)} |", flush=True)


if __name__ == "__main__":
    main()
