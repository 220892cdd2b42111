"""Compiled over eager: ``python -m benchmarks.compile_steps [rounds]`` prints a table, PyTorch beside it if
it is there; with ``--inductor`` also torch.compile, with ``--jax PYTHON`` the same steps under ``jax.jit``.
``--suite`` compares the workloads of the suite, compiled, with eager, by processor time of one thread.

One source for both modules. The sides take turns in one process; a figure is the median over rounds of the
ratio within a round, so that a machine that is busy with other work shifts all sides alike.
"""

import argparse
import importlib
import json
import statistics
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import framework as fw

from .workload import REGISTRY


def _block(m: Any, width: int) -> Any:
    F, nn = m.nn.functional, m.nn

    class Block(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.second = nn.LayerNorm(width), nn.LayerNorm(width)
            self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
            self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

        def forward(self, x: Any) -> Any:
            b, t, d = x.shape
            q, k, v = self.qkv(self.first(x)).view(b, t, 3, 4, d // 4).permute(2, 0, 3, 1, 4).unbind()
            y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
            x = x + self.out(y.transpose(1, 2).reshape(b, t, d))
            return x + self.down(F.gelu(self.up(self.second(x))))
    return Block()


def _step(m: Any, loss: Callable, params: list, kind: str, **options: Any) -> Callable:
    optimizer = getattr(m.optim, kind)(params, **options)

    def step() -> Any:
        optimizer.zero_grad()
        value = loss()
        value.backward()
        optimizer.step()
        return value
    return step


def mlp(m: Any) -> Callable:
    nn = m.nn
    model = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))
    x, y = m.randn(32, 64), m.randint(0, 10, (32,))
    return _step(m, lambda: nn.functional.cross_entropy(model(x), y), list(model.parameters()), "Adam")


def lstm_cells(m: Any) -> Callable:
    cell, xs = m.nn.LSTMCell(16, 32), m.randn(40, 8, 16)

    def loss() -> Any:
        h = c = m.zeros(8, 32)
        for x in xs:
            h, c = cell(x, (h, c))
        return h.sum()
    return _step(m, loss, list(cell.parameters()), "SGD", lr=0.01)


def tiny_gpt(m: Any) -> Callable:
    nn = m.nn
    names, places = nn.Embedding(65, 32), nn.Embedding(32, 32)
    blocks, norm, head = [_block(m, 32) for _ in range(2)], nn.LayerNorm(32), nn.Linear(32, 65)
    ids, wanted = m.randint(0, 65, (4, 32)), m.randint(0, 65, (128,))
    model = nn.ModuleList([names, places, *blocks, norm, head])

    def loss() -> Any:
        x = names(ids) + places(m.arange(32))
        for block in blocks:
            x = block(x)
        return nn.functional.cross_entropy(head(norm(x)).view(-1, 65), wanted)
    return _step(m, loss, list(model.parameters()), "Adam")


