"""Settings for all pipes of a chain: which of the samples are read, and whether they are shuffled."""

from collections.abc import Iterator
from typing import Any

from .datapipes.datapipe import IterDataPipe, MapDataPipe
from .datapipes.iter.combinatorics import ShufflerIterDataPipe as Shuffler
from .datapipes.iter.grouping import ShardingFilterIterDataPipe as ShardingFilter


def pipes_of(datapipe: Any) -> Iterator[Any]:
    """The pipe and all those that it reads, directly or not, each once."""
    seen: set[int] = set()
    left = [datapipe]
    while left:
        pipe = left.pop()
        if id(pipe) in seen:
            continue
        seen.add(id(pipe))
        if isinstance(pipe, (IterDataPipe, MapDataPipe)):
            yield pipe
            held: Any = vars(pipe).values()
        else:
            held = (
                pipe
                if isinstance(pipe, (list, tuple))
                else vars(pipe).values()
                if hasattr(pipe, "pipe")
                else ()
            )
        left.extend(
            x for x in held if isinstance(x, (IterDataPipe, MapDataPipe, list, tuple)) or hasattr(x, "pipe")
        )


def get_all_graph_pipes(datapipe: Any) -> list[Any]:
    """The pipe and all those that it reads."""
    return list(pipes_of(datapipe))


def apply_sharding(datapipe: Any, num_of_instances: int, instance_id: int, sharding_group: Any = None) -> Any:
    """Tell all ``sharding_filter`` of a chain which samples are theirs; returns the pipe.

    >>> from framework.utils.data.datapipes.iter import IterableWrapper
    >>> from framework.utils.data.graph_settings import apply_sharding
    >>> list(apply_sharding(IterableWrapper(range(5)).sharding_filter().batch(2), 2, 1))
    [[1, 3]]
    """
    for pipe in pipes_of(datapipe):
        if isinstance(pipe, ShardingFilter):
            pipe.apply_sharding(num_of_instances, instance_id)
    return datapipe


def apply_shuffle_settings(datapipe: Any, shuffle: bool | None = None) -> Any:
    """Turn all ``shuffle`` of a chain on or off, and add one at its end if there is none; returns the pipe.

    shuffle: None changes nothing.
    """
    if shuffle is None:
        return datapipe
    found = [pipe for pipe in pipes_of(datapipe) if isinstance(pipe, Shuffler)]
    if not found and shuffle:
        datapipe = datapipe.shuffle()
        found = [datapipe]
    for pipe in found:
        pipe.set_shuffle(shuffle)
    return datapipe


def apply_random_seed(datapipe: Any, rng: Any) -> Any:
    """Give all ``shuffle`` of a chain seeds drawn from a generator; returns the pipe."""
    for pipe in pipes_of(datapipe):
        if isinstance(pipe, Shuffler):
            pipe.set_seed(rng.seed() % (1 << 31))
    return datapipe
