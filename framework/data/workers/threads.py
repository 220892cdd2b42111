"""Worker threads: for work that lets go of the interpreter lock (reading, decoding, NumPy)."""

import copy
import os
import queue
import sys
import threading
import time
import traceback
from typing import Any

from ...errors import add_note
from ..fetch import Fetcher, kind
from ..randomness import ThreadRandom, mix
from .errors import rebuild, report
from .info import WorkerInfo, here

_GRACE = 0.3


class Made:
    """A batch, there already."""

    state = None

    def __init__(self, batch: Any) -> None:
        self._batch = batch

    def open(self) -> Any:
        """The batch."""
        return self._batch


class ThreadMember:
    """One worker thread: its tasks, what it owes."""

    def __init__(self, worker_id: int) -> None:
        self.id, self.owed = worker_id, {}  # type: int, dict[int, tuple]
        self.tasks: queue.SimpleQueue = queue.SimpleQueue()
        self.thread: Any = None


class ThreadPool:
    """What ``ProcessPool`` is, with threads; batches are handed over as they are."""

    def __init__(self, fetcher: Fetcher, count: int, *, seed: int, streams: bool, init: Any = None) -> None:
        self.owner, self.dataset = os.getpid(), kind(fetcher.dataset)
        self.ready: dict[int, tuple[ThreadMember, Any]] = {}
        self.closed = False
        self._ticket = self._first = 0
        self._done: queue.SimpleQueue = queue.SimpleQueue()
        self.members = [ThreadMember(i) for i in range(count)]
        try:
            for m in self.members:
                info = WorkerInfo(m.id, count, mix(seed + m.id) >> 1, fetcher.dataset)
                m.thread = threading.Thread(
                    target=_work, daemon=True, name=f"DataLoader worker {m.id}",
                    args=(m.tasks, self._done, m, copy.copy(fetcher), info, streams, init))
                m.thread.start()
        except BaseException:
            self.close()
            raise

    def begin(self, seed: int, epoch: int, shares: list[tuple[int, Any]]) -> None:
        """A new epoch: what is left of the one before is dropped."""
        self._first = self._ticket
        self.ready.clear()
        for member, (begun, _) in zip(self.members, shares):
            while not member.tasks.empty():
                try:
                    member.owed.pop(member.tasks.get_nowait()[0], None)
                except queue.Empty:
                    break
            member.tasks.put((0, seed, epoch, begun))

    def takes(self, member: ThreadMember) -> bool:
        """Threads need no slots."""
        return True

    def load(self, member: ThreadMember) -> int:
        """How many batches of this epoch the worker owes."""
        return sum(ticket > self._first for ticket in member.owed)

    def submit(self, member: ThreadMember, number: int, indices: Any) -> None:
        """Ask a worker for a batch."""
        self._ticket += 1
        member.owed[self._ticket] = number, None, indices
        member.tasks.put((self._ticket, number, indices))

    def collect(self, timeout: float | None) -> None:
        """Wait for a batch, at most ``timeout`` seconds."""
        try:
            found = self._done.get(timeout=timeout) if timeout != 0 else self._done.get_nowait()
            while True:
                self._hear(*found)
                found = self._done.get_nowait()
        except queue.Empty:
            pass

    def _hear(self, member: ThreadMember, ticket: int, outcome: Any) -> None:
        if ticket == 0:
            raise outcome
        owed = member.owed.pop(ticket, None)
        if owed is not None and ticket > self._first:
            self.ready[owed[0]] = member, outcome

    def where(self, member: ThreadMember) -> str:
        """The Python stack of a worker."""
        frame = sys._current_frames().get(member.thread.ident)
        return "" if frame is None else "".join(traceback.format_stack(frame))

    def close(self, grace: float = _GRACE) -> None:
        """Tell the threads to end. One in the middle of a sample ends after it: a thread cannot be killed."""
        if self.closed or os.getpid() != self.owner:
            return
        self.closed = True
        for m in self.members:
            m.tasks.put(None)
        end = time.monotonic() + grace
        for m in self.members:
            if m.thread not in (None, threading.current_thread()) and m.thread.ident is not None:
                m.thread.join(max(0.0, end - time.monotonic()))


def _work(tasks: queue.SimpleQueue, done: queue.SimpleQueue, member: ThreadMember, fetcher: Fetcher,
          info: WorkerInfo, streams: bool, init: Any) -> None:
    here.info = info
    try:
        if init is not None:
            init(info.id)
        fetcher.prepare()
    except BaseException as error:
        done.put((member, 0, _told(error, info, "worker_init_fn", fetcher)))
        return
    draws = stream = None
    while (task := tasks.get()) is not None:
        ticket = task[0]
        try:
            if ticket == 0:
                draws = ThreadRandom(*task[1:3])
                stream = fetcher.stream(info.id, draws, task[3], None) if streams else None
                continue
            assert draws is not None
            batch = fetcher.fetch(task[1], task[2], draws) if stream is None else next(stream)
            outcome: Any = Made(batch)
            del batch
        except StopIteration:
            outcome = None
        except BaseException as error:
            outcome = _told(error, info, fetcher.at, fetcher)
        done.put((member, ticket, outcome))


def _told(error: BaseException, info: WorkerInfo, index: Any, fetcher: Fetcher) -> BaseException:
    """The error itself, unless raising it in the main thread would mean something else there."""
    if isinstance(error, Exception):
        add_note(error, f"in DataLoader worker thread {info.id}")
        return error
    return rebuild(report(error, info.id, index, kind(fetcher.dataset)))
