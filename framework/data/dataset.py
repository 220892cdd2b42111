"""Datasets: by index (``Dataset``) or as a stream (``IterableDataset``), and how to combine them."""

import math
import warnings
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate
from typing import Any, Generic, TypeVar

import numpy as np

from ..backends import move
from ..config.listing import own as _own
from ..errors import ShapeError, kind_of
from ..random import Generator, numpy_permutation
from ..tensor import Tensor, wrap

Sample = TypeVar("Sample", covariant=True)  # for type checkers: Dataset[tuple[Tensor, int]]


class Dataset(Generic[Sample]):
    """Samples by index: give a subclass ``__getitem__(index)`` and ``__len__()``.

    A method ``__getitems__(indices)`` that returns a list of samples is used for whole batches.

    >>> class Squares(fw.data.Dataset):
    ...     def __len__(self): return 4
    ...     def __getitem__(self, i): return i * i
    >>> len(Squares() + Squares()), (Squares() + Squares())[5]
    (8, 1)
    """

    def __getitem__(self, index: Any) -> Sample:
        raise NotImplementedError(f"{type(self).__name__} must define __getitem__(index)")

    def __add__(self, other: "Dataset") -> "ConcatDataset":
        return ConcatDataset([self, other])


class IterableDataset(Dataset[Sample]):
    """Samples as a stream: give a subclass ``__iter__()``.

    >>> class Count(fw.data.IterableDataset):
    ...     def __iter__(self): return iter(range(3))
    >>> list(Count() + Count())
    [0, 1, 2, 0, 1, 2]
    """

    def __iter__(self) -> Iterator[Sample]:
        raise NotImplementedError(f"{type(self).__name__} must define __iter__()")

    def __add__(self, other: Dataset) -> "ChainDataset":  # type: ignore[override]
        return ChainDataset([self, other])


class TensorDataset(Dataset[tuple[Tensor, ...]]):
    """Tensors of the same length: sample i is the tuple of their rows i.

    >>> data = fw.data.TensorDataset(fw.zeros(3, 2), fw.arange(3))
    >>> len(data), data[1]
    (3, (tensor([0., 0.]), tensor(1)))
    """

    def __init__(self, *tensors: Tensor) -> None:
        if not tensors:
            raise TypeError("TensorDataset: wanted at least one tensor")
        for i, t in enumerate(tensors):
            if not isinstance(t, Tensor):
                raise TypeError(f"TensorDataset: argument {i} must be a Tensor, got {kind_of(t)}; "
                                f"convert it with framework.tensor(...)")
            if t.ndim == 0 or t.shape[0] != tensors[0].shape[0]:
                raise ShapeError(f"TensorDataset: all tensors must have the same length, but argument 0 "
                                 f"has shape {list(tensors[0].shape)} and argument {i} {list(t.shape)}")
        self.tensors = tensors

    def __getitem__(self, index: Any) -> tuple:
        if isinstance(index, (slice, Tensor)) or any(t.requires_grad for t in self.tensors):
            return tuple(t[index] for t in self.tensors)  # type: ignore[index]
        return tuple(wrap(np.asarray(a) if isinstance(a, np.generic) else a)
                     for a in (t._array[index] for t in self.tensors))

    def __len__(self) -> int:
        return self.tensors[0].shape[0]

    def take(self, indices: Sequence[int]) -> list[Tensor]:
        """The collated batch of these samples, each tensor indexed once."""
        rows = np.asarray(indices, np.int64)
        return [rows_of(t, rows) for t in self.tensors]


def rows_of(t: Tensor, rows: np.ndarray) -> Tensor:
    """The rows of ``t`` at these indices, in new memory."""
    if t.requires_grad or t.is_cuda:
        return t[wrap(move(rows, t.device))]  # type: ignore[index]
    return wrap(t._array[rows])


def can_take(dataset: Any) -> bool:
    """Whether ``dataset.take(indices)`` gives the batch that collating its samples would give."""
    if isinstance(dataset, Subset):
        return type(dataset).__getitem__ is Subset.__getitem__ and can_take(dataset.dataset)
    if isinstance(dataset, TensorDataset):
        return type(dataset).__getitem__ is TensorDataset.__getitem__
    takes = getattr(dataset, "can_take", None)
    return bool(takes()) if callable(takes) else False


