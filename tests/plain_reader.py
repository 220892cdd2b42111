"""A reader of checkpoints written from docs/checkpoint-format.md alone: no line of the package is used.

Tensors come as ``Raw``: dtype name, shape, elements in row-major order as bytes, and the flags.
"""

import base64
import json
import struct
import zlib
from collections import OrderedDict
from typing import NamedTuple

WIDTH = {"BOOL": 1, "U8": 1, "I8": 1, "F16": 2, "BF16": 2, "I16": 2, "U16": 2, "F32": 4, "I32": 4, "U32": 4,
         "F64": 8, "I64": 8, "U64": 8, "C64": 8}
NAME = {"BOOL": "bool", "U8": "uint8", "I8": "int8", "F16": "float16", "BF16": "bfloat16", "I16": "int16",
        "F32": "float32", "I32": "int32", "F64": "float64", "I64": "int64"}
ITEM = {name: WIDTH[code] for code, name in NAME.items()} | {"complex64": 8, "complex128": 16}


class Raw(NamedTuple):
    dtype: str
    shape: tuple
    data: bytes
    place: tuple  # (name, alias): the object
    flags: dict


def read(raw):
    """The object in a data file of version 1 or 2; AssertionError for a damaged one."""
    (n,) = struct.unpack("<Q", raw[:8])
    head, body = raw[8:8 + n], raw[8 + n:]
    header = json.loads(head)
    metadata = header.pop("__metadata__")
    assert metadata["format"] == "framework.checkpoint" and metadata["version"] in ("1", "2")
    if metadata["version"] == "1":
        start = b'{"__metadata__":{"checksum":"crc32:'
        assert head.startswith(start)
        at = 8 + len(start)
        assert crc(raw[:at] + b"00000000" + raw[at + 8:]) == raw[at:at + 8].decode()
    else:
        start = b'{"__metadata__":{"seal":"crc32:'
        assert head.startswith(start)
        at = 8 + len(start)
        assert crc(raw[:at] + b"00000000" + raw[at + 8:8 + n]) == raw[at:at + 8].decode()
        size, digits = metadata["blocks"].split(":")
        blocks = [body[i:i + int(size)] for i in range(0, len(body), int(size))]
        assert digits == "".join(map(crc, blocks))
    end = 0
    for entry in sorted(header.values(), key=lambda e: e["data_offsets"]):
        count = WIDTH[entry["dtype"]]
        for s in entry["shape"]:
            count *= s
        assert entry["data_offsets"] == [end, end + count]
        end += count
    assert end == len(body)
    return decode(json.loads(metadata["structure"]), header, body)


def crc(data):
    return f"{zlib.crc32(data):08x}"


def decode(x, header, body):
    again = lambda v: decode(v, header, body)
    if not isinstance(x, (dict, list)):
        return x
    if isinstance(x, list):
        return [again(v) for v in x]
    if "tensor" in x:
        return tensor(x, header, body)
    (kind, value), = x.items()
    if kind == "tuple":
        return tuple(again(v) for v in value)
    if kind in ("dict", "ordered"):
        pairs = [(again(k), again(v)) for k, v in value]
        return OrderedDict(pairs) if kind == "ordered" else dict(pairs)
    if kind == "int":
        return int(value, 16)
    if kind == "float":
        return float(value) if value in ("inf", "-inf") else struct.unpack(">d", bytes.fromhex(value))[0]
    if kind == "complex":
        return complex(*(again(v) for v in value))
    if kind == "bytes":
        return base64.b64decode(value)
    assert kind in ("dtype", "device")
    return kind, value


def tensor(x, header, body):
    entry = header[x["tensor"]]
    data = body[slice(*entry["data_offsets"])]
    dtype, shape = NAME[entry["dtype"]], tuple(entry["shape"])
    if x.get("complex"):
        dtype, shape = {"float32": "complex64", "float64": "complex128"}[dtype], shape[:-1]
    if "view" in x:
        view = x["view"]
        dtype, shape = view["dtype"], tuple(view["shape"])
        places = [view["offset"]]
        for size, stride in zip(shape, view["strides"]):
            places = [p + i * stride for p in places for i in range(size)]
        data = b"".join(data[p:p + ITEM[dtype]] for p in places)
    flags = {k: v for k, v in x.items() if k in ("requires_grad", "device", "class", "persistent")}
    return Raw(dtype, shape, data, (x["tensor"], x.get("alias")), flags)
