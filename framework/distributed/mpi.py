"""The backend between machines: MPI, by mpi4py.

MPI compares nothing and waits for ever, so every call is preceded by a header that all ranks gather and
compare, and everything is polled against the deadline. A rank that fails aborts the others; one that ends
before the others have, without an error, is noticed at the end, where all ranks meet once more.
"""

import atexit
import os
import sys
import time
import types
from collections.abc import Callable
from typing import Any

import numpy as np

from ..config import need
from ..errors import DistributedError
from . import job
from .board import CODE, DTYPE_CODE, described
from .reductions import ReduceOp, combine

_WORDS = 7
_NAP = 2e-5
_YIELDS = 2000
_TAG = 1 << 14
_FOREIGN = ("PMI_SIZE", "OMPI_COMM_WORLD_SIZE", "PMIX_SIZE")
# what MPI reduces by itself; the rest is gathered and reduced here, in the order of ranks
_NATIVE = {"SUM": "SUM", "MIN": "MIN", "MAX": "MAX", "PRODUCT": "PROD", "AVG": "SUM"}
_NATIVE_DTYPES = "bhilqBHILQfd"


def world_backend(timeout: float) -> "MpiBackend":
    """The backend of all of MPI's processes."""
    need("mpi4py", "mpi", "the backend 'mpi'")
    mpi: Any = need("mpi4py.MPI", "mpi", "the backend 'mpi'")
    comm = mpi.COMM_WORLD
    told = max((int(os.environ[v]) for v in _FOREIGN if os.environ.get(v, "").isdigit()), default=1)
    if comm.Get_size() == 1 and told > 1:
        raise DistributedError(f"init_process_group: mpiexec started {told} processes, but this MPI ("
                               f"{mpi.Get_library_version().split(',')[0].strip()}) sees one: mpiexec "
                               f"belongs to another MPI; start with the one beside {sys.executable}")
    _abort_on_errors(comm)
    backend = MpiBackend(mpi, comm.Dup(), list(range(comm.Get_size())), "", timeout)
    atexit.register(backend.finish)
    return backend


def _abort_on_errors(comm: Any) -> None:
    """Where a rank fails the others would wait for ever: end them, after the traceback was printed."""
    before = sys.excepthook

    def hook(kind: type[BaseException], value: BaseException, trace: types.TracebackType | None) -> None:
        before(kind, value, trace)
        sys.stderr.flush()
        comm.Abort(1)
    sys.excepthook = hook


