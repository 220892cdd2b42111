"""Samplers: in which order a loader takes the samples.

A sampler whose order is random has ``draw(generator)``, an order made from that generator alone; the
loader calls it with the generator of (seed, epoch), which is what makes resuming exact.
"""

import math
import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from types import GenericAlias
from typing import Any

import numpy as np

from ..config.listing import own as _own
from ..ops.random.draws import multinomial
from ..random import Generator, check_seed, default_generator, numpy_integers, numpy_permutation, stream
from ..tensor import Tensor, wrap


def positive(value: Any, what: str, name: str) -> int:
    """``value`` as an int above 0, or a ValueError."""
    if isinstance(value, bool) or not hasattr(value, "__index__") or value.__index__() <= 0:
        raise ValueError(f"{what}: {name} must be a positive int, got {value!r}")
    return value.__index__()


def boolean(value: Any, what: str, name: str) -> bool:
    """``value`` if it is a bool, or a TypeError."""
    if not isinstance(value, bool):
        raise TypeError(f"{what}: {name} must be True or False, got {value!r}")
    return value


class Sampler:
    """An order of indices: give a subclass ``__iter__()`` and, for progress bars, ``__len__()``.

    A loader resumes exactly only if ``__iter__`` gives the same order again for the same epoch: define
    ``set_epoch(epoch)``, which the loader calls before each, or ``draw(generator)``.
    """

    __class_getitem__: Any = classmethod(GenericAlias)  # Sampler[int], for type checkers

    def __iter__(self) -> Iterator:
        raise NotImplementedError(f"{type(self).__name__} must define __iter__()")


def length(data_source: Any, what: str) -> int:
    """How many samples there are; TypeError says what a dataset without a length can do."""
    if not hasattr(type(data_source), "__len__"):
        raise TypeError(f"{what}: the dataset, a {type(data_source).__name__}, has no __len__; define it, or "
                        f"make it an IterableDataset with __iter__")
    return len(data_source)


class SequentialSampler(Sampler):
    """0, 1, 2 and so on.

    >>> list(fw.data.SequentialSampler("abc"))
    [0, 1, 2]
    """

    def __init__(self, data_source: Any) -> None:
        self.data_source = data_source

    def __iter__(self) -> Iterator[int]:
        return iter(range(len(self)))

    def __len__(self) -> int:
        return length(self.data_source, "SequentialSampler")


class _Random(Sampler):
    """What the random samplers share: iterating draws from their own or the default generator."""

    generator: Generator | None

    def draw(self, generator: Generator) -> Iterator:
        raise NotImplementedError

    def __iter__(self) -> Iterator[int]:
        return self.draw(default_generator if self.generator is None else self.generator)


class RandomSampler(_Random):
    """All indices in random order; with ``replacement`` drawn independently.

    num_samples: how many (default: the length); beyond the length, a new order is begun.

    >>> sorted(fw.data.RandomSampler("abc"))
    [0, 1, 2]
    """

    def __init__(self, data_source: Any, replacement: bool = False, num_samples: int | None = None,
                 generator: Generator | None = None) -> None:
        self.data_source = data_source
        self.replacement = boolean(replacement, "RandomSampler", "replacement")
        self._num_samples = None if num_samples is None else positive(
            num_samples, "RandomSampler", "num_samples")
        self.generator = generator

    @property
    def num_samples(self) -> int:
        """How many indices one pass gives."""
        if self._num_samples is None:
            return length(self.data_source, "RandomSampler")
        return self._num_samples

    def draw(self, generator: Generator) -> Iterator[int]:
        """The indices, drawn from ``generator`` as they are needed."""
        n, left = length(self.data_source, "RandomSampler"), self.num_samples
        while left > 0 and n > 0:
            if self.replacement:
                batch = numpy_integers(0, n, (min(left, 4096),), generator)
            else:
                batch = numpy_permutation(n, generator)[:left]
            yield from batch.tolist()
            left -= len(batch)

    def __len__(self) -> int:
        return self.num_samples


class SubsetRandomSampler(_Random):
    """The given indices in random order.

    >>> sorted(fw.data.SubsetRandomSampler([4, 7]))
    [4, 7]
    """

    def __init__(self, indices: Sequence[int], generator: Generator | None = None) -> None:
        self.indices = indices
        self.generator = generator

    def draw(self, generator: Generator) -> Iterator[int]:
        """The indices in an order drawn from ``generator``."""
        order = numpy_permutation(len(self.indices), generator).tolist()
        return (self.indices[i] for i in order)

    def __len__(self) -> int:
        return len(self.indices)


class WeightedRandomSampler(_Random):
    """``num_samples`` indices with probabilities in proportion to ``weights``.

    >>> list(fw.data.WeightedRandomSampler([0.0, 2.0], 3))
    [1, 1, 1]
    """

    def __init__(self, weights: Any, num_samples: int, replacement: bool = True,
                 generator: Generator | None = None) -> None:
        values = weights.tolist() if isinstance(weights, Tensor) else list(weights)
        self.weights = wrap(np.asarray(values, np.float64))
        if self.weights.ndim != 1:
            raise ValueError(f"WeightedRandomSampler: weights must be one row, got shape "
                             f"{list(self.weights.shape)}")
        for i, w in enumerate(values):
            if not 0 <= w < math.inf:
                raise ValueError(f"WeightedRandomSampler: weights must be finite and not negative, but "
                                 f"weights[{i}] is {w}")
        self.num_samples = positive(num_samples, "WeightedRandomSampler", "num_samples")
        self.replacement = boolean(replacement, "WeightedRandomSampler", "replacement")
        self.generator = generator

    def draw(self, generator: Generator) -> Iterator[int]:
        """The indices, drawn from ``generator``."""
        return iter(multinomial(self.weights, self.num_samples, self.replacement,
                                generator=generator).tolist())

    def __len__(self) -> int:
        return self.num_samples


