"""Kernels that do in one pass what are several ops elsewhere, beside their plain formulas."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import framework as fw
from framework import _native
from framework.ops.image import fractional, places
from framework.ops.index.embedding_bag import bag_rows
from framework.ops.linalg.distances import cdist_grad, cdist_op, pdist_grad, pdist_op
from framework.ops.losses import ctc
from framework.ops.losses.classes import nll_grad, nll_op
from framework.ops.losses.elements import _reals_within
from framework.ops.normalization.moments import group_norm_op, norm_statistics
from framework.ops.shape import view

pytestmark = pytest.mark.skipif(not _native.module, reason="needs the extension")
DTYPES, SEEDS, F = st.sampled_from([np.float32, np.float64]), st.integers(0, 999), fw.nn.functional


def native(op, *arrays, **layout):
    found = op.cpu.native(*arrays, **layout)
    assert found is not NotImplemented
    return found


def same(found, wanted, dtype):
    digits = {"rtol": 2e-5, "atol": 2e-5} if dtype is np.float32 else {"rtol": 1e-11, "atol": 1e-11}
    for a, b in zip(*[x if isinstance(x, tuple) else (x,) for x in (found, wanted)]):
        assert np.shape(a) == np.shape(b) and np.asarray(a).dtype == np.asarray(b).dtype
        np.testing.assert_allclose(a, b, **digits)


@settings(deadline=None, max_examples=80)
@given(st.integers(1, 5), st.integers(1, 6), st.sampled_from([(), (3,), (2, 1)]), st.booleans(),
       st.sampled_from(["none", "mean", "sum"]), DTYPES, SEEDS)
def test_nll_loss(n, c, rest, weighted, reduction, dtype, seed):
    draw = np.random.default_rng(seed)
    x, target = draw.standard_normal((n, c, *rest)).astype(dtype), draw.integers(0, c, (n, *rest))
    target[draw.random(target.shape) < 0.2] = -100
    target.flat[0] = c - 1
    weight = draw.uniform(0.5, 2, c).astype(dtype) if weighted else None
    layout = {"ignore": -100, "reduction": reduction}
    wanted = nll_op.plain(x, target, weight, **layout)
    same(native(nll_op, x, target, weight, **layout), tuple(map(np.asarray, wanted)), dtype)
    g, shares = np.asarray(draw.standard_normal(np.shape(wanted[0])), dtype), np.asarray(wanted[1])
    given_ = (g, target, weight, shares)
    layout["shape"] = x.shape
    same(native(nll_grad, *given_, **layout), nll_grad.plain(*given_, **layout), dtype)


@settings(deadline=None, max_examples=60)
@given(st.sampled_from([1, 3, 4, 5, 9, 70]), st.sampled_from([1, 7, 8, 16, 33, 140]),
       st.sampled_from([1, 7, 20, 33, 70]), st.sampled_from([1.0, 2.0]), DTYPES, SEEDS)
def test_distances(m, n, k, p, dtype, seed):
    draw = np.random.default_rng(seed)
    x, y = (draw.standard_normal((2, size, k)).round(1).astype(dtype) for size in (m, n))
    x[:, -1] = y[:, 0]
    out = cdist_op.plain(x, y, p=p)
    same(native(cdist_op, x, y, p=p), out, dtype)
    g = draw.standard_normal(out.shape).round(1).astype(dtype)
    if seed % 2:
        g[0, 0, 0] = 0
    layout = {"p": p, "wanted": (True, True)}
    same(native(cdist_grad, g, x, y, out, **layout), cdist_grad.plain(g, x, y, out, **layout), dtype)


@settings(deadline=None, max_examples=60)
@given(st.integers(2, 9) | st.just(70), st.integers(1, 20) | st.just(70), st.sampled_from([1.0, 2.0]),
       DTYPES, SEEDS)
def test_distances_within(n, k, p, dtype, seed):
    draw = np.random.default_rng(seed)
    x = draw.standard_normal((n, k)).round(1).astype(dtype)
    x[-1] = x[0]
    out = pdist_op.plain(x, p=p)
    same(native(pdist_op, x, p=p), out, dtype)
    g = draw.standard_normal(out.shape).astype(dtype)
    same(native(pdist_grad, g, x, out, p=p), pdist_grad.plain(g, x, out, p=p), dtype)


@settings(deadline=None, max_examples=60)
@given(st.integers(1, 12), st.integers(1, 5), st.booleans(), st.booleans(), DTYPES, SEEDS)
def test_bags(n, bags, mean, last, dtype, seed):
    draw = np.random.default_rng(seed)
    table, index = draw.standard_normal((7, 3)).astype(dtype), draw.integers(0, 7, n)
    offsets = np.sort(np.append(draw.integers(0, n + 1, bags - 1), [0, *([n] if last else [])]))
    layout = {"mean": mean, "last": last}
    arrays = (table, index, offsets)
    same(native(bag_rows, *arrays, **layout), bag_rows.plain(*arrays, **layout), dtype)


@settings(deadline=None, max_examples=60)
@given(st.integers(1, 3), st.data(), st.booleans(), DTYPES, SEEDS)
def test_windows_at_drawn_places(d, data, last_first, dtype, seed):
    size = [data.draw(st.integers(2, 9)) for _ in range(d)]
    kernel = tuple(data.draw(st.integers(1, s)) for s in size)
    out = tuple(data.draw(st.integers(1, s - k + 1)) for s, k in zip(size, kernel))
    draw = np.random.default_rng(seed)
    x = draw.standard_normal((2, 2, *size)).round(1).astype(dtype)
    x[draw.random(x.shape) < 0.05] = np.nan
    samples = draw.random((2, 2, d)).astype(dtype)
    layout = {"kernel": kernel, "out": out, "last_first": last_first}
    same(native(fractional.fractional_max, x, samples, **layout),
         fractional.fractional_max.plain(x, samples, **layout), dtype)


def test_places_are_written_in_order():
    y, index = np.arange(1.0, 7.0).reshape(1, 2, 3), np.array([[[4, 0, 4], [1, 1, 0]]])
    found = native(places.unpool, y, index, d=1, x_shape=(1, 2, 5))
    np.testing.assert_array_equal(found, places.unpool.plain(y, index, d=1, x_shape=(1, 2, 5)))
    assert found.tolist() == [[[2, 0, 0, 0, 3], [6, 5, 0, 0, 0]]]
    for wrong in (-1, 5):
        index[0, 1, 1] = wrong
        assert places.unpool.cpu.native(y, index, d=1, x_shape=(1, 2, 5)) is NotImplemented
        with pytest.raises(IndexError, match="max_unpool1d: indices must lie in"):
            F.max_unpool1d(fw.tensor(y), fw.tensor(index), 2, output_size=(5,))


def test_elements_in_another_order():
    x = np.arange(48.0).reshape(2, 12, 2)
    for a in (x, x[:, ::2].repeat(2, 1), x.transpose(2, 1, 0), x[::-1]):
        for dims in itertools.permutations(range(4)):
            layout = {"shape": (2, 3, 4, 2), "dims": dims, "out": (6, 8)}
            found = native(view._rearrange, a, **layout)
            np.testing.assert_array_equal(found, view._rearrange.plain(a, **layout))
            assert found.flags.c_contiguous and found.flags.owndata | (found.base is not None)
    for shape, dims, out in (((2, 24), (0,), (48,)), ((2, 24), (0, 1), (47,)), ((-1, 2), (0, 1), (48,)),
                             ((2, 12), (0, 1), (24,)), ("ab", (0, 1), (48,))):
        assert view._rearrange.cpu.native(x, shape=shape, dims=dims, out=out) is NotImplemented
    with pytest.raises(ValueError):
        view._rearrange.cpu.native(x, shape=(2, 24), dims=(0, 0), out=(48,))


def test_shuffles_are_copies():
    for run in (lambda x: F.pixel_shuffle(x, 2), lambda x: F.channel_shuffle(x, 2),
                lambda x: F.pixel_unshuffle(x, 1)):
        x = fw.arange(8.0).reshape(1, 4, 1, 2)
        run(x).zero_()
        assert x.tolist() == fw.arange(8.0).reshape(1, 4, 1, 2).tolist()


def test_odd_arrays_are_refused():
    x, i = np.zeros((2, 3)), np.zeros(2, int)
    refused = [
        (nll_op, (x, np.array([0, 3]), None), {"ignore": -100, "reduction": "mean"}),
        (nll_op, (x, i[:1], None), {"ignore": -100, "reduction": "mean"}),
        (nll_op, (x, i, np.zeros(2)), {"ignore": -100, "reduction": "mean"}),
        (nll_grad, (np.ones(2), np.array([0, 9]), None, np.ones(())),
         {"ignore": -100, "reduction": "none", "shape": (2, 3)}),
        *[(nll_grad, (np.ones(n), i, None, np.ones(m)), {"ignore": -100, "reduction": "none", "shape": shape})
          for n, m, shape in ((3, (), (2, 3)), (2, (), (3, 3)), (2, 2, (2, 3)), (2, (), (2,)))],
        (pdist_op, (x[:1],), {"p": 2.0}), (pdist_op, (x,), {"p": 3.0}), (pdist_op, (x[:, :0],), {"p": 2.0}),
        (pdist_grad, (np.ones(2), x, np.ones(1)), {"p": 2.0}),
        (bag_rows, (x, np.array([0, 2]), i[:1]), {"mean": True, "last": False}),
        (bag_rows, (x, i, np.array([1, 2])), {"mean": True, "last": False}),
        (bag_rows, (x, i, np.array([0, 2, 1])), {"mean": True, "last": False}),
        (bag_rows, (x, i, np.array([0, 1])), {"mean": True, "last": True}),
        (bag_rows, (x, i, np.array([0])), {"mean": True, "last": True}),
        (bag_rows, (x, i, i[:0]), {"mean": True, "last": False}),
        *[(fractional.fractional_max, (np.zeros((1, 1, 4)), np.full((1, 1, 1), u)),
           {"kernel": (2,), "out": (2,), "last_first": False}) for u in (-1.0, 2.0, np.nan, 1e300)],
        (fractional.fractional_max, (np.zeros((1, 1, 4)), np.zeros((1, 1, 2))),
         {"kernel": (2,), "out": (2,), "last_first": False}),
        (fractional.fractional_max, (np.zeros((1, 1, 4)), np.zeros((1, 1, 1))),
         {"kernel": (5,), "out": (1,), "last_first": False}),
    ]
    for op, arrays, layout in refused:
        assert op.cpu.native(*arrays, **layout) is NotImplemented, (op, arrays)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_reals_within(dtype):
    within = _native.module.reals_within
    x = np.array([0, 0.5, 1, np.nan, -0.0], dtype)
    assert within(x, 0, 1) and within(x[:0], 0, 1) and within(x[::2], 0, 1)
    for wrong in (-1e-30, 1.1, np.inf, -np.inf):
        assert not within(np.append(x, dtype(wrong)), 0, 1)
    for other in (x.astype(np.float16), np.zeros(2, int)):  # which it declines
        assert within(other, 0, 1) is NotImplemented
    half = x.astype(np.float16)  # and is asked once more as float32
    assert _reals_within(half, 0.0, 1.0) and not _reals_within(np.append(half, np.float16(1.001)), 0.0, 1.0)
    assert not _reals_within(np.zeros(2, int), 0.0, 1.0)


@settings(deadline=None, max_examples=60)
@given(st.integers(1, 3), st.integers(1, 3), st.integers(1, 3), st.sampled_from([(), (5,), (2, 40)]),
       st.booleans(), DTYPES, SEEDS)
def test_norms_of_groups_of_channels_as_they_stand(n, groups, each, rest, weighted, dtype, seed):
    """Of (N, C, ...) as of (N, groups, C / groups, ...)."""
    draw = np.random.default_rng(seed)
    x = draw.standard_normal((n, groups * each, *rest)).astype(dtype)
    w, b = draw.standard_normal((2, groups * each)).astype(dtype) if weighted else (None, None)
    per = (1, groups, each) + (1,) * len(rest)
    layout = {"dims": tuple(range(2, len(per))), "per": per, "eps": 0.1}
    grouped = x.reshape(n, groups, each, *rest)
    y, mean, var = group_norm_op.plain(grouped, w, b, **layout)
    for found in (group_norm_op.plain(x, w, b, **layout), native(group_norm_op, x, w, b, **layout)):
        same(found, (y.reshape(x.shape), mean, var), dtype)
    g, layout["wanted"] = draw.standard_normal(x.shape).astype(dtype), (True, True)
    grad = group_norm_op.joint.function.__closure__
    grad = next(c.cell_contents for c in grad if hasattr(c.cell_contents, "plain"))
    gx, *rest_of = grad.plain(g.reshape(grouped.shape), grouped, w, mean, var, **layout)
    for found in (grad.plain(g, x, w, mean, var, **layout), native(grad, g, x, w, mean, var, **layout)):
        same(tuple(found), (gx.reshape(x.shape), *rest_of), dtype)
    layout.pop("wanted")
    for wrong in ((1, groups + 1, each), (1, groups, each + 1), (1, 0, each), (1, groups)):
        bad = {**layout, "per": wrong + (1,) * len(rest)}
        assert group_norm_op.cpu.native(x, w, b, **bad) is NotImplemented
    stated = {"shape": (n, groups), "eps": 0.1, "dtype": fw.float32 if dtype == np.float32 else fw.float64}
    same(native(norm_statistics, mean, var, **stated), norm_statistics.plain(mean, var, **stated), dtype)
    for shape in ((n, groups + 1), (-n, -groups), (2**40, 2**40)):
        assert norm_statistics.cpu.native(mean, var, **{**stated, "shape": shape}) is NotImplemented


@pytest.mark.parametrize("lengths", [tuple, list, np.array, fw.tensor])
def test_places_of_alignments(lengths, monkeypatch):
    x, rows = fw.zeros(4, 2, 3), fw.tensor([[1, 2], [2, 0]])
    for targets, sizes in ((rows, (2, 1)), (rows, (0, 0)), (fw.tensor([1, 2, 2]), (2, 1))):
        given_ = (x, targets, lengths([4, 3]), lengths(list(sizes)), 0)
        at_once = [t.tolist() for t in ctc._places(*given_)]
        with monkeypatch.context() as patch:
            patch.setattr(ctc, "_at_once", lambda *_: NotImplemented)
            assert at_once == [t.tolist() for t in ctc._places(*given_)]
    i = np.array([[1, 2], [2, 0]])
    for targets, times, sizes in (
            (i, (4, 5), (1, 1)), (i, (4, -1), (1, 1)), (i, (4,), (1, 1)), (i, (4, 4), (3, 1)),
            (i, (4, 2**70), (1, 1)), (i, (4, 4.0), (1, 1)), (i + 1, (4, 4), (2, 1)), (i - 1, (4, 4), (2, 2)),
            (i[:1], (4, 4), (1, 1)), (i[0], (4, 4), (1, 2)), (i.astype(np.int32), (4, 4), (1, 1)),
            (i, None, (1, 1)), (i, "ab", (1, 1))):
        assert _native.module.ctc_places(x.numpy(), targets, times, sizes, 0) is NotImplemented
