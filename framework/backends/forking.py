"""Forking while another thread is inside a matrix product.

Before a fork OpenBLAS ends its threads. One that is at work misses the order to end, and the fork waits
for it for ever. So before a fork of a process with several Python threads, products are held to one thread,
which leaves the pool alone, and those under way are waited for: a thread of the pool is then asleep.
"""

import os
import threading
import time

from .threads import get_num_threads, set_num_threads

_PATIENCE = 2.0  # seconds; then the busy threads are not BLAS's
_held: int | None = None
_forking = threading.Lock()


def _before() -> None:
    global _held
    _forking.acquire()
    if threading.active_count() < 2 or not os.path.isdir("/proc/self/task"):
        return
    threads = get_num_threads()
    if threads < 2:
        return
    _held = threads
    set_num_threads(1)
    give_up, calm = time.monotonic() + _PATIENCE, 0
    while calm < 2 and time.monotonic() < give_up:
        time.sleep(0.001)
        calm = 0 if _busy() else calm + 1


def _busy() -> bool:
    """Whether a thread that Python does not know is at work."""
    known = {t.native_id for t in threading.enumerate()}
    for thread in os.listdir("/proc/self/task"):
        if int(thread) in known:
            continue
        try:
            with open(f"/proc/self/task/{thread}/stat") as file:
                state = file.read().rpartition(")")[2].split()[0]
        except (OSError, IndexError):  # it ended
            continue
        if state in "RD":
            return True
    return False


def _after() -> None:
    global _held
    if _held is not None:
        threads, _held = _held, None
        set_num_threads(threads)
    _forking.release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before, after_in_parent=_after, after_in_child=_after)
