"""The backend of one machine: shared memory that all ranks have mapped, and no copies where they can be
spared.

A group has an *arena*: the board (``board.py``), two halves of a slot per rank for data that lies in private
memory, and mailboxes for messages between two ranks. Long data goes through the slots in pieces, by turns
through either half, so that a rank may fill one while others still read the other. Data that lies in memory
which ``symmetric`` gave is reduced where it is.

Every reduction is made in the order of ranks, each part of it by one rank, so all get the same bits, every
time.
"""

import os
import time
from collections.abc import Callable
from typing import Any
from weakref import WeakValueDictionary

import numpy as np

from ..backends.segments import Segment, segment_of
from .board import CODE, DTYPE_CODE, Board, board_size
from .direct import Reach
from .mail import Mail, mail_size
from .meeting import fetch, hand_out
from .reductions import ReduceOp, combine

LARGEST, ALL = 1 << 21, 1 << 24  # bytes of half a slot, and of the halves of all ranks together
SMALL = 1 << 13  # bytes up to which every rank reduces all by itself, which saves a meeting
LONG = 1 << 22  # bytes from which on ranks work in each other's memory where they may
_ALIGNED = 4096
_BLOCK = 1 << 19  # bytes of each rank that are reduced at a time there: few calls, all in the L2 cache


