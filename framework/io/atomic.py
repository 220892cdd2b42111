"""Replacing a file so that a crash leaves either the old one or the new one, whole."""

import errno
import os
import re
import secrets
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from importlib import import_module
from typing import Any, BinaryIO, cast

from ..errors import SaveError

_REMEDIES = {errno.ENOSPC: "the disk is full; free some space or save elsewhere",
             errno.EDQUOT: "the quota is used up; free some space or save elsewhere",
             errno.EFBIG: "the file is larger than the file system or a limit allows",
             errno.EIO: "the disk or its connection failed; save elsewhere and check the hardware",
             errno.EROFS: "the file system is read-only; save elsewhere"}


def write_atomically(path: Any, write: Callable[[BinaryIO], None]) -> None:
    """Call ``write(file)`` on a temporary file beside ``path``, sync it, and rename it to ``path``.

    On any failure the temporary file is removed and what stood at ``path`` is untouched. A link is
    followed; permissions of a file that is replaced are kept, and one without write permission is not
    replaced. What is no regular file (a pipe, /dev/null) is written to directly. Temporary files of
    savers that were killed are removed.
    """
    target = os.path.realpath(os.fspath(path))
    if isinstance(target, bytes):
        target = os.fsdecode(target)
    folder, name = os.path.split(target)
    if not os.path.isdir(folder):
        raise FileNotFoundError(errno.ENOENT, "cannot save: the directory does not exist; create it first",
                                folder)
    mode = _mode(target)
    if mode is not None and not stat.S_ISREG(mode):
        with open(target, "wb") as file:
            write(file)
        return
    start = f".{name[:50]}."  # with what follows it is no longer than a name may be, in any script
    remove_abandoned(folder, re.escape(start[1:-1]))
    try:
        _replace(target, folder, start, mode, write)
    except OSError as error:
        raise _explained(error, target, "what stood at this path before is untouched") from error
    try:
        _sync_folder(folder)
    except OSError as error:
        raise _explained(error, target, "the new file is there, but may not survive a power cut") from error


def _explained(error: OSError, target: str, state: str) -> OSError:
    remedy = _REMEDIES.get(error.errno or 0)
    if remedy is None:
        return error
    return SaveError(error.errno, f"cannot save: {os.strerror(error.errno or 0)}: {remedy}; {state}", target)


def _mode(target: str) -> int | None:
    """The mode of what stands at ``target``; raises where it must not be replaced."""
    try:
        mode = os.stat(target).st_mode
    except FileNotFoundError:
        return None
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, "cannot save: this is a directory, give a file name", target)
    if not os.access(target, os.W_OK):
        raise PermissionError(errno.EACCES, "cannot save: there is no permission to write this file", target)
    return mode


def _replace(target: str, folder: str, start: str, mode: int | None, write: Callable) -> None:
    with _temporary(folder, start) as (temporary, file):
        if mode is not None:
            os.chmod(temporary, stat.S_IMODE(mode))
        write(file)
        file.flush()
        os.fsync(file.fileno())
        os.replace(temporary, target)


@contextmanager
def _temporary(folder: str, start: str) -> Iterator[tuple[str, BinaryIO]]:
    """A locked new file; removed on the way out unless it was renamed.

    The lock says that its owner lives. It is taken after the file appears, so a cleaner may have
    removed the file in between: then there is no link left, and another is made.
    """
    flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
    while True:
        path = os.path.join(folder, f"{start}{secrets.token_hex(6)}.tmp")
        descriptor = os.open(path, flags, 0o666)
        try:
            file = open(descriptor, "w+b")  # noqa: SIM115 - closed below
        except BaseException:
            os.close(descriptor)
            _remove(path)
            raise
        try:
            if locked(file, wait=True) and os.fstat(file.fileno()).st_nlink == 0:
                file.close()
                continue
            yield path, cast(BinaryIO, file)
            return
        except BaseException:
            _remove(path)
            raise
        finally:
            with suppress(OSError):  # what could not be flushed has been reported
                file.close()


def locked(file: BinaryIO, wait: bool) -> bool:
    """Lock a file for as long as it is open; False where another has it or the system has no locks."""
    if os.name != "posix":
        return False
    fcntl = import_module("fcntl")
    try:
        fcntl.flock(file, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def remove_abandoned(folder: str, names: str) -> None:
    """Remove temporary files of savers that were killed, those that nobody locks.

    names: a regular expression for the names of the files that were to be saved.
    """
    pattern = re.compile(rf"\.{names}\.[0-9a-f]{{12}}\.tmp")
    try:
        there = os.listdir(folder)
    except OSError:  # a directory may be writable and not readable
        return
    for name in there:
        if pattern.fullmatch(name):
            path = os.path.join(folder, name)
            with suppress(OSError), open(path, "rb") as file:  # another may remove it first
                if locked(file, wait=False):
                    os.unlink(path)


def _remove(path: str) -> None:
    with suppress(OSError):  # the failure that brought us here is the one to report
        os.unlink(path)


def _sync_folder(folder: str) -> None:
    """Make the rename itself survive a power cut, where the system can sync a directory."""
    if os.name != "posix":
        return
    try:
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOTSUP, errno.EBADF, errno.EACCES):
            raise
