"""The board: a page of shared words by which ranks of one machine meet, and notice who does not come.

Every rank has a block of words that it alone writes: how many meetings it has come to (``phase``), which call
it is in, and whether it is there. A meeting is: count up one's own phase, wait until everybody's is as high.
Two headers of a call are kept, by turns: a rank can be one call ahead of another, never two.

Words of 8 bytes are written and read as a whole, and x86 keeps the order of writes; what is written before a
meeting is there for everybody after it.
"""

import contextlib
import os
import select
import threading
import time
from typing import Any

import numpy as np

from ..backends.segments import Segment
from ..backends.threads import usable_cores
from ..dtypes import ALL
from ..errors import DistributedError
from .reductions import OPS

DTYPES = ("nothing", *(d.name for d in ALL), "bfloat16")
DTYPE_CODE = {name: i for i, name in enumerate(DTYPES)}

_BLOCK = 64  # words of a rank: 8 lines of 64 bytes
_PHASE, _HEADER, _STATE, _PID, _CALLS, _DOING = 0, 8, 24, 25, 26, 27
_WORDS = 8  # of a header
_TEXT = 1000  # bytes of the message that breaks a group
ABSENT, THERE, LEFT, FAILED = range(4)

CALLS = ("nothing", "init_process_group", "barrier", "all_reduce", "broadcast", "reduce", "all_gather",
         "gather", "scatter", "reduce_scatter", "all_to_all", "send", "recv", "new_group",
         "shared memory",         "the end of the program", "monitored_barrier")
CODE = {name: i for i, name in enumerate(CALLS)}
_WITH_DATA = range(CODE["all_reduce"], CODE["recv"] + 1)

_READS = 50  # then the processor is offered to others
_YIELDS = 300  # then this thread sleeps
_NAP = 5e-5
_CALM = 0.01  # seconds of naps; after that it looks who is still alive


def board_size(n: int) -> int:
    """Bytes of the board of ``n`` ranks."""
    return n * _BLOCK * 8 + 16 + _TEXT


class Peers:
    """Which processes are alive, by descriptors that the kernel marks when a process ends."""

    def __init__(self) -> None:
        self._poll = select.poll()
        self._rank_of: dict[int, int] = {}
        self._dead: set[int] = set()
        self._lock = threading.Lock()

    def watch(self, rank: int, pid: int) -> None:
        """Notice from here on that process ``pid``, rank ``rank``, ends."""
        if pid == os.getpid() or rank in self._rank_of.values():
            return
        try:
            fd = os.pidfd_open(pid)
        except ProcessLookupError:
            self._dead.add(rank)
            return
        except (OSError, AttributeError):  # no such call: then only deadlines tell
            return
        self._rank_of[fd] = rank
        self._poll.register(fd, select.POLLIN)

    def look(self, wait: float) -> set[int]:
        """The ranks that have ended so far; waits up to ``wait`` seconds for the next to end."""
        if not self._rank_of or not self._lock.acquire(blocking=False):  # another thread is looking
            time.sleep(wait)
            return self._dead
        try:
            for fd, _ in self._poll.poll(max(wait * 1000, 0.05)):
                self._poll.unregister(fd)
                os.close(fd)
                self._dead.add(self._rank_of.pop(fd))
        finally:
            self._lock.release()
        return self._dead

    def close(self) -> None:
        """Give the descriptors back."""
        for fd in self._rank_of:
            with contextlib.suppress(OSError):
                os.close(fd)
        self._rank_of.clear()
        self._poll = select.poll()


