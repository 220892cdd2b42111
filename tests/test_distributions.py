"""Distributions against SciPy and PyTorch, samples against distribution functions, gradients of samples."""

import inspect
import warnings

import numpy as np
import pytest
from distribution_rows import ROWS

import framework as fw

D = fw.distributions
IDS = [r.id for r in ROWS]
NEVER_BUILT = {"Distribution", "ExponentialFamily"}  # bases
ROWS_ELSEWHERE = {"Independent", "TransformedDistribution", "MixtureSameFamily"}  # have tests of their own
each_row = pytest.mark.parametrize("row", ROWS, ids=IDS)


def classes():
    found = {n: c for n, c in vars(D).items() if inspect.isclass(c) and issubclass(c, D.Distribution)}
    return {n: c for n, c in found.items() if n not in NEVER_BUILT}


def tensors(parameters, grad=False):
    """Tensors of float64 for arrays, numbers as they are."""
    made = {n: fw.tensor(v) if isinstance(v, np.ndarray) else v for n, v in parameters.items()}
    if grad:
        for v in made.values():
            if isinstance(v, fw.Tensor) and v.is_floating_point():
                v.requires_grad_()
    return made


def build(row, **settings):
    return getattr(D, row.name)(**tensors(row.parameters), **settings)


def build_torch(row, grad=False):
    torch = pytest.importorskip("torch")
    made = {n: torch.tensor(v, requires_grad=grad and v.dtype.kind == "f") if isinstance(v, np.ndarray) else v
            for n, v in row.parameters.items()}
    return getattr(torch.distributions, row.name)(**made), made


def close(got, want, rtol=1e-7, atol=1e-10):
    got = got.detach().numpy() if isinstance(got, fw.Tensor) else got
    want = want.detach().numpy() if hasattr(want, "detach") else np.asarray(want)
    assert got.shape == want.shape, f"shape {got.shape}, wanted {want.shape}"
    np.testing.assert_allclose(got, want, rtol=rtol, atol=atol)


def test_every_distribution_has_a_row():
    missing = set(classes()) - {r.name for r in ROWS} - ROWS_ELSEWHERE
    assert not missing, f"tests/distribution_rows.py lacks {sorted(missing)}"


@each_row
def test_against_scipy(row):
    stats = pytest.importorskip("scipy.stats")
    if row.scipy is None:
        pytest.skip("SciPy has no such distribution")
    ours, theirs = build(row), row.scipy(stats, **row.parameters)
    value = fw.tensor(row.value)
    close(ours.log_prob(value), theirs.logpmf(row.value) if row.discrete else theirs.logpdf(row.value), 1e-6)
    for name, moment in (("mean", theirs.mean), ("variance", theirs.var), ("stddev", theirs.std)):
        want = np.broadcast_to(moment(), ours.batch_shape)
        if np.isfinite(want).all():  # where there is none, SciPy and PyTorch differ in saying inf or nan
            close(getattr(ours, name), want, 1e-6)
    try:
        entropy = ours.entropy()
    except NotImplementedError:
        entropy = None
    if entropy is not None:
        close(entropy, np.broadcast_to(theirs.entropy(), ours.batch_shape), 1e-5)
    try:
        ours.cdf(value)
    except NotImplementedError:
        return
    close(ours.cdf(value), theirs.cdf(row.value), 1e-6)


