"""Data loading in the process, saving, loading."""

import os
import shutil
import tempfile
import weakref
from importlib import import_module
from types import ModuleType
from typing import Any

import numpy as np

from ..checkpoint import synced
from ..workload import Case, fill, integers, normal, workload


@workload(tiny={"samples": 20, "batch": 8})
def loader_tensors(M: ModuleType, *, samples: int = 10_000, batch: int = 64) -> Case:
    """DataLoader over a TensorDataset of 10000x64, batch 64, no workers."""
    data = import_module(f"{M.__name__}.utils.data")
    pairs = data.TensorDataset(normal(M, samples, 64), integers(M, 10, samples))
    loader = data.DataLoader(pairs, batch)
    return Case(lambda: list(loader), lambda batches: [a for pair in batches for a in pair])


class _Pictures:
    """Small arrays and labels, as a dataset of one's own gives them."""

    def __init__(self, samples: int) -> None:
        self.x = np.random.default_rng(0).random((samples, 28, 28), np.float32)

    def __len__(self) -> int:
        return len(self.x)

    def __getitem__(self, i: int) -> tuple[np.ndarray, int]:
        return self.x[i], i % 10


@workload(tiny={"samples": 20, "batch": 8})
def loader_arrays(M: ModuleType, *, samples: int = 5000, batch: int = 64) -> Case:
    """DataLoader over 5000 NumPy pictures of 28x28 with a label, batch 64, no workers."""
    loader = import_module(f"{M.__name__}.utils.data").DataLoader(_Pictures(samples), batch)
    return Case(lambda: list(loader), lambda batches: [a for pair in batches for a in pair])


class _Folder:
    """A temporary folder that goes with the case."""

    def __init__(self) -> None:
        folder = tempfile.mkdtemp()
        self.path = os.path.join(folder, "weights")
        weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)


def _state(M: ModuleType, layers: int, width: int) -> dict:
    return fill(M, M.nn.Sequential(*[M.nn.Linear(width, width) for _ in range(layers)])).state_dict()


@workload(tiny={"layers": 2, "width": 4})
def save(M: ModuleType, *, layers: int = 16, width: int = 1024) -> Case:
    """save of 67 MB of weights, synced to the disk."""
    folder, state = _Folder(), _state(M, layers, width)

    def run() -> Any:
        M.save(state, folder.path)
        synced(folder.path)
    return Case(run, lambda _: M.load(folder.path).values())


@workload(tiny={"layers": 2, "width": 4})
def load(M: ModuleType, *, layers: int = 16, width: int = 1024) -> Case:
    """load of 67 MB of weights from the page cache."""
    folder = _Folder()
    M.save(_state(M, layers, width), folder.path)
    return Case(lambda: M.load(folder.path), dict.values)
