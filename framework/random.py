"""Random numbers: generators that can be seeded, saved and restored exactly.

A generator is NumPy's Philox: numbers are a function of a key (the seed) and a counter, so its state
is a few words and independent streams of one seed cost nothing. Numbers for a CUDA tensor are drawn by
kernels there, from the state of that device's generator, and are with the same seed those of the CPU: uniform
ones, integers and permutations to the bit, as gamma, Dirichlet, beta, Poisson and binomial numbers should be;
normal ones and von Mises' angles within 2 ulp. What takes as many random words as it happens to need, and
integers and permutations, are functions of a key, which is one word of the generator, and of the place of an
element: no number depends on how many others are drawn, or by how many threads.

Philox: J. Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011.
"""

import operator
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from math import prod
from typing import Any

import numpy as np

from . import _native, philox
from ._native import Local
from .autograd.mode import state
from .backends import backend_for, cuda, device_random, meta, move
from .backends.native import converted
from .backends.replayed import graph_key
from .config.listing import own as _shown
from .device import CPU, Device, as_device
from .errors import DeviceError
from .philox import first_words, normal_of, state_of, state_words
from .quiet import quiet
from .tensor import Tensor, wrap

_FIRST_SEED = 67280421310721  # PyTorch's seed of a new Generator
_MAGIC = int.from_bytes(b"fwrng\0\0\1", "little")
_FIELDS = ("magic", "seed", "key0", "key1", "counter0", "counter1", "counter2", "counter3",
           "buffer0", "buffer1", "buffer2", "buffer3", "buffer_pos", "has_uint32", "uinteger")
_STATE_BYTES = 8 * len(_FIELDS)
_WORD, _HALF = 1 << 64, 1 << 63
_SINGLE, _DOUBLE = np.dtype(np.float32), np.dtype(np.float64)
_LARGE = 2048  # numbers that are worth carrying a state over from NumPy


