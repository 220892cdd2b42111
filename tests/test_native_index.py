"""The native kernels that move elements, against the plain formulas of their records, bit by bit."""

import random
import zlib

import hypothesis.extra.numpy as hnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.random import mtrand

import framework as fw
from framework import _native
from framework.data import randomness
from framework.data.randomness import SampleRandom, mix, start_numpy, start_python
from framework.errors import AutogradError, ShapeError
from framework.memory_formats import dense_axes
from framework.ops.convert import cast
from framework.ops.image import pad
from framework.ops.index import embedding, index, scatter, scatter_reduce
from framework.ops.record.op import OPS
from framework.ops.shape import arrange, diagonals, join

pytestmark = pytest.mark.skipif(_native.module is None, reason="the extension is not built")
native = _native.module

MOVED = ["float32", "float64", "int64", "int32", "int16", "uint8", "bool", "complex64", "complex128",
         "float16"]
SUMMED = ["float32", "float64", "int64", "int32"]
CASTS = ["float32", "float64", "int64", "int32", "int16", "int8", "uint8", "bool"]
quick = settings(max_examples=60, deadline=None)


@pytest.fixture(autouse=True)
def _threads():
    before = native.threads()
    yield
    native.set_threads(before)


def numbers(shape, dtype, seed):
    """Random numbers of any kind, with nan, inf and -0 among floating ones."""
    rng = np.random.default_rng(seed)
    x = rng.standard_normal(shape) * 50
    if np.dtype(dtype).kind in "fc":
        x = np.where(rng.random(shape) < 0.05, rng.choice([np.nan, np.inf, -np.inf, -0.0, 1e-40], shape), x)
    with np.errstate(all="ignore"):
        return (x > 0 if dtype == "bool" else np.asarray(x).astype(dtype))


def laid_out(x, seed):
    """The same elements in other memory: dense, transposed, strided, reversed, or repeated."""
    way = seed % 5
    if not x.ndim or way == 0:
        return x
    if way == 1:
        return np.asfortranarray(x)
    if way == 2:
        wide = np.zeros((*x.shape[:-1], 2 * x.shape[-1] + 1), x.dtype)
        wide[..., 1::2] = x
        return wide[..., 1::2]
    if way == 3:
        return np.ascontiguousarray(x[::-1])[::-1]
    return np.broadcast_to(x[:1], x.shape)


def check(op, *arrays, **given):
    """The native kernel gives the plain one's bits, with one thread and with two; returns its result.

    The plain one gets dense arrays: of values for one place NumPy keeps the last one in the order of memory.
    """
    kernel = getattr(native, op.native)
    with np.errstate(all="ignore"):
        dense = [np.array(a, order="C") if isinstance(a, np.ndarray) else a for a in arrays]
        wanted = np.asarray(op.plain(*dense, **given))
        # a cast keeps the order of its input
        order = op.plain(*arrays, **given) if op is cast.cast else wanted
    for threads in (1, 2):
        native.set_threads(threads)
        found = kernel(*arrays, **given)
        if found is NotImplemented:
            return found
        assert found.dtype == wanted.dtype and found.shape == wanted.shape
        if op in (arrange.flip_op, arrange.roll_op):  # in the order of the source
            assert dense_axes(found) is not None
        else:
            assert found.strides == order.strides if op is cast.cast else found.flags.c_contiguous
        np.testing.assert_array_equal(found, wanted)  # nan equals nan
    return found


seeds = st.integers(0, 10_000)
shapes = hnp.array_shapes(min_dims=1, max_dims=4, min_side=0, max_side=6)
filled = hnp.array_shapes(min_dims=1, max_dims=4, min_side=1, max_side=6)


def places(seed, size, shape):
    """Positions, some of them counted from the end."""
    return np.random.default_rng(seed).integers(-size, size, shape)


# -- rows ---------------------------------------------------------------------------------------------


@quick
@given(filled, hnp.array_shapes(max_dims=2, max_side=5, min_side=0), st.sampled_from(MOVED), seeds)
def test_index(shape, picked, dtype, seed):
    x = laid_out(numbers(shape, dtype, seed), seed)
    for first in range(len(shape)):
        for count in range(1, min(3, len(shape) - first + 1)):
            dims = tuple(range(first, first + count))
            at = np.stack([places(seed + d, shape[d], picked) for d in dims])
            assert (check(index.index_op, x, at, dims=dims) is NotImplemented) == (not at.size)
            value = numbers(index.indexed_shape(shape, picked, dims), dtype, seed + 1)
            for v in (laid_out(value, seed + 2), 1):
                assert (check(index.index_put_op, x, v, at, dims=dims) is NotImplemented) == (not at.size)


@quick
@given(filled, hnp.array_shapes(max_dims=2, max_side=9), st.sampled_from(SUMMED), seeds)
def test_unindex(shape, picked, dtype, seed):
    for first in range(len(shape)):
        for count in range(1, min(3, len(shape) - first + 1)):
            dims = tuple(range(first, first + count))
            at = np.stack([places(seed + d, shape[d], picked) for d in dims])
            x = laid_out(numbers(index.indexed_shape(shape, picked, dims), dtype, seed), seed)
            assert check(index.unindex, x, at, dims=dims, shape=shape) is not NotImplemented


@pytest.mark.parametrize("dtype", SUMMED)
@pytest.mark.parametrize("shape", [(40, 300, 24), (1, 3000, 64), (2, 5, 4096), (1, 20_000, 1), (300, 7, 3)])
def test_many_rows(shape, dtype):
    outer, n, inner = shape
    at = np.random.default_rng(1).integers(-n, n, (1, 2 * n + 5))
    at[0, :5] = 0
    x = numbers(shape, dtype, 2)
    g = numbers((outer, at.size, inner), dtype, 3)
    assert check(index.index_op, x, at, dims=(1,)) is not NotImplemented
    assert check(index.unindex, g, at, dims=(1,), shape=shape) is not NotImplemented
    assert check(index.index_put_op, x, g, at, dims=(1,)) is not NotImplemented
    assert check(embedding.embedding_op, x[0], at[0], padding=None, by_frequency=False) is not NotImplemented
    assert check(embedding.add_rows, g[0], at[0], rows=n) is not NotImplemented


