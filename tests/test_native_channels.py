"""Native pooling of images with channels last against the NumPy formulas, and whose memory gradients have."""

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from test_native_conv import TOLERANCE, channels_last, dtypes, native, poolings, seeds

import framework as fw
from framework import _native
from framework.ops.image import adaptive_pool, places, pool

module = _native.module
pytestmark = [pytest.mark.usefixtures("each_threads"),
              pytest.mark.skipif(module is None, reason=f"no native extension: {_native.isa}")]


def same(got, wanted):
    """Equal numbers, with the channels last where that is another order."""
    np.testing.assert_array_equal(got, wanted)
    assert got.dtype == wanted.dtype and laid(got)


def laid(a):
    return a.transpose(0, 2, 3, 1).flags.c_contiguous


def close(got, wanted):
    most = np.abs(wanted).max(initial=1)
    np.testing.assert_allclose(got, wanted, rtol=0, atol=TOLERANCE[wanted.dtype] * most)
    assert laid(got)


def widened(drawn, channels):
    """The drawn images with so many channels, which differ, in the other order in memory: of two sizes, with
    more than one pixel before and after."""
    x, layout = drawn
    assume(x.ndim == 4 and max(x.shape[2:]) > 1 and max(layout["out"]) > 1)
    x = np.concatenate([np.roll(x, k, axis=-1) for k in range(channels)], axis=1)[:, :channels]
    return channels_last(x), layout


@settings(deadline=None, max_examples=100)
@given(poolings((2,)), st.sampled_from([2, 5, 16, 19, 70]))
def test_largest_of_windows(drawn, channels):
    x, layout = widened(drawn, channels)
    same(native(pool.max_pool, x, **layout), pool.max_pool.plain(x, **layout))
    where = pool.max_position.plain(x, **layout)
    found = native(pool.max_position, x, **layout)  # with few channels in rows: nobody sees it
    np.testing.assert_array_equal(found, where)
    assert found.dtype == where.dtype and (laid(found) or found.flags.c_contiguous)
    both = native(pool.max_with_places, x, **layout)
    for found, wanted in zip(both, pool.max_with_places.plain(x, **layout)):
        same(found, wanted)
    y = channels_last(np.random.default_rng(0).standard_normal(where.shape).astype(x.dtype))
    where = channels_last(where)
    close(native(pool.max_spread, y, where, x_shape=x.shape, **layout),
          pool.max_spread.plain(y, where, x_shape=x.shape, **layout))
    same(native(pool.max_collect, x, where, **layout), pool.max_collect.plain(x, where, **layout))
    for most in (255, 200):  # of no window: they choose nothing, also where they are left to NumPy
        where = channels_last(np.full_like(where, most))
        found = module.max_spread(y, where, x_shape=x.shape, **layout)
        if found is NotImplemented:
            found = pool.max_spread.plain(y, where, x_shape=x.shape, **layout)
        assert not found.any()


@settings(deadline=None, max_examples=100)
@given(poolings((2,), (1,)), st.booleans(), st.sampled_from([None, None, 3]), st.sampled_from([2, 5, 16, 70]))
def test_means_of_windows(drawn, include, divisor, channels):
    x, layout = widened(drawn, channels)
    del layout["dilation"]
    layout |= {"include": include, "divisor": divisor}
    x = channels_last(np.nan_to_num(x, nan=0, posinf=3, neginf=-2))
    close(native(pool.avg_pool, x, **layout), pool.avg_pool.plain(x, **layout))
    y = np.random.default_rng(0).standard_normal((*x.shape[:2], *layout["out"])).astype(x.dtype)
    y = channels_last(y)
    close(native(pool.avg_spread, y, x_shape=x.shape, **layout),
          pool.avg_spread.plain(y, x_shape=x.shape, **layout))


@settings(deadline=None, max_examples=60)
@given(st.integers(1, 12), st.integers(2, 12), st.data(), st.sampled_from([2, 16, 19, 70]), dtypes, seeds)
def test_largest_for_a_given_size(high, wide, data, channels, dtype, seed):
    size, out = (high, wide), (data.draw(st.integers(1, high + 2)), data.draw(st.integers(2, wide + 2)))
    draw = np.random.default_rng(seed)
    x = np.round(draw.standard_normal((2, channels, *size))).astype(dtype)
    x[draw.random(x.shape) < 0.05] = np.nan
    x = channels_last(x)
    largest, index = adaptive_pool.adaptive_max.plain(x, out=out)
    for found, wanted in zip(native(adaptive_pool.adaptive_max, x, out=out), (largest, index)):
        same(found, wanted)
    index = channels_last(index)
    same(native(places.pick, x, index, d=2), places.pick.plain(x, index, d=2))
    y = channels_last(draw.standard_normal(index.shape).astype(dtype))
    np.testing.assert_allclose(native(places.put, y, index, d=2, x_shape=x.shape),
                               places.put.plain(y, index, d=2, x_shape=x.shape), atol=1e-5)
    single = places.unpool.plain(y, index, d=2, x_shape=x.shape)
    np.testing.assert_array_equal(native(places.unpool, y, index, d=2, x_shape=x.shape), single)