class Generator:
    """A source of random numbers with its own seed and state, for tensors of one device.

    Every random function takes one as ``generator=``. It may be used from several threads.

    >>> g = fw.Generator().manual_seed(3)
    >>> before = g.get_state()
    >>> x = fw.rand(2, generator=g)
    >>> bool((fw.rand(2, generator=g.set_state(before)) == x).all())
    True
    """

    def __init__(self, device: Any = "cpu") -> None:
        self._device = as_device(device)
        if self._device.type != "cpu":
            index = backend_for(self._device).index_of(self._device)
            self._device = Device("cuda", index)
        self._lock = threading.RLock()
        self._start(_FIRST_SEED, 0)

    def _start(self, seed: int, stream: int) -> None:
        with self._lock:
            self._seed, self._stream = seed, stream
            # made when a number is first drawn: the data loader starts a generator for every sample
            self._words: np.ndarray | None = None
            self._source: np.random.Philox | None = None
            self._numbers: np.random.Generator | None = None

    # The state lies in ``_words`` after a native function drew, which works on them, else in NumPy's source;
    # to carry it over takes longer than to draw a few numbers, so that is done where the other is to draw.

    @property
    def _bits(self) -> "np.random.Philox":
        """NumPy's source of numbers, in this generator's state."""
        with self._lock:
            if self._source is None:
                self._source = np.random.Philox(key=np.array([self._seed, self._stream], np.uint64))
            if self._words is not None:
                self._source.state = state_of(self._words)
                self._words = None
            return self._source

    @property
    def _draw(self) -> "np.random.Generator":
        """NumPy's functions that draw, by ``_bits``."""
        bits = self._bits
        if self._numbers is None:
            self._numbers = np.random.Generator(bits)
        return self._numbers

    def _state(self) -> np.ndarray:
        """The state as words, of its own."""
        if self._words is not None:
            return self._words.copy()
        if self._source is not None:
            return state_words(dict(self._source.state))
        return first_words(self._seed, self._stream)

    def _parts(self) -> tuple:
        """Seed and state as they lie, for ``_put``."""
        with self._lock:
            return self._seed, self._stream, self._words, self._source, self._numbers

    def _put(self, parts: tuple) -> None:
        with self._lock:
            self._seed, self._stream, self._words, self._source, self._numbers = parts

    @property
    def device(self) -> Device:
        """The device whose tensors this generator fills."""
        return self._device

    def manual_seed(self, seed: int) -> "Generator":
        """Start again from a seed: an int in [-2**63, 2**64), negative ones counted from 2**64."""
        self._start(check_seed(seed, "Generator.manual_seed"), 0)
        return self

    def seed(self) -> int:
        """Start again from a seed that the operating system draws; returns it."""
        number = int.from_bytes(os.urandom(8), "little")
        self._start(number, 0)
        return number

    def initial_seed(self) -> int:
        """The seed it was last started from."""
        return self._seed

    def get_state(self) -> Tensor:
        """The whole state as a uint8 tensor; ``set_state`` continues exactly from it."""
        with self._lock:
            words = [_MAGIC, self._seed, *self._state().tolist()]
        return wrap(np.array(words, "<u8").view(np.uint8).copy())

    def set_state(self, state: Tensor) -> "Generator":
        """Continue from a state of ``get_state``; raises ValueError for anything else."""
        _, seed, *words = _state_words(state)
        with self._lock:
            self._start(seed, 0)
            self._words = np.array(words, np.uint64)
        return self

    def _native_draw(self, function: str, *args: Any) -> Any:
        """What a native function draws, which takes the state as words and leaves in them the next one.

        NotImplemented where it does not draw that, or there is no extension.
        """
        draw = getattr(_native.module, function, None)
        if draw is None:
            return NotImplemented
        words = self._state() if self._words is None else self._words
        array = draw(words, *args)
        if array is not NotImplemented:
            self._words = words
        return array

    def _native_suits(self, shape: tuple[int, ...]) -> bool:
        """Whether it pays to carry the state over to a native function for so many numbers."""
        return self._words is not None or self._source is None or prod(shape) >= _LARGE

    def clone_state(self) -> "Generator":
        """A second generator in the same state; the two then run independently."""
        return Generator(self._device).set_state(self.get_state())

    clone = clone_state

    def __reduce__(self) -> tuple:
        return _restore, (str(self._device), self.get_state())

    def __repr__(self) -> str:
        return f"<framework.Generator device={self._device} seed={self._seed}>"


def _restore(device: str, state: Tensor) -> Generator:
    return Generator(device).set_state(state)


def _state_words(state: Any) -> list[int]:
    if not isinstance(state, Tensor):
        raise TypeError(f"set_state: state must be a uint8 Tensor from get_state(), got "
                        f"{type(state).__name__}")
    if state.dtype.name != "uint8" or state.shape != (_STATE_BYTES,):
        raise ValueError(f"set_state: wanted a uint8 tensor of {_STATE_BYTES} bytes from get_state(), "
                         f"got {state.dtype.name}{list(state.shape)}")
    array = np.ascontiguousarray(move(state._array, CPU))
    words = [int(w) for w in array.view("<u8")]
    known = dict(zip(_FIELDS, words))
    if known["magic"] != _MAGIC or known["buffer_pos"] > 4 or known["has_uint32"] > 1 \
            or known["uinteger"] >= 1 << 32:
        raise ValueError("set_state: these bytes are no generator state of this package; pass a tensor "
                         "that get_state() returned")
    return words


def check_seed(seed: Any, op: str) -> int:
    """``seed`` as a number in [0, 2**64); raises TypeError or ValueError."""
    try:
        number = operator.index(seed)
    except TypeError:
        raise TypeError(f"{op}: seed must be an int, got {type(seed).__name__}") from None
    if not -(_HALF) <= number < _WORD:
        raise ValueError(f"{op}: seed must be in [-2**63, 2**64), got {number}")
    return number % _WORD


def stream(seed: int, number: int) -> Generator:
    """The generator of stream ``number`` of a seed: streams of one seed are independent.

    Stream 0 is ``Generator().manual_seed(seed)``; the data loader uses one stream per epoch.
    """
    generator = Generator()
    generator._start(check_seed(seed, "stream"), number % _WORD)
    return generator


