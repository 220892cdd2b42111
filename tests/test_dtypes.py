"""Dtypes and promotion: PyTorch's table, written out and, where torch is installed, compared with it."""

import pickle

import numpy as np
import pytest

import framework as fw
from framework import dtypes

NAMES = [d.name for d in dtypes.ALL]
WIDE_UNSIGNED = {"uint16", "uint32", "uint64"}


def test_names_aliases_and_text():
    assert repr(fw.float32) == "framework.float32"
    assert (fw.float, fw.double, fw.half, fw.long, fw.int, fw.short, fw.bool) == (
        fw.float32, fw.float64, fw.float16, fw.int64, fw.int32, fw.int16, dtypes.bool_)
    assert fw.float16.is_floating_point and not fw.int8.is_floating_point
    assert fw.complex64.is_complex and fw.int8.is_signed and not fw.uint8.is_signed


@pytest.mark.parametrize("dtype", dtypes.ALL, ids=str)
def test_pickle_keeps_identity(dtype):
    assert pickle.loads(pickle.dumps(dtype)) is dtype


def test_promotion_of_weak_operands():
    ints, floats = fw.tensor([1, 2], dtype=fw.int8), fw.tensor([1.0], dtype=fw.float16)
    assert (ints + 1).dtype is fw.int8
    assert (ints + 1.5).dtype is fw.float32
    assert (ints + fw.tensor(1)).dtype is fw.int8
    assert (ints + fw.tensor(1.0, dtype=fw.float64)).dtype is fw.float64
    assert (floats + fw.tensor(1.0, dtype=fw.float64)).dtype is fw.float16
    assert (floats * 3).dtype is fw.float16
    assert (fw.tensor([True]) + 1).dtype is fw.int64
    assert (fw.tensor([1]) / 2).dtype is fw.float32
    assert (fw.tensor([1]) + fw.tensor([1.0])).dtype is fw.float32
    assert (np.float64(2) * floats).dtype is fw.float16


@pytest.mark.filterwarnings("ignore:ComplexHalf")
@pytest.mark.parametrize("a", NAMES)
def test_promotion_equals_torch(a):
    torch = pytest.importorskip("torch")
    for b in NAMES:
        if a != b and WIDE_UNSIGNED & {a, b} and "float" not in a + b:
            continue  # torch refuses to mix these with any but floats
        for shape_b in ((), (1,)):
            if a == "float16" and b.startswith("complex") and shape_b == ():
                continue  # torch gives complex32 here, a dtype NumPy has not
            ours = fw.ones(2, dtype=getattr(fw, a)) * fw.ones(shape_b, dtype=getattr(fw, b))
            theirs = (torch.ones(2, dtype=getattr(torch, a))
                      * torch.ones(shape_b, dtype=getattr(torch, b)))
            assert ours.dtype.name == str(theirs.dtype)[6:], (a, b, shape_b)
    for scalar in (True, 2, 2.5, 2j):
        ours = fw.ones(2, dtype=getattr(fw, a)) * scalar
        theirs = torch.ones(2, dtype=getattr(torch, a)) * scalar
        if not (a == "float16" and scalar == 2j):  # torch has a complex32, NumPy has none
            assert ours.dtype.name == str(theirs.dtype)[6:], (a, scalar)


def test_wide_unsigned_integers():
    """They mix with other integers where a dtype holds both, which torch refuses altogether."""
    x = fw.tensor([1, 2], dtype=fw.uint16)
    assert (x + 1).dtype is fw.uint16 and (x / 2).dtype is fw.float32 and (x * 0.5).dtype is fw.float32
    assert fw.promote_types(fw.uint16, fw.int8) is fw.int32
    assert fw.promote_types(fw.uint32, fw.uint8) is fw.uint32
    assert fw.promote_types(fw.uint32, fw.int64) is fw.int64
    assert fw.promote_types(fw.uint64, fw.bool) is fw.uint64
    assert fw.promote_types(fw.uint64, fw.float16) is fw.float16
    with pytest.raises(TypeError, match="uint64 and framework.int64 have no common integer dtype"):
        fw.promote_types(fw.uint64, fw.int64)


def test_default_dtype_decides_new_floats():
    fw.set_default_dtype(fw.float64)
    try:
        assert fw.tensor([1.0]).dtype is fw.float64
        assert fw.zeros(2).dtype is fw.float64
        assert (fw.tensor([1]) / 2).dtype is fw.float64
    finally:
        fw.set_default_dtype(fw.float32)
    with pytest.raises(TypeError, match="wanted a floating dtype, got framework.int64"):
        fw.set_default_dtype(fw.int64)


def test_wrong_dtype_lists_the_choices():
    for bad in ("nonsense", object(), np.dtype("datetime64[s]"), None.__class__):
        with pytest.raises(fw.errors.DTypeError, match="choose one of: float16, float32"):
            dtypes.as_dtype(bad)
    with pytest.raises(fw.errors.DTypeError, match="big|>f4"):
        fw.from_numpy(np.zeros(2, ">f4"))


def test_finfo_and_iinfo():
    assert fw.finfo(fw.float16).max == 65504.0 and fw.iinfo(fw.uint8).max == 255
    with pytest.raises(TypeError, match="use iinfo"):
        fw.finfo(fw.int8)
    with pytest.raises(TypeError, match="wanted an integer"):
        fw.iinfo(fw.float32)


@pytest.mark.filterwarnings("ignore:.*imaginary part")
@pytest.mark.parametrize("given", NAMES)
def test_copy_converts_into_memory_of_any_layout(given):
    rows = (fw.arange(24).reshape(4, 6) % 7).to(dtypes.as_dtype(given))
    sources = [rows, rows.t().contiguous().t(), rows[:1], fw.cat([rows, rows], 1)[:, ::2][:, :6]]
    for dtype in dtypes.ALL:
        for x in sources:
            base = fw.zeros(8, 12).to(dtype)
            for y in (fw.zeros(4, 6).to(dtype), fw.zeros(6, 4).to(dtype).t(), base[2:6, 3:9], base[::2, ::2]):
                y.copy_(x)
                assert y.equal(x.to(dtype).expand(4, 6))
            assert int((base != 0).sum()) <= 48


@pytest.mark.parametrize("dtype", [fw.int32, fw.float64])
def test_copy_converts_what_lies_in_the_same_memory(dtype):
    memory = fw.arange(12.0)
    halves = memory.view(dtype)
    wanted = memory[:halves.numel()].to(dtype)
    assert halves.copy_(memory[:halves.numel()]).equal(wanted)


@pytest.mark.parametrize("size", [3, 3000])
@pytest.mark.parametrize("dtype", [fw.int64, fw.int32, fw.uint8, fw.bool])
def test_results_in_place_are_of_no_higher_kind(dtype, size):
    for call in (lambda x: x.mul_(2.5), lambda x: x.div_(2), lambda x: x.add_(fw.ones(size)),
                 lambda x: x.sub_(1.5), lambda x: x.mul_(fw.full((), 1.5)), lambda x: x.add_(1j),
                 lambda x: x.lerp_(x, 0.5)):
        x = fw.ones(size).to(dtype)
        with pytest.raises(TypeError):
            call(x)
        assert x.dtype is dtype and x.equal(fw.ones(size).to(dtype))
