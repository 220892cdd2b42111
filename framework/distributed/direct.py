"""Another rank's private memory: one copy by the kernel each way, where slots need two.

Linux has ``process_vm_readv`` and ``process_vm_writev`` for processes of one user. Where Yama restricts
them, a rank lets its launcher's descendants do so; where something forbids it (containers may), ``allowed``
says so, and slots are used.
"""

import ctypes
import os
from typing import Any

import numpy as np

from ..errors import DistributedError

_PR_SET_PTRACER = 0x59616D61
_MAGIC = 0x6672616D65776F72
_READ, _WRITE = 0, 1


class _Piece(ctypes.Structure):
    _fields_ = [("base", ctypes.c_void_p), ("size", ctypes.c_size_t)]


class Reach:
    """What this rank can read and write of its peers, whose process ids are ``pids``."""

    def __init__(self, pids: list[int]) -> None:
        self._pids = pids
        self.word = np.array([_MAGIC], np.int64)  # what peers read to find out whether they may
        libc = ctypes.CDLL(None, use_errno=True)
        self._calls: list[Any] = [getattr(libc, f"process_vm_{name}v", None) for name in ("read", "write")]
        for call in self._calls:
            if call is not None:
                call.restype = ctypes.c_ssize_t
                call.argtypes = (ctypes.c_int, ctypes.c_void_p, ctypes.c_ulong, ctypes.c_void_p,
                                 ctypes.c_ulong, ctypes.c_ulong)
        if None not in self._calls:
            libc.prctl(_PR_SET_PTRACER, ctypes.c_ulong(os.getppid()), 0, 0, 0)

    def allowed(self, addresses: list[int]) -> bool:
        """Whether this rank could read and write the word of every other, given where they are."""
        for rank, address in enumerate(addresses):
            found = np.zeros(1, np.int64)
            if None in self._calls or self._moved(_READ, rank, address, found) != 8 or found[0] != _MAGIC:
                return False
            if self._moved(_WRITE, rank, address, found) != 8:
                return False
        return True

    def _moved(self, call: int, rank: int, address: int, here: np.ndarray) -> int:
        ours = _Piece(here.ctypes.data, here.nbytes)
        theirs = _Piece(address, here.nbytes)
        return self._calls[call](self._pids[rank], ctypes.byref(ours), 1, ctypes.byref(theirs), 1, 0)

    def read(self, rank: int, address: int, out: np.ndarray) -> None:
        """Fill ``out`` from ``address`` of a rank's memory."""
        self._all(_READ, rank, address, out)

    def write(self, rank: int, address: int, numbers: np.ndarray) -> None:
        """Put ``numbers`` at ``address`` of a rank's memory."""
        self._all(_WRITE, rank, address, numbers)

    def _all(self, call: int, rank: int, address: int, here: np.ndarray) -> None:
        done, whole = 0, here.view(np.uint8)
        while done < whole.size:
            moved = self._moved(call, rank, address + done, whole[done:])
            if moved <= 0:
                raise DistributedError(f"{('reading', 'writing')[call]} the memory of rank {rank} failed: "
                                       f"{os.strerror(ctypes.get_errno())}; has it ended?")
            done += moved