class Subset(Dataset[Sample]):
    """The samples of a dataset at the given indices.

    >>> list(fw.data.Subset([10, 20, 30], [2, 0]))
    [30, 10]
    """

    def __init__(self, dataset: Any, indices: Sequence[int]) -> None:
        self.dataset = dataset
        self.indices = indices

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, list):
            return self.dataset[[self.indices[i] for i in index]]
        return self.dataset[self.indices[index]]

    def __getitems__(self, indices: Sequence[int]) -> list:
        chosen = [self.indices[i] for i in indices]
        many = getattr(self.dataset, "__getitems__", None)
        return many(chosen) if callable(many) else [self.dataset[i] for i in chosen]

    def __len__(self) -> int:
        return len(self.indices)

    def __iter__(self) -> Iterator:
        return (self[i] for i in range(len(self)))

    def take(self, indices: Sequence[int]) -> Any:
        """The collated batch of these samples (see ``TensorDataset.take``)."""
        return self.dataset.take([self.indices[i] for i in indices])


class ConcatDataset(Dataset[Sample]):
    """Datasets one after the other.

    >>> fw.data.ConcatDataset([[1, 2], [3]])[2]
    3
    """

    def __init__(self, datasets: Iterable) -> None:
        self.datasets = list(datasets)
        if not self.datasets:
            raise ValueError("ConcatDataset: wanted at least one dataset")
        for i, d in enumerate(self.datasets):
            if isinstance(d, IterableDataset):
                raise TypeError(f"ConcatDataset: dataset {i} is an IterableDataset; use ChainDataset")
        self.cumulative_sizes = list(accumulate(len(d) for d in self.datasets))

    def __len__(self) -> int:
        return self.cumulative_sizes[-1]

    def __getitem__(self, index: int) -> Any:
        at = index + len(self) if index < 0 else index
        if not 0 <= at < len(self):
            raise IndexError(f"ConcatDataset: index {index} is out of range for {len(self)} samples")
        which = bisect_right(self.cumulative_sizes, at)
        return self.datasets[which][at - (self.cumulative_sizes[which - 1] if which else 0)]


class ChainDataset(IterableDataset[Sample]):
    """Streams one after the other; ``datasets`` is walked as it is needed.

    >>> list(fw.data.ChainDataset([]))
    []
    """

    def __init__(self, datasets: Iterable) -> None:
        self.datasets = datasets

    def __iter__(self) -> Iterator:
        for d in self.datasets:
            if not isinstance(d, IterableDataset):
                raise TypeError(f"ChainDataset: wanted IterableDatasets, found {type(d).__name__}; use "
                                f"ConcatDataset")
            yield from d

    def __len__(self) -> int:
        return sum(len(d) for d in self.datasets)


class StackDataset(Dataset):
    """Datasets side by side: sample i is the tuple (or dict) of their samples i.

    >>> fw.data.StackDataset(image=[5, 6], text=["a", "b"])[1]
    {'image': 6, 'text': 'b'}
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        if bool(args) == bool(kwargs):
            raise ValueError("StackDataset: give the datasets either in order or by name, at least one")
        parts = args or tuple(kwargs.values())
        if any(len(p) != len(parts[0]) for p in parts):
            raise ValueError(f"StackDataset: the datasets differ in length: {[len(p) for p in parts]}")
        self.datasets: Any = kwargs or args
        self._length = len(parts[0])

    def __getitem__(self, index: Any) -> Any:
        if isinstance(self.datasets, dict):
            return {name: d[index] for name, d in self.datasets.items()}
        return tuple(d[index] for d in self.datasets)

    def __len__(self) -> int:
        return self._length


def random_split(dataset: Any, lengths: Sequence[Any], generator: Generator | None = None) -> list[Subset]:
    """Random parts that do not overlap, of the given lengths, or fractions that sum to 1.

    What rounding fractions down leaves over goes to the parts in turn.
    Raises ValueError if the lengths do not sum to that of the dataset.

    >>> [len(part) for part in fw.data.random_split(range(10), [0.75, 0.25])]
    [8, 2]
    """
    total, sizes = len(dataset), list(lengths)
    if any(isinstance(s, float) for s in sizes):
        if any(not 0 <= s <= 1 for s in sizes) or not math.isclose(sum(sizes), 1):
            raise ValueError(f"random_split: fractions must be in [0, 1] and sum to 1, got {sizes}")
        sizes = [math.floor(total * s) for s in sizes]
        for i in range(total - sum(sizes)):
            sizes[i % len(sizes)] += 1
        for i, s in enumerate(sizes):
            if s == 0:
                warnings.warn(f"random_split: part {i} is empty", stacklevel=2)
    if any(isinstance(s, bool) or not hasattr(s, "__index__") or s < 0 for s in sizes):
        raise ValueError(f"random_split: lengths must be ints that are not negative, got {sizes}")
    if sum(sizes) != total:
        raise ValueError(f"random_split: the lengths {sizes} sum to {sum(sizes)}, the dataset has {total} "
                         f"samples")
    order = numpy_permutation(total, generator).tolist()
    return [Subset(dataset, order[end - s:end]) for s, end in zip(sizes, accumulate(sizes))]


__dir__ = _own(globals())
