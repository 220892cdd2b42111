"""The safetensors layout: a header length, a JSON header, and the bytes of the tensors.

::

    8 bytes   N, little-endian
    N bytes   {"__metadata__": {text: text}, name: {"dtype", "shape", "data_offsets": [from, to]}, ...}
    the rest  the tensors' elements, little-endian, row-major, end to end without gaps

Nothing in a file is ever executed, and a header is believed only after every number in it was checked
against the size of the file. Files written here also carry a CRC-32 of everything, header included,
at a fixed place: the digits stand as zeros while it is computed.
"""

import io
import json
import math
import os
import zlib
from collections.abc import Iterable
from typing import Any, BinaryIO, NamedTuple

import numpy as np

from ..backends import move
from ..device import CPU, as_device
from ..errors import CheckpointError
from ..tensor import Tensor, wrap
from .atomic import write_atomically

CODES = {"float16": "F16", "float32": "F32", "float64": "F64", "int8": "I8", "int16": "I16",
         "int32": "I32", "int64": "I64", "uint8": "U8", "bool": "BOOL", "complex64": "C64"}
_BY_CODE = {code: np.dtype(name) for name, code in CODES.items()}
_FOREIGN = ("BF16", "F8_E4M3", "F8_E5M2", "U16", "U32", "U64")
MAX_HEADER = 100_000_000
_ALIGN = 64
_SEAL = b'{"__metadata__":{"checksum":"crc32:'
_ZEROS = b"00000000"
_CHUNK = 1 << 24


class Entry(NamedTuple):
    """One tensor of a file: its name, element type and the range of its bytes in the data."""

    name: str
    dtype: np.dtype
    shape: tuple[int, ...]
    begin: int
    end: int


class Header(NamedTuple):
    """A checked header: the entries in order of their bytes, the metadata, the header's own bytes."""

    entries: list[Entry]
    metadata: dict[str, str]
    raw: bytes


# -- writing ---------------------------------------------------------------------------------------


def write_layout(file: BinaryIO, arrays: dict[str, np.ndarray], metadata: dict[str, str]) -> None:
    """Write NumPy arrays in the safetensors layout, sealed with a checksum."""
    ordered = sorted(arrays.items(), key=lambda item: -item[1].itemsize)  # so that all are aligned
    flat = [(name, array, _bytes_of(array)) for name, array in ordered]
    header = bytearray(_header(flat, {"checksum": f"crc32:{_ZEROS.decode()}", **metadata}))
    crc = zlib.crc32(header)
    for _, _, data in flat:
        crc = zlib.crc32(data, crc)
    at = 8 + len(_SEAL)
    header[at:at + 8] = b"%08x" % crc
    file.write(header)
    for _, _, data in flat:
        file.write(data)


def _bytes_of(array: np.ndarray) -> memoryview:
    little = np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("<"))
    return memoryview(little.reshape(-1).view(np.uint8))


def _header(flat: list, metadata: dict[str, str]) -> bytes:
    table: dict[str, Any] = {"__metadata__": metadata}
    position = 0
    for name, array, data in flat:
        table[name] = {"dtype": CODES[array.dtype.name], "shape": list(array.shape),
                       "data_offsets": [position, position + len(data)]}
        position += len(data)
    text = json.dumps(table, separators=(",", ":")).encode()
    assert text.startswith(_SEAL), "the checksum must stand first"
    text += b" " * (-(8 + len(text)) % _ALIGN)
    if len(text) > MAX_HEADER:
        raise ValueError(f"save: the structure takes {len(text)} bytes as JSON, more than the "
                         f"{MAX_HEADER} that fit; store long data as tensors")
    return len(text).to_bytes(8, "little") + text


# -- reading ---------------------------------------------------------------------------------------


