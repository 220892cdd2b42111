"""Numbers that kernels of GPUs draw each from a sequence of its own: their distributions, by fixed seeds, the
same in both orders of threads, in few launches without a wait; and what is told of parameters that are none.
"""

import numpy as np
import pytest
from test_cuda import cupy  # noqa: F401 - the fixture: CuPy, or its stand-in
from test_device_kernels import raw  # noqa: F401 - how the stand-in runs kernels

import framework as fw
from framework.ops.random.draws import angles_op

stats = pytest.importorskip("scipy.stats")
N = 20000


def like(value):
    return fw.full((N,), float(value), dtype=fw.float64, device="cuda")


def gamma(a):
    return lambda: fw._standard_gamma(like(a)), stats.gamma(a)


def poisson(rate):
    return lambda: fw.poisson(like(rate)), stats.poisson(rate)


def binomial(n, p):
    return lambda: fw.binomial(like(n), like(p)), stats.binom(n, p)


def parts(*a):
    """The laws are those of the columns."""
    def call():
        return fw._sample_dirichlet(fw.tensor(a, dtype=fw.float64, device="cuda").expand(N, len(a)))
    return call, *[stats.beta(one, sum(a) - one) for one in a]


def angle(k, law):
    return lambda: angles_op.run(like(k), generator=None), law


def whole(low, high):
    return lambda: fw.randint(low, high, (N,), device="cuda"), stats.randint(low, high)


WIDE = 3 << 61  # 64-bit words hold it twice and some: every third word is drawn again
CASES = {  # (a call, the distributions of its columns)
    **{f"gamma {a}": gamma(a) for a in (0.05, 0.5, 1, 3.7, 1000, 1e9)},
    **{f"poisson {r}": poisson(r) for r in (0.01, 1, 9.9, 10, 37, 1e4)},
    **{f"binomial {n} {p}": binomial(n, p) for n, p in (
        (1, 0.3), (20, 0.2), (20, 0.8), (100, 0.1), (100, 0.5), (1000, 0.999), (10000, 0.37), (1e9, 1e-9))},
    "parts of a row": parts(0.3, 2.0, 5.0),
    "poisson of many": (lambda: fw.poisson(like(1e17)), stats.norm(1e17, 1e17 ** 0.5)),
    "binomial of many": (lambda: fw.binomial(like(1e12), like(0.4)), stats.norm(4e11, 2.4e11 ** 0.5)),
    **{f"angle {k}": angle(k, stats.vonmises(k)) for k in (1e-6, 0.1, 1, 20)},
    "angle 0": angle(0, stats.uniform(-np.pi, 2 * np.pi)), "angle 1e8": angle(1e8, stats.norm(0, 1e-4)),
    "integers": whole(-3, 9), "two integers": whole(0, 2),
    "integers of a wide range": (lambda: fw.randint(0, WIDE, (N,), device="cuda").double(),
                                 stats.uniform(0, WIDE)),
    "integers of all": (lambda: fw.randint(-(1 << 63), (1 << 63) - 1, (N,), device="cuda").double(),
                        stats.uniform(-(2.0 ** 63), 2.0 ** 64)),
    "filled": (lambda: fw.empty(N, dtype=fw.int32, device="cuda").random_(7), stats.randint(0, 7)),
}


def moments(law):
    """Mean, standard deviation and excess of kurtosis; SciPy takes seconds for the last of angles."""
    if not isinstance(law.dist, type(stats.vonmises)):
        return law.mean(), law.std(), float(law.stats("k"))
    x = np.linspace(-np.pi, np.pi, 20001)
    weights = law.pdf(x) / law.pdf(x).sum()
    second, fourth = (x ** 2 * weights).sum(), (x ** 4 * weights).sum()
    return 0.0, second ** 0.5, fourth / second ** 2 - 3


