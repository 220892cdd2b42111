"""PyTorch's files read as data: every kind of content, both layouts, damage, and what must never happen."""

import argparse
import contextlib
import io
import pickle
import subprocess
import sys
import zipfile
from collections import Counter, OrderedDict, defaultdict
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import framework as fw
from framework.errors import CheckpointError, DeviceError

GOLDEN = Path(__file__).parent / "golden" / "torch"
LAYOUTS = [pytest.param({}, id="zip"), pytest.param({"_use_new_zipfile_serialization": False}, id="legacy")]


def through(torch, obj, options=None, **load_options):
    file = io.BytesIO()
    torch.save(obj, file, **(options or {}))
    file.seek(0)
    return fw.load(file, **load_options)


# -- files that PyTorch wrote, kept: read where it is not installed -------------------------------


@pytest.mark.parametrize("name", ["zip.pt", "legacy.pt"])
def test_golden_files(name):
    """A whole training checkpoint: model, optimizer, NumPy's numbers, arguments, tied weights."""
    found = fw.load(GOLDEN / name)
    assert found["epoch"] == 3 and found["args"] == argparse.Namespace(lr=0.1, layers=[4, 2])
    assert found["best"] == np.float64(0.5) and isinstance(found["best"], np.float64)
    np.testing.assert_array_equal(found["curve"], np.arange(6.0).reshape(2, 3))
    model = fw.nn.Sequential(fw.nn.Linear(3, 4), fw.nn.BatchNorm1d(4))
    model.load_state_dict(found["model"])
    assert model[0].weight.tolist() == [[float(i * 3 + j) for j in range(3)] for i in range(4)]
    assert found["model"]["1.num_batches_tracked"].item() == 1
    assert found["optimizer"]["state"][0]["step"].item() == 1
    found["tied"]["a"][0] = 7.0
    assert found["tied"]["b"][0, 0].item() == 7.0
    assert found["half"].dtype is fw.float16 and found["half"].tolist() == [1.5, -2.0]


def test_golden_file_mapped():
    path = GOLDEN / "zip.pt"
    before = path.read_bytes()
    found = fw.load(path, mmap=True)
    found["model"]["0.weight"].zero_()
    assert path.read_bytes() == before
    with pytest.raises(CheckpointError, match="cannot be mapped"):
        fw.load(GOLDEN / "legacy.pt", mmap=True)


@pytest.mark.parametrize("name", ["zip.pt", "legacy.pt"])
def test_every_prefix_is_refused(name):
    data = (GOLDEN / name).read_bytes()
    for n in [*range(1, len(data), 97), len(data) - 1]:
        with pytest.raises(CheckpointError):
            fw.load(io.BytesIO(data[:n]))


@pytest.mark.parametrize("name", ["zip.pt", "legacy.pt"])
@given(st.data())
@settings(max_examples=150, deadline=None)
def test_changed_bytes_give_an_error_or_data(name, data):
    """Nothing but a CheckpointError, whatever bytes are changed."""
    raw = bytearray((GOLDEN / name).read_bytes())
    for _ in range(data.draw(st.integers(1, 4))):
        raw[data.draw(st.integers(0, len(raw) - 1))] = data.draw(st.integers(0, 255))
    with contextlib.suppress(CheckpointError):
        fw.load(io.BytesIO(bytes(raw)), map_location="cpu")


def test_changed_numbers_are_noticed():
    raw = bytearray((GOLDEN / "zip.pt").read_bytes())
    with zipfile.ZipFile(io.BytesIO(raw)) as archive:
        entry = max((e for e in archive.infolist() if "/data/" in e.filename), key=lambda e: e.file_size)
    at = raw.index(np.arange(12, dtype=np.float32).tobytes())
    raw[at] ^= 1
    with pytest.raises(CheckpointError, match="checksum of .*data/.* is wrong"):
        fw.load(io.BytesIO(bytes(raw)))
    assert entry.file_size and fw.load(io.BytesIO(bytes(raw)), verify=False)["epoch"] == 3


# -- what is refused -------------------------------------------------------------------------------


def archive_of(data, **more):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("x/data.pkl", data)
        for name, content in more.items():
            archive.writestr(f"x/{name}", content)
    return io.BytesIO(file.getvalue())


class Evil:
    def __reduce__(self):
        return print, ("pwned",)


