"""Fault injection: the n-th allocation, open, write, fsync, rename, ... fails, or kills the process.

    for fault in to_exhaustion("write"):
        with fault:
            ...  # raises at one step later each time
        ...  # look at what is left; the last round runs undisturbed

Allocations are those of NumPy's array data, results of ufuncs included: a memory handler is installed
through its C interface. Writes are those that reach the system, so a failing one may be a flush, and the
half of the bytes that fits is written before the disk is full.
"""

import builtins
import ctypes
import errno
import io
import os
import signal
import socket
import warnings
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from contextvars import copy_context
from typing import Any

import numpy as np

import framework.quiet as quieting
from framework.quiet import quiet


class Injected(OSError):
    """A failure of the system that a test asked for."""


class Countdown:
    """Lets ``n`` calls pass, then fails once."""

    def __init__(self, n: int, failure: Callable[[], Any]) -> None:
        self.left, self.failure, self.fired, self.owner = n, failure, False, os.getpid()

    def due(self) -> bool:
        """Whether this call is the one to fail; never in a child of the process that asked."""
        if os.getpid() != self.owner:
            return False
        self.left -= 1
        if self.left == -1:
            self.fired = True
        return self.left == -1

    def call(self) -> None:
        if self.due():
            self.failure()


def full() -> None:
    raise Injected(errno.ENOSPC, "No space left on device (injected)")


def broken() -> None:
    raise Injected(errno.EIO, "Input/output error (injected)")


def many_files() -> None:
    raise Injected(errno.EMFILE, "Too many open files (injected)")


def killed() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


# -- what can fail ---------------------------------------------------------------------------------


@contextmanager
def patched(home: Any, name: str, make: Callable[[Callable], Any]) -> Iterator[None]:
    real = getattr(home, name)
    setattr(home, name, make(real))
    try:
        yield
    finally:
        setattr(home, name, real)


def calls(home: Any, name: str) -> Callable[[Countdown], AbstractContextManager]:
    """Failures at calls of one function."""
    def install(countdown: Countdown) -> AbstractContextManager:
        def make(real: Callable) -> Callable:
            def replacement(*args: Any, **kwargs: Any) -> Any:
                countdown.call()
                return real(*args, **kwargs)
            return replacement
        return patched(home, name, make)
    return install


def several(*functions: tuple[Any, str]) -> Callable[[Countdown], AbstractContextManager]:
    """Failures at calls of any of these functions, counted together; those there are not are left out."""
    def install(countdown: Countdown) -> AbstractContextManager:
        stack = ExitStack()
        for home, name in functions:
            if hasattr(home, name):
                stack.enter_context(calls(home, name)(countdown))
        return stack
    return install


class _Raw(io.FileIO):
    countdown: Countdown

    def write(self, data: Any) -> int:
        if self.countdown.due():
            super().write(memoryview(data)[:len(data) // 2])
            self.countdown.failure()
        return super().write(data) or 0


@contextmanager
def writes(countdown: Countdown) -> Iterator[None]:
    """Failures at writes to files opened from now on, after half of the bytes."""
    def make(real: Callable) -> Callable:
        def replacement(file: Any, mode: str = "r", *args: Any, **kwargs: Any) -> Any:
            if "b" not in mode or mode.strip("rb") == "":
                return real(file, mode, *args, **kwargs)
            raw = _Raw(file, mode.replace("b", ""))
            raw.countdown = countdown
            return io.BufferedRandom(raw) if "+" in mode else io.BufferedWriter(raw)
        return replacement
    with patched(builtins, "open", make):
        yield


@contextmanager
def opens(countdown: Countdown) -> Iterator[None]:
    with calls(os, "open")(countdown), calls(builtins, "open")(countdown):
        yield


# -- NumPy's memory --------------------------------------------------------------------------------

_MALLOC = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t)
_CALLOC = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_size_t)
_REALLOC = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t)
_FREE = ctypes.PYFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t)


class _Handler(ctypes.Structure):
    """PyDataMem_Handler of NumPy's C interface."""

    _fields_ = [("name", ctypes.c_char * 127), ("version", ctypes.c_uint8), ("context", ctypes.c_void_p),
                ("malloc", _MALLOC), ("calloc", _CALLOC), ("realloc", _REALLOC), ("free", _FREE)]