def p_value(x, law):
    """How likely numbers so far from the distribution are: Kolmogorov and Smirnov's test, or Pearson's."""
    if hasattr(law.dist, "pdf"):
        return stats.kstest(x, law.cdf).pvalue
    values, counts = np.unique(x, return_counts=True)
    wanted = law.pmf(values) * len(x)
    often = wanted >= 8
    counts, wanted = (np.append(a[often], len(x) - a[often].sum()) for a in (counts, wanted))
    if wanted[-1] < 8:
        counts, wanted = (np.append(a[:-2], a[-2:].sum()) for a in (counts, wanted))
    return stats.chi2.sf(((counts - wanted) ** 2 / wanted).sum(), max(len(counts) - 1, 1))


@pytest.mark.parametrize("name", CASES)
def test_distribution(name, raw, cupy):  # noqa: F811
    """Mean, variance and shape; nobody waits, and nothing is copied."""
    from cupy import counts

    call, *laws = CASES[name]
    found = []
    for backward in (False, True):
        raw.settings.update(backward=backward, guarded=True)
        fw.manual_seed(12)
        call()  # the flag of the stream is made by the first one
        fw.manual_seed(12)
        counts.clear()
        x = call()
        assert not counts.waits, counts.waits
        found.append(x.cpu().numpy())
    assert found[0].tobytes() == found[1].tobytes()
    for x, law in zip(found[0].astype("d").reshape(N, -1).T, laws, strict=True):
        mean, spread, tail = moments(law)
        assert abs(x.mean() - mean) < 4.5 * spread / N ** 0.5
        # two more than the kurtosis' excess: the variance of a squared deviation, in squares of the variance
        assert abs(x.var() / spread ** 2 - 1) < 4.5 * (max(tail + 2, 0.1) / N) ** 0.5
        assert p_value(x, law) > 1e-3


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_narrow_numbers_are_those_of_doubles_rounded(dtype, raw, cupy):  # noqa: F811
    pytest.importorskip("ml_dtypes")
    narrow = getattr(fw, dtype)
    calls = fw._standard_gamma, fw._sample_dirichlet, fw.poisson, lambda x: fw.binomial(x.ceil(), x / 8)
    for call in calls:
        x = (fw.arange(1, 64, device="cuda") / 8).to(narrow)
        fw.manual_seed(3)
        got = call(x)
        fw.manual_seed(3)
        wide = call(x.double())
        if call in calls[:2]:
            wide = wide.clamp(min=fw.finfo(narrow).tiny)
        assert got.dtype is narrow and got.tolist() == wide.to(narrow).tolist()
    small = fw.full((1000,), 1e-3, dtype=narrow, device="cuda")
    least = fw._standard_gamma(small).min().item()
    assert least == fw.finfo(narrow).tiny and fw._sample_dirichlet(small).min().item() == least


def test_each_call_draws_others_and_generators_repeat_them(raw, cupy):  # noqa: F811
    g, x = fw.Generator("cuda").manual_seed(5), fw.full((50,), 3.0, device="cuda")
    calls = (lambda: fw._standard_gamma(x, generator=g), lambda: fw.poisson(x, generator=g),
             lambda: fw.binomial(x, x / 4, generator=g), lambda: fw._sample_dirichlet(x, generator=g),
             lambda: fw.randint(100, (50,), generator=g, device="cuda"),
             lambda: fw.randperm(50, generator=g, device="cuda"))
    state = g.get_state()
    first = [call().tolist() for call in calls for _ in range(2)]
    assert all(a != b for a, b in zip(first[::2], first[1::2]))
    g.set_state(state)
    assert [call().tolist() for call in calls for _ in range(2)] == first
    with pytest.raises(fw.errors.DeviceError, match="cannot fill a tensor on cuda"):
        fw.poisson(x, generator=fw.Generator())


def test_integers_in_every_dtype_and_at_the_ends_of_int64(raw, cupy):  # noqa: F811
    pytest.importorskip("ml_dtypes")
    for kind in (fw.bool, fw.uint8, fw.int8, fw.int16, fw.int32, fw.int64, fw.float16, fw.bfloat16,
                 fw.float32, fw.float64):
        x = fw.randint(0, 2, (3, 50), dtype=kind, device="cuda")
        assert x.dtype is kind and set(x.double().cpu().reshape(-1).tolist()) == {0.0, 1.0}
    for low, high in ((-(1 << 63), -(1 << 63) + 1), ((1 << 63) - 2, (1 << 63) - 1), (7, 8)):
        assert set(fw.randint(low, high, (40,), device="cuda").tolist()) == {low}
    assert fw.randint(5, (0, 3), device="cuda").shape == (0, 3)


