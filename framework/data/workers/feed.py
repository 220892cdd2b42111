"""The order of batches: which worker makes which, how far ahead, and in which order they are handed out."""

import os
import signal
import threading
import time
import warnings
import weakref
from collections.abc import Callable, Iterator
from typing import Any

from .errors import WorkerStallWarning, WorkerTimeout, short
from .share import Share


class Feed:
    """An iterator over the batches of one epoch, made by the members of a pool.

    tasks: (number, indices) of the batches still to be made, or None for a stream, whose workers take turns,
    beginning at ``turn``; more than ``most`` of its batches are warned of. give_back(pool, sound) is called
    once, when the pool is not needed any more.
    """

    def __init__(self, pool: Any, tasks: Iterator | None, give_back: Callable, *, prefetch: int,
                 in_order: bool, timeout: float, stall: float, first: int = 0,
                 ahead: Any = (), shares: list[Share] | None = None, turn: int = 0,
                 most: int | None = None) -> None:
        self._pool, self._tasks, self._prefetch, self._in_order = pool, tasks, prefetch, in_order
        self._timeout, self._stall, self._most = timeout, stall, most
        self.next, self.ahead = first, set(ahead)
        self.shares, self.turn = shares or [], turn
        self._asked = turn  # whose turn it is to be asked
        self._numbers = first  # of a stream: the next one to be asked for
        self._asked_all = False
        self._out: dict[int, Any] = {}  # asked for and not handed out: number -> member
        self._sound = False  # whether what was raised came from a sample, not from the workers' state
        self._give_back = give_back
        self.close = weakref.finalize(self, give_back, pool, True)

    def __iter__(self) -> "Feed":
        return self

    def __next__(self) -> Any:
        if not self.close.alive:
            raise StopIteration
        if os.getpid() != self._pool.owner:
            raise RuntimeError(f"an iterator of a DataLoader belongs to process {self._pool.owner}; this "
                               f"is its child {os.getpid()}; make a new one with iter(loader)")
        try:
            self._pool.collect(0)
            while True:
                batch = self._step()
                if batch is not None:
                    return batch[0]
        except StopIteration:
            self.close()
            raise
        except BaseException:
            if self.close.detach() is not None:
                self._give_back(self._pool, self._sound)
            raise

    def _step(self) -> tuple[Any] | None:
        """The next batch in a tuple; None for a turn without one."""
        self._ask()
        if not self._out:
            if self._asked_all:
                raise StopIteration
            self._pool.collect(1.0)  # the workers are still at what an earlier iterator asked for
            return None
        number = self._wait()
        member, outcome = self._pool.ready.pop(number)
        del self._out[number]
        if number == self.next:
            self.next += 1
            while self.next in self.ahead:
                self.ahead.remove(self.next)
                self.next += 1
        else:
            self.ahead.add(number)
        if isinstance(outcome, BaseException):
            self._sound = True
            raise outcome
        if outcome is None:
            self.shares[member.id].ended = True
            return None
        batch = outcome.open()
        if self._tasks is None:
            share = self.shares[member.id]
            share.batches, share.dataset = share.batches + 1, outcome.state
            self.turn = (member.id + 1) % len(self.shares)
            if self._most is not None and sum(s.batches for s in self.shares) == self._most + 1:
                warnings.warn(f"DataLoader: the stream {self._pool.dataset} gives more samples than len() "
                              f"says: perhaps every worker reads all of them; take a part in each by "
                              f"get_worker_info(), or use num_workers=1", stacklevel=4)
        outcome = None
        self._ask()
        return (batch,)

    def progress(self) -> tuple[int, dict[str, Any]]:
        """The loader's position, and what else its state must hold to go on from here."""
        if self._tasks is None:
            return (sum(s.batches for s in self.shares),
                    {"shares": [s.state() for s in self.shares], "turn": self.turn})
        return self.next, {"ahead": sorted(self.ahead)} if self.ahead else {}

    # -- asking ----------------------------------------------------------------------------------

    def _ask(self) -> None:
        """Give the workers what they have room for."""
        if self._tasks is None:
            self._ask_in_turn()
            return
        members = self._pool.members
        window, most = self._prefetch * len(members), self._prefetch + (len(members) > 1)
        while len(self._out) < window:
            free = [m for m in members if self._pool.load(m) < most and self._pool.takes(m)]
            if not free or self._asked_all:
                return
            task = next(self._tasks, None)
            if task is None:
                self._asked_all = True
                return
            member = min(free, key=self._pool.load)
            self._out[task[0]] = member
            self._pool.submit(member, *task)

    def _ask_in_turn(self) -> None:
        members = self._pool.members
        self._asked_all = all(s.ended for s in self.shares)
        waiting = 0
        while waiting < len(members):
            member = members[self._asked]
            if not self.shares[member.id].ended:
                out = sum(m is member for m in self._out.values())
                if out >= self._prefetch or not self._pool.takes(member):
                    if self._in_order:
                        return
                    waiting += 1
                else:
                    waiting = 0
                    self._out[self._numbers] = member
                    self._pool.submit(member, self._numbers, None)
                    self._numbers += 1
            else:
                waiting += 1
            self._asked = (self._asked + 1) % len(members)

    # -- waiting ---------------------------------------------------------------------------------

    def _wait(self) -> int:
        """The number of the batch to hand out, once it is there."""
        wanted, ready = min(self._out), self._pool.ready
        start = time.monotonic()
        warn = self._stall
        while True:
            if wanted in ready:
                return wanted
            if not self._in_order and ready:
                return next(iter(ready))
            waited = time.monotonic() - start
            limits = [t - waited for t in (self._timeout, warn) if t > 0]
            self._pool.collect(max(0.001, min(limits)) if limits else None)
            waited = time.monotonic() - start
            if self._timeout and waited >= self._timeout and wanted not in ready:
                raise WorkerTimeout(f"DataLoader: no batch within timeout={self._timeout} s; "
                                    f"{self._about(wanted)}")
            if warn and waited >= warn and wanted not in ready:
                warnings.warn(f"DataLoader: waiting for {waited:.1f} s; {self._about(wanted)}",
                              WorkerStallWarning, stacklevel=5)
                warn = 2 * waited

    def _about(self, wanted: int) -> str:
        member = self._out[wanted]
        indices = next((i for n, _, i in member.owed.values() if n == wanted), None)
        which = f"batch {wanted}" if indices is None else f"samples {short(indices)}"
        text = f"worker {member.id} is at {which} of {self._pool.dataset}"
        stack = self._pool.where(member)
        return f"{text}. Its Python stack:\n{stack}" if stack else text


class Home:
    """Where a loader's workers are between epochs, if they persist."""

    def __init__(self, persistent: bool) -> None:
        self.persistent = persistent
        self._idle: Any = None
        self._guard: Any = None

    def take(self) -> Any:
        """The workers that wait here, or None."""
        pool, self._idle = self._idle, None
        if pool is None or self._guard.detach() is None or pool.owner != os.getpid():
            return None
        return pool

    def give_back(self, pool: Any, sound: bool) -> None:
        """An epoch is over: keep the workers, or end them."""
        try:
            if not (self.persistent and sound) or self._idle is not None or pool.closed:
                pool.close()
                return
            self._idle, self._guard = pool, weakref.finalize(self, pool.close)
        except KeyboardInterrupt:  # raised in a finalizer it would be printed and lost
            threading.Timer(0.01, os.kill, (os.getpid(), signal.SIGINT)).start()

    def __reduce__(self) -> tuple:
        return Home, (self.persistent,)