def half_of(n: int) -> int:
    """Bytes of half a slot in a group of ``n``: long ones need fewer meetings, all must fit into caches."""
    return min(LARGEST, max(_up(ALL // n), 1 << 17))


def arena_size(n: int) -> tuple[int, int]:
    """Bytes of the arena of ``n`` ranks, and where the mailboxes begin."""
    mail = _up(board_size(n)) + 2 * n * half_of(n)
    return mail + mail_size(n), mail


def _up(size: int) -> int:
    return -(-size // _ALIGNED) * _ALIGNED


def new_arena(n: int) -> Segment:
    """The shared memory of a group; that of mailboxes is taken when they are first used."""
    size, mail = arena_size(n)
    segment = Segment.create(size, reserve=False)
    segment.reserve(0, mail)
    return segment


class Symmetric:
    """Memory of equally many bytes for every rank in one segment, which all ranks have mapped."""

    def __init__(self, segment: Segment, stride: int, serial: int) -> None:
        self.segment, self.stride, self.serial = segment, stride, serial
        self._views: dict[tuple, list[np.ndarray]] = {}

    def array(self, rank: int, dtype: Any, count: int, offset: int = 0) -> np.ndarray:
        """``count`` numbers of ``rank``, from byte ``offset`` of its part on."""
        return self.segment.array(dtype, (count,), rank * self.stride + offset)

    def views(self, n: int, dtype: np.dtype, count: int, offset: int) -> list[np.ndarray]:
        """The same place of every rank."""
        key = dtype, count, offset
        found = self._views.get(key)
        if found is None:
            if len(self._views) > 256:
                self._views.clear()
            found = self._views[key] = [self.array(r, dtype, count, offset) for r in range(n)]
        return found


class ShmBackend:
    """The collectives of one group, on flat NumPy arrays. One call at a time."""

    name = "shm"
    device = "cpu"

    def __init__(self, segment: Segment, board: Board, token: str) -> None:
        n = board.size
        self.segment, self.board, self.token = segment, board, token
        self.rank, self.size = board.rank, n
        start, self.half = _up(board_size(n)), half_of(n)
        self._halves = [segment.array("uint8", (n, self.half), start + h * n * self.half) for h in (0, 1)]
        self._typed: tuple[dict, dict] = ({}, {})  # the slots of either half by dtype
        self._round = 0
        self._symmetric: WeakValueDictionary[bytes, Symmetric] = WeakValueDictionary()
        self._serial = 0
        self._reach: Reach | None = None
        self._direct: bool | None = None  # whether ranks reach each other's memory, once it was tried
        self.mail = Mail(segment, board, arena_size(n)[1])

    # -- helpers ---------------------------------------------------------------------------------

    def _slots(self, dtype: np.dtype) -> list[np.ndarray]:
        """The slots of the next round, as numbers of ``dtype``."""
        self._round += 1
        half = self._round & 1
        found = self._typed[half].get(dtype)
        if found is None:
            found = self._typed[half][dtype] = [row.view(dtype) for row in self._halves[half]]
        return found

    def _begin(self, name: str, a: np.ndarray, op: ReduceOp | None = None, root: int = -1,
               extra: int = 0) -> None:
        self.board.begin(CODE[name], DTYPE_CODE[a.dtype.name], a.size, -1 if op is None else op.code, root,
        extra)

    def _rounds(self, count: int, per: int, run: Callable[[int, int, Callable], None]) -> None:
        """``run(start, end, meet)`` for pieces of at most ``per``; the first meeting compares the calls."""
        meet: Callable = self.board.meet_all
        for start in range(0, max(count, 1), per):
            run(start, min(start + per, count), meet)
            meet = self.board.meet

    def _share(self, count: int) -> slice:
        """The part of ``count`` numbers that this rank reduces."""
        per = -(-count // self.size)
        return slice(min(per * self.rank, count), min(per * (self.rank + 1), count))

    # -- collectives -----------------------------------------------------------------------------

    def barrier(self, name: str = "barrier") -> None:
        """Wait for everybody."""
        self.board.begin(CODE[name])
        self.board.meet_all()

    def all_reduce(self, a: np.ndarray, op: ReduceOp) -> None:
        """Reduce into ``a`` of every rank."""
        if self.size == 1:
            self._begin("all_reduce", a, op)
            return
        place = self._symmetric_place(a)
        if place is not None:
            self._all_reduce_in_place(a, op, *place)
            return
        self._begin("all_reduce", a, op)
        if a.nbytes <= SMALL:
            slots = self._slots(a.dtype)
            n = a.size
            slots[self.rank][:n] = a
            self.board.meet_all()
            combine(op, [s[:n] for s in slots], [a])
            return

        if a.nbytes >= LONG and self._may_reach():
            self._all_reduce_by_reaching(a, op)
            return
        rank = self.rank

        def piece(start: int, end: int, meet: Callable) -> None:
            # of every part only its reducer's copy stays in private memory: the others are laid out for it
            slots, n = self._slots(a.dtype), end - start
            mine, here = self._share(n), a[start:end]
            slots[rank][:mine.start] = here[:mine.start]
            slots[rank][mine.stop:n] = here[mine.stop:]
            meet()
            parts = [here[mine] if i == rank else slot[mine] for i, slot in enumerate(slots)]
            if rank == 0:
                combine(op, parts, [here[mine], slots[0][mine]])
            else:
                combine(op, parts, [slots[0][mine], here[mine]])
            self.board.meet()
            here[:mine.start] = slots[0][:mine.start]
            here[mine.stop:] = slots[0][mine.stop:n]
        self._rounds(a.size, self.half // a.itemsize, piece)

    def _addresses(self, address: int) -> list[int]:
        """What every rank says; one meeting."""
        slots = self._slots(np.dtype("int64"))
        slots[self.rank][0] = address
        self.board.meet()
        return [int(s[0]) for s in slots]

    def _may_reach(self) -> bool:
        """Whether all ranks get at each other's memory; tried once, within the call that has begun."""
        self.board.meet_all()
        if self._direct is None:
            self._reach = reach = Reach(self.board.pids())
            able = reach.allowed(self._addresses(reach.word.ctypes.data))
            self._direct = all(self._addresses(int(able)))
        return self._direct

    def _all_reduce_by_reaching(self, a: np.ndarray, op: ReduceOp) -> None:
        """Each rank reduces its part of everybody's memory and puts it there, while it is in the cache."""
        reach, rank, n = self._reach, self.rank, self.size
        assert reach is not None
        addresses = self._addresses(a.ctypes.data)
        mine, step = self._share(a.size), _BLOCK // a.itemsize
        space = np.empty((n, step), a.dtype)
        others = [i for i in range(n) if i != rank]
        for start in range(mine.start, mine.stop, step):
            here = a[start:min(start + step, mine.stop)]
            parts = [here if i == rank else space[i, :here.size] for i in range(n)]
            for i in others:
                reach.read(i, addresses[i] + start * a.itemsize, parts[i])
            combine(op, parts, parts[:1])
            if rank:
                here[:] = parts[0]
            for i in others:
                reach.write(i, addresses[i] + start * a.itemsize, here)
        self.board.meet()

    def _symmetric_place(self, a: np.ndarray) -> tuple[Symmetric, int] | None:
        if not self._symmetric:
            return None
        segment = segment_of(a)
        symmetric = None if segment is None else self._symmetric.get(segment.key)
        if symmetric is None:
            return None
        return symmetric, symmetric.segment.offset_of(a) - self.rank * symmetric.stride

    def _all_reduce_in_place(self, a: np.ndarray, op: ReduceOp, memory: Symmetric, offset: int) -> None:
        self._begin("all_reduce", a, op, extra=memory.serial << 40 | offset)
        views = memory.views(self.size, a.dtype, a.size, offset)
        self.board.meet_all()
        mine = self._share(a.size)
        parts = [v[mine] for v in views]
        combine(op, parts, parts)
        self.board.meet()

    def broadcast(self, a: np.ndarray, root: int) -> None:
        """Copy ``a`` of ``root`` to everybody."""
        self._begin("broadcast", a, root=root)

        def piece(start: int, end: int, meet: Callable) -> None:
            self._round += 1
            half = self._halves[self._round & 1].reshape(-1)[:(end - start) * a.itemsize].view(a.dtype)
            if self.rank == root:
                half[:] = a[start:end]
            meet()
            if self.rank != root:
                a[start:end] = half
        self._rounds(a.size, self.half // a.itemsize, piece)

    def reduce(self, a: np.ndarray, root: int, op: ReduceOp) -> None:
        """Reduce into ``a`` of ``root``; the others keep theirs."""
        self._begin("reduce", a, op, root)

        def piece(start: int, end: int, meet: Callable) -> None:
            slots, n = self._slots(a.dtype), end - start
            slots[self.rank][:n] = a[start:end]
            meet()
            mine = self._share(n)
            combine(op, [s[mine] for s in slots], [slots[0][mine]])
            self.board.meet()
            if self.rank == root:
                a[start:end] = slots[0][:n]
        self._rounds(a.size, self.half // a.itemsize, piece)

    def all_gather(self, outs: list[np.ndarray], a: np.ndarray) -> None:
        """``a`` of rank r into ``outs[r]``, everywhere."""
        self._gather("all_gather", outs, a, -1)

    def gather(self, outs: list[np.ndarray] | None, a: np.ndarray, root: int) -> None:
        """``a`` of rank r into ``outs[r]``, on ``root``."""
        self._gather("gather", outs, a, root)

    def _gather(self, name: str, outs: list[np.ndarray] | None, a: np.ndarray, root: int) -> None:
        self._begin(name, a, root=root)

        def piece(start: int, end: int, meet: Callable) -> None:
            slots, n = self._slots(a.dtype), end - start
            slots[self.rank][:n] = a[start:end]
            meet()
            for out, slot in zip(outs or (), slots):
                out[start:end] = slot[:n]
        self._rounds(a.size, self.half // a.itemsize, piece)

    def scatter(self, out: np.ndarray, parts: list[np.ndarray] | None, root: int) -> None:
        """``parts[r]`` of ``root`` into ``out`` of rank r."""
        self._begin("scatter", out, root=root)

        def piece(start: int, end: int, meet: Callable) -> None:
            slots, n = self._slots(out.dtype), end - start
            for part, slot in zip(parts or (), slots):
                slot[:n] = part[start:end]
            meet()
            out[start:end] = slots[self.rank][:n]
        self._rounds(out.size, self.half // out.itemsize, piece)

    def reduce_scatter(self, out: np.ndarray, parts: list[np.ndarray], op: ReduceOp) -> None:
        """The reduction of everybody's ``parts[r]`` into ``out`` of rank r."""
        memory = [self._symmetric_place(p) for p in parts]
        first = memory[0]
        if first is not None and all(m is not None and m[0] is first[0] for m in memory):
            extra = first[0].serial << 40 | first[1]
            self._begin("reduce_scatter", out, op, extra=extra)
            mine = memory[self.rank]
            assert mine is not None
            views = first[0].views(self.size, out.dtype, out.size, mine[1])
            self.board.meet_all()
            combine(op, views, [out])
            self.board.meet()  # the parts may change again
            return
        self._begin("reduce_scatter", out, op)
        n = self.size

        def piece(start: int, end: int, meet: Callable) -> None:
            slots, k = self._slots(out.dtype), end - start
            for i, part in enumerate(parts):
                slots[self.rank][i * k:(i + 1) * k] = part[start:end]
            meet()
            here = slice(self.rank * k, (self.rank + 1) * k)
            combine(op, [s[here] for s in slots], [out[start:end]])
        self._rounds(out.size, max(self.half // out.itemsize // n, 1), piece)

    def all_to_all(self, outs: list[np.ndarray], parts: list[np.ndarray]) -> None:
        """``parts[r]`` into ``outs[i]`` of rank r, where i is this rank. Lengths may differ."""
        n, rank = self.size, self.rank
        dtype = parts[0].dtype
        self.board.begin(CODE["all_to_all"], DTYPE_CODE[dtype.name])
        slots = self._slots(np.dtype("int64"))
        slots[rank][:n] = [p.size for p in parts]
        self.board.meet_all()
        sizes = np.array([s[:n] for s in slots])
        longest = int(sizes.max(initial=0))
        wrong = [r for r in range(n) if sizes[r, rank] != outs[r].size]
        per = max(self.half // dtype.itemsize // n, 1)
        for start in range(0, longest, per):
            slots = self._slots(dtype)
            for r, part in enumerate(parts):
                end = min(start + per, part.size)
                if end > start:
                    slots[rank][r * per:r * per + end - start] = part[start:end]
            self.board.meet()
            for r, out in enumerate(outs):
                end = min(start + per, out.size)
                if end > start and r not in wrong:
                    out[start:end] = slots[r][rank * per:rank * per + end - start]
        if wrong:
            from_rank = self.board.ranks[wrong[0]]
            raise ValueError(f"all_to_all: rank {from_rank} sent {sizes[wrong[0], rank]} numbers to rank "
                             f"{self.board.ranks[rank]}, which has room for {outs[wrong[0]].size}")

    # -- messages --------------------------------------------------------------------------------

    def send(self, a: np.ndarray, to: int, tag: int) -> None:
        """Send ``a`` to rank ``to``."""
        self.mail.send(a, to, tag)

    def recv(self, a: np.ndarray, source: int | None, tag: int) -> int:
        """Receive into ``a``; returns from whom."""
        return self.mail.recv(a, source, tag)

    # -- memory ----------------------------------------------------------------------------------

    def symmetric(self, size: int) -> Symmetric:
        """``size`` bytes for every rank, in memory that all have mapped; every rank must call it."""
        self._serial += 1
        self.board.begin(CODE["shared memory"], 0, size)
        self.board.meet_all()
        stride = _up(max(size, 1))
        name, what = f"{self.token}-{self._serial}", "shared memory"
        deadline = time.monotonic() + self.board.timeout
        ranks = self.board.ranks
        if self.rank == 0:
            segment, _ = hand_out(name, what, ranks, size, deadline,
                                  lambda: Segment.create(stride * self.size))
        else:
            segment, _ = fetch(name, what, ranks[self.rank], self.size, size, deadline)
        made = Symmetric(segment, stride, self._serial)
        self._symmetric[segment.key] = made
        return made

    # -- groups ----------------------------------------------------------------------------------

    def announce_group(self, ranks: list[int]) -> None:
        """Make sure that all ranks make the same group."""
        self.board.begin(CODE["new_group"], 0, len(ranks), extra=hash(tuple(ranks)))
        self.board.meet_all()

    def subgroup(self, ranks: list[int], name: str, timeout: float, place: str) -> "ShmBackend":
        """The backend of the group of these ranks, of which this is one."""
        me, what = self.board.ranks[self.rank], "new_group"
        deadline = time.monotonic() + timeout
        if me == ranks[0]:
            segment, token = hand_out(place, what, ranks, 0, deadline, lambda: new_arena(len(ranks)),
                                      os.urandom(8).hex())
        else:
            segment, token = fetch(place, what, me, len(ranks), 0, deadline)
        board = Board(segment, ranks.index(me), ranks, name, timeout, self.board.peers, self.board.fate)
        return ShmBackend(segment, board, token)

    def leave(self, failed: bool = False) -> None:
        """Make no calls any more; the memory goes with the last array on it."""
        self.board.leave(failed)
