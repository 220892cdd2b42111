"""``save`` and ``load``: nested Python data with tensors, in one safe file.

The tensors stand in the file as safetensors, under the names of their places ("model.conv.weight");
what holds them stands as JSON in the metadata. No pickle: loading such a file runs no code of it. Whole
objects, such as modules, are another matter: see ``container``.
"""

import json
from types import BuiltinFunctionType, FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np

from ..device import Device
from ..dtypes import DType
from ..errors import CheckpointError
from ..tensor import Tensor
from . import container, torch_file
from .file_layout import Header, parse_json, read_header
from .files import Source, first_bytes, open_source, write_target
from .map_location import MapLocation
from .stream import map_arrays, read_arrays, write_layout
from .structure import Decoder, Plan, encode

VERSION = "2"
_READABLE = ("1", "2")
FORMAT = "framework.checkpoint"
_NOT_WHOLE = (Tensor, DType, Device, np.ndarray, np.generic, bool, int, float, complex, str, bytes, bytearray,
              list, tuple, dict, set, frozenset, type, FunctionType, BuiltinFunctionType, MethodType,
              ModuleType, type(None))


def save(obj: Any, f: Any, *, weights_only: bool | None = None) -> None:
    """Write ``obj`` to a path or an open binary file.

    obj: dicts (text or int keys), lists, tuples, sets, Namespaces, None, bool, int, float, complex, str,
    bytes, dtypes, devices, tensors, and numbers and arrays of NumPy, nested. Tensors that share memory (tied
    weights, ``.detach()``, views) are stored once and share it again after loading. Parameters and buffers
    stay what they are.

    An ``obj`` that is itself an object of a class of its own, such as a Module, is pickled whole into a
    marked container, which ``load`` opens only with ``weights_only=False``. weights_only: True never
    pickles; False always does, for such objects inside of dicts and lists.

    Data is written in blocks with checksums, without a second copy in memory. A path is replaced
    atomically: after a failure or a crash the old file or the new one is there, whole.
    Raises TypeError naming the place of what cannot be saved, ValueError for a container that holds
    itself, OSError where the disk is full or fails.

    >>> import io
    >>> file = io.BytesIO()
    >>> fw.save({"step": 3, "weights": [fw.ones(2)]}, file)
    >>> fw.load(io.BytesIO(file.getvalue()))
    {'step': 3, 'weights': [tensor([1., 1.])]}
    """
    whole = not isinstance(obj, _NOT_WHOLE) and weights_only is None
    if whole or weights_only is False:
        container.save(obj, f)
    else:
        write_plan(encode(obj), f)


def write_plan(plan: Plan, f: Any) -> None:
    """Write an encoded object to a path or an open binary file."""
    metadata = {"format": FORMAT, "version": VERSION,
                "structure": json.dumps(plan.structure, separators=(",", ":"))}
    write_target(f, lambda file, patch: write_layout(file, plan.arrays, metadata, patch=patch), "save")


def load(f: Any, map_location: Any = None, *, weights_only: bool | None = None, mmap: bool | None = None,
         verify: bool | None = None) -> Any:
    """What ``save`` wrote to a path or binary file, or PyTorch's ``torch.save``.

    Of files of PyTorch everything that is plain data is read: state dicts, whole training checkpoints,
    numbers and arrays of NumPy, Namespaces. What else they name is refused with its name; nothing of it is
    imported or called.

    map_location: the device for all tensors, a dict from saved to wanted device names, or a function
    ``f(tensor, saved)``; by default each returns to the device it was saved from.
    weights_only: only False opens the pickled container of a whole object: its code then runs.
    mmap: map the file into memory instead of reading it: pages are read when they are touched, and
    changes stay in memory, the file is not written. Do not truncate a file that is mapped.
    verify: compare the checksums of the data; by default when reading, not when mapping (the header is
    always verified).

    Everything is checked before memory is taken. Raises CheckpointError for a file that is damaged, cut
    short or of another program, FileNotFoundError where there is none, DeviceError if a device is not
    there (pass map_location="cpu").

    >>> fw.load("nowhere.ckpt")
    Traceback (most recent call last):
    FileNotFoundError: load: there is no file 'nowhere.ckpt'
    """
    locations = MapLocation(map_location)
    with open_source(f, "load") as source:
        what = f"load: {source.name}"
        if mmap and not source.ours:
            raise TypeError("load: mmap=True needs a path, not an open file")
        if container.is_one(source):
            return container.load(source, locations, what, weights_only)
        if torch_file.is_one(first_bytes(source)):
            return torch_file.load(source, locations, what, bool(mmap), verify)
        header = read_header(source.file, source.size, what)
        structure = _structure(header, what)
        arrays = _arrays(source, header, what, bool(mmap), verify)
    return Decoder(arrays, locations, what).decode(structure)


def _structure(header: Header, what: str) -> Any:
    metadata = header.metadata
    if metadata.get("format") != FORMAT:
        raise CheckpointError(f"{what}: this is a safetensors file of another program; read its tensors "
                              f"with framework.io.load_safetensors")
    version = metadata.get("version")
    if version not in _READABLE:
        raise CheckpointError(f"{what}: the file has format version {version!r}, this package reads "
                              f"version {' and '.join(_READABLE)}; use a newer version of the package")
    if (header.crc is None) if version == "1" else not header.block:
        raise CheckpointError(f"{what}: the checksum is missing; the file is damaged")
    return parse_json(metadata.get("structure", ""), f"{what}: the structure")


def _arrays(source: Source, header: Header, what: str, mapped: bool, verify: bool | None) -> dict:
    if mapped:
        return map_arrays(source.file, header, what, bool(verify))
    return read_arrays(source.file, header, what, source.ours, verify is not False)
