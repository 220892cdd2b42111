"""Pipes of samples by index."""

import copy
from collections.abc import Callable, Iterator
from typing import Any

from .....ops.random.numbers import randperm
from ..datapipe import Batches, MapDataPipe, functional_datapipe
from ..iter.simple import IterableWrapperIterDataPipe


class SequenceWrapper(MapDataPipe):
    """The samples of a sequence or dict; deepcopy: of a copy of it."""

    def __init__(self, sequence: Any, deepcopy: bool = True) -> None:
        self.sequence = copy.deepcopy(sequence) if deepcopy else sequence

    def __getitem__(self, index: Any) -> Any:
        return self.sequence[index]

    def __len__(self) -> int:
        return len(self.sequence)


@functional_datapipe("map")
class Mapper(MapDataPipe):
    """``fn`` of each sample."""

    def __init__(self, datapipe: MapDataPipe, fn: Callable) -> None:
        self.datapipe, self.fn = datapipe, fn

    def __getitem__(self, index: Any) -> Any:
        return self.fn(self.datapipe[index])

    def __len__(self) -> int:
        return len(self.datapipe)  # type: ignore[arg-type]


@functional_datapipe("batch")
class Batcher(Batches, MapDataPipe):
    """Lists of ``batch_size`` samples; a shorter last one unless ``drop_last``."""

    def __getitem__(self, index: int) -> Any:
        if not 0 <= index < len(self):
            raise IndexError(f"batch: index {index} is out of range of {len(self)} batches")
        end = min((index + 1) * self.batch_size, len(self.datapipe))  # type: ignore[arg-type]
        return self.wrap([self.datapipe[i] for i in range(index * self.batch_size, end)])


@functional_datapipe("concat")
class Concater(MapDataPipe):
    """All of the first, then all of the second, and so on."""

    def __init__(self, *datapipes: MapDataPipe) -> None:
        self.datapipes = datapipes

    def __getitem__(self, index: int) -> Any:
        for pipe in self.datapipes:
            if index < len(pipe):  # type: ignore[arg-type]
                return pipe[index]
            index -= len(pipe)  # type: ignore[arg-type]
        raise IndexError("concat: the index is out of range")

    def __len__(self) -> int:
        return sum(len(pipe) for pipe in self.datapipes)  # type: ignore[arg-type]


@functional_datapipe("zip")
class Zipper(MapDataPipe):
    """Tuples of one sample of each; as many as the shortest has."""

    def __init__(self, *datapipes: MapDataPipe) -> None:
        self.datapipes = datapipes

    def __getitem__(self, index: int) -> tuple:
        return tuple(pipe[index] for pipe in self.datapipes)

    def __len__(self) -> int:
        return min(len(pipe) for pipe in self.datapipes)  # type: ignore[arg-type]


class Shuffler(IterableWrapperIterDataPipe):
    """A stream of the samples in a random order. indices: those of the samples, if they are not 0, 1, ..."""

    def __init__(self, datapipe: MapDataPipe, *, indices: list | None = None) -> None:
        super().__init__(datapipe, deepcopy=False)
        self.indices = list(range(len(datapipe))) if indices is None else indices  # type: ignore[arg-type]

    def __iter__(self) -> Iterator:
        order: Any = randperm(len(self.indices))
        for i in order.tolist():
            yield self.iterable[self.indices[i]]  # type: ignore[index]

    def __len__(self) -> int:
        return len(self.indices)


MapDataPipe.register_datapipe_as_function("shuffle", Shuffler)
