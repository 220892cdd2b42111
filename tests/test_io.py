"""save and load: round trips, ties, atomic replacement, and every way a file can be wrong."""

import io
import json
import math
import os
import pickle
import struct
import threading
import zlib
from collections import OrderedDict

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import framework as fw
from framework.device import Device
from framework.errors import CheckpointError
from framework.io import load, load_safetensors, save, save_safetensors
from framework.tensor import Tensor

DTYPES = ("float16", "float32", "float64", "int8", "int16", "int32", "int64", "uint8", "bool",
          "complex64", "complex128")


def dumps(obj):
    file = io.BytesIO()
    save(obj, file)
    return file.getvalue()


def loads(data):
    return load(io.BytesIO(data))


def same(a, b):
    """Equal to the last bit, types included."""
    if type(a) is not type(b):
        return False
    if isinstance(a, Tensor):
        return (a.dtype is b.dtype and a.shape == b.shape and a.requires_grad == b.requires_grad
                and a._array.tobytes() == b._array.tobytes())
    if isinstance(a, float):
        return struct.pack(">d", a) == struct.pack(">d", b)
    if isinstance(a, complex):
        return same(a.real, b.real) and same(a.imag, b.imag)
    if isinstance(a, (list, tuple)):
        return len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, dict):
        return list(map(repr, a)) == list(map(repr, b)) and all(same(a[k], b[k]) for k in a)
    return a == b


def tensors():
    def build(dtype, shape, seed):
        bits = np.random.default_rng(seed).integers(0, 2 if dtype == "bool" else 256,
                                                    (*shape, np.dtype(dtype).itemsize)).astype(np.uint8)
        return fw.from_numpy(bits.reshape(-1).view(dtype).reshape(shape))
    return st.builds(build, st.sampled_from(DTYPES),
                     st.lists(st.integers(0, 3), max_size=3).map(tuple), st.integers(0, 99))


scalars = (st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.binary()
           | st.complex_numbers() | st.sampled_from([fw.float16, fw.bool, Device("cpu"), Device("cuda:1")]))
keys = st.text() | st.integers()
nested = st.recursive(scalars | tensors(), lambda inner: st.lists(inner, max_size=3)
                      | st.lists(inner, max_size=3).map(tuple) | st.dictionaries(keys, inner, max_size=3)
                      | st.dictionaries(keys, inner, max_size=3).map(OrderedDict), max_leaves=12)


@settings(max_examples=150, deadline=None)
@given(nested)
def test_round_trip(obj):
    assert same(loads(dumps(obj)), obj)


def test_special_numbers_are_exact():
    nan = struct.unpack(">d", bytes.fromhex("7ff8000000000123"))[0]
    obj = [math.inf, -math.inf, nan, -0.0, 5e-324, 0.1, 1 << 63, -(1 << 63), 10 ** 5000, True, 1, 1.0]
    assert same(loads(dumps(obj)), obj)


def test_ties_flags_and_layout_survive():
    w = fw.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
    obj = {"a": w, "b": {"c": [w]}, "alias": w.detach(), "t": w.detach().t(), "other": w.detach().clone()}
    data = dumps(obj)
    back = loads(data)
    assert back["a"] is back["b"]["c"][0] and back["a"].requires_grad
    assert back["alias"] is not back["a"] and not back["alias"].requires_grad
    assert back["alias"].data_ptr() == back["a"].data_ptr()
    assert back["other"].data_ptr() != back["a"].data_ptr()
    assert back["t"].tolist() == [[1.0, 3.0], [2.0, 4.0]]
    assert back["t"].data_ptr() == back["a"].data_ptr() and back["t"].stride() == (1, 2)
    assert sorted(load_safetensors(io.BytesIO(data))) == ["a", "other"]


def test_equal_places_get_different_names():
    obj = {"a.b": fw.ones(1), "a": {"b": fw.zeros(1)}, "__metadata__": fw.ones(2), "tensor": fw.ones(3)}
    assert same(loads(dumps(obj)), obj)
    assert same(loads(dumps(fw.ones(2))), fw.ones(2))


