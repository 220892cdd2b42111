"""Stores: words that ranks leave for each other before they have met."""

import contextlib
import datetime
import fcntl
import socket
import struct
import threading
import time
from collections.abc import Callable
from typing import Any

from ..errors import DistributedError

_DEFAULT = datetime.timedelta(seconds=300)
_SIZES = struct.Struct("!cII")  # what is asked, bytes of the key, bytes of the value
_MAGIC = b"framework store\n"
_MOST = 1 << 28
_PAUSE = 0.01


def _bytes(value: Any) -> bytes:
    return value.encode() if isinstance(value, str) else bytes(value)


class Store:
    """Keys and values (bytes). ``get`` and ``wait`` wait until a key is there, up to ``timeout``."""

    def __init__(self, timeout: datetime.timedelta = _DEFAULT) -> None:
        self.timeout = timeout

    def set_timeout(self, timeout: datetime.timedelta) -> None:
        """How long to wait for a key."""
        self.timeout = timeout

    def set(self, key: str, value: str | bytes) -> None:
        """Put a value."""
        self._ask(b"s", key, _bytes(value))

    def get(self, key: str) -> bytes:
        """The value, when it is there; DistributedError if it does not come."""
        until = time.monotonic() + self.timeout.total_seconds()
        while (found := self._ask(b"g", key, b"")) is None:
            if time.monotonic() > until:
                raise DistributedError(f"{type(self).__name__}: waited {self.timeout.total_seconds():g} s "
                                       f"for the key {key!r}, which nobody has set")
            time.sleep(_PAUSE)
        return found

    def add(self, key: str, amount: int) -> int:
        """Add to the number of a key, 0 at first; the sum."""
        found = self._ask(b"a", key, str(int(amount)).encode())
        return int(found or b"0")

    def check(self, keys: list[str]) -> bool:
        """Whether all keys are there."""
        return all(self._ask(b"g", key, b"") is not None for key in keys)

    def wait(self, keys: list[str], timeout: datetime.timedelta | None = None) -> None:
        """Wait for keys."""
        before = self.timeout
        self.timeout = before if timeout is None else timeout
        try:
            for key in keys:
                self.get(key)
        finally:
            self.timeout = before

    def delete_key(self, key: str) -> bool:
        """Take a key away; whether it was there."""
        return self._ask(b"d", key, b"") is not None

    def num_keys(self) -> int:
        """How many keys there are."""
        return int(self._ask(b"n", "", b"") or b"0")

    def _ask(self, what: bytes, key: str, value: bytes) -> bytes | None:
        raise NotImplementedError(f"{type(self).__name__} must define _ask")


class _Table:
    """The words, and what may be asked."""

    def __init__(self) -> None:
        self.words: dict[str, bytes] = {}
        self.lock = threading.Lock()

    def answer(self, what: bytes, key: str, value: bytes) -> bytes | None:
        with self.lock:
            if what == b"s":
                self.words[key] = value
                return b""
            if what == b"a":
                total = int(self.words.get(key, b"0")) + int(value)
                self.words[key] = str(total).encode()
                return self.words[key]
            if what == b"d":
                return self.words.pop(key, None)
            if what == b"n":
                return str(len(self.words)).encode()
            return self.words.get(key)


class HashStore(Store):
    """A store within one process.

    >>> import framework.distributed as dist
    >>> store = dist.HashStore()
    >>> store.set("a", "1"); store.add("a", 2), store.get("a")
    (3, b'3')
    """

    def __init__(self) -> None:
        super().__init__()
        self._table = _Table()

    def _ask(self, what: bytes, key: str, value: bytes) -> bytes | None:
        return self._table.answer(what, key, value)


class PrefixStore(Store):
    """Another store, in which all keys begin with ``prefix``."""

    def __init__(self, prefix: str, store: Store) -> None:
        super().__init__(store.timeout)
        self.prefix, self.underlying_store = prefix, store

    def _ask(self, what: bytes, key: str, value: bytes) -> bytes | None:
        return self.underlying_store._ask(what, f"{self.prefix}/{key}" if key else key, value)