@each_row
def test_against_torch(row):
    if row.name == "GeneralizedPareto":
        pytest.skip("PyTorch's refuses float64; SciPy's is compared above")
    theirs, given = build_torch(row, grad=True)
    torch = pytest.importorskip("torch")
    made = tensors(row.parameters, grad=True)
    ours = getattr(D, row.name)(**made)
    assert ours.batch_shape == tuple(theirs.batch_shape) and ours.event_shape == tuple(theirs.event_shape)
    value = fw.tensor(row.value)
    got, want = ours.log_prob(value), theirs.log_prob(torch.tensor(row.value))
    close(got, want, 1e-6)
    got.sum().backward()
    want.sum().backward()
    for name, parameter in made.items():
        if isinstance(parameter, fw.Tensor) and given[name].grad is not None:
            close(parameter.grad, given[name].grad, 1e-5, 1e-8)
    for name in ("mean", "mode", "variance", "stddev"):
        if (row.name, name) == ("Kumaraswamy", "mode"):  # nan there for a concentration0 above 1
            continue
        try:
            want = getattr(theirs, name)
        except NotImplementedError:
            continue
        close(getattr(ours, name), want, 1e-6)
    for name in ("entropy", "perplexity"):
        try:
            want = getattr(theirs, name)()
        except NotImplementedError:
            continue
        close(getattr(ours, name)(), want, 1e-5)
    try:
        want = theirs.cdf(torch.tensor(row.value))
    except NotImplementedError:
        want = None
    if want is not None:
        if row.name in ("Gamma", "Chi2", "InverseGamma"):
            ours = build(row)
        got = ours.cdf(value)
        close(got, want, 1e-5, 1e-9)
        try:
            back = theirs.icdf(want)
        except NotImplementedError:
            back = None
        if back is not None:
            close(ours.icdf(fw.tensor(want.detach().numpy())), back, 1e-5)
    assert ours.has_rsample == theirs.has_rsample
    assert ours.has_enumerate_support == theirs.has_enumerate_support
    assert ours.support.event_dim == theirs.support.event_dim
    assert ours.support.is_discrete == theirs.support.is_discrete
    assert bool(ours.support.check(value).all())
    if theirs.has_enumerate_support:
        for expand in (True, False):
            close(ours.enumerate_support(expand), theirs.enumerate_support(expand))


@each_row
def test_shapes(row):
    ours = build(row)
    batch, event = ours.batch_shape, ours.event_shape
    fw.manual_seed(0)
    assert ours.sample().shape == (*batch, *event)
    sample = ours.sample((2, 3))
    assert sample.shape == (2, 3, *batch, *event) and not sample.requires_grad
    assert ours.sample((0,)).shape == (0, *batch, *event)
    assert bool(ours.support.check(sample).all())
    assert ours.log_prob(sample).shape == (2, 3, *batch)
    wide = ours.expand((4, *batch))
    assert wide.batch_shape == (4, *batch) and wide.event_shape == event and type(wide) is type(ours)
    assert wide.sample((2,)).shape == (2, 4, *batch, *event)
    once = ours.sample()
    close(wide.log_prob(once)[0], ours.log_prob(once).numpy(), 1e-6)
    if ours.has_rsample:
        assert ours.rsample((2,)).shape == (2, *batch, *event)
    assert type(ours).__name__ in repr(ours)
    single = {n: np.asarray(v, np.float32) if isinstance(v, np.ndarray) and v.dtype.kind == "f" else v
              for n, v in row.parameters.items()}
    narrow = getattr(D, row.name)(**tensors(single))
    drawn = narrow.sample((5,))
    assert drawn.dtype in (fw.float32, fw.int64)
    assert bool(fw.isfinite(narrow.log_prob(drawn)).all())


@each_row
def test_sampling(row):
    """Kolmogorov-Smirnov for one-dimensional laws with a distribution function, moments for the others."""
    stats = pytest.importorskip("scipy.stats")
    ours = build(row)
    fw.manual_seed(11)
    sample = ours.sample((4000,)).double()
    if ours.has_enumerate_support:
        values = ours.enumerate_support().double()
        chance = ours.log_prob(ours.enumerate_support()).exp()
        dims = tuple(range(-len(ours.event_shape), 0))
        for value, p in zip(values, chance):
            hit = sample == value
            hit = hit.all(dims) if dims else hit
            count = hit.double().sum(0)
            spread = (4000 * p * (1 - p)).sqrt()
            assert bool(((count - 4000 * p).abs() <= 4.5 * spread + 1e-9).all())
        return
    if row.scipy is not None and not row.discrete:
        theirs = row.scipy(stats, **row.parameters)
        u = theirs.cdf(sample.numpy())
        for column in u.reshape(4000, -1).T:
            assert stats.kstest(column, "uniform").pvalue > 1e-3
        return
    if row.name == "LKJCholesky":  # the marginals are known; PyTorch's samples do not have them
        n, eta = row.parameters["dim"], row.parameters["concentration"]
        matrix = (sample @ sample.mT).numpy()
        for i, j in zip(*np.tril_indices(n, -1)):
            for k, a in enumerate(eta + n / 2 - 1):
                assert stats.kstest((matrix[:, k, i, j] + 1) / 2, stats.beta(a, a).cdf).pvalue > 1e-3
        return
    if row.discrete is False:
        torch = pytest.importorskip("torch")
        torch.manual_seed(5)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of PyTorch's, on singular samples of Wishart
            other = build_torch(row)[0].sample((4000,)).double().numpy()
        for mine, column in zip(sample.numpy().reshape(4000, -1).T, other.reshape(4000, -1).T):
            if np.ptp(column) > 1e-6:  # not the zeros of a triangular matrix
                assert stats.ks_2samp(mine, column).pvalue > 1e-3
        return
    mean, variance = ours.mean.double(), ours.variance.double()
    slack = 5 * (variance / 4000).sqrt()
    inside = (sample.mean(0) - mean).abs() <= slack + 1e-6
    assert bool((inside | ~fw.isfinite(slack)).all()), (sample.mean(0), mean)


