"""Keys of positions, arguments and draws in one native step, beside NumPy; what is unusual is left alone."""

import numpy as np
import pytest

import framework as fw
from framework import _native
from framework.errors import AutogradError, DTypeError
from framework.ops.index.index import index_op
from framework.seam import intercept

native = _native.module
pytestmark = pytest.mark.skipif(not hasattr(native, "at_positions"), reason="no kernels")
DTYPES = ("float32", "float64", "float16", "int64", "int32", "uint8", "complex64", "bool")
X = np.arange(60).reshape(3, 4, 5) % 7
KEYS = [
    (np.array([2, 0, -1]),),
    (np.array([[1, -3], [0, 2]], np.int32),),
    (np.array([1], np.int8),),
    (slice(None), np.array([3, 0])),
    (slice(None), slice(None), np.array([[4, -5]])),
    (np.array([1, 2]), np.array([0, -4])),
    (slice(None), np.array([1, 2], np.int16), np.array([0, 4])),
    (np.array([0, 2]), np.array([3, 1]), np.array([4, 4])),
    (np.array([0, 2]), slice(None), slice(None)),
]


def whole_way(event: object, proceed: object) -> object:
    return proceed(*event.inputs, **event.settings)  # type: ignore


def tensors(key: tuple) -> object:
    made = tuple(fw.from_numpy(k.copy()) if isinstance(k, np.ndarray) else k for k in key)
    return made[0] if len(made) == 1 else made


@pytest.mark.parametrize("key", KEYS, ids=str)
@pytest.mark.parametrize("dtype", DTYPES)
def test_reading(key: tuple, dtype: str) -> None:
    for x in (X.astype(dtype), X.astype(dtype).T.copy().T, X.astype(dtype)[::-1]):
        t = fw.from_numpy(x.copy()) if x.flags.c_contiguous else fw.from_numpy(x.T.copy()).permute(2, 1, 0) \
            if x.flags.f_contiguous else fw.from_numpy(np.ascontiguousarray(x)).flip(0).flip(0)
        found = native.at_positions(t, tensors(key), index_op)
        assert found is not NotImplemented
        assert np.array_equal(found.numpy(), x[key]) and found.shape == x[key].shape
        assert np.array_equal(t[tensors(key)].numpy(), x[key])


@pytest.mark.parametrize("key", KEYS, ids=str)
def test_gradients_of_reading(key: tuple) -> None:
    t = fw.from_numpy(X.astype("float64")).requires_grad_()
    t[tensors(key)].sum().backward()
    wanted = np.zeros(X.shape)
    np.add.at(wanted, key, 1.0)
    assert np.array_equal(t.grad.numpy(), wanted)


def test_positions_that_change_before_backward_are_noticed() -> None:
    t, k = fw.ones(3, requires_grad=True), fw.tensor([0, 1])
    y = t[k]
    k.add_(1)
    with pytest.raises(AutogradError, match="changed in place"):
        y.sum().backward()


@pytest.mark.parametrize("key", KEYS, ids=str)
@pytest.mark.parametrize("dtype", ("float32", "float16", "int64", "uint8"))
def test_writing(key: tuple, dtype: str) -> None:
    shape = X[key].shape
    rng = np.random.default_rng(0)
    sizes = (shape, shape[1:], (*shape[:-1], 1), ())
    parts = [rng.integers(0, 9, size) for size in sizes]
    for value in parts:
        x = X.astype(dtype)
        t, v = fw.from_numpy(x.copy()), fw.from_numpy(value.astype(dtype))
        unique = np.unique(np.arange(60).reshape(3, 4, 5)[key]).size == np.prod(shape)
        x[key] = value if unique else 3
        result = native.into_positions(t, tensors(key), v if unique else fw.full_like(v, 3), "__setitem__")
        assert result is t and t._version == 1
        assert np.array_equal(t.numpy(), x)
    if dtype != "uint8":
        x = X.astype(dtype)
        t = fw.from_numpy(x.copy())
        t[tensors(key)] = 2
        x[key] = 2
        assert np.array_equal(t.numpy(), x)


