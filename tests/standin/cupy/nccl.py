"""A stand-in for ``cupy.cuda.nccl``: ranks are processes that send each other the bytes at the pointers.

It refuses what NCCL refuses (unknown dtypes, a wrong number of arguments) and lets messages pass only between
``groupStart`` and ``groupEnd`` or alone, as NCCL does. It says nothing about speed.
"""

import ctypes
import os
import queue
import threading
import time
from multiprocessing.connection import Client, Listener
from typing import Any

import numpy as _np

available = True
_DTYPES = ["int8", "uint8", "int32", "uint32", "int64", "uint64", "float16", "float32", "float64", "bfloat16"]
for _i, _name in enumerate(_DTYPES):
    globals()[f"NCCL_{_name.upper()}"] = _i
NCCL_SUM, NCCL_PROD, NCCL_MAX, NCCL_MIN, NCCL_AVG = range(5)
_FUNCTIONS = [_np.add, _np.multiply, _np.maximum, _np.minimum, _np.add]


class NcclError(RuntimeError):
    """What NCCL raises."""


def get_version() -> int:
    return 23203


def get_unique_id() -> bytes:
    return os.urandom(128)


def groupStart() -> None:
    """Messages start together anyway: sending waits for nobody here."""


def groupEnd() -> None:
    """See groupStart."""


def _dtype(kind: int) -> _np.dtype:
    if not 0 <= kind < len(_DTYPES):
        raise NcclError("NCCL_ERROR_INVALID_ARGUMENT: invalid argument")
    name = _DTYPES[kind]
    if name == "bfloat16":
        import ml_dtypes

        return _np.dtype(ml_dtypes.bfloat16)
    return _np.dtype(name)


def _at(ptr: int, count: int, kind: int) -> _np.ndarray:
    dtype = _dtype(kind)
    buffer = (ctypes.c_char * (count * dtype.itemsize)).from_address(ptr)
    return _np.frombuffer(buffer, dtype)


class NcclCommunicator:
    """Rank ``rank`` of ``ndev``."""

    def __init__(self, ndev: int, commId: bytes, rank: int) -> None:
        if type(commId) is not bytes:  # since CuPy 14
            raise TypeError(f"Argument 'commId' has incorrect type (expected bytes, got {type(commId)})")
        if len(commId) != 128:
            raise ValueError(f"commId length {len(commId)} != 128.")
        self._n, self._rank = ndev, rank
        self._name = commId[:12].hex()
        self._in: list[queue.Queue] = [queue.Queue() for _ in range(ndev)]
        self._out: dict[int, Any] = {}
        self._listener = Listener(f"\0nccl-{self._name}-{rank}", "AF_UNIX", backlog=ndev)
        threading.Thread(target=self._accept, daemon=True).start()
        self._all(b"")

    def _accept(self) -> None:
        for _ in range(self._n - 1):
            try:
                conn = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._listen, args=(conn,), daemon=True).start()

    def _listen(self, conn: Any) -> None:
        try:
            source = conn.recv()
            while True:
                self._in[source].put(conn.recv_bytes())
        except (EOFError, OSError):
            pass

    def _put(self, peer: int, data: bytes) -> None:
        if peer not in self._out:
            until = time.monotonic() + 20
            while True:
                try:
                    self._out[peer] = Client(f"\0nccl-{self._name}-{peer}", "AF_UNIX")
                    break
                except (ConnectionRefusedError, FileNotFoundError):
                    if time.monotonic() > until:
                        raise NcclError("NCCL_ERROR_SYSTEM_ERROR: unhandled system error") from None
                    time.sleep(0.002)
            self._out[peer].send(self._rank)
        self._out[peer].send_bytes(data)

    def _all(self, data: bytes) -> list[bytes]:
        for peer in range(self._n):
            if peer != self._rank:
                self._put(peer, data)
        return [data if r == self._rank else self._in[r].get(timeout=30) for r in range(self._n)]

    def _reduced(self, ptr: int, count: int, kind: int, op: int) -> _np.ndarray:
        parts = [_np.frombuffer(b, _dtype(kind)) for b in self._all(_at(ptr, count, kind).tobytes())]
        total = parts[0].astype(_np.float32) if parts[0].dtype.itemsize == 2 else parts[0].copy()
        for part in parts[1:]:
            total = _FUNCTIONS[op](total, part)
        return (total / self._n if op == NCCL_AVG else total).astype(parts[0].dtype)

    def device_id(self) -> int:
        return 0

    def rank_id(self) -> int:
        return self._rank

    def allReduce(self, sendbuf: int, recvbuf: int, count: int, datatype: int, op: int, stream: int) -> None:
        _at(recvbuf, count, datatype)[:] = self._reduced(sendbuf, count, datatype, op)

    def reduce(self, sendbuf: int, recvbuf: int, count: int, datatype: int, op: int, root: int,
               stream: int) -> None:
        total = self._reduced(sendbuf, count, datatype, op)
        if root == self._rank:
            _at(recvbuf, count, datatype)[:] = total

    def broadcast(self, sendbuf: int, recvbuf: int, count: int, datatype: int, root: int,
                  stream: int) -> None:
        data = self._all(_at(sendbuf, count, datatype).tobytes())[root]
        _at(recvbuf, count, datatype)[:] = _np.frombuffer(data, _dtype(datatype))

    def allGather(self, sendbuf: int, recvbuf: int, count: int, datatype: int, stream: int) -> None:
        data = b"".join(self._all(_at(sendbuf, count, datatype).tobytes()))
        _at(recvbuf, count * self._n, datatype)[:] = _np.frombuffer(data, _dtype(datatype))

    def reduceScatter(self, sendbuf: int, recvbuf: int, recvcount: int, datatype: int, op: int,
                      stream: int) -> None:
        total = self._reduced(sendbuf, recvcount * self._n, datatype, op)
        start = self._rank * recvcount
        _at(recvbuf, recvcount, datatype)[:] = total[start:start + recvcount]

    def send(self, sendbuf: int, count: int, datatype: int, peer: int, stream: int) -> None:
        self._put(peer, _at(sendbuf, count, datatype).tobytes())

    def recv(self, recvbuf: int, count: int, datatype: int, peer: int, stream: int) -> None:
        data = self._in[peer].get(timeout=30)
        _at(recvbuf, count, datatype)[:] = _np.frombuffer(data, _dtype(datatype))

    def abort(self) -> None:
        self.destroy()

    def destroy(self) -> None:
        self._listener.close()
        for conn in self._out.values():
            conn.close()