def test_arguments_are_checked():
    with pytest.raises(ValueError, match="parameter scale"):
        D.Normal(0.0, -1.0)
    D.Normal(0.0, -1.0, validate_args=False)
    with pytest.raises(ValueError, match="low"):
        D.Uniform(1.0, 0.0)
    with pytest.raises(ValueError, match="support"):
        D.Gamma(1.0, 1.0).log_prob(fw.tensor(-1.0))
    with pytest.raises(ValueError, match="broadcast"):
        D.Normal(fw.zeros(3), 1.0).log_prob(fw.zeros(2))
    with pytest.raises(ValueError, match="must be a Tensor"):
        D.Normal(0.0, 1.0).log_prob(0.0)
    with pytest.raises(ValueError, match="exactly one"):
        D.Bernoulli()
    with pytest.raises(ValueError, match="exactly one"):
        D.Categorical(probs=fw.ones(2), logits=fw.ones(2))
    with pytest.raises(ValueError, match="numbers or Tensors"):
        D.Normal([0.0], 1.0)
    with pytest.raises(NotImplementedError, match="rsample"):
        D.Bernoulli(0.5).rsample()
    with pytest.raises(TypeError, match="write"):
        D.Normal(0.0, 1.0).sample(3)
    D.Distribution.set_default_validate_args(False)
    try:
        D.Normal(0.0, -1.0)
    finally:
        D.Distribution.set_default_validate_args(True)
    with pytest.raises(ValueError):
        D.Distribution.set_default_validate_args(None)
    with pytest.warns(FutureWarning):
        assert D.Normal(0.0, 1.0).sample_n(2).shape == (2,)


def test_zero_size_batches():
    for d in (D.Normal(fw.zeros(0), 1.0), D.Gamma(fw.ones(0, 2), 1.0), D.Bernoulli(fw.zeros(0)),
              D.Categorical(fw.ones(0, 3)), D.Uniform(fw.zeros(0), 1.0)):
        assert d.log_prob(d.sample((3,))).shape == (3, *d.batch_shape)


def test_pathwise_gradients_of_gamma():
    """A sample moves with its quantile: du/da of the distribution function at the moving sample is 0."""
    special = pytest.importorskip("scipy.special")
    a = fw.tensor([0.05, 0.7, 3.0, 50.0, 2000.0, 3e5], dtype=fw.float64, requires_grad=True)
    fw.manual_seed(3)
    z = D.Gamma(a, 2.0).rsample()
    z.sum().backward()
    u, step = special.gammainc(a.tolist(), 2 * z.detach().numpy()), np.array(a.tolist()) * 1e-5
    numeric = (special.gammaincinv(a.tolist() + step, u) - special.gammaincinv(a.tolist() - step,
                                                                               u)) / (4 * step)
    close(a.grad, numeric, 1e-5, 1e-12)


def test_a_lazy_parameter_read_without_recording_can_still_be_differentiated():
    logits = fw.tensor([0.3], requires_grad=True)
    d = D.Bernoulli(logits=logits)
    with fw.no_grad():
        d.sample()
    d.probs.sum().backward()
    assert logits.grad is not None


def test_independent():
    base = D.Normal(fw.zeros(2, 3), fw.ones(2, 3))
    d = D.Independent(base, 1)
    assert (d.batch_shape, d.event_shape) == ((2,), (3,))
    x = d.rsample((4,))
    close(d.log_prob(x), base.log_prob(x).sum(-1).numpy())
    assert d.entropy().shape == (2,) and d.expand((5, 2)).sample().shape == (5, 2, 3)
    assert d.support.event_dim == 1 and d.has_rsample and not d.has_enumerate_support
    with pytest.raises(ValueError, match="reinterpreted_batch_ndims"):
        D.Independent(base, 3)
    with pytest.raises(NotImplementedError):
        D.Independent(D.Bernoulli(fw.ones(2)), 1).enumerate_support()


# -- divergences -----------------------------------------------------------------------------------

