"""Random numbers by the native functions: the same ones, and the same state after, as without them."""

import statistics

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import framework as fw
from framework import _native
from framework.autograd import gradcheck, gradgradcheck
from framework.ops.random.dropout import dropout_op
from framework.philox import coins, normal_of
from framework.random import Generator

needs_native = pytest.mark.skipif(not hasattr(_native.module, "philox_uniform"),
                                  reason=f"no extension: {_native.isa}")
F = fw.nn.functional

SIZES = st.one_of(st.integers(0, 40), st.integers(2040, 2060), st.integers(4000, 30_000))
DRAWS = {
    "float32": lambda g, n: fw.rand(n, generator=g),
    "float64": lambda g, n: fw.rand(n, dtype=fw.float64, generator=g),
    "float16": lambda g, n: fw.rand(n, dtype=fw.float16, generator=g),
    "complex64": lambda g, n: fw.rand(n, dtype=fw.complex64, generator=g),
    "integers": lambda g, n: fw.randint(-5, 1000, (n,), generator=g),
    "often rejected": lambda g, n: fw.randint(0, (1 << 31) + 1, (n,), generator=g),
    "sometimes rejected": lambda g, n: fw.randint(0, 1_000_003, (n,), generator=g),
    "wide": lambda g, n: fw.randint(0, 1 << 40, (n,), generator=g),
    "normal": lambda g, n: fw.randn(n, generator=g),
    "normal, float64": lambda g, n: fw.randn(n, dtype=fw.float64, generator=g),
    "normal, float16": lambda g, n: fw.randn(n, dtype=fw.float16, generator=g),
    "normal, complex128": lambda g, n: fw.randn(n, dtype=fw.complex128, generator=g),
    "bernoulli": lambda g, n: fw.bernoulli(fw.full((n,), 0.3), generator=g),
}


class Plain(Generator):
    """One that draws by NumPy alone."""

    def _native_draw(self, function, *args):
        return NotImplemented


@pytest.fixture(params=[1, 2])
def threads(request):
    if _native.module is None:
        yield 1
        return
    before = _native.module.threads()
    _native.module.set_threads(request.param)
    yield request.param
    _native.module.set_threads(before)


@needs_native
@settings(max_examples=60, deadline=None)
@given(draws=st.lists(st.tuples(st.sampled_from(sorted(DRAWS)), SIZES), min_size=1, max_size=6),
       seed=st.integers(0, 9), threads=st.sampled_from([1, 2]))
def test_the_same_numbers_and_state(draws, seed, threads):
    """Whichever word, or half of one, the draws before ended at."""
    ends, before = [], _native.module.threads()
    _native.module.set_threads(threads)
    for kind in (Generator, Plain):
        g = kind().manual_seed(seed)
        numbers = [DRAWS[name](g, n).numpy() for name, n in draws]
        ends.append((numbers, g.get_state().tolist()))
    _native.module.set_threads(before)
    for one, other in zip(ends[0][0], ends[1][0], strict=True):
        np.testing.assert_array_equal(one, other)
        assert one.dtype == other.dtype
    assert ends[0][1] == ends[1][1]


@needs_native
def test_counters_carry_over():
    """A counter whose lower words are full goes on in the next one."""
    ends = []
    for kind in (Generator, Plain):
        g = kind().manual_seed(1)
        words = g.get_state().numpy().view("<u8").copy()
        words[4:6] = (1 << 64) - 100, (1 << 64) - 1
        g.set_state(fw.from_numpy(words.view(np.uint8)))
        ends.append((fw.rand(9000, generator=g).tolist(), g.get_state().tolist()))
    assert ends[0] == ends[1]


@needs_native
@pytest.mark.parametrize("p", [0.0, 0.1, 0.25, 0.5, 1 / 3, 0.999999, 1.0, 1e-7, 2.0 ** -16])
@pytest.mark.parametrize("shape", [(), (1,), (0, 3), (15,), (16,), (17,), (3, 5, 7), (300, 401)])
def test_dropout_by_either_form(shape, p, threads):
    rng = np.random.default_rng(0)
    for dtype in ("f4", "f8"):
        x = np.asarray(rng.standard_normal(shape), dtype)
        if x.size > 100:
            x.reshape(-1)[::7] = np.nan
            x.reshape(-1)[1::7] = np.inf
        for key in (0, 5, (1 << 64) - 1):
            for case in (x, x.T, np.broadcast_to(x[..., None], (*x.shape, 2))):
                with np.errstate(all="ignore"):
                    plain = np.asarray(dropout_op.plain(case, p=p, key=key))
                native = _native.module.dropout(case, p=p, key=key)
                np.testing.assert_array_equal(native, plain)
                assert native.dtype == plain.dtype
                assert (np.signbit(native) == np.signbit(plain))[plain == 0].all()


@pytest.mark.parametrize("p", [0.1, 0.5, 1 / 3, 0.0001])
def test_coins_fall_as_often_as_they_should(p):
    n = 1 << 20
    for key in range(3):
        dropped = n - int(coins(key, n, p).sum())
        assert abs(dropped - n * p) < 5 * (n * p * (1 - p)) ** 0.5
    a, b = coins(1, n, p), coins(2, n, p)
    assert abs(int((a & b).sum()) - n * (1 - p) ** 2) < 5 * (n * (1 - p) ** 2) ** 0.5
    assert (coins(1, 1000, p) == a[:1000]).all()


def test_ties_keep_the_probability():
    """p below 2**-16: only elements whose 16 bits are all 0 may be dropped, and not all of those."""
    n = 1 << 22
    at_most = int((~coins(3, n, 2.0 ** -16)).sum())
    half = int((~coins(3, n, 2.0 ** -17)).sum())
    assert 20 < at_most < 120 and 0.2 < half / at_most < 0.8
    assert coins(3, n, 0.0).all() and not coins(3, n, 1.0).any()


