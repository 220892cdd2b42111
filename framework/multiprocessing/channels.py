"""Connections and queues on which the descriptors of shared memory travel with the messages.

They are those of ``multiprocessing`` over Unix sockets: the kernel carries a message's descriptors, so a
tensor arrives even if its sender is gone by then. Where sockets cannot carry descriptors (Windows) they
are multiprocessing's own.
"""

import array
import errno
import socket
import struct
import threading
import time
from io import BytesIO
from multiprocessing import connection, queues, reduction
from typing import Any

from ..backends.segments import Segment
from .reduction import Descriptors, arrived, descriptor_of, dumps

CARRIES = hasattr(socket, "AF_UNIX") and hasattr(socket, "SCM_RIGHTS")

_HEADER = struct.Struct("!QI")  # bytes of the message, descriptors that come with it
_MOST = 250  # descriptors in one go: the kernel takes 253
CLOSED_ON_EXEC = getattr(socket, "MSG_CMSG_CLOEXEC", 0)
_PAUSE = 0.002

_outbox = threading.local()


class Parcel:
    """An object, pickled by the thread that puts it; it unpickles as the object itself."""

    def __init__(self, obj: Any) -> None:
        self.data, self.segments = dumps(obj)

    def __reduce__(self) -> tuple:
        _outbox.segments = self.segments  # for the send_bytes that follows in this thread
        return reduction.ForkingPickler.loads, (bytes(self.data),)


_Base: Any = connection.Connection


class Connection(_Base):
    """One end of a ``Pipe``: a ``multiprocessing.connection.Connection`` that carries descriptors too."""

    def __init__(self, handle: int, readable: bool = True, writable: bool = True) -> None:
        super().__init__(handle, readable, writable)
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM, 0, handle)
        self._socket.setblocking(True)

    def _close(self) -> None:
        self._socket.close()

    def send(self, obj: Any) -> None:
        """Send a (picklable) object."""
        self._check_closed()
        self._check_writable()
        self._send_message(*dumps(obj))

    def _send_bytes(self, buf: Any) -> None:
        segments, _outbox.segments = getattr(_outbox, "segments", []), []
        self._send_message(buf, segments)

    def _send_message(self, data: Any, segments: list[Segment]) -> None:
        header = _HEADER.pack(len(data), len(segments))
        if not segments:
            self._send(header + data if len(data) <= 1 << 14 else header)
        else:
            descriptors = [descriptor_of(segment) for segment in segments]
            self._send_descriptors(header, descriptors[:_MOST])
            for start in range(_MOST, len(descriptors), _MOST):
                self._send_descriptors(b"+", descriptors[start:start + _MOST])
        if segments or len(data) > 1 << 14:
            self._send(data)

    def _send_descriptors(self, data: bytes, descriptors: list[int]) -> None:
        ancillary = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", descriptors))]
        while True:
            try:
                sent = self._socket.sendmsg([data], ancillary)
            except OSError as error:
                if error.errno != errno.ETOOMANYREFS:
                    raise
                time.sleep(_PAUSE)  # as many are under way as one user may have: wait until some are read
                continue
            if sent < len(data):
                self._send(data[sent:])
            return

    def _recv_bytes(self, maxsize: int | None = None) -> BytesIO | None:
        descriptors = Descriptors()
        header = self._recv_descriptors(_HEADER.size, descriptors)
        size, count = _HEADER.unpack(header)
        descriptors.pad(min(count, _MOST))
        for upto in range(_MOST, count, _MOST):
            self._recv_descriptors(1, descriptors)
            descriptors.pad(min(count, upto + _MOST))
        arrived(descriptors)
        if maxsize is not None and size > maxsize:
            return None
        return self._recv(size) if size else BytesIO()

    def _recv_descriptors(self, size: int, descriptors: Descriptors) -> bytes:
        data = b""
        while len(data) < size:
            piece, ancillary, _, _ = self._socket.recvmsg(
                size - len(data), socket.CMSG_SPACE(4 * _MOST), CLOSED_ON_EXEC)
            for level, kind, content in ancillary:
                if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
                    descriptors.extend(array.array("i", content[:len(content) // 4 * 4]))
            if not piece:
                if data:
                    raise OSError("got end of file during message")
                raise EOFError
            data += piece
        return data


def Pipe(duplex: bool = True) -> tuple[Any, Any]:
    """Two connected ends; with ``duplex=False`` the first only receives and the second only sends."""
    if not CARRIES:
        return connection.Pipe(duplex)
    first, second = socket.socketpair()
    return Connection(first.detach(), writable=duplex), Connection(second.detach(), readable=duplex)


class _Parcels:
    """What both kinds of buffered queue change: the pipe, and who pickles.

    An object is pickled by ``put``, not later by the queue's thread: what is put is what arrives,
    and an object that cannot be pickled is an error of ``put``.
    """

    def __init__(self, maxsize: int = 0, *, ctx: Any) -> None:
        super().__init__(maxsize, ctx=ctx)  # type: ignore[call-arg]
        self._reader: Any
        self._writer: Any
        self._reader.close()
        self._writer.close()
        self._reader, self._writer = Pipe(duplex=False)
        self._reset()  # type: ignore[attr-defined]

    def put(self, obj: Any, block: bool = True, timeout: float | None = None) -> None:
        """Put an object on the queue; tensors in it move to shared memory."""
        super().put(Parcel(obj), block, timeout)  # type: ignore[misc]


class Queue(_Parcels, queues.Queue):
    """``multiprocessing.Queue``, on which tensors are shared."""


class JoinableQueue(_Parcels, queues.JoinableQueue):
    """``multiprocessing.JoinableQueue``, on which tensors are shared."""


class SimpleQueue(queues.SimpleQueue):
    """``multiprocessing.SimpleQueue``, on which tensors are shared."""

    def __init__(self, *, ctx: Any) -> None:
        super().__init__(ctx=ctx)
        self._reader.close()
        self._writer.close()
        self._reader, self._writer = Pipe(duplex=False)
        self._poll = self._reader.poll

    def put(self, obj: Any) -> None:
        """Put an object on the queue; tensors in it move to shared memory."""
        super().put(Parcel(obj))


def _reduce_connection(conn: Connection) -> tuple:
    return _rebuild_connection, (reduction.DupFd(conn.fileno()), conn.readable, conn.writable)


def _rebuild_connection(descriptor: Any, readable: bool, writable: bool) -> Connection:
    return Connection(descriptor.detach(), readable, writable)


if CARRIES:
    reduction.register(Connection, _reduce_connection)
