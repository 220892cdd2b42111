"""DataLoader: batches of a dataset, in an order that can be resumed exactly."""

from collections.abc import Callable, Iterator
from itertools import islice
from types import GenericAlias
from typing import Any

from ..device import CPU
from ..random import Generator, integers_array, stream
from .collate import default_collate, default_convert
from .dataset import IterableDataset, can_take
from .sampler import (
    BatchSampler,
    RandomSampler,
    SequentialSampler,
    boolean,
    is_random,
    length,
    ordered,
    positive,
)

_STATE = ("seed", "epoch", "position", "batches")


class DataLoader:
    """Batches of a dataset: ``for batch in loader``.

    dataset: something with ``__getitem__`` and ``__len__``, or an IterableDataset. batch_size: None
    gives single samples, only converted to tensors. shuffle: a new random order every epoch. sampler:
    an order of indices; batch_sampler: of lists of indices. drop_last: leave out a last, shorter batch.
    collate_fn: makes a batch of a list of samples (``default_collate``). generator: where the seed of
    the order is drawn from, once, at first use (default: the sampler's, else the default generator).
    pin_memory and in_order are taken for PyTorch's sake and change nothing. Worker processes
    (num_workers > 0, and what belongs to them) are not available yet and raise ValueError.

    **Resuming.** The order of an epoch is a function of (seed, epoch) alone, so
    ``state_dict()`` is small: {"seed", "epoch", "position", "batches"}. ``position`` counts the batches
    that this epoch has handed out, the one the loop is working on included: save after the step that
    used it. After ``load_state_dict`` the next ``for`` goes on behind that batch, in the same epoch;
    every later ``for`` is a new epoch. Skipped batches are not loaded, except those of an
    IterableDataset, whose stream is read over. A sampler of your own must repeat its order: see
    ``Sampler``. Randomness inside the dataset (augmentation) is that of its own generators.

    Raises ValueError for arguments that contradict each other; an error of the dataset passes through
    with a note that names the sample and the dataset.

    >>> loader = fw.data.DataLoader(fw.data.TensorDataset(fw.arange(5)), batch_size=2)
    >>> [x.tolist() for x, in loader]
    [[0, 1], [2, 3], [4]]
    """

    __class_getitem__: Any = classmethod(GenericAlias)  # DataLoader[int], for type checkers

    def __init__(self, dataset: Any, batch_size: int | None = 1, shuffle: bool | None = None,
                 sampler: Any = None, batch_sampler: Any = None, num_workers: int = 0,
                 collate_fn: Callable | None = None, pin_memory: bool = False, drop_last: bool = False,
                 timeout: float = 0, worker_init_fn: Callable | None = None,
                 multiprocessing_context: Any = None, generator: Generator | None = None, *,
                 prefetch_factor: int | None = None, persistent_workers: bool = False,
                 pin_memory_device: str = "", in_order: bool = True) -> None:
        _check_workers(num_workers, timeout, prefetch_factor, persistent_workers,
                       multiprocessing_context)
        shuffle = boolean(False if shuffle is None else shuffle, "DataLoader", "shuffle")
        boolean(drop_last, "DataLoader", "drop_last")
        self._streams = isinstance(dataset, IterableDataset)
        _check_order(self._streams, batch_size, shuffle, sampler, batch_sampler, drop_last)
        if generator is not None and not isinstance(generator, Generator):
            raise TypeError(f"DataLoader: generator must be a framework.Generator or None, got "
                            f"{type(generator).__name__}")
        if collate_fn is not None and not callable(collate_fn):
            raise TypeError(f"DataLoader: collate_fn must be callable, got {type(collate_fn).__name__}")
        if not self._streams and not hasattr(dataset, "__getitem__"):
            raise TypeError(f"DataLoader: the dataset, a {type(dataset).__name__}, has no __getitem__; "
                            f"subclass framework.data.Dataset or IterableDataset")
        self.dataset = dataset
        if sampler is None and not self._streams:
            sampler = RandomSampler(dataset, generator=generator) if shuffle else \
                SequentialSampler(dataset)
        if batch_sampler is not None:
            batch_size, drop_last = None, False
        elif batch_size is not None:
            positive(batch_size, "DataLoader", "batch_size")
            if not self._streams:
                batch_sampler = BatchSampler(sampler, batch_size, drop_last)
        self.batch_size, self.drop_last = batch_size, drop_last
        self.sampler, self.batch_sampler, self.generator = sampler, batch_sampler, generator
        self.num_workers, self.pin_memory, self.timeout = num_workers, pin_memory, timeout
        self.worker_init_fn, self.prefetch_factor = worker_init_fn, prefetch_factor
        self.persistent_workers, self.pin_memory_device = persistent_workers, pin_memory_device
        self.in_order, self.multiprocessing_context = in_order, multiprocessing_context
        batched = batch_sampler is not None or (self._streams and batch_size is not None)
        self.collate_fn = collate_fn or (default_collate if batched else default_convert)
        self._seed: int | None = None
        self._epoch = 0
        self._position = 0
        self._begun = False  # whether an iterator of this epoch was handed out
        self._newest: object = None

    def __len__(self) -> int:
        """The number of batches; TypeError where the dataset or sampler has no length."""
        if self._streams:
            n = length(self.dataset, "DataLoader")
            if self.batch_size is None:
                return n
            return n // self.batch_size if self.drop_last else -(-n // self.batch_size)
        return len(self._order())

    def __iter__(self) -> Iterator:
        if self._begun:
            self._epoch, self._position = self._epoch + 1, 0
        self._begun = True
        token = self._newest = object()
        return self._walk(token, self._epoch, self._position)

    # -- the state -------------------------------------------------------------------------------

    def state_dict(self) -> dict[str, Any]:
        """Where the loader is: {"seed", "epoch", "position", "batches"}; see the class."""
        return {"seed": self._need_seed(), "epoch": self._epoch, "position": self._position,
                "batches": self._batches()}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Go on from a ``state_dict``; raises ValueError, and changes nothing, if it does not fit."""
        if not isinstance(state_dict, dict) or set(state_dict) != set(_STATE):
            found = sorted(map(str, state_dict)) if isinstance(state_dict, dict) else \
                type(state_dict).__name__
            raise ValueError(f"DataLoader.load_state_dict: wanted a dict with {', '.join(_STATE)}, got "
                             f"{found}")
        seed, epoch, position, batches = (state_dict[k] for k in _STATE)
        for name, value in (("seed", seed), ("epoch", epoch), ("position", position)):
            if value is None and name == "seed":
                continue
            if type(value) is not int or value < 0 or value >= 1 << 64:
                raise ValueError(f"DataLoader.load_state_dict: {name} must be an int that is not "
                                 f"negative, got {value!r}")
        mine = self._batches()
        if batches != mine:
            raise ValueError(f"DataLoader.load_state_dict: the state is of a loader of {batches} batches, "
                             f"this one has {mine}; use the same dataset and batch size")
        if mine is not None and position > mine:
            raise ValueError(f"DataLoader.load_state_dict: position {position} is beyond the {mine} "
                             f"batches")
        if seed is None and is_random(self._order()):
            raise ValueError("DataLoader.load_state_dict: the state is of a loader without shuffling, "
                             "this one shuffles; use the same arguments")
        self._seed, self._epoch, self._position = seed, epoch, position
        self._begun, self._newest = False, None

    def _batches(self) -> int | None:
        try:
            return len(self)
        except (TypeError, NotImplementedError):
            return None

    def _order(self) -> Any:
        return self.batch_sampler if self.batch_sampler is not None else self.sampler

    def _need_seed(self) -> int | None:
        order = self._order()
        if self._seed is None and is_random(order):
            own = self.generator
            while own is None and order is not None:
                own = getattr(order, "generator", None)
                order = getattr(order, "sampler", None)
            self._seed = int(integers_array(0, 1 << 62, (), "int64", CPU, own))
        return self._seed

    # -- the walk --------------------------------------------------------------------------------

    def _walk(self, token: object, epoch: int, position: int) -> Iterator:
        source = self._stream(epoch, position) if self._streams else self._indexed(epoch, position)
        for batch in source:
            position += 1
            if self._newest is token:
                self._position = position
            yield batch
        if self._newest is token:
            self._epoch, self._position, self._begun = epoch + 1, 0, False

    def _indexed(self, epoch: int, position: int) -> Iterator:
        order = self._order()
        for part in (order, getattr(order, "sampler", None), self.dataset):
            hear = getattr(part, "set_epoch", None)
            if callable(hear):
                hear(epoch)
        seed = self._need_seed()
        indices = iter(order) if seed is None else ordered(order, stream(seed, epoch + 1))
        fetch = self._fetch_one if self.batch_sampler is None else self._fetcher()
        return map(fetch, islice(indices, position, None))

    def _stream(self, epoch: int, position: int) -> Iterator:
        if hasattr(self.dataset, "set_epoch"):
            self.dataset.set_epoch(epoch)
        samples = self._noted(iter(self.dataset))
        if self.batch_size is None:
            yield from map(self.collate_fn, islice(samples, position, None))
            return
        for _ in islice(samples, position * self.batch_size):
            pass
        while batch := list(islice(samples, self.batch_size)):
            if len(batch) < self.batch_size and self.drop_last:
                return
            yield self._collated(batch, "of the stream")

    def _noted(self, samples: Iterator) -> Iterator:
        count = 0
        while True:
            try:
                sample = next(samples)
            except StopIteration:
                return
            except Exception as error:
                error.add_note(f"while reading sample {count} of the stream {_name(self.dataset)}")
                raise
            count += 1
            yield sample

    def _fetcher(self) -> Callable:
        """How a list of indices becomes a batch: at once where the dataset can, else one by one."""
        if self.collate_fn is default_collate and can_take(self.dataset):
            return self._take
        return self._fetch_many if callable(getattr(self.dataset, "__getitems__", None)) else self._fetch_each

    def _take(self, indices: list) -> Any:
        try:
            return self.dataset.take(indices)
        except Exception as error:
            error.add_note(f"while loading samples {_short(indices)} of {_name(self.dataset)}")
            raise

    def _fetch_many(self, indices: list) -> Any:
        try:
            samples = self.dataset.__getitems__(indices)
        except Exception as error:
            error.add_note(f"while loading samples {_short(indices)} of {_name(self.dataset)}")
            raise
        return self._collated(samples, _short(indices))

    def _fetch_each(self, indices: list) -> Any:
        return self._collated([self._sample(i) for i in indices], _short(indices))

    def _fetch_one(self, index: Any) -> Any:
        return self.collate_fn(self._sample(index))

    def _sample(self, index: Any) -> Any:
        try:
            return self.dataset[index]
        except StopIteration as error:  # inside a generator it would end the epoch in silence
            raise RuntimeError(f"the dataset {_name(self.dataset)} raised StopIteration for sample "
                               f"{index}") from error
        except Exception as error:
            error.add_note(f"while loading sample {index} of {_name(self.dataset)}")
            raise

    def _collated(self, samples: list, which: str) -> Any:
        try:
            return self.collate_fn(samples)
        except Exception as error:
            error.add_note(f"while collating samples {which} of {_name(self.dataset)}")
            raise


def get_worker_info() -> None:
    """None: samples are loaded in this process, not in a worker.

    >>> fw.data.get_worker_info() is None
    True
    """


def _name(dataset: Any) -> str:
    return type(dataset).__name__


def _short(indices: list) -> str:
    text = ", ".join(map(str, indices[:8]))
    return f"[{text}]" if len(indices) <= 8 else f"[{text}, ... {len(indices)} in all]"


def _check_workers(num_workers: Any, timeout: Any, prefetch_factor: Any, persistent_workers: Any,
                   context: Any) -> None:
    if isinstance(num_workers, bool) or not isinstance(num_workers, int) or num_workers < 0:
        raise ValueError(f"DataLoader: num_workers must be an int that is not negative, got "
                         f"{num_workers!r}")
    if num_workers > 0:
        raise ValueError(f"DataLoader: worker processes are not available yet; use num_workers=0 "
                         f"(the batches are then made in this process), got {num_workers}")
    for name, value, none in (("timeout", timeout, 0), ("prefetch_factor", prefetch_factor, None),
                              ("persistent_workers", persistent_workers, False),
                              ("multiprocessing_context", context, None)):
        if value != none:
            raise ValueError(f"DataLoader: {name} is for worker processes, and num_workers is 0; drop "
                             f"{name}={value!r}")


def _check_order(streams: bool, batch_size: Any, shuffle: bool, sampler: Any, batch_sampler: Any,
                 drop_last: bool) -> None:
    given = [name for name, on in (("shuffle", shuffle), ("sampler", sampler is not None),
                                   ("batch_sampler", batch_sampler is not None)) if on]
    if streams and given:
        raise ValueError(f"DataLoader: an IterableDataset has its own order; drop {given[0]}=")
    if shuffle and sampler is not None:
        raise ValueError("DataLoader: shuffle=True and sampler= both give the order; drop one of them")
    if batch_sampler is not None and (shuffle or sampler is not None or drop_last or batch_size != 1):
        raise ValueError("DataLoader: batch_sampler= decides the batches alone; drop batch_size, shuffle, "
                         "sampler and drop_last")
    if batch_size is None and drop_last:
        raise ValueError("DataLoader: drop_last=True needs batches; batch_size=None gives single samples")
