"""How a list of indices, or a stream, becomes batches: the same in this process, a worker, or a thread."""

from collections.abc import Callable, Iterator
from functools import partial
from itertools import islice
from operator import getitem
from typing import Any

import numpy as np

from ..errors import add_note
from ..tensor import Tensor
from . import collate
from .collate import default_collate, default_convert
from .dataset import can_take
from .randomness import SampleRandom, draws_nothing
from .workers.errors import short
from .workers.share import Share


def kind(dataset: Any) -> str:
    """The dataset's class, for messages."""
    return type(dataset).__name__


class Fetcher:
    """Makes batches of one dataset. ``at`` is the sample (or the words for it) that was begun last."""

    def __init__(self, dataset: Any, collate_fn: Callable, batched: bool, batch_size: int | None = None,
                 drop_last: bool = False) -> None:
        self.dataset, self.collate_fn, self.batched = dataset, collate_fn, batched
        self.batch_size, self.drop_last = batch_size, drop_last
        self.at: Any = None
        self.room: Callable = np.empty  # where a worker wants the arrays of a batch

    def prepare(self) -> "Fetcher":
        """Look once at what the dataset can do; where the batches are made, as it may be a copy."""
        plain = self.collate_fn is default_collate
        self.sure = draws_nothing(self.dataset)
        self.own_collate = self.collate_fn not in (default_collate, default_convert)
        many = callable(getattr(self.dataset, "__getitems__", None))
        self.get = (self._one if not self.batched else self._take if plain and can_take(self.dataset)
                    else self._many if many else self._each)
        return self

    def fetch(self, number: int, indices: Any, draws: SampleRandom) -> Any:
        """The batch of these indices (one index where there are no batches)."""
        draws.row(number)
        return self.get(indices, draws)

    def _take(self, indices: list, draws: SampleRandom) -> Any:
        return self._all(self.dataset.take, indices)

    def _many(self, indices: list, draws: SampleRandom) -> Any:
        if not self.sure:
            draws.start(0)
        return self._collated(self._all(self.dataset.__getitems__, indices), indices, draws)

    def _all(self, get: Callable, indices: list) -> Any:
        self.at = indices
        try:
            return get(indices)
        except Exception as error:
            add_note(error, f"while loading samples {short(indices)} of {kind(self.dataset)}")
            raise

    def _each(self, indices: list, draws: SampleRandom) -> Any:
        samples: list = []
        indices = list(indices)
        try:
            if self.sure:
                samples.extend(map(partial(getitem, self.dataset), indices))
            else:
                draws.load(self.dataset, indices, samples)
        except BaseException as error:
            if len(samples) < len(indices):  # else an interrupt, after the last of them
                self.at = indices[len(samples)]
                self._lost(error, self.at)
            raise
        return self._collated(samples, indices, draws)

    def _one(self, index: Any, draws: SampleRandom) -> Any:
        if not self.sure:
            draws.start(0)
        sample = self._sample(index)
        if self.own_collate:
            draws.collating()
        return self.collate_fn(sample)

    def _sample(self, index: Any) -> Any:
        self.at = index
        try:
            return self.dataset[index]
        except Exception as error:
            self._lost(error, index)
            raise

    def _lost(self, error: BaseException, index: Any) -> None:
        """Say which sample it was that could not be had."""
        if isinstance(error, StopIteration):  # inside a generator it would end the epoch in silence
            raise RuntimeError(f"the dataset {kind(self.dataset)} raised StopIteration for sample "
                               f"{index}") from error
        add_note(error, f"while loading sample {index} of {kind(self.dataset)}")

    def _collated(self, samples: list, which: list | str, draws: SampleRandom, number: int = 0) -> Any:
        if self.own_collate:
            draws.collating(number)
        collate.allocate = self.room
        try:
            return self.collate_fn(samples)
        except BaseException as error:
            self.at = f"collating samples {which if isinstance(which, str) else short(which)}"
            add_note(error, f"while {self.at} of {kind(self.dataset)}")
            raise
        finally:
            collate.allocate = np.empty

    # -- streams ---------------------------------------------------------------------------------

    def stream(self, share: int, draws: SampleRandom, begun: int, state: Any) -> Iterator[Any]:
        """The batches of this process's share, without the first ``begun``.

        With a ``state`` of the dataset it goes on from there; else what was begun is read over.
        """
        size = 1 if self.batch_size is None else self.batch_size
        count = begun * size if state is not None else 0
        if state is not None:
            self.dataset.load_state_dict(state)
        samples = self._noted(iter(self.dataset), share, draws, count)
        if state is None:
            for _ in islice(samples, begun * size):
                pass
        while batch := list(islice(samples, size)):
            begun += 1
            if self.batch_size is None:
                if self.own_collate:
                    draws.collating(begun)
                yield self.collate_fn(batch[0])
            elif len(batch) == size or not self.drop_last:
                yield self._collated(batch, "of the stream", draws, begun)

    def _noted(self, samples: Iterator, share: int, draws: SampleRandom, count: int) -> Iterator:
        draws.row(share)
        while True:
            self.at = count
            draws.start(count)
            try:
                sample = next(samples)
            except StopIteration:
                return
            except Exception as error:
                add_note(error, f"while reading sample {count} of the stream {kind(self.dataset)}")
                raise
            count += 1
            yield sample

    def dataset_state(self) -> Any:
        """Where the stream is, if the dataset can say so and go on from there."""
        if hasattr(self.dataset, "state_dict") and hasattr(self.dataset, "load_state_dict"):
            return self.dataset.state_dict()
        return None


