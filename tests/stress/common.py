"""What the stress programs share. Each is run as a command and prints one line; it exits 1 on a failure."""

import os
import random
import sys
import time
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

import framework as fw  # noqa: E402


class Samples(fw.data.Dataset):
    """Arrays big enough for shared memory that take a little while; sample i holds i and random numbers."""

    def __init__(self, n=400, seconds=0.0005, size=20_000):
        self.n, self.seconds, self.size = n, seconds, size

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        time.sleep(self.seconds)
        return i, np.full(self.size, i, np.float32), random.random()


def whole(batch):
    """Whether a batch is what it says it is."""
    index, image, _ = batch
    return bool((image == index.float().reshape(-1, 1)).all())


def alive(pid):
    """Whether the process is there and no zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def children(pid):
    """The direct children of a process."""
    try:
        return [int(p) for p in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except OSError:
        return []


def shared_files():
    """Names in /dev/shm."""
    return set(os.listdir("/dev/shm")) if os.path.isdir("/dev/shm") else set()


def descriptors():
    """How many descriptors this process has."""
    return len(os.listdir("/proc/self/fd"))


def resident(pid="self"):
    """Resident memory in MB."""
    fields = Path(f"/proc/{pid}/statm").read_text().split()
    return int(fields[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6


def proportional(pid):
    """Memory of a process in MB, shared pages divided among those that share them."""
    for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
        if line.startswith("Pss:"):
            return int(line.split()[1]) / 1e3
    return 0.0


def until(true, seconds):
    """Wait until ``true()``; how long it took, or None."""
    start = time.monotonic()
    while time.monotonic() - start < seconds:
        if true():
            return time.monotonic() - start
        time.sleep(0.005)
    return None


def finish(good, line):
    """Print the result and end."""
    print(("ok: " if good else "FAILED: ") + line)
    sys.exit(0 if good else 1)
