"""Ranks beside PyTorch's gloo and its DistributedDataParallel, by turns in the same processes.

    python -m benchmarks.distributed [--ranks 2 4] [--rounds 9] [--only all_reduce] [--growth]

One thread per rank. ``--growth`` prints what a step would take on up to 1024 ranks, by a model whose
parameters are measured here, and how far the model is off on 1 to 4 ranks.
"""

import argparse
import json
import math
import os
import subprocess
import sys
import time
from collections.abc import Callable
from statistics import median
from typing import Any

ALONE, SLOWEST = "ours alone", "the slowest rank alone"
SIZES = {"1 KB": 1 << 8, "1 MB": 1 << 18, "100 MB": 25 << 20}


# -- in a rank -----------------------------------------------------------------------------------


def _rounds(pairs: dict[str, Callable], rounds: int, meet: Callable, calls: int = 1) -> dict[str, float]:
    """The median seconds of each call, all of them taking turns.

    For a step of each rank alone there is also how long the slowest of them took: others would wait for it.
    """
    import framework.distributed as ours
    times: dict[str, list[float]] = {name: [] for name in pairs}
    for k in range(rounds + 1):
        for name, call in pairs.items():
            meet()
            start = time.perf_counter()
            for _ in range(calls):
                call()
            if k:
                times[name].append((time.perf_counter() - start) / calls)
    found = {name: median(t) for name, t in times.items()}
    if ALONE in times:
        everywhere: list = [None] * ours.get_world_size()
        ours.all_gather_object(everywhere, times[ALONE])
        found[SLOWEST] = median(max(t) for t in zip(*everywhere))
    return found


def _all_reduces(rounds: int, rows: dict) -> None:
    import torch
    import torch.distributed as theirs

    import framework as fw
    import framework.distributed as ours
    from framework.tensor import wrap

    backend = ours.GroupMember.WORLD.backend
    bucket = backend.symmetric(100 << 20)
    for size, count in SIZES.items():
        a, b, c = torch.zeros(count), fw.zeros(count), wrap(bucket.array(ours.get_rank(), "float32", count))
        rows[f"all_reduce {size}"] = _rounds({
            "gloo": lambda a=a: theirs.all_reduce(a), "ours": lambda b=b: ours.all_reduce(b),
            "ours, in a bucket": lambda c=c: ours.all_reduce(c)}, rounds, ours.barrier,
            1 if count > 1 << 20 else 20)


def _step(m: Any, model: Any, x: Any, y: Any) -> Callable:
    optimizer = m.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)

    def step() -> None:
        optimizer.zero_grad()
        m.nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()
    return step


def _mlp(m: Any) -> tuple:
    nn = m.nn
    layers = nn.Linear(784, 256), nn.ReLU(), nn.Linear(256, 128), nn.ReLU(), nn.Linear(128, 10)
    return nn.Sequential(*layers), (64, 784)


