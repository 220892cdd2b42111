"""Tensor: making it, what it says of itself, getting it out again, and wrong input."""

import copy
import math
import pickle

import numpy as np
import pytest

import framework as fw
from framework.errors import DTypeError, RangeError, ShapeError


def test_tensor_copies_and_keeps_dtypes():
    source = np.arange(3, dtype=np.float64)
    x = fw.tensor(source)
    source[0] = 9
    assert x.dtype is fw.float64 and x[0] == 0
    assert fw.tensor([1, 2]).dtype is fw.int64
    assert fw.tensor([1.0, 2]).dtype is fw.float32
    assert fw.tensor([True]).dtype is fw.bool
    assert fw.tensor(1 + 2j).dtype is fw.complex64
    assert fw.tensor([]).dtype is fw.float32 and fw.tensor([[], []]).shape == (2, 0)
    assert fw.tensor([np.float64(1)]).dtype is fw.float64
    assert fw.tensor(range(3)).tolist() == [0, 1, 2]
    assert fw.tensor([fw.tensor(1.0), fw.tensor(2.0)]).tolist() == [1.0, 2.0]
    assert fw.tensor(fw.tensor([1.0]), dtype=fw.int32).dtype is fw.int32


@pytest.mark.parametrize("bad, error, text", [
    ([[1, 2], [3]], ValueError, "differ in length"),
    ("abc", TypeError, "got str"),
    (["a"], TypeError, r"found 'a' of type str at data\[0\]"),
    ([None], TypeError, "must hold numbers"),
    ({"a": 1}, TypeError, "got dict"),
    (None, TypeError, "got NoneType"),
    (np.array(["2020-01-01"], dtype="datetime64[D]"), TypeError, "datetime64"),
])
def test_tensor_refuses_what_is_not_numbers(bad, error, text):
    with pytest.raises(error, match=text):
        fw.tensor(bad)


def test_from_numpy_and_numpy_share_memory():
    array = np.zeros(3, np.float32)
    x = fw.from_numpy(array)
    array[0] = 5
    x[1] = 7
    assert x.tolist() == [5, 7, 0] and array.tolist() == [5, 7, 0]
    assert x.numpy() is array and np.asarray(x) is array
    assert fw.as_tensor(array)._array is array
    assert np.array(x) is not array
    assert (np.ones(3) + x).dtype is fw.float64  # a tensor on the right keeps the result a tensor


def test_numpy_of_a_recorded_tensor_says_what_to_do():
    x = fw.ones(2, requires_grad=True)
    for convert in (lambda: x.numpy(), lambda: np.asarray(x), lambda: (x * 2).numpy()):
        with pytest.raises(RuntimeError, match=r"use x.detach\(\).numpy\(\)"):
            convert()
    assert x.numpy(force=True).tolist() == [1, 1]


def test_dlpack_both_ways():
    array = np.arange(4.0)
    x = fw.from_dlpack(array)
    array[0] = 10
    assert x[0] == 10
    if x.numpy().flags.writeable:  # NumPy before 2.2 takes in all memory as read-only
        x[1] = 20
        assert array[1] == 20
    back = np.from_dlpack(fw.arange(3))
    assert back.tolist() == [0, 1, 2]
    with pytest.raises(RuntimeError, match="requires grad"):
        np.from_dlpack(fw.ones(1, requires_grad=True))
    with pytest.raises(TypeError, match="does not export DLPack"):
        fw.from_dlpack([1, 2])


def test_dlpack_with_torch():
    torch = pytest.importorskip("torch")
    theirs = torch.arange(3.0)
    ours = fw.from_dlpack(theirs)
    theirs[0] = 7
    assert ours.tolist() == [7, 1, 2]
    assert torch.from_dlpack(fw.ones(2)).tolist() == [1, 1]