def test_writing_into_transposed_memory() -> None:
    x = np.arange(12.0, dtype="float32").reshape(3, 4)
    for key in (fw.tensor([1, 3]), (slice(None), fw.tensor([2, 0]))):
        t = fw.from_numpy(x.copy()).T
        assert native.into_positions(t, key, 7.0, "__setitem__") is t
        wanted = x.copy().T
        items = key if type(key) is tuple else (key,)
        wanted[tuple(k.numpy() if isinstance(k, fw.Tensor) else k for k in items)] = 7
        assert np.array_equal(t.numpy(), wanted)


@pytest.mark.parametrize("dtype", DTYPES[:-1])
def test_masks_and_numbers(dtype: str) -> None:
    x = X.astype(dtype)
    mask = X > 3
    for value in (fw.tensor(2, dtype=getattr(fw, dtype)), 1):
        t = fw.from_numpy(x.copy())
        t[fw.from_numpy(mask)] = value
        number = 2 if isinstance(value, fw.Tensor) else 1
        assert np.array_equal(t.numpy(), np.where(mask, np.array(number, dtype), x))
    t = fw.ones(3, 4, 5)
    assert native.into_positions(t, fw.from_numpy(mask), 0.5, "__setitem__") is t
    assert np.array_equal(t.numpy(), np.where(mask, np.float32(0.5), np.float32(1)))


@pytest.mark.parametrize("dtype", ("float32", "float64", "int64"))
@pytest.mark.parametrize("dim", (0, 1, -1))
def test_entries(dtype: str, dim: int) -> None:
    x = X.astype(dtype)
    index = np.array([1, 0, 1])
    source = (np.arange(60).reshape(3, 4, 5) * 3 % 11).astype(dtype).take(index, dim)
    k, s = fw.from_numpy(index), fw.from_numpy(source)
    forms = ((fw.Tensor.index_add_, native.into_sums), (fw.Tensor.index_copy_, native.into_entries))
    for form, native_form in forms:
        t, u = fw.from_numpy(x.copy()), fw.from_numpy(x.copy())
        assert native_form(t, dim, k, s, form.__name__) is t and t._version == 1
        with intercept(whole_way):  # the long way
            form(u, dim, k, s)
        assert np.array_equal(t.numpy(), u.numpy())
        assert form(fw.from_numpy(x.copy()), dim, k, s).equal(t)
    t = fw.from_numpy(x.copy()).index_fill_(dim, k, 4)
    wanted = np.moveaxis(x.copy(), dim, 0)
    wanted[index] = 4
    assert np.array_equal(t.numpy(), np.moveaxis(wanted, 0, dim))


def test_sums_of_repeats_are_those_of_index_add() -> None:
    fw.manual_seed(0)
    x, k, s = fw.randn(8, 3), fw.randint(0, 8, (40,)), fw.randn(40, 3)
    assert x.clone().index_add_(0, k, s).equal(fw.index_add(x, 0, k, s))


def test_flat() -> None:
    x = np.arange(12.0).reshape(3, 4)
    t = fw.from_numpy(x.copy())
    places, values = fw.tensor([[0, -1], [5, 7]]), fw.tensor([[1.0, 2.0], [3.0, 4.0]]).double()
    assert native.into_flat(t, places, values, "put_") is t
    x.put([0, -1, 5, 7], [1, 2, 3, 4])
    assert np.array_equal(t.numpy(), x)
    assert fw.put(fw.zeros(2, 2), fw.tensor([3]), fw.tensor([1.0])).tolist() == [[0, 0], [0, 1]]
    with pytest.raises(IndexError, match="out of range"):
        t.put_(fw.tensor([12]), fw.tensor([1.0]).double())


def test_what_is_unusual_is_left_alone() -> None:
    x, k = fw.zeros(3, 4), fw.tensor([0, 2])
    for value in (fw.ones(2, 4).double(), fw.ones(3, 4), "a", None, fw.ones(2, 4, requires_grad=True)):
        assert native.into_positions(x, k, value, "n") is NotImplemented
    for key in (fw.tensor([3]), fw.tensor([-4]), fw.tensor([1.0]), fw.tensor([], dtype=fw.int64),
                fw.tensor(1), (k, 1), (slice(1), k), (k, slice(None), k), (slice(None),),
                fw.tensor([1], dtype=fw.uint8), [0, 1]):
        assert native.into_positions(x, key, 1.0, "n") is NotImplemented
        assert native.at_positions(x, key, index_op) is NotImplemented
    assert native.into_positions(x.requires_grad_(), k, 1.0, "n") is NotImplemented
    assert native.into_positions(fw.zeros(1, 4).expand(3, 4), k, 1.0, "n") is NotImplemented
    with pytest.raises(IndexError, match="index 3 is out of range"):
        x.detach()[fw.tensor([3])]
    with pytest.raises(TypeError, match="wanted 3 arguments"):
        native.at_positions(x)
    assert not x.detach().any()