def test_out_of_range_is_refused_and_nothing_is_written():
    x = fw.arange(12.0).view(4, 3)
    for threads in (1, 2):
        native.set_threads(threads)
        for wrong in (4, -5, 1 << 62, -(1 << 63)):
            at = fw.tensor([0, wrong, 1])
            before = x.clone()
            with pytest.raises(IndexError, match=f"index {wrong} is out of range for dimension 0 of size 4"):
                x[at]
            with pytest.raises(IndexError, match=f"{wrong}"):
                x[at] = 5.0
            with pytest.raises(IndexError, match=f"{wrong}"):
                x.index_add_(0, at, fw.ones(3, 3))
            with pytest.raises(IndexError, match=f"{wrong}"):
                x.scatter_(0, at[:, None], 1.0)
            with pytest.raises(IndexError, match=f"{wrong}"):
                x.gather(0, at[:, None])
            with pytest.raises(IndexError, match=f"{wrong}"):
                fw.nn.functional.embedding(at, x)
            assert fw.equal(x, before)
            one = at.numpy()[None]
            assert native.index(x.numpy(), one, (0,)) is NotImplemented
            assert native.index_assign(x.numpy(), 1.0, one, (0,)) is NotImplemented
            assert native.gather(x.numpy(), at.numpy()[:, None], 0) is NotImplemented
            assert native.ungather(np.ones((3, 1), "f4"), at.numpy()[:, None], 0, (4, 3)) is NotImplemented
            assert fw.equal(x, before)


@quick
@given(filled, st.integers(0, 9), st.sampled_from(MOVED), seeds)
def test_assignment(shape, picked, dtype, seed):
    x, at = numbers(shape, dtype, seed), places(seed, shape[0], picked)
    value = numbers((picked, *shape[1:]), dtype, seed + 1)
    for v in (laid_out(value, seed), np.asarray(value.reshape(-1)[:1].sum(), dtype)):
        wanted = x.copy()
        wanted[at] = v
        found = fw.from_numpy(x.copy())
        found[fw.from_numpy(at)] = fw.from_numpy(v)
        np.testing.assert_array_equal(found.numpy(), wanted)


def test_assignment_of_the_memory_itself():
    x = fw.arange(20_000.0).view(10_000, 2)
    wanted = x.numpy()[::-1].copy()
    x[fw.arange(9_999, -1, -1)] = x
    np.testing.assert_array_equal(x.numpy(), wanted)


def test_assignment_is_counted():
    x = fw.ones(3)
    w = fw.ones(3, requires_grad=True)
    y = w * x
    x[fw.tensor([0, 1])] = 2.0
    with pytest.raises(fw.errors.AutogradError, match="changed in place"):
        y.sum().backward()


# -- elements -----------------------------------------------------------------------------------------


