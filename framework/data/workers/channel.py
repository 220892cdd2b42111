"""Messages over one Unix socket, with descriptors beside them.

The main process must never block on a worker, neither in reading (a worker may die, or be stopped, in
the middle of a message) nor in writing (the worker may be writing itself): its end keeps what could not be
sent yet, and what has not arrived whole. The worker's end blocks.
"""

import os
import socket
import struct
import weakref
from collections import deque
from contextlib import suppress
from typing import Any

_HEAD = struct.Struct("<Q")
_CHUNK = 1 << 16
_CLOEXEC = getattr(socket, "MSG_CMSG_CLOEXEC", 0)

# every open end of this process: a forked worker closes its copies of those of its siblings
ends: "weakref.WeakSet[Channel]" = weakref.WeakSet()


class Channel:
    """One end. ``send`` takes bytes, ``receive`` gives those that have arrived; ``closed`` after the end."""

    def __init__(self, end: socket.socket, blocking: bool) -> None:
        end.setblocking(blocking)
        self.socket, self.closed = end, False
        self._out: deque[tuple[memoryview, list[int]]] = deque()
        self._in = bytearray()
        self._fds: deque[int] = deque()
        ends.add(self)

    @property
    def waiting(self) -> bool:
        """Whether something is still to be sent."""
        return bool(self._out)

    def send(self, message: bytes, fds: Any = ()) -> None:
        """Send, or keep for ``flush`` what the other side has no room for yet."""
        self._out.append((memoryview(_HEAD.pack(len(message)) + message), list(fds)))
        self.flush()

    def flush(self) -> None:
        """Send what is left, as far as it goes without blocking."""
        try:
            while self._out:
                data, fds = self._out[0]
                if fds:
                    sent = socket.send_fds(self.socket, [data], fds)
                else:
                    sent = self.socket.send(data)
                self._out[0] = data[sent:], []
                if sent == len(data):
                    self._out.popleft()
        except BlockingIOError:
            pass
        except (BrokenPipeError, ConnectionResetError):
            self._out.clear()  # the reader is gone; ``receive`` tells

    def receive(self) -> list[bytes]:
        """The messages that are here whole; a blocking end waits for one unless the other is closed."""
        messages = self._whole()
        while not self.closed and not (messages and self.socket.gettimeout() is None):
            try:
                data, fds, _, _ = socket.recv_fds(self.socket, max(_CHUNK, self._missing()), 4, _CLOEXEC)
            except BlockingIOError:
                break
            except ConnectionResetError:
                data, fds = b"", []
            self._fds.extend(fds)
            self.closed = not data
            self._in += data
            messages += self._whole()
            if len(data) < _CHUNK and self.socket.gettimeout() is not None:
                break
        return messages

    def descriptor(self, inode: int) -> int | None:
        """The descriptor of this file that came along, or None if this process had no room for it."""
        for fd in self._fds:
            if os.fstat(fd).st_ino == inode:
                self._fds.remove(fd)
                return fd
        return None

    def _missing(self) -> int:
        if len(self._in) < _HEAD.size:
            return 0
        return _HEAD.unpack_from(self._in)[0] + _HEAD.size - len(self._in)

    def _whole(self) -> list[bytes]:
        found, start = [], 0
        while len(self._in) - start >= _HEAD.size:
            stop = start + _HEAD.size + _HEAD.unpack_from(self._in, start)[0]
            if len(self._in) < stop:
                break
            found.append(bytes(memoryview(self._in)[start + _HEAD.size:stop]))
            start = stop
        if start:
            del self._in[:start]
        return found

    def close(self, end: bool = False) -> None:
        """Give the descriptors back; ``end``: also for other processes that hold a copy of this end."""
        if end:
            with suppress(OSError):
                self.socket.shutdown(socket.SHUT_RDWR)
        self.closed = True
        self.socket.close()
        while self._fds:
            os.close(self._fds.popleft())