def test_own_memory_as_values() -> None:
    x = np.arange(6.0)
    t = fw.from_numpy(x.copy())
    t[fw.tensor([0, 1, 2])] = t[1:4]
    x[[0, 1, 2]] = x[1:4].copy()
    assert np.array_equal(t.numpy(), x)


def test_a_number_in_a_tensor_is_a_position() -> None:
    x = fw.arange(6).reshape(2, 3).clone()
    for k in (fw.tensor(1), fw.tensor(-1, dtype=fw.int8), fw.tensor(1, dtype=fw.uint8)):
        assert x[k].tolist() == [3, 4, 5] and x[k]._base is x
    with pytest.raises(IndexError):
        x[fw.tensor(2)]


def test_interceptors_see_keys() -> None:
    seen = []

    def look(event: object, proceed: object) -> object:
        seen.append(event.name)  # type: ignore[attr-defined]
        return whole_way(event, proceed)
    x, k = fw.zeros(3), fw.tensor([0, 2])
    with intercept(look):
        x[k]
        x[k] = 1.0
        x.index_add_(0, k, fw.ones(2))
    assert "index" in seen and x.tolist() == [2, 0, 2]


def test_properties() -> None:
    for x in (fw.zeros(2, 3), fw.tensor(1), fw.zeros(0), fw.ones(2, dtype=fw.bfloat16),
              fw.nn.Parameter(fw.ones(2))):
        a = x._array
        assert x.shape == a.shape and type(x.shape) is fw.Size and x.ndim == a.ndim
        assert x.dtype.numpy == a.dtype and x.device.type == "cpu"
    assert fw.zeros(2, device="meta").device.type == "meta" and fw.zeros(2, device="meta").shape == (2,)
    assert fw.Tensor.shape.__doc__.startswith("The lengths")
    with pytest.raises(AttributeError):
        fw.ones(1).ndim = 3  # type: ignore[misc]


def test_arguments() -> None:
    from framework.ops.record.args import many_dims, number_arg, one_dim, real_arg, tensor_arg
    x = fw.ones(2)
    assert tensor_arg(x, "f") is x and real_arg(x, "f", name="y") is x and number_arg(2, "f", "n") == 2
    assert number_arg(fw.tensor(2), "f", "n") == 2
    assert [one_dim(d, 3, "f") for d in (0, 2, -1, -3)] == [0, 2, 2, 0] and one_dim(-1, 0, "f") == 0
    assert many_dims(None, 3, "f") == (0, 1, 2) and many_dims(None, 0, "f") == ()
    assert many_dims(-1, 9, "f") == (8,)
    for wrong, error in ((lambda: tensor_arg([1], "f"), TypeError),
                         (lambda: real_arg(fw.tensor(1j), "f"), DTypeError),
                         (lambda: one_dim(3, 3, "f"), IndexError), (lambda: one_dim(True, 3, "f"), TypeError),
                         (lambda: one_dim(1 << 80, 3, "f"), IndexError),
                         (lambda: many_dims(-4, 3, "f"), IndexError),
                         (lambda: number_arg(x, "f", "n"), TypeError)):
        with pytest.raises(error):
            wrong()


def test_draws_by_formulas_are_those_of_the_long_way() -> None:
    for name, args in (("exponential_", (2.0,)), ("cauchy_", (1.0, 0.5)), ("log_normal_", (0.5, 2.0)),
                       ("geometric_", (0.3,))):
        for dtype in (fw.float32, fw.float64):
            for size in ((7,), (3, 5), (1000,)):
                fw.manual_seed(1)
                quick, after = getattr(fw.zeros(size, dtype=dtype), name)(*args), fw.rand(3)
                fw.manual_seed(1)
                with intercept(whole_way):
                    long, then = getattr(fw.zeros(size, dtype=dtype), name)(*args), fw.rand(3)
                assert quick.equal(long) and after.equal(then) and quick._version == 1


