"""The start methods, with queues and pipes on which tensors are shared."""

import multiprocessing
from multiprocessing import context
from typing import Any

from . import channels
from .reduction import register_tensors, share_all


class _Start:
    """A process whose arguments are shared with it, whatever starts it."""

    _args: tuple
    _kwargs: dict

    def start(self) -> None:
        """Start the process; tensors among its arguments move to shared memory."""
        register_tensors()
        share_all([self._args, self._kwargs])
        super().start()  # type: ignore[misc]


class Process(_Start, multiprocessing.Process):
    """``multiprocessing.Process``: tensors among its arguments are shared with the new process."""


class _Channels:
    """The channels of a context; everything else is multiprocessing's."""

    def get_context(self, method: str | None = None) -> Any:
        """The context of a start method, or this one."""
        return self if method is None else get_context(method)

    def Pipe(self, duplex: bool = True) -> tuple[Any, Any]:
        """Two connected ends; with ``duplex=False`` the first only receives and the second only sends."""
        return channels.Pipe(duplex)

    def Queue(self, maxsize: int = 0) -> Any:
        """A queue of at most ``maxsize`` objects (0: any number)."""
        return channels.Queue(maxsize, ctx=self)

    def JoinableQueue(self, maxsize: int = 0) -> Any:
        """A queue that counts the tasks done."""
        return channels.JoinableQueue(maxsize, ctx=self)

    def SimpleQueue(self) -> Any:
        """A queue that is a locked pipe."""
        return channels.SimpleQueue(ctx=self)


class SpawnProcess(_Start, context.SpawnProcess):
    """A process started by running Python anew."""


class SpawnContext(_Channels, context.SpawnContext):
    """The start method "spawn"."""

    Process = SpawnProcess


_CONTEXTS: dict[str, Any] = {"spawn": SpawnContext()}

if hasattr(context, "ForkContext"):
    class ForkProcess(_Start, context.ForkProcess):
        """A process that is a copy of this one."""

    class ForkServerProcess(_Start, context.ForkServerProcess):
        """A process forked by a server that runs nothing else."""

    class ForkContext(_Channels, context.ForkContext):
        """The start method "fork"."""

        Process = ForkProcess

    class ForkServerContext(_Channels, context.ForkServerContext):
        """The start method "forkserver"."""

        Process = ForkServerProcess

    _CONTEXTS.update(fork=ForkContext(), forkserver=ForkServerContext())


def get_context(method: str | None = None) -> Any:
    """The context of a start method ("fork", "spawn", "forkserver"), by default the one that is set.

    It has the functions of this module. Raises ValueError for a method that the system does not have.
    """
    method = method or multiprocessing.get_start_method()
    if method not in multiprocessing.get_all_start_methods():
        raise ValueError(f"get_context: there is no start method {method!r} here; there are: "
                         f"{', '.join(multiprocessing.get_all_start_methods())}")
    return _CONTEXTS[method]


def Queue(maxsize: int = 0) -> channels.Queue:
    """A queue between processes, of at most ``maxsize`` objects (0: any number)."""
    return get_context().Queue(maxsize)


def JoinableQueue(maxsize: int = 0) -> channels.JoinableQueue:
    """A queue that counts the tasks done; see ``multiprocessing.JoinableQueue``."""
    return get_context().JoinableQueue(maxsize)


def SimpleQueue() -> channels.SimpleQueue:
    """A queue that is a locked pipe; see ``multiprocessing.SimpleQueue``."""
    return get_context().SimpleQueue()


def Pool(processes: int | None = None, initializer: Any = None, initargs: tuple = (),
         maxtasksperchild: int | None = None) -> Any:
    """A pool of worker processes; tensors among arguments and results are shared."""
    return get_context().Pool(processes, initializer, initargs, maxtasksperchild)
