"""Generators and random tensors: seeds, exact restore, ranges and distributions."""

import copy
import math
import pickle
import threading

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import framework as fw
from framework import random as fr
from framework.device import CPU, Device
from framework.errors import AutogradError
from framework.random import Generator, default_generator, manual_seed

DRAWS = {
    "rand": lambda g: fw.rand(3, generator=g),
    "rand16": lambda g: fw.rand(3, dtype=fw.float16, generator=g),
    "rand complex": lambda g: fw.rand(3, dtype=fw.complex64, generator=g),
    "randn": lambda g: fw.randn(3, dtype=fw.float64, generator=g),
    "randn complex": lambda g: fw.randn(2, dtype=fw.complex128, generator=g),
    "randint": lambda g: fw.randint(-5, 1000, (3,), generator=g),
    "randint8": lambda g: fw.randint(7, (5,), dtype=fw.uint8, generator=g),
    "randperm": lambda g: fw.randperm(7, generator=g),
    "rand_like": lambda g: fw.rand_like(fw.ones(2), generator=g),
    "randn_like": lambda g: fw.randn_like(fw.ones(2), generator=g),
    "randint_like": lambda g: fw.randint_like(fw.ones(2), 100, generator=g),
    "normal": lambda g: fw.normal(fw.zeros(3), 2.0, generator=g),
    "bernoulli": lambda g: fw.bernoulli(fw.full((9,), 0.5), generator=g),
    "multinomial": lambda g: fw.multinomial(fw.ones(5), 3, generator=g),
    "replacement": lambda g: fw.multinomial(fw.ones(5), 9, True, generator=g),
    "uniform_": lambda g: fw.zeros(3).uniform_(-1, 1, generator=g),
    "normal_": lambda g: fw.zeros(3).normal_(generator=g),
    "random_": lambda g: fw.zeros(3).random_(generator=g),
    "exponential_": lambda g: fw.zeros(3).exponential_(generator=g),
    "bernoulli_": lambda g: fw.zeros(9).bernoulli_(generator=g),
}


@settings(max_examples=60, deadline=None)
@given(before=st.lists(st.sampled_from(sorted(DRAWS)), max_size=6),
       after=st.lists(st.sampled_from(sorted(DRAWS)), min_size=1, max_size=6), seed=st.integers(-9, 9))
def test_a_state_restores_exactly(before, after, seed):
    g = Generator().manual_seed(seed)
    for name in before:
        DRAWS[name](g)
    state = g.get_state()
    first = [DRAWS[name](g).tolist() for name in after]
    others = [Generator().set_state(state), pickle.loads(pickle.dumps(Generator().set_state(state))),
              copy.deepcopy(Generator().set_state(state)), g.set_state(state)]
    for other in others:
        assert [DRAWS[name](other).tolist() for name in after] == first
    assert state.dtype is fw.uint8 and g.initial_seed() == seed % 2 ** 64


@pytest.mark.parametrize("name", sorted(DRAWS))
def test_a_given_generator_decides_alone(name):
    state = default_generator.get_state().tolist()
    runs = [DRAWS[name](Generator().manual_seed(s)).tolist() for s in (1, 1, 2, 3)]
    assert runs[0] == runs[1] and runs[1:] != [runs[0]] * 3
    assert default_generator.get_state().tolist() == state
    manual_seed(1)
    assert DRAWS[name](None).tolist() == runs[0]


def test_seeds():
    assert manual_seed(5) is default_generator and fr.initial_seed() == 5
    a = fw.rand(3).tolist()
    assert a == fw.rand(3, generator=Generator().manual_seed(5)).tolist()
    assert Generator().manual_seed(-1).initial_seed() == 2 ** 64 - 1
    assert manual_seed(np.int64(7)).initial_seed() == 7
    assert fr.seed() == fr.initial_seed() and fr.seed() != fr.seed()
    g = Generator()
    assert g.seed() == g.initial_seed() and g.device == CPU
    assert Generator().initial_seed() == Generator().initial_seed()
    for bad, error in ((1.5, TypeError), ("a", TypeError), (2 ** 64, ValueError), (-2 ** 63 - 1, ValueError)):
        with pytest.raises(error, match="seed"):
            manual_seed(bad)
    streams = [fw.rand(4, generator=fr.stream(5, i)).tolist() for i in range(3)]
    assert streams[0][:3] == a and len({tuple(s) for s in streams}) == 3


def test_clones_and_forks_run_apart():
    g = Generator().manual_seed(2)
    fw.rand(1, generator=g)
    h = g.clone()
    assert fw.rand(4, generator=g).tolist() == fw.rand(4, generator=h).tolist()
    state = fr.get_rng_state()
    with fr.fork_rng():
        inside = fw.rand(2).tolist()
    assert fw.rand(2).tolist() == inside
    fr.set_rng_state(state)
    assert fw.rand(2).tolist() == inside
    with pytest.raises(KeyError), fr.fork_rng():
        fw.rand(2)
        raise KeyError
    with fr.fork_rng(enabled=False):
        fw.rand(1)


