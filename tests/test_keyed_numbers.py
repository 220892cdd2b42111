"""Numbers drawn under a key: the same on the CPU by the extension and by NumPy, and on a GPU."""

import numpy as np
import pytest
from test_cuda import cupy  # noqa: F401 - the fixture: CuPy, or its stand-in
from test_device_kernels import raw  # noqa: F401 - how the stand-in runs kernels
from test_device_variates import p_value

import framework as fw
from framework import _native, philox
from framework.ops.random import variates
from framework.ops.random.draws import angles_op
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
    pytest.importorskip("ml_dtypes")
    for n in (0, 1, 7, 1000, 20_001):
        for kind in (fw.int64, fw.int32, fw.float32, fw.float64, fw.float16, fw.bfloat16):
            for low, high in ((-3, 9), (0, 60_000 if kind is fw.float16 else 1 << 30)):
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


# -- distributions -------------------------------------------------------------------------------------

N = (0, 1, 5, 33, 1000, 20_001)
SHAPES = 1e-3, 0.1, 0.999, 1.0, 2.5, 1e5, 1e300
RATES = 0.0, 1e-300, 1e-5, 0.3, 9.99, 10.0, 100.0, 1e9, 9e18
TRIALS = [(float(n), p) for n in (0, 1, 5, 100, 1e9, 1e15) for p in (0.0, 1e-9, 0.01, 0.3, 0.5, 0.999, 1.0)]


def parameters(n, values):
    """One value for all, for each of them, and many in one array."""
    yield from (np.full(n, v, "d") for v in values)
    yield np.resize(np.array(values, "d"), n)
    yield np.exp(np.random.default_rng(n).uniform(np.log(1e-3), np.log(1e5), n))


