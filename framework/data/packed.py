"""A list whose items take one block of memory, which worker processes share and never copy.

Reading an item of a Python list writes to its reference count, so a forked worker that walks over a
list gets a private copy of every page of it. Items packed into one array have no counts to write.
"""

import pickle
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from ..tensor import Tensor, wrap


class PackedList(Sequence):
    """A list that cannot be changed, of items that pickle, packed into two tensors.

    Every access makes the item anew, in about a microsecond. Sent to another process through
    ``framework.multiprocessing`` the memory is shared; forked, it is not copied by reading.

    >>> names = fw.data.PackedList(["ant", "bee", "cat"])
    >>> names[1], names[-1], len(names), names[:2]
    ('bee', 'cat', 3, ['ant', 'bee'])
    """

    def __init__(self, items: Iterable) -> None:
        block, ends = bytearray(), []
        for item in items:
            block += pickle.dumps(item, 5)
            ends.append(len(block))
        self._block: Tensor = wrap(np.frombuffer(bytes(block), np.uint8).copy())
        self._ends: Tensor = wrap(np.array(ends, np.int64))

    def __len__(self) -> int:
        return len(self._ends._array)

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        i = index.__index__()
        i += len(self) if i < 0 else 0
        if not 0 <= i < len(self):
            raise IndexError(f"PackedList: index {index} is out of range for {len(self)} items")
        ends = self._ends._array
        start = ends[i - 1] if i else 0
        return pickle.loads(self._block._array[start:ends[i]])  # our own bytes, made in __init__

    def __iter__(self) -> Iterator:
        return (self[i] for i in range(len(self)))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, (list, PackedList)) and list(self) == list(other)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"PackedList of {len(self)} items in {self._block.nbytes} bytes"