UNIT = {"Uniform": {"low": 0.1, "high": 0.9}, "Pareto": {"scale": 0.05, "alpha": 3.0}}
PAIRED = {
    "Bernoulli": {"probs": 0.3}, "Beta": {"concentration1": 1.5, "concentration0": 2.5},
    "Binomial": {"total_count": 4, "probs": 0.3}, "Cauchy": {"loc": 0.3, "scale": 1.2},
    "ContinuousBernoulli": {"probs": 0.3}, "Exponential": {"rate": 1.7},
    "Gamma": {"concentration": 2.5, "rate": 1.5}, "Gumbel": {"loc": 0.2, "scale": 1.4},
    "Geometric": {"probs": 0.4}, "HalfNormal": {"scale": 1.3}, "Laplace": {"loc": 0.1, "scale": 1.2},
    "Normal": {"loc": 0.4, "scale": 1.1}, "Poisson": {"rate": 2.0}, **UNIT}
SECOND = {"Pareto": {"scale": 0.04, "alpha": 2.0}, "Uniform": {"low": -0.2, "high": 1.3}}


def pair_of(library, p, q, make):
    first, second = dict(PAIRED[p]), dict(SECOND.get(q, PAIRED[q]))
    if p == q and q not in SECOND:
        second = {n: v if n == "total_count" else v * 1.3 for n, v in second.items()}
    if p == "Pareto":
        first["alpha"] = 4.0
    pairs = ((p, first), (q, second))
    return [getattr(library, n)(**{k: make(v) for k, v in values.items()}) for n, values in pairs]


def test_divergences_are_those_of_torch():
    torch = pytest.importorskip("torch")
    from torch.distributions.kl import _KL_REGISTRY

    def both(M):
        return lambda v: M.tensor(float(v), dtype=M.float64)
    lacking, compared = [], 0
    for p, q in sorted((a.__name__, b.__name__) for a, b in _KL_REGISTRY):
        if p not in PAIRED or q not in PAIRED:
            continue
        ours, theirs = pair_of(D, p, q, both(fw)), pair_of(torch.distributions, p, q, both(torch))
        try:
            got = D.kl_divergence(*ours)
        except NotImplementedError:
            lacking.append((p, q))
            continue
        close(got, torch.distributions.kl_divergence(*theirs), 1e-9)
        compared += 1
    assert not lacking and compared >= 75


def test_divergences_are_the_mean_of_the_logarithm():
    fw.manual_seed(0)
    make = lambda v: fw.tensor(float(v), dtype=fw.float64)
    for p, q in (("Normal", "Laplace"), ("Uniform", "Beta"), ("Gamma", "Gumbel"), ("Beta", "Gamma"),
                 ("Pareto", "Exponential"), ("Cauchy", "Cauchy"), ("Gumbel", "Gumbel")):
        first, second = pair_of(D, p, q, make)
        if (p, q) == ("Uniform", "Beta"):
            second = D.Beta(make(2.0), make(1.5))
        x = first.sample((40000,))
        ratio = first.log_prob(x) - second.log_prob(x)
        slack = 5 * ratio.std().item() / 200
        assert abs(ratio.mean().item() - D.kl_divergence(first, second).item()) < slack, (p, q)
    eye = fw.eye(3, dtype=fw.float64)  # PyTorch's number for this pair is another
    first, second = D.Wishart(make(4.5), eye + 0.2), D.Wishart(make(6.0), 2 * eye)
    x = first.sample((20000,))
    ratio = first.log_prob(x) - second.log_prob(x)
    slack = 5 * ratio.std().item() / 140
    assert abs(ratio.mean().item() - D.kl_divergence(first, second).item()) < slack