SMALL = 1 << 20


def needs_no_workers(fetcher: Fetcher, order: Any) -> bool:
    """Whether a batch is one look-up in memory, so small that passing it on costs more than making it.

    Or one on a GPU, which a worker could not reach.
    """
    size = getattr(order, "batch_size", None)
    if fetcher.get != fetcher._take or size is None or not len(fetcher.dataset):
        return False
    row = [t for t in fetcher.dataset.take([0]) if isinstance(t, Tensor)]
    return any(t.is_cuda for t in row) or size * sum(t.nbytes for t in row) <= SMALL


class LocalBatches:
    """The batches of (number, indices), made here; the numbers ``ahead`` were handed out."""

    def __init__(self, fetcher: Fetcher, tasks: Iterator, draws: SampleRandom, ahead: Any) -> None:
        self._fetcher, self._tasks, self._draws, self._ahead = fetcher, tasks, draws, frozenset(ahead)
        self._lend = fetcher.own_collate or not fetcher.sure

    def __iter__(self) -> "LocalBatches":
        return self

    def __next__(self) -> Any:
        number, indices = next(self._tasks)
        if not self._lend:
            batch = self._fetcher.get(indices, self._draws)
        else:
            with self._draws.lent():
                batch = self._fetcher.fetch(number, indices, self._draws)
        self._next = number + 1
        return batch

    def progress(self) -> tuple[int, dict[str, Any]]:
        """The loader's position, and what else its state must hold to go on from here."""
        if not self._ahead:
            return self._next, {}
        while self._next in self._ahead:
            self._next += 1
        left = sorted(n for n in self._ahead if n > self._next)
        return self._next, {"ahead": left} if left else {}


class LocalStream:
    """The batches of a stream, read here; its random numbers are drawn only while it is being read."""

    def __init__(self, fetcher: Fetcher, draws: SampleRandom, share: Share) -> None:
        self._fetcher, self._draws, self._share = fetcher, draws, share
        self._batches = fetcher.stream(0, draws, share.batches, share.dataset)

    def __iter__(self) -> "LocalStream":
        return self

    def __next__(self) -> Any:
        with self._draws.lent():
            batch = next(self._batches)
        self._share.batches += 1
        self._share.dataset = self._fetcher.dataset_state()
        return batch

    def progress(self) -> tuple[int, dict[str, Any]]:
        """The loader's position, and what else its state must hold to go on from here."""
        share = self._share
        return share.batches, {"shares": [share.state()], "turn": 0} if share.dataset is not None else {}
