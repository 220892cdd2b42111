"""The safetensors layout: a header length, a JSON header, and the bytes of the tensors.

::

    8 bytes   N, little-endian
    N bytes   {"__metadata__": {text: text}, name: {"dtype", "shape", "data_offsets": [from, to]}, ...}
    the rest  the tensors' elements, little-endian, row-major, end to end without gaps

Nothing in a file is ever executed, and a header is believed only after every number in it was checked
against the size of the file. ``docs/checkpoint-format.md`` describes what files written here hold
besides: a checksum of the header, and in it one of every block of the data.
"""

import json
import math
import zlib
from typing import Any, BinaryIO, NamedTuple

import numpy as np

from ..dtypes import BY_NAME
from ..errors import CheckpointError, MissingExtraError
from .files import read_exactly

CODES = {"float16": "F16", "bfloat16": "BF16", "float32": "F32", "float64": "F64", "int8": "I8",
         "int16": "I16", "int32": "I32", "int64": "I64", "uint8": "U8", "uint16": "U16", "uint32": "U32",
         "uint64": "U64", "bool": "BOOL", "complex64": "C64"}
_NAMES = {code: name for name, code in CODES.items()}
MAX_HEADER = 100_000_000
BLOCK = 1 << 22
_ALIGN = 64
_SEAL = b'{"__metadata__":{"seal":"crc32:'
_SEAL_1 = b'{"__metadata__":{"checksum":"crc32:'  # version 1: one checksum of header and data
_ZEROS = b"00000000"


class Entry(NamedTuple):
    """One tensor of a file: its name, element type and the range of its bytes in the data."""

    name: str
    dtype: np.dtype
    shape: tuple[int, ...]
    begin: int
    end: int


class Header(NamedTuple):
    """A checked header.

    entries: in the order of their bytes. start: where in the file the data begins. block: the bytes of
    a block, sums: the checksum of each. crc: of version 1 only, the checksum of the header so far, to be
    continued over the data up to ``total``.
    """

    entries: list[Entry]
    metadata: dict[str, str]
    start: int
    block: int = 0
    sums: tuple[int, ...] = ()
    crc: int | None = None
    total: int = 0


# -- writing ---------------------------------------------------------------------------------------


def pack_header(entries: list[Entry], metadata: dict[str, str], sums: list[int]) -> bytes:
    """The header's length and the header, sealed; its size does not depend on the values of ``sums``."""
    table: dict[str, Any] = {"__metadata__": {
        "seal": f"crc32:{_ZEROS.decode()}", "blocks": f"{BLOCK}:" + "".join(f"{s:08x}" for s in sums),
        **metadata}}
    for e in entries:
        table[e.name] = {"dtype": CODES[e.dtype.name], "shape": list(e.shape),
                         "data_offsets": [e.begin, e.end]}
    text = json.dumps(table, separators=(",", ":")).encode()
    text += b" " * (-(8 + len(text)) % _ALIGN)
    if len(text) > MAX_HEADER:
        raise ValueError(f"save: the structure takes {len(text)} bytes as JSON, more than the "
                         f"{MAX_HEADER} that fit; store long data as tensors")
    raw = bytearray(len(text).to_bytes(8, "little") + text)
    at = 8 + len(_SEAL)
    raw[at:at + 8] = b"%08x" % zlib.crc32(raw)
    return bytes(raw)


# -- reading ---------------------------------------------------------------------------------------


def read_header(file: BinaryIO, size: int, what: str) -> Header:
    """Read and check the header of a file of ``size`` bytes, reading no more than that.

    Raises CheckpointError for what is not sound.
    """
    first = read_exactly(file, min(size, 16))
    length = int.from_bytes(first[:8], "little")
    if size < 10 or first[8:9] != b"{" or length > size - 8 or length > MAX_HEADER or length < 2:
        raise CheckpointError(f"{what}: {_looks_like(first, size, length)}")
    raw = first[8:8 + length] + read_exactly(file, max(0, length - len(first) + 8))
    if len(raw) != length:
        raise CheckpointError(f"{what}: the file ends inside its header")
    if len(first) > 8 + length:
        raise CheckpointError(f"{what}: the header is too short to describe any data")
    sealed = raw.startswith(_SEAL)
    if sealed:
        _check_seal(first[:8], raw, what)
    table = parse_json(raw, f"{what}: the header")
    if not isinstance(table, dict):
        raise CheckpointError(f"{what}: the header is not a JSON object")
    metadata = table.pop("__metadata__", {})
    if not isinstance(metadata, dict) or not all(isinstance(v, str) for v in metadata.values()):
        raise CheckpointError(f"{what}: __metadata__ must map text to text")
    entries = [_entry(name, value, what) for name, value in table.items()]
    entries.sort(key=lambda e: (e.begin, e.end))
    available = size - 8 - length
    _check_ranges(entries, available, what)
    block, sums = _block_sums(metadata.get("blocks", ""), available, what) if sealed else (0, ())
    crc = None
    if raw.startswith(_SEAL_1):
        crc = zlib.crc32(_blank(raw, _SEAL_1), zlib.crc32(first[:8]))
    return Header(entries, metadata, 8 + length, block, sums, crc, available)