def test_divergences_of_vectors():
    torch = pytest.importorskip("torch")
    rng = np.random.default_rng(0)
    loc = rng.normal(size=(2, 3))
    root = np.tril(rng.normal(size=(2, 3, 3))) * 0.3 + np.eye(3)
    factor, diagonal = rng.normal(size=(3, 2)), rng.random(3) + 0.5
    simplex = rng.random((2, 4)) + 0.1
    more, factors = simplex[::-1] + 1, np.stack([factor, factor + 1])

    def made(M, T):
        t = lambda a: T(np.asarray(a))
        return {"full": M.MultivariateNormal(t(loc), scale_tril=t(root)),
                "other": M.MultivariateNormal(t(loc[0]), scale_tril=t(root[1] + np.eye(3))),
                "low": M.LowRankMultivariateNormal(t(loc), t(factor), t(diagonal)),
                "low2": M.LowRankMultivariateNormal(t(loc[::-1].copy()), t(factors), t(diagonal)),
                "dirichlet": M.Dirichlet(t(simplex)), "dirichlet2": M.Dirichlet(t(more)),
                "onehot": M.OneHotCategorical(t(simplex)), "onehot2": M.OneHotCategorical(t(more)),
                "classes": M.Categorical(t(simplex)), "classes2": M.Categorical(t(more)),
                "several": M.Independent(M.Normal(t(loc), t(np.ones_like(loc))), 1),
                "several2": M.Independent(M.Normal(t(loc + 1), t(np.ones_like(loc))), 1),
                "lognormal": M.LogNormal(t(loc), t(np.exp(loc))),
                "lognormal2": M.LogNormal(t(loc + 1), t(loc * 0 + 2))}
    ours, theirs = made(D, fw.tensor), made(torch.distributions, torch.tensor)
    for p, q in (("full", "other"), ("other", "full"), ("full", "low"), ("low", "full"), ("low", "low2"),
                 ("low2", "other"), ("dirichlet", "dirichlet2"), ("onehot", "onehot2"), ("classes",
                                                                                         "classes2"),
                 ("several", "several2"), ("lognormal", "lognormal2")):
        want = torch.distributions.kl_divergence(theirs[p], theirs[q])
        close(D.kl_divergence(ours[p], ours[q]), want, 1e-8)


def test_the_closest_formula_is_taken():
    class Own(D.Normal):
        pass

    assert D.kl_divergence(Own(0.0, 1.0), D.Normal(1.0, 1.0)).item() == pytest.approx(0.5)
    D.register_kl(Own, D.Normal)(lambda p, q: fw.tensor(7.0))
    assert D.kl_divergence(Own(0.0, 1.0), D.Normal(1.0, 1.0)).item() == 7
    with pytest.raises(NotImplementedError, match="register_kl"):
        D.kl_divergence(D.Normal(0.0, 1.0), D.StudentT(1.0))
    with pytest.raises(NotImplementedError, match="register_kl"):
        D.kl_divergence(D.Bernoulli(0.5), D.Normal(0.0, 1.0))
    with pytest.raises(TypeError, match="register_kl"):
        D.register_kl(int, D.Normal)


def test_entropies_of_exponential_families_follow_from_their_normalizers():
    for name in ("Normal", "Bernoulli", "Gamma", "Exponential", "ContinuousBernoulli"):
        d = getattr(D, name)(**{n: fw.tensor([v, 2 * v], dtype=fw.float64) for n, v in PAIRED[name].items()})
        close(D.ExponentialFamily.entropy(d), d.entropy(), 1e-9)
    with pytest.raises(NotImplementedError, match="entropy"):
        D.Poisson(1.0).entropy()


# -- gradients of samples --------------------------------------------------------------------------


@each_row
def test_gradients_of_samples_are_those_of_expectations(row):
    """E[f(x)] for a smooth f: its gradient by samples against a difference of the same samples' score."""
    ours = build(row)
    if not ours.has_rsample or row.name in ("OneHotCategoricalStraightThrough", "Uniform", "Pareto",
                                            "GeneralizedPareto"):
        pytest.skip("no gradient of its own, or a support that moves, which the score does not see")
    made = tensors(row.parameters, grad=True)
    d = getattr(D, row.name)(**made)
    fw.manual_seed(7)
    n = 6000

    def f(x):
        dims = tuple(range(-len(d.event_shape), 0))
        return (x.sigmoid() * fw.arange(1.0, 1 + x.shape[-1])).sum(dims) if dims else x.sigmoid()

    wanted = {k: v for k, v in made.items() if isinstance(v, fw.Tensor) and k != "temperature"}
    x = d.rsample((n,))
    path = fw.autograd.grad(f(x).mean(0).sum(), list(wanted.values()), retain_graph=True)
    x = x.detach()
    values = f(x)
    score = fw.autograd.grad(((values - values.mean(0)) * d.log_prob(x)).mean(0).sum(), list(wanted.values()))
    for name, a, b in zip(wanted, path, score):
        a, b = a.numpy(), b.numpy()
        if name in ("covariance_matrix", "precision_matrix"):  # the two differ by what is not symmetric
            a, b = a + a.swapaxes(-1, -2), b + b.swapaxes(-1, -2)
        slack = 0.12 * np.abs(b).max() + 0.03
        assert np.abs(a - b).max() < slack, (name, a, b)


# -- built from others -----------------------------------------------------------------------------


