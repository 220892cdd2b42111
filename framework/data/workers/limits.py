"""What a worker process changes about itself: one BLAS thread, signals, its end with the main process."""

import ctypes
import faulthandler
import os
import random
import select
import signal
import socket
import sys
import threading

import numpy as np

try:
    import resource
except ImportError:  # not a POSIX system, which has no worker processes
    resource = None  # type: ignore[assignment]

from ...backends.threads import VARIABLES, set_num_threads
from ...random import manual_seed

# asks for the Python stacks; where no handler is set yet it does nothing
DUMP = getattr(signal, "SIGURG", None)
_PR_SET_PDEATHSIG = 1
_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3


def one_thread() -> None:
    """BLAS works with one thread in this process: the workers share the cores among them."""
    for name in VARIABLES:  # for libraries that are loaded later
        os.environ[name] = "1"
    set_num_threads(1)


def keep_memory() -> None:
    """Memory that samples gave back is kept for the next ones: else each is mapped, and zeroed, anew."""
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)  # glibc's
    if mallopt is not None and sys.platform.startswith("linux"):
        mallopt(_M_MMAP_THRESHOLD, 32 << 20)
        mallopt(_M_TRIM_THRESHOLD, 64 << 20)


def quiet_signals() -> None:
    """Ctrl-C is the main process's to answer; handlers it had set are not for a worker."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    if hasattr(signal, "pthread_sigmask"):
        signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGINT])


def end_with_parent(end: socket.socket, from_main_thread: bool) -> None:
    """This process ends when the main process does, even in the middle of a sample.

    The kernel's signal comes when the *thread* that started us ends, so it is used only for the main
    thread's workers; others watch the socket.
    """
    if from_main_thread and sys.platform.startswith("linux"):
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        return
    threading.Thread(target=_watch, args=(end.fileno(),), daemon=True, name="watch").start()


def _watch(fd: int) -> None:
    poll = select.poll()
    poll.register(fd, getattr(select, "POLLRDHUP", select.POLLHUP))
    poll.poll()
    os._exit(1)


def seed_all(seed: int) -> None:
    """What is drawn outside of samples differs per worker."""
    random.seed(seed)
    np.random.mtrand.set_bit_generator(np.random.MT19937())  # no other thread had its lock
    np.random.seed(seed & 0xFFFFFFFF)
    manual_seed(seed)


def peak_memory() -> int:
    """The most memory that this process has had, in KB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss if resource else 0


def stack_log() -> int | None:
    """A file without a name for Python's stacks: after a crash, and when ``DUMP`` asks."""
    if not hasattr(os, "memfd_create"):
        return None
    try:
        fd = os.memfd_create("stacks")
    except OSError:
        return None
    faulthandler.enable(file=fd, all_threads=True)
    if DUMP is not None:
        faulthandler.register(DUMP, file=fd, all_threads=True, chain=False)
    return fd
