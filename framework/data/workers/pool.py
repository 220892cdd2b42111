"""The worker processes of a loader, seen from the main process."""

import errno
import importlib
import multiprocessing
import os
import pickle
import select
import signal
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from ...errors import SharedMemoryError, add_note
from ..fetch import Fetcher, kind
from .channel import Channel
from .errors import WorkerDied, rebuild, short
from .limits import DUMP
from .memory import Leases
from .parcel import Parcel, unpack
from .worker import Job, main

_GRACE = 0.3  # seconds for workers to end by themselves
_DUMP_WAIT = 0.5


class Batch:
    """A batch that a worker has sent, still packed."""

    def __init__(self, member: "Member", slot: int | None, structure: bytes, parts: list, state: Any) -> None:
        self.member, self.slot, self.structure, self.parts, self.state = member, slot, structure, parts, state

    def open(self) -> Any:
        """The batch: on its slot, or copied out of it where the worker would have no slot left."""
        leases, parts = self.member.leases, self.parts
        if self.slot is not None:
            leases.collect()
            parts = (leases.parts if leases.free else leases.copies)(self.slot, parts)
        return unpack(self.structure, parts)

    def drop(self) -> None:
        """Nobody wants it."""
        if self.slot is not None:
            self.member.leases.give(self.slot)


class Member:
    """One worker: its process, its channel, what it owes."""

    def __init__(self, worker_id: int, slots: int) -> None:
        self.id, self.leases = worker_id, Leases(slots)
        self.owed: dict[int, tuple] = {}  # ticket -> (number of the batch, its slot, its indices)
        self.ready, self.log, self.peak = False, None, 0
        self.process: Any = None
        self.channel: Any = None
        self.lost: set[int] = set()  # slots whose segment did not get here

    def send(self, *message: Any) -> None:
        """Send a task."""
        self.channel.send(pickle.dumps(message, 5))

    def stacks(self, start: int = 0) -> str:
        """What faulthandler wrote in the worker."""
        if self.log is None:
            return ""
        return os.pread(self.log, 1 << 16, start).decode(errors="replace")


@contextmanager
def uninterrupted() -> Iterator[None]:
    """Ctrl-C waits until the block is done, and processes that start in it begin with SIGINT blocked.

    Blocking alone would not make it wait: the signal goes to another thread then, and Python acts on it here.
    """
    handler = signal.getsignal(signal.SIGINT)
    defer = threading.current_thread() is threading.main_thread() and callable(handler)
    came: list[tuple] = []
    masks = hasattr(signal, "pthread_sigmask")
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT]) if masks else None
    if defer:
        signal.signal(signal.SIGINT, lambda *args: came.append(args))
    try:
        yield
    finally:
        if before is not None:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
        if defer:
            signal.signal(signal.SIGINT, handler)
            if came:
                handler(*came[0])  # type: ignore[misc, operator]


def _start_helpers(method: str) -> None:
    """Start the processes that a start method needs: they must not inherit a blocked Ctrl-C."""
    for name in ("resource_tracker", "forkserver")[:1 + (method == "forkserver")]:
        importlib.import_module(f"multiprocessing.{name}").ensure_running()


