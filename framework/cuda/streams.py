"""Queues of work on a GPU, and marks in them: CuPy's, under PyTorch's names. DeviceError without a GPU."""

import ctypes
from typing import Any

from ..autograd import streams as _backward
from ..backends import cuda as _backend
from ..device import Device
from .devices import needed


class Stream:
    """A queue of work on a device. ``with stream(s):``, or ``with s:``, puts what follows into it.

    priority: lower numbers go first. Raises DeviceError where the device is not there.
    """

    def __init__(self, device: Any = None, priority: int = 0, *, _own: Any = None) -> None:
        self._blocks: list[StreamContext] = []
        self.device = needed(device)
        with _backend.cupy().cuda.Device(self.device.index):
            own = _backend.cupy().cuda.Stream(non_blocking=True, priority=priority) if _own is None else _own
        self.own = own

    @property
    def cuda_stream(self) -> int:
        """The driver's handle."""
        return int(self.own.ptr)

    native_handle = cuda_stream

    @property
    def stream_id(self) -> int:
        """A number that no other stream of the device has: the driver's handle."""
        return self.cuda_stream

    @property
    def device_index(self) -> int:
        """The number of its device."""
        return self.device.index  # type: ignore[return-value]

    @property
    def device_type(self) -> int:
        """The kind of its device as DLPack numbers kinds: 1, which is CUDA."""
        return 1

    @property
    def priority(self) -> int:
        """What goes first: lower numbers, down to -5 on most devices; 0 unless it was asked for another."""
        with _backend.on(self.device):
            return int(_backend.cupy().cuda.runtime.streamGetPriority(self.cuda_stream))

    @staticmethod
    def priority_range() -> tuple[int, int]:
        """The least and the greatest priority that every device tells apart: (0, -1)."""
        needed()
        return 0, -1

    @property
    def _as_parameter_(self) -> ctypes.c_void_p:  # what ctypes hands a function of C
        return ctypes.c_void_p(self.cuda_stream)

    def __enter__(self) -> "Stream":
        self._blocks.append(StreamContext(self))
        self._blocks[-1].__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        self._blocks.pop().__exit__(*error)

    def __repr__(self) -> str:
        return f"Stream(device={str(self.device)!r}, cuda_stream={self.cuda_stream:#x})"

    def synchronize(self) -> None:
        """Wait until its work is done."""
        _backend.refuse_in_capture("Stream.synchronize waits for the device", "wait after the capture")
        if _backend.sync_debug_mode:
            _backend.say_wait("Stream.synchronize")
        self.own.synchronize()
        _backend.waited_for(self.cuda_stream)

    def query(self) -> bool:
        """Whether its work is done."""
        return bool(self.own.done)

    def wait_event(self, event: "Event") -> None:
        """Let what comes next wait until the work before a mark is done."""
        self.own.wait_event(event.own)

    def wait_stream(self, stream: "Stream") -> None:
        """Let what comes next wait until what is in another queue now is done."""
        self.wait_event(stream.record_event())

    def record_event(self, event: "Event | None" = None) -> "Event":
        """Put a mark into the queue."""
        if event is None:
            with _backend.on(self.device):
                event = Event()
        event.record(self)
        return event

    def __eq__(self, other: Any) -> bool:
        return isinstance(other, Stream) and (self.device, self.cuda_stream) == (
            other.device, other.cuda_stream)

    def __hash__(self) -> int:
        return hash((self.device, self.cuda_stream))


class ExternalStream(Stream):
    """A queue that another library made, by the driver's handle, which that library keeps alive.

    Raises DeviceError where the device is not there, TypeError for a handle that is no int.
    """

    def __init__(self, stream_ptr: int, device: Any = None) -> None:
        if not isinstance(stream_ptr, int) or isinstance(stream_ptr, bool):
            raise TypeError(f"ExternalStream: argument 'stream_ptr' must be an int, the handle of a queue, "
                            f"got {type(stream_ptr).__name__}")
        super().__init__(device, _own=_backend.cupy().cuda.Stream.from_external(_Handle(stream_ptr)))


class _Handle:
    """A handle as libraries hand queues on to each other."""

    def __init__(self, handle: int) -> None:
        self._handle = handle

    def __cuda_stream__(self) -> tuple[int, int]:
        return 0, self._handle


def get_stream_from_external(data_ptr: int, device: Any = None) -> Stream:
    """The queue of a handle that another library made: ``ExternalStream``."""
    return ExternalStream(data_ptr, device)


