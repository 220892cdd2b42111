"""The names of ``cupyx`` that are used: whether failures of linear algebra raise, and pinned memory."""

import contextlib
import threading
from collections.abc import Iterator
from typing import Any

import numpy as np

_state = threading.local()


def linalg_mode() -> str:
    """What was asked for in this thread; CuPy's default is to say nothing."""
    return getattr(_state, "linalg", "ignore")


@contextlib.contextmanager
def errstate(*, linalg: str) -> Iterator[None]:
    """Let failures of linear algebra "raise", or "ignore" them."""
    assert linalg in ("raise", "ignore"), linalg
    before, _state.linalg = linalg_mode(), linalg
    try:
        yield
    finally:
        _state.linalg = before


class PinnedMemory(bytearray):
    """What owns memory that copies to a device read while the program goes on."""


def empty_pinned(shape: Any, dtype: Any) -> np.ndarray:
    """Host memory that counts as pinned."""
    size = int(np.prod(shape)) * np.dtype(dtype).itemsize
    return np.ndarray(shape, dtype, buffer=PinnedMemory(max(size, 1)))