def test_places_outside_are_left_to_numpy():
    x, index = (channels_last(a) for a in (np.ones((1, 2, 3, 3)), np.full((1, 2, 2, 2), 9)))
    assert module.pick_places(x, index, d=2) is NotImplemented
    y = channels_last(np.ones((1, 2, 2, 2)))
    assert module.put_places(y, index, d=2, x_shape=x.shape) is NotImplemented


def test_gradients_with_channels_last_come_without_a_copy_and_are_nobody_elses():
    x = fw.randn(2, 8, 6, 6).contiguous(memory_format=fw.channels_last).requires_grad_()
    w = fw.randn(8, 8, 3, 3).contiguous(memory_format=fw.channels_last).requires_grad_()
    y = fw.nn.functional.conv2d(x, w, padding=1)
    twice = [fw.autograd.grad(y, [x, w], y.detach().clone(), retain_graph=True) for _ in range(2)]
    for first, second, leaf in zip(*twice, (x, w)):
        assert first.is_contiguous(memory_format=fw.channels_last) and first.stride() == leaf.stride()
        assert not np.shares_memory(first.numpy(), second.numpy())
    both = [fw.randn(2, 8, 6, 6).contiguous(memory_format=fw.channels_last).requires_grad_() for _ in "ab"]
    total = both[0] + both[1]
    total.backward(fw.ones_like(total))
    one, two = (t.grad.numpy() for t in both)
    assert not np.shares_memory(one, two)
    one[...] = 7
    assert (two == 1).all()


VOLUMES = [  # size, kernel, stride, padding
    ((4, 6, 6), (2, 2, 2), (2, 2, 2), (0, 0, 0)), ((5, 6, 7), (3, 3, 3), (2, 2, 2), (1, 1, 1)),
    ((5, 5, 6), (3, 2, 3), (3, 4, 3), (1, 0, 1)), ((4, 5, 6), (4, 5, 6), (1, 1, 1), (0, 0, 0)),
    ((3, 9, 8), (1, 4, 4), (1, 3, 5), (0, 2, 1)), ((6, 6, 6), (3, 3, 3), (1, 1, 1), (1, 1, 1)),
]


@pytest.mark.parametrize(("size", "kernel", "stride", "padding"), VOLUMES)
@pytest.mark.parametrize("channels", [3, 16, 70, 128])
def test_pooling_of_volumes(size, kernel, stride, padding, channels):
    """Windows that are apart, with gaps, that overlap, that are few or one."""
    rng = np.random.default_rng(channels)
    x = np.round(rng.standard_normal((2, *size, channels)) * 2).astype(np.float32)
    x[rng.random(x.shape) < 0.02] = np.nan
    x = np.moveaxis(x, -1, 1)
    out = tuple(pool._out_size(*each, False) for each in zip(size, kernel, stride, padding, (1, 1, 1)))
    layout = pool._layout(kernel, stride, padding, (1, 1, 1), out)
    where = pool.max_position.plain(x, **layout)
    y = np.moveaxis(rng.standard_normal((2, *out, channels)).astype(np.float32), -1, 1)
    np.testing.assert_array_equal(native(pool.max_pool, x, **layout), pool.max_pool.plain(x, **layout))
    np.testing.assert_array_equal(native(pool.max_position, x, **layout), where)
    where = np.moveaxis(np.ascontiguousarray(np.moveaxis(where, 1, -1)), -1, 1)
    np.testing.assert_allclose(native(pool.max_spread, y, where, x_shape=x.shape, **layout),
                               pool.max_spread.plain(y, where, x_shape=x.shape, **layout), 1e-5, 1e-5)
    np.testing.assert_array_equal(native(pool.max_collect, x, where, **layout),
                                  pool.max_collect.plain(x, where, **layout))
    mean = {**{k: v for k, v in layout.items() if k != "dilation"}, "include": False, "divisor": None}
    x = np.nan_to_num(x)
    np.testing.assert_allclose(native(pool.avg_pool, x, **mean), pool.avg_pool.plain(x, **mean), 1e-5, 1e-5)
    np.testing.assert_allclose(native(pool.avg_spread, y, x_shape=x.shape, **mean),
                               pool.avg_spread.plain(y, x_shape=x.shape, **mean), 1e-5, 1e-5)