def read_layout(file: BinaryIO, size: int, what: str) -> tuple[Header, dict[str, np.ndarray]]:
    """The header and the arrays of a file of ``size`` bytes; raises CheckpointError if not sound."""
    header = read_header(file, size, what)
    sealed = header.raw.startswith(_SEAL)
    crc = zlib.crc32(len(header.raw).to_bytes(8, "little"))
    at = len(_SEAL)
    crc = zlib.crc32(header.raw[:at] + _ZEROS + header.raw[at + 8:] if sealed else header.raw, crc)
    arrays: dict[str, np.ndarray] = {}
    for entry in header.entries:
        arrays[entry.name], crc = _read_array(file, entry, crc, what)
    if sealed and header.raw[at:at + 8] != b"%08x" % crc:
        raise CheckpointError(f"{what}: the checksum of the contents is {crc:08x}, the file says "
                              f"{header.raw[at:at + 8].decode(errors='replace')}: it is damaged; use an "
                              f"earlier copy")
    return header, arrays


def _read_array(file: BinaryIO, entry: Entry, crc: int, what: str) -> tuple[np.ndarray, int]:
    try:
        array = np.empty(entry.shape, entry.dtype.newbyteorder("<"))
    except (ValueError, MemoryError, OverflowError) as error:
        raise CheckpointError(f"{what}: no memory for tensor {entry.name!r} of shape "
                              f"{list(entry.shape)} ({error})") from None
    data = memoryview(array.reshape(-1).view(np.uint8))
    done = 0
    while done < len(data):
        piece = file.read(min(_CHUNK, len(data) - done))
        if not piece:
            raise CheckpointError(f"{what}: the file ends inside tensor {entry.name!r}")
        data[done:done + len(piece)] = piece
        crc = zlib.crc32(piece, crc)
        done += len(piece)
    if entry.dtype.kind == "b" and array.size and array.view(np.uint8).max() > 1:
        raise CheckpointError(f"{what}: tensor {entry.name!r} is BOOL but holds bytes other than 0 and 1")
    return array.astype(entry.dtype, copy=False), crc


def read_header(file: BinaryIO, size: int, what: str) -> Header:
    """Read and check the header of a file of ``size`` bytes, reading no more than that."""
    first = _read_exactly(file, min(size, 16))
    length = int.from_bytes(first[:8], "little")
    if size < 10 or first[8:9] != b"{" or length > size - 8 or length > MAX_HEADER or length < 2:
        raise CheckpointError(f"{what}: {_looks_like(first, size, length)}")
    raw = first[8:8 + length] + _read_exactly(file, max(0, length - len(first) + 8))
    if len(raw) != length:
        raise CheckpointError(f"{what}: the file ends inside its header")
    if len(first) > 8 + length:
        raise CheckpointError(f"{what}: the header is too short to describe any data")
    table = parse_json(raw, f"{what}: the header")
    if not isinstance(table, dict):
        raise CheckpointError(f"{what}: the header is not a JSON object")
    metadata = table.pop("__metadata__", {})
    if not isinstance(metadata, dict) or not all(isinstance(v, str) for v in metadata.values()):
        raise CheckpointError(f"{what}: __metadata__ must map text to text")
    entries = [_entry(name, value, what) for name, value in table.items()]
    entries.sort(key=lambda e: (e.begin, e.end))
    _check_ranges(entries, size - 8 - length, what)
    return Header(entries, metadata, raw)


def _read_exactly(file: BinaryIO, count: int) -> bytes:
    pieces = []
    while count > 0:
        piece = file.read(min(count, _CHUNK))
        if not piece:
            break
        pieces.append(piece)
        count -= len(piece)
    return b"".join(pieces)


