"""Damaged and hostile checkpoints: CheckpointError and nothing else, and little memory.

``tests/stress/fuzz_checkpoints.py`` does the same with a million files.
"""

import io
import json
import sys
import tracemalloc
import zlib
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import framework as fw
from framework.errors import CheckpointError
from framework.io import load, load_safetensors, save

sys.path.append(str(Path(__file__).parent / "stress"))
import fuzz_checkpoints as fuzz


def test_mutants(tmp_path):
    """A slice of the long run; every way of damage and of reading is met, and some files still load."""
    counts, slowest, _, failure = fuzz.run(7, 0, 2500, 1, tmp_path)
    assert failure is None, failure
    assert counts["refused"] > 1000 and counts["loaded"] > 100 and slowest < fuzz.SLOW


def test_mutants_are_reproducible():
    files = fuzz.sound_files()
    again = fuzz.sound_files()
    assert files == again
    assert [fuzz.mutant(files, 3, i)[0] for i in range(200)] == [
        fuzz.mutant(again, 3, i)[0] for i in range(200)
    ]


def test_the_checksums_are_set_right():
    """Unchanged parts, sealed again, load: so changed ones are not refused for their checksums."""
    for data in fuzz.sound_files():
        parts = fuzz.parts(data)
        if parts is None:
            continue
        header, old = json.loads(parts[0]), b'"checksum"' in parts[0][:40]
        read = load if "structure" in header["__metadata__"] else load_safetensors
        read(io.BytesIO(fuzz.sealed(header, parts[1], old)))


json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=8)
    | st.sampled_from(["F32", "U8", "w", "cpu"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                [
                    "tensor",
                    "dict",
                    "tuple",
                    "ordered",
                    "int",
                    "float",
                    "bytes",
                    "view",
                    "complex",
                    "dtype",
                    "device",
                    "alias",
                    "x",
                ]
            ),
            inner,
            max_size=3,
        )
    ),
    max_leaves=8,
)


def outcome(data):
    """Whatever is loaded is touched; CheckpointError is the only error."""
    for read in (lambda file: load(file, "cpu"), load_safetensors):
        try:
            fuzz.touch(read(io.BytesIO(data)))
        except CheckpointError as error:
            assert str(error)


@settings(max_examples=150, deadline=None)
@given(json_values)
def test_any_structure(structure):
    body = bytes(16)
    metadata = {"format": "framework.checkpoint", "version": "2", "blocks": f"4194304:{zlib.crc32(body):08x}",
                "structure": json.dumps(structure)}
    outcome(
        fuzz.sealed(
            {"__metadata__": metadata, "w": {"dtype": "F32", "shape": [4], "data_offsets": [0, 16]}},
            body,
            False,
        )
    )


@settings(max_examples=150, deadline=None)
@given(
    st.dictionaries(
        st.text(max_size=3),
        st.fixed_dictionaries(
            {
                "dtype": json_values | st.sampled_from(["F32", "BF16", "C64", "U64"]),
                "shape": json_values | st.lists(st.integers(-1, 1 << 62), max_size=3),
                "data_offsets": json_values | st.lists(st.integers(0, 64), min_size=2, max_size=2),
            }
        ),
        max_size=3,
    ),
    st.binary(max_size=64),
)
def test_any_header(header, body):
    outcome(
        fuzz.sealed({"__metadata__": {"format": "framework.checkpoint", "blocks": ""}, **header}, body, False)
    )


views = st.fixed_dictionaries(
    {
        "dtype": st.sampled_from(
            ["float32", "float64", "uint8", "complex128", "bool", "bfloat16", "uint16", "x"]
        ),
        "shape": st.lists(st.integers(0, 5) | st.sampled_from([1 << 31, 1 << 62]), max_size=3),
        "offset": st.integers(-1, 65),
        "strides": st.lists(st.integers(-16, 16) | st.just(1 << 62), max_size=3),
    }
)


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(views)
def test_a_view_never_leaves_its_memory(view):
    body = bytes(range(64))
    metadata = {"format": "framework.checkpoint", "version": "2", "blocks": f"4194304:{zlib.crc32(body):08x}",
                "structure": json.dumps({"tensor": "w", "view": view})}
    data = fuzz.sealed(
        {"__metadata__": metadata, "w": {"dtype": "U8", "shape": [64], "data_offsets": [0, 64]}}, body, False
    )
    try:
        x = load(io.BytesIO(data))
    except CheckpointError:
        return
    low = high = view["offset"]
    for size, stride in zip(view["shape"], view["strides"]):
        low, high = low + min(0, (size - 1) * stride), high + max(0, (size - 1) * stride)
    assert x.numel() == 0 or (low >= 0 and high + x.itemsize <= 64)
    if 0 < x.numel() < 1000:
        assert x.reshape(-1)[0].numpy().tobytes() == body[view["offset"]:view["offset"] + x.itemsize]


def test_claims_take_no_memory():
    """A small file that claims to be large is refused before anything is allocated."""
    for n in (1 << 30, 1 << 40, 1 << 61):
        header = {"a": {"dtype": "F32", "shape": [n // 4], "data_offsets": [0, n]}}
        raw = json.dumps(header).encode()
        for data in (len(raw).to_bytes(8, "little") + raw, n.to_bytes(8, "little") + b"{}" + bytes(20),
                     b"\x89FWPKL\r\n" + bytes(4) + n.to_bytes(8, "little") + bytes(4)):
            tracemalloc.start()
            for weights_only in (None, False):
                with pytest.raises(CheckpointError):
                    load(io.BytesIO(data), weights_only=weights_only)
            assert tracemalloc.get_traced_memory()[1] < 1 << 20
            tracemalloc.stop()


def test_a_stride_of_zero_makes_no_large_memory():
    file = io.BytesIO()
    save(fw.ones(1).expand(1 << 20, 1 << 20), file)
    tracemalloc.start()
    assert load(io.BytesIO(file.getvalue())).shape == (1 << 20, 1 << 20)
    assert tracemalloc.get_traced_memory()[1] < 1 << 20
    tracemalloc.stop()
