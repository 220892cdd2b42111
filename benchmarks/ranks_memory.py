"""Memory of a rank in data parallel and in fully sharded training, beside PyTorch's, each in jobs of its own.

    python -m benchmarks.ranks_memory [--ranks 2 4] [--steps 4]

What a rank has beyond that at its start: its share of pages that are shared (Pss), the median of the ranks.
"""

import argparse
import gc
import importlib
import os
import subprocess
import sys
from statistics import median
from typing import Any

WIDTH, LAYERS = 2048, 6
KINDS = ("DistributedDataParallel", "fully_shard")


def pss() -> int:
    """Bytes of this process's memory, shared pages divided by how many processes have them."""
    with open("/proc/self/smaps_rollup") as file:
        return next(int(line.split()[1]) * 1024 for line in file if line.startswith("Pss:"))


def rank(name: str, kind: str, steps: int, port: int) -> None:
    """What a rank does: some steps of Adam, then rank 0 prints what the ranks have gained."""
    m = importlib.import_module(name)
    dist = importlib.import_module(f"{name}.distributed")
    m.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"tcp://127.0.0.1:{port}", rank=int(os.environ["RANK"]),
                            world_size=int(os.environ["WORLD_SIZE"]))
    n, start = dist.get_world_size(), pss()
    model: Any = m.nn.Sequential(*[m.nn.Linear(WIDTH, WIDTH) for _ in range(LAYERS)])
    if kind == "fully_shard":
        fsdp = importlib.import_module(f"{name}.distributed.fsdp")
        if name == "torch":  # theirs: inside out, a mesh of CPUs
            mesh = dist.init_device_mesh("cpu", (n,))
            for part in [*model, model]:
                fsdp.fully_shard(part, mesh=mesh)
        else:
            fsdp.fully_shard(model, units=list(model))
    else:
        model = m.nn.parallel.DistributedDataParallel(model)
    optimizer, x = m.optim.Adam(model.parameters(), lr=1e-4), m.ones(8, WIDTH)
    for _ in range(steps):
        optimizer.zero_grad()
        model(x).square().mean().backward()
        optimizer.step()
    gc.collect()
    dist.barrier()
    gained: list = [None] * n
    dist.all_gather_object(gained, pss() - start)
    if dist.get_rank() == 0:
        print("GAINED", median(gained), flush=True)
    dist.destroy_process_group()


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.ranks_memory",
                                     description=__doc__.splitlines()[0])
    parser.add_argument("--ranks", type=int, nargs="+", default=[2, 4])
    parser.add_argument("--steps", type=int, default=4)
    parser.add_argument("--port", type=int, default=29680)
    parser.add_argument("--rank", nargs=2, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.rank:
        rank(*args.rank, args.steps, args.port)
        return
    print(f"| {LAYERS * (WIDTH + 1) * WIDTH * 4 >> 20} MB of parameters | "
          + " | ".join(f"{n} ranks" for n in args.ranks) + " |")
    port = args.port
    for kind in KINDS:
        cells = []
        for n in args.ranks:
            said = []
            for name in ("torch", "framework"):
                port += 1
                done = subprocess.run(
                    [sys.executable, "-m", "framework.distributed.run", "-n", str(n), "--no-prefix", "-m",
                     "benchmarks.ranks_memory", "--steps", str(args.steps), "--port", str(port), "--rank",
                     name, kind], capture_output=True, text=True, env={**os.environ, "OMP_NUM_THREADS": "1"})
                lines = [line for line in done.stdout.splitlines() if line.startswith("GAINED")]
                if not lines:
                    sys.exit(done.stderr)
                said.append(f"{float(lines[0].split()[1]) / 1e6:.0f} MB")
            cells.append(", ".join(said))
        print(f"| {kind}: PyTorch, ours | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
