"""Which worker this code runs in."""

import threading
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class WorkerInfo:
    """The worker that calls ``get_worker_info``: its id, how many there are, its seed, its dataset."""

    id: int
    num_workers: int
    seed: int
    dataset: Any


class _Here(threading.local):
    info: WorkerInfo | None = None


here = _Here()


def get_worker_info() -> WorkerInfo | None:
    """In a worker of a DataLoader its (id, num_workers, seed, dataset); elsewhere None.

    A stream (IterableDataset) asks it which share of the samples is its own.

    >>> fw.data.get_worker_info() is None
    True
    >>> class Count(fw.data.IterableDataset):
    ...     def __iter__(self):
    ...         info = fw.data.get_worker_info()
    ...         return iter(range(0 if info is None else info.id, 4, 1 if info is None else info.num_workers))
    >>> [x.item() for x in fw.data.DataLoader(Count(), num_workers=2)]
    [0, 1, 2, 3]
    """
    return here.info
