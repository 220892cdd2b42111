"""Graphs: while a stream is captured, work is kept instead of done, and done at each launch, in that memory.

As on a device nothing changes during a capture: new arrays have their shapes and no values, what would write
into memory that is there is left for later. Whoever waits, or copies from memory of the host that may move,
is refused.
"""

from typing import Any

import numpy as np

from . import counts

recording: list | None = None  # what the capture under way has kept
arrays: list = []  # what it has made: the pool of a graph has all of its memory


class CUDARuntimeError(RuntimeError):
    """What the driver refuses."""


class Graph:
    """Work that has been captured."""

    def __init__(self, work: list, made: list) -> None:
        self.work, self.made = work, made

    def launch(self, stream: Any = None) -> None:
        """Do all of it again."""
        before = counts.launches.copy()
        for piece in self.work:
            piece()
        counts.launches.clear()
        counts.launches.update(before)
        counts.launch("graph")

    def debug_dot_str(self, flags: int = 0) -> str:
        """A drawing of it."""
        return "digraph {" + "; ".join(f"n{i}" for i in range(len(self.work))) + "}"

    def upload(self, stream: Any = None) -> None:
        """Nothing has to go anywhere here."""


def begin() -> None:
    """Keep what comes."""
    global recording, arrays
    if recording is not None:
        raise CUDARuntimeError("cudaErrorIllegalState: a capture is under way")
    recording, arrays = [], []


def end() -> Graph:
    """What was kept."""
    global recording
    if recording is None:
        raise CUDARuntimeError("cudaErrorIllegalState: no capture is under way")
    graph, recording = Graph(recording, arrays), None
    return graph


def refuse(what: str) -> None:
    """Raise in a capture."""
    if recording is not None:
        raise CUDARuntimeError(f"cudaErrorStreamCaptureUnsupported: {what} while a stream is captured")


def refuse_copies() -> None:
    """What CuPy's own functions do in a capture, of any memory of the host."""
    if recording is not None:
        raise RuntimeError("the current stream is capturing, so H2D transfers are disallowed")


def run(function: Any, args: Any, kwargs: Any, into: Any = None) -> Any:
    """``function(*args, **kwargs)`` on NumPy's arrays, or in a capture what has its shape.

    into: the array that it writes into, if it makes none.
    """
    if recording is None:
        return function(*args, **kwargs)
    if into is not None:
        recording.append(lambda: function(*args, **kwargs))
        return into
    with np.errstate(all="ignore"):
        result = function(*args, **kwargs)
    if isinstance(result, np.generic):
        result = np.asarray(result)
    given = [getattr(function, "__self__", None), *_flat([args, list(kwargs.values())])]
    given = [a for a in given if isinstance(a, np.ndarray)]
    made = [a for a in _flat([result]) if isinstance(a, np.ndarray)
            and not any(np.may_share_memory(a, b) for b in given)]
    if made:
        def again() -> None:
            new = [a for a in _flat([function(*args, **kwargs)]) if isinstance(a, np.ndarray | np.generic)]
            for a, b in zip(made, new, strict=True):
                a[...] = b
        recording.append(again)
        for a in made:
            if a.flags.c_contiguous and a.size:
                a.reshape(-1).view(np.uint8)[...] = 1 if a.dtype == bool else 255
    return result


def _flat(values: Any) -> list:
    found = []
    for v in values:
        found += _flat(v) if isinstance(v, list | tuple) else [v]
    return found