def parse_by_hand(data):
    """The safetensors layout read independently of the package."""
    n, = struct.unpack("<Q", data[:8])
    header = json.loads(data[8:8 + n])
    body = data[8 + n:]
    return header.pop("__metadata__"), {
        name: (e["dtype"], e["shape"], body[slice(*e["data_offsets"])]) for name, e in header.items()}, header


def test_layout():
    obj = {"model": {"w": fw.tensor([[1.5, -2.0]]), "n": fw.tensor([1, 2], dtype=fw.int8)},
           "z": fw.tensor([1 + 2j]), "lr": 0.1, "empty": fw.zeros(0, 4)}
    data = dumps(obj)
    metadata, found, header = parse_by_hand(data)
    assert (8 + struct.unpack("<Q", data[:8])[0]) % 8 == 0
    assert found["model.w"] == ("F32", [1, 2], struct.pack("<2f", 1.5, -2.0))
    assert found["model.n"] == ("I8", [2], b"\1\2")
    assert found["z"] == ("F32", [1, 2], struct.pack("<2f", 1.0, 2.0))
    assert found["empty"] == ("F32", [0, 4], b"")
    offsets = sorted(e["data_offsets"] for e in header.values())
    assert offsets[0][0] == 0 and all(a[1] == b[0] for a, b in zip(offsets, offsets[1:]))
    assert all(e["data_offsets"][0] % {"F32": 4, "I8": 1}[e["dtype"]] == 0 for e in header.values())
    assert metadata["version"] == "2" and all(isinstance(v, str) for v in metadata.values())
    size = 8 + struct.unpack("<Q", data[:8])[0]
    crc = metadata["seal"].removeprefix("crc32:")
    assert f"{zlib.crc32(data[:size].replace(crc.encode(), bytes(8 * [48]), 1)):08x}" == crc
    assert metadata["blocks"] == f"4194304:{zlib.crc32(data[size:]):08x}"
    assert json.loads(metadata["structure"])["dict"][2] == ["lr", 0.1]


def test_foreign_safetensors():
    header = json.dumps({"x": {"dtype": "I16", "shape": [2], "data_offsets": [0, 4]}}).encode()
    data = len(header).to_bytes(8, "little") + header + struct.pack("<2h", 3, -4)
    assert load_safetensors(io.BytesIO(data))["x"].tolist() == [3, -4]
    with pytest.raises(CheckpointError, match="another program.*load_safetensors"):
        loads(data)
    file = io.BytesIO()
    save_safetensors({"w": fw.ones(2)}, file, {"note": "hi"})
    assert parse_by_hand(file.getvalue())[0]["note"] == "hi"
    with pytest.raises(TypeError, match="complex128"):
        save_safetensors({"w": fw.tensor([1j], dtype=fw.complex128)}, io.BytesIO())


# -- damaged and foreign files ---------------------------------------------------------------------

SMALL = {"w": None, "step": 3, "lr": 0.5, "name": "a\u00e9", "seq": (1, [2.0])}


def small():
    return {**SMALL, "w": fw.tensor([1.0, 2.0], requires_grad=True), "b": fw.tensor([True])}


def test_every_prefix_is_rejected():
    data = dumps(small())
    for cut in range(len(data)):
        with pytest.raises(CheckpointError):
            loads(data[:cut])


def test_every_bit_flip_is_rejected_or_harmless():
    obj = small()
    data = dumps(obj)
    for at in range(len(data)):
        for bit in range(8):
            bad = bytearray(data)
            bad[at] ^= 1 << bit
            try:
                back = loads(bytes(bad))
            except CheckpointError:
                continue
            assert same(back, obj), (at, bit)


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=80))
def test_any_bytes_are_rejected(data):
    with pytest.raises(CheckpointError):
        loads(data)


