"""Quotients, shifts, divisors of whole numbers, casts to narrow and complex numbers, lines in turned order:
against NumPy."""

import numpy as np
import pytest

import framework as fw
from framework import _native

pytest.importorskip("ml_dtypes", reason="bfloat16 needs the lowprecision extra")
pytestmark = pytest.mark.skipif(_native.module is None, reason="without the native kernels")
module = _native.module
LEAST = np.iinfo(np.int64).min


def wholes(scale, n, seed):
    draw = np.random.default_rng(seed)
    x, y = draw.integers(-scale, scale, n), draw.integers(-scale, scale, n)
    y[y == 0] = 3
    at = draw.integers(0, n, n // 2)
    x[at] = y[at] * draw.integers(-3, 3, len(at)) + draw.integers(-1, 2, len(at))  # or nearly whole
    x[draw.integers(0, n)], y[draw.integers(0, n)] = LEAST, -1
    return x, y


def toward_zero(x, y):
    q = [abs(int(a)) // abs(int(b)) * (1 if (a < 0) == (b < 0) else -1) for a, b in zip(x, y)]
    return np.array([(v - LEAST) % 2**64 + LEAST for v in q])


@pytest.mark.filterwarnings("ignore:.*encountered in")
@pytest.mark.parametrize("scale", [5, 2**31, 2**52, 2**53, 2**62])
@pytest.mark.parametrize("n", [1, 7, 8, 1001])
def test_quotients_of_whole_numbers(scale, n):
    x, y = wholes(scale, n, n)
    for ours, theirs in ((module.floor_divide, np.floor_divide), (module.remainder, np.remainder)):
        for a, b in ((x, y), (7, y), (x, -3), (x, y[:1]), (x[::2], y[::2])):
            np.testing.assert_array_equal(ours(a, b), theirs(a, b))
        y[n // 2] = 0
        for b in (y, y[n // 2:n // 2 + 1], 0):
            assert ours(x, b) is NotImplemented
        y[n // 2] = 3
    np.testing.assert_array_equal(module.trunc_divide(x, y), toward_zero(x, y))


@pytest.mark.parametrize("dtype", ["int64", "int32"])
@pytest.mark.parametrize("name", ["left_shift", "right_shift", "gcd", "lcm", "remainder"])
def test_two_whole_numbers_in_every_form(name, dtype):
    draw, least, most = np.random.default_rng(5), np.iinfo(dtype).min, np.iinfo(dtype).max
    odd = np.array([0, 1, -1, 2, 31, 32, 63, 64, 65, 7, -64, least, least + 1, most, most - 1, 12, 18], dtype)
    x, y = (a.reshape(-1).copy() for a in np.meshgrid(odd, odd))
    x = np.concatenate([x, draw.integers(-99, 99, 500, dtype)])
    y = np.concatenate([y, draw.integers(1, 99, 500, dtype)])
    if name == "remainder":
        x, y = x[y != 0], y[y != 0]
    ours, theirs = getattr(module, name), getattr(np, name)
    square = x[:256].reshape(16, 16), y[:256].reshape(16, 16)
    for a, b in ((x, y), (x, y[3:4]), (x[4:5], y), (x[::2], y[::2]), (square[0].T, square[1]),
                 (square[0][:, :1], square[1]), (square[0], square[1][0]), (x[:0], y[:0])):
        found, want = ours(a, b), theirs(a, b)
        if a.size:
            assert found.dtype == want.dtype
            np.testing.assert_array_equal(found, want)
        else:
            assert found is NotImplemented
    np.testing.assert_array_equal(ours(x, 3), theirs(x, dtype_of(3, dtype)))
    np.testing.assert_array_equal(ours(9, y), theirs(dtype_of(9, dtype), y))
    for first in (True, False):  # into the memory of an operand
        a, b = x.copy(), y.copy()
        assert ours(a, b, a if first else b) is (a if first else b)
        np.testing.assert_array_equal(a if first else b, theirs(x, y))
    for read, other, written in (  # what is read after it was written, memory with gaps, one for all
            (slice(None, -1), y[1:], slice(1, None)), (slice(1, None), y[1:], slice(None, -1)),
            (slice(None, None, 2), y[::2], slice(None, None, 2)), (slice(None), y[5:6], slice(None))):
        memory = x.copy()
        out, want = memory[written], theirs(x[read], other)
        assert ours(memory[read], other, out) is out
        np.testing.assert_array_equal(out, want)
    square = [a.copy() for a in square]
    want = theirs(square[0].T, square[1][2])
    assert ours(square[0].T, square[1][2], out := square[0].T) is out
    np.testing.assert_array_equal(out, want)
    memory = x.copy()  # another dtype or shape, what cannot be written: left
    assert ours(x, y, np.empty(len(x), "float64")) is NotImplemented
    assert ours(x, y, np.empty(len(x) + 1, dtype)) is NotImplemented
    fixed = np.empty_like(x)
    fixed.flags.writeable = False
    assert ours(x, y, fixed) is NotImplemented
    np.testing.assert_array_equal(memory, x)


def dtype_of(number, dtype):
    return np.array(number, dtype)[()]


def test_whole_numbers_in_place_and_with_out():
    x, y = fw.tensor([12, 18, -7, 5]), fw.tensor([8, 27, 14, 0])
    for name in ("gcd", "lcm", "bitwise_left_shift", "bitwise_right_shift"):
        want, function = getattr(fw, name)(x, y), getattr(fw, name)
        z, out = x.clone(), fw.empty(4, dtype=fw.int64)
        assert getattr(z, f"{name}_")(y) is z and function(x, y, out=out) is out
        assert z.tolist() == out.tolist() == want.tolist()
        z = x.clone()
        function(z[:3], z[1:], out=z[1:])  # overlapping
        assert z.tolist()[1:] == function(x[:3], x[1:]).tolist()
    z = x.clone()
    with pytest.raises(fw.errors.DivisionError, match="remainder"):
        z.remainder_(y)
    assert z.tolist() == x.tolist()


def test_quotients_that_are_left_to_numpy():
    x = np.arange(1, 7)
    for a, b in ((x, x.astype(np.int32)), (x, 2**70), (x, 1.5), (x.astype(float), x)):
        assert module.floor_divide(a, b) is NotImplemented
    with pytest.raises(fw.errors.DivisionError):
        fw.tensor([1, 2]) // fw.tensor([1, 0])


NUMBERS = np.concatenate([np.random.default_rng(0).standard_normal(700) * 10.0 ** (np.arange(700) % 14 - 3), [
    0, -0.0, 127, 128, 129, 255, 256, -128, -129, 32767, 32768, 65535, 65536, 2147483647, 2147483648,
    -2147483649, np.nan, np.inf, -np.inf, 1e30, 254.9, -0.99]])


@pytest.mark.filterwarnings("ignore:.*encountered in")
@pytest.mark.parametrize("given", ["float32", "float64", "float16", "bfloat16"])
def test_casts_to_narrow_integers(given):
    """What does not fit becomes what NumPy makes of it."""
    numbers = NUMBERS.astype(getattr(fw, given).numpy)
    for wanted in ("int8", "uint8", "int16", "int32", "int64"):
        for x in (numbers, numbers[::2], numbers[:7], np.asfortranarray(numbers[:720].reshape(24, 30))):
            np.testing.assert_array_equal(module.cast(x, np.dtype(wanted)), x.astype(wanted))


@pytest.mark.parametrize("given", ["float32", "float64", "float16", "bfloat16", "int64", "int8", "bool"])
@pytest.mark.parametrize("wanted", [np.complex64, np.complex128])
def test_casts_to_complex_numbers(given, wanted):
    whole = given in ("int64", "int8", "bool")
    numbers = np.arange(3000) % 100 if whole else NUMBERS[~(np.abs(NUMBERS) > 6e4)]
    numbers = numbers.astype(getattr(fw, given).numpy)
    for n in (0, 1, 7, len(numbers)):
        found = module.cast(numbers[:n], np.dtype(wanted))
        want = numbers[:n].astype(np.float32 if given == "bfloat16" else numbers.dtype).astype(wanted)
        if found is not NotImplemented:
            assert found.dtype == wanted
            np.testing.assert_array_equal(found.view(np.uint8), want.view(np.uint8))
        assert n == 0 or found is not NotImplemented


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.float32, np.float64])
def test_lines_in_turned_order(dtype):
    for rows in (1, 2, 3, 7, 300):
        for line in range(1, 40):
            x = (np.arange(rows * line) % 251).astype(dtype).reshape(rows, line)
            np.testing.assert_array_equal(module.flip(x, (0,)), x[::-1])
            np.testing.assert_array_equal(module.flip(x, (0, 1)), x[::-1, ::-1])


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "int64", "bool"])
def test_fill_and_its_gradient(dtype):
    x = fw.zeros(5, 3, dtype=getattr(fw, dtype))
    for value in (1, 2.5, -0.0, 1e6, float("nan")):
        if dtype in ("int64", "bool") and value != 1:
            continue
        want = np.empty_like(x._array)
        with np.errstate(over="ignore"):
            want[...] = value
        np.testing.assert_array_equal(fw.fill(x, value)._array.view(np.uint8), want.view(np.uint8))
    if x.is_floating_point():
        x.requires_grad_()
        g, = fw.autograd.grad(fw.fill(x, 2.0), x, fw.ones_like(x) * float("nan"))
        assert g.dtype == x.dtype and not g.any()


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "int64"])
def test_numbers_by_formulas_are_those_of_wider_ones(dtype):
    kind = getattr(fw, dtype)
    for draw, wide in (("geometric_", fw.float64), ("exponential_", fw.float32), ("cauchy_", fw.float32),
                       ("log_normal_", fw.float32)):
        if dtype == "int64" and draw != "geometric_":
            continue
        given = (0.3,) if draw == "geometric_" else (0.5, 2.0)[:1 if draw == "exponential_" else 2]
        found, wanted = fw.zeros(300, dtype=kind), fw.zeros(300, dtype=wide)
        for x in (found, wanted):
            fw.manual_seed(5)
            getattr(x, draw)(*given)
        assert fw.equal(found, wanted.to(kind))