class FileStore(Store):
    """A store in a file that all ranks can lock, for as many processes as share a file system."""

    def __init__(self, file_name: str, world_size: int = -1) -> None:
        super().__init__()
        self.path = file_name

    def _ask(self, what: bytes, key: str, value: bytes) -> bytes | None:
        with open(self.path, "a+b") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            file.seek(0)
            data = file.read()
            if not _MAGIC.startswith(data[:len(_MAGIC)]):
                raise DistributedError(f"FileStore: {self.path!r} is a file of something else; give the "
                                       f"store a file of its own, which need not exist")
            table, good = self._read(data)
            before = table.words.get(key)
            result = table.answer(what, key, value)
            after = table.words.get(key)
            if after != before:
                file.truncate(good)  # what a process that was killed began to write
                word, name = after or b"", key.encode()
                sign = b"d" if after is None else b"s"
                file.write((b"" if good else _MAGIC) + _SIZES.pack(sign, len(name), len(word)) + name + word)
        return result

    def _read(self, data: bytes) -> tuple[_Table, int]:
        """What the changes in the file come to, and where the last whole one ends."""
        table, good, place = _Table(), 0, len(_MAGIC)
        while len(data) >= place:
            good = place
            if len(data) < place + _SIZES.size:
                break
            what, k, v = _SIZES.unpack_from(data, place)
            place += _SIZES.size + k + v
            if len(data) >= place:
                name = data[place - k - v:place - v].decode()
                table.answer(what, name, data[place - v:place])
        return table, good


class TCPStore(Store):
    """A store in one process (``is_master``), which others ask over TCP. Bytes only: nothing is unpickled.

    port 0 with is_master takes a free one: ``store.port``.
    """

    def __init__(self, host_name: str, port: int, world_size: int | None = None, is_master: bool = False,
                 timeout: datetime.timedelta = _DEFAULT, wait_for_workers: bool = True) -> None:
        super().__init__(timeout)
        self.host, self.port = host_name, port
        self._listener: socket.socket | None = None
        self._lock = threading.Lock()
        if is_master:
            self._table = _Table()
            self._listener = socket.create_server((host_name, port))
            self.port = self._listener.getsockname()[1]
            threading.Thread(target=_serve, args=(self._listener, self._table.answer), daemon=True).start()
        self._conn = self._connect()
        if world_size is not None and wait_for_workers:
            self.add("framework/there", 1)
            until = time.monotonic() + timeout.total_seconds()
            while (here := self.add("framework/there", 0)) < world_size:
                if time.monotonic() > until:
                    raise DistributedError(f"TCPStore: {here} of {world_size} processes have come to "
                                           f"{host_name}:{self.port} within {timeout.total_seconds():g} s")
                time.sleep(_PAUSE)

    def _connect(self) -> socket.socket:
        until = time.monotonic() + self.timeout.total_seconds()
        while True:
            try:
                return socket.create_connection((self.host, self.port), self.timeout.total_seconds())
            except ConnectionRefusedError:
                if time.monotonic() > until:
                    raise DistributedError(f"TCPStore: nobody answers at {self.host}:{self.port}") from None
                time.sleep(_PAUSE)

    def _ask(self, what: bytes, key: str, value: bytes) -> bytes | None:
        with self._lock:
            try:
                _put(self._conn, what, key.encode(), value)
                return _take(self._conn)
            except BaseException as error:
                self._conn.close()  # an answer that comes late would be taken for that of the next question
                if not isinstance(error, OSError):
                    raise
                raise DistributedError(f"TCPStore: {self.host}:{self.port} gives no answer ({error}); this "
                                       f"store cannot be used any more") from error

    def __del__(self) -> None:
        for end in (getattr(self, "_conn", None), getattr(self, "_listener", None)):
            if end is not None:
                with contextlib.suppress(OSError):
                    end.shutdown(socket.SHUT_RDWR)
                end.close()


def _put(conn: socket.socket, what: bytes, key: bytes, value: bytes) -> None:
    conn.sendall(_SIZES.pack(what, len(key), len(value)) + key + value)


def _exactly(conn: socket.socket, size: int) -> bytes:
    data = bytearray()
    while len(data) < size:
        piece = conn.recv(min(size - len(data), 1 << 20))
        if not piece:
            raise ConnectionError("the store's other end is closed")
        data += piece
    return bytes(data)


def _take(conn: socket.socket) -> bytes | None:
    what, _, size = _SIZES.unpack(_exactly(conn, _SIZES.size))
    data = _exactly(conn, size)
    return data if what == b"+" else None


def _serve(listener: socket.socket, answer: Callable) -> None:
    while True:
        try:
            conn, _ = listener.accept()
        except OSError:
            return
        threading.Thread(target=_talk, args=(conn, answer), daemon=True).start()


def _talk(conn: socket.socket, answer: Callable) -> None:
    with conn, contextlib.suppress(OSError, ValueError, struct.error):
        while True:
            what, k, v = _SIZES.unpack(_exactly(conn, _SIZES.size))
            if k + v > _MOST:
                return
            key, value = _exactly(conn, k).decode(), _exactly(conn, v)
            found = answer(what, key, value)
            _put(conn, b"-" if found is None else b"+", b"", found or b"")


