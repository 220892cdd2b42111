"""How tensors are pickled for another process: not their elements, but where in shared memory they lie.

``multiprocessing`` pickles with a pickler of its own, the ForkingPickler, which learns here of tensors and
segments; ``pickle`` and ``copy`` are untouched. A segment's descriptor travels beside the bytes: inherited
by a process that starts, with the message itself on the channels of this package, and on foreign ones
(a Manager's, say) through multiprocessing's resource sharer, which needs the sender alive.
"""

import errno
import io
import os
import threading
from collections import ChainMap
from multiprocessing import reduction
from multiprocessing.reduction import ForkingPickler
from typing import Any

from ..backends.arena import descriptor_limit
from ..backends.segments import Segment, segment_of
from ..dtypes import of_numpy
from ..errors import AutogradError, DeviceError, SharedMemoryError
from ..ops.convert.share import share
from ..tensor import Tensor, wrap

_inbox = threading.local()


class Descriptors(list):
    """Received descriptors; those that nobody claims are closed with the list."""

    def pad(self, count: int) -> None:
        """Note as None those that the kernel dropped since this process can open no more."""
        self.extend([None] * (count - len(self)))

    def __del__(self) -> None:
        for fd in self:
            if fd is not None:
                os.close(fd)


def dumps(obj: Any) -> tuple[memoryview, list[Segment]]:
    """The pickled object, and the segments whose descriptors must travel with it, in order."""
    register_tensors()
    segments: list[Segment] = []

    def note(segment: Segment) -> tuple:
        descriptor_of(segment)
        segments.append(segment)
        return _claim, (len(segments) - 1, segment.key)

    buffer = io.BytesIO()
    pickler: Any = ForkingPickler(buffer)
    pickler.dispatch_table = ChainMap({Segment: note}, pickler.dispatch_table)
    pickler.dump(obj)
    return buffer.getbuffer(), segments


def arrived(descriptors: Descriptors) -> None:
    """Note what came with the message that this thread is about to unpickle."""
    _inbox.descriptors = descriptors


def descriptor_of(segment: Segment) -> int:
    """The segment's descriptor; SharedMemoryError if this process gave it back."""
    if segment.fd is None:
        raise SharedMemoryError(errno.EBADF, "this tensor was received while most file descriptors were in "
                                "use, so its own was given back: it is shared with its sender, but cannot "
                                "be passed on; raise the limit (ulimit -n), or send a clone()")
    return segment.fd


def _claim(index: int, key: bytes) -> Segment:
    descriptors: list = getattr(_inbox, "descriptors", [])
    fd = descriptors[index] if index < len(descriptors) else None
    if fd is not None:
        descriptors[index] = None
        return _attach(fd, key)
    segment = Segment.known(key)
    if segment is not None:
        return segment
    raise SharedMemoryError(errno.EMFILE, "the descriptor of a shared tensor is not there: this process has "
                            "no file descriptor left (ulimit -n), or the message was not unpickled once, by "
                            "the thread that received it")


def _attach(fd: int, key: bytes) -> Segment:
    """Where descriptors run short, keep the mapping only: what cannot be passed on is still shared."""
    segment = Segment.attach(fd, key)
    if segment.fd == fd and fd >= descriptor_limit() // 2:
        segment.close()
    return segment


def _reduce_segment(segment: Segment) -> tuple:
    return _detach, (reduction.DupFd(descriptor_of(segment)), segment.key)


def _detach(descriptor: Any, key: bytes) -> Segment:
    return _attach(descriptor.detach(), key)


def _reduce_tensor(t: Tensor) -> tuple:
    if t.is_cuda:
        raise DeviceError(f"a tensor on {t.device} cannot be sent to another process: GPU memory is not "
                          f"shared; send t.cpu() and move it to the GPU there")
    if not t.is_leaf:
        raise AutogradError("a tensor that was computed from tensors requiring grad cannot be sent to "
                            "another process: its graph would stay behind; send t.detach()")
    share([t])
    array = t._array
    segment = segment_of(array)
    assert segment is not None
    place = (segment, segment.offset_of(array) if array.size else 0, array.dtype, array.shape,
             array.strides, array.flags.writeable)
    return _rebuild, (type(t), place, t.requires_grad), getattr(t, "__dict__", None) or None


def _rebuild(cls: type[Tensor], place: tuple, requires_grad: bool) -> Tensor:
    segment, offset, dtype, shape, strides, writeable = place
    of_numpy(dtype)  # this process may not know bfloat16 yet
    array = segment.array(dtype, shape, offset, strides)
    array.flags.writeable = writeable
    return wrap(array, cls).requires_grad_(requires_grad)


def register_tensors() -> None:
    """Teach the ForkingPickler the classes of tensors: it looks them up one by one, not by their bases."""
    for cls in _tensor_classes(Tensor):
        if cls.__reduce_ex__ is Tensor.__reduce_ex__ and cls not in _registered:
            _registered.add(cls)
            ForkingPickler.register(cls, _reduce_tensor)


_registered: set[type] = set()


def _tensor_classes(cls: type[Tensor]) -> list[type[Tensor]]:
    return [cls, *(c for below in cls.__subclasses__() for c in _tensor_classes(below))]


def share_all(value: Any) -> None:
    """Move the tensors in nested tuples, lists, dicts and modules to shared memory, before a fork."""
    waiting, seen = [value], {id(value)}
    while waiting:
        value = waiting.pop()
        if isinstance(value, Tensor):
            if not value.is_cuda and value.is_leaf:
                share([value])
        elif isinstance(value, (dict, list, tuple, set, frozenset)):
            items = {id(item): item for item in (value.values() if isinstance(value, dict) else value)}
            waiting += [item for key, item in items.items() if key not in seen]
            seen |= items.keys()
        elif not isinstance(value, type) and callable(getattr(value, "share_memory", None)):
            value.share_memory()


_strategy = ["file_descriptor"]


def get_all_sharing_strategies() -> set[str]:
    """The ways of sharing that may be asked for; both are descriptors of anonymous memory here."""
    return {"file_descriptor", "file_system"}


def get_sharing_strategy() -> str:
    """The way of sharing that was asked for, "file_descriptor" at first."""
    return _strategy[0]


def set_sharing_strategy(new_strategy: str) -> None:
    """Ask for a way of sharing; ValueError for one that PyTorch has not.

    Programs ask for "file_system", which keeps names in /dev/shm, to save descriptors. Here small tensors
    share a descriptor and no names are left behind: it is taken, and changes nothing.
    """
    if new_strategy not in get_all_sharing_strategies():
        raise ValueError(f"set_sharing_strategy: there is no strategy {new_strategy!r}, only "
                         f"'file_descriptor' and 'file_system'")
    _strategy[0] = new_strategy


ForkingPickler.register(Segment, _reduce_segment)
register_tensors()
