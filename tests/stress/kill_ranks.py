"""End random ranks of a job in random ways at random times: all gone with a non-zero code in 10 s, nothing
left.

    python tests/stress/kill_ranks.py --jobs 200 [--ranks 3] [--seed 0]
"""

import argparse
import os
import random
import re
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from common import ROOT, alive

PROGRAM = """
import os, signal, sys, threading, time
kind, victim, at = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])
import framework as fw, framework.distributed as dist, framework.nn as nn
print("pid", os.getpid(), flush=True)
dist.init_process_group()  # where a rank may take seconds to start, the short deadline is for calls only
group = dist.new_group(timeout=3)
rank = dist.get_rank()
model = nn.parallel.DistributedDataParallel(nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 8)),
                                            process_group=group)
optimizer = fw.optim.SGD(model.parameters(), lr=0.01)
until = time.monotonic() + at
if rank == victim: print("fault", until, flush=True)
def end():
    if kind == "kill": os.kill(os.getpid(), signal.SIGKILL)
    if kind == "segv": os.kill(os.getpid(), signal.SIGSEGV)
    if kind == "stop": os.kill(os.getpid(), signal.SIGSTOP)
    if kind == "exit0": os._exit(0)
    if kind == "exit3": os._exit(3)
if rank == victim and kind in ("kill", "segv", "stop", "exit0", "exit3"):
    threading.Timer(at, end).start()
while True:
    if rank == victim and time.monotonic() > until:
        if kind == "raise": raise ValueError("the first cause")
        if kind == "leave": sys.exit(0)
        if kind == "shape": dist.all_reduce(fw.ones(3 + rank), group=group)
        if kind == "call": dist.barrier(group)
    optimizer.zero_grad()
    model(fw.randn(8, 64)).sum().backward()
    optimizer.step()
"""
LAST = {"kill": "killed by SIGKILL", "segv": "killed by SIGSEGV", "stop": "waited", "exit0": "os._exit",
        "exit3": "exit code 3", "raise": "ValueError: the first cause", "leave": "has ended after call",
        "shape": "the ranks made different calls", "call": "the ranks made different calls"}


def one(random_, ranks, program):
    """One job; how it was ended, how long after the fault it was over with all ranks, what was wrong."""
    kind, at = random_.choice(list(LAST)), random_.uniform(0.0, 0.4)
    command = [sys.executable, "-m", "framework.distributed.run", "-n", str(ranks), program, kind,
               str(random_.randrange(ranks)), str(at)]
    job = subprocess.Popen(command, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                           env={**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"})
    try:
        out, err = job.communicate(timeout=120)
    except subprocess.TimeoutExpired:
        job.kill()
        out, err = job.communicate()
        return kind, 120.0, [f"not over after 120 s, having said {out!r} and {err!r}"]
    over, fault = time.monotonic(), re.search(r"fault ([\d.]+)", out)
    took = over - float(fault[1]) if fault else 0.0
    wrong = [] if fault else ["the job ended before its fault"]
    if took > 10:
        wrong.append(f"over {took:.1f} s after the fault")
    if not job.returncode:
        wrong.append("exit code 0")
    left = [p for p in map(int, re.findall(r"pid (\d+)", out)) if alive(p)]
    if left:
        wrong.append(f"ranks left: {left}")
    last = (err.splitlines() or [""])[-1]
    if LAST[kind] not in last:
        wrong.append(f"the last line is {last!r}")
    return kind, took, wrong


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--jobs", type=int, default=200)
    parser.add_argument("--ranks", type=int, default=3)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    random_, kinds, slowest, bad = random.Random(options.seed), Counter(), 0.0, []
    shared = Path("/dev/shm")
    before = set(shared.iterdir()) if shared.is_dir() else set()
    with tempfile.TemporaryDirectory() as directory:
        program = os.path.join(directory, "program.py")
        Path(program).write_text(PROGRAM)
        for _ in range(options.jobs):
            kind, took, wrong = one(random_, options.ranks, program)
            kinds[kind] += 1
            slowest = max(slowest, took)
            bad += [f"{kind}: {w}" for w in wrong]
    after = set(shared.iterdir()) if shared.is_dir() else set()
    bad += [f"left in /dev/shm: {p.name}" for p in after - before if p.stat().st_uid == os.getuid()]
    counts = ", ".join(f"{k} {n}" for k, n in sorted(kinds.items()))
    print(f"{sum(kinds.values())} jobs of {options.ranks} ranks ({counts}); all gone at most {slowest:.1f} s "
          f"after the fault; {len(bad)} wrong{': ' if bad else ''}{'; '.join(bad[:10])}")
    sys.exit(bool(bad))


if __name__ == "__main__":
    main()
