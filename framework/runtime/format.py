"""The model file: what ``_native/runtime/read.cpp`` reads. All words are 8 bytes, little-endian.

Head (64 bytes): the magic, version and CRC-32 of what follows it, sizes. Then the program: symbols,
sizes, values, steps, outputs. Then the constants, each at a multiple of 64. See
``_native/runtime/README.md``.
"""

import struct
import zlib
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

MAGIC, VERSION = b"FWMODEL\n", 1
TYPES = {"float32": 0, "float64": 1, "bfloat16": 2, "int64": 3, "int32": 4, "bool": 5, "uint8": 6,
         "int8": 7}
MOST_SYMBOLS = 31
INPUT, CONSTANT, RESULT = range(3)


class Size(NamedTuple):
    """floor((factor * the product of some symbols + more) / over); symbols: one bit for each."""

    factor: int
    more: int
    over: int = 1
    symbols: int = 0


class Step(NamedTuple):
    """One operation. inputs, outputs: numbers of values, -1 for none; numbers: whole ones, or Sizes."""

    name: str
    inputs: Sequence[int]
    numbers: Sequence["int | Size"]
    reals: Sequence[float]
    words: Sequence[str]
    outputs: Sequence[int]


class Writer:
    """A model while it is put together."""

    def __init__(self, symbols: Sequence[str]) -> None:
        self.symbols = list(symbols)
        self.values: list[tuple] = []  # (kind, type, name, sizes, array or None)
        self.steps: list[Step] = []
        self.outputs: list[tuple[int, str]] = []

    def value(
        self,
        kind: int,
        dtype: str,
        name: str = "",
        sizes: Sequence["int | Size"] = (),
        array: np.ndarray | None = None,
    ) -> int:
        """The number of a new value. Raises KeyError for a dtype that models do not have."""
        self.values.append((kind, TYPES[dtype], name, tuple(sizes), array))
        return len(self.values) - 1

    def bytes(self) -> bytes:
        """The file."""
        table: dict[Size, int] = {}
        data, at = [], 0
        program: list[bytes] = []
        words = program.append

        def size(n: int | Size) -> bytes:
            row = n if isinstance(n, Size) else Size(0, int(n))
            return _word(table.setdefault(row, len(table)))

        for kind, dtype, name, sizes, array in self.values:
            words(_word(kind) + _word(dtype) + _text(name))
            if kind != RESULT:
                words(_word(len(sizes)) + b"".join(map(size, sizes)))
            if array is not None:
                words(_word(at))
                raw = array.tobytes()
                data.append(raw + bytes(-len(raw) % 64))
                at += len(data[-1])
        words(_word(len(self.steps)))
        for step in self.steps:
            words(
                _text(step.name)
                + _rows(step.inputs, _word)
                + _rows(step.numbers, size)
                + _rows(step.reals, lambda x: struct.pack("<d", x))
                + _rows(step.words, _text)
                + _rows(step.outputs, _word)
            )
        words(_rows(self.outputs, lambda one: _word(one[0]) + _text(one[1])))
        sizes = _rows(list(table), lambda s: b"".join(map(_word, s)))
        body = _rows(self.symbols, _text) + sizes + _word(len(self.values)) + b"".join(program)
        start = (64 + len(body) + 63) // 64 * 64
        rest = struct.pack("<QQQ", start + at, len(body) // 8, start) + bytes(24) + body
        rest += bytes(start - 16 - len(rest))
        whole = b"".join([rest, *data])
        return MAGIC + struct.pack("<II", VERSION, zlib.crc32(whole)) + whole


def _word(n: int) -> bytes:
    return struct.pack("<q", n)


def _text(s: str) -> bytes:
    raw = s.encode()[:4000]
    return _word(len(raw)) + raw + bytes(-len(raw) % 8)


def _rows(items: Sequence, each: object) -> bytes:
    return _word(len(items)) + b"".join(map(each, items))  # type: ignore[call-overload]
