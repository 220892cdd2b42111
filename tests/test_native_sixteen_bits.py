"""Numbers of 16 bits and whole ones in the kernels: each way beside the one by float32, or by NumPy."""

from typing import Any

import ml_dtypes
import numpy as np
import pytest

import framework as fw
from framework import _native
from framework.nn import functional as F

pytestmark = pytest.mark.skipif(_native.module is None, reason="the extension is not built")

fw.ones(1).to(fw.bfloat16)  # which makes the type known
TYPES = [("float16", np.dtype(np.float16)), ("bfloat16", np.dtype(ml_dtypes.bfloat16))]
both = pytest.mark.parametrize(("name", "dtype"), TYPES)


def every(dtype: np.dtype) -> np.ndarray:
    """All numbers of the type."""
    return np.arange(1 << 16, dtype=np.uint16).view(dtype)


def same(ours: Any, wanted: np.ndarray) -> bool:
    """The same bits, but for those of nan."""
    got = ours.numpy() if isinstance(ours, fw.Tensor) else ours
    nan = np.isnan(got.astype(np.float32)) & np.isnan(wanted.astype(np.float32))
    return bool(((got.view(np.uint16) == wanted.view(np.uint16)) | nan).all())


def tensor(a: np.ndarray, name: str) -> fw.Tensor:
    """The array as a tensor of the type, its bits as they are."""
    return fw.from_numpy(a.view(np.int16).copy()).view(getattr(fw, name))


ALONE = {"sqrt": fw.sqrt, "rsqrt": fw.rsqrt, "reciprocal": fw.reciprocal, "square": fw.square,
         "floor": fw.floor, "ceil": fw.ceil, "trunc": fw.trunc, "round": fw.round, "relu": fw.relu,
         "neg": fw.neg, "abs": fw.abs,
         "add 0.3": lambda x: x + 0.3, "times 3": lambda x: x * 3.0, "3 -": lambda x: 3.0 - x,
         "through 7": lambda x: x / 7.0, "7 through": lambda x: 7.0 / x,
         "clamp": lambda x: x.clamp(-2.5, 0.0),
         "clamp_min": lambda x: x.clamp_min(0.0), "clamp_max": lambda x: x.clamp_max(-0.0),
         "nan_to_num": lambda x: fw.nan_to_num(x, 2.0, 3.0, -4.0)}


@both
@pytest.mark.parametrize("step", list(ALONE))
def test_a_short_program_of_one_operand_has_the_bits_of_float32_rounded_once(
        name: str, dtype: np.dtype, step: str) -> None:
    numbers = every(dtype)
    with np.errstate(all="ignore"):
        wanted = ALONE[step](fw.from_numpy(numbers.astype(np.float32))).numpy().astype(dtype)
    assert same(ALONE[step](tensor(numbers, name)), wanted)
    for n in (1, 15, 63, 64, 65, 127, 200):
        assert same(ALONE[step](tensor(numbers[16000:16000 + n], name)), wanted[16000:16000 + n])
    gaps = tensor(numbers, name)[::3]
    assert same(ALONE[step](gaps).contiguous(), np.ascontiguousarray(wanted[::3]))


PAIRS = {"add": fw.add, "sub": fw.sub, "mul": fw.mul, "div": fw.div, "maximum": fw.maximum,
         "minimum": fw.minimum,
         "copysign": fw.copysign, "lerp": lambda x, y: fw.lerp(x, y, 0.3),
         "to a number": lambda x, y: fw.copysign(x, -2.0)}


@both
@pytest.mark.parametrize("step", list(PAIRS))
def test_a_short_program_of_two_operands_has_the_bits_of_float32_rounded_once(
        name: str, dtype: np.dtype, step: str) -> None:
    x = every(dtype)
    y = np.random.default_rng(1).permutation(x)
    with np.errstate(all="ignore"):
        wanted = PAIRS[step](fw.from_numpy(x.astype(np.float32)), fw.from_numpy(y.astype(np.float32)))
        wanted = wanted.numpy().astype(dtype)
    first, second = tensor(x, name), tensor(y, name)
    assert same(PAIRS[step](first, second), wanted)
    assert same(PAIRS[step](first[5:77], second[5:77]), wanted[5:77])
    if step in ("add", "mul", "copysign"):  # into memory, and of another layout
        into = first.clone()
        getattr(into, step + "_")(second)
        assert same(into, wanted)
        square = PAIRS[step](first.reshape(256, 256).T, second.reshape(256, 256).T)
        assert same(square.T.contiguous().reshape(-1), wanted)


def test_the_next_number_of_bfloat16_is_that_of_its_own_loop() -> None:
    x = every(np.dtype(ml_dtypes.bfloat16))
    for seed in range(3):
        y = np.random.default_rng(seed).permutation(x)
        with np.errstate(all="ignore"):
            wanted = np.nextafter(x, y)
        assert same(fw.nextafter(tensor(x, "bfloat16"), tensor(y, "bfloat16")), wanted)
    zeros = np.array([0.0, -0.0, 0.0, -0.0, 0.0], np.float32).astype(x.dtype)
    to = np.array([0.0, 0.0, -0.0, -1.0, 1.0], np.float32).astype(x.dtype)
    assert same(fw.nextafter(tensor(zeros, "bfloat16"), tensor(to, "bfloat16")), np.nextafter(zeros, to))