def test_permutations_are_those_of_the_long_way() -> None:
    for n in (0, 1, 9, 1000):
        fw.manual_seed(1)
        quick = fw.randperm(n)
        fw.manual_seed(1)
        assert quick.equal(fw.randperm(n, dtype=fw.int64))


@pytest.mark.parametrize("dtype", ("complex64", "complex128"))
def test_conjugates(dtype: str) -> None:
    z = (np.arange(24).reshape(2, 3, 4) * (1 - 2j)).astype(dtype)
    for x in (z, z.T, z.transpose(0, 2, 1), z[0, 0]):
        found = native.conjugate(x)
        assert np.array_equal(found, np.conj(x)) and found.strides == np.conj(x).strides
    for x in (z[:, ::2], z.real, z[:0]):
        assert native.conjugate(x) is NotImplemented
    assert native.conjugate(z, out=z.copy()) is NotImplemented
    t = fw.from_numpy(z.copy())
    assert np.array_equal(t.conj_physical_().numpy(), z.conj())
    assert np.array_equal(t.mH.numpy(), z.swapaxes(1, 2))


def test_pieces_alone() -> None:
    x = fw.arange(24).reshape(2, 3, 4).clone()
    assert native.piece_alone(x, 1, 1, 3).tolist() == x[:, 1:3].tolist()
    assert native.piece_alone(x, 0, 2, 2).shape == (0, 3, 4)
    for wrong in ((3, 0, 1), (-1, 0, 1), (1, -1, 2), (1, 2, 1), (1, 0, 4), (1, 0, 1 << 80), (1, None, 2)):
        assert native.piece_alone(x, *wrong) is NotImplemented
    assert native.piece_alone(x.double().requires_grad_(), 0, 0, 1) is NotImplemented
    assert native.turned_alone(x).tolist() == x.mT.tolist()
    assert native.turned_alone(x[0, 0]) is NotImplemented
    assert native.column_alone(x[0, 0]).tolist() == x[0, 0][:, None].tolist()
    assert native.led_alone(x).shape == (1, 2, 3, 4)
    assert native.flattened(x).tolist() == x.reshape(-1).tolist()


@pytest.mark.parametrize("call", [
    lambda a, b: fw.outer(a, b), lambda a, b: a.outer(b), lambda a, b: fw.addr(fw.zeros(2, 2), a, b)])
def test_what_a_record_keeps_is_not_changed_unnoticed(call):
    """Views that are made for a record alone count changes with the tensor whose memory they show."""
    a, b = fw.tensor([0.0, 1.0]), fw.tensor([1.0, 1.0], requires_grad=True)
    y = call(a, b)
    a.add_(2)
    with pytest.raises(AutogradError):
        y.sum().backward()


def test_positions_that_put_reads_are_not_changed_unnoticed():
    i, s = fw.tensor([[0, 1]]), fw.tensor([[1.0, 1.0]], requires_grad=True)
    y = fw.put(fw.zeros(4), i, s) * fw.arange(4.0)
    i.add_(2)
    with pytest.raises(AutogradError):
        y.sum().backward()


@pytest.mark.parametrize("call", [
    lambda x, i: x.index_copy_(0, i, fw.ones(1)), lambda x, i: x.index_add_(0, i, fw.ones(1)),
    lambda x, i: x.index_fill_(0, i, 1.0)])
def test_positions_from_the_end_are_refused_as_in_the_functions(call):
    x = fw.zeros(3)
    with pytest.raises(IndexError, match="-1"):
        call(x, fw.tensor([-1]))
    assert x.tolist() == [0, 0, 0]


@pytest.mark.parametrize("dtype, number", [("float32", 1e300), ("float16", 70000.0), ("complex64", 1e300)])
def test_numbers_that_become_infinite_do_so_without_a_warning(dtype, number):
    x = fw.zeros(3, dtype=getattr(fw, dtype))
    x[fw.tensor([0])] = number
    x.index_fill_(0, fw.tensor([1]), number)
    assert x.abs().isinf().tolist() == [True, True, False]