# -- the generators that are used when none is given ---------------------------------------------

default_generator = Generator()
default_generator.seed()
_cuda_generators: dict[int, Generator] = {}
_lock = threading.Lock()


class _Own(Local):
    generator: Generator | None = None


_own = _Own()


def own_default(generator: Generator | None) -> Any:
    """Make ``generator`` the CPU's default in this thread only (None: the common one again)."""
    _own.generator = generator
    return generator


def _default() -> Generator:
    return _own.generator or default_generator


def _fresh_locks() -> None:
    """In a forked child: another thread may have held a lock at that moment, and is not here to leave it."""
    global _lock
    _lock = threading.Lock()
    for generator in (default_generator, *_cuda_generators.values()):
        generator._lock = threading.RLock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_fresh_locks)


def generator_of(device: Device) -> Generator:
    """The default generator of a device; those of the CUDA devices start from the CPU's seed."""
    if device.type != "cuda":
        return _own.generator or default_generator
    index = cuda.index_of(device)
    with _lock:
        if index not in _cuda_generators:
            fresh = Generator(Device("cuda", index))
            _cuda_generators[index] = fresh.manual_seed(default_generator.initial_seed())
        return _cuda_generators[index]


def manual_seed(seed: int) -> Generator:
    """Start the default generators of the CPU and of every CUDA device from ``seed``.

    Returns the CPU's generator.

    >>> fw.manual_seed(0).initial_seed()
    0
    """
    number = check_seed(seed, "manual_seed")
    with _lock:
        for generator in _cuda_generators.values():
            generator.manual_seed(number)
    return _default().manual_seed(number)


def seed() -> int:
    """Start the default generators from a seed that the operating system draws; returns it."""
    number = int.from_bytes(os.urandom(8), "little")
    manual_seed(number)
    return number


def initial_seed() -> int:
    """The seed that the CPU's default generator was last started from."""
    return _default().initial_seed()


def get_rng_state() -> Tensor:
    """The state of the CPU's default generator as a uint8 tensor.

    >>> state = fw.get_rng_state()
    >>> x = fw.rand(3)
    >>> fw.set_rng_state(state)
    >>> bool((fw.rand(3) == x).all())
    True
    """
    return _default().get_state()


def set_rng_state(new_state: Tensor) -> None:
    """Continue the CPU's default generator from a state of ``get_rng_state``."""
    _default().set_state(new_state)


def default_states() -> list[tuple[Generator, Tensor]]:
    """The default generators in use, each with its state, to go back to by ``generator.set_state(state)``."""
    return [(g, g.get_state()) for g in (_default(), *_cuda_generators.values())]


@contextmanager
def fork_rng(devices: Any = None, enabled: bool = True, device_type: str = "cuda") -> Iterator[None]:
    """Within the block, numbers are drawn as usual; after it, the default generators are as before.

    devices: the CUDA devices to restore as well (default: all that were used). device_type: what kind they
    are, "cuda", or "cpu" and there are none.

    >>> state = fw.get_rng_state()
    >>> with fw.random.fork_rng():
    ...     x = fw.rand(3)
    >>> bool((fw.get_rng_state() == state).all())
    True
    """
    if device_type not in ("cuda", "cpu"):
        raise DeviceError(f"fork_rng: there are no generators of {device_type!r}, only of 'cpu' and 'cuda'")
    if not enabled:
        yield
        return
    if device_type == "cpu":
        devices = []
    places = [Device("cuda", i) for i in _cuda_generators] if devices is None else \
        [as_device(d) for d in devices]
    kept = [(g, g.get_state()) for g in (_default(), *(generator_of(d) for d in places))]
    try:
        yield
    finally:
        for generator, state in kept:
            generator.set_state(state)


# -- arrays of random numbers ----------------------------------------------------------------------


