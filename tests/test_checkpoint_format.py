"""The format as docs/checkpoint-format.md describes it: golden files, another reader, the streaming."""

import io
import json
import math
import re
import struct
from collections import OrderedDict
from pathlib import Path

import numpy as np
import plain_reader
import pytest

import framework as fw
from framework.device import Device
from framework.errors import CheckpointError
from framework.io import file_layout, load, load_safetensors, save, save_safetensors, stream
from framework.tensor import Tensor

GOLDEN = Path(__file__).parent / "golden"
DOC = Path(__file__).parents[1] / "docs" / "checkpoint-format.md"


def everything():
    """What the golden files hold: change nothing here, add a new file for new features."""
    nan = struct.unpack(">d", bytes.fromhex("7ff8000000000123"))[0]
    w = fw.tensor([[1.0, -2.5], [3.25, 4.0]], requires_grad=True)
    kinds = (fw.float16, fw.float64, fw.int8, fw.int16, fw.int32, fw.uint8, fw.complex64, fw.complex128)
    return {
        "w": w,
        "again": [w],
        "alias": w.detach(),
        "t": w.detach().t(),
        "empty": fw.zeros(0, 4),
        "scalar": fw.tensor(7),
        "flags": fw.tensor([True, False]),
        "kinds": [fw.tensor([1, 2]).to(dtype=d) for d in kinds],
        "numbers": [0, -1, 2**63, -(10**40), 0.1, -0.0, 5e-324, math.inf, -math.inf, nan, 1 + 2j, True, None],
        "text": "a\u00e9\U0001f600",
        "bytes": bytes(range(256)),
        "tuple": (1, (2,), []),
        3: {-(2**70): "key"},
        "dtype": fw.float16,
        "device": Device("cuda:1"),
        "": {},
    }


def everything_2():
    """What version 2 adds."""
    p = fw.nn.Parameter(fw.arange(6).float().reshape(2, 3))
    line = fw.arange(8)
    return {
        **everything(),
        "p": p,
        "tied": [p, p.detach()],
        "buffer": fw.nn.Buffer(fw.ones(2), persistent=False),
        "column": p.detach()[:, 1],
        "slices": (line[:5], line[2:]),
        "wide": fw.ones(1).expand(3, 4),
        "bits": p.detach().view(fw.int32),
        "ordered": OrderedDict(b=1, a=OrderedDict()),
        "c": fw.tensor([1j, 2.0])[1:],
    }


def same(a, b):
    """Equal to the last bit, types included."""
    if type(a) is not type(b):
        return False
    if isinstance(a, Tensor):
        return (a.dtype is b.dtype and a.shape == b.shape and a.requires_grad == b.requires_grad
                and a._array.tobytes() == b._array.tobytes())
    if isinstance(a, float):
        return struct.pack(">d", a) == struct.pack(">d", b)
    if isinstance(a, (list, tuple)):
        return len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, dict):
        return list(a) == list(b) and all(same(a[k], b[k]) for k in a)
    return a == b


def agrees(x, raw):
    """Whether an object is what the independent reader read."""
    if isinstance(x, Tensor):
        flags = {"requires_grad": True} if x.requires_grad else {}
        if type(x) is not Tensor:
            flags["class"] = type(x).__name__
        if not getattr(x, "persistent", True):
            flags["persistent"] = False
        return (raw.dtype, raw.shape, raw.data, raw.flags) == (
            x.dtype.name,
            x.shape,
            x._array.tobytes(),
            flags,
        )
    if isinstance(x, (fw.dtype, Device)):
        return raw == ("dtype", x.name) if isinstance(x, fw.dtype) else raw == ("device", str(x))
    if isinstance(x, dict):
        return type(x) is type(raw) and list(x) == list(raw) and all(agrees(x[k], raw[k]) for k in x)
    if isinstance(x, (list, tuple)):
        return type(x) is type(raw) and len(x) == len(raw) and all(map(agrees, x, raw))
    return same(x, raw)


@pytest.mark.parametrize("mmap", [False, True])
@pytest.mark.parametrize("version, wanted", [("v1", everything), ("v2", everything_2)])
def test_golden_files(version, wanted, mmap):
    back = load(GOLDEN / f"{version}.ckpt", mmap=mmap, verify=True)
    assert same(back, wanted())
    assert back["w"] is back["again"][0] and back["w"].data_ptr() == back["alias"].data_ptr()
    if version == "v2":
        start = back["p"].data_ptr()
        assert back["tied"][0] is back["p"] and back["tied"][1].data_ptr() == start == back["bits"].data_ptr()
        assert back["column"].data_ptr() == start + 4 and back["column"].stride() == (3,)
        assert back["slices"][1].data_ptr() == back["slices"][0].data_ptr() + 16
        assert not back["buffer"].persistent