@both
def test_signs_are_the_highest_bits(name: str, dtype: np.dtype) -> None:
    numbers = every(dtype)
    assert (fw.signbit(tensor(numbers, name)).numpy() == (numbers.view(np.int16) < 0)).all()


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int64, np.int32, np.int16, np.uint8])
def test_signs_of_other_types(dtype: Any) -> None:
    numbers = np.array([[-3, 0, 5], [7, -1, -0.0]]).astype(dtype)
    for x in (numbers, numbers.T):
        assert (fw.signbit(fw.from_numpy(x)).numpy() == np.signbit(x)).all()


@both
@pytest.mark.parametrize("dims", [(0,), (1,), (0, 1), (0, 2), (0, 1, 2)])
def test_norms_and_sums_without_nan_are_rounded_once(name: str, dtype: np.dtype, dims: tuple) -> None:
    x = (np.random.default_rng(2).standard_normal((7, 33, 70)) * 3).astype(dtype)
    exact = x.astype(np.float64)
    near = {"float16": 2.0**-11, "bfloat16": 2.0**-8}[name] * 1.01
    norm = fw.linalg.vector_norm(tensor(x, name), dim=dims).double().numpy()
    assert np.allclose(norm, np.sqrt((exact * exact).sum(dims)), near)
    x[::2, ::5] = np.nan
    exact[::2, ::5] = np.nan
    total = fw.nansum(tensor(x, name), dims).double().numpy()
    least = 1e-4 * np.abs(np.nan_to_num(exact)).sum(dims).max()
    assert np.allclose(total, np.nansum(exact, dims), near, least)


@both
def test_norms_of_numbers_whose_squares_are_beyond_the_type(name: str, dtype: np.dtype) -> None:
    x = tensor(np.full((3, 5), 300.0, np.float32).astype(dtype), name)
    assert fw.allclose(fw.linalg.vector_norm(x, dim=1).float(), fw.full((3,), 300 * 5**0.5), rtol=0.01)


@both
@pytest.mark.parametrize("shapes", [((3,), (3,)), ((2, 3), (3,)), ((3,), (3, 4)), ((2, 3), (3, 4)),
                                    ((5, 2, 3), (5, 3, 4)), ((2, 2, 1, 3), (2, 2, 3, 2)), ((2, 0), (0, 3))])
def test_few_products_are_rounded_once(name: str, dtype: np.dtype, shapes: tuple) -> None:
    draw = np.random.default_rng(3)
    x, y = (draw.standard_normal(s).astype(dtype) for s in shapes)
    wanted = np.matmul(x.astype(np.float64), y.astype(np.float64))
    got = fw.matmul(tensor(x, name), tensor(y, name))
    assert got.shape == wanted.shape
    near = {"float16": 2.0**-11, "bfloat16": 2.0**-8}[name] * 1.01
    assert np.allclose(got.double().numpy(), wanted, near, 1e-6)
    if len(shapes[0]) == 2 == len(shapes[1]):  # as they lie, turned
        first, second = (tensor(np.ascontiguousarray(a.T), name).T for a in (x, y))
        assert fw.equal(fw.matmul(first, second), got)


@pytest.mark.parametrize("shapes", [((3,), (3,)), ((2, 3), (3,)), ((2, 3), (3, 4)), ((5, 2, 3), (5, 3, 4)),
                                    ((2, 1, 2, 3), (5, 3, 4)), ((40, 50), (50, 30)),
                                    ((3, 40, 50), (3, 50, 30))])
@pytest.mark.parametrize("most", [9, 1 << 26, 1 << 40, 1 << 62])
def test_products_of_whole_numbers_are_numpys(shapes: tuple, most: int) -> None:
    draw = np.random.default_rng(4)
    x, y = (draw.integers(-most, most, s) for s in shapes)
    wanted = np.matmul(x, y)  # which runs over as ours
    assert (fw.matmul(fw.from_numpy(x), fw.from_numpy(y)).numpy() == wanted).all()
    x[..., ::2] = 0
    gaps = fw.matmul(fw.from_numpy(np.repeat(x, 2, -1))[..., ::2], fw.from_numpy(y))
    assert (gaps.numpy() == np.matmul(x, y)).all()