def test_what_is_no_data_is_named_and_not_called(capsys):
    data = pickle.dumps({"a": Evil(), "b": [Path("x"), {"c": Evil}]}, protocol=2)
    with pytest.raises(
        CheckpointError, match=r"__builtin__\.print, pathlib\.\w+, .*Evil.*imported or called"
    ):
        fw.load(archive_of(data))
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize(
    "text, pattern",
    [
        (b"ctorch\nnothing\n.", "torch.nothing"),
        (b"\x80\x02}U", "cut short"),
        (b"\x80\x02.", "not sound"),
        (b"\x80\x02K\x01)R.", "call of what is no function"),
        (b"\x80\x02c__builtin__\nlist\nK\x01\x85R.", "no list"),
        (b"\x80\x02c__builtin__\nint\nX\x01\x00\x00\x001\x85R.", "call of int"),
        (b"(i__main__\nX\n.", "0x69"),
        (b"\x80\x02]q\x00h\x01.", "not sound"),
        (b"\x80\x02}]K\x01s.", "key of type list"),
        (b"\x80\x02ccollections\ndefaultdict\ncargparse\nNamespace\n\x85R.", "made by code"),
        (b"\x80\x02cnumpy\ndtype\nX\x02\x00\x00\x00O8\x85R.", "'O8'"),
        (
            b"\x80\x02cnumpy.core.multiarray\nscalar\ncnumpy\ndtype\nX\x02\x00\x00\x00f8\x85RC\x01a\x86R.",
            "NumPy number",
        ),
        (
            b"\x80\x02(X\x07\x00\x00\x00storagectorch\nFloatStorage\nX\x01\x00\x00\x000X\x03\x00\x00\x00cpuK\x04tQ.",
            "not in the file",
        ),
    ],
)
def test_unsound_pickles(text, pattern):
    with pytest.raises(CheckpointError, match=pattern):
        fw.load(archive_of(text))


def test_archives_of_others():
    with pytest.raises(CheckpointError, match="TorchScript"):
        fw.load(archive_of(b"\x80\x02N.", **{"constants.pkl": b""}))
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("x/data.pkl", b"\x80\x02N." + b" " * 999)
    with pytest.raises(CheckpointError, match="compressed"):
        fw.load(io.BytesIO(file.getvalue()))
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("notes.txt", b"hello")
    with pytest.raises(CheckpointError, match="torch.save did not write it"):
        fw.load(io.BytesIO(file.getvalue()))


def tensor_pickle(offset, shape, strides, count=4, requires_grad=False, storage="FloatStorage"):
    """A hand-made pickle of one tensor over a storage of ``count`` elements."""

    def number(n):
        return b"\x8b\x08\x00\x00\x00" + n.to_bytes(8, "little", signed=True)

    def sizes(values):
        return b"(" + b"".join(map(number, values)) + b"t"

    return (
        b"\x80\x02ctorch._utils\n_rebuild_tensor_v2\n((X\x07\x00\x00\x00storagectorch\n"
        + storage.encode()
        + b"\nX\x01\x00\x00\x000X\x03\x00\x00\x00cpu"
        + number(count)
        + b"tQ"
        + number(offset)
        + sizes(shape)
        + sizes(strides)
        + (b"\x88" if requires_grad else b"\x89")
        + b"}tR."
    )


@pytest.mark.parametrize(
    "offset, shape, strides, pattern",
    [
        (1, (4,), (1,), "leaves its storage"),
        (0, (2, 3), (2, 1), "leaves its storage"),
        (-1, (1,), (1,), "leaves"),
        (0, (2,), (-1,), "leaves"),
        (0, (2**62,), (2**62,), "leaves|sound"),
        (0, (1, 2), (1,), "leaves"),
        (2**63 - 1, (1,), (1,), "leaves|sound"),
    ],
)
def test_tensors_stay_inside_their_storage(offset, shape, strides, pattern):
    data = tensor_pickle(offset, shape, strides)
    with pytest.raises(CheckpointError, match=pattern):
        fw.load(archive_of(data, **{"data/0": bytes(16)}))