def _source(device: Device, generator: Generator | None) -> Generator:
    if generator is None:
        return generator_of(device)
    if not isinstance(generator, Generator):
        raise TypeError(f"generator must be a framework.Generator or None, got "
                        f"{type(generator).__name__}")
    if generator.device.type != device.type:
        raise DeviceError(f"a generator on {generator.device} cannot fill a tensor on {device}; make one "
                          f"with framework.Generator('{device.type}')")
    return generator


def drawn_at_once(function: str, shape: Any, *settings: Any) -> Any:
    """What a native function draws of this thread's default generator on the CPU, by the shortest way.

    None where there is no extension, or numbers are drawn for a batch, or NumPy has the generator's state.
    """
    return None


if hasattr(_native.module, "set_up_draws"):
    _native.module.set_up_draws(_own, default_generator)
    drawn_at_once = _native.module.drawn_at_once


def uniform_array(shape: tuple[int, ...], numpy_dtype: Any, device: Device,
                  generator: Generator | None = None, *, host: bool = False) -> Any:
    """An array of numbers uniform in [0, 1): 1 never occurs, in any dtype.

    host: leave it in host memory, to be worked on there before it is moved.
    """
    if generator is None and device is CPU:
        if numpy_dtype is _SINGLE or numpy_dtype is _DOUBLE:
            at_once = drawn_at_once("philox_uniform", shape, numpy_dtype is _DOUBLE)
            if at_once is not None:
                return at_once
        elif _is_narrow(numpy_dtype) and 0 not in shape:
            at_once = drawn_at_once("philox_integers", shape, 0, 2048)
            if at_once is not None:
                return _eleven_bits(at_once, numpy_dtype)
    if state.batches:
        return state.batches[-1].drawn(
            lambda size: uniform_array(size, numpy_dtype, device, generator, host=host), shape)
    if device.type == "meta":
        return meta.of(shape, np.dtype(numpy_dtype))
    source, dtype = _source(device, generator), np.dtype(numpy_dtype)
    with source._lock:
        if not host and (
                drawn := _on_device(source, shape, dtype, device, False)) is not None:
            return drawn
        if dtype.kind == "c":
            real = np.dtype(f"f{dtype.itemsize // 2}")
            array = _uniform(source, (*shape, 2), real).view(dtype)[..., 0]
        elif dtype.itemsize == 2:  # 11 bits: rounding a float32 draw could give 1
            array = _eleven_bits(_integers(source, 0, 2048, shape), dtype)
        else:
            array = _uniform(source, shape, dtype)
    return np.asarray(array) if host else move(np.asarray(array), device)


def _is_narrow(dtype: Any) -> bool:
    """Whether it is NumPy's dtype of float16 or bfloat16."""
    return isinstance(dtype, np.dtype) and dtype.itemsize == 2


