"""Size, tensor types of old, default devices: what PyTorch programs ask of types and devices."""

import copy
import pickle
import threading

import numpy as np
import pytest

import framework as fw
from framework.config import names


@pytest.fixture(autouse=True)
def device_restored():
    yield
    fw.set_default_device(None)


def test_size_is_a_tuple_that_counts_elements():
    shape = fw.ones(2, 3).shape
    assert isinstance(shape, fw.Size) and isinstance(shape, tuple) and shape == (2, 3) and shape.numel() == 6
    assert fw.ones(2, 3).size() == shape and isinstance(fw.ones(2, 3).size(), fw.Size)
    for made in (shape[1:], shape + (1,), (1,) + shape, shape * 2, 2 * shape, shape[:-1] + shape[-1:]):
        assert type(made) is fw.Size
    assert shape[0] == 2 and shape[1:].numel() == 3 and fw.Size().numel() == 1 and shape * 2 == (2, 3, 2, 3)
    assert fw.zeros(fw.Size([2, 1])).shape == (2, 1) and {shape: 1}[2, 3] == 1
    assert pickle.loads(pickle.dumps(shape)) == shape and type(copy.deepcopy(shape)) is fw.Size
    assert type(fw.Size(np.array([1, 2]))[0]) is int
    for wrong in (["a"], [1.0]):
        with pytest.raises(TypeError, match="wanted ints"):
            fw.Size(wrong)
    with pytest.raises(TypeError):
        shape + [1]


def test_size_prints_as_the_package_is_called(monkeypatch):
    assert repr(fw.ones(2, 3).shape) == "(2, 3)"
    monkeypatch.setattr(names, "package", "torch")
    assert f"{fw.ones(2, 3).shape}" == "torch.Size([2, 3])" and str(fw.float32) == "torch.float32"


def test_size_saved_and_loaded(tmp_path):
    fw.save({"shape": fw.ones(2, 3).shape}, tmp_path / "s")
    assert fw.load(tmp_path / "s")["shape"] == (2, 3)


def test_tensor_constructor():
    assert fw.Tensor().shape == (0,) and fw.Tensor(2, 3).shape == (2, 3) == fw.Tensor(fw.Size((2, 3))).shape
    assert fw.Tensor([1, 2]).tolist() == [1.0, 2.0] and fw.Tensor([1, 2]).dtype is fw.float32
    assert fw.Tensor((2, 3)).tolist() == [2.0, 3.0] and fw.Tensor(np.ones(2)).dtype is fw.float32
    shared = fw.ones(2)
    fw.Tensor(shared).zero_()
    assert shared.tolist() == [0, 0] and fw.Tensor(fw.tensor([1])).dtype is fw.int64
    with pytest.raises(TypeError, match="use framework.tensor"):
        fw.Tensor(2.5)
    with pytest.raises(ValueError):
        fw.Tensor(-1)
    with pytest.raises(ValueError, match="differ in length"):
        fw.Tensor([[1, 2], [3]])


def test_a_subclass_takes_further_arguments():
    class Named(fw.Tensor):
        def __new__(cls, data, name):
            return super().__new__(cls, data)

        def __init__(self, data, name):
            self.name = name

    x = Named([1.0, 2.0], "x")
    assert type(x) is Named and x.name == "x" and (x + 1).tolist() == [2.0, 3.0]


def test_typed_constructors_and_isinstance():
    assert fw.LongTensor([1.7, 2]).tolist() == [1, 2] and fw.FloatTensor(2, 3).shape == (2, 3)
    assert fw.BoolTensor([1, 0]).tolist() == [True, False] and fw.DoubleTensor().dtype is fw.float64
    kinds = {fw.FloatTensor: fw.float32, fw.DoubleTensor: fw.float64, fw.HalfTensor: fw.float16,
             fw.ByteTensor: fw.uint8, fw.CharTensor: fw.int8, fw.ShortTensor: fw.int16,
             fw.IntTensor: fw.int32,             fw.LongTensor: fw.int64, fw.BoolTensor: fw.bool}
    for kind, dtype in kinds.items():
        x = fw.zeros(2, dtype=dtype)
        assert [isinstance(x, k) for k in kinds] == [k is kind for k in kinds]
        assert x.type() == f"framework.{kind.__name__}" and repr(kind) == f"<class '{x.type()}'>"
        assert fw.ones(2).type(kind).dtype is dtype is fw.ones(2).type(x.type()).dtype
        assert type(kind(1)) is fw.Tensor
        assert pickle.loads(pickle.dumps(kind)) is kind
    assert not isinstance([1.0], fw.FloatTensor) and not issubclass(fw.FloatTensor, fw.Tensor)
    with pytest.raises(TypeError, match="wanted a tensor of framework.int64"):
        fw.LongTensor(fw.ones(2))
    with pytest.raises(TypeError, match="makes tensors on 'cpu'"):
        fw.LongTensor(2, device="cuda")