def test_creation_functions():
    assert fw.zeros(2, 3).shape == fw.zeros((2, 3)).shape == fw.zeros([2, 3]).shape == (2, 3)
    assert fw.full((2,), True).dtype is fw.bool and fw.full((), 2.0).item() == 2
    assert fw.arange(5).tolist() == [0, 1, 2, 3, 4]
    assert fw.arange(1, 2, 0.25).dtype is fw.float32
    assert fw.arange(5, 0, -2).tolist() == [5, 3, 1]
    assert fw.linspace(0, 1, 3).tolist() == [0, 0.5, 1]
    assert fw.eye(2, 3).shape == (2, 3)
    assert fw.ones_like(fw.tensor([1, 2])).dtype is fw.int64
    assert fw.ones(2, requires_grad=True).requires_grad
    x = fw.ones(1, dtype=fw.float64)
    assert x.new_zeros(2).dtype is fw.float64 and x.new_tensor([1]).dtype is fw.float64
    for wrong in (lambda: fw.zeros(-1), lambda: fw.zeros(2.5), lambda: fw.arange(0, 1, 0),
                  lambda: fw.arange(0, 5, -1), lambda: fw.linspace(0, 1, -1), lambda: fw.zeros_like([1]),
                  lambda: fw.zeros(1, dtype="x"), lambda: fw.zeros(1, device="tpu"), lambda: fw.Tensor(1.5)):
        with pytest.raises((ValueError, TypeError, RuntimeError)):
            wrong()


def test_what_a_tensor_says_of_itself():
    x = fw.zeros(2, 3, dtype=fw.float64)
    assert (x.ndim, x.dim(), x.numel(), x.nelement(), x.itemsize, x.element_size(), x.nbytes) == (
        2, 2, 6, 6, 8, 8, 48)
    assert x.size() == (2, 3) and x.size(-1) == 3 and x.stride() == (3, 1) and x.T.stride(0) == 1
    assert x.is_contiguous() and not x.T.is_contiguous()
    assert x.device == fw.device("cpu") and not x.is_cuda and x.get_device() == -1
    assert x.is_floating_point() and not x.is_complex() and len(x) == 2
    with pytest.raises(IndexError, match="dim=2 is out of range"):
        x.size(2)
    with pytest.raises(TypeError, match="0-dim"):
        len(fw.tensor(1))


def test_python_numbers():
    assert float(fw.tensor([2.5])) == 2.5 and int(fw.tensor(3)) == 3 and complex(fw.tensor(1.0)) == 1
    assert [10, 20, 30][fw.tensor(1)] == 20
    assert bool(fw.tensor([[1]])) and not fw.tensor(0.0)
    assert f"{fw.tensor(1.23456):.2f}" == "1.23" and f"{fw.tensor([1])}" == "tensor([1])"
    loss = fw.tensor(0.1, requires_grad=True)
    assert f"{loss} {loss * 2} {fw.tensor(3)} {fw.tensor(True)} {fw.tensor(1.5 - 2j)}" == \
        "0.10000000149011612 0.20000000298023224 3 True (1.5-2j)"
    assert f"{fw.tensor(1.5, dtype=fw.bfloat16)}" == "1.5" and str(fw.tensor(1.5)) == "tensor(1.5000)"
    assert f"{fw.nn.Parameter(fw.tensor(1.0))}".startswith("Parameter containing")
    assert f"{fw.ones((), device='meta')}".startswith("tensor(...")
    for wrong in (lambda: float(fw.ones(2)), lambda: fw.ones(2).item(), lambda: bool(fw.ones(2)),
                  lambda: bool(fw.ones(0)), lambda: [1][fw.tensor(0.0)], lambda: f"{fw.ones(2):.2f}"):
        with pytest.raises((ValueError, TypeError)):
            wrong()


def test_identity_hash_and_copies():
    x = fw.ones(2, requires_grad=True)
    assert len({x, x, fw.ones(2)}) == 2
    (x * 2).sum().backward()
    y = copy.deepcopy(x)
    assert y.requires_grad and y is not x and y.grad.tolist() == [2, 2] and y.data_ptr() != x.data_ptr()
    z = pickle.loads(pickle.dumps(x))
    assert z.requires_grad and z.tolist() == [1, 1]
    both = copy.deepcopy([x, x])
    assert both[0] is both[1]
    with pytest.raises(RuntimeError, match=r"x.detach\(\).clone\(\)"):
        copy.deepcopy(x * 2)
    assert pickle.loads(pickle.dumps(fw.arange(6).reshape(2, 3).T)).tolist() == [[0, 3], [1, 4], [2, 5]]


