"""Pipes that look at one sample at a time."""

import contextlib
import copy
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from .....data import default_collate
from ..datapipe import IterDataPipe, functional_datapipe


class IterableWrapperIterDataPipe(IterDataPipe):
    """The samples of anything that can be iterated over.

    deepcopy: each iteration goes over a copy, so that changes of one are not seen by the next.
    """

    def __init__(self, iterable: Iterable, deepcopy: bool = True) -> None:
        self.iterable, self.deepcopy = iterable, deepcopy

    def __iter__(self) -> Iterator:
        source = self.iterable
        if self.deepcopy:
            with contextlib.suppress(TypeError):  # a generator or an open file cannot be copied
                source = copy.deepcopy(source)
        yield from source

    def __len__(self) -> int:
        return len(self.iterable)  # type: ignore[arg-type]


@functional_datapipe("map")
class MapperIterDataPipe(IterDataPipe):
    """``fn`` of each sample; with ``input_col`` of that part of it, put into ``output_col`` (default: the
    same).

    input_col: an index or key, or several for a function of several arguments; output_col -1: at the end.
    """

    def __init__(
        self, datapipe: IterDataPipe, fn: Callable, input_col: Any = None, output_col: Any = None
    ) -> None:
        if input_col is None and output_col is not None:
            raise ValueError("map: output_col needs input_col")
        self.datapipe, self.fn, self.input_col, self.output_col = datapipe, fn, input_col, output_col

    def _one(self, sample: Any) -> Any:
        if self.input_col is None:
            return self.fn(sample)
        several = isinstance(self.input_col, (list, tuple))
        result = self.fn(*[sample[i] for i in self.input_col]) if several else self.fn(sample[self.input_col])
        place = self.output_col
        if place is None:
            place = self.input_col[0] if several else self.input_col
            if several and len(self.input_col) > 1 and not isinstance(sample, dict):
                gone = set(self.input_col[1:])
                kept = [result if i == place else x for i, x in enumerate(sample) if i not in gone]
                return type(sample)(kept)
        if isinstance(sample, dict):
            return {**sample, place: result}
        parts = list(sample)
        if place == -1:
            parts.append(result)
        else:
            parts[place] = result
        return type(sample)(parts)

    def __iter__(self) -> Iterator:
        for sample in self.datapipe:
            yield self._one(sample)

    def __len__(self) -> int:
        return len(self.datapipe)  # type: ignore[arg-type]


@functional_datapipe("collate")
class CollatorIterDataPipe(MapperIterDataPipe):
    """Batches as tensors: ``default_collate`` of each, or another function."""

    def __init__(
        self, datapipe: IterDataPipe, conversion: Any = None, collate_fn: Callable | None = None
    ) -> None:
        super().__init__(datapipe, collate_fn or conversion or default_collate)


@functional_datapipe("filter")
class FilterIterDataPipe(IterDataPipe):
    """The samples for which ``filter_fn`` (of the part ``input_col``) is true."""

    def __init__(self, datapipe: IterDataPipe, filter_fn: Callable, input_col: Any = None) -> None:
        self.datapipe, self.filter_fn, self.input_col = datapipe, filter_fn, input_col

    def _wants(self, sample: Any) -> bool:
        if self.input_col is None:
            return self.filter_fn(sample)
        if isinstance(self.input_col, (list, tuple)):
            return self.filter_fn(*[sample[i] for i in self.input_col])
        return self.filter_fn(sample[self.input_col])

    def __iter__(self) -> Iterator:
        for sample in self.datapipe:
            if self._wants(sample):
                yield sample
