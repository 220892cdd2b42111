"""Pipes that make groups of samples, take them apart, or take every n-th one."""

from collections import defaultdict
from collections.abc import Callable, Iterator
from typing import Any

from ..datapipe import Batches, DataChunk, IterDataPipe, functional_datapipe


@functional_datapipe("batch")
class BatcherIterDataPipe(Batches, IterDataPipe):
    """Lists of ``batch_size`` samples; a shorter last one unless ``drop_last``."""

    def __iter__(self) -> Iterator:
        batch: list[Any] = []
        for sample in self.datapipe:
            batch.append(sample)
            if len(batch) == self.batch_size:
                yield self.wrap(batch)
                batch = []
        if batch and not self.drop_last:
            yield self.wrap(batch)


@functional_datapipe("unbatch")
class UnBatcherIterDataPipe(IterDataPipe):
    """The samples of batches, ``unbatch_level`` levels deep; -1: of all."""

    def __init__(self, datapipe: IterDataPipe, unbatch_level: int = 1) -> None:
        if unbatch_level < -1:
            raise ValueError(f"unbatch: unbatch_level must be -1 or more, got {unbatch_level}")
        self.datapipe, self.unbatch_level = datapipe, unbatch_level

    def __iter__(self) -> Iterator:
        for element in self.datapipe:
            yield from self._apart(element, self.unbatch_level)

    def _apart(self, element: Any, level: int) -> Iterator:
        if level == -1 and not isinstance(element, (list, DataChunk)) or level == 0:
            yield element
            return
        if not isinstance(element, (list, DataChunk)):
            raise IndexError(f"unbatch: unbatch_level={self.unbatch_level} is deeper than the batches are")
        for item in element:
            yield from self._apart(item, level if level == -1 else level - 1)


@functional_datapipe("groupby")
class GrouperIterDataPipe(IterDataPipe):
    """Lists of samples with the same ``group_key_fn(sample)``.

    group_size: a group of so many goes out at once. buffer_size: when so many samples wait, the largest
    group goes out (of at least ``guaranteed_group_size``, else RuntimeError unless ``drop_remaining``).
    keep_key: pairs (key, group).
    """

    def __init__(
        self,
        datapipe: IterDataPipe,
        group_key_fn: Callable,
        *,
        keep_key: bool = False,
        buffer_size: int = 10000,
        group_size: int | None = None,
        guaranteed_group_size: int | None = None,
        drop_remaining: bool = False,
    ) -> None:
        if group_size is not None and not 0 < group_size <= buffer_size:
            raise ValueError(
                f"groupby: group_size must be between 1 and buffer_size={buffer_size}, got {group_size}"
            )
        self.datapipe, self.key_of, self.keep_key, self.buffer_size = (
            datapipe,
            group_key_fn,
            keep_key,
            buffer_size,
        )
        self.group_size, self.drop_remaining = group_size, drop_remaining
        self.guaranteed = guaranteed_group_size if guaranteed_group_size is not None else group_size or 0

    def _out(self, key: Any, group: list) -> Any:
        return (key, DataChunk(group)) if self.keep_key else DataChunk(group)

    def __iter__(self) -> Iterator:
        groups: dict[Any, list] = defaultdict(list)
        waiting = 0
        for sample in self.datapipe:
            key = self.key_of(sample)
            groups[key].append(sample)
            waiting += 1
            if self.group_size is not None and len(groups[key]) == self.group_size:
                waiting -= self.group_size
                yield self._out(key, groups.pop(key))
            elif waiting == self.buffer_size:
                key = max(groups, key=lambda k: len(groups[k]))
                largest = groups.pop(key)
                waiting -= len(largest)
                if len(largest) >= self.guaranteed:
                    yield self._out(key, largest)
                elif not self.drop_remaining:
                    raise RuntimeError(
                        f"groupby: the buffer of {self.buffer_size} is full, and its largest group has "
                        f"{len(largest)} samples; {self.guaranteed} were promised"
                    )
        for key in list(groups):
            group = groups.pop(key)
            if len(group) >= self.guaranteed or not self.drop_remaining:
                yield self._out(key, group)


@functional_datapipe("sharding_filter")
class ShardingFilterIterDataPipe(IterDataPipe):
    """Every n-th sample, from the i-th on, as ``apply_sharding(n, i)`` says; all of them before."""

    def __init__(self, source_datapipe: IterDataPipe, sharding_group_filter: Any = None) -> None:
        self.source_datapipe, self.instances, self.instance = source_datapipe, 1, 0

    def apply_sharding(self, num_of_instances: int, instance_id: int, sharding_group: Any = None) -> None:
        """Take the samples that are this instance's."""
        if not 0 <= instance_id < num_of_instances:
            raise ValueError(f"apply_sharding: there is no instance {instance_id} of {num_of_instances}")
        self.instances, self.instance = num_of_instances, instance_id

    def __iter__(self) -> Iterator:
        for i, sample in enumerate(self.source_datapipe):
            if i % self.instances == self.instance:
                yield sample

    def __len__(self) -> int:
        count = len(self.source_datapipe)  # type: ignore[arg-type]
        return count // self.instances + (self.instance < count % self.instances)
