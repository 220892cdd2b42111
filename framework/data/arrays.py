"""Datasets over arrays on disk: rows of .npy files, lines of text, windows of tokens.

Files are mapped into memory: nothing is read before it is needed, all processes share the pages, and
a dataset that is sent to a worker sends its path.
"""

import mmap
import os
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..dtypes import of_numpy
from ..errors import DTypeError, ShapeError
from ..tensor import Tensor, wrap
from .dataset import Dataset


def _mapped(source: Any, what: str) -> np.ndarray:
    """An array itself, or the .npy file of a path mapped read-only; pickled objects are refused."""
    if isinstance(source, Tensor):
        return source.detach().numpy()  # type: ignore[attr-defined]
    if isinstance(source, np.ndarray):
        return source
    try:
        return np.load(source, mmap_mode="r", allow_pickle=False)
    except ValueError as error:
        raise ValueError(f"{what}: {os.fsdecode(source)} is not a .npy file of numbers ({error}); write one "
                         f"with numpy.save(path, array)") from None


class _Mapped(Dataset):
    """Keeps sources and arrays; pickled, it leaves out the arrays that a path gives again."""

    _sources: tuple
    _arrays: list[np.ndarray]

    def _open(self) -> None:
        self._arrays = [_mapped(s, type(self).__name__) for s in self._sources]

    def __getstate__(self) -> dict:
        return {k: v for k, v in vars(self).items() if k != "_arrays"}

    def __setstate__(self, state: dict) -> None:
        vars(self).update(state)
        self._open()


class ArrayDataset(_Mapped):
    """Row i of every array, each given as a path to a .npy file, an array or a CPU tensor.

    One source gives the row as a tensor, several a tuple of tensors; rows are copied out of the file.

    >>> data = fw.data.ArrayDataset(np.arange(6.0).reshape(3, 2), np.array([7, 8, 9]))
    >>> len(data), data[1]
    (3, (tensor([2., 3.], dtype=framework.float64), tensor(8)))
    """

    def __init__(self, *sources: Any) -> None:
        if not sources:
            raise TypeError("ArrayDataset: wanted at least one path or array")
        self._sources = sources
        self._open()
        lengths = [a.shape[0] if a.ndim else None for a in self._arrays]
        for a in self._arrays:
            if of_numpy(a.dtype.newbyteorder("=")) is None:
                raise DTypeError(f"ArrayDataset: there are no tensors of {a.dtype}; wanted numbers "
                                 f"or bools")
        if None in lengths or len(set(lengths)) > 1:
            raise ShapeError(f"ArrayDataset: all arrays must have the same length, got shapes "
                             f"{[list(a.shape) for a in self._arrays]}")

    def __len__(self) -> int:
        return len(self._arrays[0])

    def __getitem__(self, index: int) -> Any:
        rows = [wrap(np.array(a[index])) for a in self._arrays]
        return rows[0] if len(rows) == 1 else tuple(rows)

    def can_take(self) -> bool:
        """Whether ``take`` gives what collating samples would."""
        return type(self).__getitem__ is ArrayDataset.__getitem__

    def take(self, indices: Sequence[int]) -> Any:
        """The collated batch of these samples, each array indexed once."""
        rows = np.asarray(indices, np.int64)
        parts = [wrap(np.ascontiguousarray(a[rows])) for a in self._arrays]
        return parts[0] if len(parts) == 1 else parts