def _entry(name: str, value: Any, what: str) -> Entry:
    at = f"{what}: tensor {name!r}"
    if not isinstance(value, dict) or set(value) != {"dtype", "shape", "data_offsets"}:
        raise CheckpointError(f"{at} must have exactly dtype, shape and data_offsets")
    code, shape, offsets = value["dtype"], value["shape"], value["data_offsets"]
    if not isinstance(code, str) or code not in _BY_CODE:
        why = "is not supported here" if code in _FOREIGN else "is not known"
        raise CheckpointError(f"{at} has dtype {code!r}, which {why}; supported: {', '.join(_BY_CODE)}")
    if not _sizes(shape) or len(shape) > 64:
        raise CheckpointError(f"{at} has shape {shape!r}; wanted at most 64 sizes that are not negative")
    if not _sizes(offsets) or len(offsets) != 2 or offsets[0] > offsets[1]:
        raise CheckpointError(f"{at} has data_offsets {offsets!r}; wanted [from, to] in order")
    dtype = _BY_CODE[code]
    wanted = math.prod(shape) * dtype.itemsize
    if wanted != offsets[1] - offsets[0]:
        raise CheckpointError(f"{at} of {code}{shape} takes {wanted} bytes, but data_offsets {offsets} "
                              f"give it {offsets[1] - offsets[0]}")
    return Entry(name, dtype, tuple(shape), offsets[0], offsets[1])


def _sizes(values: Any) -> bool:
    return isinstance(values, list) and all(type(v) is int and 0 <= v < 1 << 62 for v in values)


def _check_ranges(entries: list[Entry], available: int, what: str) -> None:
    position = 0
    for entry in entries:
        if entry.begin != position:
            fault = "overlap another tensor" if entry.begin < position else "leave a gap before them"
            raise CheckpointError(f"{what}: the bytes {entry.begin} to {entry.end} of tensor "
                                  f"{entry.name!r} {fault} (wanted from {position})")
        position = entry.end
    if position != available:
        fault = "the file is cut short" if available < position else "something follows the tensors"
        raise CheckpointError(f"{what}: the tensors take {position} bytes, the file holds {available}: "
                              f"{fault}")