def test_mixtures():
    torch = pytest.importorskip("torch")

    def made(M, T):
        t = lambda *a: T.tensor(a, dtype=T.float64)
        single = M.MixtureSameFamily(M.Categorical(t(0.2, 0.8)), M.Normal(t(-1.0, 2.0), t(0.5, 1.0)))
        rows = M.Independent(M.Normal(t(*range(12)).reshape(2, 3, 2), t(*[1.0] * 12).reshape(2, 3, 2)), 1)
        return single, M.MixtureSameFamily(M.Categorical(t(*[1.0, 2.0, 3.0] * 2).reshape(2, 3)), rows)
    ours, theirs = made(D, fw), made(torch.distributions, torch)
    x = np.linspace(-2, 3, 7)
    close(ours[0].log_prob(fw.tensor(x)), theirs[0].log_prob(torch.tensor(x)))
    close(ours[0].cdf(fw.tensor(x)), theirs[0].cdf(torch.tensor(x)))
    for a, b in zip(ours, theirs):
        close(a.mean, b.mean)
        close(a.variance, b.variance)
        assert (a.batch_shape, a.event_shape) == (tuple(b.batch_shape), tuple(b.event_shape))
        fw.manual_seed(1)
        sample = a.sample((5000,))
        slack = 5 * (a.variance / 5000).sqrt()
        assert bool(((sample.mean(0) - a.mean).abs() < slack).all())
        assert a.log_prob(sample).shape == (5000, *a.batch_shape)
        assert a.expand((3, *a.batch_shape)).sample().shape == (3, *a.batch_shape, *a.event_shape)
    with pytest.raises(ValueError, match="Categorical"):
        D.MixtureSameFamily(D.Normal(0.0, 1.0), D.Normal(0.0, 1.0))
    with pytest.raises(ValueError, match="batch shape"):
        D.MixtureSameFamily(D.Categorical(fw.ones(2)), D.Normal(fw.zeros(3), 1.0))


REAL = np.array([-1.5, 0.2, 0.9])
TRANSFORMS = [
    ("ExpTransform", {}, REAL), ("SigmoidTransform", {}, REAL), ("TanhTransform", {}, REAL),
    ("SoftplusTransform", {}, REAL), ("AbsTransform", {}, np.abs(REAL)),
    ("AffineTransform", {"loc": 1.0, "scale": -2.0}, REAL),
    ("AffineTransform", {"loc": 1.0, "scale": 2.0, "event_dim": 1}, REAL),
    ("PowerTransform", {"exponent": 2.5}, np.abs(REAL)), ("SoftmaxTransform", {}, np.log([0.2, 0.3, 0.5])),
    ("StickBreakingTransform", {}, REAL), ("CorrCholeskyTransform", {}, REAL),
    ("LowerCholeskyTransform", {}, np.tril(np.arange(9.0).reshape(3, 3) / 9)),
    ("PositiveDefiniteTransform", {}, np.tril(np.arange(9.0).reshape(3, 3) / 9)),
    ("ReshapeTransform", {"in_shape": (3,), "out_shape": (3, 1)}, REAL)]


@pytest.mark.parametrize("name, settings, x", TRANSFORMS, ids=[f"{t[0]}{t[1]}" for t in TRANSFORMS])
def test_transforms(name, settings, x):
    """There and back, the Jacobian against a numerical one, all of it against torch."""
    torch = pytest.importorskip("torch")
    given = {n: fw.tensor(v, dtype=fw.float64) if n == "exponent" else v for n, v in settings.items()}
    t = getattr(D, name)(**given)
    given = {n: torch.tensor(v, dtype=torch.float64) if n == "exponent" else v for n, v in settings.items()}
    other = getattr(torch.distributions, name)(**given)
    before = fw.tensor(x)
    y = t(before)
    close(y, other(torch.tensor(x)), 1e-9)
    close(t.inv(y), other.inv(other(torch.tensor(x))), 1e-6)
    close(t.inv(y), x, 1e-6)
    assert tuple(t.forward_shape(x.shape)) == y.shape and tuple(t.inverse_shape(y.shape)) == x.shape
    assert t.inv.inv is t and bool(t.bijective) == bool(other.bijective)
    assert t.domain.event_dim == other.domain.event_dim and t.codomain.event_dim == other.codomain.event_dim
    assert bool(t.codomain.check(y).all()) and bool(t.domain.check(before).all())
    again = {n: fw.tensor(v, dtype=fw.float64) if n == "exponent" else v for n, v in settings.items()}
    assert name == "ReshapeTransform" or t == getattr(D, name)(**again)
    if t.bijective:
        close(t.log_abs_det_jacobian(before, y),
              other.log_abs_det_jacobian(torch.tensor(x), other(torch.tensor(x))), 1e-8)
        close(t.inv.log_abs_det_jacobian(y, before), -t.log_abs_det_jacobian(before, y).numpy())
    cached = t.with_cache()
    image = cached(before)
    assert cached.inv(image) is before and cached.inv(image.clone()) is not before


