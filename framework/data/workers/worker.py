"""The worker process: reads tasks, makes batches, sends them."""

import gc
import os
import pickle
import select
import socket
from collections import deque
from dataclasses import dataclass
from typing import Any

from ...errors import add_note
from ..fetch import Fetcher, kind
from ..randomness import SampleRandom, mix
from . import limits
from .channel import Channel, ends
from .errors import report
from .info import WorkerInfo, here
from .memory import Slots
from .parcel import Parcel, pack


@dataclass
class Job:
    """What a worker is made of."""

    worker_id: int
    num_workers: int
    seed: int
    streams: bool
    from_main_thread: bool
    parcel: Parcel  # of the Fetcher and worker_init_fn


def main(end: Any, job: Job) -> None:
    """The life of a worker process; ``end`` is its end of the pipe."""
    limits.quiet_signals()
    for other in list(ends):  # forked: those of the main process
        other.close()
    gc.freeze()
    sock = socket.socket(fileno=os.dup(end.fileno()))
    end.close()
    limits.end_with_parent(sock, job.from_main_thread)
    channel = Channel(sock, blocking=True)
    try:
        worker = _begin(channel, job)
        if worker is not None:
            worker.run()
    finally:
        channel.close()


def _begin(channel: Channel, job: Job) -> "Worker | None":
    log = limits.stack_log()
    fetcher = dataset = None
    try:
        limits.one_thread()
        limits.keep_memory()
        limits.seed_all(mix(job.seed + job.worker_id))
        fetcher, init = job.parcel.open()
        dataset = kind(fetcher.dataset)
        here.info = WorkerInfo(job.worker_id, job.num_workers, mix(job.seed + job.worker_id) >> 1,
                               fetcher.dataset)
        if init is not None:
            init(job.worker_id)
        fetcher.prepare()
    except BaseException as error:
        where = "opening the dataset" if fetcher is None else "worker_init_fn"
        told = report(error, job.worker_id, where, dataset or "the dataset")
        channel.send(pickle.dumps(("failed", told)))
        return None
    if log is None:
        channel.send(pickle.dumps(("ready", None)))
    else:
        channel.send(pickle.dumps(("ready", os.fstat(log).st_ino)), (log,))
    return Worker(channel, job, fetcher)


class Worker:
    """The loop: one task after the other, in the order they came."""

    def __init__(self, channel: Channel, job: Job, fetcher: Fetcher) -> None:
        self.channel, self.job, self.fetcher = channel, job, fetcher
        self.tasks: deque[tuple] = deque()
        self.slots = Slots()
        fetcher.room = self.slots.empty
        self.unsure: dict[int, tuple] = {}  # batches in a segment that the main process may not get
        self.draws = SampleRandom(job.seed, 0)
        self.waits = select.poll()
        self.waits.register(channel.socket.fileno(), select.POLLIN)
        self.stream: Any = None

    def run(self) -> None:
        """Until the other end is closed."""
        while self._listen():
            task = self.tasks.popleft()
            try:
                getattr(self, task[0])(*task[1:])
            except Exception as error:
                told = report(error, self.job.worker_id, "set_epoch", kind(self.fetcher.dataset))
                self._send(("failed", told))

    def _listen(self) -> bool:
        while not self.channel.closed:
            if self.tasks and not self.waits.poll(0):
                return True
            for message in map(pickle.loads, self.channel.receive()):
                if message[0] == "epoch":
                    for task in self.tasks:  # of an epoch that was left
                        if task[0] == "load":
                            self._send(("end", task[1]))
                    self.tasks.clear()
                    self.tasks.append(message)
                elif message[0] == "again":
                    self._again(message[1])
                else:
                    self.tasks.append(message)
        return False

    def epoch(self, seed: int, epoch: int, begun: int, state: Any) -> None:
        """What follows belongs to this epoch."""
        self.draws, self.stream = SampleRandom(seed, epoch), None
        hear = getattr(self.fetcher.dataset, "set_epoch", None)
        if callable(hear):
            hear(epoch)
        if self.job.streams:
            self.stream = self.fetcher.stream(self.job.worker_id, self.draws, begun, state)

    def load(self, ticket: int, number: int, slot: int, fresh: bool, indices: Any) -> None:
        """Make one batch, the ``number``-th of the epoch, and send it."""
        self.unsure = {t: kept for t, kept in self.unsure.items() if kept[0] != slot}
        self.slots.open(slot, fresh)
        state = None
        try:
            if self.stream is None:
                batch = self.fetcher.fetch(number, indices, self.draws)
            else:
                try:
                    batch = next(self.stream)
                except StopIteration:
                    self._send(("end", ticket))
                    return
                state = self.fetcher.dataset_state()
            self._deliver(ticket, slot, batch, state)
        except BaseException as error:
            self._send(("error", ticket, report(error, self.job.worker_id, self.fetcher.at,
                                                kind(self.fetcher.dataset))))
        finally:
            self.slots.leave()

    def _deliver(self, ticket: int, slot: int, batch: Any, state: Any) -> None:
        try:
            structure, parts = pack(batch)
        except Exception as error:
            add_note(error, "the batch cannot be sent to the main process; return what can be pickled, or "
                            "use num_workers=0")
            raise
        peak = limits.peak_memory()
        placed = self.slots.place(parts)
        if placed is None:
            self._send(("batch", ticket, slot, False, structure, [bytearray(p) for p in parts], peak, state))
            return
        spans, segment = placed
        head = ("batch", ticket, slot, True, structure, spans, peak, state)
        if segment is None:
            self._send(head)
        else:
            self.unsure[ticket] = (slot, structure, spans, self.slots.memory(), peak, state)
            fd = segment.fd
            assert fd is not None
            self._send(("segment", slot, os.fstat(fd).st_ino), (fd,))
            segment.close()
            self._send(head)

    def _again(self, ticket: int) -> None:
        slot, structure, spans, memory, peak, state = self.unsure.pop(ticket)
        self.slots.refuse()
        parts = [bytearray(memory[at:at + size]) for at, size in spans]
        self._send(("batch", ticket, slot, False, structure, parts, peak, state))

    def _send(self, message: tuple, fds: tuple = ()) -> None:
        self.channel.send(pickle.dumps(message, 5), fds)