def test_requires_grad_switch_and_grad_assignment():
    x = fw.ones(2)
    assert x.requires_grad_() is x and x.is_leaf
    (x * 3).sum().backward()
    x.requires_grad_(False)
    assert x.grad.tolist() == [3, 3] and not x.requires_grad
    x.requires_grad = True
    (x * 3).sum().backward()
    assert x.grad.tolist() == [6, 6]
    x.grad = None
    assert x.grad is None
    for bad, error in ((fw.ones(3), ValueError), (fw.ones(2, dtype=fw.float64), TypeError), (1.0, TypeError)):
        with pytest.raises(error):
            x.grad = bad
    with pytest.raises(RuntimeError, match="only floating and complex tensors"):
        fw.tensor([1]).requires_grad_()
    with pytest.raises(RuntimeError, match="leaf"):
        (x * 2).requires_grad_(False)


def test_device_names():
    assert str(fw.device("cuda:1")) == "cuda:1" and fw.device("cuda", 1) == fw.device("cuda:1")
    assert fw.device("cpu") == fw.device("cpu:0") and hash(fw.device("cpu")) == hash(fw.device("cpu"))
    assert repr(fw.device("cuda:0")) == "device(type='cuda', index=0)"
    for bad in ("gpu", "cuda:x", "cpu:1", 1.5, ("cuda",)):
        with pytest.raises(fw.errors.DeviceError, match="device"):
            fw.device(bad)


PRINTED = [
    "[1.0, 2.0]", "[[1, 2], [30, 4]]", "[True, False]", "1.5", "7", "[]", "[0.1, 100.5]", "[1e-7, 1.0]",
    "[1e9, 1.0]", "[float('nan'), 1.0]", "[float('inf'), 2.5]", "[[[1.0], [2.0]], [[3.0], [4.0]]]",
    "[0.0, -0.5]", "list(range(2000))", "[[float(i * j) for i in range(40)] for j in range(40)]",
    "[1 + 2j, 0.5 - 1j]", "[float(i) for i in range(30)]", "[1e10, 2e10]", "[[], []]",
]


@pytest.mark.parametrize("text", PRINTED)
def test_repr_equals_torch(text):
    torch = pytest.importorskip("torch")
    assert repr(fw.tensor(eval(text))) == repr(torch.tensor(eval(text))).replace("torch.", "framework.")


def test_print_profiles():
    torch = pytest.importorskip("torch")
    try:
        for settings in ({"profile": "short"}, {"profile": "full"}, {"profile": "short", "precision": 3},
                         {"profile": "default"}):
            fw.set_printoptions(**settings)
            torch.set_printoptions(**settings)
            for n in (8, 2000):
                assert repr(fw.arange(n) / 3) == repr(torch.arange(n) / 3)
    finally:
        fw.set_printoptions(profile="default")
        torch.set_printoptions(profile="default")
    with pytest.raises(ValueError, match="profile must be one of .*'short'.* got 'long'"):
        fw.set_printoptions(profile="long")


def test_nodes_print_as_programs_of_pytorch_look_for_them(monkeypatch):
    from framework.config import names

    monkeypatch.setattr(names, "package", "torch")
    x = fw.tensor([1.0], requires_grad=True)
    assert repr(x * 2) == "tensor([2.], grad_fn=<MulBackward0>)"
    assert "grad_fn=<LogSoftmaxBackward0>" in repr(x.log_softmax(0))


def test_repr_of_recorded_tensors():
    x = fw.tensor([1.0], requires_grad=True)
    assert repr(x) == "tensor([1.], requires_grad=True)"
    assert repr(x * 2) == "tensor([2.], grad_fn=<mul>)"
    assert repr(fw.zeros(0, 3)) == "tensor([], size=(0, 3))"
    assert repr(fw.tensor([1.0], dtype=fw.float64)) == "tensor([1.], dtype=framework.float64)"


