"""The backend of GPUs: NCCL, by ``cupy.cuda.nccl``; headers and meetings go over the shared memory of the
host.

All ranks are on one machine, a GPU each. Every call first meets on the board, where calls are compared and
deadlines and deaths are noticed, and only then is put on the stream of the device. A group that fails aborts
its communicator, the only way out of a kernel that waits for a rank that is gone.
"""

from typing import Any

import numpy as np

from ..backends import cuda
from ..device import as_device
from ..errors import DTypeError
from .board import CODE, DTYPE_CODE
from .reductions import ReduceOp
from .shm import ShmBackend

_DTYPES = {"int8": "INT8", "uint8": "UINT8", "int32": "INT32", "uint32": "UINT32", "int64": "INT64",
           "uint64": "UINT64", "float16": "FLOAT16", "float32": "FLOAT32", "float64": "FLOAT64",
           "bfloat16": "BFLOAT16", "bool": "UINT8", "complex64": "FLOAT32", "complex128": "FLOAT64"}
_OPS = {"SUM": "SUM", "PRODUCT": "PROD", "MIN": "MIN", "MAX": "MAX", "AVG": "AVG"}
_BOOL = {"SUM": "MAX", "MAX": "MAX", "PRODUCT": "PROD", "MIN": "MIN"}


def available() -> bool:
    """Whether CuPy brings NCCL."""
    try:
        return bool(cuda.nccl())
    except ImportError:
        return False


