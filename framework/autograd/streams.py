"""Backward of calls that ran in a stream of a GPU: each runs in that stream again, as its memory wants.

Nodes made while a stream other than the default one is current are told its name (``entered``). A backward
that comes by such nodes makes the stream of each one current for it, lets streams wait for those that they
take gradients from, and in the end lets the streams that it found current wait for all of them.
"""

import threading
from typing import Any

from ..backends import cuda
from ..node import Pick, notes_of
from .listen import listen, unlisten

used = False  # whether a node has ever been made in a stream: otherwise backward has nothing to look for


class _Chosen(threading.local):
    listening = False  # to a stream that was chosen for good, not for a block


_chosen = _Chosen()


def _note(node: Any) -> None:
    global used
    device, stream = _current()
    if stream.ptr:
        used = True
        notes_of(node)["stream"] = device, stream


def _current() -> tuple[int, Any]:
    module = cuda.cupy()
    return int(module.cuda.runtime.getDevice()), module.cuda.get_current_stream()


def entered() -> None:
    """A block begins in which a stream of the program's choice is current."""
    listen(_note)


def left() -> None:
    """It ends."""
    unlisten(_note)


def chosen(listening: bool) -> None:
    """A stream is current in this thread from here on; listening: it is not the default one."""
    if listening is not _chosen.listening:
        _chosen.listening = listening
        listen(_note) if listening else unlisten(_note)


class Streams:
    """The streams of one backward: those that it found, of each device, and those that it puts work into."""

    def __init__(self) -> None:
        self.found: dict[int, Any] = {}
        self.used: dict[tuple[int, int], Any] = {}
        self.here = self._look()

    def _look(self) -> tuple[int, Any]:
        """The device that is current now, and its stream."""
        device, stream = _current()
        self.found.setdefault(device, stream)
        return device, stream

    def found_here(self) -> tuple[int, Any]:
        """The device that is current now, and the stream of it that the backward found."""
        device, _ = self._look()
        return device, self.found[device]

    def _of(self, node: Any, device: int) -> Any:
        """The stream in which a node's call runs on a device: that of the call before, or the one found."""
        if type(node) is Pick:
            node = node.edges[0]
        place, stream = getattr(node, "notes", {}).get("stream", (-1, None))
        return stream if place == device else self.found[device]

    def _go(self, device: int, stream: Any) -> None:
        with cuda.cupy().cuda.Device(device):
            stream.use()
        self.here = device, stream
        self.used[device, int(stream.ptr)] = stream

    def enter(self, node: Any) -> None:
        """Make the stream of a node current, on the device that is current."""
        device, stream = self._look()
        there = self._of(node, device)
        if there.ptr != stream.ptr:
            self._go(device, there)
        else:
            self.here = device, stream

    def hand(self, node: Any, g: Any, source: tuple[int, Any]) -> None:
        """Have the stream of a node, current then, take a gradient that ``source`` has made."""
        device, stream = source
        arrays = list(cuda.arrays_in(g))
        if arrays and arrays[0].data.device_id != device:  # it came from another device
            device = int(arrays[0].data.device_id)
            stream = cuda.cupy().cuda.get_current_stream(device)
            self.found.setdefault(device, stream)
        there = self._of(node, device)
        if there.ptr != stream.ptr:
            self.used[device, int(stream.ptr)] = stream
            with cuda.cupy().cuda.Device(device):
                there.wait_event(stream.record())
            for array in arrays if cuda.allocator() is not None else ():
                cuda.keep_for(array, there)
        if self.here != (device, there):
            self._go(device, there)

    def close(self) -> None:
        """Make the streams that were found current again; they wait for all the others."""
        for device in {place for place, _ in self.used}:
            stream = self.found[device]
            with cuda.cupy().cuda.Device(device):
                for (place, _), other in self.used.items():
                    if place == device and other.ptr != stream.ptr:
                        stream.wait_event(other.record())
                stream.use()