def _blank(raw: bytes, seal: bytes) -> bytes:
    """The header with zeros for the digits of its own checksum."""
    return raw[:len(seal)] + _ZEROS + raw[len(seal) + 8:]


def _check_seal(length: bytes, raw: bytes, what: str) -> None:
    found = b"%08x" % zlib.crc32(_blank(raw, _SEAL), zlib.crc32(length))
    said = raw[len(_SEAL):len(_SEAL) + 8]
    if found != said:
        raise CheckpointError(f"{what}: the checksum of the header is {found.decode()}, the file says "
                              f"{said.decode(errors='replace')}: it is damaged; use an earlier copy")


def _block_sums(text: str, available: int, what: str) -> tuple[int, tuple[int, ...]]:
    size, _, digits = text.partition(":")
    block = int(size) if size.isascii() and size.isdigit() and len(size) < 12 else 0
    if block < 4096 or len(digits) != 8 * -(-available // block):
        raise CheckpointError(f"{what}: the table of checksums does not fit the data of {available} bytes; "
                              f"the file is damaged")
    try:
        raw = bytes.fromhex(digits)
    except ValueError:
        raise CheckpointError(f"{what}: the table of checksums is not hexadecimal") from None
    return block, tuple(int.from_bytes(raw[i:i + 4], "big") for i in range(0, len(raw), 4))


def check_total(header: Header, crc: int, what: str, said: str) -> None:
    """Version 1: compare the checksum of the whole file."""
    if said != f"crc32:{crc:08x}":
        raise CheckpointError(f"{what}: the checksum of the contents is {crc:08x}, the file says "
                              f"{said[6:]}: it is damaged; use an earlier copy")


def _entry(name: str, value: Any, what: str) -> Entry:
    at = f"{what}: tensor {name!r}"
    if not isinstance(value, dict) or len(value) != 3 or not {"dtype", "shape", "data_offsets"} <= set(value):
        raise CheckpointError(f"{at} must have exactly dtype, shape and data_offsets")
    code, shape, offsets = value["dtype"], value["shape"], value["data_offsets"]
    dtype = _dtype(code, at)
    if not _sizes(shape) or len(shape) > 64:
        raise CheckpointError(f"{at} has shape {shape!r}; wanted at most 64 sizes that are not negative")
    if not _sizes(offsets) or len(offsets) != 2 or offsets[0] > offsets[1]:
        raise CheckpointError(f"{at} has data_offsets {offsets!r}; wanted [from, to] in order")
    wanted = math.prod(shape) * dtype.itemsize
    if wanted != offsets[1] - offsets[0]:
        raise CheckpointError(f"{at} of {code}{shape} takes {wanted} bytes, but data_offsets {offsets} "
                              f"give it {offsets[1] - offsets[0]}")
    return Entry(name, dtype, tuple(shape), offsets[0], offsets[1])


def _dtype(code: Any, at: str) -> np.dtype:
    kind = BY_NAME.get(_NAMES.get(code, "")) if isinstance(code, str) else None
    if kind is None:
        known = [c for c, name in _NAMES.items() if name in BY_NAME]
        raise CheckpointError(f"{at} has dtype {code!r}, which is not supported here; supported: "
                              f"{', '.join(known)}")
    try:
        return kind.numpy
    except MissingExtraError as error:
        raise CheckpointError(f"{at} has dtype {code!r}: {error}") from None


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
    try:
        return _DECODER.decode(raw.decode("utf-8") if isinstance(raw, bytes) else raw)
    except (ValueError, RecursionError) as error:
        reason = "it is nested too deeply" if isinstance(error, RecursionError) else error
        raise CheckpointError(f"{what} is not sound JSON ({reason}); the file is damaged or foreign"
                              ) from None


def _pairs(items: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(items)
    if len(found) != len(items):
        raise ValueError("a key stands twice")
    return found


def _constant(name: str) -> Any:
    raise ValueError(f"{name} is no JSON number")


_DECODER = json.JSONDecoder(object_pairs_hook=_pairs, parse_constant=_constant)

_KINDS = ((b"\x1f\x8b", "a gzip file; unpack it first"), (b"\x89HDF\r\n\x1a\n", "an HDF5 file"),
          (b"\x93NUMPY", "a NumPy .npy file; read it with numpy.load"), (b"\x89PNG", "a PNG image"),
          (b"\xff\xd8\xff", "a JPEG image"), (b"GGUF", "a GGUF file"), (b"\x08", "an ONNX or protobuf file"))


def _looks_like(first: bytes, size: int, length: int) -> str:
    if size == 0:
        return "the file is empty; use an earlier copy"
    if first[8:9] == b"{" and first[:2] != b"\x80\x02":
        return (f"the file is cut short or damaged: its header should have {length} bytes, the file has "
                f"{size} in all")
    if first[:1] == b"\x80" and first[1:2] in (b"\x02", b"\x03", b"\x04", b"\x05"):
        return ("this looks like a pickle (pickle.dump); only those of torch.save are read as data: convert "
                "it with the program that wrote it")
    if size < 10:
        return f"the file has {size} bytes, too few for a checkpoint; it is cut short or foreign"
    for magic, kind in _KINDS:
        if first.startswith(magic):
            return f"this looks like {kind}"
    return "this is not a checkpoint in the safetensors layout; it is damaged or foreign"
