"""Datasets and helpers of the tests of the loader's workers."""

import gc
import multiprocessing
import random
import time

import numpy as np
import pytest

import framework as fw
from framework.data import DataLoader, Dataset, IterableDataset, get_worker_info


class Augmented(Dataset):
    """What each generator gives, small parts and one that goes through shared memory."""

    def __init__(self, n=23, side=80):
        self.n, self.side, self.epoch = n, side, 0

    def __len__(self):
        return self.n

    def set_epoch(self, epoch):
        self.epoch = epoch

    def __getitem__(self, i):
        return {"index": i, "python": random.random(), "numpy": np.random.rand(2), "own": fw.rand(2),
                "image": np.full((self.side, self.side), i, np.float32), "name": f"s{i}", "epoch": self.epoch}


class Stream(IterableDataset):
    def __init__(self, n=23):
        self.n = n

    def __len__(self):
        return self.n

    def __iter__(self):
        info = get_worker_info()
        share = range(self.n) if info is None else range(info.id, self.n, info.num_workers)
        for i in share:
            yield i, random.random(), np.random.rand(), float(fw.rand(()))


class Does(Dataset):
    """Runs a function at sample ``at``; the others are their index."""

    def __init__(self, what, at=5, n=12):
        self.what, self.at, self.n = what, at, n

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        return self.what() if i == self.at else np.full(5000, i, np.float32)


class Two(Exception):
    def __init__(self, a, b):
        super().__init__(f"{a} and {b}")
        self.a, self.b = a, b


def plain(batch):
    if isinstance(batch, dict):
        return {k: plain(v) for k, v in batch.items()}
    if isinstance(batch, (list, tuple)):
        return [plain(v) for v in batch]
    return batch.tolist() if isinstance(batch, fw.Tensor) else batch


def epochs(loader, n=2):
    return [[plain(b) for b in loader] for _ in range(n)]


def seeded(data, *args, seed=3, **kwargs):
    fw.manual_seed(seed)
    return DataLoader(data, *args, **kwargs)


@pytest.fixture(autouse=True)
def nothing_left():
    yield
    gc.collect()
    end = time.monotonic() + 2
    while multiprocessing.active_children() and time.monotonic() < end:
        time.sleep(0.01)
    assert not multiprocessing.active_children()