@needs("gamma_numbers")
@pytest.mark.parametrize("n", N)
def test_gamma_numbers_by_either_form(n, threads):
    for a in parameters(n, SHAPES):
        for kind in ("d", "f"):
            given, lowest = a.clip(max=np.finfo(kind).max).astype(kind), float(np.finfo(kind).tiny)
            native = _native.module.gamma_numbers(given, 5, lowest)
            with np.errstate(over="ignore"):
                plain = variates.gamma(5, given.astype("d"), lowest).astype(kind)
            np.testing.assert_array_equal(native, plain)
            assert native.dtype == kind
        rows = a[:n // 4 * 4].reshape(-1, 4).clip(max=1e9)
        np.testing.assert_array_equal(_native.module.dirichlet_rows(rows, 5, 1e-300),
                                      variates.dirichlet(5, rows, 1e-300))
    odd = np.array([np.inf, np.nan, -1.0, 0.0])
    np.testing.assert_array_equal(_native.module.gamma_numbers(odd, 1, 0.0), variates.gamma(1, odd, 0.0))


@needs("poisson_numbers")
@pytest.mark.parametrize("n", N)
def test_counts_by_either_form(n, threads):
    for rates in parameters(n, RATES):
        native = _native.module.poisson_numbers(rates, 7, 9.2e18)
        np.testing.assert_array_equal(native, variates.poisson(7, rates))
    count, chance = np.array(TRIALS).T
    for k in range(len(TRIALS) + 1):
        some = (np.full(n, v[k]) if k < len(TRIALS) else np.resize(v, n) for v in (count, chance))
        some = list(some)
        np.testing.assert_array_equal(_native.module.binomial_numbers(*some, 7), variates.binomial(7, *some))


@needs("angles")
@pytest.mark.parametrize("n", N)
def test_angles_by_either_form(n, threads):
    for spread in parameters(n, (0.0, 1e-300, 1e-6, 0.1, 5.0, 1e8, 1e200, np.inf)):
        np.testing.assert_array_max_ulp(_native.module.angles(spread, 3), variates.angles(3, spread), 2)


@needs("within")
def test_native_functions_refuse_parameters_that_are_none():
    module, nan = _native.module, float("nan")
    for wrong in (-1.0, nan, 1e19):
        assert module.poisson_numbers(np.array([1.0, wrong]), 1, 9.2e18) is NotImplemented
    for n, p in ((-1.0, 0.5), (0.5, 0.5), (np.inf, 0.5), (nan, 0.5), (3.0, 1.5), (3.0, nan)):
        assert module.binomial_numbers(np.array([n]), np.array([p]), 1) is NotImplemented
    assert module.angles(np.array([-1.0]), 1) is NotImplemented
    assert module.binomial_numbers(np.ones(3), np.ones(2), 1) is NotImplemented
    assert module.binomial_numbers(np.ones(3), np.ones(3, "f"), 1) is NotImplemented
    assert module.gamma_numbers(np.ones(3, int), 1, 0.0) is NotImplemented
    assert module.dirichlet_rows(np.float64(1) * np.ones(()), 1, 0.0) is NotImplemented
    assert module.dirichlet_rows(np.ones((3, 0)), 1, 0.0).shape == (3, 0)
    for x, whole, fits in (([0.0, 1.0], True, True), ([0.5], True, False), ([0.5], False, True),
                           ([nan], False, False), ([2.0], False, False), ([], True, True)):
        assert module.within(np.array(x), 0.0, 1.0, whole) is fits


CALLS = {
    "gamma": lambda x: fw._standard_gamma(x + 0.0625), "poisson": fw.poisson,
    "binomial": lambda x: fw.binomial((x * 10).floor(), x % 1),
    "angles": lambda x: angles_op.run(x, generator=None),
    "dirichlet": lambda x: fw._sample_dirichlet(x + 0.0625),
    "beta": lambda x: fw.distributions.Beta(x + 0.125, x + 0.25).sample(),
}


@pytest.mark.parametrize("dtype", ["float64", "float32", "float16", "bfloat16"])
@pytest.mark.parametrize("name", CALLS)
def test_a_gpu_draws_the_same_of_distributions(name, dtype, raw, cupy):  # noqa: F811
    pytest.importorskip("ml_dtypes")
    kind = getattr(fw, dtype)
    for size in ((0,), (1,), (3, 7), (40, 50)):
        x = fw.linspace(0, 60, int(np.prod(size)), dtype=fw.float64).reshape(size).to(kind)
        both = []
        for device in ("cpu", "cuda"):
            fw.manual_seed(4)
            both.append(CALLS[name](x.to(device)).cpu())
        assert both[0].dtype is kind
        cpu, gpu = (y.double().numpy() for y in both)
        np.testing.assert_array_max_ulp(cpu, gpu, 2 if name == "angles" else 0)  # tangents are the library's


@pytest.mark.parametrize("name", CALLS)
def test_with_and_without_the_extension(name, monkeypatch):
    x = fw.linspace(0, 60, 3000)
    fw.manual_seed(4)
    want, state = CALLS[name](x), fw.get_rng_state().tolist()
    monkeypatch.setattr(_native, "module", None)
    fw.manual_seed(4)
    np.testing.assert_array_max_ulp(CALLS[name](x).numpy(), want.numpy(), 1)
    assert fw.get_rng_state().tolist() == state


LAWS = {
    **{f"gamma {a}": (fw._standard_gamma, a, lambda s, a: s.gamma(a)) for a in (0.05, 0.9, 3.7, 1e5)},
    **{f"poisson {r}": (fw.poisson, r, lambda s, r: s.poisson(r)) for r in (0.01, 3.0, 9.9, 10.0, 37.0, 1e4)},
    **{f"binomial {n}, {p}": (lambda x, p=p: fw.binomial(x, fw.full_like(x, p)), n,
                              lambda s, n, p=p: s.binom(int(n), p))
       for n, p in ((1.0, 0.3), (20.0, 0.8), (100.0, 0.1), (1000.0, 0.999), (1e4, 0.37), (1e9, 1e-9))},
    **{f"angle {k}": (CALLS["angles"], k, lambda s, k: s.vonmises(k) if k else s.uniform(-np.pi, 2 * np.pi))
       for k in (0.0, 1e-6, 0.5, 20.0, 1e4)},
}


@pytest.mark.parametrize("name", LAWS)
def test_distributions(name):
    stats = pytest.importorskip("scipy.stats")
    call, parameter, law = LAWS[name]
    fw.manual_seed(12)
    x, law = call(fw.full((20_000,), parameter, dtype=fw.float64)).numpy(), law(stats, parameter)
    assert abs(x.mean() - law.mean()) < 4.5 * law.std() / len(x) ** 0.5
    tail = max(float(law.stats("k")) + 2, 0.1)
    assert abs(x.var() / law.var() - 1) < 4.5 * (tail / len(x)) ** 0.5
    assert p_value(x, law) > 1e-3


def test_errors_draw_nothing_and_meta_tensors_neither():
    fw.manual_seed(1)
    state = fw.get_rng_state().tolist()
    for call in (lambda: fw.poisson(fw.tensor([-1.0])), lambda: fw._standard_gamma(fw.tensor([0.0])),
                 lambda: fw.binomial(fw.tensor([1.5]), fw.tensor([0.5])),
                 lambda: fw.binomial(fw.tensor([1.0]), fw.tensor([float("nan")]))):
        with pytest.raises(ValueError):
            call()
    for call in (fw.poisson, fw._standard_gamma, fw._sample_dirichlet):
        assert call(fw.ones(3, 2, device="meta")).shape == (3, 2)
        assert call(fw.ones(0, 2)).shape == (0, 2)
    assert fw.get_rng_state().tolist() == state


DRAWS = {"poisson": fw.poisson, "gamma": fw._standard_gamma, "dirichlet": fw._sample_dirichlet,
         "binomial": lambda x: fw.binomial(x, x / 40)}


@pytest.mark.parametrize("name", DRAWS)
def test_examples_of_a_batch(name):
    call, x = DRAWS[name], fw.full((4, 3), 20.0, dtype=fw.float64)
    fw.manual_seed(3)
    whole = call(x)
    for randomness in ("different", "same"):
        fw.manual_seed(3)
        y = fw.vmap(call, randomness=randomness)(x)
        if randomness == "different":
            assert y.tolist() == whole.tolist() and len(set(y[:, 0].tolist())) > 1
        else:
            assert y.tolist() == whole[:1].expand(4, 3).tolist() or name == "dirichlet"
            assert len({tuple(row) for row in y.tolist()}) == 1
    with pytest.raises(RuntimeError, match="drew random numbers"):
        fw.vmap(call)(x)
    fw.manual_seed(3)
    nested = fw.vmap(fw.vmap(call, randomness="different"), randomness="same")(x.reshape(2, 2, 3)).tolist()
    assert nested[0] == nested[1] and nested[0][0] != nested[0][1]


def test_examples_draw_of_what_they_share():
    y = fw.vmap(lambda i: fw.poisson(fw.full((50,), 20.0)) + 0 * i, randomness="different")(fw.arange(3))
    assert len({tuple(row) for row in y.tolist()}) == 3
    a = fw.full((5, 3), 2.0)
    slopes = fw.vmap(fw.func.grad(lambda a: fw._standard_gamma(a).sum()), randomness="different")(a)
    assert slopes.shape == (5, 3) and bool((slopes > 0).all())
    y = fw.vmap(fw.binomial, in_dims=(0, None), randomness="same")(fw.full((2, 3), 20.0), fw.tensor(0.5))
    assert y[0].tolist() == y[1].tolist()