@pytest.mark.parametrize("version", ["v1", "v2"])
def test_golden_training_state(version):
    state = load(GOLDEN / f"{version}_training.ckpt")
    model = fw.nn.Sequential(fw.nn.Linear(2, 3), fw.nn.BatchNorm1d(3))
    optimizer = fw.optim.Adam(model.named_parameters())
    model.load_state_dict(state["model"])
    optimizer.load_state_dict(state["optimizer"])
    assert optimizer.param_groups[0]["lr"] == 0.25
    assert model[0].bias.tolist() == [0.5] * 3 and model[1].bias.tolist() == pytest.approx([0.25] * 3)
    generator = fw.Generator().set_state(state["random"])
    assert generator.initial_seed() == 5
    assert (
        fw.rand(3, generator=generator).tolist()
        == fw.rand(3, generator=fw.Generator().manual_seed(5)).tolist()
    )


@pytest.mark.parametrize("version", ["v1", "v2"])
def test_golden_safetensors(version):
    back = load_safetensors(GOLDEN / f"{version}.safetensors")
    assert back["w"].tolist() == [[1.0, -2.5], [3.25, 4.0]] and back["n"].tolist() == [1, 2]


def test_every_version_has_golden_files():
    rows = re.findall(r"^\| (\d+) \|", DOC.read_text(), re.M)
    assert sorted(rows[:2]) == ["1", "2"]
    for version in ("1", "2"):
        for end in (".ckpt", "_training.ckpt", ".safetensors"):
            assert (GOLDEN / f"v{version}{end}").exists()


def test_the_independent_reader_agrees():
    for name, wanted in (("v1", everything), ("v2", everything_2)):
        assert agrees(wanted(), plain_reader.read((GOLDEN / f"{name}.ckpt").read_bytes()))
    file = io.BytesIO()
    save(everything_2(), file)
    raw = plain_reader.read(file.getvalue())
    assert agrees(everything_2(), raw)
    assert raw["p"].place == raw["tied"][0].place != raw["tied"][1].place
    damaged = bytearray(file.getvalue())
    damaged[-1] ^= 1
    with pytest.raises(AssertionError):
        plain_reader.read(bytes(damaged))


def test_the_golden_file_of_this_version_is_what_is_written():
    file = io.BytesIO()
    save(everything_2(), file)
    assert file.getvalue() == (GOLDEN / "v2.ckpt").read_bytes()


def test_the_reference_reader_of_safetensors_agrees(tmp_path):
    reference = pytest.importorskip("safetensors.numpy", reason="the safetensors package is not installed")
    x = {
        "w": fw.arange(6).float().reshape(2, 3),
        "n": fw.tensor(3),
        "e": fw.zeros(0, 2),
        "b": fw.tensor([True]),
    }
    save(x, tmp_path / "a")
    save_safetensors(x, tmp_path / "b")
    for name in "ab":
        found = reference.load_file(tmp_path / name)
        assert found.keys() == x.keys()
        for key in x:
            assert np.array_equal(found[key], x[key].numpy()) and found[key].dtype == x[key].numpy().dtype
    reference.save_file({"u": np.arange(3.0)}, tmp_path / "c")
    assert load_safetensors(tmp_path / "c")["u"].tolist() == [0.0, 1.0, 2.0]


# -- streaming -------------------------------------------------------------------------------------


@pytest.fixture
def small_blocks(monkeypatch):
    """Blocks of 4 KiB and threads from 16 KiB, so that small files take every road."""
    for module in (file_layout, stream):
        monkeypatch.setattr(module, "BLOCK", 4096)
    monkeypatch.setattr(stream, "_THREADED", 1 << 14)
    monkeypatch.setattr(stream, "_STEP", 1000)


def many():
    r = np.random.default_rng(0)
    x = fw.from_numpy(r.standard_normal((40, 50)))
    return {
        "x": x,
        "t": fw.from_numpy(r.standard_normal((70, 30))).t(),
        "small": [fw.tensor(i) for i in range(700)],
        "odd": fw.from_numpy(r.integers(0, 255, 5001, np.uint8)),
        "strided": fw.from_numpy(r.random((9, 9, 99)))[:, ::2, 1:],
        "rows": fw.from_numpy(r.random((3, 4000)))[:, ::3],
        "half": fw.from_numpy(r.random((3, 3)).astype(np.float16)),
    }