class TokenDataset(_Mapped):
    """Windows of a long sequence of token numbers: samples (x, y), y the tokens that follow those of x.

    tokens: one-dimensional, as a path to a .npy file, an array or a tensor. Sample i is
    ``x = tokens[i * stride : i * stride + length]`` and y one further, both int64; stride is ``length``
    by default, so windows do not overlap.

    >>> data = fw.data.TokenDataset(np.arange(10), 4)
    >>> len(data), data[1]
    (2, (tensor([4, 5, 6, 7]), tensor([5, 6, 7, 8])))
    """

    def __init__(self, tokens: Any, length: int, stride: int | None = None) -> None:
        if length <= 0 or (stride is not None and stride <= 0):
            raise ValueError(f"TokenDataset: length and stride must be positive, got {length} and {stride}")
        self.length, self.stride = length, length if stride is None else stride
        self._sources = (tokens,)
        self._open()
        array = self._arrays[0]
        if array.ndim != 1 or array.dtype.kind not in "iu":
            raise ShapeError(f"TokenDataset: tokens must be one row of whole numbers, got "
                             f"{array.dtype}{list(array.shape)}")

    def __len__(self) -> int:
        return max((len(self._arrays[0]) - 1 - self.length) // self.stride + 1, 0)

    def __getitem__(self, index: int) -> tuple[Tensor, Tensor]:
        if not -len(self) <= index < len(self):
            raise IndexError(f"TokenDataset: index {index} is out of range for {len(self)} windows")
        start = (index % len(self)) * self.stride
        window = self._arrays[0][start:start + self.length + 1].astype(np.int64)
        return wrap(window[:-1].copy()), wrap(window[1:].copy())

    def can_take(self) -> bool:
        """Whether ``take`` gives what collating samples would."""
        return type(self).__getitem__ is TokenDataset.__getitem__

    def take(self, indices: Sequence[int]) -> list[Tensor]:
        """The collated batch of these samples, read at once."""
        starts = np.asarray(indices, np.int64) % max(len(self), 1) * self.stride
        windows = self._arrays[0][starts[:, None] + np.arange(self.length + 1)].astype(np.int64)
        return [wrap(np.ascontiguousarray(windows[:, :-1])), wrap(np.ascontiguousarray(windows[:, 1:]))]


class TextLineDataset(Dataset):
    """The lines of a text file by number, without their line ends.

    encoding: of the text; ASCII-compatible ones, where a line ends in the byte 10. skip_empty: lines of
    nothing but spaces are left out. transform(line): what the sample holds.
    Raises UnicodeDecodeError naming file and line where the bytes are not text of this encoding.
    """

    def __init__(self, path: Any, encoding: str = "utf-8", skip_empty: bool = False,
                 transform: Any = None) -> None:
        if "\n".encode(encoding) != b"\n":
            raise ValueError(f"TextLineDataset: the encoding {encoding!r} does not end lines in the byte 10; "
                             f"convert the file to UTF-8")
        self.path, self.encoding, self.transform = os.fsdecode(path), encoding, transform
        self._bytes = _bytes_of(self.path)
        ends = np.flatnonzero(self._bytes == 10)
        if self._bytes.size and (not ends.size or ends[-1] != self._bytes.size - 1):
            ends = np.append(ends, self._bytes.size)  # a last line without an end
        starts = np.concatenate([[0], ends[:-1] + 1]) if ends.size else ends
        self._spans = np.stack([starts, ends], 1).astype(np.int64)
        if skip_empty:
            self._spans = self._spans[[bool(self._raw(i).strip()) for i in range(len(self._spans))]]

    def __len__(self) -> int:
        return len(self._spans)

    def _raw(self, index: int) -> bytes:
        start, end = self._spans[index]
        return self._bytes[start:end].tobytes().removesuffix(b"\r")

    def __getitem__(self, index: int) -> Any:
        raw = self._raw(index)
        try:
            line = raw.decode(self.encoding)
        except UnicodeDecodeError as error:
            error.reason += f" (line sample {index} of {self.path}, read as {self.encoding})"
            raise
        return line if self.transform is None else self.transform(line)

    def __getstate__(self) -> dict:
        return {k: v for k, v in vars(self).items() if k != "_bytes"}

    def __setstate__(self, state: dict) -> None:
        vars(self).update(state)
        self._bytes = _bytes_of(self.path)


def _bytes_of(path: str) -> np.ndarray:
    """A file as an array of bytes, mapped."""
    if not os.path.getsize(path):
        return np.empty(0, np.uint8)
    with open(path, "rb") as file:
        return np.frombuffer(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ), np.uint8)
