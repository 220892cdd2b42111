"""Tensors of Python numbers: what goes the short way is what the long way makes, dtype and bits."""

import warnings

import numpy as np
import pytest

import framework as fw
from framework import from_data

DATA = [
    3, -0.0, 2.5, True, float("nan"), float("inf"), 1e300, 2 ** 40,
    [1, 2], [1.0, 2], [1, 2.5], [True, False], [True, 2], [False, 0.5], [-0.0],
    [1e300, 1e-50, 3.4028235e38], [1.5, np.float32(2)], [1, np.int8(3)], list(range(50)), [0.1] * 33,
]


@pytest.mark.parametrize("data", DATA, ids=str)
@pytest.mark.parametrize("default", ["float32", "float64", "float16"])
def test_the_short_way_is_the_long_one(data, default, monkeypatch):
    before = fw.get_default_dtype()
    fw.set_default_dtype(getattr(fw, default))
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            short = fw.tensor(data)
            monkeypatch.setattr(from_data, "_of_numbers", lambda data: None)
            long = fw.tensor(data)
    finally:
        fw.set_default_dtype(before)
    assert short.dtype is long.dtype and short.shape == long.shape
    assert short.numpy().tobytes() == long.numpy().tobytes()


@pytest.mark.parametrize("data, error", [
    ([1.0, [2.0]], fw.errors.ShapeError), ([1.0, "a"], fw.errors.DTypeError),
    ([1, None], fw.errors.DTypeError), ([1.0, None], fw.errors.DTypeError)])
def test_what_is_no_number_is_told(data, error):
    with pytest.raises(error, match="tensor: "):
        fw.tensor(data)


def test_what_is_there_already_stays():
    x = fw.ones(3)
    assert x.to("cpu") is x and x.to(fw.device("cpu")) is x and x.to(fw.float32) is x and x.to(x) is x
    assert x.to("cpu", fw.float32, True) is x and x.to("cpu", copy=True) is not x
    assert x.to("cpu", fw.float64, False, True).dtype is fw.float64
    assert x.to(fw.float32, False, True) is not x
    with pytest.raises(fw.errors.DeviceError, match="'tpu' is not known"):
        x.to("tpu")


def test_as_tensor_shares_arrays_of_known_dtypes():
    a = np.zeros(3, np.float32)
    fw.as_tensor(a)[1] = 2
    assert a.tolist() == [0, 2, 0]
    assert fw.as_tensor(a.astype(">f4")).tolist() == [0, 2, 0]
    with fw.device("meta"):
        assert fw.as_tensor(a).device.type == "meta"