def test_limits_with_fractions_of_whole_numbers():
    x = fw.tensor([-3, 0, 2])
    for found, want in ((fw.clamp(x, -0.5, 1.5), [-0.5, 0, 1.5]), (fw.clamp_min(x, 0.5), [0.5, 0.5, 2]),
                        (fw.clamp_max(x, 0.5), [-3, 0, 0.5])):
        assert found.dtype == fw.float32 and found.tolist() == want


def test_parts_of_packed_whole_numbers():
    packed, pivots = fw.tensor([[4, 3, 7], [2, 5, 1]]), fw.tensor([2, 2], dtype=fw.int32)
    for found, want in zip(fw.lu_unpack(packed, pivots), fw.lu_unpack(packed.double(), pivots)):
        assert found.dtype == fw.int64 and found.tolist() == want.tolist()


@pytest.mark.parametrize("shape", [(16, 2, 3, 2), (40, 8, 8, 8), (3, 20, 1, 9, 1), (2000, 2, 3, 2)], ids=str)
def test_many_small_products_of_bfloat16(shape):
    """As float32, rounded once."""
    *batch, m, k, n = shape
    draw = np.random.default_rng(0)
    x, y = (fw.tensor(draw.standard_normal((*batch, *s))).bfloat16() for s in ((m, k), (k, n)))
    assert fw.equal(x @ y, (x.float() @ y.float()).bfloat16())