def test_joined_transforms():
    x = fw.tensor([[0.1, 0.2, 0.3], [1.0, 2.0, 3.0]], dtype=fw.float64)
    both = D.ComposeTransform([D.ExpTransform(), D.AffineTransform(1.0, 2.0), D.PowerTransform(2.0)])
    close(both(x), (1 + 2 * x.exp()).square().numpy())
    close(both.inv(both(x)), x.numpy())
    step = 1e-6
    slope = ((both(x + step) - both(x - step)) / (2 * step)).log()
    close(both.log_abs_det_jacobian(x, both(x)), slope.numpy(), 1e-6)
    cat = D.CatTransform([D.ExpTransform(), D.identity_transform], dim=-1, lengths=[1, 2])
    close(cat(x), fw.cat([x[:, :1].exp(), x[:, 1:]], -1).numpy())
    close(cat.inv(cat(x)), x.numpy())
    close(cat.log_abs_det_jacobian(x, cat(x)), fw.cat([x[:, :1], 0 * x[:, 1:]], -1).numpy())
    stack = D.StackTransform([D.ExpTransform(), D.identity_transform], dim=0)
    close(stack(x), fw.stack([x[0].exp(), x[1]]).numpy())
    close(stack.log_abs_det_jacobian(x, stack(x)), fw.stack([x[0], 0 * x[1]]).numpy())
    several = D.IndependentTransform(D.ExpTransform(), 1)
    close(several.log_abs_det_jacobian(x, several(x)), x.sum(-1).numpy())
    assert D.ComposeTransform([D.StickBreakingTransform()]).domain.event_dim == 1
    d = D.TransformedDistribution(D.Normal(fw.zeros(2), 1.0), [D.ExpTransform(), D.StickBreakingTransform()])
    assert (d.batch_shape, d.event_shape) == ((), (3,)) and d.log_prob(d.sample((4,))).shape == (4,)
    with pytest.raises(ValueError, match="transforms"):
        D.TransformedDistribution(D.Normal(0.0, 1.0), [3])
    cdf = D.CumulativeDistributionTransform(D.Normal(0.0, 1.0))
    close(cdf.inv(cdf(x)), x.numpy(), 1e-6)


def test_registries_lead_into_their_regions():
    c = D.constraints
    regions = [c.real, c.positive, c.nonnegative, c.greater_than(2.0), c.greater_than_eq(-1.0),
               c.less_than(3.0),
               c.interval(-2.0, 5.0), c.half_open_interval(0.0, 2.0), c.unit_interval, c.simplex,
               c.lower_cholesky, c.positive_definite, c.positive_semidefinite, c.independent(c.positive, 1),
               c.real_vector, c.stack([c.positive, c.real, c.unit_interval], dim=-1),
               c.cat([c.positive, c.real], dim=-1, lengths=[1, 2])]
    fw.manual_seed(0)
    for region in regions:
        for registry in (D.biject_to, D.transform_to):
            t = registry(region)
            x = fw.randn(4, 3, 3, dtype=fw.float64)
            assert bool(region.check(t(x)).all()), (region, registry)
            close(t(t.inv(t(x))), t(x).numpy(), 1e-6)
    x = fw.randn(4, 6, dtype=fw.float64)
    assert bool(c.corr_cholesky.check(D.biject_to(c.corr_cholesky)(x)).all())
    with pytest.raises(NotImplementedError, match="register"):
        D.biject_to(c.boolean)
    with pytest.raises(TypeError, match="Constraint"):
        D.biject_to.register(int, lambda region: None)