class Board:
    """This rank's view of the words; ``ranks`` are the names (global ranks) of the group's members."""

    def __init__(self, segment: Segment, rank: int, ranks: list[int], name: str, timeout: float, peers: Peers,
                 fate: Any = None) -> None:
        n = len(ranks)
        self._array = segment.array("int64", (n * _BLOCK + 2,))
        self._words = memoryview(self._array)
        self._text = segment.array("uint8", (_TEXT,), n * _BLOCK * 8 + 16)
        self._broken = n * _BLOCK
        self.rank, self.size, self.ranks, self.name, self.timeout = rank, n, ranks, name, timeout
        self.peers, self.fate = peers, fate
        self._mine = rank * _BLOCK
        self._others = [(i, i * _BLOCK) for i in range(n) if i != rank]
        self._phase = self.calls = 0
        self._key: int = 0
        self._at = 0
        crowded = n > usable_cores()
        self._reads, self._yields = (_READS, 50) if crowded else (_READS, _YIELDS)
        self._words[self._mine + _PID] = os.getpid()
        self._words[self._mine + _STATE] = THERE

    def pids(self) -> list[int]:
        """The process id of each rank, after they have met once."""
        return [int(self._words[i * _BLOCK + _PID]) for i in range(self.size)]

    # -- calls -----------------------------------------------------------------------------------

    def begin(self, code: int, dtype: int = 0, count: int = 0, op: int = -1, root: int = -1,
              extra: int = 0) -> None:
        """Announce the next call; ``meet_all`` compares it with everybody's."""
        w, mine = self._words, self._mine
        if w[self._broken]:
            self._raise_broken()
        self.calls += 1
        at = _HEADER + _WORDS * (self.calls & 1)
        self._key, self._at = hash((self.calls, code, dtype, count, op, root, extra)), at
        here = mine + at
        w[here], w[here + 1], w[here + 2], w[here + 3] = self._key, code, dtype, count
        w[here + 4], w[here + 5], w[here + 6], w[here + 7] = op, root, extra, self.calls
        w[mine + _CALLS], w[mine + _DOING] = self.calls, code

    def meet_all(self) -> None:
        """Wait for everybody, and raise DistributedError unless all make the same call."""
        self.meet()
        w, key, at = self._words, self._key, self._at
        for _, base in self._others:
            if w[base + at] != key:
                self._differ()

    def meet(self) -> None:
        """Wait until everybody has come to this meeting."""
        w = self._words
        self._phase = target = self._phase + 1
        w[self._mine] = target
        for i, base in self._others:
            if w[base] < target:
                self.wait(w, base, target, i)

    def wait(self, words: Any, k: int, target: int, peer: int, message: str = "") -> None:
        """Wait until word ``k``, which rank ``peer`` writes, has reached ``target``.

        message: what is waited for, where it is no meeting of all.
        """
        for _ in range(self._reads):
            if words[k] >= target:
                return
        pause = os.sched_yield
        for _ in range(self._yields):
            pause()
            if words[k] >= target:
                return
        start = time.monotonic()
        while words[k] < target:
            spent = time.monotonic() - start
            if spent < _CALM:
                time.sleep(_NAP)
                continue
            gone = self.peers.look(0.001 if spent < 1 else 0.005)
            if words[k] < target:
                self._look(gone, [peer] if message else None, target, message, spent)

    def look_after(self, peers: list[int], message: str, start: float) -> None:
        """A pause while waiting for any of ``peers`` since ``start``; raises if none of them can come."""
        gone = self.peers.look(0.0002)
        alive = [i for i in peers if self.ranks[i] not in gone]
        late = time.monotonic() - start
        if not alive or late > self.timeout:
            self._look(gone, peers, 1, message, late)

    def _look(self, gone: set[int], awaited: list[int] | None, target: int, message: str,
              spent: float) -> None:
        """Raise if what is waited for cannot come: the group is broken, a rank is gone, time is up.

        awaited: the ranks, or None for all that have not come to meeting ``target``.
        """
        w = self._words
        if w[self._broken]:
            self._raise_broken()
        late = awaited or [i for i, base in self._others if w[base] < target]
        doing = f"{message} (of {self.doing()})" if message else self.doing()
        me = self.ranks[self.rank]
        for i in late:
            if self.ranks[i] in gone:
                self._gone(i, me, doing)
        if spent > self.timeout and late:
            where = ", ".join(f"rank {self.ranks[i]}, which {'has left after' if self._left(i) else 'is at'} "
                              f"{self._call_of(i)}" for i in late)
            self.fail(f"rank {me} waited {spent:.1f} s in {doing} for {where}")

    # -- what can go wrong -----------------------------------------------------------------------

    def doing(self) -> str:
        """The call this rank is in, for messages."""
        code = int(self._words[self._mine + _DOING])
        return f"{CALLS[code]} (call {self.calls}{self._of_group()})"

    def _of_group(self) -> str:
        return f" of {self.name}" if self.name else ""

    def _left(self, i: int) -> bool:
        return self._words[i * _BLOCK + _STATE] == LEFT

    def _call_of(self, i: int) -> str:
        w, base = self._words, i * _BLOCK
        return f"call {w[base + _CALLS]} ({CALLS[w[base + _DOING]]})"

    def _gone(self, i: int, me: int, doing: str) -> None:
        name = self.ranks[i]
        if self._left(i):
            self.fail(f"rank {name} has ended after {self._call_of(i)} while rank {me} waited for it in "
                      f"{doing}; "
                      f"all ranks must make equally many calls: give them equally many batches, or use Join")
        if self._words[i * _BLOCK + _STATE] == FAILED:
            self.fail(f"rank {name} failed with an error of its own at {self._call_of(i)} while rank {me} "
                      f"waited for it in {doing}")
        how = self.fate(name) if self.fate is not None else ""
        self.fail(f"rank {name} died{how} at {self._call_of(i)} while rank {me} waited for it in {doing}")

    def fail(self, text: str) -> None:
        """Break the group for everybody, with the first cause that was found, and raise it."""
        w = self._words
        if not w[self._broken]:
            data = text.encode()[:_TEXT - 1]
            self._text[:len(data)] = np.frombuffer(data, np.uint8)
            self._text[len(data)] = 0
            w[self._broken] = 1
        raise DistributedError(text)

    def _raise_broken(self) -> None:
        text = bytes(self._text).partition(b"\0")[0].decode(errors="replace")
        raise DistributedError(f"{text} (the group is broken; rank {self.ranks[self.rank]} was in or before "
                               f"call {self.calls})")

    def _differ(self) -> None:
        """All ranks come here with the same words before them, so all raise, and the group stays usable."""
        at = self._at
        said = [tuple(self._words[i * _BLOCK + at + k] for k in range(1, _WORDS)) for i in range(self.size)]
        groups: dict[tuple, list[int]] = {}
        for i, words in enumerate(said):
            groups.setdefault(words, []).append(self.ranks[i])
        texts = [f"{'ranks' if len(who) > 1 else 'rank'} {', '.join(map(str, who))}: {described(words)}"
                 for words, who in groups.items()]
        raise DistributedError(f"call {self.calls}{self._of_group()}: the ranks made different calls; "
                               f"{'; '.join(texts)}")

    def leave(self, failed: bool = False) -> None:
        """Say that this rank makes no calls any more, or that it failed."""
        self._words[self._mine + _STATE] = FAILED if failed else LEFT


def described(words: tuple) -> str:
    code, dtype, count, op, root, extra, _ = (int(x) for x in words)
    parts = [CALLS[code]]
    if code in _WITH_DATA:
        parts.append(f"of {count} {DTYPES[dtype]}")
    if op >= 0:
        parts.append(f"by {OPS[op]!r}")
    if root >= 0:
        parts.append(f"with root {root}")
    if extra:
        parts.append(f"(place {extra})")
    return " ".join(parts)