def test_dropout_keeps_no_mask():
    x = fw.randn(50, 40, dtype=fw.float64, requires_grad=True)
    y = F.dropout(x, 0.3)
    assert y.grad_fn.kept in (None, {}) and set(y.grad_fn.settings) == {"p", "key"}
    g = fw.randn(50, 40, dtype=fw.float64)
    (dx,) = fw.autograd.grad(y, x, g, create_graph=True, retain_graph=True)
    mask = (y.detach() != 0).double() / 0.7
    np.testing.assert_allclose(dx.detach().numpy(), (g * mask).numpy())
    state = fw.get_rng_state()
    y.sum().backward()
    assert (fw.get_rng_state() == state).all(), "backward draws nothing"
    np.testing.assert_allclose(x.grad.numpy(), mask.numpy())


def test_derivatives_of_dropout():
    def f(x):
        return dropout_op.run(x, p=0.4, key=11) ** 2
    x = fw.randn(4, 5, dtype=fw.float64, requires_grad=True)
    assert gradcheck(f, (x,)) and gradgradcheck(f, (x,))
    (tangent,) = fw.func.jvp(f, (x.detach(),), (fw.ones(4, 5, dtype=fw.float64),))[1:]
    expected = 2 * dropout_op.run(x.detach(), p=0.4, key=11) * (coins(11, 20, 0.4).reshape(4, 5) / 0.6)
    np.testing.assert_allclose(tangent.numpy(), expected.numpy())


def test_dropout_draws_one_word():
    """So what is drawn after it does not depend on how many elements it looked at."""
    after = []
    for n in (1, 100_000):
        fw.manual_seed(3)
        F.dropout(fw.ones(n), 0.5)
        after.append(fw.rand(4).tolist())
    assert after[0] == after[1]


@pytest.mark.parametrize("kind, tolerance", [(np.uint32, 1e-6), (np.uint64, 2e-15)])
def test_normal_numbers_are_the_inverse_of_the_distribution(kind, tolerance):
    """Also at the ends, where the numbers are largest, and in the middle, where they are smallest."""
    width = np.dtype(kind).itemsize * 8
    ends = [0, 1, 9, 1 << 20, (1 << width - 1) - 1, 1 << width - 1, (1 << width - 1) + 1, (1 << width) - 1]
    bits = np.random.default_rng(0).integers(0, 1 << width, 3000, dtype=kind)
    bits = np.concatenate([bits, np.array(ends, kind)])
    for b, z in zip(bits.tolist(), normal_of(bits).tolist(), strict=True):
        upper = b >> width - 1
        below = ((1 << width) - 1 - b if upper else b) + 0.5
        expected = statistics.NormalDist().inv_cdf(below / 2.0 ** width)
        if abs(expected) > 1e-3:  # its own rounding of the probability, near 1/2
            assert z == pytest.approx(-expected if upper else expected, rel=tolerance)
        assert (z > 0) == bool(upper) and z != 0


def test_normal_numbers_have_the_moments_of_the_distribution():
    g = Generator().manual_seed(0)
    for dtype in (fw.float32, fw.float64):
        z = fw.randn(1_000_000, dtype=dtype, generator=g).double().numpy()
        moments = [(z ** k).mean() for k in (1, 2, 3, 4, 6)]
        assert (np.abs(np.subtract(moments, [0, 1, 0, 3, 15])) < [0.005, 0.008, 0.02, 0.05, 0.6]).all()
        assert abs((np.abs(z) > 3).mean() - 0.0026998) < 3e-4
        assert abs(np.corrcoef(z[:-1], z[1:])[0, 1]) < 0.005


@pytest.mark.parametrize("dtype", [fw.float16, fw.bfloat16])
@pytest.mark.parametrize("bounds", [(0.0, 1.0), (-2.0, 3.0), (0.3, 0.3), (-5.0, 0.0), (1e-3, 2e-3),
                                    (0.0, 60000.0)])
def test_numbers_of_16_bits_drawn_in_place_are_those_drawn_beside(dtype, bounds):
    """At once into memory as by a generator of one's own, which goes the long way; without the upper end."""
    low, high = bounds
    for fill in (lambda x, **g: x.uniform_(low, high, **g), lambda x, **g: x.normal_(low, high + 6, **g)):
        x, y = (fw.zeros(3000, dtype=dtype) for _ in range(2))
        fw.manual_seed(11)
        fill(x)
        fill(y, generator=fw.Generator().manual_seed(11))
        np.testing.assert_array_equal(x.double().numpy(), y.double().numpy())
    if bounds[0] < bounds[1]:
        x.uniform_(*bounds)
        assert x.min().item() >= fw.tensor(bounds[0], dtype=dtype).item()
        assert x.max().item() < fw.tensor(bounds[1], dtype=dtype).item()


@pytest.mark.parametrize("dtype", [fw.float16, fw.bfloat16, fw.float32, fw.float64, fw.int64])
@pytest.mark.parametrize("p", [0.0, 0.3, 1.0])
def test_coins_drawn_in_place_are_those_drawn_beside(dtype, p):
    x, y = (fw.full((3000,), 7, dtype=dtype) for _ in range(2))
    fw.manual_seed(12)
    x.bernoulli_(p)
    y.bernoulli_(p, generator=fw.Generator().manual_seed(12))
    np.testing.assert_array_equal(x.double().numpy(), y.double().numpy())
    assert abs(x.double().mean().item() - p) < 0.05
