"""Pipes that make one of several, and several of one."""

from collections import deque
from collections.abc import Callable, Iterator
from typing import Any

from ..datapipe import IterDataPipe, functional_datapipe


@functional_datapipe("concat")
class ConcaterIterDataPipe(IterDataPipe):
    """All of the first, then all of the second, and so on."""

    def __init__(self, *datapipes: IterDataPipe) -> None:
        if not datapipes:
            raise ValueError("concat: wanted at least one pipe")
        self.datapipes = datapipes

    def __iter__(self) -> Iterator:
        for pipe in self.datapipes:
            yield from pipe

    def __len__(self) -> int:
        return sum(len(pipe) for pipe in self.datapipes)  # type: ignore[arg-type]


@functional_datapipe("zip")
class ZipperIterDataPipe(ConcaterIterDataPipe):
    """Tuples of one sample of each, as long as all have one."""

    def __iter__(self) -> Iterator:
        yield from zip(*self.datapipes)

    def __len__(self) -> int:
        return min(len(pipe) for pipe in self.datapipes)  # type: ignore[arg-type]


@functional_datapipe("mux")
class MultiplexerIterDataPipe(ConcaterIterDataPipe):
    """One sample of each in turn, until the first has no more."""

    def __iter__(self) -> Iterator:
        for samples in zip(*self.datapipes):
            yield from samples

    def __len__(self) -> int:
        return min(len(pipe) for pipe in self.datapipes) * len(self.datapipes)  # type: ignore[arg-type]


class _Shared:
    """One iteration over a pipe, for several readers, each of which has a queue."""

    def __init__(self, pipe: IterDataPipe, count: int, choose: Callable, most: int, op: str) -> None:
        self.pipe, self.choose, self.most, self.op = pipe, choose, most, op
        self.queues: list[deque] = [deque() for _ in range(count)]
        self.source: Iterator | None = None
        self.begun: set[int] = set()

    def read(self, i: int) -> Iterator:
        if self.source is None or i in self.begun:  # a reader that starts again, starts all again
            self.source, self.begun = iter(self.pipe), set()
            for queue in self.queues:
                queue.clear()
        self.begun.add(i)
        source = self.source
        while self.source is source:
            if self.queues[i]:
                yield self.queues[i].popleft()
                continue
            try:
                sample = next(source)
            except StopIteration:
                return
            for place in self.choose(sample):
                self.queues[place].append(sample)
            if self.most >= 0 and sum(map(len, self.queues)) > self.most:
                raise BufferError(
                    f"{self.op}: more than buffer_size={self.most} samples wait for a reader; read "
                    f"the pipes side by side, or give a larger one"
                )


class _Reader(IterDataPipe):
    """One of the pipes that ``fork`` or ``demux`` gave."""

    def __init__(self, shared: _Shared, i: int, counted: bool) -> None:
        self.shared, self.i, self.counted = shared, i, counted

    def __iter__(self) -> Iterator:
        return self.shared.read(self.i)

    def __len__(self) -> int:
        if not self.counted:
            raise TypeError("demux: how many samples go where is not known before they are read")
        return len(self.shared.pipe)  # type: ignore[arg-type]


@functional_datapipe("fork")
class ForkerIterDataPipe(IterDataPipe):
    """``num_instances`` pipes with all samples of one, which is read once."""

    def __new__(  # type: ignore[misc]
        cls,
        datapipe: IterDataPipe,
        num_instances: int,
        buffer_size: int = 1000,
        copy: Any = None,
    ) -> list[IterDataPipe]:
        if num_instances < 1:
            raise ValueError(f"fork: num_instances must be at least 1, got {num_instances}")
        if copy is not None:
            raise ValueError("fork: samples are not copied; map(copy.copy) over a pipe does it")
        everywhere = range(num_instances)
        shared = _Shared(
            datapipe,
            num_instances,
            lambda sample: everywhere,
            -1 if buffer_size < 0 else buffer_size * num_instances,
            "fork",
        )
        return [_Reader(shared, i, True) for i in everywhere]


@functional_datapipe("demux")
class DemultiplexerIterDataPipe(IterDataPipe):
    """``num_instances`` pipes: each sample goes to that of the number ``classifier_fn(sample)``."""

    def __new__(  # type: ignore[misc]
        cls,
        datapipe: IterDataPipe,
        num_instances: int,
        classifier_fn: Callable,
        drop_none: bool = False,
        buffer_size: int = 1000,
    ) -> list[IterDataPipe]:
        if num_instances < 1:
            raise ValueError(f"demux: num_instances must be at least 1, got {num_instances}")

        def choose(sample: Any) -> tuple:
            place = classifier_fn(sample)
            if place is None and drop_none:
                return ()
            if place is None or not 0 <= place < num_instances:
                raise ValueError(
                    f"demux: classifier_fn must give a number below {num_instances}, got {place}"
                )
            return (place,)

        shared = _Shared(datapipe, num_instances, choose, buffer_size, "demux")
        return [_Reader(shared, i, False) for i in range(num_instances)]
