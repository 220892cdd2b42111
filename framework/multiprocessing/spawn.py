"""Run one function in several processes, and bring home the error of the first that fails."""

import contextlib
import os
import pickle
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from multiprocessing import connection, parent_process, resource_tracker
from typing import Any

from ..errors import FrameworkError
from .process import get_context

_GRACE = 5.0  # seconds between asking a process to end and ending it


class ProcessException(FrameworkError, RuntimeError):
    """A process of ``spawn`` failed. error_index: its index. error_pid: its process id."""

    def __init__(self, msg: str, error_index: int, error_pid: int) -> None:
        super().__init__(msg)
        self.msg, self.error_index, self.error_pid = msg, error_index, error_pid

    def __reduce__(self) -> tuple:
        return type(self), (self.msg, self.error_index, self.error_pid)


class ProcessRaisedException(ProcessException):
    """A process of ``spawn`` raised; the message holds its traceback, ``__cause__`` is the exception.

    ``__cause__`` is None where the exception cannot be pickled.
    """


class ProcessExitedException(ProcessException):
    """A process of ``spawn`` ended without raising: by ``exit_code``, or killed by ``signal_name``."""

    def __init__(self, msg: str, error_index: int, error_pid: int, exit_code: int,
                 signal_name: str | None = None) -> None:
        super().__init__(msg, error_index, error_pid)
        self.exit_code, self.signal_name = exit_code, signal_name

    def __reduce__(self) -> tuple:
        return type(self), (self.msg, self.error_index, self.error_pid, self.exit_code, self.signal_name)


class ProcessContext:
    """The processes that ``start_processes(join=False)`` started."""

    def __init__(self, processes: list[Any], errors: list[Any]) -> None:
        self.processes = processes
        self._errors = errors
        self._said: dict[int, tuple[str, bytes] | None] = {}  # None: it ended without a word

    def pids(self) -> list[int]:
        """The process ids."""
        return [p.pid for p in self.processes]

    def join(self, timeout: float | None = None, grace_period: float | None = None) -> bool:
        """Wait until all are done (True), or for ``timeout`` seconds (False).

        When one fails the others are asked to end (SIGTERM), and ended after ``grace_period`` seconds
        (default 5); then ProcessRaisedException or ProcessExitedException is raised.
        """
        deadline = None if timeout is None else time.monotonic() + timeout
        while True:
            codes = [p.exitcode for p in self.processes]
            self._listen()
            failed = [i for i, code in enumerate(codes) if code]
            if failed:
                self._end(_GRACE if grace_period is None else grace_period)
                self._raise(min(failed, key=self._blame))
            alive = [i for i, code in enumerate(codes) if code is None]
            if not alive:
                for p in self.processes:
                    p.join()
                return True
            left = None if deadline is None else max(deadline - time.monotonic(), 0)
            ends = [self.processes[i].sentinel for i in alive]
            words = [self._errors[i] for i in alive if i not in self._said]
            if not connection.wait(ends + words, left) and left is not None:
                return False

    def _listen(self) -> None:
        """Take what the processes send: one that has much to say ends only after it was heard."""
        for i, errors in enumerate(self._errors):
            if i not in self._said and errors.poll():
                try:
                    self._said[i] = errors.recv()
                except (EOFError, OSError):
                    self._said[i] = None
                errors.close()

    def _blame(self, index: int) -> tuple:
        """Of several that failed, those that say why come first, then those that were not just ended."""
        return (not self._said.get(index), self.processes[index].exitcode == -signal.SIGTERM, index)

    def _end(self, grace: float) -> None:
        for p in self.processes:
            p.terminate()
        deadline = time.monotonic() + grace
        for p in self.processes:
            p.join(max(deadline - time.monotonic(), 0))
        for p in self.processes:
            if p.exitcode is None:
                p.kill()
                p.join()

    def _raise(self, index: int) -> None:
        process = self.processes[index]
        said = self._said.get(index)
        if said is not None:
            text, pickled = said
            raise ProcessRaisedException(f"process {index} (pid {process.pid}) raised:\n\n{text}", index,
                                         process.pid) from _unpickled(pickled)
        code, pid = process.exitcode, process.pid
        name = _signal_name(-code) if code < 0 else None
        how = f"was killed by {name}" if name else f"exited with code {code}"
        raise ProcessExitedException(f"process {index} (pid {pid}) {how}", index, pid, code, name)