@pytest.mark.parametrize("most", [9, 1 << 30, 1 << 60])
def test_layers_of_whole_numbers_are_exact(most: int) -> None:
    draw = np.random.default_rng(5)
    x, w, b = (draw.integers(-most, most, s) for s in ((2, 4, 6, 5), (6, 2, 3, 2), (6,)))
    objects = [a.astype(object) for a in (x, w, b)]
    wanted = np.zeros((2, 6, 4, 4), object)
    for o in range(6):
        part = objects[0][:, o // 3 * 2:o // 3 * 2 + 2]
        for i in range(4):
            for j in range(4):
                window = part[:, :, i:i + 3, j:j + 2] * objects[1][o]
                wanted[:, o, i, j] = window.sum((1, 2, 3)) + objects[2][o]
    half = 1 << 63
    wrapped = np.array([(int(v) + half) % (2 * half) - half for v in wanted.ravel()]).reshape(wanted.shape)
    got = F.conv2d(*map(fw.from_numpy, (x, w, b)), groups=2)
    assert (got.numpy() == wrapped).all()
    back = F.conv_transpose2d(fw.from_numpy(x), fw.from_numpy(w[:4]))
    assert (back.numpy() == _transposed(x, w[:4])).all()


def _transposed(x: np.ndarray, w: np.ndarray) -> np.ndarray:
    out = np.zeros((2, 2, 8, 6), np.int64)
    for c in range(4):
        for i in range(6):
            for j in range(5):
                out[:, :, i:i + 3, j:j + 2] += x[:, c, i, j].reshape(2, 1, 1, 1) * w[c]
    return out


@pytest.mark.parametrize("most", [9, (1 << 53) - 1, 1 << 62])
def test_maxima_of_whole_numbers_and_their_places(most: int) -> None:
    x = np.random.default_rng(6).integers(-most, most, (2, 3, 7, 6))
    x[0, 0, 0, :2] = most, most - 1  # which doubles beyond 2^53 do not tell apart
    values, places = F.max_pool2d(fw.from_numpy(x), 2, return_indices=True)
    parts = x[:, :, :6].reshape(2, 3, 3, 2, 3, 2).transpose(0, 1, 2, 4, 3, 5).reshape(2, 3, 3, 3, 4)
    assert (values.numpy() == parts.max(-1)).all()
    flat = x.reshape(2, 3, -1)
    taken = np.take_along_axis(flat, places.numpy().reshape(2, 3, -1), 2)
    assert (taken == values.numpy().reshape(2, 3, -1)).all()
    last = fw.from_numpy(x).contiguous(memory_format=fw.channels_last)
    assert fw.equal(F.max_pool2d(last, 2), values)


def test_traces_and_cross_products_of_whole_numbers() -> None:
    draw = np.random.default_rng(7)
    for most in (9, 1 << 61):
        x, y = draw.integers(-most, most, (5, 3)), draw.integers(-most, most, (5, 3))
        assert fw.trace(fw.from_numpy(x)).item() == int(np.trace(x))
        assert (fw.linalg.cross(fw.from_numpy(x), fw.from_numpy(y)).numpy() == np.cross(x, y)).all()
        assert (fw.cumprod(fw.from_numpy(x), 0).numpy() == np.cumprod(x, 0)).all()


@pytest.mark.parametrize("way", ["prod", "amax", "amin"])
@pytest.mark.parametrize("own", [True, False])
def test_slices_of_whole_numbers_are_combined_as_by_the_formula(way: str, own: bool) -> None:
    draw = np.random.default_rng(8)
    x, source = draw.integers(-9, 9, (4, 3)), draw.integers(-9, 9, (5, 3))
    index = np.array([0, 2, 0, 3, 0])
    given = [fw.from_numpy(a) for a in (x, index, source)]
    got = fw.index_reduce(given[0], 0, given[1], given[2], way, include_self=own)
    op = fw.ops.index.scatter_reduce.index_reduce_op
    assert (got.numpy() == op.plain(x, source, index, dim=0, way=way, own=own)).all()


GRADIENTS = {"norm": lambda x: fw.linalg.vector_norm(x, dim=1), "amax": lambda x: x.amax(1),
             "std": lambda x: x.std(1), "logcumsumexp": lambda x: fw.logcumsumexp(x, 1),
             "cosine": lambda x: F.cosine_similarity(x, x.flip(0)),
             "softmax": lambda x: x.softmax(1)[:, ::3], "cummax": lambda x: x.cummax(1)[0],
             "prod": lambda x: x[:, :4].prod(1)}


@both
@pytest.mark.parametrize("case", list(GRADIENTS))
def test_gradients_of_16_bits_are_those_of_float32_rounded_once(
        name: str, dtype: np.dtype, case: str) -> None:
    x = np.random.default_rng(9).standard_normal((5, 40)).astype(dtype)
    narrow = tensor(x, name).requires_grad_()
    wide = fw.from_numpy(x.astype(np.float64)).requires_grad_()
    found = []
    for leaf in (narrow, wide):
        out = GRADIENTS[case](leaf)
        (grad,) = fw.autograd.grad(out, [leaf], [fw.ones_like(out)])
        found.append(grad.double().numpy())
    near = {"float16": 2.0**-9, "bfloat16": 2.0**-6}[name]  # a result that is kept is rounded, too
    assert np.abs(found[0] - found[1]).max() <= near * np.abs(found[1]).max()


def test_a_gradient_of_16_bits_is_refused_where_what_was_kept_has_changed() -> None:
    for dtype in (fw.float16, fw.bfloat16):
        x = fw.ones(3, 4, dtype=dtype).requires_grad_()
        y = x * 2
        out = fw.linalg.vector_norm(y, dim=1)
        y.mul_(3)
        with pytest.raises(fw.errors.AutogradError, match="changed in place"):
            out.sum().backward()
