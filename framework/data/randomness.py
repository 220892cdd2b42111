"""The random state of a sample: a function of (seed, epoch, place in the epoch), for all generators.

The default generator is started anew before each sample, and so are Python's ``random`` and NumPy's global
generator before the first of a batch and where the sample before drew from them: their states are long, and
most samples draw nothing. So augmentation does not depend on which worker loads it. The place rather than the
index is the key because a sampler may give an index twice in an epoch: each is augmented differently.
"""

import random
from collections.abc import Callable
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


def start_python(key: int) -> None:
    """Start Python's global generator for a key."""
    random.setstate((3, (*twister_words(key)[0].tolist(), 624), None))


def start_numpy(key: int) -> None:
    """Start NumPy's, which is made one of the kind that can be started anew."""
    if not isinstance(mtrand.get_bit_generator(), np.random.MT19937):
        mtrand.set_bit_generator(np.random.MT19937())
    np.random.set_state(("MT19937", twister_words(key)[1], 624, 0, 0.0))


def _starter(python: random.Random, numpy: np.random.RandomState, numpy_bits: Callable) -> Any:
    return _native.module.Starter(python, object.__basicsize__, numpy.seed, numpy_bits, start_numpy)


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
            starter.row(1)
            starter.start(place)
            words, state = twister_words(mix(mix(1) + place)), cast(Any, numpy.get_state())
            if python.getstate() != (3, (*words[0].tolist(), 624), None) \
                    or not np.array_equal(state[1], words[1]) or tuple(state[2:]) != (624, 0, 0.0):
                return False
            numpy.standard_normal()  # one more is kept in reserve, which the next start must drop
    finally:
        default_generator._put(own)  # which was started as well
    return True


class SampleRandom:
    """Starts the generators for one sample after the other: ``row`` for a batch, ``start`` for a sample."""

    _generator = default_generator

    def __init__(self, seed: int, epoch: int) -> None:
        self._base = mix(mix(seed) ^ epoch)
        self._row = 0
        self._words: bytes | None = None
        self._numpy: Any = None  # the state of NumPy's generator when its memory held ``_words``
        self._seen: list = []  # the states of Python's and NumPy's after they were started
        python: Any = getattr(random.seed, "__self__", None)
        known = type(python) is random.Random and _can_start()
        self._native: Any = _starter(python, mtrand._rand, mtrand.get_bit_generator) if known else None

    def row(self, number: int) -> None:
        """What follows belongs to this batch (or, of a stream, to this worker)."""
        if self._native is not None:
            self._native.row(self._base ^ number)
        else:
            self._row = mix(self._base ^ number)

    def start(self, place: int) -> None:
        """Start the generators for the sample at this place of the row."""
        if self._native is not None:
            self._native.start(place)
        else:
            self._seen = []
            self._start_used(place)

    def load(self, dataset: Any, indices: list, samples: list) -> None:
        """Add the samples at the indices, and start the generators for each.

        The default generator always, as its seed can be asked for; Python's and NumPy's for the first of the
        row, and where the sample before drew from them.
        """
        if self._native is not None:
            self._native.load(dataset, indices, samples)
        else:
            self._seen = []
            for place, index in enumerate(indices):
                self._start_used(place)
                samples.append(dataset[index])

    def _start_used(self, place: int) -> None:
        key = mix(self._row + place)
        self._generator._start(key, 1)
        seen = self._seen
        if not seen or random.getstate() != seen[0]:
            start_python(key)
        if not seen or not _same_state(_numpy_state(), seen[1]):
            start_numpy(key)
        self._seen = [random.getstate(), _numpy_state()]

    def collating(self, number: int = 0) -> None:
        """Start them for a ``collate_fn``."""
        self.start(_COLLATE + number)

    def lent(self) -> "_Lent":
        """Within the block the generators of this process are used up; after it they are as before."""
        return _Lent(self)

    def keep(self) -> Callable[[], None]:
        """What puts the states of Python's and NumPy's generators back."""
        bits = mtrand.get_bit_generator()
        quick = self._native is not None and type(bits) is np.random.MT19937
        return self._keep_natively(bits) if quick else self._keep(bits)

    def _keep(self, bits: Any) -> Callable[[], None]:
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


class _Lent:
    """The block of ``SampleRandom.lent``: entered for every batch, so no generator."""

    __slots__ = "_put_back", "_own"

    def __init__(self, draws: SampleRandom) -> None:
        self._own, self._put_back = default_generator._parts(), draws.keep()

    def __enter__(self) -> None:
        pass

    def __exit__(self, *error: Any) -> None:
        self._put_back()
        default_generator._put(self._own)


class ThreadRandom(SampleRandom):
    """For a worker thread: starts a default generator of its own; ``random`` and NumPy's belong to all."""

    def __init__(self, seed: int, epoch: int) -> None:
        super().__init__(seed, epoch)
        self._native = None
        self._generator = own_default(Generator())

    def _start_used(self, place: int) -> None:
        self._generator._start(mix(self._row + place), 1)


def _numpy_state() -> tuple:
    """The state of NumPy's generator; empty if it is of a kind that is never started."""
    known = isinstance(mtrand.get_bit_generator(), np.random.MT19937)
    return cast(tuple, np.random.get_state()) if known else ()


def _same_state(a: tuple, b: tuple) -> bool:
    return len(a) == len(b) and all(map(np.array_equal, a, b))


def draws_nothing(dataset: Any) -> bool:
    """Whether samples of the dataset surely need no random numbers: they are only looked up."""
    kind = type(dataset)
    if kind in (list, tuple, range, str, bytes, np.ndarray, TensorDataset) or can_take(dataset):
        return True
    if kind is Subset:
        return draws_nothing(dataset.dataset)
    return kind is ConcatDataset and all(map(draws_nothing, dataset.datasets))