@quick
@given(filled, st.integers(1, 9), st.sampled_from(MOVED), seeds)
def test_gather_and_scatter(shape, steps, dtype, seed):
    x = laid_out(numbers(shape, dtype, seed), seed)
    rng = np.random.default_rng(seed)
    for dim in range(len(shape)):
        smaller = [int(rng.integers(1, s + 1)) for s in shape]
        smaller[dim] = steps
        at = laid_out(places(seed, shape[dim], smaller), seed // 5)
        src = laid_out(numbers(smaller, dtype, seed + 1), seed // 25)
        assert check(scatter.gather_op, x, at, dim=dim) is not NotImplemented
        for value in (src, 1):
            assert check(scatter.scatter_op, x, value, at, dim=dim) is not NotImplemented
        if dtype in SUMMED:
            assert check(scatter.ungather, src, at % shape[dim], dim=dim, shape=shape) is not NotImplemented
            assert check(scatter.scatter_multiply, x, src, at, dim=dim) is not NotImplemented
            for largest in (True, False):
                found = check(scatter_reduce.extreme_op, x, src, at, dim=dim, largest=largest)
                assert found is not NotImplemented


@pytest.mark.parametrize("dtype", SUMMED)
@pytest.mark.parametrize(("shape", "dim"), [((700, 100), 0), ((700, 100), 1), ((30, 90, 33), 1), ((9000,), 0),
                                            ((3, 5000), 1), ((5000, 3), 0)])
def test_many_elements(shape, dim, dtype):
    more = list(shape)
    more[dim] *= 3
    at = places(1, shape[dim], more)
    x, src = numbers(shape, dtype, 2), numbers(more, dtype, 3)
    assert check(scatter.gather_op, x, at, dim=dim) is not NotImplemented
    assert check(scatter.ungather, src, at % shape[dim], dim=dim, shape=shape) is not NotImplemented
    assert check(scatter.scatter_op, x, src, at, dim=dim) is not NotImplemented
    assert check(scatter_reduce.extreme_op, x, src, at, dim=dim, largest=True) is not NotImplemented


@pytest.mark.parametrize("dtype", MOVED)
@pytest.mark.parametrize("shape", [(3, 40), (3, 5, 40), (1, 40), (3, 20, 20, 1)])
def test_one_step_along_a_dimension_of_neighbours(shape, dtype):
    """A long line of columns, each with one position along a dimension whose elements lie side by side."""
    x = numbers(shape[::-1], dtype, 1).T
    at, src = places(2, shape[0], (1, *shape[1:])), numbers((1, *shape[1:]), dtype, 3)
    assert check(scatter.gather_op, x, at, dim=0) is not NotImplemented
    assert check(scatter.scatter_op, x, src, at, dim=0) is not NotImplemented
    assert check(scatter.scatter_op, np.ascontiguousarray(x), src, at, dim=0) is not NotImplemented


# -- in memory ----------------------------------------------------------------------------------------

WAYS = {"sum": scatter.scatter_add_op, "prod": scatter.scatter_multiply, "amax": scatter_reduce.extreme_op,
        "amin": scatter_reduce.extreme_op}


def same_bits(found, wanted, signs=True):
    np.testing.assert_array_equal(found, wanted)  # nan equals nan
    if signs and found.dtype.kind == "f":
        known = ~np.isnan(wanted)
        np.testing.assert_array_equal(np.signbit(found)[known], np.signbit(wanted)[known])


def scattered_plainly(x, dim, places, src, how):
    given = {"dim": dim, **({"largest": how == "amax"} if how.startswith("am") else {})}
    src, places = np.ascontiguousarray(src), np.ascontiguousarray(places)
    dtype = "float32" if x.dtype == "float16" and how == "sum" else x.dtype  # narrow sums are rounded once
    with np.errstate(all="ignore"):
        found = np.asarray(WAYS[how].plain(x.astype(dtype), src.astype(dtype), places, **given))
    return found.astype(x.dtype)


def few_numbers(shape, dtype, seed):
    """Numbers of which many are equal, 0 or -0."""
    x = np.random.default_rng(seed).integers(-2, 3, shape)
    return (x * -0.0 if seed % 3 == 0 and np.dtype(dtype).kind == "f" else x).astype(dtype)


@quick
@given(filled, st.integers(1, 9), st.sampled_from([*SUMMED, "int16", "float16"]), st.sampled_from([*WAYS]),
       seeds)
def test_places_in_memory(shape, steps, dtype, how, seed):
    """Written into whatever lies how, with positions and sources that lie how they like."""
    rng = np.random.default_rng(seed)
    dim = int(rng.integers(len(shape)))
    inner = [steps if d == dim else int(rng.integers(1, s + 1)) for d, s in enumerate(shape)]
    few = few_numbers if seed % 2 else numbers
    x = laid_out(few(shape, dtype, seed), seed % 4)
    src = laid_out(few(inner, dtype, seed + 1), int(rng.integers(5)))
    places_of = laid_out(rng.integers(0, shape[dim], inner), int(rng.integers(5)))
    wanted = scattered_plainly(x, dim, places_of, src, how)
    t = fw.from_numpy(x)
    with np.errstate(all="ignore"):
        found = t.scatter_reduce_(dim, fw.from_numpy(places_of), fw.from_numpy(src), how)
    assert found is t and t._version == 1
    same_bits(x, wanted, how in ("sum", "prod"))  # of 0 and -0 either is the largest


@pytest.mark.parametrize("dtype", SUMMED)
@pytest.mark.parametrize("how", WAYS)
@pytest.mark.parametrize(("shape", "inner", "dim"), [
    ((2000, 300), (2000, 1), 1), ((300, 2000), (1, 2000), 0), ((200, 300), (200, 10), 1),
    ((600, 300), (7, 300), 0), ((60_000,), (2000,), 0), ((40,), (2000,), 0), ((5, 600, 7), (5, 300, 7), 1)])
def test_a_few_of_many_places_in_memory(shape, inner, dim, how, dtype):
    rng = np.random.default_rng(11)
    x, src = few_numbers(shape, dtype, 1), numbers(inner, dtype, 2)
    for many in (shape[dim], 3):  # some of them again and again
        places_of = rng.integers(0, min(many, shape[dim]), inner)
        wanted = scattered_plainly(x, dim, places_of, src, how)
        t, where = fw.from_numpy(x.copy()), fw.from_numpy(places_of)
        with np.errstate(all="ignore"):
            assert scatter.scattered_into(t, dim, where, fw.from_numpy(src), how, False, "scatter_") is t
        same_bits(t.numpy(), wanted, how in ("sum", "prod"))
        number = x.copy()
        np.put_along_axis(number, places_of, 3, dim)
        assert fw.from_numpy(x.copy()).scatter_(dim, where, 3).numpy().tolist() == number.tolist()


@pytest.mark.parametrize("dtype", SUMMED)
@pytest.mark.parametrize(("shape", "count", "dim"), [
    ((20, 64), 300, 0), ((2000, 8), 2000, 0), ((2000, 30), 5, 1), ((300, 30, 3), 40, 1), ((7, 3), 500, 0),
    ((9000,), 50, 0), ((50,), 9000, 0), ((30_000,), 30_000, 0), ((100_000, 16), 20, 0), ((1, 5), 9, 0),
    ((5, 1), 9, 0)])
def test_rows_added_to_what_is_there(shape, count, dim, dtype):
    """As lines of positions and as expanded ones, in memory and beside it."""
    rng = np.random.default_rng(12)
    inner = (*shape[:dim], count, *shape[dim + 1:])
    x, src = few_numbers(shape, dtype, 4), numbers(inner, dtype, 3)
    for line in (rng.integers(0, shape[dim], count), np.zeros(count, int), np.arange(count) * 7 % shape[dim]):
        with np.errstate(all="ignore"):
            wanted = np.asarray(index.index_add_op.plain(x, src, line[None], dims=(dim,)))
        check(index.index_add_op, x, src, line[None], dims=(dim,))
        check(index.index_add_op, laid_out(x, 1), laid_out(src, 2), line[None], dims=(dim,))
        at, values = fw.from_numpy(line), fw.from_numpy(src)
        spread = at.reshape([-1 if d == dim else 1 for d in range(len(shape))]).expand(inner)
        for threads in (1, 2):
            native.set_threads(threads)
            for found in (fw.index_add(fw.from_numpy(x), dim, at, values),
                          fw.from_numpy(x.copy()).index_add_(dim, at, values),
                          fw.scatter_add(fw.from_numpy(x), dim, spread, values),
                          fw.from_numpy(x.copy()).scatter_add_(dim, spread, values)):
                same_bits(found.numpy(), wanted)


@pytest.mark.parametrize("wrong", [-1, 300, 2**62, -2**63])
def test_wrong_places_in_memory_change_nothing(wrong):
    x = fw.zeros(2000, 300)
    where = fw.full((2000, 1), 5)
    where[1999, 0] = wrong
    for f in (lambda: x.scatter_add_(1, where, fw.ones(2000, 1)), lambda: x.scatter_(1, where, 1.0),
              lambda: x.scatter_reduce_(1, where, fw.ones(2000, 1), "prod"),
              lambda: x.scatter_add_(1, where.T.expand(2000, 2000), fw.ones(2000, 2000)),
              lambda: x.index_add_(1, where[:, 0], fw.ones(2000, 2000))):
        with pytest.raises(IndexError, match="out of range"):
            f()
    assert x._version == 0 and not x.any()


@pytest.mark.parametrize("how", [*WAYS, "set"])
def test_places_in_memory_have_their_gradients(how):
    """In the graph a write is recorded; out of it, it goes straight into memory."""
    rng = np.random.default_rng(13)
    x, src = (fw.tensor(rng.standard_normal(s), requires_grad=True) for s in ((40, 9), (40, 1)))
    where = fw.tensor(rng.integers(0, 9, (40, 1)))

    def written(x, src):
        y = x * 1
        return y.scatter_(1, where, src) if how == "set" else y.scatter_reduce_(1, where, src, how)

    def beside(x, src):
        return x.scatter(1, where, src) if how == "set" else x.scatter_reduce(1, where, src, how)

    for found, wanted in zip(fw.autograd.grad((written(x, src) ** 2).sum(), (x, src)),
                             fw.autograd.grad((beside(x, src) ** 2).sum(), (x, src))):
        np.testing.assert_array_equal(found.numpy(), wanted.numpy())
    with pytest.raises(AutogradError, match="leaf"):
        x.scatter_reduce_(1, where, src, "amax" if how == "set" else how)
    kept = (y := x.detach() * 1).requires_grad_() ** 2
    with fw.no_grad():
        y.scatter_add_(1, where, fw.ones(40, 1, dtype=fw.float64))
    with pytest.raises(AutogradError):  # what backward wants was changed
        kept.sum().backward()


def test_rows_that_are_added_have_derivatives():
    rng = np.random.default_rng(3)
    x, src = (fw.tensor(rng.standard_normal(s), requires_grad=True) for s in ((4, 3), (5, 3)))
    at = fw.tensor([0, 3, 3, 1, 0])
    assert fw.autograd.gradcheck(lambda x, src: fw.index_add(x, 0, at, src, alpha=2), (x, src))
    assert fw.autograd.gradgradcheck(lambda x, src: fw.index_add(x, 0, at, src) ** 3, (x, src))
    x.grad = None
    fw.index_add(x, 0, at, src).sum().backward()
    assert x.grad.tolist() == fw.ones(4, 3).tolist()


@quick
@given(hnp.array_shapes(min_dims=2, max_dims=4, min_side=0, max_side=7), st.sampled_from(MOVED),
       st.integers(-9, 9), seeds)
def test_triangles_in_memory(shape, dtype, k, seed):
    for upper in (False, True):
        x = numbers(shape, dtype, seed)
        x = x if 0 in shape else laid_out(x, seed % 4)
        if seed % 3 == 0:
            x = x.swapaxes(-1, -2)
        wanted = (np.triu if upper else np.tril)(x, k)
        t = fw.from_numpy(x)
        found = t.triu_(k) if upper else t.tril_(diagonal=k)
        assert found is t and t._version == 1
        same_bits(x, wanted) if x.dtype.kind != "c" else np.testing.assert_array_equal(x, wanted)


@pytest.mark.parametrize("k", [0, 1, -1, 299, -299, 300, -500, 2**40, -2**62, -2**63, 2**63 - 1])
def test_triangles_of_large_matrices_in_memory(k):
    for threads in (1, 2):
        native.set_threads(threads)
        for shape in ((300, 300), (2, 500, 300), (3, 300, 500)):
            x = numbers(shape, "float32", 5)
            far = max(-1000, min(k, 1000))
            same_bits(fw.from_numpy(x.copy()).tril_(k).numpy(), np.tril(x, far))
            same_bits(fw.from_numpy(x.copy()).triu_(k).numpy(), np.triu(x, far))
            turned = fw.from_numpy(x.copy().swapaxes(-1, -2))
            same_bits(turned.tril_(k).numpy(), np.tril(x.swapaxes(-1, -2), far))
            same_bits(turned.triu_(k).numpy(), np.triu(np.tril(x.swapaxes(-1, -2), far), far))


def test_triangles_in_memory_are_written_where_they_may():
    x = fw.ones(3, 3, requires_grad=True)
    with pytest.raises(AutogradError, match="tril_.*leaf"):
        x.tril_()
    y = x * 2
    assert y.tril_() is y
    y.sum().backward()
    assert x.grad.tolist() == np.tril(np.full((3, 3), 2.0)).tolist()
    with pytest.raises(ShapeError, match="at least 2 dimensions"):
        fw.ones(3).triu_()
    with pytest.raises(AutogradError, match="expanded"):
        fw.ones(3).expand(3, 3).tril_()
    with pytest.raises(TypeError, match="tril.. takes"):
        fw.ones(3, 3).tril_(1, 2)
    whole = fw.ones(4, 4)
    whole[1:, 1:].triu_()  # a view of it
    assert whole._version == 1 and whole.sum() == 13


@quick
@given(shapes, st.integers(1, 9), seeds)
def test_one_hot(shape, classes, seed):
    at = np.random.default_rng(seed).integers(0, classes, shape)
    found = fw.nn.functional.one_hot(fw.from_numpy(at), classes).numpy()
    np.testing.assert_array_equal(found, np.eye(classes, dtype=np.int64)[at])


# -- masks --------------------------------------------------------------------------------------------


@quick
@given(shapes, st.sampled_from(MOVED), seeds)
def test_masks(shape, dtype, seed):
    x = laid_out(numbers(shape, dtype, seed), seed)
    for dims in range(1, len(shape) + 1):
        mask = np.random.default_rng(seed).random(shape[:dims]) < seed % 11 / 10
        count = int(mask.sum())
        value = numbers((count, *shape[dims:]), dtype, seed + 1)
        found = [check(index.mask_op, x, mask, count=count), check(index.unmask, value, mask, shape=shape),
                 check(index.mask_put, x, value, mask, count=count),
                 check(index.mask_put, x, 1, mask, count=count)]
        assert all((f is NotImplemented) == (not x.size) for f in found)


@pytest.mark.parametrize("dtype", MOVED)
@pytest.mark.parametrize("share", [0, 0.01, 0.5, 1])
def test_long_masks(dtype, share):
    x = numbers((300, 101), dtype, 1)
    mask = np.random.default_rng(2).random(x.shape) < share
    value = x[mask]
    assert check(index.mask_op, x, mask, count=len(value)) is not NotImplemented
    assert check(index.unmask, value, mask, shape=x.shape) is not NotImplemented
    assert check(index.mask_put, x, value, mask, count=len(value)) is not NotImplemented
    assert native.masked_select(x, mask, count=len(value) + 1) is NotImplemented


# -- joining and copying --------------------------------------------------------------------------------


@quick
@given(shapes, st.integers(1, 5), st.sampled_from(MOVED), seeds)
def test_cat_and_stack(shape, parts, dtype, seed):
    for dim in range(len(shape)):
        xs = []
        for i in range(parts):
            size = [*shape[:dim], (seed + 3 * i) % 5, *shape[dim + 1:]]
            xs.append(laid_out(numbers(size, dtype, seed + i), seed * (size[0] > 0) + i * (size[0] > 0)))
        assert (check(join.cat_op, *xs, dim=dim) is NotImplemented) == (not any(x.size for x in xs))
    xs = [laid_out(numbers(shape, dtype, seed + i), seed * bool(shape[0])) for i in range(parts)]
    for dim in range(len(shape) + 1):
        assert (check(join.stack_op, *xs, dim=dim) is NotImplemented) == (not xs[0].size)


def test_large_joins():
    xs = [numbers((37, n, 50), "float32", n) for n in (1, 70, 0, 3, 200)]
    assert check(join.cat_op, *xs, dim=1) is not NotImplemented
    ys = [numbers((300, 90), "int16", n) for n in range(7)]
    for dim in range(3):
        assert check(join.stack_op, *ys, dim=dim) is not NotImplemented


@quick
@given(shapes, st.sampled_from(MOVED), seeds)
def test_copies(shape, dtype, seed):
    x = laid_out(numbers(shape, dtype, seed), seed * bool(shape[0]))
    rng = np.random.default_rng(seed)
    x = x.transpose(rng.permutation(x.ndim))
    assert check(cast.clone_op, x) is not NotImplemented
    assert check(cast.contiguous_op, x) is not NotImplemented
    some = tuple(int(d) for d in rng.permutation(x.ndim)[:rng.integers(0, x.ndim + 1)])
    shifts = tuple(int(s) for s in rng.integers(-20, 20, len(some)))
    check(arrange.flip_op, x, dims=some)
    check(arrange.roll_op, x, shifts=shifts, dims=some)
    check(arrange.roll_op, x, shifts=int(rng.integers(-99, 99)), dims=None)
    check(arrange.tile_op, x, reps=tuple(int(r) for r in rng.integers(0, 4, x.ndim + seed % 2)))
    sides = tuple((int(a), int(b)) for a, b in rng.integers(0, 4, (x.ndim, 2)))
    check(pad.pad_op, x, pads=sides, value=0)
    check(pad.pad_op, x, pads=sides, value=1.5)
    if x.ndim > 1:
        for k in range(-7, 8):
            check(diagonals.tril_op, x, k=k)
            check(diagonals.triu_op, x, k=k)


@pytest.mark.parametrize("dtype", ["float32", "float64", "int16", "uint8", "complex128"])
def test_large_copies(dtype):
    x = numbers((37, 50, 71), dtype, 1)
    for order in [(0, 2, 1), (1, 0, 2), (2, 1, 0), (2, 0, 1), (1, 2, 0)]:
        for source in (x, x[:, ::-1], x[1:, :, 3:-5]):
            assert check(cast.contiguous_op, source.transpose(order)) is not NotImplemented
    assert check(cast.contiguous_op, np.broadcast_to(x[:1], x.shape)) is not NotImplemented
    assert check(cast.contiguous_op, np.broadcast_to(x[..., :1], x.shape)) is not NotImplemented
    assert check(arrange.tile_op, x, reps=(2, 1, 3, 2)) is not NotImplemented
    assert check(arrange.flip_op, x, dims=(0, 2)) is not NotImplemented
    assert check(arrange.roll_op, x, shifts=(5, -3), dims=(0, 2)) is not NotImplemented
    assert check(diagonals.tril_op, x, k=4) is not NotImplemented


@quick
@given(hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=6), seeds)
@pytest.mark.parametrize("source", CASTS)
def test_casts(source, shape, seed):
    for target in CASTS:
        x = laid_out(numbers(shape, source, seed), seed * (0 not in shape))
        check(cast.cast, x, dtype=np.dtype(target))


@pytest.mark.parametrize("target", CASTS)
@pytest.mark.parametrize("source", CASTS)
def test_long_casts(source, target):
    for size in (8192 * 5, 50_003):
        x = numbers(size, source, 1)
        assert check(cast.cast, x, dtype=getattr(fw, target)) is not NotImplemented or (
            source.startswith("float") and target in ("int16", "int8", "uint8"))
    check(cast.cast, x.reshape(-1, 1)[::3].T, dtype=np.dtype(target))


# -- pieces, and what lies outside of ops -----------------------------------------------------------------


@pytest.mark.parametrize("used", [(0, 1, 2), (1,), (0, 2)])
@pytest.mark.parametrize("cut", [lambda x: x.split(2, 1), lambda x: x.unbind(0), lambda x: tuple(x),
                                 lambda x: x.chunk(3, 1)])
def test_pieces_give_their_gradients_back(cut, used):
    x = fw.arange(18.0).view(3, 6).requires_grad_()
    sum(((i + 2) * cut(x)[i] ** 3).sum() for i in used).backward()
    y = x.detach().clone().requires_grad_()
    marks = cut(fw.arange(18).view(3, 6))
    weight = fw.zeros(18)
    for i in used:
        weight[marks[i].reshape(-1)] = i + 2.0
    (weight.view(3, 6) * y ** 3).sum().backward()
    assert fw.equal(x.grad, y.grad)
    fw.autograd.gradgradcheck(lambda t: sum((cut(t)[i] ** 3).sum() for i in used),
                              fw.rand(3, 6, dtype=fw.float64, requires_grad=True))


def test_a_piece_changed_in_place():
    w = fw.ones(4, requires_grad=True)
    x = w * 2
    a, b = x.split(2)
    a.mul_(3)
    (x.sum() + b.sum()).backward()
    assert w.grad.tolist() == [6, 6, 4, 4]


def test_crc32():
    data = random.Random(1).randbytes(5000)
    if not hasattr(native, "crc32"):
        pytest.skip("the processor has no carry-less multiplication")
    for size in [*range(200), 1000, 4096, 5000]:
        assert native.crc32(data[:size]) == zlib.crc32(data[:size])
        assert native.crc32(data[:size], 99) == zlib.crc32(data[:size], 99)


def test_samples_start_as_their_seeds_say():
    python, numpy = random.getstate(), np.random.get_state()
    draws = SampleRandom(3, 1)
    assert draws._native is not None
    with draws.lent():
        for row in range(3):
            draws.row(row)
            for place in [*range(40), 3, 1 << 63, 7]:
                draws.start(place)
                key = mix(mix(draws._base ^ row) + place)
                found = random.random(), np.random.rand(), random.gauss(0, 1), np.random.randn()
                start_python(key), start_numpy(key)
                assert found == (random.random(), np.random.rand(), random.gauss(0, 1), np.random.randn())
                random.gauss(0, 1), np.random.randn()
    assert random.getstate() == python
    assert all(np.array_equal(a, b) for a, b in zip(np.random.get_state(), numpy))


def test_a_normal_number_in_reserve_is_kept():
    np.random.seed(5), random.seed(5)
    wanted = [np.random.randn() for _ in range(6)], [random.gauss(0, 1) for _ in range(6)]
    np.random.seed(5), random.seed(5)
    draws, found = SampleRandom(3, 1), ([], [])
    for i in range(6):
        with draws.lent():
            draws.start(i)
            if i % 3 == 0:
                np.random.randn(), random.gauss(0, 1)
        found[0].append(np.random.randn())
        found[1].append(random.gauss(0, 1))
    assert found == wanted


def _drawings(native, order):
    """What is drawn within samples and between batches, with generators started natively or not."""
    np.random.seed(5), random.seed(5), fw.manual_seed(5)
    draws, found, kept = SampleRandom(3, 1), [], np.random.get_state()
    if not native:
        draws._native = None

    def twisted():
        return isinstance(mtrand.get_bit_generator(), np.random.MT19937) or None
    ways = [
        lambda: np.random.randn(), lambda: random.gauss(0, 1), lambda: fw.rand(()).item(),
        lambda: random.random(), lambda: np.random.bytes(4 * 624)[-4:], lambda: None,
        lambda: fw.manual_seed(9) and None,
        lambda: twisted() and np.random.seed(7), lambda: twisted() and np.random.set_state(kept),
        lambda: mtrand.set_bit_generator(np.random.PCG64(3)),
        lambda: mtrand.set_bit_generator(np.random.MT19937(3))]
    class Drawing:
        def __getitem__(self, index):
            found.append(fw.initial_seed())
            found.extend([order.choice(ways)() for _ in range(index)])

    bits = mtrand.get_bit_generator()
    try:
        for _ in range(12):
            with draws.lent():
                draws.row(order.randrange(9))
                draws.load(Drawing(), [order.choice([0, 0, 1, 3]) for _ in range(order.randrange(6))], [])
                for place in range(order.randrange(4)):
                    draws.start(place)
                    found += [order.choice(ways)() for _ in range(order.randrange(4))]
            found += [order.choice(ways)() for _ in range(order.randrange(3))]
        return [*found, *(way() for way in ways[:5])]
    finally:
        mtrand.set_bit_generator(bits)


@pytest.mark.parametrize("seed", range(40))
def test_generators_started_natively_draw_what_others_draw(seed):
    assert _drawings(True, random.Random(seed)) == _drawings(False, random.Random(seed))


def test_whether_generators_can_be_started_starts_none():
    before = fw.get_rng_state()
    randomness._can_start.cache_clear()
    assert randomness._can_start()
    assert fw.get_rng_state().equal(before)


@pytest.mark.parametrize("call", [
    lambda x: x.index_add(0, fw.tensor([1, 1, 0]), fw.ones(3, 4)),
    lambda x: x.scatter_add(0, fw.tensor([[0, 1, 2, 0]]), fw.ones(1, 4)),
    lambda x: x.index_put((fw.tensor([0, 0]),), fw.ones(2, 4), accumulate=True)])
def test_places_that_are_added_to_are_the_kernels(call, monkeypatch):
    """The shape of a tensor is a tuple of a kind of its own, which kernels once did not take."""
    def checked(kernel):
        def run(*arrays, **settings):
            out = kernel(*arrays, **settings)
            assert out is not NotImplemented, "left to NumPy"
            return out
        return run
    for op in OPS:
        if op.name in ("index_add", "ungather"):
            monkeypatch.setattr(op, "cpu", checked(getattr(native, op.native)))
    call(fw.zeros(3, 4))


POSITIONS = np.random.default_rng(14).integers(0, 4, (2, 2, 3))
KEYS = {"plain": lambda i, j: (i, j), "one too far": lambda i, j: (i, j + 5 * (j == j.max())),
        "negative": lambda i, j: (i - 4, j), "two shapes": lambda i, j: (i, j[0]),
        "strided": lambda i, j: (i[:, ::-1], j), "whole rows": lambda i, j: (i,),
        "repeated": lambda i, j: (i * 0, j * 0), "nothing": lambda i, j: (i[:0], j[:0])}
VALUES = {"fits": lambda shape: np.full(shape, 7, np.float32), "a number": lambda shape: 2.5,
          "broadcast": lambda shape: np.full(shape[-1:], 3, np.float32),
          "other dtype": lambda shape: np.ones(shape, np.int32)}


@pytest.mark.parametrize("kind", KEYS)
@pytest.mark.parametrize("what", VALUES)
def test_keys_of_positions_are_read_as_numpy_reads_them(kind, what):
    """``x[i, j]``, ``x[i, j] = v`` and ``index_put_``; a refused write changes nothing."""
    x = np.random.default_rng(15).random((4, 5, 3)).astype(np.float32)
    key = KEYS[kind](*POSITIONS)
    value = VALUES[what]((*np.broadcast_shapes(*[k.shape for k in key]), *x.shape[len(key):]))
    new = fw.tensor(value) if isinstance(value, np.ndarray) else value
    places, t = tuple(fw.from_numpy(k.copy(order="K")) for k in key), fw.tensor(x)
    if kind == "one too far":
        for call in (lambda: t[places], lambda: t.__setitem__(places, new),
                     lambda: t.index_put_(places, fw.tensor(value))):
            with pytest.raises(IndexError, match="out of range for dimension 1 of size 5"):
                call()
        np.testing.assert_array_equal(t.numpy(), x)
        return
    np.testing.assert_array_equal(t[places].numpy(), x[key])
    y = x.copy()
    y[key] = value
    t[places] = new
    np.testing.assert_array_equal(t.numpy(), y)
    if isinstance(value, np.ndarray):
        z = fw.tensor(x)
        before = z._version
        assert z.index_put_(places, new) is z and z._version == before + 1
        np.testing.assert_array_equal(z.numpy(), y)


@pytest.mark.parametrize("shape", [(), (0, 3), (1,), (7,), (33000,), (4, 5), (300, 70), (3, 4, 5),
                                   (40, 9, 70), (2, 3, 4, 5), (1, 1, 1), (5, 1, 40)])
@pytest.mark.parametrize("dtype", [bool, np.uint8, np.int32, np.int64, np.float32, np.float64, np.float16])
def test_positions_of_what_is_not_zero(shape, dtype):
    rng = np.random.default_rng(16)
    for share in (0.0, 0.02, 0.5, 1.0):
        x = np.asarray(np.where(rng.random(shape) < share, rng.choice([1, 2, 255], shape), 0)).astype(dtype)
        if x.dtype.kind == "f" and x.size > 1:
            x.flat[:2] = -0.0, np.nan
        for laid in (x, x.T, x[..., ::-1] if x.ndim else x):
            for count in (1, 3):
                fw.set_num_threads(count)
                found = fw.nonzero(fw.from_numpy(laid.copy(order="K")))
                wanted = np.argwhere(laid)
                assert found.dtype is fw.int64 and found.shape == wanted.shape
                np.testing.assert_array_equal(found.numpy(), wanted)


def test_keys_that_are_one_tensor_or_numbers_in_tensors():
    x = fw.arange(12.0).view(3, 4).requires_grad_()
    one, last = fw.tensor(1), fw.tensor(-1, dtype=fw.int32)
    assert x[one].tolist() == x[1].tolist() and x[one, last].item() == 7.0
    assert x[:, last].tolist() == [3, 7, 11]
    assert x.detach()[one]._base is not None  # a view, as by the number
    x[one, 1:].sum().backward()
    assert x.grad.tolist() == [[0] * 4, [0, 1, 1, 1], [0] * 4]
    assert x[fw.tensor(True)].shape == (1, 3, 4)  # a mask, not a number
    for dtype in (fw.int8, fw.int16, fw.int32):
        assert x[fw.tensor([2, 0], dtype=dtype)].tolist() == x[[2, 0]].tolist()
    mask = fw.tensor([True, False, True])
    assert x[mask].tolist() == x[[0, 2]].tolist() and x[x > 9].tolist() == [10, 11]
    for key, text in ((fw.tensor(3), "size 3"), (fw.tensor([3], dtype=fw.int32), "size 3"),
                      (fw.tensor([True]), "does not fit"), ((one, one, one), "dimension")):
        with pytest.raises(IndexError, match=text):
            x[key]


LONG = [(100, 2, 3), (300, 8), (3, 400), (5, 3, 70, 2), (1, 400, 1), (2, 130, 2), (7, 1, 129, 1),
        (40, 1, 1, 9)]


@pytest.mark.parametrize("shape", LONG)
@pytest.mark.parametrize("smaller", [False, True])
@pytest.mark.parametrize("layout", ["rows", "turned", "gaps"])
def test_positions_of_many_short_rows_and_steps(shape, smaller, layout):
    """Dimensions that follow one another are one, short rows and steps go together: NumPy's numbers, and a
    position out of range is found wherever it stands."""
    def laid(a):
        if layout == "turned":
            return np.ascontiguousarray(a.T).T
        return np.repeat(a, 2, axis=-1)[..., ::2] if layout == "gaps" else a

    rng = np.random.default_rng(0)
    for dim in range(len(shape)):
        x = laid(rng.standard_normal(shape).astype(np.float32))
        own = tuple(max(1, n - (smaller and d != dim)) for d, n in enumerate(shape))
        index = laid(rng.integers(0, shape[dim], own))
        out = fw.gather(fw.from_numpy(x), dim, fw.from_numpy(index)).numpy()
        part = tuple(slice(None) if d == dim else slice(n) for d, n in enumerate(own))
        np.testing.assert_array_equal(out, np.take_along_axis(x[part], index, dim))
        src = laid(rng.standard_normal(own).astype(np.float32))
        wanted = x.astype(np.float64)
        places = list(np.indices(own))
        places[dim] = index
        np.add.at(wanted, tuple(places), src)
        found = fw.scatter_add(fw.from_numpy(x), dim, fw.from_numpy(index), fw.from_numpy(src))
        np.testing.assert_allclose(found.numpy(), wanted, 1e-4, 1e-4)
        for place in (0, index.size // 2, index.size - 1):
            for bad in (shape[dim], -1 - shape[dim], 2**62, -2**63):
                wrong = np.array(index, order="C")
                wrong.reshape(-1)[place] = bad
                with pytest.raises(IndexError):
                    fw.gather(fw.from_numpy(x), dim, fw.from_numpy(laid(wrong)))
                assert _native.module.gather(x, laid(wrong), dim=dim) is NotImplemented


def _some_tensor(draw, shape, dtype):
    x = fw.tensor(draw.standard_normal(shape) * 9)
    x = (x.round() if draw.random() < 0.5 else x).to(dtype)
    return x.transpose(0, -1).contiguous().transpose(0, -1) if draw.random() < 0.3 else x


def _call_in_place(draw, x, dtype):
    """A call beside the same in place, with places that stand there several times."""
    shape, dim = list(x.shape), int(draw.integers(-x.ndim, x.ndim))
    kind = draw.choice(["scatter", "number", "scatter_add", "scatter_reduce", "index_add", "index_reduce",
                        "index_copy", "index_put"])
    if kind in ("scatter", "number", "scatter_add", "scatter_reduce"):
        index_shape = [int(draw.integers(1, n + 1)) for n in shape]
        index_shape[dim] = int(draw.integers(1, 7))
    else:
        dim = 0 if kind == "index_put" else dim
        index_shape = [int(draw.integers(1, 8))]
        shape[dim] = index_shape[0]
    index = fw.tensor(draw.integers(0, x.shape[dim], index_shape))
    values = _some_tensor(draw, index_shape if kind.startswith("scatter") else shape, dtype)
    way = str(draw.choice(["sum", "amax", "amin", "prod", "mean"][kind == "index_reduce":]))
    if kind == "index_put":
        return lambda x, end: getattr(x, f"index_put{end}")((index,), values, accumulate=True)
    if kind == "number":
        return lambda x, end: getattr(x, f"scatter{end}")(dim, index, 1)
    more = (way,) if kind.endswith("reduce") else ()
    return lambda x, end: getattr(x, f"{kind}{end}")(dim, index, values, *more)


@pytest.mark.parametrize("dtype", [fw.float32, fw.float64, fw.int64, fw.int32, fw.float16, fw.bfloat16,
                                   fw.uint8])
def test_in_place_at_places_gives_the_bits_of_the_function(dtype):
    draw = np.random.default_rng(0)
    for _ in range(250):
        shape = [int(n) for n in draw.choice([1, 2, 3, 5, 8, 20], draw.integers(1, 4))]
        x = _some_tensor(draw, shape, dtype)
        call = _call_in_place(draw, x, dtype)
        wanted = call(x.clone(), "")
        assert call(x, "_") is x
        assert ((x == wanted) | (x != x) & (wanted != wanted)).all()


@pytest.mark.parametrize("call", [
    lambda x: x.scatter_(1, fw.tensor([[0, 50]]), 1.0),
    lambda x: x.scatter_add_(0, fw.tensor([[1], [-1]]), fw.ones(2, 1)),
    lambda x: x.index_add_(0, fw.tensor([3, 100]), fw.ones(2, 50)),
    lambda x: x.index_reduce_(0, fw.tensor([3, 100]), fw.ones(2, 50), "amax"),
    lambda x: x.index_put_((fw.tensor([3, 100]),), fw.ones(2, 50), accumulate=True)])
def test_places_out_of_range_leave_the_tensor_as_it_was(call):
    x = fw.zeros(100, 50)
    with pytest.raises(IndexError, match="out of range"):
        call(x)
    assert not x.any() and x._version == 0


def test_elements_put_into_the_memory_that_they_come_from():
    x = fw.arange(400.0)
    x.scatter_add_(0, fw.arange(100), x[:100])
    assert x[:3].tolist() == [0, 2, 4]
    x = fw.arange(200.0)
    x[::2].index_add_(0, fw.tensor([0, 1, 1]), x[1::2][:3])
    assert x[:5].tolist() == [1, 1, 10, 3, 4]