def parse_json(raw: bytes | str, what: str) -> Any:
    """Plain JSON: no key twice, no NaN, text in UTF-8; CheckpointError for anything else."""
    def pairs(items: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(items)
        if len(found) != len(items):
            raise ValueError("a key stands twice")
        return found

    def constant(name: str) -> Any:
        raise ValueError(f"{name} is no JSON number")

    try:
        text = raw.decode("utf-8") if isinstance(raw, bytes) else raw
        return json.loads(text, object_pairs_hook=pairs, parse_constant=constant)
    except (ValueError, RecursionError) as error:
        reason = "it is nested too deeply" if isinstance(error, RecursionError) else error
        raise CheckpointError(f"{what} is not sound JSON ({reason}); the file is damaged or foreign"
                              ) from None


_KINDS = ((b"PK\x03\x04", "a zip archive, as torch.save writes; this package reads no pickles: convert it "
           "with PyTorch and safetensors"),
          (b"\x1f\x8b", "a gzip file; unpack it first"), (b"\x89HDF\r\n\x1a\n", "an HDF5 file"),
          (b"\x93NUMPY", "a NumPy .npy file; read it with numpy.load"), (b"\x89PNG", "a PNG image"),
          (b"\xff\xd8\xff", "a JPEG image"), (b"GGUF", "a GGUF file"), (b"\x08", "an ONNX or protobuf file"))


def _looks_like(first: bytes, size: int, length: int) -> str:
    if size == 0:
        return "the file is empty; use an earlier copy"
    if first[8:9] == b"{" and first[:2] != b"\x80\x02":
        return (f"the file is cut short or damaged: its header should have {length} bytes, the file has "
                f"{size} in all")
    if first[:1] == b"\x80" and first[1:2] in (b"\x02", b"\x03", b"\x04", b"\x05"):
        return ("this looks like a pickle (an old PyTorch file or pickle.dump); this package reads no "
                "pickles: convert it with the program that wrote it")
    if size < 10:
        return f"the file has {size} bytes, too few for a checkpoint; it is cut short or foreign"
    for magic, kind in _KINDS:
        if first.startswith(magic):
            return f"this looks like {kind}"
    return "this is not a checkpoint in the safetensors layout; it is damaged or foreign"


# -- whole files -----------------------------------------------------------------------------------


def open_source(source: Any, op: str) -> tuple[BinaryIO, int, str]:
    """A path or a binary file as (file, size, name for messages)."""
    if hasattr(source, "read"):
        data = source.read()
        if not isinstance(data, bytes):
            raise TypeError(f"{op}: the file must be opened in binary mode ('rb')")
        return io.BytesIO(data), len(data), str(getattr(source, "name", "the file"))
    path = _path(source, op)
    if os.path.isdir(path):
        raise IsADirectoryError(f"{op}: {path!r} is a directory; give the path of a file")
    try:
        file = open(path, "rb")  # noqa: SIM115 - the caller closes it
    except FileNotFoundError:
        raise FileNotFoundError(f"{op}: there is no file {path!r}") from None
    return file, os.fstat(file.fileno()).st_size, repr(path)


def _path(target: Any, op: str) -> str:
    if not isinstance(target, (str, bytes, os.PathLike)):
        raise TypeError(f"{op}: wanted a path or a binary file, got {type(target).__name__}")
    return os.fsdecode(target)


def write_target(target: Any, arrays: dict[str, np.ndarray], metadata: dict[str, str], op: str) -> None:
    """Write to a path (atomically) or to a binary file that is open."""
    if hasattr(target, "write"):
        buffer = io.BytesIO()
        write_layout(buffer, arrays, metadata)
        target.write(buffer.getbuffer())
    else:
        write_atomically(_path(target, op), lambda file: write_layout(file, arrays, metadata))


def save_safetensors(tensors: dict[str, Tensor], path: Any, metadata: dict[str, str] | None = None
                     ) -> None:
    """Write a flat dict of tensors as a safetensors file that other tools read; atomically.

    metadata: extra text. complex128 has no place in the layout and raises TypeError.

    >>> import io
    >>> file = io.BytesIO()
    >>> fw.io.save_safetensors({"w": fw.ones(2)}, file)
    """
    for name, x in tensors.items():
        if not isinstance(name, str) or not isinstance(x, Tensor) or name == "__metadata__":
            raise TypeError(f"save_safetensors: wanted a dict from text to Tensor, found {name!r}: "
                            f"{type(x).__name__}")
        if x.dtype.name not in CODES:
            raise TypeError(f"save_safetensors: tensor {name!r} is {x.dtype}, which the layout does not "
                            f"have; use framework.save, or convert it")
    extra = dict(metadata or {})
    if "checksum" in extra or not all(isinstance(t, str) for t in (*extra, *extra.values())):
        raise TypeError("save_safetensors: metadata must map text to text, without the key 'checksum'")
    write_target(path, host_arrays(tensors.items()), extra, "save_safetensors")


def host_arrays(tensors: Iterable[tuple[str, Tensor]]) -> dict[str, np.ndarray]:
    """The tensors' elements in host memory, by name."""
    return {name: move(x._array, CPU) for name, x in tensors}


def load_safetensors(path: Any, device: Any = "cpu") -> dict[str, Tensor]:
    """The tensors of any safetensors file, by name.

    Raises CheckpointError for a file that is not sound, FileNotFoundError where there is none.

    >>> import io
    >>> file = io.BytesIO()
    >>> fw.io.save_safetensors({"w": fw.ones(2)}, file)
    >>> fw.io.load_safetensors(io.BytesIO(file.getvalue()))["w"]
    tensor([1., 1.])
    """
    file, size, what = open_source(path, "load_safetensors")
    place = as_device(device)
    with file:
        _, arrays = read_layout(file, size, f"load_safetensors: {what}")
    return {name: wrap(move(array, place)) for name, array in arrays.items()}