def file_of(header, body=b""):
    raw = header if isinstance(header, bytes) else json.dumps(header).encode()
    return len(raw).to_bytes(8, "little") + raw + body


def entry(dtype="U8", shape=(2,), offsets=(0, 2)):
    return {"dtype": dtype, "shape": list(shape), "data_offsets": list(offsets)}


HOSTILE = {
    "length beyond the file": (1 << 63).to_bytes(8, "little") + b"{}" + b" " * 8,
    "not json": file_of(b"{nonsense}"),
    "not an object": file_of(b"{}").replace(b"{}", b"[]"),
    "bad unicode": file_of(b'{"\xff": 1}'),
    "twice": file_of(b'{"a":{"dtype":"U8","shape":[0],"data_offsets":[0,0]},'
                     b'"a":{"dtype":"U8","shape":[0],"data_offsets":[0,0]}}'),
    "deep": file_of(b'{"a":' + b"[" * 100_000 + b"]" * 100_000 + b"}"),
    "huge integer": file_of(b'{"a":' + b"9" * 5000 + b"}"),
    "nan": file_of(b'{"__metadata__":{}, "a": NaN}'),
    "metadata not text": file_of({"__metadata__": {"a": 1}}),
    "entry not an object": file_of({"a": 3}, b"12"),
    "entry with more": file_of({"a": {**entry(), "x": 1}}, b"12"),
    "unknown dtype": file_of({"a": entry("Q3")}, b"12"),
    "float8": file_of({"a": entry("F8_E4M3")}, b"12"),
    "dtype a list": file_of({"a": entry(["U8"])}, b"12"),
    "negative size": file_of({"a": entry(shape=(-2,))}, b"12"),
    "bool size": file_of({"a": entry(shape=(True, 2))}, b"12"),
    "float size": file_of({"a": entry(shape=(2.0,))}, b"12"),
    "wrong product": file_of({"a": entry(shape=(3,))}, b"12"),
    "enormous": file_of({"a": entry(shape=(1 << 40, 1 << 40))}, b"12"),
    "enormous but empty": file_of({"a": entry(shape=(0, 1 << 61, 1 << 61), offsets=(0, 0))}),
    "many dimensions": file_of({"a": entry(shape=(1,) * 65, offsets=(0, 1))}, b"1"),
    "reversed": file_of({"a": entry(offsets=(2, 0))}, b"12"),
    "overlap": file_of({"a": entry(), "b": entry(offsets=(1, 3))}, b"123"),
    "gap": file_of({"a": entry(), "b": entry(offsets=(3, 5))}, b"12345"),
    "beyond the end": file_of({"a": entry(offsets=(0, 2))}, b"1"),
    "rest": file_of({"a": entry()}, b"123"),
    "bool of 7": file_of({"a": entry("BOOL")}, b"\1\7"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile(name):
    for read in (load, load_safetensors):
        with pytest.raises(CheckpointError):
            read(io.BytesIO(HOSTILE[name]))


def sealed(structure, arrays=None):
    """A file with a right checksum around any structure."""
    from framework.io.stream import write_layout
    file = io.BytesIO()
    write_layout(file, arrays or {}, {"format": "framework.checkpoint", "version": "2",
                                      "structure": structure})
    return file.getvalue()


@pytest.mark.parametrize("structure", [
    "", "{", "{}", '{"tuple":3}', '{"tuple":[1],"x":2}', '{"nothing":1}', '{"tensor":"w"}',
    '{"tensor":["w"]}', '{"tensor":"m","requires_grad":1}', '{"tensor":"m","requires_grad":true}',
    '{"tensor":"m","complex":true}', '{"tensor":"m","device":"mars"}', '{"tensor":"m","alias":"x"}',
    '{"dict":[["a",1],["a",2]]}', '{"dict":[[1.5,1]]}', '{"dict":[[[],1]]}', '{"dict":5}',
    '{"dict":[["a"]]}', '{"dict":[[{"x":1},1]]}', '{"int":"zz"}', '{"int":3}', '{"float":"00"}',
    '{"float":1}', '{"complex":[1]}', '{"complex":[1,"x"]}', '{"bytes":"*"}', '{"bytes":5}',
    '{"dtype":"float12"}', '{"dtype":[]}', '{"device":"mars"}', '{"__class__":1}', '{"fail":"x"}',
    '{"tuple":[' * 300 + "1" + "]}" * 300, "[" * 100_000 + "]" * 100_000])
def test_hostile_structure(structure):
    with pytest.raises(CheckpointError):
        loads(sealed(structure, {"m": np.arange(2)}))


def test_versions():
    data = sealed("1")
    assert loads(data) == 1
    from framework.io.stream import write_layout
    file = io.BytesIO()
    write_layout(file, {}, {"format": "framework.checkpoint", "version": "9", "structure": "1"})
    with pytest.raises(CheckpointError, match="version '9'"):
        loads(file.getvalue())


def test_messages_say_what_a_foreign_file_looks_like(tmp_path):
    for content, text in ((b"", "empty"), (pickle.dumps(list(range(99))), "pickle"),
                          (b"PK\x03\x04" + b"x" * 40, "zip archive is cut short or damaged"),
                          (b"\x93NUMPY" + b"x" * 40, "npy"), (b"hello", "5 bytes"),
                          (b"just some text", "not a checkpoint")):
        path = tmp_path / "f.ckpt"
        path.write_bytes(content)
        with pytest.raises(CheckpointError, match=f"f.ckpt.*{text}"):
            load(path)


def test_paths(tmp_path):
    with pytest.raises(FileNotFoundError, match="nowhere.ckpt"):
        load(tmp_path / "nowhere.ckpt")
    with pytest.raises(IsADirectoryError):
        load(tmp_path)
    with pytest.raises(FileNotFoundError, match="create it first"):
        save(1, tmp_path / "no" / "x.ckpt")
    with pytest.raises(IsADirectoryError):
        save(1, tmp_path)
    with pytest.raises(TypeError, match="path or a binary file"):
        save(1, 7)
    with pytest.raises(TypeError, match="binary"):
        load(io.StringIO("x"))
    with pytest.raises(TypeError, match="map_location"):
        load(io.BytesIO(dumps(1)), map_location=1.5)


def test_unsupported_objects_are_named(tmp_path):
    class Thing:
        def state_dict(self):
            return {}

    for obj, text in (
            ({"optimizer": {"state": [0, 1, 2, Thing()]}}, r"obj\['optimizer'\]\['state'\]\[3\].*state_dict"),
            ([np.array([len])], r"obj\[0\].*array of object"), ({"a": np.str_("x")}, r"obj\['a'\].*<U1"),
            ({1.5: 2}, "key 1.5"), ({True: 2}, "key True"), ({len}, "member of obj.*function"), (len, "code"),
            ("\ud800", "Unicode"), (bytearray(1), "bytes")):
        with pytest.raises(TypeError, match=text):
            save(obj, tmp_path / "x.ckpt")
    cycle = []
    cycle.append(cycle)
    with pytest.raises(ValueError, match="holds itself"):
        save(cycle, tmp_path / "x.ckpt")
    deep = 1
    for _ in range(5000):
        deep = [deep]
    with pytest.raises(ValueError, match="deep"):
        save(deep, tmp_path / "x.ckpt")
    assert os.listdir(tmp_path) == []


def test_map_location():
    data = dumps({"w": fw.ones(2)})
    for where in (None, "cpu", Device("cpu"), {"cuda:0": "cpu"}):
        assert load(io.BytesIO(data), map_location=where)["w"].device == Device("cpu")
    data = sealed('{"tensor":"w","device":"cuda:0"}', {"w": np.ones(2, np.float32)})
    assert load(io.BytesIO(data), map_location="cpu").tolist() == [1.0, 1.0]
    assert load(io.BytesIO(data), map_location={"cuda:0": "cpu"}).tolist() == [1.0, 1.0]


# -- atomic replacement ----------------------------------------------------------------------------


@pytest.mark.parametrize("failing", ["fsync", "replace", "write", "open", "interrupt"])
def test_a_failed_save_leaves_the_old_file(tmp_path, monkeypatch, failing):
    path = tmp_path / "x.ckpt"
    save({"step": 1}, path)
    before = path.read_bytes()

    def fail(*args, **kwargs):
        raise KeyboardInterrupt if failing == "interrupt" else OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        if failing in ("write", "interrupt"):
            patch.setattr("framework.io.checkpoint.write_layout", fail)
        else:
            patch.setattr(os, failing, fail)
        with pytest.raises((OSError, KeyboardInterrupt)):
            save({"step": 2}, path)
    assert path.read_bytes() == before and os.listdir(tmp_path) == ["x.ckpt"]
    save({"step": 2}, path)
    assert load(path) == {"step": 2} and os.listdir(tmp_path) == ["x.ckpt"]


def test_the_order_of_write_sync_and_rename(tmp_path, monkeypatch):
    events = []
    for name in ("fsync", "replace"):
        real = getattr(os, name)

        def spy(*args, real=real, name=name):
            events.append(name)
            return real(*args)
        monkeypatch.setattr(os, name, spy)
    save({"w": fw.ones(3)}, tmp_path / "x.ckpt")
    assert events == ["fsync", "replace", "fsync"]


@pytest.mark.skipif(os.name != "posix", reason="links and modes are POSIX here")
def test_links_are_followed_and_modes_kept(tmp_path):
    real = tmp_path / "real.ckpt"
    save(1, real)
    os.chmod(real, 0o640)
    os.symlink(real, tmp_path / "link.ckpt")
    save(2, str(tmp_path / "link.ckpt"))
    assert load(real) == 2 and (tmp_path / "link.ckpt").is_symlink()
    assert os.stat(real).st_mode & 0o777 == 0o640


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="root may write everywhere")
def test_a_file_without_write_permission_is_not_replaced(tmp_path):
    path = tmp_path / "x.ckpt"
    save(1, path)
    os.chmod(path, 0o444)
    with pytest.raises(PermissionError, match="no permission to write this file"):
        save(2, path)
    assert load(path) == 1 and os.listdir(tmp_path) == ["x.ckpt"]


def test_the_permission_that_is_asked_for(tmp_path, monkeypatch):
    path = tmp_path / "x.ckpt"
    save(1, path)
    monkeypatch.setattr(os, "access", lambda *args: False)
    with pytest.raises(PermissionError, match="no permission to write this file"):
        save(2, path)
    save(1, tmp_path / "new")


@pytest.mark.skipif(os.name != "posix", reason="devices and pipes are POSIX here")
def test_what_is_no_regular_file_is_written_to_and_not_replaced(tmp_path):
    save({"w": fw.ones(3)}, os.devnull)
    assert not os.path.isfile(os.devnull)
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    found = []
    reader = threading.Thread(target=lambda: found.append(fifo.read_bytes()))
    reader.start()
    save({"w": fw.ones(3)}, fifo)
    reader.join()
    assert loads(found[0])["w"].tolist() == [1.0, 1.0, 1.0] and os.listdir(tmp_path) == ["fifo"]


def test_new_files_follow_the_umask_and_paths_may_be_bytes(tmp_path):
    path = os.fsencode(tmp_path / "x.ckpt")
    old = os.umask(0o027)
    try:
        save([1], path)
    finally:
        os.umask(old)
    assert load(path) == [1]
    if os.name == "posix":
        assert os.stat(path).st_mode & 0o777 == 0o640


@pytest.mark.parametrize("name", ["a" * 255, "\u65e5" * 85, "\U0001f600" * 63])
def test_names_as_long_as_they_may_be(tmp_path, name):
    save([1], tmp_path / name)
    assert load(tmp_path / name) == [1] and os.listdir(tmp_path) == [name]