def test_hand_made_tensors():
    values = np.arange(4, dtype=np.float32)
    found = fw.load(archive_of(tensor_pickle(0, (2, 2), (1, 2)), **{"data/0": values.tobytes()}))
    assert found.tolist() == [[0, 2], [1, 3]]
    swapped = fw.load(
        archive_of(
            tensor_pickle(0, (4,), (1,)), **{"data/0": values.astype(">f4").tobytes(), "byteorder": b"big"}
        )
    )
    assert swapped.tolist() == [0, 1, 2, 3]
    with pytest.raises(CheckpointError, match="0 and 1"):
        fw.load(
            archive_of(tensor_pickle(0, (4,), (1,), storage="BoolStorage"), **{"data/0": b"\x00\x01\x02\x00"})
        )
    with pytest.raises(CheckpointError, match="requires gradients"):
        fw.load(archive_of(tensor_pickle(0, (1,), (1,), 1, True, "LongStorage"), **{"data/0": bytes(8)}))


@pytest.mark.parametrize(
    "text, pattern",
    [
        pytest.param(  # one list, copied again and again
            b"\x80\x02](" + b"K\x01" * 50_000 + b"eq\x00" + b"c__builtin__\nlist\nq\x010"
            + b"h\x01h\x00\x85R0" * 500 + b"N.",
            "more than the file holds",
            id="copies",
        ),
        pytest.param(  # the same with the bytes of a NumPy array, which come as a state
            b"\x80\x02B" + (100_000).to_bytes(4, "little") + bytes(100_000) + b"q\x000"
            + (
                b"cnumpy.core.multiarray\n_reconstruct\ncnumpy\nndarray\nK\x00\x85C\x01b\x87R"
                b"(K\x01M\xa8a\x85cnumpy\ndtype\nX\x02\x00\x00\x00i4\x85R\x89h\x00tb0"
            ) * 40 + b"N.",
            "more than the file holds",
            id="arrays",
        ),
        pytest.param(  # a tuple of tuples of tuples: 10^9 numbers as a key
            b"\x80\x02(" + b"K\x01" * 999 + b"tq\x00(" + b"h\x00" * 999 + b"tq\x01}("
            + b"h\x01" * 999 + b"tNs.",
            "key of type tuple",
            id="key",
        ),
    ],
)
def test_a_short_pickle_makes_nothing_long(text, pattern):
    with pytest.raises(CheckpointError, match=pattern):
        fw.load(archive_of(text))


