"""Batches as a message: the structure by pickle, the arrays beside it.

Both ends are processes of one program on one machine, over a socket without a name: what is unpickled
here was pickled by ourselves.
"""

import io
import pickle
from multiprocessing.reduction import ForkingPickler
from typing import Any

import numpy as np

from ...dtypes import of_numpy
from ...tensor import Tensor, wrap


def pack(batch: Any) -> tuple[bytes, list[memoryview]]:
    """The structure of a batch, and the memory of its arrays."""
    parts: list[pickle.PickleBuffer] = []
    out = io.BytesIO()
    _Packer(out, 5, buffer_callback=parts.append).dump(batch)
    return out.getvalue(), [p.raw() for p in parts]


def unpack(structure: bytes, parts: list[Any]) -> Any:
    """The batch again, its arrays over the memory of ``parts``."""
    return pickle.loads(structure, buffers=parts)


class _Packer(pickle.Pickler):
    def reducer_override(self, obj: Any) -> Any:
        if type(obj) is Tensor and obj._node is None and not obj.is_cuda:
            return _tensor, (_dense(obj._array),)
        if type(obj) is np.ndarray and not obj.dtype.hasobject and not obj.flags.forc:
            return _dense(obj).__reduce_ex__(5)
        return NotImplemented


def _tensor(array: np.ndarray) -> Tensor:
    of_numpy(array.dtype)  # makes bfloat16 known where it has not been used yet
    return wrap(array)


def _dense(array: np.ndarray) -> np.ndarray:
    return array if array.flags.forc else np.array(array, order="C")


class Parcel:
    """Something for a worker that is not forked: packed within the start of a process, opened there by hand.

    So an error of unpickling happens where it can be reported, and locks and queues may be in it.
    """

    def __init__(self, content: Any) -> None:
        self._content, self._data = content, b""

    def __reduce__(self) -> tuple:
        return _closed, (bytes(ForkingPickler.dumps(self._content)),)

    def open(self) -> Any:
        """What is in it."""
        if self._data:
            self._content, self._data = pickle.loads(self._data), b""
        return self._content


def _closed(data: bytes) -> Parcel:
    parcel = Parcel(None)
    parcel._data = data
    return parcel
