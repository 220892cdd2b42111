"""Numbers drawn under a key: the same on the CPU by the extension and by NumPy, and on a GPU."""

import numpy as np
import pytest
from test_cuda import cupy  # noqa: F401 - the fixture: CuPy, or its stand-in
from test_device_kernels import raw  # noqa: F401 - how the stand-in runs kernels

import framework as fw
from framework import _native, philox
from framework.random import numpy_integers, numpy_permutation

KEYS = 1, (1 << 64) - 1
SIZES = 0, 1, 3, 8, 129, 20_001, 100_000
HALF = 1 << 63
RANGES = ((3, 4), (0, 2), (-5, 1000), (0, (1 << 31) + 1), (0, (1 << 32) - 1), (0, 1 << 32),
          (0, (1 << 32) + 1), (0, 3 << 61), (-HALF, HALF - 1), (-7, 1 << 62))
INTEGERS, WIDE = [91, 78, 79, 91, 21, 2], [969033983783, 122853236118]
ORDER = [1, 3, 4, 0, 7, 2, 5, 6]


def needs(name):
    return pytest.mark.skipif(not hasattr(_native.module, name), reason=f"no extension: {_native.isa}")


@pytest.fixture(params=[1, 3])
def threads(request):
    before = _native.module.threads()
    _native.module.set_threads(request.param)
    yield request.param
    _native.module.set_threads(before)


@pytest.mark.parametrize("n", SIZES)
def test_blocks_of_all_and_of_some(n):
    for block in (0, 1, 5):
        some = np.arange(n)[::7]
        assert (philox.block_of_all(3, n, block)[::7] == philox.block_of(3, some, block)).all()


@needs("keyed_integers")
@pytest.mark.parametrize("n", SIZES)
def test_integers_by_either_form(n, threads):
    for key in KEYS:
        for low, high in (*RANGES, (-HALF, HALF)):
            native = _native.module.keyed_integers((n,), key, low, (high - low) % (1 << 64))
            np.testing.assert_array_equal(native, philox.integers(key, n, low, high - low))
            assert native.dtype == np.int64 and ((native >= low) & (native <= high - 1)).all()


@needs("keyed_permutation")
@pytest.mark.parametrize("n", [*SIZES, 1_200_000])
def test_permutations_by_either_form(n, threads):
    for key in KEYS:
        native = _native.module.keyed_permutation(n, key)
        np.testing.assert_array_equal(native, philox.permutation(key, n))
        assert native.dtype == np.int64 and (np.bincount(native, minlength=n) == 1).all()


@needs("keyed_permutation")
def test_native_functions_refuse_what_they_cannot_make():
    module = _native.module
    for wrong in (lambda: module.keyed_permutation(-1, 1), lambda: module.keyed_integers((-2,), 1, 0, 5)):
        with pytest.raises(ValueError):
            wrong()
    assert module.keyed_permutation(1 << 31, 1) is NotImplemented
    for words in (np.zeros(12, np.uint64), np.full(13, 7, np.uint64), np.zeros(13)):
        assert module.philox_word(words) is NotImplemented


def test_a_gpu_draws_the_same(raw, cupy):  # noqa: F811
    for n in (0, 1, 7, 1000, 20_001):
        for kind in (fw.int64, fw.int32, fw.float32, fw.float64):
            for low, high in ((-3, 9), (0, 1 << 30)):
                both = [fw.randint(low, high, (n,), dtype=kind, device=d,
                                   generator=fw.Generator(d).manual_seed(n)) for d in ("cpu", "cuda")]
                assert both[0].tolist() == both[1].tolist()
        both = [fw.randperm(n, generator=fw.Generator(d).manual_seed(n), device=d) for d in ("cpu", "cuda")]
        assert both[0].tolist() == both[1].tolist()
    for low, high in RANGES:
        both = [fw.randint(low, high, (501,), device=d, generator=fw.Generator(d).manual_seed(5))
                for d in ("cpu", "cuda")]
        assert both[0].tolist() == both[1].tolist()


def test_states_move_alike_and_repeat(raw, cupy):  # noqa: F811
    ends = []
    for device in ("cpu", "cuda"):
        g = fw.Generator(device).manual_seed(9)
        kw = {"generator": g, "device": device}
        calls = [lambda kw=kw: fw.randint(7, (5,), **kw), lambda kw=kw: fw.rand(3, **kw),
                 lambda kw=kw: fw.randperm(9, **kw), lambda kw=kw: fw.randint(3, (0,), **kw)]
        state = g.get_state()
        first = [call().tolist() for call in calls for _ in range(2)]
        end = g.get_state().tolist()
        g.set_state(state)
        assert [call().tolist() for call in calls for _ in range(2)] == first and first[0] != first[1]
        ends.append((first, end))
    assert ends[0] == ends[1]


def test_numbers_that_are_promised():
    """A change of these is a change for whoever repeats a run by its seed."""
    g = fw.Generator().manual_seed(0)
    assert fw.randint(100, (6,), generator=g).tolist() == INTEGERS
    assert fw.randint(1 << 40, (2,), generator=g).tolist() == WIDE
    assert fw.randperm(8, generator=g).tolist() == ORDER


def test_unsigned_integers_beyond_int64():
    x = fw.randint(HALF - 5, HALF + 5, (400,), dtype=fw.uint64)
    assert set(x.tolist()) == set(range(HALF - 5, HALF + 5))


def test_orders_of_samples_stay_numpys():
    """Checkpoints in the middle of an epoch are resumed with the order that they began."""
    plain = np.random.Generator(np.random.Philox(key=np.array([4, 0], np.uint64)))
    g = fw.Generator().manual_seed(4)
    assert numpy_permutation(50, g).tolist() == plain.permutation(50).tolist()
    assert numpy_integers(0, 1000, (30,), g).tolist() == plain.integers(0, 1000, 30).tolist()
    sampler = fw.data.RandomSampler(range(20))
    assert list(sampler.draw(fw.Generator().manual_seed(4))) == np.random.Generator(
        np.random.Philox(key=np.array([4, 0], np.uint64))).permutation(20).tolist()