class MpiBackend:
    """The collectives of one communicator, on flat NumPy arrays."""

    name = "mpi"
    device = "cpu"

    def __init__(self, mpi: Any, comm: Any, ranks: list[int], name: str, timeout: float) -> None:
        self._mpi, self._comm = mpi, comm
        self.rank, self.size, self.ranks, self.group = comm.Get_rank(), comm.Get_size(), ranks, name
        self.timeout = timeout
        self.calls = 0
        self._doing = "nothing"
        self._gone = False

    # -- waiting ---------------------------------------------------------------------------------

    def _wait(self, request: Any, what: str) -> Any:
        """Poll until it is done; the processor is offered to others meanwhile."""
        for _ in range(_YIELDS):
            if request.Test():
                return
            os.sched_yield()
        start = time.monotonic()
        while not request.Test():
            time.sleep(_NAP)
            if time.monotonic() - start > self.timeout:
                raise DistributedError(f"rank {self.ranks[self.rank]} waited {self.timeout:g} s in {what} "
                                       f"(call {self.calls}{self._of()}); another rank is gone, late or in "
                                       f"another call")

    def _of(self) -> str:
        return f" of {self.group}" if self.group else ""

    def _begin(self, name: str, a: np.ndarray | None = None, op: ReduceOp | None = None, root: int = -1,
               extra: int = 0) -> None:
        """Gather everybody's header, and raise on all ranks unless they are equal."""
        self.calls += 1
        self._doing = name
        mine = np.array([CODE[name], 0 if a is None else DTYPE_CODE[a.dtype.name], 0 if a is None else a.size,
                         -1 if op is None else op.code, root, extra, self.calls], np.int64)
        all_ = np.empty((self.size, _WORDS), np.int64)
        self._wait(self._comm.Iallgather(mine, all_), name)
        if (all_ == mine).all():
            return
        said: dict[tuple, list[int]] = {tuple(row.tolist()): [] for row in all_}
        for rank, row in zip(self.ranks, all_.tolist()):
            said[tuple(row)].append(rank)
        texts = [f"{'ranks' if len(who) > 1 else 'rank'} {', '.join(map(str, who))}: {described(words)}"
                 for words, who in said.items()]
        raise DistributedError(f"call {self.calls}{self._of()}: the ranks made different calls; "
                               f"{'; '.join(texts)}")

    # -- collectives -----------------------------------------------------------------------------

    def barrier(self, name: str = "barrier") -> None:
        """Wait for everybody: the header is the meeting."""
        self._begin(name)

    def _reduces(self, a: np.ndarray, op: ReduceOp) -> bool:
        return op.name in _NATIVE and a.dtype.char in _NATIVE_DTYPES

    def all_reduce(self, a: np.ndarray, op: ReduceOp) -> None:
        """Reduce into ``a`` of every rank."""
        self._begin("all_reduce", a, op)
        if not a.size:
            return
        if self._reduces(a, op):
            request = self._comm.Iallreduce(self._mpi.IN_PLACE, a, getattr(self._mpi, _NATIVE[op.name]))
            self._wait(request, "all_reduce")
            if op is ReduceOp.AVG:
                np.true_divide(a, self.size, out=a)
            return
        parts = self._all(a)
        combine(op, parts, [a])

    def _all(self, a: np.ndarray) -> list[np.ndarray]:
        whole = np.empty((self.size, a.size), a.dtype)
        self._wait(self._comm.Iallgather(a.view(np.uint8), whole.view(np.uint8)), self._doing)
        return list(whole)

    def broadcast(self, a: np.ndarray, root: int) -> None:
        """Copy ``a`` of ``root`` to everybody."""
        self._begin("broadcast", a, root=root)
        if a.size:
            self._wait(self._comm.Ibcast(a.view(np.uint8), root), "broadcast")

    def reduce(self, a: np.ndarray, root: int, op: ReduceOp) -> None:
        """Reduce into ``a`` of ``root``."""
        self._begin("reduce", a, op, root)
        if not a.size:
            return
        if self._reduces(a, op):
            there = self.rank == root
            out = np.empty_like(a) if there else None
            self._wait(self._comm.Ireduce(a, out, getattr(self._mpi, _NATIVE[op.name]), root), "reduce")
            if out is not None:
                a[:] = out / self.size if op is ReduceOp.AVG else out
            return
        parts = self._all(a)
        if self.rank == root:
            combine(op, parts, [a])

    def all_gather(self, outs: list[np.ndarray], a: np.ndarray) -> None:
        """``a`` of rank r into ``outs[r]``, everywhere."""
        self._begin("all_gather", a)
        if a.size:
            for out, part in zip(outs, self._all(a)):
                out[:] = part

    def gather(self, outs: list[np.ndarray] | None, a: np.ndarray, root: int) -> None:
        """``a`` of rank r into ``outs[r]``, on ``root``."""
        self._begin("gather", a, root=root)
        if not a.size:
            return
        whole = np.empty((self.size, a.size), a.dtype) if outs is not None else None
        self._wait(self._comm.Igather(a.view(np.uint8), None if whole is None else whole.view(np.uint8),
        root),
                   "gather")
        for out, part in zip(outs or (), () if whole is None else whole):
            out[:] = part

    def scatter(self, out: np.ndarray, parts: list[np.ndarray] | None, root: int) -> None:
        """``parts[r]`` of ``root`` into ``out`` of rank r."""
        self._begin("scatter", out, root=root)
        if out.size:
            whole = None if parts is None else np.concatenate(parts).view(np.uint8)
            self._wait(self._comm.Iscatter(whole, out.view(np.uint8), root), "scatter")

    def reduce_scatter(self, out: np.ndarray, parts: list[np.ndarray], op: ReduceOp) -> None:
        """The reduction of everybody's ``parts[r]`` into ``out`` of rank r."""
        self._begin("reduce_scatter", out, op)
        if not out.size:
            return
        whole = np.concatenate(parts)
        theirs = np.empty_like(whole)
        self._wait(self._comm.Ialltoall(whole.view(np.uint8), theirs.view(np.uint8)), "reduce_scatter")
        combine(op, list(theirs.reshape(self.size, -1)), [out])

    def all_to_all(self, outs: list[np.ndarray], parts: list[np.ndarray]) -> None:
        """``parts[r]`` into ``outs[i]`` of rank r, where i is this rank. Lengths may differ."""
        self._begin("all_to_all", parts[0][:0])
        sizes, theirs = np.array([p.size for p in parts], np.int64), np.empty(self.size, np.int64)
        self._wait(self._comm.Ialltoall(sizes, theirs), "all_to_all")
        item = parts[0].itemsize
        given, got = (np.concatenate([[0], np.cumsum(s)]) * item for s in (sizes, theirs))
        send = np.concatenate(parts).view(np.uint8)
        recv = np.empty(int(got[-1]), np.uint8)
        self._wait(self._comm.Ialltoallv([send, sizes * item, given[:-1], self._mpi.BYTE],
                                         [recv, theirs * item, got[:-1], self._mpi.BYTE]), "all_to_all")
        for r, out in enumerate(outs):
            if theirs[r] != out.size:
                raise ValueError(f"all_to_all: rank {self.ranks[r]} sent {theirs[r]} numbers to rank "
                                 f"{self.ranks[self.rank]}, which has room for {out.size}")
            out[:] = recv[got[r]:got[r + 1]].view(out.dtype)

    # -- messages --------------------------------------------------------------------------------

    def send(self, a: np.ndarray, to: int, tag: int) -> None:
        """Send what it is, then ``a``."""
        head = np.array([DTYPE_CODE[a.dtype.name], a.size], np.int64)
        first = self._comm.Isend(head, to, tag)
        second = self._comm.Isend(a.view(np.uint8), to, tag + _TAG)
        self._wait(first, "send")
        self._wait(second, "send")

    def recv(self, a: np.ndarray, source: int | None, tag: int) -> int:
        """Receive into ``a``; returns from whom."""
        status, head = self._mpi.Status(), np.empty(2, np.int64)
        anyone = self._mpi.ANY_SOURCE if source is None else source
        self._until(lambda: self._comm.Iprobe(anyone, tag, status), "recv")
        source = status.Get_source()
        self._wait(self._comm.Irecv(head, source, tag), "recv")
        there = (DTYPE_CODE[a.dtype.name], a.size)
        code, count = head.tolist()
        room = a if there == (code, count) else np.empty(count * max(_itemsize(code), 1), np.uint8)
        self._wait(self._comm.Irecv(room.view(np.uint8), source, tag + _TAG), "recv")
        if room is not a:
            words = described((CODE["recv"], code, count, -1, -1, 0, 0)).partition("of ")[2]
            raise ValueError(f"recv: rank {self.ranks[source]} sent {words}, the tensor has {a.size} "
                             f"{a.dtype.name}")
        return source

    def _until(self, there: Callable[[], bool], what: str) -> None:
        class Probe:
            def Test(self) -> bool:
                return there()
        self._wait(Probe(), what)

    # -- groups ----------------------------------------------------------------------------------

    def announce_group(self, ranks: list[int]) -> None:
        """Make sure that all ranks make the same group."""
        self._begin("new_group", extra=hash(tuple(ranks)))

    def subgroup(self, ranks: list[int], name: str, timeout: float, place: str) -> "MpiBackend":
        """The backend of the group of these ranks, of which this is one."""
        part = self._comm.Get_group().Incl(ranks)
        tag = sum(map(ord, place)) % _TAG  # members that make several groups at once keep them apart
        return MpiBackend(self._mpi, self._comm.Create_group(part, tag), ranks, name, timeout)

    def leave(self, failed: bool = False) -> None:
        """Make no calls any more."""
        self._gone = True

    def finish(self) -> None:
        """At the end of the program all ranks meet: one that is missing is an error of the others."""
        if getattr(sys, "last_value", None) is not None or self._mpi.Is_finalized():
            return
        try:
            self._begin("the end of the program")
        except DistributedError as error:
            print(error, file=sys.stderr, flush=True)
            self._comm.Abort(1)
        if self.rank == 0 and job.MPI_END in os.environ:
            with open(os.environ[job.MPI_END], "w") as file:
                file.write("all ranks have come to the end of the program\n")


def _itemsize(code: int) -> int:
    name = next(n for n, c in DTYPE_CODE.items() if c == code)
    return 2 if name == "bfloat16" else np.dtype(name).itemsize
