"""Reading another rank's private memory: one copy by the kernel, where slots need two.

Linux has ``process_vm_readv`` for processes of one user. Where Yama restricts it, a rank lets its launcher's
descendants read; where something forbids it (containers may), ``allowed`` says so, and slots are used.
"""

import ctypes
import os
from typing import Any

import numpy as np

from ..errors import DistributedError

_PR_SET_PTRACER = 0x59616D61
_MAGIC = 0x6672616D65776F72


class _Piece(ctypes.Structure):
    _fields_ = [("base", ctypes.c_void_p), ("size", ctypes.c_size_t)]


class Reader:
    """What this rank can read of its peers, whose process ids are ``pids``."""

    def __init__(self, pids: list[int]) -> None:
        self._pids = pids
        self.word = np.array([_MAGIC], np.int64)  # what peers read to find out whether they may
        libc = ctypes.CDLL(None, use_errno=True)
        self._read: Any = getattr(libc, "process_vm_readv", None)
        if self._read is not None:
            self._read.restype = ctypes.c_ssize_t
            self._read.argtypes = (ctypes.c_int, ctypes.c_void_p, ctypes.c_ulong, ctypes.c_void_p,
                                   ctypes.c_ulong, ctypes.c_ulong)
            libc.prctl(_PR_SET_PTRACER, ctypes.c_ulong(os.getppid()), 0, 0, 0)

    def allowed(self, addresses: list[int]) -> bool:
        """Whether this rank could read the word of every other."""
        for rank, address in enumerate(addresses):
            found = np.zeros(1, np.int64)
            if self._read is None or self._got(rank, address, found) != 8 or found[0] != _MAGIC:
                return False
        return True

    def _got(self, rank: int, address: int, out: np.ndarray) -> int:
        ours = _Piece(out.ctypes.data, out.nbytes)
        theirs = _Piece(address, out.nbytes)
        return self._read(self._pids[rank], ctypes.byref(ours), 1, ctypes.byref(theirs), 1, 0)

    def read(self, rank: int, address: int, out: np.ndarray) -> None:
        """Fill ``out`` from ``address`` of a rank's memory."""
        done, whole = 0, out.view(np.uint8)
        while done < whole.size:
            got = self._got(rank, address + done, whole[done:])
            if got <= 0:
                raise DistributedError(f"reading the memory of rank {rank} failed: "
                                       f"{os.strerror(ctypes.get_errno())}; has it ended?")
            done += got
