"""Whole objects: a pickle in a marked container, which is opened only when the caller says so.

::

    8 bytes   89 46 57 50 4B 4C 0D 0A  (\\x89 F W P K L CR LF)
    4 bytes   version, little-endian: 1
    n bytes   the pickle
    8 bytes   n, little-endian
    4 bytes   CRC-32 of everything before, little-endian

Unpickling runs code that the file names, so the pickle module is touched only after
``weights_only=False``.
"""

import importlib
import zlib
from typing import Any, BinaryIO

from ..dtypes import of_numpy
from ..errors import CheckpointError
from ..tensor import Tensor, wrap
from .files import Source, first_bytes, read_exactly, write_target
from .map_location import MapLocation
from .stream import write_all

MAGIC = b"\x89FWPKL\r\n"
VERSION = 1
_START, _END = len(MAGIC) + 4, 12


class _Sink:
    """A file for the pickler that hashes what passes."""

    def __init__(self, file: BinaryIO) -> None:
        self.file, self.crc, self.size = file, 0, 0

    def write(self, data: Any) -> int:
        view = memoryview(data).cast("B")
        self.crc = zlib.crc32(view, self.crc)
        self.size += len(view)
        write_all(self.file, view)
        return len(view)


def save(obj: Any, f: Any) -> None:
    """Pickle ``obj`` into a container; raises TypeError for what cannot be pickled."""
    pickle = importlib.import_module("pickle")

    def write(file: BinaryIO, patch: bool) -> None:
        sink = _Sink(file)
        sink.write(MAGIC + VERSION.to_bytes(4, "little"))
        try:
            pickle.dump(obj, sink, protocol=5)
        except (pickle.PicklingError, AttributeError, TypeError, RecursionError) as error:
            raise TypeError(f"save: this {type(obj).__name__} cannot be pickled ({error}); save its "
                            f"state_dict(), or define its classes and functions in an importable module"
                            ) from error
        sink.write((sink.size - _START).to_bytes(8, "little"))
        write_all(file, sink.crc.to_bytes(4, "little"))

    write_target(f, write, "save")


def is_one(source: Source) -> bool:
    """Whether the file starts as a container does; it is left where it was."""
    return first_bytes(source, len(MAGIC)) == MAGIC


def load(source: Source, locations: MapLocation, what: str, weights_only: bool | None) -> Any:
    """The object in a container; raises CheckpointError unless ``weights_only`` is False."""
    if weights_only is not False:
        raise CheckpointError(
            f"{what}: this file holds a whole pickled object, and opening it runs whatever code it names. "
            f"If you trust where it comes from, load it with weights_only=False; otherwise ask for a file "
            f"of its state_dict(), which is plain data")
    data = read_exactly(source.file, source.size)
    end = len(data) - _END
    version = int.from_bytes(data[len(MAGIC):_START], "little")
    if end < _START or int.from_bytes(data[end:end + 8], "little") != end - _START \
            or int.from_bytes(data[end + 8:], "little") != zlib.crc32(data[:end + 8]):
        raise CheckpointError(f"{what}: the checksum of the pickled object is wrong: it is damaged or cut "
                              f"short; use an earlier copy")
    if version != VERSION:
        raise CheckpointError(f"{what}: the container has version {version}, this package reads {VERSION}; "
                              f"use a newer version of the package")
    return _unpickle(memoryview(data)[_START:end], locations, what)


def _unpickle(data: memoryview, locations: MapLocation, what: str) -> Any:
    pickle, io = importlib.import_module("pickle"), importlib.import_module("io")

    def rebuild(cls: type, array: Any, device: str, requires_grad: bool) -> Tensor:
        of_numpy(array.dtype)  # a fresh process does not know bfloat16 yet
        return wrap(locations.put(array, device)._array, cls).requires_grad_(requires_grad)

    class Unpickler(pickle.Unpickler):  # type: ignore[name-defined, misc]
        def find_class(self, module: str, name: str) -> Any:
            ours = (module, name) == (Tensor.__module__, "_rebuild")
            return rebuild if ours else super().find_class(module, name)

    try:
        return Unpickler(io.BytesIO(data)).load()
    except (AttributeError, ImportError) as error:
        raise CheckpointError(f"{what}: the object needs code that is not there ({error}); make the module "
                              f"that defines its class importable under the same name") from error