def test_constraints():
    c, t = D.constraints, fw.tensor
    assert c.boolean.check(t([0.0, 1.0, 2.0])).tolist() == [True, True, False]
    assert c.integer_interval(0, 2).check(t([0.5, 2.0, 3.0])).tolist() == [False, True, False]
    assert c.positive_integer.check(t([0.0, 2.0])).tolist() == [False, True]
    assert c.real.check(t([0.0, float("nan")])).tolist() == [True, False]
    assert c.one_hot.check(t([[0.0, 1.0], [1.0, 1.0]])).tolist() == [True, False]
    assert c.lower_triangular.check(t([[1.0, 1.0], [0.0, 1.0]])).item() is False
    assert c.square.check(fw.zeros(2, 3, 3)).tolist() == [True, True]
    assert c.symmetric.check(t([[1.0, 2.0], [2.0, 1.0]])).item() is True
    assert c.positive_definite.check(t([[1.0, 2.0], [2.0, 1.0]])).item() is False
    assert c.positive_semidefinite.check(fw.zeros(2, 2)).item() is True
    assert c.multinomial(3).check(t([1.0, 3.0])).item() is False
    assert repr(c.interval(0.0, 2.0)) == "Interval(lower_bound=0.0, upper_bound=2.0)"
    assert c.is_dependent(D.Uniform.support) and not c.is_dependent(D.Uniform(0.0, 1.0).support)
    with pytest.raises(ValueError, match="instance"):
        c.dependent.check(t(0.0))


BY_HAND = {  # what a call of one example is given: parameters, then a value
    "Beta": ((2.0, 3.0), 0.4), "Gamma": ((2.0, 3.0), 0.4), "Normal": ((0.5, 2.0), 0.3),
    "Uniform": ((0.0, 2.0), 0.3), "StudentT": ((3.0, 0.5, 1.5), 0.3), "Poisson": ((2.0,), 3.0),
    "Weibull": ((1.0, 2.0), 0.3), "Bernoulli": ((0.3,), 1.0), "Geometric": ((0.3,), 2.0),
    "VonMises": ((0.5, 1.0), 0.3), "Dirichlet": (([1.0, 2.0, 3.0],), [0.2, 0.3, 0.5]),
    "Categorical": (([0.2, 0.3, 0.5],), 1.0), "OneHotCategorical": (([0.2, 0.3, 0.5],), [0.0, 1.0, 0.0]),
    "LogNormal": ((0.5, 1.0), 0.3),
    "MultivariateNormal": (([0.0, 1.0], [[2.0, 0.5], [0.5, 1.0]]), [0.1, 0.2]),
}


@pytest.mark.parametrize("name", BY_HAND)
def test_distributions_are_made_and_asked_under_vmap(name):
    """With validation on: all examples are looked at, and one that is wrong is refused."""
    kind, (parameters, value) = getattr(fw.distributions, name), BY_HAND[name]
    args = [fw.stack([fw.tensor(v)] * 3) * fw.tensor([1.0, 1.0, 1.0]).reshape(-1, *[1] * fw.tensor(v).ndim)
            for v in parameters]
    values = fw.stack([fw.tensor(value)] * 3)

    def log_prob(x, *p):
        return kind(*p).log_prob(x)
    wanted = kind(*args).log_prob(values)
    assert fw.allclose(fw.func.vmap(log_prob)(values, *args), wanted, rtol=1e-5)
    slopes = fw.func.vmap(fw.func.grad(lambda p, x, *rest: log_prob(x, p, *rest)))(args[0], values, *args[1:])
    first = args[0].clone().requires_grad_()
    kind(first, *args[1:]).log_prob(values).sum().backward()
    assert fw.allclose(slopes, first.grad, rtol=1e-5)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        drawn = fw.func.vmap(lambda *p: kind(*p).sample((2,)), randomness="different")(*args)
    assert drawn.shape == (3, 2, *values.shape[1:])
    wrong = [a.clone() for a in args]
    wrong[-1][1] = fw.nan
    with pytest.raises(ValueError, match="constraint"):
        fw.func.vmap(log_prob)(values, *wrong)


def test_the_distribution_function_of_gamma_has_all_gradients():
    a, rate, x = (fw.tensor(v, dtype=fw.float64, requires_grad=True) for v in (
        [0.5, 2.0, 7.0], [1.0, 2.0, 0.5], [0.3, 1.0, 9.0]))
    assert fw.autograd.gradcheck(lambda a, r, x: fw.distributions.Gamma(a, r).cdf(x), (a, rate, x))
    fw.distributions.InverseGamma(a, rate).cdf(x).sum().backward()
    assert fw.isfinite(a.grad).all()
    g, = fw.autograd.grad(fw.distributions.Gamma(a, rate).cdf(x).sum(), a, create_graph=True)
    with pytest.raises(fw.errors.AutogradError, match="no derivative"):
        g.sum().backward()
