"""What can be saved to and loaded from: paths and open binary files."""

import io
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, BinaryIO, NamedTuple

from .atomic import write_atomically


class Source(NamedTuple):
    """A file to read from where it stands: its size from there, its name, whether we opened it."""

    file: BinaryIO
    size: int
    name: str
    ours: bool


@contextmanager
def open_source(source: Any, op: str) -> Iterator[Source]:
    """A path, opened for the block, or a binary file that is open, read from where it stands."""
    if hasattr(source, "read"):
        yield _from_file(source, op)
        return
    path = path_of(source, op)
    if os.path.isdir(path):
        raise IsADirectoryError(f"{op}: {path!r} is a directory; give the path of a file")
    try:
        file = open(path, "rb")  # noqa: SIM115 - closed below
    except FileNotFoundError:
        raise FileNotFoundError(f"{op}: there is no file {path!r}") from None
    with file:
        yield Source(file, os.fstat(file.fileno()).st_size, repr(path), True)


def _from_file(source: Any, op: str) -> Source:
    name = str(getattr(source, "name", "the file"))
    if isinstance(source, io.TextIOBase) or isinstance(source.read(0), str):
        raise TypeError(f"{op}: the file must be opened in binary mode ('rb')")
    if not (hasattr(source, "readinto") and hasattr(source, "seekable") and source.seekable()):
        data = source.read()  # a pipe, say: its size is not known before
        return Source(io.BytesIO(data), len(data), name, False)
    here = source.tell()
    size = source.seek(0, os.SEEK_END) - here
    source.seek(here)
    return Source(source, size, name, False)


def read_exactly(file: BinaryIO, count: int) -> bytes:
    """``count`` bytes, fewer only at the end: a raw file may give less than it is asked for."""
    pieces = []
    while count > 0:
        piece = file.read(min(count, 1 << 24))
        if not piece:
            break
        pieces.append(piece)
        count -= len(piece)
    return b"".join(pieces)


def first_bytes(source: Source, count: int = 16) -> bytes:
    """What the file starts with; it is left where it was."""
    here = source.file.tell()
    found = read_exactly(source.file, count)
    source.file.seek(here)
    return found


def path_of(target: Any, op: str) -> str:
    """``target`` as text; raises TypeError for what is neither path nor file."""
    if not isinstance(target, (str, bytes, os.PathLike)):
        raise TypeError(f"{op}: wanted a path or a binary file, got {type(target).__name__}")
    return os.fsdecode(target)


def write_target(target: Any, write: Callable[[BinaryIO, bool], None], op: str) -> None:
    """Call ``write(file, patch)`` on a path's file, replaced atomically, or on a file that is open.

    patch: the file is at its start and ``write`` may seek in it.
    """
    if hasattr(target, "write"):
        if isinstance(target, io.TextIOBase):
            raise TypeError(f"{op}: the file must be opened in binary mode ('wb')")
        write(target, False)
    else:
        write_atomically(path_of(target, op), lambda file: write(file, file.seekable()))