def _cnn(m: Any) -> tuple:
    """3.9 M parameters, most of them in one linear layer."""
    nn = m.nn
    layers = (nn.Conv2d(1, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(32, 64, 3, padding=1),
              nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(64 * 49, 1200), nn.ReLU(),
              nn.Linear(1200, 10))
    return nn.Sequential(*layers), (32, 1, 28, 28)


def _steps(rounds: int, rows: dict) -> None:
    import numpy as np
    import torch

    import framework as fw
    import framework.distributed as ours

    for name, make in (("MLP", _mlp), ("CNN", _cnn)):
        pairs, alone = {}, {}
        for m, key in ((torch, "torch"), (fw, "ours")):
            model, shape = make(m)
            x = m.from_numpy(np.random.default_rng(0).standard_normal(shape).astype(np.float32))
            y = m.from_numpy(np.arange(shape[0]) % 10)
            alone[f"{key} alone"] = _step(m, make(m)[0], x, y)
            pairs[key] = _step(m, m.nn.parallel.DistributedDataParallel(model), x, y)
        rows[f"step {name}"] = _rounds({**pairs, **alone}, rounds, ours.barrier, 5 if name == "MLP" else 1)


def rank(rounds: int, only: str, port: int) -> None:
    """What a rank does; rank 0 prints the rows as JSON."""
    import torch
    import torch.distributed as theirs

    import framework as fw
    import framework.distributed as ours

    torch.set_num_threads(1)
    fw.set_num_threads(1)
    ours.init_process_group()
    theirs.init_process_group("gloo", init_method=f"tcp://127.0.0.1:{port}", rank=ours.get_rank(),
                              world_size=ours.get_world_size())
    rows: dict = {}
    if only in ("", "all_reduce"):
        _all_reduces(rounds, rows)
    if only in ("", "step"):
        _steps(rounds, rows)
    if ours.get_rank() == 0:
        print("ROWS " + json.dumps(rows), flush=True)
    theirs.destroy_process_group()
    ours.destroy_process_group()


# -- what grows ----------------------------------------------------------------------------------


def ring(n: int, size: float, latency: float, bandwidth: float) -> float:
    """Seconds of an all-reduce of ``size`` bytes on a ring: 2 (n - 1) steps of a part each."""
    return 2 * (n - 1) * (latency + size / n / bandwidth)


def tree(n: int, size: float, latency: float, bandwidth: float) -> float:
    """Seconds of an all-reduce up and down a binary tree."""
    return 2 * math.ceil(math.log2(n)) * (latency + size / bandwidth) if n > 1 else 0.0


def shared(n: int, size: float, meeting: float, speed: float) -> float:
    """Seconds of ours on one machine: two meetings, and every rank reads and writes its part of all buckets.

    speed: bytes per second that one core moves; the memory is taken to keep up with all.
    """
    return 0.0 if n == 1 else 2 * meeting + 2 * size / speed


def growth(measured: dict[int, dict], size: float) -> list[str]:
    """Lines about the model: its error on what was measured, and what it says of more ranks."""
    first = measured[2]
    meeting = first["all_reduce 1 KB"]["ours, in a bucket"] / 2
    big = first["all_reduce 100 MB"]["ours, in a bucket"]
    speed = 2 * (SIZES["100 MB"] * 4) / max(big - 2 * meeting, 1e-9)
    lines = [f"measured on 2 ranks: a meeting {meeting * 1e6:.0f} us, a core moves {speed / 1e9:.1f} GB/s"]
    for n, rows in sorted(measured.items()):
        alone = rows["step CNN"][SLOWEST]
        told = alone + shared(n, size, meeting, speed)
        seen = rows["step CNN"]["ours"]
        lines.append(f"{n} ranks, step of the CNN: model {told * 1e3:.1f} ms, measured {seen * 1e3:.1f} ms, "
                     f"off by {told / seen - 1:+.0%}")
    alone = first["step CNN"][SLOWEST]
    lines += ["", "| ranks | 1 Gbit/s, 50 us: ring | tree | 100 Gbit/s, 5 us: ring | tree |",
              "| --- | --- | --- | --- | --- |"]
    for k in range(1, 11):
        n = 2 ** k
        cells = [f(n, size, lat, band) for lat, band in ((5e-5, 1.25e8), (5e-6, 1.25e10)) for f in (ring,
        tree)]
        lines.append(f"| {n} | " + " | ".join(f"{(alone + c) * 1e3:.1f} ms ({alone / (alone + c):.0%})"
                                              for c in cells) + " |")
    return lines


def picture(measured: dict[int, dict], path: str) -> None:
    """Write the time of a step over the number of ranks as SVG, ours beside PyTorch's."""
    lines = {(key, what): [(n, rows[f"step {what}"][key] * 1e3) for n, rows in sorted(measured.items())]
             for what in ("MLP", "CNN") for key in ("torch", "ours")}
    out = ['<svg xmlns="http://www.w3.org/2000/svg" width="640" height="280" font-family="sans-serif" '
           'font-size="12"><rect width="640" height="280" fill="white"/>']
    for k, what in enumerate(("MLP", "CNN")):
        left, top, wide, high = 60 + 310 * k, 40, 230, 180
        most = max(t for (_, w), pts in lines.items() if w == what for _, t in pts)
        out.append(f'<text x="{left}" y="24">step of the {what}, ms, by ranks</text>'
                   f'<path d="M{left} {top}v{high}h{wide}" fill="none" stroke="#888"/>'
                   f'<text x="{left - 6}" y="{top + 4}" text-anchor="end">{most:.0f}</text>'
                   f'<text x="{left - 6}" y="{top + high}" text-anchor="end">0</text>')
        out += [f'<text x="{left + wide * n / 4.3:.0f}" y="{top + high + 16}" text-anchor="middle">{n}</text>'
                for n in measured]
        for key, colour in (("torch", "#c0392b"), ("ours", "#2471a3")):
            at = [(left + wide * n / 4.3, top + high * (1 - t / most)) for n, t in lines[key, what]]
            out.append(f'<polyline fill="none" stroke="{colour}" stroke-width="2" points="'
                       + " ".join(f"{x:.0f},{y:.0f}" for x, y in at) + '"/>')
            out.append(f'<text x="{at[-1][0] + 4:.0f}" y="{at[-1][1] + 4:.0f}" fill="{colour}">'
                       f'{"PyTorch" if key == "torch" else "framework"}</text>')
    with open(path, "w") as file:
        file.write("".join(out) + "</svg>\n")


# -- the command ---------------------------------------------------------------------------------


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m "
                                          "benchmarks.distributed", description=__doc__.splitlines()[0])
    parser.add_argument("--ranks", type=int, nargs="+", default=[2, 4])
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--only", choices=("", "all_reduce", "step"), default="")
    parser.add_argument("--growth", action="store_true")
    parser.add_argument("--picture", metavar="FILE", help="with --growth: write the steps over ranks as SVG")
    parser.add_argument("--port", type=int, default=29650)
    parser.add_argument("--rank", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.rank:
        rank(args.rounds, args.only, args.port)
        return
    measured: dict[int, dict] = {}
    print("| what | " + " | ".join(f"{n} ranks" for n in args.ranks) + " |")
    for i, n in enumerate([*args.ranks, *((1, 3) if args.growth else ())]):
        command = [sys.executable, "-m", "framework.distributed.run", "-n", str(n), "--no-prefix", "-m",
                   "benchmarks.distributed", "--rank", "--rounds", str(args.rounds), "--only", args.only,
                   "--port", str(args.port + i)]
        done = subprocess.run(command, capture_output=True, text=True,
                              env={**os.environ, "OMP_NUM_THREADS": "1"})
        lines = [line for line in done.stdout.splitlines() if line.startswith("ROWS ")]
        if not lines:
            sys.exit(done.stderr)
        measured[n] = json.loads(lines[0][5:])
    for what in measured[args.ranks[0]]:
        cells = []
        for n in args.ranks:
            row = measured[n][what]
            base = row.get("gloo", row.get("torch"))
            cells.append(", ".join(f"{name} {t * 1e3:.3f} ms" + (
                "" if name in ("gloo", "torch") or "alone" in name else f" ({t / base:.2f})")
                for name, t in row.items()))
        print(f"| {what} | " + " | ".join(cells) + " |")
    print(f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    if args.growth:
        print("\n".join(growth(measured, 3.8e6 * 4)))
        if args.picture:
            picture(measured, args.picture)


if __name__ == "__main__":
    main()
