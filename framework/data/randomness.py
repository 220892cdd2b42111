"""The random state of a sample: a function of (seed, epoch, place in the epoch), for all generators.

Python's ``random``, NumPy's global generator and the default generator are started anew before each sample,
so augmentation does not depend on which worker loads it, or on what was loaded before. The place rather than
the index is the key because a sampler may give an index twice in an epoch: each is augmented differently.
"""

import random
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.random import mtrand

from ..random import Generator, default_generator, own_default
from .dataset import ConcatDataset, Subset, TensorDataset, can_take

_WORD = (1 << 64) - 1
_STEP = 0x9E3779B97F4A7C15
_COLLATE = 1 << 63


def mix(x: int) -> int:
    """64 bits in which every bit depends on every bit of ``x`` (splitmix64: Steele et al., OOPSLA 2014)."""
    x = (x + _STEP) & _WORD
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & _WORD
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & _WORD
    return x ^ (x >> 31)


class SampleRandom:
    """Starts the generators for one sample after the other: ``row`` for a batch, ``start`` for a sample."""

    def __init__(self, seed: int, epoch: int) -> None:
        self._base = mix(mix(seed) ^ epoch)
        self._row = 0

    def row(self, number: int) -> None:
        """What follows belongs to this batch (or, of a stream, to this worker)."""
        self._row = mix(self._base ^ number)

    def start(self, place: int) -> None:
        """Start the generators for the sample at this place of the row."""
        key = mix(self._row + place)
        random.seed(key)
        np.random.seed(key & 0xFFFFFFFF)
        default_generator._start(key, 1)

    def collating(self, number: int = 0) -> None:
        """Start them for a ``collate_fn``."""
        self.start(_COLLATE + number)

    @contextmanager
    def lent(self) -> Iterator[None]:
        """Within the block the generators of this process are used up; after it they are as before."""
        python, own = random.getstate(), default_generator._parts()
        bits, numpy = mtrand.get_bit_generator(), np.random.get_state(legacy=False)
        if not isinstance(bits, np.random.MT19937):  # the only kind that can be started anew
            mtrand.set_bit_generator(np.random.MT19937())
        try:
            yield
        finally:
            random.setstate(python)
            if mtrand.get_bit_generator() is not bits:
                mtrand.set_bit_generator(bits)
            np.random.set_state(numpy)
            default_generator._put(own)


class ThreadRandom(SampleRandom):
    """For a worker thread: starts a default generator of its own; ``random`` and NumPy's belong to all."""

    def __init__(self, seed: int, epoch: int) -> None:
        super().__init__(seed, epoch)
        self._own = own_default(Generator())

    def start(self, place: int) -> None:
        self._own._start(mix(self._row + place), 1)


def draws_nothing(dataset: Any) -> bool:
    """Whether samples of the dataset surely need no random numbers: they are only looked up."""
    kind = type(dataset)
    if kind in (list, tuple, range, str, bytes, np.ndarray, TensorDataset) or can_take(dataset):
        return True
    if kind is Subset:
        return draws_nothing(dataset.dataset)
    return kind is ConcatDataset and all(map(draws_nothing, dataset.datasets))