@pytest.mark.filterwarnings("ignore:overflow")
def test_traces_and_cross_products_of_whole_and_narrow_numbers():
    draw = np.random.default_rng(0)
    x, y = (fw.tensor(draw.integers(-2**62, 2**62, (4, 3))) for _ in range(2))
    np.testing.assert_array_equal(fw.linalg.cross(x, y).numpy(), np.cross(x.numpy(), y.numpy()))
    np.testing.assert_array_equal(fw.linalg.cross(x, y[:1]).numpy(), np.cross(x.numpy(), y[:1].numpy()))
    assert fw.trace(x).item() == np.trace(x.numpy()) and fw.trace(fw.zeros(0, 3, dtype=fw.int64)).item() == 0
    for kind in (fw.float16, fw.bfloat16):
        for shape in ((5, 7), (20, 30), (0, 3)):
            z = fw.tensor(draw.standard_normal(shape)).to(kind)
            assert fw.equal(fw.trace(z), fw.trace(z.float()).to(kind))
            assert fw.equal(fw.trace(z.T), fw.trace(z.T.float()).to(kind))


@pytest.mark.parametrize("n", [1, 63, 64, 1001])
def test_signs_of_whole_numbers(n):
    x = np.random.default_rng(n).integers(-5, 5, 2 * n)
    for a in (x, x[::2], np.append(x, LEAST)):
        np.testing.assert_array_equal(fw.signbit(fw.from_numpy(a)).numpy(), a < 0)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("n", [5, 300])
def test_elements_by_python_functions(dtype, n):
    """Rounded once, from Python's numbers, whatever way they take."""
    kind = getattr(fw, dtype)
    x = fw.tensor(np.random.default_rng(n).standard_normal((n, 2))).to(kind)
    found = x.clone().map_(x[:1], lambda a, b: a * b + 1e-3)
    first = x[0].float().tolist()
    want = [a * b + 1e-3 for row in x.float().tolist() for a, b in zip(row, first)]
    np.testing.assert_array_equal(found._array.view(np.uint16),
                                  np.array(want).astype(kind.numpy).reshape(n, 2).view(np.uint16))


ODD = [0.0, -0.0, 1.0, 1e-30, 1e30, np.inf, -np.inf, np.nan, 3e38, 1e-44]