def test_type_names_of_both_packages(monkeypatch):
    assert fw.ones(1).type("torch.LongTensor").dtype is fw.int64
    monkeypatch.setattr(names, "package", "torch")
    assert fw.ones(1).type() == "torch.FloatTensor"
    assert fw.ones(1, dtype=fw.complex64).type() == "torch.ComplexFloatTensor"
    for wrong in ("torch.Long", "jax.LongTensor", "LongTensors"):
        with pytest.raises(TypeError, match="names no type of tensor"):
            fw.ones(1).type(wrong)


def test_the_class_of_all_tensors_as_a_type():
    x = fw.tensor([1, 2])
    for kind in (fw.Tensor, "torch.Tensor", "framework.Tensor"):
        assert x.type(kind).dtype is fw.float32 and x.type(kind).tolist() == [1.0, 2.0]
    y = fw.ones(2)
    assert y.type(fw.Tensor) is y
    layer = fw.nn.Linear(2, 1).double().type(fw.Tensor)
    assert layer.weight.dtype is fw.float32 and layer.type(fw.DoubleTensor).bias.dtype is fw.float64
    fw.set_default_dtype(fw.float64)
    try:
        assert x.type(fw.Tensor).dtype is fw.float64
    finally:
        fw.set_default_dtype(fw.float32)


def test_new():
    x = fw.tensor([1, 2])
    assert x.new([1.7, 2]).tolist() == [1, 2] and x.new(3).shape == (3,) and x.new(2, 3).dtype is fw.int64
    assert x.new().shape == (0,) and fw.ones(2).new(x.shape).shape == (2,)


def test_default_tensor_type():
    fw.set_default_tensor_type(fw.DoubleTensor)
    assert fw.ones(1).dtype is fw.float64 is fw.Tensor(1).dtype
    fw.set_default_tensor_type("torch.FloatTensor")
    assert fw.ones(1).dtype is fw.float32
    for wrong in (fw.LongTensor, fw.float32, "torch.LongTensor"):
        with pytest.raises(TypeError, match="set_default_tensor_type: wanted"):
            fw.set_default_tensor_type(wrong)


def test_default_device_is_the_threads_own():
    seen = []
    fw.set_default_device("cuda:7")
    assert fw.get_default_device() == fw.device("cuda:7")
    with fw.device("cpu"):
        assert fw.get_default_device().type == "cpu" and fw.ones(1).device.type == "cpu"
        with fw.device("cuda"):
            assert fw.get_default_device() == fw.device("cuda")
        assert fw.get_default_device().type == "cpu"
    thread = threading.Thread(target=lambda: seen.append(fw.get_default_device().type))
    thread.start()
    thread.join()
    assert seen == ["cpu"] and fw.get_default_device().index == 7


@pytest.mark.parametrize("make", [
    lambda: fw.ones(2), lambda: fw.tensor([1.0]), lambda: fw.arange(3), lambda: fw.rand(2), lambda: fw.eye(2),
    lambda: fw.nn.Linear(2, 2), lambda: fw.as_tensor([1]), lambda: fw.randperm(3), lambda: fw.Tensor(2),
    lambda: fw.tril_indices(2, 2), lambda: fw.linspace(0, 1, 3)])
def test_new_tensors_go_to_the_default_device(make):
    make()
    with fw.device("cuda:99"), pytest.raises((RuntimeError, ImportError), match="cuda"):
        make()


def test_shapes_are_kept_and_their_number_is_bounded():
    from framework.size import _MOST, KNOWN
    x = fw.ones(2, 3)
    assert type(x.shape) is fw.Size and x.shape is fw.zeros(2, 3).shape and x.size() is x.shape
    KNOWN.clear()
    base = fw.ones(1)
    for n in range(_MOST + 10):
        assert base.expand(n).shape == (n,)
    assert len(KNOWN) <= _MOST and type(x.shape) is fw.Size


def test_cuda_takes_cuda_devices_only():
    for call in (fw.ones(2).cuda, fw.nn.Linear(2, 2).cuda):
        for device in ("cpu", fw.device("cpu"), "meta"):
            with pytest.raises(fw.errors.DeviceError, match="must be a CUDA device"):
                call(device)
