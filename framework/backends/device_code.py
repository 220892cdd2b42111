"""Kernels of our own on NVIDIA GPUs: sources become modules through CuPy, once for each set of dtypes.

A source is CUDA C++ over the names of ``device.cuh``, with which it is compiled by NVRTC at first use; CuPy
keeps the result on disk. Kernels take pointers, ``i64`` for Python's int and ``double`` for its float.
"""

import os
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from .. import dtypes
from . import cuda, device_launcher

THREADS = 256
MOST_BLOCKS = 4096  # a grid of more goes on with the elements behind, by steps
OPTIONS = ("-std=c++17",)
_C = {
    "e": "f16",
    "f": "float",
    "d": "double",
    "?": "bool",
    "b": "signed char",
    "B": "unsigned char",
    "h": "short",
    "H": "unsigned short",
    "i": "int",
    "I": "unsigned int",
    "l": "i64",
    "q": "i64",
    "L": "u64",
    "Q": "u64",
}
enabled = os.environ.get("FRAMEWORK_CUDA_KERNELS", "on") != "off"


def letter(dtype: np.dtype) -> str:
    """The letter of a dtype; "E" is bfloat16, "" what kernels do not take (complex numbers)."""
    char = dtype.char
    if char in _C:
        return char
    return "E" if dtypes.rounded is not None and dtype == dtypes.rounded else ""


FLOATS = ("e", "E", "f", "d")  # letters of floating dtypes


def char_of(*arrays: Any) -> str:
    """The letter of the dtype that all arrays have; "" if they differ, or kernels are switched off."""
    chars = {letter(a.dtype) for a in arrays} if enabled else ()
    return chars.pop() if len(chars) == 1 else ""


def c_type(char: str) -> str:
    """The type of elements in a source, by its letter."""
    return "bf16" if char == "E" else _C[char]


def itemsize(char: str) -> int:
    """Bytes of an element, by its letter."""
    return 2 if char == "E" else np.dtype(char).itemsize


def wide(char: str) -> str:
    """The type that is computed in, by the letter of the elements'."""
    return "float" if char in "eEf" else c_type(char)


DIVISOR = np.dtype([("by", "u8"), ("shift", "i8"), ("size", "i8")])  # as ``Divisor`` in device.cuh


def divisor(n: int) -> tuple[int, int, int]:
    """What kernels divide numbers below 2**63 by ``n`` with (Granlund and Montgomery, PLDI 1994); not 1."""
    if n < 2:
        return 0, 0, n
    bits = (n - 1).bit_length()
    return (1 << 63 + bits) // n + 1, bits - 1, n


@cache
def prelude() -> str:
    """The text that every source begins with."""
    return Path(__file__).with_name("device.cuh").read_text()


@cache
def text_of(path: str) -> str:
    """The source in a file."""
    return Path(path).read_text()


SEPARATE = "--fmad=false",  # products and sums are rounded each, as on the CPU
_modules: dict[tuple[Any, str, tuple], Any] = {}


def module(source: str, cooperative: bool = False, options: tuple[str, ...] = ()) -> Any:
    """The compiled module of a source (without its prelude)."""
    key = (cuda.cupy(), source, options)
    found = _modules.get(key)
    if found is None:
        found = _modules[key] = cuda.cupy().RawModule(
            code=prelude() + source, options=OPTIONS + options, enable_cooperative_groups=cooperative)
    return found


def function(source: str, name: str, cooperative: bool = False, options: tuple[str, ...] = ()) -> Callable:
    """One kernel of a source: ``kernel(grid, block, arguments)``; by the driver where that can be."""
    compiled = module(source, cooperative, options).get_function(name)
    return compiled if cooperative else device_launcher.launched(compiled)


class Source:
    """A file of kernels, compiled for each dtype it is used with: elements are ``T``, computed in ``W``."""

    def __init__(self, path: str | Path, *needs: str, cooperative: bool = False,
                 dtypes: str = "fdeE", begins: Callable[[str], str] | None = None,
                 options: tuple[str, ...] = ()) -> None:
        self.options = options
        self.path, self.begins = str(path), begins  # text that is made, by the letter
        self.needs = [str(Path(__file__).parent / name) for name in needs]  # further files it begins with
        self.cooperative, self.dtypes = cooperative, dtypes  # all blocks run at once; letters of its dtypes
        self._kernels: dict[tuple, Callable] = {}

    def text(self, char: str) -> str:
        """What is compiled for a dtype."""
        types = f"typedef {c_type(char)} T;\ntypedef {wide(char)} W;\n"
        made = self.begins(char) if self.begins is not None else ""
        return types + made + "".join(map(text_of, [*self.needs, self.path]))

    def kernel(self, name: str, char: str) -> Callable:
        """One of its kernels, for a dtype."""
        key = (cuda._cupy, name, char)
        found = self._kernels.get(key)
        if found is None:
            found = self._kernels[key] = function(self.text(char), name, self.cooperative, self.options)
        return found


SOURCES: list[Source] = []


def source(path: str | Path, *needs: str, cooperative: bool = False, dtypes: str = "fdeE",
           begins: Callable[[str], str] | None = None, options: tuple[str, ...] = ()) -> Source:
    """The file of kernels of a room; tests find it in ``SOURCES``."""
    found = Source(path, *needs, cooperative=cooperative, dtypes=dtypes, begins=begins, options=options)
    SOURCES.append(found)
    return found


def blocks(n: int, each: int = THREADS) -> int:
    """How many blocks take ``n`` things, ``each`` at a time."""
    return max(1, min(-(-n // each), MOST_BLOCKS))


def is_device_array(a: Any) -> bool:
    """Whether ``a`` is an array of a GPU."""
    return cuda._cupy is not None and isinstance(a, cuda._cupy.ndarray)