def test_wrong_states_change_nothing():
    g = Generator().manual_seed(4)
    before = g.get_state()
    zeros = fw.zeros(before.numel(), dtype=fw.uint8)
    for bad, error in ((None, TypeError), (before.numpy(), TypeError), (before[:-1], ValueError),
                       (fw.zeros(before.numel()), ValueError), (zeros, ValueError)):
        with pytest.raises(error, match="set_state"):
            g.set_state(bad)
    for field in (12, 13, 14):
        words = before.numpy().copy().view("<u8")
        words[field] = 2 ** 40
        with pytest.raises(ValueError, match="set_state"):
            g.set_state(fw.from_numpy(words.view(np.uint8)))
    assert g.get_state().tolist() == before.tolist()
    with pytest.raises(TypeError, match="generator"):
        fw.rand(2, generator=3)


@pytest.mark.parametrize("dtype", [fw.float16, fw.float32, fw.float64])
def test_uniform_never_reaches_the_end(dtype):
    g = Generator().manual_seed(0)
    x = fw.rand(300_000, dtype=dtype, generator=g).numpy()
    assert x.dtype == dtype.numpy and x.min() >= 0 and x.max() < 1
    y = fw.zeros(300_000, dtype=dtype).uniform_(1.0, 1.01, generator=g).numpy()
    assert y.min() >= 1.0 and y.max() < dtype.numpy.type(1.01)
    assert (fw.zeros(300_000, dtype=fw.float32).exponential_(generator=g).numpy() > 0).all()


def test_distributions():
    """Means and variances within 5 standard errors."""
    g, n = Generator().manual_seed(1), 100_000
    for x, mean, var in (
            (fw.rand(n, generator=g), 0.5, 1 / 12), (fw.randn(n, generator=g), 0.0, 1.0),
            (fw.randn(n, dtype=fw.float16, generator=g), 0.0, 1.0),
            (fw.randint(-2, 3, (n,), generator=g), 0.0, 2.0),
            (fw.zeros(n).uniform_(2, 6, generator=g), 4.0, 16 / 12),
            (fw.zeros(n).normal_(3, 2, generator=g), 3.0, 4.0),
            (fw.zeros(n).exponential_(0.5, generator=g), 2.0, 4.0),
            (fw.zeros(n).bernoulli_(0.3, generator=g), 0.3, 0.21),
            (fw.bernoulli(fw.full((n,), 0.1), generator=g), 0.1, 0.09),
            (fw.normal(fw.full((n,), 5.0), 3.0, generator=g), 5.0, 9.0)):
        values = x.numpy().astype(np.float64)
        assert abs(values.mean() - mean) < 5 * math.sqrt(var / n)
        assert abs(values.var() / var - 1) < 0.05
    z = fw.randn(n, dtype=fw.complex64, generator=g).numpy()
    assert abs((np.abs(z) ** 2).mean() - 1) < 0.02 and abs(z.mean()) < 0.02


def test_multinomial_frequencies():
    g = Generator().manual_seed(2)
    weights = fw.tensor([1.0, 0.0, 2.0, 5.0])
    counts = np.bincount(fw.multinomial(weights, 80_000, True, generator=g).numpy(), minlength=4)
    assert counts[1] == 0 and np.allclose(counts / 80_000, [0.125, 0, 0.25, 0.625], atol=0.01)
    firsts = [fw.multinomial(weights, 3, generator=g).tolist() for _ in range(3000)]
    assert all(sorted(f) == [0, 2, 3] for f in firsts)
    assert abs(np.mean([f[0] == 3 for f in firsts]) - 0.625) < 0.05
    rows = fw.multinomial(fw.tensor([[1.0, 0.0], [0.0, 1.0]]), 2, True, generator=g)
    assert rows.tolist() == [[0, 0], [1, 1]]


def test_permutations_are_uniform():
    g = Generator().manual_seed(3)
    seen = [tuple(fw.randperm(3, generator=g).tolist()) for _ in range(6000)]
    counts = [seen.count(p) for p in set(seen)]
    assert len(counts) == 6 and min(counts) > 850 and max(counts) < 1150


def test_arguments():
    x = fw.rand(2, 3, dtype=fw.float64, device="cpu", requires_grad=True)
    assert x.requires_grad and x.dtype is fw.float64
    out = fw.zeros(3, dtype=fw.float64)
    assert fw.rand(3, out=out) is out and 0 < out.numpy().max() < 1
    assert fw.randn(()).shape == () and fw.rand([2, 2]).shape == (2, 2)
    assert fw.zeros(3, dtype=fw.bool).random_().dtype is fw.bool
    assert fw.zeros(5).uniform_(**{"from": 2, "to": 3}).numpy().min() >= 2
    with pytest.raises(TypeError, match="unexpected argument 'too'"):
        fw.zeros(5).uniform_(too=3)
    with pytest.raises(TypeError, match="no size"):
        fw.randint(3)
    with pytest.raises(TypeError, match="size"):
        fw.normal(0.0, 1.0)