def _eleven_bits(whole: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """Numbers in [0, 1) of integers below 2048."""
    wide = converted(whole, _SINGLE)
    wide *= _SINGLE.type(2.0 ** -11)
    return converted(wide, dtype)


def _uniform(source: Generator, shape: tuple[int, ...], dtype: np.dtype) -> Any:
    if source._native_suits(shape):
        array = source._native_draw("philox_uniform", shape, dtype.itemsize == 8)
        if array is not NotImplemented:
            return array
    return source._draw.random(shape, dtype=dtype)


def _integers(source: Generator, low: int, high: int, shape: tuple[int, ...]) -> Any:
    if high - low == 1:  # nothing to draw
        return np.full(shape, low, np.int64)
    if 1 < high - low < 1 << 32 and source._native_suits(shape):
        array = source._native_draw("philox_integers", shape, low, high - low)
        if array is not NotImplemented:
            return array
    return np.asarray(source._draw.integers(low, high, shape, dtype=np.int64))


def fresh_key(device: Device, generator: Generator | None = None) -> int:
    """A key for ``philox.coins`` and other kernels that draw by one: a word of a generator (the device's)."""
    source = _source(device, generator)
    if cuda.capture is not None and (capture := cuda.capture_here()) is not None:
        if device.type == "cuda":
            return graph_key(capture.words(), lambda: _word(source))
        cuda.refuse_in_capture("a key is drawn on the host", "it would be the same at each replay")
    return _word(source)


class Drawn(int):
    """A key that is another one in each call; ``array`` holds it where a function is to take any of them."""

    array: Any


def drawn_key(device: Device) -> Drawn:
    """A ``fresh_key`` for a call that a compiled function may put off."""
    key = Drawn(fresh_key(device))
    key.array = np.array((key >> 32, key & 0xFFFFFFFF), np.float64)
    return key


def key_of_call(device: Device) -> int:
    """A ``fresh_key``, or a ``drawn_key`` while a compiled function runs."""
    return fresh_key(device) if quiet.settle is None else drawn_key(device)


def key_of(array: Any) -> int:
    """The key that the array of a ``Drawn`` one holds."""
    high, low = array.tolist()
    return int(high) << 32 | int(low)


def _word(source: Generator) -> int:
    with source._lock:
        word = source._native_draw("philox_word") if source._native_suits(()) else NotImplemented
        return int(source._bits.random_raw()) if word is NotImplemented else word


def uniform_number() -> float:
    """One number uniform in [0, 1) of the default generator, quicker than an array of one."""
    source = generator_of(CPU)
    with source._lock:
        return source._draw.random()


def normal_array(shape: tuple[int, ...], numpy_dtype: Any, device: Device,
                 generator: Generator | None = None, *, host: bool = False) -> Any:
    """An array of standard normal numbers; complex ones have variance 1 in all.

    host: leave it in host memory, to be worked on there before it is moved.
    """
    if generator is None and device is CPU and (numpy_dtype is _SINGLE or numpy_dtype is _DOUBLE):
        at_once = drawn_at_once("philox_normal", shape, numpy_dtype is _DOUBLE)
        if at_once is not None:
            return at_once
    elif generator is None and device is CPU and _is_narrow(numpy_dtype) and 0 not in shape:
        at_once = drawn_at_once("philox_normal", shape, False)
        if at_once is not None:
            return converted(at_once, numpy_dtype)
    if state.batches:
        return state.batches[-1].drawn(
            lambda size: normal_array(size, numpy_dtype, device, generator, host=host), shape)
    if device.type == "meta":
        return meta.of(shape, np.dtype(numpy_dtype))
    source, dtype = _source(device, generator), np.dtype(numpy_dtype)
    with source._lock:
        if not host and (drawn := _on_device(source, shape, dtype, device, True)) is not None:
            return drawn
        if dtype.kind == "c":
            real = np.dtype(f"f{dtype.itemsize // 2}")
            array = (_normal(source, (*shape, 2), real) * real.type(0.5 ** 0.5)).view(dtype)[..., 0]
        elif dtype.itemsize == 2:
            array = converted(_normal(source, shape, _SINGLE), dtype)
        else:
            array = _normal(source, shape, dtype)
    return array if host else move(array, device)


def _on_device(source: Generator, shape: tuple[int, ...], dtype: np.dtype, device: Device,
               normal: bool) -> Any:
    """Numbers drawn by a kernel of a GPU, or None where there is none for these."""
    if device.type != "cuda":
        return None
    if dtype.kind == "c":
        real = np.dtype(f"f{dtype.itemsize // 2}")
        parts = _on_device(source, (*shape, 2), real, device, normal)
        if parts is None:
            return None
        with parts.device:
            return (parts * real.type(0.5 ** 0.5) if normal else parts).view(dtype)[..., 0]
    with cuda.on(device):
        if cuda.capture is not None and (capture := cuda.capture_here()) is not None:
            key = graph_key(capture.words(), lambda: _word(source))
            array = device_random.draw_by_key(key, shape, dtype, normal)
            if array is NotImplemented:
                cuda.refuse_in_capture(f"{dtype} numbers are drawn by no kernel", "draw them before")
            return array
        words = source._state() if source._words is None else source._words
        array = device_random.draw(words, shape, dtype, normal)
    if array is NotImplemented:
        return None
    source._words = words
    return array


def _normal(source: Generator, shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
    """One word for each number, or half a word for one of float32."""
    array = source._native_draw("philox_normal", shape, dtype.itemsize == 8)
    if array is NotImplemented:
        whole = dtype.itemsize == 8
        bits = source._bits.random_raw(prod(shape)) if whole else source._draw.integers(
            0, 1 << 32, prod(shape), dtype=np.uint32)
        array = normal_of(np.asarray(bits, np.uint64 if whole else np.uint32)).reshape(shape)
    return array


def integers_array(low: int, high: int, shape: tuple[int, ...], numpy_dtype: Any, device: Device,
                   generator: Generator | None = None) -> Any:
    """An array of integers uniform in [low, high), drawn as int64 and cast to the dtype."""
    if state.batches:
        return state.batches[-1].drawn(
            lambda size: integers_array(low, high, size, numpy_dtype, device, generator), shape)
    if device.type == "meta":
        return meta.of(shape, np.dtype(numpy_dtype))
    source, dtype, n = _source(device, generator), np.dtype(numpy_dtype), prod(shape)
    if device.type == "cuda" and device_random.takes(dtype) and n and -_HALF <= low < high <= _HALF:
        with cuda.on(device):
            return device_random.integers(fresh_key(device, source), low, high, shape, dtype)
    array = keyed_integers(_word(source), low, high, shape) if n else np.empty(shape, np.int64)
    return move(array if array.dtype == dtype else converted(array, dtype), device)


def integers_at_once(low: int, high: int, shape: tuple[int, ...]) -> Any:
    """int64 numbers in [low, high) of this thread's default generator on the CPU, by the shortest way.

    None where ``integers_array`` has to look closer.
    """
    if 0 in shape or not -_HALF <= low < high <= _HALF:
        return None
    return drawn_at_once("philox_keyed", shape, low, (high - low) % _WORD)


def keyed_integers(key: int, low: int, high: int, shape: tuple[int, ...]) -> Any:
    """Integers of the host uniform in [low, high) by a key: int64, or uint64 where they need it."""
    first = low if low < _HALF else low - _WORD
    draw = getattr(_native.module, "keyed_integers", None)
    if draw is None:
        array = philox.integers(key, prod(shape), first, high - low).reshape(shape)
    else:
        array = draw(shape, key, first, (high - low) % _WORD)
    return array.view(np.uint64) if high > _HALF else array


def drawn(device: Device, generator: Generator | None, draw: Callable[[int], Any]) -> Any:
    """What ``draw`` makes on the host of a key, which is one word of the generator of a device."""
    if state.batches:
        return state.batches[-1].repeated(lambda: drawn(device, generator, draw))
    return draw(_word(_source(device, generator)))


def permutation_array(n: int, device: Device, generator: Generator | None = None) -> Any:
    """The numbers 0 to n - 1 in a uniformly random order, int64."""
    if state.batches:
        return state.batches[-1].repeated(lambda: permutation_array(n, device, generator))
    if device.type == "meta":
        return meta.of((n,), np.dtype(np.int64))
    source = _source(device, generator)
    if n == 0:
        return move(np.empty(0, np.int64), device)
    key, draw = _word(source), getattr(_native.module, "keyed_permutation", None)
    array = NotImplemented if draw is None else draw(n, key)
    return move(philox.permutation(key, n) if array is NotImplemented else array, device)


# -- numbers in NumPy's order ------------------------------------------------------------------------

# What the order of samples and their transforms are made of: they stay those of the checkpoints that are to
# be resumed.


def numpy_integers(low: int, high: int, shape: tuple[int, ...], generator: Generator | None = None) -> Any:
    """int64 numbers of the host uniform in [low, high), as NumPy's Generator draws them."""
    source = _source(CPU, generator)
    with source._lock:
        return _integers(source, low, high, shape)


def numpy_permutation(n: int, generator: Generator | None = None) -> Any:
    """The numbers 0 to n - 1, int64, in the order that NumPy's Generator draws."""
    source = _source(CPU, generator)
    with source._lock:
        return source._draw.permutation(n).astype(np.int64, copy=False)


__dir__ = _shown(globals())