class ProcessPool:
    """Processes that make batches; ``ready`` holds what they sent: batch number -> (member, outcome)."""

    def __init__(self, fetcher: Fetcher, count: int, slots: int, *, seed: int, streams: bool,
                 init: Any = None, context: Any = None) -> None:
        self.owner, self.dataset = os.getpid(), kind(fetcher.dataset)
        self.members: list[Member] = []
        self.ready: dict[int, tuple[Member, Any]] = {}
        self.closed = False
        self._ticket = self._first = 0
        self._by_fd: dict[int, Member] = {}
        if os.name != "posix":
            raise RuntimeError("DataLoader: worker processes need a POSIX system; use num_workers=0 or "
                               "worker_type='thread'")
        if multiprocessing.current_process().daemon:
            raise RuntimeError("DataLoader: a worker process (or another daemonic process) cannot have "
                               "workers of its own; use num_workers=0 in it")
        self._context = context if hasattr(context, "Process") else multiprocessing.get_context(context)
        method = self._context.get_start_method()
        if method != "fork":
            _start_helpers(method)
        self._method, self._poll = method, select.poll()
        main_thread = threading.current_thread() is threading.main_thread() or method == "forkserver"
        try:
            for i in range(count):
                job = Job(i, count, seed, streams, main_thread, Parcel((fetcher, init)))
                with uninterrupted():
                    self._start(i, slots, job)
        except BaseException:
            self.close()
            raise

    def _start(self, worker_id: int, slots: int, job: Job) -> None:
        member = Member(worker_id, slots)
        try:
            ours, theirs = multiprocessing.Pipe()
            member.channel = Channel(socket.socket(fileno=os.dup(ours.fileno())), blocking=False)
            ours.close()
            member.process = self._context.Process(target=main, args=(theirs, job), daemon=True,
                                                   name=f"DataLoader worker {worker_id}")
            self.members.append(member)
            member.process.start()
            theirs.close()
        except OSError as error:
            add_note(error, f"while starting worker {worker_id} of a DataLoader"
                            + ("; the limit of open files (ulimit -n) or of processes is reached"
                               if error.errno in (errno.EAGAIN, errno.EMFILE) else ""))
            raise
        except (pickle.PicklingError, TypeError, AttributeError) as error:
            add_note(error, f"while sending the dataset {self.dataset}, collate_fn and worker_init_fn to a "
                            f"worker: {self._method!r} needs what pickle can send (no lambdas, local "
                            f"functions or open files); define them at the top of a module, or use "
                            f"multiprocessing_context='fork'")
            raise
        for fd in (member.channel.socket.fileno(), member.process.sentinel):
            self._poll.register(fd, select.POLLIN)
            self._by_fd[fd] = member

    # -- tasks -----------------------------------------------------------------------------------

    def begin(self, seed: int, epoch: int, shares: list[tuple[int, Any]]) -> None:
        """A new epoch: what is left of the one before is dropped."""
        self._first = self._ticket
        for _, outcome in self.ready.values():
            if isinstance(outcome, Batch):
                outcome.drop()
        self.ready.clear()
        for member, (begun, state) in zip(self.members, shares):
            member.send("epoch", seed, epoch, begun, state)
            self._watch(member)

    def takes(self, member: Member) -> bool:
        """Whether the worker has a free slot."""
        member.leases.collect()
        return bool(member.leases.free)

    def load(self, member: Member) -> int:
        """How many batches of this epoch the worker owes."""
        return sum(ticket > self._first for ticket in member.owed)

    def submit(self, member: Member, number: int, indices: Any) -> None:
        """Ask a worker for a batch; only if it ``takes`` one."""
        taken = member.leases.take()
        assert taken is not None
        self._ticket += 1
        member.owed[self._ticket] = number, taken[0], indices
        member.send("load", self._ticket, number, *taken, indices)
        self._watch(member)

    def _watch(self, member: Member) -> None:
        if member.channel.waiting:
            self._poll.modify(member.channel.socket.fileno(), select.POLLIN | select.POLLOUT)

    def collect(self, timeout: float | None) -> None:
        """Wait for something to happen, at most ``timeout`` seconds; raises WorkerDied if a worker ended."""
        ended = []
        for fd, event in self._poll.poll(None if timeout is None else timeout * 1000):
            member = self._by_fd[fd]
            if fd != member.process.sentinel:
                if event & select.POLLOUT:
                    member.channel.flush()
                    if not member.channel.waiting:
                        self._poll.modify(fd, select.POLLIN)
                self._hear(member)
            if fd == member.process.sentinel or member.channel.closed:
                ended.append(member)
        if ended:
            self._died(ended[0])

    def _hear(self, member: Member) -> None:
        for message in map(pickle.loads, member.channel.receive()):
            getattr(self, f"_on_{message[0]}")(member, *message[1:])

    def _on_ready(self, member: Member, inode: int | None) -> None:
        member.ready = True
        if inode is not None:
            member.log = member.channel.descriptor(inode)

    def _on_failed(self, member: Member, told: dict) -> None:
        raise rebuild(told)

    def _on_segment(self, member: Member, slot: int, inode: int) -> None:
        fd = member.channel.descriptor(inode)
        try:
            if fd is not None:
                member.leases.attach(slot, fd)
                return
        except SharedMemoryError:
            pass
        member.lost.add(slot)

    def _on_batch(self, member: Member, ticket: int, slot: int, shared: bool, structure: bytes, parts: list,
                  peak: int, state: Any) -> None:
        member.peak = peak
        if shared and slot in member.lost:
            member.lost.discard(slot)
            member.send("again", ticket)
            self._watch(member)
            return
        if not shared:
            member.leases.give(slot)
        self._done(member, ticket, Batch(member, slot if shared else None, structure, parts, state))

    def _on_error(self, member: Member, ticket: int, told: dict) -> None:
        member.leases.give(member.owed[ticket][1])
        self._done(member, ticket, rebuild(told))

    def _on_end(self, member: Member, ticket: int) -> None:
        member.leases.give(member.owed[ticket][1])
        self._done(member, ticket, None)

    def _done(self, member: Member, ticket: int, outcome: Any) -> None:
        number = member.owed.pop(ticket)[0]
        if ticket > self._first:
            self.ready[number] = member, outcome
        elif isinstance(outcome, Batch):
            outcome.drop()

    # -- the end ---------------------------------------------------------------------------------

    def _died(self, member: Member) -> None:
        with suppress(OSError):
            self._hear(member)
        process, channel = member.process, member.channel
        process.join(1)
        if process.exitcode is None:
            process.kill()
            process.join()
        code = process.exitcode
        owed = [indices for _, _, indices in member.owed.values() if indices is not None]
        detail = f", while loading samples {', '.join(map(short, owed))} of {self.dataset}" if owed else \
            f", a worker for {self.dataset}"
        if member.peak:
            detail += f"; its memory had peaked at {member.peak // 1024} MB"
        if not member.ready and code == 1:
            detail += (f"; it had not begun, see its error output. With {self._method!r} a worker imports "
                       f"the main program again: begin the work there under if __name__ == '__main__'")
        if code == -signal.SIGKILL:
            detail += "; the system does this to the largest process when memory runs out"
        stacks = member.stacks()
        if stacks and code not in (0, -signal.SIGKILL, -signal.SIGTERM):
            detail += f"\nIts Python stack:\n{stacks}"
        channel.close()
        raise WorkerDied(process.pid, -code if code < 0 else None, member.id, owed, code, detail)

    def where(self, member: Member) -> str:
        """The Python stacks of a worker that is at work."""
        if member.log is None or DUMP is None:
            return ""
        start = os.fstat(member.log).st_size
        with suppress(OSError):
            os.kill(member.process.pid, DUMP)
        end = time.monotonic() + _DUMP_WAIT
        while time.monotonic() < end:
            before = member.stacks(start)
            time.sleep(0.01)
            if before and member.stacks(start) == before:
                return before
        return member.stacks(start)

    def close(self, grace: float = _GRACE) -> None:
        """End all workers; those that do not by themselves in time are killed."""
        if self.closed or os.getpid() != self.owner:
            return
        self.closed = True
        with uninterrupted():
            for member in self.members:
                if member.channel is not None:
                    member.channel.close(end=True)
            end = time.monotonic() + grace
            started = [m for m in self.members if m.process.pid is not None]
            for member in started:
                member.process.join(max(0.0, end - time.monotonic()))
                if member.process.exitcode is None:
                    member.process.kill()
            for member in started:
                member.process.join()
                member.process.close()
            for member in self.members:
                if member.log is not None:
                    os.close(member.log)
            self._by_fd.clear()