def test_fills_follow_the_rules_of_in_place_changes():
    leaf = fw.zeros(2, requires_grad=True)
    for name in ("uniform_", "normal_", "random_", "exponential_", "bernoulli_"):
        state = default_generator.get_state().tolist()
        with pytest.raises(AutogradError, match=name):
            getattr(leaf, name)()
        assert default_generator.get_state().tolist() == state, "a rejected call must not draw"
        x = fw.zeros(4)
        half, version = x[:2], x._version
        assert getattr(half, name)() is half and x._version == version + 1
        assert x.tolist()[:2] == half.tolist() and x.tolist()[2:] == [0.0, 0.0]
    assert leaf.tolist() == [0.0, 0.0]
    with fw.no_grad():
        assert leaf.uniform_(2, 3).requires_grad
    w = fw.ones(2, requires_grad=True)
    y = w * w
    z = y * 3
    y.normal_()
    z.sum().backward()
    assert w.grad.tolist() == [6.0, 6.0]
    y = w * 1
    z = y * y
    y.normal_()
    with pytest.raises(AutogradError, match="normal_"):
        z.sum().backward()


def test_threads_share_a_generator():
    g = Generator().manual_seed(0)
    found, lock = [], threading.Lock()

    def work():
        mine = [fw.rand(100, dtype=fw.float64, generator=g).tolist() for _ in range(50)]
        with lock:
            found.extend(mine)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    again = Generator().manual_seed(0)
    expected = {tuple(fw.rand(100, dtype=fw.float64, generator=again).tolist()) for _ in range(200)}
    assert {tuple(f) for f in found} == expected


def test_generators_belong_to_a_device():
    assert repr(Generator().manual_seed(1)) == "<framework.Generator device=cpu seed=1>"
    with pytest.raises(Exception, match="cuda|cupy"):
        Generator(Device("cuda", 99))


def test_multinomial_takes_the_smallest_keys_in_order():
    """Only some of many keys are sorted; they are those, in the order, of a sort of all."""
    from framework.ops.random.draws import _without_replacement
    from framework.random import default_generator, uniform_array
    weights = np.random.default_rng(0).integers(0, 4, (5, 300)).astype(np.float64)
    for k in (2, 7, 60, 75, 120):
        fw.manual_seed(k)
        draw = uniform_array(weights.shape, np.dtype("f8"), fw.device("cpu"), default_generator, host=True)
        with np.errstate(all="ignore"):
            keys = np.where(weights == 0, np.inf, -np.log1p(-draw) / weights)
        fw.manual_seed(k)
        with np.errstate(divide="ignore", invalid="ignore"):
            found = _without_replacement(weights, k, fw.device("cpu"), None)
        assert np.array_equal(found, keys.argsort(axis=1, kind="stable")[:, :k])


@pytest.mark.parametrize("scale", [1.0, 1e-320, 1e305])
@pytest.mark.parametrize("k", [1, 400])
def test_multinomial_of_any_scale_follows_the_weights(scale, k):
    weights = fw.tensor([[0.0, 1.0, 3.0, 0.0], [5.0, 0.0, 0.0, 5.0]], dtype=fw.float64) * scale
    draws = fw.multinomial(weights.repeat(400 // k, 1), k, replacement=k > 1).reshape(-1, 2, k) if k == 1 \
        else fw.multinomial(weights, k, replacement=True).reshape(1, 2, k)
    for row, want in enumerate(([0.0, 0.25, 0.75, 0.0], [0.5, 0.0, 0.0, 0.5])):
        part = np.bincount(draws[:, row].reshape(-1).numpy(), minlength=4) / 400
        assert len(part) == 4 and np.abs(part - want).max() < 0.12
        assert all(p == 0 for p, w in zip(part, want) if w == 0)


@pytest.mark.parametrize("dtype", [fw.float16, fw.bfloat16])
def test_narrow_numbers_are_computed_in_float32_and_stay_below_their_bound(dtype):
    fw.manual_seed(3)
    u = fw.zeros(5000, dtype=dtype).uniform_(2.0, 3.0)
    assert u.dtype is dtype and (u >= 2).all() and (u < 3).all() and u.float().var().item() > 0.07
    mean, std = fw.full((5000,), 300.0, dtype=dtype), fw.full((5000,), 0.5, dtype=dtype)
    fw.manual_seed(4)
    drawn = fw.normal(mean, std)
    fw.manual_seed(4)
    assert drawn.dtype is dtype
    assert drawn.tolist() == (fw.randn(5000) * std.float() + mean.float()).to(dtype).tolist()
    fw.manual_seed(4)
    filled = fw.zeros(5000, dtype=dtype).normal_(300.0, 0.5)
    assert filled.tolist() == drawn.tolist()