class Event:
    """A mark in a queue of work; two with ``enable_timing=True`` tell the time between them.

    external: in a graph a mark is a wait of one part for another, and none that is recorded anew with each
    replay; ValueError for True. Raises DeviceError without a GPU.
    """

    def __init__(self, enable_timing: bool = False, blocking: bool = False, interprocess: bool = False,
                 external: bool = False) -> None:
        if external:
            raise ValueError("Event: external=True is not known: CuPy records no marks that a replay of a "
                             "graph records again; put the mark around replay()")
        self._how = blocking, not enable_timing, interprocess
        self._make(needed().index)

    def _make(self, index: int | None) -> None:
        block, untimed, interprocess = self._how
        self._index, self._recorded = index, False
        self.own = _backend.cupy().cuda.Event(block=block, disable_timing=untimed, interprocess=interprocess)

    def record(self, stream: Stream | None = None) -> None:
        """Put it into a queue (default: the current one)."""
        index = _backend.index_of(Device("cuda")) if stream is None else stream.device.index
        if index != self._index:  # a mark is of one device
            with _backend.on(Device("cuda", index)):
                self._make(index)
        self.own.record(None if stream is None else stream.own)
        self._recorded = True

    @property
    def device(self) -> Device:
        """That of the queue it was put into last, or of where it was made."""
        return Device("cuda", self._index)

    @property
    def cuda_event(self) -> int:
        """The driver's handle."""
        return int(self.own.ptr)

    event_id = cuda_event

    def ipc_handle(self) -> bytes:
        """What another process makes the same mark of (``from_ipc_handle``); needs ``interprocess=True``.

        Raises ValueError without that.
        """
        if not self._how[2]:
            raise ValueError("Event.ipc_handle: made without interprocess=True, so that other processes "
                             "cannot see it")
        return bytes(_backend.cupy().cuda.runtime.ipcGetEventHandle(self.cuda_event))

    @classmethod
    def from_ipc_handle(cls, device: Any, handle: bytes) -> "Event":
        """The mark that ``ipc_handle`` of another process tells of; it tells no times."""
        with _backend.on(needed(device)):
            found = cls(interprocess=True)
            runtime = _backend.cupy().cuda.runtime
            there = runtime.ipcOpenEventHandle(handle)
            runtime.eventDestroy(found.own.ptr)
            found.own.ptr = there
        return found

    def wait(self, stream: Stream | None = None) -> None:
        """Let what comes next in a queue wait for it."""
        (current_stream() if stream is None else stream).wait_event(self)

    def synchronize(self) -> None:
        """Wait until the work before it is done."""
        _backend.refuse_in_capture("Event.synchronize waits for the device", "wait after the capture")
        if _backend.sync_debug_mode:
            _backend.say_wait("Event.synchronize")
        self.own.synchronize()

    def query(self) -> bool:
        """Whether the work before it is done."""
        return bool(self.own.done)

    def elapsed_time(self, end_event: "Event") -> float:
        """Milliseconds from this mark to a later one, which the device must have come by.

        Raises ValueError for marks without ``enable_timing=True``, or that are in no queue.
        """
        for event in (self, end_event):
            if event._how[1] or not event._recorded:
                raise ValueError("Event.elapsed_time: " + (
                    "both marks must be made with enable_timing=True" if event._how[1] else
                    "both marks must be put into a queue first: start.record(), work, end.record()"))
        return float(_backend.cupy().cuda.get_elapsed_time(self.own, end_event.own))


class StreamContext:
    """A block whose work goes into a queue, whose device is the current one there; nothing for None."""

    def __init__(self, stream: Stream | None) -> None:
        self.stream = stream

    def __enter__(self) -> None:
        if self.stream is not None:
            self._device = _backend.on(self.stream.device)
            self._device.__enter__()
            self.stream.own.__enter__()
            _backward.entered()

    def __exit__(self, *error: Any) -> None:
        if self.stream is not None:
            _backward.left()
            self.stream.own.__exit__(*error)
            self._device.__exit__(*error)


def stream(stream: Stream | None) -> StreamContext:
    """A block whose work goes into a queue; nothing for None."""
    return StreamContext(stream)


def current_stream(device: Any = None) -> Stream:
    """The queue that work goes into now; DeviceError without a GPU."""
    target = needed(device)
    return Stream(target, _own=_backend.cupy().cuda.get_current_stream(target.index))


def default_stream(device: Any = None) -> Stream:
    """The queue that every device has; DeviceError without a GPU."""
    target = needed(device)
    return Stream(target, _own=_backend.cupy().cuda.Stream.null)


def set_stream(stream: Stream | None) -> None:
    """Let work go into a queue, and to its device, from here on; nothing for None."""
    if stream is not None:
        _backend.use(stream.device)
        stream.own.use()
        _backward.chosen(bool(stream.cuda_stream))


def is_current_stream_capturing() -> bool:
    """Whether the queue is being recorded as a CUDA graph; DeviceError without a GPU."""
    return bool(current_stream().own.is_capturing())
