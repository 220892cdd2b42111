"""Segments: memory that processes share, without a name that could be left behind.

A segment is an anonymous file (``memfd_create``) mapped into this process. Another process gets it by
descriptor: inherited over fork, or passed by spawn, forkserver or a Unix socket. The kernel frees it when
the last descriptor and the last mapping are gone, however the processes ended. It counts as memory of
the processes (and of their cgroup); the size of /dev/shm does not limit it.
"""

import ctypes
import errno
import math
import mmap
import os
from collections.abc import Sequence
from typing import Any
from weakref import WeakValueDictionary

import numpy as np

from ..errors import SharedMemoryError

_NO_SPACE = (errno.ENOSPC, errno.ENOMEM, errno.EFBIG, errno.EDQUOT)
_FULL_TABLE = (errno.EMFILE, errno.ENFILE)
_ZEROS = 1 << 20  # bytes written at a time where the system has no posix_fallocate
_CGROUP = "/sys/fs/cgroup"
_LARGE = 1 << 20  # below this it is not worth asking how much memory there is


class _Mapping:
    """Mapped memory and its descriptor, given back with the object.

    It is apart from the Segment, whose weak references end before this does: nobody can find a segment
    and keep it while another thread is about to unmap it.
    """

    __slots__ = ("address", "size", "fd")

    def __init__(self, fd: int, size: int) -> None:
        self.address, self.size, self.fd = _map(fd, size), size, fd

    def close(self) -> None:
        """Give the descriptor back."""
        fd, self.fd = self.fd, -1
        if fd >= 0:
            os.close(fd)

    def __del__(self) -> None:
        if hasattr(self, "fd"):
            _libc.munmap(self.address, self.size)
            self.close()


class Segment:
    """``size`` bytes of zeros that processes can share; made by ``create``, or by ``attach`` elsewhere.

    fd: the descriptor, to be passed on; None after ``close``. size: usable bytes. Arrays made by ``array``
    keep the mapping alive; it goes with the last of them and the Segment itself, and nothing needs
    to be closed by hand. A forked child has the same segment under the same object.

    >>> from framework.multiprocessing.segments import Segment
    >>> segment = Segment.create(64)
    >>> there = Segment.attach(os.dup(segment.fd))  # as another process would
    >>> segment.array("int32", (2, 3))[:] = 7
    >>> there.array("int32", (6,)).tolist()
    [7, 7, 7, 7, 7, 7]
    """

    __slots__ = ("size", "key", "_mapping", "__weakref__")

    def __init__(self, fd: int, size: int, key: bytes) -> None:
        """Map ``size`` bytes of ``fd`` and own it from here on; use ``create`` or ``attach``."""
        self.size, self.key = size, key
        self._mapping = _Mapping(fd, max(size, 1))
        if key:
            _live[key] = self

    @property
    def fd(self) -> int | None:
        """The descriptor, or None if it was given back."""
        return self._mapping.fd if self._mapping.fd >= 0 else None

    @classmethod
    def create(cls, size: int, *, directory: str | None = None, reserve: bool = True) -> "Segment":
        """A new segment of zeros.

        directory: where its unlinked file lies, instead of anonymous memory. reserve: set all of it
        aside now; without, ``reserve`` must be called for a part before it is written. Raises
        SharedMemoryError (an OSError) with the bytes needed and available if there is no room, or if
        descriptors have run out.
        """
        if size < 0:
            raise ValueError(f"Segment.create: size must not be negative, got {size}")
        fd = _anonymous_file(directory)
        try:
            os.ftruncate(fd, max(size, 1))
            if reserve:
                _reserve(fd, 0, max(size, 1), directory)
        except BaseException:
            os.close(fd)
            raise
        return cls(fd, size, os.urandom(16))

    @classmethod
    def attach(cls, fd: int, key: bytes = b"") -> "Segment":
        """The segment behind a descriptor received from another process; it owns ``fd`` from here on.

        key: the ``key`` of the other's Segment; where this process has that segment already, it is
        returned itself, so that memory shared twice is one memory here too.
        """
        known = cls.known(key)
        if known is not None:
            os.close(fd)
            return known
        return cls(fd, os.fstat(fd).st_size, key)

    @staticmethod
    def known(key: bytes) -> "Segment | None":
        """The segment of that ``key``, if this process has it."""
        return _live.get(key)

    def reserve(self, offset: int, size: int) -> None:
        """Set ``size`` bytes aside, of a segment made with ``reserve=False``."""
        if self.fd is None:
            raise SharedMemoryError(errno.EBADF, "Segment.reserve: the descriptor was closed")
        _reserve(self.fd, offset, size, None)

    def array(self, dtype: Any, shape: int | Sequence[int], offset: int = 0,
              strides: Sequence[int] | None = None) -> np.ndarray:
        """An array over the memory from byte ``offset`` on, which lives as long as the array.

        Raises ValueError if it would reach beyond the segment.
        """
        dtype = np.dtype(dtype)
        shape = (shape,) if isinstance(shape, int) else tuple(shape)
        if dtype.hasobject:
            raise TypeError(f"Segment.array: {dtype} holds Python objects, which cannot be shared")
        if strides is None and not 0 <= offset <= self.size - math.prod(shape) * dtype.itemsize:
            raise ValueError(f"Segment.array: {math.prod(shape) * dtype.itemsize} bytes at offset {offset} "
                             f"do not lie within a segment of {self.size} bytes")
        return np.ndarray(shape, dtype, np.asarray(self), offset, strides)

    @property
    def __array_interface__(self) -> dict[str, Any]:
        return {"version": 3, "shape": (self.size,), "typestr": "|u1", "data": (self._mapping.address, False)}

    def offset_of(self, array: np.ndarray) -> int:
        """The byte at which ``array``'s first element lies."""
        return array.__array_interface__["data"][0] - self._mapping.address

    def close(self) -> None:
        """Give the descriptor back; the memory stays while this object or an array on it lives."""
        self._mapping.close()

    def __repr__(self) -> str:
        return f"Segment({self.size} bytes, fd={self.fd})"


