"""Elements that lie in another order than the shape's: copied and written over with the values of NumPy, in
the order of the source where that is free."""

import itertools

import numpy as np
import pytest

import framework as fw
from framework import _native

ORDERS = list(itertools.permutations(range(3)))
DTYPES = [np.uint8, np.float16, np.float32, np.int64, np.complex128]


def laid(shape, order, dtype=np.float32, gaps=False):
    """An array whose dimensions lie in memory in that order, the last one finest."""
    inside = [shape[d] for d in order]
    numbers = np.arange(np.prod(shape) * (2 if gaps else 1)).reshape([*inside[:-1], -1]).astype(dtype)
    return numbers[..., ::2 if gaps else 1].transpose(np.argsort(order))


@pytest.mark.parametrize("gaps", [False, True])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("order", ORDERS)
def test_copies_keep_the_order(order, dtype, gaps):
    array = laid((37, 3, 5), order, dtype, gaps)
    x = fw.from_numpy(array)
    for made, wanted in (
            (x.clone(), array), (x.flip(0, 2), array[::-1, :, ::-1]), (x.flip(0), array[::-1]),
            (x.roll((2, -1), (0, 2)), np.roll(array, (2, -1), (0, 2))), (x.roll(4), np.roll(array, 4)),
            (fw.fill(x, 3), np.full_like(array, 3))):
        np.testing.assert_array_equal(made.numpy(), wanted)
    dense = tuple(s // array.itemsize for s in array.copy("K").strides)
    assert x.clone().stride() == fw.fill(x, 3).stride() == dense
    if _native.module is not None:
        assert x.flip(0).stride() == dense


@pytest.mark.parametrize("n", [1, 3, 4, 15, 16, 31, 33, 70])
@pytest.mark.parametrize("dtype", DTYPES)
def test_lines_are_turned_round(n, dtype):
    array = np.arange(3 * n).reshape(3, n).astype(dtype)
    np.testing.assert_array_equal(fw.from_numpy(array).flip(1).numpy(), array[:, ::-1])


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("into", ORDERS)
def test_elements_are_written_over_in_any_order(order, into, dtype):
    source, memory = laid((6, 33, 4), order, dtype), laid((6, 33, 8), into, dtype)
    kept = memory.copy()
    x, y = fw.from_numpy(source), fw.from_numpy(memory)
    y[..., ::2].copy_(x)
    np.testing.assert_array_equal(memory[..., ::2], source)
    np.testing.assert_array_equal(memory[..., 1::2], kept[..., 1::2])
    y[:, :, 4:] = x
    np.testing.assert_array_equal(memory[..., 4:], source)
    whole = fw.empty(33, 4, 6, dtype=y.dtype).permute(2, 0, 1)
    whole.copy_(x)
    np.testing.assert_array_equal(whole.numpy(), source)


def test_memory_that_overlaps_is_written_over_as_numpy_does():
    array = np.arange(40.0).reshape(8, 5)
    x = fw.from_numpy(array.copy())
    array[1:] = array[:-1].copy()
    x[1:].copy_(x[:-1])
    np.testing.assert_array_equal(x.numpy(), array)
    square = np.arange(25.0).reshape(5, 5)
    y = fw.from_numpy(square.copy())
    y.copy_(y.t())
    np.testing.assert_array_equal(y.numpy(), square.T)


@pytest.mark.skipif(_native.module is None, reason="it is the extension that declines")
def test_what_the_native_copy_leaves_to_numpy():
    copy = _native.module.copy_over
    x, y = np.arange(6.0).reshape(2, 3), np.zeros((2, 3))
    frozen, meeting = np.zeros((2, 3)), np.lib.stride_tricks.as_strided(np.zeros(4), (2, 3), (8, 8))
    frozen.flags.writeable = False
    for source, memory in ((x, frozen), (x, meeting), (x, np.zeros((3, 2))), (x.astype("f4"), y),
                           (x, x[:, ::-1]), (x.astype(object), y.astype(object)), (x[None], y), (x[:, :2], y),
                           ("a", y), (2.5, np.zeros(3, int)), (1 << 70, np.zeros(3, int)), (1.0, frozen),
                           (1.0, meeting)):
        before = memory.copy()
        assert copy(source, memory) is False
        np.testing.assert_array_equal(memory, before)
    assert copy(x, y) is True and (y == x).all()
    assert copy(x[:0], y[:0]) is True
    assert copy(x[0], y) is True and (y == x[0]).all() and copy(x[:, :1], y) is True and (y == x[:, :1]).all()
    assert copy(x, x) is True and (x == np.arange(6.0).reshape(2, 3)).all()
    assert copy(2.5, y) is True and (y == 2.5).all() and copy(3, y.T[::-1]) is True and (y == 3).all()


@pytest.mark.parametrize("name", ["relu_", "exp_", "sqrt_", "ceil_"])
def test_in_place_on_a_turned_tensor_keeps_its_memory_and_gradient(name):
    start = fw.rand(5, 3, 4).permute(2, 1, 0).requires_grad_()
    y = start.clone()
    before, stride = y.data_ptr(), y.stride()
    getattr(y, name)()
    assert (y.data_ptr(), y.stride()) == (before, stride)
    plain = start.detach().contiguous().requires_grad_()
    z = getattr(plain, name[:-1])()
    (g,), (h,) = fw.autograd.grad(y.sum(), start), fw.autograd.grad(z.sum(), plain)
    np.testing.assert_array_equal(y.detach().numpy(), z.detach().numpy())
    np.testing.assert_array_equal(g.numpy(), h.numpy())


@pytest.mark.parametrize("dim", [0, 1, 2])
@pytest.mark.parametrize("order", ORDERS)
def test_parts_of_any_order_are_joined(order, dim):
    shape = [4, 3, 5]
    arrays = []
    for size in (2, 7, 1):
        shape[dim] = size
        arrays.append(laid(shape, order))
    joined = fw.cat([fw.from_numpy(a) for a in arrays], dim)
    np.testing.assert_array_equal(joined.numpy(), np.concatenate(arrays, dim))
    assert joined.is_contiguous()  # as in PyTorch
    mixed = fw.cat([fw.from_numpy(arrays[0]), fw.from_numpy(arrays[1]).contiguous()], dim)
    np.testing.assert_array_equal(mixed.numpy(), np.concatenate(arrays[:2], dim))


@pytest.mark.parametrize("dim", [0, 1, 2, 3])
def test_images_with_their_channels_last_are_joined_so(dim):
    images = [fw.randn(2, 3, 4, 5).contiguous(memory_format=fw.channels_last) for _ in range(3)]
    joined = fw.cat(images, dim)
    np.testing.assert_array_equal(joined.numpy(), np.concatenate([x.numpy() for x in images], dim))
    if _native.module is not None:
        assert joined.is_contiguous(memory_format=fw.channels_last)
        assert images[0].roll(1, dim).is_contiguous(memory_format=fw.channels_last)


@pytest.mark.parametrize("mode", ["nearest", "bilinear", "bicubic", "area"])
def test_channels_last_images_are_resized_as_they_lie(mode):
    rows = fw.randn(2, 5, 7, 6, requires_grad=True)
    last = rows.detach().contiguous(memory_format=fw.channels_last).requires_grad_()
    results = [fw.nn.functional.interpolate(x, size=(11, 9), mode=mode) for x in (rows, last)]
    np.testing.assert_allclose(results[1].detach().numpy(), results[0].detach().numpy(), rtol=1e-6, atol=1e-6)
    g = fw.randn(2, 5, 11, 9)
    grads = [fw.autograd.grad(y, x, g)[0].numpy() for y, x in zip(results, (rows, last))]
    np.testing.assert_allclose(grads[1], grads[0], rtol=1e-5, atol=1e-5)
    if _native.module is not None:
        assert results[1].is_contiguous(memory_format=fw.channels_last)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int64])
