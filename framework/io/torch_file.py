"""Files of ``torch.save``, read as data: nothing that they name is imported or called.

Two layouts are known. Since PyTorch 1.6 a file is a zip archive, nothing in it compressed::

    NAME/data.pkl       the object, a pickle; a tensor in it refers to a storage by a persistent id
    NAME/data/KEY       the bytes of the storage KEY
    NAME/byteorder      "little" or "big"; missing in older files, which are little

Before, it is five pickles (a magic number, the version 1001, sizes and byte order of the machine, the object,
the keys of its storages), followed by each storage: its number of elements in 8 bytes, then their bytes.
"""

import importlib
import io
import mmap
from typing import Any, BinaryIO

import numpy as np

from ..errors import CheckpointError
from .files import Source, first_bytes
from .map_location import MapLocation
from .pickled import Bytes, read_pickle
from .stream import crc32
from .torch_names import Storages

MAGIC = 0x1950A86A20F9469CFC6C
ZIP_START = b"PK\x03\x04"
LEGACY_START = b"\x80\x02\x8a\x0a" + MAGIC.to_bytes(10, "little")
_LEGACY_VERSION = 1001
_LOCAL_HEADER = 30  # bytes of a zip entry's own header, before its name


def is_one(first: bytes) -> bool:
    """Whether a file that starts with these bytes is one of PyTorch's."""
    return first.startswith((ZIP_START, LEGACY_START))


def load(source: Source, locations: MapLocation, what: str, mapped: bool, verify: bool | None) -> Any:
    """The object in a file of ``torch.save``."""
    if first_bytes(source).startswith(ZIP_START):
        return _Archive(source, locations, what, mapped, verify).load()
    if mapped:
        raise CheckpointError(f"{what}: the layout before PyTorch 1.6 cannot be mapped; leave out mmap=True")
    return _load_legacy(source, locations, what)


class _Archive:
    """The zip archive of one file."""

    def __init__(self, source: Source, locations: MapLocation, what: str, mapped: bool,
                 verify: bool | None) -> None:
        self.what, self.start = what, source.file.tell()
        self.file: BinaryIO = source.file
        self.end = self.start + source.size
        self.verify = not mapped if verify is None else verify
        self.memory = None
        if mapped:
            self.memory = memoryview(mmap.mmap(self.file.fileno(), 0, access=mmap.ACCESS_COPY))
        self.locations = locations

    def load(self) -> Any:
        entries = self._directory()
        pickles = [n for n in entries if n.endswith("/data.pkl") and n.count("/") == 1]
        if len(pickles) != 1:
            raise CheckpointError(
                f"{self.what}: this zip archive holds no NAME/data.pkl; torch.save did not write it"
            )
        home = pickles[0].removesuffix("data.pkl")
        if home + "constants.pkl" in entries:
            raise CheckpointError(
                f"{self.what}: this is a TorchScript archive, which holds code; save the "
                f"module's state_dict() instead"
            )
        order = (
            bytes(self._bytes(entries[home + "byteorder"])) if home + "byteorder" in entries else b"little"
        )
        if order not in (b"little", b"big"):
            raise CheckpointError(f"{self.what}: unknown byte order {order[:20]!r}; the file is damaged")

        def read(key: str, size: int) -> Any:
            entry = entries.get(f"{home}data/{key}")
            if entry is None or entry.file_size != size:
                raise ValueError(f"storage {key!r} of {size} bytes is not in the file")
            return self._bytes(entry)

        storages = Storages(self.locations, self.what, read, order == b"big")
        data = bytes(self._bytes(entries[pickles[0]]))  # storages are read from the file meanwhile
        raw = Bytes(io.BytesIO(data), len(data), self.what)
        return read_pickle(raw, storages.known, storages.states, storages.persistent)

    def _directory(self) -> dict[str, Any]:
        zipfile = importlib.import_module("zipfile")  # takes a tenth of the import of this package
        try:
            with zipfile.ZipFile(self.file) as archive:
                found = archive.infolist()
        except (
            zipfile.BadZipFile,
            ValueError,
            KeyError,
            IndexError,
            OverflowError,
            NotImplementedError,
            EOFError,
            OSError,
        ) as error:
            raise CheckpointError(
                f"{self.what}: the zip archive is cut short or damaged ({error}); use an earlier copy"
            ) from None
        entries = {entry.filename: entry for entry in found}
        if len(entries) != len(found):
            raise CheckpointError(f"{self.what}: two entries of the zip archive have one name; it is damaged")
        for entry in found:
            if entry.compress_type != zipfile.ZIP_STORED or entry.flag_bits & 1:
                raise CheckpointError(
                    f"{self.what}: {entry.filename[:200]!r} is compressed or encrypted, "
                    f"which torch.save never does; unpack it and pack it with 'zip -0'"
                )
        if sum(entry.file_size for entry in found) > self.end - self.start:  # nothing in it is compressed
            raise CheckpointError(
                f"{self.what}: the entries of the zip archive lie over each other or leave the file, "
                f"which is cut short or damaged; use an earlier copy"
            )
        return entries

    def _begin(self, entry: Any) -> int:
        """Where the bytes of an entry begin. ``zipfile`` refuses files that were saved without checksums."""
        header = b""
        if self.start <= entry.header_offset < self.end:
            self.file.seek(entry.header_offset)
            header = self.file.read(_LOCAL_HEADER)
        if len(header) != _LOCAL_HEADER or not header.startswith(ZIP_START):
            raise CheckpointError(
                f"{self.what}: {entry.filename[:200]!r} is not where the directory says; the file is damaged"
            )
        name, extra = (int.from_bytes(header[at : at + 2], "little") for at in (26, 28))
        begin = entry.header_offset + _LOCAL_HEADER + name + extra
        if begin + entry.file_size > self.end or entry.compress_size != entry.file_size:
            raise CheckpointError(
                f"{self.what}: {entry.filename[:200]!r} leaves the file, which is cut short"
            )
        return begin

    def _bytes(self, entry: Any) -> Any:
        """The bytes of an entry as an array of its own, or of the mapped file."""
        begin = self._begin(entry)
        if self.memory is not None:
            data = np.frombuffer(self.memory[begin : begin + entry.file_size], np.uint8)
        else:
            data = np.empty(entry.file_size, np.uint8)
            self.file.seek(begin)
            _fill(self.file, data, self.what)
        if self.verify and entry.CRC and crc32(memoryview(data), 0) != entry.CRC:
            raise CheckpointError(
                f"{self.what}: the checksum of {entry.filename[:200]!r} is wrong: it is "
                f"damaged; use an earlier copy"
            )
        return data