def test_blocks_give_the_same_everywhere(small_blocks, tmp_path):
    path, file = tmp_path / "x.ckpt", io.BytesIO()
    save(many(), path)
    save(many(), file)
    assert path.read_bytes() == file.getvalue()  # written once and patched, or read twice
    assert agrees(many(), plain_reader.read(file.getvalue()))
    for back in (
        load(path),
        load(path, mmap=True),
        load(path, mmap=True, verify=True),
        load(path, verify=False),
        load(io.BytesIO(file.getvalue())),
    ):
        assert same(back, many())


def test_damage_in_any_block_is_found_and_named(small_blocks, tmp_path):
    path = tmp_path / "x.ckpt"
    save(many(), path)
    data = path.read_bytes()
    start = 8 + int.from_bytes(data[:8], "little")
    table = json.loads(data[8:start])
    for at in range(start, len(data), 3001):
        bad = bytearray(data)
        bad[at] ^= 4
        path.write_bytes(bad)
        for read in (lambda: load(path), lambda: load(path, mmap=True, verify=True),
                     lambda: load(io.BytesIO(bytes(bad)))):
            with pytest.raises(CheckpointError, match=rf"block {(at - start) // 4096} .* damaged in") as info:
                read()
        begin = (at - start) // 4096 * 4096
        first = next(n for n, e in sorted(table.items(), key=lambda i: i[1].get("data_offsets", [0, -1])[0])
                     if e.get("data_offsets", [0, -1])[1] > begin)
        assert repr(first) in str(info.value)
        load(path, mmap=True)
        load(path, verify=False)


def test_a_file_cut_short_while_it_is_read(small_blocks, tmp_path, monkeypatch):
    path = tmp_path / "x.ckpt"
    save(many(), path)
    real = stream.read_arrays

    def shortened(*args):
        with open(path, "r+b") as file:
            file.truncate(20_000)
        return real(*args)
    monkeypatch.setattr("framework.io.checkpoint.read_arrays", shortened)
    with pytest.raises(CheckpointError, match="cut short"):
        load(path)


def peak(action):
    """Bytes that ``action`` took at most, of what Python and NumPy allocate, and its result."""
    import tracemalloc
    tracemalloc.start()
    try:
        result = action()
        return tracemalloc.get_traced_memory()[1], result
    finally:
        tracemalloc.stop()


def test_saving_and_loading_make_no_second_copy(tmp_path):
    size = 96 << 20
    x = fw.zeros(size // 4)
    path = tmp_path / "x.ckpt"
    for obj in ({"x": x}, {"x": x.reshape(-1, 64).t()}):
        assert peak(lambda: save(obj, path))[0] < 32 << 20
    with open(path, "wb") as file:
        assert peak(lambda: save({"x": x}, file))[0] < 32 << 20
    extra, back = peak(lambda: load(path))
    assert extra < size + (16 << 20) and back["x"].shape == x.shape
    assert peak(lambda: load(path, mmap=True))[0] < 8 << 20
    with open(path, "rb") as file:
        assert peak(lambda: load(file))[0] < size + (16 << 20)


@pytest.mark.parametrize("whole", [False, True])
def test_raw_files_that_give_a_few_bytes_at_a_time(whole):
    class Slow(io.BytesIO):
        def read(self, size=-1):
            return super().read(min(size, 7))

        def readinto(self, buffer):
            return super().readinto(memoryview(buffer)[:7])

    file = io.BytesIO()
    save({"x": fw.arange(100)}, file, weights_only=not whole)
    assert load(Slow(file.getvalue()), weights_only=not whole)["x"].tolist() == list(range(100))


def test_files_that_cannot_seek(tmp_path):
    class Pipe(io.RawIOBase):
        def __init__(self, data=b""):
            self.data = bytearray(data)

        def writable(self):
            return True

        def readable(self):
            return True

        def seekable(self):
            return False

        def write(self, piece):
            part = bytes(piece)[:1000]  # a raw file may take less
            self.data += part
            return len(part)

        def readinto(self, buffer):
            n = min(len(buffer), 777, len(self.data))
            buffer[:n], self.data = self.data[:n], self.data[n:]
            return n
    pipe = Pipe()
    save(many(), pipe)
    assert same(load(pipe), many())


def test_several_objects_in_one_file(tmp_path):
    """Reading starts where the file stands."""
    with open(tmp_path / "x", "w+b") as file:
        file.write(b"before")
        save({"w": fw.ones(3)}, file)
        file.seek(6)
        assert load(file)["w"].tolist() == [1.0, 1.0, 1.0]
