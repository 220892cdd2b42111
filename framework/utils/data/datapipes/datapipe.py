"""The base classes of pipes, and the decorator by which a pipe becomes a method of all others."""

from collections.abc import Callable
from functools import partial, update_wrapper
from typing import Any

from ....data import Dataset, IterableDataset


class _Pipe:
    """What both kinds share: methods by registration."""

    functions: dict[str, Callable]

    def __getattr__(self, name: str) -> Any:
        made = type(self).functions.get(name)
        if made is None:
            raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")
        method = partial(made, self)
        update_wrapper(method, made, assigned=("__doc__",), updated=())
        return method

    @classmethod
    def register_function(cls, function_name: str, function: Callable) -> None:
        """Let all pipes of this kind have the method ``function_name``: ``function(pipe, ...)``."""
        cls.functions[function_name] = function

    @classmethod
    def register_datapipe_as_function(
        cls, function_name: str, cls_to_register: Callable, enable_df_api_tracing: bool = False
    ) -> None:
        """As ``register_function``, for a class of pipes; a name that is taken raises ValueError."""
        if function_name in cls.functions:
            raise ValueError(f"functional_datapipe: the name {function_name!r} is taken")
        cls.functions[function_name] = cls_to_register


class Batches:
    """What batching is for both kinds: its settings and its length."""

    def __init__(self, datapipe: Any, batch_size: int, drop_last: bool = False,
                 wrapper_class: Callable | None = None) -> None:
        if batch_size < 1:
            raise ValueError(f"batch: batch_size must be at least 1, got {batch_size}")
        self.datapipe, self.batch_size, self.drop_last = datapipe, batch_size, drop_last
        self.wrap = DataChunk if wrapper_class is None else wrapper_class

    def __len__(self) -> int:
        count = len(self.datapipe)
        return count // self.batch_size if self.drop_last else -(-count // self.batch_size)


class IterDataPipe(_Pipe, IterableDataset):
    """A stream of samples: give a subclass ``__iter__()``. Pipes that are registered are methods of it.

    >>> from framework.utils.data.datapipes.iter import IterableWrapper
    >>> list(IterableWrapper(range(5)).filter(lambda x: x % 2 == 0).map(lambda x: x * x).batch(2))
    [[0, 4], [16]]
    """

    functions: dict[str, Callable] = {}

    def reset(self) -> None:
        """Called by pipes that start again; a subclass may forget here what it kept."""


class DFIterDataPipe(IterDataPipe):
    """A stream of data frames; none of the pipes here makes one."""


class MapDataPipe(_Pipe, Dataset):
    """Samples by index: give a subclass ``__getitem__(index)`` and ``__len__()``.

    >>> from framework.utils.data.datapipes.map import SequenceWrapper
    >>> pipe = SequenceWrapper([1, 2, 3]).map(lambda x: x * x)
    >>> pipe[2], len(pipe)
    (9, 3)
    """

    functions: dict[str, Callable] = {}


class DataChunk(list):
    """A batch of samples: a list that prints with a border, and may be asked for its samples."""

    def __init__(self, items: Any) -> None:
        super().__init__(items)
        self.items = list(items)

    def as_str(self, indent: str = "") -> str:
        """The samples in brackets."""
        return indent + "[" + ", ".join(str(x) for x in self) + "]"

    def raw_iterator(self) -> Any:
        """The samples."""
        yield from self.items


def functional_datapipe(name: str, enable_df_api_tracing: bool = False) -> Callable:
    """Decorate a class of pipes: ``pipe.name(...)`` makes one that reads ``pipe``.

    >>> from framework.utils.data import IterDataPipe, functional_datapipe
    >>> @functional_datapipe("doubled")
    ... class Doubled(IterDataPipe):
    ...     def __init__(self, source): self.source = source
    ...     def __iter__(self): return (2 * x for x in self.source)
    >>> from framework.utils.data.datapipes.iter import IterableWrapper
    >>> list(IterableWrapper([1, 2]).doubled()), IterDataPipe.functions.pop("doubled") is Doubled
    ([2, 4], True)
    """

    def register(cls: Any) -> Any:
        kind = next(
            (base for base in (IterDataPipe, MapDataPipe) if isinstance(cls, type) and issubclass(cls, base)),
            None,
        )
        if kind is None:
            raise TypeError(
                f"functional_datapipe: wanted a subclass of IterDataPipe or MapDataPipe, got {cls}"
            )
        kind.register_datapipe_as_function(name, cls, enable_df_api_tracing)
        return cls

    return register