def test_sequences_of_tensors_take_their_dtypes():
    """Losses gathered in a list are float32; the Python floats beside them take the default dtype."""
    t = fw.tensor
    for data, dtype in [([t(1.0), t(2.0)], fw.float32), ([t(1), 2.5], fw.float32), ([t(1), t(2)], fw.int64),
                        ([[t(1.0)], [t(2)]], fw.float32), ([t(1.0, dtype=fw.float64), 2], fw.float64),
                        ([t(1.0, requires_grad=True), 2.0], fw.float32), ([t([1.0, 2.0])], fw.float32)]:
        y = fw.tensor(data)
        assert y.dtype is dtype and not y.requires_grad
    assert fw.tensor([[t(1.0)], [t(2)]]).tolist() == [[1.0], [2.0]]


def test_pytorchs_place_for_data():
    import framework.data
    import framework.utils.data as theirs

    public = {n: v for n, v in vars(framework.data).items()
              if not n.startswith("_") and (isinstance(v, type) or callable(v))}
    assert all(getattr(theirs, n) is v for n, v in public.items())


def test_products_refuse_mixed_dtypes():
    x, w = fw.ones(2, 3, dtype=fw.float64), fw.ones(3, 3)
    for product in (lambda: x @ w, lambda: fw.einsum("ij,jk->ik", x, w),
                    lambda: fw.nn.functional.linear(x, w), lambda: fw.nn.Linear(3, 2)(x),
                    lambda: fw.nn.Conv1d(2, 1, 1)(x)):
        with pytest.raises(fw.errors.DTypeError, match="is framework.float64 but .* convert one"):
            product()


def test_minus_zero_is_filled_in_as_it_is():
    made = [fw.full((2,), -0.0), fw.full_like(fw.ones(2), -0.0), fw.full((2,), 0.0), fw.zeros(2)]
    assert [np.signbit(x.numpy()).all() for x in made] == [True, True, False, False]


@pytest.mark.parametrize("data", [
    [1.5, 2.5], [1, 2], [True, False], [True, 2], [1, 2.5], [False, 0.5, 3], [[1, 2], [3, 4.5]],
    ((1, 2), [3, True]), [[[1.0]], [[2.0]]], [2**63 - 1, -2**63], [1.0, 2**60],
    [math.nan, -0.0], [[True], [1]], [[0.5, True]]], ids=str)
def test_nested_numbers_are_numpys_array(data):
    for array in (fw.tensor(data, dtype=fw.float64), fw.tensor(data)):
        found, wanted = array.numpy(), np.array(data)
        np.testing.assert_array_equal(found, wanted.astype(found.dtype))
        np.testing.assert_array_equal(np.signbit(found), np.signbit(wanted))
    default = np.dtype(np.float32) if wanted.dtype == np.float64 else wanted.dtype
    assert found.dtype == default


def test_nested_numbers_that_are_no_array():
    itself = []
    itself.append(itself)
    for wrong, error in (([[1, 2], [3]], ShapeError), ([[1], 2], ShapeError), ([1, [2]], ShapeError),
                         ([[1], [None]], DTypeError), ([1.0, "a"], DTypeError), (itself, RecursionError)):
        with pytest.raises(error):
            fw.tensor(wrong)
    assert fw.tensor([[], []]).shape == (2, 0)
    assert fw.tensor([np.float64(1), 2.0]).tolist() == [1, 2]
    assert fw.tensor([[fw.tensor(1.0)], [2.0]]).tolist() == [[1], [2]]
    with pytest.raises(RangeError):
        fw.tensor([[300]], dtype=fw.uint8)


def test_a_loss_is_printed_while_a_function_is_traced():
    seen = []

    def loss(x):
        y = (x * x).sum()
        seen.append(f"{y}")
        return y

    traced = fw.jit.trace(loss, fw.ones(3))
    assert traced(fw.ones(3) * 2).item() == 12 and seen