SpawnContext = ProcessContext


def start_processes(fn: Callable, args: tuple = (), nprocs: int = 1, join: bool = True, daemon: bool = False,
                    start_method: str = "spawn") -> ProcessContext | None:
    """Run ``fn(i, *args)`` in ``nprocs`` processes, i = 0, 1, ...

    Tensors in args are shared. join: wait until all are done, as ``ProcessContext.join`` does, else
    return the ProcessContext. daemon: end them when this process ends. However this process ends, even
    by SIGKILL, they are ended with it. Raises ProcessRaisedException or ProcessExitedException (with
    join) when one fails, after ending the others.
    """
    if not callable(fn):
        raise TypeError(f"start_processes: fn must be callable, got {type(fn).__name__}")
    if not isinstance(nprocs, int) or nprocs < 1:
        raise ValueError(f"start_processes: nprocs must be a positive int, got {nprocs!r}")
    ctx = get_context(start_method)
    processes: list[Any] = []
    errors: list[Any] = []
    context = ProcessContext(processes, errors)
    try:
        for i in range(nprocs):
            ours, theirs = ctx.Pipe(duplex=False)
            process = ctx.Process(target=_run, args=(fn, i, tuple(args), theirs), daemon=daemon)
            with _interrupts_held(start_method):
                process.start()
            theirs.close()
            processes.append(process)
            errors.append(ours)
    except BaseException:
        context._end(_GRACE)
        raise
    if not join:
        return context
    try:
        context.join()
    except KeyboardInterrupt:
        context._end(_GRACE)
        raise
    return None


def spawn(fn: Callable, args: tuple = (), nprocs: int = 1, join: bool = True, daemon: bool = False,
          start_method: str = "spawn") -> ProcessContext | None:
    """``start_processes``, under the name by which it is known."""
    return start_processes(fn, args, nprocs, join, daemon, start_method)


@contextlib.contextmanager
def _interrupts_held(start_method: str) -> Iterator[None]:
    """A process begins with Ctrl-C held back, until ``_run`` can answer it without a traceback.

    Not the fork server, which would pass that on to processes that are not ours.
    """
    if start_method == "forkserver" or not hasattr(signal, "pthread_sigmask"):
        yield
        return
    if start_method == "spawn":
        resource_tracker.ensure_running()  # it would let them through again when it starts
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _run(fn: Callable, i: int, args: tuple, errors: Any) -> None:
    """What runs in the process: ``fn``, its error sent home instead of printed."""
    try:
        if hasattr(signal, "pthread_sigmask"):
            signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGINT])
        threading.Thread(target=_end_with_parent, name="parent-watch", daemon=True).start()
        fn(i, *args)
    except KeyboardInterrupt:
        sys.exit(130)
    except Exception as error:
        _send_home(errors, error)
        sys.exit(1)


def _send_home(errors: Any, error: Exception) -> None:
    text = "".join(traceback.format_exception(error))
    try:
        pickled = pickle.dumps(error)
    except Exception:  # whatever the exception's own parts raise
        pickled = b""
    with contextlib.suppress(BrokenPipeError):
        errors.send((text, pickled))


def _unpickled(pickled: bytes) -> Exception | None:
    """The exception, where it can be made again: one with two arguments, say, may not know how."""
    try:
        error = pickle.loads(pickled)
    except Exception:
        return None
    return error if isinstance(error, Exception) else None


def _end_with_parent() -> None:
    parent = parent_process()
    if parent is not None:
        connection.wait([parent.sentinel])
        os.kill(os.getpid(), signal.SIGTERM)


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
