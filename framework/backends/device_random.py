"""Numbers drawn on GPUs, those that the CPU draws: uniform and normal ones from the same state
(``random.cu``), integers by the same key (``integers.cu``).

Uniform ones and integers have the CPU's bits; normal ones are within 2 ulp, since compilers for GPUs join
products and sums.
"""

from math import pi, prod
from pathlib import Path
from typing import Any

import numpy as np

from .. import philox
from . import cuda, device_code, device_launcher
from .replayed import place_of

_STATE = np.dtype([("key", "u8", 2), ("counter", "u8", 4), ("ready", "u8", 4), ("left", "i8"),
                   ("spare", "i8"), ("half", "u8")])
_INTEGERS = device_code.source(Path(__file__).with_name("integers.cu"), "philox.cuh", dtypes="?bBhHiIlLfdeE")
_KEY = np.dtype([("key", "u8"), ("there", "u8")])
_WORD = 1 << 64
_BITS = {"d": 53, "f": 24, "e": 11, "E": 8}  # of a uniform number, which no rounding makes 1


def normal_tables(kind: str, wide: bool) -> str:
    """The coefficients of AS 241 in ``philox.py`` as tables NORMAL_0, ... of a type of C++."""
    middle, outer, *far = philox._WIDE if wide else philox._NARROW
    rows = [*middle, *outer, *[c for pair in far for c in pair]]
    return "".join(f"__device__ const {kind} NORMAL_{i}[] = {{{', '.join(f'{kind}({v!r})' for v in row)}}};\n"
                   for i, row in enumerate(rows))


def _begins(char: str) -> str:
    """The tables, and what is computed far out."""
    near = "polynomial(NORMAL_2, r - W(1.6)) / polynomial(NORMAL_3, r - W(1.6))"
    far = near if char != "d" else (
        f"(r > 5 ? polynomial(NORMAL_4, r - 5) / polynomial(NORMAL_5, r - 5) : {near})")
    return f"{normal_tables('W', char == 'd')}#define FAR_NORMAL(r) ({far})\n"


_SOURCE = device_code.source(Path(__file__).with_name("random.cu"), "philox.cuh", begins=_begins)


def draw(words: np.ndarray, shape: tuple[int, ...], dtype: np.dtype, normal: bool) -> Any:
    """An array of the current device, or NotImplemented; words: the state, which becomes that after it."""
    char, n = device_code.letter(dtype) if device_code.enabled else "", prod(shape)
    if char not in device_code.FLOATS or not n:
        return NotImplemented
    position, whole = int(words[10]), char == "d"
    state: Any = np.zeros(1, _STATE)
    state["key"], state["counter"], state["left"] = words[:2], words[2:6], 4 - position
    state["ready"][0, : 4 - position] = words[6 + position : 10]
    spare = not whole and int(words[11])
    state["spare"], state["half"] = int(spare), words[12]
    out = device_launcher.empty(shape, dtype)
    blocks = max(1, n // (4 if whole else 8))
    _SOURCE.kernel("draw", char)(
        (device_code.blocks(blocks),), (device_code.THREADS,), (out, n, state, int(normal))
    )
    _advance(words, n if whole else (n - spare + 1) // 2)
    if not whole:
        words[11] = (n - spare) % 2
        if n > spare:  # the last word's upper half, drawn or not
            words[12] = words[6 + int(words[10]) - 1] >> np.uint64(32)
    return out


def draw_by_key(key: int, shape: tuple[int, ...], dtype: np.dtype, normal: bool) -> Any:
    """The same numbers' distribution by a key alone, which a graph draws anew before each replay; or
    NotImplemented. Normal ones by Box and Muller's formula."""
    char = device_code.letter(dtype) if device_code.enabled else ""
    if char not in device_code.FLOATS or not prod(shape):
        return NotImplemented
    module, wide = cuda.cupy(), np.dtype("d" if char == "d" else "f")
    bits = {"d": 53, "f": 24}[wide.char] if normal else _BITS[char]
    unit = wide.type(2.0 ** -bits)
    if not normal:
        return (integers(key, 0, 1 << bits, shape, wide) * unit).astype(dtype, copy=False)
    size, turn = integers(key, 0, 1 << bits, (2, *shape), wide)
    away = module.sqrt(module.log((size + wide.type(0.5)) * unit) * wide.type(-2.0))
    return (away * module.cos(turn * wide.type(2 * pi * 2.0 ** -bits))).astype(dtype, copy=False)


def key_of(key: int) -> np.ndarray:
    """A key as kernels take it."""
    return np.array([(key, place_of(key))], _KEY)


def takes(dtype: np.dtype) -> bool:
    """Whether integers are drawn by a kernel in this dtype."""
    return device_code.enabled and bool(device_code.letter(dtype))


def integers(key: int, low: int, high: int, shape: tuple[int, ...], dtype: np.dtype) -> Any:
    """An array of the current device of integers uniform in [low, high), both within int64's (high: just
    beyond)."""
    n, size = prod(shape), high - low
    out = device_launcher.empty(shape, dtype)
    _INTEGERS.kernel("integers", device_code.letter(dtype))(
        (device_code.blocks(n, 8 * device_code.THREADS),), (device_code.THREADS,),
        (out, n, low, (size + (_WORD >> 1)) % _WORD - (_WORD >> 1), key_of(key)))
    return out


def _advance(words: np.ndarray, n: int) -> None:
    """The state after ``n`` words."""
    position = int(words[10])
    if n <= 4 - position:
        words[10] = position + n
        return
    blocks = -(-(n - (4 - position)) // 4)
    counter = sum(int(c) << 64 * i for i, c in enumerate(words[2:6])) + blocks - 1
    words[2:6] = [counter >> 64 * i & _WORD - 1 for i in range(4)]
    words[10] = 4
    bits = philox.from_state(words)
    bits.random_raw(n - (4 - position) - 4 * (blocks - 1))
    after = philox.state_words(dict(bits.state))
    words[2:11] = after[2:11]