_live: "WeakValueDictionary[bytes, Segment]" = WeakValueDictionary()


def owner_of(array: np.ndarray) -> np.ndarray:
    """The array whose memory ``array`` is a part of, itself if of none."""
    while True:
        base: Any = array.base
        if not isinstance(base, np.ndarray):
            base = getattr(base, "base", None)  # what as_strided puts between an array and its view
        if not isinstance(base, np.ndarray):
            return array
        array = base


def segment_of(array: np.ndarray) -> Segment | None:
    """The segment that ``array`` lies in, if it lies in one."""
    base = owner_of(array).base
    return base if isinstance(base, Segment) else None


# -- the system ----------------------------------------------------------------------------------

_libc: Any = None


def _map(fd: int, size: int) -> int:
    address = _system().mmap(None, size, mmap.PROT_READ | mmap.PROT_WRITE, mmap.MAP_SHARED, fd, 0)
    if address in (None, ctypes.c_void_p(-1).value):
        code = ctypes.get_errno()
        os.close(fd)
        raise SharedMemoryError(code, f"shared memory: mapping {size} bytes failed: {os.strerror(code)}"
                                + (" (ulimit -v limits their size, sysctl vm.max_map_count their number)"
                                   if code == errno.ENOMEM else ""))
    return address


def _system() -> Any:
    """The C library, whose ``mmap`` needs no second descriptor as that of Python 3.11 and 3.12 does."""
    global _libc
    if _libc is None:
        if os.name != "posix":
            raise SharedMemoryError(errno.ENOSYS, "shared memory segments need a POSIX system; on Windows "
                                    "tensors cannot be shared between processes")
        libc = ctypes.CDLL(None, use_errno=True)
        libc.mmap.restype = ctypes.c_void_p
        libc.mmap.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int,
                              ctypes.c_int64)
        libc.munmap.argtypes = (ctypes.c_void_p, ctypes.c_size_t)
        _libc = libc
    return _libc


def _anonymous_file(directory: str | None) -> int:
    import tempfile  # takes a while to import, and few programs share memory
    _system()
    try:
        if directory is None and hasattr(os, "memfd_create"):
            return os.memfd_create("framework")
        folder = directory or ("/dev/shm" if os.path.isdir("/dev/shm") else tempfile.gettempdir())
        if hasattr(os, "O_TMPFILE"):
            return os.open(folder, os.O_TMPFILE | os.O_RDWR | os.O_CLOEXEC, 0o600)
        fd, name = tempfile.mkstemp(dir=folder)
        os.unlink(name)
        return fd
    except OSError as error:
        if error.errno in _FULL_TABLE:
            raise _too_many(error) from error
        raise


def _too_many(error: OSError) -> SharedMemoryError:
    return SharedMemoryError(error.errno, f"shared memory: no file descriptor is left ({error.strerror}); a "
                             f"shared segment needs one: raise the limit (ulimit -n), or keep fewer")


def _reserve(fd: int, offset: int, size: int, directory: str | None) -> None:
    """Back bytes of the file by real memory now: without it a full system kills by SIGBUS later."""
    room = available(directory) if size >= _LARGE else None
    if room is not None and size > room:
        raise _no_room(errno.ENOSPC, size, room)
    try:
        if hasattr(os, "posix_fallocate"):
            os.posix_fallocate(fd, offset, size)
        else:
            for start in range(offset, offset + size, _ZEROS):
                os.pwrite(fd, bytes(min(_ZEROS, offset + size - start)), start)
    except OSError as error:
        if error.errno in _NO_SPACE:
            raise _no_room(error.errno, size, available(directory)) from error
        raise


def _no_room(code: int, needed: int, room: int | None) -> SharedMemoryError:
    return SharedMemoryError(code, f"shared memory: {needed} bytes are needed, "
                             f"{'an unknown number' if room is None else room} available")


def available(directory: str | None = None) -> int | None:
    """Bytes that a new segment may take: of the directory's file system, or of memory and cgroup.

    None where the system does not say.
    """
    if directory is not None:
        stat = os.statvfs(directory)
        return stat.f_bavail * stat.f_frsize
    memory = _words("/proc/meminfo").get("MemAvailable:")
    rooms = [] if memory is None else [memory * 1024]
    for home, limit, used in (("", "memory.max", "memory.current"),
                              ("memory/", "memory.limit_in_bytes", "memory.usage_in_bytes")):
        most, now = (_number(f"{_CGROUP}/{home}{name}") for name in (limit, used))
        if most is not None and now is not None:
            usage = _words(f"{_CGROUP}/{home}memory.stat")
            cache = usage.get("inactive_file", 0) + usage.get("active_file", 0)
            rooms.append(max(most - now + cache, 0))
    return min(rooms, default=None)


def _words(path: str) -> dict[str, int]:
    """First and second word of each line of a file of the kernel's; nothing where there is no file."""
    lines = (line.split() for line in _text(path).splitlines())
    return {words[0]: int(words[1]) for words in lines if len(words) > 1 and words[1].isdigit()}


def _number(path: str) -> int | None:
    text = _text(path).strip()
    return int(text) if text.isdigit() else None


def _text(path: str) -> str:
    try:
        with open(path) as file:
            return file.read()
    except OSError:
        return ""