class _Memory:
    """NumPy's data memory with a countdown before each allocation; NumPy's own functions do the work.

    Freeing must not come by Python: NumPy may do it while an exception is on its way.
    """

    def __init__(self) -> None:
        self.countdown: Countdown | None = None
        api = ctypes.pythonapi
        api.PyCapsule_GetPointer.restype = ctypes.c_void_p
        api.PyCapsule_GetPointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
        api.PyCapsule_New.restype = ctypes.py_object
        api.PyCapsule_New.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
        table = api.PyCapsule_GetPointer(np._core._multiarray_umath._ARRAY_API, None)
        entries = ctypes.cast(table, ctypes.POINTER(ctypes.c_void_p))
        self.set = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.py_object)(entries[304])
        get = ctypes.PYFUNCTYPE(ctypes.py_object)(entries[305])
        usual = _Handler.from_address(api.PyCapsule_GetPointer(get(), b"mem_handler"))
        ok = lambda: self.countdown is None or not self.countdown.due()
        self.handler = _Handler(
            b"countdown", 1, usual.context, _MALLOC(lambda *args: usual.malloc(*args) if ok() else None),
            _CALLOC(lambda *args: usual.calloc(*args) if ok() else None),
            _REALLOC(lambda *args: usual.realloc(*args) if ok() else None), usual.free)
        self.capsule = api.PyCapsule_New(ctypes.addressof(self.handler), b"mem_handler", None)


_memory: list[_Memory] = []


@contextmanager
def allocations(countdown: Countdown) -> Iterator[None]:
    """Failures at NumPy's allocations of array data, in this thread."""
    if not _memory:
        _memory.append(_Memory())
    memory = _memory[0]
    memory.countdown = countdown
    old, run, settings = memory.set(memory.capsule), quiet.run, list(quieting.settings)
    with np.errstate(all="ignore"):
        quiet.run = copy_context().run  # kernels, too, take memory from here, and backward
    quieting.settings[:] = [(v, x) for v, x in settings if v.name != "current_allocator"]
    try:
        yield
    finally:
        memory.set(old)
        quiet.run, quieting.settings[:] = run, settings
        memory.countdown = None


KINDS: dict[str, tuple[Callable[[Countdown], AbstractContextManager], Callable[[], Any]]] = {
    "allocate": (allocations, full),
    "open": (opens, broken),
    "write": (writes, full),
    "fsync": (calls(os, "fsync"), broken),
    "rename": (calls(os, "replace"), broken),
    "unlink": (calls(os, "unlink"), broken),
    "fork": (calls(os, "fork"), broken),
    "pipe": (several((os, "pipe"), (os, "dup"), (socket, "socketpair")), many_files),
    "send": (calls(socket.socket, "send"), broken),
}
EXPECTED = (OSError, MemoryError)


class Fault:
    """One round: the step it fails at, and whether that was reached."""

    def __init__(self, kind: str, n: int, failure: Callable[[], Any] | None = None) -> None:
        install, usual = KINDS[kind]
        self.kind, self.n, self.error = kind, n, None
        self.countdown = Countdown(n, failure or usual)
        self._installed = install(self.countdown)

    @property
    def fired(self) -> bool:
        return self.countdown.fired

    def __enter__(self) -> "Fault":
        self._installed.__enter__()
        return self

    def __exit__(self, kind: Any, error: Any, trace: Any) -> bool:
        """Swallows the failure that was asked for, and nothing else."""
        self._installed.__exit__(None, None, None)
        self.error = error
        return self.fired and isinstance(error, EXPECTED)


def to_exhaustion(kind: str, limit: int = 10_000) -> Iterator[Fault]:
    """Rounds that fail at the first step, the second, ..., until one runs through undisturbed."""
    for n in range(limit):
        fault = Fault(kind, n)
        yield fault
        if not fault.fired:
            assert n > 0, f"nothing of the kind {kind!r} happened"
            return
    raise AssertionError(f"{limit} faults of kind {kind!r} and no end")


def killed_to_exhaustion(kind: str, action: Callable[[], Any], limit: int = 10_000) -> Iterator[int]:
    """Run ``action`` in child processes that die by SIGKILL at the first step, the second, ...; yields
    after each death, and ends when a child ran through."""
    for n in range(limit):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # fork beside threads: the child only saves
            pid = os.fork()
        if pid == 0:
            code = 1
            try:
                with Fault(kind, n, killed):
                    action()
                code = 0
            finally:
                os._exit(code)
        status = os.waitpid(pid, 0)[1]
        if os.WIFEXITED(status):
            assert os.WEXITSTATUS(status) == 0, "the child failed in another way"
            assert n > 0, f"nothing of the kind {kind!r} happened"
            return
        assert os.WTERMSIG(status) == signal.SIGKILL
        yield n
    raise AssertionError(f"{limit} kills at {kind!r} and no end")


def descriptors() -> list[str]:
    """What this process has open, where the system tells."""
    folder = "/proc/self/fd"
    if not os.path.isdir(folder):
        return []
    found = []
    for name in os.listdir(folder):
        try:
            found.append(os.readlink(f"{folder}/{name}"))
        except OSError:
            continue
    return sorted(found)