class NcclBackend:
    """The collectives of one communicator, on flat CuPy arrays of this rank's device."""

    name = "nccl"
    device = "cuda"

    def __init__(self, control: ShmBackend, device_id: Any = None) -> None:
        self._nccl, self._control = cuda.nccl(), control
        self.rank, self.size, self.board = control.rank, control.size, control.board
        cuda.cupy()
        count = cuda.device_count()
        if not count:
            raise RuntimeError("init_process_group: the backend nccl needs a GPU, and CuPy sees none; use "
                               "backend='shm'")
        self._number = self.rank % count if device_id is None else cuda.index_of(as_device(device_id))
        unique = np.zeros(128, np.uint8)
        if self.rank == 0:
            unique[:] = np.frombuffer(self._nccl.get_unique_id(), np.uint8)
        control.broadcast(unique, 0)
        with cuda.cupy().cuda.Device(self._number):
            self._comm = self._nccl.NcclCommunicator(self.size, unique.tobytes(), self.rank)

    def _begin(self, name: str, a: Any = None, op: ReduceOp | None = None, root: int = -1) -> None:
        dtype = 0 if a is None else DTYPE_CODE[a.dtype.name]
        self.board.begin(CODE[name], dtype, 0 if a is None else a.size, -1 if op is None else op.code, root)
        self.board.meet_all()

    def _kind(self, a: Any) -> tuple[int, int]:
        """NCCL's dtype, and how many of them there are."""
        name = a.dtype.name
        if name not in _DTYPES:
            raise DTypeError(f"the backend nccl has no {name}; convert the tensor, e.g. to int32")
        return getattr(self._nccl, f"NCCL_{_DTYPES[name]}"), a.size * (2 if a.dtype.kind == "c" else 1)

    def _op(self, a: Any, op: ReduceOp) -> int:
        table = _BOOL if a.dtype.kind == "b" else _OPS
        if op.name not in table or (a.dtype.kind == "c" and op.name == "PRODUCT"):
            raise DTypeError(f"the backend nccl has no {op!r} of {a.dtype.name}; use backend='shm'")
        return getattr(self._nccl, f"NCCL_{table[op.name]}")

    def _stream(self) -> int:
        return cuda.cupy().cuda.get_current_stream().ptr

    def _call(self, name: str, *args: Any) -> None:
        with cuda.cupy().cuda.Device(self._number):
            getattr(self._comm, name)(*args, self._stream())

    # -- collectives -----------------------------------------------------------------------------

    def barrier(self, name: str = "barrier") -> None:
        """Wait for everybody, and for what the device has to do."""
        with cuda.cupy().cuda.Device(self._number) as device:
            device.synchronize()
        self._control.barrier(name)

    def all_reduce(self, a: Any, op: ReduceOp) -> None:
        """Reduce into ``a`` of every rank."""
        kind, op_number = self._kind(a), self._op(a, op)
        self._begin("all_reduce", a, op)
        self._call("allReduce", a.data.ptr, a.data.ptr, kind[1], kind[0], op_number)

    def broadcast(self, a: Any, root: int) -> None:
        """Copy ``a`` of ``root`` to everybody."""
        kind = self._kind(a)
        self._begin("broadcast", a, root=root)
        self._call("broadcast", a.data.ptr, a.data.ptr, kind[1], kind[0], root)

    def reduce(self, a: Any, root: int, op: ReduceOp) -> None:
        """Reduce into ``a`` of ``root``."""
        kind, op_number = self._kind(a), self._op(a, op)
        self._begin("reduce", a, op, root)
        out = a if self.rank == root else cuda.cupy().empty_like(a)
        self._call("reduce", a.data.ptr, out.data.ptr, kind[1], kind[0], op_number, root)

    def all_gather(self, outs: list, a: Any) -> None:
        """``a`` of rank r into ``outs[r]``, everywhere."""
        kind = self._kind(a)
        self._begin("all_gather", a)
        whole = cuda.cupy().empty(self.size * a.size, a.dtype)
        self._call("allGather", a.data.ptr, whole.data.ptr, kind[1], kind[0])
        for r, out in enumerate(outs):
            out[...] = whole[r * a.size:(r + 1) * a.size]

    def gather(self, outs: list | None, a: Any, root: int) -> None:
        """``a`` of rank r into ``outs[r]``, on ``root``."""
        self._begin("gather", a, root=root)
        with _Together(self._nccl):
            if outs is not None:
                for r, out in enumerate(outs):
                    if r != root:
                        self._message("recv", out, r)
            else:
                self._message("send", a, root)
        if outs is not None:
            outs[root][...] = a

    def scatter(self, out: Any, parts: list | None, root: int) -> None:
        """``parts[r]`` of ``root`` into ``out`` of rank r."""
        self._begin("scatter", out, root=root)
        with _Together(self._nccl):
            if parts is not None:
                for r, part in enumerate(parts):
                    if r != root:
                        self._message("send", part, r)
            else:
                self._message("recv", out, root)
        if parts is not None:
            out[...] = parts[root]

    def reduce_scatter(self, out: Any, parts: list, op: ReduceOp) -> None:
        """The reduction of everybody's ``parts[r]`` into ``out`` of rank r."""
        kind, op_number = self._kind(out), self._op(out, op)
        self._begin("reduce_scatter", out, op)
        whole = cuda.cupy().concatenate(parts)
        self._call("reduceScatter", whole.data.ptr, out.data.ptr, kind[1], kind[0], op_number)

    def all_to_all(self, outs: list, parts: list) -> None:
        """``parts[r]`` into ``outs[i]`` of rank r, where i is this rank."""
        sizes = np.array([p.size for p in parts], np.int64)
        got = [np.empty(1, np.int64) for _ in outs]
        self._control.all_to_all(got, list(sizes.reshape(-1, 1)))
        for r, (size, out) in enumerate(zip(got, outs)):
            if size[0] != out.size:
                raise ValueError(f"all_to_all: rank {self.board.ranks[r]} sent {size[0]} numbers to rank "
                                 f"{self.board.ranks[self.rank]}, which has room for {out.size}")
        with _Together(self._nccl):
            for r in range(self.size):
                if r != self.rank:
                    self._message("send", parts[r], r)
                    self._message("recv", outs[r], r)
        outs[self.rank][...] = parts[self.rank]

    def _message(self, name: str, a: Any, peer: int) -> None:
        kind = self._kind(a)
        self._call(name, a.data.ptr, kind[1], kind[0], peer)

    def send(self, a: Any, to: int, tag: int) -> None:
        """Send what it is over the host, then ``a`` by the device."""
        self._control.send(np.array([DTYPE_CODE[a.dtype.name], a.size], np.int64), to, tag)
        self._message("send", a, to)

    def recv(self, a: Any, source: int | None, tag: int) -> int:
        """Receive into ``a``; returns from whom."""
        head = np.empty(2, np.int64)
        source = self._control.recv(head, source, tag)
        if head.tolist() != [DTYPE_CODE[a.dtype.name], a.size]:
            raise ValueError(f"recv: rank {self.board.ranks[source]} sent {head[1]} numbers of another "
                             f"dtype or count than the tensor's {a.size} {a.dtype.name}")
        self._message("recv", a, source)
        return source

    # -- groups ----------------------------------------------------------------------------------

    def announce_group(self, ranks: list[int]) -> None:
        """Make sure that all ranks make the same group."""
        self._control.announce_group(ranks)

    def subgroup(self, ranks: list[int], name: str, timeout: float, place: str) -> "NcclBackend":
        """The backend of the group of these ranks, of which this is one."""
        return NcclBackend(self._control.subgroup(ranks, name, timeout, place), self._number)

    def leave(self, failed: bool = False) -> None:
        """Make no calls any more; what waits for this rank is aborted if it failed."""
        self._control.leave(failed)
        if failed:
            self._comm.abort()
        else:
            self._comm.destroy()


class _Together:
    """Messages that NCCL starts at once, so that none waits for another."""

    def __init__(self, nccl: Any) -> None:
        self._nccl = nccl

    def __enter__(self) -> None:
        self._nccl.groupStart()

    def __exit__(self, *exception: Any) -> None:
        self._nccl.groupEnd()
