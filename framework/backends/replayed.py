"""Numbers of the host in CUDA graphs: kernels read them from memory that is written anew before each replay.

A graph holds addresses and the numbers that kernels were handed, as they were. What is another number each
time (the key of dropout, the corrections of Adam, a learning rate) is handed on as an address: before a
replay the host says it again, and one small launch brings it there, in the order of the stream.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from . import cuda, device_code

_SOURCE = device_code.source(Path(__file__).with_name("replayed.cu"), dtypes="l")
_AT_ONCE = 64  # words that one launch brings
_WORDS = np.dtype([("at", "u8", (_AT_ONCE,))])


class Words:
    """The words of one graph: made in its capture, from the graph's memory."""

    MOST = 4096

    def __init__(self) -> None:
        self.memory = cuda.cupy().empty(self.MOST, np.uint64)
        self.says: list[Callable[[], np.ndarray]] = []
        self.used = 0

    def address_of(self, says: Callable[[], np.ndarray], count: int) -> int:
        """Where what ``says`` gives before each replay will lie: ``count`` numbers of 8 bytes."""
        if self.used + count > self.MOST:
            raise RuntimeError(f"a CUDA graph holds {self.MOST} numbers that change with each replay (keys "
                               f"of dropout, settings of optimizers), this one needs more; record several")
        self.says.append(says)
        self.used += count
        return int(self.memory.data.ptr) + 8 * (self.used - count)

    def send(self) -> None:
        """Ask for all again, and have them there when the graph runs in this stream."""
        if not self.used:
            return
        words = np.concatenate([says().view(np.uint64) for says in self.says])
        for start in range(0, len(words), _AT_ONCE):
            part: Any = np.zeros(1, _WORDS)
            count = min(_AT_ONCE, len(words) - start)
            part["at"][0, :count] = words[start : start + count]
            _SOURCE.kernel("put_words", "l")((1,), (_AT_ONCE,), (self.memory[start:], part, count))


class GraphKey(int):
    """A key of random numbers that is drawn anew before each replay; kernels find it at ``address``."""

    words: Words
    address: int


def graph_key(words: Words, draw: Callable[[], int]) -> GraphKey:
    """A key for work that is being recorded."""
    key = GraphKey()
    key.words = words
    key.address = words.address_of(lambda: np.array([draw()], np.uint64), 1)
    return key


def place_of(key: int) -> int:
    """The address where kernels find a key, 0 for one that they are handed."""
    if not isinstance(key, GraphKey):
        return 0
    if (capture := cuda.capture_here()) is not None:
        capture.kept.append(key)  # another graph's, whose memory has to stay
    return key.address
