"""How far workers that only read a dataset of Python objects grow by copying its pages.

Counting references writes to the pages of a list's items, so forked workers get copies of them; packed into
arrays (``PackedList``) they stay shared. Prints the growth of the memory of all processes (PSS) over epochs.

    python tests/stress/copy_on_write.py --samples 1000000 --epochs 3 --workers 4
"""

import argparse
import multiprocessing
import os

from common import finish, fw, proportional


class Texts(fw.data.Dataset):
    """Reads one item of a list."""

    def __init__(self, items):
        self.items = items

    def __len__(self):
        return len(self.items)

    def __getitem__(self, i):
        return len(self.items[i])


def total():
    """Memory of this process and its workers in MB."""
    return sum(proportional(p) for p in [os.getpid(), *(c.pid for c in multiprocessing.active_children())])


def growth(items, options):
    """(memory in the first epoch's beginning, at the end of the last) in MB."""
    loader = fw.data.DataLoader(Texts(items), 1000, shuffle=True, num_workers=options.workers,
                                persistent_workers=True)
    first = last = 0.0
    for _ in range(options.epochs):
        for n, _batch in enumerate(loader):
            if n == options.workers and not first:
                first = total()
        last = total()
    return first, last


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--samples", type=int, default=1_000_000)
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--workers", type=int, default=4)
    options = parser.parse_args()
    listed = growth([f"sample number {i}" for i in range(options.samples)], options)
    packed = growth(fw.data.PackedList(f"sample number {i}" for i in range(options.samples)), options)
    share = [b / a - 1 for a, b in (listed, packed)]
    finish(share[1] < 0.1,
           f"copy_on_write: {options.samples} samples, {options.workers} workers, {options.epochs} epochs; "
           f"list {listed[0]:.0f} to {listed[1]:.0f} MB ({share[0]:+.0%}), PackedList {packed[0]:.0f} to "
           f"{packed[1]:.0f} MB ({share[1]:+.0%})")


if __name__ == "__main__":
    main()