def test_few_numbers_with_gaps_are_summed(dtype):
    numbers = np.arange(1, 61).reshape(3, 4, 5).astype(dtype)
    for array in (numbers[..., ::2], numbers[0].diagonal(), numbers[:, :, 0], numbers[::-1, ::2, ::-1]):
        x = fw.from_numpy(array.copy() if array.strides[0] < 0 else array)
        np.testing.assert_array_equal(x.sum().numpy(), array.sum())
        np.testing.assert_array_equal(x.sum(0).numpy(), array.sum(0))
        np.testing.assert_array_equal(x.amax(-1).numpy(), array.max(-1))


@pytest.mark.parametrize("size, stride", [((3, 2), (1, 1)), ((2, 3), (4, 1)), ((4, 3, 2), (2, 1, 2)),
                                          ((5, 70), (1, 1)), ((90, 80), (1, 1)), ((3, 3), (0, 2))])
def test_gradients_of_windows_that_meet(size, stride):
    x = fw.randn(200, dtype=fw.float64, requires_grad=True)
    g = np.random.default_rng(0).standard_normal(size)
    found = fw.autograd.grad(fw.as_strided(x, size, stride, 3), x, fw.from_numpy(g))[0].numpy()
    wanted = np.zeros(200)
    for place in np.ndindex(*size):
        wanted[3 + sum(i * s for i, s in zip(place, stride))] += g[place]
    np.testing.assert_allclose(found, wanted, rtol=1e-12, atol=1e-12)