class DistributedSampler(Sampler):
    """This process's share of the indices: every ``num_replicas``-th of one order that all agree on.

    num_replicas, rank: the number of processes and which one this is; by default those of the group that this
    process has joined (``framework.distributed``), else from the environment variables WORLD_SIZE and RANK.
    shuffle: a new order per epoch, a function of (seed, epoch) alone; the
    loader counts epochs, elsewhere call ``set_epoch``. drop_last: leave out what does not divide evenly,
    else the first indices are taken twice, so that all processes have equally many. pad=False: neither, so
    that every index is given once, for an exact evaluation; some processes then have one fewer.

    >>> [list(fw.data.DistributedSampler("abcde", 2, rank, shuffle=False)) for rank in (0, 1)]
    [[0, 2, 4], [1, 3, 0]]
    >>> [list(fw.data.DistributedSampler("abcde", 2, rank, shuffle=False, pad=False)) for rank in (0, 1)]
    [[0, 2, 4], [1, 3]]
    """

    def __init__(self, dataset: Any, num_replicas: int | None = None, rank: int | None = None,
                 shuffle: bool = True, seed: int = 0, drop_last: bool = False, *, pad: bool = True) -> None:
        self.dataset = dataset
        joined = _joined_group()
        if joined is not None:
            num_replicas = joined.size() if num_replicas is None else num_replicas
            rank = joined.rank() if rank is None else rank
        self.num_replicas = _from_environment(num_replicas, "WORLD_SIZE", "num_replicas")
        self.rank = _from_environment(rank, "RANK", "rank")
        if not 0 <= self.rank < self.num_replicas:
            raise ValueError(f"DistributedSampler: rank must be in [0, num_replicas={self.num_replicas}), "
                             f"got {self.rank}")
        self.shuffle = boolean(shuffle, "DistributedSampler", "shuffle")
        self.drop_last = boolean(drop_last, "DistributedSampler", "drop_last")
        self.pad = boolean(pad, "DistributedSampler", "pad")
        if self.drop_last and not self.pad:
            raise ValueError("DistributedSampler: drop_last=True leaves indices out, pad=False gives each "
                             "once; choose one")
        self.seed = check_seed(seed, "DistributedSampler")
        self.epoch = 0

    @property
    def num_samples(self) -> int:
        """How many indices this process gets; with ``pad`` every process gets as many."""
        n = length(self.dataset, "DistributedSampler")
        if not self.pad:
            return len(range(self.rank, n, self.num_replicas))
        return n // self.num_replicas if self.drop_last else -(-n // self.num_replicas)

    @property
    def total_size(self) -> int:
        """How many indices all processes get together."""
        if not self.pad:
            return length(self.dataset, "DistributedSampler")
        return self.num_samples * self.num_replicas

    def set_epoch(self, epoch: int) -> None:
        """Which epoch's order the next pass takes."""
        self.epoch = epoch

    def __iter__(self) -> Iterator[int]:
        n = length(self.dataset, "DistributedSampler")
        order = (numpy_permutation(n, stream(self.seed, self.epoch)) if self.shuffle
                 else np.arange(n))
        return iter(np.resize(order, self.total_size)[self.rank::self.num_replicas].tolist())

    def __len__(self) -> int:
        return self.num_samples


def _joined_group() -> Any:
    """The group this process has joined, if what joins groups was ever imported: data does not need it."""
    groups = sys.modules.get("framework.distributed.groups")
    return groups.GroupMember.WORLD if groups is not None else None


def _from_environment(value: int | None, variable: str, name: str) -> int:
    if value is None and variable not in os.environ:
        raise ValueError(f"DistributedSampler: {name} is not given and the environment variable {variable} "
                         f"is not set; pass {name}=")
    return int(os.environ[variable] if value is None else value)


class BatchSampler(Sampler):
    """The indices of another sampler in lists of ``batch_size``; the last may be shorter, or dropped.

    >>> list(fw.data.BatchSampler(range(5), 2, drop_last=False))
    [[0, 1], [2, 3], [4]]
    """

    def __init__(self, sampler: Iterable, batch_size: int, drop_last: bool) -> None:
        self.sampler = sampler
        self.batch_size = positive(batch_size, "BatchSampler", "batch_size")
        self.drop_last = boolean(drop_last, "BatchSampler", "drop_last")

    def __iter__(self) -> Iterator[list]:
        return self._batches(iter(self.sampler))

    def draw(self, generator: Generator) -> Iterator[list]:
        """The batches of the inner sampler's ``draw``."""
        return self._batches(ordered(self.sampler, generator))

    def _batches(self, indices: Iterator) -> Iterator[list]:
        while batch := list(islice(indices, self.batch_size)):
            if len(batch) < self.batch_size and self.drop_last:
                return
            yield batch

    def __len__(self) -> int:
        n = len(self.sampler)  # type: ignore[arg-type]
        return n // self.batch_size if self.drop_last else -(-n // self.batch_size)


def is_random(sampler: Any) -> bool:
    """Whether the order comes from a generator that the loader can choose."""
    if type(sampler) is BatchSampler:
        return is_random(sampler.sampler)
    return hasattr(sampler, "draw")


def ordered(sampler: Any, generator: Generator) -> Iterator:
    """One pass of a sampler, from ``generator`` if it is random."""
    return sampler.draw(generator) if is_random(sampler) else iter(sampler)


__dir__ = _own(globals())
