"""The random state of a sample: a function of (seed, epoch, place in the epoch), for all generators.

Python's ``random``, NumPy's global generator and the default generator are started anew before each sample,
so augmentation does not depend on which worker loads it, or on what was loaded before. The place rather than
the index is the key because a sampler may give an index twice in an epoch: each is augmented differently.
"""

import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any, cast

import numpy as np
from numpy.random import mtrand

from .. import _native
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


def twister_words(key: int) -> np.ndarray:
    """The words with which Python's and NumPy's Mersenne Twisters start for a key: (2, 624) of uint32.

    Each is a hash of the key and of its place: the generators' own seedings are chains of multiplications,
    which wait for one another. Murmur3's last steps (A. Appleby, 2011), with half of the key before each.
    """
    words = np.arange(2 * 624, dtype=np.uint32) * np.uint32(0x9E3779B9) + np.uint32(key & 0xFFFFFFFF)
    words = (words ^ words >> np.uint32(16)) * np.uint32(0x85EBCA6B) + np.uint32(key >> 32)
    words = (words ^ words >> np.uint32(13)) * np.uint32(0xC2B2AE35)
    words = (words ^ words >> np.uint32(16)).reshape(2, 624)
    words[:, 0] |= np.uint32(1 << 31)  # never all of them 0
    return words


def start_twisters(key: int) -> None:
    """Start Python's and NumPy's global generators for a key."""
    python, numpy = twister_words(key)
    random.setstate((3, (*python.tolist(), 624), None))
    if not isinstance(mtrand.get_bit_generator(), np.random.MT19937):  # no other can be started anew
        mtrand.set_bit_generator(np.random.MT19937())
    np.random.set_state(("MT19937", numpy, 624, 0, 0.0))


def _starter(python: random.Random, numpy: np.random.RandomState, numpy_bits: Callable) -> Any:
    return _native.module.Starter(python, object.__basicsize__, numpy.seed, numpy_bits)


@cache
def _can_start() -> bool:
    """Whether the extension starts generators as they do themselves: it writes into their memory."""
    size = object.__basicsize__ + 4 * 625
    if not hasattr(_native.module, "Starter") or random.Random.__basicsize__ < size:
        return False
    bits = np.random.MT19937(0)
    python, numpy = random.Random(0), np.random.RandomState(bits)
    starter, own = _starter(python, numpy, lambda: bits), default_generator._parts()
    try:
        for place in range(2):
            if not starter.start(1, place):
                return False
            words, state = twister_words(mix(1 + place)), cast(Any, numpy.get_state())
            if python.getstate() != (3, (*words[0].tolist(), 624), None) \
                    or not np.array_equal(state[1], words[1]) or tuple(state[2:]) != (624, 0, 0.0):
                return False
            numpy.standard_normal()  # one more is kept in reserve, which the next start must drop
    finally:
        default_generator._put(own)  # which was started as well
    return True


class SampleRandom:
    """Starts the generators for one sample after the other: ``row`` for a batch, ``start`` for a sample."""

    def __init__(self, seed: int, epoch: int) -> None:
        self._base = mix(mix(seed) ^ epoch)
        self._row = 0
        self._words: bytes | None = None
        self._numpy: Any = None  # the state of NumPy's generator when its memory held ``_words``
        python: Any = getattr(random.seed, "__self__", None)
        known = type(python) is random.Random and _can_start()
        self._native: Any = _starter(python, mtrand._rand, mtrand.get_bit_generator) if known else None

    def row(self, number: int) -> None:
        """What follows belongs to this batch (or, of a stream, to this worker)."""
        self._row = mix(self._base ^ number)

    def start(self, place: int) -> None:
        """Start the generators for the sample at this place of the row."""
        if self._native is None or not self._native.start(self._row, place):
            key = mix(self._row + place)
            start_twisters(key)
            default_generator._start(key, 1)

    def collating(self, number: int = 0) -> None:
        """Start them for a ``collate_fn``."""
        self.start(_COLLATE + number)

    @contextmanager
    def lent(self) -> Iterator[None]:
        """Within the block the generators of this process are used up; after it they are as before."""
        own, bits = default_generator._parts(), mtrand.get_bit_generator()
        quick = self._native is not None and type(bits) is np.random.MT19937
        put_back = self._keep_natively(bits) if quick else self._keep(bits)
        try:
            yield
        finally:
            put_back()
            default_generator._put(own)

    def _keep(self, bits: Any) -> Callable[[], None]:
        """What puts the states of Python's and NumPy's generators back."""
        python, numpy = random.getstate(), np.random.get_state(legacy=False)

        def put_back() -> None:
            random.setstate(python)
            if mtrand.get_bit_generator() is not bits:
                mtrand.set_bit_generator(bits)
            np.random.set_state(numpy)
        return put_back

    def _keep_natively(self, bits: Any) -> Callable[[], None]:
        native, source = self._native, random.seed.__self__  # type: ignore[attr-defined]
        native.look()
        words, python, gauss = native.numpy_state(), native.python_state(), source.gauss_next
        # without a normal number in reserve, all of NumPy's state lies in the words
        if words != self._words or self._numpy["has_gauss"]:
            self._words, self._numpy = words, np.random.get_state(legacy=False)
        numpy: Any = self._numpy
        if not numpy["has_gauss"]:
            native.has_no_normal()

        def put_back() -> None:
            native.set_python_state(python)
            source.gauss_next = gauss
            if mtrand.get_bit_generator() is not bits:
                mtrand.set_bit_generator(bits)
            elif not numpy["has_gauss"] and native.set_numpy_state(words):
                return
            np.random.set_state(numpy)
        return put_back


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
