"""Names in the system's shared memory, where tests of other processes make and take away some, too."""

import os
import time

FOLDER = "/dev/shm"


def names() -> set[str]:
    """Those that there are; none where the system has no such folder."""
    return set(os.listdir(FOLDER)) if os.path.isdir(FOLDER) else set()


def left(before: set[str], seconds: float = 30) -> set[str]:
    """What is there that was not before, and stays: what others made goes within their tests."""
    until = time.monotonic() + seconds
    while (new := names() - before) and time.monotonic() < until:
        time.sleep(0.05)
    return new
