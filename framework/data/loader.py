"""DataLoader: batches of a dataset, in an order that can be resumed exactly."""

from collections.abc import Callable, Iterator
from itertools import islice
from types import GenericAlias
from typing import Any

from ..random import Generator, numpy_integers, stream
from .checks import check_order, check_state, check_workers
from .collate import default_collate, default_convert
from .dataset import IterableDataset
from .fetch import Fetcher, LocalBatches, LocalStream, needs_no_workers
from .pinning import can_pin, pinned
from .randomness import SampleRandom, draws_nothing, mix
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
from .workers.feed import Feed, Home, Share
from .workers.pool import ProcessPool
from .workers.threads import ThreadPool

# what the order of batches and the workers were made for
_FIXED = frozenset(("batch_size", "batch_sampler", "sampler", "drop_last", "dataset", "persistent_workers"))


class DataLoader:
    """Batches of a dataset: ``for batch in loader``.

    dataset: something with ``__getitem__`` and ``__len__``, or an IterableDataset. batch_size: None
    gives single samples, only converted to tensors. shuffle: a new random order every epoch. sampler:
    an order of indices; batch_sampler: of lists of indices. drop_last: leave out a last, shorter batch.
    collate_fn: makes a batch of a list of samples (``default_collate``). generator: where the seed of
    the order is drawn from, once, at first use (default: the sampler's, else the default generator).
    pin_memory: where there is a GPU, batches come in memory that the system does not move, so that
    ``x.to("cuda", non_blocking=True)`` copies while the program goes on.

    **Workers.** num_workers processes (or threads, by worker_type="thread") make the batches, each up to
    prefetch_factor (2) ahead; they start with each ``iter(loader)``, or once with persistent_workers.
    worker_init_fn(worker_id) is called in each first; multiprocessing_context: the start method. timeout:
    raise WorkerTimeout when no batch comes for so many seconds. in_order=False: a slow batch is
    overtaken. A worker that ends raises WorkerDied, an error in one is raised here with the
    traceback of there; either way the loader can be used again. See docs/data.md.
    The same batches come for any number and kind of workers: the default generator is started anew for each
    sample, from the seed, the epoch, and its place in it, and so are Python's ``random`` and NumPy's global
    generator where they were drawn from since (worker threads share these two, which then are left alone).

    **Resuming.** The order of an epoch is a function of (seed, epoch) alone, so
    ``state_dict()`` is small: {"seed", "epoch", "position", "batches"}. ``position`` counts the batches
    that this epoch has handed out, the one the loop is working on included: save after the step that
    used it. After ``load_state_dict`` the next ``for`` goes on behind that batch, in the same epoch;
    every later ``for`` is a new epoch. Skipped batches are not loaded, except those of an
    IterableDataset, whose stream is read over unless the dataset has state_dict and load_state_dict.
    A sampler of your own must repeat its order: see ``Sampler``.

    Raises ValueError for arguments that contradict each other; an error of the dataset passes through
    with a note that names the sample and the dataset.

    >>> loader = fw.data.DataLoader(fw.data.TensorDataset(fw.arange(5)), batch_size=2)
    >>> [x.tolist() for x, in loader]
    [[0, 1], [2, 3], [4]]
    """

    #: after so many seconds without a batch, WorkerStallWarning shows where the worker is (0: never)
    stall_warning: float = 60.0

    __class_getitem__: Any = classmethod(GenericAlias)  # DataLoader[int], for type checkers

    _made = False  # whether ``__init__`` has ended

    def __init__(self, dataset: Any, batch_size: int | None = 1, shuffle: bool | None = None,
                 sampler: Any = None, batch_sampler: Any = None, num_workers: int = 0,
                 collate_fn: Callable | None = None, pin_memory: bool = False, drop_last: bool = False,
                 timeout: float = 0, worker_init_fn: Callable | None = None,
                 multiprocessing_context: Any = None, generator: Generator | None = None, *,
                 prefetch_factor: int | None = None, persistent_workers: bool = False,
                 pin_memory_device: str = "", in_order: bool = True,
                 worker_type: str = "process") -> None:
        check_workers(num_workers, timeout, prefetch_factor, persistent_workers, multiprocessing_context,
                      worker_type, worker_init_fn)
        boolean(in_order, "DataLoader", "in_order")
        shuffle = boolean(False if shuffle is None else shuffle, "DataLoader", "shuffle")
        boolean(drop_last, "DataLoader", "drop_last")
        self._streams = isinstance(dataset, IterableDataset)
        check_order(self._streams, batch_size, shuffle, sampler, batch_sampler, drop_last)
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
        self.worker_init_fn, self.worker_type = worker_init_fn, worker_type
        self.prefetch_factor = 2 if num_workers and prefetch_factor is None else prefetch_factor
        self.persistent_workers, self.pin_memory_device = persistent_workers, pin_memory_device
        self.in_order, self.multiprocessing_context = in_order, multiprocessing_context
        self._batched = batch_sampler is not None or (self._streams and batch_size is not None)
        self.collate_fn = collate_fn or (default_collate if self._batched else default_convert)
        self._seed: int | None = None
        self._epoch = 0
        self._position = 0
        self._progress: dict[str, Any] = {}  # what else resuming needs: see ``state_dict``
        self._begun = False  # whether an iterator of this epoch was handed out
        self._newest: object = None
        self._home = Home(persistent_workers)
        self._made = True

    def __setattr__(self, name: str, value: Any) -> None:
        if name in _FIXED and self._made:
            raise ValueError(f"DataLoader: {name} cannot be changed once the loader is made, since sampling "
                             f"and workers were set up for it; make another DataLoader")
        super().__setattr__(name, value)

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
            self._epoch, self._position, self._progress = self._epoch + 1, 0, {}
        fetcher = Fetcher(self.dataset, self.collate_fn, self._batched, self.batch_size, self.drop_last)
        self._hear_epoch()
        seed = self._need_seed()
        workers = self.num_workers and not (self.worker_type == "process" and self.worker_init_fn is None
                                            and needs_no_workers(fetcher.prepare(), self._order()))
        source = self._feed(fetcher, seed) if workers else self._local(fetcher, seed)
        self._begun = True
        self._newest = token = object()
        return _Walk(self, token, source)

    # -- the state -------------------------------------------------------------------------------

    def state_dict(self) -> dict[str, Any]:
        """Where the loader is: {"seed", "epoch", "position", "batches"}; see the class.

        With in_order=False also "ahead", the batches behind the position that came early; of a stream with
        workers, or with a state of its own, "shares" and "turn", how far each worker's share is.
        """
        return {"seed": self._need_seed(), "epoch": self._epoch, "position": self._position,
                "batches": self._batches(), **self._progress}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Go on from a ``state_dict``; raises ValueError, and changes nothing, if it does not fit."""
        state = check_state(state_dict, self._batches())
        if state["seed"] is None and is_random(self._order()):
            raise ValueError("DataLoader.load_state_dict: the state is of a loader without shuffling, "
                             "this one shuffles; use the same arguments")
        shares = state.get("shares")
        if shares is not None and (not self._streams or len(shares) != max(1, self.num_workers)):
            raise ValueError(f"DataLoader.load_state_dict: the state is of a stream read by {len(shares)} "
                             f"workers, each of which has its own part; this loader has num_workers="
                             f"{self.num_workers}{'' if self._streams else ' and no stream'}")
        if shares is None and self._streams and self.num_workers > 1 and state["position"]:
            raise ValueError(f"DataLoader.load_state_dict: the state is of a stream read in one process; "
                             f"num_workers={self.num_workers} cannot go on with it, use num_workers=0 or 1")
        self._seed, self._epoch, self._position = state["seed"], state["epoch"], state["position"]
        self._progress = {k: state[k] for k in ("ahead", "shares", "turn") if k in state}
        self._begun, self._newest = False, None

    def _batches(self) -> int | None:
        try:
            return len(self)
        except (TypeError, NotImplementedError):
            return None

    def _order(self) -> Any:
        return self.batch_sampler if self.batch_sampler is not None else self.sampler

    def _need_seed(self) -> int | None:
        """The seed of order and samples, drawn when first needed; None where nothing is random."""
        order = self._order()
        if self._seed is None and (is_random(order) or self.num_workers or not draws_nothing(self.dataset)
                                   or self.collate_fn not in (default_collate, default_convert)):
            own = self.generator
            while own is None and order is not None:
                own = getattr(order, "generator", None)
                order = getattr(order, "sampler", None)
            self._seed = int(numpy_integers(0, 1 << 62, (), own))
        return self._seed

    # -- an epoch --------------------------------------------------------------------------------

    def _hear_epoch(self) -> None:
        order = self._order()
        for part in (order, getattr(order, "sampler", None), self.dataset):
            hear = getattr(part, "set_epoch", None)
            if callable(hear):
                hear(self._epoch)

    def _tasks(self, seed: int | None) -> Iterator[tuple[int, Any]]:
        """(number, indices) of the batches of this epoch that have not been handed out."""
        order, ahead = self._order(), set(self._progress.get("ahead", ()))
        indices = ordered(order, stream(seed, self._epoch + 1)) if seed is not None else iter(order)
        left = islice(enumerate(indices), self._position, None)
        return (task for task in left if task[0] not in ahead) if ahead else left

    def _local(self, fetcher: Fetcher, seed: int | None) -> Iterator:
        """The batches, made in this process."""
        draws = SampleRandom(seed or 0, self._epoch)
        fetcher.prepare()
        if not self._streams:
            return LocalBatches(fetcher, self._tasks(seed), draws, self._progress.get("ahead", ()))
        return LocalStream(fetcher, draws, (self._shares() or [Share(self._position)])[0])

    def _feed(self, fetcher: Fetcher, seed: int | None) -> Feed:
        """The batches, made by workers."""
        assert seed is not None and self.prefetch_factor is not None
        shares = self._shares() or [Share(self._position) for _ in range(self.num_workers)]
        count = self._batches() if self._streams else None
        tasks = None if self._streams else self._tasks(seed)
        pool = self._home.take() or self._pool(fetcher, seed)
        try:
            pool.begin(seed, self._epoch, [(s.batches, s.dataset) for s in shares])
            return Feed(pool, tasks, self._home.give_back, prefetch=self.prefetch_factor,
                        in_order=self.in_order, timeout=self.timeout, stall=self.stall_warning,
                        first=self._position, ahead=self._progress.get("ahead", ()),
                        shares=shares if self._streams else None, turn=self._progress.get("turn", 0),
                        most=None if count is None else count + self.num_workers - 1)
        except BaseException:
            pool.close()
            raise

    def _pool(self, fetcher: Fetcher, seed: int) -> Any:
        settings: dict[str, Any] = {"seed": mix(seed + self._epoch), "streams": self._streams,
                                    "init": self.worker_init_fn}
        if self.worker_type == "thread":
            return ThreadPool(fetcher, self.num_workers, **settings)
        return ProcessPool(fetcher, self.num_workers, self.prefetch_factor + 2,  # type: ignore[operator]
                           context=self.multiprocessing_context, **settings)

    def _shares(self) -> list[Share]:
        return [Share(**s) for s in self._progress.get("shares", ())]


class _Walk:
    """One pass over a loader; moves the loader's position as long as it is the newest."""

    def __init__(self, loader: DataLoader, token: object, source: Any) -> None:
        self._loader, self._token, self._source, self._epoch = loader, token, source, loader._epoch
        self._pins = loader.pin_memory and can_pin()

    def __iter__(self) -> "_Walk":
        return self

    def __next__(self) -> Any:
        loader = self._loader
        try:
            batch = next(self._source)
        except StopIteration:
            if loader._newest is self._token:
                loader._epoch, loader._position, loader._begun = self._epoch + 1, 0, False
                loader._progress, loader._newest = {}, None
            raise
        if loader._newest is self._token:
            loader._position, loader._progress = self._source.progress()
        return pinned(batch) if self._pins else batch

    def __len__(self) -> int:
        return len(self._loader)