def _fill(file: BinaryIO, data: np.ndarray, what: str) -> None:
    view, at = memoryview(data), 0
    while at < len(view):
        count = file.readinto(view[at : at + (1 << 24)])  # type: ignore[attr-defined]
        if not count:
            raise CheckpointError(f"{what}: the file is cut short; use an earlier copy")
        at += count


def _load_legacy(source: Source, locations: MapLocation, what: str) -> Any:
    """The layout before PyTorch 1.6: the object comes before the bytes of its tensors; it is read twice."""
    raw = Bytes(source.file, source.size, what)
    start = source.file.tell()
    if [read_pickle(raw, {}, {}, _no_storage) for _ in range(2)] != [MAGIC, _LEGACY_VERSION]:
        raise CheckpointError(f"{what}: an unknown version of the layout before PyTorch 1.6")
    machine = read_pickle(raw, {}, {}, _no_storage)
    big = isinstance(machine, dict) and machine.get("little_endian") is False
    sizes: dict[str, int] = {}
    total = 0

    def room(key: str, size: int) -> np.ndarray:
        nonlocal total
        sizes[key] = size
        total += size
        if total > source.size:
            raise ValueError(f"storage {key!r} of {size} bytes is more than the file holds")
        return np.zeros(size, np.uint8)

    here = source.file.tell()
    outline = Storages(MapLocation("cpu"), what, room, False)  # to learn of the storages, which stand behind
    read_pickle(raw, outline.known, outline.states, outline.persistent)
    keys = read_pickle(raw, {}, {}, _no_storage)
    if not isinstance(keys, list) or sorted(map(str, keys)) != sorted(sizes):
        raise CheckpointError(f"{what}: the list of storages does not fit the tensors; the file is damaged")
    data: dict[str, np.ndarray] = {}
    for key in map(str, keys):
        count = int.from_bytes(raw.take(8), "big" if big else "little")
        if count * outline.items[key] != sizes[key] or sizes[key] > raw.left:
            raise CheckpointError(f"{what}: storage {key!r} is cut short or damaged")
        data[key] = np.empty(sizes[key], np.uint8)
        _fill(source.file, data[key], what)
        raw.left -= sizes[key]
    source.file.seek(here)
    storages = Storages(locations, what, lambda key, size: data[key], big)
    again = Bytes(source.file, source.size - (here - start), what)
    return read_pickle(again, storages.known, storages.states, storages.persistent)


def _no_storage(key: Any) -> Any:
    raise ValueError("a storage where none was wanted")