@pytest.mark.parametrize("n", [0, 1, 2, 100, 5000])
def test_permutations(n, raw, cupy):  # noqa: F811
    from cupy import counts

    fw.manual_seed(2)
    counts.clear()
    x = fw.randperm(n, device="cuda")
    if n:
        assert not counts.waits and not counts.copies and counts.launches["integers"] == 1
    assert sorted(x.tolist()) == list(range(n)) and x.dtype is fw.int64
    if n == 100:
        assert fw.randperm(n, device="cuda", dtype=fw.int32).dtype is fw.int32


def test_all_orders_are_as_likely(raw, cupy):  # noqa: F811
    fw.manual_seed(4)
    seen = [tuple(fw.randperm(3, device="cuda").tolist()) for _ in range(600)]
    assert stats.chisquare([seen.count(o) for o in set(seen)]).pvalue > 1e-3 and len(set(seen)) == 6


@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_parameters_that_are_none_are_told(device, raw, cupy):  # noqa: F811
    x = fw.tensor([1.0, -2.0], device=device)
    nan = float("nan")
    for call, text in (
        (lambda: fw.poisson(x), "poisson: input must not be below 0, found -2"),
        (lambda: fw.poisson(x * nan), "poisson: input must not be below 0, found nan"),
        (lambda: fw.poisson(x.abs() * 1e19), "poisson: input must not be above 9.2e.18, found 1e.19"),
        (lambda: fw._standard_gamma(x), "_standard_gamma: input must be above 0 everywhere, found -2"),
        (lambda: fw._sample_dirichlet(x * nan), "_sample_dirichlet: input must be above 0 .* found nan"),
        (lambda: fw.binomial(x, x.abs() / 4), "binomial: count must be whole numbers >= 0, found -2"),
        (lambda: fw.binomial(x.abs() / 3, x.abs() / 4),
         "binomial: count must be whole numbers >= 0, found 0.333"),
        (lambda: fw.binomial(x / 0, x.abs() / 4), "binomial: count must be whole numbers >= 0, found -?inf"),
        (lambda: fw.binomial(x.abs(), x), r"binomial: prob must be in \[0, 1\], found -2"),
        (lambda: angles_op.run(x, generator=None), "von_mises: concentrations must not be below 0, found -2"),
    ):
        with pytest.raises(ValueError, match=text + (".*found on cuda:0" if device == "cuda" else "")):
            call()
            fw.cuda.synchronize()
    fw.cuda.synchronize()  # told once


def test_a_graph_draws_anew_at_each_replay(raw, cupy):  # noqa: F811
    from cupy import streams

    fw.cuda.graph.default_capture_stream = None  # that of an earlier test may be gone
    x, graph = fw.full((40,), 5.0, device="cuda"), fw.cuda.CUDAGraph()
    calls = (lambda: fw._standard_gamma(x), lambda: fw.randint(1000, (40,), device="cuda"))
    [call() for call in calls]
    try:
        with fw.cuda.graph(graph):
            drawn = [call() for call in calls]
        seen = []
        for _ in range(2):
            graph.replay()
            seen.append([y.tolist() for y in drawn])
        assert all(a != b for a, b in zip(*seen))
    finally:
        fw.cuda.graph.default_capture_stream = None
        streams.clear()


def test_gradients_and_batches(raw, cupy):  # noqa: F811
    """What distributions ask of them."""
    a = fw.full((4, 3), 2.0, device="cuda", requires_grad=True)
    fw._standard_gamma(a).sum().backward()
    assert a.grad is not None and bool((a.grad > 0).all())
    b = fw.distributions.Beta(a.detach(), a.detach() * 2).rsample()
    assert b.is_cuda and bool(((b > 0) & (b < 1)).all())
    mapped = fw.vmap(fw.poisson, randomness="different")(a.detach() * 20)
    assert mapped.is_cuda and len(set(mapped.reshape(-1).tolist())) > 3
