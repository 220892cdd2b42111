"""The bytes of tensors on their way to and from a file: in blocks, with checksums, without a second copy.

A block is hashed while it is in the processor's cache, on two threads (zlib and the reading calls let
other threads run), so that a checked load costs no more than an unchecked one.
"""

import mmap
import os
import sys
import zlib
from collections.abc import Callable, Iterator
from queue import Queue
from threading import Thread
from typing import Any, BinaryIO

import numpy as np

from .. import _native
from ..backends import array_module, move
from ..backends.memory import cached_memory
from ..device import CPU
from ..errors import CheckpointError, add_note
from .file_layout import BLOCK, Entry, Header, check_total, pack_header

_STEP = 1 << 20  # what is read and hashed at once: it stays in the cache
_THREADED = 8 * BLOCK  # below this a thread costs more than it brings
_VECTOR = 512  # buffers in one reading call; systems allow 1024
_SWAP = sys.byteorder == "big"

crc32: Callable = getattr(_native.module, "crc32", zlib.crc32)

Arrays = dict[str, np.ndarray]


# -- writing ---------------------------------------------------------------------------------------


def write_layout(file: BinaryIO, arrays: dict[str, Any], metadata: dict[str, str], *,
                 patch: bool = False) -> None:
    """Write arrays (of any device) with ``metadata`` in the safetensors layout, sealed with checksums.

    patch: the file stands at its start and can seek: the checksums are computed while the data is
    written, and the header is written over at the end. Otherwise the data is read twice.
    """
    ordered = sorted(arrays.items(), key=lambda item: -item[1].dtype.itemsize)  # so that all are aligned
    entries, position = [], 0
    for name, array in ordered:
        size = array.size * array.dtype.itemsize
        entries.append(Entry(name, np.dtype(array.dtype), array.shape, position, position + size))
        position += size
    blocks = (lambda: _blocks([array for _, array in ordered]))
    if not patch:
        sums = [_crc(block) for block in blocks()]
        write_all(file, pack_header(entries, metadata, sums))
        for block in blocks():
            _write(file, block)
        return
    write_all(file, pack_header(entries, metadata, [0] * -(-position // BLOCK)))
    sums = _write_and_sum(file, blocks(), position)
    file.seek(0)
    write_all(file, pack_header(entries, metadata, sums))


def _write_and_sum(file: BinaryIO, blocks: Iterator[list[memoryview]], total: int) -> list[int]:
    """Write the blocks, and hash each on a second thread meanwhile."""
    sums: list[int] = []
    if total < _THREADED:
        for block in blocks:
            sums.append(_crc(block))
            _write(file, block)
        return sums
    waiting: Queue[list[memoryview] | None] = Queue(4)  # a block may be a copy: only few at a time

    def hash_all() -> None:
        while (block := waiting.get()) is not None:
            sums.append(_crc(block))

    def write() -> None:
        try:
            for block in blocks:
                waiting.put(block)
                _write(file, block)
        finally:
            waiting.put(None)

    _both(write, hash_all)
    return sums


def _both(here: Callable[[], None], beside: Callable[[], None]) -> None:
    """Do ``here`` on this thread and ``beside`` on another; raises what either raised.

    No pool of concurrent.futures: those refuse work when the main thread has ended, and a background
    save may come later.
    """
    errors: list[BaseException] = []

    def guarded() -> None:
        try:
            beside()
        except BaseException as error:
            errors.append(error)

    thread = Thread(target=guarded, name="checkpoint")
    thread.start()
    try:
        here()
    finally:
        thread.join()
    if errors:
        raise errors[0]


def _write(file: BinaryIO, block: list[memoryview]) -> None:
    for piece in block:
        write_all(file, piece)


def write_all(file: BinaryIO, data: bytes | memoryview) -> None:
    """Write all of ``data``: a raw file may take less than it is given."""
    view = memoryview(data)
    while len(view):
        done = file.write(view)
        view = view[len(view) if done is None else done:]


def _crc(block: list[memoryview]) -> int:
    crc = 0
    for piece in block:
        crc = crc32(piece, crc)
    return crc


def _blocks(arrays: list[Any]) -> Iterator[list[memoryview]]:
    """The bytes of the arrays one after another, as blocks of BLOCK bytes (the last one shorter)."""
    block: list[memoryview] = []
    room = BLOCK
    for array in arrays:
        for piece in _pieces(array):
            while len(piece) >= room:
                yield [*block, piece[:room]]
                piece, block, room = piece[room:], [], BLOCK
            if len(piece):
                block.append(piece)
                room -= len(piece)
    if block:
        yield block


def _pieces(array: Any) -> Iterator[memoryview]:
    """The bytes of an array in row-major order; where they must be copied, a block's worth at a time."""
    size = array.size * array.dtype.itemsize
    if size == 0:
        return
    contiguous = bool(array.flags.c_contiguous)
    if contiguous and isinstance(array, np.ndarray) and not _SWAP:
        yield memoryview(array.reshape(-1).view(np.uint8))
    elif size <= BLOCK:
        host = move(array_module(array).ascontiguousarray(array), CPU).reshape(-1)
        yield memoryview((host.byteswap() if _SWAP else host).view(np.uint8))
    else:
        parts = array.reshape(-1) if contiguous else array
        rows = max(1, len(parts) * BLOCK // size)
        for i in range(0, len(parts), rows):
            yield from _pieces(parts[i] if rows == 1 else parts[i:i + rows])


# -- reading ---------------------------------------------------------------------------------------


def read_arrays(file: BinaryIO, header: Header, what: str, ours: bool, verify: bool = True) -> Arrays:
    """The arrays that ``header`` describes, read to memory of their own and verified.

    ours: nobody else moves in the file. Raises CheckpointError where the bytes do not give the
    checksums of the header.
    """
    if not verify:
        header = header._replace(sums=(), crc=None)
    arrays = {e.name: _empty(e, what) for e in header.entries}
    views = [memoryview(arrays[e.name].reshape(-1).view(np.uint8)) for e in header.entries if e.end > e.begin]
    if header.crc is not None:
        crc = header.crc
        for view in views:
            for i in range(0, len(view), _STEP):
                crc = _fill(file, [view[i:i + _STEP]], crc, what)
        check_total(header, crc, what, header.metadata["checksum"])
    elif header.total >= _THREADED and ours and hasattr(os, "preadv"):
        _read_threaded(file, views, header, what)
    else:
        for k, block in enumerate(_cut(views, header.block or BLOCK)):
            _compare(header, k, _read_steps(block, lambda part, crc: _fill(file, part, crc, what)), what)
    for e in header.entries:
        _check_bool(e, arrays[e.name], what)
        if _SWAP:
            arrays[e.name].byteswap(inplace=True)
    return arrays


def _empty(e: Entry, what: str) -> np.ndarray:
    try:
        with cached_memory():
            return np.empty(e.shape, e.dtype)
    except ValueError as error:
        raise CheckpointError(f"{what}: tensor {e.name!r} of shape {list(e.shape)} cannot be ({error})"
                              ) from None
    except MemoryError as error:
        add_note(error, f"{what}: no memory for tensor {e.name!r} of {e.end - e.begin} bytes; mmap=True "
                        f"loads without it")
        raise


def _cut(views: list[memoryview], size: int) -> Iterator[list[memoryview]]:
    """The bytes of ``views`` as blocks of ``size`` bytes; the last one may be shorter."""
    block: list[memoryview] = []
    room = size
    for view in views:
        while len(view) >= room:
            yield [*block, view[:room]]
            view, block, room = view[room:], [], size
        if len(view):
            block.append(view)
            room -= len(view)
    if block:
        yield block


def _read_steps(block: list[memoryview], read: Callable[[list[memoryview], int], int]) -> int:
    """Fill a block by ``read(views, crc)``, a cache's worth at a time; returns its checksum."""
    crc = 0
    for part in _cut(block, _STEP):
        for i in range(0, len(part), _VECTOR):
            crc = read(part[i:i + _VECTOR], crc)
    return crc


def _fill(file: BinaryIO, views: list[memoryview], crc: int, what: str) -> int:
    """Fill the views from where the file stands, and continue the checksum."""
    for view in views:
        done = 0
        while done < len(view):
            n = file.readinto(view[done:])  # type: ignore[attr-defined]
            if not n:
                raise CheckpointError(f"{what}: the file ends inside its tensors; it is cut short")
            done += n
        crc = crc32(view, crc)
    return crc


def _read_threaded(file: BinaryIO, views: list[memoryview], header: Header, what: str) -> None:
    """Read and check the blocks on two threads, each at its own place in the file."""
    descriptor, block_size = file.fileno(), header.block or BLOCK

    def one(k: int, block: list[memoryview]) -> None:
        at = header.start + k * block_size

        def read(part: list[memoryview], crc: int) -> int:
            nonlocal at
            at += _pread(descriptor, part, at, what)
            if header.sums:
                for view in part:
                    crc = crc32(view, crc)
            return crc

        _compare(header, k, _read_steps(block, read), what)

    _on_two_threads(one, list(enumerate(_cut(views, block_size))))


def _pread(descriptor: int, views: list[memoryview], at: int, what: str) -> int:
    """Fill the views from place ``at`` of the file; returns the bytes read."""
    total = sum(map(len, views))
    done, left = 0, list(views)
    while done < total:
        n = os.preadv(descriptor, left, at + done)
        if n == 0:
            raise CheckpointError(f"{what}: the file ends inside its tensors; it was cut short meanwhile")
        done += n
        while left and n >= len(left[0]):
            n -= len(left.pop(0))
        if n:
            left[0] = left[0][n:]
    return done


def _on_two_threads(work: Callable, items: list[tuple]) -> None:
    def half(k: int) -> None:
        for item in items[k::2]:
            work(*item)

    _both(lambda: half(0), lambda: half(1))


def _compare(header: Header, k: int, crc: int, what: str) -> None:
    if header.sums and header.sums[k] != crc:
        begin, end = k * header.block, (k + 1) * header.block
        names = [e.name for e in header.entries if e.begin < end and e.end > begin]
        listed = ", ".join(map(repr, names[:3])) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
        raise CheckpointError(f"{what}: the checksum of block {k} is {crc:08x}, the file says "
                              f"{header.sums[k]:08x}: it is damaged in {listed}; use an earlier copy")


def _check_bool(e: Entry, array: np.ndarray, what: str) -> None:
    if e.dtype.kind == "b" and array.size and array.view(np.uint8).max() > 1:
        raise CheckpointError(f"{what}: tensor {e.name!r} is BOOL but holds bytes other than 0 and 1")


# -- mapping ---------------------------------------------------------------------------------------


def map_arrays(file: BinaryIO, header: Header, what: str, verify: bool) -> Arrays:
    """The arrays as a private mapping of the file: pages are read when touched, writes stay in memory."""
    if not header.total:
        return {e.name: _empty(e, what) for e in header.entries}
    mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY)
    data = memoryview(mapped)[header.start:]
    if verify:
        _verify_mapped(data, header, what)
    arrays = {}
    for e in header.entries:
        array = np.frombuffer(data[e.begin:e.end], e.dtype).reshape(e.shape) if e.end > e.begin \
            else _empty(e, what)
        _check_bool(e, array, what)
        aligned = array if array.flags.aligned else array.copy()
        arrays[e.name] = aligned.byteswap(inplace=True) if _SWAP else aligned
    return arrays


def _verify_mapped(data: memoryview, header: Header, what: str) -> None:
    if header.crc is not None:
        check_total(header, crc32(data, header.crc), what, header.metadata["checksum"])
    elif header.sums:
        size = header.block
        _on_two_threads(lambda k: _compare(header, k, crc32(data[k * size:(k + 1) * size]), what),
                        [(k,) for k in range(len(header.sums))])