@pytest.mark.parametrize("dtype", [np.complex64, np.complex128])
@pytest.mark.parametrize("n", [1, 2, 7, 8, 333])
def test_quotients_of_complex_numbers(dtype, n):
    draw = np.random.default_rng(n)
    x, y = (draw.standard_normal((3, n)) + 1j * draw.standard_normal((3, n)) for _ in range(2))
    y *= 10.0 ** draw.integers(-20, 20, y.shape)
    x, y = x.astype(dtype), y.astype(dtype)
    for a, b in ((x, y), (x.T, y.T), (x[:, ::2], y[:, ::2]), (1, y), (2.5, y), (1 - 3j, y), (x[:0], y[:0])):
        found, wanted = module.complex_quotient(a, b), a / b
        assert found.dtype == dtype and found.shape == wanted.shape
        np.testing.assert_allclose(found, wanted, 1e-5 if dtype == np.complex64 else 1e-13)
    np.testing.assert_array_equal(module.complex_reciprocal(y), module.complex_quotient(1, y))
    np.testing.assert_array_equal(module.complex_negative(y), -y)
    for a, b in ((x, y[:2]), (x[:, :0], y), (x.real, y), (x, y.real), ("x", y), (True, y)):
        assert module.complex_quotient(a, b) is NotImplemented


@pytest.mark.parametrize("dtype", [np.complex64, np.complex128])
def test_odd_quotients_of_complex_numbers(dtype):
    """As NumPy's, but for which of inf and nan it is where NumPy's own have both."""
    odd = np.array([complex(a, b) for a in ODD for b in ODD]).astype(dtype)
    x, y = (a.reshape(-1) for a in np.meshgrid(odd, odd))
    with np.errstate(all="ignore"):
        found, wanted = module.complex_quotient(x, y), x / y
    both = np.isfinite(found) & np.isfinite(wanted)
    assert np.array_equal(np.isfinite(found), np.isfinite(wanted))
    tiny = np.finfo(dtype).tiny
    np.testing.assert_allclose(found[both], wanted[both], 1e-5, tiny)


def test_powers_and_products_of_complex_numbers():
    draw = np.random.default_rng(0)
    a = draw.standard_normal((9, 301)) + 1j * draw.standard_normal((9, 301))
    x = fw.tensor(a)
    for exponent in (-1, 2, 3, 4):
        np.testing.assert_allclose((x ** exponent).numpy(), a ** exponent, 1e-12)
    for dim in (0, 1):
        np.testing.assert_allclose(x.prod(dim).numpy(), a.prod(dim), 1e-11)
        np.testing.assert_allclose(x.cumsum(dim).numpy(), a.cumsum(dim), 1e-11)
        np.testing.assert_allclose(x.sum(dim).numpy(), a.sum(dim), 1e-11)
    out = fw.empty(9, 301, dtype=fw.complex128)
    assert fw.pow(x, 3, out=out) is out
    np.testing.assert_allclose(out.numpy(), a ** 3, 1e-12)
    assert fw.autograd.gradcheck(lambda z: z ** 3 + 1 / z + z / (z + 2),
                                 fw.tensor(a[:1, :3], requires_grad=True))


@pytest.mark.parametrize("dtype", ["uint8", "int8"])
@pytest.mark.parametrize("name", ["eq", "ne", "lt", "le", "gt", "ge"])
def test_bytes_are_compared(name, dtype):
    """As they lie, broadcast, and empty; other types are NumPy's."""
    ufunc = {"eq": np.equal, "ne": np.not_equal, "lt": np.less, "le": np.less_equal, "gt": np.greater,
             "ge": np.greater_equal}[name]
    ours = getattr(module, f"compare_{name}")
    every = np.arange(256, dtype=np.uint8).view(dtype)
    x, y = (a.reshape(-1).copy() for a in np.meshgrid(every, every))
    square = x.reshape(256, 256), y.reshape(256, 256)
    for a, b in ((x, y), (x[:1001], y[:1001]), (x[::3], y[::3]), (square[0].T, square[1]), (every, square[0]),
                 (square[0][:, :1], every), (x[:1], y), (x[:0], y[:0]), (x[0], y[0]),
                 (square[0][::-1], square[1])):
        a, b = np.asarray(a), np.asarray(b)
        found = ours(a, b)
        assert found.dtype == np.bool_ and found.shape == np.broadcast_shapes(a.shape, b.shape)
        np.testing.assert_array_equal(found, ufunc(a, b))
        method = getattr(fw.from_numpy(a.copy()), name)
        np.testing.assert_array_equal(method(fw.from_numpy(b.copy())).numpy(), ufunc(a, b))
    assert ours(x, x.astype(np.int16)) is ours(x, 3) is ours(x[:3], y[:4]) is NotImplemented
    out = np.zeros(x.shape, np.bool_)
    assert ours(x, y, out=out) is NotImplemented
    for other in ("int16", "uint16", "bool"):
        assert ours(x.astype(other), y.astype(other)) is NotImplemented