def test_entries_that_lie_over_each_other_are_refused():
    """A directory whose entries all are the same bytes would be read into as many copies of them."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("x/data.pkl", b"\x80\x02N.")
        archive.writestr("x/data/0", bytes(10_000))
        first = archive.getinfo("x/data/0")
        for i in range(1, 50):
            again = zipfile.ZipInfo(f"x/data/{i}")
            for name in ("header_offset", "file_size", "compress_size", "CRC"):
                setattr(again, name, getattr(first, name))
            archive.filelist.append(again)
    with pytest.raises(CheckpointError, match="over each other"):
        fw.load(io.BytesIO(file.getvalue()))


def test_repeated_elements_take_no_memory():
    """Strides of 0 give a small storage a shape of any size; nothing looks at each element."""
    data = tensor_pickle(0, (1 << 45,), (0,), storage="BoolStorage")
    found = fw.load(archive_of(data, **{"data/0": bytes(4)}))
    assert found.shape == (1 << 45,) and not found[-1]
    turned = tensor_pickle(0, (1 << 45,), (0,)).replace(b"}tR.", b"}}X\x03\x00\x00\x00neg\x88stR.")
    with pytest.raises(CheckpointError, match="larger than its storage"):
        fw.load(archive_of(turned, **{"data/0": bytes(16)}))


def test_nothing_of_torch_is_imported():
    code = (
        "import sys, framework as fw; fw.load(sys.argv[1]);"
        "assert not {'torch', 'pickle', '_pickle'} & (set(sys.modules) - BEFORE)"
    )
    code = "import sys, numpy, framework; BEFORE = set(sys.modules);" + code
    done = subprocess.run(
        [sys.executable, "-c", code, str(GOLDEN / "zip.pt")], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr


# -- beside PyTorch --------------------------------------------------------------------------------


@pytest.mark.parametrize("options", LAYOUTS)
def test_tensors_of_every_kind(options):
    torch = pytest.importorskip("torch")
    pytest.importorskip("ml_dtypes")
    torch.manual_seed(0)
    base = torch.randn(4, 6)
    tensors = {
        **{
            str(d): (torch.randn(3, 2) * 3).to(d)
            for d in (
                torch.float16,
                torch.bfloat16,
                torch.float32,
                torch.float64,
                torch.int8,
                torch.int16,
                torch.int32,
                torch.int64,
                torch.uint8,
                torch.uint16,
                torch.uint32,
                torch.bool,
                torch.complex64,
                torch.complex128,
            )
        },
        "transposed": base.t(),
        "strided": base[1::2, ::3],
        "expanded": base[:1].expand(3, 6),
        "empty": base[:0],
        "0-d": base[0, 0],
        "conj": torch.randn(3, dtype=torch.complex64).conj(),
        "negative": torch.randn(3, dtype=torch.complex64).conj().imag,
        "parameter": torch.nn.Parameter(base.clone()),
        "buffer": torch.nn.Buffer(base.clone()),
        "needs grad": base.clone().requires_grad_(),
    }
    found = through(torch, tensors, options)
    for name, x in tensors.items():
        y, x = found[name], x.detach().resolve_conj().resolve_neg()
        assert str(y.dtype).removeprefix("framework.") == str(x.dtype).removeprefix("torch."), name
        if x.dtype is torch.bfloat16:
            x, y = x.float(), y.float()
        np.testing.assert_array_equal(y.detach().numpy(), x.numpy(), err_msg=name)
        assert y.requires_grad == tensors[name].requires_grad, name
    assert isinstance(found["parameter"], fw.nn.Parameter) and found["strided"].stride() == (12, 3)
    found["transposed"].zero_()  # all of one storage
    assert found["strided"].abs().sum().item() == 0 == found["0-d"].item()


@pytest.mark.parametrize("options", LAYOUTS)
def test_plain_data(options):
    torch = pytest.importorskip("torch")
    data = {
        "numbers": (1, -5, 2**70, 1.5, True, None, 1j),
        "text": "äß",
        "bytes": b"\x00\xff",
        3: frozenset([1, "a"]),
        "set": {1, (2, "b")},
        "od": OrderedDict(b=1, a=2),
        "dd": defaultdict(list, a=[1]),
        "c": Counter("abca"),
        "ns": argparse.Namespace(a=1, b=[2]),
        "s": slice(1, None),
        "r": range(3),
        "f4": np.float32(2.5),
        "i": np.int64(-3),
        "b": np.bool_(True),
        "big": np.arange(3, dtype=">i4"),
        "words": np.array(["a", "bc"]),
        "columns": np.asfortranarray(np.arange(6).reshape(2, 3)),
        "none": np.zeros((0, 2)),
        "ba": bytearray(b"xy"),
    }
    found = through(torch, data, options)
    for name, x in data.items():
        if isinstance(x, np.ndarray):
            assert found[name].dtype == x.dtype
            np.testing.assert_array_equal(found[name], x)
        else:
            assert found[name] == x and type(found[name]) is type(x), name
    assert found["dd"]["new"] == []
    other = through(torch, [torch.Size([2, 3]), torch.float64, torch.device("cuda:1")], options)
    assert tuple(other[0]) == (2, 3) and other[1] is fw.float64 and str(other[2]) == "cuda:1"


@pytest.mark.parametrize("options", LAYOUTS)
def test_modules_are_refused_by_name(options):
    torch = pytest.importorskip("torch")
    with pytest.raises(CheckpointError, match=r"torch\.nn\.modules\.linear\.Linear.*state_dict"):
        through(torch, torch.nn.Linear(2, 2), options)


def test_files_without_checksums(tmp_path):
    torch = pytest.importorskip("torch")
    before = torch.serialization.get_crc32_options()
    torch.serialization.set_crc32_options(False)
    try:
        torch.save({"w": torch.arange(5.0)}, tmp_path / "x.pt")
    finally:
        torch.serialization.set_crc32_options(before)
    assert fw.load(tmp_path / "x.pt")["w"].tolist() == [0, 1, 2, 3, 4]


def test_map_location():
    torch = pytest.importorskip("torch")
    file = io.BytesIO()
    torch.save({"w": torch.ones(2)}, file)
    elsewhere = io.BytesIO(file.getvalue().replace(b"X\x03\x00\x00\x00cpu", b"X\x03\x00\x00\x00mps"))
    with pytest.raises(DeviceError, match="'mps'.*map_location='cpu'"):
        fw.load(elsewhere, verify=False)
    elsewhere.seek(0)
    assert fw.load(elsewhere, map_location="cpu", verify=False)["w"].tolist() == [1, 1]