def small_cnn(m: Any) -> Callable:
    nn = m.nn
    model = nn.Sequential(nn.Conv2d(1, 8, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(8, 16, 3,
    padding=1),
                          nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(784, 10))
    x, y = m.randn(32, 1, 28, 28), m.randint(0, 10, (32,))
    return _step(m, lambda: nn.functional.cross_entropy(model(x), y), list(model.parameters()), "Adam")


def chain(n: int, backward: bool) -> Callable[[Any], Callable]:
    def make(m: Any) -> Callable:
        a, b, c = (m.randn(n, n, requires_grad=backward) for _ in range(3))

        def run() -> Any:
            y = m.tanh(a * b + c) * m.sigmoid(a)
            if backward:
                a.grad = b.grad = c.grad = None
                y.sum().backward()
            return y
        return run
    return make


CASES = {
    "MLP 64-64-64-10, batch 32, Adam": mlp, "LSTMCell, 40 steps, SGD": lstm_cells,
    "GPT, 2 layers of width 32, Adam": tiny_gpt, "CNN, batch 32, Adam": small_cnn,
    "chain 256x256": chain(256, False), "chain 256x256, with backward": chain(256, True),
    "chain 16 MB": chain(2048, False), "chain 16 MB, with backward": chain(2048, True),
}


SETTLED = 80  # calls after which a compiled function puts off what it is going to put off


def _seconds(f: Callable, times: int, clock: Callable[[], float] = time.perf_counter) -> float:
    start = clock()
    for _ in range(times):
        f()
    return (clock() - start) / times


def _peak(f: Callable) -> int:
    """Bytes in tensors at one time during a call, beyond those before it."""
    before = fw.cpu.memory_allocated()
    fw.cpu.reset_peak_memory_stats()
    f()
    return fw.cpu.max_memory_allocated() - before


def _ratios(plain: Callable, compiled: Callable, rounds: int) -> list[float]:
    """Compiled over eager by processor time of this thread, within each of these rounds."""
    times = max(1, int(0.01 / _seconds(plain, 1)))
    ratios = []
    for i in range(rounds):
        found = [0.0, 0.0]
        for at in (0, 1) if i % 2 else (1, 0):
            found[at] = _seconds((plain, compiled)[at], times, time.thread_time)
        ratios.append(found[1] / found[0])
    return ratios


def suite(rounds: int, names: list[str], slower: float = 1.03) -> None:
    """Print the workloads of the suite whose compiled calls take longer than eager ones, and how many not.

    What is slower at first is measured again with six times the rounds, which noise seldom survives.
    names: of the workloads; none: all of them.
    """
    fw.set_num_threads(1)
    importlib.import_module("benchmarks.workloads")
    chosen = {name: work for name, work in sorted(REGISTRY.items()) if not names or name in names}
    within = 0
    for name, work in chosen.items():
        plain = work.cases([fw])[0].run
        compiled = fw.compile(work.cases([fw])[0].run)
        start = time.perf_counter()
        for calls in range(SETTLED):  # what is to be left off is left off after some calls
            plain()
            compiled()
            if calls >= 5 and time.perf_counter() - start > 2:
                break
        ratios = _ratios(plain, compiled, rounds)
        if statistics.median(ratios) > slower:
            ratios = _ratios(plain, compiled, 6 * rounds)
        low, middle, high = statistics.quantiles(ratios, n=4)
        within += middle <= slower
        if middle > slower or names:
            print(f"| {name} | {middle:.3f} ({low:.3f}-{high:.3f}) |", flush=True)
            if names:
                print(compiled.explain())
    print(f"{within} of {len(chosen)} workloads take at most {slower} of eager's time")


def _jax(python: str) -> list:
    """(first call, later calls) of each case under JAX, by a Python that has it."""
    found = subprocess.run([python, str(Path(__file__).with_name("compile_jax.py"))], capture_output=True,
                           text=True, check=True)
    return json.loads(found.stdout.splitlines()[-1])


def _compiled_by_torch(torch: Any, make: Callable) -> tuple[Callable, float]:
    """The step under ``torch.compile``, and the seconds of its first three calls, which compile."""
    step = torch.compile(make(torch))
    start = time.perf_counter()
    for _ in range(3):
        step()
    return step, time.perf_counter() - start


def main(rounds: int, inductor: bool = False, jax: str = "") -> None:
    """Print the table; inductor: with torch.compile, which takes minutes; jax: with that Python's JAX."""
    fw.set_num_threads(2)
    try:
        torch = importlib.import_module("torch")
        torch.set_num_threads(2)
    except ImportError:
        torch = None
    by_jax = _jax(jax) if jax else []
    print("| step | eager | compiled | compiled / eager (quartiles) | peak memory, eager | compiled | "
          "PyTorch eager | torch.compile (first calls) | JAX jit (first call) |")
    print("|---|---|---|---|---|---|---|---|---|")
    for number, (name, make) in enumerate(CASES.items()):
        plain = make(fw)
        sides, first = [plain, fw.compile(plain)] + ([make(torch)] if torch else []), 0.0
        if torch and inductor:
            other, first = _compiled_by_torch(torch, make)
            sides.append(other)
        for f in sides:
            _seconds(f, 5)
        _seconds(sides[1], SETTLED)
        peaks = [f"{_peak(f) / 1024:.0f} KiB" for f in sides[:2]]
        times = max(1, int(0.02 / _seconds(plain, 3)))
        rows = []
        for i in range(rounds):
            order = list(enumerate(sides))
            found = [0.0] * len(sides)
            for at, f in order if i % 2 else order[::-1]:
                time.sleep(0.01)
                found[at] = _seconds(f, times)
            rows.append(found)
        cells = [_shown(statistics.median(column)) for column in zip(*rows)]
        low, middle, high = statistics.quantiles([row[1] / row[0] for row in rows], n=4)
        eager, compiled, *others = [*cells, "-", "-"][:4]
        inducted = f"{others[1]} ({first:.0f} s)" if first else "-"
        jitted = f"{_shown(by_jax[number][1])} ({by_jax[number][0]:.1f} s)" if by_jax else "-"
        print(f"| {name} | {eager} | {compiled} | {middle:.2f} ({low:.2f}-{high:.2f}) | {peaks[0]} | "
              f"{peaks[1]} | {others[0]} | "
              f"{inducted} | {jitted} |", flush=True)


def _shown(seconds: float) -> str:
    return f"{seconds * 1e3:.2f} ms" if seconds > 1e-3 else f"{seconds * 1e6:.0f} us"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("rounds", nargs="?", type=int, default=40)
    parser.add_argument("--inductor", action="store_true", help="with torch.compile, too")
    parser.add_argument("--jax", default="", metavar="PYTHON", help="with the JAX of that Python, too")
    parser.add_argument("--suite", nargs="*", default=None, metavar="WORKLOAD",
                        help="the workloads of the suite instead, all of them or those that are named")
    given = parser.parse_args()
    if given.suite is not None:
        suite(given.rounds, given.suite)
    else:
        main(given.rounds, given.inductor, given.jax)
