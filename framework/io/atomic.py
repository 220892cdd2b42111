"""Replacing a file so that a crash leaves either the old one or the new one, whole."""

import errno
import os
import secrets
from collections.abc import Callable
from contextlib import suppress
from typing import Any, BinaryIO


def write_atomically(path: Any, write: Callable[[BinaryIO], None]) -> None:
    """Call ``write(file)`` on a temporary file beside ``path``, sync it, and rename it to ``path``.

    On any failure the temporary file is removed and what stood at ``path`` is untouched. A link is
    followed; permissions of a file that is replaced are kept.
    """
    target = os.path.realpath(os.fspath(path))
    if isinstance(target, bytes):
        target = os.fsdecode(target)
    folder, name = os.path.split(target)
    if not os.path.isdir(folder):
        raise FileNotFoundError(errno.ENOENT, "cannot save: the directory does not exist; create it first",
                                folder)
    if os.path.isdir(target):
        raise IsADirectoryError(errno.EISDIR, "cannot save: this is a directory, give a file name", target)
    temporary = os.path.join(folder, f".{name[:200]}.{secrets.token_hex(6)}.tmp")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0),
                         0o666)
    try:
        with open(descriptor, "wb") as file:
            if os.path.exists(target):
                os.chmod(temporary, os.stat(target).st_mode & 0o7777)
            write(file)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, target)
    except BaseException:
        _remove(temporary)
        raise
    _sync_folder(folder)


def _remove(path: str) -> None:
    with suppress(OSError):  # the failure that brought us here is the one to report
        os.unlink(path)


def _sync_folder(folder: str) -> None:
    """Make the rename itself survive a power cut, where the system can sync a directory."""
    if os.name != "posix":
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOTSUP, errno.EBADF):
            raise
    finally:
        os.close(descriptor)
